#include "host/turn_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#define STACK_BYTES                                                                        \
    (64u << 10) /* of signals: one page would do; the kernel puts the registers there, too \
                 */
#define LINE_BYTES 320
#define SLEEPS     10 /* a call that burns less than one in so many of its time sleeps */
#define DEAF       4  /* a call that has burned so many limits hears no ticks */

/* Thread-local, here and nowhere else in the host: signal handlers and malloc have no other way to it, and
 * pure_send no shorter one. */
_Thread_local struct guard_thread *guard_here;
_Thread_local volatile sig_atomic_t guard_over;
_Thread_local struct heap_account *heap_here;

/* What signals did before; they are the process's, and so is this. */
static const int fatal_signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS};
static struct sigaction fatal_before[ARRAY_SIZE(fatal_signals)];

static int tick_signal(void)
{
    return SIGRTMIN + 5;
}

/* --- what is said by a process that dies; all async-signal-safe --- */

/* Appends to a line of `size` bytes, of which the last stays free; where it ends then. */
static size_t add(char *line, size_t size, size_t at, const char *text)
{
    while (*text && at < size - 1)
        line[at++] = *text++;
    return at;
}

static size_t add_number(char *line, size_t size, size_t at, uint64_t number)
{
    char digits[21];
    size_t first = sizeof digits - 1;
    digits[first] = '\0';
    do {
        digits[--first] = (char)('0' + number % 10);
    } while ((number /= 10) > 0);
    return add(line, size, at, digits + first);
}

/* As the configuration has it. */
static size_t add_bytes(char *line, size_t size, size_t at, uint64_t bytes)
{
    static const char *const units[] = {"", "K", "M", "G", "T"};
    unsigned unit = 0;
    while (unit + 1 < ARRAY_SIZE(units) && bytes > 0 && bytes % 1024 == 0) {
        bytes /= 1024;
        unit++;
    }
    return add(line, size, add_number(line, size, at, bytes), units[unit]);
}

void guard_refused_text(const struct guard_app *app, uint64_t refused, char text[GUARD_REFUSED_MAX])
{
    size_t at = 0;
    if (refused > 0) {
        at = add(text, GUARD_REFUSED_MAX, at, "; ");
        at = add_number(text, GUARD_REFUSED_MAX, at, refused);
        at =
            add(text, GUARD_REFUSED_MAX, at,
                refused == 1 ? " allocation was refused (memory = " : " allocations were refused (memory = ");
        at = add_bytes(text, GUARD_REFUSED_MAX, at, app->memory.limit);
        at = add(text, GUARD_REFUSED_MAX, at, ")");
    }
    text[at] = '\0';
}

static uint64_t refused_in(const struct guard_thread *t, const struct guard_app *app)
{
    return atomic_load_explicit(&app->memory.refused, memory_order_relaxed) -
           atomic_load_explicit(&t->refused, memory_order_relaxed);
}

uint64_t guard_refused(void)
{
    const struct guard_thread *t = guard_here;
    const struct guard_app *app = t ? atomic_load_explicit(&t->app, memory_order_relaxed) : NULL;
    return app ? refused_in(t, app) : 0;
}

/* Whoever reads stderr may have stopped: a process that dies does not wait for that. */
static void say(const struct guard_thread *t, const struct guard_app *app, uint32_t cause)
{
    char line[LINE_BYTES], why[MARK_CAUSE_TEXT], refused[GUARD_REFUSED_MAX];
    const struct guard_options *options = &t->guard->options;
    struct pollfd out = {.fd = options->fd, .events = POLLOUT};
    mark_cause_text(cause, why);
    guard_refused_text(app, refused_in(t, app), refused);
    const char *const parts[] = {options->for_people ? "pure-host: app " : "<3>app ",
                                 app->name,
                                 " ends the process, in its ",
                                 atomic_load_explicit(&t->call, memory_order_relaxed),
                                 ": ",
                                 why,
                                 refused};
    size_t at = 0;
    for (unsigned i = 0; i < ARRAY_SIZE(parts); i++)
        at = add(line, sizeof line, at, parts[i]);
    line[at++] = '\n';
    if (poll(&out, 1, 0) == 1 && (out.revents & POLLOUT) && write(out.fd, line, at) < 0)
        return; /* nobody is left to be told */
}

/* The call that a thread is in ends the process; only the first such counts. */
static void note(struct guard_thread *t, uint32_t cause)
{
    struct guard_app *app = atomic_load_explicit(&t->app, memory_order_relaxed);
    struct turn_guard *g = t->guard;
    if (!app || getpid() != g->pid || atomic_exchange(&g->dying, true))
        return;
    mark_note(&g->mark, app->index, cause);
    say(t, app, cause);
}

