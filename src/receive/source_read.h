/*
 * source_read: presets and rows of the policy into struct source. Pure and strict, like the policy: all problems are told with line,
 * column and what to write instead.
 */
#ifndef SEMEL_RECEIVE_SOURCE_READ_H
#define SEMEL_RECEIVE_SOURCE_READ_H

#include "base/facts.h"
#include "receive/source.h"

/* What a source is read with. */
struct source_reading {
    struct arena *arena;   /* owns what is returned */
    struct arena *scratch; /* may be forgotten afterwards */
    struct yaml_problems *problems;
};

/* One source of the policy: the node of its name, and its settings (NULL for none). `ret` is complete only when no problem was
 * added. FULL when memory runs out. */
CHECKED enum status source_read(const struct source_reading *reading, const struct yaml *name, const struct yaml *settings,
                                struct source *ret);

/* The settings that a source may have. */
extern const struct setting source_settings[];
extern const size_t source_setting_count;

/* ---- presets ---- */

size_t preset_count(void);
struct bytes preset_name(size_t index);      /* "stripe", in alphabetical order */
struct bytes preset_text(struct bytes name); /* its file; BYTES_NONE when there is none */

struct preset_rule {
    struct verify_rule rule;
    bool optional; /* used only when the policy asks for it by name: it is weak, or nobody has verified it */
};

struct preset {
    struct bytes title, about;
    enum source_reads reads;
    struct preset_rule rules[SOURCE_RULES_MAX];
    size_t rule_count;
    struct handshake_rule *handshakes;
    size_t handshake_count;
    struct event_map *maps;
    size_t map_count;
    int64_t retry_us;
    struct bytes reply, reply_type;
    struct source_sample sample;
    struct facts facts;
};

/* INVALID when the file has a problem. */
CHECKED enum status preset_read(const struct source_reading *reading, struct bytes text, struct preset *ret);

#endif
