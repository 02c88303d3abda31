/* The simulated disk: what is durable and what is not; ends of machines and processes. */
#include "tests/unit/disk_rig.h"

#include <stdio.h>

/* What became of one write, over many seeds. */
struct outcomes {
    unsigned there, lost, torn, garbled, size_only;
};

/* The bytes of /store/a after a crash, to be freed; NULL: there is no such file. */
static uint8_t *content(struct rig *r, size_t *size)
{
    uint8_t *bytes;
    return sim_disk_read(r->disk, "/store/a", &bytes, size) ? bytes : NULL;
}

static unsigned run_of(const uint8_t *bytes, size_t size, uint8_t byte)
{
    unsigned length = 0;
    while (length < size && bytes[length] == byte)
        length++;
    return length;
}

static void count_sector(struct outcomes *o, const uint8_t *sector, uint8_t before)
{
    unsigned new = run_of(sector, 512, 'n'), old = run_of(sector + new, 512 - new, before);
    o->there += new == 512;
    o->lost += new == 0 && old == 512;
    o->torn += new > 0 && new < 512 && old == 512 - new;
    o->garbled += new + old < 512;
}

/* ---- What a crash leaves ---- */

static void what_was_synced_survives_every_crash(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct rig r;
        size_t size;
        rig_open(&r, seed);
        int a = make_file(&r, "a", r.old, 1000);
        assert_int_equal(f_write(&r, a, r.new, 700, 1000), 700); /* from the middle of a sector */
        sim_disk_crash(r.disk);
        uint8_t *bytes = content(&r, &size);
        assert_in_range(size, 1000, 1700);
        assert_memory_equal(bytes, r.old, 1000);
        free(bytes);
        rig_close(&r);
    }
}

static void a_durable_write_survives_every_crash_amid_others_that_do_not(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct rig r;
        size_t size;
        rig_open(&r, seed);
        int a = make_file(&r, "a", r.old, 100);
        assert_int_equal(f_write(&r, a, r.old, 3000, 100), 3000);
        assert_int_equal(s_file(&r, IO_FILE_WRITE, a, r.new, 1500, 700), 1500);
        assert_int_equal(f_write(&r, a, r.old, 600, 2200), 600);
        sim_disk_crash(r.disk);
        uint8_t *bytes = content(&r, &size);
        assert_in_range(size, 2200, 3100);
        assert_memory_equal(bytes + 700, r.new, 1500);
        free(bytes);
        rig_close(&r);
    }
}

static void a_durable_write_makes_nothing_else_durable(void **state)
{
    (void)state;
    struct rig r;
    size_t size;
    rig_open(&r, 1);
    r.policy.lost = 1000;
    r.policy.torn = r.policy.garbled = 0;
    sim_disk_set(r.disk, &r.policy);
    int a = make_file(&r, "a", r.old, BYTES);
    assert_int_equal(f_write(&r, a, r.new, 512, 0), 512);
    assert_int_equal(f_write(&r, a, r.new, 512, 1024), 512);
    assert_int_equal(s_file(&r, IO_FILE_WRITE, a, r.new, 512, 512), 512);
    sim_disk_crash(r.disk);
    uint8_t *bytes = content(&r, &size);
    assert_memory_equal(bytes, r.old, 512);
    assert_memory_equal(bytes + 512, r.new, 512);
    assert_memory_equal(bytes + 1024, r.old, BYTES - 1024);
    free(bytes);
    rig_close(&r);
}

static void a_write_that_is_not_durable_meets_each_fate_sector_by_sector(void **state)
{
    (void)state;
    struct outcomes o = {0};
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct rig r;
        size_t size;
        rig_open(&r, seed);
        int a = make_file(&r, "a", r.old, BYTES);
        assert_int_equal(f_write(&r, a, r.new, BYTES, 0), BYTES);
        sim_disk_crash(r.disk);
        uint8_t *bytes = content(&r, &size);
        assert_int_equal(size, BYTES);
        for (size_t at = 0; at < size; at += 512)
            count_sector(&o, bytes + at, 'o');
        free(bytes);
        rig_close(&r);
    }
    unsigned all = SEEDS * BYTES / 512; /* chances of the default policy: 300, 100, 100 in 1000 */
    assert_int_equal(o.there + o.lost + o.torn + o.garbled, all);
    assert_in_range(o.there, all * 45 / 100, all * 55 / 100);
    assert_in_range(o.lost, all * 25 / 100, all * 35 / 100);
    assert_in_range(o.torn, all * 8 / 100, all * 12 / 100);
    assert_in_range(o.garbled, all * 8 / 100, all * 12 / 100);
}

