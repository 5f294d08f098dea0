#include <stdio.h>

#include "base/when.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/print.h"
#include "env/env.h"
#include "policy/policy.h"
#include "receive/receive.h"
#include "receive/source_read.h"
#include "secret/seal.h"
#include "secret/secret.h"

enum { COUNT_MAX = 1000 };

const struct cli_option trigger_options[] = {
    {"--text", "TEXT", CLI_TEXT, "What the person writes.", "Hello, is it still available?", NULL, NULL, false},
    {"--from", "WHO", CLI_TEXT, "The person: an address, a number, or 'Jo Smith <jo@example.com>'.", NULL, NULL, NULL, false},
    {"--id", "ID", CLI_TEXT, "The sender's id of it; a new one when not given.", NULL, NULL, NULL, false},
    {"--count", "N", CLI_NUMBER, "How many different ones.", "1", NULL, NULL, false},
    {"--twice", NULL, CLI_SWITCH, "Send each twice, byte for byte.", NULL, NULL, NULL, false},
    {"--again-after", "TIME", CLI_DURATION, "Send each again, as a sender does that long after it happened: signed anew.", NULL,
     NULL, NULL, false},
    {"--reorder", NULL, CLI_SWITCH, "Send the latest first.", NULL, NULL, NULL, false},
    {"--tamper", NULL, CLI_SWITCH,
     "Change one byte after signing, or of the secret where the body is not signed: it must be refused.", NULL, NULL, NULL,
     false},
    {"--secret", "REF", CLI_TEXT, "Where the secret is: env:NAME or file:/PATH.", NULL, NULL, NULL, false},
    {"--policy", "FILE", CLI_FILE, "The policy, in place of the daemon's.", NULL, NULL, NULL, false},
    {"--dry-run", NULL, CLI_SWITCH, "Print what would be sent, without a secret, and send nothing.", NULL, NULL, NULL, false},
    {0},
};

/* One run of the command. */
struct trigger {
    struct cli *cli;
    struct policy *policy;
    const struct source *source;
    struct bytes secret, path, url;
    struct sample_values values;
    size_t refused, taken;
};

/* ---- the source ---- */

static int take_policy(struct trigger *trigger, struct bytes text)
{
    static struct yaml_problems problems;
    if (policy_parse(text, &trigger->policy, &problems) != OK)
        return cli_fail(CLI_CONFIG, "the policy is not right: line %zu: %s", problems.at[0].line, problems.at[0].text);
    trigger->source = policy_source(trigger->policy, bytes_of(trigger->cli->arguments[0]));
    return CLI_OK;
}

/* A preset that no policy names: as it is, or without verification where it has no way of its own. */
static int take_preset(struct trigger *trigger)
{
    const char *name = trigger->cli->arguments[0], *secret = cli_text(trigger->cli, "--secret");
    struct yaml_problems problems;
    if (!settings_is_name(bytes_of(name)) || preset_text(bytes_of(name)).at == NULL)
        return cli_fail(CLI_USAGE,
                        "there is no source \"%.64s\" in the policy, and no preset of that name. See: semel policy settings",
                        name);
    const char *verify = secret != NULL ? "secret: env:SEMEL_TRIGGER" : "verify: none";
    struct bytes text = arena_printf(&trigger->cli->arena, "sources: {%s: {%s}}\n", name, verify);
    policy_free(trigger->policy);
    trigger->policy = NULL;
    if (text.at == NULL || policy_parse(text, &trigger->policy, &problems) != OK)
        return cli_fail(CLI_USAGE, "the preset \"%s\" has several ways to sign. Put it under sources: in a policy, with verify:.",
                        name);
    trigger->source = policy_source(trigger->policy, bytes_of(name));
    if (secret == NULL)
        cli_note("no policy here names \"%s\": this is its preset's sample, not signed. Sign it with --secret env:NAME", name);
    return CLI_OK;
}

