#include "mail/mail.h"

#include <pthread.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/when.h"
#include "identity/mention.h"
#include "mail/mail_own.h"

struct mail {
    GMimeMessage *message;
    GMimeHeaderList *headers;
    struct bytes region; /* whose national phone numbers are understood */
    struct arena *arena;
    struct incoming *out;
    struct bytes own; /* the text with its signature, where telephone numbers are */
    bool forwarded;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- limits ---- */

struct scan {
    size_t header_lines, boundary_lines, parts, head_size;
};

/* "Name:", as a header begins. */
static bool is_header_line(struct bytes line)
{
    size_t i = 0;
    while (i < line.len && line.at[i] > ' ' && line.at[i] < 0x7F && line.at[i] != ':')
        i++;
    return i > 0 && i < line.len && line.at[i] == ':';
}

static bool begins_part(struct bytes line)
{
    struct bytes name = BYTES("content-type");
    return line.len >= name.len && bytes_eq_nocase((struct bytes){line.at, name.len}, name);
}

/* Counts what costs the MIME library memory or time, before it is asked. */
static struct scan scan_mail(struct bytes raw)
{
    struct scan scan = {0};
    struct bytes rest = raw;
    while (rest.len > 0) {
        struct bytes line = bytes_cut(&rest, '\n');
        if (scan.head_size == 0 && (line.len == 0 || bytes_is(line, "\r")))
            scan.head_size = (size_t)(line.at - raw.at);
        scan.header_lines += is_header_line(line);
        scan.boundary_lines += bytes_starts(line, BYTES("--"));
        scan.parts += begins_part(line);
    }
    if (scan.head_size == 0)
        scan.head_size = raw.len;
    return scan;
}

static enum status check_limits(struct bytes raw, struct why *why)
{
    if (raw.len > MAIL_SIZE_MAX)
        return why_set(why, INVALID, "the mail is larger than %d MiB", MAIL_SIZE_MAX >> 20);
    struct scan scan = scan_mail(raw);
    if (scan.head_size > MAIL_HEAD_SIZE_MAX)
        return why_set(why, INVALID, "the mail's header is larger than %d KiB", MAIL_HEAD_SIZE_MAX >> 10);
    if (scan.parts > MAIL_PARTS_MAX)
        return why_set(why, INVALID, "the mail has more than %d parts", MAIL_PARTS_MAX);
    if (scan.header_lines > MAIL_HEADER_LINES_MAX || scan.boundary_lines > MAIL_BOUNDARY_LINES_MAX)
        return why_set(why, INVALID, "the mail has more lines that look like headers or boundaries than are read");
    return OK;
}

/* ---- headers: the first of a name counts, as it was closest to us ---- */

static GMimeHeader *find_header(const struct mail *mail, const char *name)
{
    int count = g_mime_header_list_get_count(mail->headers);
    for (int i = 0; i < count; i++) {
        GMimeHeader *header = g_mime_header_list_get_header_at(mail->headers, i);
        if (bytes_eq_nocase(bytes_of(g_mime_header_get_name(header)), bytes_of(name)))
            return header;
    }
    return NULL;
}

/* As it was sent, with its folds; BYTES_NONE when there is none. */
static struct bytes raw_header(const struct mail *mail, const char *name)
{
    GMimeHeader *header = find_header(mail, name);
    return header != NULL ? bytes_of(g_mime_header_get_raw_value(header)) : BYTES_NONE;
}

/* Decoded, on one line. */
static struct bytes text_of(struct bytes text, struct arena *arena)
{
    struct bytes clean = mail_decode(text, "utf-8", arena);
    char *at = (char *)clean.at;
    size_t len = 0;
    for (size_t i = 0; i < clean.len; i++) {
        char c = clean.at[i] == '\n' ? ' ' : clean.at[i];
        if (c != ' ' || (len > 0 && at[len - 1] != ' '))
            at[len++] = c;
    }
    clean.len = len > 0 && at[len - 1] == ' ' ? len - 1 : len;
    return clean;
}

/* GMime joins encoded words before it decodes them, and ends at the first that is padded ("w4k="): an empty word of another kind
 * between them keeps them apart. */
static struct bytes words_header(const struct mail *mail, const char *name)
{
    static const char apart[] = "=?us-ascii?Q?"
                                "?= ";
    struct bytes raw = raw_header(mail, name);
    if (raw.at == NULL || memmem(raw.at, raw.len, "=?=", 3) == NULL)
        return raw;
    struct buf out;
    buf_init(&out, 8 * (size_t)MAIL_HEAD_SIZE_MAX);
    for (size_t i = 0; i < raw.len; i++) {
        bool space = raw.at[i] == ' ' || raw.at[i] == '\t';
        buf_add_char(&out, raw.at[i]);
        if (space && i + 2 < raw.len && raw.at[i + 1] == '=' && raw.at[i + 2] == '?')
            buf_add_cstr(&out, apart);
    }
    struct bytes words = out.failed ? raw : arena_dup(mail->arena, buf_bytes(&out));
    buf_release(&out);
    return words;
}

static struct bytes text_header(const struct mail *mail, const char *name)
{
    struct bytes words = words_header(mail, name);
    char *text = words.at != NULL ? g_mime_utils_header_decode_text(NULL, words.at) : NULL;
    struct bytes decoded = text_of(bytes_of(text), mail->arena);
    g_free(text);
    return decoded;
}

/* "auto-replied; owner=…" is auto-replied. */
static struct bytes first_word(struct bytes value)
{
    size_t start = 0, end;
    if (value.at == NULL)
        return value;
    while (start < value.len && strchr(" \t\r\n", value.at[start]) != NULL)
        start++;
    for (end = start; end < value.len && strchr(" \t\r\n;,(", value.at[end]) == NULL;)
        end++;
    return (struct bytes){value.at + start, end - start};
}

/* ---- ids ---- */

/* "<A@Example.COM>" → "mail:A@example.com". BYTES_NONE for what is no id. */
static struct bytes key_of_id(struct bytes id, struct arena *arena)
{
    if (id.len == 0 || id.len > MAIL_ID_SIZE_MAX || !bytes_is_utf8(id))
        return BYTES_NONE;
    for (size_t i = 0; i < id.len; i++)
        if ((unsigned char)id.at[i] <= ' ' || id.at[i] == 0x7F || id.at[i] == '<')
            return BYTES_NONE;
    struct bytes key = arena_printf(arena, "mail:%.*s", BYTES_ARG(id));
    char *at = key.at != NULL ? memrchr(key.at, '@', key.len) : NULL;
    for (; at != NULL && at < key.at + key.len; at++)
        *at = *at >= 'A' && *at <= 'Z' ? (char)(*at + ('a' - 'A')) : *at;
    return key;
}

/* The next "<…>" of a list of ids; false at its end. */
static bool next_id(struct bytes *rest, struct bytes *ret_id)
{
    const char *open = rest->len > 0 ? memchr(rest->at, '<', rest->len) : NULL;
    if (open == NULL)
        return false;
    struct bytes id = bytes_from(*rest, (size_t)(open - rest->at) + 1);
    const char *close = id.len > 0 ? memchr(id.at, '>', id.len) : NULL;
    if (close == NULL)
        return false;
    *ret_id = (struct bytes){id.at, (size_t)(close - id.at)};
    *rest = bytes_from(id, ret_id->len + 1);
    return true;
}

/* Some programs leave the brackets out. */
static struct bytes message_key(const struct mail *mail)
{
    struct bytes value = raw_header(mail, "Message-ID"), id;
    if (!next_id(&value, &id))
        id = first_word(value);
    return key_of_id(id, mail->arena);
}

static void add_reference(struct incoming *out, struct bytes key)
{
    if (key.at == NULL || bytes_eq(key, out->key))
        return;
    for (size_t i = 0; i < out->reference_count; i++)
        if (bytes_eq(out->references[i], key))
            return;
    if (out->reference_count == INCOMING_REFERENCES_MAX) { /* the oldest goes */
        memmove(out->references, out->references + 1, (INCOMING_REFERENCES_MAX - 1) * sizeof *out->references);
        out->reference_count--;
    }
    out->references[out->reference_count++] = key;
}

/* Oldest first, what it answers last. */
static enum status read_references(struct mail *mail, struct why *why)
{
    static const char *const names[] = {"References", "In-Reply-To"};
    mail->out->references = arena_zalloc(mail->arena, INCOMING_REFERENCES_MAX, sizeof *mail->out->references);
    if (mail->out->references == NULL)
        return why_set(why, FULL, "the mail needs more memory than one message may have");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct bytes rest = raw_header(mail, names[i]), id;
        while (next_id(&rest, &id))
            add_reference(mail->out, key_of_id(id, mail->arena));
    }
    return OK;
}

