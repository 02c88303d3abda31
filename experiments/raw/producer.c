#include "experiments/raw/producer.h"

/* Whether nothing may be pushed now; a notice makes the task run again when that has changed. */
static bool must_wait(struct producer *p)
{
    struct outlet *o = p->outlet;
    if (p->run->one_in_flight || p->queued == p->goal)
        return outlet_wait(o, 0);
    record_queue_see_freed(&o->queue);
    return outlet_over(o) && outlet_wait(o, o->queue.capacity / 4);
}

static void push_batch(struct producer *p)
{
    uint64_t batch = p->run->one_in_flight ? 1 : p->run->batch;
    for (uint64_t n = min_u64(batch, p->goal - p->queued); n > 0; n--) {
        raw_put_number(p->record, p->queued + 1);
        if (outlet_queue(p->outlet, p->record, p->run->record_bytes) != 0)
            break; /* full: what fitted goes, must_wait sees to the rest */
        p->queued++;
    }
    if (p->run->one_in_flight)
        p->pushed_ns = raw_now_ns();
    outlet_push(p->outlet);
}

static void note_trip(struct producer *p)
{
    if (p->pushed_ns > 0 && p->queued > p->run->warm)
        raw_trips_add(&p->trips, raw_now_ns() - p->pushed_ns);
    p->pushed_ns = 0;
}

/* All of this phase is stored. Whether another follows. */
static void next_phase(struct producer *p)
{
    bool all = p->goal == raw_total(p->run);
    p->goal = raw_total(p->run);
    if (all)
        raw_send_ends(p->sent);
    p->phase(p->context, all);
    if (all)
        raw_trips_end(&p->trips, p->sent);
    else
        raw_send_begins(p->sent);
    p->done = all;
}

static bool run_producer(struct task *task, uint64_t now_ns)
{
    struct producer *p = container_of(task, struct producer, task);
    (void)now_ns;
    if (p->done || must_wait(p))
        return false;
    if (p->run->one_in_flight)
        note_trip(p);
    if (p->queued == p->goal)
        next_phase(p);
    else
        push_batch(p);
    return true; /* also when it is done: its loop is not to sleep then */
}

int producer_init(struct producer *p, const struct raw_run *run, struct raw_sent *sent, struct outlet *outlet,
                  struct loop *loop)
{
    p->task.run = run_producer;
    p->outlet = outlet;
    p->run = run;
    p->sent = sent;
    p->goal = run->warm;
    memset(p->record, '.', sizeof p->record);
    int error = loop_add(loop, &p->task);
    if (error < 0)
        return raw_failed("the producer's task", error);
    outlet->producer = &loop->board;
    outlet->producer_slot = p->task.slot;
    loop_want(loop, &p->task);
    return raw_trips_init(&p->trips, run);
}
