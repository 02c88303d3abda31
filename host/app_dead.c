#include "host/app_dead.h"

#include "host/owned_app.h"

#include <errno.h>
#include <stdlib.h>

/* On a full disk letters can still be dropped, in frames of so many bytes: of so few letters. */
#define RESERVED_BYTES   4096
#define RESERVED_LETTERS 16

_Static_assert(RESERVED_LETTERS *(JOURNAL_NAME_MAX + 16) + JOURNAL_NAME_MAX + FRAME_HEAD + 64 <=
                   RESERVED_BYTES,
               "their frame fits");

typedef unsigned long long ull;

static struct journal_output *first_output(const struct owned_app *a)
{
    return a->journal.outputs;
}

static void report_kept(struct output_dead *d)
{
    if (d->outlet)
        atomic_store_explicit(&d->outlet->report.dead_kept, dead_letters_kept(&d->letters),
                              memory_order_relaxed);
}

void app_dead_keep(struct owned_app *a, struct outlet *outlet, uint32_t limit)
{
    struct journal_output *o = first_output(a);
    while (strcmp(o->name, outlet->output) != 0)
        o = o->next;
    o->dead.outlet = outlet;
    o->dead.limit = limit;
    outlet->keeps_dead = true;
    report_kept(&o->dead);
}

/* --- a start --- */

int app_dead_restore(struct output_dead *d, const struct section_dead *dead)
{
    if (dead->number == 0 || dead->segment == 0)
        return PE_JOURNAL;
    struct dead_letter letter = {.number = dead->number,
                                 .time_ms = dead->time_ms,
                                 .segment = dead->segment,
                                 .offset = dead->offset,
                                 .bytes = dead->bytes};
    return dead_letters_add(&d->letters, &letter, dead->reason);
}

void app_dead_restored(struct owned_app *a)
{
    for (struct journal_output *o = first_output(a); o; o = o->next) {
        uint32_t lost = dead_letters_hold(&o->dead.letters, a->journal.options.store);
        if (lost > 0)
            log_line(a->log, LOG_ERROR,
                     "output %s.%s: the records of %u dead letters are lost, as their segments are missing; "
                     "drop them: pure-host dead drop %s.%s RANGE",
                     a->entry.name, o->name, lost, a->entry.name, o->name);
    }
}

/* --- taking over --- */

/* A line when it begins, and one when it is over. */
static bool at_limit(struct owned_app *a, struct journal_output *o)
{
    struct output_dead *d = &o->dead;
    bool full = dead_letters_kept(&d->letters) >= d->limit;
    if (full && !d->full_said)
        log_line(
            a->log, LOG_ERROR,
            "output %s.%s: record %llu is refused (%s) and %u dead letters are kept, which is the most "
            "(dead =): it delivers no more until some are replayed or dropped: pure-host dead list %s.%s",
            a->entry.name, o->name, (ull)d->outlet->dead.end.records, d->outlet->dead.reason, d->limit,
            a->entry.name, o->name);
    else if (!full && d->full_said)
        log_line(a->log, LOG_NOTICE, "output %s.%s: there is room for dead letters again", a->entry.name,
                 o->name);
    d->full_said = full;
    return full;
}

/* Of the record that is to be set aside. It is in the queue. */
static uint32_t record_bytes(const struct outlet *o)
{
    const uint8_t *at = ring_memory_at(&o->queue.memory, o->dead.start.bytes);
    struct span record;
    size_t framed = record_get(at, at + (o->dead.end.bytes - o->dead.start.bytes), &record);
    assert(framed > 0);
    return (uint32_t)record.size;
}

/* The record gets its DEAD section. */
static void take_over(struct owned_app *a, struct journal_output *o)
{
    struct output_dead *d = &o->dead;
    const struct outlet_dead *asked = &d->outlet->dead;
    struct dead_letter letter = {.number = asked->end.records,
                                 .time_ms = io_wall_ms(a->loop->io),
                                 .bytes = record_bytes(d->outlet),
                                 .held = true};
    d->stuck = !backlog_find(o->backlog, letter.number, &letter.segment, &letter.offset) ||
               dead_letters_add(&d->letters, &letter, span_text(asked->reason)) < 0;
    if (d->stuck) {
        log_line(a->log, LOG_ERROR,
                 "output %s.%s: record %llu cannot be set aside: no memory; it delivers no more until the "
                 "host is restarted",
                 a->entry.name, o->name, (ull)letter.number);
        return;
    }
    store_hold(a->journal.options.store, letter.segment);
    dead_letters_frame(dead_letters_from(&d->letters, letter.number), o->name, app_journal_frame(a));
    d->asked = DEAD_FILLED;
    report_kept(d);
    app_journal_commit(a, false);
}

static void see_asked(struct owned_app *a, struct journal_output *o)
{
    struct output_dead *d = &o->dead;
    if (!d->outlet || d->stuck || d->asked != DEAD_NO_BATCH ||
        atomic_load_explicit(&d->outlet->dead.state, memory_order_acquire) != OUTLET_DEAD_ASKED)
        return;
    if (!at_limit(a, o) && app_journal_room(a))
        take_over(a, o);
}

