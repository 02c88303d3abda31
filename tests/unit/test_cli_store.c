/* Commands that look into a store: `log`, `fsck`, and what `check` says of one. */
#include "tests/unit/cli_segments.h"

#include <sys/file.h>

/* --- log --- */

static int show_log(const struct segments *s, char *said, size_t size, const char *option, const char *value)
{
    struct fake fake = {0};
    return run(&fake, said, size, WORDS("log", "--store", s->directory, "counter", option, value));
}

#define TIME   "2026-10-09T12:00:00.123Z "
#define FIRST  TIME "commit 1, stored 1\n  event add 1 from http\n    1: five\n  send log 1\n    1: five\n"
#define SECOND TIME "commit 2, stored 2\n  event add 2 from http\n    2: six\n  send log 2\n    2: six\n"

static void a_log_is_what_one_app_took_and_sent(void **state)
{
    (void)state;
    struct segments s;
    char said[4000];
    segments_make(&s);
    segments_begin(&s, 1);
    segments_commit(&s, "counter", 1, "five");
    segments_commit(&s, "counter2", 1, "another's");
    segments_begin(&s, 2);
    segments_commit(&s, "counter", 2, "six");
    assert_int_equal(show_log(&s, said, sizeof said, NULL, NULL), CLI_DONE);
    assert_string_equal(said, FIRST SECOND);
    assert_int_equal(show_log(&s, said, sizeof said, "--from", "2"), CLI_DONE);
    assert_string_equal(said, SECOND);
    assert_int_equal(show_log(&s, said, sizeof said, "--from=3", NULL), CLI_DONE);
    assert_string_equal(said, "");
    segments_remove(&s);
}

static void put_run(struct frame_buffer *b)
{
    uint8_t framed[100];
    struct span one = segments_record("a", framed);
    segments_record("b", framed + one.size);
    struct section events = {.type = SECTION_EVENTS,
                             .events = {.event = span_text("seen"),
                                        .source = span_text("pi1/a/next"),
                                        .first = 7,
                                        .time_ms = 1791547200123,
                                        .records = 2,
                                        .bytes = span_of(framed, 2 * one.size)}};
    commit_put(b, &events);
    events.events = (struct section_events){.event = span_text("seen"),
                                            .source = span_text("pi1/a/next"),
                                            .first = 9,
                                            .records = 3,
                                            .bare = true};
    commit_put(b, &events);
}

/* A frame with a section of each kind. */
static void commit_everything(struct segments *s)
{
    struct frame_buffer *b = &s->frames;
    const struct section sections[] = {
        {.type = SECTION_CURSOR,
         .cursor = {.identity = span_text("pi1/a/next"), .epoch = {0xab, 0x01}, .stored = 11}},
        {.type = SECTION_KEY, .key = {.digest = {0xcd}, .stored = 5}},
        {.type = SECTION_OUTPUT,
         .output = {.output = span_text("cloud"), .sent = 10, .stored = 8, .reach = OUTPUT_REACH_ALL}},
        {.type = SECTION_OUTPUT,
         .output = {.output = span_text("log"), .sent = 10, .stored = 8, .reach = 9, .epoch = {0xef}}},
        {.type = SECTION_DEAD,
         .dead = {.output = span_text("cloud"),
                  .number = 8,
                  .time_ms = 1791547200123,
                  .reason = span_text("404"),
                  .record = span_text("x")}},
        {.type = SECTION_DEAD_GONE, .dead_gone = {.output = span_text("cloud"), .number = 3}},
        {.type = SECTION_FARE,
         .fare = {.output = span_text("cloud"), .disabled = true, .failures = 9, .reason = span_text("410")}},
    };
    commit_begin(b, FRAME_COMMIT, span_text("counter"), 4);
    put_run(b);
    for (size_t i = 0; i < ARRAY_SIZE(sections); i++)
        commit_put(b, &sections[i]);
    assert_int_equal(commit_end(b, 12), 0);
    const struct section snapshot = {.type = SECTION_STATE, .state = span_text("{\"sum\":11}")};
    commit_begin(b, FRAME_SNAPSHOT, span_text("counter"), 4);
    commit_put(b, &snapshot);
    assert_int_equal(commit_end(b, 12), 0);
    segments_write(s);
}

