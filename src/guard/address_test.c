#include "guard/address.h"

#include "base/json.h"
#include "check.h"

static enum guard_class class_of(const char *text)
{
    struct guard_address address;
    if (!guard_address_parse(bytes_of(text), &address))
        check_fail(__FILE__, __LINE__, "%s is not read as an address", text);
    return guard_address_class(&address, NULL);
}

struct expected {
    const char *text;
    enum guard_class class;
};

/* Each range with its first and last address, and the public neighbours of both. */
static const struct expected table[] = {
    {"0.0.0.0", GUARD_NEVER},
    {"0.255.255.255", GUARD_NEVER},
    {"1.0.0.0", GUARD_PUBLIC},
    {"9.255.255.255", GUARD_PUBLIC},
    {"10.0.0.0", GUARD_PRIVATE},
    {"10.255.255.255", GUARD_PRIVATE},
    {"11.0.0.0", GUARD_PUBLIC},
    {"100.63.255.255", GUARD_PUBLIC},
    {"100.64.0.0", GUARD_PRIVATE},
    {"100.100.100.200", GUARD_NEVER},
    {"100.127.255.255", GUARD_PRIVATE},
    {"100.128.0.0", GUARD_PUBLIC},
    {"126.255.255.255", GUARD_PUBLIC},
    {"127.0.0.1", GUARD_PRIVATE},
    {"127.255.255.255", GUARD_PRIVATE},
    {"128.0.0.0", GUARD_PUBLIC},
    {"168.63.129.16", GUARD_NEVER},
    {"168.63.129.17", GUARD_PUBLIC},
    {"169.253.255.255", GUARD_PUBLIC},
    {"169.254.0.0", GUARD_NEVER},
    {"169.254.169.254", GUARD_NEVER},
    {"169.254.255.255", GUARD_NEVER},
    {"169.255.0.0", GUARD_PUBLIC},
    {"172.15.255.255", GUARD_PUBLIC},
    {"172.16.0.0", GUARD_PRIVATE},
    {"172.31.255.255", GUARD_PRIVATE},
    {"172.32.0.0", GUARD_PUBLIC},
    {"191.255.255.255", GUARD_PUBLIC},
    {"192.0.0.0", GUARD_NEVER},
    {"192.0.0.192", GUARD_NEVER},
    {"192.0.1.0", GUARD_PUBLIC},
    {"192.0.2.255", GUARD_NEVER},
    {"192.0.3.0", GUARD_PUBLIC},
    {"192.31.196.1", GUARD_NEVER},
    {"192.52.193.1", GUARD_NEVER},
    {"192.88.98.255", GUARD_PUBLIC},
    {"192.88.99.1", GUARD_NEVER},
    {"192.167.255.255", GUARD_PUBLIC},
    {"192.168.0.0", GUARD_PRIVATE},
    {"192.168.255.255", GUARD_PRIVATE},
    {"192.169.0.0", GUARD_PUBLIC},
    {"192.175.48.1", GUARD_NEVER},
    {"198.17.255.255", GUARD_PUBLIC},
    {"198.18.0.0", GUARD_NEVER},
    {"198.19.255.255", GUARD_NEVER},
    {"198.20.0.0", GUARD_PUBLIC},
    {"198.51.100.7", GUARD_NEVER},
    {"203.0.113.7", GUARD_NEVER},
    {"223.255.255.255", GUARD_PUBLIC},
    {"224.0.0.0", GUARD_NEVER},
    {"239.255.255.255", GUARD_NEVER},
    {"240.0.0.0", GUARD_NEVER},
    {"255.255.255.255", GUARD_NEVER},
    {"::", GUARD_NEVER},
    {"::1", GUARD_PRIVATE},
    {"::2", GUARD_NEVER},
    {"::127.0.0.1", GUARD_NEVER},
    {"::8.8.8.8", GUARD_NEVER},
    {"::ffff:127.0.0.1", GUARD_NEVER},
    {"::ffff:10.0.0.1", GUARD_NEVER},
    {"::ffff:8.8.8.8", GUARD_NEVER},
    {"::ffff:0:8.8.8.8", GUARD_NEVER},
    {"64:ff9b::8.8.8.8", GUARD_PUBLIC},
    {"64:ff9b::127.0.0.1", GUARD_PRIVATE},
    {"64:ff9b::10.0.0.1", GUARD_PRIVATE},
    {"64:ff9b::169.254.169.254", GUARD_NEVER},
    {"64:ff9b:0:1::8.8.8.8", GUARD_NEVER},
    {"64:ff9b:1::8.8.8.8", GUARD_NEVER},
    {"100::1", GUARD_NEVER},
    {"1fff:ffff::1", GUARD_NEVER},
    {"2000::1", GUARD_PUBLIC},
    {"2001::1", GUARD_NEVER},
    {"2001:1::1", GUARD_NEVER},
    {"2001:20::1", GUARD_NEVER},
    {"2001:1ff:ffff::1", GUARD_NEVER},
    {"2001:200::1", GUARD_PUBLIC},
    {"2001:db7:ffff::1", GUARD_PUBLIC},
    {"2001:db8::1", GUARD_NEVER},
    {"2001:db9::1", GUARD_PUBLIC},
    {"2001:4860:4860::8888", GUARD_PUBLIC},
    {"2002::1", GUARD_NEVER},
    {"2002:808:808::1", GUARD_NEVER},
    {"2003::1", GUARD_PUBLIC},
    {"2620:4f:8000::1", GUARD_NEVER},
    {"3fff::1", GUARD_NEVER},
    {"3fff:fff::1", GUARD_NEVER},
    {"3fff:1000::1", GUARD_PUBLIC},
    {"4000::1", GUARD_NEVER},
    {"5f00::1", GUARD_NEVER},
    {"fbff::1", GUARD_NEVER},
    {"fc00::1", GUARD_PRIVATE},
    {"fd00:ec2::254", GUARD_NEVER},
    {"fdff::1", GUARD_PRIVATE},
    {"fe00::1", GUARD_NEVER},
    {"fe80::1", GUARD_NEVER},
    {"febf::1", GUARD_NEVER},
    {"fec0::1", GUARD_NEVER},
    {"ff02::1", GUARD_NEVER},
};

