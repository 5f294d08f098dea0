/*
 * Deliveries. The first byte chooses a preset, the second whether it is verified; then, each behind a byte 0xFF, come the URL, the
 * Content-Type, a signature header and the body. Whatever the bytes are: without the secret nothing is taken; what is taken is
 * within its limits, is the same when it is read again, each piece of a JSON body is JSON, and the piece alone is the same event.
 */
#include "fuzz.h"

#include "base/hash.h"
#include "base/json.h"
#include "receive/receive.h"
#include "receive/source_read.h"

enum { SIZE_MAX_INPUT = 32 * 1024, MEMORY_MAX = 64 << 20 };

static void read_source(struct bytes name, bool verified, struct arena *arena, struct source *ret)
{
    static const struct bytes settings[] = {{"verify: none\n", 13}, {"secret: env:S\n", 14}};
    struct yaml_problems problems = {0};
    struct yaml node = {.kind = YAML_TEXT, .line = 1, .column = 1, .text = name}, *root = NULL;
    struct source_reading reading = {arena, arena, &problems};
    ASSERT(yaml_read(settings[verified ? 1 : 0], arena, &root, &problems) == OK);
    ASSERT(source_read(&reading, &node, root, ret) == OK);
    if (problems.count > 0) /* it has no way to sign of its own */
        read_source(name, false, arena, ret);
}

static void check_id(struct bytes id)
{
    ASSERT(id.len <= INCOMING_ID_MAX);
    ASSERT(id.at == NULL || id.len > 0);
    ASSERT(id.at == NULL || bytes_is_utf8(id));
}

static void check_event(const struct incoming *event)
{
    check_id(event->delivery);
    check_id(event->key);
    check_id(event->thread);
    ASSERT(event->kind.len > 0);
    ASSERT(event->text.len <= INCOMING_TEXT_MAX);
    ASSERT(bytes_is_utf8(event->text));
    ASSERT(event->identity_count <= INCOMING_IDENTITIES_MAX);
    for (size_t i = 0; i < event->identity_count; i++)
        ASSERT(event->identities[i].value.len > 0);
}

static bool same(const struct incoming *a, const struct incoming *b)
{
    return bytes_eq(a->kind, b->kind) && bytes_eq(a->key, b->key) && bytes_eq(a->text, b->text) && bytes_eq(a->name, b->name) &&
           a->identity_count == b->identity_count && a->at_us == b->at_us;
}

/* A piece is a body of its own in which the event stands as it did. */
static void check_piece(const struct source *source, const struct receive_request *request, const struct incoming *event,
                        struct arena *arena)
{
    struct receive_request alone = *request;
    struct receive_result result;
    alone.body = event->piece;
    if (receive_read(source, NULL, &alone, arena, &result, NULL) != OK)
        return;
    ASSERT(result.end == RECEIVE_EVENTS);
    bool found = false;
    for (size_t i = 0; i < result.count; i++)
        found |= same(&result.events[i], event);
    ASSERT(found);
}

static void check_result(const struct source *source, const struct receive_request *request, const struct receive_result *result,
                         struct arena *arena)
{
    struct receive_result again;
    ASSERT(result->because.len > 0);
    ASSERT(result->count <= RECEIVE_EVENTS_MAX);
    ASSERT(result->end == RECEIVE_EVENTS || result->count == 0);
    for (size_t i = 0; i < result->count; i++)
        check_event(&result->events[i]);
    for (size_t i = 0; i < result->count && i < 3 && source->verify_none && source->reads == READS_JSON; i++)
        check_piece(source, request, &result->events[i], arena);
    static const struct bytes secrets[SOURCE_SECRETS_MAX] = {{"0123456789abcdef", 16}};
    if (receive_read(source, secrets, request, arena, &again, NULL) != OK)
        return;
    ASSERT(again.end == result->end);
    ASSERT(again.count == result->count);
    for (size_t i = 0; i < result->count; i++)
        ASSERT(same(&again.events[i], &result->events[i]));
}

FUZZ_TARGET(receive)(const uint8_t *data, size_t size)
{
    static const struct bytes secrets[SOURCE_SECRETS_MAX] = {{"0123456789abcdef", 16}};
    struct bytes rest = fuzz_bytes(data, size < SIZE_MAX_INPUT ? size : SIZE_MAX_INPUT);
    struct arena arena;
    struct source source;
    struct receive_result result;
    hash_setup();
    arena_init(&arena, MEMORY_MAX);
    struct bytes name = preset_name(fuzz_byte(&rest) % preset_count());
    read_source(name, fuzz_byte(&rest) & 1, &arena, &source);
    struct bytes url = bytes_cut(&rest, (char)0xFF), type = bytes_cut(&rest, (char)0xFF),
                 signature = bytes_cut(&rest, (char)0xFF);
    struct pair headers[2] = {{BYTES("Content-Type"), type}, {BYTES("X"), signature}};
    if (source.rule_count > 0 && bytes_starts(source.rules[0].signature, BYTES("header.")))
        headers[1].name = bytes_from(source.rules[0].signature, 7);
    struct bytes body = fuzz_exact(rest);
    struct receive_request request = {BYTES("POST"), url, body, headers, 2, INT64_C(1700000000000000)};
    if (receive_read(&source, secrets, &request, &arena, &result, NULL) == OK) {
        /* Nobody guesses a signature; a secret that is sent as it is can be in the corpus. */
        ASSERT(result.end != RECEIVE_EVENTS || source.verify_none || source.rules[0].alg >= VERIFY_EQUAL);
        check_result(&source, &request, &result, &arena);
    }
    free((char *)(uintptr_t)body.at);
    arena_release(&arena);
    return 0;
}
