/* Keys, encodings and signatures. Nothing here keeps a key. */
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "base/base64.h"
#include "base/hash.h"
#include "receive/receive_own.h"

enum { ED25519_KEY_SIZE = 32, SHA1_SIZE = 20, KEY_SIZE_MAX_BYTES = 8192 };

/* ---- encodings ---- */

static struct bytes hex_decode(struct bytes text, struct arena *arena)
{
    char *at = arena_alloc(arena, text.len / 2 + 1);
    if (at == NULL || text.len % 2 != 0)
        return BYTES_NONE;
    for (size_t i = 0; i < text.len; i += 2) {
        int high = bytes_hex_digit(text.at[i]), low = bytes_hex_digit(text.at[i + 1]);
        if (high < 0 || low < 0)
            return BYTES_NONE;
        at[i / 2] = (char)(high << 4 | low);
    }
    return (struct bytes){at, text.len / 2};
}

struct bytes cipher_decode(enum verify_encoding encoding, struct bytes text, struct arena *arena)
{
    return encoding == VERIFY_HEX ? hex_decode(text, arena) : base64_decode(text, arena);
}

struct bytes cipher_encode(enum verify_encoding encoding, struct bytes bytes, struct arena *arena)
{
    if (encoding == VERIFY_BASE64)
        return base64_encode(bytes, arena);
    char *hex = arena_alloc(arena, 2 * bytes.len + 1);
    if (hex == NULL)
        return BYTES_NONE;
    bytes_to_hex(bytes, hex);
    hex[2 * bytes.len] = '\0';
    return (struct bytes){hex, 2 * bytes.len};
}

struct bytes cipher_key(const struct verify_rule *rule, struct bytes secret, struct arena *arena)
{
    if (secret.at == NULL || secret.len == 0 || secret.len > KEY_SIZE_MAX_BYTES)
        return BYTES_NONE;
    if (rule->key_prefix.len > 0 && bytes_starts(secret, rule->key_prefix))
        secret = bytes_from(secret, rule->key_prefix.len);
    bool pem = bytes_starts(secret, BYTES("-----BEGIN "));
    if (rule->key != VERIFY_KEY_RAW && !pem)
        secret = base64_decode(secret, arena);
    return secret.len > 0 ? secret : BYTES_NONE;
}

/* ---- keys ---- */

static EVP_PKEY *pem_key(struct bytes key, bool secret)
{
    BIO *bio = BIO_new_mem_buf(key.at, (int)key.len);
    if (bio == NULL)
        return NULL;
    EVP_PKEY *made = secret ? PEM_read_bio_PrivateKey(bio, NULL, NULL, NULL) : PEM_read_bio_PUBKEY(bio, NULL, NULL, NULL);
    BIO_free(bio);
    return made;
}

static EVP_PKEY *der_key(struct bytes key, bool secret)
{
    const unsigned char *at = (const unsigned char *)key.at;
    EVP_PKEY *made = secret ? d2i_AutoPrivateKey(NULL, &at, (long)key.len) : d2i_PUBKEY(NULL, &at, (long)key.len);
    if (made != NULL && at != (const unsigned char *)key.at + key.len) { /* something stands behind it */
        EVP_PKEY_free(made);
        return NULL;
    }
    return made;
}

static bool is_p256(EVP_PKEY *key)
{
    char name[32];
    size_t len;
    return EVP_PKEY_is_a(key, "EC") && EVP_PKEY_get_group_name(key, name, sizeof name, &len) == 1 &&
           bytes_is((struct bytes){name, len}, "prime256v1");
}

/* A private key may be the seed, or the seed with the public key behind it. */
static EVP_PKEY *raw_ed25519(struct bytes key, bool secret)
{
    const unsigned char *at = (const unsigned char *)key.at;
    if (key.len != ED25519_KEY_SIZE && !(secret && key.len == 2 * ED25519_KEY_SIZE))
        return NULL;
    return secret ? EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, at, ED25519_KEY_SIZE)
                  : EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, at, ED25519_KEY_SIZE);
}

static EVP_PKEY *read_key(enum verify_alg alg, struct bytes key, bool secret)
{
    EVP_PKEY *made = NULL;
    if (bytes_starts(key, BYTES("-----BEGIN ")))
        made = pem_key(key, secret);
    else if (alg == VERIFY_ED25519 && (made = raw_ed25519(key, secret)) != NULL)
        return made;
    else
        made = der_key(key, secret);
    bool right = made != NULL && (alg == VERIFY_ECDSA ? is_p256(made) : EVP_PKEY_is_a(made, "ED25519"));
    if (made != NULL && !right) {
        EVP_PKEY_free(made);
        made = NULL;
    }
    ERR_clear_error();
    return made;
}

/* ---- signatures ---- */

bool cipher_holds(enum verify_alg alg, struct bytes key, struct bytes data, struct bytes signature)
{
    EVP_PKEY *public = read_key(alg, key, false);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool holds = public != NULL && context != NULL &&
                 EVP_DigestVerifyInit(context, NULL, alg == VERIFY_ECDSA ? EVP_sha256() : NULL, NULL, public) == 1 &&
                 EVP_DigestVerify(context, (const unsigned char *)signature.at, signature.len, (const unsigned char *)data.at,
                                  data.len) == 1;
    EVP_MD_CTX_free(context);
    EVP_PKEY_free(public);
    ERR_clear_error();
    return holds;
}

static bool sign(enum verify_alg alg, struct bytes key, struct bytes data, char ret[CIPHER_SIZE_MAX], size_t *ret_len)
{
    EVP_PKEY *private = read_key(alg, key, true);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    size_t len = CIPHER_SIZE_MAX;
    bool made = private != NULL && context != NULL &&
                EVP_DigestSignInit(context, NULL, alg == VERIFY_ECDSA ? EVP_sha256() : NULL, NULL, private) == 1 &&
                EVP_DigestSign(context, (unsigned char *)ret, &len, (const unsigned char *)data.at, data.len) == 1;
    EVP_MD_CTX_free(context);
    EVP_PKEY_free(private);
    ERR_clear_error();
    if (made)
        *ret_len = len;
    return made;
}

static bool hmac_sha1(struct bytes key, struct bytes data, char ret[CIPHER_SIZE_MAX], size_t *ret_len)
{
    unsigned len = 0;
    if (HMAC(EVP_sha1(), key.at, (int)key.len, (const unsigned char *)data.at, data.len, (unsigned char *)ret, &len) == NULL)
        return false;
    *ret_len = len;
    return len == SHA1_SIZE;
}

bool cipher_make(enum verify_alg alg, struct bytes key, struct bytes data, char ret[CIPHER_SIZE_MAX], size_t *ret_len)
{
    struct hash hash;
    switch (alg) {
    case VERIFY_HMAC_SHA1:
        return hmac_sha1(key, data, ret, ret_len);
    case VERIFY_ECDSA:
    case VERIFY_ED25519:
        return sign(alg, key, data, ret, ret_len);
    case VERIFY_HMAC_SHA256:
        hash = hash_hmac_sha256(key, data);
        break;
    case VERIFY_SHA256:
        hash = hash_sha256(data);
        break;
    case VERIFY_EQUAL: /* of two hashes no time tells where or how long they differ */
    case VERIFY_BASIC:
        hash = hash_sha256(key);
        break;
    default:
        return false;
    }
    memcpy(ret, hash.at, HASH_SIZE);
    *ret_len = HASH_SIZE;
    return true;
}
