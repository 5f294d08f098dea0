/* job: one effect on its way through the ledger, the call, and the ledger again. */
#include <stdlib.h>

#include "act/act_own.h"
#include "base/log.h"
#include "base/mutant.h"
#include "base/when.h"

#define LEASE_MARGIN_US (2 * WHEN_SECOND)
#define ARRIVAL_MAX_US (15 * WHEN_SECOND)
#define SAY_AGAIN_US (200 * WHEN_MS)
#define PROBE_AGAIN_US (2 * WHEN_SECOND)
#define LOOK_AFTER_US (100 * WHEN_MS)

int64_t act_lease_us(const struct destination *destination)
{
    return 2 * destination->timeout_us + LEASE_MARGIN_US;
}

int64_t act_arrival_us(const struct destination *destination)
{
    return destination->timeout_us < ARRIVAL_MAX_US ? destination->timeout_us : ARRIVAL_MAX_US;
}

/* ---- birth and death ---- */

static struct job **bucket_of(const struct act *act, int64_t intent)
{
    return (struct job **)&act->buckets[((uint64_t)intent * 0x9E3779B97F4A7C15u) >> 53];
}
_Static_assert(JOB_BUCKETS == 1 << 11, "the bucket is the top 11 bits");

bool job_is_known(const struct act *act, int64_t intent)
{
    for (const struct job *job = *bucket_of(act, intent); job != NULL; job = job->bucket_next)
        if (job->effect.intent == intent)
            return true;
    return false;
}

void job_note(struct job *job)
{
    struct job **bucket = bucket_of(job->act, job->effect.intent);
    job->bucket_next = *bucket;
    *bucket = job;
}

struct job *job_new(struct act *act, struct place *place)
{
    struct job *job = act->job_count < JOBS_MAX ? calloc(1, sizeof *job) : NULL;
    if (job == NULL)
        return NULL;
    job->act = act;
    job->place = place;
    job->policy_version = act->policy_version;
    job->actor = BYTES("outbox");
    arena_init(&job->arena, JOB_ARENA_MAX);
    buf_init(&job->pieces, PIECES_MAX * sizeof(uint32_t));
    act->job_count++;
    return job;
}

void job_drop(struct job *job)
{
    for (struct job **at = bucket_of(job->act, job->effect.intent); *at != NULL; at = &(*at)->bucket_next)
        if (*at == job) {
            *at = job->bucket_next;
            break;
        }
    if (job->effect.line.at != NULL)
        job->act->look_us = 0; /* the next in its line */
    job->act->job_count--;
    buf_release(&job->call.body);
    buf_release(&job->pieces);
    arena_release(&job->arena);
    if (job->policy != NULL)
        policy_free(job->policy);
    free(job);
}

/* ---- to the engine and back ---- */

static void come_back(struct engine_command *command)
{
    struct job *job = command->user;
    struct act *act = job->act;
    job->next = NULL;
    pthread_mutex_lock(&act->lock);
    bool first = act->back_first == NULL;
    *act->back_last = job;
    act->back_last = &job->next;
    if (first)
        act->transport->wake(act->transport); /* under the lock: once the job is seen, act_close() may end all of this */
    pthread_mutex_unlock(&act->lock);
}

static void submit(struct job *job, enum job_stage stage)
{
    job->stage = stage;
    job->command.arena = &job->arena;
    job->command.done = come_back;
    job->command.user = job;
    engine_submit(job->act->engine, &job->command);
}

static struct ledger_command ledger_command(const struct job *job, enum ledger_op op)
{
    return (struct ledger_command){
        .op = op,
        .space = job->effect.space,
        .actor = job->actor,
        .policy = job->policy_version,
        .intent = job->effect.intent,
        .fence = job->fence,
        .evidence = job->evidence,
    };
}

/* ---- taking ---- */

static enum status write_taken(struct store *store, struct ledger *ledger, struct bytes space, int64_t intent,
                               const struct destination *destination, struct why *why)
{
    int64_t lease_us = act_lease_us(destination);
    struct q_outbox_taken taken = {intent, ledger->now.wall_us + lease_us + LOOK_AFTER_US,
                                   ledger->now.run_us + lease_us + act_arrival_us(destination)};
    return outbox_taken(store, ledger, space, &taken, why);
}