static void a_log_names_all_that_a_commit_says(void **state)
{
    (void)state;
    struct segments s;
    char said[4000];
    segments_make(&s);
    segments_begin(&s, 1);
    commit_everything(&s);
    assert_int_equal(show_log(&s, said, sizeof said, NULL, NULL), CLI_DONE);
    assert_string_equal(said, TIME "commit 4, stored 12\n"
                                   "  event seen 7-8 from pi1/a/next\n"
                                   "    7: a\n"
                                   "    8: b\n"
                                   "  event seen 9-11 from pi1/a/next, data not kept\n"
                                   "  cursor pi1/a/next epoch ab010000000000000000000000000000: stored 11\n"
                                   "  key cd000000000000000000000000000000: stored 5\n"
                                   "  output cloud: sent 10, stored 8\n"
                                   "  output log: sent 10, stored 8, none behind 9 has left, "
                                   "epoch ef000000000000000000000000000000\n"
                                   "  dead letter cloud 8: 404\n"
                                   "    x\n"
                                   "  dead letter gone cloud 3\n"
                                   "  fare of output cloud: disabled, 9 failures in a row: 410\n"
                                   "- snapshot after commit 4, stored 12\n"
                                   "  state, 10 bytes\n");
    segments_remove(&s);
}

static void a_log_in_json_is_an_object_a_line(void **state)
{
    (void)state;
    struct segments s;
    char said[4000];
    segments_make(&s);
    segments_begin(&s, 1);
    segments_commit(&s, "counter", 1, "a\"\n\xc3\xa9");
    segments_commit(&s, "counter", 2, "\xff");
    assert_int_equal(show_log(&s, said, sizeof said, "--json", NULL), CLI_DONE);
    char *second = strchr(said, '\n');
    assert_non_null(second);
    *second++ = '\0';
    assert_string_equal(
        said, "{\"commit\":1,\"stored\":1,\"segment\":1,\"offset\":64,\"app\":\"counter\",\"sections\":["
              "{\"type\":\"events\",\"first\":1,\"count\":1,\"time_ms\":1791547200123,\"event\":\"add\","
              "\"source\":\"http\",\"records\":[{\"bytes\":5,\"data\":\"a\\\"\\u000a\xc3\xa9\"}]},"
              "{\"type\":\"sends\",\"first\":1,\"count\":1,\"output\":\"log\",\"records\":"
              "[{\"bytes\":5,\"data\":\"a\\\"\\u000a\xc3\xa9\"}]}]}");
    assert_non_null(strstr(second, "[{\"bytes\":1,\"data_base64\":\"/w==\"}]"));
    segments_remove(&s);
}

static void no_byte_of_an_event_reaches_the_terminal_as_a_control(void **state)
{
    (void)state;
    struct segments s;
    char said[4000];
    segments_make(&s);
    segments_begin(&s, 1);
    segments_commit(&s, "counter", 1, "\x1b[31m\r\n\t\\ \xc2\x9b \xc3\xa9 \xe2\x82\xac \xff\x7f");
    assert_int_equal(show_log(&s, said, sizeof said, NULL, NULL), CLI_DONE);
    assert_non_null(
        strstr(said, "    1: \\x1b[31m\\r\\n\\t\\\\ \\xc2\\x9b \xc3\xa9 \xe2\x82\xac \\xff\\x7f\n"));
    segments_remove(&s);
}

static void long_data_is_cut_unless_all_is_wanted(void **state)
{
    (void)state;
    struct segments s;
    char data[202] = "", said[4000], wanted[300];
    segments_make(&s);
    segments_begin(&s, 1);
    memset(data, 'x', 200);
    segments_commit(&s, "counter", 1, data);
    data[200] = 'x';
    segments_commit(&s, "counter", 2, data);
    assert_int_equal(show_log(&s, said, sizeof said, NULL, NULL), CLI_DONE);
    snprintf(wanted, sizeof wanted, "    1: %.200s\n", data);
    assert_non_null(strstr(said, wanted));
    snprintf(wanted, sizeof wanted, "    2: %.200s... (201 bytes)\n", data);
    assert_non_null(strstr(said, wanted));
    assert_int_equal(show_log(&s, said, sizeof said, "--full", NULL), CLI_DONE);
    snprintf(wanted, sizeof wanted, "    2: %s\n", data);
    assert_non_null(strstr(said, wanted));
    segments_remove(&s);
}

