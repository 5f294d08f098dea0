#include "ledger/naming.h"

#include "base/when.h"

#define KEEP_MAX_US (400 * WHEN_DAY)

/* PostgreSQL's text has no NUL, and a name with control characters cannot be read in a list. */
static bool is_plain(struct bytes text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.at[i] < 0x20 || text.at[i] == 0x7f)
            return false;
    return true;
}

static enum status check_names(const struct claim_naming *naming, struct bytes *ret_field, struct why *why)
{
    const struct {
        const char *name;
        struct bytes text;
    } names[] = {{"workflow", naming->workflow}, {"thread", naming->thread}, {"action", naming->action}, {"run", naming->run}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (is_plain(names[i].text))
            continue;
        *ret_field = bytes_of(names[i].name);
        return why_set(why, INVALID, "%s must not contain control characters.", names[i].name);
    }
    return OK;
}

static enum status make_key(const struct claim_naming *naming, const struct naming_rules *rules, struct arena *arena,
                            struct bytes *ret_key, struct bytes *ret_field, struct why *why)
{
    struct bytes field = BYTES_NONE;
    if (rules->workflow->key == NULL)
        return why_set(why, NOTHING, "The workflow \"%.*s\" has no key template, and the claim brings no key.",
                       BYTES_ARG(naming->workflow));
    if (naming->input == NULL)
        return why_set(why, NOTHING, "The key of \"%.*s\" is made from the input, and the claim brings none.",
                       BYTES_ARG(naming->workflow));
    if (key_template_fill(rules->workflow->key, naming->input, rules->now_us, arena, ret_key, &field, why) == OK)
        return OK;
    struct bytes path = arena_printf(arena, "input%s%.*s", field.len > 0 ? "." : "", BYTES_ARG(field));
    *ret_field = path.at != NULL ? path : BYTES("input");
    return INVALID;
}

static enum status choose_key(const struct claim_naming *naming, const struct naming_rules *rules, struct arena *arena,
                              struct bytes *ret_key, struct bytes *ret_field, struct why *why)
{
    if (naming->key.at == NULL)
        return make_key(naming, rules, arena, ret_key, ret_field, why);
    *ret_field = BYTES("key");
    *ret_key = naming->key;
    return key_check(naming->key, why);
}

static enum status choose_keep(const struct claim_naming *naming, int64_t *ret_keep_us, struct bytes *ret_field, struct why *why)
{
    int64_t keep_us;
    if (naming->keep.at == NULL)
        return OK;
    *ret_field = BYTES("keep");
    if (!when_parse_duration(naming->keep, &keep_us) || keep_us < WHEN_SECOND || keep_us > KEEP_MAX_US)
        return why_set(why, INVALID, "keep has to be a duration from 1s to 400d, such as \"30d\".");
    *ret_keep_us = keep_us;
    return OK;
}

enum status ledger_name(const struct claim_naming *naming, const struct naming_rules *rules, struct arena *arena,
                        struct ledger_command *ret, struct bytes *ret_field, struct why *why)
{
    const struct fingerprint_options options = {rules->pepper, rules->workflow->ignore, rules->workflow->ignore_count};
    ledger_claim_rules(ret, rules->workflow);
    TRY(check_names(naming, ret_field, why));
    TRY(choose_key(naming, rules, arena, &ret->key, ret_field, why));
    TRY(choose_keep(naming, &ret->keep_us, ret_field, why));
    *ret_field = BYTES("input");
    TRY(fingerprint_make(naming->input, &options, arena, &ret->fingerprint, why));
    ret->space = rules->space;
    ret->workflow = naming->workflow;
    ret->run = naming->run;
    ret->thread = naming->thread;
    ret->action = naming->action;
    ledger_key_hash(rules->pepper, rules->space, ret->workflow, ret->key, ret->h);
    return OK;
}

void ledger_write_say(const struct ledger_command *say, struct json_out *out)
{
    json_open(out, '{');
    json_name(out, "fence");
    json_i64(out, say->fence);
    if (say->op == OP_CONFIRM) {
        json_name(out, "result");
        json_raw(out, say->result);
    } else if (say->op == OP_FAIL) {
        json_name(out, "effect");
        json_cstr(out, say->effect_unknown ? "unknown" : "none");
        json_name(out, "final");
        json_bool(out, say->final);
        json_name(out, "error");
        json_text(out, say->error);
    } else if (say->op == OP_EXTEND && say->lease_us > 0) {
        json_name(out, "lease_ms");
        json_i64(out, say->lease_us / WHEN_MS);
    }
    json_close(out, '}');
}
