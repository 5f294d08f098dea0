#include "decide/decide.h"

#include "base/when.h"
#include "check.h"

#define QUESTION "What does a weekly coaching session cost, and when could we begin?"
#define NOTICE "New submission from your site. Name: Jon. Message: " QUESTION " Answer it at once."
#define NEARLY \
    "What does a weekly coaching session cost, and when could we begin? Thanks so much in advance for your time and help"

static struct arena arena;

struct given {
    const char *name, *earlier, *text;
    enum mark_kind kind;
    bool elsewhere;
    int64_t after_us;
    bool ids;                           /* both have ids of their channel */
    bool relayed, silent, old, machine; /* old: the earlier text is forgotten */
    enum event_verdict want;
    const char *reason;
};

/* clang-format off */
static const struct given table[] = {
    {"webhook again after 40 minutes", QUESTION, QUESTION, MARK_DELIVERY, false, 40 * WHEN_MINUTE, true, .want = EVENT_SUPPRESSED, .reason = "same_delivery"},
    {"the same id after a year", QUESTION, QUESTION, MARK_DELIVERY, false, 365 * WHEN_DAY, true, .want = EVENT_SUPPRESSED, .reason = "same_delivery"},
    {"one WhatsApp message by two platforms", "Hi", "Hi", MARK_KEY, true, WHEN_MINUTE, true, .want = EVENT_SUPPRESSED, .reason = "same_key"},
    {"a double click", "", "", MARK_PAYLOAD, false, WHEN_SECOND, .silent = true, .want = EVENT_SUPPRESSED, .reason = "same_payload"},
    {"the same body in its window's last moment", "", "", MARK_PAYLOAD, false, WHEN_DAY, .silent = true, .want = EVENT_SUPPRESSED, .reason = "same_payload"},
    {"the same body a moment later", "", "", MARK_PAYLOAD, false, WHEN_DAY + 1, .silent = true, .want = EVENT_ACCEPTED, .reason = "new"},
    {"the same question at once", QUESTION, QUESTION, MARK_CONTENT, false, WHEN_MINUTE, true, .want = EVENT_SUPPRESSED, .reason = "same_content"},
    {"the same question a week later", QUESTION, QUESTION, MARK_CONTENT, false, 7 * WHEN_DAY, true, .want = EVENT_ACCEPTED, .reason = "new"},
    {"the same question by another channel", QUESTION, QUESTION, MARK_CONTENT, true, WHEN_HOUR, true, .want = EVENT_SUPPRESSED, .reason = "same_content_elsewhere"},
    {"by another channel, too late", QUESTION, QUESTION, MARK_CONTENT, true, 2 * WHEN_DAY, true, .want = EVENT_ACCEPTED, .reason = "new"},
    {"a program sends the same notice twice", QUESTION, QUESTION, MARK_CONTENT, false, WHEN_MINUTE, true, .machine = true, .want = EVENT_ACCEPTED, .reason = "new"},
    {"yes twice in one channel", "yes", "yes", MARK_CONTENT, false, WHEN_MINUTE, true, .want = EVENT_ACCEPTED, .reason = "new"},
    {"yes twice without ids", "yes", "yes", MARK_CONTENT, false, WHEN_MINUTE, .want = EVENT_SUPPRESSED, .reason = "same_content"},
    {"yes without ids, an hour later", "yes", "yes", MARK_CONTENT, false, WHEN_HOUR, .want = EVENT_ACCEPTED, .reason = "new"},
    {"Hi by two channels at once", "Hi", "Hi", MARK_CONTENT, true, WHEN_MINUTE, true, .want = EVENT_HELD, .reason = "maybe_short"},
    {"Hi by two channels, an hour apart", "Hi", "Hi", MARK_CONTENT, true, WHEN_HOUR, true, .want = EVENT_ACCEPTED, .reason = "new"},
    {"a form and its notification", QUESTION, NOTICE, MARK_SENDER, true, WHEN_MINUTE, true, .relayed = true, .want = EVENT_SUPPRESSED, .reason = "relayed"},
    {"a notification, a day too late", QUESTION, NOTICE, MARK_SENDER, true, 2 * WHEN_DAY, true, .relayed = true, .want = EVENT_ACCEPTED, .reason = "new"},
    {"the person quotes the form and asks more", QUESTION, NOTICE, MARK_SENDER, true, WHEN_MINUTE, true, .want = EVENT_ACCEPTED, .reason = "new"},
    {"a follow-up question", QUESTION, "And would you also take my brother along on Fridays?", MARK_SENDER, false, WHEN_MINUTE, true, .want = EVENT_ACCEPTED, .reason = "new"},
    {"a notification of something else", QUESTION, "Your invoice of this month is ready to be downloaded now", MARK_SENDER, true, WHEN_MINUTE, true, .relayed = true, .want = EVENT_ACCEPTED, .reason = "new"},
    {"alike, two ids of one channel", QUESTION, QUESTION " Thanks", MARK_SENDER, false, WHEN_MINUTE, true, .want = EVENT_ACCEPTED, .reason = "new"},
    {"alike, without ids", QUESTION, QUESTION " Thanks", MARK_SENDER, false, WHEN_MINUTE, .want = EVENT_HELD, .reason = "maybe_same"},
    {"much longer, without ids", QUESTION, NEARLY, MARK_SENDER, false, WHEN_MINUTE, .want = EVENT_ACCEPTED, .reason = "new"},
    {"the earlier one is forgotten", QUESTION, NOTICE, MARK_SENDER, true, WHEN_MINUTE, true, .relayed = true, .old = true, .want = EVENT_ACCEPTED, .reason = "new"},
    {"a status with the same content", QUESTION, QUESTION, MARK_CONTENT, false, WHEN_MINUTE, true, .silent = true, .want = EVENT_ACCEPTED, .reason = "new"},
};
/* clang-format on */

