/* Files of TLS: when they are read, what is in force meanwhile, and what is said of them; and what `check`
 * says. Real files in a directory of the test's own, changed between looks. */
#include "host/check.h"
#include "host/host_tls.h"
#include "tests/sim/certificates.h"
#include "tests/sim/sim.h"
#include "tests/unit/temp_directory.h"

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define NOW_S INT64_C(1900000000) /* in 2030 */

static struct test_certificate *ca, *one, *two;
static char directory[300], ca_path[320], certificate_path[320], key_path[320];
static struct config_pair pair = {certificate_path, key_path, 3, 4};
static struct log said;
static struct host_tls tls;

/* --- files --- */

static void copy(const char *from, const char *to, mode_t mode)
{
    char bytes[20000], next[340];
    FILE *in = fopen(from, "r");
    size_t size = fread(bytes, 1, sizeof bytes, in);
    fclose(in);
    snprintf(next, sizeof next, "%s.new", to);
    FILE *out = fopen(next, "w");
    assert_int_equal(fwrite(bytes, 1, size, out), size);
    fclose(out);
    assert_int_equal(chmod(next, mode), 0);
    assert_int_equal(rename(next, to), 0);
}

static void put_text(const char *to, const char *text)
{
    copy(test_file(span_text(text)), to, 0600);
}

static void put_certificate(const struct test_certificate *c)
{
    copy(test_chain_file((const struct test_certificate *const[]){c}, 1), certificate_path, 0600);
}

static void put_key(const struct test_certificate *c)
{
    copy(test_key_file(c), key_path, 0600);
}

static void put_ca(const struct test_certificate *c)
{
    copy(test_chain_file((const struct test_certificate *const[]){c}, 1), ca_path, 0600);
}

static int begin(void **state)
{
    (void)state;
    static unsigned count;
    close(temp_directory());
    snprintf(directory, sizeof directory, "%s/%u", temp_path, count++);
    snprintf(ca_path, sizeof ca_path, "%s/ca.pem", directory);
    snprintf(certificate_path, sizeof certificate_path, "%s/own.pem", directory);
    snprintf(key_path, sizeof key_path, "%s/own.key", directory);
    put_ca(ca);
    put_certificate(one);
    put_key(one);
    host_tls_init(&tls);
    return log_init(&said, NULL, 0);
}

static int end(void **state)
{
    (void)state;
    host_tls_dispose(&tls);
    log_dispose(&said);
    return 0;
}

/* --- looks --- */

static struct tls_current *want(const char *ca_file, const struct config_pair *of)
{
    struct tls_current *current = NULL;
    const struct host_tls_files files = {.ca = ca_file, .pair = of};
    assert_int_equal(host_tls_want(&tls, &files, &current), 0);
    return current;
}

static struct tls_context *in_force(struct tls_current *current)
{
    struct tls_context *context = tls_current_take(current);
    tls_context_drop(context); /* the place holds it, too */
    return context;
}

/* Looks, and returns all that is said of it. */
static const char *look(void)
{
    static char text[4000];
    text[0] = '\0';
    host_tls_look_and_tell(&tls, &said);
    struct record_queue *q = &said.lines;
    struct stream_position published = record_queue_see_published(q);
    while (q->freed.bytes < published.bytes) {
        struct span bytes = record_queue_span(q, q->freed.bytes), line;
        size_t framed = record_get(bytes.data, bytes.data + (published.bytes - q->freed.bytes), &line);
        assert_true(framed > 0);
        snprintf(text + strlen(text), sizeof text - strlen(text), "%.*s\n", (int)line.size,
                 (const char *)line.data);
        record_queue_free_to(q, (struct stream_position){q->freed.bytes + framed, q->freed.records + 1});
    }
    return text;
}

#define SAID(part)     assert_non_null(strstr(look(), part))
#define SAID_NOTHING() assert_string_equal(look(), "")