static bool sent_by_another(const siginfo_t *info)
{
    return (info->si_code == SI_USER || info->si_code == SI_QUEUE || info->si_code == SI_TKILL) &&
           info->si_pid != getpid();
}

/* A fault comes again when its instruction does, with all that a core dump is to show; what was sent is sent
 * again. */
static void die_of(int number, siginfo_t *info, void *context)
{
    (void)context;
    if (guard_here && !sent_by_another(info))
        note(guard_here, (uint32_t)number);
    for (unsigned i = 0; i < ARRAY_SIZE(fatal_signals); i++) {
        if (fatal_signals[i] == number)
            sigaction(number, &fatal_before[i], NULL);
    }
    bool fault = info->si_code > 0 && number != SIGSYS && number != SIGABRT;
    if (!fault)
        raise(number);
}

_Noreturn void guard_die(struct guard_thread *t, enum mark_cause cause)
{
    sigset_t abort_only;
    note(t, cause);
    signal(SIGABRT, SIG_DFL);
    sigemptyset(&abort_only);
    sigaddset(&abort_only, SIGABRT);
    pthread_sigmask(SIG_UNBLOCK, &abort_only, NULL);
    raise(SIGABRT);
    _exit(EXIT_FAILURE);
}

/* exit was called, and not by the host: what the other threads stand on must not be torn down, and whoever
 * started the process has to see that it failed. A child of a module's may end as it likes. */
static void exited(void)
{
    if (!guard_here || !atomic_load_explicit(&guard_here->app, memory_order_relaxed) ||
        getpid() != guard_here->guard->pid)
        return;
    note(guard_here, MARK_EXIT);
    _exit(EXIT_FAILURE);
}

/* --- ticks --- */

static bool is_code_of(const struct guard_app *app, uintptr_t pc)
{
    for (unsigned i = 0; i < app->code_count; i++) {
        if (pc >= app->code[i].begin && pc < app->code[i].end)
            return true;
    }
    return false;
}

enum guard_verdict guard_judge(struct guard_thread *t, uint64_t cpu_ns, uintptr_t pc)
{
    const struct guard_app *app = atomic_load_explicit(&t->app, memory_order_relaxed);
    uint64_t calls = atomic_load_explicit(&t->calls, memory_order_relaxed);
    if (!app || app->limit_ns == NEVER)
        return GUARD_FINE;
    if (calls != t->seen_calls) {
        t->seen_calls = calls;
        t->seen_cpu_ns = cpu_ns;
        return GUARD_FINE;
    }
    uint64_t burned_ns = cpu_ns - t->seen_cpu_ns;
    if (burned_ns < app->limit_ns)
        return GUARD_FINE;
    if (t->leavable && is_code_of(app, pc))
        return GUARD_LEAVE;
    if (burned_ns >= 2 * app->limit_ns)
        return GUARD_DIE;
    return t->leavable ? GUARD_LEAVE_AT_PASS : GUARD_FINE;
}

_Noreturn void guard_jump(struct guard_thread *t)
{
    t->leavable = false;
    guard_leave();
    siglongjmp(t->leave, 1);
}

/* The host's own pure_write, behind a call or before one that another tick has not seen, goes on. */
void guard_leave_over(void)
{
    struct guard_thread *t = guard_here;
    guard_over = false;
    if (t->leavable && atomic_load_explicit(&t->app, memory_order_relaxed) &&
        atomic_load_explicit(&t->calls, memory_order_relaxed) == t->seen_calls)
        guard_jump(t);
}

