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

static int failed(struct pure_turn *turn, int error, struct outlet *full)
{
    if (turn->error == 0) {
        turn->error = error;
        turn->full = full;
    }
    return error;
}

int pure_send(struct pure_turn *turn, uint32_t output, const void *data, size_t size)
{
    if (output >= turn->output_count)
        return failed(turn, PE_NO_OUTPUT, NULL);
    struct turn_outlet *to = &turn->outlets[output];
    if (turn->replaying || !to->outlet)
        return 0;
    if (to->unit != turn->unit) {
        to->unit = turn->unit;
        to->mark = to->outlet->queue.tail;
    }
    int error = outlet_queue(to->outlet, data, size);
    if (error < 0)
        return failed(turn, error, error == PE_FULL ? to->outlet : NULL);
    to->touched = true;
    if (outlet_over(to->outlet)) {
        turn->over = true;
        if (turn->sparing && record_queue_held(&to->outlet->queue) > to->outlet->queue.capacity / 8 * 7)
            return failed(turn, PE_FULL, to->outlet);
    }
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
