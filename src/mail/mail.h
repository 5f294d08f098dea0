/*
 * mail: an e-mail becomes one incoming message. Pure: bytes in, an understood message out; nothing is kept, nothing is asked.
 *
 * What a person wrote is told apart from what their program added: quoted text, signature and disclaimers are left out of `text`,
 * "Re:" and "Fwd:" out of `subject`, so that the same message is the same whichever way it came. What was forwarded stays: there
 * it is the message.
 *
 * The key is "mail:" and the Message-ID, its domain in lower case. Without one it is "mail:sha256:" and a hash of sender, date,
 * subject and text, which every copy of the mail shares.
 *
 * Who wrote it: Reply-To when it names someone else than From (a form's notification comes from the form's address, and the
 * person is behind Reply-To), else From, else Sender. All other addresses are only mentioned.
 *
 * `automatic` needs a header that says so: Auto-Submitted, a list, a bulk Precedence, an empty return path, a report, Exchange's
 * wish not to be answered. A subject such as "Out of office" alone says nothing.
 *
 * Promises: no input takes more than its size in memory by a constant factor, nor more than linear time; parts, headers and depth
 * are limited before the MIME library sees them; what is broken is read as far as it goes; all texts are UTF-8 without U+0000.
 */
#ifndef SEMEL_MAIL_MAIL_H
#define SEMEL_MAIL_MAIL_H

#include "base/arena.h"
#include "base/status.h"
#include "identity/incoming.h"

enum {
    MAIL_SIZE_MAX = 32 * 1024 * 1024,
    MAIL_HEAD_SIZE_MAX = 256 * 1024,   /* of the mail itself */
    MAIL_HEADER_LINES_MAX = 50 * 1000, /* lines that look like "Name:", anywhere: each may cost a header */
    MAIL_BOUNDARY_LINES_MAX = 20000,   /* lines that begin with "--": each may be compared with every open boundary */
    MAIL_PARTS_MAX = 200,              /* lines that begin with Content-Type: parts, and so their depth */
    MAIL_DEPTH_MAX = 16,               /* how deep text is looked for */
    MAIL_TEXT_SIZE_MAX = 256 * 1024,   /* of one text as it was decoded; the rest is not looked at */
    MAIL_ADDRESSES_MAX = INCOMING_IDENTITIES_MAX / 2, /* of one header; the rest is for those in the text */
    MAIL_ID_SIZE_MAX = 900,
};

/* `region` is that of the source. INVALID when it is no mail (no header), or over a limit. The texts are in the arena; `piece` is `raw`. */
CHECKED enum status mail_read(struct bytes raw, struct bytes region, struct arena *arena, struct incoming *ret, struct why *why);

#endif
