/*
 * threads: conversations. A thread is who talks with us about what, over all channels; its epoch counts the questions. Owns the
 * tables `thread`, `thread_mark` and `thread_person`.
 *
 *   A question is an accepted message that somebody should answer. The first one opens epoch 1. The next one joins the open epoch
 *   as long as nobody has begun to act on it, so that "Hi" and "I have a question" get one answer; once an action was claimed or
 *   queued, the next message opens a new epoch.
 *
 * The conversation lock is an ordinary intent whose key is made of thread, epoch and action (thread_key()): whoever claims it
 * first answers, everybody else gets that answer. A new question has a new epoch and so a new key.
 *
 * A message belongs to the thread of: the channel's own conversation id; else a message that it refers to; else the same person
 * with the same topic (a mail's subject; nothing for chats and forms). Whatever it brings is remembered as a mark of the thread.
 */
#ifndef SEMEL_THREADS_THREADS_H
#define SEMEL_THREADS_THREADS_H

#include "ledger/ledger.h"

/* "thr_…:3:reply"; in the arena. */
struct bytes thread_key(int64_t thread, int64_t epoch, struct bytes action, struct arena *arena);

/* True when an action was claimed or queued in the thread behind its question; also in this very batch. On PostgreSQL nobody else
 * begins one until the transaction ends, so that no message joins a question that is just being answered. */
CHECKED enum status thread_is_answered(struct store *store, const struct ledger *ledger, struct bytes pepper,
                                       const struct row_thread *thread, bool *ret_answered, struct why *why);

/* The epoch of a message that is a question: the open one, or the next. Changes the row in memory only. */
void thread_ask(struct row_thread *thread, bool answered, int64_t event, int64_t wall_us);

/* Counts an accepted message; true when there were more than `most` within `every_us` since the burst began. */
bool thread_is_loop(struct row_thread *thread, int64_t wall_us, int64_t most, int64_t every_us);

/* By what the conversations of a person are found. `identity` is normalised. */
void thread_person(struct bytes pepper, struct bytes space, struct bytes identity, uint8_t ret[KEY_HASH_SIZE]);

/* ---- during one pass of the flow ---- */

/* A thread that a message of the pass belongs to. */
struct thread_open {
    struct row_thread row;
    bool changed;
    struct thread_open *next;
};

/* A hash by which threads are found. */
struct thread_place {
    uint8_t h[KEY_HASH_SIZE];
    struct thread_open *thread; /* NULL: nobody's yet */
    bool fresh;                 /* to be written */
};

struct thread_places {
    struct arena *arena;
    struct thread_place **slots;
    size_t size, count;
    struct thread_open *threads;
};

/* For at most `most` places. */
CHECKED enum status threads_init(struct thread_places *places, struct arena *arena, size_t most, struct why *why);

/* The place of that hash, new or there. NULL when there is no memory or no room. */
struct thread_place *threads_at(struct thread_places *places, const uint8_t h[KEY_HASH_SIZE]);

CHECKED enum status threads_load(struct thread_places *places, struct store *store, struct why *why);

/* The place leads to this thread. False without memory. */
bool threads_found(struct thread_places *places, struct thread_place *place, const struct row_thread *row);

/* A new thread. NULL when there is no memory. */
struct thread_open *threads_new(struct thread_places *places, struct ledger *ledger, struct bytes space);

/* The place leads to the thread from now on, unless it leads to another one. */
void threads_mark(struct thread_place *place, struct thread_open *thread);

CHECKED enum status threads_save(struct thread_places *places, struct store *store, struct why *why);

#endif
