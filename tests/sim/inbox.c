/* inbox: senders whose deliveries come in by the real door (flow/intake.h), once or again and again, and the daemon's flow: created
 * at the start, gone with the process. Now and then the world is idle for minutes or days, and some of what was sent comes once
 * more. */
#include <stdio.h>
#include <stdlib.h>

#include "flow/intake.h"
#include "sim.h"

#define ANSWER_MAX_US (900 * WHEN_MS) /* a sender that has heard nothing sends again */
#define TICK_US (300 * WHEN_MS)
#define SENDING_END_US (6 * WHEN_SECOND)

/* ---- the rules ---- */

#define PLACE \
    "{provider: http, url: 'https://example.com', capability: idempotent, key_header: Idempotency-Key, window: 1m, owner: dana}"
#define RULES "preset: json, verify: none, window: 24h, across: 24h, loop: 4/10m"
#define WORDS "name: '{name}', text: '{text}', identities: [{email: '{from}'}], automatic: {by: robot}"
#define CHAT(more)                                                                                                          \
    "  chat: {" RULES more ", events: [{kind: message, split: 'items[]', delivery: '{id}', thread: 'room:{thread}', " WORDS \
    "}]}\n"
#define FORM(more) "  form: {" RULES more ", events: [{kind: lead, delivery: '{id}', key: 'order:{key}', " WORDS "}]}\n"
#define MAIL(more) "  mail: {" RULES more ", events: [{kind: message, key: 'order:{key}', " WORDS "}]}\n"
#define BARE(more) "  bare: {" RULES more ", events: [{kind: event, name: '{name}'}]}\n"
#define KEPT "  kept: {" RULES ", keep: 1h, events: [{kind: message, delivery: '{id}', " WORDS "}]}\n"
#define HEAD "version: 1\nowner: dana\ndestinations:\n  keyed: " PLACE "\nsources:\n"
#define ON ", forward: keyed"

enum { RULES_FORWARD = 1, RULES_KEEP, RULES_SHADOW, RULES_COUNT };

/* In the second, nothing is forwarded and one source is unknown. In the third, a source is only watched. */
static const char *const policy_texts[RULES_COUNT] = {
    [RULES_FORWARD] = HEAD CHAT(ON) FORM(ON) MAIL(ON) BARE(ON) KEPT,
    [RULES_KEEP] = HEAD FORM("") MAIL("") BARE("") KEPT,
    [RULES_SHADOW] = HEAD CHAT(ON) FORM(ON ", mode: shadow") MAIL(ON) BARE(ON) KEPT,
};

const char *const channel_names[] = {"chat", "form", "mail", "bare", "kept", NULL};

bool rules_forward(int64_t rules, enum channel channel)
{
    return rules != RULES_KEEP && channel != CHANNEL_KEPT;
}

struct policy *inbox_policy(int rules)
{
    static struct policy *policies[RULES_COUNT];
    static struct yaml_problems problems;
    struct policy **policy = &policies[rules];
    if (*policy != NULL)
        return *policy;
    enum status status = policy_parse(bytes_of(policy_texts[rules]), policy, &problems);
    if (status != OK)
        fprintf(stderr, "sim: policy %d, line %zu: %s\n", rules, problems.at[0].line, problems.at[0].text);
    ASSERT(status == OK);
    effects_shorten(*policy);
    return *policy;
}

static void apply_rules(struct sim *sim)
{
    if (sim->flow == NULL)
        return;
    flow_set_policy(sim->flow, inbox_policy(sim->rules), sim->rules);
    act_set_policy(sim->act, inbox_policy(sim->rules), sim->rules);
}

static void door_changes(struct sim *sim, void *none)
{
    (void)none;
    sim->door = sim->rules;
}

/* The door may be another node's: what it still takes in by the old rules is decided by the new ones. */
static void rules_change(struct sim *sim, void *rules)
{
    sim->rules = (int)(intptr_t)rules;
    sim_say(sim, "the policy is now version %d", sim->rules);
    apply_rules(sim);
    sim_at(sim, sim_below(sim, 2 * WHEN_SECOND), door_changes, NULL);
}

