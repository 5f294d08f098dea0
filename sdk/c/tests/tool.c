/*
 * tool: the library from a command line, for tests in another language. It uses what semel.h says and nothing else.
 *
 *   tool key TEMPLATE ZONE TIME NOW_US INPUT      "-" for none
 *   tool canonical JSON
 *   tool downstream SPACE WORKFLOW KEY
 *   tool script WHERE                             reads lines, one call each; see `verbs` below
 *   tool storm WHERE WORKFLOW THREADS ROUNDS      every thread wants to do the same things
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "semel.h"

static const char *given(const char *text)
{
    return strcmp(text, "-") == 0 ? NULL : text;
}

static int show_problem(enum semel_status status, const struct semel_problem *problem)
{
    printf("%s\t%s\t%s\n", semel_status_name(status), problem->field, problem->text);
    return 0;
}

static int key(char **args)
{
    const struct semel_key_template key_template = {args[0], given(args[1]), given(args[2]), strtoll(args[3], NULL, 10)};
    struct semel_problem problem;
    char text[4096];
    enum semel_status status = semel_key(&key_template, given(args[4]), text, sizeof text, &problem);
    if (status != SEMEL_OK)
        return show_problem(status, &problem);
    printf("ok\t%s\n", text);
    return 0;
}

static int canonical(char **args)
{
    struct semel_problem problem;
    char text[1 << 16];
    enum semel_status status = semel_canonical(args[0], text, sizeof text, &problem);
    if (status != SEMEL_OK)
        return show_problem(status, &problem);
    fputs(text, stdout);
    return 0;
}

static int downstream(char **args)
{
    char text[SEMEL_DOWNSTREAM_SIZE];
    semel_make_downstream_key(args[0], args[1], args[2], text);
    puts(text);
    return 0;
}

/* ---- a script ---- */

struct script {
    struct semel *semel;
    struct semel_claim *claim;
};

static enum semel_status do_claim(struct script *script, char **words, bool two_phase)
{
    struct semel_intent intent = {.workflow = words[1], .key = given(words[2]), .two_phase = two_phase};
    intent.lease_ms = words[3] != NULL ? strtoll(words[3], NULL, 10) : 0;
    intent.wait_ms = words[3] != NULL && words[4] != NULL ? strtoll(words[4], NULL, 10) : 0;
    intent.input = words[3] != NULL && words[4] != NULL ? words[5] : NULL;
    semel_claim_free(script->claim);
    return semel_claim(script->semel, &intent, &script->claim);
}

static enum semel_status do_fail(struct script *script, const char *effect)
{
    return semel_fail(script->claim,
                      strcmp(effect, "none") == 0    ? SEMEL_EFFECT_NONE
                      : strcmp(effect, "never") == 0 ? SEMEL_EFFECT_NEVER
                                                     : SEMEL_EFFECT_UNKNOWN,
                      "said by the tool");
}

/* claim W K [LEASE [WAIT [INPUT]]] · claim2 … · sent · confirm JSON · fail none|never|unknown · extend MS · release · keep_alive · sleep MS ·
 * drop · patience MS */
static enum semel_status say(struct script *script, char **words)
{
    const char *verb = words[0];
    if (strcmp(verb, "claim") == 0 || strcmp(verb, "claim2") == 0)
        return do_claim(script, words, strcmp(verb, "claim2") == 0);
    if (strcmp(verb, "sent") == 0)
        return semel_sent(script->claim);
    if (strcmp(verb, "confirm") == 0)
        return semel_confirm(script->claim, words[1]);
    if (strcmp(verb, "fail") == 0)
        return do_fail(script, words[1]);
    if (strcmp(verb, "extend") == 0)
        return semel_extend(script->claim, strtoll(words[1], NULL, 10));
    if (strcmp(verb, "release") == 0)
        return semel_release(script->claim);
    if (strcmp(verb, "keep_alive") == 0)
        return semel_keep_alive(script->claim);
    if (strcmp(verb, "patience") == 0)
        semel_set_patience(script->semel, strtoll(words[1], NULL, 10));
    if (strcmp(verb, "sleep") == 0)
        usleep((useconds_t)strtoll(words[1], NULL, 10) * 1000);
    if (strcmp(verb, "drop") == 0) {
        semel_claim_free(script->claim);
        script->claim = NULL;
    }
    return SEMEL_OK;
}

