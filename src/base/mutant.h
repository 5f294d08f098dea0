/*
 * mutant: one broken rule at a time, to prove that the tests would notice. In the product MUTANT() is 0 and the compiler removes
 * it; a build with -DSEMEL_MUTANTS chooses one at run time (`sim --mutant NAME`), and every one of them has to be found.
 */
#ifndef SEMEL_BASE_MUTANT_H
#define SEMEL_BASE_MUTANT_H

/* name, the rule it breaks */
#define MUTANTS(X)                                                                        \
    X(NO_FENCE, "a stale holder is listened to")                                          \
    X(ANY_NONCE, "a claim that is held is given to whoever brings any nonce")             \
    X(OLD_NONCE, "a claim is given out again with its nonce after it moved")              \
    X(ACK_EARLY, "answers go out before the commit")                                      \
    X(NO_SENT, "a lapse after sent is treated like one before it")                        \
    X(RETRY_AMBIGUOUS, "what may have happened is given out again without being told to") \
    X(NO_FINGERPRINT, "the same key with other contents is taken as the same")            \
    X(EXPIRE_BY_WALL, "results are forgotten by the wall clock")                          \
    X(NEW_KEY, "each attempt gets a downstream key of its own")                           \
    X(SYNC_NORMAL, "SQLite does not sync each commit")                                    \
    X(SYNC_BEFORE_WRITE, "the log is synced before it is written")                        \
    X(SYNC_OFF, "SQLite never syncs")                                                     \
    X(AUDIT_APART, "the audit is written in a transaction of its own")                    \
    X(PURGE_ACTIVE, "intents in progress are forgotten")                                  \
    X(NO_WINDOW, "retries go on after the destination has forgotten the key")             \
    X(NO_REWRITE, "the log is not rewritten at boot")                                     \
    X(IGNORE_FULL, "a full disk is taken as success")                                     \
    X(LOSE_RESULT, "a confirmed result may be replaced")                                  \
    X(SKIP_AUDIT, "a lapse writes no audit row")                                          \
    X(NO_OWNER, "an unknown outcome is nobody's")                                         \
    X(PROBE_EARLY, "the destination is asked while an attempt may still arrive")          \
    X(GUESS_NO_EFFECT, "a lost answer is taken as no effect")                             \
    X(LINE_JUMP, "an effect does not wait for those before it in its line")               \
    X(TAKE_LATE, "a call begins when its lease may be over")                              \
    X(ATTENDED_RESEND, "what a caller attends to is sent again by itself")                \
    X(ATTENDED_FORGOTTEN, "a lost call whose caller never comes back waits for ever")     \
    X(OUTBOX_APART, "the outbox row is written in a transaction of its own")              \
    X(DEAD_AMBIGUOUS, "what may have happened becomes a dead letter")                     \
    X(TRIES_UNCOUNTED, "the outbox does not count its tries")                             \
    X(PERSON_UNTOLD, "a dead letter is put away without telling anybody")                 \
    X(OUTBOX_UNLOGGED, "a change of the outbox is not in the log")                        \
    X(FORGET_ROW, "the outbox row stays when its intent is forgotten")                    \
    X(OUT_OF_TURN, "an answer does not wait for the open one of its conversation")        \
    X(UNMARKED, "an event is not remembered by its marks")                                \
    X(COPY_UNMARKED, "the ids of a copy are forgotten")                                   \
    X(COPY_OF_COPY, "a copy is said to repeat another copy")                              \
    X(WINDOW_ENDLESS, "equal words are one message for ever")                             \
    X(VERDICT_APART, "a verdict is committed before what follows from it")                \
    X(FORWARD_APART, "what forwards an event is written in a transaction of its own")     \
    X(VERDICT_UNLOGGED, "a suppression is not in the log")                                \
    X(HELD_GOES_ON, "what waits for a person is forwarded")                               \
    X(HELD_UNTOLD, "an event is held and nobody is told")                                 \
    X(HELD_FORGOTTEN, "what waits for a person is forgotten")                             \
    X(HELD_ASKS, "a message is a question before it is accepted")                         \
    X(CARD_STAYS, "the card stays open when its event was decided")                       \
    X(RELEASE_AGAIN, "each release forwards")                                             \
    X(REPLAY_SAME, "a replay has the key of what it repeats")                             \
    X(EPOCH_STANDS, "the question behind an answer is the old one")                       \
    X(EPOCH_RUNS, "every message is a question of its own")                               \
    X(BATCH_UNSEEN, "an answer that begins in the same batch is not seen")                \
    X(THREAD_SPLIT, "a person has a conversation for each channel")                       \
    X(LOOP_UNSEEN, "a conversation that runs away is not held")                           \
    X(MUTE_UNHEARD, "a muted source is listened to")                                      \
    X(ROBOT_HEARD, "what a program wrote is taken for a question")                        \
    X(PASS_ASLEEP, "a pass that failed is not tried again")

#define MUTANT_ENUM(name, rule) MUTANT_##name,
enum mutant { MUTANT_NONE, MUTANTS(MUTANT_ENUM) MUTANT_COUNT };

#ifdef SEMEL_MUTANTS
extern enum mutant mutant_active;
#define MUTANT(name) (mutant_active == MUTANT_##name)
#else
#define MUTANT(name) 0
#endif

#endif
