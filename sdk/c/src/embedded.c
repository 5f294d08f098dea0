/* embedded: the ledger inside this process. The engine's threads write and let time pass; callers wait for their answers. */
#include "base/when.h"
#include "handle.h"

/* It may have been done; the same call is safe to repeat. */
static enum semel_status storage_status(enum status status)
{
    return status == INVALID || status == NOTHING ? SEMEL_INVALID : SEMEL_UNREACHABLE;
}

static void take_rules(const struct asked *asked, struct ledger_command *command)
{
    static const enum on_unknown on_unknown[] = {
        [SEMEL_HOLD] = ON_UNKNOWN_HOLD, [SEMEL_RETRY] = ON_UNKNOWN_RETRY, [SEMEL_SKIP] = ON_UNKNOWN_SKIP};
    command->op = OP_CLAIM;
    command->two_phase = true;
    command->nonce = asked->nonce;
    if (asked->lease_us > 0)
        command->lease_us = asked->lease_us;
    if (asked->on_unknown > SEMEL_AS_POLICY && asked->on_unknown <= SEMEL_SKIP)
        command->on_unknown = on_unknown[asked->on_unknown];
}

static void take_answer(const struct ledger_answer *from, struct answer *ret)
{
    *ret = (struct answer){
        .fence = from->fence,
        .lease_us = from->lease_left_us,
        .may_have_happened = from->may_have_happened,
        .would = from->shadow ? bytes_of(ledger_verdict_names[from->would]) : BYTES_NONE,
        .result = from->verdict == VERDICT_REPLAY ? from->result : BYTES_NONE,
    };
    if (from->intent != 0)
        id_format("int", from->intent, ret->intent);
    memcpy(ret->downstream, from->downstream, sizeof ret->downstream);
}

static enum semel_status explain(const struct ledger_answer *answer, struct why *why)
{
    enum semel_status status = status_of_verdict(answer->verdict);
    if (status == SEMEL_KEY_REUSED && answer->differs_count > 0)
        why_set(why, OK, "It was claimed before with another input; what differs first: %.*s.", BYTES_ARG(answer->differs[0]));
    else if (status == SEMEL_REFUSED)
        why_set(why, OK, "It had no effect, and that is final: %.*s", BYTES_ARG(answer->error));
    else if (status != SEMEL_OK && status != SEMEL_PROCEED && status != SEMEL_REPLAY)
        why_set(why, OK, "The ledger answers %s; the intent is %s.", ledger_verdict_names[answer->verdict],
                intent_state_names[answer->state]);
    return status;
}

static enum semel_status embedded_claim(struct semel *semel, const struct asked *asked, struct arena *arena, struct answer *ret,
                                        struct why *why)
{
    struct ledger_command command = {0};
    struct ledger_answer answer;
    struct bytes field = BYTES_NONE;
    pthread_mutex_lock(&semel->naming);
    enum status status = direct_name(&semel->direct, &asked->naming, arena, &command, &field, why);
    pthread_mutex_unlock(&semel->naming);
    if (status != OK)
        return storage_status(status);
    take_rules(asked, &command);
    status = direct_apply(&semel->direct, &command, asked->wait_us, arena, &answer, why);
    if (status != OK)
        return storage_status(status);
    take_answer(&answer, ret);
    return explain(&answer, why);
}

static enum semel_status embedded_say(struct semel *semel, const struct say *say, struct arena *arena, int64_t *ret_lease_us,
                                      struct why *why)
{
    struct ledger_answer answer;
    struct ledger_command command = say_command(say);
    if (!id_parse("int", bytes_of(say->intent), &command.intent))
        return SEMEL_NOT_FOUND;
    enum status status = direct_apply(&semel->direct, &command, 0, arena, &answer, why);
    if (status != OK)
        return storage_status(status);
    *ret_lease_us = answer.lease_left_us;
    return explain(&answer, why);
}

static void embedded_close(struct semel *semel)
{
    direct_close(&semel->direct);
}

enum semel_status embedded_open(struct semel *semel, const char *dir, struct why *why)
{
    static const struct semel_way way = {embedded_claim, embedded_say, embedded_close};
    if (*dir == '\0' || !direct_is_ledger(dir, true)) {
        why_set(why, INVALID, "\"%s\" is no directory of a ledger: write file:DIR.", dir);
        return SEMEL_INVALID;
    }
    enum status status = direct_open(dir, NULL, &semel->arena, &semel->direct, why);
    if (status == CONFLICT)
        return SEMEL_BUSY;
    if (status != OK)
        return status == INVALID ? SEMEL_INVALID : SEMEL_UNREACHABLE;
    semel->way = &way;
    return direct_start(&semel->direct, why) == OK ? SEMEL_OK : SEMEL_UNREACHABLE;
}