/* ---- people ---- */

static struct bytes mailbox_email(InternetAddress *address, struct arena *arena)
{
    if (!INTERNET_ADDRESS_IS_MAILBOX(address))
        return BYTES_NONE;
    return identity_email(bytes_of(internet_address_mailbox_get_addr(INTERNET_ADDRESS_MAILBOX(address))), arena);
}

/* The addresses of a header, and the name of the first; BYTES_NONE without one. Groups are nobody. */
static size_t read_addresses(const struct mail *mail, const char *header, struct bytes ret[MAIL_ADDRESSES_MAX],
                             struct bytes *ret_name)
{
    struct bytes words = words_header(mail, header);
    size_t found = 0;
    InternetAddressList *list = words.at != NULL ? internet_address_list_parse(NULL, words.at) : NULL;
    int count = list != NULL ? internet_address_list_length(list) : 0;
    for (int i = 0; i < count && found < MAIL_ADDRESSES_MAX; i++) {
        InternetAddress *address = internet_address_list_get_address(list, i);
        struct bytes email = mailbox_email(address, mail->arena);
        if (email.at == NULL)
            continue;
        if (found == 0 && ret_name != NULL && internet_address_get_name(address) != NULL)
            *ret_name = text_of(bytes_of(internet_address_get_name(address)), mail->arena);
        ret[found++] = email;
    }
    if (list != NULL)
        g_object_unref(list);
    return found;
}

