/* Asking whether it happened. */
#include "base/buf.h"
#include "base/percent.h"
#include "base/when.h"
#include "destination/plant.h"

/* Clocks differ: what the provider dates a little before our first send may still be ours. */
#define SKEW_US (5 * WHEN_MINUTE)

enum { PROBE_PATH_MAX = 8192, EVIDENCE_MAX = 16 << 10, CANDIDATES_SHOWN = 5, READ_MEMORY_MAX = 64 << 20 };

const char *const probe_answer_names[] = {"found", "absent", "unsure", NULL};

struct asking {
    const struct destination *destination;
    const struct call_rules *rules;
    struct bytes key;
    const struct effect_request *sent;
    int64_t first_sent_us;
    struct arena *arena;
    struct bytes *want; /* what each `match` of the recipe must equal, filled once */
};

/* ---- what the templates are filled with ---- */

/* How the request that was sent carries the key: the marker that is in it, or the key itself; absent when neither is. */
static struct bytes planted_key(const struct asking *asking)
{
    const struct call_rules *rules = asking->rules;
    struct bytes domain = plant_domain(asking->destination), text;
    for (size_t i = 0; i < rules->marker_count; i++)
        if (key_encode(&rules->markers[i].codec, asking->key, domain, asking->arena, &text, NULL) == OK &&
            plant_is_there(asking->sent, &rules->markers[i], text, asking->arena))
            return text;
    if (key_encode(&rules->key.codec, asking->key, domain, asking->arena, &text, NULL) == OK &&
        plant_is_there(asking->sent, &rules->key, text, asking->arena))
        return text;
    return BYTES_NONE;
}

/* The one bare address in "Name <a@b.c>" or "a@b.c"; absent when there are several or none. */
static struct bytes one_address(struct bytes text)
{
    const char *open = text.len > 0 ? memchr(text.at, '<', text.len) : NULL;
    if (open != NULL) {
        struct bytes rest = bytes_from(text, (size_t)(open - text.at) + 1), inside = bytes_cut(&rest, '>');
        if (bytes_trim(rest).len > 0)
            return BYTES_NONE;
        text = inside;
    }
    text = bytes_trim(text);
    size_t ats = 0;
    for (size_t i = 0; i < text.len; i++) {
        if (strchr(" ,;<>\"()", text.at[i]) != NULL)
            return BYTES_NONE;
        ats += text.at[i] == '@';
    }
    return ats == 1 ? text : BYTES_NONE;
}

static struct bytes path_part(struct bytes path, struct bytes number)
{
    struct bytes rest = path;
    uint64_t n;
    rest = bytes_cut(&rest, '?');
    rest = bytes_from(rest, 1);
    if (!bytes_to_u64(number, &n) || n == 0)
        return BYTES_NONE;
    struct bytes part = bytes_cut(&rest, '/');
    for (; n > 1 && rest.len > 0; n--)
        part = bytes_cut(&rest, '/');
    return n == 1 && part.len > 0 ? part : BYTES_NONE;
}

static struct bytes since(const struct asking *asking, struct bytes unit)
{
    char day[32];
    int64_t from_us = asking->first_sent_us - SKEW_US;
    if (bytes_is(unit, "since_s"))
        return arena_printf(asking->arena, "%lld", (long long)(from_us / WHEN_SECOND));
    /* A day earlier, since providers count days in zones of their own. */
    when_format(from_us - WHEN_DAY, day);
    return arena_dup(asking->arena, (struct bytes){day, 10});
}

/* The value of one placeholder; `raw` is already written for a URL. Absent when it cannot be told. */
static struct bytes fill_one(const struct asking *asking, struct bytes name, bool *ret_raw)
{
    *ret_raw = false;
    if (bytes_is(name, "key"))
        return planted_key(asking);
    if (bytes_is(name, "since_s") || bytes_is(name, "since_day"))
        return since(asking, name);
    if (bytes_starts(name, BYTES("path."))) {
        *ret_raw = true;
        return path_part(asking->sent->path, bytes_from(name, 5));
    }
    if (!bytes_starts(name, BYTES("sent.")))
        return BYTES_NONE;
    struct bytes option = bytes_from(name, 5), path = bytes_cut(&option, ':');
    struct bytes value = plant_field(asking->sent, path, asking->arena);
    return bytes_is(option, "address") ? one_address(value) : value;
}

