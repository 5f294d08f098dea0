#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/log.h"
#include "base/mutant.h"
#include "sim.h"

#define HISTORIES_FOR_MARKS 2000

#ifdef SEMEL_MUTANTS
enum mutant mutant_active;
#endif

#define MARK_NAME(name) #name,
#define MARK_NAME_SQLITE(name) #name,
static const char *const mark_names[] = {MARKS(MARK_NAME) MARKS_SQLITE(MARK_NAME)};

static const struct {
    const char *name, *rule;
} mutants[] = {{"NONE", "nothing is broken"},
#define MUTANT_ROW(name, rule) {#name, rule},
               MUTANTS(MUTANT_ROW)
#undef MUTANT_ROW
};

struct options {
    enum tier tier;
    uint64_t seed, histories;
    int64_t seconds;
    bool trace, quiet, want_violation;
};

static int64_t monotonic_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static int usage(void)
{
    fprintf(stderr,
            "usage: sim [--tier memory|sqlite] [--seed N] [--histories N] [--seconds N] [--trace] [--mutant NAME] [--mutants]\n");
    return 64;
}

static bool missing_marks(const struct options *options, uint64_t histories)
{
    bool missing = false;
    size_t count = options->tier == TIER_SQLITE ? MARK_COUNT : MARK_SHARED_COUNT;
    for (size_t i = 0; i < count; i++) {
        if (!options->quiet)
            printf("  %-22s %llu\n", mark_names[i], (unsigned long long)marks[i]);
        if (marks[i] == 0 && histories >= HISTORIES_FOR_MARKS) {
            printf("sim: no history reached %s; this run proves less than it should\n", mark_names[i]);
            missing = true;
        }
    }
    return missing;
}

static void complain(const struct sim *sim, const struct options *options, uint64_t seed)
{
    const char *tier = options->tier == TIER_MEMORY ? "memory" : "sqlite";
#ifdef SEMEL_MUTANTS
    const char *mutant = mutants[mutant_active].name;
#else
    const char *mutant = "NONE";
#endif
    printf("sim: %s\n     replay: sim --tier %s --seed %llu --histories 1 --trace%s%s\n", sim->violation, tier,
           (unsigned long long)seed, strcmp(mutant, "NONE") != 0 ? " --mutant " : "", strcmp(mutant, "NONE") != 0 ? mutant : "");
}

/* Runs histories until there are enough, time is up, or one goes wrong; true when none did. */
static bool run(const struct options *options, uint64_t *ret_histories)
{
    static struct sim sim;
    int64_t start = monotonic_us(), said = start;
    uint64_t n = 0, steps = 0, commands = 0;
    for (; options->histories == 0 || n < options->histories; n++) {
        int64_t now = monotonic_us();
        if (options->seconds > 0 && now - start > options->seconds * 1000000)
            break;
        if (!sim_run(&sim, options->seed + n, options->tier, options->trace)) {
            *ret_histories = n + 1;
            if (!options->want_violation)
                complain(&sim, options, options->seed + n);
            return false;
        }
        steps += sim.steps;
        commands += sim.commands;
        if (!options->quiet && now - said > 60 * INT64_C(1000000)) {
            said = now;
            printf("sim: %llu histories, 0 violations\n", (unsigned long long)n + 1);
            fflush(stdout);
        }
    }
    double seconds = (double)(monotonic_us() - start) / 1e6;
    if (!options->quiet)
        printf("sim: %llu histories on the %s tier, 0 violations, %llu steps, %llu commands, %.1f s, %.0f histories/s\n",
               (unsigned long long)n, options->tier == TIER_MEMORY ? "memory" : "sqlite", (unsigned long long)steps,
               (unsigned long long)commands, seconds, (double)n / seconds);
    *ret_histories = n;
    return true;
}

#ifdef SEMEL_MUTANTS
/* Which tier can see it: what happens below the store only the simulated disk shows. */
static enum tier tier_of(enum mutant mutant)
{
    bool disk = mutant == MUTANT_SYNC_NORMAL || mutant == MUTANT_SYNC_BEFORE_WRITE || mutant == MUTANT_SYNC_OFF ||
                mutant == MUTANT_NO_REWRITE;
    return disk ? TIER_SQLITE : TIER_MEMORY;
}

static int run_mutants(const struct options *given)
{
    int survived = 0;
    for (int i = 1; i < MUTANT_COUNT; i++) {
        struct options options = *given;
        static struct sim sim;
        mutant_active = (enum mutant)i;
        options.tier = tier_of(mutant_active);
        uint64_t n = 0;
        bool killed = false;
        for (; n < given->histories && !killed; n++)
            killed = !sim_run(&sim, options.seed + n, options.tier, false);
        printf("%-6s %-16s %-58s %s", killed ? "killed" : "ALIVE", mutants[i].name, mutants[i].rule,
               options.tier == TIER_SQLITE ? "sqlite" : "memory");
        if (killed)
            printf("  after %llu: %.12s\n", (unsigned long long)n, sim.violation);
        else
            printf("\n");
        fflush(stdout);
        survived += !killed;
    }
    printf("%d passed, %d failed, 0 skipped\n", MUTANT_COUNT - 1 - survived, survived);
    return survived > 0;
}

static bool choose_mutant(const char *name)
{
    for (int i = 0; i < MUTANT_COUNT; i++) {
        if (strcmp(mutants[i].name, name) == 0) {
            mutant_active = (enum mutant)i;
            return true;
        }
    }
    return false;
}
#endif

int main(int argc, char **argv)
{
    struct options options = {.tier = TIER_MEMORY, .seed = 1, .histories = 0};
    bool all_mutants = false;
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        uint64_t number = 0;
        bool numeric = bytes_to_u64(bytes_of(value), &number);
        if (strcmp(argv[i], "--trace") == 0)
            options.trace = true;
        else if (strcmp(argv[i], "--quiet") == 0)
            options.quiet = true;
        else if (strcmp(argv[i], "--mutants") == 0)
            all_mutants = true;
        else if (strcmp(argv[i], "--tier") == 0 && i++ > 0)
            options.tier = strcmp(value, "sqlite") == 0 ? TIER_SQLITE : TIER_MEMORY;
#ifdef SEMEL_MUTANTS
        else if (strcmp(argv[i], "--mutant") == 0 && choose_mutant(value))
            i++;
#endif
        else if (strcmp(argv[i], "--seed") == 0 && numeric && i++ > 0)
            options.seed = number;
        else if (strcmp(argv[i], "--histories") == 0 && numeric && i++ > 0)
            options.histories = number;
        else if (strcmp(argv[i], "--seconds") == 0 && numeric && i++ > 0)
            options.seconds = (int64_t)number;
        else
            return usage();
    }
    if (options.histories == 0 && options.seconds == 0)
        options.histories = all_mutants ? 60000 : 1000;
    hash_setup();
    log_setup((enum log_level)(LOG_ERROR + 1), LOG_LOGFMT, NULL);
#ifdef SEMEL_MUTANTS
    if (all_mutants)
        return run_mutants(&options);
#endif
    (void)all_mutants;
    uint64_t histories = 0;
    if (!run(&options, &histories) || missing_marks(&options, histories)) {
        printf("0 passed, 1 failed, 0 skipped\n");
        return 1;
    }
    printf("%llu passed, 0 failed, 0 skipped\n", (unsigned long long)histories);
    return 0;
}
