/*
 * load: a closed-loop load generator for services that give a key to one caller and replay its result to the others.
 *
 *   load http|resp PORT fresh|fill|replay|storm|deliver [--clients N] [--seconds S] [--warm MS] [--count N] [--keys N]
 *        [--seed N] [--token TOKEN] [--claim SHA --complete SHA] [--source NAME --secret SECRET]
 *
 *   fresh   claim and confirm keys that nobody has used, for --seconds or --count cycles
 *   fill    claim and confirm the keys 0 … --keys - 1
 *   replay  claim again keys that were filled with the same --seed; each must answer the result that was stored
 *   storm   every client claims the same --keys; counts how often each key was given out
 *   deliver signed WhatsApp messages to /in/NAME, each a new one of one of a thousand people
 *
 * `http` speaks to semel, `resp` to a Redis that has loaded the two scripts named by --claim and --complete. One thread, one
 * request in flight per connection. A key's result follows from the key, so that every replay is checked byte for byte. Prints
 * one line of JSON; ends with 1 when any answer was not as it should be. Never waits longer than ten seconds for an answer.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/tcp.h>
#include <openssl/hmac.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLIENTS_MAX 1024
#define KEYS_MAX 10000000
#define IN_SIZE 16384
#define OUT_SIZE 4096
#define KEY_SIZE 32
#define RESULT_SIZE 200
#define SILENCE_MAX_MS 10000

enum mode { MODE_FRESH, MODE_FILL, MODE_REPLAY, MODE_STORM, MODE_DELIVER, MODE_COUNT };

static const char *const mode_names[MODE_COUNT] = {"fresh", "fill", "replay", "storm", "deliver"};

struct options {
    bool resp;
    uint16_t port;
    enum mode mode;
    int clients;
    int64_t seconds, count, keys, warm_ms;
    uint64_t seed;
    const char *token, *claim, *complete, *source, *secret;
};

/* Latencies in buckets that are never wider than 1/64 of their value. */
#define SUB_BITS 6
#define BUCKETS ((40 - SUB_BITS) << SUB_BITS)

struct histogram {
    uint64_t counts[BUCKETS], total, max_us;
};

struct client {
    int fd;
    bool confirming, finished;
    uint64_t index; /* of the key at work */
    char key[KEY_SIZE + 1];
    char intent[32];
    uint64_t fence;
    int64_t began_us;
    size_t in_len, out_len, out_at;
    char in[IN_SIZE + 1], out[OUT_SIZE];
    uint8_t *seen; /* storm: which keys are settled for this client */
    int64_t left, cursor;
};

struct run {
    struct options options;
    int poll;
    struct client *clients;
    int active;
    int64_t begin_us, measure_us, end_us, issued;
    uint64_t ops, won, replayed, busy, errors, random;
    uint32_t *given; /* storm: how often each key was given out */
    struct histogram latency;
};

static int64_t now_us(void)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (int64_t)at.tv_sec * 1000000 + at.tv_nsec / 1000;
}

static void die(const char *sentence)
{
    fprintf(stderr, "load: %s\n", sentence);
    exit(2);
}

/* ---- latencies ---- */

static size_t bucket_of(uint64_t us)
{
    if (us < (1u << SUB_BITS))
        return (size_t)us;
    int shift = 63 - __builtin_clzll(us) - SUB_BITS;
    size_t bucket = ((size_t)(shift + 1) << SUB_BITS) + (size_t)((us >> shift) - (1u << SUB_BITS));
    return bucket < BUCKETS ? bucket : BUCKETS - 1;
}

static uint64_t bucket_floor(size_t bucket)
{
    if (bucket < (1u << SUB_BITS))
        return bucket;
    size_t shift = (bucket >> SUB_BITS) - 1;
    return ((bucket & ((1u << SUB_BITS) - 1)) + (1u << SUB_BITS)) << shift;
}

static void histogram_add(struct histogram *histogram, int64_t us)
{
    uint64_t value = us > 0 ? (uint64_t)us : 0;
    histogram->counts[bucket_of(value)]++;
    histogram->total++;
    if (value > histogram->max_us)
        histogram->max_us = value;
}

