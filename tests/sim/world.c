#include "tests/sim/world.h"

#include <errno.h>
#include <stdlib.h>

void *sim_allocate(size_t size)
{
    void *memory = calloc(1, size);
    if (!memory)
        abort();
    return memory;
}

void *sim_grow(void *array, size_t element_size, size_t count, size_t room_before, size_t *room)
{
    *room = room_before;
    if (count < room_before)
        return array;
    *room = room_before ? 2 * room_before : 16;
    array = realloc(array, *room * element_size);
    if (!array)
        abort();
    return array;
}

void bytes_add(struct bytes *b, const void *data, size_t size)
{
    if (b->start > 0 && b->end + size > b->room) {
        memmove(b->data, b->data + b->start, bytes_size(b));
        b->end -= b->start;
        b->start = 0;
    }
    if (b->end + size > b->room) {
        b->room = 2 * (b->end + size);
        b->data = realloc(b->data, b->room);
        if (!b->data)
            abort();
    }
    if (size > 0)
        memcpy(b->data + b->end, data, size);
    b->end += size;
}

void bytes_drop(struct bytes *b, size_t size)
{
    assert(size <= bytes_size(b));
    b->start += size;
    if (b->start == b->end)
        b->start = b->end = 0;
}

void bytes_free(struct bytes *b)
{
    free(b->data);
    *b = (struct bytes){0};
}

/* ---- Events: a binary heap by (time, sequence) ---- */

static bool before(const struct event *a, const struct event *b)
{
    return a->at_ns != b->at_ns ? a->at_ns < b->at_ns : a->sequence < b->sequence;
}

static void put(struct sim *sim, uint32_t at, struct event *event)
{
    sim->events[at] = event;
    event->place = at + 1;
}

