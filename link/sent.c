#include "link/sent.h"

#include <errno.h>
#include <stdlib.h>

#define ITEMS_PER_PACKET_MEAN 4 /* the ring of items is this much longer than that of packets */

int sent_init(struct sent *s, uint32_t capacity, uint64_t first)
{
    assert(capacity >= SENT_ITEMS_PER_PACKET && capacity <= 1u << 24 && (capacity & (capacity - 1)) == 0);
    *s = (struct sent){.packets_mask = capacity - 1,
                       .items_mask = capacity * ITEMS_PER_PACKET_MEAN - 1,
                       .first = first,
                       .next = first};
    s->packets = calloc(capacity, sizeof *s->packets);
    s->items = calloc((size_t)s->items_mask + 1, sizeof *s->items);
    if (s->packets && s->items)
        return 0;
    sent_dispose(s);
    return -ENOMEM;
}

void sent_restart(struct sent *s, uint64_t first)
{
    *s = (struct sent){.packets = s->packets,
                       .items = s->items,
                       .packets_mask = s->packets_mask,
                       .items_mask = s->items_mask,
                       .first = first,
                       .next = first};
}

void sent_dispose(struct sent *s)
{
    free(s->packets);
    free(s->items);
    *s = (struct sent){0};
}

bool sent_room(const struct sent *s)
{
    return s->next - s->first <= s->packets_mask &&
           s->items_next - s->items_first + SENT_ITEMS_PER_PACKET <= s->items_mask + UINT64_C(1);
}

bool sent_add(struct sent *s, struct sent_item item)
{
    if (s->items_added == SENT_ITEMS_PER_PACKET)
        return false;
    s->items[(s->items_next + s->items_added) & s->items_mask] = item;
    s->items_added++;
    return true;
}

uint64_t sent_commit(struct sent *s, struct sent_commit_options options, uint64_t now_ns)
{
    assert(sent_room(s));
    uint64_t number = s->next++;
    uint32_t items = options.eliciting ? s->items_added : 0;
    *sent_at(s, number) = (struct sent_packet){.sent_ns = now_ns,
                                               .bytes = options.bytes,
                                               .item = (uint32_t)s->items_next & s->items_mask,
                                               .items = (uint8_t)items,
                                               .outstanding = options.eliciting,
                                               .mtu_probe = options.mtu_probe};
    s->items_next += items;
    s->items_added = 0;
    if (options.eliciting) {
        s->outstanding++;
        s->bytes_in_flight += options.bytes;
        s->last_eliciting_ns = now_ns;
    } else if (s->outstanding == 0) {
        sent_advance(s);
    }
    return number;
}

/* Whether `item` goes on where the run ends. */
static bool continues(const struct sent_run *run, const struct sent_item *item)
{
    return run->any && item->kind == SENT_RECORDS && run->item.kind == SENT_RECORDS &&
           item->stream == run->item.stream && item->offset == run->item.offset + run->item.size;
}

void sent_run_end(struct sent_run *run, void (*tell)(void *, const struct sent_item *), void *context)
{
    if (run->any)
        tell(context, &run->item);
    run->any = false;
}

void sent_take(struct sent *s, struct sent_packet *packet, struct sent_run *run,
               void (*tell)(void *, const struct sent_item *), void *context)
{
    assert(packet->outstanding);
    packet->outstanding = false;
    s->outstanding--;
    s->bytes_in_flight -= packet->bytes;
    for (uint32_t i = 0; i < packet->items; i++) {
        const struct sent_item *item = &s->items[(packet->item + i) & s->items_mask];
        if (continues(run, item)) {
            run->item.size += item->size;
            continue;
        }
        sent_run_end(run, tell, context);
        *run = (struct sent_run){*item, true};
    }
}

void sent_advance(struct sent *s)
{
    while (s->first < s->next && !sent_at(s, s->first)->outstanding) {
        s->items_first += sent_at(s, s->first)->items;
        s->first++;
    }
}
