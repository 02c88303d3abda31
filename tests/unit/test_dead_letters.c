/* Records that are always refused: set aside, listed, replayed, dropped (host/app_dead.h).
 *
 *     client ──HTTP──▶ one 10.0.0.1: src ──pure wire, attempts = 2──▶ two 10.0.0.2: dst
 *
 * dst's inbox is small, so records of LARGE bytes are refused (413); others are not. Both hosts have disks.
 * The text of each record is its number, and then spaces. */
#include "tests/unit/fewer.h"
#include "tests/sim/hosts_world.h"

#include "host/host_private.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define LARGE  40000
#define SMALL  20
#define SEEDS  FEWER(60)
#define DEAD   "/outputs/src.out/dead"
#define REPLAY DEAD "/replay"
#define DROP   DEAD "/drop"

static struct hosts_world world;
static struct world_host *one, *two;
static struct tally tally;

static void open_hosts(uint64_t seed, const char *keys)
{
    memset(&tally, 0, sizeof tally);
    hosts_world_open(&world, seed);
    one = world_add_host(&world, "one", "10.0.0.1",
                         "segment = 256K\n[app src]\nmodule = /sim/src\n"
                         "[output src.out]\nwire = http://10.0.0.2\nmode = pure\napp = dst\ntoken = t\n"
                         "attempts = 2\nbackoff_max = 200ms\n%s",
                         keys);
    two =
        world_add_host(&world, "two", "10.0.0.2",
                       "[app dst]\nmodule = /sim/dst\narg = " WORLD_TALLY "\ninbox = 64K\n", (void *)&tally);
    world_add_disk(one);
    world_add_disk(two);
    world_start(one);
    world_start(two);
}

/* Starts two with an inbox that takes all records, or again with the small one. */
static void let_two_take(bool all)
{
    if (two->host)
        world_kill(two);
    strcpy(strstr(two->text, "inbox = "), all ? "inbox = 4M\n" : "inbox = 64K\n");
    world_start(two);
}

static void post(uint64_t number, size_t size)
{
    static char body[LARGE + 1];
    memset(body, ' ', size);
    body[size] = '\0';
    body[snprintf(body, SMALL, "%llu", (unsigned long long)number)] = ' ';
    struct sim_connection *c = world_ask(one, "/apps/src/events/e", body);
    assert_int_equal(world_status(c), 200);
}

static uint64_t awaited;

static bool has_come(void *context)
{
    (void)context;
    return tally.times[awaited] > 0;
}

static void run_until_comes(uint64_t number)
{
    awaited = number;
    assert_int_equal(sim_run_until(world.sim, has_come, NULL), SIM_DONE);
}

static uint64_t kept(void)
{
    return counter_read(&world_outlet(one, "src", "out")->report.dead_kept);
}

static uint64_t awaited_dead;

static bool has_kept(void *context)
{
    (void)context;
    return kept() >= awaited_dead;
}

static void run_until_kept(uint64_t count)
{
    awaited_dead = count;
    assert_int_equal(sim_run_until(world.sim, has_kept, NULL), SIM_DONE);
    sim_run_for(world.sim, 100 * NS_PER_MS); /* for the disk */
}

static void expect(const char *path, const char *body, unsigned status, const char *text)
{
    struct sim_connection *c = world_ask(one, path, body);
    if (world_status(c) != status || !world_reply_has(c, text))
        printf("%.*s\n", (int)sim_received(c).size, (const char *)sim_received(c).data);
    assert_int_equal(world_status(c), status);
    assert_true(world_reply_has(c, text));
}

/* All of 1 to `last` have come once, but for those that are large, which have not. */
static void expect_once_but(uint64_t last, uint64_t step)
{
    for (uint64_t number = 1; number <= last; number++)
        assert_int_equal(tally.times[number], number % step != 0);
}

