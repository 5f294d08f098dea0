#include "cli/key_advice.h"

#include "lint/lint_shape.h"

/* clang-format off */
/* Of the parts that have no argument worth telling. */
static const char *const meanings[] = {
    [PART_LITERAL] = "as written",
    [PART_TODAY] = "the day on the server's clock when it is called",
    [PART_DAY] = "the day of the event",
    [PART_WEEK] = "the ISO week of the event",
    [PART_MONTH] = "the month of the event",
    [PART_QUARTER] = "the quarter of the event",
    [PART_YEAR] = "the year of the event",
    [PART_HOUR] = "the hour of the event",
    [PART_WINDOW] = "the time window of the event",
    [PART_BILLING] = "the first day of the event's billing period",
};
/* clang-format on */

void key_explain(const struct key_part *part, struct buf *out)
{
    if (part->kind == PART_FIELD)
        buf_printf(out, "the field %.*s of the input", BYTES_ARG(part->text));
    else if (part->kind == PART_HASH && part->text.len > 0)
        buf_printf(out, "a hash of the field %.*s", BYTES_ARG(part->text));
    else if (part->kind == PART_HASH)
        buf_add_cstr(out, "a hash of the whole input");
    else
        buf_add_cstr(out, meanings[part->kind]);
}

static struct bytes last_step(struct bytes path)
{
    struct bytes step = path;
    while (path.len > 0)
        step = bytes_cut(&path, '.');
    return step;
}

/* No duplicate would ever be recognised by it. */
static bool changes_with_attempts(const struct key_part *part)
{
    return part->kind == PART_FIELD && shape_is_attempt(last_step(part->text));
}

static bool advise_part(const struct key_part *part, struct buf *out)
{
    if (changes_with_attempts(part))
        buf_printf(
            out,
            "%.*s is probably new with each attempt, so no duplicate would be recognised. Use what the attempts have in common.",
            BYTES_ARG(part->source));
    else if (part->kind == PART_TODAY)
        buf_add_cstr(
            out, "{today} asks the clock: a retry after midnight has another key. Use {day} with --time, the event's own time.");
    else if (part->kind == PART_HASH && part->text.len == 0)
        buf_add_cstr(out, "{hash} covers the whole input: one field that differs between attempts makes another key. Name the "
                          "fields that count.");
    else
        return false;
    return true;
}

/* A template without any placeholder is refused when it is compiled. */
static bool advise_whole(const struct key_template *template, struct buf *out)
{
    for (size_t i = 0; i < template->part_count; i++)
        if (template->parts[i].kind == PART_FIELD || template->parts[i].kind == PART_HASH)
            return false;
    buf_add_cstr(
        out, "only time makes the key different: it happens once per period, for everybody together. That is right for a digest, "
             "not for something about one lead.");
    return true;
}

bool key_advise(const struct key_template *template, size_t i, struct buf *out)
{
    size_t seen = 0;
    buf_clear(out);
    for (size_t k = 0; k <= template->part_count; k++) {
        bool said = k < template->part_count ? advise_part(&template->parts[k], out) : advise_whole(template, out);
        if (said && seen++ == i)
            return true;
        buf_clear(out);
    }
    return false;
}
