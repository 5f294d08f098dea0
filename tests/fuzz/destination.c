/*
 * Provider files and what is done with them. The input is a provider file, then, each behind a byte 0xFF, the path, the
 * Content-Type and the body of a request, and the body of an answer. A refused file names places that exist; an accepted one
 * relies on nothing that is not verified. Whatever the bytes are: planting twice changes nothing more, a planted key is where it
 * should be and the rest of a JSON body stays, an answer has one meaning, evidence is JSON, and an answer that cannot be read
 * proves nothing.
 */
#include "fuzz.h"

#include "base/hash.h"
#include "base/json.h"
#include "destination/destination_read.h"
#include "destination/plant.h"

#define KEY "sml-0123456789abcdef0123456789abcdef"
enum { SIZE_MAX_INPUT = 32 * 1024, MEMORY_MAX = 64 << 20 };

static struct bytes take_part(struct bytes *rest)
{
    return bytes_cut(rest, (char)0xFF);
}

static void check_problems(const struct yaml_problems *problems)
{
    ASSERT(problems->count >= 1);
    ASSERT(problems->count <= YAML_PROBLEMS_MAX);
    for (size_t i = 0; i < problems->count; i++) {
        ASSERT(problems->at[i].line >= 1);
        ASSERT(problems->at[i].column >= 1);
        ASSERT(problems->at[i].text[0] != '\0');
        ASSERT(bytes_is_utf8(bytes_of(problems->at[i].text)));
    }
}

static void check_provider(const struct provider *provider)
{
    for (size_t i = 0; i < provider->facts.count; i++)
        ASSERT(provider->facts.at[i].evidence != 'M' || !provider->facts.at[i].verified);
    for (size_t i = 0; i < provider->call_count; i++) {
        const struct call_rules *call = &provider->calls[i];
        ASSERT(call->capability != CAPABILITY_IDEMPOTENT || (call->window_us > 0 && call->key.place != CARRIER_NOWHERE));
        ASSERT(call->capability != CAPABILITY_QUERY || call->probe_count > 0);
        ASSERT(call->capability == CAPABILITY_IDEMPOTENT || call->window_us == 0);
    }
}

/* The JSON of a body, without the planted member, is what the caller sent, unless something of that name was there before. */
static void check_json(const struct call_rules *rules, const struct effect_request *request, const struct effect_request *sent,
                       struct arena *arena)
{
    struct json before, after;
    if (rules->key.place != CARRIER_JSON)
        return;
    ASSERT(plant_json(request->body, arena, &before, NULL) == OK);
    ASSERT(plant_json(sent->body, arena, &after, NULL) == OK);
    ASSERT(after.type == JSON_OBJECT);
    for (uint32_t i = 0; i < before.count; i++)
        ASSERT(bytes_eq(before.members[i].name, after.members[i].name));
}

static void check_prepared(const struct destination *destination, const struct call_rules *rules,
                           const struct effect_request *request, const struct effect_request *sent, struct arena *arena)
{
    struct effect_request again;
    struct bytes text;
    ASSERT(destination_prepare(destination, rules, KEY, sent, arena, &again, NULL) == OK);
    ASSERT(bytes_eq(again.body, sent->body));
    ASSERT(bytes_eq(again.path, sent->path));
    ASSERT(again.header_count == sent->header_count);
    if (rules->reads || rules->key.place == CARRIER_NOWHERE || rules->key.place == CARRIER_NATURAL)
        return;
    ASSERT(key_encode(&rules->key.codec, BYTES(KEY), plant_domain(destination), arena, &text, NULL) == OK);
    ASSERT(rules->marker_count > 0 || rules->key.extra_count > 0 || plant_is_there(sent, &rules->key, text, arena));
    check_json(rules, request, sent, arena);
}

/* As JSON and as a stream of events. Only what has an end can be whole. */
static void check_memo(const struct memo_rules *memo, struct bytes body)
{
    static struct pair types[] = {{BYTES("content-type"), BYTES("application/json")},
                                  {BYTES("Content-Type"), BYTES("text/event-stream")}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        struct effect_reply reply = {200, &types[i], 1, body};
        struct memo_answer answer;
        memo_read(memo, &reply, &answer);
        ASSERT(answer.input >= -1 && answer.output >= -1);
        ASSERT(!answer.whole || body.len > 0);
        ASSERT(!answer.whole || i == 0 || memo->end_count > 0);
    }
}

