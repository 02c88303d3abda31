/* A destination and its dials in a simulated world.
 *
 *     10.0.0.1  the dials' loop  <--->  10.0.1.N, fd00::N  scripted servers and proxies */
#ifndef PURE_TESTS_UNIT_DIAL_BENCH_H
#define PURE_TESTS_UNIT_DIAL_BENCH_H

#include "core/error.h"
#include "tests/sim/sim.h"
#include "wire/dial.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define NAME "there.example"
#define URL  "http://" NAME "/x"

#define BENCH_DIALS   16
#define BENCH_SEEDS   20
#define BENCH_LIMIT_S 100 /* no dial lasts longer */

struct bench;

struct bench_dial {
    struct dial dial; /* first */
    struct bench *bench;
    unsigned dones;
    int error;
    uint64_t done_ns;
    bool keeps;     /* the connection; else it is closed when it is there */
    unsigned again; /* times to start from inside `done` */
    int fd;         /* kept */
    struct io_op close;
};

struct bench {
    struct sim *sim;
    struct loop loop;
    struct wire_options options;
    struct networks egress;
    struct destination destination;
    struct bench_dial dials[BENCH_DIALS];
    unsigned started;
    bool inside; /* a call of ours: `done` must not come */
};

static void bench_closed(struct io_op *op, int result, bool more)
{
    (void)op, (void)more;
    assert_int_equal(result, 0);
}

static void bench_close(struct bench_dial *d, int fd)
{
    io_prepare(&d->close, IO_CLOSE, fd, bench_closed);
    io_queue(d->bench->loop.io, &d->close);
}

static void bench_start(struct bench *b, unsigned i)
{
    b->loop.now_ns = sim_now_ns(b->sim); /* as if something had woken the loop */
    b->inside = true;
    dial_start(&b->dials[i].dial, b->loop.now_ns);
    b->inside = false;
    b->started++;
    assert_true(dial_busy(&b->dials[i].dial));
}

static void bench_done(struct dial *dial, int fd, int error)
{
    struct bench_dial *d = (struct bench_dial *)dial;
    assert_false(d->bench->inside || dial_busy(dial));
    assert_int_equal(fd < 0, error < 0);
    d->dones++;
    d->error = error;
    d->done_ns = d->bench->loop.now_ns;
    if (fd >= 0 && d->keeps)
        d->fd = fd;
    else if (fd >= 0)
        bench_close(d, fd);
    if (d->again > 0) {
        d->again--;
        bench_start(d->bench, (unsigned)(d - d->bench->dials));
    }
}

static void bench_url(struct bench *b, const char *text)
{
    const char *why;
    assert_int_equal(url_parse(&b->options.url, text, &why), 0);
}

static inline void bench_deny(struct bench *b, const char *text)
{
    struct networks *n = &b->egress;
    int count = networks_parse(span_text(text), n->deny + n->deny_count, NETWORKS_MAX - n->deny_count);
    assert_true(count > 0);
    n->deny_count += (unsigned)count;
}

/* A world for a wire to `url`; options and rules may be changed before bench_open. */
static void bench_new(struct bench *b, uint64_t seed, const char *url)
{
    *b = (struct bench){.sim = sim_new(seed)};
    assert_int_equal(loop_init(&b->loop, sim_io(b->sim, "10.0.0.1"), 1, BENCH_DIALS + 1), 0);
    sim_add_loop(b->sim, &b->loop);
    wire_options_default(&b->options);
    b->options.egress = &b->egress;
    bench_url(b, url);
}

static void bench_open(struct bench *b)
{
    destination_init(&b->destination, &b->options, &b->loop, sim_resolver(b->sim, &b->loop));
    for (unsigned i = 0; i < BENCH_DIALS; i++) {
        b->dials[i].bench = b;
        dial_init(&b->dials[i].dial, &b->destination, bench_done);
    }
}

static unsigned bench_dones(const struct bench *b)
{
    unsigned dones = 0;
    for (unsigned i = 0; i < BENCH_DIALS; i++)
        dones += b->dials[i].dones;
    return dones;
}

static bool bench_all_done(void *context)
{
    const struct bench *b = context;
    return bench_dones(b) == b->started;
}

static void bench_finish(struct bench *b)
{
    uint64_t until_ns = sim_now_ns(b->sim) + BENCH_LIMIT_S * NS_PER_S;
    assert_int_equal(sim_run(b->sim, until_ns, bench_all_done, b, 100000), SIM_DONE);
}

/* Starts the first dial and returns its outcome. */
static inline int bench_dial(struct bench *b)
{
    bench_start(b, 0);
    bench_finish(b);
    return b->dials[0].error;
}

/* What the name's answer is, after a millisecond. NULL: no more. */
static inline void name_is(struct bench *b, const char *first, const char *second, const char *third)
{
    struct sim_answer answer = {.addresses = {first, second, third}, .delay_ns = NS_PER_MS};
    sim_set_name(b->sim, NAME, &answer);
}

static inline struct sim_server *listens(struct bench *b, const char *endpoint)
{
    static const struct sim_step silent[] = {SIM_EXPECT_END};
    return sim_server(b->sim, endpoint, silent, ARRAY_SIZE(silent));
}

/* Nothing of it is left. */
static void bench_free(struct bench *b)
{
    bench_finish(b);
    sim_run_for(b->sim, NS_PER_S);
    assert_int_equal(sim_open_descriptors(b->sim), 0);
    assert_int_equal(b->loop.timers.count, 0);
    destination_dispose(&b->destination);
    sim_remove_loop(b->sim, &b->loop);
    loop_dispose(&b->loop);
    sim_free(b->sim);
}

#endif
