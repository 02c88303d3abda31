/* What the seam promises of files, asked of all three back ends. Of the simulated one, test_sim_disk.c asks
 * more. */
#include "core/files.h"
#include "tests/sim/disk.h"
#include "tests/unit/seam_world.h"
#include "tests/unit/temp_directory.h"

#include <errno.h>
#include <sys/syscall.h>

#define BLOCK 65536

/* An io, and a directory for it to work in. */
struct store {
    struct world w;
    struct files *files; /* the same disk as calls that block */
    int directory;
};

/* One operation and what came of it. */
struct probe {
    struct io_op op;
    int result;
    bool over;
};

static void done(struct io_op *op, int result, bool more)
{
    struct probe *p = container_of(op, struct probe, op);
    assert_false(more);
    assert_false(p->over);
    assert_false(op->in_flight);
    p->result = result;
    p->over = true;
}

static void open_simulated_disk(struct store *s)
{
    struct sim_disk *disk = sim_disk_new(s->w.sim);
    sim_host_disk(s->w.sim, "127.0.0.1", disk);
    sim_disk_make_directory(disk, "/store");
    s->files = sim_disk_files(disk);
    s->directory = s->files->backend->open(s->files, AT_FDCWD, "/store", O_RDONLY | O_DIRECTORY, 0);
    assert_true(s->directory >= 0);
}

static void open_store(struct store *s, void **state)
{
    open_world(&s->w, back_end_of(state));
    if (s->w.sim) {
        open_simulated_disk(s);
        return;
    }
    s->files = files_system();
    s->directory = temp_directory();
}

static void close_store(struct store *s)
{
    assert_int_equal(s->files->backend->close(s->files, s->directory), 0);
    if (s->w.sim)
        sim_free(s->w.sim);
    else
        io_dispose(s->w.io);
}

static void submit(struct store *s, struct probe *p, enum io_kind kind, int fd, void *data, uint32_t size,
                   uint64_t offset)
{
    *p = (struct probe){0};
    io_prepare_file(&p->op, kind, fd, data, size, offset, done);
    io_queue(s->w.io, &p->op);
    assert_false(p->over); /* never from inside io_queue */
}

static int run(struct store *s, enum io_kind kind, int fd, void *data, uint32_t size, uint64_t offset)
{
    struct probe p;
    submit(s, &p, kind, fd, data, size, offset);
    wait_until(&s->w, &p.over);
    return p.result;
}

static int run_name(struct store *s, enum io_kind kind, int directory, const char *name, int flags)
{
    struct probe p = {0};
    io_prepare_name(&p.op, kind, directory, name, flags, 0600, done);
    io_queue(s->w.io, &p.op);
    wait_until(&s->w, &p.over);
    return p.result;
}

static int make(struct store *s, const char *name)
{
    int fd = run_name(s, IO_FILE_OPEN, s->directory, name, O_RDWR | O_CREAT | O_EXCL);
    assert_true(fd >= 0);
    return fd;
}

static void run_close(struct store *s, int fd)
{
    struct probe p = {0};
    io_prepare(&p.op, IO_CLOSE, fd, done);
    io_queue(s->w.io, &p.op);
    wait_until(&s->w, &p.over);
    assert_int_equal(p.result, 0);
}

/* A write may be short: the rest follows. */
static void write_all(struct store *s, int fd, const void *data, uint32_t size, uint64_t offset)
{
    for (uint32_t put = 0; put < size;) {
        int result = run(s, IO_FILE_WRITE, fd, (uint8_t *)data + put, size - put, offset + put);
        assert_in_range(result, 1, size - put);
        put += (uint32_t)result;
    }
}

static uint8_t pattern(size_t i)
{
    return (uint8_t)(i * 31 + (i >> 8));
}

/* ---- The tests ---- */

static void a_file_is_made_once(void **state)
{
    struct store s;
    open_store(&s, state);
    int fd = make(&s, "a");
    if (!s.w.sim) {
        struct stat status;
        assert_int_equal(fstat(fd, &status), 0);
        assert_int_equal(status.st_mode & 07777, 0600);
        assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    }
    assert_int_equal(run_name(&s, IO_FILE_OPEN, s.directory, "a", O_RDWR | O_CREAT | O_EXCL), -EEXIST);
    run_close(&s, fd);
    fd = run_name(&s, IO_FILE_OPEN, s.directory, "a", O_RDONLY);
    assert_true(fd >= 0);
    run_close(&s, fd);
    close_store(&s);
}

