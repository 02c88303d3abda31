/* What status, health and metrics say of the store and of what waits on disk: the exact text, of a registry
 * of the test's; and what `pure-host status` makes of it. */
#include "host/cli_status.h"
#include "host/metrics.h"
#include "host/status.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

struct world {
    struct config config;
    struct registry registry;
    struct store store;
    struct journal_writer writers[2];
    struct registry_journal journals[2];
    struct registry_app app, *apps[1];
    struct outlet outlet, *outlets[1];
    struct loop loop;
    struct front front;
};

static void make_world(struct world *w)
{
    memset(w, 0, sizeof(*w));
    w->config.name = (char *)"pi";
    pthread_mutex_init(&w->store.mutex, NULL);
    w->store.count = 3;
    w->store.bytes = 196608;
    w->store.report = (struct store_report){.known_places = 9, .torn_segments = 1, .torn_bytes = 77};
    for (unsigned i = 0; i < 2; i++)
        w->journals[i] = (struct registry_journal){i ? "pure-own-1" : "pure-own-0", &w->writers[i]};
    _Atomic uint64_t *numbers = (_Atomic uint64_t *)&w->writers[0].counters;
    for (size_t i = 0; i < sizeof(struct journal_counters) / sizeof(*numbers); i++)
        numbers[i] = 101 + i;
    w->writers[0].counters.wait_ns = 1500000000;
    w->writers[0].counters.slowest_ns = 8310000;
    assert_int_equal(outlet_init(&w->outlet, "wire", "a", "o", 4096, 1024), 0);
    w->outlet.report.sent = 50;
    w->outlet.report.stored = 8;
    w->outlet.report.beyond = 2048;
    w->outlet.report.dead = 4;
    w->outlet.report.dead_kept = 3;
    w->app.name = "a";
    w->app.durability = DURABILITY_INTERVAL;
    w->apps[0] = &w->app;
    w->outlets[0] = &w->outlet;
    w->registry = (struct registry){.config = &w->config,
                                    .store = &w->store,
                                    .journal_count = 2,
                                    .journals = w->journals,
                                    .app_count = 1,
                                    .apps = w->apps,
                                    .outlet_count = 1,
                                    .outlets = w->outlets};
    w->loop.now_ns = 1;
    w->front = (struct front){.registry = &w->registry, .loop = &w->loop, .wall_ms = 1, .wall_at_ns = 1};
}

static void end_world(struct world *w)
{
    outlet_dispose(&w->outlet);
    pthread_mutex_destroy(&w->store.mutex);
}

/* The text is the caller's to free. */
static char *text_of(struct world *w, void (*write)(struct front *front, struct text *t))
{
    struct text t = {0};
    write(&w->front, &t);
    text_add(&t, "", 1);
    assert_false(t.failed);
    return t.data;
}

static void expect_in(char *text, const char *expected)
{
    if (!strstr(text, expected))
        printf("%s\nis not in\n%s\n", expected, text);
    assert_non_null(strstr(text, expected));
}

static void a_status_has_the_store_and_each_journal(void **state)
{
    (void)state;
    struct world w;
    make_world(&w);
    w.writers[1].condition = JOURNAL_FULL;
    w.writers[1].error = -28;
    char *text = text_of(&w, status_write);
    expect_in(
        text,
        ",\"store\":{\"degraded\":false,\"segments\":3,\"bytes\":196608,\"damaged_places\":0,"
        "\"damaged_bytes\":0,\"known_places\":9,\"lost_commits\":0,\"lost_records\":0,\"torn_segments\":1,"
        "\"torn_bytes\":77,\"foreign_files\":0,\"journals\":[{\"owner\":\"pure-own-0\",\"condition\":\"ok\","
        "\"writes\":101,\"bytes\":102,\"frames\":103,\"segments\":104,\"removed\":105,\"full\":106,"
        "\"wait_ns\":1500000000,\"slowest_ns\":8310000},{\"owner\":\"pure-own-1\",\"condition\":\"full\","
        "\"error\":\"No space left on device\",\"writes\":0,\"bytes\":0,\"frames\":0,\"segments\":0,"
        "\"removed\":0,\"full\":0,\"wait_ns\":0,\"slowest_ns\":0}]}}\n");
    expect_in(text, "\"beyond_bytes\":2048,\"waiting_records\":42,\"lost_records\":0,\"dead\":3,");
    expect_in(text, "\"refused\":0,\"durability\":\"interval\",");
    free(text);
    w.registry.store = NULL;
    text = text_of(&w, status_write);
    assert_null(strstr(text, "\"store\":"));
    free(text);
    end_world(&w);
}

