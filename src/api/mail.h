/*
 * mail: mails that come by SMTP or LMTP take the same door as /in/{source}: intake, one COMMIT, then the acknowledgement. Whoever may
 * reach the listener may send, or log in there; there is no signature to verify.
 */
#ifndef SEMEL_API_MAIL_H
#define SEMEL_API_MAIL_H

#include "api/api.h"
#include "smtp/server.h"

/* The source that mail to `address` is for. An address itself comes before "*@host" and "name@*", these before a source that reads mail
 * and has the address's name. */
bool mail_find(struct bytes address, char *ret_source, void *api);

/* Whether somebody who may send has this token: one with the scope claim. */
bool mail_login(struct bytes password, void *api);

/* Keeps the mail, and answers with smtp_delivered(). */
void mail_deliver(struct smtp_delivery *delivery, void *api);

#endif
