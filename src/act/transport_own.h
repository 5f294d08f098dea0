/* transport_own: what the files of the real transport share. */
#ifndef SEMEL_ACT_TRANSPORT_OWN_H
#define SEMEL_ACT_TRANSPORT_OWN_H

#include <curl/curl.h>
#include <pthread.h>
#include <stdatomic.h>
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

    /* SMTP: the thread has all of the flight but the list, until it is among the ended ones */
    bool has_thread;
    pthread_t thread;
    _Atomic bool cancelled;
    struct bytes upload; /* the message */
    size_t upload_at;
    bool upload_done; /* all of it was handed over: the end of the message may have left */
    enum transport_end end;
    struct flight *next_ended;

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

    pthread_mutex_t lock;         /* for what is below */
    struct flight *ended_flights; /* mails whose threads are done with them */
};

/* Ends the flight: the call is given back and the flight is gone. */
void flight_end(struct flight *flight, enum transport_end end);

/* What every call of libcurl needs. The URL may hold a secret, so it is not kept. */
CHECKED enum status flight_set_common(struct flight *flight, struct bytes url, struct why *why);

/* What became of a call of libcurl. */
enum transport_end flight_judge(struct flight *flight, CURLcode code);

/* transport_mail.c */
CHECKED enum status mail_set(struct flight *flight, struct bytes secret, struct why *why);
CHECKED enum status mail_start(struct flight *flight, struct why *why);
void mail_take_ended(struct real_transport *transport);
void mail_cancel(struct real_transport *transport); /* returns when all of them have ended */

/* transport_command.c */
void command_start(struct flight *flight);
size_t command_fds(const struct real_transport *transport, struct curl_waitfd *ret_fds, size_t most, int64_t *ret_deadline_us);
void command_check(struct real_transport *transport);
void command_kill(struct flight *flight);

#endif
