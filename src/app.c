#include "app.h"

#include <curl/curl.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "agent/gateway.h"
#include "api/api.h"
#include "api/mail.h"
#include "base/when.h"
#include "runs/runs.h"

#define GRACE_US (10 * WHEN_SECOND)
#define OTHERS_US (2 * WHEN_SECOND)
#define REFRESH_EVERY_US (1 * WHEN_SECOND)
#define LLM_EVERY_US (1 * WHEN_SECOND)

enum { EXIT_DATA = 65, EXIT_UNAVAILABLE = 69, EXIT_SOFTWARE = 70, EXIT_TEMPFAIL = 75, EXIT_CONFIG = 78 };

struct app {
    const struct app_options *options;
    struct engine *engine;
    struct api api;
    sigset_t signals;
    pthread_t signal_thread;
    struct tls *mail_tls;
};

static int complain(int code, const char *sentence)
{
    fprintf(stderr, "semel: %s\n", sentence);
    return code;
}

static int exit_code_of(enum status status)
{
    switch (status) {
    case INVALID:
        return EXIT_CONFIG;
    case CONFLICT:
    case RETRY:
    case FULL:
        return EXIT_TEMPFAIL;
    case OK:
    case NOTHING:
    case UNKNOWN:
    case BROKEN:
        break;
    }
    return EXIT_DATA;
}

/* ---- writing before the threads run ---- */

static void no_answer(struct engine_command *command)
{
    (void)command;
}

static enum status write_now(struct app *app,
                             enum status (*write)(struct store *, struct ledger *, struct engine_command *, struct why *),
                             void *order, struct why *why)
{
    struct arena arena;
    arena_init(&arena, 1 << 20);
    struct engine_command command = {.write = write, .user = order, .arena = &arena, .done = no_answer};
    engine_step(app->engine, &command);
    arena_release(&arena);
    *why = command.why;
    return command.status;
}

/* ---- policy ---- */

static enum status read_file(const char *path, struct buf *out, struct why *why)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL)
        return why_set(why, INVALID, "the policy %s cannot be read: %s", path, strerror(errno));
    char block[4096];
    size_t got;
    while ((got = fread(block, 1, sizeof block, file)) > 0)
        buf_add(out, (struct bytes){block, got});
    bool failed = ferror(file) != 0;
    fclose(file);
    if (failed || out->failed)
        return why_set(why, INVALID, "the policy %s cannot be read, or is larger than 256 KiB", path);
    return OK;
}

static void print_problems(const char *path, const struct yaml_problems *problems)
{
    for (size_t i = 0; i < problems->count; i++)
        fprintf(stderr, "%s:%zu:%zu: %s\n", path, problems->at[i].line, problems->at[i].column, problems->at[i].text);
}

static enum status parse_policy(const char *name, struct bytes text, struct policy **ret_policy, struct why *why)
{
    struct yaml_problems *problems = calloc(1, sizeof *problems);
    ASSERT(problems != NULL);
    enum status status = policy_parse(text, ret_policy, problems);
    if (status != OK) {
        print_problems(name, problems);
        status = why_set(why, INVALID, "the policy has %zu problem%s; nothing was started", problems->count,
                         problems->count == 1 ? "" : "s");
    }
    free(problems);
    return status;
}

static enum status apply_file(struct app *app, struct why *why)
{
    struct buf text;
    buf_init(&text, POLICY_SIZE_MAX);
    enum status status = read_file(app->options->policy_file, &text, why);
    if (status == OK)
        status = parse_policy(app->options->policy_file, buf_bytes(&text), &app->api.policy, why);
    if (status == OK) {
        struct policy_order order = {.text = buf_bytes(&text), .actor = BYTES("start"), .hash = app->api.policy->hash};
        status = write_now(app, policy_write, &order, why);
        app->api.policy_version = order.version;
    }
    buf_release(&text);
    return status;
}

