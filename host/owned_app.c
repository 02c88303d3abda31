#include "host/owned_app.h"

#include <errno.h>
#include <stdio.h>

enum fed {
    FED_ALL,    /* nothing is left */
    FED_BUDGET, /* the turn should end; there may be more */
    FED_WAIT,   /* the app cannot go on now: an outlet is full, a retry is due later, or it is suspended */
};

bool owned_app_suspended(const struct owned_app *a)
{
    return atomic_load_explicit(&a->entry.report.condition, memory_order_relaxed) == APP_SUSPENDED;
}

static void set_condition(struct owned_app *a, enum app_condition condition)
{
    atomic_store_explicit(&a->entry.report.condition, condition, memory_order_relaxed);
}

void owned_app_suspend(struct owned_app *a, int error, const char *why)
{
    if (!owned_app_suspended(a) && why != a->entry.reason) /* which never changes then */
        snprintf(a->entry.reason, sizeof a->entry.reason, "%s", why);
    atomic_store_explicit(&a->entry.report.error, error, memory_order_relaxed);
    atomic_store_explicit(&a->entry.report.condition, APP_SUSPENDED, memory_order_release); /* entry.reason */
    log_line(a->log, LOG_ERROR, "app %s is suspended: %s (%s)%s", a->entry.name, why, pure_error_text(error),
             error == PE_APP_DIED ? "" : "; restart the host to try it again");
}

static struct inbox_inlet *inbox_of(struct owned_app *a, unsigned inlet)
{
    return inlet < a->inbox_count ? &a->inboxes[inlet] : NULL;
}

static struct inner_inlet *inner_of(const struct owned_app *a, unsigned inlet)
{
    return inlet < a->inbox_count ? NULL : &a->inners[inlet - a->inbox_count];
}

/* --- units that did not succeed --- */

/* The outlet has no room for this unit's sends: as far as they are known, which is up to the one that failed.
 * A unit that comes back for more asks for twice as much, so that it is not given again for each of its
 * records; not in a cycle, where whoever waits for more than it needs may wait for itself. */
static void wait_for_room(struct owned_app *a, struct turn_outlet *full)
{
    uint64_t room = turn_room(&a->turn, full);
    uint64_t needs = a->turn.needs;
    if (!a->in_cycle && a->needed > 0)
        needs = max_u64(needs, 2 * a->needed);
    a->needed = needs;
    a->full = full;
    a->full_inlet = a->inlet;
    a->full_until = room - min_u64(needs, room);
    counter_add(&a->entry.report.waits, 1);
}

/* Says what failed: the event, where it came from, which send it was, if that is known, and whether it got no
 * memory: at its last try it is the first of its batch, so nothing before it counts. */
static void report_refused(struct owned_app *a)
{
    const struct pure_turn *turn = &a->turn;
    char send[200] = "", refused[GUARD_REFUSED_MAX] = "";
    if (turn->error == PE_NO_OUTPUT)
        snprintf(send, sizeof send, ": it sends to output number %u, which its module has not",
                 turn->failed_output);
    else if (turn->error == PE_TOO_LARGE)
        snprintf(send, sizeof send, ": it sends a record of %zu bytes to %s, whose max_record is %u",
                 turn->failed_bytes, a->state.app->outputs[turn->failed_output],
                 turn->outlets[turn->failed_output].outlet->max_record);
    else if (turn->error == PE_TOO_MUCH)
        snprintf(send, sizeof send,
                 ": it sends more than %llu bytes in all, the most for one event; the last were to %s",
                 (unsigned long long)turn_unit_most(turn), a->state.app->outputs[turn->failed_output]);
    else if (turn->error == PE_FULL)
        snprintf(send, sizeof send, ": it sends more to %s than its %s (%llu bytes) can ever hold",
                 turn->full->outlet->output, turn_capacity_key(turn->full),
                 (unsigned long long)turn_capacity(turn->full));
    if (a->state.guard)
        guard_refused_text(a->state.guard, a->failed_refused, refused);
    log_line(a->log, LOG_WARNING, "app %s failed event '%s' number %llu of %s %d times and it is refused%s%s",
             a->entry.name, a->failed_event, (unsigned long long)a->failed_number, a->failed_source, TRIES,
             send, refused);
}