static void settle(struct sim *sim, uint32_t at, struct event *event)
{
    while (at > 0 && before(event, sim->events[(at - 1) / 2])) {
        put(sim, at, sim->events[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child + 1 < sim->event_count && before(sim->events[child + 1], sim->events[child]))
            child++;
        if (child >= sim->event_count || !before(sim->events[child], event))
            break;
        put(sim, at, sim->events[child]);
        at = child;
    }
    put(sim, at, event);
}

static void unset(struct sim *sim, struct event *event)
{
    uint32_t at = event->place - 1;
    event->place = 0;
    struct event *moved = sim->events[--sim->event_count];
    if (at < sim->event_count)
        settle(sim, at, moved);
}

void event_set(struct sim *sim, struct event *event, uint64_t at_ns)
{
    if (event->place)
        unset(sim, event);
    if (at_ns == NEVER)
        return;
    size_t room;
    sim->events = sim_grow(sim->events, sizeof *sim->events, sim->event_count, sim->event_room, &room);
    sim->event_room = (uint32_t)room;
    event->at_ns = at_ns;
    event->sequence = sim->sequence++;
    settle(sim, sim->event_count++, event);
}

uint64_t sim_next_event_ns(const struct sim *sim)
{
    return sim->event_count ? sim->events[0]->at_ns : NEVER;
}

void sim_happen(struct sim *sim)
{
    uint64_t end = sim->sequence; /* what is set from now on waits for the next call: this one ends */
    while (sim->event_count && sim->events[0]->at_ns <= sim->now_ns && sim->events[0]->sequence < end) {
        struct event *event = sim->events[0];
        unset(sim, event);
        event->happen(sim, event);
    }
    connections_reap(sim);
}

/* ---- Calls of the test ---- */

struct call {
    struct event event;
    void (*call)(void *context);
    void *context;
    struct call *next;
};

static void happen_call(struct sim *sim, struct event *event)
{
    (void)sim;
    struct call *call = container_of(event, struct call, event);
    call->call(call->context);
}

void sim_at(struct sim *sim, uint64_t at_ns, void (*function)(void *context), void *context)
{
    struct call *call = sim_allocate(sizeof *call);
    *call = (struct call){.call = function, .context = context, .next = sim->calls};
    call->event.happen = happen_call;
    sim->calls = call;
    event_set(sim, &call->event, max_u64(at_ns, sim->now_ns));
}

/* ---- Descriptors ---- */

int descriptor_open(struct sim *sim, enum descriptor_kind kind)
{
    if (sim->open >= sim->open_limit)
        return -EMFILE;
    size_t room;
    sim->descriptors = sim_grow(sim->descriptors, sizeof *sim->descriptors, sim->descriptor_count,
                                sim->descriptor_room, &room);
    sim->descriptor_room = (unsigned)room;
    struct descriptor *d = sim_allocate(sizeof *d);
    d->kind = kind;
    sim->descriptors[sim->descriptor_count] = d;
    sim->open++;
    return SIM_FIRST_FD + (int)sim->descriptor_count++;
}

struct descriptor *descriptor_get(struct sim *sim, int fd)
{
    assert(fd >= SIM_FIRST_FD && fd < SIM_FIRST_FD + (int)sim->descriptor_count);
    struct descriptor *d = sim->descriptors[fd - SIM_FIRST_FD];
    assert(d && "the descriptor is closed");
    return d;
}

void descriptor_close(struct sim *sim, int fd)
{
    struct descriptor *d = descriptor_get(sim, fd);
    if (d->kind == FD_LISTENER)
        listener_close(d->listener);
    else if (d->kind == FD_END)
        end_close(d->end);
    else if (d->kind == FD_PIPE)
        pipe_free(d->pipe);
    else if (d->kind == FD_DATAGRAMS)
        datagram_socket_close(d->datagrams);
    else if (d->kind == FD_FILE)
        file_close(d->file);
    free(d);
    sim->descriptors[fd - SIM_FIRST_FD] = NULL;
    sim->open--;
}

void sim_lack_family(struct sim *sim, int family)
{
    sim->lacking_family = family;
}

void sim_limit_descriptors(struct sim *sim, unsigned limit)
{
    sim->open_limit = limit;
}

unsigned sim_open_descriptors(const struct sim *sim)
{
    return sim->open;
}

void sim_close_descriptor(struct sim *sim, int fd)
{
    descriptor_close(sim, fd);
}

/* ---- The world ---- */

struct sim *sim_new(uint64_t seed)
{
    struct sim *sim = sim_allocate(sizeof *sim);
    sim->now_ns = SIM_START_NS;
    sim->wall_ms = SIM_START_WALL_MS;
    sim->random.state = seed;
    sim->open_limit = UINT32_MAX;
    sim->faults = (struct sim_faults){.batch_max = 64, .buffer_bytes = 4096};
    return sim;
}

void sim_free(struct sim *sim)
{
    peers_free(sim);
    for (unsigned i = 0; i < sim->descriptor_count; i++) {
        if (sim->descriptors[i])
            descriptor_close(sim, SIM_FIRST_FD + (int)i);
    }
    resolvers_free(sim);
    datagrams_free(sim);
    paths_free(sim);
    network_free(sim);
    threads_free(sim);
    disks_free(sim);
    while (sim->calls) {
        struct call *call = sim->calls;
        sim->calls = call->next;
        free(call);
    }
    free(sim->descriptors);
    free(sim->loops);
    free(sim->events);
    free(sim);
}

void sim_set_faults(struct sim *sim, const struct sim_faults *faults)
{
    assert(faults->batch_max > 0 && faults->buffer_bytes > 0);
    sim->faults = *faults;
}

uint64_t sim_now_ns(const struct sim *sim)
{
    return sim->now_ns;
}

void sim_set_wall_ms(struct sim *sim, uint64_t wall_ms)
{
    sim->wall_ms = wall_ms - (sim->now_ns - SIM_START_NS) / NS_PER_MS;
}

struct random *sim_random(struct sim *sim)
{
    return &sim->random;
}

uint64_t sim_trace(const struct sim *sim)
{
    return sim->trace;
}

void sim_note(struct sim *sim, int what, uint64_t a, uint64_t b)
{
    const uint64_t facts[] = {sim->now_ns, (uint64_t)what, a, b};
    for (size_t i = 0; i < ARRAY_SIZE(facts); i++) {
        struct random mix = {sim->trace ^ facts[i]};
        sim->trace = random_next(&mix);
    }
}

bool sim_chance(struct sim *sim, uint32_t thousandths)
{
    return thousandths > 0 && random_below(&sim->random, 1000) < thousandths;
}