static void the_size_may_be_there_before_the_data(void **state)
{
    (void)state;
    unsigned short_files = 0, zeros = 0, whole = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct rig r;
        size_t size;
        rig_open(&r, seed);
        int a = make_file(&r, "a", r.old, 512);
        assert_int_equal(f_write(&r, a, r.new, 512, 512), 512);
        sim_disk_crash(r.disk);
        uint8_t *bytes = content(&r, &size);
        short_files += size < 1024;
        zeros += size == 1024 && run_of(bytes + 512, 512, 0) == 512;
        whole += size == 1024 && run_of(bytes + 512, 512, 'n') == 512;
        free(bytes);
        rig_close(&r);
    }
    assert_in_range(short_files, 50, SEEDS);
    assert_in_range(zeros, 50, SEEDS);
    assert_in_range(whole, 50, SEEDS);
}

static void of_two_writes_the_older_may_be_what_is_left(void **state)
{
    (void)state;
    unsigned older = 0, newer = 0, before = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct rig r;
        size_t size;
        rig_open(&r, seed);
        int a = make_file(&r, "a", r.old, 512);
        memset(r.old, 'm', 512);
        assert_int_equal(f_write(&r, a, r.old, 512, 0), 512);
        assert_int_equal(f_write(&r, a, r.new, 512, 0), 512);
        sim_disk_crash(r.disk);
        uint8_t *bytes = content(&r, &size);
        older += run_of(bytes, 512, 'm') == 512;
        newer += run_of(bytes, 512, 'n') == 512;
        before += run_of(bytes, 512, 'o') == 512;
        free(bytes);
        rig_close(&r);
    }
    assert_in_range(older, 10, 200);
    assert_in_range(newer, 10, 200);
    assert_in_range(before, 5, 200);
}

static void a_disk_that_loses_all_or_nothing_can_be_had(void **state)
{
    (void)state;
    for (unsigned lost = 0; lost <= 1000; lost += 1000) {
        struct rig r;
        rig_open(&r, 1);
        r.policy.torn = r.policy.garbled = 0;
        r.policy.lost = r.policy.name_lost = r.policy.unlink_undone = lost;
        sim_disk_set(r.disk, &r.policy);
        int a = make_file(&r, "a", r.old, BYTES);
        make_file(&r, "gone", r.old, 10);
        assert_int_equal(f_write(&r, a, r.new, BYTES, 0), BYTES);
        f_create(&r, "made");
        assert_int_equal(r.files->backend->unlink(r.files, r.store, "gone"), 0);
        sim_disk_crash(r.disk);
        assert_true(holds(&r, "/store/a", lost ? r.old : r.new, BYTES));
        assert_int_equal(there(&r, "/store/made"), !lost);
        assert_int_equal(there(&r, "/store/gone"), lost > 0);
        rig_close(&r);
    }
}

static void space_that_was_set_aside_may_be_gone_until_a_sync(void **state)
{
    (void)state;
    unsigned gone = 0, kept = 0;
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct rig r;
        size_t size;
        rig_open(&r, seed);
        int a = make_file(&r, "a", "", 0);
        assert_int_equal(s_file(&r, IO_FILE_ALLOCATE, a, NULL, 0, BYTES), 0);
        if (seed % 3 == 0)
            assert_int_equal(s_file(&r, IO_FILE_SYNC, a, NULL, 0, 0), 0);
        if (seed % 3 == 1)
            assert_int_equal(s_file(&r, IO_FILE_WRITE, a, r.new, 1, 0), 1); /* has the size with it */
        sim_disk_crash(r.disk);
        free(content(&r, &size));
        assert_true(size == BYTES || (seed % 3 == 2 && size == 0));
        gone += size == 0;
        kept += seed % 3 == 2 && size == BYTES;
        rig_close(&r);
    }
    assert_in_range(gone, 1, 33);
    assert_in_range(kept, 1, 33);
}

