#include "wire/delivery.h"

#include "wire/retry_after.h"
#include "wire/wire.h"

#include <stdio.h>

#define RESUMED_MAX_MS \
    (UINT64_C(100) * 366 * 86400 * 1000) /* what is longer is nonsense: a clock was wrong */
/* The start of 2025: a clock that said less had not been set yet, and how long ago that was is not known. */
#define CLOCK_SET_MS   (UINT64_C(1735689600) * 1000)
#define SECONDS_OF(ns) ((double)(ns) / (double)NS_PER_S)

void delivery_init(struct delivery *d, const struct wire_options *o)
{
    *d = (struct delivery){.policy = {.stored = o->stored,
                                      .refused = o->refused,
                                      .disables = o->disables,
                                      .attempts = o->attempts,
                                      .disable_failures = o->disable_failures,
                                      .disable_ns = o->disable_ns},
                           .refused = d->refused};
    backoff_init(&d->backoff, o->backoff_min_ns, o->backoff_max_ns, o->seed);
}

/* --- saying so --- */

#define TEXT_SIZE sizeof((struct outlet_report *)0)->text

static void describe(const struct wire *w, int error, const struct answer *a, const char *of, char *text)
{
    if (!a)
        snprintf(text, TEXT_SIZE, *of ? "POST %s: %s (%s)" : "POST %s: %s", w->endpoint,
                 pure_error_text(error), of);
    else if (error == PE_HTTP_REDIRECT)
        snprintf(text, TEXT_SIZE, "POST %.64s: %u redirects to \"%.90s\", not followed", w->endpoint,
                 a->status, a->location);
    else if (error == PE_HTTP_GONE)
        snprintf(text, TEXT_SIZE, "POST %.140s: 410 Gone: the output is disabled", w->endpoint);
    else if (error == PE_PROXY)
        snprintf(text, TEXT_SIZE, "POST %.140s: %u, the proxy wants other credentials", w->endpoint,
                 a->status);
    else if (error == PE_HTTP_STATUS)
        snprintf(text, TEXT_SIZE, "POST %.130s: %u %s", w->endpoint, a->status, a->reason);
    else
        snprintf(text, TEXT_SIZE, "POST %s: %u, %s", w->endpoint, a->status, pure_error_text(error));
}

static bool power_of_two(uint64_t n)
{
    return (n & (n - 1)) == 0;
}

/* To the owner, who keeps it. */
static void tell(struct wire *w, int error, const char *text)
{
    const struct delivery *d = &w->delivery;
    struct outlet_fare fare = {
        .disabled = d->disabled,
        .by_command = error == PE_OUTPUT_OFF,
        .failures = d->failures,
        .since_ms = d->failures > 0 ? atomic_load_explicit(&w->outlet.report.failing_ms, memory_order_relaxed)
                    : d->disabled   ? io_wall_ms(w->loop->io)
                                    : 0,
        .status = d->failures > 0 ? d->status : 0};
    snprintf(fare.reason, sizeof fare.reason, "%.*s", (int)sizeof fare.reason - 1, text);
    outlet_tell_fare(&w->outlet, &fare, w->loop->now_ns);
}

static void report(struct wire *w, enum outlet_state state, int error, const char *text)
{
    atomic_store_explicit(&w->outlet.report.failures, w->delivery.failures, memory_order_relaxed);
    outlet_report(&w->outlet, state, error, text, io_wall_ms(w->loop->io));
    tell(w, error, text);
}

void delivery_recover(struct wire *w)
{
    struct delivery *d = &w->delivery;
    d->failures = d->before_ns = d->rest_until_ns = 0;
    d->down = false;
    atomic_store_explicit(&w->outlet.report.failing_ms, 0, memory_order_relaxed);
    backoff_reset(&d->backoff);
    report(w, OUTLET_OK, 0, "");
}

/* One line if the destination was down. */
void delivery_succeeded(struct wire *w, uint64_t now_ns)
{
    struct delivery *d = &w->delivery;
    if (d->failures == 0 || d->disabled)
        return;
    struct record_queue_glance held = record_queue_glance(&w->outlet.queue);
    if (d->down)
        log_line(w->log, LOG_NOTICE,
                 "%s.%s: delivers again, after %.1f s and %llu failures; %u records (%u bytes) wait",
                 w->outlet.app, w->outlet.output, SECONDS_OF(now_ns - d->since_ns + d->before_ns),
                 (unsigned long long)d->failures, held.held_records, held.held_bytes);
    delivery_recover(w);
}

/* --- disabling --- */

static void append(char *text, const char *more)
{
    size_t size = strlen(text);
    snprintf(text + size, TEXT_SIZE - size, "%s", more);
}

