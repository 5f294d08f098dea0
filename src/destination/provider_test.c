#include "destination/destination_read.h"

#include <stdlib.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/when.h"
#include "check.h"

struct shelf {
    struct arena arena, scratch;
    struct yaml_problems problems;
    struct provider provider;
};

static enum status read_text(struct shelf *shelf, struct bytes text)
{
    hash_setup();
    arena_init(&shelf->arena, 16 << 20);
    arena_init(&shelf->scratch, 16 << 20);
    shelf->problems.count = 0;
    struct destination_source source = {&shelf->arena, &shelf->scratch, &shelf->problems, NULL};
    return provider_read(&source, text, &shelf->provider);
}

static void put_back(struct shelf *shelf)
{
    arena_release(&shelf->arena);
    arena_release(&shelf->scratch);
}

/* ---- the files ---- */

TEST(every_provider_file_is_right_and_every_fact_has_its_evidence)
{
    static const char *const wanted[] = {"anthropic", "brevo",     "command",       "discord", "gemini",
                                         "http",      "hubspot",   "mailgun",       "nylas",   "openai-compatible",
                                         "openai",    "pipedrive", "postmark",      "resend",  "salesforce",
                                         "sendgrid",  "slack",     "slack_webhook", "smtp",    "stripe",
                                         "telnyx",    "twilio",    "whatsapp"};
    CHECK_INT(provider_count(), sizeof wanted / sizeof *wanted);
    for (size_t i = 0; i < provider_count(); i++) {
        struct shelf shelf;
        struct bytes name = provider_name(i);
        CHECK_TEXT(name, wanted[i]);
        if (read_text(&shelf, provider_text(name)) != OK)
            check_fail(__FILE__, __LINE__, "%s.yaml:%zu:%zu: %s", wanted[i], shelf.problems.at[0].line,
                       shelf.problems.at[0].column, shelf.problems.at[0].text);
        const struct provider *provider = &shelf.provider;
        CHECK(provider->title.len > 0 && provider->about.len > 0 && provider->about.at[provider->about.len - 1] == '.');
        CHECK(provider->facts.count > 0 && provider->facts.count < FACTS_MAX);
        for (size_t f = 0; f < provider->facts.count; f++) {
            CHECK(strchr("SDI2M", provider->facts.at[f].evidence) != NULL);
            CHECK(provider->facts.at[f].evidence != 'M' || !provider->facts.at[f].verified);
        }
        put_back(&shelf);
    }
    CHECK(provider_text(BYTES("nobody")).at == NULL);
    CHECK(provider_text(BYTES("")).at == NULL);
}

/* ---- what is not verified ---- */

#define HEAD "title: T\nabout: A.\nkind: http\ncalls:\n- {name: c, evidence: D, verified: true, "
#define GOOD "evidence: D, verified: true"
#define BAD "evidence: M, verified: false"
#define DOUBTED "evidence: 2, verified: false"

static const struct {
    const char *text;
    enum capability capability;
    enum carrier_place key;
    int64_t window_us;
    size_t outcomes, markers, probes;
    bool reads;
} doubts[] = {
    {HEAD "key: {in: header, name: K, " GOOD "}, window: {is: 1h, " GOOD "}}", CAPABILITY_IDEMPOTENT, CARRIER_HEADER, WHEN_HOUR,
     0, 0, 0, false},
    {HEAD "key: {in: header, name: K, " BAD "}, window: {is: 1h, " GOOD "}}", CAPABILITY_NONE, CARRIER_NOWHERE, 0, 0, 0, 0,
     false},
    {HEAD "key: {in: header, name: K, " DOUBTED "}, window: {is: 1h, " GOOD "}}", CAPABILITY_NONE, CARRIER_NOWHERE, 0, 0, 0, 0,
     false},
    {HEAD "key: {in: header, name: K, " GOOD "}, window: {is: 1h, " BAD "}}", CAPABILITY_NONE, CARRIER_HEADER, 0, 0, 0, 0, false},
    {HEAD "key: {in: header, name: K, " GOOD "}}", CAPABILITY_NONE, CARRIER_HEADER, 0, 0, 0, 0, false},
    {HEAD "key: {in: natural, " BAD "}, window: {is: always, " GOOD "}}", CAPABILITY_NONE, CARRIER_NOWHERE, 0, 0, 0, 0, false},
    {HEAD "probes: [{method: GET, path: /a, proves: [absent], " GOOD "}]}", CAPABILITY_QUERY, CARRIER_NOWHERE, 0, 0, 0, 1, false},
    {HEAD "probes: [{method: GET, path: /a, proves: [absent], " BAD "}]}", CAPABILITY_NONE, CARRIER_NOWHERE, 0, 0, 0, 0, false},
    {HEAD "markers: [{in: json, name: k, " BAD "}, {in: json, name: m, " GOOD "}]}", CAPABILITY_NONE, CARRIER_NOWHERE, 0, 0, 1, 0,
     false},
    {HEAD "outcomes: [{status: 5xx, outcome: retry, " BAD "}, {status: 5xx, outcome: refused, " BAD
          "}, {status: 5xx, outcome: done, " BAD "}]}",
     CAPABILITY_NONE, CARRIER_NOWHERE, 0, 0, 0, 0, false},
    {HEAD "outcomes: [{status: 2xx, outcome: unknown, " BAD "}]}", CAPABILITY_NONE, CARRIER_NOWHERE, 0, 1, 0, 0, false},
    {HEAD "reads: true}", CAPABILITY_NONE, CARRIER_NOWHERE, 0, 0, 0, 0, true},
    {"title: T\nabout: A.\nkind: http\ncalls:\n- {name: c, " BAD ", reads: true}", CAPABILITY_NONE, CARRIER_NOWHERE, 0, 0, 0, 0,
     false},
};