static void a_cut_may_be_undone_until_a_sync(void **state)
{
    (void)state;
    unsigned undone = 0, cut = 0;
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct rig r;
        rig_open(&r, seed);
        make_file(&r, "a", r.old, BYTES);
        int a = f_open(&r, "a", O_WRONLY | O_TRUNC);
        assert_int_equal(r.files->backend->size(r.files, a), 0);
        if (seed % 2)
            assert_int_equal(f_sync(&r, a), 0);
        sim_disk_crash(r.disk);
        bool back = holds(&r, "/store/a", r.old, BYTES);
        assert_true(back ? seed % 2 == 0 : holds(&r, "/store/a", "", 0));
        undone += back;
        cut += !back && seed % 2 == 0;
        rig_close(&r);
    }
    assert_in_range(undone, 1, 50);
    assert_in_range(cut, 1, 50);
}

static void what_was_written_before_a_cut_never_comes_after_it(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct rig r;
        size_t size;
        rig_open(&r, seed);
        int a = make_file(&r, "a", "", 0);
        assert_int_equal(f_write(&r, a, r.old, BYTES, 0), BYTES);
        int again = f_open(&r, "a", O_WRONLY | O_TRUNC);
        assert_int_equal(s_file(&r, IO_FILE_WRITE, again, r.new, 700, 0), 700);
        sim_disk_crash(r.disk);
        uint8_t *bytes = content(&r, &size);
        assert_int_equal(size, 700);
        assert_memory_equal(bytes, r.new, 700);
        free(bytes);
        rig_close(&r);
    }
}

/* ---- Names ---- */

static void a_name_is_durable_once_its_directory_was_synced(void **state)
{
    (void)state;
    unsigned lost = 0, kept = 0, back = 0, gone = 0, odd = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct rig r;
        rig_open(&r, seed);
        make_file(&r, "a", r.old, 10);
        make_file(&r, "b", r.old, 10);
        assert_int_equal(s_name(&r, IO_FILE_UNLINK, "b", 0), 0);
        if (seed % 2)
            assert_int_equal(s_file(&r, IO_FILE_SYNC, r.store, NULL, 0, 0), 0);
        int c = s_name(&r, IO_FILE_OPEN, "c", O_RDWR | O_CREAT | O_EXCL);
        assert_int_equal(f_sync(&r, c), 0); /* of the file: not its name */
        f_create(&r, "d");
        assert_int_equal(r.files->backend->unlink(r.files, r.store, "d"), 0);
        sim_disk_crash(r.disk);
        assert_true(holds(&r, "/store/a", r.old, 10));
        assert_false(seed % 2 && there(&r, "/store/b"));
        back += there(&r, "/store/b");
        gone += seed % 2 == 0 && !there(&r, "/store/b");
        kept += there(&r, "/store/c");
        lost += !there(&r, "/store/c");
        odd += there(&r, "/store/d");
        rig_close(&r);
    }
    assert_in_range(lost, SEEDS * 4 / 10, SEEDS * 6 / 10);
    assert_in_range(kept, SEEDS * 4 / 10, SEEDS * 6 / 10);
    assert_in_range(back, SEEDS * 2 / 10, SEEDS * 3 / 10);
    assert_in_range(gone, SEEDS * 2 / 10, SEEDS * 3 / 10);
    assert_in_range(odd, SEEDS * 4 / 10, SEEDS * 6 / 10); /* the name got there, its end did not */
}

static void a_name_that_is_made_anew_is_the_new_file_the_old_one_or_none(void **state)
{
    (void)state;
    unsigned fates[3] = {0};
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct rig r;
        rig_open(&r, seed);
        make_file(&r, "a", r.old, 10);
        assert_int_equal(r.files->backend->unlink(r.files, r.store, "a"), 0);
        int a = f_create(&r, "a");
        assert_int_equal(s_file(&r, IO_FILE_WRITE, a, r.new, 10, 0), 10);
        sim_disk_crash(r.disk);
        bool new = holds(&r, "/store/a", r.new, 10), old = holds(&r, "/store/a", r.old, 10);
        assert_true(new || old || !there(&r, "/store/a"));
        fates[new ? 0 : old ? 1 : 2]++;
        rig_close(&r);
    }
    for (unsigned i = 0; i < 3; i++)
        assert_in_range(fates[i], 20, 150);
}

