/* sources: who sends, how much of it came lately, and what is quiet for a while. */
#include <stdio.h>

#include "api/api.h"
#include "base/when.h"

#define QUIET_MIN_MS 1000
#define QUIET_MAX_MS (30 * WHEN_DAY / WHEN_MS)
#define LIMIT_MOST 1000000
#define COUNTED_US WHEN_DAY
#define FIGURES_MAX 2000

static void write_ms(struct json_out *out, const char *name, int64_t us)
{
    json_name(out, name);
    json_i64(out, us / WHEN_MS);
}

/* ---- reading ---- */

struct figure {
    struct bytes source;
    int64_t verdict, count;
};

struct sources_state {
    struct call *call;
    struct arena *arena;
    int64_t now_us;
    struct bytes *names; /* of the policy, when it was asked for */
    int64_t *latest;
    size_t count;
    struct row_source *quiet;
    size_t quiet_count;
    struct figure *figures;
    size_t figure_count;
};

static enum status take_quiet(void *ctx, const void *row, struct why *why)
{
    struct sources_state *state = ctx;
    if (state->quiet_count == FIGURES_MAX)
        return OK;
    struct row_source *kept = &state->quiet[state->quiet_count++];
    *kept = *(const struct row_source *)row;
    kept->name = arena_dup(state->arena, kept->name);
    kept->actor = arena_dup(state->arena, kept->actor);
    kept->note = arena_dup(state->arena, kept->note);
    return state->arena->failed ? why_set(why, FULL, "no memory for a list") : OK;
}

static enum status take_figure(void *ctx, const void *at, struct why *why)
{
    struct sources_state *state = ctx;
    const struct r_event_count_since *row = at;
    if (row->verdict < 0 || row->verdict >= EVENT_VERDICT_COUNT || state->figure_count == FIGURES_MAX)
        return OK;
    state->figures[state->figure_count++] = (struct figure){arena_dup(state->arena, row->source), row->verdict, row->count};
    return state->arena->failed ? why_set(why, FULL, "no memory for a list") : OK;
}

static enum status take_latest(void *ctx, const void *row, struct why *why)
{
    (void)why;
    *(int64_t *)ctx = ((const struct r_event_latest *)row)->id;
    return OK;
}

static enum status read_sources(struct store *store, struct engine_read *read, struct why *why)
{
    struct call *call = read->user;
    struct sources_state *state = call->state;
    struct q_source_list quiet = {call->space};
    struct q_event_count_since count = {call->space, id_floor(state->now_us - COUNTED_US)};
    TRY(store_run(store, &SOURCE_LIST, &quiet, 1, take_quiet, state, NULL, why));
    TRY(store_run(store, &EVENT_COUNT_SINCE, &count, 1, take_figure, state, NULL, why));
    for (size_t i = 0; i < state->count; i++) {
        struct q_event_latest latest = {call->space, state->names[i]};
        TRY(store_run(store, &EVENT_LATEST, &latest, 1, take_latest, &state->latest[i], NULL, why));
    }
    return OK;
}

/* ---- writing ---- */

static void write_verify(struct json_out *out, const struct source *source)
{
    json_name(out, "verify");
    json_open(out, '[');
    for (size_t i = 0; i < source->rule_count && !source->verify_none; i++)
        json_text(out, source->rules[i].name);
    json_close(out, ']');
}

static void write_rules(struct json_out *out, const struct source *source)
{
    char path[SETTING_NAME_MAX + 8];
    int len = snprintf(path, sizeof path, "/in/%.*s", BYTES_ARG(source->name));
    json_text_member(out, "source", source->name);
    json_text_member(out, "preset", source->preset);
    json_text_member(out, "title", source->title);
    json_text_member(out, "path", (struct bytes){path, (size_t)len});
    write_verify(out, source);
    write_ms(out, "window_ms", source->window_us);
    write_ms(out, "across_ms", source->across_us);
    write_ms(out, "retry_ms", source->retry_us);
    write_ms(out, "keep_ms", source->keep_us);
    json_text_member(out, "forward", source->forward.len > 0 ? source->forward : BYTES_NONE);
    json_name(out, "mode");
    json_cstr(out, policy_mode_names[source->shadow ? MODE_SHADOW : MODE_ENFORCE]);
}