static uint64_t histogram_at(const struct histogram *histogram, double share)
{
    uint64_t rank = (uint64_t)((double)histogram->total * share), sum = 0;
    for (size_t i = 0; i < BUCKETS; i++) {
        sum += histogram->counts[i];
        if (sum > rank)
            return bucket_floor(i);
    }
    return histogram->max_us;
}

/* ---- keys and results ---- */

static uint64_t scramble(uint64_t n)
{
    n = (n ^ (n >> 30)) * 0xBF58476D1CE4E5B9u;
    n = (n ^ (n >> 27)) * 0x94D049BB133111EBu;
    return n ^ (n >> 31);
}

static void write_hex(uint64_t n, char *at)
{
    for (int i = 0; i < 16; i++, n <<= 4)
        at[i] = "0123456789abcdef"[n >> 60];
}

static void make_key(uint64_t seed, uint64_t index, char *ret_key)
{
    write_hex(scramble(seed * 0x9E3779B97F4A7C15u + index + 1), ret_key);
    write_hex(scramble(scramble(seed + 1) ^ (index * 0xD6E8FEB86659FD93u)), ret_key + 16);
    ret_key[KEY_SIZE] = '\0';
}

/* 200 bytes of JSON that only this key has. */
static void make_result(const char *key, char *ret_result)
{
    static const char head[] = "{\"message_id\":\"", middle[] = "\",\"body\":\"";
    char *at = ret_result, *end = ret_result + RESULT_SIZE - 2;
    at = mempcpy(at, head, sizeof head - 1);
    at = mempcpy(at, key, KEY_SIZE);
    at = mempcpy(at, middle, sizeof middle - 1);
    while (at < end) {
        size_t n = (size_t)(end - at) < KEY_SIZE ? (size_t)(end - at) : KEY_SIZE;
        at = mempcpy(at, key, n);
    }
    memcpy(end, "\"}", 2);
}

/* ---- requests ---- */

static void put(struct client *client, const char *text, size_t len)
{
    if (client->out_len + len > OUT_SIZE)
        die("a request does not fit");
    memcpy(client->out + client->out_len, text, len);
    client->out_len += len;
}

static void put_text(struct client *client, const char *text)
{
    put(client, text, strlen(text));
}

static void put_head(struct client *client, const struct options *options, size_t body_len)
{
    char number[64];
    put_text(client, "Host: 127.0.0.1\r\nContent-Type: application/json\r\n");
    if (options->token != NULL) {
        put_text(client, "Authorization: Bearer ");
        put_text(client, options->token);
        put_text(client, "\r\n");
    }
    int len = snprintf(number, sizeof number, "Content-Length: %zu\r\n\r\n", body_len);
    put(client, number, (size_t)len);
}

static void put_http_claim(struct client *client, const struct options *options)
{
    static const char before[] = "{\"workflow\":\"bench\",\"key\":\"", after[] = "\"}";
    put_text(client, "POST /v1/claims HTTP/1.1\r\n");
    put_head(client, options, sizeof before - 1 + KEY_SIZE + sizeof after - 1);
    put(client, before, sizeof before - 1);
    put(client, client->key, KEY_SIZE);
    put(client, after, sizeof after - 1);
}

static void put_http_confirm(struct client *client, const struct options *options, const char *result)
{
    char before[64];
    int len = snprintf(before, sizeof before, "{\"fence\":%" PRIu64 ",\"result\":", client->fence);
    put_text(client, "POST /v1/claims/");
    put_text(client, client->intent);
    put_text(client, "/confirm HTTP/1.1\r\n");
    put_head(client, options, (size_t)len + RESULT_SIZE + 1);
    put(client, before, (size_t)len);
    put(client, result, RESULT_SIZE);
    put_text(client, "}");
}

