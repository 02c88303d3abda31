#include "link/acks.h"

void acks_init(struct acks *a, uint64_t first)
{
    *a = (struct acks){.floor = first, .due_ns = NEVER};
    ranges_init(&a->received, a->memory, FRAME_ACK_RANGES);
}

static void raise_floor(struct acks *a, uint64_t floor)
{
    a->floor = max_u64(a->floor, floor);
}

/* Records a number at or above the floor; the oldest range makes room. False if it was there, or is older
 * than all that there is room for. */
static bool record(struct acks *a, uint64_t number)
{
    if (ranges_have(&a->received, number))
        return false;
    if (ranges_add(&a->received, number, number + 1) == 0)
        return true;
    if (number < a->received.item[0].start) {
        raise_floor(a, number + 1);
        return false;
    }
    raise_floor(a, a->received.item[0].end);
    ranges_drop_first(&a->received);
    int added = ranges_add(&a->received, number, number + 1);
    assert(added == 0);
    return true;
}

static uint64_t largest_end(const struct acks *a)
{
    return a->received.count > 0 ? a->received.item[a->received.count - 1].end : a->floor;
}

static bool after_pause(const struct acks *a, uint64_t now_ns)
{
    return !a->any || (a->waiting == 0 && now_ns - a->last_eliciting_ns > ACK_DELAY_NS);
}

static void elicit(struct acks *a, bool in_order, uint64_t now_ns)
{
    bool at_once = !in_order || after_pause(a, now_ns);
    a->waiting++;
    if (at_once || a->waiting >= ACK_EVERY)
        a->due_ns = now_ns;
    else
        a->due_ns = min_u64(a->due_ns, now_ns + ACK_DELAY_NS);
    a->any = true;
    a->last_eliciting_ns = now_ns;
}

bool acks_received(struct acks *a, uint64_t number, bool eliciting, uint64_t now_ns)
{
    uint64_t expected = largest_end(a);
    if (number >= expected)
        a->largest_at_ns = now_ns;
    bool recorded = number >= a->floor && record(a, number);
    if (eliciting)
        elicit(a, recorded && number == expected, now_ns);
    return recorded;
}

size_t acks_put(struct acks *a, uint8_t *at, const uint8_t *end, uint64_t now_ns, uint64_t *largest)
{
    if (a->received.count == 0)
        return 0;
    uint64_t delay_us = (now_ns - a->largest_at_ns) / NS_PER_US;
    size_t size = frame_put_ack(at, end, &a->received, min_u64(delay_us, VARINT_MAX));
    if (size == 0)
        return 0;
    *largest = largest_end(a) - 1;
    a->waiting = 0;
    a->due_ns = NEVER;
    return size;
}

/* The range that holds the largest number stays (cut), so that there is always one to name. */
void acks_seen(struct acks *a, uint64_t largest)
{
    if (a->received.count == 0 || largest >= largest_end(a))
        return;
    raise_floor(a, largest);
    ranges_drop_below(&a->received, largest);
}
