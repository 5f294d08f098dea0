/*
 * cli: the command line of semel. Commands and options are rows of tables (cli.c, cmd_*.c); the same rows feed the parser,
 * `help`, `completion` and the reference page, so that none of them can disagree.
 *
 * Promises: a result goes to stdout, everything else to stderr as "semel: what happened. What to do."; the exit code says what a
 * script should do now; nothing asks questions, but for a secret on a terminal; tokens and secrets are never taken from the
 * command line, where every process could read them.
 */
#ifndef SEMEL_CLI_CLI_H
#define SEMEL_CLI_CLI_H

#include "base/arena.h"
#include "base/json.h"
#include "base/status.h"

#define CLI_OPTIONS_MAX 24
#define CLI_ARGUMENTS_MAX 2
#define CLI_INPUT_MAX ((size_t)16 << 20) /* of a file or of stdin */

enum cli_exit {
    CLI_OK = 0,           /* done, or done before and replayed */
    CLI_PROBLEMS = 1,     /* semel doctor: something is wrong */
    CLI_USAGE = 64,       /* the command line is wrong */
    CLI_DATA = 65,        /* the input or the key is wrong, or the claim is no longer ours */
    CLI_UNREACHABLE = 69, /* nothing answers, or it is not semel */
    CLI_INTERNAL = 70,    /* a fault of semel or of this machine */
    CLI_FSYNC = 74,       /* the daemon stopped at once because fsync failed */
    CLI_LATER = 75,       /* in progress elsewhere or not ready: try later */
    CLI_UNKNOWN = 76,     /* nobody can tell whether it happened */
    CLI_FORBIDDEN = 77,   /* the token is missing, wrong or not allowed to do this */
    CLI_CONFIG = 78,      /* the policy or a setting is wrong */
};

struct cli_exit_row {
    enum cli_exit code;
    const char *help;
};
extern const struct cli_exit_row cli_exits[];
extern const size_t cli_exit_count;

enum cli_kind {
    CLI_SWITCH, /* takes no value */
    CLI_TEXT,
    CLI_FILE,
    CLI_DIR,
    CLI_DURATION, /* 90s, 15m, 30d */
    CLI_NUMBER,   /* 1 and up */
    CLI_CHOICE,   /* one of `names` */
    CLI_CHOICES,  /* some of `names`, with commas between */
    CLI_REST,     /* arguments only: a command and its arguments, behind `--` */
};

struct cli_option {
    const char *name;  /* "--data"; NULL ends a table */
    const char *value; /* "DIR"; NULL for a switch */
    enum cli_kind kind;
    const char *help;
    const char *default_text; /* NULL for none */
    const char *env;          /* the variable that gives it when the command line does not; NULL for none */
    const char *const *names; /* for choices, NULL-terminated */
    bool required;
};

struct cli_argument {
    const char *name; /* "INTENT" */
    enum cli_kind kind;
    const char *help;
    const char *const *names;
    bool optional;
};

/* Options that many commands have. */
enum cli_shared {
    CLI_CALLS_DAEMON = 1, /* --url, --data */
    CLI_PRINTS_JSON = 2,  /* --json */
    CLI_CALLS_URL = 4,    /* --url alone: the command has a --data of its own */
};

struct cli;

struct cli_command {
    const char *name; /* "claim" or, in a group, "policy check" */
    const char *summary;
    struct cli_argument arguments[CLI_ARGUMENTS_MAX];
    const struct cli_option *options; /* NULL for none of its own */
    unsigned shared;                  /* of enum cli_shared */
    const char *note;                 /* what else to know, with examples */
    int (*run)(struct cli *cli);      /* returns the exit code */
};

extern const struct cli_command cli_commands[]; /* by name */
extern const size_t cli_command_count;

struct client;

/* One parsed command line. */
struct cli {
    const struct cli_command *command;
    const char *values[CLI_OPTIONS_MAX]; /* by option number; NULL when not given and without default */
    const char *arguments[CLI_ARGUMENTS_MAX];
    size_t argument_count;
    char *const *rest; /* the words behind `--`, for a command whose first argument is CLI_REST; end in a NULL as argv does */
    int rest_count;
    bool help;             /* --help was given; nothing else was checked */
    struct arena arena;    /* of the whole run */
    struct client *client; /* made by the first call */
};

/* The whole program: parses, runs, returns the exit code. */
int cli_main(int argc, char **argv);

/* ---- the tables ---- */

/* Option number `i` of the command, its own first, then the shared ones; NULL behind the last. */
const struct cli_option *cli_option_at(const struct cli_command *command, size_t i);

size_t cli_argument_count(const struct cli_command *command);

/* True when `name` is `group` or begins with "group ". */
bool cli_in_group(const struct cli_command *command, struct bytes group);

/* True when the command runs another one, which stands behind `--`. */
bool cli_has_rest(const struct cli_command *command);

/* The command with this name, or NULL. */
const struct cli_command *cli_find(struct bytes name);

/* ---- the parser ---- */

/* Reads argv (without the program's name) into `ret`. INVALID with the sentence to print, which names the nearest real thing. */
CHECKED enum status cli_parse(int argc, char *const *argv, struct cli *ret, struct why *why);

/* The value of an option, or NULL. The option must be one of the command's. */
const char *cli_text(const struct cli *cli, const char *name);
bool cli_on(const struct cli *cli, const char *name);
int64_t cli_number(const struct cli *cli, const char *name, int64_t otherwise);
int64_t cli_duration_us(const struct cli *cli, const char *name, int64_t otherwise);
int cli_choice(const struct cli *cli, const char *name); /* the index in its names */

/* ---- input: each prints its own error and returns the exit code, 0 when it went well ---- */

/* A whole file, "-" for stdin; ends in a NUL. */
int cli_read_file(struct cli *cli, const char *path, size_t size_max, struct bytes *ret_text);

/* JSON given as text, or "-" for JSON on stdin. `what` names it in the error. */
int cli_read_json(struct cli *cli, const char *what, const char *text, struct json *ret_json);
int cli_parse_json(struct cli *cli, const char *what, struct bytes text, struct json *ret_json);

/* ---- help ---- */

void help_all(FILE *out);
void help_command(FILE *out, const struct cli_command *command);
void help_group(FILE *out, struct bytes group);
void help_markdown(FILE *out);
int help_chapters_with(const struct cli_command *command); /* of the list of all; 1 for each */

/* "semel claim --workflow W [--key K] …" */
void help_usage(const struct cli_command *command, struct buf *out);

/* The completion script for a shell: "bash", "zsh" or "fish". */
void completion_write(const char *shell, struct buf *out);

#endif