static void put_http_delivery(struct client *client, const struct options *options)
{
    char body[1024], signature[65];
    uint8_t mac[32];
    unsigned mac_len = sizeof mac;
    int len = snprintf(
        body, sizeof body,
        "{\"object\":\"whatsapp_business_account\",\"entry\":[{\"id\":\"210\",\"changes\":[{\"field\":\"messages\",\"value\":"
        "{\"messaging_product\":\"whatsapp\",\"metadata\":{\"display_phone_number\":\"15551304520\",\"phone_number_id\":\"248\"},"
        "\"contacts\":[{\"profile\":{\"name\":\"Jon\"},\"wa_id\":\"234913540%04d\"}],\"messages\":[{\"from\":\"234913540%04d\","
        "\"id\":\"wamid.%s\",\"timestamp\":\"1706955513\",\"type\":\"text\",\"text\":{\"body\":\"Could you please send me an "
        "offer "
        "for number %s, and tell me when you would have time to begin with it?\"}}]}}]}]}",
        (int)(client->index % 1000), (int)(client->index % 1000), client->key, client->key);
    HMAC(EVP_sha256(), options->secret, (int)strlen(options->secret), (const uint8_t *)body, (size_t)len, mac, &mac_len);
    for (int i = 0; i < 4; i++) {
        uint64_t part = 0;
        for (int j = 0; j < 8; j++)
            part = part << 8 | mac[i * 8 + j];
        write_hex(part, signature + (ptrdiff_t)i * 16);
    }
    signature[64] = '\0';
    put_text(client, "POST /in/");
    put_text(client, options->source);
    put_text(client, " HTTP/1.1\r\nX-Hub-Signature-256: sha256=");
    put_text(client, signature);
    put_text(client, "\r\n");
    put_head(client, options, (size_t)len);
    put(client, body, (size_t)len);
}

static void put_argument(struct client *client, const char *text, size_t len)
{
    char head[32];
    int n = snprintf(head, sizeof head, "$%zu\r\n", len);
    put(client, head, (size_t)n);
    put(client, text, len);
    put_text(client, "\r\n");
}

/* EVALSHA script 1 key token [result]. The token is the caller's, so that a late complete by another is refused. */
static void put_resp(struct client *client, const char *script, const char *result)
{
    char token[24];
    int len = snprintf(token, sizeof token, "t%d-%" PRIu64, client->fd, client->index);
    put_text(client, result != NULL ? "*6\r\n" : "*5\r\n");
    put_argument(client, "EVALSHA", 7);
    put_argument(client, script, strlen(script));
    put_argument(client, "1", 1);
    put_argument(client, client->key, KEY_SIZE);
    put_argument(client, token, (size_t)len);
    if (result != NULL)
        put_argument(client, result, RESULT_SIZE);
}

