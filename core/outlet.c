#include "core/outlet.h"

#include <stdio.h>

int outlet_init(struct outlet *o, const char *kind, const char *app, const char *output, uint64_t capacity,
                uint32_t max_record)
{
    memset(o, 0, sizeof *o);
    o->kind = kind;
    o->max_record = max_record;
    snprintf(o->app, sizeof o->app, "%s", app);
    snprintf(o->output, sizeof o->output, "%s", output);
    pthread_mutex_init(&o->report.lock, NULL);
    return record_queue_init(&o->queue, capacity);
}

void outlet_dispose(struct outlet *o)
{
    record_queue_dispose(&o->queue);
    pthread_mutex_destroy(&o->report.lock);
}

void outlet_start(struct outlet *o, uint64_t stored, uint64_t sent_before)
{
    record_queue_start(&o->queue, stored);
    atomic_store_explicit(&o->report.stored, stored, memory_order_relaxed);
    o->sent_before = sent_before;
}

bool outlet_wait(struct outlet *o, uint64_t most_bytes)
{
    record_queue_see_freed(&o->queue);
    if (record_queue_held(&o->queue) > most_bytes) {
        /* Say that we wait, then look again: the consumer frees, then looks whether we wait. One of the two
         * sees. */
        atomic_store(&o->producer_waits, most_bytes + 1);
        atomic_thread_fence(memory_order_seq_cst);
        record_queue_see_freed(&o->queue);
        if (record_queue_held(&o->queue) > most_bytes)
            return true;
    }
    atomic_store_explicit(&o->producer_waits, 0, memory_order_relaxed);
    return false;
}

struct stream_position outlet_look(struct outlet *o)
{
    uint64_t freed = o->queue.freed.records;
    struct stream_position published = record_queue_see_published(&o->queue);
    if (o->queue.freed.records != freed) {
        atomic_store_explicit(&o->report.stored, o->queue.freed.records, memory_order_relaxed);
        board_post(o->producer, o->producer_slot);
    }
    return published;
}

void outlet_stored(struct outlet *o, struct stream_position to)
{
    record_queue_free_to(&o->queue, to);
    atomic_store_explicit(&o->report.stored, to.records, memory_order_relaxed);
    atomic_thread_fence(memory_order_seq_cst);
    uint64_t waits = atomic_load_explicit(&o->producer_waits, memory_order_relaxed);
    if (waits && record_queue_glance(&o->queue).held_bytes < waits)
        board_post(o->producer, o->producer_slot);
}

static void set_contact(struct outlet *o, enum outlet_contact_state state)
{
    atomic_store_explicit(&o->contact.state, state, memory_order_release);
}

void outlet_contact_answered(struct outlet *o, bool agreed)
{
    assert(outlet_contact(o) == OUTLET_ASKING);
    set_contact(o, agreed ? OUTLET_AGREED : OUTLET_OUTGROWN);
    board_post(o->producer, o->producer_slot);
}

void outlet_contact_noted(struct outlet *o, const uint8_t *epoch)
{
    if (epoch)
        memcpy(o->contact.epoch, epoch, OUTLET_EPOCH_BYTES);
    set_contact(o, epoch ? OUTLET_RENEWED : OUTLET_CLEAR);
    board_post(o->consumer, o->consumer_slot);
}

bool outlet_contact_renewed(struct outlet *o, uint8_t epoch[OUTLET_EPOCH_BYTES])
{
    if (outlet_contact(o) != OUTLET_RENEWED)
        return false;
    memcpy(epoch, o->contact.epoch, OUTLET_EPOCH_BYTES);
    o->contact.common = o->contact.reach;
    set_contact(o, OUTLET_CLEAR);
    return true;
}

/* --- how it fares --- */

static void tell(struct outlet *o)
{
    struct outlet_health *h = &o->health;
    if (!h->waits || atomic_load_explicit(&h->full, memory_order_acquire))
        return;
    h->waits = false;
    h->told = h->last;
    atomic_store_explicit(&h->full, true, memory_order_release);
    board_post(o->producer, o->producer_slot);
}

void outlet_tell_fare(struct outlet *o, const struct outlet_fare *fare, uint64_t now_ns)
{
    struct outlet_health *h = &o->health;
    struct outlet_fare *last = &h->last;
    bool recovered = last->failures > 0 && fare->failures == 0;
    bool urgent = h->waits || recovered || last->disabled != fare->disabled || h->told.wants != last->wants;
    bool news = urgent || fare->failures != last->failures;
    if (!h->kept || !news || (!urgent && h->told_ns > 0 && now_ns < h->told_ns + OUTLET_FARE_NS))
        return;
    uint32_t wants = last->wants;
    *last = *fare;
    last->wants = wants;
    h->told_ns = now_ns;
    h->waits = true;
    tell(o);
}

void outlet_go_on_telling(struct outlet *o)
{
    tell(o);
}

bool outlet_take_fare(struct outlet *o, struct outlet_fare *fare)
{
    struct outlet_health *h = &o->health;
    if (!atomic_load_explicit(&h->full, memory_order_acquire))
        return false;
    *fare = h->told;
    atomic_store_explicit(&h->full, false, memory_order_release);
    board_post(o->consumer, o->consumer_slot);
    return true;
}

enum outlet_want outlet_take_want(struct outlet *o)
{
    if (atomic_load_explicit(&o->health.want, memory_order_relaxed) == OUTLET_WANT_NOTHING)
        return OUTLET_WANT_NOTHING;
    o->health.last.wants++;
    return (enum outlet_want)atomic_exchange(&o->health.want, OUTLET_WANT_NOTHING);
}

void outlet_want(struct outlet *o, enum outlet_want want)
{
    atomic_store(&o->health.want, want);
    board_post(o->consumer, o->consumer_slot);
}

/* --- its report --- */

void outlet_report(struct outlet *o, enum outlet_state state, int error, const char *text, uint64_t wall_ms)
{
    struct outlet_report *r = &o->report;
    if (atomic_exchange_explicit(&r->state, state, memory_order_relaxed) != (int)state)
        atomic_store_explicit(&r->since_ms, wall_ms, memory_order_relaxed);
    atomic_store_explicit(&r->error, error, memory_order_relaxed);
    if (text && pthread_mutex_trylock(&r->lock) == 0) {
        snprintf(r->text, sizeof r->text, "%s", text);
        pthread_mutex_unlock(&r->lock);
    }
}

void outlet_error_text(struct outlet *o, char *text, size_t size)
{
    pthread_mutex_lock(&o->report.lock);
    snprintf(text, size, "%s", o->report.text);
    pthread_mutex_unlock(&o->report.lock);
}