TEST(safety_never_rests_on_what_nobody_has_verified)
{
    for (size_t i = 0; i < sizeof doubts / sizeof *doubts; i++) {
        struct shelf shelf;
        if (read_text(&shelf, bytes_of(doubts[i].text)) != OK)
            check_fail(__FILE__, __LINE__, "%s: %s", doubts[i].text, shelf.problems.at[0].text);
        const struct call_rules *call = &shelf.provider.calls[0];
        if (call->capability != doubts[i].capability || call->key.place != doubts[i].key ||
            call->window_us != doubts[i].window_us || call->outcome_count != doubts[i].outcomes ||
            call->marker_count != doubts[i].markers || call->probe_count != doubts[i].probes || call->reads != doubts[i].reads)
            check_fail(__FILE__, __LINE__, "%s: %s %d %lld %zu %zu %zu %d", doubts[i].text, capability_names[call->capability],
                       (int)call->key.place, (long long)call->window_us, call->outcome_count, call->marker_count,
                       call->probe_count, call->reads);
        put_back(&shelf);
    }
}

TEST(a_url_that_nobody_has_verified_is_not_used)
{
    struct shelf shelf;
    CHECK_INT(read_text(&shelf, BYTES("title: T\nabout: A.\nkind: http\nurl: {is: 'https://a.b', " GOOD "}\n")), OK);
    CHECK_TEXT(shelf.provider.url, "https://a.b");
    put_back(&shelf);
    CHECK_INT(read_text(&shelf, BYTES("title: T\nabout: A.\nkind: http\nurl: {is: 'https://a.b', " BAD "}\n")), OK);
    CHECK(shelf.provider.url.at == NULL);
    put_back(&shelf);
}

/* ---- bad files ---- */

#define TOP "title: T\nabout: A.\nkind: http\n"
#define CALL TOP "calls:\n- {name: c, " GOOD ", "