static void a_directory_goes_with_all_that_is_in_it(void **state)
{
    (void)state;
    unsigned lost = 0, kept = 0;
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct rig r;
        const struct files_backend *b;
        rig_open(&r, seed);
        b = r.files->backend;
        assert_int_equal(b->make_directory(r.files, r.store, "damaged", 0700), 0);
        assert_int_equal(b->make_directory(r.files, r.store, "damaged", 0700), -EEXIST);
        int directory = b->open(r.files, AT_FDCWD, "/store/damaged", O_RDONLY | O_DIRECTORY, 0);
        int a = b->open(r.files, directory, "a", O_RDWR | O_CREAT | O_EXCL, 0600);
        assert_int_equal(s_file(&r, IO_FILE_WRITE, a, r.new, 10, 0), 10);
        assert_int_equal(f_sync(&r, directory), 0);
        if (seed % 2)
            assert_int_equal(f_sync(&r, r.store), 0);
        sim_disk_crash(r.disk);
        bool found = holds(&r, "/store/damaged/a", r.new, 10);
        assert_true(found || seed % 2 == 0);
        lost += !found;
        kept += found && seed % 2 == 0;
        rig_close(&r);
    }
    assert_in_range(lost, 5, 50);
    assert_in_range(kept, 5, 50);
}

/* ---- What was under way ---- */

/* The bytes of a write that was under way, after a crash that loses nothing that it had taken. */
static size_t taken_of_write(uint64_t seed, void (*end)(struct rig *r))
{
    struct rig r;
    struct operation o;
    size_t size;
    rig_open(&r, seed);
    r.policy.lost = r.policy.torn = r.policy.garbled = 0;
    sim_disk_set(r.disk, &r.policy);
    int a = make_file(&r, "a", "", 0);
    start(&r, &o, IO_FILE_WRITE, a, r.new, BYTES, 0);
    assert_true(io_wait(r.io, 0) >= 0);
    end(&r);
    sim_disk_crash(r.disk);
    uint8_t *bytes = content(&r, &size);
    assert_int_equal(run_of(bytes, size, 'n'), size);
    free(bytes);
    rig_close(&r);
    return size;
}

static void end_io(struct rig *r)
{
    io_dispose(r->io);
}

static void cut_off(struct rig *r)
{
    sim_disk_cut_off(r->disk);
    io_dispose(r->io);
}

static void a_write_under_way_is_done_in_part_or_not_at_all(void **state)
{
    (void)state;
    void (*const ends[])(struct rig *) = {end_io, cut_off};
    for (unsigned e = 0; e < ARRAY_SIZE(ends); e++) {
        unsigned none = 0, part = 0, all = 0;
        for (uint64_t seed = 0; seed < 200; seed++) {
            size_t size = taken_of_write(seed, ends[e]);
            none += size == 0;
            part += size > 0 && size < BYTES;
            all += size == BYTES;
        }
        assert_in_range(none, 20, 100);
        assert_in_range(part, 20, 100);
        assert_in_range(all, 50, 150);
    }
}

static void a_write_under_way_is_not_durable(void **state)
{
    (void)state;
    struct outcomes o = {0};
    for (uint64_t seed = 0; seed < 300; seed++) {
        struct rig r;
        struct operation under_way;
        size_t size;
        rig_open(&r, seed);
        int a = make_file(&r, "a", r.old, BYTES);
        start(&r, &under_way, IO_FILE_WRITE, a, r.new, BYTES, 0);
        assert_true(io_wait(r.io, 0) >= 0);
        io_dispose(r.io);
        memset(r.new, 'x', BYTES); /* the owner's memory again */
        sim_disk_crash(r.disk);
        uint8_t *bytes = content(&r, &size);
        assert_int_equal(size, BYTES);
        for (size_t at = 512; at < size; at += 512)
            count_sector(&o, bytes + at, 'o');
        free(bytes);
        rig_close(&r);
    }
    assert_true(o.there > 100 && o.lost > 100 && o.torn > 20 && o.garbled > 20);
}

static void other_operations_under_way_are_done_or_not(void **state)
{
    (void)state;
    unsigned made = 0, removed = 0, grown = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct rig r;
        struct operation open = {.rig = &r}, unlink = {.rig = &r}, allocate;
        size_t size;
        rig_open(&r, seed);
        int a = make_file(&r, "a", "", 0);
        make_file(&r, "b", "", 0);
        io_prepare_name(&open.op, IO_FILE_OPEN, r.store, "new", O_RDWR | O_CREAT, 0600, over);
        io_prepare_name(&unlink.op, IO_FILE_UNLINK, r.store, "b", 0, 0, over);
        io_queue(r.io, &open.op);
        io_queue(r.io, &unlink.op);
        start(&r, &allocate, IO_FILE_ALLOCATE, a, NULL, 0, BYTES);
        assert_true(io_wait(r.io, 0) >= 0);
        unsigned descriptors = sim_open_descriptors(r.sim);
        io_dispose(r.io);
        assert_int_equal(sim_open_descriptors(r.sim), descriptors); /* an open leaves none */
        made += there(&r, "/store/new");
        removed += !there(&r, "/store/b");
        free(content(&r, &size));
        grown += size == BYTES;
        rig_close(&r);
    }
    assert_in_range(made, 60, 140);
    assert_in_range(removed, 60, 140);
    assert_in_range(grown, 60, 140);
}