static void a_record_that_is_always_refused_is_set_aside_and_the_next_follows(void **state)
{
    (void)state;
    open_hosts(1, "");
    for (uint64_t number = 1; number <= 7; number++)
        post(number, number % 3 == 0 ? LARGE : SMALL);
    run_until_comes(7);
    sim_run_for(world.sim, NS_PER_S);
    expect_once_but(7, 3);
    assert_int_equal(kept(), 2);
    expect(DEAD, NULL, 200, "{\"dead\":[{\"number\":3,\"time_ms\":");
    expect(DEAD, NULL, 200, "\"reason\":\"413 Content Too Large\",\"bytes\":40000},{\"number\":6,");
    expect(DEAD, NULL, 200, "}],\"more\":false}\n");
    expect(DEAD "?x=1&from=4", NULL, 200, "{\"dead\":[{\"number\":6,");
    expect(DEAD "?from=7", NULL, 200, "{\"dead\":[],\"more\":false}\n");
    assert_true(world_host_empty(one));
    assert_int_equal(world_logged(one, "is set aside"), 2);
    hosts_world_close(&world);
}

/* --- crashes --- */

static void crash_soon(uint64_t most_ns)
{
    sim_run_for(world.sim, random_below(sim_random(world.sim), most_ns));
    if (random_below(sim_random(world.sim), 2))
        world_crash(one);
    else
        world_kill(one);
    world_start(one);
}

static void letters_survive_crashes_and_none_is_sent_again(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        open_hosts(seed, "");
        for (uint64_t number = 1; number <= 6; number++)
            post(number, number % 3 == 0 ? LARGE : SMALL);
        for (unsigned i = 0; i < 3; i++)
            crash_soon(400 * NS_PER_MS);
        run_until_comes(5);
        run_until_kept(2);
        let_two_take(true); /* what is set aside is not delivered by itself, even now */
        post(7, SMALL);
        crash_soon(100 * NS_PER_MS);
        run_until_comes(7);
        sim_run_for(world.sim, 2 * NS_PER_S);
        for (uint64_t number = 1; number <= 7; number++) {
            if (tally.times[number] != (number % 3 != 0))
                print_message("seed %llu number %llu: %u times\n", (unsigned long long)seed,
                              (unsigned long long)number, tally.times[number]);
            assert_int_equal(tally.times[number], number % 3 != 0);
        }
        assert_int_equal(kept(), 2);
        expect(DEAD, NULL, 200, "[{\"number\":3,");
        expect(DEAD, NULL, 200, "{\"number\":6,");
        hosts_world_close(&world);
    }
}

static void replayed_letters_are_sent_once_across_crashes(void **state)
{
    (void)state;
    unsigned interrupted = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        open_hosts(seed, "");
        for (uint64_t number = 1; number <= 8; number++)
            post(number, number % 2 == 0 ? LARGE : SMALL);
        run_until_kept(4);
        let_two_take(true);
        for (unsigned i = 0; i < 3; i++) {
            world_post(one, REPLAY, NULL, "all");
            uint64_t before = kept();
            crash_soon(20 * NS_PER_MS);
            interrupted += kept() > 0 && kept() < before;
        }
        expect(REPLAY, "all", 200, "{\"replayed\":");
        assert_int_equal(kept(), 0);
        crash_soon(NS_PER_MS);
        assert_int_equal(kept(), 0);
        for (uint64_t number = 1; number <= 8; number++)
            run_until_comes(number);
        sim_run_for(world.sim, NS_PER_S);
        for (uint64_t number = 1; number <= 8; number++)
            assert_int_equal(tally.times[number], 1);
        expect(DEAD, NULL, 200, "{\"dead\":[],\"more\":false}\n");
        hosts_world_close(&world);
    }
    assert_true(interrupted > 0 || SEEDS < 60); /* else the seeds did not show that part */
}

