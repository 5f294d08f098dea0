#include "secret/seal.h"

#include <endian.h>
#include <pthread.h>
#include <sodium.h>

#include "base/hash.h"

enum {
    NONCE_SIZE = crypto_aead_xchacha20poly1305_ietf_NPUBBYTES,
    TAG_SIZE = crypto_aead_xchacha20poly1305_ietf_ABYTES,
    DATA_KEY_SIZE = crypto_aead_xchacha20poly1305_ietf_KEYBYTES,
};

_Static_assert(MASTER_KEY_SIZE == crypto_aead_xchacha20poly1305_ietf_KEYBYTES, "the master key is a key of the same cipher");

void seal_setup(void)
{
    int started = sodium_init();
    ASSERT(started >= 0);
}

/* ---- memory ---- */

/*
 * Blocks that were given back, wiped, for the next text of the same length: getting one from the system costs several calls that stop
 * every thread for a moment, and a busy source opens its secret with each delivery.
 */
#define KEPT_MAX 8
#define KEPT_SIZE_MAX 4096

static struct {
    pthread_mutex_t lock;
    struct secret_text at[KEPT_MAX];
    size_t count;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

static char *take_kept(size_t len)
{
    char *at = NULL;
    pthread_mutex_lock(&kept.lock);
    for (size_t i = 0; i < kept.count && at == NULL; i++)
        if (kept.at[i].len == len) {
            at = kept.at[i].at;
            kept.at[i] = kept.at[--kept.count];
        }
    pthread_mutex_unlock(&kept.lock);
    return at;
}

static bool keep(const struct secret_text *text)
{
    pthread_mutex_lock(&kept.lock);
    bool room = kept.count < KEPT_MAX && text->len <= KEPT_SIZE_MAX;
    if (room) {
        sodium_memzero(text->at, text->len);
        kept.at[kept.count++] = *text;
    }
    pthread_mutex_unlock(&kept.lock);
    return room;
}

bool secret_text_make(size_t len, struct secret_text *ret_text)
{
    char *at = take_kept(len);
    if (at == NULL)
        at = len < SIZE_MAX ? sodium_malloc(len + 1) : NULL;
    if (at == NULL)
        return false;
    at[len] = '\0';
    *ret_text = (struct secret_text){at, len};
    return true;
}

void secret_text_free(struct secret_text *text)
{
    if (text->at != NULL && !keep(text))
        sodium_free(text->at);
    *text = (struct secret_text){NULL, 0};
}

void master_key_name(struct master_key *key)
{
    struct hash hash = hash_hmac_sha256((struct bytes){(const char *)key->key, sizeof key->key}, BYTES("semel-master-key-id-1"));
    bytes_to_hex((struct bytes){(const char *)hash.at, MASTER_KEY_ID_SIZE / 2}, key->id);
    key->id[MASTER_KEY_ID_SIZE] = '\0';
}

/* ---- one box: a nonce, then the cipher text with its tag ---- */

static struct hash label_hash(const char *purpose, const struct secret_label *label, struct bytes master)
{
    uint64_t version = htobe64((uint64_t)label->version);
    const struct bytes parts[] = {bytes_of(purpose), label->space, label->name, {(const char *)&version, sizeof version}, master};
    return hash_parts(parts, sizeof parts / sizeof *parts);
}

static struct hash bind_value(const struct secret_label *label)
{
    return label_hash("semel-secret-1", label, BYTES(""));
}

static struct hash bind_key(const struct secret_label *label, const struct master_key *master)
{
    return label_hash("semel-secret-key-1", label, bytes_of(master->id));
}

static enum status box_make(struct env *env, const uint8_t *key, const struct hash *bound, struct bytes plain,
                            struct arena *arena, struct bytes *ret_box, struct why *why)
{
    size_t size = NONCE_SIZE + plain.len + TAG_SIZE;
    uint8_t *box = arena_alloc(arena, size);
    if (box == NULL)
        return why_set(why, FULL, "there is no memory to seal the secret");
    unsigned long long made = 0;
    env->random(env, box, NONCE_SIZE);
    crypto_aead_xchacha20poly1305_ietf_encrypt(box + NONCE_SIZE, &made, (const uint8_t *)plain.at, plain.len, bound->at,
                                               HASH_SIZE, NULL, box, key);
    ASSERT(made == plain.len + TAG_SIZE);
    *ret_box = (struct bytes){(const char *)box, size};
    return OK;
}

/* `ret_plain` has room for box.len - NONCE_SIZE - TAG_SIZE bytes; the caller has checked that it is not less than nothing. */
static bool box_open(const uint8_t *key, const struct hash *bound, struct bytes box, uint8_t *ret_plain)
{
    const uint8_t *at = (const uint8_t *)box.at;
    return crypto_aead_xchacha20poly1305_ietf_decrypt(ret_plain, NULL, NULL, at + NONCE_SIZE, box.len - NONCE_SIZE, bound->at,
                                                      HASH_SIZE, at, key) == 0;
}

/* ---- secrets ---- */

static enum status damaged(struct why *why, const struct secret_label *label)
{
    return why_set(why, BROKEN, "the secret \"%.*s\" does not open: its row was changed, or belongs to another name or version",
                   BYTES_ARG(label->name));
}

enum status seal_make(struct env *env, const struct master_key *master, const struct secret_label *label, struct bytes value,
                      struct arena *arena, struct bytes *ret_wrapped, struct bytes *ret_sealed, struct why *why)
{
    uint8_t data_key[DATA_KEY_SIZE];
    struct hash value_bound = bind_value(label), key_bound = bind_key(label, master);
    struct bytes wrapped, sealed;
    env->random(env, data_key, sizeof data_key);
    enum status status = box_make(env, data_key, &value_bound, value, arena, &sealed, why);
    if (status == OK)
        status =
            box_make(env, master->key, &key_bound, (struct bytes){(const char *)data_key, sizeof data_key}, arena, &wrapped, why);
    sodium_memzero(data_key, sizeof data_key);
    if (status != OK)
        return status;
    *ret_wrapped = wrapped;
    *ret_sealed = sealed;
    return OK;
}

static enum status open_key(const struct master_key *master, const struct secret_label *label, struct bytes wrapped,
                            uint8_t ret_data_key[DATA_KEY_SIZE], struct why *why)
{
    struct hash bound = bind_key(label, master);
    if (wrapped.len != NONCE_SIZE + DATA_KEY_SIZE + TAG_SIZE || !box_open(master->key, &bound, wrapped, ret_data_key))
        return damaged(why, label);
    return OK;
}

static enum status open_value(const uint8_t *data_key, const struct secret_label *label, struct bytes sealed,
                              struct secret_text *ret_text, struct why *why)
{
    struct hash bound = bind_value(label);
    struct secret_text text;
    if (sealed.len < NONCE_SIZE + TAG_SIZE)
        return damaged(why, label);
    if (!secret_text_make(sealed.len - NONCE_SIZE - TAG_SIZE, &text))
        return why_set(why, FULL, "there is no memory to open the secret");
    if (!box_open(data_key, &bound, sealed, (uint8_t *)text.at)) {
        secret_text_free(&text);
        return damaged(why, label);
    }
    *ret_text = text;
    return OK;
}

enum status seal_open(const struct master_key *master, const struct secret_label *label, struct bytes wrapped,
                      struct bytes sealed, struct secret_text *ret_text, struct why *why)
{
    uint8_t data_key[DATA_KEY_SIZE];
    enum status status = open_key(master, label, wrapped, data_key, why);
    if (status == OK)
        status = open_value(data_key, label, sealed, ret_text, why);
    sodium_memzero(data_key, sizeof data_key);
    return status;
}

enum status seal_rewrap(struct env *env, const struct master_key *from, const struct master_key *to,
                        const struct secret_label *label, struct bytes wrapped, struct arena *arena, struct bytes *ret_wrapped,
                        struct why *why)
{
    uint8_t data_key[DATA_KEY_SIZE];
    struct hash bound = bind_key(label, to);
    enum status status = open_key(from, label, wrapped, data_key, why);
    if (status == OK)
        status = box_make(env, to->key, &bound, (struct bytes){(const char *)data_key, sizeof data_key}, arena, ret_wrapped, why);
    sodium_memzero(data_key, sizeof data_key);
    return status;
}