static bool healthy;

static void write_health(struct front *front, struct text *t)
{
    healthy = health_write(front, t);
}

static void expect_health(struct world *w, bool is_healthy, const char *begins, const char *has)
{
    char *text = text_of(w, write_health);
    assert_int_equal(healthy, is_healthy);
    expect_in(text, begins);
    expect_in(text, has);
    free(text);
}

static void a_full_and_a_failed_journal_are_no_health(void **state)
{
    (void)state;
    struct world w;
    make_world(&w);
    expect_health(&w, true, "{\"healthy\":true,\"degraded\":false,",
                  "],\"journals\":[{\"owner\":\"pure-own-0\",\"condition\":\"ok\"},{\"owner\":\"pure-own-1\","
                  "\"condition\":\"ok\"}]}\n");
    w.writers[1].condition = JOURNAL_FULL;
    w.writers[1].error = -28;
    expect_health(
        &w, false, "{\"healthy\":false,\"degraded\":true,",
        "{\"owner\":\"pure-own-1\",\"condition\":\"full\",\"error\":\"No space left on device\"}]}\n");
    w.writers[1].condition = JOURNAL_OK;
    w.writers[0].condition = JOURNAL_FAILED;
    w.writers[0].error = -5;
    expect_health(&w, false, "{\"healthy\":false,\"degraded\":true,",
                  "[{\"owner\":\"pure-own-0\",\"condition\":\"failed\",\"error\":\"Input/output error\"},");
    end_world(&w);
}

static void what_the_store_has_lost_is_degraded_and_no_alarm(void **state)
{
    (void)state;
    struct world w;
    make_world(&w);
    uint64_t *const found[] = {&w.store.report.damaged_places, &w.store.report.lost_commits,
                               &w.store.report.lost_records};
    for (unsigned i = 0; i < ARRAY_SIZE(found); i++) {
        *found[i] = 1;
        expect_health(&w, true, "{\"healthy\":true,\"degraded\":true,", "\"journals\"");
        *found[i] = 0;
    }
    w.outlet.report.lost = 1;
    expect_health(&w, true, "{\"healthy\":true,\"degraded\":true,", "\"journals\"");
    end_world(&w);
}

static void metrics_have_each_number_of_the_store(void **state)
{
    (void)state;
    static const char *const samples[] = {
        "\npure_store_segments 3\n",
        "\npure_store_bytes 196608\n",
        "\npure_store_degraded 1\n",
        "\npure_store_damaged_places 2\n",
        "\npure_store_torn_bytes 77\n",
        "# TYPE pure_journal_writes_total counter\npure_journal_writes_total{owner=\"pure-own-0\"} 101\n",
        "\npure_journal_written_bytes_total{owner=\"pure-own-0\"} 102\n",
        "\npure_journal_frames_total{owner=\"pure-own-0\"} 103\n",
        "\npure_journal_segments_total{owner=\"pure-own-0\"} 104\n",
        "\npure_journal_removed_segments_total{owner=\"pure-own-0\"} 105\n",
        "\npure_journal_full_total{owner=\"pure-own-0\"} 106\n",
        "\npure_journal_wait_seconds_total{owner=\"pure-own-0\"} 1.500000000\n",
        "\npure_journal_slowest_write_seconds{owner=\"pure-own-0\"} 0.008310000\n",
        "\npure_journal_condition{owner=\"pure-own-0\",condition=\"ok\"} 1\n",
        "\npure_journal_condition{owner=\"pure-own-1\",condition=\"failed\"} 1\n",
        "\npure_journal_condition{owner=\"pure-own-1\",condition=\"ok\"} 0\n",
        "\npure_outlet_beyond_bytes{app=\"a\",output=\"o\",kind=\"wire\"} 2048\n",
        "\npure_outlet_waiting_records{app=\"a\",output=\"o\",kind=\"wire\"} 42\n",
        "\npure_outlet_lost_records_total{app=\"a\",output=\"o\",kind=\"wire\"} 0\n",
        "\npure_outlet_dead_total{app=\"a\",output=\"o\",kind=\"wire\"} 4\n",
        "\npure_outlet_dead_letters{app=\"a\",output=\"o\",kind=\"wire\"} 3\n",
    };
    struct world w;
    make_world(&w);
    w.store.report.damaged_places = 2;
    w.writers[1].condition = JOURNAL_FAILED;
    char *text = text_of(&w, metrics_write);
    for (size_t i = 0; i < ARRAY_SIZE(samples); i++)
        expect_in(text, samples[i]);
    free(text);
    end_world(&w);
}

