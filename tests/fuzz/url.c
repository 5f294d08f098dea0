/* The URL of a destination: what is accepted is read the same by libcurl's own parser, and is what it was built from. */
#include "fuzz.h"

#include <curl/curl.h>

#include "guard/guard.h"

static char *part_of(CURLU *parsed, CURLUPart part)
{
    char *text = NULL;
    CURLUcode code = curl_url_get(parsed, part, &text, part == CURLUPART_PORT ? CURLU_DEFAULT_PORT : 0);
    return code == CURLUE_OK ? text : NULL;
}

/* Without the brackets of IPv6. */
static struct bytes bare(const char *host)
{
    struct bytes text = bytes_of(host);
    if (text.len >= 2 && text.at[0] == '[')
        text = (struct bytes){text.at + 1, text.len - 2};
    return text;
}

static void check_host(const struct guard_url *url, const char *host)
{
    struct guard_address address;
    ASSERT(host != NULL);
    if (!url->literal) {
        ASSERT(bytes_eq_nocase(url->host, bare(host)));
        ASSERT(!guard_address_parse(bare(host), &address));
        return;
    }
    ASSERT(guard_address_parse(bare(host), &address)); /* libcurl may have shortened it */
    ASSERT(guard_address_eq(&address, &url->address));
}

/* libcurl is what will call it: it must not see another host, port, user or fragment in it. */
static void check_libcurl(const struct guard_url *url, struct bytes text)
{
    CURLU *parsed = curl_url();
    char *copy = strndup(text.at, text.len);
    ASSERT(parsed != NULL);
    ASSERT(copy != NULL);
    CURLUcode code = curl_url_set(parsed, CURLUPART_URL, copy, 0);
    if (code == CURLUE_OK) { /* what it refuses is never called */
        char *host = part_of(parsed, CURLUPART_HOST), *port = part_of(parsed, CURLUPART_PORT),
             *scheme = part_of(parsed, CURLUPART_SCHEME);
        uint64_t number = 0;
        check_host(url, host);
        ASSERT(bytes_is(bytes_of(scheme), guard_scheme_names[url->scheme]));
        ASSERT(bytes_to_u64(bytes_of(port), &number));
        ASSERT(number == url->port || url->scheme == GUARD_SMTP); /* ours is 587, libcurl's 25, when none is written */
        ASSERT(part_of(parsed, CURLUPART_USER) == NULL);
        ASSERT(part_of(parsed, CURLUPART_PASSWORD) == NULL);
        ASSERT(part_of(parsed, CURLUPART_FRAGMENT) == NULL);
        ASSERT(part_of(parsed, CURLUPART_ZONEID) == NULL);
        curl_free(host);
        curl_free(port);
        curl_free(scheme);
    }
    free(copy);
    curl_url_cleanup(parsed);
}

FUZZ_TARGET(url)(const uint8_t *data, size_t size)
{
    struct bytes text = fuzz_exact(fuzz_bytes(data, size));
    const struct guard_rules strict = {0}, private = {.allow_private = true};
    struct guard_url url = {.port = 1};
    struct guard_host host;
    struct why why = {""};
    enum status status = guard_url_parse(text, &url, &why);
    if (status == OK) {
        ASSERT(url.host.len > 0 && url.port > 0);
        ASSERT(memchr(text.at, '\0', text.len) == NULL);
        check_libcurl(&url, text);
        if (guard_check(&strict, &url, &why) == OK) {
            ASSERT(guard_check(&private, &url, &why) == OK);
            ASSERT(!url.literal || guard_address_class(&url.address, NULL) == GUARD_PUBLIC);
        }
    } else {
        ASSERT(status == INVALID && why.text[0] != '\0');
        ASSERT(url.port == 1 && url.host.at == NULL); /* untouched */
    }
    if (guard_host_parse(text, &host, &why) == OK)
        ASSERT(host.host.at >= text.at && host.host.at + host.host.len <= text.at + text.len);
    free((char *)text.at);
    return 0;
}
