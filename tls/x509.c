#include "tls/x509.h"

#include "tls/der.h"
#include "tls/x509_dn.h"

#define SERIAL_MAX 20 /* RFC 5280 section 4.1.2.2 */

/* Days from 1970-01-01 to a day of the Gregorian calendar. */
static int64_t days_of(int year, int month, int day)
{
    year -= month <= 2;
    int64_t era = year / 400;
    int of_era = year % 400;
    int of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static bool is_leap(int year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static bool take_two(const uint8_t **at, int *value)
{
    if ((*at)[0] < '0' || (*at)[0] > '9' || (*at)[1] < '0' || (*at)[1] > '9')
        return false;
    *value = ((*at)[0] - '0') * 10 + (*at)[1] - '0';
    *at += 2;
    return true;
}

/* MMDDHHMMSSZ */
static bool take_rest(const uint8_t *at, int year, int64_t *seconds)
{
    static const uint8_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int month, day, hour, minute, second;
    if (!take_two(&at, &month) || !take_two(&at, &day) || !take_two(&at, &hour) || !take_two(&at, &minute) ||
        !take_two(&at, &second) || *at != 'Z')
        return false;
    if (month < 1 || month > 12 || day < 1 || day > days[month - 1] + (month == 2 && is_leap(year)) ||
        hour > 23 || minute > 59 || second > 59)
        return false;
    *seconds = days_of(year, month, day) * 86400 + hour * 3600 + minute * 60 + second;
    return true;
}

/* RFC 5280 section 4.1.2.5: in seconds, and Zulu. It wants UTCTime until 2049; roots in use have
 * GeneralizedTime before. */
static bool take_time(struct der *d, int64_t *seconds)
{
    struct span text;
    int century, year;
    if (der_next_is(d, DER_UTC_TIME)) {
        if (!der_take(d, DER_UTC_TIME, &text) || text.size != 13)
            return false;
        const uint8_t *at = text.data;
        return take_two(&at, &year) && take_rest(at, year < 50 ? 2000 + year : 1900 + year, seconds);
    }
    if (!der_take(d, DER_GENERALIZED_TIME, &text) || text.size != 15)
        return false;
    const uint8_t *at = text.data;
    return take_two(&at, &century) && take_two(&at, &year) && century > 0 &&
           take_rest(at, century * 100 + year, seconds);
}

static bool take_version(struct x509 *x, struct der *tbs)
{
    struct der version;
    int32_t number;
    x->version = 1;
    if (!der_next_is(tbs, DER_CONTEXT_CONSTRUCTED(0)))
        return true;
    if (!der_enter(tbs, DER_CONTEXT_CONSTRUCTED(0), &version) ||
        !der_take_small(&version, DER_INTEGER, &number) || !der_done(&version))
        return false;
    x->version = 3;
    return number == 2;
}

static bool take_serial(struct x509 *x, struct der *tbs)
{
    return der_take(tbs, DER_INTEGER, &x->serial) && der_is_integer(x->serial) && x->serial.data[0] < 0x80 &&
           x->serial.size <= SERIAL_MAX;
}

static bool take_name(struct der *tbs, struct span *name)
{
    return der_take_whole(tbs, DER_SEQUENCE, name) && x509_dn_valid(*name);
}

static bool take_validity(struct x509 *x, struct der *tbs)
{
    struct der validity;
    return der_enter(tbs, DER_SEQUENCE, &validity) && take_time(&validity, &x->not_before_s) &&
           take_time(&validity, &x->not_after_s) && der_done(&validity);
}

/* Unique identifiers are of no use, and RFC 5280 section 4.1.2.8 wants them gone; they may be there. */
static bool take_optional_parts(struct x509 *x, struct der *tbs)
{
    struct span unused;
    struct der extensions;
    if (x->version == 1)
        return true;
    for (uint8_t tag = DER_CONTEXT(1); tag <= DER_CONTEXT(2); tag++) {
        if (der_next_is(tbs, tag) && !der_take_octets(tbs, tag, &unused))
            return false;
    }
    if (!der_next_is(tbs, DER_CONTEXT_CONSTRUCTED(3)))
        return true;
    return der_enter(tbs, DER_CONTEXT_CONSTRUCTED(3), &extensions) &&
           x509_parse_extensions(x, span_of(extensions.at, (size_t)(extensions.end - extensions.at)));
}

static bool parse_tbs(struct x509 *x)
{
    struct der tbs;
    struct span algorithm;
    return der_only(x->tbs, DER_SEQUENCE, &tbs) && take_version(x, &tbs) && take_serial(x, &tbs) &&
           der_take_whole(&tbs, DER_SEQUENCE, &algorithm) && span_equal(algorithm, x->signature_algorithm) &&
           take_name(&tbs, &x->issuer) && take_validity(x, &tbs) && take_name(&tbs, &x->subject) &&
           der_take_whole(&tbs, DER_SEQUENCE, &x->key_info) && take_optional_parts(x, &tbs) && der_done(&tbs);
}

int x509_parse(struct x509 *x, struct span der)
{
    *x = (struct x509){.der = der, .path_length = -1};
    struct der certificate;
    bool good = der_only(der, DER_SEQUENCE, &certificate) &&
                der_take_whole(&certificate, DER_SEQUENCE, &x->tbs) &&
                der_take_whole(&certificate, DER_SEQUENCE, &x->signature_algorithm) &&
                der_take_octets(&certificate, DER_BIT_STRING, &x->signature) && der_done(&certificate) &&
                parse_tbs(x);
    return good ? 0 : PE_CERT_MALFORMED;
}
