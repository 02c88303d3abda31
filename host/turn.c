#include "host/turn.h"

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

static int failed(struct pure_turn *turn, uint32_t output, size_t size, int error)
{
    if (turn->error == 0) {
        turn->error = error;
        turn->failed_output = output;
        turn->failed_bytes = size;
        if (error == PE_FULL) {
            const struct turn_outlet *to = &turn->outlets[output];
            turn->full = to->outlet;
            turn->needs = to->outlet->queue.tail.bytes - to->mark.bytes + record_framed_size(size);
        }
    }
    return error;
}

/* Whether the record leaves as much free as it must. */
static bool spares(const struct pure_turn *turn, struct outlet *o, size_t size)
{
    uint64_t room = turn_room(turn, o), framed = record_framed_size(size);
    if (!turn->sparing || record_queue_held(&o->queue) + framed <= room)
        return true;
    record_queue_see_freed(&o->queue);
    return record_queue_held(&o->queue) + framed <= room;
}

int pure_send(struct pure_turn *turn, uint32_t output, const void *data, size_t size)
{
    if (output >= turn->output_count)
        return failed(turn, output, size, PE_NO_OUTPUT);
    struct turn_outlet *to = &turn->outlets[output];
    if (turn->replaying || !to->outlet)
        return 0;
    if (to->unit != turn->unit) {
        to->unit = turn->unit;
        to->mark = to->outlet->queue.tail;
    }
    int error = spares(turn, to->outlet, size) ? outlet_queue(to->outlet, data, size) : PE_FULL;
    if (error < 0)
        return failed(turn, output, size, error);
    to->touched = true;
    if (outlet_over(to->outlet))
        turn->over = true;
    turn->sends++;
    return 0;
}

void turn_undo_unit(struct pure_turn *turn)
{
    for (uint32_t i = 0; i < turn->output_count; i++) {
        struct turn_outlet *to = &turn->outlets[i];
        if (!to->outlet || to->unit != turn->unit)
            continue;
        turn->sends -= to->outlet->queue.tail.records - to->mark.records;
        record_queue_rollback(&to->outlet->queue, to->mark);
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
        if (to->outlet->queue.tail.bytes != to->outlet->queue.published.bytes) {
            outlet_push(to->outlet);
            pushed++;
        }
        if (outlet_over(to->outlet) && !to->waiting) {
            to->waiting = true;
            turn->waiting++;
        }
    }
    turn->over = false;
    turn->sends = 0;
    return pushed;
}

bool turn_waits(struct pure_turn *turn)
{
    for (uint32_t i = 0; i < turn->output_count && turn->waiting > 0; i++) {
        struct turn_outlet *to = &turn->outlets[i];
        if (to->waiting && !outlet_wait(to->outlet, to->outlet->queue.capacity / 4)) {
            to->waiting = false;
            turn->waiting--;
        }
    }
    return turn->waiting > 0;
}