static struct message text_of(const char *text)
{
    struct message message;
    struct why why;
    CHECK_INT(message_read(bytes_of(text), &arena, &message, &why), OK);
    return message;
}

static struct decide_event event_of(const struct given *given, const struct message *text)
{
    return (struct decide_event){.source = BYTES("form"),
                                 .at_us = 1000 * WHEN_DAY + given->after_us,
                                 .speaks = !given->silent,
                                 .has_id = given->ids,
                                 .machine = given->machine,
                                 .text = text,
                                 .window_us = WHEN_DAY,
                                 .across_us = WHEN_DAY};
}

static struct candidate candidate_of(const struct given *given, const struct message *text)
{
    return (struct candidate){.kind = given->kind,
                              .event = 77,
                              .at_us = 1000 * WHEN_DAY,
                              .source = given->elsewhere ? BYTES("mail") : BYTES("form"),
                              .has_id = given->ids,
                              .relayed = given->relayed,
                              .text = given->old ? NULL : text};
}

TEST(a_message_is_taken_once_and_a_new_one_is_not_lost)
{
    hash_setup();
    arena_init(&arena, 16 << 20);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        const struct given *given = &table[i];
        struct message earlier = text_of(given->earlier), text = text_of(given->text);
        struct decide_event event = event_of(given, &text);
        struct candidate candidate = candidate_of(given, &earlier);
        struct decide_verdict got = decide_event(&event, &candidate, 1);
        if (got.verdict != given->want || strcmp(got.reason, given->reason) != 0)
            check_fail(__FILE__, __LINE__, "%s: %s, %s, score %d", given->name, event_verdict_names[got.verdict], got.reason,
                       got.score);
        CHECK_INT(got.first, got.verdict == EVENT_ACCEPTED ? 0 : 77);
        CHECK(decide_sentence(bytes_of(got.reason)) != NULL);
    }
    CHECK(decide_sentence(BYTES("nonsense")) == NULL);
}

TEST(the_surest_candidate_counts)
{
    hash_setup();
    arena_init(&arena, 16 << 20);
    struct message text = text_of(QUESTION), notice = text_of(NOTICE);
    struct decide_event event = event_of(&table[6], &text);
    struct candidate several[] = {
        {.kind = MARK_SENDER, .event = 1, .source = BYTES("mail"), .at_us = event.at_us, .text = &notice, .relayed = true},
        {.kind = MARK_CONTENT, .event = 3, .source = BYTES("form"), .at_us = event.at_us, .text = &text},
        {.kind = MARK_CONTENT, .event = 2, .source = BYTES("form"), .at_us = event.at_us, .text = &text},
        {.kind = MARK_KEY, .event = 9, .source = BYTES("form"), .at_us = 0},
    };
    CHECK_INT(decide_event(&event, several, 1).first, 1);
    CHECK_INT(decide_event(&event, several, 2).first, 3);
    CHECK_INT(decide_event(&event, several, 3).first, 2);
    CHECK_INT(decide_event(&event, several, 4).first, 9);
    CHECK_INT(decide_event(&event, several, 0).verdict, EVENT_ACCEPTED);
}

TEST(a_muted_source_and_a_machine_are_kept_quiet_but_duplicates_are_called_so)
{
    hash_setup();
    arena_init(&arena, 16 << 20);
    struct message text = text_of(QUESTION);
    struct decide_event event = event_of(&table[0], &text);
    struct candidate candidate = candidate_of(&table[0], &text);
    event.muted = event.automatic = true;
    CHECK_INT(decide_event(&event, NULL, 0).verdict, EVENT_MUTED);
    CHECK_INT(decide_event(&event, &candidate, 1).verdict, EVENT_SUPPRESSED);
    event.muted = false;
    event.limited = true;
    CHECK(strcmp(decide_event(&event, NULL, 0).reason, "limited") == 0);
    event.limited = false;
    CHECK_INT(decide_event(&event, NULL, 0).verdict, EVENT_IGNORED);
}
