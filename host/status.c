#include "host/status.h"

#include "host/front_reply.h"
#include "host/host.h"
#include "tls/context.h"

typedef unsigned long long ull;

static const char *condition_name(int condition)
{
    static const char *const names[] = {[APP_RUNNING] = "running",
                                        [APP_WAITING] = "waiting",
                                        [APP_RETRYING] = "retrying",
                                        [APP_SUSPENDED] = "suspended"};
    return names[condition];
}

static int condition_of(struct registry_app *app)
{
    return app->failure[0] ? APP_SUSPENDED
                           : atomic_load_explicit(&app->report.condition, memory_order_relaxed);
}

static bool stuck(const struct outlet *o, uint64_t wall_ms)
{
    uint64_t since_ms = counter_read(&o->report.since_ms);
    return atomic_load_explicit(&o->report.state, memory_order_relaxed) == OUTLET_RESTING &&
           wall_ms > since_ms && wall_ms - since_ms > STATUS_STUCK_MS;
}

static const char *state_name(const struct outlet *o, uint64_t wall_ms)
{
    static const char *const names[] = {
        [OUTLET_OK] = "ok", [OUTLET_RESTING] = "resting", [OUTLET_DISABLED] = "disabled"};
    return stuck(o, wall_ms) ? "stuck" : names[atomic_load_explicit(&o->report.state, memory_order_relaxed)];
}

static void write_why(struct text *t, struct registry_app *app)
{
    const char *why = registry_app_suspended(app);
    if (!why)
        return;
    text_format(t, ",\"why\":");
    text_json(t, why);
    if (atomic_load_explicit(&app->resumed, memory_order_relaxed))
        text_format(t, ",\"resumed\":true");
}

static void write_wait(struct text *t, struct registry_app *app)
{
    const struct outlet *o = atomic_load_explicit(&app->report.waits_for, memory_order_relaxed);
    if (!o || condition_of(app) != APP_WAITING)
        return;
    text_format(t, ",\"waits_for\":");
    text_json(t, o->output);
}

static void write_error(struct text *t, struct outlet *o)
{
    char text[sizeof o->report.text];
    int error = atomic_load_explicit(&o->report.error, memory_order_relaxed);
    if (error == 0)
        return;
    outlet_error_text(o, text, sizeof text);
    text_format(t, ",\"error\":");
    text_json(t, text[0] ? text : pure_error_text(error));
}

static void write_stuck(struct text *t, const struct registry_app *app)
{
    uint64_t stuck_ms = counter_read(&app->report.stuck_ms);
    if (stuck_ms > 0)
        text_format(t, ",\"stuck_since_ms\":%llu", (ull)stuck_ms);
}

/* What its module holds. Where modules are not guarded there are no such members. */
static void write_guard(struct text *t, const struct registry *r, unsigned app)
{
    const struct guard_app *guard = r->apps[app]->guard;
    if (!guard)
        return;
    text_format(t, ",\"memory_bytes\":%llu", (ull)counter_read(&guard->memory.bytes));
    if (guard->memory.limit != UINT64_MAX)
        text_format(t, ",\"memory_limit\":%llu", (ull)guard->memory.limit);
    text_format(t, ",\"deaths\":%u", registry_deaths(r, app));
}

static void write_durability(struct text *t, const struct registry_app *app)
{
    static const char *const names[] = {
        [DURABILITY_SYNC] = "sync", [DURABILITY_INTERVAL] = "interval", [DURABILITY_MEMORY] = "memory"};
    text_format(t, ",\"durability\":\"%s\"", names[app->durability]);
}

static void write_app(struct text *t, const struct registry *r, unsigned index)
{
    struct registry_app *app = r->apps[index];
    text_format(t, "{\"name\":");
    text_json(t, app->name);
    text_format(t, ",\"condition\":\"%s\"", condition_name(condition_of(app)));
    write_why(t, app);
    write_wait(t, app);
    write_stuck(t, app);
    text_format(t, ",\"stored\":%llu,\"failures\":%llu,\"refused\":%llu",
                (ull)counter_read(&app->report.stored), (ull)counter_read(&app->report.failures),
                (ull)counter_read(&app->report.refused));
    write_durability(t, app);
    write_guard(t, r, index);
    text_format(t, ",\"inbox_bytes\":%llu,\"inbox_capacity\":%llu}", (ull)registry_app_held(app),
                (ull)registry_app_capacity(app));
}

