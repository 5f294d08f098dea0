/*
 * facts: what a file that is part of the program says about the world outside. Each fact has its evidence (S source or specification,
 * D the vendor's documentation, I an issue thread, 2 a secondary source, M memory) and whether it is verified. What the user writes in
 * the policy is the user's word and counts as verified.
 */
#ifndef SEMEL_BASE_FACTS_H
#define SEMEL_BASE_FACTS_H

#include "base/settings.h"

/* Where facts stand: in a file of ours they need evidence, in the policy they are the user's word. */
enum fact_place { FACT_FILE = 1, FACT_POLICY = 2 };

/* Every table of facts begins with these: FACT_HEAD. */
enum { FACT_EVIDENCE, FACT_VERIFIED, FACT_NOTE, FACT_ROWS };

extern const char *const evidence_names[]; /* "S", "D", "I", "2", "M", NULL */

#define FACT_HEAD                                               \
    [FACT_EVIDENCE] = {.name = "evidence",                      \
                       .kind = SETTING_CHOICE,                  \
                       .places = FACT_FILE,                     \
                       .names = evidence_names,                 \
                       .example = "D",                          \
                       .help = "Where the fact comes from."},   \
    [FACT_VERIFIED] = {.name = "verified",                      \
                       .kind = SETTING_SWITCH,                  \
                       .places = FACT_FILE,                     \
                       .example = "true",                       \
                       .help = "Whether it may be relied on."}, \
    [FACT_NOTE] = {.name = "note",                              \
                   .kind = SETTING_TEXT,                        \
                   .places = FACT_FILE | FACT_POLICY,           \
                   .example = "\"documentation of 2026\"",      \
                   .help = "What was found, in words."}

/* A fact, for documentation and tests. */
struct fact {
    size_t line;
    const char *what; /* "key", "window", "probe" … */
    char evidence;    /* S D I 2 M */
    bool verified;
};

#define FACTS_MAX 256

struct facts {
    struct fact at[FACTS_MAX];
    size_t count;
};

struct fact_reader {
    enum fact_place place;
    struct arena *arena;
    struct yaml_problems *problems;
    struct facts *facts; /* gets the facts; NULL in the policy */
};

/* The values of one fact, and whether it may be relied on. */
CHECKED enum status fact_read(const struct fact_reader *reader, const struct setting_table *table, const char *what,
                              const struct yaml *map, struct setting_value *ret_values, bool *ret_verified);

#endif
