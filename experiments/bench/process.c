#include "experiments/bench/process.h"

#include "experiments/bench/network.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define STOP_MS 5000
#define LINE_MS 5000

uint64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void pause_ms(unsigned ms)
{
    struct timespec pause = {ms / 1000, (long)(ms % 1000) * 1000000};
    while (nanosleep(&pause, &pause) != 0 && errno == EINTR)
        ;
}

static int replace_resolver(const char *file)
{
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
        return -1;
    return mount(file, "/etc/resolv.conf", NULL, MS_BIND, NULL);
}

bool process_can_replace_resolver(const char *file)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(replace_resolver(file) == 0 ? 0 : 1);
    int status = -1;
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static _Noreturn void execute(const char *const *argv, const struct process_options *options, int out)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (nothing >= 0)
        dup2(nothing, STDIN_FILENO);
    if (options->log) {
        int log = open(options->log, O_WRONLY | O_CREAT | O_APPEND, 0644);
        if (log >= 0) {
            dup2(log, STDERR_FILENO);
            dup2(log, STDOUT_FILENO);
        }
    }
    if (out >= 0)
        dup2(out, STDOUT_FILENO);
    if (options->resolver && replace_resolver(options->resolver) != 0)
        _exit(126);
    if (options->network && network_enter(options->network) < 0)
        _exit(126);
    if (options->processors && sched_setaffinity(0, sizeof *options->processors, options->processors) != 0)
        _exit(126);
    execvp(argv[0], (char *const *)argv);
    fprintf(stderr, "cannot execute %s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

int process_start(struct process *process, const char *const *argv, const struct process_options *options)
{
    int ends[2] = {-1, -1};
    if (options->pipe && pipe2(ends, O_CLOEXEC) != 0)
        return -errno;
    pid_t pid = fork();
    if (pid == 0)
        execute(argv, options, ends[1]);
    int error = pid < 0 ? -errno : 0;
    if (ends[1] >= 0)
        close(ends[1]);
    *process = (struct process){.pid = pid > 0 ? pid : 0, .out = ends[0]};
    return error;
}

static void forget(struct process *process)
{
    if (process->out >= 0)
        close(process->out);
    *process = (struct process){.out = -1};
}

int process_wait(struct process *process, uint64_t *cpu_ns)
{
    int status = -1;
    struct rusage usage = {0};
    pid_t ended;
    while ((ended = wait4(process->pid, &status, 0, &usage)) < 0 && errno == EINTR)
        ;
    *cpu_ns = (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000000000u +
              (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1000u;
    forget(process);
    return ended > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool process_alive(struct process *process)
{
    siginfo_t info = {0};
    return process->pid > 0 && waitid(P_PID, (id_t)process->pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           info.si_pid == 0;
}

int process_stop(struct process *process)
{
    if (process->pid <= 0)
        return 0;
    uint64_t cpu_ns;
    kill(process->pid, SIGTERM);
    for (unsigned waited = 0; waited < STOP_MS && process_alive(process); waited += 5)
        pause_ms(5);
    bool stuck = process_alive(process);
    if (stuck)
        kill(process->pid, SIGKILL);
    int status = process_wait(process, &cpu_ns);
    return stuck ? -1 : status;
}

int process_line(struct process *process, char *line, size_t size)
{
    uint64_t deadline = monotonic_ns() + LINE_MS * UINT64_C(1000000);
    for (size_t filled = 0; filled + 1 < size;) {
        struct pollfd ready = {.fd = process->out, .events = POLLIN};
        if (monotonic_ns() > deadline || poll(&ready, 1, LINE_MS) <= 0)
            return -1;
        if (read(process->out, line + filled, 1) != 1)
            return -1;
        if (line[filled] == '\n') {
            line[filled] = '\0';
            return 0;
        }
        filled++;
    }
    return -1;
}

/* The kernel's clock of a process counts all its threads in nanoseconds, io_uring's workers among them. */
uint64_t process_cpu_ns(const struct process *process)
{
    clockid_t clock;
    struct timespec used;
    if (clock_getcpuclockid(process->pid, &clock) != 0 || clock_gettime(clock, &used) != 0)
        return 0;
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

/* False: it has ended. */
static bool name_of_thread(pid_t pid, const char *thread, char text[static 32])
{
    char path[300];
    snprintf(path, sizeof path, "/proc/%d/task/%.20s/comm", pid, thread);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t n = read(fd, text, 31);
    close(fd);
    text[n > 0 ? n : 0] = '\0';
    return n > 0;
}

uint64_t own_cpu_ns(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

struct process_threads process_threads(const struct process *process, const char *name)
{
    struct process_threads threads = {0, 0};
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", process->pid);
    DIR *directory = opendir(path);
    if (!directory)
        return threads;
    for (struct dirent *entry; (entry = readdir(directory));) {
        char text[32];
        if (entry->d_name[0] == '.' || !name_of_thread(process->pid, entry->d_name, text) ||
            strncmp(text, "iou-wrk", 7) == 0)
            continue;
        threads.all++;
        threads.named += strstr(text, name) != NULL;
    }
    closedir(directory);
    return threads;
}
