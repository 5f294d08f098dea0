/* doctor_data: what is in the database. */
#include "base/when.h"
#include "doctor/doctor.h"
#include "lint/lint_read.h"

#define MAIN BYTES("main")
#define OWNERLESS_MAX 1000
#define WORKFLOWS_MAX 50
#define NEWEST_MAX 20000 /* intents that are looked at to find the workflows */
#define OUTBOX_LATE_US (15 * WHEN_MINUTE)
#define EVENTS_LATE_US WHEN_MINUTE
#define CLOCK_APART_US (2 * WHEN_SECOND)
#define CLOCK_BACK_US (5 * WHEN_SECOND) /* the database's clock may be a little ahead */
enum { NOISY_COPIES = 100, NOISY_TIMES = 10 };

struct look {
    struct doctor *doctor;
    const struct doctor_facts *facts;
    const struct policy *policy;
    struct store *store;
    struct why *why;
};

static const char *rough(int64_t us, char ret[32])
{
    ret[when_format_rough(us, ret)] = '\0';
    return ret;
}

static enum status take_number(void *ctx, const void *row, struct why *why)
{
    (void)why;
    *(int64_t *)ctx = *(const int64_t *)row; /* all of these rows are one number */
    return OK;
}

/* ---- schema, server, clock ---- */

static enum status take_schema(void *ctx, const void *row, struct why *why)
{
    (void)why;
    uint64_t version = 0;
    if (bytes_to_u64(((const struct r_schema_version_get *)row)->value, &version))
        *(int64_t *)ctx = (int64_t)version;
    return OK;
}

static enum status look_at_schema(struct look *look)
{
    int64_t stored = 0, own = store_schema_version();
    TRY(store_run(look->store, &SCHEMA_VERSION_GET, NULL, 0, take_schema, &stored, NULL, look->why));
    if (stored == own)
        doctor_say(look->doctor, DOCTOR_OK, "schema", NULL, "The database has the schema of this program, %lld.", (long long)own);
    else
        doctor_say(look->doctor, DOCTOR_PROBLEM, "schema",
                   stored > own ? "Start the newer version of semel on this node too."
                                : "Start semel again: it brings it up to date.",
                   "The database has schema %lld, this program %lld.", (long long)stored, (long long)own);
    return OK;
}

static enum status take_server(void *ctx, const void *at, struct why *why)
{
    (void)why;
    const struct r_doctor_server *row = at;
    struct doctor *doctor = ctx;
    if (!bytes_is(row->fsync, "on"))
        doctor_say(doctor, DOCTOR_PROBLEM, "durability", "Set fsync = on in postgresql.conf and start the server again.",
                   "PostgreSQL does not wait for its disk (fsync = off): what was acknowledged is lost with the power.");
    if (!bytes_is(row->full_pages, "on"))
        doctor_say(doctor, DOCTOR_WARNING, "durability", "Set full_page_writes = on in postgresql.conf.",
                   "PostgreSQL may be left with torn pages after a power cut (full_page_writes = off).");
    if (bytes_is(row->synchronous, "off") || bytes_is(row->synchronous, "local"))
        doctor_say(doctor, DOCTOR_PROBLEM, "durability", "Set synchronous_commit = on for semel's user and database.",
                   "PostgreSQL acknowledges a commit too early (synchronous_commit = %.*s).", BYTES_ARG(row->synchronous));
    return OK;
}

static enum status look_at_server(struct look *look)
{
    size_t before = look->doctor->count;
    if (!look->facts->postgres)
        return OK;
    TRY(store_run(look->store, &DOCTOR_SERVER, NULL, 0, take_server, look->doctor, NULL, look->why));
    doctor_well(look->doctor, before, "durability", "PostgreSQL waits for its disk before it acknowledges a commit.");
    return OK;
}

