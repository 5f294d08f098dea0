/*
 * destination_read: provider files and rows of the policy into struct destination. Pure and strict, like the policy: all problems
 * are told with line, column and what to write instead.
 *
 * A provider file (providers/NAME.yaml) states facts; each has its evidence (S source or specification, D the vendor's
 * documentation, I an issue thread, 2 a secondary source, M memory) and whether it is verified. What is not verified is read,
 * listed in the documentation and not used: such a key is not planted, such a window does not count, such a rule about answers
 * and such a probe do not exist, such a URL must be given by the user. What the user writes in the policy counts as verified.
 */
#ifndef SEMEL_DESTINATION_DESTINATION_READ_H
#define SEMEL_DESTINATION_DESTINATION_READ_H

#include "base/facts.h"
#include "base/settings.h"
#include "destination/destination.h"

/* What a destination is read with. */
struct destination_source {
    struct arena *arena;   /* owns what is returned */
    struct arena *scratch; /* may be forgotten afterwards */
    struct yaml_problems *problems;
    const char *zone; /* for the time parts of a key template; NULL is UTC */
};

/* One destination of the policy: the node of its name, and its settings (NULL for none). `ret` is complete only when no problem
 * was added, but its key template must be freed in any case. FULL when memory runs out. */
CHECKED enum status destination_read(const struct destination_source *source, const struct yaml *name,
                                     const struct yaml *settings, struct destination *ret);

/* The settings that a destination may have; `places` are bits 1 << kind. */
extern const struct setting destination_settings[];
extern const size_t destination_setting_count;

/* ---- providers ---- */

size_t provider_count(void);
struct bytes provider_name(size_t index);      /* "stripe", in alphabetical order */
struct bytes provider_text(struct bytes name); /* its file; BYTES_NONE when there is none */

struct provider {
    struct bytes title, about;
    enum destination_kind kind;
    struct bytes url; /* BYTES_NONE: the user gives it */
    struct auth auth;
    struct rate rate;
    struct call_rules *calls;
    size_t call_count;
    struct setting_value *settings; /* one for each of destination_settings */
    struct facts facts;
};

/* INVALID when the file has a problem. */
CHECKED enum status provider_read(const struct destination_source *source, struct bytes text, struct provider *ret);

#endif
