/* HTML as text: what a reader sees, line by line. Never longer than the HTML. No tree is built, so nothing can nest too deep. */
#include "mail/mail_own.h"

enum { ENTITY_SIZE_MAX = 12, NAME_SIZE_MAX = 16 };

struct html {
    struct bytes in;
    size_t at;
    char *out;
    size_t len;
    bool quotes;              /* keep what is quoted */
    char skip[NAME_SIZE_MAX]; /* the element whose content is left out, "" for none … */
    size_t skip_depth;        /* … and how many of its name are open */
};

/* ---- output: white space is one space, a block begins a line ---- */

static void put(struct html *html, struct bytes text)
{
    if (html->skip[0] != '\0')
        return;
    memcpy(html->out + html->len, text.at, text.len);
    html->len += text.len;
}

static void put_space(struct html *html)
{
    if (html->len > 0 && html->out[html->len - 1] != ' ' && html->out[html->len - 1] != '\n')
        put(html, BYTES(" "));
}

/* At most one empty line. */
static void put_line(struct html *html, bool always)
{
    if (html->skip[0] != '\0')
        return;
    while (html->len > 0 && html->out[html->len - 1] == ' ')
        html->len--;
    bool at_start = html->len == 0 || html->out[html->len - 1] == '\n';
    bool empty = html->len == 0 || (html->len > 1 && html->out[html->len - 1] == '\n' && html->out[html->len - 2] == '\n');
    if (!at_start || (always && !empty))
        put(html, BYTES("\n"));
}

/* ---- entities ---- */

static const struct {
    const char *name, *text;
} entities[] = {
    {"amp", "&"},    {"lt", "<"},     {"gt", ">"},     {"quot", "\""},  {"apos", "'"},   {"nbsp", " "},   {"auml", "ä"},
    {"ouml", "ö"},   {"uuml", "ü"},   {"Auml", "Ä"},   {"Ouml", "Ö"},   {"Uuml", "Ü"},   {"szlig", "ß"},  {"eacute", "é"},
    {"egrave", "è"}, {"ecirc", "ê"},  {"euml", "ë"},   {"agrave", "à"}, {"acirc", "â"},  {"aacute", "á"}, {"ccedil", "ç"},
    {"icirc", "î"},  {"iuml", "ï"},   {"iacute", "í"}, {"ocirc", "ô"},  {"oacute", "ó"}, {"ucirc", "û"},  {"ugrave", "ù"},
    {"uacute", "ú"}, {"ntilde", "ñ"}, {"Eacute", "É"}, {"Egrave", "È"}, {"Agrave", "À"}, {"Ccedil", "Ç"}, {"aring", "å"},
    {"oslash", "ø"}, {"aelig", "æ"},  {"oelig", "œ"},  {"atilde", "ã"}, {"otilde", "õ"}, {"iexcl", "¡"},  {"iquest", "¿"},
    {"euro", "€"},   {"pound", "£"},  {"copy", "©"},   {"reg", "®"},    {"deg", "°"},    {"laquo", "«"},  {"raquo", "»"},
    {"ndash", "–"},  {"mdash", "—"},  {"lsquo", "‘"},  {"rsquo", "’"},  {"ldquo", "“"},  {"rdquo", "”"},  {"bdquo", "„"},
    {"hellip", "…"}, {"bull", "•"},   {"middot", "·"}, {"trade", "™"},  {"zwnj", ""},    {"zwj", ""},     {"shy", ""},
};

static size_t write_utf8(uint32_t code, char ret[4])
{
    if (code < 0x80) {
        ret[0] = (char)code;
        return 1;
    }
    size_t len = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char leads[] = {0, 0, 0xC0, 0xE0, 0xF0};
    for (size_t i = len - 1; i > 0; i--, code >>= 6)
        ret[i] = (char)(0x80 | (code & 0x3F));
    ret[0] = (char)(leads[len] | code);
    return len;
}

