#include "host/turn.h"

#include "host/turn_guard.h"

#include <errno.h>
#include <stdlib.h>

int turn_init(struct pure_turn *turn, uint32_t output_count)
{
    *turn = (struct pure_turn){.output_count = output_count};
    turn->outlets = calloc(output_count ? output_count : 1, sizeof *turn->outlets);
    return turn->outlets ? 0 : -ENOMEM;
}

void turn_dispose(struct pure_turn *turn)
{
    free(turn->outlets);
    turn->outlets = NULL;
}

void turn_join(struct pure_turn *turn, uint32_t output, struct outlet *outlet, struct backlog *backlog)
{
    turn->outlets[output].outlet = outlet;
    turn->outlets[output].backlog = backlog;
    turn->queues += outlet->queue.capacity;
}

static uint64_t unit_bytes(const struct turn_outlet *to)
{
    uint64_t queued = to->outlet->queue.tail.bytes - to->mark.tail.bytes;
    return queued + (to->backlog ? to->backlog->spill_size - to->mark.spill_size : 0);
}

static uint64_t unit_records(const struct turn_outlet *to)
{
    uint64_t queued = to->outlet->queue.tail.records - to->mark.tail.records;
    return queued + (to->backlog ? to->backlog->spill_records - to->mark.spill_records : 0);
}

static int failed(struct pure_turn *turn, uint32_t output, size_t size, int error)
{
    if (turn->error == 0) {
        turn->error = error;
        turn->failed_output = output;
        turn->failed_bytes = size;
        if (error == PE_FULL) {
            turn->full = &turn->outlets[output];
            turn->needs = unit_bytes(turn->full) + record_framed_size(size);
        }
    }
    return error;
}

/* Whether the record leaves as much free as it must. */
static bool spares(const struct pure_turn *turn, const struct turn_outlet *to, size_t size)
{
    if (!turn->sparing)
        return true;
    struct record_queue *q = &to->outlet->queue;
    uint64_t room = turn_room(turn, to), framed = record_framed_size(size);
    if (record_queue_held(q) + framed <= room)
        return true;
    record_queue_see_freed(q);
    return record_queue_held(q) + framed <= room;
}

static bool over(uint64_t held, uint64_t capacity)
{
    return held > capacity - capacity / 4;
}

static bool outlet_is_over(const struct turn_outlet *to)
{
    return over(to->backlog ? backlog_held(to->backlog) : record_queue_held(&to->outlet->queue),
                turn_capacity(to));
}

static int send_journaled(struct pure_turn *turn, struct turn_outlet *to, const void *data, size_t size)
{
    if (size > to->outlet->max_record)
        return PE_TOO_LARGE;
    uint64_t framed = record_framed_size(size);
    if (framed > turn_unit_most(turn) - turn->unit_sent)
        return PE_TOO_MUCH;
    int error = backlog_send(to->backlog, data, size, turn_spare(turn, to));
    if (error < 0)
        return error;
    turn->unit_sent += framed;
    turn->sent_bytes += framed;
    if (turn->sent_bytes > TURN_SENT_BYTES || over(backlog_held(to->backlog), backlog_capacity(to->backlog)))
        turn->over = true;
    return 0;
}

static int send_queued(struct pure_turn *turn, struct turn_outlet *to, const void *data, size_t size)
{
    struct record_queue *q = &to->outlet->queue;
    int error = spares(turn, to, size) ? outlet_queue(to->outlet, data, size) : PE_FULL;
    if (error == 0 && over(record_queue_held(q), q->capacity))
        turn->over = true;
    return error;
}

static void begin_outlet(const struct pure_turn *turn, struct turn_outlet *to)
{
    to->unit = turn->unit;
    if (to->backlog)
        to->mark = backlog_mark(to->backlog);
    else
        to->mark.tail = to->outlet->queue.tail;
}

int pure_send(struct pure_turn *turn, uint32_t output, const void *data, size_t size)
{
    guard_pass();
    if (output >= turn->output_count)
        return failed(turn, output, size, PE_NO_OUTPUT);
    struct turn_outlet *to = &turn->outlets[output];
    if (turn->replaying || !to->outlet)
        return 0;
    if (to->unit != turn->unit)
        begin_outlet(turn, to);
    int error = to->backlog ? send_journaled(turn, to, data, size) : send_queued(turn, to, data, size);
    if (error < 0)
        return failed(turn, output, size, error);
    to->touched = true;
    turn->sends++;
    return 0;
}

void turn_undo_unit(struct pure_turn *turn)
{
    for (uint32_t i = 0; i < turn->output_count; i++) {
        struct turn_outlet *to = &turn->outlets[i];
        if (!to->outlet || to->unit != turn->unit)
            continue;
        turn->sends -= unit_records(to);
        if (to->backlog)
            backlog_undo(to->backlog, &to->mark);
        else
            record_queue_rollback(&to->outlet->queue, to->mark.tail);
    }
}

uint32_t turn_commit(struct pure_turn *turn)
{
    uint32_t pushed = 0;
    for (uint32_t i = 0; i < turn->output_count; i++) {
        struct turn_outlet *to = &turn->outlets[i];
        if (!to->touched)
            continue;
        to->touched = false;
        if (to->outlet->queue.tail.bytes != to->outlet->queue.published.bytes || to->backlog)
            pushed++;
        if (to->outlet->queue.tail.bytes != to->outlet->queue.published.bytes && !to->backlog)
            outlet_push(to->outlet);
        if (outlet_is_over(to) && !to->waiting) {
            to->waiting = true;
            turn->waiting++;
        }
    }
    turn->over = false;
    turn->sends = turn->sent_bytes = 0;
    return pushed;
}

bool turn_within(struct turn_outlet *to, uint64_t most)
{
    return to->backlog ? backlog_within(to->backlog, most) : !outlet_wait(to->outlet, most);
}

bool turn_waits(struct pure_turn *turn)
{
    for (uint32_t i = 0; i < turn->output_count && turn->waiting > 0; i++) {
        struct turn_outlet *to = &turn->outlets[i];
        if (to->waiting && turn_within(to, turn_capacity(to) / 4)) {
            to->waiting = false;
            turn->waiting--;
        }
    }
    return turn->waiting > 0;
}
