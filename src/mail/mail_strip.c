/* What a person wrote, without what their mail program put around it. Line by line, by tables of what programs write. */
#include "mail/mail_own.h"

enum { LINES_MAX = 20000, ATTRIBUTION_LINES_MAX = 4, ATTRIBUTION_SIZE_MAX = 400, BLOCK_LINES_MAX = 8, TAIL_LINE_SIZE_MAX = 100 };

struct lines {
    struct bytes *at;
    size_t count;
};

/* ---- texts ---- */

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool mail_is_blank(struct bytes text)
{
    for (size_t i = 0; i < text.len; i++)
        if (!is_space(text.at[i]))
            return false;
    return true;
}

static struct bytes trimmed(struct bytes text)
{
    while (text.len > 0 && is_space(text.at[0]))
        text = bytes_from(text, 1);
    while (text.len > 0 && is_space(text.at[text.len - 1]))
        text.len--;
    return text;
}

/* ASCII letters of both cases are equal; what is above must be the same. */
static bool starts(struct bytes text, const char *prefix)
{
    size_t len = strlen(prefix);
    return text.len >= len && bytes_eq_nocase((struct bytes){text.at, len}, (struct bytes){prefix, len});
}

static bool contains(struct bytes text, const char *part)
{
    for (size_t i = 0; i + strlen(part) <= text.len; i++)
        if (starts(bytes_from(text, i), part))
            return true;
    return false;
}

static bool ends(struct bytes text, const char *suffix)
{
    size_t len = strlen(suffix);
    return text.len >= len && starts(bytes_from(text, text.len - len), suffix);
}

static size_t digit_count(struct bytes text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.len; i++)
        count += text.at[i] >= '0' && text.at[i] <= '9';
    return count;
}

/* Nothing but the characters of `set`, at least `least` of them. */
static bool is_rule(struct bytes line, const char *set, size_t least)
{
    for (size_t i = 0; i < line.len; i++)
        if (strchr(set, line.at[i]) == NULL)
            return false;
    return line.len >= least;
}

/* ---- subjects ---- */

static const char *const reply_words[] = {"Re",  "Réf", "Rép", "AW",  "Antw", "Antwort", "SV",   "VS",
                                          "RES", "RIF", "R",   "Odp", "YNT",  "回复",    "返信", NULL};
static const char *const forward_words[] = {"Fwd", "FW",     "WG", "TR", "RV",  "Rv",   "ENC",
                                            "I",   "Doorst", "VB", "PD", "İLT", "转发", NULL};

/* "Re:", "RE :", "Re[2]:", "Re(3):"; its length, or 0. */
static size_t prefix_size(struct bytes subject, const char *const *words)
{
    for (; *words != NULL; words++) {
        size_t at = strlen(*words);
        if (!starts(subject, *words))
            continue;
        if (at < subject.len && (subject.at[at] == '[' || subject.at[at] == '('))
            for (at++; at < subject.len && subject.at[at - 1] != ']' && subject.at[at - 1] != ')'; at++)
                if (strchr("0123456789])", subject.at[at]) == NULL)
                    return 0;
        while (at < subject.len && subject.at[at] == ' ')
            at++;
        if (at < subject.len && subject.at[at] == ':')
            return at + 1;
        if (bytes_starts(bytes_from(subject, at), BYTES("：")))
            return at + strlen("：");
    }
    return 0;
}

struct bytes mail_strip_subject(struct bytes subject, bool *ret_forwarded)
{
    bool forwarded = false, first = true;
    for (;; first = false) {
        subject = trimmed(subject);
        size_t reply = prefix_size(subject, reply_words), forward = reply > 0 ? 0 : prefix_size(subject, forward_words);
        if (reply + forward == 0)
            break;
        forwarded = forwarded || (first && forward > 0);
        subject = bytes_from(subject, reply + forward);
    }
    *ret_forwarded = forwarded;
    return subject;
}

/* ---- lines ---- */