static bool number_of(struct bytes digits, uint32_t base, uint32_t *ret_code)
{
    uint32_t code = 0;
    if (digits.len == 0 || digits.len > 7)
        return false;
    for (size_t i = 0; i < digits.len; i++) {
        char c = (char)(digits.at[i] | 0x20);
        uint32_t digit = digits.at[i] >= '0' && digits.at[i] <= '9' ? (uint32_t)(digits.at[i] - '0')
                         : c >= 'a' && c <= 'f'                     ? (uint32_t)(c - 'a' + 10)
                                                                    : 16;
        if (digit >= base)
            return false;
        code = code * base + digit;
    }
    *ret_code = code;
    return code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF);
}

static void put_code(struct html *html, uint32_t code)
{
    char text[4];
    if (code == 0xA0 || code == 0x202F || code <= ' ')
        put_space(html);
    else if (code >= 0x7F && code < 0xA0)
        return;
    else
        put(html, (struct bytes){text, write_utf8(code, text)});
}

/* "&amp;", "&#233;", "&#xE9;". True, and moved behind it, when it is one; a lone '&' is text. */
static bool take_entity(struct html *html)
{
    struct bytes rest = bytes_from(html->in, html->at + 1);
    size_t len = 0;
    uint32_t code;
    while (len < rest.len && len < ENTITY_SIZE_MAX && rest.at[len] != ';')
        len++;
    if (len == 0 || len == rest.len || rest.at[len] != ';')
        return false;
    struct bytes name = {rest.at, len};
    if (name.at[0] == '#') {
        bool hex = len > 1 && (name.at[1] | 0x20) == 'x';
        if (!number_of(bytes_from(name, hex ? 2 : 1), hex ? 16 : 10, &code))
            return false;
        put_code(html, code);
        html->at += len + 2;
        return true;
    }
    for (size_t i = 0; i < sizeof entities / sizeof *entities; i++)
        if (bytes_is(name, entities[i].name)) {
            if (bytes_is(name, "nbsp"))
                put_space(html);
            else
                put(html, bytes_of(entities[i].text));
            html->at += len + 2;
            return true;
        }
    return false;
}

/* ---- tags ---- */

struct tag {
    char name[NAME_SIZE_MAX];
    bool end;
    struct bytes rest; /* its attributes */
};

static bool is_in(const char *name, const char *const *names)
{
    for (; *names != NULL; names++)
        if (strcmp(name, *names) == 0)
            return true;
    return false;
}

/* The words that mail programs mark a quotation or a signature with, in the class or id of its element. */
static bool is_marked_quote(const struct tag *tag)
{
    static const char *const marks[] = {"gmail_quote",
                                        "gmail_signature",
                                        "yahoo_quoted",
                                        "protonmail_quote",
                                        "protonmail_signature",
                                        "moz-cite-prefix",
                                        "moz-signature",
                                        "OLK_SRC_BODY_SECTION",
                                        "zmail_extra",
                                        "tutanota_quote",
                                        "ms-outlook-mobile-signature",
                                        NULL};
    if (strcmp(tag->name, "blockquote") == 0)
        return true;
    if (strcmp(tag->name, "div") != 0 && strcmp(tag->name, "span") != 0)
        return false;
    for (size_t i = 0; marks[i] != NULL; i++)
        if (tag->rest.len > 0 && memmem(tag->rest.at, tag->rest.len, marks[i], strlen(marks[i])) != NULL)
            return true;
    return false;
}

static void open_skip(struct html *html, const struct tag *tag)
{
    memcpy(html->skip, tag->name, sizeof html->skip);
    html->skip_depth = 1;
}

static bool follow_skip(struct html *html, const struct tag *tag)
{
    if (html->skip[0] == '\0')
        return false;
    if (strcmp(tag->name, html->skip) == 0) {
        html->skip_depth = tag->end ? html->skip_depth - 1 : html->skip_depth + 1;
        if (html->skip_depth == 0)
            html->skip[0] = '\0';
    }
    return true;
}