static enum status take_any(void *ctx, const void *row, struct why *why)
{
    (void)row, (void)why;
    *(bool *)ctx = true;
    return OK;
}

enum status act_write_claimed(struct store *store, struct ledger *ledger, struct engine_command *command,
                              const struct effect_order *order, const struct destination *destination, struct why *why)
{
    int64_t intent = command->answer.intent;
    struct q_outbox_has look = {intent};
    struct q_outbox_ask ask = {intent, STEP_ASK, ledger->now.wall_us};
    enum intent_state state = command->answer.state;
    bool found = false;
    if (state != STATE_SENT && state != STATE_UNKNOWN)
        return OK;
    TRY(store_run(store, &OUTBOX_HAS, &look, 1, take_any, &found, NULL, why));
    /* A caller who comes back to what was given to a person does what the person would have asked for. */
    if (found && state == STATE_SENT)
        TRY(exception_close(store, ledger, intent, EXCEPTION_DEAD_LETTER, BYTES("retry"), command->ledger.actor, BYTES_NONE,
                            why));
    if (!found)
        TRY(outbox_write(store, ledger, command->answer.intent, order, why));
    /* A claim may be what finds out that nobody can tell, and the row was waiting for its caller: it has to be looked at. */
    return state == STATE_SENT ? write_taken(store, ledger, order->row.space, intent, destination, why)
                               : outbox_ask(store, ledger, order->row.space, &ask, why);
}

static enum status also_taken(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    const struct job *job = command->user;
    if (command->answer.state != STATE_SENT)
        return OK; /* declared unknown instead: the row is due, and is looked at again */
    return write_taken(store, ledger, job->effect.space, job->effect.intent, job->destination, why);
}

void job_take(struct job *job)
{
    struct ledger_command *take = &job->command.ledger;
    int64_t tries_left = job->destination->attempts_max - job->effect.tries;
    job->begun_us = job->act->env->boot_us(job->act->env);
    job->lease_us = act_lease_us(job->destination);
    job->fence = job->effect.fence; /* as it was looked at */
    job->command = (struct engine_command){.ledger = ledger_command(job, OP_TAKE), .also = also_taken};
    take->lease_us = job->lease_us;
    take->window_us = job->rules->window_us;
    take->capability = job->rules->capability;
    take->on_unknown = job->destination->on_unknown;
    take->attempts_max = job->effect.attempts + (tries_left > 1 ? tries_left : 1);
    submit(job, JOB_TAKING);
}

void job_give_up(struct job *job)
{
    struct ledger_command *take = &job->command.ledger;
    job->place->pace.running++; /* nothing is sent: it need not wait until the destination may have another call */
    job->fence = job->effect.fence;
    job->command = (struct engine_command){.ledger = ledger_command(job, OP_TAKE)};
    take->give_up = true;
    if (job->rules != NULL) { /* the destination is in the policy */
        take->window_us = job->rules->window_us;
        take->capability = job->rules->capability;
        take->on_unknown = job->destination->on_unknown;
    }
    submit(job, JOB_TAKING);
}

static void leave(struct job *job)
{
    pace_cancel(&job->place->pace);
    job_drop(job);
}

static void taken(struct job *job)
{
    if (job->command.status == OK && job->command.answer.verdict == VERDICT_PROCEED) {
        job->fence = job->command.answer.fence;
        job->effect.tries++;
        job_call(job);
        return;
    }
    leave(job); /* someone else has it, it was settled, or the storage cannot: the row will be looked at again */
}

/* ---- calling ---- */

static void call_done(struct transport_call *call);

static void on_head(struct transport_call *call)
{
    struct job *job = call->user;
    job->caller->reply = call->reply;
    job->caller->on_head(job->caller);
}

static void on_body(struct transport_call *call, struct bytes piece)
{
    struct job *job = call->user;
    uint32_t len = (uint32_t)piece.len;
    if (job->memo)
        buf_add(&job->pieces, (struct bytes){(const char *)&len, sizeof len});
    job->caller->on_body(job->caller, piece);
}