static bool split(struct bytes text, struct arena *arena, struct lines *ret)
{
    size_t count = 1;
    for (size_t i = 0; i < text.len; i++)
        count += text.at[i] == '\n';
    count = count < LINES_MAX ? count : LINES_MAX;
    struct lines lines = {arena_zalloc(arena, count, sizeof *lines.at), 0};
    if (lines.at == NULL)
        return false;
    while (lines.count < count) {
        bool last = lines.count + 1 == count;
        lines.at[lines.count++] = last ? text : bytes_cut(&text, '\n');
    }
    *ret = lines;
    return true;
}

static size_t next_written(const struct lines *lines, size_t from)
{
    while (from < lines->count && mail_is_blank(lines->at[from]))
        from++;
    return from;
}

static bool is_quoted(struct bytes line)
{
    line = trimmed(line);
    return line.len > 0 && line.at[0] == '>';
}

static struct bytes join(const struct lines *lines, struct arena *arena)
{
    size_t size = 1;
    for (size_t i = 0; i < lines->count; i++)
        size += lines->at[i].len + 1;
    char *text = arena_alloc(arena, size), *end = text;
    if (text == NULL)
        return BYTES_NONE;
    for (size_t i = 0; i < lines->count; i++) {
        if (lines->at[i].len > 0)
            memcpy(end, lines->at[i].at, lines->at[i].len);
        end += lines->at[i].len;
        *end++ = '\n';
    }
    *end = '\0';
    return trimmed((struct bytes){text, (size_t)(end - text)});
}

/* ---- quotations ---- */

/* "On Mon, 16 Nov 2026 at 10:00, Jane <jane@example.com> wrote:" */
static const struct {
    const char *start, *verb;
} attributions[] = {
    {"On ", "wrote"},    {"Le ", "a écrit"}, {"Am ", "schrieb"}, {"El ", "escribió"},  {"Il ", "ha scritto"},
    {"Em ", "escreveu"}, {"Op ", "schreef"}, {"Den ", "skrev"},  {"W dniu ", "pisze"}, {"On ", "a écrit"},
};

static bool is_attribution(struct bytes text)
{
    bool dated = digit_count(text) >= 4 || memchr(text.at, '@', text.len) != NULL; /* people also write "On Monday I wrote:" */
    if (text.len > ATTRIBUTION_SIZE_MAX || !dated || !ends(text, ":"))
        return false;
    for (size_t i = 0; i < sizeof attributions / sizeof *attributions; i++)
        if (starts(text, attributions[i].start) && contains(text, attributions[i].verb))
            return true;
    return false;
}

static bool begins_attribution(struct bytes line)
{
    for (size_t i = 0; i < sizeof attributions / sizeof *attributions; i++)
        if (starts(line, attributions[i].start))
            return true;
    return false;
}

/* How many lines from here on are one attribution, which programs wrap; 0 for none. */
static size_t attribution_lines(const struct lines *lines, size_t from)
{
    char text[ATTRIBUTION_SIZE_MAX + 2];
    size_t len = 0;
    if (!begins_attribution(trimmed(lines->at[from])))
        return 0;
    for (size_t i = from; i < lines->count && i < from + ATTRIBUTION_LINES_MAX; i++) {
        struct bytes line = trimmed(lines->at[i]);
        if (line.len == 0 || len + line.len + 1 > ATTRIBUTION_SIZE_MAX)
            return 0;
        memcpy(text + len, line.at, line.len);
        len += line.len;
        if (is_attribution((struct bytes){text, len}))
            return i - from + 1;
        text[len++] = ' ';
    }
    return 0;
}

/* "-----Original Message-----" */
static bool is_original(struct bytes line)
{
    static const char *const words[] = {"original message",
                                        "ursprüngliche nachricht",
                                        "message d'origine",
                                        "message d’origine",
                                        "message original",
                                        "mensaje original",
                                        "messaggio originale",
                                        "mensagem original",
                                        "oorspronkelijk bericht",
                                        "original-nachricht",
                                        NULL};
    line = trimmed(line);
    if (!starts(line, "--") || line.len > TAIL_LINE_SIZE_MAX)
        return false;
    for (size_t i = 0; words[i] != NULL; i++)
        if (contains(line, words[i]))
            return true;
    return false;
}

