/* Who looks at a thread while no loop turns that would (host/turn_guard.h). */
#include "host/turn_guard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static int wake_signal(void)
{
    return SIGRTMIN + 6;
}

/* As if nobody had held it back. */
static _Noreturn void end_by(int number)
{
    sigset_t only;
    signal(number, SIG_DFL);
    sigemptyset(&only);
    sigaddset(&only, number);
    raise(number);
    pthread_sigmask(SIG_UNBLOCK, &only, NULL);
    _exit(128 + number);
}

static void look_at(struct guard_thread *t)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    uint64_t now_ns = (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
    if (t && guard_look(t, now_ns, GUARD_WATCH_NS) == GUARD_DIE)
        guard_die(t, MARK_HUNG);
}

static void *watch(void *argument)
{
    struct guard_watch *w = argument;
    const struct timespec every = {.tv_nsec = GUARD_WATCH_NS};
    while (!atomic_load(&w->ends)) {
        int number = sigtimedwait(&w->signals, NULL, &every);
        if (number == SIGTERM || number == SIGINT)
            end_by(number);
        look_at(atomic_load(&w->looked));
    }
    return NULL;
}

/* A thread that takes the signals of others only as it asks for them. */
static int begin_thread(struct guard_watch *w)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&w->thread, NULL, watch, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -error;
}

int guard_watch_begin(struct guard_watch *w, bool ended_by_signals)
{
    *w = (struct guard_watch){.on = false};
    sigemptyset(&w->signals);
    sigaddset(&w->signals, wake_signal());
    if (ended_by_signals) {
        sigaddset(&w->signals, SIGTERM);
        sigaddset(&w->signals, SIGINT);
    }
    int error = begin_thread(w);
    w->on = error == 0;
    return error;
}

void guard_watch(struct guard_watch *w, struct guard_thread *t)
{
    atomic_store(&w->looked, t);
}

void guard_watch_end(struct guard_watch *w)
{
    if (!w->on)
        return;
    atomic_store(&w->ends, true);
    pthread_kill(w->thread, wake_signal());
    pthread_join(w->thread, NULL);
    w->on = false;
}