static void write_destination(struct text *t, struct outlet *o, uint64_t wall_ms)
{
    text_format(t, "{\"app\":");
    text_json(t, o->app);
    text_format(t, ",\"output\":");
    text_json(t, o->output);
    text_format(t, ",\"kind\":\"%s\",\"state\":\"%s\"", o->kind, state_name(o, wall_ms));
    text_format(t, ",\"since_ms\":%llu", (ull)counter_read(&o->report.since_ms));
    write_error(t, o);
}

/* What its app has sent and its receiver has not stored, wherever it lies. */
uint64_t status_waiting(struct outlet *o)
{
    uint64_t sent = counter_read(&o->report.sent), stored = counter_read(&o->report.stored);
    return max_u64(record_queue_glance(&o->queue).held_records, sent > stored ? sent - stored : 0);
}

static void write_outlet(struct text *t, struct outlet *o, uint64_t wall_ms)
{
    struct record_queue_glance held = record_queue_glance(&o->queue);
    write_destination(t, o, wall_ms);
    text_format(t, ",\"held_bytes\":%u,\"held_records\":%u,\"capacity\":%llu", held.held_bytes,
                held.held_records, (ull)o->queue.capacity);
    text_format(t, ",\"beyond_bytes\":%llu,\"waiting_records\":%llu,\"lost_records\":%llu,\"dead\":%llu",
                (ull)counter_read(&o->report.beyond), (ull)status_waiting(o),
                (ull)counter_read(&o->report.lost), (ull)counter_read(&o->report.dead_kept));
    text_format(t, ",\"stored\":%llu,\"requests\":%llu,\"failures_in_a_row\":%llu,\"failures\":%llu}",
                (ull)counter_read(&o->report.stored), (ull)counter_read(&o->report.requests),
                (ull)counter_read(&o->report.failures), (ull)counter_read(&o->report.failures_total));
}

/* --- the store --- */

static const char *journal_condition(const struct journal_writer *w)
{
    static const char *const names[] = {
        [JOURNAL_OK] = "ok", [JOURNAL_FULL] = "full", [JOURNAL_FAILED] = "failed"};
    return names[atomic_load_explicit(&w->condition, memory_order_relaxed)];
}

/* Leaves the object open. */
static void write_condition(struct text *t, const struct registry_journal *j)
{
    int error = atomic_load_explicit(&j->writer->error, memory_order_relaxed);
    text_format(t, "{\"owner\":");
    text_json(t, j->name);
    text_format(t, ",\"condition\":\"%s\"", journal_condition(j->writer));
    if (atomic_load_explicit(&j->writer->condition, memory_order_relaxed) == JOURNAL_OK)
        return;
    text_format(t, ",\"error\":");
    text_json(t, pure_error_text(error < 0 ? error : PE_JOURNAL_FAILED));
}

static void write_journal(struct text *t, const struct registry_journal *j)
{
    const struct journal_counters *n = &j->writer->counters;
    write_condition(t, j);
    text_format(t, ",\"writes\":%llu,\"bytes\":%llu,\"frames\":%llu,\"segments\":%llu,\"removed\":%llu",
                (ull)counter_read(&n->writes), (ull)counter_read(&n->bytes), (ull)counter_read(&n->frames),
                (ull)counter_read(&n->segments), (ull)counter_read(&n->removed));
    text_format(t, ",\"full\":%llu,\"wait_ns\":%llu,\"slowest_ns\":%llu}", (ull)counter_read(&n->full),
                (ull)counter_read(&n->wait_ns), (ull)counter_read(&n->slowest_ns));
}

bool status_store_degraded(const struct registry *r)
{
    bool degraded = r->store && registry_store_lost(&r->store->report);
    for (unsigned i = 0; i < r->outlet_count; i++)
        degraded |= counter_read(&r->outlets[i]->report.lost) > 0;
    return degraded;
}