static void what_is_said_to_be_dropped_is_gone_after_any_crash(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        open_hosts(seed, "");
        for (uint64_t number = 1; number <= 6; number++)
            post(number, number % 2 == 0 ? LARGE : SMALL);
        run_until_kept(3);
        struct sim_connection *c = world_post(one, DROP, NULL, "3-4");
        sim_run_for(world.sim, random_below(sim_random(world.sim), 10 * NS_PER_MS));
        bool said = world_reply_has(c, "{\"dropped\":1}");
        world_crash(one);
        world_start(one);
        assert_true(kept() == 2 || (!said && kept() == 3));
        expect(DROP, "3-4", 200, kept() == 2 ? "{\"dropped\":0}" : "{\"dropped\":1}");
        expect(DEAD, NULL, 200, "[{\"number\":2,");
        expect(DEAD, NULL, 200, "},{\"number\":6,");
        let_two_take(true);
        expect(REPLAY, "all", 200, "{\"replayed\":2}\n");
        run_until_comes(2);
        run_until_comes(6);
        sim_run_for(world.sim, NS_PER_S);
        assert_int_equal(tally.times[4], 0);
        hosts_world_close(&world);
    }
}

/* --- replaying --- */

static unsigned gone_with_sends, gone_alone;

static void look_at_frame(const struct journal_frame *frame)
{
    struct commit_head head;
    struct span rest;
    struct section section;
    unsigned gone = 0, sent = 0;
    if (frame->kind != FRAME_COMMIT)
        return;
    assert_int_equal(commit_read_head(frame->payload, &head, &rest), 0);
    while (commit_read_section(&rest, &section) > 0) {
        gone += section.type == SECTION_DEAD_GONE;
        sent += section.type == SECTION_SENDS && section.sends.records == 1;
    }
    gone_with_sends += gone == 1 && sent == 1;
    gone_alone += gone > 0 && (gone > 1 || sent == 0);
}

static void look_at_segment(void *context, const char *name)
{
    (void)context;
    char path[64];
    uint8_t *bytes;
    size_t size;
    uint64_t number;
    struct journal_frame frame;
    snprintf(path, sizeof path, "/store/%s", name);
    if (!segment_number(name, &number) || !sim_disk_read(one->disk, path, &bytes, &size))
        return;
    for (size_t at = 0; frame_read(span_of(bytes + at, size - at), 0, number, at, &frame) == FRAME_VALID;
         at += frame.size)
        look_at_frame(&frame);
    free(bytes);
}

/* A crash keeps a frame or not: so there is no point at which a record is both, or neither. */
static void a_record_that_is_sent_again_is_in_one_frame_with_its_letters_end(void **state)
{
    (void)state;
    open_hosts(1, "");
    for (uint64_t number = 1; number <= 3; number++)
        post(number, LARGE);
    run_until_kept(3);
    let_two_take(true);
    expect(REPLAY, "all", 200, "{\"replayed\":3}\n");
    gone_with_sends = gone_alone = 0;
    sim_disk_list(one->disk, "/store", look_at_segment, NULL);
    assert_int_equal(gone_with_sends, 3);
    assert_int_equal(gone_alone, 0);
    hosts_world_close(&world);
}

static void a_range_is_replayed_in_order_at_the_end_of_the_stream(void **state)
{
    (void)state;
    open_hosts(1, "");
    for (uint64_t number = 1; number <= 5; number++)
        post(number, LARGE);
    run_until_kept(5);
    let_two_take(true);
    expect(REPLAY, " 2-4\n", 200, "{\"replayed\":3}\n");
    run_until_comes(4);
    assert_int_equal(tally.first, 2);
    assert_int_equal(tally.records, 3);
    assert_int_equal(tally.disorder, 0);
    expect(REPLAY, "5", 200, "{\"replayed\":1}\n");
    run_until_comes(5);
    expect(DEAD, NULL, 200, "[{\"number\":1,");
    assert_int_equal(kept(), 1);
    hosts_world_close(&world);
}

/* It gets a number of its own, and is a dead letter under that. */
static void a_replayed_record_that_is_refused_again_is_set_aside_again(void **state)
{
    (void)state;
    open_hosts(1, "");
    post(1, LARGE);
    post(2, SMALL);
    run_until_kept(1);
    expect(REPLAY, "1", 200, "{\"replayed\":1}\n");
    run_until_comes(2);
    run_until_kept(1);
    expect(DEAD, NULL, 200, "[{\"number\":3,");
    hosts_world_close(&world);
}

