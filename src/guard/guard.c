#include "guard/guard.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECT_TIMEOUT_US INT64_C(10000000)
#define USER_TIMEOUT_US INT64_C(30000000)

/* ---- ports ---- */

/* What browsers do not speak HTTP to (fetch.spec.whatwg.org, "bad port"), and databases: their protocols can be fooled by the lines of a request. */
static const uint16_t not_http[] = {1,    7,    9,    11,   13,   15,   17,   19,   20,   21,    22,    23,   25,   37,   42,
                                    43,   53,   69,   77,   79,   87,   95,   101,  102,  103,   104,   109,  110,  111,  113,
                                    115,  117,  119,  123,  135,  137,  139,  143,  161,  179,   389,   427,  465,  512,  513,
                                    514,  515,  526,  530,  531,  532,  540,  548,  554,  556,   563,   587,  601,  636,  989,
                                    990,  993,  995,  1719, 1720, 1723, 2049, 3306, 3659, 4045,  4190,  5060, 5061, 5432, 6000,
                                    6379, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080, 11211, 27017};

static const uint16_t mail[] = {25, 465, 587, 2525};

static bool is_listed(const uint16_t *ports, size_t count, uint16_t port)
{
    for (size_t i = 0; i < count; i++)
        if (ports[i] == port)
            return true;
    return false;
}

static bool is_mail(enum guard_scheme scheme)
{
    return scheme == GUARD_SMTP || scheme == GUARD_SMTPS;
}

static enum status check_port(const struct guard_rules *rules, enum guard_scheme scheme, uint16_t port, struct why *why)
{
    bool good = false;
    for (size_t i = 0; rules->ports != NULL && i < rules->port_count; i++)
        good = good || (port >= rules->ports[i].first && port <= rules->ports[i].last);
    if (rules->ports == NULL && is_mail(scheme))
        good = is_listed(mail, sizeof mail / sizeof *mail, port);
    else if (rules->ports == NULL)
        good = !is_listed(not_http, sizeof not_http / sizeof *not_http, port);
    if (good)
        return OK;
    return why_set(why, INVALID, "port %u is not one that %s may be spoken to", port, is_mail(scheme) ? "mail" : "HTTP");
}

/* ---- the operator's list ---- */

enum status guard_host_parse(struct bytes text, struct guard_host *ret_host, struct why *why)
{
    char url[GUARD_HOST_MAX + 32];
    struct guard_url parsed;
    int len = snprintf(url, sizeof url, "http://%.*s", BYTES_ARG(text));
    bool has_port = text.len > 0 && memrchr(text.at, ':', text.len) != NULL && text.at[text.len - 1] != ']';
    if (len < 0 || (size_t)len >= sizeof url || !has_port)
        return why_set(why, INVALID, "a host that may be called is written as HOST:PORT, such as mail.internal:25");
    TRY(guard_url_parse((struct bytes){url, (size_t)len}, &parsed, why));
    if (parsed.target.len > 0)
        return why_set(why, INVALID, "a host that may be called is written as HOST:PORT, without a path");
    struct bytes host = {text.at + (parsed.host.at - url - 7), parsed.host.len};
    *ret_host = (struct guard_host){host, parsed.literal, parsed.address, parsed.port};
    return OK;
}

static bool is_allowed_name(const struct guard_rules *rules, struct bytes host, uint16_t port)
{
    for (size_t i = 0; i < rules->allowed_count; i++)
        if (!rules->allowed[i].literal && rules->allowed[i].port == port && bytes_eq_nocase(rules->allowed[i].host, host))
            return true;
    return false;
}

static bool is_allowed_address(const struct guard_rules *rules, const struct guard_address *address, uint16_t port)
{
    for (size_t i = 0; i < rules->allowed_count; i++)
        if (rules->allowed[i].literal && rules->allowed[i].port == port && guard_address_eq(&rules->allowed[i].address, address))
            return true;
    return false;
}

/* ---- deciding ---- */

/* Names that the public DNS does not have (RFC 6761, 6762, 8375, ICANN's .internal). */
static bool is_local_name(struct bytes host)
{
    static const char *const ends[] = {"localhost", "local",   "internal", "intranet", "lan",     "home.arpa", "corp",
                                       "home",      "private", "test",     "onion",    "invalid", "example",   "localdomain"};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        struct bytes end = bytes_of(ends[i]), tail = host;
        if (host.len < end.len)
            continue;
        tail = bytes_from(host, host.len - end.len);
        if (bytes_eq_nocase(tail, end) && (host.len == end.len || host.at[host.len - end.len - 1] == '.'))
            return true;
    }
    return false;
}

