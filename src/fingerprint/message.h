/*
 * message: what a person wrote, in a form in which two copies of it are equal, and how alike two texts are. Pure.
 *
 * The form is words: Unicode NFKC with case folded, letters, digits and symbols kept, everything else a border between words.
 * Scripts that are written without spaces have a word per letter. So white space, punctuation, case, full-width letters and
 * line breaks never make a new message.
 *
 * Likeness counts shingles, that is runs of three words: `same` is how many of all are shared, `contained` how many of the
 * shorter text's are in the longer one: a notification that quotes a form contains it.
 */
#ifndef SEMEL_FINGERPRINT_MESSAGE_H
#define SEMEL_FINGERPRINT_MESSAGE_H

#include "base/arena.h"
#include "base/hash.h"
#include "base/status.h"

#define MESSAGE_TEXT_MAX ((size_t)64 << 10) /* what is behind it is not looked at */
#define MESSAGE_WORDS_MAX 4096

struct message {
    struct bytes *words;
    size_t word_count;
    size_t letters;       /* characters in them */
    struct hash hash;     /* over the words */
    uint64_t *shingles;   /* sorted, no two equal */
    size_t shingle_count; /* 0 when there are no words */
};

/* FULL when memory runs out. Bytes that are no UTF-8 are a border between words. */
CHECKED enum status message_read(struct bytes text, struct arena *arena, struct message *ret, struct why *why);

/* So little text that two people, or one person twice, may well have meant it anew: "Hi", "yes please", "thanks a lot". */
bool message_is_short(const struct message *message);

/* Thousandths. Both are 0 when one has no words. */
struct likeness {
    int same, contained;
};

struct likeness message_compare(const struct message *a, const struct message *b);

/* The words of `a` that `b` does not have, joined by spaces; at most `most`; in the arena. BYTES_NONE without memory. */
struct bytes message_only_in(const struct message *a, const struct message *b, size_t most, struct arena *arena);

#endif
