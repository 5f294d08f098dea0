/*
 * The command line, and the walk through scenarios × models × seeds × points.
 *
 * To be built from: tests/disk.c, tests/crash/{faults,judge,main,memory,scenarios,world}.c and the core with its mutants, like `sim`
 * (-DSEMEL_MUTANTS), linked with -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=free,--wrap=assert_failed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mutant.h"
#include "crash.h"

#define POINTS_MAX 100000
#define ALLOCATIONS_SAMPLED 25 /* of SQLite's, per scenario and seed, where not every one of them is tried */
#define SAMPLED_QUICK 10
#define QUICK_STRIDE 5

#ifdef SEMEL_MUTANTS
enum mutant mutant_active;
static const char *const mutant_names[] = {"NONE",
#define MUTANT_NAME(name, rule) #name,
                                           MUTANTS(MUTANT_NAME)};
static const char *const mutant_rules[] = {"nothing is broken",
#define MUTANT_RULE(name, rule) rule,
                                           MUTANTS(MUTANT_RULE)};
/* The rules that are about what is on the disk; the others are the simulator's to find. */
static const enum mutant mutants_of_the_disk[] = {MUTANT_ACK_EARLY,         MUTANT_AUDIT_APART, MUTANT_SYNC_NORMAL,
                                                  MUTANT_SYNC_BEFORE_WRITE, MUTANT_SYNC_OFF,    MUTANT_IGNORE_FULL,
                                                  MUTANT_NO_REWRITE};
#endif

static const struct {
    const char *name;
    uint64_t seeds;
    const char *meaning;
} models[] = {
#define MODEL_ROW(name, text, seeds, meaning) {text, seeds, meaning},
    MODELS(MODEL_ROW)};

struct options {
    bool scenarios[64], any_scenario;
    bool models[MODEL_COUNT], any_model;
    bool quick, trace, every, mutants;
    uint64_t at, again, seed; /* one run; `at` 0 for all */
};

struct tally {
    uint64_t points, runs, aborted, failed;
};

static struct world world;
static struct tally tallies[MODEL_COUNT];
static bool only_first, stopped; /* one failure is enough */
static char first_violation[sizeof world.violation];

/* ---- one run ---- */

struct ending {
    bool held, went_wrong, wrong_again, aborted;
    uint64_t allocations;
    char violation[sizeof world.violation];
};

static void run_here(const struct scenario *scenario, const struct plan *plan, struct ending *ret)
{
    *ret = (struct ending){.held = world_run(&world, scenario, plan)};
    ret->went_wrong = world.went_wrong;
    ret->wrong_again = world.wrong_again;
    ret->aborted = world.aborted;
    ret->allocations = memory.seen;
    snprintf(ret->violation, sizeof ret->violation, "%s", world.violation);
}

/* A process of its own: one that an assertion ended cannot be cleaned up. */
static void run_apart(const struct scenario *scenario, const struct plan *plan, struct ending *ret)
{
    int ends[2];
    fflush(stdout);
    if (pipe(ends) != 0)
        abort();
    pid_t child = fork();
    if (child == 0) {
        run_here(scenario, plan, ret);
        _exit(write(ends[1], ret, sizeof *ret) == (ssize_t)sizeof *ret ? 0 : 70);
    }
    close(ends[1]);
    ssize_t got = child > 0 ? read(ends[0], ret, sizeof *ret) : -1;
    close(ends[0]);
    int status = 0;
    if (child > 0)
        waitpid(child, &status, 0);
    if (got == (ssize_t)sizeof *ret && status == 0)
        return;
    *ret = (struct ending){.went_wrong = true};
    snprintf(ret->violation, sizeof ret->violation, "the process ended with status %d", status);
}

static void complain(const struct scenario *scenario, const struct plan *plan, const char *violation)
{
    printf("crash: %s, %s, operation %llu, seed %llu: %s\n       replay: crash %s --model %s --at %llu --seed %llu",
           scenario->name, models[plan->model].name, (unsigned long long)plan->at, (unsigned long long)plan->seed, violation,
           scenario->name, models[plan->model].name, (unsigned long long)plan->at, (unsigned long long)plan->seed);
    if (plan->again > 0)
        printf(" --again %llu", (unsigned long long)plan->again);
#ifdef SEMEL_MUTANTS
    if (mutant_active != MUTANT_NONE)
        printf(" --mutant %s", mutant_names[mutant_active]);
#endif
    printf("\n");
}

static struct ending run_one(const struct scenario *scenario, const struct plan *plan)
{
    struct ending outcome;
    (plan->model == MODEL_MEMORY_OWN ? run_apart : run_here)(scenario, plan, &outcome);
    struct tally *tally = &tallies[plan->model];
    tally->runs++;
    tally->aborted += outcome.aborted;
    tally->failed += !outcome.held;
    if (!outcome.held && !only_first)
        complain(scenario, plan, outcome.violation);
    if (!outcome.held && !stopped)
        snprintf(first_violation, sizeof first_violation, "%s, %s, %llu: %.300s", scenario->name, models[plan->model].name,
                 (unsigned long long)plan->at, outcome.violation);
    stopped = stopped || (only_first && !outcome.held);
    return outcome;
}

