/* The text of a mail: which part a person reads, and its characters. */
#include "mail/mail_own.h"

#include <unicode/ucnv.h>

/* ---- characters ---- */

/* Western mail that says nothing, or says ASCII or Latin-1, is Windows-1252 when it is not UTF-8. */
static const char *converter_of(const char *charset)
{
    static const char *const western[] = {"us-ascii",     "ascii",   "iso-8859-1", "latin1", "x-unknown",
                                          "unknown-8bit", "default", "utf-8",      "utf8",   "binary"};
    if (charset == NULL || *charset == '\0')
        return "windows-1252";
    for (size_t i = 0; i < sizeof western / sizeof *western; i++)
        if (bytes_eq_nocase(bytes_of(charset), bytes_of(western[i])))
            return "windows-1252";
    return charset;
}

/* What cannot be read becomes U+FFFD. BYTES_NONE when ICU does not know the charset. */
static struct bytes convert(struct bytes text, const char *charset, struct arena *arena)
{
    UErrorCode error = U_ZERO_ERROR;
    size_t size = 3 * text.len + 16;
    char *out = arena_alloc(arena, size);
    if (out == NULL)
        return BYTES_NONE;
    int32_t len = ucnv_convert("UTF-8", charset, out, (int32_t)size, text.at, (int32_t)text.len, &error);
    if (U_FAILURE(error) || len < 0 || (size_t)len > size)
        return BYTES_NONE;
    return (struct bytes){out, (size_t)len};
}

/* The space that a person does not see a difference in, and what they do not see at all. */
static bool is_odd_space(uint32_t code)
{
    return code == 0xA0 || code == 0x202F || code == 0x2007 || (code >= 0x2000 && code <= 0x200A) || code == '\t';
}

static bool is_unseen(uint32_t code)
{
    return (code < ' ' && code != '\n') || (code >= 0x7F && code < 0xA0) || (code >= 0x200B && code <= 0x200F) ||
           code == 0xFEFF || code == 0xAD || (code >= 0x202A && code <= 0x202E) || (code >= 0x2060 && code <= 0x2069);
}

/* Line ends become '\n'; what is not UTF-8 is left out. Never longer. */
static struct bytes clean(struct bytes text, struct arena *arena)
{
    char *out = arena_alloc(arena, text.len + 1);
    size_t len = 0;
    if (out == NULL)
        return BYTES_NONE;
    for (size_t i = 0; i < text.len;) {
        uint32_t code = 0;
        size_t size = bytes_utf8_char(bytes_from(text, i), &code);
        bool lone = code == '\r' && !(i + 1 < text.len && text.at[i + 1] == '\n');
        if (size > 0 && (lone || is_odd_space(code))) {
            out[len++] = lone ? '\n' : ' ';
        } else if (size > 0 && !is_unseen(code)) {
            memcpy(out + len, text.at + i, size);
            len += size;
        }
        i += size > 0 ? size : 1;
    }
    out[len] = '\0';
    return (struct bytes){out, len};
}

struct bytes mail_decode(struct bytes text, const char *charset, struct arena *arena)
{
    const char *converter = converter_of(charset);
    bool western = strcmp(converter, "windows-1252") == 0;
    if (western && bytes_is_utf8(text))
        return clean(text, arena);
    struct bytes converted = convert(text, converter, arena);
    if (converted.at == NULL && bytes_is_utf8(text))
        converted = text;
    if (converted.at == NULL)
        converted = convert(text, "windows-1252", arena);
    return clean(converted, arena);
}

struct bytes mail_clip(struct bytes text, size_t size_max)
{
    if (text.len <= size_max)
        return text;
    size_t len = size_max;
    while (len > 0 && len + 4 > size_max && ((unsigned char)text.at[len] & 0xC0) == 0x80)
        len--;
    return (struct bytes){text.at, len};
}

/* ---- parts ---- */

struct mail_texts {
    struct arena *arena;
    struct bytes plain, html; /* the inline texts so far, one behind the other */
    bool failed;
};