/* A host whose store is memory has no such member. */
static void write_store(struct text *t, const struct registry *r)
{
    if (!r->store)
        return;
    const struct store_report *n = &r->store->report;
    text_format(t, ",\"store\":{\"degraded\":%s,\"segments\":%u,\"bytes\":%llu",
                status_store_degraded(r) ? "true" : "false", store_segments(r->store),
                (ull)counter_read(&r->store->bytes));
    text_format(t, ",\"damaged_places\":%llu,\"damaged_bytes\":%llu,\"known_places\":%llu",
                (ull)n->damaged_places, (ull)n->damaged_bytes, (ull)n->known_places);
    text_format(t, ",\"lost_commits\":%llu,\"lost_records\":%llu,\"torn_segments\":%llu,\"torn_bytes\":%llu",
                (ull)n->lost_commits, (ull)n->lost_records, (ull)n->torn_segments, (ull)n->torn_bytes);
    text_format(t, ",\"foreign_files\":%llu,\"journals\":[", (ull)n->foreign_files);
    for (unsigned i = 0; i < r->journal_count; i++) {
        text_add(t, ",", i > 0);
        write_journal(t, &r->journals[i]);
    }
    text_format(t, "]}");
}

/* --- links --- */

static void write_link(struct text *t, const struct registry_link *link)
{
    const struct link_report *r = link->report;
    text_format(t, "{\"name\":");
    text_json(t, link->name);
    text_format(t, ",\"rtt_ns\":%llu,\"packets\":%llu,\"bytes\":%llu,\"lost\":%llu,\"received\":%llu",
                (ull)counter_read(&r->rtt_ns), (ull)counter_read(&r->packets), (ull)counter_read(&r->bytes),
                (ull)counter_read(&r->lost), (ull)counter_read(&r->received));
    text_format(t, ",\"dropped\":%llu,\"handshakes\":%llu,\"ports\":%llu,\"send_errors\":%llu",
                (ull)counter_read(&r->dropped), (ull)counter_read(&r->handshakes),
                (ull)counter_read(&r->ports), (ull)counter_read(&r->send_errors));
    text_format(t, ",\"window_bytes\":%llu,\"datagram_bytes\":%llu,\"segmentation\":%s}",
                (ull)counter_read(&r->window_bytes), (ull)counter_read(&r->datagram_bytes),
                counter_read(&r->segmentation) ? "true" : "false");
}

static void write_links(struct text *t, const struct registry *r)
{
    text_format(t, ",\"links\":[");
    for (unsigned i = 0; i < r->link_count; i++) {
        text_add(t, ",", i > 0);
        write_link(t, &r->links[i]);
    }
    text_format(t, "]");
}

/* Where links come in; a host that takes none has no such member. */
static void write_listener(struct text *t, const struct registry *r)
{
    const struct link_listener_report *l = r->listener;
    if (!l)
        return;
    text_format(t, ",\"listener\":{\"address\":");
    text_json(t, r->config->link);
    text_format(t, ",\"peers\":%u,\"datagrams\":%llu,\"bytes\":%llu,\"dropped\":%llu,\"unopened\":%llu",
                r->config->peer_count, (ull)counter_read(&l->datagrams), (ull)counter_read(&l->bytes),
                (ull)counter_read(&l->dropped), (ull)counter_read(&l->unopened));
    text_format(t, ",\"sent\":%llu,\"answers\":%llu,\"send_errors\":%llu}", (ull)counter_read(&l->sent),
                (ull)counter_read(&l->answers), (ull)counter_read(&l->send_errors));
}

/* Whether clients can be shown a certificate: its files could be read once. */
static bool has_certificate(const struct front *front)
{
    struct tls_context *context = tls_current_take(front->https);
    tls_context_drop(context);
    return context != NULL;
}

static const char *certificate_state(const struct front *front)
{
    if (!has_certificate(front))
        return "unreadable";
    return atomic_load(&front->https->outdated) ? "old" : "ok";
}

/* Files that could not be read as they are now: a renewal that went wrong would else be seen when what is in
 * use instead expires. Where all is well there is no such member. */
static void write_tls_files(struct text *t, const struct registry *r)
{
    char why[TLS_REPORT_WHY_MAX];
    uint64_t unreadable = r->tls ? atomic_load(&r->tls->unreadable) : 0;
    if (unreadable == 0)
        return;
    pthread_mutex_lock(&r->tls->lock);
    memcpy(why, r->tls->why, sizeof why);
    pthread_mutex_unlock(&r->tls->lock);
    text_format(t, ",\"tls_files\":{\"unreadable\":%llu,\"why\":", (ull)unreadable);
    text_json(t, why);
    text_format(t, "}");
}

