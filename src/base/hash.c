#include "base/hash.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <pthread.h>

#include "base/status.h"

enum { BLOCK_SIZE = 64 };

static EVP_MD *sha256, *sha1;
static uint32_t crc_table[256];
static pthread_key_t context_key;
static pthread_once_t setup_once = PTHREAD_ONCE_INIT;

static _Thread_local EVP_MD_CTX *thread_context;

static void free_context(void *context)
{
    EVP_MD_CTX_free(context);
}

static void fill_crc_table(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t crc = i;
        for (int bit = 0; bit < 8; bit++)
            crc = (crc & 1) != 0 ? crc >> 1 ^ 0xEDB88320U : crc >> 1;
        crc_table[i] = crc;
    }
}

static void setup(void)
{
    sha256 = EVP_MD_fetch(NULL, "SHA256", NULL);
    ASSERT(sha256 != NULL);
    sha1 = EVP_MD_fetch(NULL, "SHA1", NULL);
    ASSERT(sha1 != NULL);
    int made = pthread_key_create(&context_key, free_context);
    ASSERT(made == 0);
    fill_crc_table();
}

void hash_setup(void)
{
    pthread_once(&setup_once, setup);
}

/* One context per thread, freed when the thread ends. */
static EVP_MD_CTX *begin_with(const EVP_MD *digest)
{
    ASSERT(digest != NULL);
    if (thread_context == NULL) {
        thread_context = EVP_MD_CTX_new();
        ASSERT(thread_context != NULL);
        pthread_setspecific(context_key, thread_context);
    }
    int began = EVP_DigestInit_ex2(thread_context, digest, NULL);
    ASSERT(began == 1);
    return thread_context;
}

static EVP_MD_CTX *begin(void)
{
    return begin_with(sha256);
}

static void add(EVP_MD_CTX *context, const void *at, size_t len)
{
    int added = len == 0 ? 1 : EVP_DigestUpdate(context, at, len);
    ASSERT(added == 1);
}

static struct hash end(EVP_MD_CTX *context)
{
    struct hash hash;
    int ended = EVP_DigestFinal_ex(context, hash.at, NULL);
    ASSERT(ended == 1);
    return hash;
}

struct hash hash_sha256(struct bytes data)
{
    EVP_MD_CTX *context = begin();
    add(context, data.at, data.len);
    return end(context);
}

struct hash hash_parts(const struct bytes *parts, size_t count)
{
    EVP_MD_CTX *context = begin();
    for (size_t i = 0; i < count; i++) {
        uint8_t len[8];
        for (int at = 0; at < 8; at++)
            len[at] = (uint8_t)((uint64_t)parts[i].len >> (56 - 8 * at));
        add(context, len, sizeof len);
        add(context, parts[i].at, parts[i].len);
    }
    return end(context);
}

/* RFC 2104 on the thread's digest context: several times faster than a fresh MAC context for each message. */
struct hash hash_hmac_sha256(struct bytes key, struct bytes data)
{
    uint8_t pad[BLOCK_SIZE] = {0};
    if (key.len > BLOCK_SIZE) {
        struct hash short_key = hash_sha256(key);
        memcpy(pad, short_key.at, HASH_SIZE);
        OPENSSL_cleanse(&short_key, sizeof short_key);
    } else if (key.len > 0) {
        memcpy(pad, key.at, key.len);
    }
    for (int i = 0; i < BLOCK_SIZE; i++)
        pad[i] ^= 0x36;
    EVP_MD_CTX *context = begin();
    add(context, pad, sizeof pad);
    add(context, data.at, data.len);
    struct hash inner = end(context);
    for (int i = 0; i < BLOCK_SIZE; i++)
        pad[i] ^= 0x36 ^ 0x5C;
    context = begin();
    add(context, pad, sizeof pad);
    add(context, inner.at, HASH_SIZE);
    OPENSSL_cleanse(pad, sizeof pad);
    return end(context);
}

void hash_uuid5(const uint8_t namespace[16], struct bytes name, char ret[37])
{
    uint8_t digest[20];
    char hex[32];
    EVP_MD_CTX *context = begin_with(sha1);
    add(context, namespace, 16);
    add(context, name.at, name.len);
    int ended = EVP_DigestFinal_ex(context, digest, NULL);
    ASSERT(ended == 1);
    digest[6] = (uint8_t)((digest[6] & 0x0F) | 0x50);
    digest[8] = (uint8_t)((digest[8] & 0x3F) | 0x80);
    bytes_to_hex((struct bytes){(const char *)digest, 16}, hex);
    for (size_t from = 0, to = 0; from < sizeof hex; from++) {
        if (to == 8 || to == 13 || to == 18 || to == 23)
            ret[to++] = '-';
        ret[to++] = hex[from];
    }
    ret[36] = '\0';
}

bool hash_equal(struct bytes a, struct bytes b)
{
    return a.len == b.len && (a.len == 0 || CRYPTO_memcmp(a.at, b.at, a.len) == 0);
}

uint32_t hash_crc32(struct bytes data)
{
    ASSERT(sha256 != NULL);
    uint32_t crc = ~0U;
    for (size_t i = 0; i < data.len; i++)
        crc = crc >> 8 ^ crc_table[(crc ^ (uint8_t)data.at[i]) & 0xFF];
    return ~crc;
}