/* --- requests: their end --- */

static void answer(struct owned_app *a, int error, const char *why)
{
    struct app_dead *w = &a->journal.dead;
    struct dead_request *r = &a->entry.dead;
    text_dispose(&w->failed);
    free(w->record);
    *w = (struct app_dead){0};
    if (error == 0 && r->text.failed)
        error = -ENOMEM;
    if (error < 0)
        text_dispose(&r->text);
    r->error = error;
    r->why = why;
    dead_request_pass(r, DEAD_REQUEST_ANSWERED);
    board_post(a->entry.inbox.front, a->entry.inbox.front_slot);
}

/* {"replayed":K}, with "next" if there is more to be done, and "failed" if letters could not be replayed. */
static void answer_change(struct owned_app *a)
{
    struct app_dead *w = &a->journal.dead;
    struct text *t = &a->entry.dead.text;
    text_format(t, "{\"%s\":%u", a->entry.dead.action == DEAD_TO_DROP ? "dropped" : "replayed", w->done);
    if (w->more)
        text_format(t, ",\"next\":%llu", (ull)w->next);
    if (w->failed_count > 0)
        text_format(t, ",\"failed\":[%.*s]", (int)w->failed.size, w->failed.data);
    text_format(t, "}\n");
    if (w->failed_count > 0)
        log_line(a->log, LOG_ERROR, "output %s.%s: %u dead letters could not be replayed", a->entry.name,
                 w->output->name, w->failed_count);
    answer(a, 0, NULL);
}

/* What it did is in frames; perhaps they are durable already, or nothing was done. */
static void end_change(struct owned_app *a)
{
    struct app_dead *w = &a->journal.dead;
    w->framed = true;
    if (w->done == 0) {
        answer_change(a);
        return;
    }
    w->batch = DEAD_FILLED;
    app_journal_commit(a, true);
}

/* --- drop --- */

static void drop(struct owned_app *a)
{
    struct app_dead *w = &a->journal.dead;
    struct journal_output *o = w->output;
    unsigned most = DEAD_CHANGE_MAX;
    if (!app_journal_room(a)) {
        if (!journal_reserve(a->journal.options.writer, RESERVED_BYTES))
            return; /* the task runs again when there is room */
        most = RESERVED_LETTERS;
    }
    struct dead_letter *letter;
    while ((letter = dead_letters_from(&o->dead.letters, w->next)) && letter->number <= w->last) {
        w->next = letter->number;
        w->more = w->done == most;
        if (w->more)
            break;
        dead_letters_frame_gone(&o->dead.letters, letter, o->name, app_journal_frame(a));
        w->done++;
    }
    report_kept(&o->dead);
    end_change(a);
}

/* --- replay --- */

static uint64_t take(struct read_request *r, const struct section_sends *sends)
{
    struct app_dead *w = container_of(r, struct app_dead, read);
    struct span record;
    if (sends->first != r->next ||
        record_get(sends->bytes.data, sends->bytes.data + sends->bytes.size, &record) == 0)
        return 0; /* it is not there */
    if (record.size > w->room) {
        uint8_t *memory = realloc(w->record, record.size);
        if (!memory)
            return 0;
        w->record = memory;
        w->room = record.size;
    }
    if (record.size > 0)
        memcpy(w->record, record.data, record.size);
    w->size = record.size;
    w->found = true;
    return 1;
}

/* The letter at hand stays, and the answer names it. */
static void leave(struct owned_app *a, const char *why)
{
    struct app_dead *w = &a->journal.dead;
    if (w->failed_count++ == 0)
        log_line(a->log, LOG_ERROR, "output %s.%s: dead letter %llu cannot be replayed: %s", a->entry.name,
                 w->output->name, (ull)w->next, why);
    text_format(&w->failed, "%s%llu", w->failed.size > 0 ? "," : "", (ull)w->next);
    w->next++;
}

static void read_ended(struct read_request *r, enum read_end end, int error)
{
    struct app_dead *w = container_of(r, struct app_dead, read);
    struct owned_app *a = container_of(w, struct owned_app, journal.dead);
    w->reading = false;
    if (!w->found)
        leave(a, end == READ_FAILED ? pure_error_text(error) : "its record is not found in the journal");
    loop_want(a->loop, &a->task);
}

/* Begins to read the next letter. False: there is none, or enough is done. */
static bool read_next(struct owned_app *a)
{
    struct app_dead *w = &a->journal.dead;
    const struct dead_letter *letter = dead_letters_from(&w->output->dead.letters, w->next);
    if (!letter || letter->number > w->last)
        return false;
    w->next = letter->number;
    w->more = w->looked == DEAD_CHANGE_MAX;
    if (w->more)
        return false;
    w->looked++;
    /* letters of one segment lie in order: the segment is gone through once */
    bool goes_on = w->read.segment == letter->segment && w->read.offset > letter->offset;
    w->read = (struct read_request){.app = a->entry.name,
                                    .output = w->output->name,
                                    .segment = letter->segment,
                                    .offset = goes_on ? w->read.offset : letter->offset,
                                    .next = letter->number,
                                    .last = letter->number,
                                    .take = take,
                                    .done = read_ended};
    w->reading = true;
    w->found = false;
    journal_read(a->journal.options.reader, &w->read);
    return true;
}

