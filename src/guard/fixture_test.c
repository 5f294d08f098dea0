#include "guard/fixture_test.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

const char *dns_answers[DNS_ANSWERS_MAX];
size_t dns_answer_count;
bool dns_all;
atomic_int dns_questions;
uint16_t net_port;
atomic_int world_connections, victim_connections, world_requests, drop_requests;
const char *redirect_to;
SSL_CTX *net_tls;

static pthread_t net_thread;
static int world_listener, victim_listener;
static atomic_bool net_stopping;

/* ---- the resolver ---- */

/* In one piece, as the C library's freeaddrinfo() expects it. */
static struct addrinfo *answer(const char *text, uint16_t port, struct addrinfo *next)
{
    struct guard_address address;
    CHECK(guard_address_parse(bytes_of(text), &address));
    struct addrinfo *info = calloc(1, sizeof *info + sizeof(struct sockaddr_storage));
    info->ai_addr = (struct sockaddr *)(info + 1);
    info->ai_socktype = SOCK_STREAM;
    info->ai_protocol = IPPROTO_TCP;
    info->ai_family = info->ai_addr->sa_family = address.v6 ? AF_INET6 : AF_INET;
    info->ai_next = next;
    if (address.v6) {
        struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(void *)info->ai_addr;
        memcpy(&v6->sin6_addr, address.at, 16);
        v6->sin6_port = htons(port);
        info->ai_addrlen = sizeof *v6;
    } else {
        struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)info->ai_addr;
        memcpy(&v4->sin_addr, address.at, 4);
        v4->sin_port = htons(port);
        info->ai_addrlen = sizeof *v4;
    }
    return info;
}

/* The name is the C library's: the dynamic linker gives libcurl this one. */
int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **ret_info)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **) = NULL;
    if (node == NULL || strcmp(node, "dns.example.com") != 0) {
        *(void **)&real = dlsym(RTLD_NEXT, "getaddrinfo");
        return real(node, service, hints, ret_info);
    }
    size_t question = (size_t)atomic_fetch_add(&dns_questions, 1);
    struct addrinfo *list = NULL;
    for (size_t i = dns_answer_count; dns_all && i-- > 0;)
        list = answer(dns_answers[i], net_port, list);
    if (!dns_all)
        list = answer(dns_answers[question % dns_answer_count], net_port, NULL);
    *ret_info = list;
    return 0;
}

/* ---- the servers ---- */

struct peer {
    int fd;
    SSL *ssl;
};

static ssize_t hear(const struct peer *peer, char *at, size_t size)
{
    return peer->ssl != NULL ? SSL_read(peer->ssl, at, (int)size) : read(peer->fd, at, size);
}

static void say(const struct peer *peer, const char *text)
{
    ssize_t said = peer->ssl != NULL ? SSL_write(peer->ssl, text, (int)strlen(text)) : write(peer->fd, text, strlen(text));
    (void)said;
}

static bool hear_head(const struct peer *peer, char head[4096])
{
    size_t len = 0;
    ssize_t got;
    while (len < 4095 && (got = hear(peer, head + len, 4095 - len)) > 0) {
        len += (size_t)got;
        head[len] = '\0';
        if (strstr(head, "\r\n\r\n") != NULL)
            return true;
    }
    return false;
}

static void say_large(const struct peer *peer)
{
    char line[1024] = "X-Large: ";
    memset(line + 9, 'x', sizeof line - 12);
    memcpy(line + sizeof line - 3, "\r\n", 3);
    say(peer, "HTTP/1.1 200 OK\r\n");
    for (int i = 0; i < 200; i++)
        say(peer, line);
    say(peer, "\r\n");
}

