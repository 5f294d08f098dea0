#include "guard/url.h"

#include "base/json.h"
#include "check.h"
#include "guard/guard.h"

static enum status parse(const char *text, struct guard_url *ret_url)
{
    struct why why = {""};
    return guard_url_parse(bytes_of(text), ret_url, &why);
}

TEST(a_plain_url_is_divided_into_its_parts)
{
    static const struct {
        const char *text, *host, *target;
        enum guard_scheme scheme;
        uint16_t port;
        bool literal;
    } table[] = {
        {"http://example.com", "example.com", "", GUARD_HTTP, 80, false},
        {"HTTPS://Example.COM/", "Example.COM", "/", GUARD_HTTPS, 443, false},
        {"https://a-b.example:8443/x/../y?q=1&r=%2F", "a-b.example", "/x/../y?q=1&r=%2F", GUARD_HTTPS, 8443, false},
        {"http://xn--mnchen-3ya.de?x", "xn--mnchen-3ya.de", "?x", GUARD_HTTP, 80, false},
        {"http://192.0.2.1:1/", "192.0.2.1", "/", GUARD_HTTP, 1, true},
        {"http://[2001:DB8::1]:65535/", "2001:DB8::1", "/", GUARD_HTTP, 65535, true},
        {"smtp://mail.example.com", "mail.example.com", "", GUARD_SMTP, 587, false},
        {"smtps://mail.example.com:465/", "mail.example.com", "/", GUARD_SMTPS, 465, false},
        {"http://1.2.3.4.example.com/", "1.2.3.4.example.com", "/", GUARD_HTTP, 80, false},
        {"http://my_host.example.com/@/", "my_host.example.com", "/@/", GUARD_HTTP, 80, false},
        {"http://3com/", "3com", "/", GUARD_HTTP, 80, false},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct guard_url url;
        CHECK_INT(parse(table[i].text, &url), OK);
        CHECK_TEXT(url.host, table[i].host);
        CHECK_TEXT(url.target, table[i].target);
        CHECK_INT(url.scheme, table[i].scheme);
        CHECK_INT(url.port, table[i].port);
        CHECK_INT(url.literal, table[i].literal);
    }
}

static const char *const refused[] = {
    "",
    "http",
    "http:",
    "http:/",
    "http://",
    "http:///x",
    "http://:80/",
    "//a/",
    "a.example/",
    "http:a",
    "http:/a/",
    "http:/\\a/",
    "ftp://a/",
    "file:///etc/passwd",
    "gopher://a/",
    "dict://a:1/",
    "javascript:x",
    "http+unix://a/",
    " http://a/",
    "http://a/ ",
    "http://a b/",
    "http://a\tb/",
    "http://a/\r\nX: y",
    "http://a/\x7f",
    "http://user@a/",
    "http://user:pass@a/",
    "http://@a/",
    "http://a@127.0.0.1:80@b/",
    "http://b#@127.0.0.1/",
    "http://a/#x",
    "https://b\\@127.0.0.1/",
    "http://a\\b/",
    "http://a%00.b/",
    "http://%61/",
    "http://a/%",
    "http://a/%1",
    "http://a/%zz",
    "http://127.1/",
    "http://0177.0.0.1/",
    "http://0x7f000001/",
    "http://0x7f.0.0.1/",
    "http://2130706433/",
    "http://0/",
    "http://1.2.3/",
    "http://1.2.3.4.5/",
    "http://a.1/",
    "http://a.0x/",
    "http://256.1.1.1/",
    "http://127.0.0.1./",
    "http://localhost./",
    "http://a../",
    "http://.a/",
    "http://a..b/",
    "http://-a/",
    "http://a-/",
    "http://a-.b/",
    "http://a:/",
    "http://a:0/",
    "http://a:00080/",
    "http://a:080/",
    "http://a:65536/",
    "http://a:80a/",
    "http://a:+80/",
    "http://a:80:80/",
    "http://[::1/",
    "http://::1/",
    "http://[]/",
    "http://[1.2.3.4]/",
    "http://[fe80::1%25eth0]/",
    "http://[fe80::1%eth0]/",
    "http://[::1]x/",
    "http://[::1]80/",
    "http://[[::1]]/",
    "http://\xe2\x91\xa0.0.0.1/",
    "http://127\xe3\x80\x82x.0.1/",
    "http://m\xc3\xbcnchen.de/",
    "http://a/\xc3\xbc",
    "http://a/<x>",
    "http://a/\"",
    "http://a/{x}",
    "http://a/|",
    "http://a/^",
    "http://a/`",
    "http://a,b/",
    "http://a;b/",
    "http://a*b/",
    "http://a!b/",
    "smtp://a/x",
    "smtps://a/?x",
};

TEST(what_two_programs_could_read_differently_is_refused)
{
    struct guard_url url;
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++)
        if (parse(refused[i], &url) != INVALID)
            check_fail(__FILE__, __LINE__, "\"%s\" is accepted", refused[i]);
    char large[GUARD_URL_MAX + 2] = "http://a/";
    memset(large + 9, 'x', sizeof large - 10);
    CHECK_INT(parse(large, &url), INVALID);
    large[GUARD_URL_MAX] = '\0';
    CHECK_INT(parse(large, &url), OK);
}

static enum status check_url(const struct guard_rules *rules, struct bytes text, struct why *why)
{
    struct guard_url url;
    TRY(guard_url_parse(text, &url, why));
    return guard_check(rules, &url, why);
}