static void what_is_not_there_is_not_found(void **state)
{
    struct store s;
    open_store(&s, state);
    assert_int_equal(run_name(&s, IO_FILE_OPEN, s.directory, "a", O_RDWR), -ENOENT);
    assert_int_equal(run_name(&s, IO_FILE_UNLINK, s.directory, "a", 0), -ENOENT);
    close_store(&s);
}

static void space_that_is_set_aside_reads_as_zeros(void **state)
{
    struct store s;
    static uint8_t got[2 * BLOCK];
    open_store(&s, state);
    int fd = make(&s, "a");
    write_all(&s, fd, "head", 4, 0);
    int result = run(&s, IO_FILE_ALLOCATE, fd, NULL, 0, BLOCK);
    if (result != -EOPNOTSUPP) { /* NFS before 4.2, ZFS */
        assert_int_equal(result, 0);
        assert_int_equal(s.files->backend->size(s.files, fd), BLOCK);
        memset(got, 1, sizeof got);
        assert_int_equal(run(&s, IO_FILE_READ, fd, got, sizeof got, 0), BLOCK);
        assert_memory_equal(got, "head", 4);
        for (size_t i = 4; i < BLOCK; i++)
            assert_int_equal(got[i], 0);
    }
    run_close(&s, fd);
    close_store(&s);
}

static void bytes_are_read_where_they_were_written(void **state)
{
    struct store s;
    static uint8_t bytes[BLOCK], got[BLOCK];
    open_store(&s, state);
    int fd = make(&s, "a");
    for (size_t i = 0; i < BLOCK; i++)
        bytes[i] = pattern(i);
    write_all(&s, fd, bytes + 1000, BLOCK - 1000, 1000); /* the end first: offsets, not a position */
    write_all(&s, fd, bytes, 1000, 0);
    assert_int_equal(run(&s, IO_FILE_READ, fd, got, BLOCK, 0), BLOCK);
    assert_memory_equal(got, bytes, BLOCK);
    assert_int_equal(run(&s, IO_FILE_READ, fd, got, 77, 501), 77);
    assert_memory_equal(got, bytes + 501, 77);
    assert_int_equal(s.files->backend->read(s.files, fd, got, BLOCK, 0), BLOCK);
    assert_memory_equal(got, bytes, BLOCK);
    run_close(&s, fd);
    close_store(&s);
}

static void a_read_is_short_at_the_end_and_empty_behind_it(void **state)
{
    struct store s;
    uint8_t got[100];
    open_store(&s, state);
    int fd = make(&s, "a");
    write_all(&s, fd, "0123456789", 10, 0);
    assert_int_equal(run(&s, IO_FILE_READ, fd, got, sizeof got, 7), 3);
    assert_memory_equal(got, "789", 3);
    assert_int_equal(run(&s, IO_FILE_READ, fd, got, sizeof got, 10), 0);
    assert_int_equal(run(&s, IO_FILE_READ, fd, got, sizeof got, 1000000), 0);
    run_close(&s, fd);
    close_store(&s);
}

static void files_and_directories_are_synced(void **state)
{
    struct store s;
    open_store(&s, state);
    int fd = make(&s, "a");
    assert_int_equal(run(&s, IO_FILE_SYNC, fd, NULL, 0, 0), 0);
    assert_int_equal(run(&s, IO_FILE_SYNC, s.directory, NULL, 0, 0), 0);
    run_close(&s, fd);
    close_store(&s);
}

static void what_is_unlinked_is_gone_but_for_those_who_have_it_open(void **state)
{
    struct store s;
    uint8_t got[4];
    open_store(&s, state);
    int fd = make(&s, "a");
    write_all(&s, fd, "here", 4, 0);
    assert_int_equal(run_name(&s, IO_FILE_UNLINK, s.directory, "a", 0), 0);
    assert_int_equal(run_name(&s, IO_FILE_OPEN, s.directory, "a", O_RDONLY), -ENOENT);
    assert_int_equal(run(&s, IO_FILE_READ, fd, got, 4, 0), 4);
    assert_memory_equal(got, "here", 4);
    run_close(&s, fd);
    close_store(&s);
}

