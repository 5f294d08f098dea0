#include "http/tls.h"

#include <errno.h>
#include <limits.h>
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <unistd.h>

struct tls {
    SSL_CTX *context;
    unsigned char protocol[32]; /* as ALPN writes it: its length, then its name */
};

struct tls_conn {
    SSL *ssl;
    BIO *in, *out; /* owned by ssl */
    bool failed;
};

/* A key with a passphrase must not make a daemon ask on a terminal. */
static int no_passphrase(char *buffer, int size, int writing, void *user)
{
    (void)buffer, (void)size, (void)writing, (void)user;
    return -1;
}

static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *out_len, const unsigned char *in,
                           unsigned int in_len, void *user)
{
    (void)ssl;
    const struct tls *tls = user;
    unsigned char *chosen = NULL;
    if (SSL_select_next_proto(&chosen, out_len, tls->protocol, tls->protocol[0] + 1u, in, in_len) != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static enum status bad_file(struct why *why, const char *what, const char *path)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    if (access(path, R_OK) != 0)
        reason = strerror(errno);
    ERR_clear_error();
    return why_set(why, INVALID, "%s %s cannot be used: %s", what, path, reason != NULL ? reason : "not a valid PEM file");
}

static enum status load_files(SSL_CTX *context, const char *cert_path, const char *key_path, struct why *why)
{
    ERR_clear_error();
    SSL_CTX_set_default_passwd_cb(context, no_passphrase);
    if (SSL_CTX_use_certificate_chain_file(context, cert_path) != 1)
        return bad_file(why, "the TLS certificate", cert_path);
    if (SSL_CTX_use_PrivateKey_file(context, key_path, SSL_FILETYPE_PEM) != 1)
        return bad_file(why, "the TLS key", key_path);
    if (SSL_CTX_check_private_key(context) != 1)
        return bad_file(why, "the TLS key", key_path);
    return OK;
}

static void set_rules(struct tls *tls, const char *protocol)
{
    SSL_CTX *context = tls->context;
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_options(context, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_CIPHER_SERVER_PREFERENCE |
                                     SSL_OP_CLEANSE_PLAINTEXT);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    if (protocol == NULL)
        return;
    size_t len = strlen(protocol);
    ASSERT(len < sizeof tls->protocol);
    tls->protocol[0] = (unsigned char)len;
    memcpy(tls->protocol + 1, protocol, len);
    SSL_CTX_set_alpn_select_cb(context, choose_protocol, tls);
}

enum status tls_open(const char *cert_path, const char *key_path, const char *protocol, struct tls **ret_tls, struct why *why)
{
    struct tls *tls = calloc(1, sizeof *tls);
    if (tls == NULL || (tls->context = SSL_CTX_new(TLS_server_method())) == NULL) {
        free(tls);
        return why_set(why, FULL, "there is no memory for TLS");
    }
    set_rules(tls, protocol);
    enum status status = load_files(tls->context, cert_path, key_path, why);
    if (status == OK)
        *ret_tls = tls;
    else
        tls_close(tls);
    return status;
}

void tls_close(struct tls *tls)
{
    if (tls == NULL)
        return;
    SSL_CTX_free(tls->context);
    free(tls);
}

struct tls_conn *tls_conn_new(struct tls *tls)
{
    struct tls_conn *conn = calloc(1, sizeof *conn);
    BIO *in = BIO_new(BIO_s_mem()), *out = BIO_new(BIO_s_mem());
    SSL *ssl = SSL_new(tls->context);
    if (conn == NULL || in == NULL || out == NULL || ssl == NULL) {
        BIO_free(in);
        BIO_free(out);
        SSL_free(ssl);
        free(conn);
        return NULL;
    }
    SSL_set_bio(ssl, in, out);
    SSL_set_accept_state(ssl);
    *conn = (struct tls_conn){.ssl = ssl, .in = in, .out = out};
    return conn;
}

void tls_conn_free(struct tls_conn *conn)
{
    if (conn == NULL)
        return;
    SSL_free(conn->ssl);
    free(conn);
}

bool tls_conn_feed(struct tls_conn *conn, struct bytes cipher)
{
    return cipher.len <= INT_MAX && BIO_write(conn->in, cipher.at, (int)cipher.len) == (int)cipher.len;
}

/* After a fatal error OpenSSL forbids every further call, SSL_shutdown included. */
static bool wants_more(struct tls_conn *conn, int result)
{
    int error = SSL_get_error(conn->ssl, result);
    if (error == SSL_ERROR_WANT_READ)
        return true;
    conn->failed = true;
    ERR_clear_error();
    return false;
}

enum status tls_conn_handshake(struct tls_conn *conn)
{
    ERR_clear_error();
    int result = SSL_do_handshake(conn->ssl);
    if (result == 1)
        return OK;
    return wants_more(conn, result) ? NOTHING : INVALID;
}

enum status tls_conn_read(struct tls_conn *conn, char *to, size_t room, size_t *ret_len)
{
    if (conn->failed)
        return BROKEN;
    ERR_clear_error();
    int result = SSL_read(conn->ssl, to, room < INT_MAX ? (int)room : INT_MAX);
    if (result <= 0 && SSL_get_error(conn->ssl, result) == SSL_ERROR_ZERO_RETURN)
        result = 0;
    else if (result <= 0)
        return wants_more(conn, result) ? NOTHING : BROKEN;
    *ret_len = (size_t)result;
    return OK;
}

bool tls_conn_write(struct tls_conn *conn, struct bytes plain)
{
    if (conn->failed)
        return false;
    ERR_clear_error();
    size_t written = 0;
    if (plain.len > 0 && (SSL_write_ex(conn->ssl, plain.at, plain.len, &written) != 1 || written != plain.len)) {
        conn->failed = true;
        ERR_clear_error();
        return false;
    }
    return true;
}

void tls_conn_finish(struct tls_conn *conn)
{
    if (conn->failed || !SSL_is_init_finished(conn->ssl))
        return;
    ERR_clear_error();
    if (SSL_shutdown(conn->ssl) < 0)
        conn->failed = true;
    ERR_clear_error();
}

struct bytes tls_conn_leaving(struct tls_conn *conn)
{
    char *at = NULL;
    long len = BIO_get_mem_data(conn->out, &at);
    return len > 0 ? (struct bytes){at, (size_t)len} : (struct bytes){"", 0};
}

void tls_conn_left(struct tls_conn *conn)
{
    (void)BIO_reset(conn->out);
}
