/* Scripted peers: the other side of what is tested. A peer keeps what it wants to send until the window has
 * room, takes what arrives at once unless told not to, and goes on with its script whenever something
 * changed. */
#include "tests/sim/world.h"

#include <errno.h>
#include <stdlib.h>

#define STEPS_MAX 1000000 /* at one moment */

enum leaving { STAYS, SHUTS_DOWN, CLOSES };

struct sim_connection {
    struct sim *sim;
    struct end *end; /* NULL once closed */
    const struct sim_step *script;
    unsigned steps, step;
    struct bytes received; /* [taken_end, …) is untaken */
    size_t taken_start, taken_end;
    uint64_t received_bytes;
    struct bytes unsent;
    enum leaving leaving; /* once all is sent */
    bool connected, stopped, discarding, ended, waiting, running;
    bool forgets; /* keeps no bytes once it is closed */
    int error;
    struct event timer; /* of a WAIT */
    struct sim_connection *next;
};

struct sim_server {
    struct sim *sim;
    struct sockaddr_storage address;
    struct listener *listener; /* NULL: refuses */
    const struct sim_step *script;
    unsigned steps;
    struct sim_connection **connections;
    size_t count, room;
    struct sim_server *next;
};

static void run_script(struct sim_connection *c);

static void leave(struct sim_connection *c, void (*way)(struct end *end))
{
    struct end *end = c->end;
    if (!end)
        return;
    c->end = NULL;
    if (c->forgets) {
        bytes_free(&c->received);
        bytes_free(&c->unsent);
        c->taken_start = c->taken_end = 0;
    }
    way(end);
}

static void flush(struct sim_connection *c)
{
    while (c->end && c->connected && !c->end->dead && bytes_size(&c->unsent) > 0) {
        size_t size = min_size(bytes_size(&c->unsent), end_room(c->end));
        if (size == 0)
            return;
        end_send(c->end, c->unsent.data + c->unsent.start, size);
        bytes_drop(&c->unsent, size);
    }
    if (c->end && c->connected && c->leaving == SHUTS_DOWN)
        end_shutdown(c->end);
    else if (c->leaving == CLOSES)
        leave(c, end_close);
}

static void take(struct sim_connection *c)
{
    size_t size = bytes_size(&c->end->received);
    if (size == 0 || c->stopped)
        return;
    c->received_bytes += size;
    if (!c->discarding)
        bytes_add(&c->received, c->end->received.data + c->end->received.start, size);
    end_took(c->end, size);
}

static void peer_changed(struct end *end)
{
    struct sim_connection *c = end->owner;
    c->connected = c->connected || end->connected;
    take(c);
    if (end->dead) {
        c->error = end->error;
        c->ended = true;
        leave(c, end_close);
    } else {
        c->ended = c->ended || end->ended;
        flush(c);
    }
    run_script(c);
}

/* ---- The script ---- */

static struct span untaken(const struct sim_connection *c)
{
    return span_of(c->received.data + c->taken_end, c->received.end - c->taken_end);
}

static bool expect(struct sim_connection *c, const struct sim_step *step)
{
    struct span bytes = c->received.data ? untaken(c) : span_of(NULL, 0);
    size_t size = step->match(bytes, step);
    if (size == 0)
        return false;
    c->taken_start = c->taken_end;
    c->taken_end += size;
    return true;
}

static bool expect_end(struct sim_connection *c)
{
    if (!c->ended)
        return false;
    c->taken_start = c->taken_end;
    c->taken_end = c->received.end;
    return true;
}

static bool wait_step(struct sim_connection *c, const struct sim_step *step)
{
    if (c->waiting) {
        c->waiting = c->timer.place > 0;
        return !c->waiting;
    }
    c->waiting = true;
    event_set(c->sim, &c->timer, c->sim->now_ns + step->number);
    return false;
}

/* Makes one step. False: it is not done yet. */
static bool make(struct sim_connection *c, const struct sim_step *step)
{
    switch (step->kind) {
    case SIM_STEP_EXPECT:
        return expect(c, step);
    case SIM_STEP_SEND:
        sim_peer_send(c, step->data, step->number);
        return true;
    case SIM_STEP_WAIT:
        return wait_step(c, step);
    case SIM_STEP_CALL:
        step->call(c, step->context);
        return true;
    case SIM_STEP_EXPECT_END:
        return expect_end(c);
    case SIM_STEP_SHUTDOWN:
        sim_peer_shutdown(c);
        return true;
    case SIM_STEP_CLOSE:
        sim_peer_close(c);
        return true;
    case SIM_STEP_RESET:
        sim_peer_reset(c);
        return true;
    case SIM_STEP_STOP_READING:
        sim_peer_read(c, false);
        return true;
    case SIM_STEP_DISCARD:
        c->discarding = true;
        c->taken_end = c->received.end;
        return true;
    case SIM_STEP_AGAIN:
        return c->end != NULL;
    }
    return false;
}

static void run_script(struct sim_connection *c)
{
    if (c->running || !c->connected)
        return;
    c->running = true; /* a step may change the connection: no script runs inside itself */
    for (unsigned made = 0; c->step < c->steps && make(c, &c->script[c->step]); made++) {
        assert(made < STEPS_MAX && "a script that goes round without waiting");
        c->step = c->script[c->step].kind == SIM_STEP_AGAIN ? 0 : c->step + 1;
    }
    c->running = false;
}

static void time_passed(struct sim *sim, struct event *event)
{
    (void)sim;
    run_script(container_of(event, struct sim_connection, timer));
}

