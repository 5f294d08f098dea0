#include "fingerprint/zone.h"

#include <ctype.h>
#include <stdlib.h>
#include <unicode/ucal.h>
#include <unicode/uenum.h>
#include <unicode/ustring.h>

#include "base/json.h"
#include "base/when.h"
#include "fingerprint/fingerprint.h"

enum { ZONE_COUNT_MAX = 1024 };

/* The three-letter names of the IANA database. ICU knows more of them, and some mean another place than people think: its BST is
 * Dhaka, its IST is Kolkata. */
static const char *const short_names[] = {"CET", "EET", "EST", "GMT", "HST", "MET", "MST",
                                          "PRC", "ROC", "ROK", "UCT", "UTC", "WET"};

static bool is_zone_char(char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '/' || c == '_' || c == '-' ||
           c == '+';
}

static bool is_zone_text(const char *name)
{
    size_t len = strlen(name);
    if (len == 0 || len > ZONE_NAME_MAX)
        return false;
    for (size_t i = 0; i < len; i++)
        if (!is_zone_char(name[i]))
            return false;
    return true;
}

/* False for the names that ICU has and IANA has not. */
static bool is_iana_name(const char *name)
{
    if (strncmp(name, "SystemV/", 8) == 0)
        return false;
    if (strlen(name) != 3)
        return true;
    for (size_t i = 0; i < sizeof short_names / sizeof *short_names; i++)
        if (strcmp(name, short_names[i]) == 0)
            return true;
    return false;
}

bool zone_exists(const char *zone)
{
    if (zone == NULL || !is_zone_text(zone) || !is_iana_name(zone))
        return false;
    UChar name[ZONE_NAME_MAX + 1], canonical[2 * ZONE_NAME_MAX];
    u_charsToUChars(zone, name, (int32_t)strlen(zone) + 1);
    UErrorCode error = U_ZERO_ERROR;
    UBool known = 0;
    ucal_getCanonicalTimeZoneID(name, -1, canonical, 2 * ZONE_NAME_MAX, &known, &error);
    return U_SUCCESS(error) && known;
}

static bool is_utc(const char *name)
{
    return name == NULL || strcmp(name, "UTC") == 0 || strcmp(name, "Etc/UTC") == 0;
}

enum status zone_open(const char *name, struct zone *ret_zone, struct why *why)
{
    if (is_utc(name)) {
        *ret_zone = (struct zone){NULL};
        return OK;
    }
    if (!zone_exists(name))
        return why_set(why, INVALID, "there is no time zone '%.64s': write an IANA name such as Europe/Paris", name);
    UChar id[ZONE_NAME_MAX + 1];
    u_charsToUChars(name, id, (int32_t)strlen(name) + 1);
    UErrorCode error = U_ZERO_ERROR;
    UCalendar *calendar = ucal_open(id, -1, "", UCAL_GREGORIAN, &error);
    if (U_FAILURE(error))
        return why_set(why, BROKEN, "the zone library cannot open '%s': %s", name, u_errorName(error));
    *ret_zone = (struct zone){calendar};
    return OK;
}

void zone_close(struct zone *zone)
{
    if (zone->calendar != NULL)
        ucal_close(zone->calendar);
    zone->calendar = NULL;
}

enum status zone_offset(const struct zone *zone, int64_t utc_us, int64_t *ret_offset_us, struct why *why)
{
    if (zone->calendar == NULL) {
        *ret_offset_us = 0;
        return OK;
    }
    /* Offsets change on whole seconds, so milliseconds rounded towards zero give the same answer. */
    UErrorCode error = U_ZERO_ERROR;
    ucal_setMillis(zone->calendar, (double)(utc_us / WHEN_MS), &error);
    int32_t offset_ms = ucal_get(zone->calendar, UCAL_ZONE_OFFSET, &error) + ucal_get(zone->calendar, UCAL_DST_OFFSET, &error);
    if (U_FAILURE(error))
        return why_set(why, BROKEN, "the zone library failed: %s", u_errorName(error));
    *ret_offset_us = offset_ms * WHEN_MS;
    return OK;
}

/* ---- suggestions ---- */

/* Equal but for case, and for spaces where the name has underscores. */
static bool same_loosely(struct bytes given, struct bytes name)
{
    if (given.len != name.len)
        return false;
    for (size_t i = 0; i < given.len; i++) {
        int a = given.at[i] == ' ' ? '_' : tolower((unsigned char)given.at[i]);
        if (a != tolower((unsigned char)name.at[i]))
            return false;
    }
    return true;
}

static struct bytes city_of(const char *name)
{
    const char *slash = strrchr(name, '/');
    return bytes_of(slash != NULL ? slash + 1 : name);
}

static const char *nearest_zone(struct bytes given, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (same_loosely(given, bytes_of(names[i])))
            return names[i];
    for (size_t i = 0; i < count; i++)
        if (same_loosely(given, city_of(names[i])))
            return names[i];
    return nearest_name(given, names, count);
}

/* All names, as pointers into one block that the caller frees. 0 when the zone library has none to give. */
static size_t list_zones(const char *names[ZONE_COUNT_MAX], char **ret_block)
{
    UErrorCode error = U_ZERO_ERROR;
    UEnumeration *list = ucal_openTimeZones(&error);
    size_t count = 0;
    char *block = calloc(ZONE_COUNT_MAX, ZONE_NAME_MAX + 1);
    const char *name;
    int32_t len;
    while (block != NULL && count < ZONE_COUNT_MAX && (name = uenum_next(list, &len, &error)) != NULL) {
        if (U_FAILURE(error) || len > ZONE_NAME_MAX || !is_iana_name(name))
            continue;
        char *slot = block + count * (ZONE_NAME_MAX + 1);
        memcpy(slot, name, (size_t)len);
        names[count++] = slot;
    }
    if (list != NULL)
        uenum_close(list);
    *ret_block = block;
    return count;
}

bool zone_nearest(struct bytes given, char ret_name[ZONE_NAME_MAX + 1])
{
    const char *names[ZONE_COUNT_MAX];
    char *block = NULL;
    if (given.len == 0 || given.len > ZONE_NAME_MAX)
        return false;
    size_t count = list_zones(names, &block);
    const char *found = nearest_zone(given, names, count);
    if (found != NULL)
        memcpy(ret_name, found, strlen(found) + 1);
    free(block);
    return found != NULL;
}
