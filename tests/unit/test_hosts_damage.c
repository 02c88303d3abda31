/* Stores that were damaged while their host was stopped: it starts, goes on behind what is lost, and says
 * what that is.
 *
 *     client ──HTTP──▶ one: src ──out, link────▶ two: l
 *                           src ──cloud, wire──▶ two: w      all three receivers are tallies
 *                           src ──log, inner───▶ one: i
 */
#include "tests/unit/fewer.h"
#include "tests/sim/ledgers.h"

#include "host/host_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define PATIENCE_NS (300 * NS_PER_S)
#define RECORDS     1500

typedef unsigned long long ull;

static struct hosts_world world;
static struct world_host *one, *two;
static struct tally at_l, at_w, at_i;

/* i waits while `hold` (its module does not load then), two does not run: all three have a backlog. */
static void open_hosts(uint64_t seed)
{
    memset(&at_l, 0, sizeof at_l);
    memset(&at_w, 0, sizeof at_w);
    memset(&at_i, 0, sizeof at_i);
    hosts_world_open(&world, seed);
    one = world_add_host(&world, "one", "10.0.0.1",
                         "segment = 256K\n"
                         "[app src]\nmodule = /sim/src\n"
                         "[app i]\nmodule = /sim/dst\narg = " WORLD_TALLY "\n"
                         "[output src.out]\nlink = 10.0.0.2:7071\nkey = %s\napp = l\nqueue = 16K\n"
                         "[output src.cloud]\nwire = http://10.0.0.2\nmode = pure\napp = w\ntoken = t\n"
                         "queue = 16K\n"
                         "[output src.log]\ninner = i\nqueue = 16K\n",
                         (void *)&at_i, world.keys[1]);
    two = world_add_host(&world, "two", "10.0.0.2",
                         "link = 0.0.0.0:7071\n"
                         "[app l]\nmodule = /sim/dst\narg = " WORLD_TALLY "\n"
                         "[app w]\nmodule = /sim/dst\narg = " WORLD_TALLY "\n"
                         "[peer one]\nkey = %s\napps = l\n",
                         (void *)&at_l, (void *)&at_w, world.keys[0]);
    world_add_disk(one);
    one->without = "/sim/dst";
    world_start(one);
    assert_int_equal(numbers_post_all(one, "src", (struct numbers){1, RECORDS, 300}, 20, PATIENCE_NS),
                     RECORDS);
    sim_run_for(world.sim, 3 * NS_PER_S);
    assert_true(world_stop(one) < 5 * NS_PER_S);
    one->without = NULL;
}

/* Another hundred, behind whatever is lost; then all of them have come. */
static void start_and_drain(void)
{
    world_start(one);
    world_start(two);
    assert_int_equal(numbers_post_all(one, "src", (struct numbers){RECORDS + 1, 100, 300}, 20, PATIENCE_NS),
                     100);
    assert_true(tally_await(&world, &at_l, RECORDS + 100, PATIENCE_NS));
    assert_true(tally_await(&world, &at_w, RECORDS + 100, PATIENCE_NS));
    assert_true(tally_await(&world, &at_i, RECORDS + 100, PATIENCE_NS));
    sim_run_for(world.sim, 5 * NS_PER_S);
    assert_true(world_host_empty(one));
}

/* The numbers that never came, and that none came twice or late. */
static uint64_t missing(const struct tally *t)
{
    uint64_t count = 0, last = 0;
    for (uint64_t i = 1; i <= RECORDS + 100; i++) {
        assert_true(t->times[i] <= 1);
        count += t->times[i] == 0;
    }
    for (unsigned i = 0; i < t->start_count && i < TALLY_STARTS; i++) {
        assert_true(t->starts[i] > last);
        last = t->starts[i];
    }
    return count;
}

/* What the log says is lost of an output, all lines together. */
static uint64_t said_lost(const char *output)
{
    char text[64];
    uint64_t count = 0;
    world_logged(one, "");
    snprintf(text, sizeof text, "output src.%s: records ", output);
    for (const char *at = one->log; (at = strstr(at, text)); at += strlen(text)) {
        ull first, last;
        assert_int_equal(sscanf(at + strlen(text), "%llu to %llu are lost", &first, &last), 2);
        count += last - first + 1;
    }
    return count;
}

static void assert_lost_is_said(uint64_t most)
{
    uint64_t l = missing(&at_l), w = missing(&at_w), i = missing(&at_i);
    if (l > most || l != said_lost("out") || w != said_lost("cloud") || i != said_lost("log"))
        fprintf(stderr, "lost %llu %llu %llu, said %llu %llu %llu, most %llu\n%s\n", (ull)l, (ull)w, (ull)i,
                (ull)said_lost("out"), (ull)said_lost("cloud"), (ull)said_lost("log"), (ull)most, one->log);
    assert_true(l <= most);
    assert_int_equal(l, said_lost("out"));
    assert_int_equal(w, said_lost("cloud"));
    assert_int_equal(i, said_lost("log"));
}

