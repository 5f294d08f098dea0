/* A mail: whatever is read is UTF-8 in bounds, and the same mail is read the same again. */
#include "fuzz.h"

#include "base/hash.h"
#include "mail/mail_own.h"

static void check_text(struct bytes text)
{
    ASSERT(bytes_is_utf8(text));
    ASSERT(text.len == 0 || memchr(text.at, '\0', text.len) == NULL);
}

static void check(const struct incoming *in)
{
    ASSERT(bytes_starts(in->key, BYTES("mail:")));
    ASSERT(in->key.len > 5);
    ASSERT(in->key.len <= INCOMING_ID_MAX);
    ASSERT(in->text.len <= INCOMING_TEXT_MAX);
    ASSERT(in->identity_count <= INCOMING_IDENTITIES_MAX);
    ASSERT(in->reference_count <= INCOMING_REFERENCES_MAX);
    ASSERT(in->at_us >= 0);
    check_text(in->key);
    check_text(in->name);
    check_text(in->subject);
    check_text(in->text);
    for (size_t i = 0; i < in->identity_count; i++) {
        check_text(in->identities[i].value);
        ASSERT(in->identities[i].value.len > 0);
    }
    for (size_t i = 0; i < in->reference_count; i++)
        check_text(in->references[i]);
}

/* What was taken off once has nothing left to take off. */
static void check_subject(struct bytes subject)
{
    bool forwarded;
    ASSERT(bytes_eq(mail_strip_subject(subject, &forwarded), subject));
    ASSERT(!forwarded);
}

FUZZ_TARGET(mail)(const uint8_t *data, size_t size)
{
    struct bytes raw = fuzz_exact(fuzz_bytes(data, size));
    struct incoming first = {0}, second = {0};
    struct arena arena, small;
    struct why why = {""};
    hash_setup();
    arena_init(&arena, FUZZ_ARENA_MAX);
    arena_init(&small, size);
    if (mail_read(raw, BYTES("FR"), &arena, &first, &why) == OK) {
        check(&first);
        check_subject(first.subject);
        ASSERT(mail_read(raw, BYTES("FR"), &arena, &second, &why) == OK);
        ASSERT(bytes_eq(first.key, second.key));
        ASSERT(bytes_eq(first.text, second.text));
        ASSERT(first.automatic == second.automatic);
    }
    enum status status = mail_read(raw, BYTES("FR"), &small, &second, &why);
    ASSERT(status == OK || status == FULL || status == INVALID);
    arena_release(&arena);
    arena_release(&small);
    free((char *)raw.at);
    return 0;
}