static enum status look_at_clock(struct look *look)
{
    int64_t database_us = 0, newest = 0, now_us = look->facts->wall_us;
    size_t before = look->doctor->count;
    char text[32];
    TRY(store_run(look->store, &CLOCK_GET, NULL, 0, take_number, &database_us, NULL, look->why));
    TRY(store_run(look->store, &DOCTOR_NEWEST, NULL, 0, take_number, &newest, NULL, look->why));
    int64_t apart_us = database_us > now_us ? database_us - now_us : now_us - database_us;
    if (database_us != 0 && apart_us > CLOCK_APART_US)
        doctor_say(look->doctor, DOCTOR_WARNING, "clock", "Keep both right with NTP.",
                   "This computer's clock and the database server's are %s apart.", rough(apart_us, text));
    if (newest != 0 && id_time_us(newest) > now_us + CLOCK_BACK_US + (database_us != 0 ? apart_us : 0))
        doctor_say(look->doctor, DOCTOR_WARNING, "clock",
                   "Set the clock right, and keep it so with NTP. Safety does not depend on it.",
                   "The newest decision is dated %s ahead of the clock: the clock was set back.",
                   rough(id_time_us(newest) - now_us, text));
    doctor_well(look->doctor, before, "clock", "The clock has not gone back, as far as the decisions tell.");
    return OK;
}

/* ---- effects ---- */

static void say_stranded(void *ctx, struct bytes destination, int64_t effects)
{
    struct look *look = ctx;
    if (effects > 0)
        doctor_say(look->doctor, DOCTOR_PROBLEM, "effects",
                   "Put the destination back into the policy, or cancel them: semel effects ls",
                   "%lld effect%s wait%s for destination '%.*s', which is not in the policy.", (long long)effects,
                   effects == 1 ? "" : "s", effects == 1 ? "s" : "", BYTES_ARG(destination));
}

static enum status take_depth(void *ctx, const void *at, struct why *why)
{
    (void)why;
    struct look *look = ctx;
    const struct r_outbox_depth *row = at;
    int64_t age_us = row->oldest > 0 ? look->facts->wall_us - row->oldest : 0;
    char age[32];
    if (age_us > OUTBOX_LATE_US)
        doctor_say(look->doctor, DOCTOR_WARNING, "effects",
                   "See why: semel effects ls. It may be down, too slow, or out of its rate.",
                   "The oldest effect that is due for '%.*s' waits since %s; %lld are open.", BYTES_ARG(row->destination),
                   rough(age_us, age), (long long)row->open);
    return OK;
}

static enum status look_at_effects(struct look *look)
{
    struct q_outbox_depth depth = {look->facts->wall_us};
    size_t before = look->doctor->count;
    TRY(outbox_stranded(look->store, look->policy, look->doctor->arena, say_stranded, look, look->why));
    TRY(store_run(look->store, &OUTBOX_DEPTH, &depth, 1, take_depth, look, NULL, look->why));
    doctor_well(look->doctor, before, "effects", "No effect is stranded or late.");
    return OK;
}

/* ---- what waits for a person ---- */

static enum status take_cards(void *ctx, const void *at, struct why *why)
{
    (void)why;
    const struct r_exception_count *row = at;
    if (row->overdue > 0)
        doctor_say(ctx, DOCTOR_PROBLEM, "exceptions", "Decide about them: semel exceptions ls",
                   "%lld exception%s %s overdue, of %lld that are open.", (long long)row->overdue, row->overdue == 1 ? "" : "s",
                   row->overdue == 1 ? "is" : "are", (long long)row->open);
    else
        doctor_say(ctx, DOCTOR_OK, "exceptions", NULL, "No exception is overdue; %lld %s open.", (long long)row->open,
                   row->open == 1 ? "is" : "are");
    return OK;
}

static enum status look_at_cards(struct look *look)
{
    struct q_exception_count count = {look->facts->wall_us};
    struct q_doctor_ownerless ownerless = {OWNERLESS_MAX};
    int64_t unknown = 0;
    TRY(store_run(look->store, &EXCEPTION_COUNT, &count, 1, take_cards, look->doctor, NULL, look->why));
    TRY(store_run(look->store, &DOCTOR_OWNERLESS, &ownerless, 1, take_number, &unknown, NULL, look->why));
    if (unknown > 0)
        doctor_say(look->doctor, DOCTOR_PROBLEM, "unknown",
                   "Look at them (semel intents --state unknown) and report this: it must not be.",
                   "%lld outcome%s unknown and nobody is asked about %s.", (long long)unknown, unknown == 1 ? " is" : "s are",
                   unknown == 1 ? "it" : "them");
    else
        doctor_say(look->doctor, DOCTOR_OK, "unknown", NULL, "Every unknown outcome has an owner.");
    return OK;
}

