#include "tests/sim/front_world.h"

#include <arpa/inet.h>
#include <stdlib.h>

/* --- the owner --- */

static void copy_string(char *to, struct span from)
{
    if (from.size > 0)
        memcpy(to, from.data, from.size);
    to[from.size] = '\0';
}

static uint64_t take_records(struct owner_app *a, struct span bytes)
{
    const uint8_t *at = bytes.data, *end = at + bytes.size;
    uint64_t count = 0;
    for (struct span data; at < end; count++) {
        size_t framed = record_get(at, end, &data);
        assert(framed > 0); /* a run is whole records */
        a->hash = (a->hash ^ data.size) * UINT64_C(0x100000001b3);
        for (size_t i = 0; i < data.size; i++) {
            a->hash = (a->hash ^ data.data[i]) * UINT64_C(0x100000001b3);
            a->sum += data.data[i];
        }
        at += framed;
    }
    return count;
}

static struct run_result take_run(struct owner_app *a, const struct run *run)
{
    struct run_result result = {.stored = a->stored};
    if (a->error < 0 && a->runs >= a->fail_after)
        result.error = a->error;
    a->runs++;
    if (run->kind == RUN_SHOW) {
        result.text = span_text(a->show);
        return result;
    }
    a->last = *run;
    copy_string(a->event, run->event);
    copy_string(a->source, run->source);
    copy_string(a->key, run->key);
    if (result.error < 0)
        return result;
    if (run->kind == RUN_STREAM && run->first != a->stored + 1) {
        result.error = PE_STREAM_GAP;
        return result;
    }
    uint64_t count = take_records(a, run->bytes);
    assert(count == run->records);
    a->events += count;
    a->largest_run = max_u64(a->largest_run, run->bytes.size);
    a->smallest_run = min_u64(a->smallest_run, run->bytes.size);
    a->stored += count;
    result.stored = a->stored;
    return result;
}

static bool own(struct task *task, uint64_t now_ns)
{
    (void)now_ns;
    struct front_world *w = container_of(task, struct front_world, owner);
    unsigned left = w->takes > 0 ? w->takes : UINT32_MAX;
    for (unsigned i = 0; i < WORLD_APPS && !w->hold; i++) {
        struct owner_app *a = &w->apps[i];
        struct run run;
        for (; left > 0 && inbox_next_run(&a->entry.inbox, &a->at, &run); left--) {
            struct run_result result = take_run(a, &run);
            inbox_put_result(&a->entry.inbox, &result);
        }
        inbox_free_to(&a->entry.inbox, a->at);
        inbox_push_results(&a->entry.inbox);
    }
    w->hold |= w->takes > 0;
    w->takes = 0;
    return false;
}

void front_world_take(struct front_world *w, unsigned runs)
{
    w->takes = runs;
    front_world_release(w);
}

void front_world_release(struct front_world *w)
{
    w->hold = false;
    loop_want(&w->owner_loop, &w->owner);
}

/* --- the world --- */

static socklen_t set_address(struct sockaddr_storage *address, uint16_t port)
{
    struct sockaddr_in *at = (struct sockaddr_in *)address;
    at->sin_family = AF_INET;
    at->sin_port = htons(port);
    inet_pton(AF_INET, "10.0.0.1", &at->sin_addr);
    return sizeof *at;
}

static void set_config(struct front_world *w, const struct config *config)
{
    struct config *c = &w->config;
    if (config)
        *c = *config;
    c->name = c->name ? c->name : "here";
    c->connections = c->connections ? c->connections : 64;
    c->max_body = c->max_body ? c->max_body : 1 << 20;
    c->body_memory = c->body_memory ? c->body_memory : 64 << 20;
    c->request_ns = c->request_ns ? c->request_ns : 30 * NS_PER_S;
    c->idle_ns = c->idle_ns ? c->idle_ns : 60 * NS_PER_S;
    c->http_address_len = set_address(&c->http_address, 80);
    c->https.address_len = set_address(&c->https.address, 443);
}

static void must(int error)
{
    if (error < 0)
        abort();
}

static void open_world(struct front_world *w, uint64_t seed, const struct config *config,
                       const char *const names[WORLD_APPS], struct tls_current *https, bool plain);

static const char *const usual_names[WORLD_APPS] = {"counter", "other"};

