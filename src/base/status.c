#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/bytes.h"

const char *status_name(enum status status)
{
    switch (status) {
    case OK:
        return "OK";
    case NOTHING:
        return "NOTHING";
    case INVALID:
        return "INVALID";
    case CONFLICT:
        return "CONFLICT";
    case RETRY:
        return "RETRY";
    case UNKNOWN:
        return "UNKNOWN";
    case FULL:
        return "FULL";
    case BROKEN:
        return "BROKEN";
    }
    return "?";
}

/* A sentence that was cut short must not end in half a character. */
static void drop_half_character(char *text, size_t size, int len)
{
    if (len < 0 || (size_t)len < size)
        return;
    size_t start = size - 1;
    while (start > 0 && ((unsigned char)text[start - 1] & 0xC0) == 0x80)
        start--;
    if (start > 0 && (unsigned char)text[start - 1] >= 0xC0)
        start--;
    else
        return;
    uint32_t code;
    struct bytes last = {text + start, size - 1 - start};
    if (bytes_utf8_char(last, &code) != last.len)
        text[start] = '\0';
}

enum status why_set(struct why *why, enum status status, const char *format, ...)
{
    if (why == NULL)
        return status;
    va_list args;
    va_start(args, format);
    int len = vsnprintf(why->text, sizeof why->text, format, args);
    va_end(args);
    drop_half_character(why->text, sizeof why->text, len);
    return status;
}

enum status why_add(struct why *why, enum status status, const char *format, ...)
{
    if (why == NULL)
        return status;
    struct why context;
    va_list args;
    va_start(args, format);
    int len = vsnprintf(context.text, sizeof context.text, format, args);
    va_end(args);
    drop_half_character(context.text, sizeof context.text, len);
    struct why below = *why;
    return why_set(why, status, "%s: %s", context.text, below.text);
}

void assert_failed(const char *condition, const char *file, int line)
{
    fprintf(stderr, "semel: %s:%d: this must hold and does not: %s\n", file, line, condition);
    abort();
}
