#include "guard/guard.h"

#include "guard/fixture_test.h"

#define TRIES 10000

/* The DNS changes its mind with each question; libcurl asks once for each transfer, and never gets to the wrong one. */
TEST(a_name_that_changes_its_address_ten_thousand_times_never_reaches_this_computer)
{
    dns_answers[0] = "127.0.0.2";
    dns_answers[1] = "127.0.0.1";
    dns_answer_count = 2;
    net_start();
    for (int i = 0; i < TRIES; i++) {
        struct guard guard;
        CURL *curl = curl_easy_init();
        CURLcode code = net_get(curl, &guard, world_rules(), "http", "/");
        CHECK_INT(code, i % 2 == 0 ? CURLE_OK : CURLE_COULDNT_CONNECT);
        CHECK_INT(guard.refused, i % 2 != 0);
        CHECK_INT(guard_sent_nothing(&guard), i % 2 != 0);
        curl_easy_cleanup(curl);
    }
    net_stop();
    CHECK_INT(dns_questions, TRIES);
    CHECK_INT(world_connections, TRIES / 2);
    CHECK_INT(victim_connections, 0);
}

TEST(what_is_refused_is_said_in_a_sentence)
{
    struct guard guard;
    dns_answers[0] = "10.0.0.5";
    dns_answer_count = 1;
    net_start();
    CURL *curl = curl_easy_init();
    const struct guard_rules rules = {0};
    CHECK_INT(net_get(curl, &guard, &rules, "http", "/"), CURLE_COULDNT_CONNECT);
    CHECK_TEXT(
        bytes_of(guard.why.text),
        "dns.example.com resolves to 10.0.0.5, a private address; set allow_private for this destination if that is meant");
    curl_easy_cleanup(curl);
    net_stop();
}

TEST(no_form_of_a_local_address_is_connected_to)
{
    static const char *const answers[] = {"127.0.0.1",
                                          "127.1.2.3",
                                          "0.0.0.0",
                                          "::1",
                                          "::",
                                          "::ffff:127.0.0.1",
                                          "::127.0.0.1",
                                          "64:ff9b::7f00:1",
                                          "169.254.169.254",
                                          "fe80::1",
                                          "2002:7f00:1::1",
                                          "::ffff:0:127.0.0.1",
                                          "fd00:ec2::254"};
    net_start();
    dns_answer_count = 1;
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        struct guard guard;
        CURL *curl = curl_easy_init();
        dns_answers[0] = answers[i];
        CHECK_INT(net_get(curl, &guard, world_rules(), "http", "/"), CURLE_COULDNT_CONNECT);
        CHECK(guard.refused);
        CHECK(guard_sent_nothing(&guard));
        curl_easy_cleanup(curl);
    }
    net_stop();
    CHECK_INT(victim_connections + world_connections, 0);
}

TEST(one_bad_address_among_good_ones_is_passed_over)
{
    struct guard guard;
    dns_answers[0] = "127.0.0.1";
    dns_answers[1] = "127.0.0.2";
    dns_answer_count = 2;
    dns_all = true;
    net_start();
    CURL *curl = curl_easy_init();
    CHECK_INT(net_get(curl, &guard, world_rules(), "http", "/"), CURLE_OK);
    CHECK(!guard.refused);
    curl_easy_cleanup(curl);
    net_stop();
    CHECK_INT(victim_connections, 0);
    CHECK_INT(world_connections, 1);
}

TEST(allow_private_reaches_this_computer_and_its_network)
{
    struct guard guard;
    const struct guard_rules rules = {.allow_private = true};
    dns_answers[0] = "127.0.0.1";
    dns_answer_count = 1;
    net_start();
    CURL *curl = curl_easy_init();
    CHECK_INT(net_get(curl, &guard, &rules, "http", "/"), CURLE_OK);
    CHECK(!guard_sent_nothing(&guard));
    curl_easy_cleanup(curl);
    net_stop();
    CHECK_INT(victim_connections, 1);
}

TEST(a_name_that_the_operator_allows_reaches_private_addresses_only)
{
    struct guard guard;
    struct guard_host host;
    struct why why = {""};
    char text[64];
    net_start();
    snprintf(text, sizeof text, "DNS.example.com:%u", net_port);
    CHECK_INT(guard_host_parse(bytes_of(text), &host, &why), OK);
    const struct guard_rules rules = {.allowed = &host, .allowed_count = 1};
    dns_answer_count = 1;
    dns_answers[0] = "127.0.0.1";
    CURL *curl = curl_easy_init();
    CHECK_INT(net_get(curl, &guard, &rules, "http", "/"), CURLE_OK);
    dns_answers[0] = "169.254.169.254";
    CHECK_INT(net_get(curl, &guard, &rules, "http", "/"), CURLE_COULDNT_CONNECT);
    CHECK(guard.refused);
    curl_easy_cleanup(curl);
    net_stop();
}

/* ---- redirects ---- */

static void world_only(void)
{
    dns_answers[0] = "127.0.0.2";
    dns_answer_count = 1;
    net_start();
}

TEST(a_redirect_is_an_answer_like_any_other)
{
    struct guard guard;
    long status = 0;
    char to[64];
    world_only();
    snprintf(to, sizeof to, "http://127.0.0.1:%u/", net_port);
    redirect_to = to;
    CURL *curl = curl_easy_init();
    CHECK_INT(net_get(curl, &guard, world_rules(), "http", "/redirect"), CURLE_OK);
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    CHECK_INT(status, 307);
    curl_easy_cleanup(curl);
    net_stop();
    CHECK_INT(victim_connections, 0);
}