static void what_is_gone_is_said_and_is_no_damage(void **state)
{
    (void)state;
    struct segments s;
    char said[4000];
    segments_make(&s);
    segments_begin(&s, 3);
    segments_commit(&s, "counter", 1, "five");
    segments_begin(&s, 5); /* 4 was removed */
    segments_commit(&s, "counter", 4, "six");
    show_log(&s, said, sizeof said, NULL, NULL);
    assert_non_null(strstr(said, FIRST "- commits 2 to 3 are not there\n" TIME "commit 4, stored 4\n"));
    segments_remove(&s);
}

/* The bytes of the first commit, in a segment that goes on behind it. */
static void damage_is_shown_in_its_place_and_ends_with_status_4(void **state)
{
    (void)state;
    struct segments s;
    char said[4000];
    segments_make(&s);
    segments_begin(&s, 1);
    uint64_t damaged = s.at;
    segments_commit(&s, "counter", 1, "five");
    uint64_t end = s.at;
    segments_commit(&s, "counter", 2, "six");
    segments_put(&s, 1, "\xff", 1, damaged + 60);
    assert_int_equal(show_log(&s, said, sizeof said, NULL, NULL), CLI_DEGRADED);
    char wanted[1000];
    snprintf(wanted, sizeof wanted,
             "- segment 1, offset %u: %u bytes are damaged\n" SECOND
             "pure-host: the store is degraded: pure-host fsck %s tells more\n",
             (unsigned)damaged, (unsigned)(end - damaged), s.directory);
    assert_string_equal(said, wanted);
    segments_remove(&s);
}

static void a_write_that_was_not_finished_is_no_damage(void **state)
{
    (void)state;
    struct segments s;
    char said[4000];
    segments_make(&s);
    segments_begin(&s, 1);
    segments_commit(&s, "counter", 1, "five");
    segments_put(&s, 1, "PjF1 and then nothing", 21, s.at);
    assert_int_equal(show_log(&s, said, sizeof said, NULL, NULL), CLI_DONE);
    assert_string_equal(said, FIRST);
    segments_remove(&s);
}

static void an_app_that_nobody_knows_is_a_failure(void **state)
{
    (void)state;
    struct segments s;
    struct fake fake = {0};
    char said[1000];
    segments_make(&s);
    segments_begin(&s, 1);
    segments_commit(&s, "other", 1, "five");
    assert_int_equal(show_log(&s, said, sizeof said, NULL, NULL), CLI_FAILED);
    assert_string_equal(said, "pure-host: the store has nothing of an app 'counter'\n");
    segments_remove(&s);
    assert_int_equal(run(&fake, said, sizeof said, WORDS("log", "--store=nonexistent/s", "counter")),
                     CLI_FAILED);
    assert_non_null(strstr(said, "nonexistent/s"));
}

/* --- fsck --- */

static int fsck(const struct segments *s, char *said, size_t size, const char *option)
{
    struct fake fake = {0};
    return run(&fake, said, size, WORDS("fsck", s->directory, option));
}

static void fsck_of_a_store_that_is_whole_says_clean(void **state)
{
    (void)state;
    struct segments s;
    char said[4000], wanted[400];
    segments_make(&s);
    segments_begin(&s, 1);
    segments_commit(&s, "counter", 1, "five");
    assert_int_equal(fsck(&s, said, sizeof said, NULL), CLI_DONE);
    snprintf(wanted, sizeof wanted, "1 segment, %u bytes, 2 frames\nclean\n", (unsigned)s.at);
    assert_string_equal(said, wanted);
    segments_remove(&s);
}

static void fsck_says_what_is_damaged_and_repairs_it_once(void **state)
{
    (void)state;
    struct segments s;
    char said[4000];
    segments_make(&s);
    segments_begin(&s, 1);
    uint64_t damaged = s.at;
    segments_commit(&s, "counter", 1, "five");
    segments_commit(&s, "counter", 2, "six");
    segments_put(&s, 1, "\xff", 1, damaged + 60);
    assert_int_equal(fsck(&s, said, sizeof said, NULL), CLI_DEGRADED);
    assert_non_null(strstr(said, "damaged: 152 bytes in 1 place\n"));
    assert_non_null(strstr(said, "commits lost: 1\n"));
    assert_non_null(strstr(said, " is damaged: pure-host fsck --repair makes it clean\n"));
    assert_int_equal(fsck(&s, said, sizeof said, "--repair"), CLI_DONE);
    assert_non_null(strstr(said, "\nrepaired\n"));
    assert_int_equal(fsck(&s, said, sizeof said, NULL), CLI_DONE);
    assert_non_null(strstr(said, "\nclean\n"));
    assert_int_equal(show_log(&s, said, sizeof said, NULL, NULL),
                     CLI_DONE); /* what is lost stays to be seen */
    assert_string_equal(said, "- segment 1, offset 64: 152 bytes are damaged\n" SECOND);
    segments_remove(&s);
}