static void flush(struct client *client)
{
    while (client->out_at < client->out_len) {
        ssize_t n = send(client->fd, client->out + client->out_at, client->out_len - client->out_at, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (n < 0 && errno == EAGAIN)
            return; /* the rest goes with the next event */
        if (n < 0)
            die("the server does not take requests");
        client->out_at += (size_t)n;
    }
}

static void send_request(struct run *run, struct client *client, bool confirming)
{
    const struct options *options = &run->options;
    char result[RESULT_SIZE];
    client->confirming = confirming;
    client->in_len = client->out_len = client->out_at = 0;
    if (confirming)
        make_result(client->key, result);
    if (options->resp)
        put_resp(client, confirming ? options->complete : options->claim, confirming ? result : NULL);
    else if (options->mode == MODE_DELIVER)
        put_http_delivery(client, options);
    else if (confirming)
        put_http_confirm(client, options, result);
    else
        put_http_claim(client, options);
    flush(client);
}

/* ---- what to do next ---- */

/* The next key that this client has not seen settled; false when there is none. */
static bool next_storm(const struct run *run, struct client *client)
{
    if (client->left == 0)
        return false;
    do
        client->cursor = (client->cursor + 1) % run->options.keys;
    while (client->seen[client->cursor]);
    client->index = (uint64_t)client->cursor;
    return true;
}

static bool next_index(struct run *run, struct client *client, int64_t at_us)
{
    const struct options *options = &run->options;
    if (options->mode == MODE_STORM)
        return next_storm(run, client);
    if (options->mode == MODE_FILL ? run->issued >= options->keys
                                   : (options->count > 0 ? run->issued >= options->count : at_us >= run->end_us))
        return false;
    client->index = (uint64_t)run->issued++;
    if (options->mode == MODE_REPLAY)
        client->index = scramble(run->random += 0x9E3779B97F4A7C15u) % (uint64_t)options->keys;
    return true;
}

static void next_cycle(struct run *run, struct client *client)
{
    client->began_us = now_us();
    if (!next_index(run, client, client->began_us)) {
        client->finished = true;
        run->active--;
        return;
    }
    make_key(run->options.seed, client->index, client->key);
    send_request(run, client, false);
}

static void end_cycle(struct run *run, struct client *client)
{
    if (client->began_us >= run->measure_us) {
        run->ops++;
        histogram_add(&run->latency, now_us() - client->began_us);
    }
    next_cycle(run, client);
}

static void settle(struct run *run, struct client *client)
{
    if (run->options.mode == MODE_STORM && !client->seen[client->index]) {
        client->seen[client->index] = 1;
        client->left--;
    }
}

/* ---- answers ---- */

enum answer { ANSWER_WON, ANSWER_REPLAY, ANSWER_BUSY, ANSWER_DONE, ANSWER_OTHER };

static bool has(const struct client *client, const char *text)
{
    return memmem(client->in, client->in_len, text, strlen(text)) != NULL;
}

/* Reads the number or the text that follows `name` in the answer. */
static const char *after(const struct client *client, const char *name)
{
    const char *at = memmem(client->in, client->in_len, name, strlen(name));
    return at != NULL ? at + strlen(name) : "";
}

static enum answer http_answer(struct client *client, enum mode mode)
{
    if (mode == MODE_DELIVER)
        return has(client, "HTTP/1.1 200") ? ANSWER_DONE : ANSWER_OTHER;
    if (client->confirming)
        return has(client, "\"state\":\"confirmed\"") ? ANSWER_DONE : ANSWER_OTHER;
    if (has(client, "\"answer\":\"proceed\"")) {
        const char *intent = after(client, "\"intent\":\"");
        size_t len = strcspn(intent, "\"");
        if (len == 0 || len >= sizeof client->intent)
            return ANSWER_OTHER;
        memcpy(client->intent, intent, len);
        client->intent[len] = '\0';
        client->fence = strtoull(after(client, "\"fence\":"), NULL, 10);
        return ANSWER_WON;
    }
    if (has(client, "\"answer\":\"replay\""))
        return ANSWER_REPLAY;
    return has(client, "\"code\":\"in_progress\"") ? ANSWER_BUSY : ANSWER_OTHER;
}

static enum answer resp_answer(const struct client *client)
{
    if (client->confirming)
        return has(client, "+OK") ? ANSWER_DONE : ANSWER_OTHER;
    if (has(client, "\r\nDONE:"))
        return ANSWER_REPLAY;
    if (has(client, "+WIN"))
        return ANSWER_WON;
    return has(client, "+BUSY") ? ANSWER_BUSY : ANSWER_OTHER;
}

static bool replays_the_result(const struct client *client)
{
    char result[RESULT_SIZE];
    make_result(client->key, result);
    return memmem(client->in, client->in_len, result, RESULT_SIZE) != NULL;
}

static void count_error(struct run *run, const struct client *client)
{
    if (run->errors++ < 3)
        fprintf(stderr, "load: unexpected answer: %.*s\n", (int)(client->in_len < 600 ? client->in_len : 600), client->in);
}

static void on_won(struct run *run, struct client *client)
{
    run->won++;
    if (run->given != NULL)
        run->given[client->index]++;
    if (run->options.mode == MODE_REPLAY)
        count_error(run, client); /* a filled key was given out again */
    send_request(run, client, true);
}

static void on_answer(struct run *run, struct client *client)
{
    switch (run->options.resp ? resp_answer(client) : http_answer(client, run->options.mode)) {
    case ANSWER_WON:
        on_won(run, client);
        return;
    case ANSWER_REPLAY:
        run->replayed++;
        if (!replays_the_result(client))
            count_error(run, client);
        settle(run, client);
        break;
    case ANSWER_BUSY:
        run->busy++;
        if (run->options.mode != MODE_STORM)
            count_error(run, client);
        break;
    case ANSWER_DONE:
        settle(run, client);
        break;
    case ANSWER_OTHER:
        count_error(run, client);
        settle(run, client);
        break;
    }
    end_cycle(run, client);
}

/* The length of the answer at the start of the buffer, or 0 while it is not whole. */
static size_t http_length(const struct client *client)
{
    const char *end = memmem(client->in, client->in_len, "\r\n\r\n", 4);
    const char *length = end != NULL ? strcasestr(client->in, "\r\ncontent-length:") : NULL;
    if (end != NULL && (length == NULL || length > end))
        die("an answer without a length");
    return end != NULL ? (size_t)(end - client->in) + 4 + strtoul(length + 17, NULL, 10) : 0;
}

static size_t resp_length(const struct client *client)
{
    const char *end = memmem(client->in, client->in_len, "\r\n", 2);
    if (end == NULL)
        return 0;
    size_t head = (size_t)(end - client->in) + 2;
    return client->in[0] == '$' ? head + strtoul(client->in + 1, NULL, 10) + 2 : head;
}

static void on_readable(struct run *run, struct client *client)
{
    if (client->out_at < client->out_len)
        flush(client);
    ssize_t n = recv(client->fd, client->in + client->in_len, IN_SIZE - client->in_len, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN)
        return;
    if (n <= 0)
        die("the server closed a connection");
    client->in_len += (size_t)n;
    client->in[client->in_len] = '\0';
    size_t whole = run->options.resp ? resp_length(client) : http_length(client);
    if (whole > IN_SIZE || whole > client->in_len) {
        if (client->in_len == IN_SIZE)
            die("an answer is too long");
        return;
    }
    if (whole > 0)
        on_answer(run, client);
}

/* ---- the loop ---- */

static void connect_client(struct run *run, struct client *client)
{
    struct sockaddr_in address = {
        .sin_family = AF_INET, .sin_port = htons(run->options.port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int one = 1;
    client->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (client->fd < 0 || connect(client->fd, (struct sockaddr *)&address, sizeof address) != 0)
        die("cannot connect");
    setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = client};
    if (epoll_ctl(run->poll, EPOLL_CTL_ADD, client->fd, &event) != 0)
        die("cannot watch a connection");
    if (run->options.mode != MODE_STORM)
        return;
    client->seen = calloc((size_t)run->options.keys, 1);
    if (client->seen == NULL)
        die("no memory");
    client->left = run->options.keys;
    client->cursor = run->options.keys - 1;
}

static void prepare(struct run *run)
{
    const struct options *options = &run->options;
    run->random = options->seed ^ 0x5851F42D4C957F2Du;
    run->poll = epoll_create1(EPOLL_CLOEXEC);
    run->clients = calloc((size_t)options->clients, sizeof *run->clients);
    run->given = options->mode == MODE_STORM ? calloc((size_t)options->keys, sizeof *run->given) : NULL;
    if (run->poll < 0 || run->clients == NULL || (options->mode == MODE_STORM && run->given == NULL))
        die("no memory");
    for (int i = 0; i < options->clients; i++)
        connect_client(run, &run->clients[i]);
    run->active = options->clients;
    run->begin_us = now_us();
    run->measure_us = run->begin_us + options->warm_ms * 1000;
    run->end_us = run->measure_us + options->seconds * 1000000;
}

static void serve_events(struct run *run)
{
    struct epoll_event events[256];
    while (run->active > 0) {
        int n = epoll_wait(run->poll, events, 256, SILENCE_MAX_MS);
        if (n <= 0)
            die("no answer for ten seconds");
        for (int i = 0; i < n; i++) {
            struct client *client = events[i].data.ptr;
            if (!client->finished)
                on_readable(run, client);
        }
    }
}

static void print_storm(const struct run *run)
{
    int64_t never = 0, once = 0, more = 0;
    for (int64_t i = 0; i < run->options.keys; i++) {
        never += run->given[i] == 0;
        once += run->given[i] == 1;
        more += run->given[i] > 1;
    }
    printf(",\"keys_never\":%" PRId64 ",\"keys_once\":%" PRId64 ",\"keys_more\":%" PRId64, never, once, more);
}

static double cpu_seconds(void)
{
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) + (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
}

static void print_outcome(const struct run *run, int64_t end_us)
{
    double seconds = (double)(end_us - run->measure_us) / 1e6;
    printf("{\"mode\":\"%s\",\"clients\":%d,\"ops\":%" PRIu64 ",\"seconds\":%.3f,\"rate\":%.1f", mode_names[run->options.mode],
           run->options.clients, run->ops, seconds, seconds > 0 ? (double)run->ops / seconds : 0);
    printf(",\"p50_us\":%" PRIu64 ",\"p99_us\":%" PRIu64 ",\"max_us\":%" PRIu64, histogram_at(&run->latency, 0.5),
           histogram_at(&run->latency, 0.99), run->latency.max_us);
    printf(",\"won\":%" PRIu64 ",\"replayed\":%" PRIu64 ",\"busy\":%" PRIu64 ",\"errors\":%" PRIu64 ",\"cpu_s\":%.2f", run->won,
           run->replayed, run->busy, run->errors, cpu_seconds());
    if (run->given != NULL)
        print_storm(run);
    printf("}\n");
}

/* ---- the command line ---- */

static void usage(const char *wrong)
{
    fprintf(stderr,
            "load: %s\nusage: load http|resp PORT fresh|fill|replay|storm|deliver [--clients N] [--seconds S] [--warm MS]\n"
            "            [--count N] [--keys N] [--seed N] [--token TOKEN] [--claim SHA --complete SHA] [--source NAME --secret "
            "SECRET]\n",
            wrong);
    exit(2);
}

static int64_t number(const char *text, int64_t least, int64_t most)
{
    char *end;
    errno = 0;
    long long n = strtoll(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || n < least || n > most)
        usage("a number is out of its range");
    return n;
}

static bool set_text(struct options *options, const char *name, const char *value)
{
    if (strcmp(name, "--token") == 0)
        options->token = value;
    else if (strcmp(name, "--claim") == 0)
        options->claim = value;
    else if (strcmp(name, "--complete") == 0)
        options->complete = value;
    else if (strcmp(name, "--source") == 0)
        options->source = value;
    else if (strcmp(name, "--secret") == 0)
        options->secret = value;
    else
        return false;
    return true;
}

static void set_option(struct options *options, const char *name, const char *value)
{
    if (set_text(options, name, value))
        return;
    if (strcmp(name, "--clients") == 0)
        options->clients = (int)number(value, 1, CLIENTS_MAX);
    else if (strcmp(name, "--seconds") == 0)
        options->seconds = number(value, 1, 3600);
    else if (strcmp(name, "--warm") == 0)
        options->warm_ms = number(value, 0, 60000);
    else if (strcmp(name, "--count") == 0)
        options->count = number(value, 0, 1000000000);
    else if (strcmp(name, "--keys") == 0)
        options->keys = number(value, 1, KEYS_MAX);
    else if (strcmp(name, "--seed") == 0)
        options->seed = (uint64_t)number(value, 0, INT64_MAX);
    else
        usage("an unknown option");
}

static void read_options(int argc, char **argv, struct options *ret_options)
{
    struct options options = {.mode = MODE_COUNT, .clients = 1, .seconds = 1, .keys = 1000, .seed = 1};
    if (argc < 4 || argc % 2 != 0)
        usage("something is missing");
    options.resp = strcmp(argv[1], "resp") == 0;
    if (!options.resp && strcmp(argv[1], "http") != 0)
        usage("the protocol is http or resp");
    options.port = (uint16_t)number(argv[2], 1, 65535);
    for (int i = 0; i < MODE_COUNT; i++)
        if (strcmp(argv[3], mode_names[i]) == 0)
            options.mode = (enum mode)i;
    if (options.mode == MODE_COUNT)
        usage("an unknown mode");
    for (int i = 4; i < argc; i += 2)
        set_option(&options, argv[i], argv[i + 1]);
    if (options.resp && (options.claim == NULL || options.complete == NULL))
        usage("resp needs --claim and --complete");
    if (options.mode == MODE_DELIVER && (options.source == NULL || options.secret == NULL))
        usage("deliver needs --source and --secret");
    *ret_options = options;
}

int main(int argc, char **argv)
{
    static struct run run;
    read_options(argc, argv, &run.options);
    prepare(&run);
    for (int i = 0; i < run.options.clients; i++)
        next_cycle(&run, &run.clients[i]);
    serve_events(&run);
    print_outcome(&run, now_us());
    for (int i = 0; i < run.options.clients; i++) {
        close(run.clients[i].fd);
        free(run.clients[i].seen);
    }
    free(run.clients);
    free(run.given);
    close(run.poll);
    return run.errors > 0 ? 1 : 0;
}
