/* The simulated disk: failures of single operations, room, locks, times, cancels. */
#include "tests/unit/disk_rig.h"

static uint8_t big[1 << 20];

static void set_policy(struct rig *r)
{
    sim_disk_set(r->disk, &r->policy);
}

/* ---- EIO ---- */

/* Of the sectors of /store/a, those whose first byte is `byte`. */
static unsigned sectors_with(struct rig *r, uint8_t byte)
{
    uint8_t *bytes;
    size_t size;
    unsigned count = 0;
    assert_true(sim_disk_read(r->disk, "/store/a", &bytes, &size));
    for (size_t at = 0; at < size; at += 512)
        count += bytes[at] == byte;
    free(bytes);
    return count;
}

/* A write that is to be made durable, in either way, and fails. */
static void fail_write(struct rig *r, int fd, bool by_sync)
{
    if (by_sync)
        assert_int_equal(f_write(r, fd, r->new, BYTES, 0), BYTES);
    r->policy.write_error = 1000;
    set_policy(r);
    assert_int_equal(s_file(r, by_sync ? IO_FILE_SYNC : IO_FILE_WRITE, fd, r->new, BYTES, 0), -EIO);
    r->policy.write_error = 0;
    set_policy(r);
}

static void what_failed_to_get_there_is_not_made_durable_by_a_later_sync(void **state)
{
    (void)state;
    for (unsigned by_sync = 0; by_sync < 2; by_sync++) {
        unsigned there_count = 0, lost = 0;
        for (uint64_t seed = 0; seed < 100; seed++) {
            struct rig r;
            rig_open(&r, seed);
            int a = make_file(&r, "a", r.old, BYTES);
            r.policy.lost = r.policy.torn = r.policy.garbled = 0; /* crashes lose nothing that is not lost */
            fail_write(&r, a, by_sync);
            assert_int_equal(sectors_with(&r, 'n'), BYTES / 512); /* reads see it all the same */
            assert_int_equal(f_sync(&r, a), 0);
            sim_disk_crash(r.disk);
            there_count += sectors_with(&r, 'n');
            lost += sectors_with(&r, 'o');
            rig_close(&r);
        }
        assert_int_equal(there_count + lost, 100 * BYTES / 512);
        assert_in_range(lost, 300, 500);
    }
}

static void what_failed_to_get_there_is_lost_though_time_passes_and_durable_when_written_again(void **state)
{
    (void)state;
    for (unsigned again = 0; again < 2; again++) {
        struct rig r;
        rig_open(&r, 1);
        int a = make_file(&r, "a", r.old, BYTES);
        fail_write(&r, a, false);
        if (again)
            assert_int_equal(s_file(&r, IO_FILE_WRITE, a, r.new, BYTES, 0), BYTES);
        sim_disk_process_ended(r.disk);
        assert_int_equal(sim_run_for(r.sim, 60 * NS_PER_S), SIM_TIME);
        sim_disk_crash(r.disk);
        assert_int_equal(holds(&r, "/store/a", r.new, BYTES), again > 0);
        rig_close(&r);
    }
}

static void a_failed_sync_of_a_directory_leaves_its_names_open(void **state)
{
    (void)state;
    unsigned kept = 0;
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct rig r;
        rig_open(&r, seed);
        f_create(&r, "a");
        r.policy.write_error = 1000;
        set_policy(&r);
        assert_int_equal(f_sync(&r, r.store), -EIO);
        sim_disk_crash(r.disk);
        kept += there(&r, "/store/a");
        rig_close(&r);
    }
    assert_in_range(kept, 30, 70);
}

