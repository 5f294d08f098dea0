/* content: what is stored of a record, and what it says. */
#include "leads/leads.h"

#include "base/json.h"

#define CONTENT_MAX ((size_t)128 << 10)

const char *const lead_edge_kind_names[] = {"same", "different", "asked", NULL};
const char *const lead_found_names[] = {"known", "same", "review", "new", NULL};

bool lead_given_is_empty(const struct lead_given *given)
{
    return given->email_count + given->phone_count + given->id_count == 0 && given->external.len == 0;
}

static void write_text(struct json_out *out, const char *name, struct bytes text)
{
    if (text.len > 0)
        json_text_member(out, name, text);
}

static void write_list(struct json_out *out, const char *name, const struct bytes *texts, size_t count)
{
    if (count == 0)
        return;
    json_name(out, name);
    json_open(out, '[');
    for (size_t i = 0; i < count; i++)
        json_text(out, texts[i]);
    json_close(out, ']');
}

enum status lead_content(const struct lead_given *given, struct arena *arena, struct bytes *ret, struct why *why)
{
    struct buf buf;
    buf_init(&buf, CONTENT_MAX);
    struct json_out out = json_out_to(&buf);
    json_open(&out, '{');
    write_text(&out, "name", given->name);
    write_text(&out, "company", given->company);
    write_text(&out, "country", given->country);
    write_list(&out, "emails", given->emails, given->email_count);
    write_list(&out, "phones", given->phones, given->phone_count);
    write_list(&out, "ids", given->ids, given->id_count);
    json_close(&out, '}');
    struct bytes content = buf.failed ? BYTES_NONE : arena_dup(arena, buf_bytes(&buf));
    buf_release(&buf);
    if (content.at == NULL)
        return why_set(why, FULL, "no memory for a record");
    *ret = content;
    return OK;
}

static void read_list(const struct json *json, const char *name, struct bytes *ret, size_t *ret_count)
{
    const struct json *list = json_get(json, bytes_of(name));
    for (uint32_t i = 0; list != NULL && list->type == JSON_ARRAY && i < list->count && *ret_count < LEAD_IDENTITIES_MAX; i++)
        if (list->items[i].type == JSON_STRING)
            ret[(*ret_count)++] = list->items[i].text;
}

static struct bytes text_of(const struct json *json, const char *name)
{
    const struct json *value = json_get(json, bytes_of(name));
    return value != NULL && value->type == JSON_STRING ? value->text : BYTES_NONE;
}

enum status lead_content_read(struct bytes content, struct arena *arena, struct lead_given *ret, struct why *why)
{
    struct json json;
    struct lead_given given = {.space = BYTES_NONE};
    TRY(json_parse(content, NULL, arena, &json, why));
    given.name = text_of(&json, "name");
    given.company = text_of(&json, "company");
    given.country = text_of(&json, "country");
    read_list(&json, "emails", given.emails, &given.email_count);
    read_list(&json, "phones", given.phones, &given.phone_count);
    read_list(&json, "ids", given.ids, &given.id_count);
    *ret = given;
    return OK;
}

void lead_hash(struct bytes pepper, const struct lead_given *given, struct bytes content, uint8_t ret[KEY_HASH_SIZE])
{
    struct bytes parts[] = {pepper, BYTES("lead"), BYTES("record"), given->space, given->source, given->external, content};
    struct hash hash = hash_parts(parts, sizeof parts / sizeof *parts);
    memcpy(ret, hash.at, KEY_HASH_SIZE);
}

/* "slack:T1:U1" is an id of slack's. */
static struct match_id id_of(struct bytes text)
{
    struct bytes rest = text, system = bytes_cut(&rest, ':');
    return (struct match_id){.system = rest.len > 0 ? system : BYTES("other"), .value = text};
}

enum status lead_person(const struct lead_given *given, struct arena *arena, struct match_person *ret, struct why *why)
{
    struct match_id ids[LEAD_IDENTITIES_MAX + 1];
    size_t id_count = 0;
    if (given->external.len > 0)
        ids[id_count++] = (struct match_id){.system = given->source, .value = given->external};
    for (size_t i = 0; i < given->id_count; i++)
        ids[id_count++] = id_of(given->ids[i]);
    struct match_input input = {
        .name = given->name,
        .emails = given->emails,
        .email_count = given->email_count,
        .phones = given->phones,
        .phone_count = given->phone_count,
        .company = given->company,
        .region = given->country,
        .ids = ids,
        .id_count = id_count,
    };
    return match_person_make(&input, arena, ret, why);
}

enum status lead_keys(struct bytes pepper, struct bytes space, const struct match_person *person, struct arena *arena,
                      struct match_key ret[MATCH_KEYS_MAX], size_t *ret_count, struct why *why)
{
    struct bytes parts[] = {pepper, BYTES("lead"), BYTES("key"), space};
    struct hash secret = hash_parts(parts, sizeof parts / sizeof *parts);
    return match_keys(person, secret.at, arena, ret, ret_count, why);
}

enum status lead_explain(const struct match_result *result, struct arena *arena, struct bytes *ret, struct why *why)
{
    struct buf buf;
    buf_init(&buf, 32 << 10);
    struct json_out out = json_out_to(&buf);
    json_open(&out, '[');
    for (size_t i = 0; i < result->line_count; i++) {
        const struct match_line *line = &result->lines[i];
        json_open(&out, '{');
        json_text_member(&out, "field", bytes_of(line->field));
        json_text_member(&out, "level", bytes_of(line->level));
        json_i64_member(&out, "weight", line->weight_mb);
        if (line->holders > 1)
            json_i64_member(&out, "holders", line->holders);
        json_text_member(&out, "because", match_line_sentence(line, arena));
        json_close(&out, '}');
    }
    json_close(&out, ']');
    struct bytes text = buf.failed ? BYTES_NONE : arena_dup(arena, buf_bytes(&buf));
    buf_release(&buf);
    if (text.at == NULL)
        return why_set(why, FULL, "no memory for an explanation");
    *ret = text;
    return OK;
}