/* `named`: it was reached by a name that the operator allows. */
static enum status check_address(const struct guard_rules *rules, bool named, const struct guard_address *address,
                                 struct bytes host, struct why *why)
{
    const char *what;
    char text[GUARD_ADDRESS_TEXT_MAX];
    enum guard_class class = guard_address_class(address, &what);
    if (class == GUARD_PUBLIC || (class == GUARD_PRIVATE && (rules->allow_private || named)))
        return OK;
    guard_address_format(address, text);
    const char *remedy =
        class == GUARD_PRIVATE ? "set allow_private for this destination if that is meant" : "it is never called";
    if (bytes_is(host, text))
        return why_set(why, INVALID, "%s is %s; %s", text, what, remedy);
    return why_set(why, INVALID, "%.*s resolves to %s, %s; %s", (int)(host.len < 100 ? host.len : 100), host.at, text, what,
                   remedy);
}

enum status guard_check(const struct guard_rules *rules, const struct guard_url *url, struct why *why)
{
    bool named = !url->literal && is_allowed_name(rules, url->host, url->port);
    if (named || (url->literal && is_allowed_address(rules, &url->address, url->port)))
        return OK;
    TRY(check_port(rules, url->scheme, url->port, why));
    if (url->literal)
        return check_address(rules, false, &url->address, url->host, why);
    if (!rules->allow_private && is_local_name(url->host))
        return why_set(why, INVALID,
                       "%.*s is a name for this computer or its network; set allow_private for this destination if that is meant",
                       (int)(url->host.len < 100 ? url->host.len : 100), url->host.at);
    return OK;
}

static long redirects_of(const struct guard *guard)
{
    long redirects = 0;
    curl_easy_getinfo(guard->curl, CURLINFO_REDIRECT_COUNT, &redirects);
    return redirects;
}

/* Is this connection good for the transfer as it stands now? Names that the operator allows count only before the first redirect:
 * behind it the host is the other side's choice. */
static enum status judge(struct guard *guard, const struct guard_address *address, uint16_t port)
{
    const struct guard_rules *rules = guard->rules;
    long redirects = redirects_of(guard);
    bool named = redirects == 0 && port == guard->url.port && is_allowed_name(rules, guard->url.host, port);
    if (is_allowed_address(rules, address, port))
        return OK;
    if (!named)
        TRY(check_port(rules, guard->url.scheme, port, &guard->why));
    return check_address(rules, named, address, redirects == 0 ? guard->url.host : BYTES("a redirect"), &guard->why);
}

/* ---- libcurl ---- */

static void refuse(struct guard *guard, const char *sentence)
{
    guard->refused = true;
    if (sentence != NULL)
        why_set(&guard->why, INVALID, "%s", sentence);
}

static curl_socket_t on_socket(void *user, curlsocktype purpose, struct curl_sockaddr *to)
{
    struct guard *guard = user;
    struct guard_address address;
    uint16_t port;
    if (purpose != CURLSOCKTYPE_IPCXN || to->socktype != SOCK_STREAM ||
        !guard_address_from(&to->addr, to->addrlen, &address, &port)) {
        refuse(guard, "only TCP over IPv4 and IPv6 is used");
        return CURL_SOCKET_BAD;
    }
    if (judge(guard, &address, port) != OK) {
        refuse(guard, NULL);
        return CURL_SOCKET_BAD;
    }
    return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

/* A dead peer is noticed although the kernel would go on sending for a quarter of an hour. */
static int on_socket_options(void *user, curl_socket_t fd, curlsocktype purpose)
{
    (void)purpose;
    const struct guard *guard = user;
    int64_t timeout_us = guard->rules->user_timeout_us > 0 ? guard->rules->user_timeout_us : USER_TIMEOUT_US;
    unsigned timeout_ms = (unsigned)(timeout_us / 1000);
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, sizeof timeout_ms);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    return CURL_SOCKOPT_OK;
}

/* Just before each request, also on a connection that was kept from an earlier transfer, and behind each redirect. */
static int on_request(void *user, char *peer, char *local, int peer_port, int local_port)
{
    (void)local;
    (void)local_port;
    struct guard *guard = user;
    struct guard_address address;
    long redirects = redirects_of(guard);
    if (guard->sent && redirects == guard->redirects) {
        refuse(guard, "the connection broke after the request was sent; it is not sent again");
        return CURL_PREREQFUNC_ABORT;
    }
    if (!guard_address_parse(bytes_of(peer), &address)) {
        refuse(guard, "only TCP over IPv4 and IPv6 is used");
        return CURL_PREREQFUNC_ABORT;
    }
    if (judge(guard, &address, (uint16_t)peer_port) != OK) {
        refuse(guard, NULL);
        return CURL_PREREQFUNC_ABORT;
    }
    if (guard->may_begin != NULL && !guard->may_begin(guard->user)) {
        refuse(guard, "it may not begin any more");
        return CURL_PREREQFUNC_ABORT;
    }
    guard->refused = false; /* one of several addresses may have been refused; this one is good */
    guard->sent = true;
    guard->redirects = redirects;
    return CURL_PREREQFUNC_OK;
}