static void fsck_leaves_a_store_alone_that_a_host_has(void **state)
{
    (void)state;
    struct segments s;
    char said[4000], path[100];
    segments_make(&s);
    segments_begin(&s, 1);
    uint64_t damaged = s.at;
    segments_commit(&s, "counter", 1, "five");
    segments_commit(&s, "counter", 2, "six");
    segments_put(&s, 1, "\xff", 1, damaged + 60);
    snprintf(path, sizeof path, "%s/lock", s.directory);
    int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(flock(lock, LOCK_EX | LOCK_NB), 0);
    assert_int_equal(fsck(&s, said, sizeof said, NULL), CLI_DEGRADED);
    assert_non_null(strstr(said, "end the host that runs with it, then pure-host fsck --repair\n"));
    assert_int_equal(fsck(&s, said, sizeof said, "--repair"), CLI_FAILED);
    assert_non_null(strstr(said, ": a running host has it open: end the host first\n"));
    close(lock);
    segments_remove(&s);
}

static void fsck_of_what_is_no_store_is_a_failure(void **state)
{
    (void)state;
    struct fake fake = {0};
    char said[1000];
    assert_int_equal(run(&fake, said, sizeof said, WORDS("fsck", "/nonexistent/s")), CLI_FAILED);
    assert_non_null(
        strstr(said, "pure-host: /nonexistent/s cannot be examined: No such file or directory\n"));
    assert_int_equal(run(&fake, said, sizeof said, WORDS("fsck", "/dev/null")), CLI_FAILED);
}

/* --- with a configuration --- */

struct configured {
    struct segments s;
    char config[64];
};

static void configure(struct configured *c, const char *store)
{
    segments_make(&c->s);
    snprintf(c->config, sizeof c->config, "%s.conf", c->s.directory);
    FILE *file = fopen(c->config, "w");
    assert_non_null(file);
    fprintf(file, "[host]\nstore = %s\n[app counter]\nmodule = ./a\n", store ? store : c->s.directory);
    fclose(file);
}

static void remove_configured(struct configured *c)
{
    unlink(c->config);
    segments_remove(&c->s);
}

static void an_app_of_the_configuration_may_have_nothing_yet(void **state)
{
    (void)state;
    struct configured c;
    struct fake fake = {0};
    char said[1000], wanted[1000];
    configure(&c, NULL);
    segments_begin(&c.s, 1);
    assert_int_equal(run(&fake, said, sizeof said, WORDS("log", "counter", "-c", c.config)), CLI_DONE);
    assert_string_equal(said, "");
    remove_configured(&c);
    configure(&c, "memory");
    assert_int_equal(run(&fake, said, sizeof said, WORDS("log", "counter", "-c", c.config)), CLI_USAGE);
    snprintf(wanted, sizeof wanted, "pure-host: %s has store = memory: there is no journal to read\n",
             c.config);
    assert_string_equal(said, wanted);
    remove_configured(&c);
}

/* --- check --- */

static int check(const struct configured *c, char *said, size_t size)
{
    struct fake fake = {0};
    return run(&fake, said, size, WORDS("check", "-c", c->config));
}

static void check_finds_a_store_that_can_be_used_or_made(void **state)
{
    (void)state;
    struct configured c;
    char said[1000], wanted[1000];
    configure(&c, NULL);
    snprintf(wanted, sizeof wanted, "%s is right: 1 app, 0 outputs\n", c.config);
    segments_begin(&c.s, 1);
    segments_commit(&c.s, "counter", 1, "five");
    assert_int_equal(check(&c, said, sizeof said), CLI_DONE);
    assert_string_equal(said, wanted);
    remove_configured(&c);
    configure(&c, "./not-there-yet"); /* and the check does not make it */
    snprintf(wanted, sizeof wanted, "%s is right: 1 app, 0 outputs\n", c.config);
    assert_int_equal(check(&c, said, sizeof said), CLI_DONE);
    assert_string_equal(said, wanted);
    assert_true(access("not-there-yet", F_OK) < 0);
    remove_configured(&c);
}