TEST(a_url_is_refused_for_its_port_its_name_or_its_address)
{
    static const struct {
        const char *url, *why; /* NULL: accepted */
    } table[] = {
        {"http://example.com/", NULL},
        {"https://example.com:8443/", NULL},
        {"http://8.8.8.8:8080/", NULL},
        {"http://[2606:4700:4700::1111]/", NULL},
        {"smtp://mail.example.com:25", NULL},
        {"smtps://mail.example.com", NULL},
        {"http://example.com:22/", "port 22"},
        {"http://example.com:25/", "port 25"},
        {"http://example.com:6379/", "port 6379"},
        {"http://example.com:11211/", "port 11211"},
        {"smtp://mail.example.com:80", "port 80"},
        {"http://127.0.0.1/", "127.0.0.1 is an address of this computer; set allow_private"},
        {"http://10.0.0.5/", "10.0.0.5 is a private address; set allow_private"},
        {"http://[::1]/", "::1 is an address of this computer"},
        {"http://[::ffff:7f00:1]/", "an IPv4 address in disguise; it is never called"},
        {"http://169.254.169.254/latest", "the metadata service of a cloud; it is never called"},
        {"http://localhost/", "localhost is a name for this computer"},
        {"http://LOCALHOST:8080/", "a name for this computer"},
        {"http://a.b.localhost/", "a name for this computer"},
        {"http://printer.local/", "a name for this computer"},
        {"http://metadata.google.internal/", "a name for this computer"},
        {"http://notlocalhost/", NULL}, /* decided when it is resolved */
    };
    const struct guard_rules rules = {0};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct why why = {""};
        enum status status = check_url(&rules, bytes_of(table[i].url), &why);
        if (status != (table[i].why == NULL ? OK : INVALID) || (table[i].why != NULL && strstr(why.text, table[i].why) == NULL))
            check_fail(__FILE__, __LINE__, "%s: %s", table[i].url, why.text);
    }
}

TEST(what_is_allowed_is_allowed_and_no_more)
{
    static const struct guard_ports ports[] = {{22, 22}, {8000, 8999}};
    struct guard_host hosts[3];
    struct why why = {""};
    CHECK_INT(guard_host_parse(BYTES("Mail.internal:2500"), &hosts[0], &why), OK);
    CHECK_INT(guard_host_parse(BYTES("169.254.1.2:80"), &hosts[1], &why), OK);
    CHECK_INT(guard_host_parse(BYTES("[fd00::5]:443"), &hosts[2], &why), OK);
    const struct guard_rules private = {.allow_private = true}, listed = {.allowed = hosts, .allowed_count = 3},
                             ported = {.ports = ports, .port_count = 2};
    static const struct {
        int rules; /* 0 private, 1 listed, 2 ported */
        const char *url;
        bool good;
    } table[] = {
        {0, "http://127.0.0.1:9000/", true},     {0, "http://localhost/", true},        {0, "http://10.1.2.3/", true},
        {0, "http://[fd00::1]/", true},          {0, "http://169.254.169.254/", false}, {0, "http://[fd00:ec2::254]/", false},
        {0, "http://100.100.100.200/", false},   {0, "http://224.0.0.1/", false},       {0, "http://0.0.0.0/", false},
        {0, "http://[::ffff:10.0.0.1]/", false}, {0, "http://10.0.0.1:22/", false},     {1, "smtp://mail.INTERNAL:2500", true},
        {1, "smtp://mail.internal:25", false},   {1, "http://169.254.1.2/", true},      {1, "http://169.254.1.2:81/", false},
        {1, "http://169.254.1.3/", false},       {1, "https://[fd00:0::5]/", true},     {1, "http://10.0.0.1/", false},
        {2, "http://example.com:22/", true},     {2, "http://example.com:8999/", true}, {2, "http://example.com/", false},
    };
    const struct guard_rules *const rules[] = {&private, &listed, &ported};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if ((check_url(rules[table[i].rules], bytes_of(table[i].url), &why) == OK) != table[i].good)
            check_fail(__FILE__, __LINE__, "%s: %s", table[i].url, why.text);
    static const char *const bad[] = {"",          "mail.internal", ":25",   "mail.internal:", "mail.internal:0",
                                      "[fd00::5]", "http://a:1",    "a:1/x", "a@b:1",          "127.1:80"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        CHECK_INT(guard_host_parse(bytes_of(bad[i]), &hosts[0], &why), INVALID);
}

TEST(the_shared_list_of_urls_is_refused)
{
    char path[4096];
    struct arena arena;
    struct json json;
    struct why why = {""};
    const struct guard_rules rules = {0};
    if (check_data_dir() == NULL)
        SKIP("there is no shared test data");
    arena_init(&arena, 1 << 20);
    snprintf(path, sizeof path, "%s/protocol/own/ssrf.json", check_data_dir());
    struct bytes text = check_read_file(path);
    CHECK_INT(json_parse(text, NULL, &arena, &json, &why), OK);
    const struct json *list = json_get(&json, BYTES("reject_url"));
    CHECK(list->count >= 30);
    for (uint32_t i = 0; i < list->count; i++)
        if (check_url(&rules, list->items[i].text, &why) == OK)
            check_fail(__FILE__, __LINE__, "%.*s is accepted", BYTES_ARG(list->items[i].text));
    free((char *)text.at);
    arena_release(&arena);
}
