/* transport_own: what the files of the real transport share. */
#ifndef SEMEL_ACT_TRANSPORT_OWN_H
#define SEMEL_ACT_TRANSPORT_OWN_H

#include <curl/curl.h>
#include <sys/types.h>

#include "act/transport.h"
#include "env/env.h"
#include "guard/guard.h"
#include "secret/secret.h"

#define FLIGHT_HEADERS_MAX 128

struct real_transport;

/* One call under way. */
struct flight {
    struct real_transport *transport;
    struct transport_call *call;
    struct flight *next, **before;
    bool head_done; /* the whole head of the final answer is there */
    bool too_large, too_late;
    int status;
    struct pair *headers;
    size_t header_count;

    /* HTTP and SMTP */
    CURL *easy;
    struct curl_slist *header_list, *recipients;
    struct guard guard;
    struct guard_rules rules;
    char error[CURL_ERROR_SIZE];
    struct bytes upload; /* SMTP: the message */
    size_t upload_at;
    bool upload_done; /* all of it was handed over: the end of the message may have left */

    /* commands */
    pid_t pid;
    int pidfd, output;
    int64_t deadline_us;
};

struct real_transport {
    struct transport transport;
    struct env *env;
    struct secrets *secrets;
    CURLM *multi;
    struct flight *flights; /* all of them */
    size_t command_count;
    CURL *idle[64]; /* easy handles to be used again */
    size_t idle_count;
};

/* Ends the flight: the call is given back and the flight is gone. */
void flight_end(struct flight *flight, enum transport_end end);

/* transport_mail.c: the message as it is sent, and who gets it. INVALID when there is no recipient. */
CHECKED enum status mail_compose(const struct effect_request *request, struct arena *arena, struct bytes *ret_message,
                                 struct why *why);
CHECKED enum status mail_recipients(const struct effect_request *request, struct arena *arena, struct curl_slist **ret_list,
                                    struct why *why);

/* transport_command.c */
void command_start(struct flight *flight);
size_t command_fds(const struct real_transport *transport, struct curl_waitfd *ret_fds, size_t most, int64_t *ret_deadline_us);
void command_check(struct real_transport *transport);
void command_kill(struct flight *flight);

#endif
