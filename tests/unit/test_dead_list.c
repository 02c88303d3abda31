/* The list of an output's dead letters by itself. */
#include "host/dead_letters.h"
#include "host/inbox.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

static int add(struct dead_letters *d, uint64_t number)
{
    return dead_letters_add(d, &(struct dead_letter){.number = number, .segment = 1}, span_text("400 No"));
}

static void letters_are_listed_by_number_and_each_once(void **state)
{
    (void)state;
    struct dead_letters d = {0};
    struct text t = {0};
    for (uint64_t number = 40; number >= 1; number--)
        assert_int_equal(add(&d, number), 0);
    assert_int_equal(add(&d, 7), 0);
    dead_letters_forget(&d, 9);
    dead_letters_forget(&d, 100);
    assert_int_equal(dead_letters_kept(&d), 39);
    uint64_t next = 1;
    for (struct dead_letter *l; (l = dead_letters_from(&d, next)); next = l->number + 1)
        assert_int_equal(l->number, next == 9 ? 10 : next);
    assert_int_equal(next, 41);
    dead_letters_clear(&d);
    dead_letters_list(&d, 0, 1000, &t);
    assert_string_equal(t.data, "{\"dead\":[],\"more\":false}\n");
    text_dispose(&t);
    dead_letters_dispose(&d);
}

static void a_list_ends_before_it_is_too_large_and_goes_on_where_it_ended(void **state)
{
    (void)state;
    struct dead_letters d = {0};
    struct dead_letter l = {.segment = 1, .time_ms = UINT64_MAX, .bytes = UINT32_MAX};
    char reason[OUTLET_REASON_MAX + 10];
    memset(reason, 0x1f, sizeof reason);
    for (l.number = UINT64_MAX - 300; l.number < UINT64_MAX; l.number++)
        assert_int_equal(dead_letters_add(&d, &l, span_of(reason, sizeof reason)), 0);
    unsigned pages = 0, shown = 0;
    for (uint64_t next = 0; next != UINT64_MAX; pages++) {
        struct text t = {0};
        dead_letters_list(&d, next, SHOW_MAX, &t);
        assert_true(t.size <= SHOW_MAX);
        bool more = strstr(t.data, "],\"more\":true}\n") != NULL;
        for (const char *at = t.data; (at = strstr(at, "\"number\":")); shown++)
            next = strtoull(at += strlen("\"number\":"), NULL, 10) + 1;
        assert_true(more == (next < UINT64_MAX));
        text_dispose(&t);
    }
    assert_int_equal(shown, 300);
    assert_true(pages > 1);
    dead_letters_dispose(&d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(letters_are_listed_by_number_and_each_once),
        cmocka_unit_test(a_list_ends_before_it_is_too_large_and_goes_on_where_it_ended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
