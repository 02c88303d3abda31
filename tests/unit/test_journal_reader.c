/* The journal's reader on a simulated disk: what it brings back is what was written, whatever became of parts
 * of it.
 *
 *     writer (this file) --> segments on the disk --> [ reader on a loop ] --> askers, one an output, who
 *                              damage, errors                                  compare */
#include "tests/unit/fewer.h"
#include "core/random.h"
#include "core/record.h"
#include "journal/reader.h"
#include "tests/sim/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define STORE       0x1122334455667788u
#define OUTPUTS     5
#define SEGMENTS    3
#define RECORDS     4000 /* of an output, at most */
#define LARGE_BYTES (3 * READER_WINDOW)

/* What was written of an output, and who asks for it. */
struct asker {
    struct read_request request;
    const char *app, *output;
    unsigned id;
    uint64_t written;            /* number of the last record */
    uint64_t last[SEGMENTS + 1]; /* as of that segment */
    bool there[RECORDS + 1];     /* not damaged */
    bool got[RECORDS + 1];
    unsigned segment; /* that is asked for, from 1; behind SEGMENTS: all are done */
    uint64_t hole;    /* a hole up to this number was met; 0: none */
    uint64_t lost;    /* as told */
    unsigned full, failed;
    enum read_end end;
    int error;
};

static struct rig {
    struct sim *sim;
    struct sim_disk *disk;
    struct loop loop;
    struct store store;
    struct journal_reader reader;
    struct random random;
    struct frame_buffer frames; /* of the segment that is being written, unplaced ones last */
    uint8_t *bytes;             /* of the segment */
    size_t size;
    struct asker askers[OUTPUTS];
    bool take_parts;
    unsigned done;
} rig;

static void rig_open(uint64_t seed)
{
    static const char *const names[OUTPUTS][2] = {
        {"a", "x"}, {"a", "y"}, {"b", "x"}, {"b", "xx"}, {"bb", "x"}};
    memset(&rig, 0, sizeof rig);
    rig.random.state = seed;
    rig.sim = sim_new(seed);
    rig.disk = sim_disk_new(rig.sim);
    sim_host_disk(rig.sim, "10.0.0.1", rig.disk);
    sim_disk_make_directory(rig.disk, "/store");
    struct files *files = sim_disk_files(rig.disk);
    rig.store.id = STORE;
    rig.store.directory = files->backend->open(files, AT_FDCWD, "/store", O_RDONLY | O_DIRECTORY, 0);
    assert_true(rig.store.directory >= 0);
    assert_int_equal(loop_init(&rig.loop, sim_io(rig.sim, "10.0.0.1"), 64, 8), 0);
    sim_add_loop(rig.sim, &rig.loop);
    assert_int_equal(journal_reader_init(&rig.reader, &rig.store, &rig.loop), 0);
    frame_buffer_init(&rig.frames);
    for (unsigned i = 0; i < OUTPUTS; i++) {
        rig.askers[i].id = i;
        rig.askers[i].app = names[i][0];
        rig.askers[i].output = names[i][1];
    }
}

static bool stopped(void *context)
{
    (void)context;
    return journal_reader_stopped(&rig.reader);
}

static void rig_close(void)
{
    journal_reader_stop(&rig.reader);
    assert_int_equal(sim_run_until(rig.sim, stopped, NULL), SIM_DONE);
    journal_reader_dispose(&rig.reader);
    sim_remove_loop(rig.sim, &rig.loop);
    loop_dispose(&rig.loop);
    frame_buffer_dispose(&rig.frames);
    free(rig.bytes);
    sim_free(rig.sim);
}

static void set_disk(const struct sim_disk_policy *more)
{
    struct sim_disk_policy policy = sim_disk_default;
    policy.short_read = more->short_read;
    policy.read_error = more->read_error;
    sim_disk_set(rig.disk, &policy);
}

/* --- writing --- */

static size_t record_size(uint64_t n)
{
    return n % 501 == 500 ? LARGE_BYTES - n : n % 7 == 0 ? 0 : n % 300;
}

static uint8_t record_byte(unsigned output, uint64_t n)
{
    return (uint8_t)(n * 31 + output * 101);
}

