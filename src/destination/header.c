#include "destination/header.h"

struct bytes header_find(const struct pair *headers, size_t count, struct bytes name)
{
    for (size_t i = 0; i < count; i++)
        if (bytes_eq_nocase(headers[i].name, name))
            return headers[i].value;
    return BYTES_NONE;
}

bool header_is_framing(struct bytes name)
{
    static const char *const names[] = {"connection", "content-length", "keep-alive",        "proxy-connection",
                                        "te",         "trailer",        "transfer-encoding", "upgrade"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (bytes_eq_nocase(name, bytes_of(names[i])))
            return true;
    return false;
}

bool header_is_request_framing(struct bytes name)
{
    return header_is_framing(name) || bytes_eq_nocase(name, BYTES("host")) || bytes_eq_nocase(name, BYTES("expect"));
}