static void write_counts(struct json_out *out, const struct sources_state *state, struct bytes source)
{
    int64_t counts[EVENT_VERDICT_COUNT] = {0};
    for (size_t i = 0; i < state->figure_count; i++)
        if (bytes_eq(state->figures[i].source, source))
            counts[state->figures[i].verdict] = state->figures[i].count;
    json_name(out, "last_24h");
    json_open(out, '{');
    for (int i = 0; i < EVENT_VERDICT_COUNT; i++) {
        json_name(out, event_verdict_names[i]);
        json_i64(out, counts[i]);
    }
    json_close(out, '}');
}

static void write_quiet(struct json_out *out, const struct row_source *quiet, int64_t now_us)
{
    bool muted = quiet != NULL && quiet->muted_until > now_us, limited = quiet != NULL && quiet->limited_until > now_us;
    json_time_member(out, "muted_until", muted ? quiet->muted_until : 0);
    json_name(out, "limit");
    if (limited) {
        json_open(out, '{');
        json_name(out, "most");
        json_i64(out, quiet->most);
        write_ms(out, "every_ms", quiet->every_us);
        json_time_member(out, "until", quiet->limited_until);
        json_close(out, '}');
    } else {
        json_null(out);
    }
    json_text_member(out, "quieted_by", muted || limited ? quiet->actor : BYTES_NONE);
    json_text_member(out, "note", muted || limited ? quiet->note : BYTES_NONE);
}

static void write_warnings(struct json_out *out, const struct source *source)
{
    struct why warning;
    json_name(out, "warnings");
    json_open(out, '[');
    if (source_warning(source, &warning))
        json_cstr(out, warning.text);
    json_close(out, ']');
}

static void write_source(struct json_out *out, const struct sources_state *state, size_t i, const struct source *source)
{
    const struct row_source *quiet = NULL;
    for (size_t k = 0; k < state->quiet_count; k++)
        if (bytes_eq(state->quiet[k].name, source->name))
            quiet = &state->quiet[k];
    json_open(out, '{');
    write_rules(out, source);
    json_time_member(out, "last_event_at", state->latest[i] != 0 ? id_time_us(state->latest[i]) : 0);
    call_write_id(out, "last_event", "evt", state->latest[i]);
    write_counts(out, state, source->name);
    write_quiet(out, quiet, state->now_us);
    write_warnings(out, source);
    json_close(out, '}');
}

static void finish_list(struct call *call)
{
    const struct sources_state *state = call->state;
    struct json_out out = json_out_to(&call->out);
    if (call->read.status != OK) {
        problem_storage(call, call->read.status, &call->read.why);
        return;
    }
    call_open_list(&out);
    for (size_t i = 0; i < state->count; i++) {
        const struct source *source = policy_source(call->api->policy, state->names[i]);
        if (source != NULL) /* the policy may have changed meanwhile */
            write_source(&out, state, i, source);
    }
    call_close_list(&out, "", 0, (int64_t)state->count); /* all of them */
    call_reply(call, 200);
}

/* Events come in to the space main; the others have no sources. */
static bool sees_sources(const struct call *call)
{
    return bytes_is(call->space, "main");
}

void sources_list(struct call *call)
{
    struct env *env = engine_env(call->api->engine);
    struct arena *arena = call->request->arena;
    struct sources_state *state = arena_zalloc(arena, 1, sizeof *state);
    const struct policy *policy = call->api->policy;
    size_t count = sees_sources(call) ? policy->source_count : 0;
    ASSERT(state != NULL);
    *state = (struct sources_state){.call = call,
                                    .arena = arena,
                                    .now_us = env->wall_us(env),
                                    .names = arena_zalloc(arena, count + 1, sizeof(struct bytes)),
                                    .latest = arena_zalloc(arena, count + 1, sizeof(int64_t)),
                                    .quiet = arena_zalloc(arena, FIGURES_MAX, sizeof(struct row_source)),
                                    .figures = arena_zalloc(arena, FIGURES_MAX, sizeof(struct figure)),
                                    .count = count};
    for (size_t i = 0; i < count && !arena->failed; i++)
        state->names[i] = arena_dup(arena, policy->sources[i].name);
    if (arena->failed) {
        problem(call, "too_large", "There are too many sources for one answer.");
        return;
    }
    call->state = state;
    call_submit_read(call, read_sources, finish_list);
}

/* ---- quiet for a while ---- */

enum quieting { QUIET_MUTE, QUIET_UNMUTE, QUIET_LIMIT };

struct quiet_state {
    enum quieting how;
    struct bytes source, note;
    int64_t for_ms, most, every_ms;
    struct row_source row;
};

static enum status take_row(void *ctx, const void *row, struct why *why)
{
    struct quiet_state *state = ctx;
    (void)why;
    state->row = *(const struct row_source *)row; /* its texts are set anew */
    return OK;
}