/* A section with `count` records more of an output. */
static void put_sends(struct asker *a, uint64_t count)
{
    static uint8_t bytes[8 * READER_WINDOW];
    uint8_t *at = bytes;
    uint64_t first = a->written + 1, behind = first + count;
    for (uint64_t n = first; n < behind && at + record_size(n) + 8 < bytes + sizeof bytes; n++) {
        at += varint_put(at, record_size(n));
        memset(at, record_byte(a->id, n), record_size(n));
        at += record_size(n);
        a->written = n;
    }
    assert_true(a->written <= RECORDS);
    struct section section = {.type = SECTION_SENDS,
                              .sends = {.output = span_text(a->output),
                                        .first = first,
                                        .records = a->written - first + 1,
                                        .bytes = span_of(bytes, (size_t)(at - bytes))}};
    commit_put(&rig.frames, &section);
}

static void begin_frame(const char *app)
{
    commit_begin(&rig.frames, FRAME_COMMIT, span_text(app), 1);
}

static void end_frame(void)
{
    assert_int_equal(commit_end(&rig.frames, 0), 0);
}

/* All frames since the last batch become one, behind what the segment has. */
static void place(uint64_t segment)
{
    frames_place(&rig.frames, STORE, segment, rig.size);
    rig.bytes = realloc(rig.bytes, rig.size + rig.frames.size);
    memcpy(rig.bytes + rig.size, rig.frames.data, rig.frames.size);
    rig.size += rig.frames.size;
    frame_buffer_clear(&rig.frames, 0);
}

static void begin_segment(uint64_t segment)
{
    rig.size = 0;
    header_write(&rig.frames, 1, NULL, 0);
    place(segment);
}

static void path_of(uint64_t segment, char path[64])
{
    char name[SEGMENT_NAME_SIZE];
    segment_name(segment, name);
    snprintf(path, 64, "/store/%s", name);
}

/* The file is `blank` bytes longer than what was written. */
static void to_disk(uint64_t segment, size_t blank)
{
    char path[64];
    path_of(segment, path);
    uint8_t *bytes = calloc(1, rig.size + blank);
    memcpy(bytes, rig.bytes, rig.size);
    sim_disk_write(rig.disk, path, bytes, rig.size + blank);
    free(bytes);
}

/* A frame of each output with `count` records, and one to pass over. */
static void write_round(uint64_t count)
{
    for (unsigned i = 0; i < OUTPUTS; i++) {
        begin_frame(rig.askers[i].app);
        put_sends(&rig.askers[i], count);
        end_frame();
    }
    frame_begin(&rig.frames, FRAME_SNAPSHOT);
    frame_put(&rig.frames, "nothing", 7);
    assert_int_equal(frame_end(&rig.frames), 0);
}

/* --- asking --- */

static void check(struct asker *a, const struct section_sends *sends, uint64_t count)
{
    const uint8_t *at = sends->bytes.data, *end = at + sends->bytes.size;
    assert_true(sends->records > 0);
    for (uint64_t n = sends->first; n < sends->first + sends->records; n++) {
        struct span record;
        at += record_get(at, end, &record);
        assert_int_equal(record.size, record_size(n));
        for (size_t i = 0; i < record.size; i += 97)
            assert_int_equal(record.data[i], record_byte(a->id, n));
        if (n >= sends->first + count)
            continue;
        assert_false(a->got[n]);
        a->got[n] = true;
    }
    assert_ptr_equal(at, end);
}

static void see_lost(struct asker *a, uint64_t first, uint64_t last)
{
    for (uint64_t n = first; n <= last; n++)
        assert_false(a->there[n]);
    a->lost += last - first + 1;
}

static uint64_t take(struct read_request *q, const struct section_sends *sends)
{
    struct asker *a = container_of(q, struct asker, request);
    assert_true(sends->first >= q->next);
    assert_true(sends->first + sends->records - 1 <= q->last);
    if (sends->first > q->next && rig.take_parts) { /* first the hole, then what is behind it */
        a->hole = sends->first - 1;
        return 0;
    }
    if (sends->first > q->next)
        see_lost(a, q->next, sends->first - 1);
    uint64_t count = rig.take_parts ? random_below(&rig.random, sends->records + 1) : sends->records;
    check(a, sends, count);
    return count;
}

static void done(struct read_request *q, enum read_end end, int error);

