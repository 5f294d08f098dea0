/*
 * plant: where keys and markers stand in a request, for writing and for reading. Inside destination/ only.
 */
#ifndef SEMEL_DESTINATION_PLANT_H
#define SEMEL_DESTINATION_PLANT_H

#include "base/json.h"
#include "destination/destination.h"

/* What a body is, by its Content-Type. */
enum body_kind { BODY_JSON, BODY_FORM, BODY_OTHER };
enum body_kind plant_body_kind(const struct effect_request *request);

/* A JSON body as a tree; large texts are allowed, unlike in our own API. */
CHECKED enum status plant_json(struct bytes body, struct arena *arena, struct json *ret, struct why *why);

/* The value at a dotted path, also with [n]; NULL when it is not there. */
const struct json *plant_find(const struct json *json, struct bytes path);

/* True when the value at the path is one of these texts, or with none given, when it is there. "results[*].status" looks at each item. */
bool plant_any(const struct json *json, struct bytes path, const struct bytes *values, size_t value_count);

/* A field of the sent request's body, JSON by dotted path or form by name; BYTES_NONE when it is not there or no scalar. */
struct bytes plant_field(const struct effect_request *request, struct bytes path, struct arena *arena);

/* True when the carrier's value stands in the request. */
bool plant_is_there(const struct effect_request *request, const struct carrier *carrier, struct bytes value, struct arena *arena);

/* The domain that message ids of this destination end in. */
struct bytes plant_domain(const struct destination *destination);

#endif
