#include "cli/client.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/when.h"
#include "cli/print.h"

#define CONNECT_TIMEOUT_MS 5000L
#define ANSWER_TIMEOUT_MS 30000L
#define TOKEN_SIZE_MAX 512

struct client {
    CURL *curl;
    struct buf base; /* the URL without its path; ends in a NUL */
    struct curl_slist *headers;
    struct buf reply;
    char error[CURL_ERROR_SIZE];
};

/* ---- paths ---- */

static void add_escaped(struct buf *out, struct bytes text)
{
    static const char hex[] = "0123456789ABCDEF";
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.at[i];
        if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
            (c != '\0' && strchr("-._~", c) != NULL))
            buf_add_char(out, (char)c);
        else
            buf_add(out, (struct bytes){(const char[]){'%', hex[c >> 4], hex[c & 15]}, 3});
    }
}

void client_path_add(struct buf *path, struct bytes part)
{
    buf_add_char(path, '/');
    /* "." and ".." would be taken as steps in the tree, not as names. */
    if (bytes_is(part, ".") || bytes_is(part, ".."))
        buf_add_cstr(path, part.len == 1 ? "%2E" : "%2E%2E");
    else
        add_escaped(path, part);
}

void client_query_add(struct buf *path, const char *name, const char *value)
{
    if (value == NULL)
        return;
    bool first = memchr(buf_bytes(path).at, '?', path->len) == NULL;
    buf_add_char(path, first ? '?' : '&');
    buf_add_cstr(path, name);
    buf_add_char(path, '=');
    add_escaped(path, bytes_of(value));
}

/* ---- the token ---- */

static bool is_token(struct bytes token)
{
    for (size_t i = 0; i < token.len; i++)
        if (token.at[i] <= ' ' || token.at[i] == 0x7F)
            return false;
    return token.len > 0 && token.len <= TOKEN_SIZE_MAX;
}

/* Sets the sentence of a failure; it is printed by whoever prints. */
static int refuse(struct why *why, int code, const char *format, ...) __attribute__((format(printf, 3, 4)));

static int refuse(struct why *why, int code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(why->text, sizeof why->text, format, args);
    va_end(args);
    return code;
}

static int find_token(struct cli *cli, struct bytes *ret_token, struct why *why)
{
    const char *env = getenv("SEMEL_TOKEN"), *dir = cli_text(cli, "--data");
    if (env != NULL && *env != '\0') {
        *ret_token = bytes_of(env);
        return is_token(*ret_token)
                   ? CLI_OK
                   : refuse(why, CLI_CONFIG, "SEMEL_TOKEN is not a token. Set it to the text that begins with sml_.");
    }
    if (dir == NULL)
        return CLI_OK;
    struct bytes path = arena_printf(&cli->arena, "%s/admin.token", dir), text;
    if (path.at == NULL)
        return refuse(why, CLI_INTERNAL, "there is not enough memory.");
    bool has_own = (cli->command->shared & CLI_CALLS_DAEMON) == 0; /* its --data may be of a daemon that asks for no token */
    if (has_own && access(path.at, F_OK) != 0 && errno == ENOENT)
        return CLI_OK;
    if (access(path.at, R_OK) != 0)
        return refuse(why, errno == EACCES ? CLI_FORBIDDEN : CLI_CONFIG,
                      "%s cannot be read: %s. semel serve writes it on its first start; else set SEMEL_TOKEN.", path.at,
                      strerror(errno));
    int code = cli_read_file(cli, path.at, TOKEN_SIZE_MAX, &text);
    if (code != CLI_OK)
        return refuse(why, code, "%s holds no token. Set SEMEL_TOKEN instead.", path.at);
    while (text.len > 0 && (text.at[text.len - 1] == '\n' || text.at[text.len - 1] == '\r'))
        text.len--;
    *ret_token = text;
    return is_token(text) ? CLI_OK : refuse(why, CLI_CONFIG, "%s holds no token. Set SEMEL_TOKEN instead.", path.at);
}