static uintptr_t interrupted_at(const void *context)
{
    const ucontext_t *u = context;
#if defined(__x86_64__)
    return (uintptr_t)u->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
    return (uintptr_t)u->uc_mcontext.pc;
#else
#error "where does this processor's ucontext_t have the program counter?"
#endif
}

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    return clock_gettime(clock, &now) < 0 ? 0 : (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* The jump saves the system call that a mask in it would cost each turn: so what this signal has blocked is
 * unblocked here. */
static void ticked(int number, siginfo_t *info, void *context)
{
    struct guard_thread *t = guard_here;
    sigset_t blocked;
    int before = errno;
    (void)info;
    if (t) {
        enum guard_verdict verdict =
            guard_judge(t, clock_ns(CLOCK_THREAD_CPUTIME_ID), interrupted_at(context));
        guard_over = verdict == GUARD_LEAVE_AT_PASS;
        if (verdict == GUARD_DIE)
            guard_die(t, MARK_OVERRAN);
        if (verdict == GUARD_LEAVE) {
            sigemptyset(&blocked);
            sigaddset(&blocked, number);
            pthread_sigmask(SIG_UNBLOCK, &blocked, NULL);
            guard_jump(t);
        }
    }
    errno = before;
}

/* --- looks --- */

enum guard_verdict guard_judge_look(struct guard_thread *t, uint64_t now_ns, uint64_t cpu_ns, bool runnable,
                                    uint64_t every_ns)
{
    const struct guard_app *app = atomic_load_explicit(&t->app, memory_order_relaxed);
    uint64_t calls = atomic_load_explicit(&t->calls, memory_order_relaxed);
    uint64_t passed_ns = min_u64(now_ns - t->looked_ns, 2 * every_ns);
    uint64_t burned_ns = cpu_ns - min_u64(cpu_ns, t->looked_cpu_ns); /* a thread that is gone has no clock */
    bool another = !app || calls != t->looked_calls;
    t->looked_calls = calls;
    t->looked_ns = now_ns;
    t->looked_cpu_ns = cpu_ns;
    if (another)
        t->stood_ns = t->asleep_ns = t->burned_ns = 0;
    if (another || app->limit_ns == NEVER)
        return GUARD_FINE;
    t->stood_ns += passed_ns;
    t->burned_ns += burned_ns;
    if (!runnable && burned_ns < passed_ns / SLEEPS)
        t->asleep_ns += passed_ns;
    if (t->asleep_ns >= 2 * app->limit_ns || t->burned_ns >= DEAF * app->limit_ns)
        return GUARD_DIE;
    return t->stood_ns >= app->limit_ns ? GUARD_LEAVE : GUARD_FINE;
}

/* As proc_pid_stat(5) has it: the letter behind the name, which is in parentheses. Where it cannot be read,
 * what the thread burns has to tell. */
static bool is_runnable(pid_t thread)
{
    char path[64], text[128];
    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)thread);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0)
        close(fd);
    text[size > 0 ? size : 0] = '\0';
    const char *behind = strrchr(text, ')');
    return behind && behind[1] == ' ' && behind[2] == 'R';
}

enum guard_verdict guard_look(struct guard_thread *t, uint64_t now_ns, uint64_t every_ns)
{
    if (!atomic_load_explicit(&t->alive, memory_order_acquire))
        return GUARD_FINE;
    bool same = atomic_load_explicit(&t->app, memory_order_relaxed) &&
                atomic_load_explicit(&t->calls, memory_order_relaxed) == t->looked_calls;
    bool runnable = same && is_runnable(t->id);
    return guard_judge_look(t, now_ns, clock_ns(t->clock), runnable, every_ns);
}

/* --- what a module's code is --- */

struct code_search {
    uintptr_t inside;
    struct guard_app *app;
};

static bool object_has(const struct dl_phdr_info *object, uintptr_t address)
{
    for (unsigned i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *p = &object->dlpi_phdr[i];
        if (p->p_type == PT_LOAD && address - (object->dlpi_addr + p->p_vaddr) < p->p_memsz)
            return true;
    }
    return false;
}

static int take_code(struct dl_phdr_info *object, size_t size, void *context)
{
    struct code_search *search = context;
    struct guard_app *app = search->app;
    (void)size;
    if (object->dlpi_name[0] == '\0' || !object_has(object, search->inside))
        return 0; /* the program itself has no name */
    for (unsigned i = 0; i < object->dlpi_phnum && app->code_count < GUARD_CODE_RANGES; i++) {
        const ElfW(Phdr) *p = &object->dlpi_phdr[i];
        uintptr_t begin = object->dlpi_addr + p->p_vaddr;
        if (p->p_type == PT_LOAD && (p->p_flags & PF_X))
            app->code[app->code_count++] = (struct guard_code){begin, begin + p->p_memsz};
    }
    return 1;
}

void guard_know_code(struct guard_app *app, const struct pure_app *module)
{
    struct code_search search = {(uintptr_t)module, app};
    dl_iterate_phdr(take_code, &search);
}

/* --- threads --- */