static int find_source(struct trigger *trigger)
{
    struct cli *cli = trigger->cli;
    const char *file = cli_text(cli, "--policy");
    struct bytes text = BYTES("");
    int code = CLI_OK;
    if (file != NULL) {
        code = cli_read_file(cli, file, POLICY_SIZE_MAX, &text);
    } else if (!cli_on(cli, "--dry-run") || preset_text(bytes_of(cli->arguments[0])).at == NULL) {
        struct client_reply reply;
        code = client_call(cli, &(struct client_request){.method = "GET", .path = BYTES("/v1/policy")}, &reply);
        const struct json *given = code == CLI_OK ? json_get(&reply.json, BYTES("text")) : NULL;
        if (given != NULL && given->type == JSON_STRING)
            text = given->text;
    }
    if (code == CLI_OK)
        code = take_policy(trigger, text);
    return code == CLI_OK && trigger->source == NULL ? take_preset(trigger) : code;
}

static int find_secret(struct trigger *trigger)
{
    const char *given = cli_text(trigger->cli, "--secret");
    struct bytes reference = bytes_of(given);
    struct secret_text text;
    struct why why;
    if (trigger->source->rule_count == 0)
        return CLI_OK;
    if (given == NULL)
        reference = trigger->source->secrets[0].text;
    if (bytes_starts(reference, BYTES("secret:")))
        return cli_fail(CLI_USAGE, "only the daemon can open %.*s. Give the secret with --secret env:NAME or file:/PATH.",
                        BYTES_ARG(reference));
    seal_setup();
    if (secret_resolve(NULL, BYTES("main"), reference, &text, &why) != OK)
        return cli_fail(CLI_CONFIG, "%s.", why.text);
    trigger->secret = arena_dup(&trigger->cli->arena, (struct bytes){text.at, text.len});
    secret_text_free(&text);
    return trigger->secret.at != NULL ? CLI_OK : cli_fail(CLI_INTERNAL, "there is not enough memory.");
}

/* ---- what is sent ---- */

static void take_person(struct trigger *trigger)
{
    struct sample_values *values = &trigger->values;
    struct bytes from = bytes_of(cli_text(trigger->cli, "--from"));
    values->name = BYTES("Jo Smith");
    values->email = BYTES("jo.smith@example.com");
    values->phone = BYTES("+33612345678");
    values->text = bytes_of(cli_text(trigger->cli, "--text"));
    if (from.at == NULL)
        return;
    const char *open = memchr(from.at, '<', from.len);
    struct bytes name = {from.at, open != NULL ? (size_t)(open - from.at) : 0};
    struct bytes email = identity_email(from, &trigger->cli->arena), phone = identity_phone(from, &trigger->cli->arena);
    if (bytes_trim(name).len > 0)
        values->name = bytes_trim(name);
    if (email.at != NULL)
        values->email = email;
    else if (phone.at != NULL)
        values->phone = arena_printf(&trigger->cli->arena, "+%.*s", BYTES_ARG(phone));
    else
        values->name = from;
}

static struct bytes make_id(struct trigger *trigger, int64_t index)
{
    const char *given = cli_text(trigger->cli, "--id");
    uint64_t random;
    struct arena *arena = &trigger->cli->arena;
    if (given != NULL && index == 0)
        return bytes_of(given);
    if (given != NULL)
        return arena_printf(arena, "%s-%lld", given, (long long)index);
    struct env *env = env_real();
    env->random(env, &random, sizeof random);
    return arena_printf(arena, "%016llx", (unsigned long long)random);
}

/* One byte is another: a letter or a digit, so that the body stays readable and only the signature can tell. */
static struct bytes changed(struct trigger *trigger, struct bytes text, size_t at)
{
    char *copy = arena_alloc(&trigger->cli->arena, text.len + 1);
    if (copy == NULL || text.len == 0)
        return text;
    memcpy(copy, text.at, text.len);
    copy[text.len] = '\0';
    while (at + 1 < text.len && !((copy[at] >= 'a' && copy[at] < 'z') || (copy[at] >= '0' && copy[at] < '9')))
        at++;
    copy[at] = (char)(copy[at] == 'z' || copy[at] == '9' ? copy[at] - 1 : copy[at] + 1);
    return (struct bytes){copy, text.len};
}