/* ---- the flow's life ---- */

void inbox_boot(struct sim *sim)
{
    if (!sim->has_inbox)
        return;
    struct why why = {""};
    enum status status = flow_open(sim->engine, sim->act, &sim->flow, &why);
    ASSERT(status == OK);
    apply_rules(sim);
    flow_wake(sim->flow);
    effects_hand_over(sim);
}

void inbox_crash(struct sim *sim)
{
    flow_close(sim->flow);
    sim->flow = NULL;
    sim->looked = UINT64_MAX;
}

static void ticks(struct sim *sim, void *none)
{
    if (sim->flow != NULL) {
        flow_tick(sim->flow);
        effects_hand_over(sim);
    }
    sim_at(sim, TICK_US, ticks, none);
}

/* ---- what is said ---- */

static const char *const writers[WRITERS_MAX] = {"ann@acme.example", "jon@acme.example"};

static const char *const texts[LETTERS_MAX] = {
    "What does a weekly coaching session cost, and when could we begin with it?",
    "Our delivery from Tuesday is missing two of the blue chairs that we ordered.",
    "Please send the signed contract to my office in Lyon before the end of March.",
    "Is the garden apartment near the lake still free during the second half of August?",
    "My daughter would like to join the swimming course for beginners on Saturdays.",
    "The invoice shows the wrong tax number, could somebody correct this by tomorrow?",
    "We want twelve vegetarian lunches and a projector for our workshop next Thursday.",
    "Can your mechanic look at the brakes of an old delivery van this afternoon?",
    "I lost the password of the customer portal and never got the recovery link.",
};

static struct bytes text_of(struct sim *sim, const struct letter *letter)
{
    if (letter->kind == LETTER_SHORT)
        return BYTES("Hi");
    if (letter->kind == LETTER_LIKE)
        return arena_printf(&sim->arena, "%s Thanks", texts[letter->number - 1]);
    return bytes_of(texts[letter->number]);
}

static struct bytes body_of(struct sim *sim, const struct letter *letter, enum channel channel)
{
    struct arena *arena = &sim->arena;
    if (channel == CHANNEL_BARE)
        return arena_printf(arena, "{\"name\":\"letter %d\",\"fact\":true}", letter->number);
    bool id = channel != CHANNEL_MAIL, key = letter->keyed && (channel == CHANNEL_FORM || channel == CHANNEL_MAIL);
    struct bytes id_part = arena_printf(arena, "\"id\":\"%s-%d\",", channel_names[channel], letter->number);
    struct bytes key_part = arena_printf(arena, "\"key\":\"%d\",", letter->number);
    return arena_printf(
        arena, "{%.*s%.*s\"name\":\"letter %d\",\"from\":\"%s\",\"thread\":\"%d\",\"by\":\"%s\",\"text\":\"%.*s\"}",
        id ? (int)id_part.len : 0, id_part.at, key ? (int)key_part.len : 0, key_part.at, letter->number, writers[letter->writer],
        letter->writer, letter->automatic ? "robot" : "person", BYTES_ARG(text_of(sim, letter)));
}

/* ---- sending ---- */

struct sending {
    struct letter *letter, *with; /* a chat brings two at once now and then */
    enum channel channel;
    struct intake intake;
    struct engine_command command;
    bool answered;
};

static void send_letter(struct sim *sim, void *arg);

static void plan_sending(struct sim *sim, struct letter *letter, enum channel channel, int64_t after_us)
{
    struct sending *sending = arena_zalloc(&sim->arena, 1, sizeof *sending);
    sending->letter = letter;
    sending->channel = channel;
    sim_at(sim, after_us, send_letter, sending);
}

/* Its sender cannot know whether it was taken in. */
static void sends_again(struct sim *sim, void *arg)
{
    const struct sending *sending = arg;
    if (sending->answered || sim->now_us >= EFFECTS_FAULTS_END_US)
        return;
    for (int i = 0; i < sim->seen_count; i++)
        if (sim->seen[i].letter == sending->letter && sim->seen[i].channel == sending->channel)
            mark(MARK_EVENT_UNHEARD);
    plan_sending(sim, sending->letter, sending->channel, 0);
    if (sending->with != NULL)
        plan_sending(sim, sending->with, sending->channel, 0);
}

