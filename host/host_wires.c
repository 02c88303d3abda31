/* What the configuration says of a wire, as the wire is told it. */
#include "host/host_private.h"

#include <endian.h>
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

/* --- what wires point to --- */

/* A copy that lasts as long as the host: wires take new options at a time of their own, so nobody knows when
 * the old ones are out of use. Equal bytes are kept once: what there can be of it is what different
 * configurations have said. */
struct host_kept {
    struct host_kept *next;
    size_t size;
    uint8_t bytes[] __attribute__((aligned(8)));
};

static const void *keep(struct host *h, const void *bytes, size_t size)
{
    for (struct host_kept *kept = h->kept; kept; kept = kept->next) {
        if (kept->size == size && memcmp(kept->bytes, bytes, size) == 0)
            return kept->bytes;
    }
    struct host_kept *kept = malloc(sizeof *kept + size);
    if (!kept)
        return NULL;
    *kept = (struct host_kept){h->kept, size};
    memcpy(kept->bytes, bytes, size);
    h->kept = kept;
    return kept->bytes;
}

void host_dispose_kept(struct host *h)
{
    for (struct host_kept *kept = h->kept, *next; kept; kept = next) {
        next = kept->next;
        free(kept);
    }
}

/* --- options --- */

static int set_egress(struct host *h, const struct config_egress *egress, struct wire_options *options)
{
    if (egress->networks.allow_count + egress->networks.deny_count > 0 &&
        !(options->egress = keep(h, &egress->networks, sizeof egress->networks)))
        return -ENOMEM;
    options->proxied = egress->proxy != NULL;
    if (egress->proxy)
        options->proxy = *egress->proxy;
    return 0;
}

int host_want_tls(struct host *h, const struct config_wire *wire, struct tls_current **current)
{
    const struct host_tls_files files = {
        .ca = wire->egress.ca, .pair = &wire->pair, .pins = wire->pins, .pin_count = wire->pin_count};
    return host_tls_want(&h->tls, &files, current);
}

static int set_sealing(struct host *h, const struct config_output *config, struct wire_options *options)
{
    if (config->link_key_line == 0)
        return 0;
    options->seal_to = keep(h, config->link_key, sizeof config->link_key);
    options->seal_with = &h->key;
    options->seal_random = host_random(h);
    return options->seal_to ? 0 : -ENOMEM;
}

static void set_requests(const struct config_wire *wire, struct wire_options *options)
{
    memcpy(options->secrets, wire->secrets, sizeof options->secrets);
    options->secret_count = wire->secret_count;
    for (unsigned i = 0; i < wire->header_count; i++)
        options->headers[i] = wire->headers[i];
    options->header_count = wire->header_count;
    options->gzip = (int)wire->gzip;
    options->stored = wire->stored;
    options->refused = wire->refused;
    options->disables = wire->disables;
    options->disable_failures = wire->disable_failures;
    options->disable_ns = wire->disable_ns;
    options->rate_mhz = wire->rate_mhz;
    options->concurrency = wire->concurrency;
    options->order_by = wire->order_by;
    options->batch_wait_ns = wire->batch_wait_ns;
    options->connection_age_ns = wire->connection_age_ns;
}

int host_wire_options(struct host *h, const struct config_output *config, char *source,
                      struct wire_options *options)
{
    *options = (struct wire_options){.url = config->url,
                                     .mode = config->mode,
                                     .agent = "pure-host/" PURE_VERSION,
                                     .source = source,
                                     .event = config->event,
                                     .token = config->token,
                                     .content_type = config->content_type,
                                     .batch_bytes = config->batch_bytes,
                                     .batch_records = config->batch_records,
                                     .attempts = config->attempts,
                                     .progress_ns = config->progress_ns,
                                     .reply_ns = config->reply_ns,
                                     .total_ns = config->total_ns,
                                     .backoff_min_ns = config->backoff_min_ns,
                                     .backoff_max_ns = config->backoff_max_ns};
    snprintf(source, SOURCE_NAME_MAX + 1, "%s/%s/%s", h->config->name, config->app, config->output);
    memcpy(options->epoch, host_stream_epoch(h, config), sizeof options->epoch);
    h->options.fill_random(h->options.context, &options->seed, sizeof options->seed);
    set_requests(&config->wire, options);
    int error = set_egress(h, &config->wire.egress, options);
    if (error == 0 && config->url.tls)
        error = host_want_tls(h, &config->wire, &options->tls);
    return error < 0 ? error : set_sealing(h, config, options);
}

/* --- a digest --- */

static void feed(crypto_generichash_state *state, const void *bytes, size_t size)
{
    uint64_t length = htole64(size);
    crypto_generichash_update(state, (const uint8_t *)&length, sizeof length);
    crypto_generichash_update(state, bytes, size);
}

static void feed_text(crypto_generichash_state *state, const char *text)
{
    feed(state, text ? text : "", text ? strlen(text) + 1 : 0);
}

static void feed_numbers(crypto_generichash_state *state, const struct config_output *o)
{
    const struct config_wire *w = &o->wire;
    const uint64_t numbers[] = {o->mode,           o->batch_bytes, o->batch_records,    o->attempts,
                                o->progress_ns,    o->reply_ns,    o->total_ns,         o->backoff_min_ns,
                                o->backoff_max_ns, w->gzip,        w->disable_failures, w->disable_ns,
                                w->concurrency,    w->rate_mhz,    w->batch_wait_ns,    w->connection_age_ns};
    for (unsigned i = 0; i < ARRAY_SIZE(numbers); i++) {
        uint64_t number = htole64(numbers[i]);
        feed(state, &number, sizeof number);
    }
    const struct wire_statuses *lists[] = {&w->stored, &w->refused, &w->disables};
    for (unsigned i = 0; i < ARRAY_SIZE(lists); i++)
        feed(state, lists[i], sizeof *lists[i]);
}

