/*
 * policy: the user's rules as one YAML document (semel.yaml), strict. Pure: text in, rules out; storing versions is audit's and
 * store's work. An unknown key, a wrong type, a duplicate, a bad unit or a bad template is refused with line, column and a
 * suggestion; the whole document is read and up to POLICY_PROBLEMS_MAX problems are reported at once. Anchors, aliases, tags and
 * several documents are refused.
 *
 *     version: 1
 *     zone: Europe/Paris            # default UTC; for {day}, {week} …
 *     mode: enforce                 # or shadow: decide and log, but let everything through
 *     defaults:                     # any workflow setting below
 *       lease: 60s
 *     workflows:
 *       followup:
 *         key: "followup:{lead_id}:{template}:{day}"
 *         time: sent_at             # the input field that holds the event's own time
 *         zone: America/New_York
 *         ignore: [trace_id]        # top-level input fields that may differ between attempts
 *         lease: 60s                # 1s … 24h
 *         keep: 30d                 # how long the result is kept after it is final: 1m … 400d
 *         tombstone: 400d           # how long a late duplicate is still recognised after that; 0d forgets at once … 1000d
 *         capability: none          # what the destination can do: none | idempotent | query
 *         window: 24h               # idempotent only: how long the destination remembers our key: 1m … 400d
 *         on_unknown: hold          # retry | hold | skip
 *         two_phase: false          # true: a claim counts as not yet sent until the holder says so
 *         attempts: 10              # claims before the intent is held for a person: 1 … 1000
 *         mode: shadow
 *
 * A workflow that the document does not name gets the defaults, so semel works without any policy.
 */
#ifndef SEMEL_POLICY_POLICY_H
#define SEMEL_POLICY_POLICY_H

#include "base/arena.h"
#include "base/hash.h"
#include "base/json.h"
#include "fingerprint/fingerprint.h"

#define POLICY_SIZE_MAX (256 * 1024)
#define POLICY_PROBLEMS_MAX 20
#define POLICY_WORKFLOWS_MAX 10000
#define POLICY_NAME_MAX 64 /* of a workflow: letters, digits, '.', '_', '-' */
#define POLICY_LIST_MAX 64

enum policy_mode { MODE_ENFORCE, MODE_SHADOW };
enum capability { CAPABILITY_NONE, CAPABILITY_IDEMPOTENT, CAPABILITY_QUERY };
enum on_unknown { ON_UNKNOWN_HOLD, ON_UNKNOWN_RETRY, ON_UNKNOWN_SKIP };

extern const char *const policy_mode_names[]; /* "enforce", "shadow", NULL */
extern const char *const capability_names[];  /* "none", "idempotent", "query", NULL */
extern const char *const on_unknown_names[];  /* "hold", "retry", "skip", NULL */

/* ---- the settings: one table for the parser, the defaults, the documentation and the tests ---- */

enum policy_kind {
    POLICY_TEXT,     /* any text that is not empty */
    POLICY_ZONE,     /* an IANA time zone */
    POLICY_DURATION, /* min and max in microseconds */
    POLICY_INTEGER,
    POLICY_SWITCH, /* true or false */
    POLICY_CHOICE, /* one of `names` */
    POLICY_LIST,   /* a list of names */
    POLICY_GROUP,  /* a mapping: defaults, workflows */
};

enum policy_place { POLICY_TOP = 1, POLICY_WORKFLOW = 2 }; /* where a setting may stand; POLICY_WORKFLOW is also under defaults */

struct policy_setting {
    const char *name;
    enum policy_kind kind;
    unsigned places;          /* of enum policy_place */
    const char *default_text; /* as one would write it; NULL when there is none */
    int64_t min, max;         /* for durations and integers */
    const char *const *names; /* for choices, NULL-terminated */
    const char *example;
    const char *help; /* one sentence */
};

extern const struct policy_setting policy_settings[];
extern const size_t policy_setting_count;

struct workflow_rules {
    struct bytes name;     /* empty for the defaults */
    struct bytes key_text; /* the template's text, BYTES_NONE when callers must give a key */
    struct key_template *key;
    struct bytes *ignore;
    size_t ignore_count;
    int64_t lease_us, keep_us, tombstone_us, window_us;
    enum capability capability;
    enum on_unknown on_unknown;
    bool two_phase;
    int64_t attempts_max;
    enum policy_mode mode;
};

struct policy {
    struct arena arena; /* owns everything below */
    struct bytes text;  /* the document as given */
    struct hash hash;   /* SHA-256 of the text */
    struct workflow_rules defaults;
    struct workflow_rules *workflows;
    size_t workflow_count; /* sorted by name */
};

struct policy_problem {
    size_t line, column; /* from 1 */
    char text[240];      /* what is wrong and what to write instead */
};

struct policy_problems {
    size_t count;
    struct policy_problem at[POLICY_PROBLEMS_MAX];
};

/* INVALID when there is at least one problem; they are sorted by line and column. FULL when memory runs out. An empty document is
 * valid and means the defaults. */
CHECKED enum status policy_parse(struct bytes text, struct policy **ret_policy, struct policy_problems *problems);
void policy_free(struct policy *policy);

/* The rules of a workflow: its own, or the defaults. Never NULL. */
const struct workflow_rules *policy_workflow(const struct policy *policy, struct bytes name);

#endif