/* One that is there already (a sanitizer's) will do. */
static void take_stack(struct guard_thread *t)
{
    stack_t there, own = {.ss_size = STACK_BYTES};
    long wanted = sysconf(_SC_SIGSTKSZ);
    if (sigaltstack(NULL, &there) < 0 || !(there.ss_flags & SS_DISABLE))
        return;
    if (wanted > (long)own.ss_size)
        own.ss_size = (size_t)wanted;
    own.ss_sp = mmap(NULL, own.ss_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (own.ss_sp == MAP_FAILED)
        return; /* then a stack that overflows is not noted */
    if (sigaltstack(&own, NULL) < 0) {
        munmap(own.ss_sp, own.ss_size);
        return;
    }
    t->stack = own.ss_sp;
    t->stack_bytes = own.ss_size;
}

static void give_stack_back(struct guard_thread *t)
{
    if (!t->stack)
        return;
    sigaltstack(&(stack_t){.ss_flags = SS_DISABLE}, NULL);
    munmap(t->stack, t->stack_bytes);
    t->stack = NULL;
}

static int start_ticks(struct guard_thread *t)
{
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = tick_signal()};
    struct timespec tick = {.tv_nsec = GUARD_TICK_NS};
    event._sigev_un._tid = t->id; /* the C library has no public name for it before 2.38 */
    if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &t->timer) < 0)
        return -errno;
    t->timed = true;
    return timer_settime(t->timer, 0, &(struct itimerspec){tick, tick}, NULL) < 0 ? -errno : 0;
}

int guard_thread_begin(struct turn_guard *g, unsigned index)
{
    struct guard_thread *t = &g->threads[index];
    assert(index < g->options.threads && !guard_here);
    take_stack(t);
    t->guard = g;
    t->id = gettid();
    pthread_getcpuclockid(pthread_self(), &t->clock);
    atomic_store_explicit(&t->alive, true, memory_order_release);
    guard_here = t;
    return start_ticks(t);
}

void guard_thread_end(void)
{
    struct guard_thread *t = guard_here;
    if (!t)
        return;
    atomic_store_explicit(&t->alive, false, memory_order_release);
    if (t->timed)
        timer_delete(t->timer);
    t->timed = false;
    guard_here = NULL;
    give_stack_back(t);
}

/* --- life --- */

static void take_signals(void)
{
    struct sigaction fatal = {.sa_sigaction = die_of, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    struct sigaction tick = {.sa_sigaction = ticked, .sa_flags = SA_SIGINFO | SA_RESTART};
    static bool watching;
    for (unsigned i = 0; i < ARRAY_SIZE(fatal_signals); i++)
        sigaction(fatal_signals[i], &fatal, &fatal_before[i]);
    sigaction(tick_signal(), &tick, NULL); /* for good: one may be on its way when its timer ends */
    if (!watching) {
        atexit(exited);
        at_quick_exit(exited);
    }
    watching = true; /* it cannot be taken back */
}

static int open_mark(struct turn_guard *g)
{
    const struct config *c = g->options.config;
    struct mark_app *apps = calloc(c->app_count + 1, sizeof *apps);
    if (!apps)
        return -ENOMEM;
    for (unsigned i = 0; i < c->app_count; i++) {
        memcpy(apps[i].name, c->apps[i].name, strlen(c->apps[i].name));
        apps[i].module = mark_module_at(c->apps[i].module);
    }
    int error = mark_open(&g->mark, g->options.directory, apps, c->app_count);
    free(apps);
    return error;
}

int guard_open(struct turn_guard *g, const struct guard_options *options, int *unmarked)
{
    const struct config *c = options->config;
    *g = (struct turn_guard){.options = *options, .mark.fd = -1, .pid = getpid()};
    g->apps = calloc(c->app_count + 1, sizeof *g->apps);
    g->threads = calloc(options->threads, sizeof *g->threads);
    *unmarked = g->apps && g->threads ? open_mark(g) : -ENOMEM;
    if (!g->mark.apps) {
        guard_close(g);
        return -ENOMEM;
    }
    for (unsigned i = 0; i < c->app_count; i++)
        g->apps[i] = (struct guard_app){.name = c->apps[i].name,
                                        .index = i,
                                        .limit_ns = c->apps[i].turn_limit_ns,
                                        .memory.limit = c->apps[i].memory_bytes};
    take_signals();
    g->open = true;
    return 0;
}

void guard_close(struct turn_guard *g)
{
    for (unsigned i = 0; g->open && i < ARRAY_SIZE(fatal_signals); i++)
        sigaction(fatal_signals[i], &fatal_before[i], NULL);
    mark_close(&g->mark);
    free(g->apps);
    free(g->threads);
    *g = (struct turn_guard){.mark.fd = -1};
}
