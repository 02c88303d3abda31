#include "tests/sim/hosts_world.h"

#include "host/host_private.h"

#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define CLIENT    "10.0.0.9"
#define LOG_BYTES (1 << 20)

/* --- what a host stands on --- */

static int open_io(void *context, struct io **io, char *why, size_t why_size)
{
    (void)why, (void)why_size;
    struct world_host *h = context;
    *io = sim_io(h->world->sim, h->address);
    return 0;
}

static int open_resolver(void *context, struct loop *loop, struct resolver **resolver)
{
    struct world_host *h = context;
    *resolver = sim_resolver(h->world->sim, loop);
    return 0;
}

static void close_resolver(void *context, struct resolver *resolver)
{
    (void)context, (void)resolver; /* the world's */
}

static int load_module(void *context, const char *path, const struct pure_app **app, void **handle, char *why,
                       size_t why_size)
{
    const struct world_host *h = context;
    bool without = h->without && strcmp(h->without, path) == 0;
    *app = without ? NULL : hosts_app(path);
    *handle = NULL;
    if (*app)
        return 0;
    snprintf(why, why_size, "there is no such module");
    return PE_MODULE;
}

static void unload_module(void *context, void *handle)
{
    (void)context, (void)handle;
}

static void fill_random(void *context, void *bytes, size_t size)
{
    struct world_host *h = context;
    uint8_t *at = bytes;
    for (size_t i = 0; i < size; i++)
        at[i] = (uint8_t)random_next(sim_random(h->world->sim));
}

/* --- hosts --- */

static void set_address(struct world_host *h, const char *address)
{
    snprintf(h->address, sizeof h->address, "%s", address);
    snprintf(h->endpoint, sizeof h->endpoint, "%s:80", address);
}

struct world_host *world_add_host(struct hosts_world *w, const char *name, const char *address,
                                  const char *format, ...)
{
    assert(w->host_count < WORLD_HOSTS);
    struct world_host *h = &w->hosts[w->host_count];
    h->world = w;
    h->index = w->host_count++;
    snprintf(h->name, sizeof h->name, "%s", name);
    set_address(h, address);
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(h->text, sizeof h->text, format, arguments);
    va_end(arguments);
    assert((size_t)size < sizeof h->text);
    h->log_fd = sim_pipe(w->sim, LOG_BYTES);
    return h;
}

struct sim_disk *world_add_disk(struct world_host *h)
{
    assert(!h->disk);
    h->disk = sim_disk_new(h->world->sim);
    sim_disk_make_directory(h->disk, "/store");
    return h->disk;
}

void world_move(struct world_host *h, const char *address)
{
    assert(!h->host);
    set_address(h, address);
}

static void must(int error, const char *why)
{
    if (error == 0)
        return;
    fprintf(stderr, "%s\n", why);
    abort();
}

static void key_variable(unsigned index, char name[32])
{
    snprintf(name, 32, "PURE_SIM_KEY_%u", index);
}

static void load_config(struct world_host *h)
{
    char text[sizeof h->text + 256], variable[32], why[512];
    key_variable(h->index, variable);
    int size = snprintf(text, sizeof text, "[host]\nname = %s\nhttp = %s\ntoken = t\nkey = env:%s\n%s%s",
                        h->name, h->endpoint, variable, h->disk ? "store = /store\n" : "", h->text);
    assert((size_t)size < sizeof text);
    (void)size;
    must(config_load_text(&h->config, h->name, span_text(text), why, sizeof why), why);
}

void world_start(struct world_host *h)
{
    struct host_options options = {.context = h,
                                   .open_io = open_io,
                                   .open_resolver = open_resolver,
                                   .close_resolver = close_resolver,
                                   .load_module = load_module,
                                   .unload_module = unload_module,
                                   .fill_random = fill_random,
                                   .files = h->disk ? sim_disk_files(h->disk) : NULL,
                                   .log_fd = h->log_fd};
    char why[512];
    load_config(h);
    sim_host_disk(h->world->sim, h->address, h->disk);
    must(host_open(&h->host, &h->config, &options, why, sizeof why), why);
    memcpy(h->epoch, h->host->epoch, sizeof h->epoch);
    const struct registry *r = host_registry(h->host);
    for (unsigned i = 0; i < r->loop_count; i++)
        sim_add_loop(h->world->sim, r->loops[i].loop);
}

static bool ended(void *context)
{
    const struct world_host *h = context;
    return host_ended(h->host);
}

