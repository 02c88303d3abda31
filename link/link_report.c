#include "link/link_report.h"

#include <stdio.h>

#define SAY_NS      (60 * NS_PER_S)   /* no line of trouble so soon after the last one's end */
#define SAY_MORE_NS (3600 * NS_PER_S) /* … or, while it lasts, of another reason */

static struct link_outlet *outlet_of(struct link_output *output)
{
    return container_of(output, struct link_outlet, output);
}

/* But for those that the receiver has refused: what it said of them stands. */
static void report_all(struct link *l, enum outlet_state state, int error, const char *text)
{
    for (uint32_t i = 0; i < l->sender.outputs.count; i++) {
        struct link_outlet *o = outlet_of(l->sender.outputs.list[i]);
        if (!o->refused)
            outlet_report(&o->outlet, state, error, text, io_wall_ms(l->loop->io));
    }
}

static uint64_t held_records(struct link *l)
{
    uint64_t held = 0;
    for (uint32_t i = 0; i < l->sender.outputs.count; i++)
        held += record_queue_glance(&l->sender.outputs.list[i]->stream.outlet->queue).held_records;
    return held;
}

/* Nothing gets through. Said once, until it does again; and by a path that just loses much, if it `lasts`
 * only. */
void link_trouble(struct link *l, int error, bool lasts)
{
    for (uint32_t i = 0; i < l->sender.outputs.count; i++) {
        struct outlet_report *r = &l->sender.outputs.list[i]->stream.outlet->report;
        counter_add(&r->failures, 1);
        counter_add(&r->failures_total, 1);
    }
    uint64_t now_ns = l->loop->now_ns;
    char text[200];
    snprintf(text, sizeof text, "link to %s: %s%s", l->name, pure_error_text(error),
             error == PE_LINK_SILENT ? " (is it up, its UDP port open, each host's key right at the other?)"
                                     : "");
    if (l->trouble == 0)
        l->trouble_ns = now_ns;
    if (l->trouble != error)
        report_all(l, OUTLET_RESTING, error, text);
    l->trouble = error;
    if (!lasts || l->said == error || now_ns < l->say_ns)
        return;
    l->said = error;
    l->say_ns = now_ns + SAY_MORE_NS;
    log_line(l->log, LOG_WARNING, "%s; it is tried again for ever", text);
}

void link_heard(struct link *l)
{
    if (l->trouble == 0)
        return;
    l->trouble = 0;
    backoff_reset(&l->backoff);
    for (uint32_t i = 0; i < l->sender.outputs.count; i++) {
        struct link_outlet *o = outlet_of(l->sender.outputs.list[i]);
        if (!o->refused)
            atomic_store_explicit(&o->outlet.report.failures, 0, memory_order_relaxed);
    }
    report_all(l, OUTLET_OK, 0, "");
    if (l->said == 0)
        return;
    l->said = 0;
    l->say_ns = l->loop->now_ns + SAY_NS;
    log_line(l->log, LOG_NOTICE, "link to %s: it answers again, after %llu s; %llu records wait", l->name,
             (unsigned long long)((l->loop->now_ns - l->trouble_ns) / NS_PER_S),
             (unsigned long long)held_records(l));
}

/* Also of records that were stored before the rest of their stream was refused: then it stays at that. */
void link_stored(void *context, struct link_output *output)
{
    struct link *l = context;
    struct link_outlet *lo = outlet_of(output);
    struct outlet *o = &lo->outlet;
    atomic_store_explicit(&o->report.bytes, o->queue.freed.bytes, memory_order_relaxed);
    if (!lo->refused || (output->state != OUTPUT_OPENING && output->state != OUTPUT_OPEN))
        return;
    lo->refused = false;
    atomic_store_explicit(&o->report.failures, 0, memory_order_relaxed);
    outlet_report(o, OUTLET_OK, 0, "", io_wall_ms(l->loop->io));
    log_line(l->log, LOG_NOTICE, "output %s.%s: link to %s delivers again", o->app, o->output, l->name);
}

static void say_outgrown(struct link *l, const struct outlet *o)
{
    log_line(
        l->log, LOG_ERROR,
        "output %s.%s: link to %s: the receiver has records behind %llu that this store does not know: was "
        "it put back to an older copy? Under a new epoch the output goes on; what the store had sent since "
        "the copy was made is at the receiver, and this host does not know of it",
        o->app, o->output, l->name, (unsigned long long)o->contact.reach);
}

void link_refused(void *context, struct link_output *output, int error, bool for_ever)
{
    struct link *l = context;
    struct link_outlet *lo = outlet_of(output);
    struct outlet *o = &lo->outlet;
    enum outlet_state state = for_ever ? OUTLET_DISABLED : OUTLET_RESTING;
    char text[200];
    const char *why =
        error == PE_TOO_LARGE ? "a record is larger than its app takes" : pure_error_text(error);
    snprintf(text, sizeof text, "link to %s: refused: %s (its log says more)", l->name, why);
    bool known = lo->refused && atomic_load_explicit(&o->report.state, memory_order_relaxed) == (int)state &&
                 atomic_load_explicit(&o->report.error, memory_order_relaxed) == error;
    lo->refused = true;
    counter_add(&o->report.failures, 1);
    counter_add(&o->report.failures_total, 1);
    outlet_report(o, state, error, text, io_wall_ms(l->loop->io));
    if (error == PE_STREAM_ROLLED_BACK)
        say_outgrown(l, o);
    else if (!known)
        log_line(l->log, for_ever ? LOG_ERROR : LOG_WARNING, "output %s.%s: %s%s", o->app, o->output, text,
                 for_ever ? "; it is disabled" : "");
}

static void set(_Atomic uint64_t *gauge, uint64_t value)
{
    atomic_store_explicit(gauge, value, memory_order_relaxed);
}

void link_report(struct link *l)
{
    const struct path *p = &l->sender.path;
    set(&l->report.lost, p->lost_packets);
    set(&l->report.rtt_ns, rtt_known(&p->loss.rtt) ? p->loss.rtt.smoothed_ns : 0);
    set(&l->report.window_bytes, p->congestion.cubic.window_bytes);
    set(&l->report.datagram_bytes, p->mtu.current);
    set(&l->report.segmentation, l->socket && l->socket->segmentation);
}