/* ---- the connection ---- */

static size_t on_body(char *at, size_t size, size_t count, void *ctx)
{
    struct buf *reply = ctx;
    buf_add(reply, (struct bytes){at, size * count});
    return reply->failed ? 0 : size * count;
}

static bool is_loopback_url(const char *url)
{
    static const char *const hosts[] = {"://127.", "://localhost", "://[::1]"};
    for (size_t i = 0; i < sizeof hosts / sizeof *hosts; i++)
        if (strstr(url, hosts[i]) != NULL)
            return true;
    return false;
}

/* http://, https:// or unix:/PATH; anything else would be a surprise at a worse moment. */
static int set_address(struct cli *cli, struct client *client, struct why *why)
{
    const char *url = cli_text(cli, "--url");
    struct bytes base = bytes_of(url);
    if (bytes_starts(base, BYTES("unix:/"))) {
        curl_easy_setopt(client->curl, CURLOPT_UNIX_SOCKET_PATH, url + strlen("unix:"));
        base = BYTES("http://localhost");
    } else if (!bytes_starts(base, BYTES("http://")) && !bytes_starts(base, BYTES("https://"))) {
        return refuse(why, CLI_USAGE, "--url is not http://HOST:PORT, https://HOST or unix:/PATH.");
    }
    while (base.len > 0 && base.at[base.len - 1] == '/')
        base.len--;
    buf_add(&client->base, base);
    /* A proxy for the outside world does not know this computer's own daemon. */
    if (is_loopback_url(base.at))
        curl_easy_setopt(client->curl, CURLOPT_PROXY, "");
    return client->base.failed ? refuse(why, CLI_USAGE, "--url is too long.") : CLI_OK;
}

static int set_headers(struct cli *cli, struct client *client, struct why *why)
{
    struct bytes token = BYTES_NONE;
    int code = find_token(cli, &token, why);
    if (code != CLI_OK || token.at == NULL)
        return code;
    char header[TOKEN_SIZE_MAX + 32];
    snprintf(header, sizeof header, "Authorization: Bearer %.*s", BYTES_ARG(token));
    client->headers = curl_slist_append(NULL, header);
    explicit_bzero(header, sizeof header);
    return client->headers != NULL ? CLI_OK : refuse(why, CLI_INTERNAL, "there is not enough memory.");
}

