/* A network path between two namespaces, emulated in user space: what real programs and the kernel's own TCP
 * are measured over. It makes both namespaces, each with a TUN device, and carries packets between the two.
 *
 *     path [seed N] [SETTING VALUE]…      control.h has the settings
 *
 *     network a                                    path                                     network b
 *     10.77.0.1 ── TUN ── bottleneck, loss, delay ──────→ ────────────────────────────── TUN ── 10.77.0.2
 *                  └──── ←─────────────────────────────── delay, loss, bottleneck ─────────┘
 *
 * The defaults: no delay, no loss, 100 Mbit/s, a queue of 625,000 bytes, MTU 1500 (which is the devices',
 * too, and so the most there can be later), no ICMP, seed 1. It prints "a /proc/PID/fd/N b /proc/PID/fd/M",
 * the namespaces to enter:
 *
 *     nsenter --net=/proc/PID/fd/N COMMAND
 *
 * Standard input, if it is a pipe or a terminal, takes settings, one a line, "report" (both directions, as
 * JSON, a line each), and ends the program with its end; each line is answered, a setting by "ok" or "no such
 * setting". It needs root. Packets other than IPv4 are dropped. */
#include "experiments/path/control.h"
#include "experiments/path/ends.h"
#include "experiments/path/icmp.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#define WAYS       CONTROL_WAYS
#define NS_PER_S   UINT64_C(1000000000)
#define QUOTA      64 /* packets read from one end before the other has its turn */
#define LINE_BYTES 256
#define EVENTS     4
#define IPV4       4

enum { EVENT_CONTROL = WAYS, EVENT_TIMER };

static const char *const addresses[WAYS] = {"10.77.0.1", "10.77.0.2"};
static const uint8_t router[4] = {10, 77, 0, 254};

struct emulator {
    struct end ends[WAYS];
    struct path paths[WAYS]; /* paths[i] is what ends[i] sends */
    struct control control;
    int timer, epoll;
    uint64_t armed_ns; /* what the timer stands at; PATH_NEVER: at nothing */
    char line[LINE_BYTES];
    size_t line_size;
    bool ended;
};

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* A device that takes no more is a receiver whose kernel drops: nothing to do. */
static void put(const struct end *end, const void *packet, size_t size)
{
    if (write(end->tun, packet, size) < 0 && errno != EAGAIN && errno != ENOBUFS)
        perror("path: a packet");
}

static void offer(struct emulator *e, int from, const uint8_t *packet, size_t size, uint64_t now)
{
    uint8_t answer[ICMP_TOO_BIG_BYTES];
    if (packet[0] >> 4 != IPV4)
        return;
    if (way_offer(&e->paths[from], now, packet, (uint32_t)size) != PATH_TOO_BIG || !e->control.icmp[from])
        return;
    size = icmp_too_big(packet, size, (uint16_t)e->paths[from].terms.mtu, router, answer);
    if (size > 0)
        put(&e->ends[from], answer, size);
}

/* What is beyond the quota waits for the next round: the descriptor is still readable. */
static void take_from(struct emulator *e, int from)
{
    uint8_t packet[PATH_PACKET_MAX];
    uint64_t now = now_ns();
    for (int i = 0; i < QUOTA; i++) {
        ssize_t n = read(e->ends[from].tun, packet, sizeof packet);
        if (n <= 0)
            return;
        offer(e, from, packet, (size_t)n, now);
    }
}

static void deliver(struct emulator *e)
{
    const struct path_packet *packet;
    for (int from = 0; from < WAYS; from++)
        while ((packet = way_take(&e->paths[from], now_ns())))
            put(&e->ends[WAYS - 1 - from], packet->bytes, packet->size);
}

static void set_timer(struct emulator *e)
{
    uint64_t a_ns = way_next_ns(&e->paths[0]), b_ns = way_next_ns(&e->paths[1]);
    uint64_t next_ns = a_ns < b_ns ? a_ns : b_ns;
    if (next_ns == e->armed_ns)
        return;
    e->armed_ns = next_ns;
    struct itimerspec when = {.it_value = {0}};
    if (next_ns != PATH_NEVER)
        when.it_value = (struct timespec){(time_t)(next_ns / NS_PER_S), (long)(next_ns % NS_PER_S)};
    timerfd_settime(e->timer, TFD_TIMER_ABSTIME, &when, NULL);
}

static void timer_fired(struct emulator *e)
{
    uint64_t count;
    if (read(e->timer, &count, sizeof count) > 0)
        e->armed_ns = PATH_NEVER;
}

/* --- control --- */