/* --- what is done to a file --- */

enum harm { FLIP, ZERO, CUT, FOREIGN };

static void harm(const char *path, enum harm how, size_t at, size_t size)
{
    uint8_t *bytes;
    size_t end;
    assert_true(sim_disk_read(one->disk, path, &bytes, &end));
    assert_true(at + size <= end);
    if (how == FLIP)
        bytes[at] ^= 0x10;
    else if (how == CUT)
        end = at;
    else
        memset(bytes + at, how == ZERO ? 0 : 0xa5, size);
    sim_disk_write(one->disk, path, bytes, end);
    free(bytes);
}

static void assert_damage_is_said(const char *path)
{
    char text[80];
    snprintf(text, sizeof text, "%s: offset ", path + strlen("/store/"));
    assert_true(world_logged(one, text) > 0);
    assert_true(world_logged(one, "bytes are damaged") > 0);
}

static void harm_in_the_middle(enum harm how, size_t size)
{
    for (uint64_t seed = 1; seed <= FEWER(5); seed++) {
        open_hosts(seed);
        char path[64];
        assert_true(store_segment(one, 2 + (unsigned)seed % 3, path));
        harm(path, how, 20000 + 8 * random_below(sim_random(world.sim), 8000), size);
        start_and_drain();
        /* a turn has up to 20 records: those in the frames that it touches */
        assert_lost_is_said(40 + size / 250);
        assert_true(missing(&at_l) > 0);
        assert_damage_is_said(path);
        hosts_world_close(&world);
    }
}

static void a_bit_costs_a_turn(void **state)
{
    (void)state;
    harm_in_the_middle(FLIP, 1);
}

static void zeros_cost_what_they_lie_over(void **state)
{
    (void)state;
    harm_in_the_middle(ZERO, 4096);
}

static void garbage_costs_what_it_lies_over(void **state)
{
    (void)state;
    harm_in_the_middle(FOREIGN, 4096);
}

static void a_file_cut_short_costs_what_was_behind(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= FEWER(5); seed++) {
        open_hosts(seed);
        char path[64];
        assert_true(store_segment(one, 2 + (unsigned)seed % 3, path));
        harm(path, CUT, 1000 + random_below(sim_random(world.sim), 100000), 0);
        start_and_drain();
        assert_lost_is_said(RECORDS / 2);
        assert_true(missing(&at_l) > 0);
        hosts_world_close(&world);
    }
}

static void a_segment_that_is_gone_costs_its_records(void **state)
{
    (void)state;
    for (unsigned index = 0; index < 6; index++) {
        open_hosts(index + 1);
        char path[64];
        assert_true(store_segment(one, index, path));
        assert_true(sim_disk_remove(one->disk, path));
        start_and_drain();
        assert_lost_is_said(RECORDS / 2);
        hosts_world_close(&world);
    }
}

static void several_places_at_once(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= FEWER(5); seed++) {
        open_hosts(seed);
        for (unsigned i = 0; i < 5; i++) {
            char path[64];
            assert_true(store_segment(one, i, path));
            harm(path, (enum harm)((seed + i) % 2), 10000 + 8 * random_below(sim_random(world.sim), 8000),
                 512);
        }
        start_and_drain();
        assert_lost_is_said(5 * 45);
        hosts_world_close(&world);
    }
}

/* Every segment harmed at its front, its seal, or as a whole: the host starts, and serves what comes. */
static void a_store_of_which_nothing_is_left(void **state)
{
    (void)state;
    for (unsigned how = 0; how < 3; how++) {
        open_hosts(how + 1);
        char path[64];
        for (unsigned i = 0; store_segment(one, i, path); i++) {
            uint8_t *bytes;
            size_t size;
            assert_true(sim_disk_read(one->disk, path, &bytes, &size));
            free(bytes);
            if (how == 2)
                harm(path, CUT, 0, 0);
            else if (size > 0)
                harm(path, how == 0 ? ZERO : FOREIGN, 0, size);
        }
        world_start(one);
        world_start(two);
        assert_int_equal(
            numbers_post_all(one, "src", (struct numbers){RECORDS + 1, 100, 300}, 20, PATIENCE_NS), 100);
        assert_true(tally_await(&world, &at_l, RECORDS + 100, PATIENCE_NS));
        assert_true(tally_await(&world, &at_w, RECORDS + 100, PATIENCE_NS));
        assert_true(tally_await(&world, &at_i, RECORDS + 100, PATIENCE_NS));
        assert_int_equal(tally_not_once(&at_l, RECORDS + 1, RECORDS + 100), 0);
        hosts_world_close(&world);
    }
}

/* --- files that are none of ours, or are missing --- */

