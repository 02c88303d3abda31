#include "tests/sim/ledgers.h"

#include "host/host_private.h"

#include <stdio.h>
#include <stdlib.h>

#define STEPS_MAX (50 * 1000 * 1000)

/* --- posting --- */

static size_t put_number(char *at, uint64_t number, size_t bytes)
{
    size_t size = (size_t)sprintf(at, "%llu ", (unsigned long long)number);
    for (; size < bytes; size++)
        at[size] = 'x';
    at[size++] = '\n';
    return size;
}

struct sim_connection *numbers_begin(struct world_host *h, const char *app, const char *key,
                                     struct numbers numbers)
{
    char path[64], *body = malloc(numbers.count * (numbers.bytes + 24) + 1);
    size_t size = 0;
    assert(body);
    for (uint64_t i = 0; i < numbers.count; i++)
        size += put_number(body + size, numbers.first + i, numbers.bytes);
    body[size] = '\0';
    snprintf(path, sizeof path, "/apps/%s/events/e", app);
    struct sim_connection *c = key ? world_post_key(h, path, "application/x-ndjson", key, body)
                                   : world_post(h, path, "application/x-ndjson", body);
    free(body);
    return c;
}

static bool answered(void *context)
{
    return sim_peer_ended(context) || world_status(context) != 0;
}

unsigned answer_await(struct hosts_world *w, struct sim_connection *c, uint64_t patience_ns)
{
    sim_run(w->sim, sim_now_ns(w->sim) + patience_ns, answered, c, STEPS_MAX);
    return world_status(c);
}

unsigned numbers_post(struct world_host *h, const char *app, const char *key, struct numbers numbers,
                      uint64_t patience_ns)
{
    return answer_await(h->world, numbers_begin(h, app, key, numbers), patience_ns);
}

uint64_t numbers_post_all(struct world_host *h, const char *app, struct numbers numbers, uint64_t each,
                          uint64_t patience_ns)
{
    struct sim *sim = h->world->sim;
    uint64_t posted = 0;
    while (posted < numbers.count) {
        struct numbers some = {numbers.first + posted, min_u64(each, numbers.count - posted), numbers.bytes};
        uint64_t ends_ns = sim_now_ns(sim) + patience_ns;
        char key[32];
        snprintf(key, sizeof key, "n%llu", (unsigned long long)some.first);
        unsigned status = 0;
        while (status != 200 && sim_now_ns(sim) < ends_ns) {
            status = numbers_post(h, app, key, some, ends_ns - sim_now_ns(sim));
            if (status != 200)
                sim_run_for(sim, 100 * NS_PER_MS);
        }
        if (status != 200)
            break;
        posted += some.count;
    }
    return posted;
}

/* --- what came of it --- */

static const struct ledger *ledger_of(const struct world_host *h, const char *app)
{
    const struct ledger *l = world_app_state(h, app);
    assert(l);
    return l;
}

bool ledger_is(const struct world_host *h, const char *app, uint64_t count)
{
    const struct ledger *l = ledger_of(h, app);
    uint64_t hash = 0;
    for (uint64_t i = 1; i <= count; i++)
        hash = ledger_hash(hash, i);
    bool is = l->count == count && l->last == count && l->disorder == 0 && l->hash == hash;
    if (!is)
        fprintf(stderr, "app %s of host %s: %llu events, the last %llu, %llu out of order; wanted: %llu\n",
                app, h->name, (unsigned long long)l->count, (unsigned long long)l->last,
                (unsigned long long)l->disorder, (unsigned long long)count);
    return is;
}

struct wanted {
    const struct world_host *host;
    const char *app, *output;
    const struct tally *tally;
    uint64_t number;
};

static bool ledger_has(void *context)
{
    const struct wanted *w = context;
    return ledger_of(w->host, w->app)->count >= w->number;
}

static void await(struct hosts_world *world, bool (*is)(void *context), struct wanted *w,
                  uint64_t patience_ns)
{
    if (!is(w))
        sim_run(world->sim, sim_now_ns(world->sim) + patience_ns, is, w, STEPS_MAX);
}

