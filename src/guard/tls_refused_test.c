#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "guard/fixture_test.h"

struct identity {
    EVP_PKEY *key;
    X509 *cert;
};

static void add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, cert, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    CHECK(extension != NULL);
    CHECK(X509_add_ext(cert, extension, -1) == 1);
    X509_EXTENSION_free(extension);
}

/* Valid from a day ago until `seconds` from now. Without an issuer it signs itself. */
static struct identity make(const char *name, const char *host, const struct identity *issuer, long seconds)
{
    static long serial = 1;
    struct identity made = {EVP_EC_gen("P-256"), X509_new()};
    const struct identity *signer = issuer != NULL ? issuer : &made;
    X509_set_version(made.cert, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(made.cert), serial++);
    X509_gmtime_adj(X509_getm_notBefore(made.cert), -86400);
    X509_gmtime_adj(X509_getm_notAfter(made.cert), seconds);
    X509_set_pubkey(made.cert, made.key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(made.cert), "CN", MBSTRING_ASC, (const unsigned char *)name, -1, -1, 0);
    X509_set_issuer_name(made.cert, X509_get_subject_name(signer->cert));
    if (host != NULL)
        add_extension(made.cert, signer->cert, NID_subject_alt_name, host);
    else
        add_extension(made.cert, signer->cert, NID_basic_constraints, "critical,CA:TRUE");
    CHECK(X509_sign(made.cert, signer->key, EVP_sha256()) > 0);
    return made;
}

static void drop(struct identity *identity)
{
    X509_free(identity->cert);
    EVP_PKEY_free(identity->key);
}

static void write_ca(const struct identity *ca)
{
    FILE *file = fopen("ca.pem", "w");
    CHECK(file != NULL && PEM_write_X509(file, ca->cert));
    fclose(file);
}

static void present(struct identity server)
{
    net_tls = SSL_CTX_new(TLS_server_method());
    CHECK(SSL_CTX_use_certificate(net_tls, server.cert) == 1);
    CHECK(SSL_CTX_use_PrivateKey(net_tls, server.key) == 1);
    dns_answers[0] = "127.0.0.2";
    dns_answer_count = 1;
    net_start();
}

/* The server with this certificate; without verification there is always an answer. */
static void check_server(struct identity server, bool good)
{
    struct guard guard;
    present(server);
    CURL *curl = curl_easy_init();
    struct guard_rules rules = *world_rules();
    CHECK_INT(net_get(curl, &guard, &rules, "https", "/") == CURLE_OK, good);
    CHECK_INT(guard_sent_nothing(&guard), !good);
    CHECK_INT(world_requests, good ? 1 : 0);
    rules.tls_unverified = true;
    CHECK_INT(net_get(curl, &guard, &rules, "https", "/"), CURLE_OK);
    curl_easy_cleanup(curl);
    net_stop();
    SSL_CTX_free(net_tls);
    drop(&server);
}

#define HOST "DNS:dns.example.com"

TEST(a_certificate_that_fits_is_accepted)
{
    struct identity ca = make("ca", NULL, NULL, 3600);
    write_ca(&ca);
    check_server(make("server", HOST, &ca, 3600), true);
    drop(&ca);
}

TEST(an_expired_certificate_is_refused)
{
    struct identity ca = make("ca", NULL, NULL, 3600);
    write_ca(&ca);
    check_server(make("server", HOST, &ca, -60), false);
    drop(&ca);
}

TEST(a_certificate_for_another_host_is_refused)
{
    struct identity ca = make("ca", NULL, NULL, 3600);
    write_ca(&ca);
    check_server(make("dns.example.com", "DNS:other.example.com", &ca, 3600), false);
    drop(&ca);
}

TEST(a_certificate_that_signs_itself_is_refused)
{
    struct identity ca = make("ca", NULL, NULL, 3600);
    write_ca(&ca);
    check_server(make("dns.example.com", HOST, NULL, 3600), false);
    drop(&ca);
}

TEST(a_certificate_of_an_unknown_authority_is_refused)
{
    struct identity ca = make("ca", NULL, NULL, 3600), stranger = make("stranger", NULL, NULL, 3600);
    write_ca(&ca);
    check_server(make("server", HOST, &stranger, 3600), false);
    drop(&ca);
    drop(&stranger);
}

TEST(a_certificate_of_an_authority_with_a_borrowed_name_is_refused)
{
    struct identity ca = make("ca", NULL, NULL, 3600), impostor = make("ca", NULL, NULL, 3600);
    write_ca(&ca);
    check_server(make("server", HOST, &impostor, 3600), false);
    drop(&ca);
    drop(&impostor);
}

TEST(tls_before_1_2_is_refused)
{
    struct guard guard;
    struct identity ca = make("ca", NULL, NULL, 3600), server = make("server", HOST, &ca, 3600);
    write_ca(&ca);
    present(server);
    SSL_CTX_set_security_level(net_tls, 0);
    SSL_CTX_set_min_proto_version(net_tls, TLS1_VERSION);
    SSL_CTX_set_max_proto_version(net_tls, TLS1_1_VERSION);
    CURL *curl = curl_easy_init();
    CHECK_INT(net_get(curl, &guard, world_rules(), "https", "/"), CURLE_SSL_CONNECT_ERROR);
    CHECK(guard_sent_nothing(&guard));
    curl_easy_cleanup(curl);
    net_stop();
    SSL_CTX_free(net_tls);
    drop(&server);
    drop(&ca);
}
