/*
 * Compiling a template. Every refusal names the placeholder as written, where it stands and what to write instead: a template is
 * written once by a person and then decides about every request.
 */
#include <stdarg.h>
#include <stdio.h>

#include "base/when.h"
#include "fingerprint/key_parts.h"
#include "fingerprint/key_text.h"

enum { PLACEHOLDERS_MAX = 32 };

#define WINDOW_MIN_US WHEN_SECOND
#define WINDOW_MAX_US (366 * WHEN_DAY)

struct compiler {
    struct bytes text;
    const struct key_options *options;
    struct why *why;
    struct key_part *parts;
    size_t part_count;
    size_t placeholder_count;
    char *literals; /* the literal text without doubled braces */
    size_t literals_len;
    bool timed; /* a part asks for the event's time */
    bool zoned; /* a part asks for the zone */
};

struct reserved_word {
    const char *name;
    enum key_part_kind kind;
    bool timed;           /* made from the event's time: a plain field when the workflow names none */
    const char *argument; /* an example of what may follow the ':'; NULL when nothing may */
    bool needs_argument;
};

static const struct reserved_word reserved_words[] = {
    {"hash", PART_HASH, false, "lead.email", false},
    {"today", PART_TODAY, false, NULL, false},
    {"day", PART_DAY, true, NULL, false},
    {"week", PART_WEEK, true, NULL, false},
    {"month", PART_MONTH, true, NULL, false},
    {"quarter", PART_QUARTER, true, NULL, false},
    {"year", PART_YEAR, true, NULL, false},
    {"hour", PART_HOUR, true, NULL, false},
    {"window", PART_WINDOW, true, "15m", true},
    {"billing", PART_BILLING, true, "15", true},
};

enum { RESERVED_COUNT = sizeof reserved_words / sizeof *reserved_words };

/* What people write for a value that is made when the call is made. */
static const char *const call_time_words[] = {"now", "random", "timestamp", "uuid"};

/* ---- refusals ---- */

static size_t position_of(const struct compiler *compiler, const char *at)
{
    size_t characters = 1;
    for (const char *c = compiler->text.at; c < at; c++)
        if (((unsigned char)*c & 0xC0) != 0x80)
            characters++;
    return characters;
}