static void set_options(struct client *client)
{
    curl_easy_setopt(client->curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(client->curl, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
    curl_easy_setopt(client->curl, CURLOPT_USERAGENT, "semel-cli");
    curl_easy_setopt(client->curl, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(client->curl, CURLOPT_WRITEDATA, &client->reply);
    curl_easy_setopt(client->curl, CURLOPT_ERRORBUFFER, client->error);
    curl_easy_setopt(client->curl, CURLOPT_PATH_AS_IS, 1L);
    curl_easy_setopt(client->curl, CURLOPT_NOSIGNAL, 1L);
}

static int open_client(struct cli *cli, struct why *why)
{
    if (cli->client != NULL)
        return CLI_OK;
    struct client *client = calloc(1, sizeof *client);
    if (client == NULL || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || (client->curl = curl_easy_init()) == NULL) {
        free(client);
        return refuse(why, CLI_INTERNAL, "the HTTP library does not start.");
    }
    buf_init(&client->base, 4096);
    buf_init(&client->reply, CLIENT_REPLY_MAX);
    cli->client = client;
    set_options(client);
    int code = set_address(cli, client, why);
    if (code == CLI_OK)
        code = set_headers(cli, client, why);
    if (code != CLI_OK) { /* half a client would call the wrong place, or without its token */
        client_free(client);
        cli->client = NULL;
    }
    return code;
}

void client_free(struct client *client)
{
    if (client == NULL)
        return;
    curl_easy_cleanup(client->curl);
    curl_slist_free_all(client->headers);
    buf_release(&client->base);
    buf_release(&client->reply);
    free(client);
    curl_global_cleanup();
}

/* ---- one call ---- */

/* The call of someone else: only what it says itself. */
static struct curl_slist *foreign_headers(const struct client_request *request)
{
    struct curl_slist *headers = curl_slist_append(NULL, "Expect:");
    struct buf line;
    buf_init(&line, 64 << 10);
    for (size_t i = 0; i < request->header_count; i++) {
        buf_clear(&line);
        buf_printf(&line, "%.*s: %.*s", BYTES_ARG(request->headers[i].name), BYTES_ARG(request->headers[i].value));
        buf_add_char(&line, '\0');
        if (!line.failed)
            headers = curl_slist_append(headers, line.at);
    }
    buf_release(&line);
    return headers;
}

/* "Expect:" is switched off: the daemon's answer to it would only cost a round trip. */
static struct curl_slist *headers_of(const struct client *client, const struct client_request *request)
{
    char type[96];
    struct curl_slist *headers = NULL;
    if (request->headers != NULL)
        return foreign_headers(request);
    snprintf(type, sizeof type, "Content-Type: %s", request->content_type != NULL ? request->content_type : "application/json");
    headers = curl_slist_append(headers, "Expect:");
    headers = curl_slist_append(headers, "Accept: application/json, application/problem+json");
    if (request->body.at != NULL)
        headers = curl_slist_append(headers, type);
    for (const struct curl_slist *header = client->headers; header != NULL; header = header->next)
        headers = curl_slist_append(headers, header->data);
    return headers;
}

static enum status explain(const struct cli *cli, const struct client *client, CURLcode result, int *ret_code, struct why *why)
{
    const char *url = cli_text(cli, "--url");
    const char *detail = client->error[0] != '\0' ? client->error : curl_easy_strerror(result);
    *ret_code = CLI_UNREACHABLE;
    if (result == CURLE_COULDNT_CONNECT || result == CURLE_COULDNT_RESOLVE_HOST)
        return why_set(why, RETRY, "nothing answers at %s. Start it with: semel up", url);
    if (result == CURLE_PEER_FAILED_VERIFICATION || result == CURLE_SSL_CONNECT_ERROR)
        return why_set(why, INVALID, "the connection to %s is not safe: %s.", url, detail);
    if (client->reply.failed)
        return why_set(why, UNKNOWN, "the answer of %s is longer than %zu MiB.", url, CLIENT_REPLY_MAX >> 20);
    if (result != CURLE_URL_MALFORMAT && result != CURLE_UNSUPPORTED_PROTOCOL)
        return why_set(why, UNKNOWN, "no answer came from %s: %s. The call may have been carried out; repeat it to find out.",
                       url, detail);
    *ret_code = CLI_USAGE;
    return why_set(why, INVALID, "--url %s is not a URL: %s.", url, detail);
}

static enum status take_reply(struct cli *cli, struct client_reply *ret_reply, int *ret_code, struct why *why)
{
    struct client *client = cli->client;
    struct client_reply reply = {0};
    struct why unused;
    curl_easy_getinfo(client->curl, CURLINFO_RESPONSE_CODE, &reply.status);
    reply.body = arena_dup(&cli->arena, buf_bytes(&client->reply));
    if (reply.body.at == NULL) {
        *ret_code = CLI_INTERNAL;
        return why_set(why, UNKNOWN, "there is not enough memory for the answer.");
    }
    const struct json_limits limits = {.depth_max = 128, .members_max = 2000000, .text_max = CLIENT_REPLY_MAX};
    reply.is_json = json_parse(reply.body, &limits, &cli->arena, &reply.json, &unused) == OK;
    *ret_reply = reply;
    return OK;
}

/* Called about once a second, and whenever something moves. */
static int on_progress(void *ctx, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    const atomic_bool *stop = ctx;
    (void)a, (void)b, (void)c, (void)d;
    return atomic_load(stop) ? 1 : 0;
}

static void set_limits(CURL *curl, const struct client_request *request)
{
    long timeout_ms = request->timeout_us > 0 ? (long)(request->timeout_us / WHEN_MS) : ANSWER_TIMEOUT_MS;
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, timeout_ms + (long)(request->wait_us / WHEN_MS));
    curl_easy_setopt(curl, CURLOPT_NOPROGRESS, request->stop == NULL ? 1L : 0L);
    curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
    curl_easy_setopt(curl, CURLOPT_XFERINFODATA, request->stop);
}

static CURLcode perform(struct client *client, const struct client_request *request, const char *url)
{
    CURL *curl = client->curl;
    struct curl_slist *headers = headers_of(client, request);
    bool body = request->body.at != NULL;
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    set_limits(curl, request);
    if (body) {
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request->body.at);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body.len);
    } else {
        curl_easy_setopt(curl, CURLOPT_HTTPGET, 1L);
    }
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request->method);
    buf_clear(&client->reply);
    client->error[0] = '\0';
    CURLcode result = curl_easy_perform(curl);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, NULL);
    curl_slist_free_all(headers);
    return result;
}

