/*
 * Hands mails over to /in/SOURCE of the daemon, one call each. A mail is taken when the daemon says so; whatever else happens, it is
 * still where it was, and handing it over again does no harm.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/client.h"
#include "cli/commands.h"
#include "cli/mbox.h"
#include "cli/print.h"
#include "mail/mail.h"

#define REPLY_ARENA_MAX ((size_t)16 << 20)
#define LABEL_SIZE 1024
#define LOOKS_MAX 200 /* at events that are not decided yet, 25 ms apart, all together */
#define PROGRESS_EVERY 50

const struct cli_option receive_mail_options[] = {
    {"--source", "NAME", CLI_TEXT, "The policy's source that the mails are for.", "mail", NULL, NULL, false},
    {"--mbox", "FILE", CLI_FILE, "Hand over every mail of this mbox file.", NULL, NULL, NULL, false},
    {"--maildir", "DIR", CLI_DIR, "Hand over every mail in new/ and cur/ of this Maildir.", NULL, NULL, NULL, false},
    {"--move", NULL, CLI_SWITCH, "With --maildir: only those in new/, and move what was taken to cur/.", NULL, NULL, NULL, false},
    {0},
};

enum { ACCEPTED, SUPPRESSED, HELD, OTHER, VERDICTS };

struct receive {
    struct cli *cli;
    struct bytes path;
    size_t taken, refused;
    struct buf events; /* their ids, each behind a newline */
    size_t verdicts[VERDICTS];
    size_t looks;
    bool looked; /* the verdicts are known */
};

/* ---- one mail ---- */

/* The call's answers live as long as the call: a large mbox would fill the run's arena. */
static enum status call(struct receive *receive, const struct client_request *request, struct arena *arena,
                        struct client_reply *ret_reply, int *ret_code, struct why *why)
{
    struct arena kept = receive->cli->arena;
    arena_init(&receive->cli->arena, REPLY_ARENA_MAX);
    enum status status = client_try(receive->cli, request, ret_reply, ret_code, why);
    *arena = receive->cli->arena;
    receive->cli->arena = kept;
    return status;
}

static void keep_events(struct receive *receive, const struct json *reply)
{
    const struct json *events = reply->type == JSON_OBJECT ? json_get(reply, BYTES("events")) : NULL;
    for (uint32_t i = 0; events != NULL && events->type == JSON_ARRAY && i < events->count; i++) {
        if (events->items[i].type != JSON_STRING)
            continue;
        buf_add_char(&receive->events, '\n');
        buf_add(&receive->events, events->items[i].text);
    }
}

/* 0 and 65 are about this mail; everything else is about the daemon, and the next mail would fare no better. */
static bool is_about_mail(int code)
{
    return code == CLI_OK || code == CLI_DATA;
}

/* 404 is a source that the policy does not have: no fault of the mail. */
static int exit_of(long status)
{
    if (status >= 200 && status < 300)
        return CLI_OK;
    return status == 404 ? CLI_CONFIG : (int)client_exit(status, BYTES_NONE);
}

/* Returns the exit code. A mail that is not taken is named. */
static int hand_over(struct receive *receive, const char *label, struct bytes mail)
{
    const struct client_request request = {
        .method = "POST", .path = receive->path, .body = mail, .content_type = "message/rfc822"};
    struct client_reply reply;
    struct arena arena;
    struct why why = {""};
    struct buf sentence;
    int code = CLI_OK;
    buf_init(&sentence, 64 << 10);
    enum status status = call(receive, &request, &arena, &reply, &code, &why);
    if (status == OK && (code = exit_of(reply.status)) == CLI_OK) {
        receive->taken++;
        keep_events(receive, &reply.json);
    } else {
        if (status == OK)
            client_sentence(receive->cli, &reply, &sentence);
        else
            buf_add_cstr(&sentence, why.text);
        code = status == RETRY || status == UNKNOWN ? CLI_LATER : code; /* not handed over, or perhaps: once more does no harm */
        receive->refused += code == CLI_DATA;
        cli_fail((enum cli_exit)code, "%s was not taken: %.*s", label, BYTES_ARG(buf_bytes(&sentence)));
    }
    arena_release(&arena);
    buf_release(&sentence);
    return code;
}

static void show_progress(const struct receive *receive, bool last)
{
    size_t done = receive->taken + receive->refused;
    if (isatty(STDERR_FILENO) && (last ? done >= PROGRESS_EVERY : done % PROGRESS_EVERY == 0))
        fprintf(stderr, "\r%zu mails%s", done, last ? "\n" : "");
}

/* ---- where they are ---- */

