/* The guard's decisions, with clocks that tests own, and its signals, in children that die of them. */
#include "host/turn_guard.h"

#include "host/sink.h"
#include "tests/unit/temp_directory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIMIT_NS NS_PER_S
#define EVERY_NS (LIMIT_NS / 4)
#define CODE     0x1000
#define ELSE     0x5000

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OWN_HANDLERS 1 /* of faults: they end the process their way */
#else
#define OWN_HANDLERS 0
#endif

static struct guard_app app = {
    .name = "app", .limit_ns = LIMIT_NS, .code = {{CODE, CODE + 0x1000}}, .code_count = 1};
static struct guard_thread thread;

static void enter_again(void)
{
    guard_leave();
    guard_enter(&app, "event");
}

static int setup(void **state)
{
    (void)state;
    thread = (struct guard_thread){.leavable = true};
    guard_here = &thread;
    guard_enter(&app, "event");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    guard_leave();
    guard_here = NULL;
    return 0;
}

/* --- ticks --- */

static void a_call_over_its_limit_is_left_from_its_own_code_only(void **state)
{
    (void)state;
    assert_int_equal(guard_judge(&thread, 0, CODE), GUARD_FINE); /* seen first */
    assert_int_equal(guard_judge(&thread, LIMIT_NS - 1, CODE), GUARD_FINE);
    assert_int_equal(guard_judge(&thread, LIMIT_NS - 1, ELSE), GUARD_FINE);
    assert_int_equal(guard_judge(&thread, LIMIT_NS, ELSE), GUARD_LEAVE_AT_PASS);
    assert_int_equal(guard_judge(&thread, LIMIT_NS, CODE - 1), GUARD_LEAVE_AT_PASS);
    assert_int_equal(guard_judge(&thread, LIMIT_NS, CODE + 0x1000), GUARD_LEAVE_AT_PASS);
    assert_int_equal(guard_judge(&thread, LIMIT_NS, CODE), GUARD_LEAVE);
    assert_int_equal(guard_judge(&thread, 3 * LIMIT_NS, CODE + 0xfff), GUARD_LEAVE);
}

static void a_call_that_cannot_be_left_dies_at_twice_its_limit(void **state)
{
    (void)state;
    guard_judge(&thread, 0, ELSE);
    assert_int_equal(guard_judge(&thread, 2 * LIMIT_NS - 1, ELSE), GUARD_LEAVE_AT_PASS);
    assert_int_equal(guard_judge(&thread, 2 * LIMIT_NS, ELSE), GUARD_DIE);
    thread.leavable = false;
    assert_int_equal(guard_judge(&thread, 2 * LIMIT_NS - 1, CODE), GUARD_FINE);
    assert_int_equal(guard_judge(&thread, 2 * LIMIT_NS, CODE), GUARD_DIE);
}

static void each_call_has_its_limit_anew(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 100; i++) {
        assert_int_equal(guard_judge(&thread, i * LIMIT_NS, CODE), GUARD_FINE);
        enter_again();
    }
}

static void the_hosts_own_code_and_apps_without_limit_are_let_be(void **state)
{
    (void)state;
    struct guard_app patient = app;
    patient.limit_ns = NEVER;
    guard_judge(&thread, 0, CODE);
    guard_leave();
    assert_int_equal(guard_judge(&thread, 100 * LIMIT_NS, CODE), GUARD_FINE);
    guard_enter(&patient, "event");
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(guard_judge(&thread, (200 + 100 * i) * LIMIT_NS, CODE), GUARD_FINE);
        assert_int_equal(guard_judge_look(&thread, (200 + i) * LIMIT_NS, 0, false, EVERY_NS), GUARD_FINE);
    }
}

static void the_jump_comes_back_outside_of_any_call(void **state)
{
    (void)state;
    guard_leavable(true);
    if (sigsetjmp(thread.leave, 0) == 0) {
        assert_ptr_equal(heap_here, &app.memory);
        guard_jump(&thread);
    }
    assert_null(atomic_load(&thread.app));
    assert_null(heap_here);
    assert_false(thread.leavable);
}

/* Whether it is left at a pure_write. */
static bool left_at_pass(void)
{
    static struct pure_sink sink;
    sink_init(&sink, 100);
    guard_leavable(true);
    if (sigsetjmp(thread.leave, 0) != 0)
        return true;
    assert_int_equal(pure_write(&sink, "x", 1), 0);
    assert_false(guard_over);
    sink_dispose(&sink);
    return false;
}

