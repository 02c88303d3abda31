/* What the tests of the simulated disk share: a disk, its blocking calls, and one io.
 *
 *     f_… blocking calls ──▶ ┐
 *                            ├─ /store of one disk ──▶ crash, process end, save …
 *     s_… one io's seam  ──▶ ┘ */
#ifndef PURE_TESTS_UNIT_DISK_RIG_H
#define PURE_TESTS_UNIT_DISK_RIG_H

#include "tests/sim/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define SEEDS 1000
#define BYTES 4096

struct rig {
    struct sim *sim;
    struct sim_disk *disk;
    struct files *files;
    struct io *io;
    struct sim_disk_policy policy;
    int store; /* descriptor of the directory */
    unsigned completions;
    uint8_t old[BYTES], new[BYTES];
};

static inline void rig_open(struct rig *r, uint64_t seed)
{
    r->sim = sim_new(seed);
    r->disk = sim_disk_new(r->sim);
    r->files = sim_disk_files(r->disk);
    r->policy = sim_disk_default;
    sim_host_disk(r->sim, "10.0.0.1", r->disk);
    r->io = sim_io(r->sim, "10.0.0.1");
    sim_disk_make_directory(r->disk, "/store");
    r->store = r->files->backend->open(r->files, AT_FDCWD, "/store", O_RDONLY | O_DIRECTORY, 0);
    assert_true(r->store >= SIM_FIRST_FD);
    memset(r->old, 'o', sizeof r->old);
    memset(r->new, 'n', sizeof r->new);
    r->completions = 0;
}

static inline void rig_close(struct rig *r)
{
    sim_free(r->sim);
}

/* --- blocking --- */

static inline int f_open(struct rig *r, const char *name, int flags)
{
    return r->files->backend->open(r->files, r->store, name, flags, 0600);
}

static inline int f_create(struct rig *r, const char *name)
{
    int fd = f_open(r, name, O_RDWR | O_CREAT | O_EXCL);
    assert_true(fd >= 0);
    return fd;
}

static inline int64_t f_write(struct rig *r, int fd, const void *data, uint64_t size, uint64_t offset)
{
    return r->files->backend->write(r->files, fd, data, size, offset);
}

static inline int64_t f_read(struct rig *r, int fd, void *data, uint64_t size, uint64_t offset)
{
    return r->files->backend->read(r->files, fd, data, size, offset);
}

static inline int f_sync(struct rig *r, int fd)
{
    return r->files->backend->sync(r->files, fd);
}

static inline int f_close(struct rig *r, int fd)
{
    return r->files->backend->close(r->files, fd);
}

static inline bool there(struct rig *r, const char *path)
{
    uint8_t *bytes;
    size_t size;
    bool found = sim_disk_read(r->disk, path, &bytes, &size);
    if (found)
        free(bytes);
    return found;
}

/* Whether a file's bytes are these. */
static inline bool holds(struct rig *r, const char *path, const void *expected, size_t expected_size)
{
    uint8_t *bytes;
    size_t size;
    if (!sim_disk_read(r->disk, path, &bytes, &size))
        return false;
    bool same = size == expected_size && memcmp(bytes, expected, size) == 0;
    free(bytes);
    return same;
}

/* A durable file. */
static inline int make_file(struct rig *r, const char *name, const void *bytes, size_t size)
{
    int fd = f_create(r, name);
    assert_int_equal(f_write(r, fd, bytes, size, 0), size);
    assert_int_equal(f_sync(r, fd), 0);
    assert_int_equal(f_sync(r, r->store), 0);
    return fd;
}

/* --- the seam --- */

struct operation {
    struct io_op op;
    struct rig *rig;
    bool over;
    int result;
    unsigned order;
};

static inline void over(struct io_op *op, int result, bool more)
{
    struct operation *o = container_of(op, struct operation, op);
    assert_false(more);
    o->over = true;
    o->result = result;
    o->order = ++o->rig->completions;
}

static inline void turn(struct rig *r)
{
    int count = io_wait(r->io, NEVER);
    assert_true(count >= 0);
    if (count == 0)
        assert_true(sim_advance(r->sim));
}

static inline int run(struct rig *r, struct operation *o)
{
    for (unsigned i = 0; i < 1000 && !o->over; i++)
        turn(r);
    assert_true(o->over);
    return o->result;
}

static inline void start(struct rig *r, struct operation *o, enum io_kind kind, int fd, void *data,
                         size_t size, uint64_t offset)
{
    *o = (struct operation){.rig = r};
    io_prepare_file(&o->op, kind, fd, data, (uint32_t)size, offset, over);
    io_queue(r->io, &o->op);
}

static inline int s_file(struct rig *r, enum io_kind kind, int fd, void *data, size_t size, uint64_t offset)
{
    struct operation o;
    start(r, &o, kind, fd, data, size, offset);
    return run(r, &o);
}

static inline int s_name(struct rig *r, enum io_kind kind, const char *name, int flags)
{
    struct operation o = {.rig = r};
    io_prepare_name(&o.op, kind, r->store, name, flags, 0600, over);
    io_queue(r->io, &o.op);
    return run(r, &o);
}

static inline int s_close(struct rig *r, int fd)
{
    struct operation o = {.rig = r};
    io_prepare(&o.op, IO_CLOSE, fd, over);
    io_queue(r->io, &o.op);
    return run(r, &o);
}

#endif