static void sender_hears(struct sim *sim, void *arg)
{
    struct sending *sending = arg;
    sending->answered = sending->command.status == OK;
    sim_say(sim, "letter %d by %s: %s", sending->letter->number, channel_names[sending->channel],
            sending->answered ? "acknowledged" : sending->command.why.text);
    for (size_t i = 0; sending->answered && i < sending->intake.order.count; i++)
        judge_acknowledged(sim, sending->intake.order.events[i]);
}

static enum status write_sending(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    return intake_write(store, ledger, &((struct sending *)command->user)->intake, why);
}

/* As src/api/in.c. */
static void staged(struct engine_command *command)
{
    struct sim *sim = sim_current();
    if (sim->dead)
        return;
    if (command->status == OK)
        flow_wake(sim->flow);
    if (!sim_chance(sim, sim->mix.reply_lost))
        sim_at(sim, sim_below(sim, 10 * WHEN_MS), sender_hears, command->user);
}

static struct bytes delivery_of(struct sim *sim, const struct sending *sending)
{
    struct bytes body = body_of(sim, sending->letter, sending->channel);
    if (sending->channel != CHANNEL_CHAT)
        return body;
    if (sending->with == NULL)
        return arena_printf(&sim->arena, "{\"items\":[%.*s]}", BYTES_ARG(body));
    struct bytes with = body_of(sim, sending->with, sending->channel);
    return arena_printf(&sim->arena, "{\"items\":[%.*s,%.*s]}", BYTES_ARG(body), BYTES_ARG(with));
}

/* Another one that comes in the same delivery. */
static struct letter *choose_with(struct sim *sim, const struct sending *sending)
{
    struct letter *other = &sim->letters[sim_below(sim, sim->letter_count)];
    bool goes = sending->channel == CHANNEL_CHAT && sim_below(sim, 3) == 0;
    return goes && other != sending->letter && other->kind != LETTER_FACT && other->sends < SENDS_MAX ? other : NULL;
}

static void send_letter(struct sim *sim, void *arg)
{
    struct sending *sending = arg;
    if (sending->letter->sends >= SENDS_MAX)
        return;
    sim_at(sim, ANSWER_MAX_US + sim_below(sim, ANSWER_MAX_US), sends_again, sending);
    const struct source *source = policy_source(inbox_policy(sim->door), bytes_of(channel_names[sending->channel]));
    if (sim->engine == NULL || source == NULL)
        return;
    sending->letter->sends++;
    sending->with = choose_with(sim, sending);
    if (sending->with != NULL)
        sending->with->sends++;
    static struct pair header = {BYTES("Content-Type"), BYTES("application/json")};
    sending->intake = (struct intake){
        .source = source,
        .space = BYTES("main"),
        .request = {.method = BYTES("POST"),
                    .url = BYTES("https://semel.example/in/x"),
                    .body = delivery_of(sim, sending),
                    .headers = &header,
                    .header_count = 1,
                    .now_us = sim->env.wall_us(&sim->env)},
        .arena = &sim->arena,
    };
    struct why why = {""};
    enum status status = intake_read(&sending->intake, &why);
    ASSERT(status == OK && sending->intake.result.end == RECEIVE_EVENTS &&
           sending->intake.result.count == (sending->with != NULL ? 2 : 1));
    sim_say(sim, "letter %d%s is sent by %s", sending->letter->number, sending->with != NULL ? ", with another one," : "",
            channel_names[sending->channel]);
    sending->command = (struct engine_command){.write = write_sending, .user = sending};
    sim_post(sim, &sending->command, staged);
}

/* ---- copies ---- */

