/* The file of deaths: what is counted, for whom, what forgets it, and that damage costs counts and no start.
 */
#include "host/turn_mark.h"
#include "journal/store.h"
#include "tests/unit/temp_directory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#define FILE_MAX ((2 + 3) * MARK_UNIT)

struct bench {
    int fd;
    char directory[64];
    struct mark_app apps[3];
    struct turn_mark mark;
};

static void bench_open(struct bench *b)
{
    static const char *const names[] = {"one", "two", "three"};
    *b = (struct bench){.fd = temp_directory()};
    snprintf(b->directory, sizeof b->directory, "/proc/self/fd/%d", b->fd);
    for (unsigned i = 0; i < ARRAY_SIZE(names); i++) {
        strcpy(b->apps[i].name, names[i]);
        b->apps[i].module = (struct mark_module){1, 100 + i, 1000, 5000};
    }
}

static void bench_close(struct bench *b)
{
    close(b->fd);
}

static void begin(struct bench *b)
{
    assert_int_equal(mark_open(&b->mark, b->directory, b->apps, 3), 0);
}

static void expect_deaths(const struct bench *b, unsigned one, unsigned two, unsigned three)
{
    assert_int_equal(b->mark.apps[0].deaths, one);
    assert_int_equal(b->mark.apps[1].deaths, two);
    assert_int_equal(b->mark.apps[2].deaths, three);
}

/* A life that ends with a death of that app. */
static void die(struct bench *b, unsigned app)
{
    begin(b);
    mark_note(&b->mark, app, SIGSEGV);
    mark_close(&b->mark);
}

/* --- counts --- */

static void three_deaths_in_a_row_suspend_an_app_and_no_other(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b);
    for (unsigned i = 0; i < MARK_DEATHS; i++) {
        begin(&b);
        expect_deaths(&b, 0, i, 0);
        assert_false(mark_suspends(&b.mark.apps[1]));
        mark_note(&b.mark, 1, SIGSEGV);
        mark_close(&b.mark);
    }
    begin(&b);
    expect_deaths(&b, 0, 3, 0);
    assert_true(mark_suspends(&b.mark.apps[1]));
    assert_int_equal(b.mark.apps[1].cause, SIGSEGV);
    mark_close(&b.mark);
    bench_close(&b);
}

static void lives_that_say_nothing_at_their_end_neither_count_nor_forget(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b);
    die(&b, 0);
    for (unsigned i = 0; i < 5; i++) {
        begin(&b);
        expect_deaths(&b, 1, 0, 0);
        mark_close(&b.mark);
    }
    die(&b, 0);
    die(&b, 2);
    begin(&b);
    expect_deaths(&b, 2, 0, 1);
    mark_close(&b.mark);
    bench_close(&b);
}

static void a_suspended_app_stays_so_whoever_dies_then(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b);
    for (unsigned i = 0; i < MARK_DEATHS; i++)
        die(&b, 0);
    die(&b, 1);
    die(&b, 0); /* which cannot be, and must not overflow */
    begin(&b);
    expect_deaths(&b, MARK_DEATHS, 1, 0);
    mark_close(&b.mark);
    bench_close(&b);
}

static void another_module_file_begins_anew_whatever_of_it_differs(void **state)
{
    (void)state;
    for (unsigned part = 0; part < 4; part++) {
        struct bench b;
        bench_open(&b);
        die(&b, 0);
        die(&b, 1);
        struct mark_module *module = &b.apps[0].module;
        uint64_t *const parts[] = {&module->device, &module->inode, &module->modified_ns, &module->size};
        ++*parts[part];
        begin(&b);
        expect_deaths(&b, 0, 1, 0);
        assert_int_equal(b.mark.apps[0].forgotten, 1);
        assert_int_equal(b.mark.apps[1].forgotten, 0);
        mark_close(&b.mark);
        bench_close(&b);
    }
}

static void deaths_follow_the_name_when_apps_come_and_go(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b);
    die(&b, 2);
    struct mark_app third = b.apps[2];
    assert_int_equal(mark_open(&b.mark, b.directory, &third, 1), 0);
    assert_int_equal(b.mark.apps[0].deaths, 1);
    mark_note(&b.mark, 0, MARK_EXIT);
    mark_close(&b.mark);
    begin(&b);
    expect_deaths(&b, 0, 0, 2);
    assert_int_equal(b.mark.apps[2].cause, MARK_EXIT);
    mark_close(&b.mark);
    bench_close(&b);
}