enum status client_try(struct cli *cli, const struct client_request *request, struct client_reply *ret_reply, int *ret_code,
                       struct why *why)
{
    int code = open_client(cli, why);
    *ret_code = code;
    if (code != CLI_OK)
        return INVALID;
    struct bytes url = arena_printf(&cli->arena, "%.*s%s", BYTES_ARG(buf_bytes(&cli->client->base)), request->path.at);
    *ret_code = CLI_INTERNAL;
    if (url.at == NULL)
        return why_set(why, RETRY, "there is not enough memory.");
    CURLcode result = perform(cli->client, request, url.at);
    return result == CURLE_OK ? take_reply(cli, ret_reply, ret_code, why) : explain(cli, cli->client, result, ret_code, why);
}

int client_send(struct cli *cli, const struct client_request *request, struct client_reply *ret_reply)
{
    struct why why = {""};
    int code = CLI_OK;
    enum status status = client_try(cli, request, ret_reply, &code, &why);
    return status == OK ? CLI_OK : cli_fail((enum cli_exit)code, "%s", why.text);
}

/* ---- answers that are no success ---- */

enum cli_exit client_exit(long status, struct bytes code)
{
    static const struct {
        const char *code;
        enum cli_exit exit;
    } by_code[] = {
        {"in_progress", CLI_LATER},
        {"outcome_unknown", CLI_UNKNOWN},
        {"policy_invalid", CLI_CONFIG},
    };
    for (size_t i = 0; i < sizeof by_code / sizeof *by_code; i++)
        if (bytes_is(code, by_code[i].code))
            return by_code[i].exit;
    if (status == 401 || status == 403)
        return CLI_FORBIDDEN;
    if (status == 408 || status == 429 || status == 502 || status == 503 || status == 504)
        return CLI_LATER;
    if (status >= 400 && status < 500)
        return CLI_DATA;
    return status >= 500 ? CLI_INTERNAL : CLI_UNREACHABLE;
}

static void add_sentence(struct buf *out, struct bytes text, const char *before)
{
    if (text.len == 0)
        return;
    buf_add_cstr(out, before);
    buf_add(out, text);
}

static void print_differs(const struct json *differs)
{
    if (differs == NULL || differs->type != JSON_ARRAY || differs->count == 0)
        return;
    struct buf names;
    buf_init(&names, 64 << 10);
    for (uint32_t i = 0; i < differs->count; i++)
        if (differs->items[i].type == JSON_STRING)
            add_sentence(&names, differs->items[i].text, names.len > 0 ? ", " : "");
    cli_note("what differs: %.*s.", BYTES_ARG(buf_bytes(&names)));
    buf_release(&names);
}

void client_sentence(struct cli *cli, const struct client_reply *reply, struct buf *out)
{
    if (!reply->is_json || reply->json.type != JSON_OBJECT || reply->status < 400) {
        buf_printf(out, "%s answers with status %ld and no explanation. Is it semel?", cli_text(cli, "--url"), reply->status);
        return;
    }
    struct bytes title = print_field(cli, &reply->json, "title"), detail = print_field(cli, &reply->json, "detail");
    buf_add(out, title.len > 0 ? title : BYTES("the daemon refuses"));
    add_sentence(out, detail, ": ");
    bool ended = memchr(".!?", buf_bytes(out).at[out->len - 1], 3) != NULL;
    add_sentence(out, print_field(cli, &reply->json, "hint"), ended ? " " : ". ");
}