TEST(each_range_that_is_not_public_is_known_to_its_borders)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (class_of(table[i].text) != table[i].class)
            check_fail(__FILE__, __LINE__, "%s is of class %d, want %d", table[i].text, class_of(table[i].text), table[i].class);
}

TEST(only_the_usual_form_of_an_address_is_read)
{
    static const char *const bad[] = {"",          "1",          "127.1",          "127.0.1",  "1.2.3.4.5",
                                      "01.2.3.4",  "0x7f.0.0.1", "1.2.3.256",      "1.2.3.4 ", " 1.2.3.4",
                                      "1.2.3.4/8", "fe80::1%lo", "[::1]",          ":::",      "1:2:3:4:5:6:7:8:9",
                                      "::1.2.3",   "localhost",  "::ffff:1.2.3.04"};
    struct guard_address address;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (guard_address_parse(bytes_of(bad[i]), &address))
            check_fail(__FILE__, __LINE__, "\"%s\" is read as an address", bad[i]);
    CHECK(!guard_address_parse((struct bytes){"1.2.3.4\0", 8}, &address));
}

/* `ret_text` is to be freed. */
static struct json read_vectors(struct arena *arena, struct bytes *ret_text)
{
    char path[4096];
    struct json json;
    struct why why = {""};
    if (check_data_dir() == NULL)
        SKIP("there is no shared test data");
    snprintf(path, sizeof path, "%s/protocol/own/ssrf.json", check_data_dir());
    *ret_text = check_read_file(path);
    CHECK_INT(json_parse(*ret_text, NULL, arena, &json, &why), OK);
    return json;
}

TEST(the_shared_table_of_addresses_is_decided_the_same)
{
    struct arena arena;
    arena_init(&arena, 1 << 20);
    struct bytes text;
    struct json json = read_vectors(&arena, &text);
    static const struct {
        const char *list;
        bool public;
        uint32_t least;
    } lists[] = {{"block_ip", false, 38}, {"allow_ip", true, 11}};
    for (size_t n = 0; n < 2; n++) {
        const struct json *list = json_get(&json, bytes_of(lists[n].list));
        CHECK(list->count >= lists[n].least);
        for (uint32_t i = 0; i < list->count; i++) {
            struct guard_address address;
            CHECK(guard_address_parse(list->items[i].text, &address));
            if ((guard_address_class(&address, NULL) == GUARD_PUBLIC) != lists[n].public)
                check_fail(__FILE__, __LINE__, "%.*s in %s", BYTES_ARG(list->items[i].text), lists[n].list);
        }
    }
    free((char *)text.at);
    arena_release(&arena);
}
