/* header: the headers of requests and answers. Names are compared without regard to case. */
#ifndef SEMEL_DESTINATION_HEADER_H
#define SEMEL_DESTINATION_HEADER_H

#include "destination/destination.h"

/* The value of the first header of this name; BYTES_NONE when there is none. */
struct bytes header_find(const struct pair *headers, size_t count, struct bytes name);

/* Belongs to one connection and not to what is said over it: it is never passed on. */
bool header_is_framing(struct bytes name);

/* … or is written by whoever makes a request: nobody else may say it. */
bool header_is_request_framing(struct bytes name);

#endif