static void what_is_forgotten_is_forgotten_for_the_next_life_too(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b);
    die(&b, 0);
    die(&b, 1);
    begin(&b);
    assert_int_equal(mark_forget(&b.mark, 0), 0);
    expect_deaths(&b, 0, 1, 0);
    mark_close(&b.mark);
    begin(&b);
    expect_deaths(&b, 0, 1, 0);
    mark_close(&b.mark);
    bench_close(&b);
}

static void between_lives_deaths_are_seen_and_forgotten_with_the_noted_one(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b);
    assert_int_equal(mark_peek(b.directory, &b.apps[0]), 0);
    assert_int_equal(mark_forget_in(b.directory, &b.apps[0]), 0);
    die(&b, 0);
    die(&b, 1);
    die(&b, 0);
    assert_int_equal(mark_peek(b.directory, &b.apps[0]), 2);
    assert_int_equal(mark_forget_in(b.directory, &b.apps[0]), 2);
    assert_int_equal(mark_peek(b.directory, &b.apps[0]), 0);
    assert_int_equal(mark_peek(b.directory, &b.apps[1]), 1);
    begin(&b);
    expect_deaths(&b, 0, 1, 0);
    mark_close(&b.mark);
    bench_close(&b);
}

static void without_a_directory_nothing_is_remembered_and_all_works(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(mark_open(&b.mark, NULL, b.apps, 3), 0);
        expect_deaths(&b, 0, 0, 0);
        mark_note(&b.mark, 0, SIGBUS);
        assert_int_equal(mark_forget(&b.mark, 0), 0);
        mark_close(&b.mark);
    }
    bench_close(&b);
}

static void what_stands_in_the_place_of_the_file_is_left_alone(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b);
    assert_int_equal(mkfifoat(b.fd, STORE_DEATHS_NAME, 0600), 0);
    assert_int_equal(mark_open(&b.mark, b.directory, b.apps, 3), -ENOTSUP);
    expect_deaths(&b, 0, 0, 0);
    mark_note(&b.mark, 0, SIGSEGV);
    mark_close(&b.mark);
    bench_close(&b);
}

static void ten_minutes_of_life_forget_the_deaths_of_those_who_lived(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b);
    for (unsigned i = 0; i < MARK_DEATHS; i++)
        die(&b, 0);
    die(&b, 1);
    die(&b, 1);
    for (unsigned life = 0; life < 2; life++) { /* the second is as short as the first, not what was left */
        begin(&b);
        assert_int_equal(mark_live(&b.mark, NS_PER_S), 0);
        assert_int_equal(mark_live(&b.mark, NS_PER_S + MARK_LIFE_NS - 1), 0);
        expect_deaths(&b, 3, 2, 0);
        mark_close(&b.mark);
    }
    begin(&b);
    mark_live(&b.mark, NS_PER_S);
    assert_int_equal(mark_live(&b.mark, NS_PER_S + MARK_LIFE_NS), 0);
    expect_deaths(&b, 3, 0, 0);
    mark_note(&b.mark, 1, SIGFPE);
    mark_close(&b.mark);
    begin(&b);
    expect_deaths(&b, 3, 1, 0);
    mark_close(&b.mark);
    bench_close(&b);
}

/* --- damage --- */

static size_t read_file(const struct bench *b, uint8_t *bytes)
{
    int fd = openat(b->fd, STORE_DEATHS_NAME, O_RDONLY);
    ssize_t size = read(fd, bytes, FILE_MAX + 1);
    close(fd);
    assert_true(size > 0 && size <= FILE_MAX);
    return (size_t)size;
}

static void write_file(const struct bench *b, const uint8_t *bytes, size_t size)
{
    int fd = openat(b->fd, STORE_DEATHS_NAME, O_WRONLY | O_TRUNC);
    assert_int_equal(write(fd, bytes, size), size);
    close(fd);
}

/* App 0 has died twice, the second noted; app 1 once. */
static size_t dead_file(struct bench *b, uint8_t *bytes)
{
    bench_open(b);
    die(b, 1);
    die(b, 0);
    die(b, 0);
    size_t size = read_file(b, bytes);
    assert_int_equal(size, FILE_MAX);
    return size;
}

