#include "receive/receive.h"

#include "base/hash.h"
#include "mail/mail.h"
#include "receive/receive_own.h"

const char *const receive_end_names[] = {"events", "handshake", "refused", "unreadable", NULL};

/* ---- the ends ---- */

static void end_with(struct receive_result *ret, enum receive_end end, int status, struct bytes because)
{
    ret->end = end;
    ret->status = status;
    ret->because = because;
    ret->count = 0;
}

static enum status unreadable(struct arena *arena, const struct why *why, struct receive_result *ret)
{
    struct bytes because = arena_dup(arena, bytes_of(why->text));
    end_with(ret, RECEIVE_UNREADABLE, 400, because.at != NULL ? because : BYTES("the body cannot be read"));
    return OK;
}

/* ---- handshakes ---- */

static bool token_fits(const struct source *source, const struct bytes *secrets, struct bytes given)
{
    if (source->token_index < 0 || given.at == NULL)
        return false;
    struct bytes token = secrets[source->token_index];
    if (token.at == NULL || token.len == 0)
        return false;
    struct hash wanted = hash_sha256(token), got = hash_sha256(given);
    return hash_equal(hash_bytes(&wanted), hash_bytes(&got));
}

static enum status answer_handshake(const struct handshake_rule *rule, struct scope *scope, struct receive_result *ret)
{
    struct texts answer = {(struct bytes *)&rule->answer, 1};
    end_with(ret, RECEIVE_HANDSHAKE, 200, BYTES("a handshake was answered"));
    ret->reply = rule->answer.at != NULL ? scope_fill(scope, &answer, false) : BYTES("");
    if (ret->reply.at == NULL) {
        end_with(ret, RECEIVE_UNREADABLE, 400, BYTES("the handshake lacks what should be answered"));
        return OK;
    }
    ret->reply_type = rule->type.at != NULL ? rule->type : BYTES("text/plain");
    ret->reply_headers = arena_zalloc(scope->arena, rule->header_count + 1, sizeof *ret->reply_headers);
    if (ret->reply_headers == NULL)
        return FULL;
    for (size_t i = 0; i < rule->header_count; i++) {
        struct texts one = {&rule->headers[i].value, 1};
        struct bytes value = scope_fill(scope, &one, false);
        if (value.at != NULL)
            ret->reply_headers[ret->reply_header_count++] = (struct pair){rule->headers[i].name, value};
    }
    return scope->no_memory ? FULL : OK;
}

/* NOTHING when it is none. Those that are not signed come before the signature, the others behind it. */
static enum status try_handshakes(const struct source *source, const struct bytes *secrets, struct scope *scope, bool is_signed,
                                  struct receive_result *ret)
{
    for (size_t i = 0; i < source->handshake_count; i++) {
        const struct handshake_rule *rule = &source->handshakes[i];
        if (rule->is_signed != is_signed || !bytes_eq(rule->method, scope->request->method) ||
            !scope_all(scope, rule->when, rule->when_count))
            continue;
        if (rule->token.at != NULL && !token_fits(source, secrets, scope_text(scope, rule->token))) {
            end_with(ret, RECEIVE_REFUSED, 401, BYTES("the verify token is not the one that the policy names"));
            return OK;
        }
        return answer_handshake(rule, scope, ret);
    }
    return NOTHING;
}

/* ---- events ---- */

struct gathering {
    const struct source *source;
    size_t map; /* the first map of the split that is walked */
    size_t end; /* behind the last that is looked at */
    const struct verified *verified;
    struct receive_result *ret;
    size_t room;
    bool many; /* more than RECEIVE_EVENTS_MAX */
};

/* What has no id of its own within a delivery is numbered, so that two events of one delivery are not taken for one. */
static struct bytes number_delivery(struct arena *arena, struct bytes delivery, size_t index)
{
    return index == 0 || delivery.at == NULL ? delivery : arena_printf(arena, "%.*s#%zu", BYTES_ARG(delivery), index);
}

static enum status set_delivery(struct gathering *gathering, const struct event_map *map, struct scope *scope,
                                struct incoming *event)
{
    bool shared = map->delivery.count > 0 && template_is_shared(map->delivery.at[0]);
    struct bytes nonce = gathering->verified->nonce;
    if (nonce.at != NULL) {
        /* The body is not covered: its ids prove nothing. Only the signed nonce tells one delivery from another. */
        event->delivery = arena_printf(scope->arena, "nonce:%.*s", BYTES_ARG(nonce));
        shared = true;
    }
    if (shared)
        event->delivery = number_delivery(scope->arena, event->delivery, gathering->ret->count);
    return nonce.at == NULL || event->delivery.at != NULL ? OK : FULL;
}

static enum status make_room(struct gathering *gathering, struct arena *arena)
{
    if (gathering->ret->count < gathering->room)
        return OK;
    size_t room = gathering->room == 0 ? 8 : 2 * gathering->room;
    struct incoming *events = arena_zalloc(arena, room, sizeof *events);
    if (events == NULL)
        return FULL;
    if (gathering->ret->count > 0)
        memcpy(events, gathering->ret->events, gathering->ret->count * sizeof *events);
    gathering->ret->events = events;
    gathering->room = room;
    return OK;
}

