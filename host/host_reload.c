/* Changing a host while it runs. The front's thread reads the file; wires take their new options on their own
 * loop.
 *
 * What the apps stand on (modules, owners, queues, which output is what) is joined once, in host.c; to change
 * it takes a restart, and the log says what waits for one. */
#include "host/host_private.h"
#include "host/key_file.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>

static struct log *log_of(struct host *h)
{
    return &front_thread(h)->log;
}

static void waits_for_restart(struct host *h, unsigned *waiting, const char *what, const char *name)
{
    log_line(log_of(h), LOG_WARNING, "reload: %s%s changes with the next start", what, name);
    (*waiting)++;
}

static const struct config_app *find_app(const struct config *c, const char *name)
{
    for (unsigned i = 0; i < c->app_count; i++) {
        if (strcmp(c->apps[i].name, name) == 0)
            return &c->apps[i];
    }
    return NULL;
}

static const struct config_output *find_output(const struct config *c, const struct config_output *like)
{
    for (unsigned i = 0; i < c->output_count; i++) {
        const struct config_output *o = &c->outputs[i];
        if (strcmp(o->app, like->app) == 0 && strcmp(o->output, like->output) == 0)
            return o;
    }
    return NULL;
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

/* The file may have changed, whatever its name. One that the next start would not take is worth an error
 * now. */
static void compare_key(struct host *h, const struct config *to, unsigned *waiting)
{
    struct host_key key;
    char why[300];
    if (!host_needs_key(to))
        return;
    if (key_file_of_config(to, &key, why, sizeof why) < 0) {
        log_line(log_of(h), LOG_ERROR,
                 "reload: [host] key: %s; the key in force stays, but the host would not start", why);
        ++*waiting;
    } else if (memcmp(key.public, h->key.public, LINK_KEY_BYTES) != 0) {
        waits_for_restart(h, waiting, "[host] key", "");
    }
    host_key_wipe(&key);
}

static bool same_https(const struct config_https *a, const struct config_https *b)
{
    return same_text(a->text, b->text) && same_text(a->ca, b->ca) &&
           same_text(a->pair.certificate, b->pair.certificate) && same_text(a->pair.key, b->pair.key);
}

static bool same_without(const struct overload_without *a, const struct overload_without *b)
{
    return a->quotas == b->quotas && a->early == b->early && a->feedback == b->feedback &&
           a->share == b->share;
}

static void compare_host(struct host *h, const struct config *to, unsigned *waiting)
{
    const struct config *from = h->config;
    if (!same_text(from->http, to->http))
        waits_for_restart(h, waiting, "[host] http", "");
    if (!same_text(from->name, to->name))
        waits_for_restart(h, waiting, "[host] name", "");
    if (from->owners != to->owners)
        waits_for_restart(h, waiting, "[host] owners", "");
    if (from->loops != to->loops)
        waits_for_restart(h, waiting, "[host] loops", "");
    if (from->connections != to->connections)
        waits_for_restart(h, waiting, "[host] connections", "");
    if (!same_text(from->link, to->link))
        waits_for_restart(h, waiting, "[host] link", "");
    if (!same_https(&from->https, &to->https))
        waits_for_restart(h, waiting, "[host] https", "");
    compare_key(h, to, waiting);
    if (!same_text(from->store_path, to->store_path))
        waits_for_restart(h, waiting, "[host] store", "");
    if (from->segment_bytes != to->segment_bytes)
        waits_for_restart(h, waiting, "[host] segment", "");
    if (from->link_window != to->link_window)
        waits_for_restart(h, waiting, "[host] link_window", "");
    if (!same_without(&from->without, &to->without))
        waits_for_restart(h, waiting, "[host] without", "");
}

static const struct config_peer *find_peer(const struct config *c, const char *name)
{
    for (unsigned i = 0; i < c->peer_count; i++) {
        if (strcmp(c->peers[i].name, name) == 0)
            return &c->peers[i];
    }
    return NULL;
}

static bool may_send_to(const struct config_peer *peer, const char *app)
{
    for (unsigned i = 0; i < peer->app_count; i++) {
        if (strcmp(peer->apps[i], app) == 0)
            return true;
    }
    return false;
}

/* The order of apps means nothing, and none is named twice. */
static bool same_peer(const struct config_peer *a, const struct config_peer *b)
{
    if (memcmp(a->key, b->key, sizeof a->key) != 0 || a->app_count != b->app_count)
        return false;
    for (unsigned i = 0; i < a->app_count; i++) {
        if (!may_send_to(b, a->apps[i]))
            return false;
    }
    return true;
}

static void compare_peers(struct host *h, const struct config *to, unsigned *waiting)
{
    const struct config *from = h->config;
    for (unsigned i = 0; i < from->peer_count; i++) {
        const struct config_peer *was = &from->peers[i], *is = find_peer(to, was->name);
        if (!is || !same_peer(was, is))
            waits_for_restart(h, waiting, "peer ", was->name);
    }
    for (unsigned i = 0; i < to->peer_count; i++) {
        if (!find_peer(from, to->peers[i].name))
            waits_for_restart(h, waiting, "peer ", to->peers[i].name);
    }
}

static bool same_app(const struct config_app *a, const struct config_app *b)
{
    return same_text(a->module, b->module) && same_text(a->arg, b->arg) && a->inbox_bytes == b->inbox_bytes &&
           a->durability == b->durability && a->interval_ns == b->interval_ns && a->keep_ms == b->keep_ms &&
           a->keep_bytes == b->keep_bytes && a->turn_limit_ns == b->turn_limit_ns &&
           a->memory_bytes == b->memory_bytes;
}

static void compare_apps(struct host *h, const struct config *to, unsigned *waiting)
{
    const struct config *from = h->config;
    for (unsigned i = 0; i < from->app_count; i++) {
        const struct config_app *was = &from->apps[i], *is = find_app(to, was->name);
        if (!is || !same_app(was, is))
            waits_for_restart(h, waiting, "app ", was->name);
    }
    for (unsigned i = 0; i < to->app_count; i++) {
        if (!find_app(from, to->apps[i].name))
            waits_for_restart(h, waiting, "app ", to->apps[i].name);
    }
}

static void name_output(const struct config_output *o, char *name, size_t size)
{
    size_t app = min_size(strlen(o->app), size - 2), output = min_size(strlen(o->output), size - 2 - app);
    memcpy(name, o->app, app);
    name[app] = '.';
    memcpy(name + app + 1, o->output, output);
    name[app + 1 + output] = '\0';
}

static bool same_link(const struct config_output *a, const struct config_output *b)
{
    return same_text(a->link_text, b->link_text) &&
           memcmp(a->link_key, b->link_key, sizeof a->link_key) == 0 &&
           same_text(a->target_app, b->target_app) && same_text(a->event, b->event) &&
           a->link_mtu == b->link_mtu;
}

static bool joined_alike(const struct config_output *was, const struct config_output *is)
{
    if (was->kind != is->kind || was->queue_bytes != is->queue_bytes || was->max_record != is->max_record ||
        was->backlog_bytes != is->backlog_bytes || was->attempts != is->attempts || was->dead != is->dead ||
        !same_text(was->wire.on_disable, is->wire.on_disable))
        return false;
    switch (was->kind) {
    case OUTPUT_INNER:
        return same_text(was->inner_app, is->inner_app) && same_text(was->event, is->event);
    case OUTPUT_LINK:
        return same_link(was, is);
    default:
        return true; /* what else a wire is changes at once */
    }
}

static void compare_outputs(struct host *h, const struct config *to, unsigned *waiting)
{
    const struct config *from = h->config;
    char name[2 * OUTLET_NAME_MAX + 1];
    for (unsigned i = 0; i < from->output_count; i++) {
        const struct config_output *was = &from->outputs[i], *is = find_output(to, was);
        name_output(was, name, sizeof name);
        if (!is || !joined_alike(was, is))
            waits_for_restart(h, waiting, "output ", name);
    }
    for (unsigned i = 0; i < to->output_count; i++) {
        name_output(&to->outputs[i], name, sizeof name);
        if (!find_output(from, &to->outputs[i]))
            waits_for_restart(h, waiting, "output ", name);
    }
}

/* What a command has disabled stays so as long as it is not configured anew. */
static bool disabled(struct wire *wire)
{
    if (atomic_load_explicit(&wire->outlet.report.error, memory_order_relaxed) == PE_OUTPUT_OFF)
        return false;
    return atomic_load_explicit(&wire->outlet.report.state, memory_order_relaxed) == OUTLET_DISABLED;
}

static int change_wire(struct host *h, struct wire *wire, const struct config_output *to)
{
    char source[SOURCE_NAME_MAX + 1];
    struct wire_options options;
    int error = host_wire_options(h, to, source, &options);
    if (error == 0)
        error = wire_change(wire, &options);
    sodium_memzero(&options, sizeof options);
    if (error < 0)
        log_line(log_of(h), LOG_ERROR, "reload: output %s.%s stays as it was: %s", wire->outlet.app,
                 wire->outlet.output, pure_error_text(error));
    return error;
}

/* The files of TLS that the new configuration names are read before a wire needs them. */
static void want_files(struct host *h, const struct config *to)
{
    struct tls_current *current;
    for (unsigned i = 0; i < to->output_count; i++) {
        const struct config_output *o = &to->outputs[i];
        if (o->kind == OUTPUT_WIRE && o->url.tls)
            host_want_tls(h, &o->wire, &current);
    }
    host_tls_look_and_tell(&h->tls, log_of(h));
}

/* Wires whose options differ from those in force, or that are disabled: configured anew, they are tried
 * again. */
static unsigned change_wires(struct host *h, const struct config *to)
{
    const struct config *from = h->current ? h->current : h->config;
    unsigned changed = 0;
    for (unsigned i = 0; i < h->wire_count; i++) {
        struct wire *wire = &h->wires[i];
        const struct config_output like = {.app = wire->outlet.app, .output = wire->outlet.output};
        const struct config_output *was = find_output(from, &like), *is = find_output(to, &like);
        if (!is || is->kind != OUTPUT_WIRE || (was && host_same_wire(was, is) && !disabled(wire)))
            continue;
        if (change_wire(h, wire, is) < 0)
            continue;
        h->wire_digests[i] = host_wire_digest(is);
        changed++;
    }
    return changed;
}

static void take(struct host *h, struct config *to)
{
    to->connections = h->fitted.connections; /* the pool is made once */
    h->front.config = to;
    if (h->current) {
        config_dispose(h->current);
        free(h->current);
    }
    h->current = to;
}

void host_take_config(struct host *h, struct config *to)
{
    unsigned waiting = 0;
    compare_host(h, to, &waiting);
    compare_apps(h, to, &waiting);
    compare_outputs(h, to, &waiting);
    compare_peers(h, to, &waiting);
    want_files(h, to);
    unsigned changed = change_wires(h, to);
    take(h, to);
    log_line(log_of(h), LOG_NOTICE, "reload: done; %u wires changed, %u changes wait for a restart", changed,
             waiting);
}

int host_reload(struct host *h)
{
    struct config *to = calloc(1, sizeof *to);
    if (!to)
        return -ENOMEM;
    char why[400];
    int error = config_load(to, h->config->path, why, sizeof why);
    if (error < 0) {
        log_line(log_of(h), LOG_ERROR, "reload: %s; the configuration in force stays", why);
        free(to);
        return error;
    }
    host_take_config(h, to);
    return 0;
}