static void a_replay_ends_where_the_output_has_no_room(void **state)
{
    (void)state;
    open_hosts(1, "queue = 200K\nbacklog = 0\nmax_record = 50K\n");
    for (uint64_t number = 1; number <= 8; number++) {
        post(number, LARGE);
        run_until_kept(number);
    }
    world_kill(two);
    expect(REPLAY, "all", 200, "{\"replayed\":5,\"next\":6}\n");
    expect(REPLAY, "6-8", 503, "the output's queue and its backlog are full");
    assert_int_equal(kept(), 3);
    let_two_take(true);
    run_until_comes(5);
    sim_run_for(world.sim, NS_PER_S);
    expect(REPLAY, "6-8", 200, "{\"replayed\":3}\n");
    run_until_comes(8);
    for (uint64_t number = 1; number <= 8; number++)
        assert_int_equal(tally.times[number], 1);
    hosts_world_close(&world);
}

static void a_letter_larger_than_records_may_be_now_stays(void **state)
{
    (void)state;
    open_hosts(1, "max_record = 50K\n");
    post(1, LARGE);
    run_until_kept(1);
    world_kill(one);
    memcpy(strstr(one->text, "50K"), "30K", 3);
    world_start(one);
    expect(REPLAY, "all", 200, "{\"replayed\":0,\"failed\":[1]}\n");
    assert_int_equal(world_logged(one, "it is larger than the output's max_record is now"), 1);
    assert_int_equal(kept(), 1);
    hosts_world_close(&world);
}

/* There is no app of that name at two, so it refuses all. */
static void a_request_does_a_thousand_letters_and_says_where_to_go_on(void **state)
{
    (void)state;
    static char lines[1005 * 2 + 1];
    for (size_t i = 0; i + 1 < sizeof lines; i += 2)
        memcpy(lines + i, "x\n", 3);
    open_hosts(1, "batch_records = 1\nbackoff_min = 1ms\n");
    world_kill(one);
    memcpy(strstr(one->text, "app = dst"), "app = not", 9);
    memcpy(strstr(one->text, "attempts = 2"), "attempts = 1", 12);
    world_start(one);
    world_post(one, "/apps/src/events/e", "application/x-ndjson", lines);
    run_until_kept(1005);
    world_kill(two); /* what is sent again is not refused again at once */
    expect(REPLAY, "2-9999", 200, "{\"replayed\":1000,\"next\":1002}\n");
    expect(REPLAY, "1002-9999", 200, "{\"replayed\":4}\n");
    expect(DEAD, NULL, 200, "{\"dead\":[{\"number\":1,");
    assert_int_equal(kept(), 1);
    world_start(two);
    run_until_kept(1005);
    expect(DROP, "all", 200, "{\"dropped\":1000,\"next\":2005}\n");
    expect(DROP, "2005-99999", 200, "{\"dropped\":5}\n");
    hosts_world_close(&world);
}

static void apps_that_cannot_run_keep_their_letters_in_reach(void **state)
{
    (void)state;
    open_hosts(1, "");
    post(1, LARGE);
    post(2, LARGE);
    run_until_kept(2);
    world_kill(one);
    one->without = "/sim/src";
    world_start(one);
    let_two_take(true);
    expect(DEAD, NULL, 200, "[{\"number\":1,");
    expect(DROP, "2", 200, "{\"dropped\":1}\n");
    expect(REPLAY, "all", 200, "{\"replayed\":1}\n");
    run_until_comes(1);
    hosts_world_close(&world);
}

static void an_output_that_is_gone_keeps_its_letters_to_be_dropped(void **state)
{
    (void)state;
    open_hosts(1, "");
    post(1, LARGE);
    run_until_kept(1);
    world_kill(one);
    *strstr(one->text, "[output") = '\0';
    world_start(one);
    sim_run_for(world.sim, NS_PER_S);
    assert_int_equal(world_logged(one, "its 1 dead letters stay there"), 1);
    expect(DEAD, NULL, 200, "[{\"number\":1,");
    expect(REPLAY, "all", 404, "can be dropped only");
    expect(DROP, "all", 200, "{\"dropped\":1}\n");
    hosts_world_close(&world);
}

/* --- damage --- */

static char segment_path[64]; /* of the record that find_segment was asked for */
static size_t record_at;