static bool is_forward_mark(struct bytes line)
{
    static const char *const words[] = {"forwarded message",          "message transféré",    "weitergeleitete nachricht",
                                        "weitergeleiteten nachricht", "mensaje reenviado",    "messaggio inoltrato",
                                        "mensagem encaminhada",       "doorgestuurd bericht", NULL};
    line = trimmed(line);
    bool framed = starts(line, "---") || starts(line, "Begin ") || starts(line, "Début ") || starts(line, "Anfang ") ||
                  starts(line, "Inicio ");
    if (!framed || line.len > TAIL_LINE_SIZE_MAX)
        return false;
    for (size_t i = 0; words[i] != NULL; i++)
        if (contains(line, words[i]))
            return true;
    return false;
}

/* "*From:* Jane", "De : Jane": one of the words, then a colon. */
static bool is_field(struct bytes line, const char *const *words)
{
    line = trimmed(line);
    while (line.len > 0 && line.at[0] == '*')
        line = bytes_from(line, 1);
    for (; *words != NULL; words++) {
        if (!starts(line, *words))
            continue;
        struct bytes rest = trimmed(bytes_from(line, strlen(*words)));
        if (rest.len > 0 && (rest.at[0] == ':' || (rest.at[0] == '*' && rest.len > 1 && rest.at[1] == ':')))
            return true;
    }
    return false;
}

/* The block that Outlook writes above what it quotes: who, when, and to whom or about what. */
static bool is_block(const struct lines *lines, size_t from)
{
    static const char *const froms[] = {"From", "De", "Von", "Da", "Van", "Från", "Fra", NULL};
    static const char *const sents[] = {"Sent",  "Date",    "Envoyé", "Gesendet",   "Datum",     "Enviado", "Enviado el",
                                        "Fecha", "Inviato", "Data",   "Enviada em", "Verzonden", "Skickat", NULL};
    static const char *const others[] = {"To",     "Subject", "À",   "A",         "Objet",   "An",   "Betreff", "Para",
                                         "Asunto", "Oggetto", "Aan", "Onderwerp", "Assunto", "Till", "Ämne",    NULL};
    bool sent = false, other = false;
    if (!is_field(lines->at[from], froms))
        return false;
    for (size_t i = from + 1; i < lines->count && i < from + BLOCK_LINES_MAX; i++) {
        sent = sent || is_field(lines->at[i], sents);
        other = other || is_field(lines->at[i], others);
    }
    return sent && other;
}

/* Where the program quotes the whole earlier mail without marking its lines. */
static bool is_cut(const struct lines *lines, size_t at)
{
    return is_original(lines->at[at]) || is_block(lines, at);
}

/* Lines without what is quoted. An attribution with marked lines behind it goes alone: there may be an answer below. */
static struct lines without_quotes(const struct lines *lines, bool forwarded, struct arena *arena)
{
    struct lines own = {arena_zalloc(arena, lines->count, sizeof *own.at), 0};
    if (own.at == NULL)
        return *lines;
    for (size_t i = 0; i < lines->count; i++) {
        if (is_forward_mark(lines->at[i]) || (forwarded && is_cut(lines, i))) {
            for (; i < lines->count; i++)
                own.at[own.count++] = lines->at[i];
            break;
        }
        if (is_cut(lines, i))
            break;
        size_t skipped = attribution_lines(lines, i), next = next_written(lines, i + skipped);
        if (skipped > 0 && (next == lines->count || !is_quoted(lines->at[next])))
            break;
        if (skipped > 0)
            i += skipped - 1;
        else if (!is_quoted(lines->at[i]))
            own.at[own.count++] = lines->at[i];
    }
    return own;
}

/* ---- signatures and disclaimers ---- */

static bool is_separator(struct bytes line)
{
    return bytes_is(line, "-- ") || bytes_is(line, "--") || bytes_is(line, "-- \r");
}