static void ask(struct asker *a, uint64_t segment, uint64_t offset, uint64_t next, uint64_t last)
{
    a->request = (struct read_request){.app = a->app,
                                       .output = a->output,
                                       .segment = segment,
                                       .offset = offset,
                                       .next = next,
                                       .last = last,
                                       .take = take,
                                       .done = done};
    journal_read(&rig.reader, &a->request);
}

/* On to the next segment that has any. */
static void ask_next_segment(struct asker *a)
{
    while (++a->segment <= SEGMENTS && a->last[a->segment] == a->last[a->segment - 1])
        ;
    if (a->segment <= SEGMENTS)
        ask(a, a->segment, 0, a->last[a->segment - 1] + 1, a->last[a->segment]);
    else
        rig.done++;
}

static void ask_again(struct asker *a)
{
    struct read_request q = a->request;
    ask(a, q.segment, q.offset, q.next, q.last);
}

/* Of the whole history. */
static void go_on(struct asker *a, enum read_end end)
{
    struct read_request *q = &a->request;
    if (end == READ_LOST)
        see_lost(a, q->next, q->last);
    if (end == READ_FULL && a->hole > 0) {
        see_lost(a, q->next, a->hole);
        q->next = a->hole + 1;
        a->hole = 0;
    }
    if (end == READ_FULL || end == READ_FAILED)
        ask_again(a);
    else
        ask_next_segment(a);
}

static void done(struct read_request *q, enum read_end end, int error)
{
    struct asker *a = container_of(q, struct asker, request);
    assert_false(q->waiting);
    assert_int_equal(error == 0, end != READ_FAILED);
    assert_int_equal(rig.reader.room, READER_WINDOW); /* more is given back */
    assert_int_equal(end == READ_DONE, q->next > q->last);
    a->end = end;
    a->error = error;
    a->full += end == READ_FULL;
    a->failed += end == READ_FAILED;
    if (a->segment > 0)
        go_on(a, end);
    else
        rig.done++;
}

static bool all_done(void *context)
{
    return rig.done >= *(unsigned *)context;
}

static void run_until_done(unsigned count)
{
    assert_int_equal(sim_run_until(rig.sim, all_done, &count), SIM_DONE);
}

/* --- a whole history, whatever happens to it --- */

/* Up to 40 frames a batch, of outputs at random, with up to two sections. */
static void write_batch(uint64_t segment)
{
    uint64_t frames = 1 + random_below(&rig.random, 40);
    for (uint64_t i = 0; i < frames; i++) {
        struct asker *a = &rig.askers[random_below(&rig.random, OUTPUTS)];
        if (a->written + 60 > RECORDS)
            continue;
        begin_frame(a->app);
        put_sends(a, 1 + random_below(&rig.random, 30));
        struct asker *other = &rig.askers[a->id ^ 1];
        if (a->id < 4 && other->app == a->app)
            put_sends(other, 1 + random_below(&rig.random, 20));
        end_frame();
    }
    place(segment);
}

/* What is in a frame that is damaged is there no more. */
static void note(const struct journal_frame *frame, bool there)
{
    struct commit_head head;
    struct span rest;
    struct section section;
    if (frame->kind != FRAME_COMMIT)
        return;
    assert_int_equal(commit_read_head(frame->payload, &head, &rest), 0);
    while (commit_read_section(&rest, &section) > 0) {
        for (unsigned i = 0; i < OUTPUTS; i++) {
            struct asker *a = &rig.askers[i];
            if (!span_is(head.app, a->app) || !span_is(section.sends.output, a->output))
                continue;
            for (uint64_t n = 0; n < section.sends.records; n++)
                a->there[section.sends.first + n] = there;
        }
    }
}

/* Each frame with a chance in 1/1000: a byte is wrong, or a lot of it is zeros. */
static void damage_segment(uint64_t segment, uint64_t chance)
{
    for (size_t at = 0; at < rig.size;) {
        struct journal_frame frame;
        assert_int_equal(frame_read(span_of(rig.bytes + at, rig.size - at), STORE, segment, at, &frame),
                         FRAME_VALID);
        bool damaged = random_below(&rig.random, 1000) < chance;
        note(&frame, !damaged);
        uint32_t size = frame.size;
        uint64_t where = random_below(&rig.random, size);
        if (damaged && random_below(&rig.random, 2) > 0)
            memset(rig.bytes + at, 0, size);
        else if (damaged)
            rig.bytes[at + where] ^= (uint8_t)(1 + random_below(&rig.random, 255));
        at += size;
    }
}

