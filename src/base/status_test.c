#include "base/status.h"

#include <string.h>

#include "check.h"

TEST(status_sentence_is_cut_to_whole_characters)
{
    for (size_t pad = 310; pad < 325; pad++) {
        char text[400];
        memset(text, 'x', pad);
        memcpy(text + pad, "\xe2\x82\xac\xf0\x9f\x98\x82", 8);
        struct why why;
        CHECK_INT(why_set(&why, INVALID, "%s", text), INVALID);
        CHECK(bytes_is_utf8(bytes_of(why.text)));
        CHECK(strlen(why.text) >= 316);
    }
}

TEST(status_context_goes_in_front_of_the_sentence)
{
    struct why why;
    CHECK_INT(why_set(&why, RETRY, "the disk is busy"), RETRY);
    CHECK_INT(why_add(&why, BROKEN, "rule %d", 5), BROKEN);
    CHECK_TEXT(bytes_of(why.text), "rule 5: the disk is busy");
    CHECK_INT(why_set(NULL, FULL, "nobody reads this"), FULL);
    CHECK_INT(why_add(NULL, FULL, "nor this"), FULL);
    CHECK_TEXT(bytes_of(status_name(UNKNOWN)), "UNKNOWN");
}