/* ---- what comes in ---- */

static enum status take_waiting(void *ctx, const void *at, struct why *why)
{
    (void)why;
    struct look *look = ctx;
    const struct r_event_waiting_count *row = at;
    int64_t age_us = row->oldest > 0 ? look->facts->wall_us - row->oldest : 0;
    char age[32];
    if (row->count > 0 && age_us > EVENTS_LATE_US)
        doctor_say(look->doctor, DOCTOR_PROBLEM, "events", "See the log of each node for the reason.",
                   "%lld event%s not decided yet, the oldest since %s.", (long long)row->count, row->count == 1 ? " is" : "s are",
                   rough(age_us, age));
    return OK;
}

static enum status take_quiet(void *ctx, const void *at, struct why *why)
{
    (void)why;
    struct look *look = ctx;
    const struct row_source *row = at;
    int64_t now_us = look->facts->wall_us;
    char until[32];
    if (row->muted_until <= now_us && row->limited_until <= now_us)
        return OK;
    bool muted = row->muted_until > now_us;
    when_format(muted ? row->muted_until : row->limited_until, until);
    doctor_say(look->doctor, DOCTOR_WARNING, "events",
               "Hear it again with semel inbox unmute SOURCE; what was kept back can be released.",
               "Source '%.*s' is %s by %.*s until %s.", BYTES_ARG(row->name), muted ? "muted" : "limited", BYTES_ARG(row->actor),
               until);
    return OK;
}

struct noise {
    struct look *look;
    struct bytes source;
    int64_t accepted, suppressed;
};

static void say_noisy(const struct noise *noise)
{
    if (noise->suppressed >= NOISY_COPIES && noise->suppressed >= NOISY_TIMES * noise->accepted)
        doctor_say(noise->look->doctor, DOCTOR_WARNING, "events",
                   "Find out why it sends everything again, or: semel inbox mute SOURCE",
                   "Source '%.*s' is noisy: %lld of its events of the last day were copies, %lld were new.",
                   BYTES_ARG(noise->source), (long long)noise->suppressed, (long long)noise->accepted);
}

/* Rows of one source need not stand together, so it is found among the policy's. */
static enum status take_figure(void *ctx, const void *at, struct why *why)
{
    (void)why;
    struct noise *noise = ctx;
    const struct r_event_count_since *row = at;
    if (!bytes_eq(row->source, noise->source))
        return OK;
    if (row->verdict == EVENT_ACCEPTED || row->verdict == EVENT_RELEASED)
        noise->accepted += row->count;
    else if (row->verdict == EVENT_SUPPRESSED)
        noise->suppressed += row->count;
    return OK;
}

struct figures {
    struct noise *noises;
    size_t count;
};

static enum status take_figures(void *ctx, const void *at, struct why *why)
{
    struct figures *figures = ctx;
    for (size_t i = 0; i < figures->count; i++)
        TRY(take_figure(&figures->noises[i], at, why));
    return OK;
}

static enum status look_at_noise(struct look *look)
{
    const struct policy *policy = look->policy;
    struct q_event_count_since since = {MAIN, id_floor(look->facts->wall_us - WHEN_DAY)};
    struct figures figures = {arena_zalloc(look->doctor->arena, policy->source_count + 1, sizeof(struct noise)),
                              policy->source_count};
    if (figures.noises == NULL)
        return why_set(look->why, FULL, "no memory for a look at the sources");
    for (size_t i = 0; i < figures.count; i++)
        figures.noises[i] = (struct noise){.look = look, .source = policy->sources[i].name};
    TRY(store_run(look->store, &EVENT_COUNT_SINCE, &since, 1, take_figures, &figures, NULL, look->why));
    for (size_t i = 0; i < figures.count; i++)
        say_noisy(&figures.noises[i]);
    return OK;
}

static enum status look_at_events(struct look *look)
{
    struct q_event_waiting_count waiting = {FLOW_WAITING_MAX};
    struct q_source_list quiet = {MAIN};
    TRY(store_run(look->store, &EVENT_WAITING_COUNT, &waiting, 1, take_waiting, look, NULL, look->why));
    TRY(store_run(look->store, &SOURCE_LIST, &quiet, 1, take_quiet, look, NULL, look->why));
    TRY(look_at_noise(look));
    doctor_well(look->doctor, 0, "events", "Events are decided as they come; no source is quiet or noisy.");
    return OK;
}