/* A short text comes only by channels that give ids: without them two of them are a double click. A fact has one channel. */
static enum channel any_channel(struct sim *sim, const struct letter *letter)
{
    static const enum channel spoken[] = {CHANNEL_CHAT, CHANNEL_FORM, CHANNEL_KEPT, CHANNEL_MAIL};
    if (letter->kind == LETTER_FACT)
        return CHANNEL_BARE;
    return spoken[sim_below(sim, letter->kind == LETTER_SHORT ? 3 : 4)];
}

static void plan_copy(struct sim *sim, struct letter *letter, int64_t after_us)
{
    plan_sending(sim, letter, sim_below(sim, 3) == 0 ? any_channel(sim, letter) : letter->channel, after_us);
}

/* Nothing happens for long. Then some of what was sent comes again. */
static void idles(struct sim *sim, void *none)
{
    static const int64_t sizes[] = {40 * WHEN_MINUTE, 7 * WHEN_DAY, 40 * WHEN_MINUTE, 7 * WHEN_DAY};
    (void)none;
    int64_t size = sizes[sim_below(sim, 4)];
    sim->idle_us += size;
    sim_say(sim, "nothing happens for %lld minutes", (long long)(size / WHEN_MINUTE));
    for (int i = 0; i < sim->letter_count; i++)
        if (sim->letters[i].sends > 0 && sim_below(sim, 2) == 0)
            plan_copy(sim, &sim->letters[i], sim_below(sim, 600 * WHEN_MS));
}

/* ---- the beginning ---- */

static void draw_letter(struct sim *sim, int number)
{
    struct letter *letter = &sim->letters[number];
    *letter = (struct letter){.number = number,
                              .writer = (int)sim_below(sim, sim->writer_count),
                              .kind = (enum letter_kind)sim_below(sim, LETTER_KINDS),
                              .keyed = sim_below(sim, 2) == 0,
                              .automatic = sim_below(sim, 8) == 0};
    if (letter->kind == LETTER_LIKE && (number == 0 || sim->letters[number - 1].kind != LETTER_LONG))
        letter->kind = LETTER_LONG;
    if (letter->kind == LETTER_LIKE)
        letter->writer = sim->letters[number - 1].writer;
    letter->channel = any_channel(sim, letter);
    int64_t at_us = sim_below(sim, SENDING_END_US);
    plan_sending(sim, letter, letter->channel, at_us);
    for (int64_t n = sim_below(sim, 4); n > 0; n--)
        plan_copy(sim, letter, at_us + (sim_below(sim, 2) ? sim_below(sim, 5 * WHEN_MS) : sim_below(sim, WHEN_SECOND)));
    for (int64_t n = sim_below(sim, 12) == 0 ? LOOP_COUNT + 1 : 0; n > 0; n--)
        plan_sending(sim, letter, letter->channel, at_us + sim_below(sim, 50 * WHEN_MS));
}

void inbox_draw(struct sim *sim)
{
    sim->rules = sim->door = RULES_FORWARD;
    sim->queues = sim_below(sim, 2) == 0;
    bool hurry = sim_below(sim, 4) == 0; /* one person writes and writes */
    sim->writer_count = hurry ? 1 : 1 + (int)sim_below(sim, WRITERS_MAX);
    sim->letter_count = hurry ? LETTERS_MAX : 2 + (int)sim_below(sim, LETTERS_MAX - 1);
    for (int i = 0; i < sim->letter_count; i++)
        draw_letter(sim, i);
    for (int64_t n = hurry ? 0 : sim_below(sim, 4); n > 0; n--)
        sim_at(sim, sim_below(sim, SENDING_END_US), idles, NULL);
    if (sim_below(sim, 3) == 0) {
        int64_t from_us = sim_below(sim, SENDING_END_US);
        sim_at(sim, from_us, rules_change, (void *)(intptr_t)(RULES_KEEP + sim_below(sim, 2)));
        sim_at(sim, from_us + sim_below(sim, 2 * WHEN_SECOND), rules_change, (void *)(intptr_t)RULES_FORWARD);
    }
    sim_at(sim, TICK_US, ticks, NULL);
    sim_at(sim, WHEN_SECOND, desk_looks, NULL);
    sim_at(sim, WHEN_SECOND, talk_operator, NULL);
}