/* Sends the record that was read. Returns 0; PE_FULL, -ENOMEM: nothing was done. */
static int send_again(struct owned_app *a)
{
    struct app_dead *w = &a->journal.dead;
    struct journal_output *o = w->output;
    struct dead_letter *letter = dead_letters_from(&o->dead.letters, w->next);
    assert(letter && letter->number == w->next); /* nobody else removes letters */
    if (w->size > o->backlog->options.outlet->max_record) {
        leave(a, "it is larger than the output's max_record is now");
        return 0;
    }
    int error = backlog_send(o->backlog, w->record, w->size, 0);
    if (error < 0)
        return error;
    dead_letters_frame_gone(&o->dead.letters, letter, o->name, app_journal_frame(a));
    report_kept(&o->dead);
    app_journal_commit(a, false);
    w->done++;
    w->next++;
    return 0;
}

/* One letter a round: the app's turns go on in between. */
static void replay(struct owned_app *a)
{
    struct app_dead *w = &a->journal.dead;
    if (w->reading)
        return;
    if (a->journal.failed) {
        answer(a, PE_JOURNAL_FAILED, NULL);
        return;
    }
    if (w->found && !app_journal_room(a))
        return;
    int error = w->found ? send_again(a) : 0;
    w->found = false;
    if (!w->busy) /* the store has failed meanwhile */
        return;
    if (error < 0 && w->done == 0) {
        answer(a, error, error == PE_FULL ? "the output's queue and its backlog are full" : NULL);
        return;
    }
    w->more = error < 0;
    if (error < 0 || !read_next(a))
        end_change(a);
}

/* --- requests --- */

static struct journal_output *find_output(const struct owned_app *a, const char *name)
{
    struct journal_output *o = first_output(a);
    while (o && strcmp(o->name, name) != 0)
        o = o->next;
    return o;
}

static void begin(struct owned_app *a)
{
    struct app_dead *w = &a->journal.dead;
    struct dead_request *r = &a->entry.dead;
    *w = (struct app_dead){
        .busy = true, .output = find_output(a, r->output), .next = r->first, .last = r->last};
    if (!w->output) {
        answer(a, PE_NO_OUTPUT, NULL);
    } else if (r->action == DEAD_TO_LIST) {
        dead_letters_list(&w->output->dead.letters, r->first, SHOW_MAX, &r->text);
        answer(a, 0, NULL);
    } else if (a->journal.failed) {
        answer(a, PE_JOURNAL_FAILED, NULL);
    } else if (r->action == DEAD_TO_REPLAY && !w->output->backlog) {
        answer(a, PE_NO_OUTPUT,
               "the output is not in the configuration: its dead letters can be dropped only");
    }
}

static void do_request(struct owned_app *a)
{
    struct app_dead *w = &a->journal.dead;
    if (!w->busy && dead_request_state(&a->entry.dead) == DEAD_REQUEST_ASKED &&
        !dead_action_of_output(a->entry.dead.action))
        begin(a);
    if (!w->busy || w->framed)
        return;
    if (a->entry.dead.action == DEAD_TO_DROP)
        drop(a);
    else
        replay(a);
}

/* Requests first: they may bring an output down from its limit. */
void app_dead_work(struct owned_app *a)
{
    do_request(a);
    for (struct journal_output *o = first_output(a); o && !a->journal.failed; o = o->next)
        see_asked(a, o);
}

/* --- durable --- */

void app_dead_placed(struct owned_app *a)
{
    for (struct journal_output *o = first_output(a); o; o = o->next) {
        dead_letters_placed(&o->dead.letters);
        if (o->dead.asked == DEAD_FILLED)
            o->dead.asked = DEAD_WRITING;
    }
    if (a->journal.dead.batch == DEAD_FILLED)
        a->journal.dead.batch = DEAD_WRITING;
}

void app_dead_durable(struct owned_app *a)
{
    for (struct journal_output *o = first_output(a); o; o = o->next) {
        struct output_dead *d = &o->dead;
        dead_letters_durable(&d->letters, a->journal.options.store);
        if (d->asked != DEAD_WRITING)
            continue;
        d->asked = DEAD_NO_BATCH;
        atomic_store_explicit(&d->outlet->dead.state, OUTLET_DEAD_TAKEN, memory_order_release);
        board_post(d->outlet->consumer, d->outlet->consumer_slot);
    }
    if (a->journal.dead.batch == DEAD_WRITING)
        answer_change(a);
}

/* What is read meanwhile is left to the reader: its memory stays. */
void app_dead_failed(struct owned_app *a)
{
    struct app_dead *w = &a->journal.dead;
    if (w->busy && !w->reading)
        answer(a, PE_JOURNAL_FAILED, NULL);
}

void app_dead_dispose(struct owned_app *a)
{
    text_dispose(&a->journal.dead.failed);
    text_dispose(&a->entry.dead.text);
    free(a->journal.dead.record);
}