static void suspend_for_failures(struct owned_app *a)
{
    char why[sizeof a->entry.reason];
    snprintf(why, sizeof why, "it has failed %u events in a row, the last '%s' number %llu of %s",
             a->failures_in_row, a->failed_event, (unsigned long long)a->failed_number, a->failed_source);
    owned_app_suspend(a, PE_APP_FAILED, why);
}

static unsigned *tries_of(struct owned_app *a)
{
    struct inbox_inlet *inbox = inbox_of(a, a->inlet);
    return inbox ? &inbox->tries : &inner_of(a, a->inlet)->tries;
}

/* Undoes the unit at hand. Returns whether it is to be refused: it has failed often enough. */
static bool unit_failed(struct owned_app *a)
{
    struct turn_outlet *full = a->turn.full;
    turn_undo_unit(&a->turn);
    if (app_state_undo(&a->state, &a->turn) < 0) {
        owned_app_suspend(a, PE_APP_FAILED, "its state could not be put back after a failed event");
        return false;
    }
    if (full && a->turn.needs <= turn_room(&a->turn, full)) {
        wait_for_room(a, full);
        return false;
    }
    counter_add(&a->entry.report.failures, 1);
    unsigned *tries = tries_of(a);
    if (++*tries < TRIES) {
        set_condition(a, APP_RETRYING);
        a->next_inlet = a->inlet; /* no other comes between the tries */
        timer_set(&a->loop->timers, &a->retry, a->loop->now_ns + (*tries == 1 ? 10 : 100) * NS_PER_MS);
        return false;
    }
    *tries = 0;
    counter_add(&a->entry.report.refused, 1);
    report_refused(a);
    if (++a->failures_in_row == FAILURES_IN_A_ROW)
        suspend_for_failures(a);
    return true;
}

static void unit_succeeded(struct owned_app *a)
{
    *tries_of(a) = 0;
    a->failures_in_row = 0;
    a->needed = 0;
}

/* --- giving events --- */

/* The clock is looked at after 1, 2, 4 … 64 events, and after each one while they are slow. */
static bool time_spent(struct owned_app *a)
{
    if (a->events < a->clock_due)
        return false;
    uint64_t now_ns = io_now_ns(a->loop->io);
    uint64_t each_ns = (now_ns - a->clock_ns) / a->clock_step;
    a->clock_step = each_ns > SLOW_EVENT_NS ? 1 : (uint32_t)min_u64(2 * a->clock_step, 64);
    a->clock_due = a->events + a->clock_step;
    a->clock_ns = now_ns;
    return now_ns >= a->deadline_ns;
}

static bool budget_spent(struct owned_app *a)
{
    return a->events >= TURN_EVENTS || a->bytes >= TURN_BYTES || a->turn.over || time_spent(a);
}

enum given { GIVEN_ALL, GIVEN_SOME, GIVEN_FAILED };

/* The module's calls. Returns whether one has failed. */
static bool give_events(struct owned_app *a)
{
    const struct pure_app *app = a->state.app;
    struct giving *g = &a->giving;
    const uint8_t *end = g->at + g->left->bytes.size;
    bool failed = false;
    guard_enter(a->state.guard, "event");
    while (g->event.number - g->left->first < g->left->records) {
        if (!g->whole && budget_spent(a))
            break;
        if (!g->whole)
            turn_begin_unit(&a->turn);
        struct span data;
        size_t framed = record_get(g->at, end, &data);
        assert(framed > 0); /* checked where they came in */
        g->event.data = data.data;
        g->event.size = data.size;
        failed = app->event(a->state.state, &a->turn, &g->event) != 0 || a->turn.error != 0;
        if (failed)
            break;
        g->at += framed;
        g->event.number++;
        a->events++;
        a->bytes += framed;
    }
    a->failed_refused = failed ? guard_refused() : 0;
    guard_leave();
    return failed;
}