static enum status load_stored(struct app *app, struct why *why)
{
    struct arena arena;
    arena_init(&arena, 1 << 20);
    struct row_policy row = {0};
    enum status status = policy_load(engine_store(app->engine), &arena, &row, why);
    if (status == OK || status == NOTHING)
        status = parse_policy("stored policy", row.text.at != NULL ? row.text : BYTES(""), &app->api.policy, why);
    app->api.policy_version = row.version;
    arena_release(&arena);
    return status;
}

/* ---- tokens ---- */

/* The first `serve` leaves an admin token where only the owner of the data can read it. */
static enum status write_admin_token(struct app *app, struct why *why)
{
    char path[4096];
    const char *dir = app->options->data_dir;
    snprintf(path, sizeof path, "%s/admin.token", dir);
    struct token_order order = {.space = BYTES("main"), .name = BYTES("admin"), .actor = BYTES("start"), .scopes = SCOPE_ADMIN};
    struct env *env = env_real();
    order.expires_us = env->wall_us(env) + 365 * WHEN_DAY;
    token_make(env, engine_pepper(app->engine), order.text, &order.hash, &order.id);
    if (mkdir(dir, 0700) != 0 && errno != EEXIST)
        return why_set(why, INVALID, "the data directory %s cannot be made: %s", dir, strerror(errno));
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return why_set(why, INVALID, "%s cannot be written: %s", path, strerror(errno));
    bool written = dprintf(fd, "%s\n", order.text) > 0 && fsync(fd) == 0;
    close(fd);
    if (!written)
        return why_set(why, FULL, "%s cannot be written", path);
    TRY(write_now(app, token_write, &order, why));
    fprintf(stderr,
            "semel: an admin token is in %s. Make others with: semel token create --data %s --name NAME --scopes claim,read\n",
            path, dir);
    return access_load(engine_store(app->engine), &app->api.access, why);
}

static enum status load_access(struct app *app, struct why *why)
{
    TRY(access_load(engine_store(app->engine), &app->api.access, why));
    if (app->options->open || app->api.access->count > 0)
        return OK;
    access_free(app->api.access);
    app->api.access = NULL;
    return write_admin_token(app, why);
}

/* ---- secrets ---- */

/* The file that holds the master key: what the operator says, what the service manager hands over, or one of our own. Several
 * nodes cannot share one of our own, so on PostgreSQL there is none. */
static struct secrets_config secrets_config_of(const struct app_options *options, char *path, size_t size)
{
    const char *credentials = getenv("CREDENTIALS_DIRECTORY");
    struct secrets_config config = {.env = env_real(), .key_path = path};
    if (options->master_key != NULL) {
        config.key_path = options->master_key;
        return config;
    }
    if (credentials != NULL) {
        snprintf(path, size, "%s/semel-master-key", credentials);
        if (access(path, F_OK) == 0)
            return config;
    }
    snprintf(path, size, "%s/master.key", options->data_dir);
    config.own_key = options->postgres_url == NULL;
    config.key_path = config.own_key ? path : NULL;
    return config;
}

static enum status open_secrets(struct app *app, struct why *why)
{
    char path[4096];
    struct secrets_config config = secrets_config_of(app->options, path, sizeof path);
    TRY(secrets_open(&config, &app->api.secrets, why));
    TRY(secrets_refresh(app->api.secrets, engine_store(app->engine), why));
    size_t closed = secrets_without_key(app->api.secrets);
    if (closed > 0) /* the ledger does not need them: go on, but say so */
        LOG(LOG_ERROR, "secrets cannot be opened: their master key is missing", LOG_INT("secrets", (int64_t)closed),
            LOG_CSTR("file", config.key_path != NULL ? config.key_path : "none was given"));
    return OK;
}

/* ---- signals ---- */

static void *signal_main(void *arg)
{
    struct app *app = arg;
    int signal_number;
    sigwait(&app->signals, &signal_number);
    if (signal_number == SIGUSR2) /* the daemon ended by itself */
        return NULL;
    LOG(LOG_INFO, "stopping", LOG_CSTR("signal", signal_number == SIGINT ? "SIGINT" : "SIGTERM"));
    atomic_store(&app->api.stopping, true);
    engine_drain(app->engine);
    http_server_stop(app->api.server, GRACE_US);
    return NULL;
}