static void files_are_read_by_the_first_look_and_shared(void **state)
{
    (void)state;
    static struct config_pair none;
    struct tls_current *current = want(ca_path, &pair), *bare = want(ca_path, &none);
    assert_ptr_equal(want(ca_path, &pair), current);
    assert_ptr_not_equal(bare, current);
    assert_null(in_force(current));
    SAID_NOTHING();
    struct tls_context *context = in_force(current);
    assert_non_null(context);
    assert_non_null(in_force(bare));
    SAID_NOTHING();
    assert_ptr_equal(in_force(current), context);
}

static void a_new_pair_is_in_force_after_the_next_look(void **state)
{
    (void)state;
    struct tls_current *current = want(ca_path, &pair);
    SAID_NOTHING();
    struct tls_context *before = tls_current_take(current);
    put_certificate(two);
    put_key(two);
    SAID("<5>TLS: files have changed and are in force");
    assert_ptr_not_equal(in_force(current), before);
    SAID_NOTHING();
    tls_context_drop(before);
}

static void a_bad_pair_keeps_the_one_before_and_is_said_once_a_change(void **state)
{
    (void)state;
    struct tls_current *current = want(ca_path, &pair);
    SAID_NOTHING();
    struct tls_context *before = in_force(current);
    put_certificate(two); /* the key is not written yet */
    SAID("what was read before stays in force");
    SAID_NOTHING();
    put_key(ca);
    SAID("<4>TLS: ");
    unlink(key_path);
    SAID("stays in force");
    SAID_NOTHING();
    assert_ptr_equal(in_force(current), before);
    put_key(two);
    SAID("<5>TLS: files have changed and are in force");
    assert_non_null(in_force(current));
}

static void what_is_missing_at_first_is_read_once_it_is_there(void **state)
{
    (void)state;
    unlink(ca_path);
    struct tls_current *current = want(ca_path, &pair);
    SAID("<3>TLS: ");
    assert_null(in_force(current));
    SAID_NOTHING();
    put_ca(ca);
    SAID("<5>TLS: files have changed and are in force");
    assert_non_null(in_force(current));
}

/* The files are as they were: only descriptors were short for a while. */
static void what_could_not_be_read_for_want_of_descriptors_is_read_later(void **state)
{
    (void)state;
    struct tls_current *current = want(ca_path, &pair);
    struct rlimit limit, none;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    const char *first = look();
    bool told = strstr(first, "who needs it rests") != NULL;
    bool again = strlen(look()) > 0;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_true(told);
    assert_false(again); /* the same is said once */
    assert_null(in_force(current));
    assert_non_null(strstr(look(), "in force"));
    assert_non_null(in_force(current));
}

static void a_fifo_in_place_of_a_file_holds_nobody(void **state)
{
    (void)state;
    struct tls_current *current = want(ca_path, &pair);
    SAID_NOTHING();
    struct tls_context *before = in_force(current);
    assert_int_equal(unlink(certificate_path) | mkfifo(certificate_path, 0600), 0);
    alarm(20);
    SAID("stays in force");
    alarm(0);
    assert_ptr_equal(in_force(current), before);
}

static void ca_certificates_that_cannot_be_read_any_more_stay_in_force(void **state)
{
    (void)state;
    struct tls_current *current = want(ca_path, &pair);
    SAID_NOTHING();
    struct tls_context *before = in_force(current);
    put_text(ca_path, "nothing\n");
    SAID("the CA certificates of before stay in force");
    SAID_NOTHING();
    assert_ptr_equal(in_force(current), before);
    put_ca(two);
    SAID("<5>TLS: files have changed and are in force");
}