static void a_call_that_could_not_be_left_is_at_its_next_write(void **state)
{
    (void)state;
    assert_false(left_at_pass());
    guard_judge(&thread, 0, ELSE);
    guard_over = true;
    assert_true(left_at_pass());
    assert_false(left_at_pass()); /* once */
}

static void another_call_and_the_hosts_own_writes_are_not_left_for_it(void **state)
{
    (void)state;
    guard_judge(&thread, 0, ELSE);
    guard_over = true;
    enter_again();
    assert_false(left_at_pass());
    guard_judge(&thread, 0, ELSE);
    guard_over = true;
    guard_leave();
    assert_false(left_at_pass());
}

/* --- looks --- */

/* So many looks, in each of which the call burns so much; what the last said. */
static enum guard_verdict look(unsigned looks, uint64_t burns_ns, bool runnable)
{
    enum guard_verdict verdict = GUARD_FINE;
    for (unsigned i = 0; i < looks; i++)
        verdict = guard_judge_look(&thread, thread.looked_ns + EVERY_NS, thread.looked_cpu_ns + burns_ns,
                                   runnable, EVERY_NS);
    return verdict;
}

static void a_call_that_sleeps_is_told_at_its_limit_and_dies_at_twice_that(void **state)
{
    (void)state;
    assert_int_equal(look(4, 0, false), GUARD_FINE); /* the first sees it */
    assert_int_equal(look(1, 0, false), GUARD_LEAVE);
    assert_int_equal(thread.stood_ns, LIMIT_NS);
    assert_int_equal(look(3, 0, false), GUARD_LEAVE);
    assert_int_equal(look(1, 0, false), GUARD_DIE);
}

static void a_call_that_runs_or_would_is_told_and_left_to_the_ticks(void **state)
{
    (void)state;
    assert_int_equal(look(30, EVERY_NS / 2, false), GUARD_LEAVE);
    assert_int_equal(look(100, 0, true), GUARD_LEAVE);
}

static void a_call_that_hears_no_ticks_dies_at_four_times_its_limit(void **state)
{
    (void)state;
    assert_int_equal(look(16, EVERY_NS, true), GUARD_LEAVE);
    assert_int_equal(look(1, EVERY_NS, true), GUARD_DIE);
    enter_again();
    assert_int_equal(look(16, EVERY_NS, true), GUARD_LEAVE);
    enter_again();
    assert_int_equal(look(16, EVERY_NS, true), GUARD_LEAVE);
}

static void a_thread_that_is_gone_burns_nothing(void **state)
{
    (void)state;
    look(1, 3 * EVERY_NS, false);
    assert_int_equal(guard_judge_look(&thread, thread.looked_ns + EVERY_NS, 0, false, EVERY_NS), GUARD_FINE);
    assert_int_equal(look(7, 0, false), GUARD_DIE);
}

static void a_call_that_returns_is_another(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 10; i++) {
        assert_int_equal(look(4, 0, false), GUARD_FINE);
        enter_again();
    }
    look(5, 0, false);
    guard_leave();
    assert_int_equal(look(1, 0, false), GUARD_FINE);
    assert_int_equal(look(100, 0, false), GUARD_FINE);
}

static void time_in_which_nobody_looked_hardly_counts(void **state)
{
    (void)state;
    look(1, 0, false);
    assert_int_equal(guard_judge_look(&thread, 1000 * LIMIT_NS, 0, false, EVERY_NS), GUARD_FINE);
    assert_int_equal(thread.stood_ns, 2 * EVERY_NS);
}

/* --- the real thing, in children --- */

static char directory[64];
static struct config_app config_app = {.name = (char *)"app",
                                       .module = (char *)"/nowhere/app.so",
                                       .turn_limit_ns = NS_PER_S,
                                       .memory_bytes = 1536u << 10};
static const struct config config = {.apps = &config_app, .app_count = 1};

/* cmocka takes faults itself; that is for tests' own. */
static struct turn_guard open_guard(int *said)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS};
    for (unsigned i = 0; !OWN_HANDLERS && i < ARRAY_SIZE(faults); i++)
        signal(faults[i], SIG_DFL);
    struct turn_guard g;
    int ends[2], unmarked;
    assert_int_equal(pipe(ends), 0);
    *said = ends[0];
    const struct guard_options options = {
        .directory = directory, .config = &config, .threads = 1, .fd = ends[1]};
    assert_int_equal(guard_open(&g, &options, &unmarked), 0);
    assert_int_equal(unmarked, 0);
    return g;
}

