/*
 * A stream of records through match/: each is compared with the leads that its keys find, and joins one, waits for a person, or is
 * new. Lines on stdin, cells by tabs: cluster, source, name, given, family, email, phone, company, region, postcode, born. The first
 * argument is the region of national phone numbers ("" for none); a second one, "answered", lets somebody who knows the truth answer
 * every review at once. A third, "show", prints what went wrong. Numbers go to stdout, one a line.
 */
#include "match/match.h"

#include <time.h>

enum { CELLS = 11, SLOTS = 1 << 18, CANDIDATES_MAX = 200, GENERIC = 64, LINE_MAX_SIZE = 16384, RECORDS_MAX = 1 << 17 };

struct posting {
    uint32_t lead;
    struct posting *next;
};

struct slot {
    uint64_t hash;
    uint32_t count;
    struct posting *first;
};

struct lead {
    struct match_person *person;
    uint32_t merged_into; /* itself when it lives */
    uint32_t first_record;
};

static struct {
    struct arena memory;
    struct slot slots[SLOTS];
    struct lead leads[RECORDS_MAX];
    uint32_t lead_count;
    uint32_t lead_of[RECORDS_MAX], truth_of[RECORDS_MAX], source_of[RECORDS_MAX];
    uint32_t record_count;
    uint64_t auto_right, auto_wrong, bridged_right, bridged_wrong, bridge_asked, review_right, review_wrong, review_count,
        created;
    uint64_t make_ns, keys_ns, compare_ns, compare_count, compare_records;
    bool answered, show;
    struct bytes region;
} world;

/* Of this thread alone: the machine may be busy with others. */
static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

static uint32_t living(uint32_t lead)
{
    while (world.leads[lead].merged_into != lead)
        lead = world.leads[lead].merged_into;
    return lead;
}

/* ---- the index ---- */

static struct slot *slot_of(uint64_t hash)
{
    size_t at = hash % SLOTS;
    while (world.slots[at].count > 0 && world.slots[at].hash != hash)
        at = (at + 1) % SLOTS;
    return &world.slots[at];
}

static bool holds(const struct slot *slot, uint32_t lead)
{
    for (const struct posting *at = slot->first; at != NULL; at = at->next)
        if (living(at->lead) == lead)
            return true;
    return false;
}

static void index_add(uint64_t hash, uint32_t lead)
{
    struct slot *slot = slot_of(hash);
    if (holds(slot, lead))
        return;
    struct posting *posting = arena_alloc(&world.memory, sizeof *posting);
    ASSERT(posting != NULL);
    *posting = (struct posting){lead, slot->first};
    slot->hash = hash;
    slot->first = posting;
    slot->count++;
}

/* How many living leads hold it, and who: those not yet in `found`. */
static uint32_t collect(uint64_t hash, uint32_t *found, size_t *count)
{
    const struct slot *slot = slot_of(hash);
    uint32_t seen[GENERIC * 4], seen_count = 0;
    for (const struct posting *at = slot->first; at != NULL && seen_count < GENERIC * 4; at = at->next) {
        uint32_t lead = living(at->lead);
        bool known = false;
        for (uint32_t i = 0; i < seen_count; i++)
            known |= seen[i] == lead;
        if (!known)
            seen[seen_count++] = lead;
    }
    for (uint32_t i = 0; i < seen_count && seen_count <= GENERIC; i++) {
        bool known = false;
        for (size_t j = 0; j < *count; j++)
            known |= found[j] == seen[i];
        if (!known && *count < CANDIDATES_MAX)
            found[(*count)++] = seen[i];
    }
    return seen_count;
}

/* ---- one record ---- */

static uint32_t truth_of_lead(uint32_t lead)
{
    return world.truth_of[world.leads[lead].first_record];
}

static void show_wrong(const char *what, const struct match_person *record, const struct match_person *lead,
                       const struct match_result *result)
{
    if (!world.show)
        return;
    printf("# %s: %s %lld |", what, result->rule, (long long)result->score_mb);
    for (size_t i = 0; i < result->line_count; i++) {
        const struct match_line *line = &result->lines[i];
        printf(" %s %s (%.*s / %.*s) %d;", line->field, line->level, BYTES_ARG(line->ours), BYTES_ARG(line->theirs),
               line->weight_mb);
    }
    printf(" [%.*s / %.*s]\n", BYTES_ARG(record->name_count > 0 ? record->names[0].raw : BYTES("")),
           BYTES_ARG(lead->name_count > 0 ? lead->names[0].raw : BYTES("")));
}