static const struct {
    const char *text, *fragment;
} bad_files[] = {
    {"", "a provider is settings"},
    {"- a\n", "a provider is settings"},
    {"about: A.\nkind: http\n", "wants a title"},
    {"title: T\nkind: http\n", "wants about"},
    {"title: T\nabout: A.\n", "wants a kind"},
    {TOP "uri: x\n", "unknown setting 'uri'; did you mean 'url'?"},
    {TOP "url: 'https://a.b'\n", "url wants settings"},
    {TOP "url: {is: 'https://a.b'}\n", "a fact needs its evidence"},
    {TOP "url: {is: 'https://a.b', evidence: D}\n", "a fact needs its evidence"},
    {TOP "url: {is: 'https://a.b', verified: true}\n", "a fact needs its evidence"},
    {TOP "url: {is: 'https://a.b', evidence: M, verified: true}\n", "known from memory only is not verified"},
    {TOP "url: {is: 'https://a.b', evidence: X, verified: true}\n", "evidence is S, D, I, 2 or M"},
    {TOP "url: {is: 'ftp://a.b', " GOOD "}\n", "url wants a base URL"},
    {TOP "url: {is: 'https://u:p@a.b', " GOOD "}\n", "url wants a base URL"},
    {TOP "url: {is: 'https://a.b/?x', " GOOD "}\n", "url wants a base URL"},
    {TOP "url: {" GOOD "}\n", "wants a value"},
    {TOP "auth: {is: header, " GOOD "}\n", "which header?"},
    {TOP "rate: {is: 10, " GOOD "}\n", "rate is calls per time"},
    {TOP "rate: {is: 0/s, " GOOD "}\n", "rate is calls per time"},
    {TOP "settings: {host: x}\n", "'host' belongs to a destination of kind smtp"},
    {TOP "calls: [x]\n", "a call is settings"},
    {TOP "calls: [{" GOOD "}]\n", "a call wants a name"},
    {TOP "calls: [{name: c}]\n", "a fact needs its evidence"},
    {CALL "window: 24h}\n", "window wants settings"},
    {CALL "window: {is: 24, " GOOD "}}\n", "window is 1m to 400d"},
    {CALL "window: {is: 10s, " GOOD "}}\n", "window is 1m to 400d"},
    {CALL "key: {name: K, " GOOD "}}\n", "this wants a place"},
    {CALL "key: {in: header, " GOOD "}}\n", "this wants a name"},
    {CALL "key: {in: natural, name: K, " GOOD "}}\n", "nothing is planted there"},
    {CALL "key: {in: header, name: K, size: 20, " GOOD "}}\n", "add codec: base32"},
    {CALL "key: {in: header, name: K, size: 8, codec: hex, " GOOD "}}\n", "size is 16 to 1024"},
    {CALL "key: {in: header, name: K, codec: rot13, " GOOD "}}\n", "codec is plain, uuid, hex, base32 or message_id"},
    {CALL "key: {in: json, name: K, with: {a: [1]}, " GOOD "}}\n", "a path and its constant"},
    {CALL "outcomes: [{outcome: done, " GOOD "}]}\n", "a rule wants a status"},
    {CALL "outcomes: [{status: 2xx, " GOOD "}]}\n", "a rule wants an outcome"},
    {CALL "outcomes: [{status: 2x, outcome: done, " GOOD "}]}\n", "a status is a number"},
    {CALL "outcomes: [{status: 500-400, outcome: done, " GOOD "}]}\n", "a status is a number"},
    {CALL "outcomes: [{status: 200, values: [a], outcome: done, " GOOD "}]}\n", "of which field?"},
    {CALL "outcomes: [{status: 200, header_is: a, outcome: done, " GOOD "}]}\n", "which header?"},
    {CALL "outcomes: [done]}\n", "an outcome is settings"},
    {CALL "markers: [x]}\n", "a marker is settings"},
    {CALL "probes: [x]}\n", "a probe is settings"},
    {CALL "probes: [{path: /a, proves: [absent], " GOOD "}]}\n", "a probe wants a method"},
    {CALL "probes: [{method: GET, proves: [absent], " GOOD "}]}\n", "a probe wants a path"},
    {CALL "probes: [{method: GET, path: /a, " GOOD "}]}\n", "what does it prove?"},
    {CALL "probes: [{method: GET, path: a, proves: [absent], " GOOD "}]}\n", "begins with '/'"},
    {CALL "probes: [{method: GET, path: /a, proves: [maybe], " GOOD "}]}\n", "found, absent or both"},
    {CALL "probes: [{method: GET, path: /a, proves: [found], " GOOD "}]}\n", "what merely looks alike is not ours"},
    {CALL "probes: [{method: GET, path: /a, match: {x: y}, proves: [found], " GOOD "}]}\n",
     "what merely looks alike is not ours"},
    {CALL "probes: [{method: GET, path: '/{kee}', proves: [absent], " GOOD "}]}\n", "check the braces"},
    {CALL "probes: [{method: GET, path: '/{key', proves: [absent], " GOOD "}]}\n", "check the braces"},
    {CALL "probes: [{method: GET, path: '/key}', proves: [absent], " GOOD "}]}\n", "check the braces"},
    {CALL "probes: [{method: GET, path: '/{path.0}', proves: [absent], " GOOD "}]}\n", "check the braces"},
    {CALL "probes: [{method: GET, path: '/{sent.}', proves: [absent], " GOOD "}]}\n", "check the braces"},
    {CALL "probes: [{method: GET, path: '/{sent.a:upper}', proves: [absent], " GOOD "}]}\n", "check the braces"},
    {CALL "probes: [{method: GET, path: /a, match: {x: '{y}'}, proves: [absent], " GOOD "}]}\n", "check the braces"},
    {CALL "memo: {ends: [x], " GOOD "}}\n", "an end is settings such as"},
    {CALL "memo: {ends: [{data: a, values: [a]}], " GOOD "}}\n", "of which field"},
    {CALL "memo: {ends: [{data: a, field: b}], " GOOD "}}\n", "an event's data or a field of it"},
    {CALL "memo: {ends: [{data: a}]}}\n", "a fact needs its evidence"},
    {CALL "reads: true, memo: {" GOOD "}}\n", "that do not merely read"},
    {CALL "paths: [a]}\n", "a path begins with '/'"},
    {CALL "paths: ['/a/**/b']}\n", "'**' only at its end"},
    {CALL "paths: ['/a?b']}\n", "has no query"},
};

