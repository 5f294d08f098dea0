#include "base/when.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/print.h"

static struct bytes or_unknown(struct bytes text)
{
    return text.len > 0 ? text : BYTES("?");
}

static void print_status(struct cli *cli, const struct json *json, bool ready)
{
    int64_t uptime_seconds = 0;
    char uptime[32] = "?";
    const struct json *seconds = json_get(json, BYTES("uptime_seconds"));
    if (seconds != NULL && json_to_i64(seconds, &uptime_seconds) && uptime_seconds >= 0 &&
        uptime_seconds < INT64_MAX / WHEN_SECOND)
        when_format_rough(uptime_seconds * WHEN_SECOND, uptime);
    print_line("semel %.*s at %s: %s", BYTES_ARG(or_unknown(print_field(cli, json, "version"))), cli_text(cli, "--url"),
               ready ? "ready" : "not ready");
    static const char *const rows[][2] = {
        {"storage", "storage"}, {"schema", "schema"},         {"intake", "intake"},
        {"mode", "mode"},       {"policy", "policy_version"}, {"waiting", "intents_waiting"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct bytes value = print_field(cli, json, rows[i][1]);
        if (value.len > 0)
            print_line("  %-9s %.*s", rows[i][0], BYTES_ARG(value));
    }
    print_line("  %-9s %s", "up for", uptime);
    struct bytes stranded = print_field(cli, json, "effects_stranded");
    if (stranded.len > 0 && !bytes_is(stranded, "0"))
        print_line("  %-9s %.*s effects wait for a destination that is not in the policy. See semel effects ls", "STRANDED",
                   BYTES_ARG(stranded));
    struct bytes events = print_field(cli, json, "events_waiting");
    bool failing = bytes_is(print_field(cli, json, "events_failing"), "true");
    if (failing || (events.len > 0 && !bytes_is(events, "0")))
        print_line("  %-9s %.*s not decided yet%s", "events", BYTES_ARG(or_unknown(events)),
                   failing ? "; the last try could not be written, see the log" : "");
    const struct json *quarantine = json_get(json, BYTES("quarantine"));
    if (quarantine != NULL && quarantine->type == JSON_OBJECT)
        print_line(
            "  %-9s since %.*s: %.*s\n            See semel intents --state unknown, then: semel quarantine lift --reason TEXT",
            "QUARANTINE", BYTES_ARG(print_field(cli, quarantine, "since")), BYTES_ARG(print_field(cli, quarantine, "reason")));
}

int status_run(struct cli *cli)
{
    struct client_reply reply;
    int code = client_send(cli, &(struct client_request){.method = "GET", .path = BYTES("/readyz")}, &reply);
    if (code != CLI_OK)
        return code;
    bool ready = reply.status == 200;
    if (!reply.is_json || json_get(&reply.json, BYTES("status")) == NULL || (!ready && reply.status != 503))
        return client_problem(cli, &reply);
    if (cli_on(cli, "--json"))
        print_json(&reply.json);
    else
        print_status(cli, &reply.json, ready);
    if (ready) {
        run_deliver(cli);
        return CLI_OK;
    }
    struct bytes reason = print_field(cli, &reply.json, "reason");
    return cli_fail(CLI_LATER, "not ready: %.*s. Try again later.", BYTES_ARG(or_unknown(reason)));
}
