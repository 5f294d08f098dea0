/*
 * commands: what each cmd_*.c gives to the table in cli.c.
 */
#ifndef SEMEL_CLI_COMMANDS_H
#define SEMEL_CLI_COMMANDS_H

#include "cli/cli.h"

extern const struct cli_option audit_verify_options[];
extern const struct cli_option claim_options[];
extern const struct cli_option confirm_options[];
extern const struct cli_option daemon_options[];
extern const struct cli_option doctor_options[];
extern const struct cli_option effects_add_options[];
extern const struct cli_option effects_ls_options[];
extern const struct cli_option effects_many_options[];
extern const struct cli_option effects_resolve_options[];
extern const struct cli_option exceptions_assign_options[];
extern const struct cli_option exceptions_ls_options[];
extern const struct cli_option exceptions_resolve_options[];
extern const struct cli_option extend_options[];
extern const struct cli_option fail_options[];
extern const struct cli_option help_options[];
extern const struct cli_option inbox_limit_options[];
extern const struct cli_option inbox_ls_options[];
extern const struct cli_option inbox_mute_options[];
extern const struct cli_option inbox_note_options[];
extern const struct cli_option inbox_replay_options[];
extern const struct cli_option inbox_show_options[];
extern const struct cli_option intents_options[];
extern const struct cli_option key_options_table[];
extern const struct cli_option keys_lint_options[];
extern const struct cli_option leads_add_options[];
extern const struct cli_option leads_find_options[];
extern const struct cli_option leads_ls_options[];
extern const struct cli_option leads_merge_options[];
extern const struct cli_option leads_undo_options[];
extern const struct cli_option mcp_options[];
extern const struct cli_option policy_backtest_options[];
extern const struct cli_option quarantine_lift_options[];
extern const struct cli_option receive_mail_options[];
extern const struct cli_option release_options[];
extern const struct cli_option run_options[];
extern const struct cli_option runs_ls_options[];
extern const struct cli_option sent_options[];
extern const struct cli_option show_options[];
extern const struct cli_option threads_ls_options[];
extern const struct cli_option token_create_options[];
extern const struct cli_option trigger_options[];
extern const struct cli_option why_options[];
extern const char *const completion_shells[];

int agents_start_run(struct cli *cli);
int agents_stop_run(struct cli *cli);
int audit_verify_run(struct cli *cli);
int claim_run(struct cli *cli);
int completion_run(struct cli *cli);
int confirm_run(struct cli *cli);
int doctor_run(struct cli *cli);
int effects_add_run(struct cli *cli);
int effects_cancel_run(struct cli *cli);
int effects_ls_run(struct cli *cli);
int effects_resolve_run(struct cli *cli);
int effects_retry_run(struct cli *cli);
int effects_show_run(struct cli *cli);
int exceptions_assign_run(struct cli *cli);
int exceptions_ls_run(struct cli *cli);
int exceptions_resolve_run(struct cli *cli);
int exceptions_show_run(struct cli *cli);
int extend_run(struct cli *cli);
int fail_run(struct cli *cli);
int help_run(struct cli *cli);
int inbox_limit_run(struct cli *cli);
int inbox_ls_run(struct cli *cli);
int inbox_mute_run(struct cli *cli);
int inbox_release_run(struct cli *cli);
int inbox_replay_run(struct cli *cli);
int inbox_show_run(struct cli *cli);
int inbox_suppress_run(struct cli *cli);
int inbox_unmute_run(struct cli *cli);
int inbox_why_run(struct cli *cli);
int intents_run(struct cli *cli);
int key_run(struct cli *cli);
int leads_add_run(struct cli *cli);
int leads_find_run(struct cli *cli);
int leads_ls_run(struct cli *cli);
int leads_merge_run(struct cli *cli);
int leads_show_run(struct cli *cli);
int leads_undo_run(struct cli *cli);
int leads_why_run(struct cli *cli);
int keys_lint_run(struct cli *cli);
int mcp_run(struct cli *cli);        /* agent/mcp_command.c */
int mcp_server_run(struct cli *cli); /* agent/tools_command.c */
int policy_apply_run(struct cli *cli);
int policy_backtest_run(struct cli *cli);
int policy_check_run(struct cli *cli);
int policy_settings_run(struct cli *cli);
int policy_show_run(struct cli *cli);
int quarantine_lift_run(struct cli *cli);
int receive_mail_run(struct cli *cli);
int release_run(struct cli *cli);
int run_run(struct cli *cli); /* run/run.c */
int runs_ls_run(struct cli *cli);
int runs_show_run(struct cli *cli);
int secret_ls_run(struct cli *cli);
int secret_rewrap_run(struct cli *cli);
int secret_rm_run(struct cli *cli);
int secret_set_run(struct cli *cli);
int sent_run(struct cli *cli);
int serve_run(struct cli *cli);
int show_run(struct cli *cli);
int sources_ls_run(struct cli *cli);
int status_run(struct cli *cli);
int threads_ls_run(struct cli *cli);
int threads_show_run(struct cli *cli);
int token_create_run(struct cli *cli);
int token_ls_run(struct cli *cli);
int token_revoke_run(struct cli *cli);
int trigger_run(struct cli *cli);
int up_run(struct cli *cli);
int version_run(struct cli *cli);
int why_run(struct cli *cli);

/* Delivers what earlier runs could not, and says so; run/spool.c. */
void run_deliver(struct cli *cli);

#endif