static enum status refuse(struct compiler *compiler, struct bytes where, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static enum status refuse(struct compiler *compiler, struct bytes where, const char *format, ...)
{
    char fix[220];
    va_list args;
    va_start(args, format);
    vsnprintf(fix, sizeof fix, format, args);
    va_end(args);
    struct bytes shown = key_clip(where);
    return why_set(compiler->why, INVALID, "%.*s at character %zu of the key: %s", BYTES_ARG(shown),
                   position_of(compiler, where.at), fix);
}

/* ---- placeholders ---- */

static enum status check_path(struct compiler *compiler, struct bytes source, struct bytes path)
{
    struct bytes rest = path;
    bool last = false;
    while (!last) {
        last = memchr(rest.at, '.', rest.len) == NULL;
        struct bytes step = bytes_cut(&rest, '.');
        if (step.len == 0)
            return refuse(compiler, source, "a step of the path is empty; write it like {customer.email}");
    }
    return OK;
}

static enum status compile_field(struct compiler *compiler, struct bytes path, struct key_part *part)
{
    part->kind = PART_FIELD;
    part->text = path;
    return check_path(compiler, part->source, path);
}

static enum status compile_window(struct compiler *compiler, struct bytes argument, struct key_part *part)
{
    if (!when_parse_duration(argument, &part->number))
        return refuse(compiler, part->source, "the window wants a duration such as {window:15m} or {window:2h}");
    if (part->number < WINDOW_MIN_US || part->number > WINDOW_MAX_US || part->number % WHEN_SECOND != 0)
        return refuse(compiler, part->source, "a window is whole seconds, from 1s to 366d");
    return OK;
}

static enum status compile_billing(struct compiler *compiler, struct bytes argument, struct key_part *part)
{
    if (!bytes_to_i64(argument, &part->number) || part->number < 1 || part->number > 31)
        return refuse(compiler, part->source, "the period begins on a day of the month from 1 to 31, such as {billing:15}");
    return OK;
}

static enum status compile_argument(struct compiler *compiler, struct bytes argument, struct key_part *part)
{
    switch (part->kind) {
    case PART_WINDOW:
        return compile_window(compiler, argument, part);
    case PART_BILLING:
        return compile_billing(compiler, argument, part);
    case PART_HASH:
        part->text = argument;
        return check_path(compiler, part->source, argument);
    case PART_LITERAL:
    case PART_FIELD:
    case PART_TODAY:
    case PART_DAY:
    case PART_WEEK:
    case PART_MONTH:
    case PART_QUARTER:
    case PART_YEAR:
    case PART_HOUR:
        break;
    }
    return refuse(compiler, part->source, "nothing may follow the name; write it without ':'");
}

static bool has_time(const struct compiler *compiler)
{
    return compiler->options->time_path.len > 0;
}

static enum status compile_reserved(struct compiler *compiler, const struct reserved_word *word, struct bytes argument,
                                    struct key_part *part)
{
    if (word->timed && !has_time(compiler))
        return refuse(compiler, part->source, "it needs the event's own time: name the input field that holds it with 'time:'");
    part->kind = word->kind;
    compiler->timed |= word->timed;
    compiler->zoned |= word->timed || word->kind == PART_TODAY;
    if (argument.at != NULL)
        return compile_argument(compiler, argument, part);
    if (word->needs_argument)
        return refuse(compiler, part->source, "write {%s:%s}; a field of that name is {input.%s}", word->name, word->argument,
                      word->name);
    return OK;
}

static const struct reserved_word *find_reserved(struct bytes name)
{
    for (size_t i = 0; i < RESERVED_COUNT; i++)
        if (bytes_is(name, reserved_words[i].name))
            return &reserved_words[i];
    return NULL;
}

static enum status refuse_call_time(struct compiler *compiler, struct bytes source, const char *word)
{
    return refuse(compiler, source,
                  "a key made at call time never repeats, so nothing would be done once; use {today} or a field. "
                  "An input field of that name is {input.%s}",
                  word);
}

static enum status refuse_argument(struct compiler *compiler, struct bytes source, struct bytes name)
{
    static const char *const with_argument[] = {"billing", "hash", "window"};
    const char *near = nearest_name(name, with_argument, sizeof with_argument / sizeof *with_argument);
    if (near != NULL)
        return refuse(compiler, source, "unknown; did you mean {%s:…}?", near);
    return refuse(compiler, source,
                  "only {hash:…}, {window:…} and {billing:…} take a ':'; write a path with dots, like {customer.email}");
}

static bool has_outer_space(struct bytes inside)
{
    return inside.at[0] == ' ' || inside.at[inside.len - 1] == ' ';
}

/* `inside` is what stands between the braces. */
static enum status compile_placeholder(struct compiler *compiler, struct bytes inside, struct key_part *part)
{
    if (inside.len == 0)
        return refuse(compiler, part->source, "name a field of the input, such as {lead_id}; literal braces are {{ and }}");
    if (has_outer_space(inside))
        return refuse(compiler, part->source, "write the name without spaces around it");
    if (bytes_starts(inside, BYTES("input.")))
        return compile_field(compiler, bytes_from(inside, 6), part);
    for (size_t i = 0; i < sizeof call_time_words / sizeof *call_time_words; i++)
        if (bytes_is(inside, call_time_words[i]))
            return refuse_call_time(compiler, part->source, call_time_words[i]);

    struct bytes argument = inside;
    struct bytes name = bytes_cut(&argument, ':');
    if (name.len == inside.len)
        argument = BYTES_NONE;
    const struct reserved_word *word = find_reserved(name);
    bool is_field = word == NULL || (word->timed && !has_time(compiler));
    if (is_field && argument.at == NULL)
        return compile_field(compiler, inside, part);
    return word == NULL ? refuse_argument(compiler, part->source, name) : compile_reserved(compiler, word, argument, part);
}

/* ---- the text ---- */

static enum status add_placeholder(struct compiler *compiler, struct bytes rest, size_t *ret_size)
{
    const char *close = memchr(rest.at, '}', rest.len);
    const char *nested = memchr(rest.at + 1, '{', rest.len - 1);
    if (close == NULL || (nested != NULL && nested < close))
        return refuse(compiler, (struct bytes){rest.at, 1}, "this brace is never closed; a literal one is {{");
    struct bytes source = {rest.at, (size_t)(close - rest.at) + 1};
    bool adjacent = compiler->part_count > 0 && compiler->parts[compiler->part_count - 1].kind != PART_LITERAL;
    if (adjacent)
        return refuse(compiler, source,
                      "it follows another placeholder directly, and 1 next to 23 would read as 12 next to 3; put ':' between");
    if (++compiler->placeholder_count > PLACEHOLDERS_MAX)
        return refuse(compiler, source, "a key has at most %d placeholders; use {hash}", PLACEHOLDERS_MAX);
    struct key_part *part = &compiler->parts[compiler->part_count++];
    *part = (struct key_part){.source = source};
    *ret_size = source.len;
    return compile_placeholder(compiler, (struct bytes){rest.at + 1, source.len - 2}, part);
}

static void add_literal(struct compiler *compiler, struct bytes character)
{
    char *to = compiler->literals + compiler->literals_len;
    memcpy(to, character.at, character.len);
    compiler->literals_len += character.len;
    if (compiler->part_count == 0 || compiler->parts[compiler->part_count - 1].kind != PART_LITERAL)
        compiler->parts[compiler->part_count++] = (struct key_part){.kind = PART_LITERAL, .text = {to, 0}};
    compiler->parts[compiler->part_count - 1].text.len += character.len;
}

/* One step: a doubled brace, a placeholder or one literal character. */
static enum status compile_step(struct compiler *compiler, struct bytes rest, size_t *ret_size)
{
    char c = rest.at[0];
    bool doubled = rest.len > 1 && rest.at[1] == c;
    if (c == '{' && !doubled)
        return add_placeholder(compiler, rest, ret_size);
    if (c == '}' && !doubled)
        return refuse(compiler, (struct bytes){rest.at, 1}, "this brace closes nothing; a literal one is }}");
    bool brace = c == '{' || c == '}';
    struct bytes character = {rest.at, key_char_size(rest)};
    add_literal(compiler, character);
    *ret_size = brace ? 2 : character.len;
    return OK;
}

/* In a value '%' begins an escape, so it cannot also be what ends the value. */
static enum status set_follows(struct compiler *compiler)
{
    for (size_t i = 0; i + 1 < compiler->part_count; i++) {
        struct key_part *part = &compiler->parts[i];
        if (part->kind == PART_LITERAL)
            continue;
        struct bytes literal = part[1].text;
        if (literal.at[0] == '%')
            return refuse(compiler, part->source,
                          "a '%%' cannot stand directly behind a placeholder; put another character between");
        part->follow = (struct bytes){literal.at, key_char_size(literal)};
    }
    return OK;
}

static enum status compile_text(struct compiler *compiler)
{
    for (size_t at = 0; at < compiler->text.len;) {
        size_t size = 0;
        TRY(compile_step(compiler, bytes_from(compiler->text, at), &size));
        at += size;
    }
    if (compiler->placeholder_count == 0)
        return why_set(compiler->why, INVALID,
                       "this key never changes, so the work would be done once and never again: add a placeholder such as "
                       "{lead_id} or {today}");
    return set_follows(compiler);
}

static enum status check_text(struct bytes text, struct why *why)
{
    if (text.len == 0)
        return why_set(why, INVALID, "the key is empty: write a template such as followup:{lead_id}");
    if (text.len > KEY_SIZE_MAX)
        return why_set(why, INVALID, "the key's template is longer than %d bytes", KEY_SIZE_MAX);
    if (!bytes_is_utf8(text))
        return why_set(why, INVALID, "the key's template is not UTF-8");
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.at[i] < 0x20 || text.at[i] == 0x7F)
            return why_set(why, INVALID, "the key's template has a control character at byte %zu; write it on one line", i + 1);
    return OK;
}