static void every_change_and_every_read_may_fail(void **state)
{
    (void)state;
    struct rig r;
    uint8_t got[10];
    rig_open(&r, 1);
    const struct files_backend *b = r.files->backend;
    int a = make_file(&r, "a", r.old, 10);
    r.policy.write_error = r.policy.read_error = 1000;
    set_policy(&r);
    assert_int_equal(s_file(&r, IO_FILE_ALLOCATE, a, NULL, 0, 100), -EIO);
    assert_int_equal(s_file(&r, IO_FILE_READ, a, got, 10, 0), -EIO);
    assert_int_equal(s_name(&r, IO_FILE_OPEN, "b", O_RDWR | O_CREAT), -EIO);
    assert_int_equal(s_name(&r, IO_FILE_UNLINK, "a", 0), -EIO);
    assert_int_equal(f_write(&r, a, r.new, 10, 0), -EIO);
    assert_int_equal(f_read(&r, a, got, 10, 0), -EIO);
    assert_int_equal(b->make_directory(r.files, r.store, "d", 0700), -EIO);
    assert_int_equal(b->list(r.files, r.store, NULL, NULL), -EIO);
    assert_true(there(&r, "/store/a") && !there(&r, "/store/b"));
    assert_int_equal(b->size(r.files, a), 10);
    rig_close(&r);
}

/* ---- Room ---- */

static uint64_t free_bytes(struct rig *r)
{
    uint64_t bytes;
    assert_int_equal(r->files->backend->space(r->files, r->store, &bytes), 0);
    return bytes;
}

static void a_full_disk_takes_what_fits_and_goes_on_when_there_is_room(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, 1);
    r.policy.capacity_bytes = 10000;
    set_policy(&r);
    int a = make_file(&r, "a", r.old, BYTES), b = make_file(&r, "b", r.old, 0);
    assert_int_equal(free_bytes(&r), 10000 - BYTES);
    assert_int_equal(s_file(&r, IO_FILE_ALLOCATE, b, NULL, 0, 6000), -ENOSPC);
    assert_int_equal(s_file(&r, IO_FILE_ALLOCATE, b, NULL, 0, 5000), 0);
    assert_int_equal(free_bytes(&r), 10000 - BYTES - 5000);
    assert_int_equal(s_file(&r, IO_FILE_WRITE, b, r.new, BYTES, 4500), 5000 - 4500 + 10000 - BYTES - 5000);
    assert_int_equal(sim_disk_used(r.disk), 10000);
    assert_int_equal(s_file(&r, IO_FILE_WRITE, b, r.new, BYTES, 9000), -ENOSPC);
    assert_int_equal(s_file(&r, IO_FILE_WRITE, b, r.new, BYTES, 0), BYTES); /* into what it has */
    assert_int_equal(f_write(&r, b, r.new, BYTES, 5904), -ENOSPC);
    assert_int_equal(s_name(&r, IO_FILE_UNLINK, "a", 0), 0);
    assert_int_equal(free_bytes(&r), 0); /* it is open */
    assert_int_equal(s_file(&r, IO_FILE_WRITE, b, r.new, BYTES, 9000), -ENOSPC);
    assert_int_equal(s_close(&r, a), 0);
    assert_int_equal(free_bytes(&r), BYTES);
    assert_int_equal(s_file(&r, IO_FILE_WRITE, b, r.new, 3000, 5904), 3000);
    rig_close(&r);
}

static void space_may_be_refused_though_there_is_room(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, 1);
    int a = make_file(&r, "a", r.old, 10);
    r.policy.no_space = 1000;
    set_policy(&r);
    assert_int_equal(s_file(&r, IO_FILE_ALLOCATE, a, NULL, 0, 100), -ENOSPC);
    assert_int_equal(s_file(&r, IO_FILE_WRITE, a, r.new, 10, 0), -ENOSPC);
    assert_int_equal(s_name(&r, IO_FILE_OPEN, "b", O_RDWR | O_CREAT), -ENOSPC);
    assert_int_equal(f_write(&r, a, r.new, 10, 0), -ENOSPC);
    assert_int_equal(r.files->backend->make_directory(r.files, r.store, "d", 0700), -ENOSPC);
    assert_true(holds(&r, "/store/a", r.old, 10));
    assert_int_equal(s_file(&r, IO_FILE_SYNC, a, NULL, 0, 0), 0);
    assert_int_equal(s_name(&r, IO_FILE_UNLINK, "a", 0), 0);
    rig_close(&r);
}