/* Whether the output makes no more tries, after this one; then `text` says why. */
static bool is_over(const struct wire *w, uint64_t now_ns, int error, const struct answer *a, char *text)
{
    const struct delivery *d = &w->delivery;
    char why[96] = ": the output is disabled";
    uint64_t failing_ns = now_ns - d->since_ns + d->before_ns;
    if (error == PE_HTTP_GONE || error == PE_STREAM_RETIRED)
        return true; /* the error's text says it */
    if (a && wire_statuses_have(&d->policy.disables, a->status)) {
    } else if (d->policy.disable_failures > 0 && d->failures >= d->policy.disable_failures) {
        snprintf(why, sizeof why, "; %llu failures in a row: the output is disabled",
                 (unsigned long long)d->failures);
    } else if (d->policy.disable_ns > 0 && failing_ns >= d->policy.disable_ns) {
        snprintf(why, sizeof why, "; no success for %.0f s: the output is disabled", SECONDS_OF(failing_ns));
    } else {
        return false;
    }
    text[min_size(strlen(text), TEXT_SIZE - 1 - strlen(why))] = '\0';
    append(text, why);
    return true;
}

static void disable(struct wire *w, int error, const char *text)
{
    w->delivery.disabled = true;
    log_line(w->log, LOG_ERROR, "%s.%s: %s", w->outlet.app, w->outlet.output, text);
    report(w, OUTLET_DISABLED, error, text);
}

/* --- what others want of it --- */

static void disable_by_command(struct wire *w)
{
    if (!w->delivery.disabled)
        w->ways->rewind(w);
    disable(w, PE_OUTPUT_OFF, pure_error_text(PE_OUTPUT_OFF));
}

void delivery_see_want(struct wire *w)
{
    enum outlet_want want = outlet_take_want(&w->outlet);
    if (want == OUTLET_WANT_DISABLED) {
        disable_by_command(w);
    } else if (want == OUTLET_WANT_ENABLED) {
        if (w->delivery.disabled)
            log_line(w->log, LOG_NOTICE, "%s.%s: enabled by command", w->outlet.app, w->outlet.output);
        w->delivery.disabled = false;
        delivery_recover(w);
    }
    outlet_go_on_telling(&w->outlet);
}

void delivery_resume(struct wire *w, uint64_t failures, uint64_t failing_since_ms, bool disabled)
{
    struct delivery *d = &w->delivery;
    uint64_t wall_ms = io_wall_ms(w->loop->io);
    bool known = failures > 0 && failing_since_ms >= CLOCK_SET_MS && failing_since_ms <= wall_ms;
    d->failures = failures;
    d->since_ns = w->loop->now_ns;
    d->before_ns = known ? min_u64(wall_ms - failing_since_ms, RESUMED_MAX_MS) * NS_PER_MS : 0;
    d->down = failures > 0;
    d->disabled = disabled;
    atomic_store_explicit(&w->outlet.report.failing_ms, failures ? known ? failing_since_ms : wall_ms : 0,
                          memory_order_relaxed);
    if (disabled || failures > 0)
        report(w, disabled ? OUTLET_DISABLED : OUTLET_RESTING, 0,
               disabled ? "disabled in an earlier life of this host"
                        : "failed in an earlier life of this host");
}

/* --- failures --- */

/* max(our own, what the peer asks for), the latter capped. */
static uint64_t asked_rest_ns(struct wire *w, uint64_t own_ns, const struct answer *a)
{
    if (a && a->retry_after[0]) {
        uint64_t asked_ns =
            retry_after_ns(span_text(a->retry_after), span_text(a->date), io_wall_ms(w->loop->io));
        own_ns = max_u64(own_ns, min_u64(asked_ns, own_ns + DELIVERY_RETRY_AFTER_MAX_NS));
    }
    return wire_hurried(w) ? min_u64(own_ns, DELIVERY_HURRIED_REST_NS) : own_ns;
}

uint64_t delivery_refusal_rest_ns(struct wire *w, uint32_t n, const struct answer *a)
{
    return asked_rest_ns(w, backoff_nth(&w->delivery.backoff, n), a);
}

static void rest(struct wire *w, uint64_t now_ns, int error, const struct answer *a, const char *text)
{
    struct delivery *d = &w->delivery;
    uint64_t delay_ns = asked_rest_ns(w, backoff_next(&d->backoff), a);
    d->rest_until_ns = now_ns + delay_ns;
    if (power_of_two(d->failures))
        log_line(w->log, LOG_WARNING, "%s.%s: %s (%llu in a row; again in %.1f s)", w->outlet.app,
                 w->outlet.output, text, (unsigned long long)d->failures, SECONDS_OF(delay_ns));
    report(w, OUTLET_RESTING, error, text);
}