static void crash(void)
{
    volatile int *volatile nowhere = NULL;
    *nowhere = 1;
}

static void starve(void)
{
    struct guard_app *starved = atomic_load(&guard_here->app);
    atomic_store(&starved->memory.refused, 7);
    guard_leave();
    guard_enter(starved, "show");
    atomic_store(&starved->memory.refused, 8);
    abort();
}

static void overflow(void)
{
    volatile char frame[4096];
    frame[0] = 1;
    if (frame[0])
        overflow();
    frame[1] = 2; /* so that it is no tail call */
}

static void call_exit(void)
{
    exit(0);
}

static void signal_other(void)
{
    pid_t self = getpid();
    if (fork() == 0) {
        kill(self, SIGSEGV);
        _exit(0);
    }
    for (;;)
        pause();
}

static void kill_hard(void)
{
    raise(SIGKILL);
}

static void child_crashes(void)
{
    int status;
    if (fork() == 0)
        abort();
    wait(&status);
    _exit(7);
}

static void quick_exit_0(void)
{
    quick_exit(0);
}

static void child_exits(void)
{
    int status;
    fflush(NULL); /* else both write what is buffered */
    pid_t child = fork();
    if (child == 0)
        exit(5);
    waitpid(child, &status, 0);
    _exit(WIFEXITED(status) && WEXITSTATUS(status) == 5 ? 7 : 8);
}

/* Nobody's loop turns. */
static void sleep_watched(void)
{
    struct guard_watch w;
    atomic_load(&guard_here->app)->limit_ns = 1;
    assert_int_equal(guard_watch_begin(&w, false), 0);
    guard_watch(&w, guard_here);
    for (;;)
        pause();
}

static void hold_back(int number)
{
    sigset_t only;
    sigemptyset(&only);
    sigaddset(&only, number);
    sigprocmask(SIG_BLOCK, &only, NULL);
}

static void be_asked_to_end(int number)
{
    struct guard_watch w;
    hold_back(number);
    assert_int_equal(guard_watch_begin(&w, true), 0);
    kill(getpid(), number);
    for (;;)
        pause();
}

static void be_terminated(void)
{
    be_asked_to_end(SIGTERM);
}

static void be_interrupted(void)
{
    be_asked_to_end(SIGINT);
}

/* 7: the signal waits for whoever comes next. */
static void be_asked_later(void)
{
    struct guard_watch w;
    sigset_t pending;
    hold_back(SIGTERM);
    assert_int_equal(guard_watch_begin(&w, true), 0);
    guard_watch_end(&w);
    assert_int_equal(guard_watch_begin(&w, false), 0);
    kill(getpid(), SIGTERM);
    guard_watch_end(&w);
    guard_watch_end(&w);
    sigpending(&pending);
    _exit(sigismember(&pending, SIGTERM) == 1 ? 7 : 8);
}

struct way {
    void (*die)(void);
    int status;       /* as wait has it: a signal, or 256 times an exit status */
    unsigned deaths;  /* that it counts */
    const char *line; /* that it says */
    bool on_call;     /* else in the host's own code */
};

/* Runs a life that ends that way: what the next finds. */
static void expect_way(const struct way *way)
{
    int fd = temp_directory(), status, said;
    char line[300] = "";
    snprintf(directory, sizeof directory, "/proc/self/fd/%d", fd);
    struct turn_guard g = open_guard(&said);
    pid_t child = fork();
    if (child == 0) {
        signal(SIGALRM, SIG_DFL);
        alarm(30);
        temp_path[0] = '\0'; /* the directory is the parent's to remove */
        g.pid = getpid();    /* the process that it guards */
        g.threads[0].guard = &g;
        guard_thread_begin(&g, 0);
        if (way->on_call)
            guard_enter(&g.apps[0], "event");
        way->die();
        _exit(99);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status & ~0x80, way->status); /* 0x80: with a core */
    int held = g.options.fd;
    guard_close(&g);
    close(held);
    ssize_t size = read(said, line, sizeof line - 1);
    assert_true(size >= 0);
    line[size] = '\0';
    assert_string_equal(line, way->line);
    close(said);
    g = open_guard(&said);
    assert_int_equal(g.mark.apps[0].deaths, way->deaths);
    close(g.options.fd);
    close(said);
    guard_close(&g);
    close(fd);
}