static void on_tag(struct html *html, const struct tag *tag)
{
    static const char *const hidden[] = {"head", "style", "script", "title", "noscript", "template", "svg", "object", NULL};
    static const char *const blocks[] = {"p",  "h1",    "h2",  "h3",         "h4", "h5", "h6",   "ul",
                                         "ol", "table", "pre", "blockquote", "hr", "dl", "form", NULL};
    static const char *const lines[] = {"div",     "tr",      "li",     "br",     "dt",   "dd",
                                        "section", "article", "header", "footer", "body", NULL};
    if (follow_skip(html, tag))
        return;
    if (!tag->end && (is_in(tag->name, hidden) || (!html->quotes && is_marked_quote(tag)))) {
        put_line(html, false);
        open_skip(html, tag);
    } else if (is_in(tag->name, blocks)) {
        put_line(html, true);
    } else if (is_in(tag->name, lines)) {
        put_line(html, strcmp(tag->name, "br") == 0);
    } else if (strcmp(tag->name, "td") == 0 || strcmp(tag->name, "th") == 0) {
        put_space(html);
    }
}

/* Behind the '>' that ends the tag; one in quotes does not. */
static size_t tag_end(struct bytes in, size_t at)
{
    char quote = '\0';
    for (size_t i = at; i < in.len; i++) {
        char c = in.at[i];
        if (quote != '\0' ? c == quote : c == '>') {
            if (quote == '\0')
                return i + 1;
            quote = '\0';
        } else if (quote == '\0' && (c == '"' || c == '\'') && in.at[i - 1] == '=') {
            quote = c;
        }
    }
    return in.len;
}

/* A comment, or "<!doctype …>", "<?…>". */
static void skip_declaration(struct html *html)
{
    struct bytes rest = bytes_from(html->in, html->at);
    if (!bytes_starts(rest, BYTES("<!--"))) {
        html->at = tag_end(html->in, html->at + 1);
        return;
    }
    const char *end = memmem(rest.at + 4, rest.len - 4, "-->", 3);
    html->at = end != NULL ? (size_t)(end - html->in.at) + 3 : html->in.len;
}

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == ':' || c == '-';
}

static bool take_tag(struct html *html)
{
    struct tag tag = {.end = false};
    struct bytes rest = bytes_from(html->in, html->at + 1);
    if (rest.len > 0 && (rest.at[0] == '!' || rest.at[0] == '?')) {
        skip_declaration(html);
        return true;
    }
    if (rest.len > 0 && rest.at[0] == '/') {
        tag.end = true;
        rest = bytes_from(rest, 1);
    }
    size_t len = 0;
    if (rest.len == 0 || !is_name(rest.at[0]) || (rest.at[0] >= '0' && rest.at[0] <= '9'))
        return false;
    for (; len < rest.len && is_name(rest.at[len]); len++)
        if (len < NAME_SIZE_MAX - 1)
            tag.name[len] = (char)(rest.at[len] >= 'A' && rest.at[len] <= 'Z' ? rest.at[len] + 32 : rest.at[len]);
    size_t end = tag_end(html->in, (size_t)(rest.at - html->in.at) + len);
    tag.rest = (struct bytes){rest.at + len, (size_t)(html->in.at + end - (rest.at + len))};
    html->at = end;
    on_tag(html, &tag);
    return true;
}

/* Inside <style> and <script> only the end tag counts. */
static bool skip_raw(struct html *html)
{
    if (strcmp(html->skip, "style") != 0 && strcmp(html->skip, "script") != 0)
        return false;
    for (; html->at < html->in.len; html->at++) {
        const char *next = memmem(html->in.at + html->at, html->in.len - html->at, "</", 2);
        if (next == NULL)
            break;
        html->at = (size_t)(next - html->in.at);
        if (bytes_eq_nocase((struct bytes){next + 2, strnlen(html->skip, html->in.len - html->at - 2)}, bytes_of(html->skip)))
            return false;
    }
    html->at = html->in.len;
    return true;
}

struct bytes mail_html_text(struct bytes in, bool quotes, struct arena *arena)
{
    struct html html = {.in = in, .out = arena_alloc(arena, in.len + 1), .quotes = quotes};
    if (html.out == NULL)
        return BYTES_NONE;
    while (html.at < in.len && !skip_raw(&html)) {
        char c = in.at[html.at];
        if ((c == '<' && take_tag(&html)) || (c == '&' && take_entity(&html)))
            continue;
        if (c == ' ' || c == '\n' || c == '\t' || c == '\r')
            put_space(&html);
        else
            put(&html, (struct bytes){&c, 1});
        html.at++;
    }
    html.out[html.len] = '\0';
    return (struct bytes){html.out, html.len};
}
