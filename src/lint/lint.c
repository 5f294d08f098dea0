#include "lint/lint.h"

#include <stdlib.h>

#include "base/when.h"
#include "lint/lint_shape.h"

#define AGAIN_US WHEN_DAY /* the same contents within it are a duplicate; later they may be meant */
#define ENOUGH 5          /* keys before anything is said about how they look */
#define EVIDENCE 3        /* groups that show that one field follows from the others */
#define CANDIDATES_MAX 16 /* fields among which a template is looked for: it is tried on the sample for each of them */
#define COLUMNS(set, i) (((set) >> (i)) & 1)

const char *const lint_code_names[] = {"never_repeats", "random", "clock", "too_broad", "near_equal", "no_input", NULL};

/* The sample as a table: one row per intent, one column per field, in each cell the field's hash. */
struct place {
    uint64_t group;
    size_t row;
};

struct lint_table {
    const struct lint_traffic *traffic;
    struct arena *arena;
    struct bytes names[LINT_FIELDS_MAX];
    size_t column_count;
    uint64_t (*cells)[LINT_FIELDS_MAX]; /* 0: the field is absent */
    bool *has_fields;
    size_t with_input;
    uint64_t everywhere;   /* columns that every row with fields has */
    uint64_t core;         /* columns that say what it is, not which attempt */
    struct bytes *windows; /* keys without their time windows */
    struct place *places;  /* for sorted(): one order at a time */
};

/* ---- reading ---- */

static size_t column_of(struct lint_table *table, struct bytes name)
{
    for (size_t i = 0; i < table->column_count; i++)
        if (bytes_eq(table->names[i], name))
            return i;
    if (table->column_count == LINT_FIELDS_MAX)
        return LINT_FIELDS_MAX;
    table->names[table->column_count] = name;
    return table->column_count++;
}

static uint64_t cell_of(struct bytes hex)
{
    uint64_t value = 0;
    for (size_t i = 0; i < hex.len && i < 16; i++) {
        char c = hex.at[i];
        value = value << 4 | (uint64_t)(c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : 0);
    }
    return value != 0 ? value : 1;
}

static enum status read_row(struct lint_table *table, size_t row, struct why *why)
{
    struct json fields;
    if (table->traffic->samples[row].fields.at == NULL)
        return OK;
    TRY(json_parse(table->traffic->samples[row].fields, NULL, table->arena, &fields, why));
    if (fields.type != JSON_OBJECT)
        return why_set(why, INVALID, "the fields of a sample are no object");
    table->has_fields[row] = true;
    table->with_input++;
    uint64_t here = 0;
    for (uint32_t i = 0; i < fields.count; i++) {
        size_t column = column_of(table, fields.members[i].name);
        if (column == LINT_FIELDS_MAX || fields.members[i].value.type != JSON_STRING)
            continue;
        table->cells[row][column] = cell_of(fields.members[i].value.text);
        here |= UINT64_C(1) << column;
    }
    table->everywhere &= here;
    return OK;
}

/* ---- grouping ---- */

static uint64_t mix(uint64_t hash, uint64_t more)
{
    hash = (hash ^ more) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 29;
}

static uint64_t hash_of(const struct lint_table *table, size_t row, uint64_t columns)
{
    uint64_t hash = 1;
    for (size_t i = 0; i < table->column_count; i++)
        if (COLUMNS(columns, i))
            hash = mix(hash, table->cells[row][i] + i);
    return hash;
}