static void feed_requests(crypto_generichash_state *state, const struct config_wire *w)
{
    for (unsigned i = 0; i < w->header_count; i++) {
        feed_text(state, w->headers[i].name);
        feed_text(state, w->headers[i].value);
    }
    for (unsigned i = 0; i < w->secret_count; i++)
        feed(state, w->secrets[i].key, w->secrets[i].size);
    feed_text(state, w->order_by);
}

static void feed_ways(crypto_generichash_state *state, const struct config_wire *w)
{
    const struct config_egress *e = &w->egress;
    feed_text(state, e->proxy ? e->proxy->url.authority : NULL);
    feed_text(state, e->proxy ? e->proxy->authorization : NULL);
    feed(state, &e->networks, sizeof e->networks);
    feed_text(state, e->ca);
    feed_text(state, w->pair.certificate);
    feed_text(state, w->pair.key);
    feed(state, w->pins, w->pin_count * sizeof w->pins[0]);
}

/* Of 64 bits, so that whoever has the journal cannot tell by it what a secret is. */
uint64_t host_wire_digest(const struct config_output *o)
{
    crypto_generichash_state state;
    uint8_t hash[crypto_generichash_BYTES_MIN];
    uint64_t digest;
    crypto_generichash_init(&state, NULL, 0, sizeof hash);
    feed_text(&state, o->url_text);
    feed_text(&state, o->event);
    feed_text(&state, o->target_app);
    feed_text(&state, o->token);
    feed_text(&state, o->content_type);
    feed(&state, o->link_key, sizeof o->link_key);
    feed_numbers(&state, o);
    feed_requests(&state, &o->wire);
    feed_ways(&state, &o->wire);
    crypto_generichash_final(&state, hash, sizeof hash);
    sodium_memzero(&state, sizeof state);
    memcpy(&digest, hash, sizeof digest);
    return le64toh(digest);
}

int host_want_https(struct host *h)
{
    const struct config_https *https = &h->config->https;
    const struct host_tls_files files = {.ca = https->ca, .pair = &https->pair, .server = true};
    return https->text ? host_tls_want(&h->tls, &files, &h->https) : 0;
}

/* --- what has changed --- */

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static bool same_headers(const struct config_wire *a, const struct config_wire *b)
{
    if (a->header_count != b->header_count)
        return false;
    for (unsigned i = 0; i < a->header_count; i++) {
        if (strcmp(a->headers[i].name, b->headers[i].name) != 0 ||
            strcmp(a->headers[i].value, b->headers[i].value) != 0)
            return false;
    }
    return true;
}

static bool same_secrets(const struct config_wire *a, const struct config_wire *b)
{
    if (a->secret_count != b->secret_count)
        return false;
    for (unsigned i = 0; i < a->secret_count; i++) {
        const struct wire_secret *x = &a->secrets[i], *y = &b->secrets[i];
        if (x->kind != y->kind || x->size != y->size || memcmp(x->key, y->key, x->size) != 0)
            return false;
    }
    return true;
}

static bool same_requests(const struct config_wire *a, const struct config_wire *b)
{
    return same_secrets(a, b) && same_headers(a, b) && a->gzip == b->gzip &&
           memcmp(&a->stored, &b->stored, sizeof a->stored) == 0 &&
           memcmp(&a->refused, &b->refused, sizeof a->refused) == 0 &&
           memcmp(&a->disables, &b->disables, sizeof a->disables) == 0 &&
           a->disable_failures == b->disable_failures && a->disable_ns == b->disable_ns &&
           a->concurrency == b->concurrency && same_text(a->order_by, b->order_by) &&
           a->rate_mhz == b->rate_mhz && a->batch_wait_ns == b->batch_wait_ns &&
           a->connection_age_ns == b->connection_age_ns;
}

static bool same_proxy(const struct wire_proxy *a, const struct wire_proxy *b)
{
    return a == b || (a && b && strcmp(a->url.authority, b->url.authority) == 0 &&
                      same_text(a->authorization, b->authorization));
}

static bool same_ways(const struct config_wire *a, const struct config_wire *b)
{
    return same_proxy(a->egress.proxy, b->egress.proxy) &&
           memcmp(&a->egress.networks, &b->egress.networks, sizeof a->egress.networks) == 0 &&
           same_text(a->egress.ca, b->egress.ca) && same_text(a->pair.certificate, b->pair.certificate) &&
           same_text(a->pair.key, b->pair.key) && a->pin_count == b->pin_count &&
           memcmp(a->pins, b->pins, a->pin_count * sizeof a->pins[0]) == 0;
}

bool host_same_wire(const struct config_output *a, const struct config_output *b)
{
    return same_text(a->url_text, b->url_text) && a->mode == b->mode && same_text(a->event, b->event) &&
           same_text(a->target_app, b->target_app) && same_text(a->token, b->token) &&
           same_text(a->content_type, b->content_type) && a->batch_bytes == b->batch_bytes &&
           a->batch_records == b->batch_records && a->progress_ns == b->progress_ns &&
           a->reply_ns == b->reply_ns && a->total_ns == b->total_ns &&
           a->backoff_min_ns == b->backoff_min_ns && a->backoff_max_ns == b->backoff_max_ns &&
           memcmp(a->link_key, b->link_key, sizeof a->link_key) == 0 && same_requests(&a->wire, &b->wire) &&
           same_ways(&a->wire, &b->wire);
}
