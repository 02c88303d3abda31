/* What the tests of the seam share: an io of one of the three back ends (simulated, epoll, io_uring), and
 * waits that are bounded. Of the network they need loopback only. */
#ifndef PURE_TESTS_UNIT_SEAM_WORLD_H
#define PURE_TESTS_UNIT_SEAM_WORLD_H

#include "experiments/epoll/epoll.h"
#include "tests/sim/datagrams.h"
#include "tests/sim/sim.h"
#include "uring/uring.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>
#include <cmocka.h>

#define WAITS_MAX 3000 /* of 10 ms at most */

enum back_end { SIMULATED, EPOLL, URING, BACK_ENDS };

struct world {
    enum back_end back_end;
    struct sim *sim; /* NULL: not simulated */
    struct io *io;
    int listener, server, client; /* descriptors; -1: none */
    struct sockaddr_in address;
};

static inline enum back_end back_end_of(void **state)
{
    return (enum back_end)(uintptr_t)*state;
}

/* `buffers` of `buffer_bytes` for receives (epoll has one, the simulated world none that run out); 0: the
 * defaults. */
static inline void open_world_with(struct world *w, enum back_end back_end, unsigned buffers,
                                   uint32_t buffer_bytes)
{
    struct uring_options uring = uring_defaults;
    struct epoll_options epoll = epoll_defaults;
    if (buffers > 0) {
        uring.buffers = buffers;
        uring.buffer_bytes = epoll.buffer_bytes = buffer_bytes;
    }
    *w = (struct world){.back_end = back_end, .listener = -1, .server = -1, .client = -1};
    if (back_end == SIMULATED) {
        w->sim = sim_new(1);
        w->io = sim_io(w->sim, NULL);
    } else if (back_end == EPOLL) {
        assert_int_equal(epoll_open(&w->io, &epoll), 0);
    } else {
        assert_int_equal(uring_open(&w->io, &uring), 0);
    }
}

static inline void open_world(struct world *w, enum back_end back_end)
{
    open_world_with(w, back_end, 0, 0);
}

/* One wait that cannot hang: of 10 ms at most, or of a jump of the virtual clock. */
static inline int wait_once(struct world *w)
{
    int count = io_wait(w->io, io_now_ns(w->io) + 10 * NS_PER_MS);
    assert_true(count >= 0);
    if (count == 0 && w->sim)
        sim_advance(w->sim);
    return count;
}

static inline void wait_until(struct world *w, const bool *condition)
{
    for (unsigned i = 0; i < WAITS_MAX && !*condition; i++)
        wait_once(w);
    assert_true(*condition);
}

static inline void wait_a_little(struct world *w)
{
    for (unsigned i = 0; i < 5; i++)
        wait_once(w);
}

/* Each promise once a back end, named for it: "uring: nobody_listening_refuses". */
static inline int run_promises(const struct CMUnitTest *promises, size_t count)
{
    static const char *const names[BACK_ENDS] = {"sim", "epoll", "uring"};
    static char texts[BACK_ENDS * 64][100];
    struct CMUnitTest tests[BACK_ENDS * 64];
    assert_true(count <= 64);
    for (size_t i = 0; i < BACK_ENDS * count; i++) {
        tests[i] = promises[i % count];
        snprintf(texts[i], sizeof texts[i], "%s: %s", names[i / count], tests[i].name);
        tests[i].name = texts[i];
        tests[i].initial_state = (void *)(uintptr_t)(i / count);
    }
    alarm(120); /* a wake that is lost hangs a wait without a deadline */
    return _cmocka_run_group_tests("seam", tests, BACK_ENDS * count, NULL, NULL);
}

#endif
