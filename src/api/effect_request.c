#include "api/effects.h"

#include "base/base64.h"
#include "base/when.h"
#include "destination/header.h"

#define MAIL_RECIPIENTS_MAX 1000
#define MAIL_LINE_MAX 900

/* ---- the request to be made ---- */

static bool add_pair(struct effect_request *request, struct bytes name, struct bytes value)
{
    if (request->header_count == DESTINATION_HEADERS_MAX)
        return false;
    request->headers[request->header_count++] = (struct pair){name, value};
    return true;
}

static bool is_token(struct bytes name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.at[i];
        bool good =
            (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("!#$%&'*+-.^_`|~", c) != NULL;
        if (!good || c == '\0')
            return false;
    }
    return name.len > 0 && name.len <= 256;
}

static bool is_header_value(struct bytes value)
{
    for (size_t i = 0; i < value.len; i++)
        if (((unsigned char)value.at[i] < 0x20 && value.at[i] != '\t') || value.at[i] == 0x7f)
            return false;
    return true;
}

static bool take_headers(struct call *call, const struct json *json, const struct destination *destination,
                         struct effect_request *request)
{
    bool command = destination->kind == DESTINATION_COMMAND;
    if (json == NULL)
        return true;
    if (json->type != JSON_OBJECT) {
        problem_field(call, BYTES("request.headers"), "headers have to be an object of texts.");
        return false;
    }
    for (uint32_t i = 0; i < json->count; i++) {
        const struct json_member *member = &json->members[i];
        bool good = member->value.type == JSON_STRING && is_token(member->name) && is_header_value(member->value.text);
        if (command && !bytes_starts(member->name, BYTES("SEMEL_"))) {
            problem_field(call, BYTES("request.headers"),
                          "The headers of a command are its environment: they begin with SEMEL_.");
            return false;
        }
        if (!good || header_is_request_framing(member->name) || !add_pair(request, member->name, member->value.text)) {
            problem_field(call, BYTES("request.headers"),
                          "\"%.*s\" cannot be a header here: names are tokens, values are one line of text, at most %d, and "
                          "framing is semel's own.",
                          (int)(member->name.len < 60 ? member->name.len : 60), member->name.at, DESTINATION_HEADERS_MAX);
            return false;
        }
    }
    return true;
}

static void set_type(struct effect_request *request, const char *type)
{
    if (header_find(request->headers, request->header_count, BYTES("content-type")).at == NULL)
        add_pair(request, BYTES("Content-Type"), bytes_of(type));
}

static void add_form_text(struct buf *buf, struct bytes text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
                     c == '.' || c == '*';
        if (plain)
            buf_add_char(buf, (char)c);
        else if (c == ' ')
            buf_add_char(buf, '+');
        else
            buf_printf(buf, "%%%02X", c);
    }
}

/* {"a":"b","n":1} → a=b&n=1 */
static bool make_form(struct call *call, const struct json *form, struct bytes *ret_body)
{
    struct buf buf;
    bool good = form->type == JSON_OBJECT;
    buf_init(&buf, 4 << 20);
    for (uint32_t i = 0; good && i < form->count; i++) {
        const struct json *value = &form->members[i].value;
        good = value->type != JSON_ARRAY && value->type != JSON_OBJECT && value->type != JSON_NULL;
        if (i > 0)
            buf_add_char(&buf, '&');
        add_form_text(&buf, form->members[i].name);
        buf_add_char(&buf, '=');
        add_form_text(&buf, value->type == JSON_STRING ? value->text : value->raw);
    }
    *ret_body = arena_dup(call->request->arena, buf_bytes(&buf));
    good = good && !buf.failed && ret_body->at != NULL;
    buf_release(&buf);
    if (!good)
        problem_field(call, BYTES("request.form"), "form has to be an object whose values are texts, numbers or truth values.");
    return good;
}

struct request_body {
    struct bytes method, path, body, base64;
    const struct json *headers, *json, *form;
};

static const struct json_field request_fields[] = {
    {"method", JSON_FIELD_TEXT, offsetof(struct request_body, method), false, 1, 32, NULL},
    {"path", JSON_FIELD_TEXT, offsetof(struct request_body, path), false, 1, 8192, NULL},
    {"headers", JSON_FIELD_VALUE, offsetof(struct request_body, headers), false, 0, 0, NULL},
    {"body", JSON_FIELD_TEXT, offsetof(struct request_body, body), false, 0, 0, NULL},
    {"body_base64", JSON_FIELD_TEXT, offsetof(struct request_body, base64), false, 0, 0, NULL},
    {"json", JSON_FIELD_VALUE, offsetof(struct request_body, json), false, 0, 0, NULL},
    {"form", JSON_FIELD_VALUE, offsetof(struct request_body, form), false, 0, 0, NULL},
};