static void report(const struct emulator *e)
{
    for (int i = 0; i < WAYS; i++) {
        const struct path_report *r = &e->paths[i].report;
        printf("{\"from\":\"%c\",\"offered\":%llu,\"delivered\":%llu,\"delivered_bytes\":%llu,\"lost\":%llu,"
               "\"overflowed\":%llu,\"too_big\":%llu,\"swallowed\":%llu,\"duplicated\":%llu,\"reordered\":%"
               "llu}\n",
               'a' + i, (unsigned long long)r->offered, (unsigned long long)r->delivered,
               (unsigned long long)r->delivered_bytes, (unsigned long long)r->lost,
               (unsigned long long)r->overflowed, (unsigned long long)r->too_big,
               (unsigned long long)r->swallowed, (unsigned long long)r->duplicated,
               (unsigned long long)r->reordered);
    }
}

static void obey(struct emulator *e, char *line)
{
    if (strcmp(line, "report") == 0)
        report(e);
    else
        puts(control_line(&e->control, line) ? "ok" : "no such setting");
    fflush(stdout);
}

/* A line that is longer than any setting is cut, and so is none. */
static void take_control(struct emulator *e)
{
    ssize_t n = read(STDIN_FILENO, e->line + e->line_size, sizeof e->line - 1 - e->line_size);
    if (n <= 0) {
        e->ended = true;
        return;
    }
    e->line_size += (size_t)n;
    e->line[e->line_size] = '\0';
    char *at = e->line;
    for (char *end; (end = strchr(at, '\n')); at = end + 1) {
        *end = '\0';
        obey(e, at);
    }
    e->line_size = strlen(at);
    memmove(e->line, at, e->line_size);
    if (e->line_size == sizeof e->line - 1)
        e->line_size = 0;
}

/* --- start --- */

static int start_path(struct emulator *e, int argc, char **argv)
{
    struct path_terms terms = {.bits_s = 100000000, .queue_bytes = 625000, .mtu = 1500};
    uint64_t seed = 1;
    for (int i = 0; i < WAYS; i++)
        e->control.terms[i] = &terms;
    for (int i = 1; i < argc; i += 2)
        if (i + 1 < argc && strcmp(argv[i], "seed") == 0)
            seed = strtoull(argv[i + 1], NULL, 10);
        else if (i + 1 == argc || !control_set(&e->control, 0, argv[i], argv[i + 1])) {
            fprintf(stderr, "path: no such setting: %s %s\n", argv[i], i + 1 < argc ? argv[i + 1] : "");
            return 2;
        }
    for (int i = 0; i < WAYS; i++) {
        if (way_init(&e->paths[i], &terms, 2 * seed + (uint64_t)i) != 0 ||
            end_open(&e->ends[i], addresses[i], (uint32_t)terms.mtu) != 0)
            return 1;
        e->control.terms[i] = &e->paths[i].terms;
    }
    return 0;
}

static int watch(struct emulator *e, int fd, uint32_t what)
{
    return epoll_ctl(e->epoll, EPOLL_CTL_ADD, fd, &(struct epoll_event){.events = EPOLLIN, .data.u32 = what});
}

/* A file or /dev/null as standard input cannot be watched, and is not read. */
static int watch_all(struct emulator *e)
{
    e->epoll = epoll_create1(EPOLL_CLOEXEC);
    e->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    e->armed_ns = PATH_NEVER;
    for (uint32_t i = 0; i < WAYS; i++)
        if (watch(e, e->ends[i].tun, i) != 0)
            return 1;
    if (watch(e, STDIN_FILENO, EVENT_CONTROL) != 0 && errno != EPERM && errno != EBADF)
        return 1;
    return watch(e, e->timer, EVENT_TIMER) == 0 ? 0 : 1;
}

static void run(struct emulator *e)
{
    struct epoll_event events[EVENTS];
    while (!e->ended) {
        int count = epoll_wait(e->epoll, events, EVENTS, -1);
        for (int i = 0; i < count; i++)
            if (events[i].data.u32 == EVENT_CONTROL)
                take_control(e);
            else if (events[i].data.u32 == EVENT_TIMER)
                timer_fired(e);
            else
                take_from(e, (int)events[i].data.u32);
        deliver(e);
        set_timer(e);
    }
}

int main(int argc, char **argv)
{
    static struct emulator e;
    int error = start_path(&e, argc, argv);
    if (error != 0)
        return error;
    if (watch_all(&e) != 0) {
        perror("path: epoll");
        return 1;
    }
    printf("a /proc/%d/fd/%d b /proc/%d/fd/%d\n", getpid(), e.ends[0].network, getpid(), e.ends[1].network);
    fflush(stdout);
    run(&e);
    return 0;
}
