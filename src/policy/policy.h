/*
 * policy: the user's rules as one YAML document (semel.yaml), strict. Pure: text in, rules out; storing versions is audit's and
 * store's work. An unknown key, a wrong type, a duplicate, a bad unit or a bad template is refused with line, column and a
 * suggestion; the whole document is read and up to YAML_PROBLEMS_MAX problems are reported at once. Anchors, aliases, tags and
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
 *     owner: dana                   # who gets the exceptions that nobody else owns
 *     due: 8h                       # how long an exception may stay open before it is overdue
 *     destinations:                 # where effects go: see destination/destination_settings.c
 *       stripe: {secret: env:STRIPE_KEY}
 *     mcp:                          # the MCP servers of agents: see mcp/rules.h
 *       mail: {destination: mail-mcp}
 *     sources:                      # where messages and leads come from: see receive/source_settings.c
 *       contact: {preset: typeform, secret: env:TYPEFORM_SECRET, forward: agent}
 *
 * A workflow that the document does not name gets the defaults, so semel works without any policy.
 */
#ifndef SEMEL_POLICY_POLICY_H
#define SEMEL_POLICY_POLICY_H

#include <stdatomic.h>

#include "base/arena.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/settings.h"
#include "base/yaml.h"
#include "destination/destination.h"
#include "fingerprint/fingerprint.h"
#include "mcp/rules.h"
#include "receive/source.h"

#define POLICY_SIZE_MAX YAML_SIZE_MAX
#define POLICY_WORKFLOWS_MAX 10000
#define POLICY_DESTINATIONS_MAX 1000
#define POLICY_SOURCES_MAX 1000
#define POLICY_NAME_MAX SETTING_NAME_MAX /* of a workflow, destination or source: letters, digits, '.', '_', '-' */

enum policy_mode { MODE_ENFORCE, MODE_SHADOW };

extern const char *const policy_mode_names[]; /* "enforce", "shadow", NULL */

/* ---- the settings: one table for the parser, the defaults, the documentation and the tests ---- */

enum policy_place { POLICY_TOP = 1, POLICY_WORKFLOW = 2 }; /* where a setting may stand; POLICY_WORKFLOW is also under defaults */

extern const struct setting policy_settings[];
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
    atomic_int uses;    /* begins with one */
    struct arena arena; /* owns everything below */
    struct bytes text;  /* the document as given */
    struct hash hash;   /* SHA-256 of the text */
    struct workflow_rules defaults;
    struct workflow_rules *workflows;
    size_t workflow_count; /* sorted by name */
    struct destination *destinations;
    size_t destination_count; /* sorted by name */
    struct mcp_server_rules *mcp;
    size_t mcp_count; /* sorted by name */
    struct source *sources;
    size_t source_count; /* sorted by name */
    struct bytes owner;  /* who gets exceptions that nobody else owns; BYTES_NONE for nobody */
    int64_t due_us;      /* how long an exception may stay open before it is overdue */
};

/* INVALID when there is at least one problem; they are sorted by line and column. FULL when memory runs out. An empty document is
 * valid and means the defaults. */
CHECKED enum status policy_parse(struct bytes text, struct policy **ret_policy, struct yaml_problems *problems);
void policy_free(struct policy *policy); /* gives one use back; the last one ends it */
void policy_use(struct policy *policy);  /* one more, from any thread */

/* The rules of a workflow: its own, or the defaults. Never NULL. */
const struct workflow_rules *policy_workflow(const struct policy *policy, struct bytes name);

/* NULL when the policy has no destination of that name. */
const struct destination *policy_destination(const struct policy *policy, struct bytes name);

/* NULL when the policy has no MCP server of that name. */
const struct mcp_server_rules *policy_mcp(const struct policy *policy, struct bytes name);

/* NULL when the policy has no source of that name. */
const struct source *policy_source(const struct policy *policy, struct bytes name);

#endif
