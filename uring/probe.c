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

static void explain_permission(int sysctl, char *why, size_t size)
{
    if (sysctl == 2)
        snprintf(why, size,
                 "io_uring is switched off for all: kernel.io_uring_disabled is 2; set it to 0 with sysctl");
    else if (sysctl == 1)
        snprintf(why, size,
                 "io_uring is switched off for unprivileged processes: kernel.io_uring_disabled is 1; set it "
                 "to 0 with sysctl, or join the group of kernel.io_uring_group");
    else
        snprintf(why, size,
                 "a seccomp filter refuses io_uring_setup, as the default profile of Docker does; run the "
                 "container with a profile that allows io_uring_setup, io_uring_enter and io_uring_register");
}

static void explain_old(const char *release, char *why, size_t size)
{
    snprintf(why, size, "the kernel is %s, and %u.%u or later is needed; update it", release, NEEDED_MAJOR,
             NEEDED_MINOR);
}

void uring_explain(int error, int sysctl, const char *release, char *why, size_t size)
{
    if (error == -EPERM)
        explain_permission(sysctl, why, size);
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
    ring_missing(&ring, missing, sizeof missing);
    io_uring_queue_exit(&ring);
    snprintf(why, size, "the kernel %s lacks of io_uring: %s; %u.%u or later is needed", release, missing,
             NEEDED_MAJOR, NEEDED_MINOR);
}

int uring_probe(char *why, size_t size)
{
    struct io_uring ring;
    struct buffers buffers;
    struct uring_options options = {.entries = 8, .completions = 16, .buffers = 1, .buffer_bytes = 64};
    int error = ring_set_up(&ring, &buffers, &options);
    if (error == 0) {
        ring_tear_down(&ring, &buffers);
        return 0;
    }
    struct utsname system;
    const char *release = uname(&system) == 0 ? system.release : "of unknown version";
    uring_explain(error, read_sysctl(), release, why, size);
    if (error == -EOPNOTSUPP)
        explain_missing(release, why, size);
    return PE_KERNEL;
}
