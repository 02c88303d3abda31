/* The outlets of the host's apps, of all kinds, as the configuration says. */
#include "host/host_private.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

int host_find_app(const struct host *h, const char *name)
{
    for (unsigned i = 0; i < h->app_count; i++) {
        if (strcmp(h->apps[i].entry.name, name) == 0)
            return (int)i;
    }
    return -1;
}

/* Fills h->feeds: which app feeds which over inner outlets, directly or through others (Warshall's closure).
 */
static int find_cycles(struct host *h)
{
    const struct config *c = h->config;
    size_t n = c->app_count;
    h->feeds = calloc(n * n + 1, sizeof *h->feeds);
    if (!h->feeds)
        return -ENOMEM;
    for (unsigned i = 0; i < c->output_count; i++) {
        const struct config_output *o = &c->outputs[i];
        if (o->kind == OUTPUT_INNER)
            h->feeds[(size_t)host_find_app(h, o->app) * n + (size_t)host_find_app(h, o->inner_app)] = true;
    }
    for (size_t by = 0; by < n; by++) {
        for (size_t from = 0; from < n; from++) {
            for (size_t to = 0; h->feeds[from * n + by] && to < n; to++)
                h->feeds[from * n + to] |= h->feeds[by * n + to];
        }
    }
    return 0;
}

/* The app's output of that name gets its outlet. An app that never loaded has no outputs: its outlets stay
 * without a producer. */
static int join_producer(struct host *h, const struct config_output *config, struct outlet *outlet, char *why,
                         size_t why_size)
{
    struct owned_app *a = &h->apps[host_find_app(h, config->app)];
    outlet->producer = &a->loop->board;
    outlet->producer_slot = a->task.slot;
    h->registry.outlets[h->registry.outlet_count++] = outlet;
    struct backlog *backlog = NULL;
    int error = a->journal.on ? app_journal_add_output(a, outlet, config->backlog_bytes, &backlog) : 0;
    if (error == 0 && backlog && config->kind == OUTPUT_WIRE && config->attempts > 0)
        app_dead_keep(a, outlet, config->dead);
    if (backlog)
        outlet->report.beyond_limit = config->backlog_bytes;
    if (error < 0 || !a->state.app)
        return error;
    for (uint32_t i = 0; i < a->turn.output_count; i++) {
        if (strcmp(a->state.app->outputs[i], config->output) != 0)
            continue;
        turn_join(&a->turn, i, outlet, backlog);
        return 0;
    }
    if (config_hears(h->config, config))
        return 0;
    snprintf(why, why_size, "%s:%u: the module of app '%s' has no output '%s'", h->config->path, config->line,
             config->app, config->output);
    return PE_CONFIG;
}

/* What the receiving app has taken of it counts as stored, if its sender knows it or not. */
static int recall_taken(struct owned_app *from, struct owned_app *to, const char *output,
                        const uint8_t epoch[EPOCH_BYTES])
{
    char source[2 * OUTLET_NAME_MAX + 1];
    if (!from->journal.on || !to->journal.on)
        return 0;
    snprintf(source, sizeof source, "%s.%s", from->entry.name, output);
    uint64_t taken = app_journal_source(to, source, epoch);
    return taken > 0 ? app_journal_stored(from, output, taken) : 0;
}

static int open_inner(struct host *h, const struct config_output *config, char *why, size_t why_size)
{
    struct outlet *outlet = &h->inners[h->inner_count];
    int error =
        outlet_init(outlet, "inner", config->app, config->output, config->queue_bytes, config->max_record);
    if (error < 0)
        return error;
    h->inner_count++;
    unsigned to = (unsigned)host_find_app(h, config->inner_app),
             from = (unsigned)host_find_app(h, config->app);
    const uint8_t *epoch = host_epoch_of(h, &h->apps[from]);
    bool cyclic = h->feeds[(size_t)to * h->app_count + from];
    error = recall_taken(&h->apps[from], &h->apps[to], config->output, epoch);
    if (error == 0)
        error = join_producer(h, config, outlet, why, why_size);
    return error < 0 ? error : owned_app_add_inner(&h->apps[to], outlet, config->event, cyclic, epoch);
}

/* A sending loop and what an outlet on it needs. Wires and links are dealt to the loops in turn. */
struct sender {
    struct host_thread *thread;
    struct resolver *resolver;
};