/* Whatever the file is: the life begins, and no app has more deaths than it had. */
static void begin_damaged(struct bench *b)
{
    begin(b);
    assert_true(b->mark.apps[0].deaths <= 2 && b->mark.apps[1].deaths <= 1);
    assert_int_equal(b->mark.apps[2].deaths, 0);
}

static void every_flipped_bit_costs_the_counts_of_its_unit_at_most(void **state)
{
    (void)state;
    struct bench b;
    uint8_t bytes[FILE_MAX + 1];
    size_t size = dead_file(&b, bytes);
    for (size_t bit = 0; bit < 8 * size; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        write_file(&b, bytes, size);
        bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        begin_damaged(&b);
        unsigned unit = (unsigned)(bit / 8 / MARK_UNIT);
        unsigned one = unit == 0 || unit == 2 ? 0 : unit == 1 ? 1 : 2;
        expect_deaths(&b, one, unit == 0 || unit == 3 ? 0 : 1, 0);
        mark_close(&b.mark);
    }
    bench_close(&b);
}

static void every_truncation_costs_the_counts_behind_it(void **state)
{
    (void)state;
    struct bench b;
    uint8_t bytes[FILE_MAX + 1];
    size_t size = dead_file(&b, bytes);
    for (size_t cut = 0; cut < size; cut++) {
        write_file(&b, bytes, cut);
        begin_damaged(&b);
        expect_deaths(&b, cut >= 3 * MARK_UNIT ? 2 : 0, cut >= 4 * MARK_UNIT ? 1 : 0, 0);
        mark_close(&b.mark);
    }
    bench_close(&b);
}

static void a_file_of_something_else_counts_nothing_and_becomes_ours(void **state)
{
    (void)state;
    struct bench b;
    bench_open(&b);
    begin(&b);
    mark_close(&b.mark);
    uint8_t bytes[FILE_MAX];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * 131 + 7);
    write_file(&b, bytes, sizeof bytes);
    begin(&b);
    expect_deaths(&b, 0, 0, 0);
    mark_note(&b.mark, 0, SIGILL);
    mark_close(&b.mark);
    begin(&b);
    expect_deaths(&b, 1, 0, 0);
    mark_close(&b.mark);
    bench_close(&b);
}

/* --- texts --- */

static void causes_have_texts(void **state)
{
    (void)state;
    static const struct {
        uint32_t cause;
        const char *text;
    } rows[] = {
        {SIGSEGV, "signal 11 (SIGSEGV)"},
        {SIGABRT, "signal 6 (SIGABRT)"},
        {4294967295u, "signal 4294967295"},
        {MARK_EXIT, "a call of exit"},
        {MARK_OVERRAN, "a call over twice its turn_limit that could not be left"},
        {MARK_HUNG, "a call that did not return for twice its turn_limit"},
    };
    for (unsigned i = 0; i < ARRAY_SIZE(rows); i++) {
        char text[MARK_CAUSE_TEXT];
        mark_cause_text(rows[i].cause, text);
        assert_string_equal(text, rows[i].text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_deaths_in_a_row_suspend_an_app_and_no_other),
        cmocka_unit_test(lives_that_say_nothing_at_their_end_neither_count_nor_forget),
        cmocka_unit_test(a_suspended_app_stays_so_whoever_dies_then),
        cmocka_unit_test(another_module_file_begins_anew_whatever_of_it_differs),
        cmocka_unit_test(deaths_follow_the_name_when_apps_come_and_go),
        cmocka_unit_test(what_is_forgotten_is_forgotten_for_the_next_life_too),
        cmocka_unit_test(between_lives_deaths_are_seen_and_forgotten_with_the_noted_one),
        cmocka_unit_test(without_a_directory_nothing_is_remembered_and_all_works),
        cmocka_unit_test(what_stands_in_the_place_of_the_file_is_left_alone),
        cmocka_unit_test(ten_minutes_of_life_forget_the_deaths_of_those_who_lived),
        cmocka_unit_test(every_flipped_bit_costs_the_counts_of_its_unit_at_most),
        cmocka_unit_test(every_truncation_costs_the_counts_behind_it),
        cmocka_unit_test(a_file_of_something_else_counts_nothing_and_becomes_ours),
        cmocka_unit_test(causes_have_texts),
    };
    temp_make();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