static void a_disk_may_be_read_only_or_know_no_allocation(void **state)
{
    (void)state;
    struct rig r;
    uint8_t got[10];
    rig_open(&r, 1);
    int a = make_file(&r, "a", r.old, 10);
    r.policy.no_allocate = true;
    set_policy(&r);
    assert_int_equal(s_file(&r, IO_FILE_ALLOCATE, a, NULL, 0, 100), -EOPNOTSUPP);
    r.policy.no_allocate = false;
    r.policy.read_only = true;
    set_policy(&r);
    assert_int_equal(s_file(&r, IO_FILE_ALLOCATE, a, NULL, 0, 100), -EROFS);
    assert_int_equal(s_file(&r, IO_FILE_WRITE, a, r.new, 10, 0), -EROFS);
    assert_int_equal(s_name(&r, IO_FILE_OPEN, "b", O_RDWR | O_CREAT), -EROFS);
    assert_int_equal(s_name(&r, IO_FILE_OPEN, "a", O_RDWR), -EROFS);
    assert_int_equal(s_name(&r, IO_FILE_UNLINK, "a", 0), -EROFS);
    assert_int_equal(r.files->backend->make_directory(r.files, r.store, "d", 0700), -EROFS);
    int reader = s_name(&r, IO_FILE_OPEN, "a", O_RDONLY);
    assert_int_equal(s_file(&r, IO_FILE_READ, reader, got, 10, 0), 10);
    rig_close(&r);
}

/* ---- Short transfers, descriptors, names, locks ---- */

static void the_seams_transfers_may_be_short_and_the_calls_never(void **state)
{
    (void)state;
    struct rig r;
    uint8_t got[BYTES];
    rig_open(&r, 1);
    r.policy.short_write = r.policy.short_read = 1000;
    set_policy(&r);
    int a = make_file(&r, "a", r.old, BYTES);
    assert_int_equal(f_read(&r, a, got, BYTES, 0), BYTES);
    for (unsigned i = 0; i < 20; i++) {
        int wrote = s_file(&r, IO_FILE_WRITE, a, r.new, BYTES, 0);
        assert_in_range(wrote, 1, BYTES - 1);
        assert_int_equal(f_read(&r, a, got, BYTES, 0), BYTES);
        assert_memory_equal(got, r.new, (size_t)wrote);
        assert_memory_equal(got + wrote, r.old, (size_t)(BYTES - wrote));
        assert_in_range(s_file(&r, IO_FILE_READ, a, got, BYTES, 0), 1, BYTES - 1);
        assert_int_equal(s_file(&r, IO_FILE_READ, a, got, 1, 0), 1);
        assert_int_equal(f_write(&r, a, r.old, BYTES, 0), BYTES);
    }
    rig_close(&r);
}

static void a_lock_is_one_open_files_until_it_is_closed(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, 1);
    const struct files_backend *b = r.files->backend;
    int one = f_create(&r, "lock"), two = f_open(&r, "lock", O_RDWR), other = f_create(&r, "other");
    assert_int_equal(b->lock(r.files, one), 0);
    assert_int_equal(b->lock(r.files, one), 0);
    assert_int_equal(b->lock(r.files, two), -EWOULDBLOCK);
    assert_int_equal(b->lock(r.files, other), 0);
    assert_int_equal(f_close(&r, two), 0); /* not its lock */
    two = f_open(&r, "lock", O_RDWR);
    assert_int_equal(b->lock(r.files, two), -EWOULDBLOCK);
    assert_int_equal(f_close(&r, one), 0);
    assert_int_equal(b->lock(r.files, two), 0);
    assert_int_equal(f_sync(&r, r.store), 0);
    sim_disk_crash(r.disk);
    one = b->open(r.files, AT_FDCWD, "/store/lock", O_RDWR, 0);
    assert_int_equal(b->lock(r.files, one), 0);
    rig_close(&r);
}

