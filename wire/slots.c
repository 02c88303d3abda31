#include "wire/slots.h"

#include <errno.h>
#include <stdlib.h>

int slots_init(struct slots *s, uint32_t limit)
{
    assert(limit >= 1 && limit <= SLOTS_MAX);
    *s = (struct slots){.capacity = limit, .limit = limit, .due_ns = NEVER};
    s->ring = malloc(limit * sizeof *s->ring);
    s->newest = malloc(limit * sizeof *s->newest);
    if (!s->ring || !s->newest) {
        slots_dispose(s);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < limit; i++)
        s->newest[i] = SLOTS_NONE;
    return 0;
}

void slots_dispose(struct slots *s)
{
    free(s->ring);
    free(s->newest);
    *s = (struct slots){0};
}

void slots_start(struct slots *s, struct stream_position position)
{
    assert(slots_empty(s));
    s->end = position;
}

/* --- states --- */

static void become_ready(struct slots *s, uint64_t n)
{
    slots_at(s, n)->state = SLOT_READY;
    s->ready++;
    s->first = min_u64(s->first, n);
}

static void leave(struct slots *s, uint64_t n, enum slot_state from, enum slot_state to)
{
    struct slot *slot = slots_at(s, n);
    assert(slot->state == from);
    slot->state = to;
}

void slots_fly(struct slots *s, uint64_t n)
{
    leave(s, n, SLOT_READY, SLOT_FLYING);
    s->ready--;
}

void slots_again(struct slots *s, uint64_t n)
{
    assert(slots_at(s, n)->state == SLOT_FLYING);
    become_ready(s, n);
}

void slots_rest(struct slots *s, uint64_t n, uint64_t due_ns)
{
    leave(s, n, SLOT_FLYING, SLOT_RESTING);
    slots_at(s, n)->due_ns = due_ns;
    s->resting++;
    s->due_ns = min_u64(s->due_ns, due_ns);
}

void slots_bury(struct slots *s, uint64_t n)
{
    leave(s, n, SLOT_FLYING, SLOT_DEAD);
    s->dead++;
}

void slots_ask(struct slots *s, uint64_t n)
{
    struct slot *slot = slots_at(s, n);
    assert(slot->state == SLOT_READY || slot->state == SLOT_BLOCKED || slot->state == SLOT_DEAD);
    s->ready -= slot->state == SLOT_READY;
    s->dead += slot->state != SLOT_DEAD;
    slot->state = SLOT_ASKED;
}

void slots_done(struct slots *s, uint64_t n)
{
    struct slot *slot = slots_at(s, n);
    assert(slot->state == SLOT_FLYING || slot->state == SLOT_ASKED);
    s->dead -= slot->state == SLOT_ASKED;
    slot->state = SLOT_DONE;
    if (slot->follower != SLOTS_NONE && slots_at(s, slot->follower)->state == SLOT_BLOCKED)
        become_ready(s, slot->follower);
}

/* --- keys --- */

/* The last slot before `n` with its key that is not given back; SLOTS_NONE. Slots are given back from the
 * oldest on, so a place's chain is cut off at its end only: at the first one below the head. */
static uint64_t same_key_before(const struct slots *s, const struct slot *slot)
{
    uint64_t n = slot->older;
    while (n != SLOTS_NONE && n >= s->head && slots_at(s, n)->key != slot->key)
        n = slots_at(s, n)->older;
    return n != SLOTS_NONE && n >= s->head ? n : SLOTS_NONE;
}

/* Puts the last slot, which has neither state nor place yet, behind the one with the same key. */
static void place(struct slots *s, uint64_t n)
{
    struct slot *slot = slots_at(s, n);
    slot->older = slot->follower = SLOTS_NONE;
    uint64_t before = SLOTS_NONE;
    if (slot->keyed) {
        uint64_t *newest = &s->newest[slot->key % s->capacity];
        slot->older = *newest;
        *newest = n;
        before = same_key_before(s, slot);
    }
    if (before == SLOTS_NONE || slots_at(s, before)->state == SLOT_DONE) {
        become_ready(s, n);
    } else {
        slot->state = SLOT_BLOCKED;
        slots_at(s, before)->follower = n;
    }
}