/* NOTHING when a placeholder cannot be filled. */
static enum status fill(const struct asking *asking, struct bytes template, bool percent, struct bytes *ret)
{
    struct buf out;
    enum status status = OK;
    buf_init(&out, PROBE_PATH_MAX);
    while (template.len > 0 && status == OK) {
        struct bytes text = bytes_cut(&template, '{');
        buf_add(&out, text);
        if (template.at == text.at + text.len) /* there was no '{' */
            break;
        bool raw;
        struct bytes value = fill_one(asking, bytes_cut(&template, '}'), &raw);
        if (value.len == 0)
            status = NOTHING;
        else
            buf_add(&out, percent && !raw ? percent_encode(value, asking->arena) : value);
    }
    if (status == OK && out.failed)
        status = NOTHING;
    if (status == OK) {
        *ret = arena_dup(asking->arena, buf_bytes(&out));
        status = ret->at != NULL ? OK : FULL;
    }
    buf_release(&out);
    return status;
}

/* ---- the question ---- */

static bool is_answerable(const struct asking *asking, const struct probe_recipe *recipe)
{
    struct bytes filled;
    if (fill(asking, recipe->path, true, &filled) != OK)
        return false;
    for (size_t i = 0; i < recipe->match_count; i++)
        if (fill(asking, recipe->match[i].value, false, &filled) != OK)
            return false;
    return true;
}

static const struct probe_recipe *choose(const struct asking *asking)
{
    for (size_t i = 0; i < asking->rules->probe_count; i++)
        if (is_answerable(asking, &asking->rules->probes[i]))
            return &asking->rules->probes[i];
    return NULL;
}

const struct probe_recipe *destination_probe_recipe(const struct destination *destination, const struct call_rules *rules,
                                                    const char *downstream_key, const struct effect_request *sent)
{
    struct arena arena;
    arena_init(&arena, READ_MEMORY_MAX);
    struct asking asking = {destination, rules, bytes_of(downstream_key), sent, 0, &arena, NULL};
    const struct probe_recipe *recipe = choose(&asking);
    arena_release(&arena);
    return recipe;
}

enum status destination_probe(const struct destination *destination, const struct call_rules *rules, const char *downstream_key,
                              const struct effect_request *sent, int64_t first_sent_us, struct arena *arena,
                              struct effect_request *ret, struct why *why)
{
    struct asking asking = {destination, rules, bytes_of(downstream_key), sent, first_sent_us, arena, NULL};
    const struct probe_recipe *recipe = choose(&asking);
    struct bytes path;
    if (recipe == NULL)
        return why_set(why, NOTHING, "'%.*s' cannot be asked whether this call happened", BYTES_ARG(destination->name));
    enum status status = fill(&asking, recipe->path, true, &path);
    if (status != OK)
        return why_set(why, status, "there is no memory for the question");
    struct pair *headers = arena_zalloc(arena, 1, sizeof *headers);
    if (headers == NULL)
        return why_set(why, FULL, "there is no memory for the question");
    headers[0] = (struct pair){BYTES("Accept"), BYTES("application/json")};
    *ret = (struct effect_request){.method = recipe->method, .path = path, .headers = headers, .header_count = 1};
    return OK;
}

/* ---- the answer ---- */

/* Any of the ways in which providers write times; false when it is none of them. */
static bool read_time(struct bytes text, int64_t *ret_us)
{
    struct bytes fraction = text, seconds = bytes_cut(&fraction, '.');
    uint64_t n;
    if (text.at == NULL)
        return false;
    if (seconds.len == 10 && bytes_to_u64(seconds, &n)) {
        *ret_us = (int64_t)n * WHEN_SECOND;
        return true;
    }
    return when_parse(text, ret_us) || when_parse_http(text, ret_us);
}

/* What is surely older than our first send is not ours. */
static bool is_too_old(const struct asking *asking, const struct probe_recipe *recipe, const struct json *candidate)
{
    int64_t time_us;
    return recipe->time.at != NULL && read_time(json_scalar(plant_find(candidate, recipe->time)), &time_us) &&
           time_us < asking->first_sent_us - SKEW_US;
}

static bool is_match(const struct asking *asking, const struct probe_recipe *recipe, const struct json *candidate)
{
    if (is_too_old(asking, recipe, candidate))
        return false;
    for (size_t i = 0; i < recipe->match_count; i++) {
        struct bytes got = json_scalar(plant_find(candidate, recipe->match[i].name));
        if (got.at == NULL || !bytes_eq(got, asking->want[i]))
            return false;
    }
    return true;
}

static void show(struct json_out *out, const struct probe_recipe *recipe, const struct json *candidate)
{
    json_open(out, '{');
    for (size_t i = 0; i < recipe->show_count; i++) {
        const struct json *found = plant_find(candidate, recipe->show[i]);
        if (found == NULL || found->raw.len > EVIDENCE_MAX / CANDIDATES_SHOWN / 4)
            continue;
        json_name_bytes(out, recipe->show[i]);
        json_raw(out, found->raw);
    }
    json_close(out, '}');
}

