#include "tests/faults/sim_peer.h"

#include <stdlib.h>

struct fault_sim_connection {
    struct fault_sim_peer *peer;
    struct sim_connection *tcp;
    struct fault_player player;
    uint64_t timer_ns; /* the last that was set; older ones find nothing to do */
    bool hearing;
    struct fault_sim_connection *next;
};

static size_t match_all(struct span bytes, const struct sim_step *step)
{
    (void)step;
    return bytes.size;
}

static void time_passed(void *context);

static void carry(struct fault_sim_connection *c)
{
    struct fault_player *p = &c->player;
    sim_peer_send(c->tcp, p->out.data, p->out.size);
    fault_player_sent(p, p->out.size);
    if (p->leaving == FAULT_RESETS)
        sim_peer_reset(c->tcp);
    else if (p->leaving == FAULT_CLOSES)
        sim_peer_close(c->tcp);
    else if (p->leaving == FAULT_SHUTS_DOWN)
        sim_peer_shutdown(c->tcp);
    if (p->due_ns != NEVER && p->due_ns != c->timer_ns) {
        c->timer_ns = p->due_ns;
        sim_at(c->peer->sim, p->due_ns, time_passed, c);
    }
    if (p->hearing != c->hearing) {
        c->hearing = p->hearing;
        sim_peer_read(c->tcp, c->hearing);
    }
}

static void time_passed(void *context)
{
    struct fault_sim_connection *c = context;
    fault_player_tick(&c->player, sim_now_ns(c->peer->sim));
    carry(c);
}

static struct fault_sim_connection *connected(struct fault_sim_peer *peer, struct sim_connection *tcp)
{
    struct fault_sim_connection *c = calloc(1, sizeof *c);
    assert(c);
    *c = (struct fault_sim_connection){
        .peer = peer, .tcp = tcp, .hearing = true, .timer_ns = NEVER, .next = peer->connections};
    peer->connections = c;
    bool first = peer->account.connections < peer->first_times;
    fault_player_init(&c->player, first ? peer->first : peer->then, peer->identity, &peer->account,
                      sim_now_ns(peer->sim));
    return c;
}

/* Called when a connection was made, and then whenever something came. */
static void arrived(struct sim_connection *tcp, void *context)
{
    struct fault_sim_peer *peer = context;
    struct fault_sim_connection *c = peer->connections;
    while (c && c->tcp != tcp)
        c = c->next;
    if (!c)
        c = connected(peer, tcp);
    if (sim_taken(tcp).size > 0)
        fault_player_take(&c->player, sim_taken(tcp), sim_now_ns(peer->sim));
    carry(c);
}

void fault_sim_listen(struct fault_sim_peer *peer, const char *endpoint)
{
    peer->script[0] = (struct sim_step)SIM_CALL(arrived, peer);
    peer->script[1] = (struct sim_step){.kind = SIM_STEP_EXPECT, .match = match_all};
    peer->script[2] = (struct sim_step)SIM_AGAIN;
    peer->server = sim_server(peer->sim, endpoint, peer->script, ARRAY_SIZE(peer->script));
}

void fault_sim_dispose(struct fault_sim_peer *peer)
{
    while (peer->connections) {
        struct fault_sim_connection *c = peer->connections;
        peer->connections = c->next;
        fault_player_dispose(&c->player);
        free(c);
    }
}