static enum status check_time_path(struct compiler *compiler)
{
    struct bytes path = compiler->options->time_path;
    if (check_path(compiler, compiler->text, path) == OK)
        return OK;
    struct bytes shown = key_clip(path);
    return why_set(compiler->why, INVALID, "the path of the time, '%.*s', has an empty step; write it like order.paid_at",
                   BYTES_ARG(shown));
}

static enum status open_zone(const struct compiler *compiler, struct zone *ret_zone)
{
    struct zone zone;
    TRY(zone_open(compiler->options->zone, &zone, compiler->why));
    if (!compiler->zoned)
        zone_close(&zone);
    *ret_zone = zone;
    return OK;
}

static enum status no_memory(struct why *why)
{
    return why_set(why, FULL, "no memory for a key template");
}

/* The parts that compilation used up, in memory of just that size. */
static enum status finish(const struct compiler *compiler, struct arena *arena, struct key_template **ret_template)
{
    struct key_template *template = arena_zalloc(arena, 1, sizeof *template);
    struct key_part *parts = arena_zalloc(arena, compiler->part_count, sizeof *parts);
    if (template == NULL || parts == NULL)
        return no_memory(compiler->why);
    memcpy(parts, compiler->parts, compiler->part_count * sizeof *parts);
    *template = (struct key_template){.parts = parts, .part_count = compiler->part_count};
    if (compiler->timed) {
        template->time_path = arena_dup(arena, compiler->options->time_path);
        if (template->time_path.at == NULL)
            return no_memory(compiler->why);
    }
    TRY(open_zone(compiler, &template->zone));
    *ret_template = template;
    return OK;
}

enum status key_template_compile(struct bytes text, const struct key_options *options, struct arena *arena,
                                 struct key_template **ret_template, struct why *why)
{
    struct key_part parts[2 * PLACEHOLDERS_MAX + 1];
    struct compiler compiler = {.options = options, .why = why, .parts = parts};
    TRY(check_text(text, why));
    compiler.text = arena_dup(arena, text);
    compiler.literals = arena_alloc(arena, text.len);
    if (compiler.text.at == NULL || compiler.literals == NULL)
        return no_memory(why);
    if (has_time(&compiler))
        TRY(check_time_path(&compiler));
    TRY(compile_text(&compiler));
    return finish(&compiler, arena, ret_template);
}

void key_template_free(struct key_template *template)
{
    if (template != NULL)
        zone_close(&template->zone);
}