static int by_group(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    if (x->group != y->group)
        return x->group < y->group ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

/* The rows with fields, sorted by what they hold in these columns, and by age within. */
static const struct place *sorted(const struct lint_table *table, uint64_t columns, size_t *ret_count)
{
    size_t count = 0;
    for (size_t row = 0; row < table->traffic->sample_count; row++)
        if (table->has_fields[row])
            table->places[count++] = (struct place){hash_of(table, row, columns), row};
    qsort(table->places, count, sizeof *table->places, by_group);
    *ret_count = count;
    return table->places;
}

static size_t distinct(const struct lint_table *table, uint64_t columns)
{
    size_t count, groups = 0;
    const struct place *places = sorted(table, columns, &count);
    for (size_t i = 0; i < count; i++)
        groups += i == 0 || places[i].group != places[i - 1].group;
    return groups;
}

/* Groups of rows that hold the same in these columns, with two rows or more. */
static size_t repeated(const struct lint_table *table, uint64_t columns)
{
    size_t count, groups = 0;
    const struct place *places = sorted(table, columns, &count);
    for (size_t i = 1; i < count; i++)
        groups += places[i].group == places[i - 1].group && (i == 1 || places[i - 2].group != places[i].group);
    return groups;
}

/* ---- which fields count ---- */

/* New in every row, while rows agree in everything else that counts, and that names a thing: it is about the attempt. */
static bool behaves_like_an_attempt(const struct lint_table *table, uint64_t core, size_t column)
{
    uint64_t rest = core & ~(UINT64_C(1) << column);
    bool thing = false;
    for (size_t i = 0; i < table->column_count; i++)
        thing = thing || (COLUMNS(rest, i) && shape_names_a_thing(table->names[i]));
    return thing && distinct(table, UINT64_C(1) << column) == table->with_input && repeated(table, rest) > 0;
}

static void find_core(struct lint_table *table, struct lint_report *report)
{
    uint64_t named = 0;
    for (size_t i = 0; i < table->column_count; i++)
        if (!shape_is_attempt(table->names[i]))
            named |= UINT64_C(1) << i;
    table->core = named;
    for (size_t i = 0; i < table->column_count; i++)
        if (COLUMNS(named, i) && !shape_names_a_thing(table->names[i]) && behaves_like_an_attempt(table, table->core, i))
            table->core &= ~(UINT64_C(1) << i);
    for (size_t i = 0; i < table->column_count && report->ignored_count < LINT_NAMES_MAX; i++)
        if (!COLUMNS(table->core, i))
            report->ignored[report->ignored_count++] = table->names[i];
}

static struct lint_finding *add(struct lint_report *report, enum lint_code code, bool problem, int64_t count, int64_t of)
{
    struct lint_finding *finding = &report->findings[report->finding_count++];
    *finding = (struct lint_finding){.code = code, .problem = problem, .count = count, .of = of};
    return finding;
}

static int64_t at_us(const struct lint_table *table, const struct place *place)
{
    return table->traffic->samples[place->row].at_us;
}

/* ---- the findings ---- */

static void find_never_repeats(const struct lint_table *table, struct lint_report *report)
{
    size_t count, first = 0, second = 0;
    int64_t again = 0;
    const struct place *places = sorted(table, table->core, &count);
    for (size_t i = 1; table->core != 0 && i < count; i++) {
        const struct place *a = &places[i - 1], *b = &places[i];
        bool same = a->group == b->group && at_us(table, b) - at_us(table, a) < AGAIN_US;
        bool windows = bytes_eq(table->windows[a->row], table->windows[b->row]);
        if (!same || windows) /* a key that differs only in its day or hour says that another time is another thing */
            continue;
        if (again++ == 0)
            first = a->row, second = b->row;
    }
    if (again == 0)
        return;
    struct lint_finding *finding = add(report, LINT_NEVER_REPEATS, again > 1, again, (int64_t)table->with_input);
    finding->examples[0] = table->traffic->samples[first].key;
    finding->examples[1] = table->traffic->samples[second].key;
}

static int by_bytes(const void *a, const void *b)
{
    return bytes_cmp(*(const struct bytes *)a, *(const struct bytes *)b);
}

static void find_random(const struct lint_table *table, struct lint_report *report)
{
    const struct lint_traffic *traffic = table->traffic;
    struct bytes *parts = arena_zalloc(table->arena, traffic->sample_count + 1, sizeof *parts), example = BYTES_NONE;
    size_t count = 0;
    int64_t fresh = 0;
    for (size_t i = 0; parts != NULL && i < traffic->sample_count; i++) {
        parts[count] = shape_random(traffic->samples[i].key);
        if (parts[count].at == NULL)
            continue;
        example = traffic->samples[i].key;
        count++;
    }
    if (parts != NULL)
        qsort(parts, count, sizeof *parts, by_bytes);
    for (size_t i = 0; parts != NULL && i < count; i++)
        fresh += (i == 0 || !bytes_eq(parts[i], parts[i - 1])) && (i + 1 == count || !bytes_eq(parts[i], parts[i + 1]));
    if (fresh < ENOUGH || fresh * 2 < (int64_t)traffic->sample_count)
        return;
    bool proven = report->finding_count > 0 && report->findings[0].code == LINT_NEVER_REPEATS;
    add(report, LINT_RANDOM, proven, fresh, (int64_t)traffic->sample_count)->examples[0] = example;
}

static void find_clock(const struct lint_table *table, struct lint_report *report)
{
    const struct lint_traffic *traffic = table->traffic;
    struct bytes example = BYTES_NONE;
    int64_t count = 0;
    for (size_t i = 0; i < traffic->sample_count; i++) {
        if (!shape_clock(traffic->samples[i].key, traffic->samples[i].at_us))
            continue;
        example = traffic->samples[i].key;
        count++;
    }
    if (count >= ENOUGH && count * 2 >= (int64_t)traffic->sample_count)
        add(report, LINT_CLOCK, true, count, (int64_t)traffic->sample_count)->examples[0] = example;
}

static void find_too_broad(const struct lint_table *table, struct lint_report *report)
{
    const struct lint_traffic *traffic = table->traffic;
    if (traffic->reused == 0)
        return;
    struct lint_finding *finding = add(report, LINT_TOO_BROAD, true, traffic->reused, (int64_t)traffic->sample_count);
    for (size_t i = 0; i < traffic->reuse_count && finding->field_count < LINT_NAMES_MAX; i++)
        finding->fields[finding->field_count++] = traffic->reuses[i].field;
}

struct folded {
    struct bytes text, key;
};

static int by_folded(const void *a, const void *b)
{
    return bytes_cmp(((const struct folded *)a)->text, ((const struct folded *)b)->text);
}

static void find_near_equal(const struct lint_table *table, struct lint_report *report)
{
    const struct lint_traffic *traffic = table->traffic;
    struct folded *all = arena_zalloc(table->arena, traffic->sample_count + 1, sizeof *all);
    int64_t count = 0;
    size_t at = 0;
    for (size_t i = 0; all != NULL && i < traffic->sample_count; i++)
        all[i] = (struct folded){shape_folded(traffic->samples[i].key, table->arena), traffic->samples[i].key};
    if (all == NULL || table->arena->failed)
        return;
    qsort(all, traffic->sample_count, sizeof *all, by_folded);
    for (size_t i = 1; i < traffic->sample_count; i++) {
        if (!bytes_eq(all[i].text, all[i - 1].text))
            continue;
        if (count++ == 0)
            at = i;
    }
    if (count == 0)
        return;
    struct lint_finding *finding = add(report, LINT_NEAR_EQUAL, true, count, (int64_t)traffic->sample_count);
    finding->examples[0] = all[at - 1].key;
    finding->examples[1] = all[at].key;
}

/* ---- the proposal ---- */

static bool is_refused_for(const struct lint_table *table, size_t column)
{
    for (size_t i = 0; i < table->traffic->reuse_count; i++)
        if (bytes_eq(table->traffic->reuses[i].field, table->names[column]))
            return true;
    return false;
}

/* The others say it already, and enough rows show that. */
static bool follows(const struct lint_table *table, uint64_t columns, size_t column)
{
    uint64_t rest = columns & ~(UINT64_C(1) << column);
    return COLUMNS(columns, column) && rest != 0 && !is_refused_for(table, column) &&
           distinct(table, rest) == distinct(table, columns) && repeated(table, rest) >= EVIDENCE;
}

/* Leaves out what follows from the others: what has most values first, since that is text; what names a thing, last. */
static uint64_t shortened(const struct lint_table *table, uint64_t columns)
{
    for (int things = 0; things < 2; things++)
        for (;;) {
            size_t best = LINT_FIELDS_MAX, most = 1;
            for (size_t i = 0; i < table->column_count; i++) {
                size_t values = distinct(table, UINT64_C(1) << i);
                if (shape_names_a_thing(table->names[i]) == (things == 1) && values > most && follows(table, columns, i))
                    best = i, most = values;
            }
            if (best == LINT_FIELDS_MAX)
                break;
            columns &= ~(UINT64_C(1) << best);
        }
    return columns;
}

static size_t count_of(uint64_t columns)
{
    size_t count = 0;
    for (; columns != 0; columns &= columns - 1)
        count++;
    return count;
}

/* Words that a template takes for something else need `input.` in front of them. */
static bool is_reserved(struct bytes name)
{
    static const char *const words[] = {"hash", "day",   "week",   "month",   "quarter", "year",
                                        "hour", "today", "window", "billing", "input"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (bytes_is(name, words[i]))
            return true;
    return false;
}

static bool can_stand_in_a_template(struct bytes name)
{
    for (size_t i = 0; i < name.len; i++)
        if (name.at[i] == '{' || name.at[i] == '}' || name.at[i] == ':' || name.at[i] == '.' || (unsigned char)name.at[i] < 0x20)
            return false;
    return name.len > 0;
}

static void write_template(const struct lint_table *table, uint64_t columns, struct lint_report *report)
{
    struct buf text;
    buf_init(&text, 8 << 10);
    buf_add(&text, table->traffic->workflow);
    for (int things = 1; things >= 0; things--) /* what names a thing comes first: so a person reads it */
        for (size_t i = 0; i < table->column_count; i++)
            if (COLUMNS(columns, i) && shape_names_a_thing(table->names[i]) == (things == 1))
                buf_printf(&text, ":{%s%.*s}", is_reserved(table->names[i]) ? "input." : "", BYTES_ARG(table->names[i]));
    report->proposed = text.failed ? BYTES_NONE : arena_dup(table->arena, buf_bytes(&text));
    buf_release(&text);
}

/* Which of the sample would have been one intent under the new key. */
static void back_test(const struct lint_table *table, uint64_t columns, struct lint_report *report)
{
    size_t count, begin = 0;
    const struct place *places = sorted(table, columns, &count);
    for (size_t i = 1; i < count; i++) {
        if (places[i].group != places[i - 1].group) {
            begin = i;
            continue;
        }
        bool same = hash_of(table, places[i].row, table->core) == hash_of(table, places[begin].row, table->core);
        bool soon = at_us(table, &places[i]) - at_us(table, &places[i - 1]) < AGAIN_US;
        *(!same ? &report->wrong : soon ? &report->caught : &report->later) += 1;
    }
}

static void propose(const struct lint_table *table, struct lint_report *report)
{
    bool wanted = false;
    for (size_t i = 0; i < report->finding_count; i++)
        wanted = wanted || report->findings[i].problem;
    uint64_t columns = table->core & table->everywhere;
    for (size_t i = 0; i < table->column_count; i++)
        if (COLUMNS(columns, i) && !can_stand_in_a_template(table->names[i]))
            columns &= ~(UINT64_C(1) << i);
    if (!wanted || table->with_input < ENOUGH || columns == 0 || count_of(columns) > CANDIDATES_MAX)
        return;
    columns = shortened(table, columns);
    if (count_of(columns) > LINT_PROPOSED_MAX)
        return;
    back_test(table, columns, report);
    if (report->wrong == 0)
        write_template(table, columns, report);
}

/* ---- all of it ---- */

static enum status read_table(struct lint_table *table, struct why *why)
{
    size_t count = table->traffic->sample_count;
    table->cells = arena_zalloc(table->arena, count + 1, sizeof *table->cells);
    table->has_fields = arena_zalloc(table->arena, count + 1, sizeof *table->has_fields);
    table->windows = arena_zalloc(table->arena, count + 1, sizeof *table->windows);
    table->places = arena_zalloc(table->arena, count + 1, sizeof *table->places);
    if (table->cells == NULL || table->has_fields == NULL || table->windows == NULL || table->places == NULL)
        return why_set(why, FULL, "no memory for the sample");
    table->everywhere = ~UINT64_C(0);
    for (size_t i = 0; i < count; i++) {
        TRY(read_row(table, i, why));
        table->windows[i] = shape_without_windows(table->traffic->samples[i].key, table->arena);
    }
    return OK;
}

enum status lint_run(const struct lint_traffic *traffic, struct arena *arena, struct lint_report *ret, struct why *why)
{
    ASSERT(traffic->sample_count <= LINT_SAMPLES_MAX);
    struct lint_table table = {.traffic = traffic, .arena = arena};
    struct lint_report report = {.sampled = traffic->sample_count};
    TRY(read_table(&table, why));
    report.with_input = table.with_input;
    find_core(&table, &report);
    find_never_repeats(&table, &report);
    find_random(&table, &report);
    find_clock(&table, &report);
    find_too_broad(&table, &report);
    find_near_equal(&table, &report);
    if (table.with_input == 0 && traffic->sample_count > 0)
        add(&report, LINT_NO_INPUT, false, (int64_t)traffic->sample_count, (int64_t)traffic->sample_count);
    propose(&table, &report);
    if (arena->failed)
        return why_set(why, FULL, "no memory for the sample");
    *ret = report;
    return OK;
}

void lint_explain(const struct lint_finding *finding, struct buf *text, struct buf *fix)
{
    static const struct {
        const char *text, *fix;
    } words[] = {
        [LINT_NEVER_REPEATS] =
            {"The same contents came again within a day %lld times, each time under a new key, so no duplicate was "
             "recognised.",
             "Make the key from fields that stay the same when the caller tries again."},
        [LINT_RANDOM] = {"%lld keys hold a random id that came only once.",
                         "When the id is made for the call, leave it out of the key. When it is the event's own, this is fine."},
        [LINT_CLOCK] = {"%lld keys hold the time of the call, to the minute or finer, so a retry has another key.",
                        "Use the event's own time, and a window such as {day} or {window:15m}."},
        [LINT_TOO_BROAD] =
            {"%lld claims were refused because their key was used for other contents before.",
             "Add the fields that differ to the key, or ignore them in the policy when they may differ between attempts."},
        [LINT_NEAR_EQUAL] = {"%lld keys differ from another one only in upper and lower case or in white space.",
                             "Bring the values to one form before the key is made; a template trims white space."},
        [LINT_NO_INPUT] = {"%lld claims brought no input, so nobody can tell whether different keys mean the same thing.",
                           "Send what the claim is about as its input; only hashes of it are kept."},
    };
    _Static_assert(sizeof words / sizeof *words == LINT_CODES, "one row for each");
    struct bytes sentence = bytes_of(words[finding->code].text), before = sentence;
    const char *number = strstr(words[finding->code].text, "%lld");
    before.len = (size_t)(number - sentence.at);
    buf_add(text, before);
    buf_add_i64(text, finding->count);
    buf_add_cstr(text, number + strlen("%lld"));
    buf_add_cstr(fix, words[finding->code].fix);
}
