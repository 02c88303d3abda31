/* The simulated disk: what tests of the journal lean on.
 *
 *     blocking calls ──▶ ┐
 *                        ├─ /store of one disk ──▶ crash, process end, save …
 *     one io's seam  ──▶ ┘ */
#include "tests/sim/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
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
};

static uint8_t old[BYTES], new[BYTES], buffer[4 * BYTES];

static void rig_open(struct rig *r, uint64_t seed)
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
    memset(old, 'o', sizeof old);
    memset(new, 'n', sizeof new);
}

static void rig_close(struct rig *r)
{
    sim_free(r->sim);
}

static void set_policy(struct rig *r)
{
    sim_disk_set(r->disk, &r->policy);
}

/* --- blocking --- */

static int f_open(struct rig *r, const char *name, int flags)
{
    return r->files->backend->open(r->files, r->store, name, flags, 0600);
}

static int f_create(struct rig *r, const char *name)
{
    int fd = f_open(r, name, O_RDWR | O_CREAT | O_EXCL);
    assert_true(fd >= 0);
    return fd;
}

static int64_t f_write(struct rig *r, int fd, const void *data, uint64_t size, uint64_t offset)
{
    return r->files->backend->write(r->files, fd, data, size, offset);
}

static int64_t f_read(struct rig *r, int fd, void *data, uint64_t size, uint64_t offset)
{
    return r->files->backend->read(r->files, fd, data, size, offset);
}

static int f_sync(struct rig *r, int fd)
{
    return r->files->backend->sync(r->files, fd);
}

static int f_close(struct rig *r, int fd)
{
    return r->files->backend->close(r->files, fd);
}

static bool there(struct rig *r, const char *path)
{
    uint8_t *bytes;
    size_t size;
    bool found = sim_disk_read(r->disk, path, &bytes, &size);
    if (found)
        free(bytes);
    return found;
}

/* Whether a file's bytes are these. */
static bool holds(struct rig *r, const char *path, const void *expected, size_t expected_size)
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
static int make_file(struct rig *r, const char *name, const void *bytes, size_t size)
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
    bool over;
    int result;
    unsigned order;
};

static unsigned completions;

static void over(struct io_op *op, int result, bool more)
{
    struct operation *o = container_of(op, struct operation, op);
    assert_false(more);
    o->over = true;
    o->result = result;
    o->order = ++completions;
}

static void turn(struct rig *r)
{
    int count = io_wait(r->io, NEVER);
    assert_true(count >= 0);
    if (count == 0)
        assert_true(sim_advance(r->sim));
}

static int run(struct rig *r, struct operation *o)
{
    for (unsigned i = 0; i < 1000 && !o->over; i++)
        turn(r);
    assert_true(o->over);
    return o->result;
}

static void start(struct rig *r, struct operation *o, enum io_kind kind, int fd, void *data, size_t size,
                  uint64_t offset)
{
    *o = (struct operation){0};
    io_prepare_file(&o->op, kind, fd, data, (uint32_t)size, offset, over);
    io_queue(r->io, &o->op);
}

static int s_file(struct rig *r, enum io_kind kind, int fd, void *data, size_t size, uint64_t offset)
{
    struct operation o;
    start(r, &o, kind, fd, data, size, offset);
    return run(r, &o);
}

static int s_name(struct rig *r, enum io_kind kind, const char *name, int flags)
{
    struct operation o = {0};
    io_prepare_name(&o.op, kind, r->store, name, flags, 0600, over);
    io_queue(r->io, &o.op);
    return run(r, &o);
}

static int s_close(struct rig *r, int fd)
{
    struct operation o = {0};
    io_prepare(&o.op, IO_CLOSE, fd, over);
    io_queue(r->io, &o.op);
    return run(r, &o);
}

/* ---- The tests: durability ---- */

static void what_was_synced_survives_every_crash(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct rig r;
        rig_open(&r, seed);
        int a = make_file(&r, "a", old, 1000);
        assert_int_equal(f_write(&r, a, new, 700, 1000), 700); /* from the middle of a sector */
        sim_disk_crash(r.disk);
        uint8_t *bytes;
        size_t size;
        assert_true(sim_disk_read(r.disk, "/store/a", &bytes, &size));
        assert_true(size >= 1000 && size <= 1700);
        assert_memory_equal(bytes, old, 1000);
        free(bytes);
        rig_close(&r);
    }
}

static void a_durable_write_survives_every_crash_beside_one_that_is_not(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct rig r;
        rig_open(&r, seed);
        int a = make_file(&r, "a", old, 100);
        assert_int_equal(f_write(&r, a, old, 3000, 100), 3000);
        assert_int_equal(s_file(&r, IO_FILE_WRITE, a, new, 1500, 700), 1500);
        sim_disk_crash(r.disk);
        uint8_t *bytes;
        size_t size;
        assert_true(sim_disk_read(r.disk, "/store/a", &bytes, &size));
        assert_true(size >= 2200);
        assert_memory_equal(bytes + 700, new, 1500);
        free(bytes);
        rig_close(&r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_synced_survives_every_crash),
        cmocka_unit_test(a_durable_write_survives_every_crash_beside_one_that_is_not),
    };
    (void)s_name, (void)s_close, (void)there, (void)holds, (void)f_close, (void)f_open, (void)f_read, (void)set_policy, (void)buffer;
    return cmocka_run_group_tests_name("sim_disk", tests, NULL, NULL);
}
