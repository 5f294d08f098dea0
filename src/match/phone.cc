// The one file of C++: libphonenumber has no C interface. The library's tables are made when it is first asked.
#include "match/phone_library.h"

#include <cstring>
#include <phonenumbers/phonenumber.pb.h>
#include <phonenumbers/phonenumberutil.h>
#include <string>

using i18n::phonenumbers::PhoneNumber;
using i18n::phonenumbers::PhoneNumberUtil;

static void put(const std::string &from, char *to, size_t room)
{
    size_t len = from.size() < room ? from.size() : 0;
    memcpy(to, from.data(), len);
    to[len] = '\0';
}

static phone_library_kind kind_of(PhoneNumberUtil::PhoneNumberType type)
{
    switch (type) {
    case PhoneNumberUtil::MOBILE:
        return PHONE_LIBRARY_MOBILE;
    case PhoneNumberUtil::FIXED_LINE:
        return PHONE_LIBRARY_FIXED;
    case PhoneNumberUtil::FIXED_LINE_OR_MOBILE:
    case PhoneNumberUtil::PERSONAL_NUMBER:
        return PHONE_LIBRARY_EITHER;
    case PhoneNumberUtil::TOLL_FREE:
        return PHONE_LIBRARY_TOLL_FREE;
    default:
        return PHONE_LIBRARY_OTHER;
    }
}

extern "C" bool phone_library_read(const char *text, size_t len, const char *region, struct phone_library_number *ret)
{
    try {
        const PhoneNumberUtil *util = PhoneNumberUtil::GetInstance();
        PhoneNumber number;
        std::string made;
        if (util->Parse(std::string(text, len), region, &number) != PhoneNumberUtil::NO_PARSING_ERROR)
            return false;
        util->Format(number, PhoneNumberUtil::E164, &made);
        put(made, ret->e164, sizeof ret->e164);
        made.clear(); // the next one appends
        util->GetNationalSignificantNumber(number, &made);
        put(made, ret->national, sizeof ret->national);
        put(number.extension(), ret->extension, sizeof ret->extension);
        util->GetRegionCodeForNumber(number, &made);
        put(made == "ZZ" ? "" : made, ret->region, sizeof ret->region);
        ret->country = number.country_code();
        ret->valid = util->IsValidNumber(number);
        ret->possible = ret->valid || util->IsPossibleNumber(number);
        ret->kind = kind_of(util->GetNumberType(number));
        return ret->e164[0] != '\0' && ret->national[0] != '\0';
    } catch (...) {
        return false;
    }
}

extern "C" bool phone_library_knows(const char *region)
{
    try {
        return PhoneNumberUtil::GetInstance()->GetCountryCodeForRegion(region) != 0;
    } catch (...) {
        return false;
    }
}