void world_drop(struct world_host *h)
{
    const struct registry *r = host_registry(h->host);
    for (unsigned i = 0; i < r->loop_count; i++)
        sim_remove_loop(h->world->sim, r->loops[i].loop);
    host_close(h->host);
    config_dispose(&h->config);
    h->host = NULL;
    if (h->disk)
        sim_disk_process_ended(h->disk);
}

void world_kill(struct world_host *h)
{
    if (h->disk)
        sim_disk_cut_off(h->disk);
    host_end(h->host);
    enum sim_end end = sim_run(h->world->sim, NEVER, ended, h, 1000 * 1000);
    assert(end == SIM_DONE);
    (void)end;
    world_drop(h);
}

/* The last datagrams, too, get no further than its cable. */
void world_crash(struct world_host *h)
{
    sim_silence_host(h->world->sim, h->address, true);
    world_kill(h);
    if (h->disk)
        sim_disk_crash(h->disk);
    sim_reboot_host(h->world->sim, h->address);
    sim_silence_host(h->world->sim, h->address, false);
}

static void fill_key(void *context, void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)bytes)[i] = (uint8_t)random_next(context);
}

/* Not from the world's random numbers, which are for what happens. */
static void make_keys(struct hosts_world *w, uint64_t seed)
{
    struct random random = {~seed};
    for (unsigned i = 0; i < WORLD_HOSTS; i++) {
        struct host_key key;
        char text[HOST_KEY_PRIVATE_TEXT], variable[32];
        host_key_generate(&key, &(struct noise_random){fill_key, &random});
        host_key_private_text(&key, text);
        host_key_public_text(key.public, w->keys[i]);
        key_variable(i, variable);
        setenv(variable, text, 1);
    }
}

void hosts_world_open(struct hosts_world *w, uint64_t seed)
{
    memset(w, 0, sizeof *w);
    must(sodium_init() < 0 ? PE_KEY : 0, "no libsodium");
    w->sim = sim_new(seed);
    make_keys(w, seed);
}

void hosts_world_close(struct hosts_world *w)
{
    for (unsigned i = 0; i < w->host_count; i++) {
        if (w->hosts[i].host)
            world_kill(&w->hosts[i]);
    }
    assert(sim_open_descriptors(w->sim) == w->host_count); /* the pipes of their logs */
    sim_free(w->sim);
}

/* --- the client --- */

/* Takes the reply and closes after the host has. */
static const struct sim_step listen_and_close[] = {SIM_EXPECT_END, SIM_CLOSE};

static struct sim_connection *request(struct world_host *h, const char *path, const char *type,
                                      const char *key, const char *body)
{
    char head[512], key_line[160] = "";
    if (key)
        snprintf(key_line, sizeof key_line, "Idempotency-Key: %s\r\n", key);
    size_t body_size = body ? strlen(body) : 0;
    int size =
        snprintf(head, sizeof head,
                 "%s %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer t\r\nConnection: close\r\n"
                 "%sContent-Type: %s\r\nContent-Length: %zu\r\n\r\n",
                 body ? "POST" : "GET", path, h->name, key_line, type ? type : "application/json", body_size);
    assert((size_t)size < sizeof head);
    struct sim_connection *c =
        sim_client(h->world->sim, CLIENT, h->endpoint, listen_and_close, ARRAY_SIZE(listen_and_close));
    sim_peer_send(c, head, (size_t)size);
    if (body_size > 0)
        sim_peer_send(c, body, body_size);
    return c;
}

struct sim_connection *world_post(struct world_host *h, const char *path, const char *type, const char *body)
{
    return request(h, path, type, NULL, body);
}

struct sim_connection *world_post_key(struct world_host *h, const char *path, const char *type,
                                      const char *key, const char *body)
{
    return request(h, path, type, key, body);
}

unsigned world_status(struct sim_connection *c)
{
    struct span bytes = sim_received(c);
    char text[16];
    unsigned status = 0;
    if (bytes.size < strlen("HTTP/1.1 200"))
        return 0; /* a part of the number is none */
    snprintf(text, sizeof text, "%.*s", (int)min_size(bytes.size, sizeof text - 1), (const char *)bytes.data);
    return sscanf(text, "HTTP/1.1 %3u", &status) == 1 ? status : 0;
}

static bool client_ended(void *context)
{
    return sim_peer_ended(context);
}