/* An attempt is over well before its lease is. Where the destination remembers our key for a short time the ledger gives a
 * shorter lease (see lease_allowed() there), and the call has to be shorter too. */
static void limit_call(const struct job *job, int64_t *ret_timeout_us, int64_t *ret_begin_before_us)
{
    const struct call_rules *rules = job->rules;
    int64_t lease_us = job->lease_us, timeout_us = job->destination->timeout_us;
    if (rules->capability == CAPABILITY_IDEMPOTENT && lease_us > rules->window_us / 3) {
        lease_us = rules->window_us / 3;
        timeout_us = timeout_us < lease_us / 5 * 2 ? timeout_us : lease_us / 5 * 2;
    }
    *ret_timeout_us = timeout_us;
    *ret_begin_before_us = MUTANT(TAKE_LATE) ? 0 : job->begun_us + lease_us / 5 * 4 - timeout_us;
}

static void start_call(struct job *job, const struct effect_request *request)
{
    bool streams = job->caller != NULL && job->caller->on_head != NULL;
    int64_t timeout_us = job->destination->timeout_us, begin_before_us = 0;
    if (!job->asking && job->effect.intent != 0 && !job->memo)
        limit_call(job, &timeout_us, &begin_before_us);
    job->stage = JOB_CALLING;
    job->call = (struct transport_call){
        .destination = job->destination,
        .request = request,
        .space = job->effect.space,
        .effect = job->effect.intent,
        .arena = &job->arena,
        .timeout_us = timeout_us,
        .begin_before_us = begin_before_us,
        .repeatable = job->asking || job->memo || job->rules->reads || job->rules->capability == CAPABILITY_IDEMPOTENT,
        .on_head = streams ? on_head : NULL,
        .on_body = streams ? on_body : NULL,
        .done = call_done,
        .user = job,
    };
    buf_init(&job->call.body, (size_t)job->destination->response_max);
    job->act->transport->start(job->act->transport, &job->call);
}

void job_call(struct job *job)
{
    start_call(job, &job->request);
}

void job_ask(struct job *job)
{
    atomic_fetch_add(&job->place->probes, 1);
    job->fence = job->effect.fence;
    start_call(job, &job->question);
}

/* ---- judging ---- */

/* Would the rest of this answer have decided what it means? Slack says "no" with a 200 and a body. */
static bool body_decides(const struct call_rules *rules, int status)
{
    for (size_t i = 0; i < rules->outcome_count; i++) {
        const struct outcome_rule *rule = &rules->outcomes[i];
        if (rule->field.at != NULL && status >= rule->status_min && status <= rule->status_max)
            return true;
    }
    return false;
}

/* Of a model call only a whole answer is one: whatever else came may be asked for again. */
static enum outcome judge_memo(struct job *job, struct bytes *ret_because)
{
    const struct transport_call *call = &job->call;
    enum outcome outcome = destination_outcome(job->rules, &call->reply, ret_because);
    if (call->end == TRANSPORT_ANSWERED && outcome == OUTCOME_DONE)
        memo_read(job->rules->memo, &call->reply, &job->tokens);
    if (outcome != OUTCOME_DONE || job->tokens.whole)
        return outcome;
    *ret_because = BYTES("the answer ended before it was whole");
    return OUTCOME_UNKNOWN;
}

static enum outcome judge(struct job *job, struct bytes *ret_because)
{
    const struct transport_call *call = &job->call;
    switch (call->end) {
    case TRANSPORT_NOT_SENT:
        *ret_because = bytes_of(call->why.text);
        return OUTCOME_RETRY;
    case TRANSPORT_LOST:
        *ret_because = bytes_of(call->why.text);
        return OUTCOME_UNKNOWN;
    case TRANSPORT_CUT:
        if (job->memo)
            return judge_memo(job, ret_because);
        if (body_decides(job->rules, call->reply.status)) {
            *ret_because = BYTES("the answer was cut off before it said what happened");
            return OUTCOME_UNKNOWN;
        }
        return destination_outcome(job->rules, &call->reply, ret_because);
    case TRANSPORT_ANSWERED:
        break;
    }
    return job->memo ? judge_memo(job, ret_because) : destination_outcome(job->rules, &call->reply, ret_because);
}