TEST(a_bad_provider_file_is_refused_with_what_to_write)
{
    for (size_t i = 0; i < sizeof bad_files / sizeof *bad_files; i++) {
        struct shelf shelf;
        enum status status = read_text(&shelf, bytes_of(bad_files[i].text));
        if (status != INVALID || shelf.problems.count != 1 || strstr(shelf.problems.at[0].text, bad_files[i].fragment) == NULL)
            check_fail(__FILE__, __LINE__, "%s: %zu problems, the first: %s; want %s", bad_files[i].text, shelf.problems.count,
                       shelf.problems.count > 0 ? shelf.problems.at[0].text : "none", bad_files[i].fragment);
        put_back(&shelf);
    }
}

/* ---- the documentation ---- */

static void write_list(struct buf *out, const struct bytes *list, size_t count, const char *none)
{
    for (size_t i = 0; i < count; i++)
        buf_printf(out, "%s`%.*s`", i > 0 ? " " : "", BYTES_ARG(list[i]));
    if (count == 0)
        buf_add_cstr(out, none);
}

static void write_carrier(struct buf *out, const struct carrier *carrier)
{
    static const char *const places[] = {"–", "header", "JSON", "form", "query", "the call itself"};
    static const char *const codecs[] = {"", ", UUID", ", hex", ", base 32", ", Message-ID"};
    buf_add_cstr(out, places[carrier->place]);
    if (carrier->name.len > 0)
        buf_printf(out, " `%.*s`%s", BYTES_ARG(carrier->name), codecs[carrier->codec.kind]);
}

static void write_probes(struct buf *out, const struct call_rules *call)
{
    bool found = false, absent = false;
    for (size_t i = 0; i < call->probe_count; i++) {
        found |= call->probes[i].found_is_sure;
        absent |= call->probes[i].absent_is_sure;
    }
    buf_add_cstr(out, found && absent ? "found, absent" : found ? "found" : absent ? "absent" : "–");
}

/* One line of the table of calls. */
static void write_call(struct buf *out, struct bytes provider, const struct call_rules *call)
{
    char window[32] = "–";
    if (call->window_us > 0)
        window[when_format_duration(call->window_us, window)] = '\0';
    buf_printf(out, "| `%.*s` | %.*s | ", BYTES_ARG(provider), BYTES_ARG(call->name));
    write_list(out, call->methods, call->method_count, "any");
    buf_add_cstr(out, " ");
    write_list(out, call->paths, call->path_count, "any path");
    buf_printf(out, " | %s%s | ", call->reads ? "reads" : capability_names[call->capability], call->memo != NULL ? ", memo" : "");
    write_carrier(out, &call->key);
    buf_printf(out, " | %s | ", call->window_us >= 400 * WHEN_DAY ? "always" : window);
    if (call->marker_count > 0)
        write_carrier(out, &call->markers[0]);
    else
        buf_add_cstr(out, "–");
    buf_add_cstr(out, " | ");
    write_probes(out, call);
    buf_add_cstr(out, " |\n");
}

/* One line of the table of providers. */
static void write_provider(struct buf *out, struct bytes name, const struct provider *provider)
{
    size_t doubts_left = 0;
    buf_printf(out, "| `%.*s` | %.*s | %s | %zu | ", BYTES_ARG(name), BYTES_ARG(provider->about),
               destination_kind_names[provider->kind], provider->facts.count);
    for (size_t i = 0; i < provider->facts.count; i++)
        if (!provider->facts.at[i].verified)
            buf_printf(out, "%s%s", doubts_left++ > 0 ? ", " : "", provider->facts.at[i].what);
    buf_add_cstr(out, doubts_left > 0 ? " |\n" : "– |\n");
}

TEST(the_tables_of_the_documentation_say_what_the_files_say)
{
    struct bytes root = bytes_of(getenv("SEMEL_SOURCE_DIR"));
    char path[1024];
    struct buf want;
    if (root.len == 0)
        SKIP("SEMEL_SOURCE_DIR is not set");
    snprintf(path, sizeof path, "%.*s/docs/reference/providers.md", BYTES_ARG(root));
    struct bytes text = check_read_file(path);
    buf_init(&want, 1 << 20);
    for (int table = 0; table < 2; table++) {
        for (size_t i = 0; i < provider_count(); i++) {
            struct shelf shelf;
            CHECK_INT(read_text(&shelf, provider_text(provider_name(i))), OK);
            for (size_t c = 0; table == 1 && c < shelf.provider.call_count; c++)
                write_call(&want, provider_name(i), &shelf.provider.calls[c]);
            if (table == 0)
                write_provider(&want, provider_name(i), &shelf.provider);
            put_back(&shelf);
        }
        struct bytes rows = buf_bytes(&want);
        if (memmem(text.at, text.len, rows.at, rows.len) == NULL)
            check_fail(__FILE__, __LINE__, "docs/reference/providers.md wants these rows:\n%.*s", BYTES_ARG(rows));
        buf_clear(&want);
    }
    buf_release(&want);
    free((char *)text.at);
}
