/*
 * tls: OpenSSL over memory, for the loop thread. Nothing here reads or writes a socket: ciphertext that arrived is fed in,
 * ciphertext that must leave is taken out, so that a connection with TLS and one without share all other code. For every face that
 * listens: http/ and smtp/. TLS 1.2 or newer, no renegotiation, no compression, no early data.
 */
#ifndef SEMEL_HTTP_TLS_H
#define SEMEL_HTTP_TLS_H

#include "base/bytes.h"
#include "base/status.h"

struct tls;      /* certificate and settings of a server */
struct tls_conn; /* one connection */

/* `protocol` is what ALPN agrees on, "http/1.1"; NULL: clients that ask for one are not answered. INVALID when a file cannot be read,
 * is no PEM, or the key does not belong to the certificate. */
CHECKED enum status tls_open(const char *cert_path, const char *key_path, const char *protocol, struct tls **ret_tls,
                             struct why *why);
void tls_close(struct tls *tls);

/* NULL when there is no memory. */
struct tls_conn *tls_conn_new(struct tls *tls);
void tls_conn_free(struct tls_conn *conn);

/* Ciphertext from the peer; false when there is no memory. */
bool tls_conn_feed(struct tls_conn *conn, struct bytes cipher);

/* OK: done. NOTHING: the peer has to send more. INVALID: failed, an alert may be waiting to leave. */
CHECKED enum status tls_conn_handshake(struct tls_conn *conn);

/* OK: `*ret_len` bytes of plain text, 0 when the peer said that it is finished. NOTHING: more ciphertext is needed.
 * BROKEN: the connection is unusable. */
CHECKED enum status tls_conn_read(struct tls_conn *conn, char *to, size_t room, size_t *ret_len);

/* Encrypts all of `plain`; false when the connection is unusable. */
bool tls_conn_write(struct tls_conn *conn, struct bytes plain);

/* Says that nothing more will be written. */
void tls_conn_finish(struct tls_conn *conn);

/* Ciphertext that must be sent; valid until the next call with this connection. */
struct bytes tls_conn_leaving(struct tls_conn *conn);
void tls_conn_left(struct tls_conn *conn);

#endif