static uint32_t new_lead(const struct match_person *record)
{
    uint32_t lead = world.lead_count++;
    world.leads[lead] = (struct lead){arena_zalloc(&world.memory, 1, sizeof *record), lead, world.record_count};
    ASSERT(world.leads[lead].person != NULL);
    match_person_add(world.leads[lead].person, record);
    return lead;
}

static void merge(uint32_t from, uint32_t into)
{
    match_person_add(world.leads[into].person, world.leads[from].person);
    world.leads[from].merged_into = into;
}

/* Others that are the same too: leads that this record shows to be one. */
static void bridge(const struct match_result *results, const uint32_t *found, size_t count, uint32_t lead)
{
    for (size_t i = 0; i < count; i++) {
        if (results[i].zone != MATCH_SAME || found[i] == lead)
            continue;
        bool right = truth_of_lead(found[i]) == truth_of_lead(lead);
        if (!match_may_bridge(world.leads[found[i]].person, world.leads[lead].person)) {
            world.bridge_asked++;
            if (!(world.answered && right))
                continue;
        } else {
            world.bridged_right += right;
            world.bridged_wrong += !right;
        }
        merge(found[i], lead);
    }
}

/* The lead that somebody who knows names among those that were doubtful, or none. */
static bool answer(const struct match_result *results, const uint32_t *found, size_t count, uint32_t truth, uint32_t *ret)
{
    for (size_t i = 0; i < count; i++) {
        if (results[i].zone != MATCH_REVIEW || truth_of_lead(found[i]) != truth)
            continue;
        *ret = found[i];
        return true;
    }
    return false;
}

static uint32_t decide(struct match_person *record, const uint32_t *found, size_t count, uint32_t truth)
{
    static struct match_result results[CANDIDATES_MAX];
    const struct match_world size = {.leads = world.lead_count};
    struct match_choice choice;
    uint32_t lead = 0;
    uint64_t start = now_ns();
    for (size_t i = 0; i < count; i++)
        match_compare(record, world.leads[found[i]].person, &size, &results[i]);
    match_choose(results, count, &choice);
    world.compare_ns += now_ns() - start;
    world.compare_count += count;
    world.compare_records += count > 0;
    if (choice.zone == MATCH_SAME) {
        lead = found[choice.best];
        bool right = truth_of_lead(lead) == truth;
        world.auto_right += right;
        world.auto_wrong += !right;
        if (!right)
            show_wrong("false merge", record, world.leads[lead].person, &results[choice.best]);
        bridge(results, found, count, lead);
        return lead;
    }
    if (choice.zone == MATCH_REVIEW) {
        bool right = answer(results, found, count, truth, &lead);
        world.review_count++;
        world.review_right += right;
        world.review_wrong += !right;
        show_wrong(right ? "review, same" : "review, other", record, world.leads[found[choice.best]].person,
                   &results[choice.best]);
        if (right && world.answered)
            return lead;
    }
    for (size_t i = 0; i < count && choice.zone == MATCH_NEW; i++)
        if (truth_of_lead(found[i]) == truth)
            show_wrong("missed", record, world.leads[found[i]].person, &results[i]);
    world.created++;
    return new_lead(record);
}