static void opening_fails_as_the_systems_does(void **state)
{
    (void)state;
    struct rig r;
    uint8_t got[10];
    rig_open(&r, 1);
    const struct files_backend *b = r.files->backend;
    int a = make_file(&r, "a", r.old, 10);
    assert_int_equal(f_open(&r, "none", O_RDONLY), -ENOENT);
    assert_int_equal(f_open(&r, "none/b", O_RDWR | O_CREAT), -ENOENT);
    assert_int_equal(f_open(&r, "a/b", O_RDWR | O_CREAT), -ENOTDIR);
    assert_int_equal(f_open(&r, "a", O_RDONLY | O_DIRECTORY), -ENOTDIR);
    assert_int_equal(f_open(&r, "a", O_RDWR | O_CREAT | O_EXCL), -EEXIST);
    assert_int_equal(f_open(&r, "/store", O_RDWR), -EISDIR);
    assert_int_equal(b->open(r.files, a, "b", O_RDONLY, 0), -ENOTDIR);
    assert_int_equal(b->unlink(r.files, r.store, "none"), -ENOENT);
    assert_int_equal(b->unlink(r.files, AT_FDCWD, "/store"), -EISDIR);
    assert_int_equal(b->list(r.files, a, NULL, NULL), -ENOTDIR);
    assert_int_equal(f_read(&r, r.store, got, 10, 0), -EISDIR);
    assert_int_equal(f_write(&r, r.store, got, 10, 0), -EBADF);
    assert_int_equal(b->size(r.files, a), 10);
    sim_limit_descriptors(r.sim, sim_open_descriptors(r.sim));
    assert_int_equal(f_open(&r, "new", O_RDWR | O_CREAT), -EMFILE);
    assert_false(there(&r, "/store/new"));
    rig_close(&r);
}

struct names {
    unsigned count, first_a; /* how often "a" was the first */
    char seen[8];
};

static void note_name(void *context, const char *name)
{
    struct names *n = context;
    assert_true(n->count < sizeof n->seen);
    n->seen[n->count++] = name[0];
}

static void a_list_has_each_name_once_in_any_order(void **state)
{
    (void)state;
    struct rig r;
    unsigned first_a = 0;
    struct names ordered = {0};
    rig_open(&r, 1);
    static const char *const made[] = {"c", "a", "d", "b"};
    for (unsigned i = 0; i < ARRAY_SIZE(made); i++)
        f_create(&r, made[i]);
    assert_int_equal(r.files->backend->unlink(r.files, r.store, "b"), 0);
    for (unsigned i = 0; i < 60; i++) {
        struct names n = {0};
        assert_int_equal(r.files->backend->list(r.files, r.store, note_name, &n), 0);
        assert_int_equal(n.count, 3);
        assert_int_equal(n.seen[0] + n.seen[1] + n.seen[2], 'a' + 'c' + 'd');
        first_a += n.seen[0] == 'a';
    }
    assert_in_range(first_a, 5, 40);
    sim_disk_list(r.disk, "/store", note_name, &ordered);
    assert_memory_equal(ordered.seen, "acd", 3);
    rig_close(&r);
}

/* ---- Times, orders, cancels ---- */

static uint64_t time_of(struct rig *r, enum io_kind kind, int fd, size_t size)
{
    uint64_t before = sim_now_ns(r->sim);
    assert_true(s_file(r, kind, fd, size > 0 ? big : NULL, size, kind == IO_FILE_ALLOCATE ? 100 : 0) >= 0);
    return sim_now_ns(r->sim) - before;
}

static void operations_take_their_time_and_syncs_more(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, 1);
    int a = make_file(&r, "a", r.old, 10);
    uint64_t began = sim_now_ns(r.sim);
    assert_int_equal(f_write(&r, a, r.new, 10, 0), 10);
    assert_int_equal(f_sync(&r, a), 0);
    assert_int_equal(sim_now_ns(r.sim), began); /* calls take none */
    for (unsigned i = 0; i < 50; i++) {
        assert_in_range(time_of(&r, IO_FILE_READ, a, 10), 20 * NS_PER_US, 80 * NS_PER_US);
        assert_in_range(time_of(&r, IO_FILE_ALLOCATE, a, 0), 20 * NS_PER_US, 80 * NS_PER_US);
        assert_in_range(time_of(&r, IO_FILE_WRITE, a, 10), 220 * NS_PER_US, 2080 * NS_PER_US);
        assert_in_range(time_of(&r, IO_FILE_SYNC, a, 0), 220 * NS_PER_US, 2080 * NS_PER_US);
    }
    r.policy.bytes_s = 100 << 20;
    r.policy.slow_sync = 1000;
    r.policy.slow_sync_ns = 3 * NS_PER_S;
    set_policy(&r);
    assert_in_range(time_of(&r, IO_FILE_SYNC, a, 0), 3 * NS_PER_S, 3 * NS_PER_S + 80 * NS_PER_US);
    assert_in_range(time_of(&r, IO_FILE_WRITE, a, sizeof big), 3 * NS_PER_S + 10 * NS_PER_MS,
                    3 * NS_PER_S + 11 * NS_PER_MS);
    assert_in_range(time_of(&r, IO_FILE_READ, a, sizeof big), 10 * NS_PER_MS, 11 * NS_PER_MS);
    rig_close(&r);
}