bool ledger_await(struct world_host *h, const char *app, uint64_t count, uint64_t patience_ns)
{
    await(h->world, ledger_has, &(struct wanted){.host = h, .app = app, .number = count}, patience_ns);
    return ledger_is(h, app, count);
}

static bool tally_has(void *context)
{
    const struct wanted *w = context;
    return w->tally->last >= w->number;
}

bool tally_await(struct hosts_world *w, const struct tally *t, uint64_t number, uint64_t patience_ns)
{
    await(w, tally_has, &(struct wanted){.tally = t, .number = number}, patience_ns);
    return t->last >= number;
}

uint64_t tally_not_once(const struct tally *t, uint64_t first, uint64_t last)
{
    uint64_t count = 0;
    for (uint64_t i = first; i <= last; i++)
        count += t->times[i] != 1;
    return count;
}

uint64_t output_stored(const struct world_host *h, const char *app, const char *output)
{
    return world_outlet(h, app, output)->queue.freed.records;
}

static bool output_has(void *context)
{
    const struct wanted *w = context;
    return output_stored(w->host, w->app, w->output) >= w->number;
}

bool output_await(struct world_host *h, const char *app, const char *output, uint64_t stored,
                  uint64_t patience_ns)
{
    struct wanted wanted = {.host = h, .app = app, .output = output, .number = stored};
    await(h->world, output_has, &wanted, patience_ns);
    return output_stored(h, app, output) == stored;
}

/* --- ends --- */

static bool stop_is_over(void *context)
{
    return host_stopped(((struct world_host *)context)->host);
}

static bool journals_stopped(void *context)
{
    const struct host *h = ((struct world_host *)context)->host;
    bool stopped = true;
    for (unsigned i = 0; i < h->thread_count; i++)
        stopped = stopped && host_journal_stopped(&h->threads[i]);
    return stopped;
}

uint64_t world_stop(struct world_host *h)
{
    struct sim *sim = h->world->sim;
    uint64_t began_ns = sim_now_ns(sim), ends_ns = began_ns + 60 * NS_PER_S;
    host_stop(h->host);
    sim_run(sim, ends_ns, stop_is_over, h, STEPS_MAX);
    if (host_stopped(h->host)) { /* then the threads end: for a disk they wait no longer (DISK_NS) */
        host_end(h->host);
        sim_run(sim, sim_now_ns(sim) + 900 * NS_PER_MS, journals_stopped, h, STEPS_MAX);
    }
    uint64_t took_ns = host_stopped(h->host) ? sim_now_ns(sim) - began_ns : NEVER;
    world_kill(h);
    return took_ns;
}

/* --- the store --- */

struct listing {
    struct world_host *host;
    const char *suffix;
    unsigned count, index;
    bool sums; /* their bytes: that reads them */
    uint64_t bytes;
    char path[64];
};

static void see(void *context, const char *name)
{
    struct listing *l = context;
    size_t size = strlen(name), ends = strlen(l->suffix);
    if (size < ends || strcmp(name + size - ends, l->suffix) != 0)
        return;
    char path[64];
    uint8_t *bytes;
    size_t file_size;
    snprintf(path, sizeof path, "/store/%.40s", name);
    if (l->count++ == l->index)
        memcpy(l->path, path, sizeof path);
    if (!l->sums || !sim_disk_read(l->host->disk, path, &bytes, &file_size))
        return;
    l->bytes += file_size;
    free(bytes);
}

unsigned store_files(struct world_host *h, const char *suffix, uint64_t *bytes)
{
    struct listing l = {.host = h, .suffix = suffix, .sums = bytes != NULL};
    sim_disk_list(h->disk, "/store", see, &l);
    if (bytes)
        *bytes = l.bytes;
    return l.count;
}

bool store_segment(struct world_host *h, unsigned index, char path[64])
{
    struct listing l = {.host = h, .suffix = ".journal", .index = index};
    sim_disk_list(h->disk, "/store", see, &l);
    memcpy(path, l.path, sizeof l.path);
    return l.count > index;
}
