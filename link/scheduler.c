#include "link/scheduler.h"

#include <assert.h>

void scheduler_init(struct scheduler *s, uint32_t quantum)
{
    assert(quantum > 0);
    *s = (struct scheduler){.quantum = quantum};
}

static void append(struct scheduler *s, struct scheduled *e)
{
    e->next = NULL;
    if (s->tail)
        s->tail->next = e;
    else
        s->head = e;
    s->tail = e;
}

static struct scheduled *take_head(struct scheduler *s)
{
    struct scheduled *e = s->head;
    s->head = e->next;
    if (!s->head)
        s->tail = NULL;
    return e;
}

void scheduler_add(struct scheduler *s, struct scheduled *e)
{
    if (e->in_line)
        return;
    e->in_line = true;
    e->deficit = s->quantum;
    append(s, e);
}

struct scheduled *scheduler_head(struct scheduler *s)
{
    return s->head;
}

/* Loops are bounded: a piece is at most a packet, and each pass through the line adds a quantum. */
void scheduler_sent(struct scheduler *s, size_t bytes)
{
    struct scheduled *e = s->head;
    e->deficit -= (int64_t)bytes;
    while (s->head->deficit <= 0) {
        e = take_head(s);
        e->deficit += s->quantum;
        append(s, e);
    }
}

void scheduler_remove_head(struct scheduler *s)
{
    take_head(s)->in_line = false;
}

void scheduler_clear(struct scheduler *s)
{
    while (s->head)
        scheduler_remove_head(s);
}