static void a_descriptor_refuses_what_it_was_not_opened_for(void **state)
{
    struct store s;
    uint8_t got[4];
    open_store(&s, state);
    run_close(&s, make(&s, "a"));
    int fd = run_name(&s, IO_FILE_OPEN, s.directory, "a", O_RDONLY);
    assert_int_equal(run(&s, IO_FILE_WRITE, fd, "a", 1, 0), -EBADF);
    assert_int_equal(run(&s, IO_FILE_ALLOCATE, fd, NULL, 0, 100), -EBADF);
    run_close(&s, fd);
    fd = run_name(&s, IO_FILE_OPEN, s.directory, "a", O_WRONLY);
    assert_int_equal(run(&s, IO_FILE_READ, fd, got, 4, 0), -EBADF);
    run_close(&s, fd);
    if (!s.w.sim) /* which holds a number that is nobody's for a mistake of ours */
        assert_int_equal(run(&s, IO_FILE_SYNC, -1, NULL, 0, 0), -EBADF);
    close_store(&s);
}

static void many_may_be_in_flight_on_a_descriptor(void **state)
{
    enum { MANY = 40 };
    struct store s;
    static struct probe writes[MANY], reads[MANY];
    static uint8_t bytes[MANY * 512], got[MANY * 512];
    open_store(&s, state);
    int fd = make(&s, "a");
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = pattern(i);
    for (size_t i = 0; i < MANY; i++)
        submit(&s, &writes[i], IO_FILE_WRITE, fd, bytes + i * 512, 512, i * 512);
    for (size_t i = 0; i < MANY; i++) {
        wait_until(&s.w, &writes[i].over);
        assert_int_equal(writes[i].result, 512);
    }
    for (size_t i = 0; i < MANY; i++)
        submit(&s, &reads[i], IO_FILE_READ, fd, got + i * 512, 512, i * 512);
    for (size_t i = 0; i < MANY; i++) {
        wait_until(&s.w, &reads[i].over);
        assert_int_equal(reads[i].result, 512);
    }
    assert_memory_equal(got, bytes, sizeof bytes);
    run_close(&s, fd);
    close_store(&s);
}

static void what_is_cancelled_ends_all_the_same(void **state)
{
    enum { MANY = 40 };
    struct store s;
    static struct probe writes[MANY];
    static uint8_t bytes[BLOCK];
    open_store(&s, state);
    int fd = make(&s, "a");
    for (unsigned later = 0; later < 2; later++) {
        for (size_t i = 0; i < MANY; i++)
            submit(&s, &writes[i], IO_FILE_WRITE, fd, bytes, BLOCK, i * BLOCK);
        if (later)
            assert_true(io_wait(s.w.io, 0) >= 0);
        for (size_t i = 0; i < MANY; i++)
            io_cancel(s.w.io, &writes[i].op);
        for (size_t i = 0; i < MANY; i++) {
            wait_until(&s.w, &writes[i].over);
            int result = writes[i].result;
            assert_true((result > 0 && result <= BLOCK) || result == -ECANCELED || result == -EINTR);
        }
    }
    write_all(&s, fd, "goes on", 7, 0);
    run_close(&s, fd);
    close_store(&s);
}

/* An io with nothing in flight may sleep elsewhere: what is in flight has to end its waits. */
static void the_end_of_an_operation_ends_a_wait_without_a_deadline(void **state)
{
    struct store s;
    struct probe p;
    open_store(&s, state);
    int fd = make(&s, "a");
    for (unsigned i = 0; i < 20; i++) {
        submit(&s, &p, i % 2 ? IO_FILE_SYNC : IO_FILE_WRITE, fd, "a", 1, i);
        assert_true(io_wait(s.w.io, 0) >= 0); /* the next one has nothing to hand over */
        for (unsigned n = 0; n < WAITS_MAX && !p.over; n++) {
            if (s.w.sim)
                wait_once(&s.w);
            else
                assert_true(io_wait(s.w.io, NEVER) >= 0);
        }
        assert_int_equal(p.result, i % 2 ? 0 : 1);
    }
    run_close(&s, fd);
    close_store(&s);
}

/* ---- Durability, as far as one can see without losing power: the page cache has nothing left to write ----
 */

/* Pages of the file that are dirty or being written; -1: this kernel does not tell (cachestat: Linux 6.5). */
static int64_t unwritten_pages(int fd)
{
    struct {
        uint64_t offset, size;
    } range = {0, 0};
    struct {
        uint64_t cached, dirty, being_written, evicted, lately_evicted;
    } pages;
    enum { CACHESTAT = 451 }; /* newer than the headers of Debian 12 */
    if (syscall(CACHESTAT, fd, &range, &pages, 0) < 0)
        return -1;
    return (int64_t)(pages.dirty + pages.being_written);
}

