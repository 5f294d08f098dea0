/* key: keys and canonical forms as the server makes them; the same code. */
#include <stdio.h>

#include "handle.h"

static enum semel_status copy_out(struct bytes text, char *ret_text, size_t size, struct semel_problem *ret_problem)
{
    if (text.len >= size) {
        problem_set(ret_problem, BYTES(""), "it does not fit into the buffer.");
        return SEMEL_INVALID;
    }
    memcpy(ret_text, text.at, text.len);
    ret_text[text.len] = '\0';
    return SEMEL_OK;
}

static enum semel_status status_from(enum status status, struct bytes field, const struct why *why,
                                     struct semel_problem *ret_problem)
{
    problem_set(ret_problem, field, status == OK ? "" : why->text);
    return status == OK ? SEMEL_OK : status == FULL ? SEMEL_NO_MEMORY : SEMEL_INVALID;
}

static enum status fill(const struct semel_key_template *key_template, const char *input, struct arena *arena,
                        struct bytes *ret_key, struct bytes *ret_field, struct why *why)
{
    const struct key_options options = {key_template->zone,
                                        key_template->time != NULL ? bytes_of(key_template->time) : BYTES_NONE};
    struct key_template *compiled;
    struct json json;
    *ret_field = BYTES("(template)");
    TRY(key_template_compile(bytes_of(key_template->text), &options, arena, &compiled, why));
    *ret_field = BYTES_NONE;
    enum status status = input != NULL ? json_parse(bytes_of(input), NULL, arena, &json, why) : OK;
    int64_t now_us = key_template->now_us != 0 ? key_template->now_us : env_real_wall_us();
    if (status == OK)
        status = key_template_fill(compiled, input != NULL ? &json : NULL, now_us, arena, ret_key, ret_field, why);
    key_template_free(compiled);
    return status;
}

enum semel_status semel_key(const struct semel_key_template *key_template, const char *input, char *ret_key, size_t size,
                            struct semel_problem *ret_problem)
{
    struct arena arena;
    struct why why = {""};
    struct bytes key, field = BYTES_NONE;
    library_setup();
    arena_init(&arena, ARENA_MAX);
    enum status status = fill(key_template, input, &arena, &key, &field, &why);
    enum semel_status result = status_from(status, field, &why, ret_problem);
    if (result == SEMEL_OK)
        result = copy_out(key, ret_key, size, ret_problem);
    arena_release(&arena);
    return result;
}

enum semel_status semel_canonical(const char *json, char *ret_text, size_t size, struct semel_problem *ret_problem)
{
    struct arena arena;
    struct why why = {""};
    struct json value;
    struct buf out;
    arena_init(&arena, ARENA_MAX);
    buf_init(&out, ARENA_MAX);
    enum status status = json_parse(bytes_of(json), NULL, &arena, &value, &why);
    if (status == OK)
        status = json_canonical(&value, &arena, &out, &why);
    enum semel_status result = status_from(status, BYTES(""), &why, ret_problem);
    if (result == SEMEL_OK)
        result = copy_out(buf_bytes(&out), ret_text, size, ret_problem);
    buf_release(&out);
    arena_release(&arena);
    return result;
}

void semel_make_downstream_key(const char *space, const char *workflow, const char *key, char ret_key[SEMEL_DOWNSTREAM_SIZE])
{
    _Static_assert(SEMEL_DOWNSTREAM_SIZE == DOWNSTREAM_KEY_SIZE + 1, "the header says the same");
    library_setup();
    downstream_key(bytes_of(space), bytes_of(workflow), bytes_of(key), ret_key);
}
