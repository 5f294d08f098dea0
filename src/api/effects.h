/* effects: what the files about effects and exceptions share. */
#ifndef SEMEL_API_EFFECTS_H
#define SEMEL_API_EFFECTS_H

#include "act/order.h"
#include "api/api.h"

/* What is to be sent, in one of three ways. */
struct effect_contents {
    const struct json *request; /* {"method","path","headers","json"|"form"|"body"|"body_base64"} */
    const struct json *payload; /* JSON for a POST to the destination's URL */
    const struct json *mail;    /* {"to","subject","text","html",…} */
};

/* Makes the request from what the caller gave; false when the problem was sent. */
bool effect_request_make(struct call *call, const struct effect_contents *contents, const struct destination *destination,
                         struct effect_request *ret_request);

/* ---- resolve.c: what a person says about an intent ---- */

enum resolution { RESOLVE_HAPPENED, RESOLVE_DID_NOT, RESOLVE_RETRY, RESOLVE_DROP, RESOLUTION_COUNT };

extern const char *const resolution_names[]; /* "happened", "did_not", "retry", "drop", NULL */

struct resolve_order {
    int64_t intent;
    enum resolution resolution;
    struct bytes note;
    struct bytes result; /* JSON; BYTES_NONE for none */
    bool cancel;         /* only what was not sent yet */
};

/* Reads how it stands, checks that this may be said now, and says it; answers the call. */
void resolve_intent(struct call *call, const struct resolve_order *order);

#endif