/* What was given takes its course; `failed`: not the unit at hand. */
static enum given account(struct owned_app *a, bool failed)
{
    struct giving *g = &a->giving;
    struct events *left = g->left, done = *left;
    if (failed) {
        a->failed_event = g->event.name;
        a->failed_source = g->event.source;
        a->failed_number = g->event.number;
    }
    if (failed && g->whole) {
        g->at = left->bytes.data;
        g->event.number = left->first;
    }
    g->left = NULL;
    done.records = g->event.number - left->first;
    done.bytes.size = (size_t)(g->at - left->bytes.data);
    left->first += done.records;
    left->records -= done.records;
    left->bytes = span_of(g->at, left->bytes.size - done.bytes.size);
    counter_add(&a->entry.report.stored, done.records);
    if (done.records > 0)
        unit_succeeded(a);
    app_journal_events(a, &done);
    int kept = app_state_keep(&a->state, &done);
    if (kept == PE_TOO_LARGE && !failed)
        kept = app_state_snapshot(&a->state); /* then there is nothing to log */
    if (kept < 0)
        owned_app_suspend(a, kept, "what it was given cannot be kept");
    if (failed)
        return GIVEN_FAILED;
    return left->records > 0 ? GIVEN_SOME : GIVEN_ALL;
}

/* Gives events, each a unit of its own or (`whole`) all of them one unit, and moves the front of
 * `left` behind those that succeeded. */
static enum given give(struct owned_app *a, struct events *left, bool whole)
{
    a->giving = (struct giving){.left = left,
                                .event = {.name = left->event,
                                          .source = left->source,
                                          .number = left->first,
                                          .time_ms = left->time_ms},
                                .at = left->bytes.data,
                                .whole = whole};
    if (whole)
        turn_begin_unit(&a->turn);
    return account(a, give_events(a));
}

/* --- inboxes --- */

static enum fed feed_from_inbox(struct owned_app *a, struct inbox_inlet *inbox)
{
    for (;;) {
        if (!inbox->under_way) {
            if (budget_spent(a))
                return FED_BUDGET;
            if (!inbox_inlet_next(inbox))
                return FED_ALL;
            if (!inbox_inlet_enter(inbox))
                continue;
        }
        enum given given = give(a, inbox_inlet_left(inbox), inbox->run.kind == RUN_EVENTS);
        inbox_inlet_given(inbox);
        if (given == GIVEN_ALL)
            inbox_inlet_stored(inbox);
        else if (given == GIVEN_SOME)
            return FED_BUDGET;
        else if (unit_failed(a))
            inbox_inlet_refuse(inbox, PE_APP_FAILED);
        else
            return FED_WAIT;
        if (owned_app_suspended(a))
            return FED_WAIT;
    }
}

/* --- inner outlets --- */

static void inner_given(const struct owned_app *a, struct inner_inlet *inlet)
{
    inlet->given.records = a->inner_left.first - 1;
    inlet->given.bytes = a->inner_end.bytes - a->inner_left.bytes.size;
}

static enum fed feed_from_inner(struct owned_app *a, struct inner_inlet *inlet)
{
    struct stream_position end = outlet_look(inlet->outlet);
    if (inlet->given.records < inlet->outlet->queue.freed.records) /* a hole was passed over */
        inlet->given = inlet->outlet->queue.freed;
    if (inlet->given.records == end.records)
        return FED_ALL;
    a->inner_end = end;
    a->inner_left = (struct events){.event = inlet->event,
                                    .source = inlet->source,
                                    .first = inlet->given.records + 1,
                                    .time_ms = io_wall_ms(a->loop->io),
                                    .bytes = record_queue_span(&inlet->outlet->queue, inlet->given.bytes),
                                    .records = end.records - inlet->given.records};
    enum given given = give(a, &a->inner_left, false);
    inner_given(a, inlet);
    if (given != GIVEN_FAILED)
        return given == GIVEN_ALL ? FED_ALL : FED_BUDGET;
    if (unit_failed(a) && !owned_app_suspended(a))
        owned_app_suspend(a, PE_APP_FAILED, "it fails an event that an app of this host has sent it");
    return FED_WAIT;
}

/* --- the turn --- */

static bool waits_for_room(struct owned_app *a)
{
    if (a->full && turn_within(a->full, a->full_until))
        a->full = NULL;
    return a->full != NULL;
}

/* Whether this inlet is to be left alone in this turn. */
static bool held_back(const struct owned_app *a, unsigned inlet, bool waiting)
{
    if (a->full && inlet == a->full_inlet)
        return true;
    const struct inner_inlet *inner = inner_of(a, inlet);
    return waiting && !(inner && inner->cyclic);
}