/* ---- keys ---- */

struct workflows {
    struct arena *arena;
    struct bytes names[WORKFLOWS_MAX];
    size_t count;
    bool more;
};

static enum status take_workflow(void *ctx, const void *at, struct why *why)
{
    struct workflows *workflows = ctx;
    if (workflows->count == WORKFLOWS_MAX) {
        workflows->more = true;
        return OK;
    }
    workflows->names[workflows->count++] = arena_dup(workflows->arena, ((const struct r_lint_workflows *)at)->workflow);
    return workflows->arena->failed ? why_set(why, FULL, "no memory for the workflows") : OK;
}

static void say_finding(struct doctor *doctor, struct bytes workflow, const struct lint_finding *finding)
{
    struct buf text, fix;
    buf_init(&text, 1024);
    buf_init(&fix, 1024);
    lint_explain(finding, &text, &fix);
    buf_add_char(&fix, '\0');
    doctor_say(doctor, finding->problem ? DOCTOR_PROBLEM : DOCTOR_WARNING, "keys", fix.failed ? NULL : fix.at,
               "Workflow '%.*s': %.*s", BYTES_ARG(workflow), BYTES_ARG(buf_bytes(&text)));
    buf_release(&fix);
    buf_release(&text);
}

/* Semel's own keys need no advice. */
static enum status look_at_workflow(struct look *look, struct bytes workflow)
{
    struct arena scratch;
    struct lint_traffic traffic;
    struct lint_report report;
    if (bytes_eq(workflow, FLOW_WORKFLOW))
        return OK;
    arena_init(&scratch, (size_t)256 << 20);
    enum status status =
        lint_read(look->store, MAIN, workflow, look->facts->wall_us - 7 * WHEN_DAY, &scratch, &traffic, look->why);
    if (status == OK)
        status = lint_run(&traffic, &scratch, &report, look->why);
    for (size_t i = 0; status == OK && i < report.finding_count; i++)
        say_finding(look->doctor, workflow, &report.findings[i]);
    arena_release(&scratch);
    return status;
}

static enum status look_at_keys(struct look *look)
{
    size_t before = look->doctor->count;
    struct workflows workflows = {.arena = look->doctor->arena};
    struct q_lint_workflows list = {MAIN, id_floor(look->facts->wall_us - 7 * WHEN_DAY), NEWEST_MAX};
    TRY(store_run(look->store, &LINT_WORKFLOWS, &list, 1, take_workflow, &workflows, NULL, look->why));
    for (size_t i = 0; i < workflows.count; i++)
        TRY(look_at_workflow(look, workflows.names[i]));
    if (workflows.more)
        doctor_say(look->doctor, DOCTOR_WARNING, "keys", "See the others with semel keys lint.",
                   "Only the keys of the first %d workflows were looked at.", WORKFLOWS_MAX);
    doctor_well(look->doctor, before, "keys", "The keys of the last seven days have nothing to complain about.");
    return OK;
}

enum status doctor_look_at_data(struct doctor *doctor, const struct doctor_facts *facts, const struct policy *policy,
                                struct store *store, struct why *why)
{
    static enum status (*const looks[])(struct look *) = {look_at_schema, look_at_server, look_at_clock, look_at_effects,
                                                          look_at_cards,  look_at_events, look_at_keys};
    struct look look = {doctor, facts, policy, store, why};
    for (size_t i = 0; i < sizeof looks / sizeof *looks; i++)
        TRY(looks[i](&look));
    return OK;
}

/* ---- delivery ---- */

static void say_breaker(void *ctx, const struct act_figures *figures)
{
    if (figures->breaker_open)
        doctor_say(ctx, DOCTOR_WARNING, "destinations", "See what it answers: semel effects ls",
                   "Destination '%.*s' keeps failing and is left alone for a while.", BYTES_ARG(figures->destination));
}

void doctor_look_at_delivery(struct doctor *doctor, struct act *act)
{
    act_each(act, say_breaker, doctor);
}