static void block_signals(struct app *app)
{
    sigemptyset(&app->signals);
    sigaddset(&app->signals, SIGINT);
    sigaddset(&app->signals, SIGTERM);
    sigaddset(&app->signals, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &app->signals, NULL);
    signal(SIGPIPE, SIG_IGN);
}

/* ---- start and stop ---- */

static enum status open_delivery(struct app *app, struct why *why)
{
    struct act_config config = {.engine = app->engine};
    TRY(transport_open(env_real(), app->api.secrets, &config.transport, why));
    TRY(act_open(&config, &app->api.act, why));
    TRY(flow_open(app->engine, app->api.act, &app->api.flow, why));
    api_take_policy(&app->api, app->api.policy, app->api.policy_version);
    return OK;
}

/* `semel run` without a daemon uses the data for moments: that is waited for. */
static enum status open_engine(struct app *app, struct why *why)
{
    const struct engine_config config = {.env = env_real(),
                                         .data_dir = app->options->data_dir,
                                         .postgres_url = app->options->postgres_url,
                                         .forget = outbox_forget};
    int64_t until_us = env_real()->boot_us(env_real()) + OTHERS_US;
    for (;;) {
        enum status status = engine_open(&config, &app->engine, why);
        if (status != CONFLICT || env_real()->boot_us(env_real()) > until_us)
            return status;
        usleep(20000);
    }
}

static enum status open_data(struct app *app, struct why *why)
{
    TRY(open_engine(app, why));
    app->api.engine = app->engine;
    app->api.open = app->options->open;
    app->api.storage = app->options->postgres_url != NULL ? "postgres" : "sqlite";
    app->api.data_dir = app->options->data_dir;
    app->api.started_us = env_real()->boot_us(env_real());
    TRY(app->options->policy_file != NULL ? apply_file(app, why) : load_stored(app, why));
    TRY(open_secrets(app, why));
    TRY(open_delivery(app, why));
    TRY(llm_open(&app->api.llm, why));
    return load_access(app, why);
}

/* What the requests of one turn of the loop want written, together. */
static void between_turns(void *api)
{
    engine_turn(((struct api *)api)->engine);
}

static void stand_in(void *server)
{
    http_server_stand_in(server);
}

static enum status open_http(struct app *app, struct why *why)
{
    struct http_server_config config = {
        .listen = app->options->listen,
        .tls_cert = app->options->tls_cert,
        .tls_key = app->options->tls_key,
        .limits = http_limits_default,
        .handle = api_handle,
        .refuse = api_refuse,
        .body_size = api_body_size,
        .between = between_turns,
        .user = &app->api,
    };
    TRY(http_server_open(&config, &app->api.server, why));
    http_server_every(app->api.server, REFRESH_EVERY_US, api_refresh, &app->api);
    http_server_every(app->api.server, LLM_EVERY_US, llm_tick, &app->api);
    http_server_every(app->api.server, REFRESH_EVERY_US, backtest_tick, &app->api);
    engine_stand_in(app->engine, stand_in, app->api.server);
    return OK;
}

/* On the HTTP face's loop: policy, tokens and answers are there. With `semel up` there are no tokens to log in with. */
static enum status open_mail(struct app *app, struct why *why)
{
    const struct app_options *options = app->options;
    const char *listen[API_MAILS] = {options->lmtp, options->smtp, options->smtps};
    if (options->tls_cert != NULL && (options->smtp != NULL || options->smtps != NULL))
        TRY(tls_open(options->tls_cert, options->tls_key, NULL, &app->mail_tls, why));
    for (size_t i = 0; i < API_MAILS; i++) {
        const struct smtp_server_config config = {
            .loop = http_server_loop(app->api.server),
            .listen = listen[i],
            .lmtp = i == 0,
            .tls = i > 0 ? app->mail_tls : NULL,
            .tls_at_once = i == 2,
            .login = i > 0 && !options->open ? mail_login : NULL,
            .login_required = i > 0 && options->smtp_login,
            .limits = smtp_limits_default,
            .find = mail_find,
            .deliver = mail_deliver,
            .wall_us = env_real_wall_us,
            .user = &app->api,
        };
        if (listen[i] != NULL)
            TRY(smtp_server_open(&config, &app->api.mail[i], why));
    }
    return OK;
}