TEST(a_redirect_to_this_computer_is_refused_where_redirects_are_followed)
{
    static const char *const forms[] = {"http://127.0.0.1:%u/",  "http://0x7f000001:%u/", "http://127.1:%u/",
                                        "http://2130706433:%u/", "http://[::1]:%u/",      "http://[::ffff:127.0.0.1]:%u/",
                                        "http://0:%u/",          "http://localhost:%u/",  "http://u:p@127.0.0.1:%u/"};
    struct guard_rules rules;
    char to[64];
    world_only();
    rules = *world_rules();
    rules.redirects_max = 3;
    redirect_to = to;
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct guard guard;
        CURL *curl = curl_easy_init();
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(to, sizeof to, forms[i], net_port);
#pragma GCC diagnostic pop
        CHECK_INT(net_get(curl, &guard, &rules, "http", "/redirect"), CURLE_COULDNT_CONNECT);
        CHECK(guard.refused);
        CHECK(strstr(guard.why.text, "a redirect resolves to") != NULL);
        CHECK(!guard_sent_nothing(&guard)); /* the first request did leave */
        curl_easy_cleanup(curl);
    }
    redirect_to = "file:///etc/passwd";
    struct guard guard;
    CURL *curl = curl_easy_init();
    CHECK_INT(net_get(curl, &guard, &rules, "http", "/redirect"), CURLE_UNSUPPORTED_PROTOCOL);
    snprintf(to, sizeof to, "http://127.0.0.2:%u/", net_port);
    redirect_to = to;
    CHECK_INT(net_get(curl, &guard, &rules, "http", "/redirect"), CURLE_OK); /* a good one is followed */
    curl_easy_cleanup(curl);
    net_stop();
    CHECK_INT(victim_connections, 0);
}

/* ---- connections that were kept ---- */

TEST(a_kept_connection_is_judged_by_the_rules_of_each_transfer)
{
    struct guard guard;
    const struct guard_rules strict = {0};
    world_only();
    CURL *curl = curl_easy_init();
    CHECK_INT(net_get(curl, &guard, world_rules(), "http", "/keep"), CURLE_OK);
    CHECK_INT(net_get(curl, &guard, world_rules(), "http", "/keep"), CURLE_OK);
    CHECK_INT(world_connections, 1); /* it is kept */
    CHECK_INT(net_get(curl, &guard, &strict, "http", "/keep"), CURLE_ABORTED_BY_CALLBACK);
    CHECK(guard.refused);
    CHECK(guard_sent_nothing(&guard));
    curl_easy_cleanup(curl);
    net_stop();
    CHECK_INT(world_requests, 2);
}

TEST(a_request_is_not_sent_again_when_a_kept_connection_breaks)
{
    struct guard guard;
    world_only();
    CURL *curl = curl_easy_init();
    CHECK_INT(net_get(curl, &guard, world_rules(), "http", "/keep"), CURLE_OK);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, "a=1");
    CHECK_INT(net_get(curl, &guard, world_rules(), "http", "/drop"), CURLE_ABORTED_BY_CALLBACK);
    CHECK(!guard_sent_nothing(&guard)); /* it may have happened */
    CHECK(strstr(guard.why.text, "not sent again") != NULL);
    curl_easy_cleanup(curl);
    net_stop();
    CHECK_INT(drop_requests, 1);
}

/* ---- the rest ---- */

TEST(headers_without_end_are_cut_off)
{
    struct guard guard;
    world_only();
    CURL *curl = curl_easy_init();
    CHECK_INT(net_get(curl, &guard, world_rules(), "http", "/large"), CURLE_WRITE_ERROR);
    CHECK(strstr(guard.why.text, "headers") != NULL);
    curl_easy_cleanup(curl);
    net_stop();
}

TEST(proxies_of_the_environment_and_other_protocols_are_not_used)
{
    struct guard guard;
    CHECK(setenv("http_proxy", "http://127.0.0.1:1/", 1) == 0);
    CHECK(setenv("ALL_PROXY", "http://127.0.0.1:1/", 1) == 0);
    CHECK(setenv("no_proxy", "", 1) == 0);
    world_only();
    CURL *curl = curl_easy_init();
    CHECK_INT(net_get(curl, &guard, world_rules(), "http", "/"), CURLE_OK);
    CHECK_INT(net_get(curl, &guard, world_rules(), "http", "file:///etc/passwd"), CURLE_URL_MALFORMAT);
    CHECK_INT(net_get(curl, &guard, world_rules(), "http", "http://localhost/"), CURLE_URL_MALFORMAT);
    CHECK(strstr(guard.why.text, "localhost is a name for this computer") != NULL);
    /* What guard_apply() has set stays when someone changes the URL behind its back. */
    CHECK_INT(net_get(curl, &guard, world_rules(), "http", "/"), CURLE_OK);
    curl_easy_setopt(curl, CURLOPT_URL, "file:///etc/passwd");
    CHECK_INT(curl_easy_perform(curl), CURLE_UNSUPPORTED_PROTOCOL);
    curl_easy_cleanup(curl);
    net_stop();
}