static void take(const struct bytes cells[CELLS], struct arena *arena)
{
    static const uint8_t secret[MATCH_SECRET_SIZE] = "bench";
    const struct match_input input = {.name = cells[2],
                                      .given = cells[3],
                                      .family = cells[4],
                                      .emails = &cells[5],
                                      .email_count = 1,
                                      .phones = &cells[6],
                                      .phone_count = 1,
                                      .company = cells[7],
                                      .region = cells[8],
                                      .phone_region = world.region,
                                      .postcode = cells[9],
                                      .born = cells[10]};
    struct match_person *record = arena_alloc(arena, sizeof *record);
    struct match_key keys[MATCH_KEYS_MAX];
    uint32_t found[CANDIDATES_MAX];
    size_t key_count = 0, count = 0;
    struct why why;
    uint64_t start = now_ns();
    ASSERT(record != NULL);
    ASSERT(match_person_make(&input, arena, record, &why) == OK);
    uint64_t made = now_ns();
    ASSERT(match_keys(record, secret, arena, keys, &key_count, &why) == OK);
    world.make_ns += made - start;
    world.keys_ns += now_ns() - made;
    for (size_t i = 0; i < key_count; i++)
        match_person_holders(record, &keys[i], collect(keys[i].hash, found, &count));
    uint32_t truth = (uint32_t)strtoul(cells[0].at, NULL, 10);
    world.truth_of[world.record_count] = truth;
    world.source_of[world.record_count] = (uint32_t)strtoul(cells[1].at, NULL, 10);
    uint32_t lead = decide(record, found, count, truth);
    match_person_add(world.leads[lead].person, record);
    for (size_t i = 0; i < key_count; i++)
        index_add(keys[i].hash, lead);
    world.lead_of[world.record_count++] = lead;
}

/* ---- pairs ---- */

static void count_pairs(void)
{
    uint64_t both = 0, found = 0, wanted = 0;
    bool two = false;
    for (uint32_t i = 0; i < world.record_count; i++)
        two |= world.source_of[i] != 0;
    for (uint32_t i = 0; i < world.record_count; i++) {
        for (uint32_t j = 0; j < i; j++) {
            if (two && world.source_of[i] == world.source_of[j])
                continue;
            bool is = world.truth_of[i] == world.truth_of[j], said = living(world.lead_of[i]) == living(world.lead_of[j]);
            both += is && said;
            found += said;
            wanted += is;
        }
    }
    printf("pairs_both %llu\npairs_found %llu\npairs_wanted %llu\n", (unsigned long long)both, (unsigned long long)found,
           (unsigned long long)wanted);
}

/* Libraries and rules are set up by the first use, which is not what a record costs. */
static void warm_up(void)
{
    const struct bytes email = BYTES("j\xc3\xb6@example.org"), phone = BYTES("+33 6 12 34 56 78");
    const struct match_input input = {
        .name = BYTES("J\xc3\xbcrgen M\xc3\xbcller"), .emails = &email, .email_count = 1, .phones = &phone, .phone_count = 1};
    struct match_person *person = arena_alloc(&world.memory, sizeof *person);
    struct why why;
    ASSERT(person != NULL);
    ASSERT(match_person_make(&input, &world.memory, person, &why) == OK);
}

static void report(void)
{
    const struct {
        const char *name;
        uint64_t value;
    } rows[] = {{"records", world.record_count},
                {"auto_right", world.auto_right},
                {"auto_wrong", world.auto_wrong},
                {"bridged_right", world.bridged_right},
                {"bridged_wrong", world.bridged_wrong},
                {"bridge_asked", world.bridge_asked},
                {"review", world.review_count},
                {"review_right", world.review_right},
                {"created", world.created},
                {"make_ns", world.make_ns},
                {"keys_ns", world.keys_ns},
                {"compare_ns", world.compare_ns},
                {"compares", world.compare_count}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        printf("%s %llu\n", rows[i].name, (unsigned long long)rows[i].value);
    count_pairs();
}

int main(int argc, char **argv)
{
    static char line[LINE_MAX_SIZE];
    hash_setup();
    arena_init(&world.memory, (size_t)4 << 30);
    world.region = bytes_of(argc > 1 ? argv[1] : "");
    world.answered = argc > 2 && strcmp(argv[2], "answered") == 0;
    world.show = argc > 3;
    warm_up();
    while (fgets(line, sizeof line, stdin) != NULL && world.record_count < RECORDS_MAX) {
        struct bytes cells[CELLS], rest = arena_dup(&world.memory, (struct bytes){line, strcspn(line, "\n")});
        for (size_t i = 0; i < CELLS; i++)
            cells[i] = bytes_cut(&rest, '\t');
        take(cells, &world.memory);
    }
    report();
    return 0;
}