static bool take_turn(struct owned_app *a, bool waiting)
{
    enum fed fed = FED_ALL;
    unsigned first = a->next_inlet, count = a->inbox_count + a->inner_count;
    a->next_inlet = (first + 1) % count;
    for (unsigned i = 0; waiting && i < a->inbox_count; i++)
        inbox_inlet_show(&a->inboxes[i]);
    for (unsigned i = 0; i < count && fed == FED_ALL; i++) {
        a->inlet = (first + i) % count;
        if (held_back(a, a->inlet, waiting))
            continue;
        struct inner_inlet *inner = inner_of(a, a->inlet);
        a->turn.sparing = a->in_cycle && !(inner && inner->cyclic);
        fed = inner ? feed_from_inner(a, inner) : feed_from_inbox(a, inbox_of(a, a->inlet));
    }
    return fed == FED_BUDGET;
}

/* --- calls that do not end --- */

/* The unit at hand is refused, if whoever sent it can be told. */
static void end_overrun_unit(struct owned_app *a)
{
    struct inbox_inlet *inbox = inbox_of(a, a->inlet);
    turn_undo_unit(&a->turn);
    account(a, true);
    counter_add(&a->entry.report.failures, 1);
    if (!inbox) {
        inner_given(a, inner_of(a, a->inlet));
        return;
    }
    inbox_inlet_given(inbox);
    inbox_inlet_refuse(inbox, PE_APP_OVERRAN);
    counter_add(&a->entry.report.refused, 1);
}

/* A call was left. `call`: static. */
static void overran(struct owned_app *a, const char *call)
{
    unsigned limit_s = (unsigned)(a->state.guard->limit_ns / NS_PER_S);
    char *reason = a->entry.reason;
    bool of_event = a->giving.left != NULL;
    if (of_event)
        end_overrun_unit(a);
    app_state_abandon(&a->state);
    if (owned_app_suspended(a))
        return;
    if (of_event)
        snprintf(reason, sizeof a->entry.reason, "its event '%s' number %llu of %s took more than %u s",
                 a->failed_event, (unsigned long long)a->failed_number, a->failed_source, limit_s);
    else
        snprintf(reason, sizeof a->entry.reason, "its %s took more than %u s", call, limit_s);
    owned_app_suspend(a, PE_APP_OVERRAN, reason);
}

/* One place to come back to for all calls of a turn. */
static bool take_guarded_turn(struct owned_app *a, bool waiting)
{
    if (!guard_here || !a->state.guard)
        return take_turn(a, waiting);
    guard_leavable(true);
    if (sigsetjmp(guard_here->leave, 0) != 0) {
        overran(a, atomic_load_explicit(&guard_here->call, memory_order_relaxed));
        return false;
    }
    bool more = take_turn(a, waiting);
    guard_leavable(false);
    return more;
}

/* --- its commit --- */

static void free_inner(struct inner_inlet *inner, struct stream_position to)
{
    if (to.records != inner->outlet->queue.freed.records)
        outlet_stored(inner->outlet, to);
}

/* What is done up to now is to take effect with the batch that fills. Whether that is anything. */
static bool mark(struct owned_app *a)
{
    bool any = false;
    for (unsigned i = 0; i < a->inner_count; i++) {
        struct inner_inlet *inner = &a->inners[i];
        inner->filled = inner->given;
        any |= inner->given.records != inner->outlet->queue.freed.records;
    }
    for (unsigned i = 0; i < a->inbox_count; i++)
        any |= inbox_inlet_mark(&a->inboxes[i], &a->filled[i]);
    return any;
}

static void commit_inboxes(struct owned_app *a, const struct inbox_mark *marks)
{
    for (unsigned i = 0; i < a->inbox_count; i++)
        inbox_inlet_commit(&a->inboxes[i], &marks[i]);
}

/* Nobody waits for the disk, or what waits for it has failed. */
static void take_effect(struct owned_app *a)
{
    for (unsigned i = 0; i < a->inner_count && !a->journal.failed; i++)
        free_inner(&a->inners[i], a->inners[i].filled);
    commit_inboxes(a, a->filled);
}

void owned_app_placed(struct owned_app *a)
{
    for (unsigned i = 0; i < a->inner_count; i++)
        a->inners[i].writing = a->inners[i].filled;
    memcpy(a->writing, a->filled, sizeof a->writing);
}