static struct sender next_sender(struct host *h)
{
    unsigned index = (h->wire_count + h->link_count) % h->sender_count;
    return (struct sender){&h->threads[1 + h->owner_count + index], h->resolvers[index]};
}

/* It fares as it did in the life before. */
static int resume_wire(struct host *h, const struct config_output *config, struct wire *wire,
                       const _Atomic uint64_t *digest)
{
    struct kept_fare kept;
    int error = app_fare_watch(&h->apps[host_find_app(h, config->app)], &wire->outlet, digest, &kept);
    const struct outlet_fare *fare = &kept.fare;
    if (error < 0 || (fare->failures == 0 && !fare->disabled))
        return error;
    wire_resume(wire, fare->failures, fare->since_ms, fare->disabled);
    outlet_report(&wire->outlet, fare->disabled ? OUTLET_DISABLED : OUTLET_RESTING,
                  fare->by_command ? PE_OUTPUT_OFF
                  : fare->disabled ? PE_OUTPUT_DISABLED
                                   : PE_HTTP_STATUS,
                  fare->reason, fare->since_ms);
    return 0;
}

static int open_wire(struct host *h, const struct config_output *config, char *why, size_t why_size)
{
    struct sender sender = next_sender(h);
    struct wire_options options;
    char source[SOURCE_NAME_MAX + 1];
    struct wire *wire = &h->wires[h->wire_count];
    int error = host_wire_options(h, config, source, &options);
    if (error == 0)
        error = wire_init(wire, &options, config->app, config->output, config->queue_bytes,
                          config->max_record, &sender.thread->loop, sender.resolver, &sender.thread->log);
    sodium_memzero(&options, sizeof options);
    if (error < 0)
        return error;
    _Atomic uint64_t *digest = &h->wire_digests[h->wire_count++];
    *digest = host_wire_digest(config);
    error = join_producer(h, config, &wire->outlet, why, why_size);
    return error < 0 ? error : resume_wire(h, config, wire, digest);
}

/* --- links: one a receiving host, which is known by its key --- */

static bool same_link(const struct config_output *a, const struct config_output *b)
{
    return b->kind == OUTPUT_LINK && memcmp(a->link_key, b->link_key, LINK_KEY_BYTES) == 0;
}

/* Outputs of the same link; `least_mtu`: of theirs, as they share its packets. */
static uint32_t count_link_outputs(const struct config *c, const struct config_output *like,
                                   uint32_t *least_mtu)
{
    uint32_t count = 0;
    *least_mtu = like->link_mtu;
    for (unsigned i = 0; i < c->output_count; i++) {
        if (!same_link(like, &c->outputs[i]))
            continue;
        count++;
        *least_mtu = (uint32_t)min_u64(*least_mtu, c->outputs[i].link_mtu);
    }
    return count;
}

static struct link *find_link(struct host *h, const struct config_output *config)
{
    for (unsigned i = 0; i < h->link_count; i++) {
        if (memcmp(h->links[i].sender.initiator.remote_public, config->link_key, LINK_KEY_BYTES) == 0)
            return &h->links[i];
    }
    return NULL;
}

static int open_link(struct host *h, const struct config_output *config, struct link **made)
{
    struct sender sender = next_sender(h);
    struct link_options options = {.name = config->link_text,
                                   .host = config->link_host,
                                   .port = config->link_port,
                                   .literal = config->link_literal,
                                   .key = &h->key,
                                   .random = host_random(h),
                                   .ciphers = cipher_hardware()};
    memcpy(options.remote_public, config->link_key, LINK_KEY_BYTES);
    options.outputs = count_link_outputs(h->config, config, &options.mtu);
    struct link *link = *made = &h->links[h->link_count];
    int error = link_init(link, &options, &sender.thread->loop, sender.resolver, &sender.thread->log);
    if (error < 0)
        return error;
    h->link_count++;
    h->registry.links[h->registry.link_count++] = (struct registry_link){link->name, &link->report};
    return 0;
}

