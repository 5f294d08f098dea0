/*
 * transport_mail: mail with libcurl. libcurl waits for the answer to a mail, and to QUIT, without looking at anything else, so each
 * mail has a thread of its own: a server that does not answer holds up its own destination and nobody else. There are as many
 * threads as mails under way: what a destination may have at a time, and all calls together, is bounded by who starts them.
 */
#include "act/transport_own.h"
#include "base/when.h"

#define RECIPIENTS_MAX 1000

/* ---- the message and its recipients ---- */

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

static enum status compose(const struct effect_request *request, struct arena *arena, struct bytes *ret_message, struct why *why)
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

static enum status list_recipients(const struct effect_request *request, struct arena *arena, struct curl_slist **ret_list,
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

/* ---- sending it ---- */

static size_t on_upload(char *at, size_t size, size_t count, void *user)
{
    struct flight *flight = user;
    size_t left = flight->upload.len - flight->upload_at, most = size * count, n = left < most ? left : most;
    memcpy(at, flight->upload.at + flight->upload_at, n);
    flight->upload_at += n;
    if (n == 0 || flight->upload_at == flight->upload.len)
        flight->upload_done = true;
    return n;
}

/* Called about once a second, whatever libcurl waits for. */
static int on_progress(void *user, curl_off_t down_all, curl_off_t down, curl_off_t up_all, curl_off_t up)
{
    (void)down_all, (void)down, (void)up_all, (void)up;
    return atomic_load(&((struct flight *)user)->cancelled) ? 1 : 0;
}

enum status mail_set(struct flight *flight, struct bytes secret, struct why *why)
{
    const struct destination *destination = flight->call->destination;
    struct arena *arena = flight->call->arena;
    struct bytes user, password;
    TRY(destination_login(destination, secret, arena, &user, &password, why));
    TRY(compose(flight->call->request, arena, &flight->upload, why));
    TRY(list_recipients(flight->call->request, arena, &flight->recipients, why));
    struct bytes url = arena_printf(arena, "%s://%.*s:%lld", destination->smtp_tls == SMTP_TLS_IMPLICIT ? "smtps" : "smtp",
                                    BYTES_ARG(destination->smtp_host), (long long)destination->smtp_port);
    struct bytes from = arena_dup(arena, destination->smtp_from);
    if (url.at == NULL || from.at == NULL)
        return why_set(why, FULL, "no memory for a mail");
    TRY(flight_set_common(flight, url, why));
    curl_easy_setopt(flight->easy, CURLOPT_SERVER_RESPONSE_TIMEOUT,
                     (long)((flight->call->timeout_us + WHEN_SECOND - 1) / WHEN_SECOND));
    curl_easy_setopt(flight->easy, CURLOPT_MAIL_FROM, from.at);
    curl_easy_setopt(flight->easy, CURLOPT_MAIL_RCPT, flight->recipients);
    curl_easy_setopt(flight->easy, CURLOPT_UPLOAD, 1L);
    curl_easy_setopt(flight->easy, CURLOPT_READFUNCTION, on_upload);
    curl_easy_setopt(flight->easy, CURLOPT_READDATA, flight);
    curl_easy_setopt(flight->easy, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(flight->easy, CURLOPT_XFERINFODATA, flight);
    curl_easy_setopt(flight->easy, CURLOPT_NOPROGRESS, 0L);
    curl_easy_setopt(flight->easy, CURLOPT_FRESH_CONNECT, 1L);
    curl_easy_setopt(flight->easy, CURLOPT_FORBID_REUSE,
                     1L); /* a kept connection would stay with the handle, not with the server */
    if (user.at != NULL) {
        curl_easy_setopt(flight->easy, CURLOPT_USERNAME, user.at);
        curl_easy_setopt(flight->easy, CURLOPT_PASSWORD, password.at);
    }
    return OK;
}

/* ---- its thread ---- */

static void *mail_main(void *arg)
{
    struct flight *flight = arg;
    struct real_transport *transport = flight->transport;
    flight->end = flight_judge(flight, curl_easy_perform(flight->easy));
    curl_easy_cleanup(flight->easy);
    flight->easy = NULL;
    pthread_mutex_lock(&transport->lock);
    flight->next_ended = transport->ended_flights;
    transport->ended_flights = flight;
    pthread_mutex_unlock(&transport->lock);
    curl_multi_wakeup(transport->multi);
    return NULL;
}

enum status mail_start(struct flight *flight, struct why *why)
{
    if (pthread_create(&flight->thread, NULL, mail_main, flight) != 0)
        return why_set(why, FULL, "no thread for a mail could be started");
    flight->has_thread = true;
    return OK;
}

void mail_take_ended(struct real_transport *transport)
{
    pthread_mutex_lock(&transport->lock);
    struct flight *ended = transport->ended_flights;
    transport->ended_flights = NULL;
    pthread_mutex_unlock(&transport->lock);
    for (struct flight *next; ended != NULL; ended = next) {
        next = ended->next_ended;
        if (ended->has_thread)
            pthread_join(ended->thread, NULL);
        flight_end(ended, ended->end);
    }
}

void mail_cancel(struct real_transport *transport)
{
    for (struct flight *flight = transport->flights; flight != NULL; flight = flight->next)
        if (flight->has_thread)
            atomic_store(&flight->cancelled, true);
    for (struct flight *flight = transport->flights; flight != NULL; flight = flight->next)
        if (flight->has_thread) {
            pthread_join(flight->thread, NULL);
            flight->has_thread = false;
        }
    mail_take_ended(transport);
}
