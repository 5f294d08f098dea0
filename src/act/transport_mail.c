/* transport_mail: a stored mail as the bytes that SMTP wants, and its recipients. */
#include "act/transport_own.h"

#define RECIPIENTS_MAX 1000

static bool is_address_header(struct bytes name)
{
    return bytes_eq_nocase(name, BYTES("To")) || bytes_eq_nocase(name, BYTES("Cc")) || bytes_eq_nocase(name, BYTES("Bcc"));
}

/* Line ends become CRLF, whatever they were. (libcurl doubles leading dots.) */
static void add_lines(struct buf *buf, struct bytes text)
{
    for (size_t i = 0; i < text.len; i++) {
        char c = text.at[i];
        if (c == '\r' && i + 1 < text.len && text.at[i + 1] == '\n')
            continue;
        if (c == '\n' || c == '\r')
            buf_add_cstr(buf, "\r\n");
        else
            buf_add_char(buf, c);
    }
}

enum status mail_compose(const struct effect_request *request, struct arena *arena, struct bytes *ret_message, struct why *why)
{
    struct buf buf;
    buf_init(&buf, 64u << 20);
    for (size_t i = 0; i < request->header_count; i++) {
        const struct pair *header = &request->headers[i];
        if (bytes_eq_nocase(header->name, BYTES("Bcc")))
            continue;
        buf_add(&buf, header->name);
        buf_add_cstr(&buf, ": ");
        buf_add(&buf, header->value);
        buf_add_cstr(&buf, "\r\n");
    }
    buf_add_cstr(&buf, "\r\n");
    add_lines(&buf, request->body);
    struct bytes message = buf.failed ? BYTES_NONE : arena_dup(arena, buf_bytes(&buf));
    buf_release(&buf);
    if (message.at == NULL)
        return why_set(why, FULL, "no memory for a mail");
    *ret_message = message;
    return OK;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* One address of a list: `Name <a@b>, "x, y" <c@d>`; commas in quotes and brackets do not separate. */
static struct bytes cut_address(struct bytes *rest)
{
    bool quoted = false, bracket = false;
    size_t i = 0;
    for (; i < rest->len; i++) {
        char c = rest->at[i];
        if (quoted && c == '\\')
            i++;
        else if (c == '"')
            quoted = !quoted;
        else if (!quoted && (c == '<' || c == '>'))
            bracket = c == '<';
        else if (c == ',' && !quoted && !bracket)
            break;
    }
    i = i < rest->len ? i : rest->len;
    struct bytes part = {rest->at, i};
    *rest = bytes_from(*rest, i + 1);
    const char *open = memrchr(part.at, '<', part.len), *close = memrchr(part.at, '>', part.len);
    if (open != NULL && close != NULL && open < close)
        part = (struct bytes){open + 1, (size_t)(close - open - 1)};
    while (part.len > 0 && is_space(part.at[0])) /* a long list is folded */
        part = bytes_from(part, 1);
    while (part.len > 0 && is_space(part.at[part.len - 1]))
        part.len--;
    return part;
}

static bool is_address(struct bytes text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.at[i] <= ' ' || text.at[i] == 0x7f || text.at[i] == '<' || text.at[i] == '>')
            return false;
    return text.len > 2 && text.len <= 320 && memchr(text.at, '@', text.len) != NULL;
}

static enum status add_recipients(struct bytes list, struct arena *arena, struct curl_slist **recipients, size_t *count,
                                  struct why *why)
{
    while (list.len > 0) {
        struct bytes address = cut_address(&list);
        if (address.len == 0)
            continue;
        if (!is_address(address) || ++*count > RECIPIENTS_MAX)
            return why_set(why, INVALID, "the mail has a recipient that is no address, or more than %d of them", RECIPIENTS_MAX);
        struct bytes text = arena_printf(arena, "<%.*s>", BYTES_ARG(address));
        struct curl_slist *longer = text.at != NULL ? curl_slist_append(*recipients, text.at) : NULL;
        if (longer == NULL)
            return why_set(why, FULL, "no memory for a mail");
        *recipients = longer;
    }
    return OK;
}

enum status mail_recipients(const struct effect_request *request, struct arena *arena, struct curl_slist **ret_list,
                            struct why *why)
{
    struct curl_slist *recipients = NULL;
    size_t count = 0;
    enum status status = OK;
    for (size_t i = 0; i < request->header_count && status == OK; i++)
        if (is_address_header(request->headers[i].name))
            status = add_recipients(request->headers[i].value, arena, &recipients, &count, why);
    if (status == OK && count == 0)
        status = why_set(why, INVALID, "the mail has no recipient: it needs To, Cc or Bcc");
    if (status != OK) {
        curl_slist_free_all(recipients);
        return status;
    }
    *ret_list = recipients;
    return OK;
}