/* ---- walks ---- */

/* Every point at which a crash makes a difference, until a run sees none. False when one did not hold: the rest would say the same. */
static bool walk_points(const struct options *options, const struct scenario *scenario, struct plan plan, uint64_t stride)
{
    for (plan.at = 1 + plan.seed % stride; plan.at < POINTS_MAX; plan.at += stride) {
        struct ending outcome = run_one(scenario, &plan);
        if (!outcome.held)
            return false;
        if (!outcome.went_wrong)
            break;
        tallies[plan.model].points++;
        if (options->trace)
            printf("  %s %s %llu\n", scenario->name, models[plan.model].name, (unsigned long long)plan.at);
    }
    return true;
}

static bool walk_recovery(const struct options *options, const struct scenario *scenario, struct plan plan)
{
    uint64_t stride = options->quick ? 3 * QUICK_STRIDE : options->every ? 1 : 3;
    for (plan.at = 1 + plan.seed; plan.at < POINTS_MAX; plan.at += stride) {
        for (plan.again = 1; plan.again < POINTS_MAX; plan.again++) {
            struct ending outcome = run_one(scenario, &plan);
            if (!outcome.held)
                return false;
            if (!outcome.went_wrong)
                return true;
            tallies[plan.model].points++;
            if (!outcome.wrong_again)
                break;
        }
    }
    return true;
}

static uint64_t allocations_of(const struct scenario *scenario, enum model model)
{
    struct ending outcome;
    struct plan plan = {.model = model};
    run_here(scenario, &plan, &outcome);
    return outcome.allocations;
}

static bool walk(const struct options *options, const struct scenario *scenario, struct plan plan)
{
    uint64_t stride = options->quick ? QUICK_STRIDE : 1;
    if (plan.model == MODEL_RECOVERY)
        return !(scenario->recovery || options->every) || walk_recovery(options, scenario, plan);
    bool every = options->every || (scenario->every_allocation && !options->quick && plan.seed == 0);
    bool memory_model = plan.model == MODEL_MEMORY_SQLITE || plan.model == MODEL_MEMORY_OWN;
    if (memory_model && !every)
        stride = 1 + allocations_of(scenario, plan.model) / (options->quick ? SAMPLED_QUICK : ALLOCATIONS_SAMPLED);
    return walk_points(options, scenario, plan, stride);
}

static void walk_scenario(const struct options *options, const struct scenario *scenario)
{
    for (int model = 0; model < MODEL_COUNT && !stopped; model++) {
        if (options->any_model && !options->models[model])
            continue;
        bool held = true;
        for (uint64_t seed = 0; held && seed < models[model].seeds; seed++)
            held = walk(options, scenario, (struct plan){.model = (enum model)model, .seed = seed});
    }
}

/* Nothing goes wrong: then it has to work, before anything else is worth trying. */
static bool works(const struct scenario *scenario)
{
    struct ending outcome = {0};
    struct plan plan = {.model = MODEL_PROCESS};
    run_here(scenario, &plan, &outcome);
    if (!outcome.held)
        complain(scenario, &plan, outcome.violation);
    return outcome.held;
}

static int walk_all(const struct options *options)
{
    int broken = 0;
    for (size_t i = 0; i < scenario_count && !stopped; i++) {
        if (options->any_scenario && !options->scenarios[i])
            continue;
        if (only_first || works(&scenarios[i]))
            walk_scenario(options, &scenarios[i]);
        else
            broken++;
    }
    return broken;
}

#ifdef SEMEL_MUTANTS
static uint64_t runs_so_far(void)
{
    uint64_t runs = 0;
    for (int i = 0; i < MODEL_COUNT; i++)
        runs += tallies[i].runs;
    return runs;
}

/* Breaks each rule in turn; every one has to be found. */
static int walk_mutants(const struct options *options)
{
    int alive = 0, count = (int)(sizeof mutants_of_the_disk / sizeof *mutants_of_the_disk);
    only_first = true;
    for (int i = 0; i < count; i++) {
        mutant_active = mutants_of_the_disk[i];
        stopped = false;
        memset(tallies, 0, sizeof tallies);
        (void)walk_all(options);
        printf("%-6s %-18s %-48s", stopped ? "killed" : "ALIVE", mutant_names[mutant_active], mutant_rules[mutant_active]);
        if (stopped)
            printf(" after %llu: %.90s", (unsigned long long)runs_so_far(), first_violation);
        printf("\n");
        alive += !stopped;
    }
    printf("%d passed, %d failed, 0 skipped\n", count - alive, alive);
    return alive > 0;
}
#endif

/* ---- the command line ---- */

