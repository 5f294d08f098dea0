#include "cli/daemon.h"

#include "cli/commands.h"
#include "cli/print.h"

static const char *const log_levels[] = {
    [LOG_DEBUG] = "debug", [LOG_INFO] = "info", [LOG_WARN] = "warn", [LOG_ERROR] = "error", NULL};
static const char *const log_formats[] = {[LOG_LOGFMT] = "logfmt", [LOG_JSON] = "json", NULL};

const struct cli_option daemon_options[] = {
    {"--data", "DIR", CLI_DIR, "Where the data is kept.", "./semel-data", "SEMEL_DATA", NULL, false},
    {"--listen", "HOST:PORT", CLI_TEXT, "Where to listen; unix:/PATH for a socket.", "127.0.0.1:7363", "SEMEL_LISTEN", NULL,
     false},
    {"--lmtp", "HOST:PORT", CLI_TEXT, "Take mail by LMTP here, from your mail server; unix:/PATH for a socket.", NULL,
     "SEMEL_LMTP", NULL, false},
    {"--smtp", "HOST:PORT", CLI_TEXT, "Take mail by SMTP here; nothing is relayed. With --tls-cert also STARTTLS.", NULL,
     "SEMEL_SMTP", NULL, false},
    {"--smtps", "HOST:PORT", CLI_TEXT, "Take mail by SMTP here, under TLS from the first byte on; needs --tls-cert.", NULL,
     "SEMEL_SMTPS", NULL, false},
    {"--smtp-login", NULL, CLI_SWITCH, "Take mail by SMTP only after a login; the password is a token with the scope claim.",
     NULL, NULL, NULL, false},
    {"--policy", "FILE", CLI_FILE, "Apply this policy at the start.", NULL, "SEMEL_POLICY", NULL, false},
    {"--db", "URL", CLI_TEXT, "Keep the data in PostgreSQL: postgres://….", NULL, "SEMEL_DB", NULL, false},
    {"--master-key", "FILE", CLI_FILE,
     "The key that secrets are sealed with; needed for them with --db. Default: DIR/master.key, made when needed.", NULL,
     "SEMEL_MASTER_KEY_FILE", NULL, false},
    {"--tls-cert", "FILE", CLI_FILE, "Serve HTTPS with this certificate chain.", NULL, "SEMEL_TLS_CERT", NULL, false},
    {"--tls-key", "FILE", CLI_FILE, "The certificate's private key.", NULL, "SEMEL_TLS_KEY", NULL, false},
    {"--log-level", "LEVEL", CLI_CHOICE, "Log this and what is graver.", "info", "SEMEL_LOG_LEVEL", log_levels, false},
    {"--log-format", "FORMAT", CLI_CHOICE, "How log lines look.", "logfmt", "SEMEL_LOG_FORMAT", log_formats, false},
    {0},
};

int daemon_read_options(struct cli *cli, struct app_options *ret_options)
{
    const struct app_options options = {
        .data_dir = cli_text(cli, "--data"),
        .listen = cli_text(cli, "--listen"),
        .lmtp = cli_text(cli, "--lmtp"),
        .smtp = cli_text(cli, "--smtp"),
        .smtps = cli_text(cli, "--smtps"),
        .smtp_login = cli_on(cli, "--smtp-login"),
        .policy_file = cli_text(cli, "--policy"),
        .postgres_url = cli_text(cli, "--db"),
        .master_key = cli_text(cli, "--master-key"),
        .tls_cert = cli_text(cli, "--tls-cert"),
        .tls_key = cli_text(cli, "--tls-key"),
        .log_level = (enum log_level)cli_choice(cli, "--log-level"),
        .log_format = (enum log_format)cli_choice(cli, "--log-format"),
    };
    struct bytes db = bytes_of(options.postgres_url);
    if ((options.tls_cert == NULL) != (options.tls_key == NULL))
        return cli_fail(CLI_USAGE, "--tls-cert and --tls-key go together. Give both, or none.");
    if (options.smtps != NULL && options.tls_cert == NULL)
        return cli_fail(CLI_USAGE, "--smtps needs a certificate. Give --tls-cert and --tls-key.");
    if (db.at != NULL && !bytes_starts(db, BYTES("postgres://")) && !bytes_starts(db, BYTES("postgresql://")))
        return cli_fail(CLI_USAGE,
                        "--db is not a PostgreSQL URL. Write postgres://USER@HOST/DATABASE, or leave it out for SQLite.");
    *ret_options = options;
    return CLI_OK;
}
