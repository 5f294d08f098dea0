/*
 * print: what people see. Text that came from elsewhere loses its control characters first, so that a key or an error message
 * cannot move the cursor or recolour the terminal. Colour only on a terminal, and not with NO_COLOR.
 */
#ifndef SEMEL_CLI_PRINT_H
#define SEMEL_CLI_PRINT_H

#include "cli/cli.h"

/* "semel: …" to stderr; returns `code`, so that a failure is one line. */
int cli_fail(enum cli_exit code, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same when nothing failed. */
void cli_note(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Appends `text` without what a terminal would obey: controls and direction overrides become '?'. */
void print_clean(struct buf *out, struct bytes text);

/* To stdout, as one line. */
void print_line(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* To stdout: the value's own text as one line. */
void print_json(const struct json *json);
void print_json_buf(const struct buf *buf);

enum print_colour { COLOUR_NONE, COLOUR_BOLD, COLOUR_DIM, COLOUR_GREEN, COLOUR_YELLOW, COLOUR_RED };
bool print_is_colourful(void);
enum print_colour print_state_colour(struct bytes state);

/* Local time: "2026-11-16 09:00:03", or the time of day alone when it is the same day as `now_us`. */
void print_when(int64_t time_us, int64_t now_us, char ret[32]);

/* A member's text for people: strings decoded and cleaned, anything else as written; "" when it is absent or null. In the arena. */
struct bytes print_field(struct cli *cli, const struct json *object, const char *name);

/* A time member; 0 when it is absent or no time. */
int64_t print_time_of(const struct json *object, const char *name);

/* What the next claim would be told: story_next() with the lease's end as people read it. */
void print_next(const struct json *intent, int64_t now_us, struct buf *out);

/* ---- tables: cells are collected, then printed with columns as wide as needed ---- */

#define TABLE_COLUMNS_MAX 8

struct table {
    struct arena *arena;
    size_t column_count;
    struct table_row *first, **last;
    size_t widths[TABLE_COLUMNS_MAX];
};

void table_init(struct table *table, struct arena *arena, const char *const *headings, size_t column_count);
void table_add(struct table *table, const struct bytes *cells, enum print_colour colour);
void table_print(const struct table *table);

/* "+15.3 the same phone number": what each line of a comparison adds, in bits. */
void print_evidence(struct cli *cli, const struct json *explanation);

#endif
