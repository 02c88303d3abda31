/* What the probe says when io_uring is refused: the texts as a function of their causes, and the real set-up
 * in a child whose seccomp filter refuses it. */
#include "core/error.h"
#include "uring/uring.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static void each_refusal_names_its_cause_and_its_remedy(void **state)
{
    (void)state;
    static const struct {
        enum uring_call call;
        int error, sysctl;
        const char *release, *cause, *remedy;
    } cases[] = {
        {URING_ENTER, -EPERM, -1, "6.8.0", "seccomp filter refuses io_uring_enter", "allows io_uring_setup"},
        {URING_REGISTER, -EPERM, 1, "6.8.0", "seccomp filter refuses io_uring_register", "allows"},
        {URING_ENTER, -ENOSYS, 2, "6.8.0", "seccomp filter refuses io_uring_enter", "allows"},
        {URING_REGISTER, -EACCES, 0, "6.8.0", "seccomp filter refuses io_uring_register", "allows"},
        {URING_REGISTER, -ENOMEM, 0, "6.8.0", "locked memory", "LimitMEMLOCK="},
        {URING_REGISTER, -EINVAL, -1, "5.15.0", "the kernel is 5.15.0", "6.1 or later"},
        {URING_SETUP, -EPERM, 2, "6.8.0", "kernel.io_uring_disabled is 2", "set it to 0"},
        {URING_SETUP, -EPERM, 1, "6.8.0", "kernel.io_uring_disabled is 1", "kernel.io_uring_group"},
        {URING_SETUP, -EPERM, 0, "6.8.0", "seccomp", "profile that allows io_uring_setup"},
        {URING_SETUP, -EPERM, -1, "6.1.0-18-arm64", "seccomp", "profile that allows io_uring_setup"},
        {URING_SETUP, -ENOSYS, 0, "6.8.0", "no io_uring", "CONFIG_IO_URING"},
        {URING_SETUP, -ENOSYS, -1, "4.19.0", "the kernel is 4.19.0", "6.1 or later"},
        {URING_SETUP, -EINVAL, -1, "5.15.0-91-generic", "the kernel is 5.15.0-91-generic", "6.1 or later"},
        {URING_SETUP, -EINVAL, -1, "6.0.19", "the kernel is 6.0.19", "6.1 or later"},
        {URING_SETUP, -EOPNOTSUPP, -1, "5.19", "the kernel is 5.19", "6.1 or later"},
        {URING_SETUP, -ENOMEM, 0, "6.1.0", "locked memory", "LimitMEMLOCK="},
        {URING_SETUP, -EINVAL, 0, "6.1.0", "kernel 6.1.0", "Invalid argument"},
        {URING_SETUP, -EMFILE, 0, "10.2", "kernel 10.2", "Too many open files"},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char why[400];
        uring_explain(cases[i].call, cases[i].error, cases[i].sysctl, cases[i].release, why, sizeof why);
        assert_non_null(strstr(why, cases[i].cause));
        assert_non_null(strstr(why, cases[i].remedy));
        assert_null(strchr(why, '\n'));
    }
}

static void a_text_longer_than_its_room_is_cut(void **state)
{
    (void)state;
    char why[16];
    memset(why, 'x', sizeof why);
    uring_explain(URING_SETUP, -EPERM, -1, "6.1", why, sizeof why);
    assert_int_equal(strlen(why), sizeof why - 1);
}

static void this_kernel_offers_what_is_needed(void **state)
{
    (void)state;
    char why[400] = "";
    assert_int_equal(uring_probe(why, sizeof why), 0);
    assert_string_equal(why, "");
}

static int refuse(unsigned call, unsigned error)
{
    struct sock_filter program[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog filter = {.len = ARRAY_SIZE(program), .filter = program};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
        return -errno;
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) < 0 ? -errno : 0;
}

/* The child's exit status: 0 if all is as it should be, else where it was not. */
static int probe_under_a_filter(unsigned call, unsigned error, const char *cause)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        char why[400] = "";
        struct io *io = NULL;
        bool opens = call == SYS_io_uring_enter; /* that is called by the first wait */
        int status = refuse(call, error) < 0                                  ? 1
                     : uring_probe(why, sizeof why) != PE_KERNEL              ? 2
                     : strstr(why, cause) == NULL                             ? 3
                     : !opens && (uring_open(&io, NULL) != -(int)error || io) ? 4
                                                                              : 0;
        _exit(status);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void a_set_up_refused_by_seccomp_is_told_as_that(void **state)
{
    (void)state;
    assert_int_equal(probe_under_a_filter(SYS_io_uring_setup, EPERM, "seccomp"), 0);
    assert_int_equal(probe_under_a_filter(SYS_io_uring_setup, ENOSYS, "seccomp"), 0);
    assert_int_equal(probe_under_a_filter(SYS_io_uring_setup, ENOMEM, "locked memory"), 0);
}

static void a_filter_that_refuses_only_the_later_calls_is_told_as_that(void **state)
{
    (void)state;
    static const unsigned errors[] = {EPERM, ENOSYS};
    for (size_t i = 0; i < ARRAY_SIZE(errors); i++) {
        assert_int_equal(probe_under_a_filter(SYS_io_uring_register, errors[i],
                                              "seccomp filter refuses io_uring_register"),
                         0);
        assert_int_equal(
            probe_under_a_filter(SYS_io_uring_enter, errors[i], "seccomp filter refuses io_uring_enter"), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_refusal_names_its_cause_and_its_remedy),
        cmocka_unit_test(a_text_longer_than_its_room_is_cut),
        cmocka_unit_test(this_kernel_offers_what_is_needed),
        cmocka_unit_test(a_set_up_refused_by_seccomp_is_told_as_that),
        cmocka_unit_test(a_filter_that_refuses_only_the_later_calls_is_told_as_that),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
