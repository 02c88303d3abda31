/* What keeps a module that misbehaves from taking the host with it for good (docs/decisions/0012): which app
 * each thread is in, what is noted of it when the process dies in there, and calls that do not return.
 *
 * Every call into a module stands between guard_enter and guard_leave, a batch of events between one pair. A
 * thread that has not called guard_thread_begin (those of a simulation have not) is not guarded: then these
 * do nothing.
 *
 * Deaths: SEGV, BUS, FPE, ILL, ABRT and SYS are handled on a stack of their own: the app's name and the
 * signal are noted in the store (turn_mark.h) and written to stderr, with the allocations that were refused
 * in the call, as few modules look whether malloc gave them any; then the signal takes its usual course.
 * A call of exit or quick_exit by a module is noted likewise, and ends with status 1. What another process
 * sends is nobody's death; _exit is not seen, nor what kills the process without asking it.
 *
 * Endless calls: a timer on each thread's processor clock fires every GUARD_TICK_NS that the thread burns. A
 * batch that has burned its app's turn_limit is left by a jump back into the turn (guard_leavable), if the
 * timer has interrupted the module's own code: then no lock of the C library or of the host is held. Where it
 * has not, the batch is left at its next pure_send or pure_write (guard_pass): a module that loops over these
 * is mostly in the host's code. What cannot be left has until twice the limit, and then ends the process, as
 * a death of the app.
 *
 * Calls that sleep burn nothing: the front looks at the threads (guard_look), and ends the process likewise
 * after twice the limit of such time. A thread that would run and gets no processor does not sleep. While no
 * loop of the front turns (a start, an end, a check), a thread of its own looks at the one that opens and
 * closes modules (guard_watch_begin), and takes SIGTERM and SIGINT during a start. */
#ifndef PURE_HOST_TURN_GUARD_H
#define PURE_HOST_TURN_GUARD_H

#include "core/clock.h"
#include "host/app.h"
#include "host/heap.h"
#include "host/turn_mark.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>
#include <time.h>

#define GUARD_TICK_NS     (100 * NS_PER_MS)
#define GUARD_WATCH_NS    (250 * NS_PER_MS)
#define GUARD_CODE_RANGES 4
#define GUARD_REFUSED_MAX 80 /* bytes of the text of refused allocations, its NUL included */

/* [begin, end) of addresses. */
struct guard_code {
    uintptr_t begin, end;
};

/* An app, as its calls are guarded. Only `memory` changes once the app is open. */
struct guard_app {
    const char *name;
    unsigned index;    /* among the apps */
    uint64_t limit_ns; /* turn_limit; NEVER: none */
    bool died;         /* so often that it is suspended, and its module not loaded */
    struct heap_account memory;
    struct guard_code code[GUARD_CODE_RANGES]; /* executable mappings of its module; code_count of them */
    unsigned code_count;
};

/* A thread that calls modules. Written by itself but for what guard_look has seen of it. */
struct guard_thread {
    struct turn_guard *guard;
    struct guard_app *_Atomic app; /* it is in a call of; NULL: of none */
    const char *_Atomic call;      /* "event", "open", …; static. Valid if `app` is */
    _Atomic uint64_t calls;        /* times that a call was entered */
    _Atomic uint64_t refused;      /* app->memory.refused when this one was */
    /* its own, and its handlers' */
    sigjmp_buf leave;
    volatile bool leavable; /* `leave` may be jumped to */
    uint64_t seen_calls;    /* at the last tick */
    uint64_t seen_cpu_ns;   /* processor time when that was first seen */
    timer_t timer;
    bool timed;
    void *stack; /* of signals, stack_bytes of it; NULL: it had one */
    size_t stack_bytes;
    _Atomic bool alive; /* `clock` is its processor clock */
    clockid_t clock;
    pid_t id; /* the kernel's */
    /* guard_look's: what it saw last; for how long that call has stood, slept and burned */
    uint64_t looked_calls, looked_ns, looked_cpu_ns;
    uint64_t stood_ns, asleep_ns, burned_ns;
};

struct guard_options {
    const char *directory; /* of the store; NULL: deaths are not remembered */
    const struct config *config;
    unsigned threads; /* that call modules */
    int fd;           /* where the line of a death goes: stderr */
    bool for_people;
};

struct turn_guard {
    struct guard_options options;
    struct turn_mark mark;
    struct guard_app *apps; /* config->app_count */
    struct guard_thread *threads;
    pid_t pid; /* a child of a module's is not the process */
    bool open;
    _Atomic bool dying; /* somebody has noted why */
};

/* Takes the fatal signals, until guard_close; one guard at a time. 0 or -ENOMEM; `*unmarked` (else 0): the
 * negative errno for which deaths cannot be remembered. */
int guard_open(struct turn_guard *g, const struct guard_options *options, int *unmarked);
void guard_close(struct turn_guard *g);

