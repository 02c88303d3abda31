/* The log pump: what is written to it comes out behind it; a terminal, pipe or socket that takes nothing
 * holds up neither the writer nor the end, and keeps its flags. */
#include "host/log_pump.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>
#include <cmocka.h>

#define LIMIT_BYTES (16 * 1024 * 1024) /* more than any of these holds */

/* As the ring writes (uring/ring.c). */
static ssize_t write_now(int fd, const void *bytes, size_t size)
{
    ssize_t wrote = send(fd, bytes, size, MSG_DONTWAIT | MSG_NOSIGNAL);
    return wrote < 0 && errno == ENOTSOCK ? write(fd, bytes, size) : wrote;
}

/* Until the pump takes no more, which is to happen without waiting. */
static size_t fill(const struct log_pump *p)
{
    static const char line[100] = "line\n";
    size_t size = 0;
    ssize_t wrote;
    while ((wrote = write_now(p->fd, line, sizeof line)) > 0 && size < LIMIT_BYTES)
        size += (size_t)wrote;
    assert_true(wrote < 0);
    assert_int_equal(errno, EAGAIN);
    return size;
}

/* `to` takes nothing any more sooner or later. It stays open: a thread is left in a write to it. */
static void neither_writing_nor_stopping_waits_for(int to)
{
    int (*const ways[])(struct log_pump *, int) = {log_pump_start, log_pump_start_thread};
    for (unsigned i = 0; i < 2; i++) {
        struct log_pump p;
        int flags = fcntl(to, F_GETFL);
        assert_int_equal(ways[i](&p, to), 0);
        assert_int_equal(p.threaded, i == 1);
        fill(&p);
        assert_int_equal(fcntl(to, F_GETFL), flags);
        log_pump_stop(&p);
        assert_int_equal(fcntl(to, F_GETFL), flags);
    }
}

static void a_terminal_that_is_stopped_holds_up_nobody(void **state)
{
    (void)state;
    int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(master >= 0);
    assert_int_equal(grantpt(master) | unlockpt(master), 0);
    int terminal = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(terminal >= 0);
    assert_int_equal(tcflow(terminal, TCOOFF), 0); /* as Ctrl-S does */
    neither_writing_nor_stopping_waits_for(terminal);
    close(master);
}

static void a_pipe_and_a_socket_that_nobody_reads_hold_up_nobody(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        int ends[2];
        int failed =
            i == 0 ? pipe2(ends, O_CLOEXEC) : socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends);
        assert_int_equal(failed, 0);
        neither_writing_nor_stopping_waits_for(ends[1]);
        close(ends[0]);
    }
}

static void all_that_was_written_comes_out_before_the_stop_returns(void **state)
{
    (void)state;
    FILE *file = tmpfile();
    assert_non_null(file);
    struct log_pump p;
    assert_int_equal(log_pump_start_thread(&p, fileno(file)), 0);
    assert_int_equal(write(p.fd, "one\n", 4), 4);
    assert_int_equal(write(p.fd, "two\n", 4), 4);
    log_pump_stop(&p);
    log_pump_stop(&p); /* once more does nothing */
    char text[16] = "";
    assert_int_equal(pread(fileno(file), text, sizeof text, 0), 8);
    assert_string_equal(text, "one\ntwo\n");
    fclose(file);
}

static void what_cannot_be_written_is_lost_and_the_rest_is_not(void **state)
{
    (void)state;
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    assert_true(full >= 0);
    struct log_pump p;
    assert_int_equal(log_pump_start_thread(&p, full), 0);
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(write(p.fd, "lost\n", 5), 5);
    log_pump_stop(&p);
    close(full);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_terminal_that_is_stopped_holds_up_nobody),
        cmocka_unit_test(a_pipe_and_a_socket_that_nobody_reads_hold_up_nobody),
        cmocka_unit_test(all_that_was_written_comes_out_before_the_stop_returns),
        cmocka_unit_test(what_cannot_be_written_is_lost_and_the_rest_is_not),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