/* A mail server that pipes a mail into a program often puts a "From " line in front. */
static int from_stdin(struct receive *receive)
{
    struct bytes mail, rest;
    int code = cli_read_file(receive->cli, "-", MAIL_SIZE_MAX, &mail);
    if (code != CLI_OK)
        return code;
    rest = mail;
    if (mbox_is_from(bytes_cut(&rest, '\n')))
        mail = rest;
    code = hand_over(receive, "the mail", mail);
    return is_about_mail(code) ? code : CLI_LATER; /* so that the mail server keeps it and tries again */
}

static int from_mbox(struct receive *receive, const char *path)
{
    struct mbox mbox;
    struct buf mail;
    struct why why = {""};
    enum status status;
    int code = CLI_OK;
    FILE *file = fopen(path, "rbe");
    if (file == NULL)
        return cli_fail(CLI_DATA, "%s cannot be read: %s.", path, strerror(errno));
    mbox_init(&mbox, file);
    buf_init(&mail, MAIL_SIZE_MAX);
    while (is_about_mail(code) && ((status = mbox_next(&mbox, &mail, &why)) == OK || status == FULL)) {
        char label[LABEL_SIZE];
        snprintf(label, sizeof label, "mail %zu of %s", mbox.number, path);
        if (status == OK) {
            buf_add_char(&mail, '\0'); /* the HTTP library does not need it, but a body must not be absent */
            code = hand_over(receive, label, (struct bytes){mail.at, mail.len - 1});
        } else {
            code = cli_fail(CLI_DATA, "%s was not taken: %s.", label, why.text);
            receive->refused++;
        }
        show_progress(receive, false);
    }
    if (is_about_mail(code) && status != NOTHING)
        code = cli_fail(CLI_DATA, "%s: %s.", path, why.text);
    fclose(file);
    mbox_release(&mbox);
    buf_release(&mail);
    return code;
}

static int is_mail_name(const struct dirent *entry)
{
    return entry->d_name[0] != '.';
}

/* "new/123.host" → "cur/123.host:2,": seen by a program, with no flags. */
static void move_taken(const char *dir, const char *name)
{
    char from[LABEL_SIZE], to[LABEL_SIZE];
    snprintf(from, sizeof from, "%s/new/%s", dir, name);
    snprintf(to, sizeof to, "%s/cur/%s%s", dir, name, strchr(name, ':') == NULL ? ":2," : "");
    if (rename(from, to) != 0)
        cli_note("%s was taken, but cannot be moved: %s.", from, strerror(errno));
}

static int from_file(struct receive *receive, const char *path)
{
    struct bytes mail;
    struct arena kept = receive->cli->arena;
    arena_init(&receive->cli->arena, 2 * (size_t)MAIL_SIZE_MAX);
    int code = cli_read_file(receive->cli, path, MAIL_SIZE_MAX, &mail);
    if (code != CLI_OK)
        receive->refused++;
    else
        code = hand_over(receive, path, mail);
    arena_release(&receive->cli->arena);
    receive->cli->arena = kept;
    return code;
}

/* Names sort by time of arrival. What another program moved meanwhile is not there any more. */
static int from_folder(struct receive *receive, const char *dir, const char *folder, bool move)
{
    char path[LABEL_SIZE];
    struct dirent **names;
    int code = CLI_OK;
    snprintf(path, sizeof path, "%s/%s", dir, folder);
    int count = scandir(path, &names, is_mail_name, alphasort);
    if (count < 0)
        return cli_fail(CLI_DATA, "%s cannot be read: %s.", path, strerror(errno));
    for (int i = 0; i < count; i++) {
        snprintf(path, sizeof path, "%s/%s/%s", dir, folder, names[i]->d_name);
        if (is_about_mail(code) && access(path, F_OK) == 0) {
            int one = from_file(receive, path);
            if (one == CLI_OK && move)
                move_taken(dir, names[i]->d_name);
            code = one != CLI_OK ? one : code;
            show_progress(receive, false);
        }
        free(names[i]);
    }
    free(names);
    return code;
}

static int from_maildir(struct receive *receive, const char *dir, bool move)
{
    int fresh = from_folder(receive, dir, "new", move), old = CLI_OK;
    if (!move && is_about_mail(fresh))
        old = from_folder(receive, dir, "cur", false);
    return old != CLI_OK ? old : fresh;
}

/* ---- what became of them ---- */

static int verdict_of(struct bytes name)
{
    static const char *const names[] = {[ACCEPTED] = "accepted", [SUPPRESSED] = "suppressed", [HELD] = "held"};
    for (int i = 0; i < OTHER; i++)
        if (bytes_is(name, names[i]))
            return i;
    return OTHER;
}