static void put_seal(uint64_t segment)
{
    struct seal seal;
    seal_init(&seal);
    seal_write(&rig.frames, &seal);
    seal_dispose(&seal);
    place(segment);
}

static void write_history(uint64_t damage)
{
    for (uint64_t segment = 1; segment <= SEGMENTS; segment++) {
        begin_segment(segment);
        uint64_t batches = random_below(&rig.random, 8);
        for (uint64_t i = 0; i < batches; i++)
            write_batch(segment);
        bool sealed = random_below(&rig.random, 2) > 0;
        damage_segment(segment, damage);
        if (sealed)
            put_seal(segment);
        to_disk(segment, random_below(&rig.random, 2) * READER_WINDOW * 2);
        for (unsigned i = 0; i < OUTPUTS; i++)
            rig.askers[i].last[segment] = rig.askers[i].written;
    }
}

static void history(uint64_t seed)
{
    rig_open(seed);
    write_history(seed % 3 == 0 ? 0 : seed % 3 == 1 ? 30 : 300);
    set_disk(&(struct sim_disk_policy){.short_read = seed % 2 ? 300 : 0, .read_error = seed % 5 ? 0 : 100});
    rig.take_parts = seed % 4 > 1;
    for (unsigned i = 0; i < OUTPUTS; i++)
        ask_next_segment(&rig.askers[i]);
    run_until_done(OUTPUTS);
    for (unsigned i = 0; i < OUTPUTS; i++) {
        struct asker *a = &rig.askers[i];
        for (uint64_t n = 1; n <= a->written; n++)
            assert_int_equal(a->got[n], a->there[n]);
    }
    if (seed % 3 == 0)
        assert_int_equal(counter_read(&rig.reader.damages), 0);
    rig_close();
}

static void what_is_not_damaged_comes_back_once_and_in_order(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= FEWER(30); seed++)
        history(seed);
}

/* --- one thing at a time --- */

/* One segment, in which all of all outputs is there. */
static void write_rounds(unsigned rounds, uint64_t count)
{
    begin_segment(1);
    for (unsigned i = 0; i < rounds; i++) {
        write_round(count);
        place(1);
    }
    to_disk(1, 0);
}

static void a_segment_that_is_not_there_has_lost_them(void **state)
{
    (void)state;
    rig_open(1);
    ask(&rig.askers[0], 7, 0, 1, 10);
    run_until_done(1);
    assert_int_equal(rig.askers[0].end, READ_LOST);
    assert_int_equal(rig.reader.fd, -1);
    rig_close();
}

static void a_disk_that_fails_says_nothing_of_the_records(void **state)
{
    (void)state;
    rig_open(1);
    write_rounds(2, 10);
    set_disk(&(struct sim_disk_policy){.read_error = 1000});
    ask(&rig.askers[0], 1, 0, 1, 20);
    run_until_done(1);
    assert_int_equal(rig.askers[0].end, READ_FAILED);
    assert_int_equal(rig.askers[0].error, -EIO);
    assert_int_equal(rig.askers[0].request.next, 1);
    set_disk(&(struct sim_disk_policy){0});
    ask_again(&rig.askers[0]);
    run_until_done(2);
    assert_int_equal(rig.askers[0].end, READ_DONE);
    rig_close();
}

static void only_what_is_asked_for_is_given(void **state)
{
    (void)state;
    rig_open(1);
    write_rounds(3, 20);
    ask(&rig.askers[1], 1, 0, 15, 45); /* a part of the first, of the third */
    run_until_done(1);
    assert_int_equal(rig.askers[1].end, READ_DONE);
    for (uint64_t n = 1; n <= 60; n++)
        assert_int_equal(rig.askers[1].got[n], n >= 15 && n <= 45);
    ask(&rig.askers[1], 1, rig.askers[1].request.offset, 46, 60); /* from the frame of the last on */
    run_until_done(2);
    assert_int_equal(rig.askers[1].end, READ_DONE);
    assert_true(rig.askers[1].got[60]);
    rig_close();
}