static void tell(const struct script *script, enum semel_status status)
{
    printf("%s", semel_status_name(status));
    if (script->claim != NULL)
        printf("\t%s\t%" PRId64 "\t%s\t%s\t%s\t%s", semel_intent_id(script->claim), semel_fence(script->claim),
               semel_downstream_key(script->claim),
               semel_result(script->claim, NULL) != NULL ? semel_result(script->claim, NULL) : "",
               semel_is_lost(script->claim) ? "lost" : "held", semel_why(script->claim));
    puts("");
    fflush(stdout);
}

static int run_script(char **args)
{
    struct script script = {0};
    struct semel_problem problem;
    char line[8192];
    enum semel_status status = semel_open(given(args[0]), NULL, &script.semel, &problem);
    if (status != SEMEL_OK)
        return show_problem(status, &problem);
    while (fgets(line, sizeof line, stdin) != NULL) {
        char *words[8] = {0}, *rest = line;
        line[strcspn(line, "\n")] = '\0';
        for (size_t i = 0; i < 7 && rest != NULL; i++)
            words[i] = strsep(&rest, "\t");
        tell(&script, say(&script, words));
    }
    semel_claim_free(script.claim);
    semel_close(script.semel);
    return 0;
}

/* ---- many threads ---- */

struct storm {
    struct semel *semel;
    const char *workflow;
    int rounds;
    atomic_int acts[256], wrong;
};

static void storm_once(struct storm *storm, int round)
{
    char name[32], result[32];
    struct semel_claim *claim;
    snprintf(name, sizeof name, "%d", round);
    snprintf(result, sizeof result, "{\"n\":%d}", round);
    const struct semel_intent intent = {.workflow = storm->workflow, .key = name, .wait_ms = 60000, .lease_ms = 30000};
    enum semel_status status = semel_claim(storm->semel, &intent, &claim);
    if (status == SEMEL_PROCEED) {
        atomic_fetch_add(&storm->acts[round], 1);
        status = semel_confirm(claim, result) == SEMEL_OK ? SEMEL_REPLAY : SEMEL_INVALID;
    } else if (status == SEMEL_REPLAY && strcmp(semel_result(claim, NULL), result) != 0) {
        status = SEMEL_INVALID;
    }
    if (status != SEMEL_REPLAY) {
        atomic_fetch_add(&storm->wrong, 1);
        fprintf(stderr, "round %d: %s: %s\n", round, semel_status_name(status), semel_why(claim));
    }
    semel_claim_free(claim);
}

static void *storm_thread(void *arg)
{
    struct storm *storm = arg;
    for (int i = 0; i < storm->rounds; i++)
        storm_once(storm, i);
    return NULL;
}

static int run_storm(char **args)
{
    static struct storm storm;
    pthread_t threads[64];
    int count = (int)strtol(args[2], NULL, 10), wrong;
    storm.workflow = args[1];
    storm.rounds = (int)strtol(args[3], NULL, 10);
    if (count > 64 || storm.rounds > 256 || semel_open(args[0], NULL, &storm.semel, NULL) != SEMEL_OK)
        return 1;
    for (int i = 0; i < count; i++)
        if (pthread_create(&threads[i], NULL, storm_thread, &storm) != 0)
            return 1;
    for (int i = 0; i < count; i++)
        pthread_join(threads[i], NULL);
    wrong = atomic_load(&storm.wrong);
    for (int i = 0; i < storm.rounds; i++)
        wrong += atomic_load(&storm.acts[i]) != 1;
    semel_close(storm.semel);
    printf("%d rounds, %d wrong\n", storm.rounds, wrong);
    return wrong != 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int count;
        int (*run)(char **args);
    } commands[] = {{"key", 5, key},
                    {"canonical", 1, canonical},
                    {"downstream", 3, downstream},
                    {"script", 1, run_script},
                    {"storm", 4, run_storm}};
    for (size_t i = 0; argc > 1 && i < sizeof commands / sizeof *commands; i++)
        if (strcmp(argv[1], commands[i].name) == 0 && argc == commands[i].count + 2)
            return commands[i].run(argv + 2);
    fputs("usage: tool key|canonical|downstream|script|storm …\n", stderr);
    return 2;
}