static void count_failure(struct wire *w, uint64_t now_ns, const struct answer *a)
{
    struct delivery *d = &w->delivery;
    d->status = a ? a->status : 0;
    counter_add(&w->outlet.report.failures_total, 1);
    if (d->failures++ > 0)
        return;
    d->since_ns = now_ns;
    atomic_store_explicit(&w->outlet.report.failing_ms, io_wall_ms(w->loop->io), memory_order_relaxed);
}

void delivery_failed(struct wire *w, uint64_t now_ns, int error, const struct answer *a, const char *of)
{
    char text[TEXT_SIZE];
    describe(w, error, a, of, text);
    count_failure(w, now_ns, a);
    w->delivery.down = true;
    w->ways->rewind(w);
    if (is_over(w, now_ns, error, a, text))
        disable(w, error, text);
    else
        rest(w, now_ns, error, a, text);
}

void delivery_refused(struct wire *w, uint64_t now_ns, const struct answer *a)
{
    struct delivery *d = &w->delivery;
    char text[TEXT_SIZE];
    if (d->disabled)
        return;
    describe(w, PE_HTTP_STATUS, a, "", text);
    count_failure(w, now_ns, a);
    if (is_over(w, now_ns, PE_HTTP_STATUS, a, text)) {
        w->ways->rewind(w);
        disable(w, PE_HTTP_STATUS, text);
        return;
    }
    if (power_of_two(++d->refused))
        log_line(w->log, LOG_WARNING, "%s.%s: %s (%llu refusals so far; others go on)", w->outlet.app,
                 w->outlet.output, text, (unsigned long long)d->refused);
    report(w, (enum outlet_state)atomic_load_explicit(&w->outlet.report.state, memory_order_relaxed),
           PE_HTTP_STATUS, text);
}

/* --- statuses --- */

/* 407 is no receiver's (RFC 9110 section 15.5.8). Of other statuses nobody can tell. */
static bool is_proxys(const struct wire *w, uint16_t status)
{
    return status == 407 && w->destination.proxied && !w->destination.tunnelled;
}

bool delivery_is_refusal(const struct wire *w, uint16_t status)
{
    return !is_proxys(w, status) && wire_statuses_have(&w->delivery.policy.refused, status);
}

int delivery_error_of(const struct wire *w, const struct answer *a)
{
    if (a->status == 410 && wire_statuses_have(&w->delivery.policy.disables, 410))
        return PE_HTTP_GONE;
    if (is_proxys(w, a->status))
        return PE_PROXY;
    return a->status / 100 == 3 && a->location[0] ? PE_HTTP_REDIRECT : PE_HTTP_STATUS;
}

/* --- dead letters --- */

bool delivery_keeps_dead(const struct wire *w)
{
    return w->delivery.policy.attempts > 0 && w->outlet.keeps_dead;
}

bool delivery_asking(const struct wire *w)
{
    return atomic_load_explicit(&w->outlet.dead.state, memory_order_relaxed) != OUTLET_DEAD_NONE;
}

void delivery_ask(struct wire *w, struct stream_position start, struct stream_position end, uint16_t status,
                  const char *reason)
{
    struct outlet_dead *dead = &w->outlet.dead;
    assert(!delivery_asking(w));
    dead->start = start;
    dead->end = end;
    dead->status = status;
    snprintf(dead->reason, sizeof dead->reason, "%u %s", status, reason);
    atomic_store_explicit(&dead->state, OUTLET_DEAD_ASKED, memory_order_release);
    board_post(w->outlet.producer, w->outlet.producer_slot);
}

bool delivery_taken(const struct wire *w)
{
    return atomic_load_explicit(&w->outlet.dead.state, memory_order_acquire) == OUTLET_DEAD_TAKEN;
}

void delivery_bury(struct wire *w)
{
    struct outlet_dead *dead = &w->outlet.dead;
    uint64_t before = atomic_load_explicit(&w->outlet.report.dead, memory_order_relaxed);
    if (power_of_two(before + 1))
        log_line(w->log, LOG_WARNING, "%s.%s: record %llu is set aside, as it was refused: %s (%llu so far)",
                 w->outlet.app, w->outlet.output, (unsigned long long)dead->end.records, dead->reason,
                 (unsigned long long)before + 1);
    counter_add(&w->outlet.report.dead, 1);
    atomic_store_explicit(&dead->state, OUTLET_DEAD_NONE, memory_order_relaxed);
}
