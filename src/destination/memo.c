/* Model calls: whether an answer is whole, which model was asked, what it cost. */
#include "destination/header.h"
#include "destination/plant.h"

/* Room to read an answer; of one that needs more nobody can say that it is whole. */
enum { READ_MEMORY_MAX = 256 << 20, EVENT_MEMORY_MAX = 64 << 20 };

/* ---- tokens ---- */

static void read_count(const struct json *json, const struct bytes *paths, size_t count, int64_t *ret)
{
    for (size_t i = 0; i < count; i++) {
        int64_t n;
        const struct json *found = plant_find(json, paths[i]);
        if (found != NULL && json_to_i64(found, &n) && n >= 0 && n <= INT32_MAX)
            *ret = n;
    }
}

static void read_tokens(const struct memo_rules *memo, const struct json *json, struct memo_answer *ret)
{
    read_count(json, memo->input, memo->input_count, &ret->input);
    read_count(json, memo->output, memo->output_count, &ret->output);
}

/* ---- a stream of events ---- */

/* The next line without its end; false behind the last one. Lines end in CR LF, LF or CR. */
static bool next_line(struct bytes *rest, struct bytes *ret_line)
{
    size_t len = 0;
    if (rest->len == 0)
        return false;
    while (len < rest->len && rest->at[len] != '\n' && rest->at[len] != '\r')
        len++;
    *ret_line = (struct bytes){rest->at, len};
    size_t skip = len + 1 < rest->len && rest->at[len] == '\r' && rest->at[len + 1] == '\n' ? 2 : 1;
    *rest = bytes_from(*rest, len + skip);
    return true;
}

/* The data of the next event, its lines joined; false when there is none left. */
static bool next_event(struct bytes *rest, struct buf *data)
{
    struct bytes line;
    bool found = false;
    buf_clear(data);
    while (next_line(rest, &line)) {
        if (line.len == 0 && found)
            return true;
        struct bytes value = line, name = bytes_cut(&value, ':');
        if (!bytes_is(name, "data"))
            continue;
        if (found)
            buf_add_char(data, '\n');
        buf_add(data, bytes_starts(value, BYTES(" ")) ? bytes_from(value, 1) : value);
        found = true;
    }
    return found;
}

static bool is_end(const struct memo_end *end, struct bytes data, const struct json *json)
{
    if (end->data.at != NULL)
        return bytes_eq(bytes_trim(data), end->data);
    return json != NULL && plant_any(json, end->field, end->values, end->value_count);
}

static void read_events(const struct memo_rules *memo, struct bytes body, struct memo_answer *ret)
{
    struct buf data;
    struct arena arena;
    struct why why;
    buf_init(&data, DESTINATION_BODY_MAX);
    arena_init(&arena, EVENT_MEMORY_MAX);
    while (next_event(&body, &data) && !data.failed) {
        struct json json;
        bool parsed = plant_json(buf_bytes(&data), &arena, &json, &why) == OK;
        if (parsed)
            read_tokens(memo, &json, ret);
        for (size_t i = 0; i < memo->end_count; i++)
            ret->whole |= is_end(&memo->ends[i], buf_bytes(&data), parsed ? &json : NULL);
        arena_clear(&arena);
    }
    arena_release(&arena);
    buf_release(&data);
}

/* ---- JSON ---- */

/* A list is what a stream of events would have said, one after the other. */
static void read_json(const struct memo_rules *memo, struct bytes body, struct memo_answer *ret)
{
    struct arena arena;
    struct json json;
    struct why why;
    arena_init(&arena, READ_MEMORY_MAX);
    ret->whole = plant_json(body, &arena, &json, &why) == OK && (json.type == JSON_OBJECT || json.type == JSON_ARRAY);
    if (ret->whole && json.type == JSON_OBJECT)
        read_tokens(memo, &json, ret);
    for (uint32_t i = 0; ret->whole && json.type == JSON_ARRAY && i < json.count; i++)
        read_tokens(memo, &json.items[i], ret);
    arena_release(&arena);
}

bool memo_is_events(const struct effect_reply *reply)
{
    struct bytes type = header_find(reply->headers, reply->header_count, BYTES("content-type"));
    return bytes_eq_nocase(bytes_trim(bytes_cut(&type, ';')), BYTES("text/event-stream"));
}

void memo_read(const struct memo_rules *memo, const struct effect_reply *reply, struct memo_answer *ret)
{
    *ret = (struct memo_answer){.input = -1, .output = -1};
    if (memo_is_events(reply))
        read_events(memo, reply->body, ret);
    else
        read_json(memo, reply->body, ret);
}

/* ---- the model ---- */

struct bytes memo_model(const struct memo_rules *memo, const struct effect_request *request, const struct json *body)
{
    if (memo->model.at != NULL) {
        const struct json *found = body != NULL ? plant_find(body, memo->model) : NULL;
        return found != NULL && found->type == JSON_STRING && found->text.len > 0 ? found->text : BYTES_NONE;
    }
    struct bytes rest = request->path, path = bytes_cut(&rest, '?'), part = BYTES_NONE;
    while (path.len > 0)
        part = bytes_cut(&path, '/');
    part = bytes_cut(&part, ':');
    return part.len > 0 ? part : BYTES_NONE;
}

bool destination_cost(const struct destination *destination, struct bytes model, int64_t input, int64_t output, int64_t *ret)
{
    for (size_t i = 0; i < destination->price_count; i++) {
        const struct price *price = &destination->prices[i];
        int64_t in, out, sum;
        if (!bytes_eq(price->model, model))
            continue;
        bool fits = !__builtin_mul_overflow(input > 0 ? input : 0, price->input, &in) &&
                    !__builtin_mul_overflow(output > 0 ? output : 0, price->output, &out) &&
                    !__builtin_add_overflow(in, out, &sum);
        *ret = fits ? sum : INT64_MAX;
        return true;
    }
    return false;
}