static void check_answer(const struct destination *destination, const struct call_rules *rules, const struct effect_request *sent,
                         struct bytes body, struct arena *arena)
{
    struct json json;
    struct effect_request question;
    bool readable = plant_json(body, arena, &json, NULL) == OK;
    if (rules->memo != NULL)
        check_memo(rules->memo, body);
    static const int statuses[] = {0, 100, 200, 207, 302, 404, 409, 500};
    for (size_t i = 0; i < sizeof statuses / sizeof *statuses; i++) {
        struct effect_reply reply = {statuses[i], NULL, 0, body};
        struct bytes because, evidence;
        enum outcome outcome = destination_outcome(rules, &reply, &because);
        ASSERT(outcome <= OUTCOME_UNKNOWN);
        ASSERT(because.len > 0);
        ASSERT(destination_outcome(rules, &reply, NULL) == outcome);
        enum probe_answer answer = destination_probe_read(destination, rules, KEY, sent, 0, &reply, arena, &evidence);
        enum status asked = destination_probe(destination, rules, KEY, sent, 0, arena, &question, NULL);
        ASSERT(asked == OK || answer == PROBE_UNSURE);
        ASSERT(readable || answer != PROBE_FOUND);
        ASSERT(evidence.at == NULL || json_parse(evidence, NULL, arena, &json, NULL) == OK);
        ASSERT(asked != OK || question.path.at[0] == '/');
    }
}

static void use(const struct provider *provider, struct bytes rest, struct arena *arena)
{
    struct bytes path = take_part(&rest), type = take_part(&rest), body = take_part(&rest);
    struct call_rules other = {.name = BYTES("other"), .kind = provider->kind};
    struct destination destination = {.name = BYTES("x"), .kind = provider->kind, .smtp_from = BYTES("a@b.c")};
    struct pair header = {BYTES("Content-Type"), type};
    struct effect_request request = {BYTES("POST"), path, body, &header, type.len > 0 ? 1 : 0}, sent;
    destination.calls = arena_zalloc(arena, provider->call_count + 1, sizeof *destination.calls);
    ASSERT(destination.calls != NULL);
    for (size_t i = 0; i < provider->call_count; i++)
        destination.calls[destination.call_count++] = provider->calls[i];
    destination.calls[destination.call_count++] = other;
    const struct call_rules *rules = destination_call(&destination, request.method, request.path);
    ASSERT(rules >= destination.calls && rules < destination.calls + destination.call_count);
    for (size_t i = 0; i < destination.call_count && i < 4; i++) {
        rules = &destination.calls[i];
        enum status status = destination_prepare(&destination, rules, KEY, &request, arena, &sent, NULL);
        ASSERT(status == OK || status == INVALID);
        if (status != OK)
            continue;
        check_prepared(&destination, rules, &request, &sent, arena);
        check_answer(&destination, rules, &sent, rest, arena);
    }
}

FUZZ_TARGET(destination)(const uint8_t *data, size_t size)
{
    struct bytes rest = fuzz_bytes(data, size < SIZE_MAX_INPUT ? size : SIZE_MAX_INPUT), text = take_part(&rest);
    static struct yaml_problems problems;
    struct arena arena, scratch;
    struct provider provider;
    hash_setup();
    arena_init(&arena, MEMORY_MAX);
    arena_init(&scratch, MEMORY_MAX);
    problems.count = 0;
    struct destination_source source = {&arena, &scratch, &problems, NULL};
    enum status status = provider_read(&source, text, &provider);
    ASSERT(status == OK || status == INVALID);
    if (status == INVALID) {
        check_problems(&problems);
    } else {
        ASSERT(problems.count == 0);
        check_provider(&provider);
        use(&provider, rest, &arena);
    }
    arena_release(&arena);
    arena_release(&scratch);
    return 0;
}