/* Looks for spaces behind the number: in a record, not in a head. */
static void look_into(void *context, const char *name)
{
    const char *text = context;
    char path[sizeof segment_path];
    uint8_t *bytes;
    size_t size;
    snprintf(path, sizeof path, "/store/%s", name);
    if (!strstr(name, ".journal") || !sim_disk_read(one->disk, path, &bytes, &size))
        return;
    const uint8_t *record = memmem(bytes, size, text, strlen(text));
    if (record) {
        memcpy(segment_path, path, sizeof path);
        record_at = (size_t)(record - bytes);
    }
    free(bytes);
}

static void find_segment(const char *record)
{
    segment_path[0] = '\0';
    sim_disk_list(one->disk, "/store", look_into, (void *)record);
    assert_true(segment_path[0] != '\0');
}

static void a_letter_whose_record_is_damaged_stays_and_is_named(void **state)
{
    (void)state;
    open_hosts(1, "");
    post(1, LARGE);
    post(2, LARGE);
    run_until_kept(2);
    let_two_take(true);
    find_segment("1               ");
    uint8_t *bytes;
    size_t size;
    assert_true(sim_disk_read(one->disk, segment_path, &bytes, &size));
    bytes[record_at + 100] ^= 1;
    sim_disk_write(one->disk, segment_path, bytes, size);
    free(bytes);
    expect(REPLAY, "all", 200, "{\"replayed\":1,\"failed\":[1]}\n");
    assert_int_equal(world_logged(one, "dead letter 1 cannot be replayed"), 1);
    run_until_comes(2);
    expect(DEAD, NULL, 200, "[{\"number\":1,");
    expect(DROP, "1", 200, "{\"dropped\":1}\n");
    hosts_world_close(&world);
}

/* --- the limit --- */

static void at_the_limit_an_output_rests_until_letters_are_gone(void **state)
{
    (void)state;
    open_hosts(1, "dead = 2\nqueue = 200K\nbacklog = 0\nmax_record = 50K\n");
    for (uint64_t number = 1; number <= 3; number++)
        post(number, LARGE);
    post(4, SMALL);
    sim_run_for(world.sim, 5 * NS_PER_S);
    assert_int_equal(kept(), 2);
    assert_int_equal(tally.records, 0);
    assert_int_equal(world_logged(one, "2 dead letters are kept, which is the most"), 1);
    post(5, LARGE);
    post(6, LARGE); /* the queue is over 75 %: the app waits, and takes nothing from its inbox */
    post(7, LARGE);
    sim_run_for(world.sim, NS_PER_S);
    assert_int_equal(world_logged(one, "app src takes no more events"), 1);
    expect(DROP, "1", 200, "{\"dropped\":1}\n");
    run_until_comes(4);
    assert_int_equal(world_logged(one, "there is room for dead letters again"), 1);
    sim_run_for(world.sim, NS_PER_S);
    assert_int_equal(world_logged(one, "which is the most"), 2);
    expect(DROP, "all", 200, "{\"dropped\":2}\n");
    sim_run_for(world.sim, 3 * NS_PER_S);
    expect(DROP, "all", 200, "{\"dropped\":2}\n");
    post(8, SMALL);
    run_until_comes(8);
    assert_int_equal(tally.records, 2);
    hosts_world_close(&world);
}

/* --- segments --- */

static bool segment_is_there(void)
{
    uint8_t *bytes;
    size_t size;
    bool there = sim_disk_read(one->disk, segment_path, &bytes, &size);
    if (there)
        free(bytes);
    return there;
}

static void fill_segments(uint64_t from, uint64_t to)
{
    for (uint64_t number = from; number <= to; number++)
        post(number, 20000);
    run_until_comes(to);
    sim_run_for(world.sim, 3 * NS_PER_S);
}

