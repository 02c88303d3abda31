/* What comes in over links: the listener on its thread, the peers that are let in, and their way into the
 * apps. */
#include "host/host_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define PEER_STREAMS 256 /* at once; each takes memory of its own only while it is used */

/* Bytes, with overload_without.early: as if there were always room. */
#define OVERPROMISE (UINT64_C(1) << 40)

static void want(void *context)
{
    link_listener_want(context);
}

/* The apps that peers may send to get their second inbox. */
static int link_apps(struct host *h)
{
    const struct config *c = h->config;
    int error = 0;
    for (unsigned i = 0; error == 0 && i < c->peer_count; i++) {
        for (unsigned j = 0; error == 0 && j < c->peers[i].app_count; j++) {
            unsigned app = (unsigned)host_find_app(h, c->peers[i].apps[j]);
            if (!registry_app_linked(&h->apps[app].entry))
                error = owned_app_add_links(&h->apps[app], c->apps[app].inbox_bytes);
        }
    }
    return error;
}

static int open_inlets(struct host *h)
{
    struct host_thread *t = listen_thread(h);
    const struct link_inlets_options options = {.apps = h->registry.apps,
                                                .app_count = h->app_count,
                                                .peer_streams = 2 * PEER_STREAMS,
                                                .loop = &t->loop,
                                                .log = &t->log,
                                                .want = want,
                                                .want_context = &h->listener};
    int error = link_inlets_init(&h->inlets, &options);
    h->inlets_open = error == 0;
    return error;
}

static int listen_on(struct host *h)
{
    const struct config *c = h->config;
    struct host_thread *t = listen_thread(h);
    const struct link_listener_options options = {
        .address = (const struct sockaddr *)&c->link_address,
        .address_len = c->link_address_len,
        .receiver = {.key = &h->key,
                     .random = host_random(h),
                     .ciphers = cipher_hardware(),
                     .without_quotas = c->without.quotas,
                     .peers = (uint32_t)max_u64(c->peer_count, 1),
                     .limits = {.places = PEER_STREAMS,
                                .stream_window = c->link_window / 4,
                                .session_window = c->link_window,
                                .overpromise = c->without.early ? OVERPROMISE : 0,
                                .max_record = RECORD_MAX_BYTES}}};
    int error;
    unsigned tries = 0;
    do
        error = link_listener_init(&h->listener, &options, &h->inlets.consumer, &t->loop, &t->log);
    while (error == -EADDRINUSE && h->options.await_address &&
           h->options.await_address(h->options.context, ++tries));
    h->listening = error == 0;
    if (error == 0)
        h->registry.listener = &h->listener.report;
    return error;
}

static int let_in(struct host *h, const struct config_peer *config)
{
    struct host_peer *peer = &h->peers[h->peer_count];
    peer->apps = calloc(h->app_count + 1, sizeof *peer->apps);
    if (!peer->apps)
        return -ENOMEM;
    h->peer_count++;
    for (unsigned i = 0; i < config->app_count; i++)
        peer->apps[host_find_app(h, config->apps[i])] = true;
    peer->access = (struct link_peer_access){.name = config->name, .apps = peer->apps};
    memcpy(peer->access.key, config->key, LINK_KEY_BYTES);
    int number = link_receiver_allow(&h->listener.receiver, config->key, &peer->access);
    return number < 0 ? number : 0;
}

int host_open_listener(struct host *h, char *why, size_t why_size)
{
    const struct config *c = h->config;
    if (!c->link)
        return 0;
    h->peers = calloc(c->peer_count + 1, sizeof *h->peers);
    int error = h->peers ? link_apps(h) : -ENOMEM;
    if (error == 0)
        error = open_inlets(h);
    if (error == 0 && (error = listen_on(h)) < 0)
        snprintf(why, why_size, "cannot listen for links on %s: %s", c->link, pure_error_text(error));
    for (unsigned i = 0; error == 0 && i < c->peer_count; i++)
        error = let_in(h, &c->peers[i]);
    return error;
}

void host_dispose_listener(struct host *h)
{
    if (h->listening)
        link_listener_dispose(&h->listener);
    if (h->inlets_open)
        link_inlets_dispose(&h->inlets);
    for (unsigned i = 0; i < h->peer_count; i++)
        free(h->peers[i].apps);
    free(h->peers);
}