/* Not so in memory file systems, nor where the kernel does not tell. */
static bool tells_what_is_unwritten(struct store *s)
{
    static const uint8_t bytes[BLOCK] = {1};
    int fd = make(s, "plain");
    assert_int_equal(s->files->backend->write(s->files, fd, bytes, BLOCK, 0), BLOCK);
    bool plain = unwritten_pages(fd) > 0;
    assert_int_equal(s->files->backend->sync(s->files, fd), 0);
    bool synced = unwritten_pages(fd) == 0;
    run_close(s, fd);
    return plain && synced;
}

static void a_write_has_reached_the_disk_when_it_completes(void **state)
{
    struct store s;
    static uint8_t bytes[BLOCK];
    open_store(&s, state);
    if (!s.w.sim && tells_what_is_unwritten(&s)) {
        int fd = make(&s, "a");
        for (unsigned i = 0; i < 5; i++) {
            write_all(&s, fd, bytes, BLOCK, i * (uint64_t)BLOCK);
            assert_int_equal(unwritten_pages(fd), 0);
        }
        assert_int_equal(s.files->backend->write(s.files, fd, bytes, BLOCK, 0), BLOCK);
        assert_int_equal(run(&s, IO_FILE_SYNC, fd, NULL, 0, 0), 0);
        assert_int_equal(unwritten_pages(fd), 0);
        run_close(&s, fd);
    }
    close_store(&s);
}

/* Behind what was queued before it, and as durable. */
static void a_write_may_be_waited_for_in_the_call(void **state)
{
    struct store s;
    static uint8_t bytes[2 * BLOCK], got[2 * BLOCK];
    open_store(&s, state);
    bool tells = !s.w.sim && tells_what_is_unwritten(&s);
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = pattern(i);
    int fd = make(&s, "a");
    struct probe before, here = {0};
    submit(&s, &before, IO_FILE_WRITE, fd, bytes, BLOCK, 0);
    io_prepare_file(&here.op, IO_FILE_WRITE, fd, bytes + BLOCK, BLOCK, BLOCK, done);
    here.op.file.flags = IO_FILE_HERE;
    io_queue(s.w.io, &here.op);
    assert_false(here.over);
    wait_until(&s.w, &here.over);
    assert_int_equal(here.result, BLOCK);
    wait_until(&s.w, &before.over);
    assert_int_equal(before.result, BLOCK);
    assert_true(!tells || unwritten_pages(fd) == 0);
    assert_int_equal(run(&s, IO_FILE_READ, fd, got, sizeof got, 0), sizeof got);
    assert_memory_equal(got, bytes, sizeof bytes);
    here.over = false;
    io_prepare_file(&here.op, IO_FILE_WRITE, s.directory, bytes, 1, 0, done);
    here.op.file.flags = IO_FILE_HERE;
    io_queue(s.w.io, &here.op);
    wait_until(&s.w, &here.over);
    assert_int_equal(here.result, -EBADF); /* a failure is its result */
    run_close(&s, fd);
    close_store(&s);
}

static const struct CMUnitTest promises[] = {
    cmocka_unit_test(a_file_is_made_once),
    cmocka_unit_test(what_is_not_there_is_not_found),
    cmocka_unit_test(space_that_is_set_aside_reads_as_zeros),
    cmocka_unit_test(bytes_are_read_where_they_were_written),
    cmocka_unit_test(a_read_is_short_at_the_end_and_empty_behind_it),
    cmocka_unit_test(files_and_directories_are_synced),
    cmocka_unit_test(what_is_unlinked_is_gone_but_for_those_who_have_it_open),
    cmocka_unit_test(a_descriptor_refuses_what_it_was_not_opened_for),
    cmocka_unit_test(many_may_be_in_flight_on_a_descriptor),
    cmocka_unit_test(what_is_cancelled_ends_all_the_same),
    cmocka_unit_test(the_end_of_an_operation_ends_a_wait_without_a_deadline),
    cmocka_unit_test(a_write_has_reached_the_disk_when_it_completes),
    cmocka_unit_test(a_write_may_be_waited_for_in_the_call),
};

int main(void)
{
    temp_make();
    return run_promises(promises, ARRAY_SIZE(promises));
}