static bool is_among(struct bytes email, const struct bytes *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (bytes_eq(list[i], email))
            return true;
    return false;
}

struct people {
    struct bytes from[MAIL_ADDRESSES_MAX], reply[MAIL_ADDRESSES_MAX], sender[MAIL_ADDRESSES_MAX], to[MAIL_ADDRESSES_MAX];
    struct bytes from_name, reply_name;
    size_t from_count, reply_count, sender_count, to_count;
};

/* An answer to us, or to the sender anyway, names nobody new. */
static void drop_own(struct people *people)
{
    size_t kept = 0;
    for (size_t i = 0; i < people->reply_count; i++) {
        struct bytes email = people->reply[i];
        if (is_among(email, people->from, people->from_count))
            people->reply_count = 0;
        else if (!is_among(email, people->to, people->to_count))
            people->reply[kept++] = email;
    }
    people->reply_count = people->reply_count > 0 ? kept : 0;
}

static struct bytes domain_of(struct bytes email)
{
    const char *at = email.at != NULL ? memrchr(email.at, '@', email.len) : NULL;
    return at != NULL ? bytes_from(email, (size_t)(at - email.at) + 1) : BYTES_NONE;
}

static void add_people(struct mail *mail, const struct bytes *emails, size_t count, bool sender)
{
    struct incoming *out = mail->out;
    for (size_t i = 0; i < count; i++)
        identity_add(out->identities, &out->identity_count, MAIL_ADDRESSES_MAX,
                     (struct identity){.kind = IDENTITY_EMAIL, .sender = sender, .value = emails[i]});
}

/* A form's own address must not become everybody's: with another Reply-To, From is only mentioned. */
static void read_people(struct mail *mail)
{
    struct people people = {.from_name = BYTES_NONE};
    people.from_count = read_addresses(mail, "From", people.from, &people.from_name);
    people.reply_count = read_addresses(mail, "Reply-To", people.reply, &people.reply_name);
    people.sender_count = read_addresses(mail, "Sender", people.sender, NULL);
    people.to_count = read_addresses(mail, "To", people.to, NULL);
    drop_own(&people);
    bool instead = people.reply_count > 0;
    bool same_house = instead && people.from_count > 0 && bytes_eq(domain_of(people.reply[0]), domain_of(people.from[0]));
    mail->out->relayed = instead && !same_house;
    add_people(mail, people.reply, people.reply_count, true);
    add_people(mail, people.from, people.from_count, !instead);
    add_people(mail, people.sender, people.sender_count, people.reply_count + people.from_count == 0);
    mail->out->name = !instead || (same_house && people.reply_name.len == 0) ? people.from_name : people.reply_name;
}

static void read_mentions(struct mail *mail)
{
    struct incoming *out = mail->out;
    struct identity found[INCOMING_IDENTITIES_MAX];
    size_t count = identity_mentions(mail->own, mail->arena, found, INCOMING_IDENTITIES_MAX);
    for (size_t i = 0; i < count; i++)
        identity_add(out->identities, &out->identity_count, INCOMING_IDENTITIES_MAX - 2, found[i]);
    mention_phones(mail->own, mail->region, mail->arena, out->identities, &out->identity_count, INCOMING_IDENTITIES_MAX);
}

/* ---- what nobody wrote ---- */

static bool is_report(const struct mail *mail)
{
    GMimeObject *part = g_mime_message_get_mime_part(mail->message);
    GMimeContentType *type = part != NULL ? g_mime_object_get_content_type(part) : NULL;
    return type != NULL && g_mime_content_type_is_type(type, "multipart", "report");
}

