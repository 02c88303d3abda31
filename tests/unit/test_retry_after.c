/* Retry-After and the three forms of an HTTP-date. */
#include "wire/retry_after.h"

#include "core/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <cmocka.h>

#define NOW_S INT64_C(1767225600) /* 2026-01-01 */

static int parse(const char *text, int64_t base_s, int64_t *seconds)
{
    *seconds = -1;
    return http_date_parse(span_text(text), base_s, seconds);
}

static void the_three_forms_of_the_rfc_are_one_moment(void **state)
{
    (void)state;
    static const char *const forms[] = {"Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT",
                                        "Sun Nov  6 08:49:37 1994"};
    for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
        int64_t seconds;
        assert_int_equal(parse(forms[i], NOW_S, &seconds), 0);
        assert_int_equal(seconds, 784111777);
    }
}

static void every_day_of_eight_hundred_years_agrees_with_the_library(void **state)
{
    (void)state;
    for (int64_t day = -370 * 365; day < 430 * 365; day++) {
        time_t at = (time_t)(day * 86400 + (day * 7919) % 86400);
        struct tm tm;
        gmtime_r(&at, &tm);
        char text[64];
        strftime(text, sizeof text, "%a, %d %b %Y %H:%M:%S GMT", &tm);
        int64_t seconds;
        assert_int_equal(parse(text, NOW_S, &seconds), 0);
        assert_int_equal(seconds, at);
        strftime(text, sizeof text, "%a %b %e %H:%M:%S %Y", &tm);
        assert_int_equal(parse(text, NOW_S, &seconds), 0);
        assert_int_equal(seconds, at);
    }
}

static void a_year_of_two_digits_is_the_nearest(void **state)
{
    (void)state;
    static const struct {
        const char *base, *date, *year;
    } cases[] = {{"2026", "94", "1994"}, {"2026", "76", "2076"}, {"2026", "77", "1977"},
                 {"2026", "26", "2026"}, {"1970", "26", "1926"}, {"2099", "01", "2101"},
                 {"1994", "94", "1994"}, {"2000", "00", "2000"}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[64];
        int64_t base, expected, seconds;
        snprintf(text, sizeof text, "Sun, 06 Nov %s 00:00:00 GMT", cases[i].base);
        assert_int_equal(parse(text, 0, &base), 0);
        snprintf(text, sizeof text, "Sun, 06 Nov %s 00:00:00 GMT", cases[i].year);
        assert_int_equal(parse(text, 0, &expected), 0);
        snprintf(text, sizeof text, "Monday, 06-Nov-%s 00:00:00 GMT", cases[i].date);
        assert_int_equal(parse(text, base, &seconds), 0);
        assert_int_equal(seconds, expected);
    }
}

static void what_is_no_date_is_malformed(void **state)
{
    (void)state;
    static const char *const cases[] = {"",
                                        "S",
                                        "Sun",
                                        "Sun,",
                                        "Sun ",
                                        "Sun, 06 Nov 1994 08:49:37",
                                        "Sun, 06 Nov 1994 08:49:37 GMT ",
                                        " Sun, 06 Nov 1994 08:49:37 GMT",
                                        "Sun, 6 Nov 1994 08:49:37 GMT",
                                        "Sun, 06 nov 1994 08:49:37 GMT",
                                        "Sun, 06 Nov 94 08:49:37 GMT",
                                        "Sun, 06 Nov 1994 08:49:37 UTC",
                                        "Sun, 06 Nov 1994 8:49:37 GMT",
                                        "Xyz, 06 Nov 1994 08:49:37 GMT",
                                        "sun, 06 Nov 1994 08:49:37 GMT",
                                        "Sun, 00 Nov 1994 08:49:37 GMT",
                                        "Sun, 31 Nov 1994 08:49:37 GMT",
                                        "Sun, 29 Feb 1900 08:49:37 GMT",
                                        "Sun, 30 Feb 2000 08:49:37 GMT",
                                        "Sun, 06 Nov 1994 24:00:00 GMT",
                                        "Sun, 06 Nov 1994 00:60:00 GMT",
                                        "Sun, 06 Nov 1994 00:00:61 GMT",
                                        "Sun, 06-Nov-94 08:49:37 GMT",
                                        "Sunday, 06 Nov 1994 08:49:37 GMT",
                                        "Sun Nov 6 08:49:37 1994",
                                        "Sun Nov  6 08:49:37 94",
                                        "Sun Nov  06 08:49:37 1994",
                                        "1994-11-06T08:49:37Z"};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        int64_t seconds;
        if (parse(cases[i], NOW_S, &seconds) != PE_MALFORMED)
            fail_msg("\"%s\" is taken", cases[i]);
    }
    int64_t seconds;
    assert_int_equal(parse("Tue, 29 Feb 2000 23:59:60 GMT", NOW_S, &seconds), 0); /* a leap second */
}

static void the_wait_is_what_is_asked_for_or_nothing(void **state)
{
    (void)state;
    static const struct {
        const char *value, *date;
        uint64_t wait_ns;
    } cases[] = {
        {"0", "", 0},
        {"1", "", NS_PER_S},
        {"0120", "", 120 * NS_PER_S},
        {"99999999999999999999999999999999", "", RETRY_AFTER_MAX_NS},
        {"", "", 0},
        {"-1", "", 0},
        {"1.5", "", 0},
        {"1 ", "", 0},
        {"0x10", "", 0},
        {"soon", "", 0},
        {"Thu, 01 Jan 2026 00:02:00 GMT", "", 120 * NS_PER_S},
        {"Wed, 31 Dec 2025 00:02:00 GMT", "", 0},
        {"Thu, 01 Jan 9999 00:00:00 GMT", "", RETRY_AFTER_MAX_NS},
        /* the peer's own clock counts */
        {"Thu, 01 Jan 2015 00:02:00 GMT", "Thu, 01 Jan 2015 00:01:00 GMT", 60 * NS_PER_S},
        {"Thu, 01 Jan 2026 00:02:00 GMT", "yesterday", 120 * NS_PER_S},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint64_t wait_ns = retry_after_ns(span_text(cases[i].value), span_text(cases[i].date), NOW_S * 1000);
        if (wait_ns != cases[i].wait_ns)
            fail_msg("\"%s\": %llu ns", cases[i].value, (unsigned long long)wait_ns);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_three_forms_of_the_rfc_are_one_moment),
        cmocka_unit_test(every_day_of_eight_hundred_years_agrees_with_the_library),
        cmocka_unit_test(a_year_of_two_digits_is_the_nearest),
        cmocka_unit_test(what_is_no_date_is_malformed),
        cmocka_unit_test(the_wait_is_what_is_asked_for_or_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