static bool is_path(struct bytes path)
{
    for (size_t i = 0; i < path.len; i++)
        if ((unsigned char)path.at[i] <= ' ' || path.at[i] == 0x7f || path.at[i] == '#')
            return false;
    return path.len > 0 && path.at[0] == '/';
}

static bool take_request_body(struct call *call, const struct request_body *body, struct effect_request *request)
{
    int given = (body->body.at != NULL) + (body->base64.at != NULL) + (body->json != NULL) + (body->form != NULL);
    if (given > 1) {
        problem_field(call, BYTES("request"), "Give one of body, body_base64, json and form.");
        return false;
    }
    request->body = body->body;
    if (body->json != NULL) {
        request->body = body->json->raw;
        set_type(request, "application/json");
    }
    if (body->form != NULL) {
        set_type(request, "application/x-www-form-urlencoded");
        return make_form(call, body->form, &request->body);
    }
    if (body->base64.at == NULL)
        return true;
    request->body = base64_decode(body->base64, call->request->arena);
    if (request->body.at == NULL)
        problem_field(call, BYTES("request.body_base64"), "body_base64 is not exact base64 with padding.");
    return request->body.at != NULL;
}

static bool take_request(struct call *call, const struct json *json, const struct destination *destination,
                         struct effect_request *request)
{
    bool command = destination->kind == DESTINATION_COMMAND;
    struct request_body body = {.method = command ? BYTES("RUN") : BYTES("POST"), .path = BYTES("/")};
    struct bytes field = BYTES_NONE;
    struct why why;
    if (json_read(json, request_fields, sizeof request_fields / sizeof *request_fields, &body, &field, &why) != OK) {
        struct bytes path = arena_printf(call->request->arena, "request.%.*s", BYTES_ARG(field));
        problem_field(call, path.at != NULL ? path : BYTES("request"), "%s", why.text);
        return false;
    }
    if (!is_path(body.path)) {
        problem_field(call, BYTES("request.path"),
                      "path begins with '/', is percent-encoded and has no fragment, such as /v1/charges?expand=1.");
        return false;
    }
    if (!is_token(body.method) || (command && !bytes_is(body.method, "RUN"))) {
        problem_field(call, BYTES("request.method"), "method has to be a word such as POST; for a command, RUN or none.");
        return false;
    }
    request->method = body.method;
    request->path = body.path;
    return take_headers(call, body.headers, destination, request) && take_request_body(call, &body, request);
}

/* ---- mail ---- */

struct mail_body {
    struct bytes subject, text, html, from, reply_to;
    const struct json *to, *cc, *bcc, *headers;
};

static const struct json_field mail_fields[] = {
    {"to", JSON_FIELD_VALUE, offsetof(struct mail_body, to), true, 0, 0, NULL},
    {"cc", JSON_FIELD_VALUE, offsetof(struct mail_body, cc), false, 0, 0, NULL},
    {"bcc", JSON_FIELD_VALUE, offsetof(struct mail_body, bcc), false, 0, 0, NULL},
    {"from", JSON_FIELD_TEXT, offsetof(struct mail_body, from), false, 3, 320, NULL},
    {"reply_to", JSON_FIELD_TEXT, offsetof(struct mail_body, reply_to), false, 3, 320, NULL},
    {"subject", JSON_FIELD_TEXT, offsetof(struct mail_body, subject), true, 0, 998, NULL},
    {"text", JSON_FIELD_TEXT, offsetof(struct mail_body, text), false, 0, 0, NULL},
    {"html", JSON_FIELD_TEXT, offsetof(struct mail_body, html), false, 0, 0, NULL},
    {"headers", JSON_FIELD_VALUE, offsetof(struct mail_body, headers), false, 0, 0, NULL},
};

static bool is_ascii(struct bytes text)
{
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.at[i] >= 0x80)
            return false;
    return true;
}

/* How much of the text goes into one encoded word: short enough for a line, and no character is cut. */
static size_t word_size(struct bytes text)
{
    size_t size = text.len < 36 ? text.len : 36;
    while (size < text.len && size > 1 && ((unsigned char)text.at[size] & 0xC0) == 0x80)
        size--;
    return size;
}

