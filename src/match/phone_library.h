/*
 * phone_library: libphonenumber, which is C++, as three C functions. Nothing is thrown through them; every thread may call them.
 */
#ifndef SEMEL_MATCH_PHONE_LIBRARY_H
#define SEMEL_MATCH_PHONE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum phone_library_kind {
    PHONE_LIBRARY_OTHER,
    PHONE_LIBRARY_MOBILE,
    PHONE_LIBRARY_FIXED,
    PHONE_LIBRARY_EITHER,
    PHONE_LIBRARY_TOLL_FREE,
};

#define PHONE_LIBRARY_TEXT 32

struct phone_library_number {
    char e164[PHONE_LIBRARY_TEXT];     /* with '+' */
    char national[PHONE_LIBRARY_TEXT]; /* significant digits, an Italian zero included */
    char extension[PHONE_LIBRARY_TEXT];
    char region[4]; /* "" when unknown */
    int country;    /* 33 */
    enum phone_library_kind kind;
    bool possible, valid;
};

/* `region`: two capital letters, or "ZZ" for only international numbers. False when it is no number. */
bool phone_library_read(const char *text, size_t len, const char *region, struct phone_library_number *ret);

/* True for a region that has numbers. */
bool phone_library_knows(const char *region);

#ifdef __cplusplus
}
#endif

#endif
