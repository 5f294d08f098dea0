/*
 * decide: is this event a new one? Pure: what is known of it and of those that look like it in, one verdict out; tested by table,
 * and run again over stored events when a policy is tried out (semel policy backtest).
 *
 * Events are recognised by marks. An equal mark of an earlier event makes that event a candidate:
 *
 *   DELIVERY  the sender's id of the delivery or event, within one source      certain, always
 *   KEY       the business key, within the space                               certain, always
 *   PAYLOAD   the same body, for events that have neither                      certain, within the source's window
 *   CONTENT   the same person saying the same words                            certain in the window, unless the text is short
 *   SENDER    the same person                                                  the texts are compared: likeness
 *
 * A short text ("Hi", "yes") is little evidence: within minutes it is a double click, or, by two channels, a question for a person;
 * never when one channel gave it two ids. Whatever contains all of an earlier message and more is suppressed only when
 * a machine relayed it (the person is named in it, but did not send it); from the person's own hand it goes to a person.
 */
#ifndef SEMEL_DECIDE_DECIDE_H
#define SEMEL_DECIDE_DECIDE_H

#include "fingerprint/message.h"

enum event_verdict {
    EVENT_WAITING,    /* not decided yet */
    EVENT_ACCEPTED,   /* it is new */
    EVENT_SUPPRESSED, /* it repeats another one */
    EVENT_HELD,       /* it may repeat another one, is part of a loop, or cannot be forwarded: a person decides */
    EVENT_MUTED,      /* its source was quieted */
    EVENT_IGNORED,    /* a machine wrote it (bounce, list, out of office): it must not be answered */
    EVENT_RELEASED,   /* a person said that it was no repetition after all */
    EVENT_VERDICT_COUNT
};

extern const char *const event_verdict_names[]; /* "waiting", …, NULL */

enum mark_kind { MARK_DELIVERY, MARK_KEY, MARK_PAYLOAD, MARK_CONTENT, MARK_SENDER, MARK_KIND_COUNT };

/* An earlier event with an equal mark. */
struct candidate {
    enum mark_kind kind;
    int64_t event, at_us;
    struct bytes source;
    bool has_id;                /* its channel gave it an id of its own */
    bool relayed;               /* one of the two was not sent by the person it is about: a machine tells of it */
    const struct message *text; /* CONTENT, SENDER; NULL when it is forgotten */
};

struct decide_event {
    struct bytes source;
    int64_t at_us;
    bool speaks;    /* someone said something: only then content counts */
    bool has_id;    /* a delivery id or a business key */
    bool machine;   /* a program sends: equal texts with ids of their own are several messages */
    bool automatic; /* must not be answered */
    bool muted;     /* its source is quiet now … */
    bool limited;   /* … or has sent more than it may */
    const struct message *text;
    int64_t window_us, across_us; /* the source's rules */
};

struct decide_verdict {
    enum event_verdict verdict;
    const char *reason;                /* a word: "new", "same_delivery", … */
    int score;                         /* thousandths: how sure it is that `first` is the same */
    int64_t first;                     /* the event it repeats; 0 for none */
    const struct candidate *candidate; /* of those given; NULL for none */
};

/* A sentence for the reason, for people. NULL for a word that is none. */
const char *decide_sentence(struct bytes reason);

struct decide_verdict decide_event(const struct decide_event *event, const struct candidate *candidates, size_t count);

#endif
