#include "api/mail.h"

#include "base/log.h"
#include "flow/intake.h"
#include "mail/mailbox.h"

/* The mail, its record and what was understood; a mail is bounded by the source's body_max. */
#define MAIL_ARENA_SLACK ((size_t)8 << 20)

/* ---- whose mail it is ---- */

static bool listens(const struct source *source, struct bytes address, bool wild)
{
    for (size_t i = 0; i < source->address_count; i++) {
        struct bytes pattern = source->addresses[i];
        bool is_wild = bytes_starts(pattern, BYTES("*@")) || pattern.at[pattern.len - 1] == '*';
        if (is_wild == wild && mailbox_pattern_matches(pattern, address))
            return true;
    }
    return false;
}

bool mail_find(struct bytes address, char *ret_source, void *user)
{
    const struct policy *policy = ((struct api *)user)->policy;
    const struct source *found = NULL, *named = policy_source(policy, mailbox_name(address));
    for (int wild = 0; wild < 2; wild++)
        for (size_t i = 0; i < policy->source_count && found == NULL; i++)
            if (listens(&policy->sources[i], address, wild == 1))
                found = &policy->sources[i];
    if (found == NULL && named != NULL && named->reads == READS_MAIL)
        found = named;
    if (found == NULL || found->name.len > SMTP_SOURCE_SIZE_MAX)
        return false;
    snprintf(ret_source, SMTP_SOURCE_SIZE_MAX + 1, "%.*s", BYTES_ARG(found->name));
    return true;
}

bool mail_login(struct bytes password, void *user)
{
    const struct api *api = user;
    struct env *env = engine_env(api->engine);
    const struct row_token *token = access_check(api->access, engine_pepper(api->engine), password, env->wall_us(env));
    return token != NULL && bytes_is(token->space, "main") && (token->scopes & (SCOPE_CLAIM | SCOPE_ADMIN)) != 0 &&
           (token->scopes & TOKEN_STOPPED) == 0;
}

/* ---- keeping it ---- */

struct mail {
    struct api *api;
    struct smtp_delivery *delivery;
    struct arena arena;
    struct intake intake;
    struct pair header;
    struct engine_command command;
};

static void answer(struct mail *mail, enum status status, const char *sentence)
{
    struct smtp_delivery *delivery = mail->delivery;
    arena_release(&mail->arena);
    free(mail);
    smtp_delivered(delivery, status, sentence);
}

static void staged(void *user)
{
    struct mail *mail = user;
    if (mail->command.status == OK)
        flow_wake(mail->api->flow);
    answer(mail, mail->command.status == OK ? OK : RETRY, NULL);
}

static void command_done(struct engine_command *command)
{
    struct mail *mail = command->user;
    http_server_post(mail->api->server, staged, mail);
}

static enum status write_staged(struct store *store, struct ledger *ledger, struct engine_command *command, struct why *why)
{
    struct mail *mail = command->user;
    return intake_write(store, ledger, &mail->intake, why);
}

static void refuse(struct mail *mail, struct bytes why)
{
    struct why sentence;
    LOG(LOG_WARN, "a mail was refused", LOG_TEXT("source", mail->delivery->source), LOG_CSTR("peer", mail->delivery->peer),
        LOG_TEXT("why", why));
    flow_refused(mail->api->flow, mail->delivery->source);
    why_set(&sentence, INVALID, "%.*s", BYTES_ARG(why));
    answer(mail, INVALID, sentence.text);
}

/* The door is the listener: what came through it is not asked for a signature. */
static enum status read_mail(struct mail *mail, const struct source *source, struct why *why)
{
    struct source trusted = *source;
    struct env *env = engine_env(mail->api->engine);
    trusted.verify_none = true;
    trusted.reads = READS_MAIL;
    mail->header = (struct pair){BYTES("Content-Type"), BYTES("message/rfc822")};
    mail->intake =
        (struct intake){.source = &trusted, .secrets = mail->api->secrets, .space = BYTES("main"), .arena = &mail->arena};
    mail->intake.request = (struct receive_request){.method = BYTES("POST"),
                                                    .url = arena_printf(&mail->arena, "/in/%.*s", BYTES_ARG(source->name)),
                                                    .body = mail->delivery->raw,
                                                    .headers = &mail->header,
                                                    .header_count = 1,
                                                    .now_us = env->wall_us(env)};
    return intake_read(&mail->intake, why);
}

static void submit(struct mail *mail)
{
    mail->command.write = write_staged;
    mail->command.user = mail;
    mail->command.done = command_done;
    mail->command.arena = &mail->arena;
    engine_queue(mail->api->engine, &mail->command);
}

void mail_deliver(struct smtp_delivery *delivery, void *user)
{
    struct api *api = user;
    const struct source *source = policy_source(api->policy, delivery->source);
    struct mail *mail = calloc(1, sizeof *mail);
    struct why why;
    if (mail == NULL || source == NULL) { /* the policy changed since RCPT */
        free(mail);
        smtp_delivered(delivery, RETRY, NULL);
        return;
    }
    mail->api = api;
    mail->delivery = delivery;
    arena_init(&mail->arena, 3 * delivery->raw.len + MAIL_ARENA_SLACK);
    if (delivery->raw.len > (size_t)source->body_max)
        refuse(mail, BYTES("the mail is larger than its source takes"));
    else if (read_mail(mail, source, &why) != OK)
        answer(mail, RETRY, NULL);
    else if (mail->intake.result.end != RECEIVE_EVENTS)
        refuse(mail, mail->intake.result.because);
    else
        submit(mail);
}