static struct sim_connection *connection_new(struct sim *sim, const struct sim_step *script, unsigned steps)
{
    struct sim_connection *c = sim_allocate(sizeof *c);
    *c = (struct sim_connection){.sim = sim, .script = script, .steps = steps, .next = sim->peers};
    c->timer.happen = time_passed;
    sim->peers = c;
    return c;
}

static void adopt(struct sim_connection *c, struct end *end)
{
    c->end = end;
    end->owner = c;
    end->changed = peer_changed;
    peer_changed(end);
}

/* ---- Servers and clients ---- */

static void accept_all(struct listener *listener)
{
    struct sim_server *server = listener->owner;
    for (struct end *end; (end = listener_take(listener));) {
        struct sim_connection *c = connection_new(server->sim, server->script, server->steps);
        server->connections = sim_grow(server->connections, sizeof(struct sim_connection *), server->count,
                                       server->room, &server->room);
        server->connections[server->count++] = c;
        adopt(c, end);
    }
}

struct sim_server *sim_server(struct sim *sim, const char *endpoint, const struct sim_step *script,
                              unsigned steps)
{
    struct sim_server *server = sim_allocate(sizeof *server);
    server->sim = sim;
    server->address = sim_parse_endpoint(endpoint);
    server->next = sim->servers;
    sim->servers = server;
    sim_server_script(server, script, steps);
    sim_server_listen(server, true);
    return server;
}

void sim_server_script(struct sim_server *server, const struct sim_step *script, unsigned steps)
{
    server->script = script;
    server->steps = steps;
}

void sim_server_listen(struct sim_server *server, bool listening)
{
    if (listening == (server->listener != NULL))
        return;
    if (!listening) {
        listener_close(server->listener);
        server->listener = NULL;
        return;
    }
    struct sim_host *host = sim_host_of(server->sim, &server->address);
    server->listener = listener_open(server->sim, &server->address, host, UINT32_MAX);
    assert(server->listener && "the endpoint is free");
    server->listener->owner = server;
    server->listener->arrived = accept_all;
}

unsigned sim_server_accepted(const struct sim_server *server)
{
    return (unsigned)server->count;
}

struct sim_connection *sim_server_connection(struct sim_server *server, unsigned index)
{
    assert(index < server->count);
    return server->connections[index];
}

struct sim_connection *sim_client(struct sim *sim, const char *host, const char *endpoint,
                                  const struct sim_step *script, unsigned steps)
{
    struct sockaddr_storage from = sim_parse_host(host), to = sim_parse_endpoint(endpoint);
    struct sim_connection *c = connection_new(sim, script, steps);
    adopt(c, network_connect(sim, sim_host_of(sim, &from), &to, 0));
    return c;
}

void peers_free(struct sim *sim)
{
    while (sim->servers) {
        struct sim_server *server = sim->servers;
        sim->servers = server->next;
        sim_server_listen(server, false);
        free(server->connections);
        free(server);
    }
    while (sim->peers) {
        struct sim_connection *c = sim->peers;
        sim->peers = c->next;
        event_set(sim, &c->timer, NEVER);
        leave(c, end_abort);
        bytes_free(&c->received);
        bytes_free(&c->unsent);
        free(c);
    }
}

/* ---- What tests see and do ---- */

bool sim_script_done(const struct sim_connection *c)
{
    return c->step == c->steps;
}

unsigned sim_script_step(const struct sim_connection *c)
{
    return c->step;
}

bool sim_connected(const struct sim_connection *c)
{
    return c->connected;
}

bool sim_peer_ended(const struct sim_connection *c)
{
    return c->ended;
}

int sim_peer_error(const struct sim_connection *c)
{
    return c->error;
}

struct span sim_received(const struct sim_connection *c)
{
    return span_of(c->received.data, c->received.end);
}

uint64_t sim_received_bytes(const struct sim_connection *c)
{
    return c->received_bytes;
}

struct span sim_taken(const struct sim_connection *c)
{
    return c->received.data ? span_of(c->received.data + c->taken_start, c->taken_end - c->taken_start)
                            : span_of(NULL, 0);
}

void sim_forget(struct sim_connection *c)
{
    size_t left = c->received.end - c->taken_end;
    if (c->taken_end > 0)
        memmove(c->received.data, c->received.data + c->taken_end, left);
    c->received.end = left;
    c->taken_start = c->taken_end = 0;
    c->forgets = true;
}

struct sim *sim_of(const struct sim_connection *c)
{
    return c->sim;
}

void sim_peer_send(struct sim_connection *c, const void *bytes, size_t size)
{
    if (c->leaving != STAYS || (!c->end && c->connected))
        return;
    bytes_add(&c->unsent, bytes, size);
    flush(c);
}

static void leave_by(struct sim_connection *c, enum leaving leaving)
{
    if (c->leaving < leaving)
        c->leaving = leaving;
    if (c->end && (bytes_size(&c->unsent) == 0 || c->end->dead))
        flush(c);
}

void sim_peer_shutdown(struct sim_connection *c)
{
    leave_by(c, SHUTS_DOWN);
}

void sim_peer_close(struct sim_connection *c)
{
    leave_by(c, CLOSES);
}

void sim_peer_reset(struct sim_connection *c)
{
    leave(c, end_abort);
}

void sim_peer_read(struct sim_connection *c, bool reading)
{
    c->stopped = !reading;
    if (reading && c->end)
        peer_changed(c->end);
}
