/*
 * receive_own: what the files of this folder share. Inside receive/ only.
 */
#ifndef SEMEL_RECEIVE_RECEIVE_OWN_H
#define SEMEL_RECEIVE_RECEIVE_OWN_H

#include "base/json.h"
#include "receive/receive.h"

/* ---- scope.c: where templates and conditions find their values ---- */

/*
 * A path is `header.NAME`, `query.NAME`, `body.a.b`, or `a.b` for a place in the event itself (`item.a.b` says so). Steps into JSON
 * are separated by '.'; a number is an index; [name=value] takes the first item of a list whose member says so, [name~value] one
 * whose member contains it in any case, and a value that begins with '@' is a path of its own.
 */
struct scope {
    const struct receive_request *request;
    struct bytes url;    /* the public one */
    struct bytes region; /* whose national phone numbers are understood */
    struct pair *query;
    size_t query_count;
    struct pair *form; /* the fields of a form, as they came */
    size_t form_count;
    bool is_form;
    const struct json *body; /* NULL: not read */
    const struct json *item;
    struct arena *arena;
    bool no_memory;
};

/* Fills in request, URL and query. INVALID when the query cannot be read. */
CHECKED enum status scope_open(const struct source *source, const struct receive_request *request, struct arena *arena,
                               struct scope *ret, struct why *why);

/* The one header of that name; BYTES_NONE when there is none. `ret_count` (may be NULL): how many there are. */
struct bytes scope_header(const struct scope *scope, struct bytes name, size_t *ret_count);

/* NULL when it is not there. For places in JSON only. */
const struct json *scope_find(struct scope *scope, struct bytes path);

/* The scalar there as trimmed text, a list of scalars with ", " between; BYTES_NONE when there is none or it is empty. */
struct bytes scope_text(struct scope *scope, struct bytes path);

/* The first template that has all its values; a placeholder is {path}, or {path?} when it may be missing; {{ is a brace.
 * `escape`: for keys, so that no two lists of values make one. BYTES_NONE when none has. */
struct bytes scope_fill(struct scope *scope, const struct texts *texts, bool escape);

/* "*": it is there; "!": it is not; "a|b": one of these; "a*": begins so; "!a": anything else. */
bool scope_holds(struct scope *scope, struct bytes path, struct bytes wanted);
bool scope_all(struct scope *scope, const struct pair *when, size_t count);
bool scope_any(struct scope *scope, const struct pair *when, size_t count);

/* True when every brace of a template is a placeholder. */
bool template_is_good(struct bytes text);

/* True when it uses nothing of the event itself, so that all events of a delivery have the same. */
bool template_is_shared(struct bytes text);

/* ---- body.c: bytes into JSON ---- */

/* Reads the body once into scope->body. INVALID when it is not what it should be. */
CHECKED enum status body_read(enum source_reads reads, struct scope *scope, struct why *why);
bool body_is_mail(enum source_reads reads, const struct scope *scope);

/* "a=1&b=2". INVALID when an escape is bad or there are too many. */
CHECKED enum status params_read(struct bytes text, struct arena *arena, struct pair **ret, size_t *ret_count, struct why *why);

/* ---- verify.c ---- */

struct verified {
    bool good;
    const struct verify_rule *rule; /* NULL: nothing is verified */
    struct bytes nonce;             /* BYTES_NONE: the signature covers the body */
    struct bytes because;
};

CHECKED enum status verify_delivery(const struct source *source, const struct bytes *secrets, struct scope *scope,
                                    struct verified *ret, struct why *why);

/* The bytes that a rule signs. `url` stands for {url}. BYTES_NONE when a value is missing: `ret_missing` names it. */
struct bytes verify_signed(const struct verify_rule *rule, struct scope *scope, struct bytes url, struct bytes id,
                           struct bytes time, struct bytes secret, struct bytes *ret_missing);

/* True when `text` is a template of signed bytes whose placeholders exist; `ret_covers`: it holds the body. */
bool signs_is_good(struct bytes text, bool *ret_covers);

/* ---- cipher.c ---- */

#define CIPHER_SIZE_MAX 128

/* The signature or, for hashes, what it must be; false when the key is none. */
bool cipher_make(enum verify_alg alg, struct bytes key, struct bytes data, char ret[CIPHER_SIZE_MAX], size_t *ret_len);

/* For the public-key schemes. */
bool cipher_holds(enum verify_alg alg, struct bytes key, struct bytes data, struct bytes signature);

/* The secret as a key: prefix off, decoded. BYTES_NONE when it is empty or not in its form. `private`: for signing. */
struct bytes cipher_key(const struct verify_rule *rule, struct bytes secret, struct arena *arena);

/* Strict; `.at == NULL` when it is not exact. */
struct bytes cipher_decode(enum verify_encoding encoding, struct bytes text, struct arena *arena);
struct bytes cipher_encode(enum verify_encoding encoding, struct bytes bytes, struct arena *arena);

/* ---- split.c, extract.c ---- */

/* Calls `each` for every element that `split` leads to, with scope->body and scope->item set to the cut-down tree. */
typedef enum status split_each(void *ctx, struct scope *scope, struct bytes piece);
CHECKED enum status split_walk(struct bytes split, struct scope *scope, split_each *each, void *ctx);

CHECKED enum status extract_event(const struct event_map *map, struct scope *scope, struct incoming *ret);

#endif