void front_world_open(struct front_world *w, uint64_t seed, const struct config *config)
{
    open_world(w, seed, config, usual_names, NULL, true);
}

void front_world_open_secured(struct front_world *w, uint64_t seed, const struct config *config,
                              struct tls_current *https, bool plain)
{
    open_world(w, seed, config, usual_names, https, plain);
}

void front_world_open_named(struct front_world *w, uint64_t seed, const struct config *config,
                            const char *const names[WORLD_APPS])
{
    open_world(w, seed, config, names, NULL, true);
}

static void open_world(struct front_world *w, uint64_t seed, const struct config *config,
                       const char *const names[WORLD_APPS], struct tls_current *https, bool plain)
{
    memset(w, 0, sizeof *w);
    set_config(w, config);
    w->config.http = plain ? "10.0.0.1:80" : NULL;
    w->config.https.text = https ? "10.0.0.1:443" : NULL;
    w->https = https;
    w->sim = sim_new(seed);
    must(loop_init(&w->loop, sim_io(w->sim, "10.0.0.1"), 64, w->config.connections + 64));
    must(loop_init(&w->owner_loop, sim_io(w->sim, "10.0.0.1"), 64, 64));
    w->owner.run = own;
    must(loop_add(&w->owner_loop, &w->owner));
    must(log_init(&w->log, NULL, 0));
    for (unsigned i = 0; i < WORLD_APPS; i++) {
        struct owner_app *a = &w->apps[i];
        *a = (struct owner_app){.smallest_run = UINT64_MAX, .show = "{\"count\":7}"};
        a->entry.name = names[i];
        must(inbox_init(&a->entry.inbox, 4 << 20));
        a->entry.inbox.owner = &w->owner_loop.board;
        a->entry.inbox.owner_slot = w->owner.slot;
        w->entries[i] = &a->entry;
    }
    w->loops[0] = (struct registry_loop){"pure-front", &w->loop, &w->log};
    w->registry = (struct registry){.config = &w->config,
                                    .app_count = WORLD_APPS,
                                    .apps = w->entries,
                                    .loop_count = 1,
                                    .loops = w->loops};
    char why[200];
    const struct front_options options = {
        .registry = &w->registry, .https = w->https, .loop = &w->loop, .log = &w->log};
    must(front_init(&w->front, &options, why, sizeof why));
    sim_add_loop(w->sim, &w->loop);
    sim_add_loop(w->sim, &w->owner_loop);
}

static bool stopped(void *context)
{
    return front_stopped(context);
}

void front_world_close(struct front_world *w)
{
    front_abort(&w->front);
    enum sim_end end = sim_run_until(w->sim, stopped, &w->front);
    assert(end == SIM_DONE);
    (void)end;
    assert(w->front.kept_bytes == 0);
    for (unsigned i = 0; i < WORLD_APPS; i++)
        assert(w->apps[i].entry.inbox.reserved == 0);
    sim_remove_loop(w->sim, &w->loop);
    sim_remove_loop(w->sim, &w->owner_loop);
    front_dispose(&w->front);
    for (unsigned i = 0; i < WORLD_APPS; i++)
        inbox_dispose(&w->apps[i].entry.inbox);
    log_dispose(&w->log);
    loop_remove(&w->owner_loop, &w->owner);
    loop_dispose(&w->loop);
    loop_dispose(&w->owner_loop);
    sim_free(w->sim);
}

struct sim_connection *front_world_send(struct front_world *w, const void *bytes, size_t size)
{
    struct sim_connection *c = sim_client(w->sim, "10.0.0.9", WORLD_ENDPOINT, NULL, 0);
    sim_peer_send(c, bytes, size);
    return c;
}

static bool client_ended(void *context)
{
    return sim_peer_ended(context);
}

void front_world_run_until_end(struct front_world *w, struct sim_connection *c, uint64_t ns)
{
    sim_run(w->sim, sim_now_ns(w->sim) + ns, client_ended, c, 10 * 1000 * 1000);
}

unsigned front_world_count(struct sim_connection *c, const char *text)
{
    struct span bytes = sim_received(c);
    unsigned count = 0;
    size_t size = strlen(text);
    for (size_t i = 0; i + size <= bytes.size; i++)
        count += memcmp(bytes.data + i, text, size) == 0;
    return count;
}