/* RFC 2047 for what is not ASCII, or too long for a line: words, one to a line. */
static struct bytes encode_word(struct bytes text, struct arena *arena)
{
    if (is_ascii(text) && text.len <= MAIL_LINE_MAX)
        return text;
    struct buf buf;
    buf_init(&buf, 16 << 10);
    for (struct bytes rest = text; rest.len > 0;) {
        struct bytes part = {rest.at, word_size(rest)}, base64 = base64_encode(part, arena);
        buf.failed |= base64.at == NULL;
        buf_printf(&buf, "%s=?UTF-8?B?%.*s?=", rest.at == text.at ? "" : "\r\n ", BYTES_ARG(base64));
        rest = bytes_from(rest, part.len);
    }
    struct bytes words = buf.failed ? BYTES_NONE : arena_dup(arena, buf_bytes(&buf));
    buf_release(&buf);
    return words;
}

/* The name before <address> as encoded words; the address itself stays as it is. */
static struct bytes encode_address(struct bytes text, struct arena *arena)
{
    const char *open = memrchr(text.at, '<', text.len);
    if (is_ascii(text) || open == NULL)
        return text;
    struct bytes name = bytes_trim((struct bytes){text.at, (size_t)(open - text.at)}),
                 address = bytes_from(text, (size_t)(open - text.at));
    if (name.len >= 2 && name.at[0] == '"' && name.at[name.len - 1] == '"')
        name = (struct bytes){name.at + 1, name.len - 2};
    struct bytes words = name.len > 0 ? encode_word(name, arena) : BYTES("");
    return words.at != NULL ? arena_printf(arena, "%.*s %.*s", BYTES_ARG(words), BYTES_ARG(address)) : BYTES_NONE;
}

/* "a@b.c" or a list of such texts, as one header. */
static bool take_addresses(struct call *call, const char *name, const struct json *json, uint32_t *total,
                           struct effect_request *request)
{
    if (json == NULL)
        return true;
    struct buf buf;
    uint32_t count = json->type == JSON_ARRAY ? json->count : 1;
    *total += count;
    bool good = count > 0 && *total <= MAIL_RECIPIENTS_MAX;
    buf_init(&buf, 1 << 20);
    for (uint32_t i = 0; good && i < count; i++) {
        const struct json *item = json->type == JSON_ARRAY ? &json->items[i] : json;
        good = item->type == JSON_STRING && is_header_value(item->text) && memchr(item->text.at, '@', item->text.len) != NULL;
        buf_add_cstr(&buf, i > 0 ? ",\r\n " : "");
        buf_add(&buf, good ? encode_address(item->text, call->request->arena) : BYTES(""));
    }
    struct bytes value = arena_dup(call->request->arena, buf_bytes(&buf));
    buf_release(&buf);
    if (!good || value.at == NULL || !add_pair(request, bytes_of(name), value))
        problem_field(call, BYTES("mail"), "%s has to be an address or a list of addresses, at most %d with the others.", name,
                      MAIL_RECIPIENTS_MAX);
    return good;
}

static void add_part(struct buf *buf, const char *type, struct bytes text, struct arena *arena)
{
    struct bytes base64 = base64_encode(text, arena);
    buf_printf(buf, "Content-Type: %s; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n", type);
    buf->failed |= base64.at == NULL;
    for (size_t i = 0; i < base64.len; i += 76) {
        buf_add(buf, (struct bytes){base64.at + i, base64.len - i < 76 ? base64.len - i : 76});
        buf_add_cstr(buf, "\r\n");
    }
}

