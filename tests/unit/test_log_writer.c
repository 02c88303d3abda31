/* The log writer: all threads' lines reach the descriptor, in order, whole; a reader that stalls costs lines,
 * which are counted, and nothing else. */
#include "host/log_writer.h"
#include "tests/sim/sim.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

struct fixture {
    struct sim *sim;
    struct loop loop;
    struct log_writer writer;
    struct log logs[2];
    int fd;
};

static void set_up(struct fixture *f, size_t pipe_bytes)
{
    f->sim = sim_new(1);
    assert_int_equal(loop_init(&f->loop, sim_io(f->sim, NULL), 64, 4), 0);
    f->fd = sim_pipe(f->sim, pipe_bytes);
    assert_int_equal(log_writer_init(&f->writer, &f->loop, f->fd, false), 0);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(log_init(&f->logs[i], NULL, 0), 0);
        assert_int_equal(log_writer_add(&f->writer, &f->logs[i]), 0);
    }
    sim_add_loop(f->sim, &f->loop);
}

static bool stopped(void *context)
{
    return log_writer_stopped(context);
}

static void tear_down(struct fixture *f)
{
    log_writer_stop(&f->writer);
    assert_int_equal(sim_run_until(f->sim, stopped, &f->writer), SIM_DONE);
    sim_remove_loop(f->sim, &f->loop);
    log_writer_dispose(&f->writer);
    for (unsigned i = 0; i < 2; i++)
        log_dispose(&f->logs[i]);
    loop_dispose(&f->loop);
    sim_free(f->sim);
}

/* Takes all that comes, as text. */
static size_t take(struct fixture *f, char *text, size_t size)
{
    size_t have = 0, took;
    do {
        sim_run_for(f->sim, NS_PER_S);
        took = sim_pipe_take(f->sim, f->fd, text + have, size - 1 - have);
        have += took;
    } while (took > 0);
    text[have] = '\0';
    return have;
}

static void lines_come_out_whole_with_their_level(void **state)
{
    (void)state;
    struct fixture f;
    char text[200];
    set_up(&f, 4096);
    log_line(&f.logs[0], LOG_INFO, "one %d", 1);
    log_line(&f.logs[0], LOG_ERROR, "two");
    take(&f, text, sizeof text);
    assert_string_equal(text, "<6>one 1\n<3>two\n");
    log_line(&f.logs[1], LOG_NOTICE, "three");
    take(&f, text, sizeof text);
    assert_string_equal(text, "<5>three\n");
    tear_down(&f);
}

/* Writes more than fits in all the queues together, then reads: what came is in order, what is missing is
 * counted. */
static void a_reader_that_stalls_costs_lines_that_are_counted(void **state)
{
    (void)state;
    static char text[1 << 20];
    struct fixture f;
    set_up(&f, 100);
    unsigned logged = 20000, lines = 0, last = 0;
    unsigned long long dropped = 0, one;
    for (unsigned i = 1; i <= logged; i++) {
        log_line(&f.logs[0], LOG_INFO, "line %u", i);
        if (i % 1000 == 0)
            sim_run_for(f.sim, NS_PER_MS);
    }
    take(&f, text, sizeof text);
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        unsigned number;
        if (sscanf(line, "<6>line %u", &number) == 1) {
            assert_true(number > last);
            last = number;
            lines++;
        } else {
            assert_int_equal(sscanf(line, "<4>%llu log lines were dropped", &one), 1);
            dropped += one;
        }
    }
    assert_true(dropped > 0);
    assert_int_equal(lines + dropped, logged);
    tear_down(&f);
}

static void two_logs_share_the_writer(void **state)
{
    (void)state;
    static char text[1 << 20];
    struct fixture f;
    set_up(&f, 500);
    for (unsigned i = 0; i < 3000; i++)
        log_line(&f.logs[0], LOG_INFO, "from the busy one");
    log_line(&f.logs[1], LOG_INFO, "from the other");
    take(&f, text, sizeof text);
    assert_non_null(strstr(text, "<6>from the other\n"));
    tear_down(&f);
}

static void a_write_that_fails_loses_its_lines_only(void **state)
{
    (void)state;
    struct fixture f;
    char text[200];
    set_up(&f, 4096);
    sim_pipe_fail(f.sim, f.fd, -EIO);
    log_line(&f.logs[0], LOG_INFO, "lost");
    sim_run_for(f.sim, NS_PER_S);
    sim_pipe_fail(f.sim, f.fd, 0);
    log_line(&f.logs[0], LOG_INFO, "seen");
    take(&f, text, sizeof text);
    assert_string_equal(text, "<6>seen\n");
    tear_down(&f);
}

static void a_writer_stops_though_nobody_reads(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f, 10);
    for (unsigned i = 0; i < 100; i++)
        log_line(&f.logs[0], LOG_INFO, "line %u", i);
    sim_run_for(f.sim, NS_PER_S);
    assert_true(f.writer.op.in_flight);
    tear_down(&f);
}

static void for_people_a_line_has_its_time_and_level_in_words(void **state)
{
    (void)state;
    struct fixture f;
    set_up(&f, 4096);
    f.writer.for_people = true;
    sim_set_wall_ms(f.sim, UINT64_C(951782400000)); /* a leap day */
    log_line(&f.logs[0], LOG_WARNING, "look here");
    log_line(&f.logs[1], LOG_ERROR, "%s", "");
    char text[200];
    take(&f, text, sizeof text);
    assert_string_equal(text, "2000-02-29T00:00:00Z warning: look here\n2000-02-29T00:00:00Z error: \n");
    tear_down(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_come_out_whole_with_their_level),
        cmocka_unit_test(a_reader_that_stalls_costs_lines_that_are_counted),
        cmocka_unit_test(two_logs_share_the_writer),
        cmocka_unit_test(a_write_that_fails_loses_its_lines_only),
        cmocka_unit_test(a_writer_stops_though_nobody_reads),
        cmocka_unit_test(for_people_a_line_has_its_time_and_level_in_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