static void nothing_reaches_a_disk_that_is_cut_off(void **state)
{
    (void)state;
    struct rig r;
    uint8_t got[10];
    rig_open(&r, 1);
    int a = make_file(&r, "a", r.old, 10);
    sim_disk_cut_off(r.disk);
    assert_int_equal(s_file(&r, IO_FILE_WRITE, a, r.new, 10, 0), -EIO);
    assert_int_equal(s_file(&r, IO_FILE_SYNC, a, NULL, 0, 0), -EIO);
    assert_int_equal(s_file(&r, IO_FILE_READ, a, got, 10, 0), -EIO);
    assert_int_equal(s_file(&r, IO_FILE_ALLOCATE, a, NULL, 0, 100), -EIO);
    assert_int_equal(s_name(&r, IO_FILE_OPEN, "b", O_RDWR | O_CREAT), -EIO);
    assert_int_equal(s_name(&r, IO_FILE_UNLINK, "a", 0), -EIO);
    assert_int_equal(f_write(&r, a, r.new, 10, 0), -EIO);
    assert_int_equal(f_open(&r, "a", O_RDONLY), -EIO);
    assert_int_equal(s_close(&r, a), 0);
    sim_disk_process_ended(r.disk);
    assert_true(holds(&r, "/store/a", r.old, 10));
    assert_false(there(&r, "/store/b"));
    r.store = r.files->backend->open(r.files, AT_FDCWD, "/store", O_RDONLY, 0);
    assert_true(f_create(&r, "b") >= 0);
    rig_close(&r);
}

/* ---- Ends of processes; copies ---- */

static void the_end_of_a_process_loses_nothing(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, 1);
    unsigned descriptors = sim_open_descriptors(r.sim);
    int a = f_create(&r, "a");
    assert_int_equal(f_write(&r, a, r.new, BYTES, 0), BYTES);
    assert_int_equal(r.files->backend->lock(r.files, a), 0);
    sim_disk_process_ended(r.disk);
    assert_int_equal(sim_open_descriptors(r.sim), descriptors - 1); /* that of the directory, too */
    assert_true(holds(&r, "/store/a", r.new, BYTES));
    a = r.files->backend->open(r.files, AT_FDCWD, "/store/a", O_RDWR, 0);
    assert_int_equal(r.files->backend->lock(r.files, a), 0);
    rig_close(&r);
}

static void what_a_process_left_is_durable_some_time_later_and_not_before(void **state)
{
    (void)state;
    unsigned lost = 0;
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct rig r;
        rig_open(&r, seed);
        make_file(&r, "b", r.old, 10);
        assert_int_equal(r.files->backend->unlink(r.files, r.store, "b"), 0);
        assert_int_equal(f_write(&r, f_create(&r, "a"), r.new, BYTES, 0), BYTES);
        sim_disk_process_ended(r.disk);
        assert_int_equal(sim_run_for(r.sim, (seed % 2 ? 31 : 29) * NS_PER_S), SIM_TIME);
        sim_disk_crash(r.disk);
        bool whole = holds(&r, "/store/a", r.new, BYTES) && !there(&r, "/store/b");
        assert_true(whole || seed % 2 == 0);
        lost += !whole;
        rig_close(&r);
    }
    assert_in_range(lost, 40, 50);
}

