#include "http/fixture_test.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <unistd.h>

static void write_certificate(void)
{
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *cert = X509_new();
    ASN1_INTEGER_set(X509_get_serialNumber(cert), 1);
    X509_gmtime_adj(X509_getm_notBefore(cert), 0);
    X509_gmtime_adj(X509_getm_notAfter(cert), 3600);
    X509_set_pubkey(cert, key);
    X509_NAME *name = X509_get_subject_name(cert);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"localhost", -1, -1, 0);
    X509_set_issuer_name(cert, name);
    CHECK(X509_sign(cert, key, EVP_sha256()) > 0);
    FILE *file = fopen("key.pem", "w");
    CHECK(PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL));
    fclose(file);
    file = fopen("cert.pem", "w");
    CHECK(PEM_write_X509(file, cert));
    fclose(file);
    X509_free(cert);
    EVP_PKEY_free(key);
}

static struct http_server_config config_tls(void)
{
    struct http_server_config config = config_default();
    write_certificate();
    config.tls_cert = "cert.pem";
    config.tls_key = "key.pem";
    return config;
}

static SSL *dial_tls(SSL_CTX *context, const char *protocol)
{
    SSL *ssl = SSL_new(context);
    SSL_set_fd(ssl, dial());
    SSL_set_alpn_protos(ssl, (const unsigned char *)protocol, (unsigned)strlen(protocol));
    return ssl;
}

static void hang_up(SSL *ssl)
{
    int fd = SSL_get_fd(ssl);
    SSL_free(ssl);
    close(fd);
}

static void say_tls(SSL *ssl, const char *text)
{
    CHECK_INT(SSL_write(ssl, text, (int)strlen(text)), (int)strlen(text));
}

static size_t hear_tls(SSL *ssl, const char *last)
{
    size_t len = 0;
    answer[0] = '\0';
    while (len < strlen(last) || memcmp(answer + len - strlen(last), last, strlen(last)) != 0) {
        int got = SSL_read(ssl, answer + len, (int)(sizeof answer - 1 - len));
        CHECK(got > 0);
        len += (size_t)got;
        answer[len] = '\0';
    }
    return len;
}

static void check_tls(int version)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_max_proto_version(context, version);
    SSL *ssl = dial_tls(context, "\x02h2\x08http/1.1");
    CHECK_INT(SSL_connect(ssl), 1);
    CHECK_INT(SSL_version(ssl), version);
    const unsigned char *chosen;
    unsigned chosen_len;
    SSL_get0_alpn_selected(ssl, &chosen, &chosen_len);
    CHECK_TEXT(((struct bytes){(const char *)chosen, chosen_len}), "http/1.1");
    for (int i = 0; i < 20; i++) {
        say_tls(ssl, HEAD("POST /x") "Content-Length: 5\r\n\r\nhello" HEAD("GET /next") "\r\n");
        hear_tls(ssl, "/next");
        CHECK(contains(answer, "hello"));
    }
    say_tls(ssl, HEAD("GET /large") "\r\n" HEAD("GET /end") "\r\n");
    usleep(100000);
    hear_tls(ssl, "/end");
    CHECK_INT(strspn(strstr(answer, "\r\n\r\n") + 4, "x"), 4 << 20);
    say_tls(ssl, HEAD("GET /close") "\r\n");
    hear_tls(ssl, "bye");
    CHECK_INT(SSL_read(ssl, answer, 1), 0);
    CHECK_INT(SSL_get_error(ssl, 0), SSL_ERROR_ZERO_RETURN);
    hang_up(ssl);
    SSL_CTX_free(context);
}

TEST(http_server_speaks_tls_1_2_and_1_3)
{
    start(config_tls());
    check_tls(TLS1_3_VERSION);
    check_tls(TLS1_2_VERSION);
    stop(SECOND_US);
}

TEST(http_server_reads_large_tls_bodies_and_pipelines_over_tls)
{
    start(config_tls());
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *ssl = dial_tls(context, "\x08http/1.1");
    CHECK_INT(SSL_connect(ssl), 1);
    static char body[BODY_MAX];
    memset(body, 'b', BODY_MAX - 1);
    body[BODY_MAX - 1] = '!';
    say_tls(ssl, HEAD("POST /x") "Content-Length: 65536\r\n\r\n");
    CHECK_INT(SSL_write(ssl, body, BODY_MAX), BODY_MAX);
    CHECK(hear_tls(ssl, "b!") > BODY_MAX);
    struct buf text;
    buf_init(&text, 1 << 20);
    buf_add(&text, BYTES(HEAD("GET /late") "\r\n"));
    for (int i = 0; i < 1000; i++)
        buf_add(&text, BYTES(HEAD("GET /next") "X: 0123456789\r\n\r\n"));
    buf_add(&text, BYTES(HEAD("GET /last") "\r\n"));
    CHECK_INT(SSL_write(ssl, text.at, (int)text.len), (int)text.len);
    release = true;
    hear_tls(ssl, "/last");
    CHECK_INT(http_server_counts(server)->requests, 1003);
    buf_release(&text);
    hang_up(ssl);
    SSL_CTX_free(context);
    stop(SECOND_US);
}

TEST(http_server_refuses_what_is_not_good_tls)
{
    struct http_server_config config = config_tls();
    config.limits.head_timeout_us = SECOND_US / 2;
    start(config);
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    SSL *ssl = dial_tls(context, "\x02h2");
    CHECK(SSL_connect(ssl) != 1);
    hang_up(ssl);
    SSL_CTX_set_security_level(context, 0);
    SSL_CTX_set_min_proto_version(context, TLS1_VERSION);
    SSL_CTX_set_max_proto_version(context, TLS1_1_VERSION);
    ssl = dial_tls(context, "\x08http/1.1");
    CHECK(SSL_connect(ssl) != 1);
    hang_up(ssl);
    SSL_CTX_free(context);
    CHECK(strstr(ask(HEAD("GET /x") "\r\n"), "HTTP/1.1 200") == NULL);
    int fd = dial();
    CHECK_TEXT(bytes_of(hear_all(fd)), "");
    close(fd);
    CHECK_INT(http_server_counts(server)->requests, 0);
    stop(SECOND_US);
}

TEST(http_server_says_what_is_wrong_with_certificate_files)
{
    struct http_server_config config = config_tls();
    struct http_server *none;
    config.tls_key = NULL;
    CHECK_INT(http_server_open(&config, &none, &why), INVALID);
    config.tls_key = "absent.pem";
    CHECK_INT(http_server_open(&config, &none, &why), INVALID);
    CHECK(contains(why.text, "absent.pem"));
    CHECK(contains(why.text, "No such file"));
    config.tls_key = "cert.pem";
    CHECK_INT(http_server_open(&config, &none, &why), INVALID);
    CHECK_INT(rename("key.pem", "other.pem"), 0);
    write_certificate();
    config.tls_key = "other.pem";
    CHECK_INT(http_server_open(&config, &none, &why), INVALID);
    CHECK(contains(why.text, "other.pem"));
    config.tls_cert = "key.pem";
    CHECK_INT(http_server_open(&config, &none, &why), INVALID);
    CHECK(contains(why.text, "key.pem"));
}