/* What telephones add. */
static bool is_mobile_line(struct bytes line)
{
    static const char *const starts_with[] = {"Sent from my ",
                                              "Sent from Mail",
                                              "Sent from Outlook",
                                              "Sent from Yahoo",
                                              "Sent with Proton",
                                              "Get Outlook for",
                                              "Envoyé de mon ",
                                              "Envoyé depuis",
                                              "Envoyé à partir",
                                              "Obtenez Outlook",
                                              "Télécharger Outlook",
                                              "Gesendet von",
                                              "Gesendet mit",
                                              "Holen Sie sich Outlook",
                                              "Von meinem ",
                                              "Outlook für",
                                              "Enviado desde",
                                              "Obtener Outlook",
                                              "Inviato da",
                                              "Enviado do meu",
                                              "Verstuurd vanaf",
                                              "Skickat från",
                                              NULL};
    line = trimmed(line);
    if (line.len > TAIL_LINE_SIZE_MAX || ends(line, "?"))
        return false;
    for (size_t i = 0; starts_with[i] != NULL; i++)
        if (starts(line, starts_with[i]))
            return true;
    return false;
}

static bool is_disclaimer(struct bytes line)
{
    static const char *const starts_with[] = {"This e-mail",
                                              "This email",
                                              "This message",
                                              "The information contained in this",
                                              "The contents of this",
                                              "Confidentiality notice",
                                              "Confidentiality:",
                                              "CONFIDENTIAL",
                                              "Disclaimer",
                                              "Ce message",
                                              "Ce courriel",
                                              "Cet e-mail",
                                              "Les informations contenues",
                                              "Avis de confidentialité",
                                              "Diese E-Mail",
                                              "Diese Nachricht",
                                              "Der Inhalt dieser",
                                              "Vertraulichkeitshinweis",
                                              "Este mensaje",
                                              "Este correo",
                                              "La información contenida",
                                              "Aviso de confidencialidad",
                                              "Aviso legal",
                                              NULL};
    line = trimmed(line);
    while (line.len > 0 && (line.at[0] == '*' || line.at[0] == '_'))
        line = bytes_from(line, 1);
    for (size_t i = 0; starts_with[i] != NULL; i++)
        if (starts(line, starts_with[i]))
            return true;
    return false;
}

static bool speaks_of_secrecy(struct bytes line)
{
    static const char *const words[] = {"confiden",   "vertraulich",  "intended only", "intended recipient", "intended solely",
                                        "privileged", "destinataire", "destinatario",  "empfänger",          NULL};
    for (size_t i = 0; words[i] != NULL; i++)
        if (contains(line, words[i]))
            return true;
    return false;
}

/* A sentence that begins as disclaimers do must also speak of secrecy, there or below, or it is what the person wrote. */
static size_t first_of_tail(const struct lines *lines)
{
    size_t last = lines->count; /* the last line that speaks of it, counted from one */
    while (last > 0 && !speaks_of_secrecy(lines->at[last - 1]))
        last--;
    for (size_t i = 0; i < lines->count; i++)
        if (is_separator(lines->at[i]) || (i < last && is_disclaimer(lines->at[i])))
            return i;
    return lines->count;
}

/* Cuts from the end: what telephones add, and rules that nothing follows. */
static void cut_end(struct lines *lines)
{
    while (lines->count > 0) {
        struct bytes line = trimmed(lines->at[lines->count - 1]);
        if (line.len > 0 && !is_mobile_line(line) && !is_rule(line, "_-=*", 2))
            return;
        lines->count--;
    }
}

/* A forwarded mail has its own signatures, which are part of what is told. */
static struct lines without_tail(struct lines lines)
{
    for (size_t i = 0; i < lines.count; i++)
        if (is_forward_mark(lines.at[i]))
            return lines;
    size_t tail = first_of_tail(&lines);
    lines.count = tail;
    cut_end(&lines);
    return lines;
}

/* ---- the whole ---- */

void mail_strip_text(struct bytes text, bool forwarded, struct arena *arena, struct bytes *ret_own, struct bytes *ret_text)
{
    struct lines lines;
    *ret_own = *ret_text = trimmed(text);
    if (!split(text, arena, &lines))
        return;
    struct lines own = without_quotes(&lines, forwarded, arena);
    struct bytes own_text = join(&own, arena);
    if (mail_is_blank(own_text))
        own = lines;
    else
        *ret_own = *ret_text = own_text;
    struct lines short_lines = forwarded ? own : without_tail(own);
    struct bytes short_text = join(&short_lines, arena);
    if (!mail_is_blank(short_text))
        *ret_text = short_text;
}