struct sim_connection *world_ask(struct world_host *h, const char *path, const char *body)
{
    struct sim_connection *c = request(h, path, NULL, NULL, body);
    enum sim_end end = sim_run_until(h->world->sim, client_ended, c);
    assert(end == SIM_DONE);
    (void)end;
    return c;
}

static unsigned count(const char *in, size_t size, const char *text)
{
    unsigned found = 0;
    size_t length = strlen(text);
    for (size_t i = 0; i + length <= size; i++)
        found += memcmp(in + i, text, length) == 0;
    return found;
}

bool world_reply_has(struct sim_connection *c, const char *text)
{
    struct span bytes = sim_received(c);
    return count((const char *)bytes.data, bytes.size, text) > 0;
}

unsigned world_logged(struct world_host *h, const char *text)
{
    h->log_size +=
        sim_pipe_take(h->world->sim, h->log_fd, h->log + h->log_size, sizeof h->log - 1 - h->log_size);
    return count(h->log, h->log_size, text);
}

/* --- looking --- */

bool world_host_empty(const struct world_host *h)
{
    const struct registry *r = host_registry(h->host);
    bool empty = true;
    for (unsigned i = 0; i < r->outlet_count; i++)
        empty = empty && record_queue_glance(&r->outlets[i]->queue).held_records == 0;
    for (unsigned i = 0; i < r->app_count; i++)
        empty = empty && registry_app_held(r->apps[i]) == 0;
    return empty;
}

struct outlet *world_outlet(const struct world_host *h, const char *app, const char *output)
{
    const struct registry *r = host_registry(h->host);
    for (unsigned i = 0; i < r->outlet_count; i++) {
        if (strcmp(r->outlets[i]->app, app) == 0 && strcmp(r->outlets[i]->output, output) == 0)
            return r->outlets[i];
    }
    abort();
}

struct registry_app *world_app(const struct world_host *h, const char *app)
{
    const struct registry *r = host_registry(h->host);
    for (unsigned i = 0; i < r->app_count; i++) {
        if (strcmp(r->apps[i]->name, app) == 0)
            return r->apps[i];
    }
    abort();
}

void *world_app_state(const struct world_host *h, const char *app)
{
    for (unsigned i = 0; i < h->host->app_count; i++) {
        if (strcmp(h->host->apps[i].entry.name, app) == 0)
            return h->host->apps[i].state.state;
    }
    abort();
}

struct loop *world_loop(const struct world_host *h, const char *thread)
{
    const struct registry *r = host_registry(h->host);
    for (unsigned i = 0; i < r->loop_count; i++) {
        if (strcmp(r->loops[i].name, thread) == 0)
            return r->loops[i].loop;
    }
    abort();
}

struct link *world_link(const struct world_host *h, unsigned index)
{
    assert(index < h->host->link_count);
    return &h->host->links[index];
}

unsigned world_link_count(const struct world_host *h)
{
    return h->host->link_count;
}

struct link_listener *world_listener(const struct world_host *h)
{
    assert(h->host->listening);
    return &h->host->listener;
}

static bool peer_within_limits(const struct link_peer *peer)
{
    const struct inlets *in = &peer->inlets;
    uint64_t held = in->session_received - in->session_freed;
    for (uint32_t i = 0; i < in->limits.places; i++) {
        const struct receive_stream *s = &in->list[i].stream;
        if (s->highest - s->freed > s->ring.size)
            return false;
    }
    return held <= in->limits.session_window + in->extra;
}

static bool inbox_within_limits(struct inbox *inbox)
{
    return record_queue_glance(&inbox->runs).held_bytes <= inbox->runs.capacity;
}

bool world_within_limits(const struct world_host *h)
{
    const struct registry *r = host_registry(h->host);
    bool within = true;
    for (unsigned i = 0; i < r->outlet_count; i++) {
        struct record_queue *q = &r->outlets[i]->queue;
        within = within && record_queue_glance(q).held_bytes <= q->capacity;
    }
    for (unsigned i = 0; i < r->app_count; i++) {
        struct registry_app *a = r->apps[i];
        within = within && inbox_within_limits(&a->inbox);
        within = within && (!registry_app_linked(a) || inbox_within_limits(&a->links));
    }
    for (unsigned i = 0; i < h->host->peer_count; i++)
        within = within && peer_within_limits(h->host->listener.receiver.peers[i]);
    /* ended streams whose records lie in an inbox still, beside those there are */
    return within && h->host->inlets.stream_count <= 16 * (h->host->peer_count + 1);
}
