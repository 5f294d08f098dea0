/*
 * key_text: how one value is written into a key. Equal for everybody means equal here: Unicode NFC, white space trimmed and
 * collapsed, numbers in canonical form; what could be taken for the template's own text is escaped.
 */
#ifndef SEMEL_FINGERPRINT_KEY_TEXT_H
#define SEMEL_FINGERPRINT_KEY_TEXT_H

#include "fingerprint/fingerprint.h"

struct key_out {
    size_t len;
    bool full; /* sticky: something did not fit */
    char at[KEY_SIZE_MAX];
};

void key_out_literal(struct key_out *out, struct bytes text);

/* With '%', control characters and the character `follow` (may be empty) as %XX per byte. */
void key_out_value(struct key_out *out, struct bytes value, struct bytes follow);

/* The text of a string, number, true or false. INVALID, with a sentence that begins with "is", when it has none. */
CHECKED enum status key_value_text(const struct json *value, struct arena *arena, struct bytes *ret_text, struct why *why);

/* Empty, or nothing but white space. */
bool key_is_blank(struct bytes text);

/* The canonical JSON text, in the arena. */
CHECKED enum status key_canonical(const struct json *value, struct arena *arena, struct bytes *ret_text, struct why *why);

/* Bytes of the UTF-8 character at the start of `text`, which is well-formed and not empty. */
size_t key_char_size(struct bytes text);

/* At most 60 bytes of it, whole characters, for sentences. */
struct bytes key_clip(struct bytes text);

#endif