static struct bytes part_text(GMimePart *part, struct arena *arena)
{
    GMimeDataWrapper *content = g_mime_part_get_content(part);
    if (content == NULL)
        return BYTES("");
    GMimeStream *stream = g_mime_stream_mem_new();
    g_mime_data_wrapper_write_to_stream(content, stream);
    GByteArray *array = g_mime_stream_mem_get_byte_array(GMIME_STREAM_MEM(stream));
    struct bytes raw = {array->data != NULL ? (const char *)array->data : "", array->len};
    struct bytes text = mail_decode(mail_clip(raw, MAIL_TEXT_SIZE_MAX),
                                    g_mime_object_get_content_type_parameter(GMIME_OBJECT(part), "charset"), arena);
    g_object_unref(stream);
    return text;
}

/* Programs split a text around pictures: what is inline is one text. */
static void add_text(struct mail_texts *texts, struct bytes *to, GMimePart *part)
{
    if (to->len > MAIL_TEXT_SIZE_MAX)
        return;
    struct bytes text = part_text(part, texts->arena);
    if (text.at != NULL && mail_is_blank(text))
        return;
    if (text.at != NULL && to->len > 0)
        text = arena_printf(texts->arena, "%.*s\n%.*s", BYTES_ARG(*to), BYTES_ARG(text));
    if (text.at == NULL)
        texts->failed = true;
    else
        *to = text;
}

static bool is_attached(GMimeObject *object)
{
    GMimeContentDisposition *disposition = g_mime_object_get_content_disposition(object);
    return (disposition != NULL && g_mime_content_disposition_is_attachment(disposition)) ||
           (GMIME_IS_PART(object) && g_mime_part_get_filename(GMIME_PART(object)) != NULL);
}

static void look(struct mail_texts *texts, GMimeObject *object, int depth);

/* Of a report only the first part is for people. */
static void look_inside(struct mail_texts *texts, GMimeMultipart *multipart, int depth)
{
    GMimeContentType *type = g_mime_object_get_content_type(GMIME_OBJECT(multipart));
    int count = g_mime_multipart_get_count(multipart);
    bool first_only = type != NULL && (g_mime_content_type_is_type(type, "multipart", "report") ||
                                       g_mime_content_type_is_type(type, "multipart", "signed"));
    for (int i = 0; i < count && !(first_only && i > 0) && !texts->failed; i++)
        look(texts, g_mime_multipart_get_part(multipart, i), depth + 1);
}

/* A mail that is attached as a mail is somebody else's words: it is not looked into. */
static void look(struct mail_texts *texts, GMimeObject *object, int depth)
{
    if (object == NULL || depth > MAIL_DEPTH_MAX)
        return;
    if (GMIME_IS_MULTIPART(object)) {
        look_inside(texts, GMIME_MULTIPART(object), depth);
        return;
    }
    GMimeContentType *type = g_mime_object_get_content_type(object);
    if (!GMIME_IS_PART(object) || type == NULL || is_attached(object))
        return;
    if (g_mime_content_type_is_type(type, "text", "html"))
        add_text(texts, &texts->html, GMIME_PART(object));
    else if (g_mime_content_type_is_type(type, "text", "plain"))
        add_text(texts, &texts->plain, GMIME_PART(object));
}

/* When everything in it is marked as quoted, that is the message. */
static struct bytes html_text(struct bytes html, struct arena *arena)
{
    struct bytes text = mail_html_text(html, false, arena);
    return text.at != NULL && mail_is_blank(text) ? mail_html_text(html, true, arena) : text;
}

enum status mail_body(GMimeMessage *message, struct arena *arena, struct bytes *ret_text, struct why *why)
{
    struct mail_texts texts = {.arena = arena, .plain = BYTES(""), .html = BYTES("")};
    look(&texts, g_mime_message_get_mime_part(message), 0);
    struct bytes text = texts.plain;
    if (text.len == 0 && texts.html.len > 0)
        text = html_text(texts.html, arena);
    if (texts.failed || text.at == NULL)
        return why_set(why, FULL, "the text of the mail needs more memory than one message may have");
    *ret_text = text;
    return OK;
}
