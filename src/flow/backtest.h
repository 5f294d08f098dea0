/*
 * backtest: another policy decides stored events again, and nothing is acted on or written. The same code decides as in the flow;
 * only what it remembers is other: what came before the first event is as the database has it, everything behind it is as the other
 * policy would have decided. What a person had muted stays muted.
 *
 * It goes on in steps, each with a bounded number of events, so that other readers come in between, and so that whoever asked can
 * come again for the next ones: where it is cut changes nothing. What it remembers is bounded (BACKTEST_SIZE_MAX, some hundred bytes
 * an event); when that is full it ends early and says so. One thread at a time.
 */
#ifndef SEMEL_FLOW_BACKTEST_H
#define SEMEL_FLOW_BACKTEST_H

#include "flow/flow.h"

#define BACKTEST_SIZE_MAX ((size_t)1 << 30)
#define BACKTEST_EXAMPLES_MAX 50

struct backtest;

struct backtest_example {
    int64_t event, first; /* which it would repeat; 0 for none */
    enum event_verdict was, would;
    char was_reason[32], would_reason[32], source[SETTING_NAME_MAX + 1];
    int score;
};

struct backtest_counts {
    int64_t events;
    int64_t verdicts[EVENT_VERDICT_COUNT][EVENT_VERDICT_COUNT]; /* [as it was][as it would be] */
    int64_t changed;
    struct backtest_example examples[BACKTEST_EXAMPLES_MAX];
    size_t example_count;
};

/* Takes a use of the policy. Events of the space that were received from `since_us` until `until_us` (wall). FULL without memory. */
CHECKED enum status backtest_open(struct policy *policy, struct bytes pepper, struct bytes space, int64_t since_us,
                                  int64_t until_us, struct backtest **ret_backtest, struct why *why);
void backtest_close(struct backtest *backtest);

/* The next events, on a reading connection. NOTHING when all are done, or no more can be remembered. */
CHECKED enum status backtest_step(struct backtest *backtest, struct store *store, struct why *why);

/* After NOTHING: all were done. */
bool backtest_is_whole(const struct backtest *backtest);

/* When the last event that was decided came (wall); the beginning before the first. */
int64_t backtest_at_us(const struct backtest *backtest);

const struct backtest_counts *backtest_counts(const struct backtest *backtest);

#endif