static size_t on_header(char *at, size_t size, size_t count, void *user)
{
    struct guard *guard = user;
    struct bytes line = {at, size * count};
    guard->header_bytes += line.len;
    if (guard->header_bytes > GUARD_HEADERS_MAX) {
        refuse(guard, "the headers of the answer are larger than 64 KiB");
        return 0;
    }
    if (guard->on_header != NULL)
        guard->on_header(guard->user, line);
    return line.len;
}

struct setting {
    CURLoption option;
    long number;
    const char *text; /* instead of the number */
};

static bool set_all(CURL *curl, const struct setting *settings, size_t count)
{
    bool good = true;
    for (size_t i = 0; i < count; i++) {
        CURLcode code = settings[i].text != NULL ? curl_easy_setopt(curl, settings[i].option, settings[i].text)
                                                 : curl_easy_setopt(curl, settings[i].option, settings[i].number);
        good = good && code == CURLE_OK;
    }
    return good;
}

static bool set_ways(const struct guard *guard)
{
    const struct guard_rules *rules = guard->rules;
    const char *protocols = is_mail(guard->url.scheme) ? "smtp,smtps" : "http,https";
    int64_t connect_us = rules->connect_timeout_us > 0 ? rules->connect_timeout_us : CONNECT_TIMEOUT_US;
    const struct setting settings[] = {
        {CURLOPT_URL, 0, guard->text},
        {CURLOPT_PORT, is_mail(guard->url.scheme) ? guard->url.port : 0,
         NULL}, /* for mail without a port ours is 587, libcurl's is 25 */
        {CURLOPT_PROTOCOLS_STR, 0, protocols},
        {CURLOPT_REDIR_PROTOCOLS_STR, 0, protocols},
        {CURLOPT_FOLLOWLOCATION, rules->redirects_max > 0, NULL},
        {CURLOPT_MAXREDIRS, rules->redirects_max, NULL},
        {CURLOPT_UNRESTRICTED_AUTH, 0, NULL},
        {CURLOPT_PROXY, 0, ""},
        {CURLOPT_NOPROXY, 0, "*"},
        {CURLOPT_NETRC, CURL_NETRC_IGNORED, NULL},
        {CURLOPT_HTTP09_ALLOWED, 0, NULL},
        {CURLOPT_PATH_AS_IS, 1, NULL},
        {CURLOPT_NOSIGNAL, 1, NULL},
        {CURLOPT_CONNECTTIMEOUT_MS, (long)(connect_us / 1000), NULL},
        {CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2, NULL},
        {CURLOPT_SSL_VERIFYPEER, rules->tls_unverified ? 0 : 1, NULL},
        {CURLOPT_SSL_VERIFYHOST, rules->tls_unverified ? 0 : 2, NULL},
        {CURLOPT_USE_SSL, rules->tls_optional ? CURLUSESSL_TRY : CURLUSESSL_ALL, NULL},
    };
    bool good = set_all(guard->curl, settings, sizeof settings / sizeof *settings);
    return good && (rules->ca_file == NULL || curl_easy_setopt(guard->curl, CURLOPT_CAINFO, rules->ca_file) == CURLE_OK);
}

static bool set_callbacks(struct guard *guard)
{
    CURL *curl = guard->curl;
    return curl_easy_setopt(curl, CURLOPT_OPENSOCKETFUNCTION, on_socket) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_OPENSOCKETDATA, guard) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_SOCKOPTFUNCTION, on_socket_options) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_SOCKOPTDATA, guard) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_PREREQFUNCTION, on_request) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_PREREQDATA, guard) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_HEADERDATA, guard) == CURLE_OK;
}

enum status guard_apply(struct guard *guard, CURL *curl, const struct guard_rules *rules, struct bytes url, struct why *why)
{
    struct guard_url parsed;
    TRY(guard_url_parse(url, &parsed, why));
    TRY(guard_check(rules, &parsed, why));
    *guard = (struct guard){.rules = rules, .curl = curl};
    memcpy(guard->text, url.at, url.len);
    enum status status = guard_url_parse((struct bytes){guard->text, url.len}, &guard->url, why);
    ASSERT(status == OK);
    if (!set_ways(guard) || !set_callbacks(guard))
        return why_set(why, BROKEN, "libcurl does not know a setting that the guard needs");
    return OK;
}

bool guard_sent_nothing(const struct guard *guard)
{
    return !guard->sent;
}