static char *screen_of(struct world *w)
{
    char *screen, *json = text_of(w, status_write);
    size_t size;
    FILE *out = open_memstream(&screen, &size);
    assert_int_equal(cli_status_show(out, span_text(json), 1, " -c x.conf"), 0);
    fclose(out);
    assert_int_equal(cli_status_degraded(span_text(json)), status_store_degraded(&w->registry));
    free(json);
    return screen;
}

static void a_screen_shows_journals_and_what_is_lost(void **state)
{
    (void)state;
    struct world w;
    make_world(&w);
    w.writers[1].condition = JOURNAL_FULL;
    w.writers[1].error = -28;
    char *screen = screen_of(&w);
    expect_in(
        screen,
        "    42 records wait, 2K of them on disk.\n    3 dead letters: pure-host dead list -c x.conf a.o\n");
    expect_in(screen, "journal     condition   writes  written   frames  segments  removed  slowest\n"
                      "pure-own-0  ok             101      102      103       104      105   8.31ms\n"
                      "pure-own-1  full             0        0        0         0        0        -\n"
                      "    No space left on device\n"
                      "    It goes on by itself once there is space on the disk.\n"
                      "store: 3 segments, 192K on disk\n");
    assert_null(strstr(screen, "degraded"));
    free(screen);
    w.store.report.lost_records = 5;
    w.outlet.report.lost = 2;
    w.writers[1].condition = JOURNAL_FAILED;
    screen = screen_of(&w);
    expect_in(screen, "    2 records are lost: the disk has not kept them.\n");
    expect_in(screen, "    Nothing more is stored until the host is restarted.\n");
    expect_in(
        screen,
        "    degraded: 0 places were damaged at the start; 0 turns and 5 records of outputs were lost.");
    free(screen);
    end_world(&w);
}

static void files_of_tls_that_cannot_be_read_anew_are_told_everywhere(void **state)
{
    (void)state;
    struct world w;
    make_world(&w);
    struct tls_report tls = {.expires_s = INT64_MAX, .lock = PTHREAD_MUTEX_INITIALIZER};
    w.registry.tls = &tls;
    expect_health(&w, true, "{\"healthy\":true,\"degraded\":false,\"host\":\"ok\",\"apps\"", "");
    char *text = text_of(&w, metrics_write);
    expect_in(text, "\npure_tls_files_unreadable 0\n");
    assert_null(strstr(text, "pure_tls_certificate_expires_seconds"));
    free(text);
    tls.unreadable = 2;
    tls.expires_s = 1900000000;
    strcpy(tls.why, "own.pem: is junk: what was read before is in use");
    expect_health(&w, true, "{\"healthy\":true,\"degraded\":true,",
                  "\"tls_files\":{\"unreadable\":2,\"why\":\"own.pem: is junk: what was read before is in "
                  "use\"},\"apps\"");
    text = text_of(&w, metrics_write);
    expect_in(text, "\npure_tls_files_unreadable 2\n");
    expect_in(text, "\npure_tls_certificate_expires_seconds 1900000000\n");
    free(text);
    char *screen = screen_of(&w);
    expect_in(screen, "TLS: files cannot be read as they are now:\n"
                      "    own.pem: is junk: what was read before is in use (and others: see the log)\n");
    free(screen);
    pthread_mutex_destroy(&tls.lock);
    end_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_status_has_the_store_and_each_journal),
        cmocka_unit_test(a_full_and_a_failed_journal_are_no_health),
        cmocka_unit_test(what_the_store_has_lost_is_degraded_and_no_alarm),
        cmocka_unit_test(metrics_have_each_number_of_the_store),
        cmocka_unit_test(a_screen_shows_journals_and_what_is_lost),
        cmocka_unit_test(files_of_tls_that_cannot_be_read_anew_are_told_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