void owned_app_durable(struct owned_app *a)
{
    for (unsigned i = 0; i < a->inner_count; i++)
        free_inner(&a->inners[i], a->inners[i].writing);
    if (a->journal.options.durability == DURABILITY_SYNC)
        commit_inboxes(a, a->writing);
}

void owned_app_store_failed(struct owned_app *a, int error)
{
    for (unsigned i = 0; i < a->inbox_count; i++)
        inbox_inlet_fail(&a->inboxes[i], PE_JOURNAL_FAILED);
    if (!owned_app_suspended(a))
        owned_app_suspend(
            a, error, "its store has failed, so it takes no more events; what was acknowledged is stored");
    loop_want(a->loop, &a->task);
}

static void commit(struct owned_app *a)
{
    if (!owned_app_suspended(a) && app_state_settle(&a->state) < 0)
        owned_app_suspend(a, PE_APP_FAILED, "its snapshot failed");
    counter_add(&a->entry.report.sends, a->turn.sends);
    uint32_t waiting = a->turn.waiting;
    counter_add(&a->entry.report.pushes, turn_commit(&a->turn));
    if (waiting == 0 && a->turn.waiting > 0)
        counter_add(&a->entry.report.waits, 1);
    bool marked = mark(a);
    if (!a->journal.on || a->journal.failed) {
        take_effect(a);
        return;
    }
    if (a->journal.options.durability == DURABILITY_INTERVAL)
        commit_inboxes(a, a->filled);
    app_journal_commit(a, marked);
}

/* A suspended app answers what comes in from outside, and holds the rest. Its memory comes back. */
static void refuse_all(struct owned_app *a)
{
    app_state_dispose(&a->state);
    for (unsigned i = 0; i < a->inbox_count; i++)
        inbox_inlet_refuse_all(&a->inboxes[i]);
    commit(a);
}

static struct outlet *waited_for(const struct owned_app *a)
{
    for (uint32_t i = 0; i < a->turn.output_count; i++) {
        if (a->turn.outlets[i].waiting)
            return a->turn.outlets[i].outlet;
    }
    return a->full ? a->full->outlet : NULL;
}

/* An app that waits for an outlet which delivers is ordinary; one that waits for an outlet which does not is
 * worth a line. */
static void see_waiting(struct owned_app *a, bool waiting)
{
    struct outlet *o = waiting ? waited_for(a) : NULL;
    atomic_store_explicit(&a->entry.report.waits_for, o, memory_order_relaxed);
    set_condition(a, waiting ? APP_WAITING : APP_RUNNING);
    if (o && o != a->waits_said &&
        atomic_load_explicit(&o->report.state, memory_order_relaxed) != OUTLET_OK) {
        log_line(a->log, LOG_WARNING,
                 "app %s takes no more events: its output %s is full and does not deliver", a->entry.name,
                 o->output);
        a->waits_said = o;
    } else if (!waiting && a->waits_said) {
        log_line(a->log, LOG_NOTICE, "app %s takes events again", a->entry.name);
        a->waits_said = NULL;
    }
}

static void begin_budget(struct owned_app *a, uint64_t now_ns)
{
    a->deadline_ns = now_ns + TURN_NS;
    a->events = a->bytes = 0;
    a->clock_ns = now_ns;
    a->clock_due = a->clock_step = 1;
}

bool owned_app_run(struct task *task, uint64_t now_ns)
{
    struct owned_app *a = container_of(task, struct owned_app, task);
    if (a->journal.on)
        app_journal_work(a);
    app_fare_work(a);
    if (owned_app_suspended(a)) {
        refuse_all(a);
        return false;
    }
    if (a->retry.due_ns != NEVER || !app_journal_room(a))
        return false;
    bool was_full = waits_for_room(a);
    bool waiting = turn_waits(&a->turn) || was_full;
    see_waiting(a, waiting);
    if (waiting)
        app_journal_hurry(a);
    begin_budget(a, now_ns);
    bool more = take_guarded_turn(a, waiting);
    if (a->events > 0)
        counter_add(&a->entry.report.turns, 1);
    commit(a);
    if (owned_app_suspended(a))
        return true; /* one more round, to refuse what is there */
    if (!a->full)
        return more;
    see_waiting(a, true);
    return more || !was_full || !waits_for_room(a);
}
