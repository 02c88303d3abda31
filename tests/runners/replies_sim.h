/* Plays a row in the simulated world: deterministic, and virtual time costs nothing. */
#ifndef PURE_TESTS_RUNNERS_REPLIES_SIM_H
#define PURE_TESTS_RUNNERS_REPLIES_SIM_H

#include "tests/runners/replies_wire.h"
#include "tests/sim/sim.h"

#define SIM_PIECE_NS NS_PER_MS /* between pieces: longer than any way through the network */
#define SIM_LIMIT_NS (5 * NS_PER_S)

struct sim_play {
    struct sim *sim;
    struct loop loop;
    struct log log;
    struct rig rig;
    const struct reply_row *row;
    const struct cut *cut;
    struct sim_step script[3];
    struct sim_connection *first; /* the row's reply goes there */
    size_t sent;                  /* of it */
    bool over;                    /* all of it is sent, and the end if it has one */
    unsigned requests;
    bool reused; /* the second of them came where the first did */
};

static inline void sim_send_piece(void *context)
{
    struct sim_play *t = context;
    struct span reply = t->row->reply;
    size_t end = cut_end(t->cut, t->sent, reply.size);
    if (end > t->sent)
        sim_peer_send(t->first, reply.data + t->sent, end - t->sent);
    t->sent = end;
    if (end < reply.size) {
        sim_at(t->sim, sim_now_ns(t->sim) + SIM_PIECE_NS, sim_send_piece, t);
        return;
    }
    if (t->row->server_closes)
        sim_peer_close(t->first);
    t->over = true;
}

static inline void sim_answer_request(struct sim_connection *c, void *context)
{
    struct sim_play *t = context;
    char text[128];
    if (++t->requests > 1) {
        t->reused |= t->requests == 2 && c == t->first;
        sim_peer_send(c, text, later_reply(text, sizeof text, t->requests));
        return;
    }
    t->first = c;
    sim_send_piece(t);
}

static inline bool sim_first_over(void *context)
{
    struct sim_play *t = context;
    return t->over && rig_quiet(&t->rig);
}

static inline bool sim_all_stored(void *context)
{
    return rig_all_stored(&((struct sim_play *)context)->rig);
}

static inline bool sim_wire_stopped(void *context)
{
    return wire_stopped(((struct sim_play *)context)->rig.wire);
}

static inline void sim_play_open(struct sim_play *t, const struct reply_row *row, const struct cut *cut)
{
    *t = (struct sim_play){.sim = sim_new(1), .row = row, .cut = cut};
    struct sim_link link = sim_link_default;
    link.split = 0; /* the cuts are ours */
    sim_set_link(t->sim, NULL, NULL, &link);
    static const struct sim_step expect = SIM_EXPECT_HTTP, again = SIM_AGAIN;
    const struct sim_step answer = SIM_CALL(sim_answer_request, t);
    t->script[0] = expect, t->script[1] = answer, t->script[2] = again;
    sim_server(t->sim, "10.0.0.2:80", t->script, ARRAY_SIZE(t->script));
    if (loop_init(&t->loop, sim_io(t->sim, "10.0.0.1"), 64, 8) < 0 || log_init(&t->log, NULL, 0) < 0)
        abort();
    sim_add_loop(t->sim, &t->loop);
    rig_options(&t->rig, "http://10.0.0.2/hook", SIM_LIMIT_NS);
    rig_open(&t->rig, &t->loop, sim_resolver(t->sim, &t->loop), &t->log);
}

static inline void sim_play_close(struct sim_play *t)
{
    wire_stop(t->rig.wire);
    if (sim_run_until(t->sim, sim_wire_stopped, t) != SIM_DONE)
        abort();
    wire_dispose(t->rig.wire);
    free(t->rig.wire);
    sim_remove_loop(t->sim, &t->loop);
    loop_dispose(&t->loop);
    log_dispose(&t->log);
    sim_free(t->sim);
}

static inline void sim_until(struct sim_play *t, bool (*until)(void *context))
{
    sim_run(t->sim, sim_now_ns(t->sim) + 100 * SIM_LIMIT_NS, until, t, 1000 * 1000);
}

/* `seen` is filled in; p->seen is set to it. */
static inline void play_simulated(const struct reply_row *row, const struct cut *cut, struct played *p,
                                  struct seen *seen)
{
    static struct sim_play play;
    struct sim_play *t = &play;
    sim_play_open(t, row, cut);
    rig_push(&t->rig);
    sim_until(t, sim_first_over);
    sim_run_for(t->sim, 10 * NS_PER_MS); /* what is surplus arrives, too */
    rig_note_first(&t->rig, p);
    rig_push_second(&t->rig);
    sim_until(t, sim_all_stored);
    p->all_stored = rig_all_stored(&t->rig);
    p->requests = t->requests;
    p->reused = t->reused;
    *seen = t->rig.seen;
    p->seen = seen;
    sim_play_close(t);
}

#endif