static int usage(void)
{
    fprintf(stderr, "usage: crash [SCENARIO…] [--model MODEL] [--quick] [--every] [--mutant NAME | --mutants] [--at N [--seed N] "
                    "[--again N]] [--trace] [--list]\n");
    return 64;
}

static int list(void)
{
    printf("scenarios:\n");
    for (size_t i = 0; i < scenario_count; i++)
        printf("  %s\n", scenarios[i].name);
    printf("models:\n");
    for (int i = 0; i < MODEL_COUNT; i++)
        printf("  %-14s %s (%llu seeds)\n", models[i].name, models[i].meaning, (unsigned long long)models[i].seeds);
    return 0;
}

static bool choose_mutant(const char *name)
{
#ifdef SEMEL_MUTANTS
    for (int i = 0; i < MUTANT_COUNT; i++) {
        if (strcmp(mutant_names[i], name) == 0) {
            mutant_active = (enum mutant)i;
            return true;
        }
    }
#endif
    (void)name;
    return false;
}

static bool choose_model(struct options *options, const char *name)
{
    for (int i = 0; i < MODEL_COUNT; i++)
        if (strcmp(models[i].name, name) == 0)
            return options->models[i] = options->any_model = true;
    return false;
}

static bool choose_scenario(struct options *options, const char *name)
{
    for (size_t i = 0; i < scenario_count; i++)
        if (strcmp(scenarios[i].name, name) == 0)
            return options->scenarios[i] = options->any_scenario = true;
    return false;
}

static bool take_flag(struct options *options, const char *flag)
{
    if (strcmp(flag, "--quick") == 0)
        return options->quick = true;
    if (strcmp(flag, "--every") == 0)
        return options->every = true;
    if (strcmp(flag, "--trace") == 0)
        return options->trace = true;
    if (strcmp(flag, "--mutants") == 0)
        return options->mutants = true;
    return choose_scenario(options, flag);
}

static bool take_value(struct options *options, const char *flag, const char *value)
{
    if (strcmp(flag, "--model") == 0)
        return choose_model(options, value);
    if (strcmp(flag, "--mutant") == 0)
        return choose_mutant(value);
    uint64_t *number = strcmp(flag, "--at") == 0 ? &options->at : strcmp(flag, "--seed") == 0 ? &options->seed : &options->again;
    bool known = strcmp(flag, "--at") == 0 || strcmp(flag, "--seed") == 0 || strcmp(flag, "--again") == 0;
    return known && bytes_to_u64(bytes_of(value), number);
}

static bool parse(struct options *options, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (take_flag(options, argv[i]))
            continue;
        if (i + 1 == argc || !take_value(options, argv[i], argv[i + 1]))
            return false;
        i++;
    }
    return true;
}

static void replay_one(const struct options *options, const struct scenario *scenario, enum model model)
{
    struct plan plan = {model, options->seed, options->at, options->again};
    struct ending outcome = run_one(scenario, &plan);
    printf("%s, %s, %llu: %s%s\n", scenario->name, models[model].name, (unsigned long long)options->at,
           outcome.went_wrong ? "it went wrong" : "nothing went wrong", outcome.held ? " and everything held" : "");
}

static void replay(const struct options *options)
{
    for (size_t i = 0; i < scenario_count; i++)
        for (int model = 0; options->scenarios[i] && model < MODEL_COUNT; model++)
            if (options->models[model])
                replay_one(options, &scenarios[i], (enum model)model);
}

static int sum_up(double seconds, int broken)
{
    struct tally all = {0};
    for (int i = 0; i < MODEL_COUNT; i++) {
        const struct tally *one = &tallies[i];
        if (one->runs > 0)
            printf("  %-14s %7llu points %7llu runs  %s\n", models[i].name, (unsigned long long)one->points,
                   (unsigned long long)one->runs, models[i].meaning);
        all.points += one->points;
        all.runs += one->runs;
        all.aborted += one->aborted;
        all.failed += one->failed;
    }
    printf("crash: %llu crash points, %llu runs, %llu ended by an assertion about memory, %.1f s\n",
           (unsigned long long)all.points, (unsigned long long)all.runs, (unsigned long long)all.aborted, seconds);
    printf("%llu passed, %llu failed, 0 skipped\n", (unsigned long long)(all.runs - all.failed),
           (unsigned long long)all.failed + broken);
    return all.failed + broken > 0;
}

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    struct options options = {0};
    if (argc == 2 && strcmp(argv[1], "--list") == 0)
        return list();
    if (!parse(&options, argc, argv) || (options.at > 0 && !(options.any_scenario && options.any_model)))
        return usage();
    hash_setup();
    log_setup((enum log_level)(LOG_ERROR + 1), LOG_LOGFMT, NULL);
    memory_setup();
    faults_setup();
    world_make_template();
    double start = seconds_now();
#ifdef SEMEL_MUTANTS
    if (options.mutants)
        return walk_mutants(&options);
#endif
    int broken = 0;
    if (options.at > 0)
        replay(&options);
    else
        broken = walk_all(&options);
    return sum_up(seconds_now() - start, broken);
}
