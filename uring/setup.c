#include "uring/ring.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

const struct uring_options uring_defaults = {
    .entries = 256, .completions = 4096, .buffers = 64, .buffer_bytes = 64 * 1024 + 128};

/* All that a ring of ours may do. */
static const struct {
    uint8_t opcode;
    const char *name;
} operations[] = {
    {IORING_OP_ACCEPT, "ACCEPT"},     {IORING_OP_CONNECT, "CONNECT"},
    {IORING_OP_RECV, "RECV"},         {IORING_OP_SEND, "SEND"},
    {IORING_OP_SENDMSG, "SENDMSG"},   {IORING_OP_RECVMSG, "RECVMSG"},
    {IORING_OP_READ, "READ"},         {IORING_OP_POLL_ADD, "POLL_ADD"},
    {IORING_OP_CLOSE, "CLOSE"},       {IORING_OP_ASYNC_CANCEL, "ASYNC_CANCEL"},
    {IORING_OP_OPENAT, "OPENAT"},     {IORING_OP_FALLOCATE, "FALLOCATE"},
    {IORING_OP_WRITE, "WRITE"},       {IORING_OP_FSYNC, "FSYNC"},
    {IORING_OP_UNLINKAT, "UNLINKAT"},
};

static const struct {
    unsigned feature;
    const char *name;
} features[] = {
    {IORING_FEAT_NODROP, "NODROP"},      {IORING_FEAT_SUBMIT_STABLE, "SUBMIT_STABLE"},
    {IORING_FEAT_RW_CUR_POS, "CUR_POS"}, {IORING_FEAT_FAST_POLL, "FAST_POLL"},
    {IORING_FEAT_EXT_ARG, "EXT_ARG"},    {IORING_FEAT_NATIVE_WORKERS, "NATIVE_WORKERS"},
    {IORING_FEAT_CQE_SKIP, "CQE_SKIP"},
};

/* R_DISABLED: restrictions can only be set on a disabled ring, and SINGLE_ISSUER binds a ring to the thread
 * that enables it. DEFER_TASKRUN: completions are made when we enter, all together, on this thread (and what
 * COOP_TASKRUN would save, the interrupting of our thread, it saves as well). TASKRUN_FLAG: the kernel says
 * when entering is of use. SUBMIT_ALL: a bad operation does not hold up those behind it. */
#define RING_FLAGS                                                                       \
    (IORING_SETUP_R_DISABLED | IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN | \
     IORING_SETUP_TASKRUN_FLAG | IORING_SETUP_SUBMIT_ALL | IORING_SETUP_CQSIZE | IORING_SETUP_CLAMP)

static void append_name(char *names, size_t size, const char *name)
{
    size_t used = strlen(names);
    snprintf(names + used, size - used, "%s%s", used ? ", " : "", name);
}

int ring_missing(struct io_uring *ring, char *names, size_t size)
{
    names[0] = '\0';
    for (size_t i = 0; i < ARRAY_SIZE(features); i++) {
        if (!(ring->features & features[i].feature))
            append_name(names, size, features[i].name);
    }
    struct io_uring_probe *probe =
        calloc(1, sizeof *probe + IORING_OP_LAST * sizeof(struct io_uring_probe_op));
    if (!probe)
        return -ENOMEM;
    int error = io_uring_register_probe(ring, probe, IORING_OP_LAST);
    for (size_t i = 0; error == 0 && i < ARRAY_SIZE(operations); i++) {
        if (!io_uring_opcode_supported(probe, operations[i].opcode))
            append_name(names, size, operations[i].name);
    }
    free(probe);
    return error;
}

/* The kernel does with threads of its own (iou-wrk-…) what would block: of ours, most operations on files. It
 * holds this limit for each thread that uses the ring (since 5.16 whichever made it), and on each NUMA node.
 * Left alone, it would start four a processor.
 *
 * What may never end, or does for all it knows ("unbounded"), has another limit, which stays at RLIMIT_NPROC.
 * Durable writes are there, as IOSQE_ASYNC sends them off before anybody looks at their file: there are as
 * many threads for them as writes in flight. Nothing else of ours is, but when the kernel cannot poll a
 * socket; and then one that waits must not keep others, or a write, waiting. */
static int limit_workers(struct io_uring *ring)
{
    unsigned limits[2] = {URING_FILE_WORKERS, 0};
    return io_uring_register_iowq_max_workers(ring, limits);
}

/* Once the ring is enabled, whatever is not named here is refused (EACCES): other operations, other flags,
 * and all registering. */
static int restrict_ring(struct io_uring *ring)
{
    struct io_uring_restriction list[ARRAY_SIZE(operations) + 1] = {{0}};
    for (size_t i = 0; i < ARRAY_SIZE(operations); i++) {
        list[i].opcode = IORING_RESTRICTION_SQE_OP;
        list[i].sqe_op = operations[i].opcode;
    }
    list[ARRAY_SIZE(operations)].opcode = IORING_RESTRICTION_SQE_FLAGS_ALLOWED;
    list[ARRAY_SIZE(operations)].sqe_flags = IOSQE_BUFFER_SELECT | IOSQE_CQE_SKIP_SUCCESS | IOSQE_ASYNC;
    return io_uring_register((unsigned)ring->ring_fd, IORING_REGISTER_RESTRICTIONS, list, ARRAY_SIZE(list));
}

/* Here and above the plain call: liburing 2.3 declares wrappers for the two, but its library lacks them. */
int ring_enable(struct io_uring *ring)
{
    return io_uring_register((unsigned)ring->ring_fd, IORING_REGISTER_ENABLE_RINGS, NULL, 0);
}

int ring_set_up(struct io_uring *ring, struct buffers *buffers, const struct uring_options *options)
{
    struct io_uring_params params = {.flags = RING_FLAGS, .cq_entries = options->completions};
    int error = io_uring_queue_init_params(options->entries, ring, &params);
    if (error < 0)
        return error;
    char missing[256];
    error = ring_missing(ring, missing, sizeof missing);
    if (error == 0)
        error = missing[0] ? -EOPNOTSUPP : restrict_ring(ring);
    if (error == 0)
        error = limit_workers(ring);
    if (error == 0)
        error = buffers_init(buffers, ring, options->buffers, options->buffer_bytes);
    if (error < 0)
        io_uring_queue_exit(ring);
    return error;
}

void ring_tear_down(struct io_uring *ring, struct buffers *buffers)
{
    io_uring_queue_exit(ring);
    buffers_dispose(buffers);
}
