/* The parts of a message that are written in an encoding: chunked bodies and percent-encoded text. */
#include "http/parse.h"

enum { SIZE_DIGITS_MAX = 16, TRAILER_SIZE_MAX = 4096 };

/* Where the decoder is; SIZE must be 0, because a zeroed struct starts a body. */
enum {
    SIZE,          /* hex digits */
    SIZE_LF,       /* behind the CR of the size line */
    DATA,          /* payload */
    DATA_CR,       /* behind the payload */
    DATA_LF,       /* behind its CR */
    TRAILER,       /* at the start of a trailer line or of the last, empty one */
    TRAILER_NAME,  /* inside a trailer's name */
    TRAILER_VALUE, /* behind its colon */
    TRAILER_LF,    /* behind its CR */
    END_LF,        /* behind the CR of the empty line */
    DONE,
};

static enum status bad(struct why *why, const char *sentence)
{
    return why_set(why, INVALID, "%s", sentence);
}

static enum status take_size(struct http_chunks *chunks, char c, struct why *why)
{
    int digit = bytes_hex_digit(c);
    if (digit < 0) {
        if (c != '\r' || chunks->line_size == 0)
            return bad(why, "a chunk size is not a plain hexadecimal number (chunk extensions are refused)");
        chunks->state = SIZE_LF;
        return OK;
    }
    if (++chunks->line_size > SIZE_DIGITS_MAX)
        return bad(why, "a chunk size has more than 16 digits");
    chunks->left = chunks->left << 4 | (uint64_t)digit;
    return OK;
}

static enum status take_exact(struct http_chunks *chunks, char c, char wanted, int next, struct why *why)
{
    if (c != wanted)
        return bad(why, "a chunk or trailer line does not end in CRLF");
    chunks->state = next;
    chunks->line_size = 0;
    return OK;
}

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL);
}

/* Trailers are read over, but must look like header fields: what is skipped must not be a hidden request. */
static enum status take_trailer(struct http_chunks *chunks, char c, struct why *why)
{
    if (++chunks->trailer_size > TRAILER_SIZE_MAX)
        return bad(why, "the trailer is larger than 4 KiB");
    if (chunks->state == TRAILER && c == '\r') {
        chunks->state = END_LF;
        return OK;
    }
    if (chunks->state == TRAILER_VALUE) {
        if (c == '\r')
            chunks->state = TRAILER_LF;
        else if (((unsigned char)c < ' ' && c != '\t') || c == 0x7f)
            return bad(why, "a trailer value contains a control character");
        return OK;
    }
    if (chunks->state == TRAILER_NAME && c == ':') {
        chunks->state = TRAILER_VALUE;
        return OK;
    }
    if (!is_name(c))
        return bad(why, "a trailer is not a name, a colon and a value");
    chunks->state = TRAILER_NAME;
    return OK;
}

/* One byte of framing, i.e. in every state but DATA and DONE. */
static enum status take_framing(struct http_chunks *chunks, char c, struct why *why)
{
    switch (chunks->state) {
    case SIZE:
        return take_size(chunks, c, why);
    case SIZE_LF:
        return take_exact(chunks, c, '\n', chunks->left > 0 ? DATA : TRAILER, why);
    case DATA_CR:
        return take_exact(chunks, c, '\r', DATA_LF, why);
    case DATA_LF:
        return take_exact(chunks, c, '\n', SIZE, why);
    case TRAILER_LF:
        return take_exact(chunks, c, '\n', TRAILER, why);
    case END_LF:
        return take_exact(chunks, c, '\n', DONE, why);
    default:
        return take_trailer(chunks, c, why);
    }
}

/* Moves payload; `in` and `out` may overlap when a body is decoded in place. */
static size_t take_data(struct http_chunks *chunks, struct bytes in, char *out)
{
    size_t count = chunks->left < in.len ? (size_t)chunks->left : in.len;
    memmove(out, in.at, count);
    chunks->left -= count;
    if (chunks->left == 0)
        chunks->state = DATA_CR;
    return count;
}

enum status http_parse_chunks(struct http_chunks *chunks, struct bytes in, char *out, size_t out_max, size_t *ret_consumed,
                              size_t *ret_produced, struct why *why)
{
    size_t consumed = 0, produced = 0;
    while (consumed < in.len && chunks->state != DONE) {
        if (chunks->state == DATA) {
            size_t count = take_data(chunks, bytes_from(in, consumed), out + produced);
            consumed += count;
            produced += count;
            continue;
        }
        TRY(take_framing(chunks, in.at[consumed++], why));
        if (chunks->state == DATA && chunks->left > out_max - produced)
            return why_set(why, FULL, "the body is larger than allowed");
    }
    *ret_consumed = consumed;
    *ret_produced = produced;
    return chunks->state == DONE ? OK : NOTHING;
}
