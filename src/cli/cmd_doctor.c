/* doctor: what is wrong and what to do. The daemon looks at itself (/v1/doctor); what only this side can see is added here. */
#include <sys/stat.h>

#include "base/version.h"
#include "base/when.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "doctor/doctor.h"
#include "env/env.h"

#define CLOCKS_APART_US (5 * WHEN_SECOND) /* beyond how long the answer took */

const struct cli_option doctor_options[] = {
    {"--data", "DIR", CLI_DIR, "Look at the files there too; and use the token in DIR/admin.token, if SEMEL_TOKEN is not set.",
     NULL, NULL, NULL, false},
    {0},
};

/* ---- what this side sees ---- */

static void look_at_file(struct doctor *doctor, const char *dir, const char *name)
{
    struct bytes path = arena_printf(doctor->arena, "%s%s%s", dir, *name != '\0' ? "/" : "", name);
    struct stat stat_of;
    if (path.at == NULL || stat(path.at, &stat_of) != 0) {
        if (*name == '\0')
            doctor_say(doctor, DOCTOR_PROBLEM, "data", "Give the directory that the daemon was started with.",
                       "The data directory %s is not there.", dir);
        return;
    }
    if ((stat_of.st_mode & 077) != 0)
        doctor_say(doctor, DOCTOR_WARNING, "data", "Take the others' rights away: chmod go= PATH",
                   "%s can be used by others than its owner (mode %03o).", path.at, (unsigned)stat_of.st_mode & 0777);
}

static void look_at_data(struct doctor *doctor, const char *dir)
{
    static const char *const names[] = {"", "semel.db", "admin.token", "master.key"};
    size_t before = doctor->count;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        look_at_file(doctor, dir, names[i]);
    doctor_well(doctor, before, "data", "The data directory is for its owner alone.");
}

static void compare_clocks(struct doctor *doctor, int64_t asked_us, int64_t told_us, int64_t heard_us)
{
    int64_t apart_us = told_us < asked_us ? asked_us - told_us : told_us > heard_us ? told_us - heard_us : 0;
    char text[32];
    if (told_us == 0 || apart_us <= CLOCKS_APART_US)
        return;
    text[when_format_rough(apart_us, text)] = '\0';
    doctor_say(doctor, DOCTOR_WARNING, "clock", "Keep both right with NTP.",
               "The clock here and that of the daemon are %s apart.", text);
}

/* ---- both sides together ---- */

static void take_finding(struct cli *cli, struct doctor *doctor, const struct json *finding)
{
    struct bytes check = print_field(cli, finding, "check"), grade = print_field(cli, finding, "grade");
    struct bytes text = print_field(cli, finding, "text"), fix = print_field(cli, finding, "fix");
    for (int i = 0; i < DOCTOR_GRADE_COUNT; i++)
        if (bytes_is(grade, doctor_grade_names[i]))
            doctor_say(doctor, (enum doctor_grade)i, check.at, fix.len > 0 ? fix.at : NULL, "%.*s", BYTES_ARG(text));
}

static void take_report(struct cli *cli, struct doctor *doctor, const struct json *report)
{
    const struct json *findings = json_get(report, BYTES("findings"));
    for (uint32_t i = 0; findings != NULL && findings->type == JSON_ARRAY && i < findings->count; i++)
        take_finding(cli, doctor, &findings->items[i]);
    struct bytes version = print_field(cli, report, "version");
    if (!bytes_is(version, SEMEL_VERSION))
        doctor_say(doctor, DOCTOR_WARNING, "version", "Use the same version here and there.",
                   "This is semel " SEMEL_VERSION ", the daemon is %.*s.", BYTES_ARG(version));
    doctor->left_off += (size_t)json_get_i64(report, "left_off");
}

/* ---- printing ---- */

static void print_findings(const struct doctor *doctor)
{
    static const char *const headings[] = {"problems", "warnings", "ok"};
    for (int grade = 0; grade < DOCTOR_GRADE_COUNT; grade++) {
        if (doctor_count(doctor, (enum doctor_grade)grade) == 0)
            continue;
        print_line("%s", headings[grade]);
        for (size_t i = 0; i < doctor->count; i++) {
            const struct doctor_finding *finding = &doctor->findings[i];
            if ((int)finding->grade != grade)
                continue;
            print_line("  %-12s  %.*s", finding->check, BYTES_ARG(finding->text));
            if (finding->fix.at != NULL)
                print_line("                -> %.*s", BYTES_ARG(finding->fix));
        }
    }
    size_t problems = doctor_count(doctor, DOCTOR_PROBLEM), warnings = doctor_count(doctor, DOCTOR_WARNING);
    print_line("%zu problem%s, %zu warning%s", problems, problems == 1 ? "" : "s", warnings, warnings == 1 ? "" : "s");
    if (doctor->left_off > 0)
        cli_note("%zu more findings were left off.", doctor->left_off);
}

static void print_report(struct cli *cli, const struct doctor *doctor)
{
    if (!cli_on(cli, "--json")) {
        print_findings(doctor);
        return;
    }
    struct buf buf;
    buf_init(&buf, 4 << 20);
    struct json_out out = json_out_to(&buf);
    json_open(&out, '{');
    doctor_write(doctor, &out);
    json_close(&out, '}');
    print_json_buf(&buf);
    buf_release(&buf);
}

/* CLI_OK when the daemon answered, or does not run: that is a finding too. */
static int ask(struct cli *cli, struct doctor *doctor)
{
    const struct client_request request = {.method = "GET", .path = BYTES("/v1/doctor"), .timeout_us = 2 * WHEN_MINUTE};
    struct client_reply reply;
    struct why why = {""};
    int code = CLI_OK;
    int64_t asked_us = env_real_wall_us();
    enum status status = client_try(cli, &request, &reply, &code, &why);
    if (status == RETRY || status == UNKNOWN) {
        doctor_say(doctor, DOCTOR_PROBLEM, "daemon", "If it runs elsewhere, give its address with --url.", "%s", why.text);
        return CLI_OK;
    }
    if (status != OK)
        return cli_fail((enum cli_exit)code, "%s", why.text);
    if (reply.status != 200 || !reply.is_json || json_get(&reply.json, BYTES("findings")) == NULL)
        return client_problem(cli, &reply);
    take_report(cli, doctor, &reply.json);
    compare_clocks(doctor, asked_us, print_time_of(&reply.json, "now"), env_real_wall_us());
    return CLI_OK;
}

int doctor_run(struct cli *cli)
{
    struct doctor *doctor = arena_zalloc(&cli->arena, 1, sizeof *doctor);
    if (doctor == NULL)
        return cli_fail(CLI_INTERNAL, "there is no memory for a report.");
    doctor_init(doctor, &cli->arena);
    int code = ask(cli, doctor);
    if (code != CLI_OK)
        return code;
    if (cli_text(cli, "--data") != NULL)
        look_at_data(doctor, cli_text(cli, "--data"));
    print_report(cli, doctor);
    return doctor_count(doctor, DOCTOR_PROBLEM) > 0 ? CLI_PROBLEMS : CLI_OK;
}