/* Some send the secret itself, and one does not sign its body: there, the secret is another. */
static bool covers_body(const struct source *source)
{
    const struct verify_rule *rule = &source->rules[0];
    return rule->covers_body && rule->alg != VERIFY_EQUAL && rule->alg != VERIFY_BASIC;
}

static int make_request(struct trigger *trigger, struct bytes id, int64_t happened_us, int64_t signed_us,
                        struct receive_request *ret)
{
    struct why why = {""};
    bool tamper = cli_on(trigger->cli, "--tamper");
    struct bytes secret = trigger->secret;
    trigger->values.id = id;
    trigger->values.time_us = happened_us;
    trigger->values.signed_us = signed_us;
    if (tamper && trigger->source->rule_count == 0)
        return cli_fail(CLI_USAGE, "nothing of this source is verified, so that nothing can be tampered with.");
    if (tamper && !covers_body(trigger->source))
        secret = changed(trigger, secret, secret.len - 1);
    if (receive_sample(trigger->source, &trigger->values, trigger->url, &trigger->cli->arena, ret, &why) != OK ||
        receive_sign(trigger->source, secret, &trigger->cli->arena, ret, &why) != OK)
        return cli_fail(CLI_DATA, "%s.", why.text);
    if (tamper && covers_body(trigger->source))
        ret->body = changed(trigger, ret->body, ret->body.len / 2);
    return CLI_OK;
}

/* ---- what came back ---- */

static bool shows_secret(const struct trigger *trigger, struct bytes name)
{
    const struct verify_rule *rule = trigger->source->rule_count > 0 ? &trigger->source->rules[0] : NULL;
    return rule != NULL && (rule->alg == VERIFY_EQUAL || rule->alg == VERIFY_BASIC) &&
           bytes_starts(rule->signature, BYTES("header.")) && bytes_eq_nocase(bytes_from(rule->signature, 7), name);
}

static void print_request(const struct trigger *trigger, const struct receive_request *request)
{
    struct bytes query = request->url, place = bytes_cut(&query, '?');
    print_line("%.*s %.*s%s", BYTES_ARG(request->method), BYTES_ARG(place), query.len > 0 ? "?…" : "");
    for (size_t i = 0; i < request->header_count; i++) {
        struct bytes name = request->headers[i].name, value = request->headers[i].value;
        if (shows_secret(trigger, name))
            value = BYTES("…");
        print_line("%.*s: %.*s", BYTES_ARG(name), BYTES_ARG(value));
    }
    print_line("%s", "");
    print_line("%.*s", BYTES_ARG(request->body));
}

static void print_reply(const struct trigger *trigger, struct bytes id, const struct client_reply *reply)
{
    struct buf buf;
    buf_init(&buf, CLIENT_REPLY_MAX);
    if (!cli_on(trigger->cli, "--json")) {
        print_clean(&buf, reply->body);
        print_line("%.*s  %ld  %.*s", BYTES_ARG(id), reply->status, BYTES_ARG(buf_bytes(&buf)));
        buf_release(&buf);
        return;
    }
    struct json_out out = json_out_to(&buf);
    json_open(&out, '{');
    json_name(&out, "id");
    json_text(&out, id);
    json_name(&out, "status");
    json_i64(&out, reply->status);
    json_name(&out, "answer");
    if (reply->is_json)
        json_raw(&out, reply->json.raw);
    else
        json_text(&out, reply->body);
    json_close(&out, '}');
    print_json_buf(&buf);
    buf_release(&buf);
}