int client_problem(struct cli *cli, const struct client_reply *reply)
{
    bool explained = reply->is_json && reply->json.type == JSON_OBJECT && reply->status >= 400;
    struct buf text;
    buf_init(&text, 64 << 10);
    client_sentence(cli, reply, &text);
    struct bytes problem = explained ? print_field(cli, &reply->json, "code") : BYTES_NONE;
    int code = cli_fail(client_exit(reply->status, problem), "%.*s", BYTES_ARG(buf_bytes(&text)));
    buf_release(&text);
    if (!explained)
        return code;
    print_differs(json_get(&reply->json, BYTES("differs")));
    if ((cli->command->shared & CLI_PRINTS_JSON) != 0 && cli_on(cli, "--json"))
        print_json(&reply->json);
    return code;
}

int client_call(struct cli *cli, const struct client_request *request, struct client_reply *ret_reply)
{
    struct client_reply reply;
    int code = client_send(cli, request, &reply);
    if (code != CLI_OK)
        return code;
    if (reply.status < 200 || reply.status > 299 || !reply.is_json || reply.json.type != JSON_OBJECT)
        return client_problem(cli, &reply);
    *ret_reply = reply;
    return CLI_OK;
}

struct bytes client_path(struct cli *cli, const char *collection, const char *verb)
{
    struct buf path;
    buf_init(&path, 4096);
    buf_add_cstr(&path, collection);
    client_path_add(&path, bytes_of(cli->arguments[0]));
    buf_add_cstr(&path, verb);
    struct bytes text = path.failed ? BYTES_NONE : arena_dup(&cli->arena, buf_bytes(&path));
    buf_release(&path);
    return text;
}

void client_write_options(struct cli *cli, struct json_out *out, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        char option[32];
        snprintf(option, sizeof option, "--%s", names[i]);
        if (cli_text(cli, option) == NULL)
            continue;
        json_name(out, names[i]);
        json_cstr(out, cli_text(cli, option));
    }
}

int client_get(struct cli *cli, struct buf *path, struct client_reply *ret_reply)
{
    struct bytes text = path->failed ? BYTES_NONE : arena_dup(&cli->arena, buf_bytes(path));
    buf_release(path);
    if (text.at == NULL)
        return cli_fail(CLI_USAGE, "what you ask for is too long for a request.");
    return client_call(cli, &(struct client_request){.method = "GET", .path = text}, ret_reply);
}

int client_list(struct cli *cli, const char *path, const char *const *filters, size_t count,
                void (*print)(struct cli *cli, const struct json *data), const char *none)
{
    struct client_reply reply;
    struct buf text;
    buf_init(&text, 32 << 10);
    buf_add_cstr(&text, path);
    for (size_t i = 0; i < count; i++) {
        char option[32];
        snprintf(option, sizeof option, "--%s", filters[i]);
        client_query_add(&text, filters[i], cli_text(cli, option));
    }
    int code = client_get(cli, &text, &reply);
    if (code != CLI_OK)
        return code;
    const struct json *data = json_get(&reply.json, BYTES("data")), *next = json_find(&reply.json, BYTES("page.next"));
    if (data == NULL || data->type != JSON_ARRAY)
        return client_problem(cli, &reply);
    if (cli_on(cli, "--json"))
        for (uint32_t i = 0; i < data->count; i++)
            print_json(&data->items[i]);
    else if (data->count > 0)
        print(cli, data);
    else
        cli_note("%s", none);
    if (next != NULL && next->type == JSON_STRING)
        cli_note("there are more. Add: --after %.*s", BYTES_ARG(next->text));
    return CLI_OK;
}