static void write_front(struct text *t, const struct front *front)
{
    const struct config *c = front->registry->config;
    text_format(t, ",\"front\":{");
    if (c->http) {
        text_format(t, "\"http\":");
        text_json(t, c->http);
    }
    if (front->https) {
        text_format(t, c->http ? ",\"https\":" : "\"https\":");
        text_json(t, c->https.text);
        text_format(t, ",\"certificate\":\"%s\",\"handshakes\":%llu,\"failed_handshakes\":%llu",
                    certificate_state(front), (ull)front->counters.handshakes,
                    (ull)front->counters.handshake_fails);
    }
    text_format(t, "}");
}

void status_write(struct front *front, struct text *t)
{
    const struct registry *r = front->registry;
    uint64_t wall_ms = front_wall_ms(front);
    text_format(t, "{\"version\":\"%s\",\"name\":", PURE_VERSION);
    text_json(t, front->registry->config->name);
    text_format(t, ",\"uptime_s\":%llu,\"connections\":%u",
                (ull)((front->loop->now_ns - front->started_ns) / NS_PER_S), front->open);
    write_front(t, front);
    write_tls_files(t, r);
    text_format(t, ",\"apps\":[");
    for (unsigned i = 0; i < r->app_count; i++) {
        text_add(t, ",", i > 0);
        write_app(t, r, i);
    }
    text_format(t, "],\"outlets\":[");
    for (unsigned i = 0; i < r->outlet_count; i++) {
        text_add(t, ",", i > 0);
        write_outlet(t, r->outlets[i], wall_ms);
    }
    text_format(t, "]");
    write_links(t, r);
    write_listener(t, r);
    write_store(t, r);
    text_format(t, "}\n");
}

struct verdict {
    bool healthy, degraded;
};

static struct verdict judge(const struct registry *r, uint64_t wall_ms)
{
    struct verdict v = {.healthy = true};
    for (unsigned i = 0; i < r->app_count; i++) {
        int condition = condition_of(r->apps[i]);
        v.healthy &= condition != APP_SUSPENDED && counter_read(&r->apps[i]->report.stuck_ms) == 0;
        v.degraded |= condition == APP_SUSPENDED || condition == APP_RETRYING;
    }
    for (unsigned i = 0; i < r->outlet_count; i++) {
        int state = atomic_load_explicit(&r->outlets[i]->report.state, memory_order_relaxed);
        v.healthy &= state != OUTLET_DISABLED && !stuck(r->outlets[i], wall_ms);
        v.degraded |= state != OUTLET_OK;
    }
    for (unsigned i = 0; i < r->journal_count; i++)
        v.healthy &=
            atomic_load_explicit(&r->journals[i].writer->condition, memory_order_relaxed) == JOURNAL_OK;
    v.degraded |= !v.healthy || status_store_degraded(r) || (r->tls && atomic_load(&r->tls->unreadable) > 0);
    return v;
}

bool health_write(struct front *front, struct text *t)
{
    const struct registry *r = front->registry;
    uint64_t wall_ms = front_wall_ms(front);
    struct verdict v = judge(r, wall_ms);
    if (front->https)
        v.degraded |= !has_certificate(front) || atomic_load(&front->https->outdated);
    text_format(t, "{\"healthy\":%s,\"degraded\":%s,\"host\":\"ok\"", v.healthy ? "true" : "false",
                v.degraded ? "true" : "false");
    if (front->https)
        text_format(t, ",\"certificate\":\"%s\"", certificate_state(front));
    write_tls_files(t, r);
    text_format(t, ",\"apps\":[");
    for (unsigned i = 0; i < r->app_count; i++) {
        text_add(t, ",", i > 0);
        text_format(t, "{\"name\":");
        text_json(t, r->apps[i]->name);
        text_format(t, ",\"condition\":\"%s\"", condition_name(condition_of(r->apps[i])));
        write_why(t, r->apps[i]);
        write_stuck(t, r->apps[i]);
        text_add(t, "}", 1);
    }
    text_format(t, "],\"destinations\":[");
    for (unsigned i = 0; i < r->outlet_count; i++) {
        text_add(t, ",", i > 0);
        write_destination(t, r->outlets[i], wall_ms);
        text_add(t, "}", 1);
    }
    if (r->store)
        text_format(t, "],\"journals\":[");
    for (unsigned i = 0; i < r->journal_count; i++) {
        text_add(t, ",", i > 0);
        write_condition(t, &r->journals[i]);
        text_add(t, "}", 1);
    }
    text_format(t, "]}\n");
    return v.healthy;
}
