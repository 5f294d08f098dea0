/*
 * mail_own: what the files that read a mail share. Everything is in the arena that is passed; a text that is absent stays absent.
 */
#ifndef SEMEL_MAIL_MAIL_OWN_H
#define SEMEL_MAIL_MAIL_OWN_H

#include <gmime/gmime.h>

#include "mail/mail.h"

/* mail_body.c */

/* The text that a person reads, with '\n' between lines. Empty when there is none. FULL when the arena is. */
CHECKED enum status mail_body(GMimeMessage *message, struct arena *arena, struct bytes *ret_text, struct why *why);

/* As UTF-8 with '\n' between lines and without other control characters; `charset` may be NULL or wrong. */
struct bytes mail_decode(struct bytes text, const char *charset, struct arena *arena);

/* At most `size_max` bytes of it, cut between two characters when it is UTF-8. */
struct bytes mail_clip(struct bytes text, size_t size_max);

/* mail_html.c */

/* What a reader sees of `html`, which is UTF-8. Not `quotes`: without what it marks as quoted or as a signature. */
struct bytes mail_html_text(struct bytes html, bool quotes, struct arena *arena);

/* mail_strip.c */

/* Without "Re:", "Fwd:" and their like. `ret_forwarded`: the outermost of them says that it was forwarded. */
struct bytes mail_strip_subject(struct bytes subject, bool *ret_forwarded);

/* `ret_own`: without what was quoted. `ret_text`: also without signature and disclaimer. Neither is blank unless `text` is. */
void mail_strip_text(struct bytes text, bool forwarded, struct arena *arena, struct bytes *ret_own, struct bytes *ret_text);

/* Nothing but white space. */
bool mail_is_blank(struct bytes text);

#endif
