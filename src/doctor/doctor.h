/*
 * doctor: what is wrong with this house, in plain sentences, and what to do about it. Each check adds findings of its name to the
 * report: problems (something is lost, stuck or unsafe until a person acts), warnings (allowed, but unwise), or one sentence that
 * it is well. A check that cannot be made says so; it never passes for well.
 *
 *     database  durability  disk  clock  schema  quarantine      what everything stands on
 *     policy  sources  destinations  secrets  access             how it is set up
 *     effects  exceptions  unknown  events  keys                 how it goes
 *
 * Nothing here talks to the outside or reads a file or a clock: what the process knows of itself and of its machine comes in as
 * `struct doctor_facts`, filled by the face that asks (api/doctor.c). Owns no table; changes nothing.
 */
#ifndef SEMEL_DOCTOR_DOCTOR_H
#define SEMEL_DOCTOR_DOCTOR_H

#include "access/access.h"
#include "act/act.h"
#include "engine/engine.h"
#include "flow/flow.h"
#include "secret/secret.h"

#define DOCTOR_FINDINGS_MAX 200

enum doctor_grade { DOCTOR_PROBLEM, DOCTOR_WARNING, DOCTOR_OK, DOCTOR_GRADE_COUNT };

extern const char *const doctor_grade_names[]; /* "problem", "warning", "ok", NULL */

struct doctor_finding {
    enum doctor_grade grade;
    const char *check;
    struct bytes text; /* what is so */
    struct bytes fix;  /* what to do; BYTES_NONE where nothing is to be done */
};

struct doctor {
    struct arena *arena; /* of the texts */
    struct doctor_finding findings[DOCTOR_FINDINGS_MAX];
    size_t count;
    size_t left_off; /* findings for which there was no room */
};

enum doctor_place { PLACE_NOT_KNOWN, PLACE_DISK, PLACE_MEMORY, PLACE_NETWORK };

/* What the process knows of itself and of the machine. */
struct doctor_facts {
    int64_t wall_us;
    bool postgres;
    enum status written; /* of a small write, just now */
    struct why written_why;
    /* where the data is, for SQLite */
    enum doctor_place place;
    int64_t free_bytes, total_bytes; /* -1: not known */
    bool unordered;                  /* mounted so that a flush does not wait for the disk */
    bool no_fsync;                   /* something in the process makes fsync do nothing */
    bool quarantine;
    int64_t quarantine_us;
    struct why quarantine_why;
    bool loopback, tls; /* of the listener */
    bool events_failing;
};

void doctor_init(struct doctor *doctor, struct arena *arena);

/* One more finding. `fix` may be NULL. */
void doctor_say(struct doctor *doctor, enum doctor_grade grade, const char *check, const char *fix, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* Says that `check` is well, unless it has said anything behind the first `before` findings. */
void doctor_well(struct doctor *doctor, size_t before, const char *check, const char *sentence);

size_t doctor_count(const struct doctor *doctor, enum doctor_grade grade);

/* ---- the checks ---- */

void doctor_look_at_facts(struct doctor *doctor, const struct doctor_facts *facts);
void doctor_look_at_policy(struct doctor *doctor, const struct policy *policy, struct secrets *secrets);
void doctor_look_at_access(struct doctor *doctor, const struct doctor_facts *facts, const struct access *access);
void doctor_look_at_delivery(struct doctor *doctor, struct act *act);

/* What is in the database, on a reading connection. Not OK when it does not answer; what was found until then is in the report. */
CHECKED enum status doctor_look_at_data(struct doctor *doctor, const struct doctor_facts *facts, const struct policy *policy,
                                        struct store *store, struct why *why);

/* The members of an object: problems, warnings, findings (problems first). */
void doctor_write(const struct doctor *doctor, struct json_out *out);

#endif