static int open_link_output(struct host *h, const struct config_output *config, char *why, size_t why_size)
{
    struct link *link = find_link(h, config);
    int error = link ? 0 : open_link(h, config, &link);
    if (error < 0)
        return error;
    struct link_outlet *o = &h->link_outlets[h->link_outlet_count];
    error = link_add(link, o, config->app, config->output, config->queue_bytes, config->max_record,
                     host_stream_epoch(h, config), config->target_app, config->event);
    if (error < 0)
        return error;
    h->link_outlet_count++;
    return join_producer(h, config, &o->outlet, why, why_size);
}

/* --- all --- */

static int open_output(struct host *h, const struct config_output *config, char *why, size_t why_size)
{
    switch (config->kind) {
    case OUTPUT_WIRE:
        return open_wire(h, config, why, why_size);
    case OUTPUT_LINK:
        return open_link_output(h, config, why, why_size);
    case OUTPUT_INNER:
        break;
    }
    return open_inner(h, config, why, why_size);
}

unsigned host_count_outputs(const struct config *config, enum output_kind kind)
{
    unsigned count = 0;
    for (unsigned i = 0; i < config->output_count; i++)
        count += config->outputs[i].kind == kind;
    return count;
}

/* Whether no output before it goes over the same link. */
static bool first_of_link(const struct config *c, unsigned index)
{
    for (unsigned i = 0; i < index; i++) {
        if (same_link(&c->outputs[index], &c->outputs[i]))
            return false;
    }
    return true;
}

unsigned host_count_sending(const struct config *c)
{
    unsigned count = host_count_outputs(c, OUTPUT_WIRE);
    for (unsigned i = 0; i < c->output_count; i++)
        count += c->outputs[i].kind == OUTPUT_LINK && first_of_link(c, i);
    return count;
}

static struct outlet *find_outlet(struct host *h, const char *app, const char *output)
{
    for (unsigned i = 0; i < h->registry.outlet_count; i++) {
        struct outlet *o = h->registry.outlets[i];
        if (strcmp(o->app, app) == 0 && strcmp(o->output, output) == 0)
            return o;
    }
    return NULL;
}

/* The output that hears when this one is disabled. */
static void join_hearer(struct host *h, const struct config_output *config)
{
    const char *hearer = config->kind == OUTPUT_WIRE ? config->wire.on_disable : NULL;
    if (hearer)
        app_fare_hears(&h->apps[host_find_app(h, config->app)], find_outlet(h, config->app, config->output),
                       find_outlet(h, config->app, hearer));
}

int host_open_outlets(struct host *h, char *why, size_t why_size)
{
    const struct config *c = h->config;
    unsigned links = host_count_outputs(c, OUTPUT_LINK);
    h->wires = host_allocate(host_count_outputs(c, OUTPUT_WIRE), sizeof *h->wires);
    h->wire_digests = calloc(host_count_outputs(c, OUTPUT_WIRE) + 1, sizeof *h->wire_digests);
    h->links = host_allocate(links, sizeof *h->links);
    h->link_outlets = host_allocate(links, sizeof *h->link_outlets);
    h->inners = host_allocate(host_count_outputs(c, OUTPUT_INNER), sizeof *h->inners);
    h->registry.links = calloc(links + 1, sizeof *h->registry.links);
    if (!h->wires || !h->wire_digests || !h->links || !h->link_outlets || !h->inners || !h->registry.links)
        return -ENOMEM;
    int error = find_cycles(h);
    if (error == 0)
        error = host_want_https(h);
    for (unsigned i = 0; error == 0 && i < c->output_count; i++)
        error = open_output(h, &c->outputs[i], why, why_size);
    for (unsigned i = 0; error == 0 && i < c->output_count; i++)
        join_hearer(h, &c->outputs[i]);
    host_tls_look_and_tell(&h->tls, &front_thread(h)->log);
    for (unsigned i = 0; error == 0 && i < h->app_count; i++) {
        if (h->apps[i].journal.on)
            app_journal_park(&h->apps[i]);
    }
    return error;
}

void host_dispose_outlets(struct host *h)
{
    for (unsigned i = 0; i < h->wire_count; i++)
        wire_dispose(&h->wires[i]);
    for (unsigned i = 0; i < h->link_count; i++)
        link_dispose(&h->links[i]);
    for (unsigned i = 0; i < h->inner_count; i++)
        outlet_dispose(&h->inners[i]);
    free(h->registry.links);
    free(h->feeds);
    free(h->wires);
    free(h->wire_digests);
    free(h->links);
    free(h->link_outlets);
    free(h->inners);
}
