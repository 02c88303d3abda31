#include "host/metrics.h"

#include "host/sealed_door.h"

#include "host/status.h"

typedef unsigned long long ull;

static void family(struct text *t, const char *name, const char *type, const char *help)
{
    text_format(t, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* One family of one number of each of many structures. */
struct metric {
    const char *name, *type, *help;
    size_t offset; /* of an _Atomic uint64_t */
};

static uint64_t at(const void *base, size_t offset)
{
    return counter_read((const _Atomic uint64_t *)((const char *)base + offset));
}

/* --- loops --- */

static const struct metric loop_metrics[] = {
    {"pure_loop_steps_total", "counter", "Steps of the loop.", offsetof(struct loop_counters, steps)},
    {"pure_loop_rounds_total", "counter", "Rounds of tasks.", offsetof(struct loop_counters, rounds)},
    {"pure_loop_notices_total", "counter", "Tasks made runnable by another thread.",
     offsetof(struct loop_counters, notices)},
};

static const struct metric io_metrics[] = {
    {"pure_io_enters_total", "counter", "Hand-overs to the kernel.", offsetof(struct io_counters, enters)},
    {"pure_io_sqes_total", "counter", "Operations handed over.", offsetof(struct io_counters, operations)},
    {"pure_io_cqes_total", "counter", "Completions taken.", offsetof(struct io_counters, completions)},
    {"pure_io_sleeps_total", "counter", "Hand-overs that were prepared to wait.",
     offsetof(struct io_counters, sleeps)},
    {"pure_io_wakes_total", "counter", "Times another thread had to wake this one.",
     offsetof(struct io_counters, wakes)},
    {"pure_io_no_buffers_total", "counter", "Receives that found no free buffer.",
     offsetof(struct io_counters, no_buffers)},
};

static void write_loop_family(struct text *t, const struct registry *r, const struct metric *m, bool of_io)
{
    family(t, m->name, m->type, m->help);
    for (unsigned i = 0; i < r->loop_count; i++) {
        const struct loop *loop = r->loops[i].loop;
        const void *base = of_io ? (const void *)&loop->io->counters : (const void *)&loop->counters;
        text_format(t, "%s{loop=", m->name);
        text_label(t, r->loops[i].name);
        text_format(t, "} %llu\n", (ull)at(base, m->offset));
    }
}

static void write_loops(struct text *t, const struct registry *r)
{
    for (unsigned i = 0; i < ARRAY_SIZE(loop_metrics); i++)
        write_loop_family(t, r, &loop_metrics[i], false);
    for (unsigned i = 0; i < ARRAY_SIZE(io_metrics); i++)
        write_loop_family(t, r, &io_metrics[i], true);
    family(t, "pure_log_dropped_total", "counter", "Log lines dropped because the log was not read.");
    for (unsigned i = 0; i < r->loop_count; i++) {
        if (!r->loops[i].log)
            continue;
        text_format(t, "pure_log_dropped_total{loop=");
        text_label(t, r->loops[i].name);
        text_format(t, "} %llu\n", (ull)counter_read(&r->loops[i].log->dropped));
    }
}

/* --- apps --- */

static const struct metric app_metrics[] = {
    {"pure_app_stored_total", "counter", "Events stored.", offsetof(struct app_report, stored)},
    {"pure_app_turns_total", "counter", "Turns.", offsetof(struct app_report, turns)},
    {"pure_app_sends_total", "counter", "Records sent to outlets.", offsetof(struct app_report, sends)},
    {"pure_app_pushes_total", "counter", "Pushes, one a touched outlet and turn.",
     offsetof(struct app_report, pushes)},
    {"pure_app_waits_total", "counter", "Times it had to wait for a full outlet.",
     offsetof(struct app_report, waits)},
    {"pure_app_failures_total", "counter", "Tries of events that failed.",
     offsetof(struct app_report, failures)},
    {"pure_app_refused_total", "counter", "Events given up on.", offsetof(struct app_report, refused)},
    {"pure_app_duplicates_total", "counter", "Records of streams that were stored already.",
     offsetof(struct app_report, duplicates)},
    {"pure_app_epochs_total", "counter", "Times a known stream began a new epoch.",
     offsetof(struct app_report, epochs)},
    {"pure_app_turned_away_total", "counter", "Requests answered 503 for the app's sake.",
     offsetof(struct app_report, turned_away)},
};

static void app_sample(struct text *t, const char *name, const struct registry_app *app, uint64_t value)
{
    text_format(t, "%s{app=", name);
    text_label(t, app->name);
    text_format(t, "} %llu\n", (ull)value);
}

static bool is_suspended(const struct registry_app *app)
{
    return app->failure[0] != '\0' ||
           atomic_load_explicit(&app->report.condition, memory_order_relaxed) == APP_SUSPENDED;
}

static const struct metric memory_metrics[] = {
    {"pure_app_memory_bytes", "gauge", "Bytes of the heap that the app's module holds.",
     offsetof(struct heap_account, bytes)},
    {"pure_app_memory_refused_total", "counter", "Allocations refused, as they were over the app's memory.",
     offsetof(struct heap_account, refused)},
};

static void write_guard(struct text *t, const struct registry *r)
{
    for (unsigned m = 0; m < ARRAY_SIZE(memory_metrics); m++) {
        family(t, memory_metrics[m].name, memory_metrics[m].type, memory_metrics[m].help);
        for (unsigned i = 0; i < r->app_count; i++)
            app_sample(t, memory_metrics[m].name, r->apps[i],
                       at(&r->apps[i]->guard->memory, memory_metrics[m].offset));
    }
    family(t, "pure_app_memory_limit_bytes", "gauge", "Most bytes of the heap that the module may hold.");
    for (unsigned i = 0; i < r->app_count; i++) {
        if (r->apps[i]->guard->memory.limit != UINT64_MAX)
            app_sample(t, "pure_app_memory_limit_bytes", r->apps[i], r->apps[i]->guard->memory.limit);
    }
    family(t, "pure_app_deaths", "gauge", "Times in a row that the app has ended the process.");
    for (unsigned i = 0; i < r->app_count; i++)
        app_sample(t, "pure_app_deaths", r->apps[i], registry_deaths(r, i));
}

static void write_apps(struct text *t, const struct registry *r)
{
    for (unsigned m = 0; m < ARRAY_SIZE(app_metrics); m++) {
        family(t, app_metrics[m].name, app_metrics[m].type, app_metrics[m].help);
        for (unsigned i = 0; i < r->app_count; i++)
            app_sample(t, app_metrics[m].name, r->apps[i], at(&r->apps[i]->report, app_metrics[m].offset));
    }
    family(t, "pure_app_inbox_bytes", "gauge", "Bytes of runs in the app's inboxes.");
    for (unsigned i = 0; i < r->app_count; i++)
        app_sample(t, "pure_app_inbox_bytes", r->apps[i], registry_app_held(r->apps[i]));
    family(t, "pure_app_inbox_capacity_bytes", "gauge", "Most bytes that the app's inboxes take.");
    for (unsigned i = 0; i < r->app_count; i++)
        app_sample(t, "pure_app_inbox_capacity_bytes", r->apps[i], registry_app_capacity(r->apps[i]));
    family(t, "pure_app_suspended", "gauge", "1 if the app takes no events until the host is restarted.");
    for (unsigned i = 0; i < r->app_count; i++)
        app_sample(t, "pure_app_suspended", r->apps[i], is_suspended(r->apps[i]));
    family(t, "pure_app_stuck", "gauge", "1 if the app is in a call that does not return.");
    for (unsigned i = 0; i < r->app_count; i++)
        app_sample(t, "pure_app_stuck", r->apps[i], counter_read(&r->apps[i]->report.stuck_ms) > 0);
    if (r->guard)
        write_guard(t, r);
}

/* --- outlets --- */

static const struct metric outlet_metrics[] = {
    {"pure_outlet_requests_total", "counter", "Requests made.", offsetof(struct outlet_report, requests)},
    {"pure_outlet_stored_records_total", "counter",
     "Records that are done with: their receiver has stored them, or they are dead letters.",
     offsetof(struct outlet_report, stored)},
    {"pure_outlet_failures_total", "counter", "Tries that failed: lookups, connections, requests.",
     offsetof(struct outlet_report, failures_total)},
    {"pure_outlet_failures_in_a_row", "gauge", "Tries failed since the last that did not.",
     offsetof(struct outlet_report, failures)},
    {"pure_outlet_sent_bytes_total", "counter", "Bytes of bodies delivered.",
     offsetof(struct outlet_report, bytes)},
    {"pure_outlet_beyond_bytes", "gauge", "Bytes that wait on disk, beyond the queue.",
     offsetof(struct outlet_report, beyond)},
    {"pure_outlet_beyond_limit_bytes", "gauge", "Most bytes that may wait on disk, beyond the queue.",
     offsetof(struct outlet_report, beyond_limit)},
    {"pure_outlet_lost_records_total", "counter", "Records that the disk has lost.",
     offsetof(struct outlet_report, lost)},
    {"pure_outlet_dead_total", "counter", "Records set aside, as they were always refused.",
     offsetof(struct outlet_report, dead)},
    {"pure_outlet_dead_letters", "gauge", "Of those, and of earlier ones: neither replayed nor dropped.",
     offsetof(struct outlet_report, dead_kept)},
};

static void outlet_sample(struct text *t, const char *name, const struct outlet *o, uint64_t value)
{
    text_format(t, "%s{app=", name);
    text_label(t, o->app);
    text_format(t, ",output=");
    text_label(t, o->output);
    text_format(t, ",kind=\"%s\"} %llu\n", o->kind, (ull)value);
}

/* The state as Prometheus has it: one sample a state, 1 for the one that is. */
static void write_states(struct text *t, const struct registry *r)
{
    static const char *const names[] = {
        [OUTLET_OK] = "ok", [OUTLET_RESTING] = "resting", [OUTLET_DISABLED] = "disabled"};
    family(t, "pure_outlet_state", "gauge", "1 for the state that the outlet is in.");
    for (unsigned i = 0; i < r->outlet_count; i++) {
        const struct outlet *o = r->outlets[i];
        for (int state = OUTLET_OK; state <= OUTLET_DISABLED; state++) {
            text_format(t, "pure_outlet_state{app=");
            text_label(t, o->app);
            text_format(t, ",output=");
            text_label(t, o->output);
            text_format(t, ",kind=\"%s\",state=\"%s\"} %d\n", o->kind, names[state],
                        atomic_load_explicit(&o->report.state, memory_order_relaxed) == state);
        }
    }
}

static void write_outlets(struct text *t, const struct registry *r)
{
    for (unsigned m = 0; m < ARRAY_SIZE(outlet_metrics); m++) {
        family(t, outlet_metrics[m].name, outlet_metrics[m].type, outlet_metrics[m].help);
        for (unsigned i = 0; i < r->outlet_count; i++)
            outlet_sample(t, outlet_metrics[m].name, r->outlets[i],
                          at(&r->outlets[i]->report, outlet_metrics[m].offset));
    }
    family(t, "pure_outlet_held_bytes", "gauge", "Framed bytes pushed and not yet stored.");
    for (unsigned i = 0; i < r->outlet_count; i++)
        outlet_sample(t, "pure_outlet_held_bytes", r->outlets[i],
                      record_queue_glance(&r->outlets[i]->queue).held_bytes);
    family(t, "pure_outlet_capacity_bytes", "gauge", "Most framed bytes that the queue holds.");
    for (unsigned i = 0; i < r->outlet_count; i++)
        outlet_sample(t, "pure_outlet_capacity_bytes", r->outlets[i], r->outlets[i]->queue.capacity);
    family(t, "pure_outlet_held_records", "gauge", "Records pushed and not yet stored.");
    for (unsigned i = 0; i < r->outlet_count; i++)
        outlet_sample(t, "pure_outlet_held_records", r->outlets[i],
                      record_queue_glance(&r->outlets[i]->queue).held_records);
    family(t, "pure_outlet_waiting_records", "gauge", "Records sent and not yet stored, also on disk.");
    for (unsigned i = 0; i < r->outlet_count; i++)
        outlet_sample(t, "pure_outlet_waiting_records", r->outlets[i], status_waiting(r->outlets[i]));
    write_states(t, r);
}

/* --- the store --- */

static const struct metric journal_metrics[] = {
    {"pure_journal_writes_total", "counter", "Durable writes.", offsetof(struct journal_counters, writes)},
    {"pure_journal_written_bytes_total", "counter", "Bytes of those.",
     offsetof(struct journal_counters, bytes)},
    {"pure_journal_frames_total", "counter", "Frames written.", offsetof(struct journal_counters, frames)},
    {"pure_journal_segments_total", "counter", "Segments begun.",
     offsetof(struct journal_counters, segments)},
    {"pure_journal_removed_segments_total", "counter", "Segments removed.",
     offsetof(struct journal_counters, removed)},
    {"pure_journal_full_total", "counter", "Times there was no space.",
     offsetof(struct journal_counters, full)},
};

static void journal_label(struct text *t, const char *name, const struct registry_journal *j)
{
    text_format(t, "%s{owner=", name);
    text_label(t, j->name);
}

static void write_journal_seconds(struct text *t, const struct registry *r, const struct metric *m)
{
    family(t, m->name, m->type, m->help);
    for (unsigned i = 0; i < r->journal_count; i++) {
        uint64_t ns = at(&r->journals[i].writer->counters, m->offset);
        journal_label(t, m->name, &r->journals[i]);
        text_format(t, "} %llu.%09llu\n", (ull)(ns / NS_PER_S), (ull)(ns % NS_PER_S));
    }
}

static void write_journal_conditions(struct text *t, const struct registry *r)
{
    static const char *const names[] = {
        [JOURNAL_OK] = "ok", [JOURNAL_FULL] = "full", [JOURNAL_FAILED] = "failed"};
    family(t, "pure_journal_condition", "gauge", "1 for the condition that the journal is in.");
    for (unsigned i = 0; i < r->journal_count; i++) {
        int is = atomic_load_explicit(&r->journals[i].writer->condition, memory_order_relaxed);
        for (int condition = JOURNAL_OK; condition <= JOURNAL_FAILED; condition++) {
            journal_label(t, "pure_journal_condition", &r->journals[i]);
            text_format(t, ",condition=\"%s\"} %d\n", names[condition], is == condition);
        }
    }
}

static void write_journals(struct text *t, const struct registry *r)
{
    static const struct metric seconds[] = {
        {"pure_journal_wait_seconds_total", "counter", "Time in durable writes.",
         offsetof(struct journal_counters, wait_ns)},
        {"pure_journal_slowest_write_seconds", "gauge", "The slowest durable write since the start.",
         offsetof(struct journal_counters, slowest_ns)},
    };
    for (unsigned m = 0; m < ARRAY_SIZE(journal_metrics); m++) {
        family(t, journal_metrics[m].name, journal_metrics[m].type, journal_metrics[m].help);
        for (unsigned i = 0; i < r->journal_count; i++) {
            journal_label(t, journal_metrics[m].name, &r->journals[i]);
            text_format(t, "} %llu\n", (ull)at(&r->journals[i].writer->counters, journal_metrics[m].offset));
        }
    }
    for (unsigned m = 0; m < ARRAY_SIZE(seconds); m++)
        write_journal_seconds(t, r, &seconds[m]);
    write_journal_conditions(t, r);
}

static void store_sample(struct text *t, const char *name, const char *help, uint64_t value)
{
    family(t, name, "gauge", help);
    text_format(t, "%s %llu\n", name, (ull)value);
}

static void write_store(struct text *t, const struct registry *r)
{
    if (!r->store)
        return;
    const struct store_report *n = &r->store->report;
    store_sample(t, "pure_store_segments", "Segments.", store_segments(r->store));
    store_sample(t, "pure_store_bytes", "Bytes set aside for segments.", counter_read(&r->store->bytes));
    store_sample(t, "pure_store_degraded",
                 "1 if this start found damage that cost something, or records were lost since.",
                 status_store_degraded(r));
    store_sample(t, "pure_store_damaged_places", "Places of damage that this start found.",
                 n->damaged_places);
    store_sample(t, "pure_store_damaged_bytes", "Bytes of those.", n->damaged_bytes);
    store_sample(t, "pure_store_lost_commits", "Turns of apps that this start found missing.",
                 n->lost_commits);
    store_sample(t, "pure_store_lost_records", "Records of outputs that this start found missing.",
                 n->lost_records);
    store_sample(t, "pure_store_torn_bytes", "Bytes of unfinished writes that this start cut off.",
                 n->torn_bytes);
    write_journals(t, r);
}

/* --- links --- */

static const struct metric link_metrics[] = {
    {"pure_link_packets_total", "counter", "Packets sent.", offsetof(struct link_report, packets)},
    {"pure_link_bytes_total", "counter", "Bytes sent, of UDP payload.", offsetof(struct link_report, bytes)},
    {"pure_link_sends_total", "counter", "Operations that carried the packets sent.",
     offsetof(struct link_report, sends)},
    {"pure_link_received_total", "counter", "Packets received.", offsetof(struct link_report, received)},
    {"pure_link_lost_total", "counter", "Packets taken as lost.", offsetof(struct link_report, lost)},
    {"pure_link_dropped_total", "counter", "Datagrams that came and did not open.",
     offsetof(struct link_report, dropped)},
    {"pure_link_handshakes_total", "counter", "Sessions begun.", offsetof(struct link_report, handshakes)},
    {"pure_link_ports_total", "counter", "Sockets opened.", offsetof(struct link_report, ports)},
    {"pure_link_lookups_total", "counter", "Lookups of its name.", offsetof(struct link_report, lookups)},
    {"pure_link_send_errors_total", "counter", "Sends that failed.",
     offsetof(struct link_report, send_errors)},
    {"pure_link_window_bytes", "gauge", "Congestion window.", offsetof(struct link_report, window_bytes)},
    {"pure_link_datagram_bytes", "gauge", "Largest datagram of the path, of UDP payload.",
     offsetof(struct link_report, datagram_bytes)},
    {"pure_link_segmentation", "gauge", "1 if batches of packets leave in one send.",
     offsetof(struct link_report, segmentation)},
};

static void link_label(struct text *t, const char *name, const struct registry_link *link)
{
    text_format(t, "%s{link=", name);
    text_label(t, link->name);
}

static void write_links(struct text *t, const struct registry *r)
{
    for (unsigned m = 0; m < ARRAY_SIZE(link_metrics); m++) {
        family(t, link_metrics[m].name, link_metrics[m].type, link_metrics[m].help);
        for (unsigned i = 0; i < r->link_count; i++) {
            link_label(t, link_metrics[m].name, &r->links[i]);
            text_format(t, "} %llu\n", (ull)at(r->links[i].report, link_metrics[m].offset));
        }
    }
    family(t, "pure_link_rtt_seconds", "gauge", "Smoothed round-trip time.");
    for (unsigned i = 0; i < r->link_count; i++) {
        uint64_t rtt_ns = counter_read(&r->links[i].report->rtt_ns);
        link_label(t, "pure_link_rtt_seconds", &r->links[i]);
        text_format(t, "} %llu.%09llu\n", (ull)(rtt_ns / NS_PER_S), (ull)(rtt_ns % NS_PER_S));
    }
}

static const struct metric listener_metrics[] = {
    {"pure_listen_datagrams_total", "counter", "Datagrams received from peers and others.",
     offsetof(struct link_listener_report, datagrams)},
    {"pure_listen_bytes_total", "counter", "Bytes of those, of UDP payload.",
     offsetof(struct link_listener_report, bytes)},
    {"pure_listen_dropped_total", "counter",
     "Datagrams that were not authentic, replayed or of nobody known.",
     offsetof(struct link_listener_report, dropped)},
    {"pure_listen_unopened_total", "counter", "Datagrams dropped because their peer had sent its share.",
     offsetof(struct link_listener_report, unopened)},
    {"pure_listen_sent_total", "counter", "Datagrams sent.", offsetof(struct link_listener_report, sent)},
    {"pure_listen_answers_total", "counter", "Datagrams sent that answer handshakes.",
     offsetof(struct link_listener_report, answers)},
    {"pure_listen_send_errors_total", "counter", "Sends that failed.",
     offsetof(struct link_listener_report, send_errors)},
};

static void write_listener(struct text *t, const struct link_listener_report *report)
{
    for (unsigned m = 0; report && m < ARRAY_SIZE(listener_metrics); m++) {
        family(t, listener_metrics[m].name, listener_metrics[m].type, listener_metrics[m].help);
        text_format(t, "%s %llu\n", listener_metrics[m].name, (ull)at(report, listener_metrics[m].offset));
    }
}

/* --- the front --- */

static void front_sample(struct text *t, const char *name, const char *type, const char *help, uint64_t value)
{
    family(t, name, type, help);
    text_format(t, "%s %llu\n", name, (ull)value);
}

static void write_handshakes(struct text *t, const struct front *front)
{
    front_sample(t, "pure_front_handshaking", "gauge", "Connections in the TLS handshake.", front->greeting);
    front_sample(t, "pure_front_handshakes_total", "counter", "TLS handshakes that were completed.",
                 front->counters.handshakes);
    front_sample(t, "pure_front_handshakes_failed_total", "counter",
                 "TLS handshakes that failed, or took too long.", front->counters.handshake_fails);
}

static void write_front(struct text *t, const struct front *front)
{
    const struct front_counters *n = &front->counters;
    front_sample(t, "pure_front_connections", "gauge", "Connections that are open.", front->open);
    front_sample(t, "pure_front_accepted_total", "counter", "Connections accepted.", n->accepted);
    front_sample(t, "pure_front_refused_total", "counter", "Connections over the limit, told 503 or closed.",
                 n->refused);
    front_sample(t, "pure_front_accept_failures_total", "counter",
                 "Accepts that failed, mostly for want of descriptors.", n->accept_fails);
    if (front->https)
        write_handshakes(t, front);
    front_sample(t, "pure_front_requests_total", "counter", "Requests.", n->requests);
    front_sample(t, "pure_front_requests_whole_total", "counter",
                 "Requests that came in whole and well-formed.", n->whole_requests);
    front_sample(t, "pure_front_held_total", "counter", "Requests that waited for room behind a refusal.",
                 n->held);
    front_sample(t, "pure_front_timeouts_total", "counter", "Clients that were too slow.", n->timeouts);
    front_sample(t, "pure_front_body_bytes_total", "counter", "Bytes of bodies that came in.", n->body_bytes);
    front_sample(t, "pure_front_kept_bytes", "gauge",
                 "Memory of heads and bodies that are not whole, and of texts in reply.", front->kept_bytes);
    family(t, "pure_front_replies_total", "counter", "Replies by class of status.");
    for (unsigned class = 2; class < ARRAY_SIZE(n->replies); class ++)
        text_format(t, "pure_front_replies_total{class=\"%uxx\"} %llu\n", class, (ull)n->replies[class]);
}

/* --- files of TLS --- */

static void write_tls(struct text *t, const struct tls_report *tls)
{
    if (!tls)
        return;
    int64_t expires_s = atomic_load(&tls->expires_s);
    front_sample(t, "pure_tls_files_unreadable", "gauge",
                 "CA files, and pairs of certificate and key, that cannot be read as they are now.",
                 atomic_load(&tls->unreadable));
    if (expires_s < INT64_MAX)
        front_sample(t, "pure_tls_certificate_expires_seconds", "gauge",
                     "When the first of the host's own certificates in use expires, in seconds since 1970.",
                     (uint64_t)(expires_s > 0 ? expires_s : 0));
}

/* --- sealed records that come in --- */

static void write_door(struct text *t, const struct sealed_door *door)
{
    if (!door)
        return;
    front_sample(t, "pure_sealed_strangers_total", "counter", "Sealed requests of hosts that are not let in.",
                 door->strangers);
    front_sample(t, "pure_sealed_disallowed_total", "counter",
                 "Sealed requests of peers to apps that they may not send to.", door->disallowed);
}

void metrics_write(struct front *front, struct text *t)
{
    write_front(t, front);
    write_tls(t, front->registry->tls);
    write_door(t, front->door);
    write_loops(t, front->registry);
    write_apps(t, front->registry);
    write_outlets(t, front->registry);
    write_links(t, front->registry);
    write_listener(t, front->registry->listener);
    write_store(t, front->registry);
}
