/* What an answer says about the effect. */
#include "base/json.h"
#include "base/when.h"
#include "destination/header.h"
#include "destination/plant.h"

/* Room to read the JSON of an answer; one that needs more is not understood, and the rules about its fields do not apply. */
enum { READ_MEMORY_MAX = 64 << 20 };

const char *const outcome_names[] = {"done", "refused", "retry", "unknown", NULL};

#define STATUS(min, max, outcome, because)                                 \
    {                                                                      \
        (min), (max), {NULL, 0}, {NULL, 0}, {NULL, 0}, NULL, 0, (outcome), \
        {                                                                  \
            (because), sizeof(because) - 1                                 \
        }                                                                  \
    }

/* Where no rule of the provider speaks. First match wins. */
static const struct outcome_rule http_rules[] = {
    STATUS(200, 299, OUTCOME_DONE, "it was accepted"),
    STATUS(300, 399, OUTCOME_REFUSED, "it answered with a redirect, and redirects are not followed"),
    STATUS(401, 401, OUTCOME_RETRY, "it did not accept the secret"),
    STATUS(403, 403, OUTCOME_RETRY, "it did not allow it"),
    STATUS(408, 408, OUTCOME_RETRY, "it did not get the whole request in time"),
    STATUS(409, 409, OUTCOME_RETRY, "it is busy with the same thing"),
    STATUS(425, 425, OUTCOME_RETRY, "it was too early"),
    STATUS(429, 429, OUTCOME_RETRY, "it takes no more calls for now"),
    STATUS(400, 499, OUTCOME_REFUSED, "it refused the request"),
    STATUS(500, 599, OUTCOME_UNKNOWN, "it failed, and may have acted before"),
};

static const struct outcome_rule smtp_rules[] = {
    STATUS(200, 299, OUTCOME_DONE, "the mail was accepted"),
    STATUS(400, 499, OUTCOME_RETRY, "the mail was turned away for now"),
    STATUS(500, 599, OUTCOME_REFUSED, "the mail was turned away"),
};

static const struct outcome_rule command_rules[] = {
    STATUS(0, 0, OUTCOME_DONE, "it ended well"),
    STATUS(75, 75, OUTCOME_RETRY, "it asked to be run later (exit code 75)"),
    STATUS(126, 127, OUTCOME_REFUSED, "it cannot be run"),
};

static const struct {
    const struct outcome_rule *rules;
    size_t count;
} defaults[] = {
    [DESTINATION_HTTP] = {http_rules, sizeof http_rules / sizeof *http_rules},
    [DESTINATION_SMTP] = {smtp_rules, sizeof smtp_rules / sizeof *smtp_rules},
    [DESTINATION_COMMAND] = {command_rules, sizeof command_rules / sizeof *command_rules},
};

/* ---- rules ---- */

struct answer {
    const struct effect_reply *reply;
    const struct json *json; /* NULL when the body is none */
};

static bool rule_fits(const struct outcome_rule *rule, const struct answer *answer)
{
    const struct effect_reply *reply = answer->reply;
    if (reply->status < rule->status_min || reply->status > rule->status_max)
        return false;
    if (rule->header.at != NULL) {
        struct bytes value = header_find(reply->headers, reply->header_count, rule->header);
        if (value.at == NULL || (rule->header_value.at != NULL && !bytes_eq_nocase(bytes_trim(value), rule->header_value)))
            return false;
    }
    return rule->field.at == NULL ||
           (answer->json != NULL && plant_any(answer->json, rule->field, rule->values, rule->value_count));
}

static const struct outcome_rule *find_rule(const struct outcome_rule *rules, size_t count, const struct answer *answer)
{
    for (size_t i = 0; i < count; i++)
        if (rule_fits(&rules[i], answer))
            return &rules[i];
    return NULL;
}

static bool looks_inside(const struct call_rules *rules)
{
    for (size_t i = 0; i < rules->outcome_count; i++)
        if (rules->outcomes[i].field.at != NULL)
            return true;
    return false;
}

enum outcome destination_outcome(const struct call_rules *rules, const struct effect_reply *reply, struct bytes *ret_because)
{
    struct arena arena;
    struct json json;
    struct answer answer = {reply, NULL};
    arena_init(&arena, READ_MEMORY_MAX);
    if (looks_inside(rules) && plant_json(reply->body, &arena, &json, NULL) == OK)
        answer.json = &json;
    const struct outcome_rule *rule = find_rule(rules->outcomes, rules->outcome_count, &answer);
    if (rule == NULL)
        rule = find_rule(defaults[rules->kind].rules, defaults[rules->kind].count, &answer);
    arena_release(&arena);
    struct bytes because = rule != NULL ? rule->because : BYTES("the answer says nothing about it");
    if (ret_because != NULL)
        *ret_because = because.at != NULL ? because : BYTES("a rule of the destination says so");
    return rule != NULL ? rule->outcome : OUTCOME_UNKNOWN;
}

/* ---- how long to wait ---- */

static int64_t bounded(int64_t wait_us)
{
    if (wait_us < 0)
        return 0;
    return wait_us > DESTINATION_RETRY_AFTER_MAX_US ? DESTINATION_RETRY_AFTER_MAX_US : wait_us;
}

/* A count of `unit_us`, perhaps with a fraction; -1 when it is none. */
static int64_t read_count(struct bytes text, int64_t unit_us)
{
    struct bytes fraction = text, whole = bytes_cut(&fraction, '.');
    uint64_t n;
    int64_t wait_us, digit_us = unit_us / 10;
    if (!bytes_to_u64(whole, &n))
        return -1;
    if (n > (uint64_t)(DESTINATION_RETRY_AFTER_MAX_US / unit_us))
        return DESTINATION_RETRY_AFTER_MAX_US;
    wait_us = (int64_t)n * unit_us;
    for (size_t i = 0; i < fraction.len; i++, digit_us /= 10) {
        if (fraction.at[i] < '0' || fraction.at[i] > '9')
            return -1;
        wait_us += (fraction.at[i] - '0') * digit_us;
    }
    return bounded(wait_us);
}

int64_t destination_retry_after_us(const struct effect_reply *reply, int64_t now_wall_us)
{
    struct bytes ms = header_find(reply->headers, reply->header_count, BYTES("retry-after-ms"));
    struct bytes after = header_find(reply->headers, reply->header_count, BYTES("Retry-After"));
    int64_t wait_us = ms.at != NULL ? read_count(bytes_trim(ms), WHEN_MS) : -1, until_us;
    if (wait_us < 0 && after.at != NULL)
        wait_us = read_count(bytes_trim(after), WHEN_SECOND);
    if (wait_us < 0 && after.at != NULL && when_parse_http(bytes_trim(after), &until_us))
        wait_us = bounded(until_us - now_wall_us);
    return wait_us;
}