/* How many candidates match; the first few are shown. */
static size_t look_through(const struct asking *asking, const struct probe_recipe *recipe, const struct json *items, size_t count,
                           struct json_out *out)
{
    size_t matches = 0;
    json_open(out, '[');
    for (size_t i = 0; i < count; i++) {
        if (!is_match(asking, recipe, &items[i]))
            continue;
        if (matches++ < CANDIDATES_SHOWN)
            show(out, recipe, &items[i]);
    }
    json_close(out, ']');
    return matches;
}

/* What the answer says by itself: that it can be read, and is of the kind that was asked for. */
static bool is_readable(const struct asking *asking, const struct probe_recipe *recipe, const struct effect_reply *reply,
                        struct json *ret)
{
    if (reply->status < 200 || reply->status > 299 || plant_json(reply->body, asking->arena, ret, NULL) != OK)
        return false;
    for (size_t i = 0; i < recipe->require_count; i++)
        if (!bytes_eq(json_scalar(plant_find(ret, recipe->requires[i].name)), recipe->requires[i].value))
            return false;
    return true;
}

/* True when the list may go on behind what was answered. */
static bool goes_on(const struct probe_recipe *recipe, const struct json *answer, size_t listed)
{
    const struct json *more = recipe->more.at != NULL ? plant_find(answer, recipe->more) : NULL;
    int64_t total;
    if (recipe->total.at != NULL) {
        const struct json *at = plant_find(answer, recipe->total);
        if (at == NULL || !json_to_i64(at, &total) || total > (int64_t)listed)
            return true;
    }
    if (more == NULL)
        return false;
    struct bytes text = json_scalar(more);
    return text.len > 0 && !bytes_is(text, "false") && !bytes_is(text, "0");
}

static bool fill_wants(struct asking *asking, const struct probe_recipe *recipe)
{
    asking->want = arena_zalloc(asking->arena, recipe->match_count + 1, sizeof *asking->want);
    for (size_t i = 0; asking->want != NULL && i < recipe->match_count; i++)
        if (fill(asking, recipe->match[i].value, false, &asking->want[i]) != OK)
            return false;
    return asking->want != NULL;
}

static enum probe_answer judge(const struct asking *asking, const struct probe_recipe *recipe, const struct json *answer,
                               struct buf *evidence, size_t *ret_matches)
{
    const struct json *list = recipe->items.at != NULL ? plant_find(answer, recipe->items) : answer;
    struct json_out out = json_out_to(evidence);
    bool is_list = recipe->items.at != NULL;
    *ret_matches = 0;
    if (list == NULL || (is_list && list->type != JSON_ARRAY))
        return PROBE_UNSURE;
    size_t listed = is_list ? list->count : 1;
    *ret_matches = look_through(asking, recipe, is_list ? list->items : list, listed, &out);
    if (*ret_matches > 0)
        return recipe->found_is_sure ? PROBE_FOUND : PROBE_UNSURE;
    return recipe->absent_is_sure && !goes_on(recipe, answer, listed) ? PROBE_ABSENT : PROBE_UNSURE;
}

enum probe_answer destination_probe_read(const struct destination *destination, const struct call_rules *rules,
                                         const char *downstream_key, const struct effect_request *sent, int64_t first_sent_us,
                                         const struct effect_reply *reply, struct arena *arena, struct bytes *ret_evidence)
{
    struct asking asking = {destination, rules, bytes_of(downstream_key), sent, first_sent_us, arena, NULL};
    const struct probe_recipe *recipe = choose(&asking);
    struct json answer;
    struct buf evidence;
    size_t matches = 0;
    *ret_evidence = BYTES_NONE;
    if (recipe == NULL)
        return PROBE_UNSURE;
    if (recipe->absent_status != 0 && reply->status == recipe->absent_status)
        return recipe->absent_is_sure ? PROBE_ABSENT : PROBE_UNSURE;
    if (!is_readable(&asking, recipe, reply, &answer) || !fill_wants(&asking, recipe))
        return PROBE_UNSURE;
    buf_init(&evidence, EVIDENCE_MAX);
    enum probe_answer said = judge(&asking, recipe, &answer, &evidence, &matches);
    if (matches > 0 && !evidence.failed)
        *ret_evidence = arena_dup(arena, buf_bytes(&evidence));
    buf_release(&evidence);
    return said;
}