/* The body and the headers that describe it. The boundary is made from the contents, so that the same mail has the same bytes. */
static bool take_mail_text(struct call *call, const struct mail_body *mail, struct effect_request *request)
{
    struct arena *arena = call->request->arena;
    struct buf buf;
    buf_init(&buf, 32u << 20);
    const struct bytes parts[] = {mail->text, mail->html};
    struct hash hash = hash_parts(parts, 2);
    char boundary[33] = "";
    bytes_to_hex((struct bytes){(const char *)hash.at, 16}, boundary);
    bool both = mail->text.at != NULL && mail->html.at != NULL;
    struct bytes type = both ? arena_printf(arena, "multipart/alternative; boundary=\"%s\"", boundary)
                             : arena_printf(arena, "%s; charset=utf-8", mail->html.at != NULL ? "text/html" : "text/plain");
    if (both) {
        buf_printf(&buf, "--%s\r\n", boundary);
        add_part(&buf, "text/plain", mail->text, arena);
        buf_printf(&buf, "--%s\r\n", boundary);
        add_part(&buf, "text/html", mail->html, arena);
        buf_printf(&buf, "--%s--\r\n", boundary);
    } else {
        struct bytes text = mail->html.at != NULL ? mail->html : mail->text.at != NULL ? mail->text : BYTES("");
        struct bytes base64 = base64_encode(text, arena);
        for (size_t i = 0; i < base64.len; i += 76)
            buf_printf(&buf, "%.*s\r\n", (int)(base64.len - i < 76 ? base64.len - i : 76), base64.at + i);
        add_pair(request, BYTES("Content-Transfer-Encoding"), BYTES("base64"));
    }
    add_pair(request, BYTES("Content-Type"), type);
    request->body = arena_dup(arena, buf_bytes(&buf));
    bool good = !buf.failed && request->body.at != NULL && type.at != NULL;
    buf_release(&buf);
    if (!good)
        problem(call, "too_large", "The mail is too large.");
    return good;
}

static bool take_mail(struct call *call, const struct json *json, const struct destination *destination,
                      struct effect_request *request)
{
    struct mail_body mail = {.from = destination->smtp_from};
    uint32_t total = 0;
    struct bytes field = BYTES_NONE;
    struct why why;
    struct arena *arena = call->request->arena;
    if (json_read(json, mail_fields, sizeof mail_fields / sizeof *mail_fields, &mail, &field, &why) != OK) {
        struct bytes path = arena_printf(arena, "mail.%.*s", BYTES_ARG(field));
        problem_field(call, path.at != NULL ? path : BYTES("mail"), "%s", why.text);
        return false;
    }
    if (!is_header_value(mail.subject) || !is_header_value(mail.from) || !is_header_value(mail.reply_to)) {
        problem_field(call, BYTES("mail"), "subject, from and reply_to are one line of text each.");
        return false;
    }
    request->method = BYTES("SEND");
    request->path = BYTES("/");
    char date[64];
    struct env *env = engine_env(call->api->engine);
    when_format_mail(env->wall_us(env), date);
    add_pair(request, BYTES("Date"), arena_dup(arena, bytes_of(date)));
    add_pair(request, BYTES("From"), encode_address(mail.from, arena));
    if (mail.reply_to.at != NULL)
        add_pair(request, BYTES("Reply-To"), encode_address(mail.reply_to, arena));
    add_pair(request, BYTES("Subject"), encode_word(mail.subject, arena));
    add_pair(request, BYTES("MIME-Version"), BYTES("1.0"));
    return take_addresses(call, "To", mail.to, &total, request) && take_addresses(call, "Cc", mail.cc, &total, request) &&
           take_addresses(call, "Bcc", mail.bcc, &total, request) && take_headers(call, mail.headers, destination, request) &&
           take_mail_text(call, &mail, request);
}

/* ---- what was given, as one request ---- */

static bool take_payload(const struct json *payload, const struct destination *destination, struct effect_request *request)
{
    request->method = destination->kind == DESTINATION_COMMAND ? BYTES("RUN") : BYTES("POST");
    request->path = BYTES("/");
    request->body = payload->raw;
    set_type(request, "application/json");
    return true;
}

bool effect_request_make(struct call *call, const struct effect_contents *body, const struct destination *destination,
                         struct effect_request *request)
{
    bool mail = destination->kind == DESTINATION_SMTP;
    int given = (body->request != NULL) + (body->payload != NULL) + (body->mail != NULL);
    if (given != 1 || mail != (body->mail != NULL)) {
        problem_field(call, mail ? BYTES("mail") : BYTES("request"),
                      mail ? "This destination sends mail: give \"mail\" with to, subject, and text or html."
                           : "Give either \"request\" (method, path, headers, and json, form or body) or \"payload\" (JSON for a "
                             "POST to the destination's URL).");
        return false;
    }
    request->headers = arena_zalloc(call->request->arena, DESTINATION_HEADERS_MAX, sizeof *request->headers);
    if (request->headers == NULL) {
        problem(call, "too_large", "The request needs too much memory.");
        return false;
    }
    if (body->mail != NULL)
        return take_mail(call, body->mail, destination, request);
    return body->request != NULL ? take_request(call, body->request, destination, request)
                                 : take_payload(body->payload, destination, request);
}