static void operations_happen_at_their_ends_in_any_order(void **state)
{
    (void)state;
    unsigned overtaken = 0;
    for (uint64_t seed = 0; seed < 50; seed++) {
        struct rig r;
        struct operation one, two;
        rig_open(&r, seed);
        int a = make_file(&r, "a", r.old, BYTES);
        start(&r, &one, IO_FILE_WRITE, a, r.old, 100, 0);
        start(&r, &two, IO_FILE_WRITE, a, r.new, 100, 0);
        assert_true(io_wait(r.io, 0) >= 0);
        assert_true(holds(&r, "/store/a", r.old, BYTES)); /* nothing yet */
        assert_int_equal(run(&r, &one), 100);
        assert_int_equal(run(&r, &two), 100);
        bool second_last = two.order > one.order;
        assert_int_equal(holds(&r, "/store/a", r.old, BYTES), !second_last);
        overtaken += !second_last;
        rig_close(&r);
    }
    assert_in_range(overtaken, 10, 40);
}

static void what_is_cancelled_is_not_done_or_goes_on(void **state)
{
    (void)state;
    unsigned stopped = 0;
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct rig r;
        struct operation write;
        rig_open(&r, seed);
        int a = make_file(&r, "a", r.old, BYTES);
        start(&r, &write, IO_FILE_WRITE, a, r.new, BYTES, 0);
        assert_true(io_wait(r.io, 0) >= 0);
        uint64_t cancelled_ns = sim_now_ns(r.sim);
        io_cancel(r.io, &write.op);
        int result = run(&r, &write);
        assert_true(result == BYTES || result == -ECANCELED);
        assert_true(holds(&r, "/store/a", result == BYTES ? r.new : r.old, BYTES));
        assert_int_equal(result == -ECANCELED, sim_now_ns(r.sim) == cancelled_ns);
        stopped += result == -ECANCELED;
        rig_close(&r);
    }
    assert_in_range(stopped, 30, 70);
}

static void syncs_are_counted(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, 1);
    int a = make_file(&r, "a", r.old, 10); /* two */
    assert_int_equal(f_write(&r, a, r.new, 10, 0), 10);
    assert_int_equal(s_file(&r, IO_FILE_WRITE, a, r.new, 10, 0), 10);
    assert_int_equal(s_file(&r, IO_FILE_SYNC, r.store, NULL, 0, 0), 0);
    assert_int_equal(sim_disk_syncs(r.disk), 4);
    rig_close(&r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_failed_to_get_there_is_not_made_durable_by_a_later_sync),
        cmocka_unit_test(what_failed_to_get_there_is_lost_though_time_passes_and_durable_when_written_again),
        cmocka_unit_test(a_failed_sync_of_a_directory_leaves_its_names_open),
        cmocka_unit_test(every_change_and_every_read_may_fail),
        cmocka_unit_test(a_full_disk_takes_what_fits_and_goes_on_when_there_is_room),
        cmocka_unit_test(space_may_be_refused_though_there_is_room),
        cmocka_unit_test(a_disk_may_be_read_only_or_know_no_allocation),
        cmocka_unit_test(the_seams_transfers_may_be_short_and_the_calls_never),
        cmocka_unit_test(a_lock_is_one_open_files_until_it_is_closed),
        cmocka_unit_test(opening_fails_as_the_systems_does),
        cmocka_unit_test(a_list_has_each_name_once_in_any_order),
        cmocka_unit_test(operations_take_their_time_and_syncs_more),
        cmocka_unit_test(operations_happen_at_their_ends_in_any_order),
        cmocka_unit_test(what_is_cancelled_is_not_done_or_goes_on),
        cmocka_unit_test(syncs_are_counted),
    };
    return cmocka_run_group_tests_name("sim_disk_faults", tests, NULL, NULL);
}