static void a_file_that_comes_into_a_folder_is_seen(void **state)
{
    (void)state;
    char folder[320], path[340];
    snprintf(folder, sizeof folder, "%s/cas", directory);
    snprintf(path, sizeof path, "%s/one.pem", folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    struct tls_current *current = want(folder, &pair);
    SAID("<3>TLS: ");
    copy(ca_path, path, 0600);
    SAID("<5>TLS: files have changed and are in force");
    struct tls_context *before = tls_current_take(current);
    FILE *file = fopen(path, "a"); /* in its place, with the folder as it was */
    fputs("# more\n", file);
    fclose(file);
    SAID("<5>TLS: files have changed and are in force");
    assert_ptr_not_equal(in_force(current), before);
    tls_context_drop(before);
}

/* --- the report --- */

static void a_renewal_that_went_wrong_is_reported_until_it_is_put_right(void **state)
{
    (void)state;
    static struct config_pair none;
    struct tls_current *current = want(ca_path, &pair), *bare = want(ca_path, &none);
    look();
    assert_int_equal(tls.report.unreadable, 0);
    assert_false(current->outdated);
    put_text(certificate_path, "nothing\n");
    look();
    look();
    assert_int_equal(tls.report.unreadable, 1);
    assert_true(current->outdated);
    assert_false(bare->outdated);
    assert_non_null(strstr(tls.report.why, certificate_path));
    assert_non_null(strstr(tls.report.why, "what was read before is in use"));
    put_text(ca_path, "nothing\n");
    look();
    assert_int_equal(tls.report.unreadable, 2);
    assert_true(bare->outdated);
    put_ca(ca);
    put_certificate(one);
    look();
    assert_int_equal(tls.report.unreadable, 0);
    assert_false(current->outdated || bare->outdated);
}

static void what_was_never_there_is_reported_once_and_not_as_in_use(void **state)
{
    (void)state;
    unlink(ca_path);
    struct tls_current *current = want(ca_path, &pair);
    look();
    assert_int_equal(tls.report.unreadable, 1);
    assert_false(current->outdated);
    assert_null(strstr(tls.report.why, "in use"));
}

static void the_end_of_the_first_certificate_in_use_is_reported(void **state)
{
    (void)state;
    static struct config_pair none;
    want(ca_path, &none);
    look();
    assert_true(tls.report.expires_s == INT64_MAX);
    struct test_certificate *soon = test_certificate(&(struct test_certificate_options){
        .subject = "soon.example", .issuer = ca, .not_after_s = NOW_S - 5000});
    put_certificate(soon);
    put_key(soon);
    want(ca_path, &pair);
    look();
    assert_int_equal(tls.report.expires_s, NOW_S - 5000);
    put_text(key_path, "nothing\n"); /* what is in use expires all the same */
    look();
    assert_int_equal(tls.report.expires_s, NOW_S - 5000);
    test_certificate_free(soon);
}

/* --- the thread --- */

static void await_look(struct loop *loop)
{
    struct timespec from, now;
    clock_gettime(CLOCK_MONOTONIC, &from);
    do {
        sched_yield();
        clock_gettime(CLOCK_MONOTONIC, &now);
        assert_true(now.tv_sec - from.tv_sec < 20);
    } while (!atomic_load(&tls.looked));
    timers_fire(&loop->timers, loop->now_ns += HOST_TLS_POLL_NS);
}

static void a_thread_looks_every_ten_seconds_while_there_are_files(void **state)
{
    (void)state;
    struct sim *sim = sim_new(1);
    struct loop loop;
    assert_int_equal(loop_init(&loop, sim_io(sim, "10.0.0.1"), 1, 4), 0);
    host_tls_start(&tls, &loop, &said);
    timers_fire(&loop.timers, loop.now_ns += HOST_TLS_LOOK_NS);
    assert_false(tls.looking); /* there is nothing to look at */
    struct tls_current *current = want(ca_path, &pair);
    timers_fire(&loop.timers, loop.now_ns += HOST_TLS_LOOK_NS - 1);
    assert_false(tls.looking);
    timers_fire(&loop.timers, loop.now_ns += 1);
    assert_true(tls.looking);
    await_look(&loop);
    assert_true(host_tls_idle(&tls));
    assert_non_null(in_force(current));
    put_certificate(two);
    timers_fire(&loop.timers, loop.now_ns += HOST_TLS_LOOK_NS);
    await_look(&loop);
    assert_true(record_queue_see_published(&said.lines).records == 1);
    host_tls_stop(&tls);
    loop_dispose(&loop);
    sim_free(sim);
}

/* A look, on a file system that hangs until somebody writes to this pipe. */
static void *hang(void *argument)
{
    char byte;
    assert_int_equal(read(*(int *)argument, &byte, 1), 1);
    atomic_store(&tls.looked, true);
    return NULL;
}

static void nobody_waits_for_a_look_that_hangs(void **state)
{
    (void)state;
    struct sim *sim = sim_new(1);
    struct loop loop;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(loop_init(&loop, sim_io(sim, "10.0.0.1"), 1, 4), 0);
    host_tls_start(&tls, &loop, &said);
    atomic_store(&tls.looked, false);
    tls.looking = pthread_create(&tls.thread, NULL, hang, &ends[0]) == 0;
    assert_true(tls.looking);
    struct tls_current *current = want(ca_path, &pair);
    SAID_NOTHING(); /* and comes back */
    assert_null(in_force(current));
    timers_fire(&loop.timers, loop.now_ns += HOST_TLS_LOOK_NS);
    assert_int_equal(write(ends[1], "", 1), 1);
    await_look(&loop); /* the one that hung: another has begun */
    assert_true(tls.looking);
    await_look(&loop);
    assert_non_null(in_force(current));
    host_tls_stop(&tls);
    loop_dispose(&loop);
    sim_free(sim);
    close(ends[0]);
    close(ends[1]);
}

/* --- check --- */

static unsigned check(int64_t now_s, char *text, size_t size)
{
    struct config config;
    char file[2000], error[300] = "";
    memset(text, 0, size);
    snprintf(file, sizeof file,
             "[host]\nhttps = 127.0.0.1:1\nhttps_certificate = %s\nhttps_key = %s\n"
             "[app a]\nmodule = ./a\n"
             "[output a.o]\nwire = https://h/\nca = %s\n"
             "[output a.p]\nwire = https://h/\nca = %s\n",
             certificate_path, key_path, ca_path, ca_path);
    config_load_text(&config, "x", span_text(file), error, sizeof error);
    assert_string_equal(error, "");
    FILE *out = fmemopen(text, size, "w");
    unsigned problems = check_tls(&config, now_s, out);
    fclose(out);
    config_dispose(&config);
    return problems;
}

static void check_reads_the_files_as_a_host_would(void **state)
{
    (void)state;
    char text[3000];
    assert_int_equal(check(NOW_S, text, sizeof text), 0);
    put_key(two);
    assert_int_equal(check(NOW_S, text, sizeof text), 1);
    assert_non_null(strstr(text, "pure-host: x:3: TLS: "));
    put_key(one);
    assert_int_equal(chmod(key_path, 0640), 0);
    assert_int_equal(check(NOW_S, text, sizeof text), 0);
    assert_int_equal(chmod(key_path, 0644), 0);
    assert_int_equal(check(NOW_S, text, sizeof text), 1);
    assert_non_null(strstr(text, "x:4: TLS: "));
    assert_non_null(strstr(text, "everybody on this machine may use this key (mode 644): chmod o-rwx"));
    put_key(one);
    unlink(ca_path);
    assert_int_equal(check(NOW_S, text, sizeof text), 1); /* once, for both outputs */
    assert_non_null(strstr(text, "x:9: TLS: "));
}

static void check_finds_signing_secrets_that_everybody_may_read(void **state)
{
    (void)state;
    char path[330], file[600], error[300] = "", text[1000] = "";
    struct config config;
    snprintf(path, sizeof path, "%s/hook.secret", directory);
    put_text(path, "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n");
    snprintf(file, sizeof file, "[app a]\nmodule = ./a\n[output a.o]\nwire = http://h/\nsign = file:%s\n",
             path);
    config_load_text(&config, "x", span_text(file), error, sizeof error);
    assert_string_equal(error, "");
    for (unsigned open = 0; open < 2; open++) {
        assert_int_equal(chmod(path, open ? 0644 : 0640), 0);
        FILE *out = fmemopen(text, sizeof text, "w");
        assert_int_equal(check_secrets(&config, out), open);
        fclose(out);
    }
    assert_non_null(strstr(text, "pure-host: x:5: sign: "));
    assert_non_null(strstr(text, "everybody on this machine may use these secrets (mode 644): chmod o-rwx"));
    config_dispose(&config);
}

static void check_looks_at_dates(void **state)
{
    (void)state;
    char text[3000];
    struct test_certificate *dated = test_certificate(&(struct test_certificate_options){
        .subject = "dated", .not_before_s = NOW_S, .not_after_s = NOW_S + 30 * 86400});
    put_certificate(dated);
    put_key(dated);
    assert_int_equal(check(NOW_S + 86400, text, sizeof text), 0);
    assert_string_equal(text, "");
    assert_int_equal(check(NOW_S + 20 * 86400, text, sizeof text), 0);
    assert_non_null(strstr(text, "note: x:3: TLS: "));
    assert_non_null(strstr(text, "/own.pem: a certificate in it expires in 10 days"));
    assert_int_equal(check(NOW_S + 31 * 86400, text, sizeof text), 1);
    assert_non_null(strstr(text, "has expired: have it renewed"));
    assert_int_equal(check(NOW_S - 86400, text, sizeof text), 1);
    assert_non_null(strstr(text, "not yet valid: is this machine's clock right?"));
    test_certificate_free(dated);
}

int main(void)
{
#define WITH_FILES(test) cmocka_unit_test_setup_teardown(test, begin, end)
    const struct CMUnitTest tests[] = {
        WITH_FILES(files_are_read_by_the_first_look_and_shared),
        WITH_FILES(a_new_pair_is_in_force_after_the_next_look),
        WITH_FILES(a_bad_pair_keeps_the_one_before_and_is_said_once_a_change),
        WITH_FILES(what_is_missing_at_first_is_read_once_it_is_there),
        WITH_FILES(what_could_not_be_read_for_want_of_descriptors_is_read_later),
        WITH_FILES(a_fifo_in_place_of_a_file_holds_nobody),
        WITH_FILES(ca_certificates_that_cannot_be_read_any_more_stay_in_force),
        WITH_FILES(a_file_that_comes_into_a_folder_is_seen),
        WITH_FILES(a_renewal_that_went_wrong_is_reported_until_it_is_put_right),
        WITH_FILES(what_was_never_there_is_reported_once_and_not_as_in_use),
        WITH_FILES(the_end_of_the_first_certificate_in_use_is_reported),
        WITH_FILES(a_thread_looks_every_ten_seconds_while_there_are_files),
        WITH_FILES(nobody_waits_for_a_look_that_hangs),
        WITH_FILES(check_reads_the_files_as_a_host_would),
        WITH_FILES(check_finds_signing_secrets_that_everybody_may_read),
        WITH_FILES(check_looks_at_dates),
    };
    temp_make();
    ca = test_certificate(&(struct test_certificate_options){.subject = "CA", .ca = true});
    one = test_certificate(&(struct test_certificate_options){.subject = "one", .issuer = ca});
    two = test_certificate(&(struct test_certificate_options){.subject = "two", .issuer = ca});
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    test_certificate_free(one);
    test_certificate_free(two);
    test_certificate_free(ca);
    test_files_close();
    tls_thread_end();
    return failed;
}
