#include "guard/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

struct range {
    uint8_t at[16];
    uint8_t bits;
    enum guard_class class;
    const char *what;
};

/* The first row that fits decides; what no row fits is public. */
static const struct range v4_ranges[] = {
    {{169, 254, 169, 254}, 32, GUARD_NEVER, "the metadata service of a cloud"},
    {{100, 100, 100, 200}, 32, GUARD_NEVER, "the metadata service of a cloud"},
    {{168, 63, 129, 16}, 32, GUARD_NEVER, "the metadata service of a cloud"},
    {{0}, 8, GUARD_NEVER, "an address of this network"},
    {{10}, 8, GUARD_PRIVATE, "a private address"},
    {{100, 64}, 10, GUARD_PRIVATE, "a private address (shared by a carrier)"},
    {{127}, 8, GUARD_PRIVATE, "an address of this computer"},
    {{169, 254}, 16, GUARD_NEVER, "a link-local address"},
    {{172, 16}, 12, GUARD_PRIVATE, "a private address"},
    {{192, 0, 0}, 24, GUARD_NEVER, "a reserved address"},
    {{192, 0, 2}, 24, GUARD_NEVER, "an address for documentation"},
    {{192, 31, 196}, 24, GUARD_NEVER, "a reserved address"},
    {{192, 52, 193}, 24, GUARD_NEVER, "a reserved address"},
    {{192, 88, 99}, 24, GUARD_NEVER, "an address of a tunnel (6to4)"},
    {{192, 168}, 16, GUARD_PRIVATE, "a private address"},
    {{192, 175, 48}, 24, GUARD_NEVER, "a reserved address"},
    {{198, 18}, 15, GUARD_NEVER, "an address for measurements"},
    {{198, 51, 100}, 24, GUARD_NEVER, "an address for documentation"},
    {{203, 0, 113}, 24, GUARD_NEVER, "an address for documentation"},
    {{224}, 4, GUARD_NEVER, "a multicast address"},
    {{240}, 4, GUARD_NEVER, "a reserved address"},
};

static const struct range v6_ranges[] = {
    {{[15] = 1}, 128, GUARD_PRIVATE, "an address of this computer"},
    {{[10] = 0xff, [11] = 0xff}, 96, GUARD_NEVER, "an IPv4 address in disguise"},
    {{0}, 96, GUARD_NEVER, "an IPv4 address in disguise"},
    {{0x00, 0x64, 0xff, 0x9b, 0x00, 0x01}, 48, GUARD_NEVER, "an address of a translator (NAT64)"},
    {{0x20, 0x01, 0x0d, 0xb8}, 32, GUARD_NEVER, "an address for documentation"},
    {{0x20, 0x01, 0x00, 0x00}, 32, GUARD_NEVER, "an address of a tunnel (Teredo)"},
    {{0x20, 0x01}, 23, GUARD_NEVER, "a reserved address"},
    {{0x20, 0x02}, 16, GUARD_NEVER, "an address of a tunnel (6to4)"},
    {{0x26, 0x20, 0x00, 0x4f, 0x80}, 48, GUARD_NEVER, "a reserved address"},
    {{0x3f, 0xff}, 20, GUARD_NEVER, "an address for documentation"},
    {{0x20}, 3, GUARD_PUBLIC, "a public address"},
    {{0xfd, 0x00, 0x0e, 0xc2}, 32, GUARD_NEVER, "the metadata service of a cloud"},
    {{0xfc}, 7, GUARD_PRIVATE, "a private address"},
    {{0xfe, 0x80}, 10, GUARD_NEVER, "a link-local address"},
    {{0xff}, 8, GUARD_NEVER, "a multicast address"},
    {{0}, 0, GUARD_NEVER, "a reserved address"}, /* only 2000::/3 is given out */
};

static const uint8_t nat64[12] = {0x00, 0x64, 0xff, 0x9b};

static bool is_in(const uint8_t *at, const struct range *range)
{
    size_t whole = range->bits / 8;
    uint8_t mask = (uint8_t)(0xff << (8 - range->bits % 8));
    if (memcmp(at, range->at, whole) != 0)
        return false;
    return range->bits % 8 == 0 || (at[whole] & mask) == (range->at[whole] & mask);
}

static enum guard_class look_up(const uint8_t *at, const struct range *ranges, size_t count, const char **ret_what)
{
    for (size_t i = 0; i < count; i++)
        if (is_in(at, &ranges[i])) {
            *ret_what = ranges[i].what;
            return ranges[i].class;
        }
    *ret_what = "a public address";
    return GUARD_PUBLIC;
}

enum guard_class guard_address_class(const struct guard_address *address, const char **ret_what)
{
    const char *what;
    enum guard_class class;
    if (!address->v6)
        class = look_up(address->at, v4_ranges, sizeof v4_ranges / sizeof *v4_ranges, &what);
    else if (memcmp(address->at, nat64, sizeof nat64) ==
             0) /* how an IPv6-only network reaches IPv4: what counts is where it ends */
        class = look_up(address->at + sizeof nat64, v4_ranges, sizeof v4_ranges / sizeof *v4_ranges, &what);
    else
        class = look_up(address->at, v6_ranges, sizeof v6_ranges / sizeof *v6_ranges, &what);
    if (ret_what != NULL)
        *ret_what = what;
    return class;
}

bool guard_address_parse(struct bytes text, struct guard_address *ret_address)
{
    char copy[GUARD_ADDRESS_TEXT_MAX];
    if (text.len == 0 || text.len >= sizeof copy || memchr(text.at, '\0', text.len) != NULL)
        return false;
    struct guard_address address = {.v6 = memchr(text.at, ':', text.len) != NULL};
    memcpy(copy, text.at, text.len);
    copy[text.len] = '\0';
    if (inet_pton(address.v6 ? AF_INET6 : AF_INET, copy, address.at) != 1)
        return false;
    *ret_address = address;
    return true;
}

bool guard_address_from(const struct sockaddr *from, size_t size, struct guard_address *ret_address, uint16_t *ret_port)
{
    struct guard_address address = {0};
    if (from->sa_family == AF_INET && size >= sizeof(struct sockaddr_in)) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)from;
        memcpy(address.at, &v4->sin_addr, 4);
        *ret_port = ntohs(v4->sin_port);
    } else if (from->sa_family == AF_INET6 && size >= sizeof(struct sockaddr_in6)) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)from;
        address.v6 = true;
        memcpy(address.at, &v6->sin6_addr, 16);
        *ret_port = ntohs(v6->sin6_port);
    } else {
        return false;
    }
    *ret_address = address;
    return true;
}

void guard_address_format(const struct guard_address *address, char ret_text[GUARD_ADDRESS_TEXT_MAX])
{
    inet_ntop(address->v6 ? AF_INET6 : AF_INET, address->at, ret_text, GUARD_ADDRESS_TEXT_MAX);
}

bool guard_address_eq(const struct guard_address *a, const struct guard_address *b)
{
    return a->v6 == b->v6 && memcmp(a->at, b->at, a->v6 ? 16 : 4) == 0;
}