static void stop_mail(struct app *app)
{
    for (size_t i = 0; i < API_MAILS; i++)
        if (app->api.mail[i] != NULL)
            smtp_server_stop(app->api.mail[i]);
}

static void free_mail(struct app *app)
{
    for (size_t i = 0; i < API_MAILS; i++)
        if (app->api.mail[i] != NULL)
            smtp_server_free(app->api.mail[i]);
}

static void greet(const struct app *app)
{
    const char *scheme = app->options->tls_cert != NULL ? "https" : "http", *address = http_server_address(app->api.server);
    const char *where = app->options->postgres_url != NULL ? "PostgreSQL" : app->options->data_dir;
    printf("semel %s   data %s   mode %s   %s\n", SEMEL_VERSION, where, policy_mode_names[app->api.policy->defaults.mode],
           app->options->open ? "open on this computer only" : "tokens required");
    printf("├─ API      %s://%s/v1          (OpenAPI: %s://%s/v1/openapi.json)\n", scheme, address, scheme, address);
    printf("├─ Health   %s://%s/readyz      (metrics: %s://%s/metrics)\n", scheme, address, scheme, address);
    static const char *const names[API_MAILS] = {"LMTP", "SMTP", "SMTPS"};
    for (size_t i = 0; i < API_MAILS; i++)
        if (app->api.mail[i] != NULL)
            printf("├─ Mail     %s on %s\n", names[i], smtp_server_address(app->api.mail[i]));
    printf("└─ Try      semel claim --workflow demo --key hello-1\n");
    fflush(stdout);
}

static enum status start(struct app *app, struct why *why)
{
    TRY(open_data(app, why));
    TRY(open_http(app, why));
    TRY(open_mail(app, why));
    TRY(engine_start(app->engine, why));
    TRY(act_start(app->api.act, why));
    flow_wake(app->api.flow); /* what was staged before */
    if (pthread_create(&app->signal_thread, NULL, signal_main, app) != 0)
        return why_set(why, FULL, "no thread could be started");
    return OK;
}

static void run(struct app *app)
{
    greet(app);
    LOG(LOG_INFO, "ready", LOG_CSTR("listen", http_server_address(app->api.server)), LOG_CSTR("storage", app->api.storage));
    http_server_run(app->api.server);
    pthread_kill(app->signal_thread, SIGUSR2);
    pthread_join(app->signal_thread, NULL);
}

int app_run(const struct app_options *options)
{
    struct app *app = calloc(1, sizeof *app);
    ASSERT(app != NULL);
    app->options = options;
    umask(077);
    hash_setup();
    seal_setup();
    store_setup();
    curl_global_init(CURL_GLOBAL_ALL);
    log_setup(options->log_level, options->log_format, env_real_wall_us);
    block_signals(app);
    struct why why = {""};
    enum status status = start(app, &why);
    int code = status == OK ? 0 : complain(exit_code_of(status), why.text);
    if (status == OK)
        run(app);
    gateway_close(&app->api);
    act_close(app->api.act);
    flow_stop(app->api.flow);
    if (status == OK)
        runs_flush(&app->api);
    engine_close(app->engine); /* answers what is left through the loop's queue */
    flow_close(app->api.flow);
    stop_mail(app);
    if (app->api.server != NULL)
        http_server_close(app->api.server); /* runs the loop until all is closed */
    gateway_free(&app->api);
    backtest_end(&app->api);
    free_mail(app);
    tls_close(app->mail_tls);
    tally_free(app->api.tally);
    llm_close(app->api.llm);
    policy_free(app->api.policy);
    access_free(app->api.access);
    secrets_close(app->api.secrets);
    if (status == OK)
        LOG(LOG_INFO, "stopped");
    free(app);
    return code;
}
