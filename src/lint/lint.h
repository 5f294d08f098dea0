/*
 * lint: are the keys of a workflow any good? Looks at what really came in: the keys of stored intents, the hashes of the fields
 * that came with them, and how often a key was refused because it stood for something else. Pure: the same sample gives the same
 * report. Contents are never seen, only hashes and names.
 *
 *   never_repeats  the same contents came again within a day, each time under a new key: duplicates are not recognised
 *   random         keys hold a UUIDv4 or another long random text, a new one each time
 *   clock          keys hold the time of the call, to the minute or finer
 *   too_broad      one key was used for different contents
 *   near_equal     keys differ only in upper and lower case or in white space
 *   no_input       claims bring no input, so nothing can be compared
 *
 * The proposal is a template from fields that are the same whenever the contents are, and its back-test on the sample: how many
 * duplicates it would have caught, how many came so much later that they may be meant, how many different things it would have joined.
 */
#ifndef SEMEL_LINT_LINT_H
#define SEMEL_LINT_LINT_H

#include "base/arena.h"
#include "base/json.h"

#define LINT_SAMPLES_MAX 2000
#define LINT_FIELDS_MAX 64  /* as many as a fingerprint has */
#define LINT_NAMES_MAX 16   /* of one finding */
#define LINT_PROPOSED_MAX 6 /* placeholders: more are no key that a person can read */

enum lint_code { LINT_NEVER_REPEATS, LINT_RANDOM, LINT_CLOCK, LINT_TOO_BROAD, LINT_NEAR_EQUAL, LINT_NO_INPUT, LINT_CODES };

extern const char *const lint_code_names[]; /* "never_repeats", …, NULL */

/* An intent; each has a key of its own. */
struct lint_sample {
    struct bytes key;
    struct bytes fields; /* {"name":"16 hex digits",…}; BYTES_NONE when no object came with it */
    int64_t at_us;       /* wall */
};

/* How often claims under a known key were refused because this field differed. */
struct lint_reuse {
    struct bytes field;
    int64_t count;
};

struct lint_traffic {
    struct bytes workflow;
    const struct lint_sample *samples; /* oldest first */
    size_t sample_count;
    const struct lint_reuse *reuses;
    size_t reuse_count;
    int64_t reused; /* claims that were refused so */
};

struct lint_finding {
    enum lint_code code;
    bool problem; /* otherwise it may be meant */
    int64_t count, of;
    struct bytes examples[2]; /* keys; may be absent */
    struct bytes fields[LINT_NAMES_MAX];
    size_t field_count;
};

struct lint_report {
    size_t sampled, with_input;
    struct lint_finding findings[LINT_CODES];
    size_t finding_count;
    struct bytes proposed;                /* the template; BYTES_NONE for none */
    struct bytes ignored[LINT_NAMES_MAX]; /* fields that look new with each attempt */
    size_t ignored_count;
    int64_t caught, later, wrong; /* the back-test */
};

/* INVALID when a sample's fields are no such object. Everything is in the arena, or points into the traffic. */
CHECKED enum status lint_run(const struct lint_traffic *traffic, struct arena *arena, struct lint_report *ret, struct why *why);

/* What a finding means and what to do, one sentence each. */
void lint_explain(const struct lint_finding *finding, struct buf *text, struct buf *fix);

#endif