static void snapshots_keep_letters_and_letters_their_segments(void **state)
{
    (void)state;
    open_hosts(1, "");
    post(1, LARGE);
    run_until_kept(1);
    find_segment("1               ");
    fill_segments(2, 60);
    assert_true(segment_is_there());
    for (unsigned i = 0; i < 3; i++) { /* the second start knows the letter from a snapshot alone */
        world_crash(one);
        world_start(one);
        sim_run_for(world.sim, NS_PER_S);
        assert_int_equal(kept(), 1);
        assert_true(segment_is_there());
    }
    expect(DROP, "1", 200, "{\"dropped\":1}\n");
    fill_segments(61, 80);
    assert_false(segment_is_there());
    hosts_world_close(&world);
}

static bool journal_is_full(void *context)
{
    (void)context;
    bool full = false;
    for (unsigned i = 0; i < one->host->owner_count; i++)
        full |= atomic_load(&one->host->journals[i].writer.condition) == JOURNAL_FULL;
    return full;
}

static void on_a_full_disk_letters_can_be_dropped_which_frees_it(void **state)
{
    (void)state;
    static char body[20001];
    memset(body, ' ', sizeof body - 1);
    open_hosts(1, "");
    post(1, LARGE);
    run_until_kept(1);
    fill_segments(2, 30); /* the letter's is the only one that is kept */
    struct sim_disk_policy policy = sim_disk_default;
    policy.capacity_bytes = sim_disk_used(one->disk) - 512 * 1024; /* more than snapshots let go */
    sim_disk_set(one->disk, &policy);
    struct sim_connection *posts[30];
    for (unsigned i = 0; i < ARRAY_SIZE(posts); i++) {
        body[snprintf(body, sizeof body, "%u", 31 + i)] = ' ';
        posts[i] = world_post(one, "/apps/src/events/e", NULL, body);
        sim_run_for(world.sim, 10 * NS_PER_MS);
    }
    assert_int_equal(sim_run_until(world.sim, journal_is_full, NULL), SIM_DONE);
    sim_run_for(world.sim, 3 * NS_PER_S);
    assert_int_equal(world_status(posts[ARRAY_SIZE(posts) - 1]), 503); /* at once */
    assert_true(world_reply_has(posts[ARRAY_SIZE(posts) - 1], "the disk of the store is full"));
    expect(DROP, "1", 200, "{\"dropped\":1}\n");
    sim_run_for(world.sim, 5 * NS_PER_S);
    assert_int_equal(world_logged(one, "there is place on the disk again"), 1);
    hosts_world_close(&world);
}

static void letters_whose_segment_is_missing_are_said_to_be_lost(void **state)
{
    (void)state;
    open_hosts(1, "");
    post(1, LARGE);
    run_until_kept(1);
    find_segment("1               ");
    fill_segments(2, 60);
    world_kill(one);
    assert_true(sim_disk_remove(one->disk, segment_path));
    world_start(one);
    sim_run_for(world.sim, NS_PER_S);
    assert_int_equal(world_logged(one, "the records of 1 dead letters are lost"), 1);
    expect(REPLAY, "all", 200, "{\"replayed\":0,\"failed\":[1]}\n");
    expect(DROP, "all", 200, "{\"dropped\":1}\n");
    hosts_world_close(&world);
}

/* --- the front --- */

static void requests_that_cannot_be_are_refused(void **state)
{
    (void)state;
    open_hosts(1, "[app off]\nmodule = /sim/src\ndurability = memory\n");
    expect("/outputs/src.none/dead", NULL, 404, "no such output");
    expect("/outputs/none.out/dead", NULL, 404, "there is no such output");
    expect("/outputs/src/dead", NULL, 404, "there is no such output");
    expect("/outputs/src.out", NULL, 404, "there is nothing here");
    expect("/outputs/", NULL, 404, "there is nothing here");
    expect("/outputs/off.out/dead", NULL, 409, "keeps nothing on disk");
    expect("/outputs/off.out/dead/drop", "all", 409, "keeps nothing on disk");
    expect(DEAD "?from=x", NULL, 400, "from has to be a number");
    expect(DEAD, "all", 405, "Allow: GET, HEAD\r\n");
    expect(DROP, NULL, 405, "Allow: POST\r\n");
    static const char *const wrong[] = {"",
                                        "0",
                                        "5-",
                                        "-5",
                                        "6-5",
                                        "a",
                                        "1-2-3",
                                        "all of them",
                                        "18446744073709551616",
                                        "11111111111111111111111111111111111111111111111111111111111111111"};
    for (unsigned i = 0; i < ARRAY_SIZE(wrong); i++)
        expect(DROP, wrong[i], 400, "the body has to be a number, two as in 5-9, or all");
    expect(DROP, "1-18446744073709551615", 200, "{\"dropped\":0}\n");
    expect(REPLAY, "all", 200, "{\"replayed\":0}\n");
    hosts_world_close(&world);
}