/* Frames that were written since the window was read are found, and what lies behind them does not matter. */
static void a_segment_that_is_being_written_gives_what_is_durable(void **state)
{
    (void)state;
    rig_open(1);
    struct asker *a = &rig.askers[2];
    begin_segment(1);
    for (unsigned round = 1; round <= 30; round++) {
        write_round(3);
        place(1);
        size_t durable = rig.size;
        write_round(3); /* half of it is written, somehow */
        place(1);
        for (size_t i = durable + random_below(&rig.random, 400); i < rig.size; i += 3)
            rig.bytes[i] = 0;
        to_disk(1, round % 2 * 4 * READER_WINDOW);
        rig.size = durable;
        for (unsigned i = 0; i < OUTPUTS; i++)
            rig.askers[i].written = 3 * round;
        ask(a, 1, a->request.offset, 3 * round - 2, 3 * round);
        run_until_done(round);
        assert_int_equal(a->end, READ_DONE);
        assert_true(a->got[3 * round]);
    }
    assert_int_equal(counter_read(&rig.reader.damages), 0);
    rig_close();
}

/* Searching in vain moves the place to go on from no further than valid frames do: there may be more of them
 * later. */
static void what_is_written_behind_lost_records_is_found(void **state)
{
    (void)state;
    rig_open(1);
    struct asker *a = &rig.askers[0];
    write_rounds(1, 10);
    to_disk(1, 3 * READER_WINDOW);
    ask(a, 1, 0, 1, 15); /* 11 to 15 are not there */
    run_until_done(1);
    assert_int_equal(a->end, READ_LOST);
    assert_int_equal(a->request.next, 11);
    a->written = 15;
    write_round(5);
    place(1);
    to_disk(1, 3 * READER_WINDOW);
    ask(a, 1, a->request.offset, 16, 20);
    run_until_done(2);
    assert_int_equal(a->end, READ_DONE);
    assert_true(a->got[20]);
    rig_close();
}

static void a_seal_ends_a_segment(void **state)
{
    (void)state;
    rig_open(1);
    begin_segment(1);
    put_seal(1);
    write_round(5); /* nothing counts behind it */
    place(1);
    to_disk(1, 0);
    ask(&rig.askers[0], 1, 0, 1, 5);
    run_until_done(1);
    assert_int_equal(rig.askers[0].end, READ_LOST);
    rig_close();
}

/* A frame of several windows; its memory is given back (see `done`). What a damaged head states costs none.
 */
static void memory_is_for_frames_that_are_there(void **state)
{
    (void)state;
    rig_open(1);
    struct asker *a = &rig.askers[3];
    write_rounds(3, 499);
    a->written = 499;
    begin_segment(1);
    begin_frame(a->app);
    put_sends(a, 4); /* number 500 is large */
    end_frame();
    place(1);
    size_t behind_large = rig.size;
    begin_frame(a->app);
    put_sends(a, 2);
    end_frame();
    place(1);
    to_disk(1, 0);
    ask(a, 1, 0, 500, 505);
    size_t most = 0;
    for (unsigned steps = 0; rig.done < 1; steps++) {
        assert_true(steps < 1000);
        sim_run_for(rig.sim, 20000);
        most = rig.reader.room > most ? rig.reader.room : most;
    }
    assert_int_equal(a->end, READ_DONE);
    assert_true(most > LARGE_BYTES - 1000 && most < 2 * LARGE_BYTES);
    sim_run_for(rig.sim, NS_PER_MS);
    memcpy(rig.bytes + behind_large + 8, "\0\0\0\x10", 4); /* 2^28 bytes, it says */
    to_disk(1, 2 * READER_WINDOW);
    memset(a->got, 0, sizeof a->got);
    ask(a, 1, behind_large, 504, 505);
    for (unsigned steps = 0; rig.done < 2; steps++) {
        assert_true(steps < 1000);
        sim_run_for(rig.sim, 20000);
        assert_true(rig.reader.room <= 4 * READER_WINDOW);
    }
    assert_int_equal(a->end, READ_LOST);
    rig_close();
}

/* A frame whose sections are none of this format: valid, and of no use. */
static void frames_that_make_no_sense_are_passed_over(void **state)
{
    (void)state;
    rig_open(1);
    begin_segment(1);
    begin_frame("a");
    frame_put(&rig.frames, "\x77nonsense", 9);
    end_frame();
    frame_begin(&rig.frames, FRAME_COMMIT);
    assert_int_equal(frame_end(&rig.frames), 0);
    write_round(5);
    place(1);
    to_disk(1, 0);
    ask(&rig.askers[0], 1, 0, 1, 5);
    run_until_done(1);
    assert_int_equal(rig.askers[0].end, READ_DONE);
    assert_int_equal(counter_read(&rig.reader.damages), 1);
    rig_close();
}