static void files_of_others_and_a_lost_lock_cost_nothing(void **state)
{
    (void)state;
    open_hosts(1);
    sim_disk_write(one->disk, "/store/notes.txt", "hello", 5);
    sim_disk_write(one->disk, "/store/00000000000000ff.journal", "", 0);
    sim_disk_write(one->disk, "/store/00000000000000fe.journal", "hello", 5);
    sim_disk_write(one->disk, "/store/000000000000000g.journal", "hello", 5);
    assert_true(sim_disk_remove(one->disk, "/store/lock"));
    start_and_drain();
    assert_lost_is_said(0);
    assert_true(world_logged(one, "notes.txt: not a segment; left alone") > 0);
    uint8_t *bytes;
    size_t size;
    assert_true(sim_disk_read(one->disk, "/store/notes.txt", &bytes, &size));
    free(bytes);
    hosts_world_close(&world);
}

struct copy {
    char path[64];
    uint8_t *bytes;
    size_t size;
};

/* Segments of one store among those of another: left alone, and nothing of them is delivered. */
static void two_stores_mixed_stay_two(void **state)
{
    (void)state;
    struct copy copies[2];
    open_hosts(1);
    world_start(one); /* it becomes larger than the other one: of numbers that that one lacks */
    assert_int_equal(numbers_post_all(one, "src", (struct numbers){RECORDS + 1, 600, 300}, 20, PATIENCE_NS),
                     600);
    assert_true(world_stop(one) < 5 * NS_PER_S);
    unsigned count = store_files(one, ".journal", NULL);
    for (unsigned i = 0; i < 2; i++) {
        assert_true(store_segment(one, count - 1 - i, copies[i].path));
        assert_true(sim_disk_read(one->disk, copies[i].path, &copies[i].bytes, &copies[i].size));
    }
    hosts_world_close(&world);
    open_hosts(2);
    for (unsigned i = 0; i < 2; i++) {
        assert_false(sim_disk_remove(one->disk, copies[i].path));
        sim_disk_write(one->disk, copies[i].path, copies[i].bytes, copies[i].size);
    }
    start_and_drain();
    assert_lost_is_said(0);
    assert_int_equal(world_logged(one, "of another store; left alone"), 2);
    for (unsigned i = 0; i < 2; i++) {
        uint8_t *bytes;
        size_t size;
        assert_true(sim_disk_read(one->disk, copies[i].path, &bytes, &size));
        assert_int_equal(size, copies[i].size);
        assert_memory_equal(bytes, copies[i].bytes, size);
        free(bytes);
        free(copies[i].bytes);
    }
    hosts_world_close(&world);
}

/* A segment under another one's name: its frames say that they do not belong there. */
static void a_segment_that_was_renamed_is_left_alone(void **state)
{
    (void)state;
    static const char name[] = "/store/0000000000000123.journal";
    struct copy copy;
    open_hosts(4);
    assert_true(store_segment(one, 1, copy.path));
    assert_true(sim_disk_read(one->disk, copy.path, &copy.bytes, &copy.size));
    sim_disk_write(one->disk, name, copy.bytes, copy.size);
    start_and_drain();
    assert_lost_is_said(0);
    assert_int_equal(world_logged(one, "0000000000000123.journal: of another"), 1);
    uint8_t *bytes;
    size_t size;
    assert_true(sim_disk_read(one->disk, name, &bytes, &size));
    assert_int_equal(size, copy.size);
    assert_memory_equal(bytes, copy.bytes, size);
    free(bytes);
    free(copy.bytes);
    hosts_world_close(&world);
}

/* --- damage is said once, and kept --- */

static void damage_is_reported_once_and_kept_aside(void **state)
{
    (void)state;
    open_hosts(3);
    char path[64];
    unsigned count = store_files(one, ".journal", NULL);
    assert_true(store_segment(one, count - 1, path)); /* the one that every start reads */
    harm(path, FLIP, 3000, 1);
    world_start(one);
    sim_run_for(world.sim, NS_PER_S);
    assert_int_equal(world_logged(one, "bytes are damaged; a copy is in damaged"), 1);
    assert_damage_is_said(path);
    world_kill(one);
    start_and_drain();
    assert_int_equal(world_logged(one, "bytes are damaged; a copy is in damaged"), 1);
    assert_lost_is_said(45);
    hosts_world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bit_costs_a_turn),
        cmocka_unit_test(zeros_cost_what_they_lie_over),
        cmocka_unit_test(garbage_costs_what_it_lies_over),
        cmocka_unit_test(a_file_cut_short_costs_what_was_behind),
        cmocka_unit_test(a_segment_that_is_gone_costs_its_records),
        cmocka_unit_test(several_places_at_once),
        cmocka_unit_test(a_store_of_which_nothing_is_left),
        cmocka_unit_test(files_of_others_and_a_lost_lock_cost_nothing),
        cmocka_unit_test(two_stores_mixed_stay_two),
        cmocka_unit_test(a_segment_that_was_renamed_is_left_alone),
        cmocka_unit_test(damage_is_reported_once_and_kept_aside),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