static void one_request_is_done_at_a_time(void **state)
{
    (void)state;
    open_hosts(1, "");
    for (uint64_t number = 1; number <= 4; number++)
        post(number, LARGE);
    run_until_kept(4);
    struct sim_connection *first = world_post(one, REPLAY, NULL, "all");
    struct sim_connection *second = world_post(one, DROP, NULL, "all");
    sim_run_for(world.sim, 100 * NS_PER_MS);
    assert_int_equal(world_status(first) + world_status(second), 200 + 503);
    hosts_world_close(&world);
}

static void without_attempts_nothing_is_set_aside(void **state)
{
    (void)state;
    open_hosts(1, "");
    world_kill(one);
    strcpy(strstr(one->text, "attempts"), "backoff_max = 200ms\n");
    world_start(one);
    post(1, LARGE);
    sim_run_for(world.sim, 10 * NS_PER_S);
    assert_int_equal(kept(), 0);
    assert_int_equal(world_outlet(one, "src", "out")->dead.state, OUTLET_DEAD_NONE);
    hosts_world_close(&world);
}

static void requests_after_a_failed_store_say_so(void **state)
{
    (void)state;
    open_hosts(1, "");
    post(1, LARGE);
    run_until_kept(1);
    struct sim_disk_policy policy = sim_disk_default;
    policy.write_error = 1000;
    sim_disk_set(one->disk, &policy);
    expect(DROP, "all", 500, "the store has failed");
    expect(REPLAY, "all", 500, "the store has failed");
    expect(DEAD, NULL, 200, "\"more\":false");
    sim_disk_set(one->disk, &sim_disk_default);
    world_kill(one);
    world_start(one);
    assert_true(kept() <= 1); /* what a write has done that failed, nobody knows before */
    hosts_world_close(&world);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_that_is_always_refused_is_set_aside_and_the_next_follows),
        cmocka_unit_test(letters_survive_crashes_and_none_is_sent_again),
        cmocka_unit_test(replayed_letters_are_sent_once_across_crashes),
        cmocka_unit_test(what_is_said_to_be_dropped_is_gone_after_any_crash),
        cmocka_unit_test(a_record_that_is_sent_again_is_in_one_frame_with_its_letters_end),
        cmocka_unit_test(a_range_is_replayed_in_order_at_the_end_of_the_stream),
        cmocka_unit_test(a_replayed_record_that_is_refused_again_is_set_aside_again),
        cmocka_unit_test(a_replay_ends_where_the_output_has_no_room),
        cmocka_unit_test(a_letter_larger_than_records_may_be_now_stays),
        cmocka_unit_test(a_request_does_a_thousand_letters_and_says_where_to_go_on),
        cmocka_unit_test(apps_that_cannot_run_keep_their_letters_in_reach),
        cmocka_unit_test(an_output_that_is_gone_keeps_its_letters_to_be_dropped),
        cmocka_unit_test(a_letter_whose_record_is_damaged_stays_and_is_named),
        cmocka_unit_test(at_the_limit_an_output_rests_until_letters_are_gone),
        cmocka_unit_test(snapshots_keep_letters_and_letters_their_segments),
        cmocka_unit_test(on_a_full_disk_letters_can_be_dropped_which_frees_it),
        cmocka_unit_test(letters_whose_segment_is_missing_are_said_to_be_lost),
        cmocka_unit_test(requests_that_cannot_be_are_refused),
        cmocka_unit_test(one_request_is_done_at_a_time),
        cmocka_unit_test(without_attempts_nothing_is_set_aside),
        cmocka_unit_test(requests_after_a_failed_store_say_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