static bool is_precedence_bulk(struct bytes value)
{
    static const char *const words[] = {"bulk", "list", "junk", "auto_reply"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (bytes_eq_nocase(value, bytes_of(words[i])))
            return true;
    return false;
}

static bool is_automatic(const struct mail *mail)
{
    static const char *const names[] = {"List-Id", "List-Unsubscribe", "X-Auto-Response-Suppress", "X-Autoreply",
                                        "X-Autorespond"};
    struct bytes submitted = first_word(raw_header(mail, "Auto-Submitted"));
    if (submitted.len > 0 && !bytes_eq_nocase(submitted, BYTES("no")))
        return true;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (find_header(mail, names[i]) != NULL)
            return true;
    return is_precedence_bulk(first_word(raw_header(mail, "Precedence"))) ||
           bytes_is(first_word(raw_header(mail, "Return-Path")), "<>") || is_report(mail);
}

/* ---- the whole ---- */

static int64_t read_date(const struct mail *mail)
{
    struct bytes raw = raw_header(mail, "Date");
    GDateTime *date = raw.at != NULL ? g_mime_utils_header_decode_date(raw.at) : NULL;
    if (date == NULL)
        return 0;
    int64_t seconds = g_date_time_to_unix(date);
    g_date_time_unref(date);
    return seconds > 0 && seconds < INT64_MAX / WHEN_SECOND ? seconds * WHEN_SECOND : 0;
}

/* White space differs between copies; words do not. */
static struct bytes hashed_key(const struct mail *mail)
{
    const struct incoming *out = mail->out;
    struct bytes from = out->identity_count > 0 ? out->identities[0].value : BYTES("");
    const struct bytes parts[] = {from, text_of(raw_header(mail, "Date"), mail->arena), out->subject,
                                  text_of(out->text, mail->arena)};
    struct hash hash = hash_parts(parts, sizeof parts / sizeof *parts);
    char hex[2 * HASH_SIZE];
    bytes_to_hex(hash_bytes(&hash), hex);
    return arena_printf(mail->arena, "mail:sha256:%.*s", (int)sizeof hex, hex);
}

static enum status read_text(struct mail *mail, struct why *why)
{
    struct bytes body;
    mail->out->subject = mail_strip_subject(text_header(mail, "Subject"), &mail->forwarded);
    TRY(mail_body(mail->message, mail->arena, &body, why));
    mail_strip_text(body, mail->forwarded, mail->arena, &mail->own, &mail->out->text);
    mail->out->text = mail_clip(mail->out->text, INCOMING_TEXT_MAX);
    return OK;
}

static enum status read_all(struct mail *mail, struct why *why)
{
    struct incoming *out = mail->out;
    out->identities = arena_zalloc(mail->arena, INCOMING_IDENTITIES_MAX, sizeof *out->identities);
    if (out->identities == NULL)
        return why_set(why, FULL, "the mail needs more memory than one message may have");
    TRY(read_text(mail, why));
    read_people(mail);
    read_mentions(mail);
    out->at_us = read_date(mail);
    out->automatic = is_automatic(mail);
    out->kind = is_report(mail) ? BYTES("status") : BYTES("message");
    out->key = message_key(mail);
    if (out->key.at == NULL)
        out->key = hashed_key(mail);
    TRY(read_references(mail, why));
    return mail->arena->failed ? why_set(why, FULL, "the mail needs more memory than one message may have") : OK;
}

static void set_up(void)
{
    g_mime_init();
}

static GMimeMessage *parse(struct bytes raw)
{
    GMimeStream *stream = g_mime_stream_mem_new_with_buffer(raw.at, raw.len);
    GMimeParser *parser = g_mime_parser_new_with_stream(stream);
    g_mime_parser_set_persist_stream(parser, TRUE);
    GMimeMessage *message = g_mime_parser_construct_message(parser, NULL);
    g_object_unref(parser);
    g_object_unref(stream);
    return message;
}

enum status mail_read(struct bytes raw, struct bytes region, struct arena *arena, struct incoming *ret, struct why *why)
{
    TRY(check_limits(raw, why));
    pthread_once(&once, set_up);
    struct incoming out = {.piece = raw};
    struct mail mail = {.region = region, .arena = arena, .out = &out};
    if (raw.len == 0 || (mail.message = parse(raw)) == NULL)
        return why_set(why, INVALID, "this is no mail: it has no header");
    mail.headers = g_mime_object_get_header_list(GMIME_OBJECT(mail.message));
    enum status status = g_mime_header_list_get_count(mail.headers) > 0
                             ? read_all(&mail, why)
                             : why_set(why, INVALID, "this is no mail: it has no header");
    g_object_unref(mail.message);
    if (status == OK)
        *ret = out;
    return status;
}
