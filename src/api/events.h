/* events: what the files about events and the cards that ask about them share. */
#ifndef SEMEL_API_EVENTS_H
#define SEMEL_API_EVENTS_H

#include "api/api.h"
#include "flow/person.h"

/* An event as an object: what came, and what was decided. `brief` cuts the text. `scratch` is cleared. BROKEN when it is damaged. */
CHECKED enum status event_write(struct json_out *out, const struct row_event *row, bool brief, struct arena *scratch,
                                struct why *why);

/* The event as a member `name`, whole; null when it is 0 or forgotten. `ret_verdict` (may be NULL) is untouched then. */
CHECKED enum status event_write_as(struct json_out *out, const char *name, struct store *store, struct bytes space, int64_t event,
                                   int64_t *ret_verdict, int64_t *ret_first, struct why *why);

/* A person does something about an event; answers the call. `card` says that it is about an exception. */
void event_act_on(struct call *call, int64_t event, enum event_act act, struct bytes note, bool card);

#endif