/* False when the connection is to be closed. */
static bool serve_one(const struct peer *peer)
{
    char head[4096], location[512];
    if (!hear_head(peer, head))
        return false;
    if (strstr(head, " /drop ") != NULL) {
        atomic_fetch_add(&drop_requests, 1);
        return false;
    }
    atomic_fetch_add(&world_requests, 1);
    if (strstr(head, " /redirect ") != NULL) {
        snprintf(location, sizeof location,
                 "HTTP/1.1 307 Elsewhere\r\nLocation: %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", redirect_to);
        say(peer, location);
    } else if (strstr(head, " /large ") != NULL) {
        say_large(peer);
    } else if (strstr(head, " /keep ") != NULL) {
        say(peer, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
        return true;
    } else {
        say(peer, "HTTP/1.1 204 Good\r\nConnection: close\r\n\r\n");
    }
    return false;
}

static void serve(int fd)
{
    struct peer peer = {fd, NULL};
    struct timeval patience = {.tv_sec = 5};
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    bool ready = true;
    if (net_tls != NULL) {
        peer.ssl = SSL_new(net_tls);
        SSL_set_fd(peer.ssl, fd);
        ready = SSL_accept(peer.ssl) == 1;
    }
    while (ready && serve_one(&peer))
        continue;
    SSL_free(peer.ssl);
    close(fd);
}

static void *net_main(void *arg)
{
    (void)arg;
    struct pollfd ready[] = {{.fd = world_listener, .events = POLLIN}, {.fd = victim_listener, .events = POLLIN}};
    while (!atomic_load(&net_stopping)) {
        if (poll(ready, 2, 20) <= 0)
            continue;
        for (int i = 0; i < 2; i++) {
            if ((ready[i].revents & POLLIN) == 0)
                continue;
            atomic_fetch_add(i == 0 ? &world_connections : &victim_connections, 1);
            serve(accept(ready[i].fd, NULL, NULL));
        }
    }
    return NULL;
}

static int listen_at(const char *text)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(net_port)};
    socklen_t size = sizeof address;
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    CHECK(inet_pton(AF_INET, text, &address.sin_addr) == 1);
    CHECK(bind(fd, (struct sockaddr *)&address, sizeof address) == 0);
    CHECK(listen(fd, 64) == 0);
    CHECK(getsockname(fd, (struct sockaddr *)&address, &size) == 0);
    net_port = ntohs(address.sin_port);
    return fd;
}

void net_start(void)
{
    signal(SIGPIPE, SIG_IGN);
    CHECK(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK);
    victim_listener = listen_at("127.0.0.1");
    world_listener = listen_at("127.0.0.2");
    CHECK(pthread_create(&net_thread, NULL, net_main, NULL) == 0);
}

void net_stop(void)
{
    atomic_store(&net_stopping, true);
    pthread_join(net_thread, NULL);
    close(world_listener);
    close(victim_listener);
}

/* ---- the client ---- */

const struct guard_rules *world_rules(void)
{
    static char text[32];
    static struct guard_host world;
    static const struct guard_rules rules = {.allowed = &world, .allowed_count = 1, .ca_file = "ca.pem"};
    static const struct guard_rules plain = {.allowed = &world, .allowed_count = 1};
    struct why why = {""};
    snprintf(text, sizeof text, "127.0.0.2:%u", net_port);
    CHECK_INT(guard_host_parse(bytes_of(text), &world, &why), OK);
    return net_tls != NULL ? &rules : &plain;
}

CURLcode net_get(CURL *curl, struct guard *guard, const struct guard_rules *rules, const char *scheme, const char *path)
{
    char url[512];
    struct why why = {""};
    if (strstr(path, "://") != NULL)
        snprintf(url, sizeof url, "%s", path);
    else
        snprintf(url, sizeof url, "%s://dns.example.com:%u%s", scheme, net_port, path);
    if (guard_apply(guard, curl, rules, bytes_of(url), &why) != OK) {
        *guard = (struct guard){.refused = true, .why = why};
        return CURLE_URL_MALFORMAT;
    }
    curl_easy_setopt(curl, CURLOPT_DNS_CACHE_TIMEOUT, 0L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, 10000L);
    return curl_easy_perform(curl);
}