static void check_names_a_store_that_cannot_be_used(void **state)
{
    (void)state;
    static const struct {
        const char *store, *said;
    } cases[] = {
        {"/nonexistent/a/b",
         "/nonexistent/a/b is not there and cannot be made: No such file or directory: make "
         "the directory above it\n"},
        {"/dev/null", "/dev/null cannot be used: Not a directory\n"},
        {"/dev/null/a", "/dev/null/a cannot be used: Not a directory\n"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct configured c;
        char said[1000], wanted[1000];
        configure(&c, cases[i].store);
        assert_int_equal(check(&c, said, sizeof said), CLI_USAGE);
        snprintf(wanted, sizeof wanted, "pure-host: %s:2: store: %s", c.config, cases[i].said);
        assert_string_equal(said, wanted);
        remove_configured(&c);
    }
}

static void check_notes_that_a_running_host_has_the_store(void **state)
{
    (void)state;
    struct configured c;
    char said[1000], wanted[1000], path[100];
    configure(&c, NULL);
    segments_begin(&c.s, 1);
    snprintf(path, sizeof path, "%s/lock", c.s.directory);
    int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(flock(lock, LOCK_EX | LOCK_NB), 0);
    assert_int_equal(check(&c, said, sizeof said), CLI_DONE);
    snprintf(wanted, sizeof wanted,
             "pure-host: note: %s:2: store: a running host has ./%s open\n%s is right: 1 app, 0 outputs\n",
             c.config, c.s.directory, c.config);
    assert_string_equal(said, wanted);
    close(lock);
    assert_int_equal(check(&c, said, sizeof said), CLI_DONE);
    assert_null(strstr(said, "note"));
    remove_configured(&c);
}

static void check_ends_with_4_where_the_store_is_degraded(void **state)
{
    (void)state;
    struct configured c;
    char said[1000], wanted[1000];
    configure(&c, NULL);
    segments_begin(&c.s, 1);
    uint64_t damaged = c.s.at;
    segments_commit(&c.s, "counter", 1, "five");
    segments_commit(&c.s, "counter", 2, "six");
    segments_put(&c.s, 1, "\xff", 1, damaged + 60);
    assert_int_equal(check(&c, said, sizeof said), CLI_DEGRADED);
    snprintf(wanted, sizeof wanted,
             "pure-host: %s:2: store: ./%s is damaged: pure-host fsck ./%s says where\n", c.config,
             c.s.directory, c.s.directory);
    assert_string_equal(said, wanted);
    remove_configured(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_log_is_what_one_app_took_and_sent),
        cmocka_unit_test(a_log_names_all_that_a_commit_says),
        cmocka_unit_test(a_log_in_json_is_an_object_a_line),
        cmocka_unit_test(no_byte_of_an_event_reaches_the_terminal_as_a_control),
        cmocka_unit_test(long_data_is_cut_unless_all_is_wanted),
        cmocka_unit_test(what_is_gone_is_said_and_is_no_damage),
        cmocka_unit_test(damage_is_shown_in_its_place_and_ends_with_status_4),
        cmocka_unit_test(a_write_that_was_not_finished_is_no_damage),
        cmocka_unit_test(an_app_that_nobody_knows_is_a_failure),
        cmocka_unit_test(fsck_of_a_store_that_is_whole_says_clean),
        cmocka_unit_test(fsck_says_what_is_damaged_and_repairs_it_once),
        cmocka_unit_test(fsck_leaves_a_store_alone_that_a_host_has),
        cmocka_unit_test(fsck_of_what_is_no_store_is_a_failure),
        cmocka_unit_test(an_app_of_the_configuration_may_have_nothing_yet),
        cmocka_unit_test(check_finds_a_store_that_can_be_used_or_made),
        cmocka_unit_test(check_names_a_store_that_cannot_be_used),
        cmocka_unit_test(check_notes_that_a_running_host_has_the_store),
        cmocka_unit_test(check_ends_with_4_where_the_store_is_degraded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
