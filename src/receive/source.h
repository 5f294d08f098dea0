/*
 * source: who sends to /in/NAME, as data. A source is a row of the policy's `sources:` laid over a preset (sources/NAME.yaml,
 * compiled in); both are read into one struct source. Immutable afterwards; every thread may read it. It holds references to
 * secrets, never a secret.
 *
 * A preset states facts with their evidence. What nobody has verified is never used where safety rests on it: such a delivery id or
 * business key is not compared, such a signature scheme is only used when the policy asks for it by name. What the user
 * writes in the policy counts as verified.
 */
#ifndef SEMEL_RECEIVE_SOURCE_H
#define SEMEL_RECEIVE_SOURCE_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/reference.h"
#include "base/status.h"

#define SOURCE_SECRETS_MAX 8 /* together with the verify token */
#define SOURCE_RULES_MAX 8   /* ways to sign */
#define SOURCE_MAPS_MAX 32   /* kinds of events */
#define SOURCE_TEXTS_MAX 16  /* alternatives of one field */
#define SOURCE_BODY_MAX (64 << 20)
#define SOURCE_SPLIT_MAX 4 /* arrays on the way to an event */

/* ---- how a delivery is verified ---- */

enum verify_alg {
    VERIFY_HMAC_SHA1,
    VERIFY_HMAC_SHA256,
    VERIFY_SHA256, /* plain, over a text that holds {secret}: HubSpot's old versions */
    VERIFY_ECDSA,  /* P-256 with SHA-256, DER */
    VERIFY_ED25519,
    VERIFY_EQUAL, /* the secret itself is sent */
    VERIFY_BASIC, /* Authorization: Basic, of the secret "user:password" */
};

extern const char *const verify_alg_names[]; /* "hmac-sha1", …, NULL */

enum verify_encoding { VERIFY_HEX, VERIFY_BASE64 };
enum verify_key { VERIFY_KEY_RAW, VERIFY_KEY_BASE64, VERIFY_KEY_PUBLIC /* PEM, or base64 of DER or of the raw key */ };

/* How signatures stand in their header. */
enum verify_grammar {
    GRAMMAR_PLAIN,  /* the signature */
    GRAMMAR_PREFIX, /* sha256=SIGNATURE */
    GRAMMAR_PAIRS,  /* t=1700000000,v1=SIGNATURE,v1=SIGNATURE */
    GRAMMAR_LIST,   /* v1,SIGNATURE v1,SIGNATURE */
};

struct verify_rule {
    struct bytes name; /* "v3" */
    enum verify_alg alg;
    enum verify_encoding encoding;
    enum verify_key key;
    struct bytes key_prefix; /* taken off the secret: "whsec_"; a secret without it is used as it is */
    struct bytes signs;      /* template of the signed bytes: "{id}.{ts}.{body}" */
    struct bytes signature;  /* where it stands: "header.X-Signature", "query.sig", "body.signature.signature" */
    enum verify_grammar grammar;
    struct bytes prefix;    /* "sha256=", or the name or version of the signatures: "v1" */
    struct bytes time;      /* where {ts} stands, "pair.t" for a pair of the header; BYTES_NONE without */
    int64_t tolerance_us;   /* how far {ts} may be from now, both ways; 0: not looked at */
    struct bytes id;        /* where {id} stands; BYTES_NONE without */
    struct bytes body_hash; /* where the SHA-256 of the body stands, in hex, in place of {sorted_params} */
    struct bytes nonce;     /* where a number used once stands; needed when the signature does not cover the body */
    bool covers_body;
};

/* ---- what is answered before anything else ---- */

struct handshake_rule {
    struct bytes method;
    struct pair *when; /* path, what it must be */
    size_t when_count;
    struct bytes token;   /* where the verify token stands; BYTES_NONE: none is asked for */
    bool is_signed;       /* it is answered only when the signature holds */
    struct bytes answer;  /* template; BYTES_NONE: empty */
    struct bytes type;    /* of the answer */
    struct pair *headers; /* name, template */
    size_t header_count;
};

/* ---- how a body is understood ---- */

enum source_reads { READS_JSON, READS_FORM, READS_MAIL, READS_AUTO /* by Content-Type */ };

/* Templates that are tried in turn: the first that has all its values counts. */
struct texts {
    struct bytes *at;
    size_t count;
};

struct identity_rule {
    int kind; /* enum identity_kind */
    struct texts value;
    bool mentioned;
};

/* "question: answer" lines. */
struct answers_rule {
    struct bytes of; /* the array; BYTES_NONE: there are none */
    struct texts question, value;
    struct bytes prefer; /* a condition "path=value|value": such answers alone, when there are any */
    struct bytes skip;   /* a condition: such answers never */
};

struct event_map {
    struct bytes kind;
    struct bytes split; /* "entry[].changes[].value.messages[]"; BYTES_NONE: the body is the event */
    struct pair *when;
    size_t when_count;
    struct texts delivery, key; /* none when nobody has verified them */
    struct texts name, company, country, subject, text, thread, time;
    struct texts references;
    struct identity_rule *identities;
    size_t identity_count;
    struct answers_rule answers; /* make the text where `text` has none */
    struct pair *automatic;      /* any of these: a program wrote it */
    size_t automatic_count;
};

struct source_sample {
    struct bytes method, type, body, query;
    struct pair *headers;
    size_t header_count;
};

/* ---- a source ---- */

enum source_as { SOURCE_AS_ORIGINAL, SOURCE_AS_EVENT };

extern const char *const source_as_names[];    /* "original", "event", NULL */
extern const char *const source_reads_names[]; /* "json", "form", "mail", "auto", NULL */

struct source {
    struct bytes name, preset, title;
    size_t line; /* of the policy */
    enum source_reads reads;
    struct verify_rule *rules; /* any of them is enough */
    size_t rule_count;
    bool verify_none;                 /* the policy says so: nothing is verified */
    struct secret_reference *secrets; /* the first `signing_count` verify signatures (several: rotation) … */
    size_t secret_count, signing_count;
    int64_t token_index; /* … and this one is the handshake's verify token; -1: there is none */
    struct handshake_rule *handshakes;
    size_t handshake_count;
    struct event_map *maps;
    size_t map_count, own_map_count; /* the policy's own come first; the preset's count where none of them fits */
    struct bytes reply, reply_type;  /* the acknowledgement; BYTES_NONE: any will do */
    struct source_sample sample;     /* sample.method BYTES_NONE: there is none */
    struct bytes *addresses;         /* of mail that is for it: patterns (mailbox.h) */
    size_t address_count;
    struct bytes region;  /* two letters: whose national phone numbers are understood; BYTES_NONE: nobody's */
    struct bytes url;     /* the public base URL, when semel stands behind a proxy; BYTES_NONE: as the request says */
    int64_t window_us;    /* equal content from the same sender within this source is one message; from the first */
    int64_t across_us;    /* the same across sources; 0: not compared */
    int64_t retry_us;     /* how long the sender retries; 0: not known */
    struct bytes forward; /* a destination's name; BYTES_NONE: events are only kept */
    struct bytes path;    /* there */
    enum source_as as;
    bool shadow;
    int64_t keep_us;
    int64_t loop_count, loop_us; /* the same key more often than this in that time is a loop */
    struct bytes owner;          /* of its exceptions; BYTES_NONE: the policy's owner */
    int64_t due_us;              /* 0: the policy's */
    int64_t body_max;
};

/* A sentence for `semel policy check` when the source is allowed but unwise; false when there is none. */
bool source_warning(const struct source *source, struct why *ret);

#endif
