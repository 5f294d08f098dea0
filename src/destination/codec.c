#include <stdio.h>

#include "base/hash.h"
#include "destination/destination.h"

/* Every UUID that semel makes of a key is in this namespace; changing it would make every key a new one. */
static const uint8_t uuid_namespace[16] = {0x8f, 0x1d, 0x3a, 0x6e, 0x52, 0xc4, 0x4b, 0x0a,
                                           0x9e, 0x77, 0x1b, 0x60, 0xd2, 0xa5, 0x4c, 0x93};

const char *const codec_kind_names[] = {"plain", "uuid", "hex", "base32", "message_id", NULL};

static struct bytes encode_uuid(struct bytes key, struct arena *arena)
{
    char text[37];
    hash_uuid5(uuid_namespace, key, text);
    return arena_dup(arena, bytes_of(text));
}

static struct bytes encode_hex(struct bytes key, struct arena *arena)
{
    char text[2 * HASH_SIZE];
    struct hash hash = hash_sha256(key);
    bytes_to_hex(hash_bytes(&hash), text);
    return arena_dup(arena, (struct bytes){text, sizeof text});
}

/* Five bits a character, from the front; the last one is filled up with zero bits. */
static struct bytes encode_base32(struct bytes key, struct arena *arena)
{
    static const char alphabet[] = "0123456789abcdefghjkmnpqrstvwxyz";
    char text[(HASH_SIZE * 8 + 4) / 5];
    struct hash hash = hash_sha256(key);
    for (size_t i = 0; i < sizeof text; i++) {
        size_t bit = i * 5;
        unsigned pair = (unsigned)hash.at[bit / 8] << 8 | (bit / 8 + 1 < HASH_SIZE ? hash.at[bit / 8 + 1] : 0U);
        text[i] = alphabet[pair >> (11 - bit % 8) & 31];
    }
    return arena_dup(arena, (struct bytes){text, sizeof text});
}

/* True when `c` is in a set such as "A-Za-z0-9_:-"; a '-' at either end is itself. */
static bool set_has(struct bytes set, char c)
{
    for (size_t i = 0; i < set.len; i++) {
        if (i + 2 < set.len && set.at[i + 1] == '-') {
            if (c >= set.at[i] && c <= set.at[i + 2])
                return true;
            i += 2;
        } else if (c == set.at[i]) {
            return true;
        }
    }
    return false;
}

static struct bytes filter(struct bytes text, struct bytes set, struct arena *arena)
{
    char *copy = arena_alloc(arena, text.len + 1);
    if (copy == NULL)
        return BYTES_NONE;
    for (size_t i = 0; i < text.len; i++)
        copy[i] = set_has(set, text.at[i]) ? text.at[i] : '_';
    copy[text.len] = '\0';
    return (struct bytes){copy, text.len};
}

static struct bytes encode(const struct key_codec *codec, struct bytes key, struct bytes domain, struct arena *arena)
{
    switch (codec->kind) {
    case CODEC_PLAIN:
        return arena_dup(arena, key);
    case CODEC_UUID:
        return encode_uuid(key, arena);
    case CODEC_HEX:
        return encode_hex(key, arena);
    case CODEC_BASE32:
        return encode_base32(key, arena);
    case CODEC_MESSAGE_ID:
        return arena_printf(arena, "<%.*s@%.*s>", BYTES_ARG(key), BYTES_ARG(domain));
    }
    return BYTES_NONE;
}

enum status key_encode(const struct key_codec *codec, struct bytes downstream_key, struct bytes domain, struct arena *arena,
                       struct bytes *ret, struct why *why)
{
    struct bytes text = encode(codec, downstream_key, domain.len > 0 ? domain : BYTES("semel.invalid"), arena);
    if (text.at != NULL && codec->size > 0 && text.len > codec->size) {
        if (codec->kind != CODEC_HEX && codec->kind != CODEC_BASE32)
            return why_set(why, INVALID, "the key has %zu characters and the destination takes %zu; use the codec base32",
                           text.len, codec->size);
        text = arena_dup(arena, (struct bytes){text.at, codec->size});
    }
    if (text.at != NULL && codec->charset.len > 0)
        text = filter(text, codec->charset, arena);
    if (text.at == NULL)
        return why_set(why, FULL, "there is no memory for the key");
    *ret = text;
    return OK;
}
