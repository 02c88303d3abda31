#include "core/io.h"

void io_init(struct io *io, const struct io_backend *backend)
{
    *io = (struct io){.backend = backend};
    io->last = &io->first;
}

static int wait_once(struct io *io, uint64_t deadline_ns)
{
    struct io_op *first = io->first;
    io->first = NULL;
    io->last = &io->first;
    struct io_op *cancels = io->cancels;
    io->cancels = NULL;
    for (struct io_op *op = cancels; op; op = op->cancel_next)
        op->cancelling = false;
    if (deadline_ns > 0) {
        int awake = IO_AWAKE;
        if (!atomic_compare_exchange_strong(&io->sleep, &awake, IO_ASLEEP))
            deadline_ns = 0; /* notified since the last wait */
        else
            counter_add(&io->counters.sleeps, 1);
    }
    return io->backend->wait(io, first, cancels, deadline_ns);
}

int io_wait(struct io *io, uint64_t deadline_ns)
{
    int batch = wait_once(io, deadline_ns), delivered = batch;
    while (io->drains && batch > 0) {
        batch = wait_once(io, 0);
        delivered = batch < 0 ? batch : delivered + batch;
    }
    return delivered;
}

void io_wake(struct io *io)
{
    if (atomic_exchange(&io->sleep, IO_NOTIFIED) == IO_ASLEEP)
        io->backend->kick(io);
}

void io_cancel(struct io *io, struct io_op *op)
{
    if (!op->in_flight || op->cancelling)
        return;
    op->cancelling = true;
    op->cancel_next = io->cancels;
    io->cancels = op;
}

/* The op completed before its cancel was handed over. The list is short: it lives for one step of a loop. */
void io_forget_cancel(struct io *io, struct io_op *op)
{
    struct io_op **at = &io->cancels;
    while (*at != op)
        at = &(*at)->cancel_next;
    *at = op->cancel_next;
    op->cancelling = false;
}