/* Two maps walk the same way. */
static bool same_split(const struct event_map *a, const struct event_map *b)
{
    return bytes_eq(a->split, b->split);
}

static enum status gather_one(void *ctx, struct scope *scope, struct bytes piece)
{
    struct gathering *gathering = ctx;
    const struct source *source = gathering->source;
    for (size_t i = gathering->map; i < gathering->end; i++) {
        const struct event_map *map = &source->maps[i];
        if (!same_split(map, &source->maps[gathering->map]) || !scope_all(scope, map->when, map->when_count))
            continue;
        if (gathering->ret->count == RECEIVE_EVENTS_MAX) {
            gathering->many = true;
            return OK;
        }
        TRY(make_room(gathering, scope->arena));
        struct incoming *event = &gathering->ret->events[gathering->ret->count];
        TRY(extract_event(map, scope, event));
        TRY(set_delivery(gathering, map, scope, event));
        event->piece = piece;
        gathering->ret->count++;
        return OK;
    }
    return OK;
}

/* The maps from `first` to `end`, which is excluded; each split is walked once. */
static enum status gather_maps(struct gathering *gathering, size_t first, size_t end, struct scope *scope)
{
    const struct event_map *maps = gathering->source->maps;
    gathering->end = end;
    for (gathering->map = first; gathering->map < end; gathering->map++) {
        size_t earlier = first;
        while (!same_split(&maps[earlier], &maps[gathering->map]))
            earlier++;
        if (earlier == gathering->map)
            TRY(split_walk(maps[gathering->map].split, scope, gather_one, gathering));
    }
    return OK;
}

/* The policy's own kinds of events, and those of the preset where none of them fits. */
static enum status gather(const struct source *source, const struct verified *verified, struct scope *scope,
                          struct receive_result *ret)
{
    struct gathering gathering = {.source = source, .verified = verified, .ret = ret};
    TRY(gather_maps(&gathering, 0, source->own_map_count, scope));
    if (ret->count == 0)
        TRY(gather_maps(&gathering, source->own_map_count, source->map_count, scope));
    if (gathering.many)
        end_with(ret, RECEIVE_UNREADABLE, 400, BYTES("the delivery holds more than 1000 events"));
    return OK;
}

/* A mail is one event. */
static enum status read_mail(const struct source *source, const struct scope *scope, const struct verified *verified,
                             struct receive_result *ret)
{
    struct incoming *event = arena_zalloc(scope->arena, 1, sizeof *event);
    struct why why;
    if (event == NULL)
        return FULL;
    enum status status = mail_read(scope->request->body, scope->region, scope->arena, event, &why);
    if (status == INVALID)
        return unreadable(scope->arena, &why, ret);
    TRY(status);
    end_with(ret, RECEIVE_EVENTS, 200, verified->because);
    ret->reply = source->reply;
    ret->reply_type = source->reply_type;
    ret->events = event;
    ret->count = 1;
    return OK;
}

static enum status read_delivery(const struct source *source, const struct bytes *secrets, struct scope *scope,
                                 const struct verified *verified, struct receive_result *ret)
{
    struct why why;
    if (body_is_mail(source->reads, scope))
        return read_mail(source, scope, verified, ret);
    enum status status = body_read(source->reads, scope, &why);
    if (status == INVALID)
        return unreadable(scope->arena, &why, ret);
    TRY(status);
    status = try_handshakes(source, secrets, scope, true, ret);
    if (status != NOTHING)
        return status;
    end_with(ret, RECEIVE_EVENTS, 200, verified->because);
    ret->reply = source->reply;
    ret->reply_type = source->reply_type;
    return gather(source, verified, scope, ret);
}

static enum status read_request(const struct source *source, const struct bytes *secrets, struct scope *scope,
                                struct receive_result *ret, struct why *why)
{
    struct verified verified;
    enum status status = try_handshakes(source, secrets, scope, false, ret);
    if (status != NOTHING)
        return status;
    TRY(verify_delivery(source, secrets, scope, &verified, why));
    ret->rule = verified.rule != NULL ? verified.rule->name : source->verify_none ? BYTES("none") : BYTES_NONE;
    if (verified.good)
        return read_delivery(source, secrets, scope, &verified, ret);
    end_with(ret, RECEIVE_REFUSED, 401, verified.because);
    return OK;
}

enum status receive_read(const struct source *source, const struct bytes *secrets, const struct receive_request *request,
                         struct arena *arena, struct receive_result *ret, struct why *why)
{
    struct receive_result result = {0};
    struct scope scope;
    struct why inner = {""};
    enum status status = scope_open(source, request, arena, &scope, &inner);
    if (status == INVALID)
        status = unreadable(arena, &inner, &result);
    else if (status == OK)
        status = read_request(source, secrets, &scope, &result, &inner);
    if (status != OK || arena->failed)
        return why_set(why, FULL, "there is no memory for the delivery");
    *ret = result;
    return OK;
}
