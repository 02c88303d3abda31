#include "core/error.h"
#include "uring/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/utsname.h>
#include <unistd.h>

#define NEEDED_MAJOR 6
#define NEEDED_MINOR 1

static bool older_than_needed(const char *release)
{
    unsigned major = 0, minor = 0;
    if (sscanf(release, "%u.%u", &major, &minor) != 2)
        return false;
    return major < NEEDED_MAJOR || (major == NEEDED_MAJOR && minor < NEEDED_MINOR);
}

static const char *const call_names[] = {"io_uring_setup", "io_uring_register", "io_uring_enter"};

/* The sysctl refuses the set-up and nothing later. */
static void explain_permission(enum uring_call call, int sysctl, char *why, size_t size)
{
    if (call == URING_SETUP && sysctl == 2)
        snprintf(why, size,
                 "io_uring is switched off for all: kernel.io_uring_disabled is 2; set it to 0 with sysctl");
    else if (call == URING_SETUP && sysctl == 1)
        snprintf(why, size,
                 "io_uring is switched off for unprivileged processes: kernel.io_uring_disabled is 1; set it "
                 "to 0 with sysctl, or join the group of kernel.io_uring_group");
    else
        snprintf(why, size,
                 "a seccomp filter refuses %s, as the default profile of Docker does; run the "
                 "container with a profile that allows io_uring_setup, io_uring_enter and io_uring_register",
                 call_names[call]);
}

static void explain_old(const char *release, char *why, size_t size)
{
    snprintf(why, size, "the kernel is %s, and %u.%u or later is needed; update it", release, NEEDED_MAJOR,
             NEEDED_MINOR);
}

/* A kernel that has set a ring up has the other calls, too: only a filter can hide them. */
static bool filtered(enum uring_call call, int error)
{
    return error == -EPERM || (call != URING_SETUP && (error == -ENOSYS || error == -EACCES));
}

void uring_explain(enum uring_call call, int error, int sysctl, const char *release, char *why, size_t size)
{
    if (filtered(call, error))
        explain_permission(call, sysctl, why, size);
    else if (older_than_needed(release) && (error == -EINVAL || error == -ENOSYS || error == -EOPNOTSUPP))
        explain_old(release, why, size);
    else if (error == -ENOSYS)
        snprintf(why, size,
                 "the kernel %s has no io_uring, or a seccomp filter hides it; use a kernel built with "
                 "CONFIG_IO_URING, or a container profile that allows io_uring_setup",
                 release);
    else if (error == -ENOMEM)
        snprintf(why, size,
                 "no memory for the rings: raise the limit of locked memory (ulimit -l, LimitMEMLOCK= in a "
                 "unit) or the container's memory limit");
    else
        snprintf(why, size, "io_uring cannot be set up on kernel %s: %s", release, pure_error_text(error));
}

static int read_sysctl(void)
{
    char text[16];
    int fd = open("/proc/sys/kernel/io_uring_disabled", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -1;
    ssize_t size = read(fd, text, sizeof text - 1);
    close(fd);
    if (size <= 0)
        return -1;
    text[size] = '\0';
    return atoi(text);
}

/* The set-up went well up to where the kernel was asked what it has: say what it lacks. */
static void explain_missing(const char *release, char *why, size_t size)
{
    struct io_uring ring;
    char missing[256];
    if (io_uring_queue_init(1, &ring, 0) < 0)
        return;
    int error = ring_missing(&ring, missing, sizeof missing);
    io_uring_queue_exit(&ring);
    if (error == 0)
        snprintf(why, size, "the kernel %s lacks of io_uring: %s; %u.%u or later is needed", release, missing,
                 NEEDED_MAJOR, NEEDED_MINOR);
}

/* Whether a ring of the plainest kind can be made: what failed after that was a registration. */
static bool sets_up(void)
{
    struct io_uring ring;
    if (io_uring_queue_init(1, &ring, 0) < 0)
        return false;
    io_uring_queue_exit(&ring);
    return true;
}

/* 0, or the negative errno of `call`. */
static int try_all(enum uring_call *call)
{
    struct io_uring ring;
    struct buffers buffers;
    struct uring_options options = {.entries = 8, .completions = 16, .buffers = 1, .buffer_bytes = 64};
    int error = ring_set_up(&ring, &buffers, &options);
    *call = URING_SETUP;
    if (error < 0) {
        if ((error == -EPERM || error == -ENOSYS || error == -EACCES) && sets_up())
            *call = URING_REGISTER;
        return error;
    }
    *call = URING_REGISTER;
    error = ring_enable(&ring);
    if (error == 0) {
        *call = URING_ENTER;
        error = io_uring_submit_and_get_events(&ring);
    }
    ring_tear_down(&ring, &buffers);
    return error < 0 ? error : 0;
}

int uring_probe(char *why, size_t size)
{
    enum uring_call call;
    int error = try_all(&call);
    if (error == 0)
        return 0;
    struct utsname system;
    const char *release = uname(&system) == 0 ? system.release : "of unknown version";
    uring_explain(call, error, read_sysctl(), release, why, size);
    if (error == -EOPNOTSUPP)
        explain_missing(release, why, size);
    return PE_KERNEL;
}