static int send_request(struct trigger *trigger, struct bytes id, const struct receive_request *request)
{
    struct client_reply reply;
    if (cli_on(trigger->cli, "--dry-run")) {
        print_request(trigger, request);
        return CLI_OK;
    }
    struct bytes query = request->url;
    (void)bytes_cut(&query, '?');
    struct bytes path = query.len > 0
                            ? arena_printf(&trigger->cli->arena, "%.*s?%.*s", BYTES_ARG(trigger->path), BYTES_ARG(query))
                            : trigger->path;
    struct bytes method = arena_dup(&trigger->cli->arena, request->method);
    if (path.at == NULL || method.at == NULL)
        return cli_fail(CLI_INTERNAL, "there is not enough memory.");
    int code = client_send(trigger->cli,
                           &(struct client_request){.method = method.at,
                                                    .path = path,
                                                    .body = request->body,
                                                    .headers = request->headers,
                                                    .header_count = request->header_count},
                           &reply);
    if (code != CLI_OK)
        return code;
    print_reply(trigger, id, &reply);
    trigger->taken += reply.status >= 200 && reply.status < 300;
    trigger->refused += reply.status == 401;
    return CLI_OK;
}

/* ---- all of it ---- */

static int send_one(struct trigger *trigger, int64_t index, int64_t now_us)
{
    int64_t after_us = cli_duration_us(trigger->cli, "--again-after", 0), happened_us = now_us + index * WHEN_SECOND - after_us;
    struct bytes id = make_id(trigger, index);
    struct receive_request first, again;
    if (id.at == NULL)
        return cli_fail(CLI_INTERNAL, "there is not enough memory.");
    int code = make_request(trigger, id, happened_us, now_us, &first);
    if (code == CLI_OK)
        code = send_request(trigger, id, &first);
    if (code == CLI_OK && cli_on(trigger->cli, "--twice"))
        code = send_request(trigger, id, &first);
    if (code == CLI_OK && after_us > 0)
        code = make_request(trigger, id, happened_us, now_us + WHEN_SECOND, &again);
    if (code == CLI_OK && after_us > 0)
        code = send_request(trigger, id, &again);
    return code;
}

static int send_all(struct trigger *trigger)
{
    int64_t count = cli_number(trigger->cli, "--count", 1), now_us = env_real_wall_us();
    if (count > COUNT_MAX)
        return cli_fail(CLI_USAGE, "--count is 1 to %d.", COUNT_MAX);
    size_t sent = 0;
    for (int64_t i = 0; i < count; i++, sent++) {
        int code = send_one(trigger, cli_on(trigger->cli, "--reorder") ? count - 1 - i : i, now_us);
        if (code != CLI_OK)
            return code;
    }
    if (cli_on(trigger->cli, "--dry-run"))
        return CLI_OK;
    if (cli_on(trigger->cli, "--tamper"))
        return trigger->refused > 0 && trigger->taken == 0 ? CLI_OK : cli_fail(CLI_DATA, "a changed delivery was not refused.");
    return trigger->taken >= sent ? CLI_OK : cli_fail(CLI_DATA, "not everything was taken.");
}

int trigger_run(struct cli *cli)
{
    struct trigger trigger = {.cli = cli};
    int code = find_source(&trigger);
    if (code == CLI_OK)
        code = find_secret(&trigger);
    if (code == CLI_OK) {
        take_person(&trigger);
        trigger.path = arena_printf(&cli->arena, "/in/%s", cli->arguments[0]);
        struct bytes base = bytes_of(cli_text(cli, "--url"));
        while (base.len > 0 && base.at[base.len - 1] == '/')
            base.len--;
        if (bytes_starts(base, BYTES("unix:")))
            base = BYTES("http://localhost");
        trigger.url = arena_printf(&cli->arena, "%.*s%.*s", BYTES_ARG(base), BYTES_ARG(trigger.path));
        code = trigger.path.at != NULL && trigger.url.at != NULL ? send_all(&trigger)
                                                                 : cli_fail(CLI_INTERNAL, "there is not enough memory.");
    }
    policy_free(trigger.policy);
    return code;
}