static void a_death_in_a_call_is_noted_and_said(void **state)
{
    (void)state;
    static const struct way faults[] = {
        {crash, SIGSEGV, 1, "<3>app app ends the process, in its event: signal 11 (SIGSEGV)\n", true},
        {overflow, SIGSEGV, 1, "<3>app app ends the process, in its event: signal 11 (SIGSEGV)\n", true}};
    static const struct way ways[] = {
        {abort, SIGABRT, 1, "<3>app app ends the process, in its event: signal 6 (SIGABRT)\n", true},
        {starve, SIGABRT, 1,
         "<3>app app ends the process, in its show: signal 6 (SIGABRT); 1 allocation was refused (memory = "
         "1536K)\n",
         true},
        {call_exit, 256, 1, "<3>app app ends the process, in its event: a call of exit\n", true},
        {quick_exit_0, 256, 1, "<3>app app ends the process, in its event: a call of exit\n", true}};
    for (unsigned i = 0; !OWN_HANDLERS && i < ARRAY_SIZE(faults); i++)
        expect_way(&faults[i]);
    for (unsigned i = 0; i < ARRAY_SIZE(ways); i++)
        expect_way(&ways[i]);
}

static void a_death_outside_of_calls_is_nobodys(void **state)
{
    (void)state;
    static const struct way ways[] = {{abort, SIGABRT, 0, "", false}, {call_exit, 0, 0, "", false}};
    for (unsigned i = 0; i < ARRAY_SIZE(ways); i++)
        expect_way(&ways[i]);
}

static void what_others_do_to_the_process_is_no_apps_death(void **state)
{
    (void)state;
    static const struct way sent = {signal_other, SIGSEGV, 0, "", true};
    static const struct way ways[] = {{kill_hard, SIGKILL, 0, "", true},
                                      {child_crashes, 7 * 256, 0, "", true},
                                      {child_exits, 7 * 256, 0, "", true}};
    if (!OWN_HANDLERS)
        expect_way(&sent);
    for (unsigned i = 0; i < ARRAY_SIZE(ways); i++)
        expect_way(&ways[i]);
}

static void a_call_that_sleeps_while_no_loop_turns_is_a_death(void **state)
{
    (void)state;
    static const struct way way = {sleep_watched, SIGABRT, 1,
                                   "<3>app app ends the process, in its event: a call that did not return "
                                   "for twice its turn_limit\n",
                                   true};
    expect_way(&way);
}

static void signals_end_a_start_while_it_is_watched(void **state)
{
    (void)state;
    static const struct way ways[] = {{be_terminated, SIGTERM, 0, "", true},
                                      {be_interrupted, SIGINT, 0, "", true},
                                      {be_asked_later, 7 * 256, 0, "", true}};
    for (unsigned i = 0; i < ARRAY_SIZE(ways); i++)
        expect_way(&ways[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_call_over_its_limit_is_left_from_its_own_code_only, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_call_that_cannot_be_left_dies_at_twice_its_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(each_call_has_its_limit_anew, setup, teardown),
        cmocka_unit_test_setup_teardown(the_hosts_own_code_and_apps_without_limit_are_let_be, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(the_jump_comes_back_outside_of_any_call, setup, teardown),
        cmocka_unit_test_setup_teardown(a_call_that_could_not_be_left_is_at_its_next_write, setup, teardown),
        cmocka_unit_test_setup_teardown(another_call_and_the_hosts_own_writes_are_not_left_for_it, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_call_that_sleeps_is_told_at_its_limit_and_dies_at_twice_that, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_call_that_runs_or_would_is_told_and_left_to_the_ticks, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_call_that_hears_no_ticks_dies_at_four_times_its_limit, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_thread_that_is_gone_burns_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(a_call_that_returns_is_another, setup, teardown),
        cmocka_unit_test_setup_teardown(time_in_which_nobody_looked_hardly_counts, setup, teardown),
        cmocka_unit_test(a_death_in_a_call_is_noted_and_said),
        cmocka_unit_test(a_death_outside_of_calls_is_nobodys),
        cmocka_unit_test(what_others_do_to_the_process_is_no_apps_death),
        cmocka_unit_test(a_call_that_sleeps_while_no_loop_turns_is_a_death),
        cmocka_unit_test(signals_end_a_start_while_it_is_watched),
    };
    temp_make();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
