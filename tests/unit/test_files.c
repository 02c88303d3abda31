/* Blocking files (core/files.h) as the system has them. */
#include "core/files.h"
#include "tests/unit/temp_directory.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <cmocka.h>

static struct files *f;
static const struct files_backend *b;
static int directory;

static int set_up(void **state)
{
    (void)state;
    f = files_system();
    b = f->backend;
    directory = temp_directory();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    return close(directory);
}

static int make(const char *name)
{
    int fd = b->open(f, directory, name, O_RDWR | O_CREAT | O_EXCL, 0600);
    assert_true(fd >= 0);
    return fd;
}

static void a_file_is_made_once_with_its_mode_and_not_inherited(void **state)
{
    (void)state;
    int fd = make("a");
    struct stat status;
    assert_int_equal(fstat(fd, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
    assert_int_equal(b->open(f, directory, "a", O_RDWR | O_CREAT | O_EXCL, 0600), -EEXIST);
    assert_int_equal(b->open(f, directory, "b", O_RDONLY, 0), -ENOENT);
    assert_int_equal(b->close(f, fd), 0);
    assert_int_equal(b->close(f, fd), -EBADF);
}

static void what_is_no_file_has_no_size(void **state)
{
    (void)state;
    assert_int_equal(b->size(f, directory), -ENOTSUP);
}

static void bytes_are_read_where_they_were_written(void **state)
{
    (void)state;
    uint8_t got[16];
    int fd = make("a");
    assert_int_equal(b->size(f, fd), 0);
    assert_int_equal(b->write(f, fd, "abcdef", 6, 4), 6);
    assert_int_equal(b->size(f, fd), 10);
    assert_int_equal(b->read(f, fd, got, 10, 0), 10);
    assert_memory_equal(got, "\0\0\0\0abcdef", 10);
    assert_int_equal(b->write(f, fd, "X", 1, 5), 1);
    assert_int_equal(b->read(f, fd, got, 3, 4), 3);
    assert_memory_equal(got, "aXc", 3);
    assert_int_equal(b->sync(f, fd), 0);
    assert_int_equal(b->close(f, fd), 0);
}

static void a_read_is_short_only_at_the_end(void **state)
{
    (void)state;
    uint8_t got[16];
    int fd = make("a");
    assert_int_equal(b->write(f, fd, "abcdef", 6, 0), 6);
    assert_int_equal(b->read(f, fd, got, sizeof got, 2), 4);
    assert_memory_equal(got, "cdef", 4);
    assert_int_equal(b->read(f, fd, got, sizeof got, 6), 0);
    assert_int_equal(b->read(f, fd, got, sizeof got, 600), 0);
    assert_int_equal(b->read(f, fd, got, 0, 0), 0);
    assert_int_equal(b->close(f, fd), 0);
}

/* The limit lets the system write a part, and then refuses. */
static void a_write_is_whole_or_an_error(void **state)
{
    (void)state;
    struct rlimit before, small;
    int fd = make("a");
    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = (struct rlimit){.rlim_cur = 6, .rlim_max = before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    int64_t result = b->write(f, fd, "0123456789", 10, 0);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    signal(SIGXFSZ, SIG_DFL);
    assert_int_equal(b->size(f, fd), 6);
    assert_int_equal(result, -EFBIG);
    assert_int_equal(b->close(f, fd), 0);
}

static void a_descriptor_refuses_what_it_was_not_opened_for(void **state)
{
    (void)state;
    uint8_t got[4];
    assert_int_equal(b->close(f, make("a")), 0);
    int fd = b->open(f, directory, "a", O_RDONLY, 0);
    assert_int_equal(b->write(f, fd, "a", 1, 0), -EBADF);
    assert_int_equal(b->close(f, fd), 0);
    fd = b->open(f, directory, "a", O_WRONLY, 0);
    assert_int_equal(b->read(f, fd, got, sizeof got, 0), -EBADF);
    assert_int_equal(b->close(f, fd), 0);
    assert_int_equal(b->size(f, -1), -EBADF);
    assert_int_equal(b->sync(f, -1), -EBADF);
}

static void directories_are_made_and_synced(void **state)
{
    (void)state;
    assert_int_equal(b->make_directory(f, directory, "inner", 0700), 0);
    assert_int_equal(b->make_directory(f, directory, "inner", 0700), -EEXIST);
    assert_int_equal(b->make_directory(f, directory, "none/inner", 0700), -ENOENT);
    assert_int_equal(b->sync(f, directory), 0);
    int inner = b->open(f, directory, "inner", O_RDONLY | O_DIRECTORY, 0);
    assert_true(inner >= 0);
    int fd = b->open(f, inner, "a", O_RDWR | O_CREAT, 0600);
    assert_true(fd >= 0);
    assert_int_equal(b->close(f, fd), 0);
    assert_int_equal(b->close(f, inner), 0);
    assert_int_equal(b->unlink(f, directory, "inner/a"), 0);
}

static void paths_need_no_directory(void **state)
{
    (void)state;
    int fd = b->open(f, AT_FDCWD, temp_path, O_RDONLY | O_DIRECTORY, 0);
    assert_true(fd >= 0);
    assert_int_equal(b->close(f, fd), 0);
}

struct names {
    unsigned count, a, b;
};

static void note_name(void *context, const char *name)
{
    struct names *names = context;
    names->count++;
    names->a += strcmp(name, "a") == 0;
    names->b += strcmp(name, "b") == 0;
}

static struct names list(int fd)
{
    struct names names = {0};
    assert_int_equal(b->list(f, fd, note_name, &names), 0);
    return names;
}

static void a_list_has_each_name_once_each_time(void **state)
{
    (void)state;
    assert_int_equal(list(directory).count, 0);
    assert_int_equal(b->close(f, make("a")), 0);
    assert_int_equal(b->close(f, make("b")), 0);
    for (unsigned i = 0; i < 3; i++) {
        struct names names = list(directory);
        assert_int_equal(names.count, 2);
        assert_int_equal(names.a, 1);
        assert_int_equal(names.b, 1);
    }
    int fd = b->open(f, directory, "a", O_RDONLY, 0);
    assert_int_equal(b->list(f, fd, note_name, NULL), -ENOTDIR);
    assert_int_equal(b->close(f, fd), 0);
}

static void what_is_cut_off_is_gone_and_the_rest_stays(void **state)
{
    (void)state;
    char bytes[8] = "";
    int a = make("cut");
    assert_int_equal(b->write(f, a, "abcdef", 6, 0), 6);
    assert_int_equal(b->truncate(f, a, 2), 0);
    assert_int_equal(b->size(f, a), 2);
    assert_int_equal(b->read(f, a, bytes, 6, 0), 2);
    assert_string_equal(bytes, "ab");
    int again = b->open(f, directory, "cut", O_RDONLY, 0);
    assert_true(b->truncate(f, again, 1) < 0);
    b->close(f, again);
    b->close(f, a);
}

static void what_is_unlinked_is_gone(void **state)
{
    (void)state;
    assert_int_equal(b->close(f, make("a")), 0);
    assert_int_equal(b->unlink(f, directory, "a"), 0);
    assert_int_equal(b->unlink(f, directory, "a"), -ENOENT);
    assert_int_equal(list(directory).count, 0);
}

static void a_lock_is_one_descriptors_until_it_is_closed(void **state)
{
    (void)state;
    int first = make("lock");
    int second = b->open(f, directory, "lock", O_RDWR, 0), third = b->open(f, directory, "lock", O_RDWR, 0);
    assert_int_equal(b->lock(f, first), 0);
    assert_int_equal(b->lock(f, first), 0);
    assert_int_equal(b->lock(f, second), -EWOULDBLOCK);
    assert_int_equal(b->close(f, third), 0); /* fcntl's locks would end here */
    assert_int_equal(b->lock(f, second), -EWOULDBLOCK);
    assert_int_equal(b->close(f, first), 0);
    assert_int_equal(b->lock(f, second), 0);
    assert_int_equal(b->close(f, second), 0);
}

static void space_is_told(void **state)
{
    (void)state;
    uint64_t bytes = 0;
    assert_int_equal(b->space(f, directory, &bytes), 0);
    assert_true(bytes > 0);
    assert_int_equal(b->space(f, -1, &bytes), -EBADF);
}

static volatile sig_atomic_t ticks, writer = -1;
static char pipe_path[sizeof temp_path + 8];

/* The third tick lets go what the first two interrupted. */
static void tick(int signal_number)
{
    (void)signal_number;
    if (++ticks == 3)
        writer = open(pipe_path, O_RDWR | O_CLOEXEC);
}

/* Opening a named pipe waits for its other end, and signals interrupt that. */
static void an_interrupted_call_is_made_again(void **state)
{
    (void)state;
    snprintf(pipe_path, sizeof pipe_path, "%s/pipe", temp_path);
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    struct sigaction action = {.sa_handler = tick}, before; /* without SA_RESTART */
    assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
    struct itimerval each_ms = {{0, 1000}, {0, 1000}}, none = {{0, 0}, {0, 0}};
    assert_int_equal(setitimer(ITIMER_REAL, &each_ms, NULL), 0);
    int fd = b->open(f, AT_FDCWD, pipe_path, O_RDONLY, 0);
    assert_int_equal(setitimer(ITIMER_REAL, &none, NULL), 0);
    assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
    assert_true(fd >= 0);
    assert_true(ticks >= 3);
    close(fd);
    close(writer);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(what_is_no_file_has_no_size),
        TEST(a_file_is_made_once_with_its_mode_and_not_inherited),
        TEST(what_is_no_file_has_no_size),
        TEST(bytes_are_read_where_they_were_written),
        TEST(a_read_is_short_only_at_the_end),
        TEST(a_write_is_whole_or_an_error),
        TEST(a_descriptor_refuses_what_it_was_not_opened_for),
        TEST(directories_are_made_and_synced),
        TEST(paths_need_no_directory),
        TEST(a_list_has_each_name_once_each_time),
        TEST(what_is_cut_off_is_gone_and_the_rest_stays),
        TEST(what_is_unlinked_is_gone),
        TEST(a_lock_is_one_descriptors_until_it_is_closed),
        TEST(space_is_told),
        TEST(an_interrupted_call_is_made_again),
    };
    temp_make();
    return cmocka_run_group_tests_name("files", tests, NULL, NULL);
}