/* Does this say something about the destination, not about the request? */
static bool is_trouble(const struct transport_call *call)
{
    return call->end == TRANSPORT_NOT_SENT || call->end == TRANSPORT_LOST || call->reply.status >= 500 ||
           call->reply.status == 429;
}

static uint64_t chance(struct act *act)
{
    uint64_t n;
    act->env->random(act->env, &n, sizeof n);
    return n;
}

static struct bytes make_evidence(struct job *job, const char *word, const char *name, struct bytes because, struct bytes found)
{
    struct buf buf;
    buf_init(&buf, 64 << 10);
    struct json_out out = json_out_to(&buf);
    json_open(&out, '{');
    json_name(&out, word);
    json_cstr(&out, name);
    if (job->call.end == TRANSPORT_ANSWERED || job->call.end == TRANSPORT_CUT) {
        json_name(&out, "status");
        json_i64(&out, job->call.reply.status);
    }
    if (because.at != NULL) {
        json_name(&out, "because");
        json_text(&out, because);
    }
    if (found.at != NULL) {
        json_name(&out, "found");
        json_raw(&out, found);
    }
    json_close(&out, '}');
    struct bytes evidence = buf.failed ? BYTES_NONE : arena_dup(&job->arena, buf_bytes(&buf));
    buf_release(&buf);
    return evidence;
}

/* ---- saying ---- */

static enum status raise_dead(struct store *store, struct ledger *ledger, const struct job *job, struct why *why)
{
    struct people people = engine_people(job->act->engine);
    struct exception_order order = {
        .kind = job->command.answer.state == STATE_REFUSED ? EXCEPTION_REFUSED : EXCEPTION_DEAD_LETTER,
        .space = job->effect.space,
        .owner = bytes_of(people.owner),
        .reason = bytes_of(job->reason),
        .intent = job->effect.intent,
        .due_us = people.due_us,
    };
    return MUTANT(PERSON_UNTOLD) ? OK : exception_raise(store, ledger, &order, why);
}

/* Where the row stands after the ledger's move. */
static enum status also_ended(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    struct job *job = command->user;
    struct q_outbox_ended ended = job->ended;
    enum intent_state state = command->answer.state;
    bool dead = job->dead && (state == STATE_PENDING || state == STATE_REFUSED);
    if (dead) {
        ended.step = STEP_PERSON;
        ended.due = OUTBOX_NEVER;
        TRY(raise_dead(store, ledger, job, why));
    } else if (state == STATE_CONFIRMED || state == STATE_REFUSED) {
        ended.step = STEP_FINISHED;
        ended.due = OUTBOX_NEVER;
    } else if (state == STATE_UNKNOWN) {
        ended.step = STEP_ASK;
        ended.due = ledger->now.wall_us;
    } else {
        ended.step = STEP_DELIVER;
    }
    return outbox_ended(store, ledger, job->effect.space, &ended, why);
}

static void keep_result(struct job *job, struct bytes evidence)
{
    struct why why;
    struct reply_notes notes = {
        .partial = job->call.end != TRANSPORT_ANSWERED || evidence.at != NULL, .evidence = evidence, .memo = job->memo};
    struct effect_reply none = {.status = job->call.reply.status};
    struct ledger_command *confirm = &job->command.ledger;
    if (job->memo) {
        notes.input = job->tokens.input;
        notes.output = job->tokens.output;
        notes.pieces = (const uint32_t *)(const void *)job->pieces.at;
        notes.piece_count = memo_is_events(&job->call.reply) ? job->pieces.len / sizeof(uint32_t) : 0;
    }
    if (reply_record(evidence.at != NULL ? &none : &job->call.reply, &notes, &job->arena, &confirm->result, &why) == OK)
        return;
    LOG(LOG_WARN, "an answer is too large to be kept", LOG_TEXT("destination", job->destination->name));
    notes = (struct reply_notes){.partial = true};
    if (reply_record(&none, &notes, &job->arena, &confirm->result, &why) != OK)
        confirm->result = BYTES("{\"status\":0,\"headers\":[],\"body\":\"\",\"partial\":true}");
}