static void change(struct quiet_state *state, int64_t now_us)
{
    switch (state->how) {
    case QUIET_MUTE:
        state->row.muted_until = now_us + state->for_ms * WHEN_MS;
        return;
    case QUIET_UNMUTE:
        state->row.muted_until = state->row.limited_until = 0;
        return;
    case QUIET_LIMIT:
        state->row.limited_until = now_us + state->for_ms * WHEN_MS;
        state->row.most = state->most;
        state->row.every_us = state->every_ms * WHEN_MS;
        return;
    }
}

static struct bytes make_detail(const struct quiet_state *state, struct arena *arena)
{
    struct buf buf;
    buf_init(&buf, 16 << 10);
    struct json_out out = json_out_to(&buf);
    json_open(&out, '{');
    json_text_member(&out, "source", state->source);
    json_text_member(&out, "note", state->note);
    json_name(&out, "muted_until");
    json_i64(&out, state->row.muted_until);
    json_name(&out, "limited_until");
    json_i64(&out, state->row.limited_until);
    if (state->how == QUIET_LIMIT) {
        json_name(&out, "most");
        json_i64(&out, state->row.most);
        write_ms(&out, "every_ms", state->row.every_us);
    }
    json_close(&out, '}');
    struct bytes detail = buf.failed ? BYTES_NONE : arena_dup(arena, buf_bytes(&buf));
    buf_release(&buf);
    return detail;
}

static enum status write_row(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    static const char *const kinds[] = {"source_mute", "source_unmute", "source_limit"};
    const struct call *call = command->user;
    struct quiet_state *state = call->state;
    struct q_source_get get = {call->space, state->source};
    state->row = (struct row_source){0};
    TRY(store_run(store, &SOURCE_GET, &get, 1, take_row, state, NULL, why));
    change(state, ledger->now.wall_us);
    state->row.space = call->space;
    state->row.name = state->source;
    state->row.actor = call->actor;
    state->row.note = state->note;
    state->row.changed = ledger->now.wall_us;
    TRY(store_run(store, &SOURCE_PUT, &state->row, 1, NULL, NULL, NULL, why));
    return admin_record(ledger, call->space, call->actor, kinds[state->how], make_detail(state, ledger->arena));
}

static void finish_quiet(struct call *call)
{
    const struct quiet_state *state = call->state;
    struct json_out out = json_out_to(&call->out);
    if (call->command.status != OK) {
        problem_storage(call, call->command.status, &call->command.why);
        return;
    }
    json_open(&out, '{');
    json_text_member(&out, "source", state->source);
    write_quiet(&out, &state->row, state->row.changed);
    json_close(&out, '}');
    call_reply(call, 200);
}

static void quieten(struct call *call, enum quieting how, const struct json_field *fields, size_t count)
{
    struct quiet_state *state = arena_zalloc(call->request->arena, 1, sizeof *state);
    ASSERT(state != NULL);
    state->how = how;
    state->source = call->params[0];
    if (!sees_sources(call) || policy_source(call->api->policy, state->source) == NULL) {
        problem(call, "not_found", "There is no source \"%.*s\" in the policy.",
                (int)(state->source.len < 64 ? state->source.len : 64), state->source.at);
        return;
    }
    if (!call_body(call, fields, count, state))
        return;
    call->state = state;
    call->command = (struct engine_command){.write = write_row};
    call_submit(call, finish_quiet);
}

static const struct json_field quiet_fields[] = {
    {"note", JSON_FIELD_TEXT, offsetof(struct quiet_state, note), false, 0, EXCEPTION_NOTE_MAX, NULL},
    {"for_ms", JSON_FIELD_INT, offsetof(struct quiet_state, for_ms), true, QUIET_MIN_MS, QUIET_MAX_MS, NULL},
    {"most", JSON_FIELD_INT, offsetof(struct quiet_state, most), true, 0, LIMIT_MOST, NULL},
    {"every_ms", JSON_FIELD_INT, offsetof(struct quiet_state, every_ms), true, QUIET_MIN_MS, QUIET_MAX_MS, NULL},
};

void sources_mute(struct call *call)
{
    quieten(call, QUIET_MUTE, quiet_fields, 2);
}

void sources_unmute(struct call *call)
{
    quieten(call, QUIET_UNMUTE, quiet_fields, 1);
}

void sources_limit(struct call *call)
{
    quieten(call, QUIET_LIMIT, quiet_fields, 4);
}
