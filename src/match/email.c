#include "match/match_own.h"

enum { LOCAL_MAX = 64 };

const char *const match_email_class_names[] = {"invalid", "personal", "role", "no_reply", "placeholder", NULL};

/* ---- the address inside what people write ---- */

/* The last '@' outside of quotes. */
static const char *at_sign(struct bytes text)
{
    return text.len > 0 ? memrchr(text.at, '@', text.len) : NULL;
}

static struct bytes address_of(struct bytes text)
{
    const char *open = text.len > 0 ? memrchr(text.at, '<', text.len) : NULL;
    const char *close = open != NULL ? memchr(open, '>', text.len - (size_t)(open - text.at)) : NULL;
    if (close != NULL)
        text = (struct bytes){open + 1, (size_t)(close - open) - 1};
    text = fold_trim(text);
    if (text.len > 7 && bytes_eq_nocase((struct bytes){text.at, 7}, BYTES("mailto:"))) {
        struct bytes rest = bytes_from(text, 7);
        text = bytes_cut(&rest, '?');
    }
    if (text.len > 0 && text.at[text.len - 1] == '.')
        text.len--;
    return text;
}

static bool is_quoted(struct bytes local)
{
    if (local.len < 3 || local.at[0] != '"' || local.at[local.len - 1] != '"')
        return false;
    for (size_t i = 1; i + 1 < local.len; i++) {
        unsigned char c = (unsigned char)local.at[i];
        if (c < 0x20 || c == 0x7F || c == '"' || c == '\\')
            return false;
    }
    return true;
}

/* RFC 5322 atoms and dots, and letters beyond ASCII. */
static bool is_atoms(struct bytes local)
{
    for (size_t i = 0; i < local.len; i++) {
        unsigned char c = (unsigned char)local.at[i];
        if (c <= 0x20 || c == 0x7F || strchr("<>()[],;:\\\"@", c) != NULL)
            return false;
    }
    return local.len > 0;
}

static bool has_good_dots(struct bytes local, struct bytes domain)
{
    if (rules_find(LIST_DOTS_ANYWHERE, domain) != NULL)
        return true;
    return local.at[0] != '.' && local.at[local.len - 1] != '.' && memmem(local.at, local.len, "..", 2) == NULL;
}

/* Letters beyond ASCII are allowed, characters nobody sees are not. */
static bool has_hidden(struct bytes text)
{
    uint32_t code = 0;
    while (text.len > 0) {
        size_t size = bytes_utf8_char(text, &code);
        if (size == 0 || (code >= 0x80 && code <= 0xA0) || (code >= 0x2000 && code <= 0x206F) || code == 0xFEFF || code == 0xFFFD)
            return true;
        text = bytes_from(text, size);
    }
    return false;
}

/* ---- keys ---- */

static struct bytes before(struct bytes local, char c, bool *ret_cut)
{
    const char *at = memchr(local.at, c, local.len);
    if (at == NULL || at == local.at)
        return local;
    *ret_cut = true;
    return (struct bytes){local.at, (size_t)(at - local.at)};
}

static struct bytes joined(struct bytes local, struct bytes domain, struct arena *arena)
{
    return arena_printf(arena, "%.*s@%.*s", BYTES_ARG(local), BYTES_ARG(domain));
}

static const struct rules_provider *provider_of(struct bytes domain)
{
    const struct rules_word *row = rules_find(LIST_PROVIDERS, domain);
    return row != NULL ? rules_provider(row->value) : NULL;
}

/* By the provider's rules; `*ret_uncertain` when one of them does not always hold. BYTES_NONE when nothing is left. */
static struct bytes key_of(struct bytes local, struct bytes domain, struct arena *arena, bool *ret_uncertain)
{
    const struct rules_provider *provider = provider_of(domain);
    bool cut = false, uncertain = false;
    if (provider != NULL && provider->plus) {
        if (local.at[0] == '+')
            return BYTES_NONE;
        local = before(local, '+', &cut);
    }
    if (provider != NULL && provider->hyphen)
        local = before(local, '-', &uncertain);
    if (provider != NULL && provider->dots)
        local = fold_without(local, '.', arena);
    if (provider != NULL && provider->domain.at != NULL)
        domain = provider->domain;
    *ret_uncertain = uncertain;
    return local.len > 0 ? joined(local, domain, arena) : BYTES_NONE;
}

/* The often used domain that is one slip away; BYTES_NONE when this one is known or none is near. */
static struct bytes mended_domain(struct bytes domain)
{
    const struct rules_word *row;
    if (domain_is_free_mail(domain) || rules_find(LIST_DISPOSABLE, domain) != NULL)
        return BYTES_NONE;
    for (size_t i = 0; (row = rules_at(LIST_OFTEN_MISTYPED, i)) != NULL; i++)
        if (domain.len + 1 >= row->word.len && domain.len <= row->word.len + 1 && similar_edits(domain, row->word) == 1)
            return row->word;
    return BYTES_NONE;
}

static struct bytes weak_of(struct bytes local, struct bytes domain, struct arena *arena)
{
    const struct rules_provider *provider = provider_of(domain);
    bool cut = false;
    local = before(local, '+', &cut);
    if (provider != NULL && (provider->weak_dots || provider->dots))
        local = fold_without(local, '.', arena);
    if (provider != NULL && provider->hyphen)
        local = before(local, '-', &cut);
    if (provider != NULL && provider->weak_domain.at != NULL)
        domain = provider->weak_domain;
    else if (provider != NULL && provider->domain.at != NULL)
        domain = provider->domain;
    return local.len > 0 ? joined(local, domain, arena) : BYTES_NONE;
}