static void say(struct job *job, enum outcome outcome, struct bytes because)
{
    struct act *act = job->act;
    struct ledger_now now = engine_now(act->engine);
    struct ladder_verdict verdict =
        ladder_judge(outcome, job->effect.attended != 0, job->effect.ambiguous != 0, job->rules->replays_refusals && !job->memo);
    bool answered = job->call.end == TRANSPORT_ANSWERED || job->call.end == TRANSPORT_CUT;
    int64_t asked_us = answered ? destination_retry_after_us(&job->call.reply, now.wall_us) : -1;
    int64_t wait_us = ladder_backoff_us(job->effect.tries, job->destination->backoff_first_us, job->destination->backoff_max_us,
                                        asked_us, chance(act));
    job->evidence = make_evidence(job, "outcome", outcome_names[outcome], because, BYTES_NONE);
    job->ended = (struct q_outbox_ended){
        .intent = job->effect.intent,
        .due = now.wall_us + wait_us,
        /* Of an attempt without an effect nothing arrives; of those before it something still may. */
        .quiet = verdict.effect_unknown ? now.run_us + act_arrival_us(job->destination) : job->effect.quiet,
        .status = answered ? job->call.reply.status : 0,
        .note = because,
    };
    job->dead = verdict.dead;
    job->reason = "the destination refuses it";
    job->command = (struct engine_command){.ledger = ledger_command(job, verdict.op), .also = also_ended};
    job->command.ledger.effect_unknown = verdict.effect_unknown;
    job->command.ledger.final = verdict.final;
    job->command.ledger.error = because;
    if (verdict.op == OP_CONFIRM || verdict.final)
        keep_result(job, BYTES_NONE);
    submit(job, JOB_SAYING);
}

/* ---- what a question brought ---- */

static enum status write_probe(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    struct job *job = command->user;
    bool changed;
    struct row_decision *row = audit_add(ledger->audit);
    if (row == NULL)
        return why_set(why, FULL, "no memory for a decision");
    row->space = job->effect.space;
    row->kind = BYTES("probe");
    row->intent = job->effect.intent;
    row->fence = job->fence;
    row->state = -1;
    row->policy = job->policy_version;
    row->actor = BYTES("outbox");
    row->reason = bytes_of(job->reason);
    row->detail = job->evidence;
    return outbox_stand(store, ledger, &job->effect, &job->stand, &changed, why);
}

static void not_sure(struct job *job)
{
    struct ledger_now now = engine_now(job->act->engine);
    int64_t wait_us = job->recipe->settle_us > PROBE_AGAIN_US ? job->recipe->settle_us : PROBE_AGAIN_US;
    wait_us <<= job->effect.probes < 8 ? job->effect.probes : 8;
    job->stand =
        (struct q_outbox_stand){job->effect.intent, STEP_ASK, now.wall_us + wait_us, job->effect.probes + 1, job->effect.due};
    job->reason = "the_answer_proves_nothing";
    job->command = (struct engine_command){.write = write_probe};
    submit(job, JOB_SAYING);
}

/* Found: it happened. Absent, when nothing of ours can still be under way: it did not, and whoever may act acts again. */
static void answered_question(struct job *job)
{
    const struct transport_call *call = &job->call;
    struct bytes found = BYTES_NONE;
    enum probe_answer answer = PROBE_UNSURE;
    if (call->end == TRANSPORT_ANSWERED)
        answer = destination_probe_read(job->destination, job->rules, job->downstream, &job->request, job->effect.first_sent,
                                        &call->reply, &job->arena, &found);
    job->evidence = make_evidence(job, "probe", probe_answer_names[answer],
                                  bytes_of(call->end == TRANSPORT_ANSWERED ? NULL : call->why.text), found);
    if (answer == PROBE_UNSURE) {
        not_sure(job);
        return;
    }
    struct ledger_now now = engine_now(job->act->engine);
    job->ended = (struct q_outbox_ended){.intent = job->effect.intent,
                                         .due = now.wall_us,
                                         .status = job->effect.status,
                                         .note = BYTES("the destination was asked")};
    job->command =
        (struct engine_command){.ledger = ledger_command(job, answer == PROBE_FOUND ? OP_CONFIRM : OP_FAIL), .also = also_ended};
    job->command.ledger.all_attempts = true;
    job->command.ledger.error = BYTES("the destination says that it did not happen");
    if (answer == PROBE_FOUND)
        keep_result(job, job->evidence);
    submit(job, JOB_SAYING);
}