uint64_t slots_admit(struct slots *s, struct stream_position end, bool keyed, uint64_t key)
{
    assert(!slots_full(s) && end.bytes > s->end.bytes);
    uint64_t n = s->tail++;
    *slots_at(s, n) = (struct slot){.start = s->end, .end = end, .keyed = keyed, .key = key};
    s->end = end;
    place(s, n);
    return n;
}

/* --- which one --- */

/* One after the other, also if there were more lanes when they were admitted. */
static uint64_t next_in_turn(const struct slots *s)
{
    for (uint64_t n = s->head; n < s->tail; n++) {
        if (slots_at(s, n)->state != SLOT_DONE)
            return slots_at(s, n)->state == SLOT_READY ? n : SLOTS_NONE;
    }
    return SLOTS_NONE;
}

uint64_t slots_next(struct slots *s)
{
    if (s->ready == 0)
        return SLOTS_NONE;
    if (s->limit == 1)
        return next_in_turn(s);
    while (slots_at(s, s->first)->state != SLOT_READY)
        s->first++;
    return s->first;
}

uint64_t slots_find(const struct slots *s, enum slot_state state)
{
    for (uint64_t n = s->head; n < s->tail; n++) {
        if (slots_at(s, n)->state == state)
            return n;
    }
    return SLOTS_NONE;
}

void slots_shrink(struct slots *s, uint64_t n, struct stream_position end)
{
    assert(n + 1 == s->tail && end.bytes > slots_at(s, n)->start.bytes);
    assert(end.bytes <= slots_at(s, n)->end.bytes);
    slots_at(s, n)->end = s->end = end;
}

/* --- time --- */

void slots_wake(struct slots *s, uint64_t now_ns)
{
    if (now_ns < s->due_ns)
        return;
    s->due_ns = NEVER;
    for (uint64_t n = s->head; n < s->tail && s->resting > 0; n++) {
        struct slot *slot = slots_at(s, n);
        if (slot->state != SLOT_RESTING)
            continue;
        if (slot->due_ns > now_ns) {
            s->due_ns = min_u64(s->due_ns, slot->due_ns);
            continue;
        }
        s->resting--;
        become_ready(s, n);
    }
}

void slots_hurry(struct slots *s, uint64_t due_ns)
{
    for (uint64_t n = s->head; n < s->tail && s->resting > 0; n++)
        slots_at(s, n)->due_ns = min_u64(slots_at(s, n)->due_ns, due_ns);
    if (s->resting > 0)
        s->due_ns = min_u64(s->due_ns, due_ns);
}

bool slots_free(struct slots *s, struct stream_position *to)
{
    uint64_t head = s->head;
    for (; s->head < s->tail && slots_at(s, s->head)->state == SLOT_DONE; s->head++)
        *to = slots_at(s, s->head)->end;
    s->first = max_u64(s->first, s->head);
    return s->head > head;
}

/* --- change --- */

static void move(struct slots *s, struct slots *to)
{
    for (uint64_t n = s->head; n < s->tail; n++)
        to->ring[n % to->capacity] = *slots_at(s, n);
    struct slots old = *s;
    s->ring = to->ring;
    s->newest = to->newest;
    s->capacity = to->capacity;
    to->ring = old.ring;
    to->newest = old.newest;
}

/* DONE and ASKED stay so; the others begin anew. Nothing is FLYING. */
static void begin_anew(struct slots *s, uint64_t n)
{
    struct slot *slot = slots_at(s, n);
    enum slot_state before = slot->state;
    assert(before != SLOT_FLYING);
    if (before == SLOT_DONE)
        return; /* nobody waits for it, whatever its key is now */
    place(s, n);
    slot->refusals = 0;
    if (before == SLOT_ASKED)
        slots_ask(s, n);
}

void slots_change(struct slots *s, struct slots *other,
                  bool (*rekey)(void *context, const struct slot *slot, uint64_t *key), void *context)
{
    uint32_t limit = other->limit;
    if (other->capacity > s->capacity)
        move(s, other);
    s->limit = limit;
    s->first = s->head;
    s->ready = s->resting = s->dead = 0;
    s->due_ns = NEVER;
    for (uint32_t i = 0; i < s->capacity; i++)
        s->newest[i] = SLOTS_NONE;
    for (uint64_t n = s->head; n < s->tail; n++) {
        struct slot *slot = slots_at(s, n);
        if (rekey)
            slot->keyed = rekey(context, slot, &slot->key);
        begin_anew(s, n);
    }
}