/* ---- what kind of mailbox ---- */

static bool is_no_reply(struct bytes local)
{
    bool cut = false;
    if (rules_find(LIST_NO_REPLY, before(local, '+', &cut)) != NULL)
        return true;
    return bytes_starts(local, BYTES("noreply")) || bytes_starts(local, BYTES("no-reply")) ||
           bytes_starts(local, BYTES("donotreply"));
}

static bool is_placeholder(struct bytes local, struct bytes domain)
{
    struct bytes rest = domain, first = bytes_cut(&rest, '.');
    const char *dot = memrchr(domain.at, '.', domain.len);
    struct bytes top = bytes_from(domain, (size_t)(dot - domain.at) + 1);
    if (rules_find(LIST_PLACEHOLDER_DOMAINS, domain) != NULL || rules_find(LIST_PLACEHOLDER_SUFFIXES, top) != NULL)
        return true;
    bool word = rules_find(LIST_PLACEHOLDER_MAILBOXES, local) != NULL;
    if (word && domain_is_free_mail(domain))
        return true;
    return (word || rules_find(LIST_PLACEHOLDER_WORDS, local) != NULL) && bytes_eq(local, first);
}

static enum match_email_class class_of(struct bytes local, struct bytes domain)
{
    bool cut = false;
    if (is_no_reply(local))
        return MATCH_EMAIL_NO_REPLY;
    if (is_placeholder(local, domain))
        return MATCH_EMAIL_PLACEHOLDER;
    return rules_find(LIST_ROLE_MAILBOXES, before(local, '+', &cut)) != NULL ? MATCH_EMAIL_ROLE : MATCH_EMAIL_PERSONAL;
}

/* ---- together ---- */

/* "jane@acme,com": the comma was meant to be a dot. */
static struct bytes suggest_for(struct bytes text, struct arena *arena)
{
    const char *at = at_sign(text), *comma = at != NULL ? memchr(at, ',', text.len - (size_t)(at - text.at)) : NULL;
    if (comma == NULL || memchr(text.at, ' ', text.len) != NULL)
        return BYTES_NONE;
    return fold_replace(text, ',', '.', arena);
}

static void fill_keys(struct bytes local, bool quoted, struct arena *arena, struct match_email *email)
{
    struct bytes bare = quoted ? (struct bytes){local.at + 1, local.len - 2} : local;
    if (quoted && is_atoms(bare) && has_good_dots(bare, email->domain)) {
        local = bare;
        quoted = false;
    }
    email->key = quoted ? email->exact : key_of(local, email->domain, arena, &email->uncertain);
    struct bytes mended = mended_domain(email->domain);
    struct bytes domain = mended.at != NULL ? mended : email->domain;
    email->weak = quoted ? email->exact : weak_of(local, domain, arena);
    if (mended.at != NULL && !quoted)
        email->suggest = joined(local, mended, arena);
    email->class = class_of(local, email->domain);
    if (email->class == MATCH_EMAIL_NO_REPLY)
        email->send_to = BYTES_NONE;
    if (email->class == MATCH_EMAIL_NO_REPLY || email->class == MATCH_EMAIL_PLACEHOLDER)
        email->key = email->weak = BYTES_NONE;
}

static bool is_gmail_tag_only(const struct match_email *email)
{
    return email->class != MATCH_EMAIL_NO_REPLY && email->class != MATCH_EMAIL_PLACEHOLDER && email->key.at == NULL;
}

enum status match_email_make(struct bytes text, struct arena *arena, struct match_email *ret, struct why *why)
{
    struct match_email email = {.raw = arena_dup(arena, text.len <= MATCH_VALUE_MAX ? text : BYTES_NONE)};
    struct bytes address = text.len <= 2 * MATCH_VALUE_MAX ? address_of(text) : BYTES("");
    const struct match_email invalid = {.raw = email.raw, .suggest = suggest_for(address, arena)};
    const char *at = at_sign(address);
    struct bytes local = {address.at, at != NULL ? (size_t)(at - address.at) : 0};
    bool quoted = is_quoted(local), good = local.len <= LOCAL_MAX && (quoted || is_atoms(local)) && !has_hidden(local);
    email.domain = good ? domain_ascii(bytes_from(address, local.len + 1), arena) : BYTES_NONE;
    good = email.domain.at != NULL && (quoted || has_good_dots(local, email.domain));
    struct bytes lower = good ? fold_nfc(local, true, arena) : BYTES_NONE,
                 kept = good ? fold_nfc(local, false, arena) : BYTES_NONE;
    if (lower.at != NULL && kept.at != NULL && lower.len + email.domain.len < MATCH_VALUE_MAX) {
        email.send_to = joined(kept, email.domain, arena);
        email.exact = joined(lower, email.domain, arena);
        fill_keys(lower, quoted, arena, &email);
        struct bytes registrable = domain_registrable(email.domain);
        email.free_mail = domain_is_free_mail(email.domain) || (registrable.at != NULL && domain_is_free_mail(registrable));
        email.disposable = rules_find(LIST_DISPOSABLE, email.domain) != NULL || rules_find(LIST_DISPOSABLE, registrable) != NULL;
        bool company =
            !email.free_mail && !email.disposable && email.class != MATCH_EMAIL_PLACEHOLDER && email.suggest.at == NULL;
        email.company = company ? registrable : BYTES_NONE;
    } else {
        good = false;
    }
    if (arena->failed)
        return why_set(why, FULL, "there is no memory left for an e-mail address");
    *ret = good && !is_gmail_tag_only(&email) ? email : invalid;
    return OK;
}