/* ---- a caller who waits ---- */

static void tell_caller(struct job *job, enum status status)
{
    struct act_call *caller = job->caller;
    job->caller = NULL;
    caller->status = status;
    if (status != OK)
        caller->why = job->command.why;
    caller->state = status == OK && job->effect.intent != 0 ? job->command.answer.state : STATE_SENT;
    caller->done(caller);
}

static void call_done(struct transport_call *call)
{
    struct job *job = call->user;
    struct bytes because = BYTES_NONE;
    if (job->memo && is_trouble(call))
        pace_cancel(&job->place->pace); /* its caller waits and decides; nobody is spared by making others wait too */
    else
        pace_end(&job->place->pace, is_trouble(call), job->act->env->boot_us(job->act->env));
    if (job->asking) {
        answered_question(job);
        return;
    }
    enum outcome outcome = judge(job, &because);
    atomic_fetch_add(&job->place->outcomes[outcome], 1);
    if (job->caller != NULL) {
        job->caller->end = call->end;
        job->caller->outcome = outcome;
        job->caller->reply = call->reply;
        job->caller->because = because;
        job->caller->tokens = job->tokens;
        job->caller->why = call->why;
    }
    if (job->effect.intent != 0) {
        say(job, outcome, because);
        return;
    }
    tell_caller(job, OK);
    job_drop(job);
}

/* ---- standing ---- */

static enum status write_stand(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    struct job *job = command->user;
    bool changed;
    TRY(outbox_stand(store, ledger, &job->effect, &job->stand, &changed, why));
    return job->dead && changed ? raise_dead(store, ledger, job, why) : OK;
}

/* Nothing is to be sent now: the row says so. */
void job_stand(struct job *job, const struct ladder_advice *advice)
{
    static const int64_t steps[] = {
        [LADDER_DEAD] = STEP_PERSON, [LADDER_PERSON] = STEP_PERSON, [LADDER_CLOSE] = STEP_FINISHED, [LADDER_WAIT] = -1};
    ASSERT(advice->move != LADDER_DELIVER && advice->move != LADDER_ASK && advice->move != LADDER_GIVE_UP);
    int64_t step = steps[advice->move] >= 0 ? steps[advice->move] : job->effect.step;
    job->stand = (struct q_outbox_stand){job->effect.intent, step, advice->move == LADDER_WAIT ? advice->at_us : OUTBOX_NEVER,
                                         job->effect.probes, job->effect.due};
    job->dead = advice->move == LADDER_DEAD;
    job->reason = advice->reason;
    job->command = (struct engine_command){.write = write_stand};
    submit(job, JOB_SAYING);
}

/* ---- back from the engine ---- */

void job_say_again(struct job *job)
{
    submit(job, JOB_SAYING);
}

static void said(struct job *job)
{
    if (job->command.status == OK) {
        if (job->caller != NULL)
            tell_caller(job, OK);
        job_drop(job);
        return;
    }
    /* The storage cannot take it now. What is known must not be lost while we live: it is said until it is heard. */
    if (job->caller != NULL)
        tell_caller(job, job->command.status);
    if (job->command.write != NULL) {
        job_drop(job); /* only the row's own state: it will be looked at again */
        return;
    }
    job->say_again_us = job->act->env->boot_us(job->act->env) + SAY_AGAIN_US;
    job->next = job->act->waiting;
    job->act->waiting = job;
}

void job_back(struct job *job)
{
    if (job->stage == JOB_TAKING)
        taken(job);
    else
        said(job);
}
