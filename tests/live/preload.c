/* Loaded into a process before its C library (LD_PRELOAD), to change what that says:
 *
 *     LIVE_CLOCK_S=N         the wall clock is N seconds off
 *     LIVE_SEGMENTS=FILE     as soon as FILE is there, a send with UDP_SEGMENT is refused (EIO)
 *
 * Only what goes through the C library is seen: the host's clock, but not what its io_uring sends. So the
 * second is for the host on the epoll back end. */
#include <dlfcn.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

int clock_gettime(clockid_t clock, struct timespec *now)
{
    int (*next)(clockid_t, struct timespec *) =
        (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    const char *off = getenv("LIVE_CLOCK_S");
    int error = next(clock, now);
    if (error == 0 && off && clock == CLOCK_REALTIME)
        now->tv_sec += atoll(off);
    return error;
}

time_t time(time_t *now)
{
    struct timespec precise;
    clock_gettime(CLOCK_REALTIME, &precise);
    if (now)
        *now = precise.tv_sec;
    return precise.tv_sec;
}

static bool has_segments(const struct msghdr *message)
{
    struct msghdr *m = (struct msghdr *)message; /* CMSG_NXTHDR takes no const */
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_SEGMENT)
            return true;
    }
    return false;
}

ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    ssize_t (*next)(int, const struct msghdr *, int) =
        (ssize_t(*)(int, const struct msghdr *, int))dlsym(RTLD_NEXT, "sendmsg");
    const char *file = getenv("LIVE_SEGMENTS");
    if (file && has_segments(message) && access(file, F_OK) == 0) {
        errno = EIO;
        return -1;
    }
    return next(fd, message, flags);
}