static void a_long_search_holds_up_nobody(void **state)
{
    (void)state;
    rig_open(1);
    write_rounds(1, 10);
    to_disk(1, 100 * READER_WINDOW);
    begin_segment(2);
    write_round(10);
    place(2);
    to_disk(2, 0);
    rig.askers[1].written = rig.askers[0].written;
    ask(&rig.askers[0], 1, 0, 1, 1000); /* to the end of the file, in vain */
    ask(&rig.askers[1], 2, 0, 11, 20);
    run_until_done(1);
    assert_int_equal(rig.askers[1].end, READ_DONE);
    assert_true(rig.askers[0].request.waiting);
    assert_true(counter_read(&rig.reader.bytes) < 4 * READER_WINDOW);
    run_until_done(2);
    assert_int_equal(rig.askers[0].end, READ_LOST);
    rig_close();
}

/* Those who ask for the same place one after the other cost one read. */
static void a_window_is_used_as_long_as_it_is_good(void **state)
{
    (void)state;
    rig_open(1);
    write_rounds(20, 10);
    for (unsigned i = 0; i < OUTPUTS; i++)
        ask(&rig.askers[i], 1, 0, 1, 200);
    run_until_done(OUTPUTS);
    assert_true(counter_read(&rig.reader.bytes) <= READER_WINDOW);
    for (unsigned i = 0; i < OUTPUTS; i++)
        assert_int_equal(rig.askers[i].end, READ_DONE);
    rig_close();
}

/* An open file keeps its space on the disk, also when it is unlinked. */
static void no_segment_stays_open_when_nobody_asks(void **state)
{
    (void)state;
    rig_open(1);
    write_rounds(2, 10);
    ask(&rig.askers[0], 1, 0, 1, 20);
    run_until_done(1);
    sim_run_for(rig.sim, NS_PER_MS);
    assert_int_equal(rig.reader.fd, -1);
    memset(rig.askers[0].got, 0, sizeof rig.askers[0].got);
    ask(&rig.askers[0], 1, 0, 1, 20);
    run_until_done(2);
    assert_int_equal(rig.askers[0].end, READ_DONE);
    rig_close();
}

static void a_stop_at_any_moment_ends_all_and_tells_nobody(void **state)
{
    (void)state;
    for (uint64_t ns = 0; ns < 400000; ns += 7000) {
        rig_open(1 + ns);
        write_rounds(2, 10);
        to_disk(1, 10 * READER_WINDOW);
        ask(&rig.askers[0], 1, 0, 1, 1000);
        ask(&rig.askers[1], 1, 0, 1, 1000);
        sim_run_for(rig.sim, ns);
        unsigned before = rig.done;
        journal_reader_stop(&rig.reader);
        memset(&rig.askers[0].request, 0, sizeof rig.askers[0].request);
        memset(&rig.askers[1].request, 0, sizeof rig.askers[1].request);
        assert_int_equal(sim_run_until(rig.sim, stopped, NULL), SIM_DONE);
        assert_int_equal(rig.done, before);
        rig_close();
    }
}

int main(int argc, char **argv)
{
    if (argc > 1) { /* one seed, to replay */
        history(strtoull(argv[1], NULL, 10));
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_not_damaged_comes_back_once_and_in_order),
        cmocka_unit_test(a_segment_that_is_not_there_has_lost_them),
        cmocka_unit_test(a_disk_that_fails_says_nothing_of_the_records),
        cmocka_unit_test(only_what_is_asked_for_is_given),
        cmocka_unit_test(a_segment_that_is_being_written_gives_what_is_durable),
        cmocka_unit_test(what_is_written_behind_lost_records_is_found),
        cmocka_unit_test(a_seal_ends_a_segment),
        cmocka_unit_test(memory_is_for_frames_that_are_there),
        cmocka_unit_test(frames_that_make_no_sense_are_passed_over),
        cmocka_unit_test(a_long_search_holds_up_nobody),
        cmocka_unit_test(a_window_is_used_as_long_as_it_is_good),
        cmocka_unit_test(no_segment_stays_open_when_nobody_asks),
        cmocka_unit_test(a_stop_at_any_moment_ends_all_and_tells_nobody),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