/* False when it cannot be told: without a token, say. Nothing is lost by that. */
static bool look_at(struct receive *receive, struct bytes event)
{
    struct buf path;
    struct arena arena;
    struct client_reply reply;
    struct why why;
    int code;
    bool waiting = true, told = true;
    buf_init(&path, 1024);
    buf_add_cstr(&path, "/v1/events");
    client_path_add(&path, event);
    buf_add_char(&path, '\0');
    while (waiting && told && receive->looks < LOOKS_MAX) {
        const struct client_request request = {.method = "GET", .path = {path.at, path.len - 1}};
        told = call(receive, &request, &arena, &reply, &code, &why) == OK && reply.status == 200 && reply.is_json;
        const struct json *verdict = told && reply.json.type == JSON_OBJECT ? json_get(&reply.json, BYTES("verdict")) : NULL;
        told = verdict != NULL && verdict->type == JSON_STRING;
        waiting = told && bytes_is(verdict->text, "waiting");
        if (told && !waiting)
            receive->verdicts[verdict_of(verdict->text)]++;
        arena_release(&arena);
        receive->looks += waiting;
        if (waiting)
            usleep(25000);
    }
    buf_release(&path);
    return told && !waiting;
}

static void look_at_all(struct receive *receive)
{
    struct bytes rest = bytes_from(buf_bytes(&receive->events), 1);
    receive->looked = receive->taken > 0 && !receive->events.failed;
    while (receive->looked && rest.len > 0)
        receive->looked = look_at(receive, bytes_cut(&rest, '\n'));
}

static void summarise_json(const struct receive *receive)
{
    static const char *const names[] = {[ACCEPTED] = "accepted", [SUPPRESSED] = "suppressed", [HELD] = "held", [OTHER] = "other"};
    struct buf text;
    buf_init(&text, 4096);
    struct json_out out = json_out_to(&text);
    json_open(&out, '{');
    json_name(&out, "taken");
    json_i64(&out, (int64_t)receive->taken);
    json_name(&out, "refused");
    json_i64(&out, (int64_t)receive->refused);
    for (int i = 0; receive->looked && i < VERDICTS; i++) {
        json_name(&out, names[i]);
        json_i64(&out, (int64_t)receive->verdicts[i]);
    }
    json_close(&out, '}');
    print_json_buf(&text);
    buf_release(&text);
}

static void summarise(const struct receive *receive)
{
    const size_t *verdicts = receive->verdicts;
    if (receive->taken + receive->refused == 0)
        return; /* why is said already */
    if (cli_on(receive->cli, "--json"))
        summarise_json(receive);
    else if (!receive->looked)
        print_line("%zu taken, %zu refused", receive->taken, receive->refused);
    else
        print_line("%zu taken, %zu refused: %zu accepted, %zu suppressed, %zu held%s", receive->taken, receive->refused,
                   verdicts[ACCEPTED], verdicts[SUPPRESSED], verdicts[HELD],
                   verdicts[OTHER] > 0 ? ", the rest ignored or muted" : "");
}

/* ---- the command ---- */

static int check_options(const struct cli *cli)
{
    const char *mbox = cli_text(cli, "--mbox"), *maildir = cli_text(cli, "--maildir");
    bool input = cli->argument_count > 0;
    if (input && strcmp(cli->arguments[0], "-") != 0)
        return cli_fail(CLI_USAGE, "a mail comes from stdin; for files there are --mbox and --maildir.");
    if ((mbox != NULL) + (maildir != NULL) + input > 1)
        return cli_fail(CLI_USAGE, "give one of --mbox, --maildir and -.");
    if (cli_on(cli, "--move") && maildir == NULL)
        return cli_fail(CLI_USAGE, "--move goes with --maildir.");
    return CLI_OK;
}

static struct bytes path_of(struct cli *cli)
{
    struct buf path;
    buf_init(&path, 1024);
    buf_add_cstr(&path, "/in");
    client_path_add(&path, bytes_of(cli_text(cli, "--source")));
    struct bytes text = arena_dup(&cli->arena, buf_bytes(&path));
    buf_release(&path);
    return text;
}

int receive_mail_run(struct cli *cli)
{
    const char *mbox = cli_text(cli, "--mbox"), *maildir = cli_text(cli, "--maildir");
    int code = check_options(cli);
    if (code != CLI_OK)
        return code;
    struct receive receive = {.cli = cli, .path = path_of(cli)};
    buf_init(&receive.events, CLI_INPUT_MAX);
    if (mbox != NULL)
        code = from_mbox(&receive, mbox);
    else if (maildir != NULL)
        code = from_maildir(&receive, maildir, cli_on(cli, "--move"));
    else
        code = from_stdin(&receive);
    show_progress(&receive, true);
    if (mbox != NULL || maildir != NULL)
        look_at_all(&receive);
    summarise(&receive);
    buf_release(&receive.events);
    return code == CLI_OK && receive.refused > 0 ? CLI_DATA : code;
}