/* The app's module is loaded: what is its code. */
void guard_know_code(struct guard_app *app, const struct pure_app *module);

/* The calling thread is guard->threads[index], until guard_thread_end. 0, or the negative errno for which it
 * has no timer: endless calls of it are not left. */
int guard_thread_begin(struct turn_guard *g, unsigned index);
void guard_thread_end(void);

/* NULL: the thread is not guarded. Of the thread: a signal handler has no other way to it. */
extern _Thread_local struct guard_thread *guard_here;

/* `app` is NULL where nothing is guarded; `call`: static. */
static inline void guard_enter(struct guard_app *app, const char *call)
{
    struct guard_thread *t = guard_here;
    if (!t || !app)
        return;
    atomic_store_explicit(&t->calls, atomic_load_explicit(&t->calls, memory_order_relaxed) + 1,
                          memory_order_relaxed);
    atomic_store_explicit(&t->refused, atomic_load_explicit(&app->memory.refused, memory_order_relaxed),
                          memory_order_relaxed);
    atomic_store_explicit(&t->call, call, memory_order_relaxed);
    atomic_store_explicit(&t->app, app, memory_order_relaxed);
    heap_count_for(&app->memory);
}

/* The last tick of this thread found its call over the limit, and could not leave it. Of the program, never
 * of what is loaded later, so its place is known: pure_send pays three instructions. */
extern _Thread_local volatile sig_atomic_t guard_over __attribute__((tls_model("local-exec")));

/* What pure_send and pure_write find then: leaves the call, unless it is another by now, or none. */
void guard_leave_over(void);

/* At their entry, where nothing of the host's is half done. */
static inline void guard_pass(void)
{
    if (__builtin_expect(guard_over != 0, 0))
        guard_leave_over();
}

static inline void guard_leave(void)
{
    struct guard_thread *t = guard_here;
    if (!t)
        return;
    heap_count_for(NULL);
    atomic_store_explicit(&t->app, NULL, memory_order_relaxed);
}

/* Calls can be left from now on, by a jump to guard_here->leave: for whoever calls sigsetjmp(…, 0) with that
 * next. When it returns again, the thread is in no call, and calls cannot be left; the instance that was left
 * must not be called any more. */
static inline void guard_leavable(bool leavable)
{
    guard_here->leavable = leavable;
}

/* Allocations that were refused in the call that the calling thread is in. */
uint64_t guard_refused(void);

/* "; 3 allocations were refused (memory = 32M)", or nothing for none. Async-signal-safe. */
void guard_refused_text(const struct guard_app *app, uint64_t refused, char text[GUARD_REFUSED_MAX]);

/* --- what ticks and looks decide; for themselves, and for tests --- */

enum guard_verdict { GUARD_FINE, GUARD_LEAVE, GUARD_DIE, GUARD_LEAVE_AT_PASS };

/* The thread's processor clock stands at `cpu_ns`, and it was interrupted at `pc`. A call that can be left,
 * but not there: GUARD_LEAVE_AT_PASS. */
enum guard_verdict guard_judge(struct guard_thread *t, uint64_t cpu_ns, uintptr_t pc);

/* Ends the call that the thread is in, by the jump. */
_Noreturn void guard_jump(struct guard_thread *t);

/* Every `every_ns`, by the front: looks at a thread whose processor clock stands at `cpu_ns`, and which may
 * be `runnable`. GUARD_LEAVE: it has stood in the same call for turn_limit, for t->stood_ns by now;
 * GUARD_DIE: and slept in it for twice that, or burned four times that (then the ticks, which end it at
 * twice, do not come: the call has blocked signals). Time in which nobody looked counts as no more than two
 * `every_ns`: then the process did not run, most likely. */
enum guard_verdict guard_judge_look(struct guard_thread *t, uint64_t now_ns, uint64_t cpu_ns, bool runnable,
                                    uint64_t every_ns);

/* As above, by its own clock. */
enum guard_verdict guard_look(struct guard_thread *t, uint64_t now_ns, uint64_t every_ns);

/* --- while no loop turns --- */

/* A thread of its own that looks at another. */
struct guard_watch {
    struct guard_thread *_Atomic looked; /* NULL: at nobody yet */
    _Atomic bool ends;
    sigset_t signals; /* that it takes */
    pthread_t thread;
    bool on;
};

/* `ended_by_signals`: SIGTERM and SIGINT, which the other threads hold back, end the process as they do by
 * default; what is pending at guard_watch_end stays so. 0 or a negative errno. */
int guard_watch_begin(struct guard_watch *w, bool ended_by_signals);

/* A call of `t` that sleeps for twice its app's limit ends the process, as a death of the app. */
void guard_watch(struct guard_watch *w, struct guard_thread *t);

/* Before what it looks at goes; nothing if it was not begun. */
void guard_watch_end(struct guard_watch *w);

/* The call that the thread is in ends the process. */
_Noreturn void guard_die(struct guard_thread *t, enum mark_cause cause);

#endif