static void a_copy_has_what_is_durable_and_comes_back_whole(void **state)
{
    (void)state;
    struct rig r;
    rig_open(&r, 1);
    int a = make_file(&r, "a", r.old, BYTES);
    sim_disk_make_directory(r.disk, "/store/damaged");
    sim_disk_write(r.disk, "/store/damaged/b", r.new, 700);
    assert_int_equal(f_write(&r, a, r.new, 100, 0), 100);
    f_create(&r, "c");
    struct sim_disk_copy *copy = sim_disk_save(r.disk);
    assert_int_equal(f_sync(&r, a), 0);
    assert_true(sim_disk_remove(r.disk, "/store/damaged/b"));
    for (unsigned i = 0; i < 2; i++) {
        sim_disk_restore(r.disk, copy);
        assert_int_equal(sim_open_descriptors(r.sim), 0);
        assert_true(holds(&r, "/store/a", r.old, BYTES));
        assert_true(holds(&r, "/store/damaged/b", r.new, 700));
        assert_false(there(&r, "/store/c"));
        assert_int_equal(sim_disk_used(r.disk), BYTES + 700);
        sim_disk_crash(r.disk); /* and all of it is durable */
        assert_true(holds(&r, "/store/damaged/b", r.new, 700));
        sim_disk_write(r.disk, "/store/a", "", 0);
    }
    sim_disk_copy_free(copy);
    rig_close(&r);
}

/* ---- One seed, one history ---- */

static void note_sum(void *context, const char *name)
{
    uint64_t *sum = context;
    for (size_t i = 0; name[i]; i++)
        *sum = *sum * 31 + (uint8_t)name[i];
}

static uint64_t history(uint64_t seed)
{
    struct rig r;
    struct operation writes[8];
    uint64_t sum = 0;
    rig_open(&r, seed);
    r.policy.write_error = r.policy.short_write = r.policy.no_space = 100;
    int a = make_file(&r, "a", r.old, BYTES);
    sim_disk_set(r.disk, &r.policy);
    for (unsigned i = 0; i < ARRAY_SIZE(writes); i++)
        start(&r, &writes[i], IO_FILE_WRITE, a, r.new, BYTES, i * UINT64_C(1000));
    for (unsigned i = 0; i < 8; i++) {
        char name[16];
        snprintf(name, sizeof name, "f%u", i);
        s_name(&r, IO_FILE_OPEN, name, O_RDWR | O_CREAT);
    }
    io_dispose(r.io);
    sim_disk_crash(r.disk);
    size_t size;
    uint8_t *bytes = content(&r, &size);
    for (size_t i = 0; i < size; i++)
        sum = sum * 31 + bytes[i];
    free(bytes);
    sim_disk_list(r.disk, "/store", note_sum, &sum);
    sum += sim_trace(r.sim);
    rig_close(&r);
    return sum;
}

static void a_seed_repeats_and_another_does_not(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 50; seed++) {
        assert_int_equal(history(seed), history(seed));
        assert_int_not_equal(history(seed), history(seed + 1));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_synced_survives_every_crash),
        cmocka_unit_test(a_durable_write_survives_every_crash_amid_others_that_do_not),
        cmocka_unit_test(a_durable_write_makes_nothing_else_durable),
        cmocka_unit_test(a_write_that_is_not_durable_meets_each_fate_sector_by_sector),
        cmocka_unit_test(the_size_may_be_there_before_the_data),
        cmocka_unit_test(of_two_writes_the_older_may_be_what_is_left),
        cmocka_unit_test(a_disk_that_loses_all_or_nothing_can_be_had),
        cmocka_unit_test(space_that_was_set_aside_may_be_gone_until_a_sync),
        cmocka_unit_test(a_cut_may_be_undone_until_a_sync),
        cmocka_unit_test(what_was_written_before_a_cut_never_comes_after_it),
        cmocka_unit_test(a_name_is_durable_once_its_directory_was_synced),
        cmocka_unit_test(a_name_that_is_made_anew_is_the_new_file_the_old_one_or_none),
        cmocka_unit_test(a_directory_goes_with_all_that_is_in_it),
        cmocka_unit_test(a_write_under_way_is_done_in_part_or_not_at_all),
        cmocka_unit_test(a_write_under_way_is_not_durable),
        cmocka_unit_test(other_operations_under_way_are_done_or_not),
        cmocka_unit_test(nothing_reaches_a_disk_that_is_cut_off),
        cmocka_unit_test(the_end_of_a_process_loses_nothing),
        cmocka_unit_test(what_a_process_left_is_durable_some_time_later_and_not_before),
        cmocka_unit_test(a_copy_has_what_is_durable_and_comes_back_whole),
        cmocka_unit_test(a_seed_repeats_and_another_does_not),
    };
    return cmocka_run_group_tests_name("sim_disk", tests, NULL, NULL);
}
