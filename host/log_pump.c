#include "host/log_pump.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define STOP_LOOKS   150
#define STOP_LOOK_NS 2000000
#define RETRY_NS     50000000 /* the descriptor is non-blocking for its other owners, and full */

/* All of it, or as much as can be written at all: a log that fails is lost, and nothing else is. */
static void write_all(int to, const char *at, size_t size)
{
    while (size > 0) {
        ssize_t wrote = write(to, at, size);
        if (wrote > 0) {
            at += wrote;
            size -= (size_t)wrote;
        } else if (wrote < 0 && errno == EAGAIN) {
            nanosleep(&(struct timespec){.tv_nsec = RETRY_NS}, NULL);
        } else if (wrote == 0 || errno != EINTR) {
            return;
        }
    }
}

struct copying {
    int from, to;
};

/* It may outlive whoever started it, so what it needs is its own. */
static void *copy(void *argument)
{
    struct copying c = *(struct copying *)argument;
    char bytes[PIPE_BUF];
    ssize_t got;
    free(argument);
    while ((got = read(c.from, bytes, sizeof bytes)) > 0 || (got < 0 && errno == EINTR)) {
        if (got > 0)
            write_all(c.to, bytes, (size_t)got);
    }
    close(c.from);
    return NULL;
}

/* With no signals for it, whatever its starter takes. 0 or a negative errno. */
static int start_thread(pthread_t *thread, struct copying *c)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(thread, NULL, copy, c);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0)
        pthread_setname_np(*thread, "pure-log");
    return -error;
}

/* A descriptor of our own that does not block, or -1 where there is none to be had. */
static int own_way(int to)
{
    struct stat about;
    char path[32];
    if (fstat(to, &about) < 0)
        return -1;
    if (S_ISREG(about.st_mode) || S_ISSOCK(about.st_mode))
        return fcntl(to, F_DUPFD_CLOEXEC, 0);
    snprintf(path, sizeof path, "/proc/self/fd/%d", to);
    return open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
}

int log_pump_start(struct log_pump *p, int to)
{
    p->threaded = false;
    p->fd = own_way(to);
    return p->fd >= 0 ? 0 : log_pump_start_thread(p, to);
}

int log_pump_start_thread(struct log_pump *p, int to)
{
    int ends[2];
    p->fd = -1;
    struct copying *c = malloc(sizeof *c);
    if (!c)
        return -ENOMEM;
    int error = pipe2(ends, O_CLOEXEC) < 0 ? -errno : 0;
    if (error < 0) {
        free(c);
        return error;
    }
    *c = (struct copying){ends[0], to};
    if (fcntl(ends[1], F_SETFL, O_NONBLOCK) < 0)
        error = -errno;
    if (error == 0)
        error = start_thread(&p->thread, c);
    if (error == 0) {
        p->threaded = true;
        p->fd = ends[1];
        return 0;
    }
    free(c);
    close(ends[0]);
    close(ends[1]);
    return error;
}

void log_pump_stop(struct log_pump *p)
{
    if (p->fd < 0)
        return;
    close(p->fd); /* the end of what there is to copy */
    p->fd = -1;
    if (!p->threaded)
        return;
    for (unsigned i = 0; i < STOP_LOOKS; i++) {
        if (pthread_tryjoin_np(p->thread, NULL) == 0)
            return;
        nanosleep(&(struct timespec){.tv_nsec = STOP_LOOK_NS}, NULL);
    }
    pthread_detach(p->thread);
}
