/* The program `probe`: asks a host for /health at a steady rate, from one thread on a new connection each
 * time and from another on a kept one, and says how long that took.
 *
 *     probe PORT PER_SECOND MS
 *
 * Number k is due at k / rate, whatever became of those before, and its time counts from then: one that hangs
 * counts for those that could not be asked meanwhile. What has no answer WAIT_MS after the end counts as long
 * as it was waited for, and as failed; any whole reply is an answer (a host that is not well says so with
 * 503). At its end one line of JSON. */
#include "experiments/common/message.h"
#include "experiments/offer/latency.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define WAIT_MS    1000u
#define REPLY_MOST 65536
#define NS_PER_MS  UINT64_C(1000000)

static const char request[] = "GET /health HTTP/1.1\r\nHost: probe\r\n\r\n";

struct probe {
    uint16_t port;
    bool keeps;
    uint64_t start_ns, step_ns, count, give_up_ns;
    uint64_t failed;
    struct latency latency;
    pthread_t thread;
};

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int open_connection(const struct probe *p)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(p->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    uint64_t now = now_ns(), left_ns = p->give_up_ns > now ? p->give_up_ns - now : NS_PER_MS;
    struct timeval limit = {(time_t)(left_ns / 1000000000u), (suseconds_t)(left_ns % 1000000000u / 1000 + 1)};
    int on = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return -1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    close(fd);
    return -1;
}

static bool ask(int fd)
{
    char reply[REPLY_MOST];
    struct message message;
    size_t filled = 0;
    long size = 0;
    if (fd < 0 || send(fd, request, sizeof request - 1, MSG_NOSIGNAL) != (ssize_t)sizeof request - 1)
        return false;
    while (size == 0 && filled < sizeof reply) {
        ssize_t n = recv(fd, reply + filled, sizeof reply - filled, 0);
        if (n <= 0)
            return false;
        filled += (size_t)n;
        size = message_parse(reply, filled, &message);
    }
    return size > 0;
}

static void *run(void *arg)
{
    struct probe *p = arg;
    int fd = -1;
    for (uint64_t k = 0; k < p->count; k++) {
        uint64_t due_ns = p->start_ns + k * p->step_ns;
        struct timespec due = {(time_t)(due_ns / 1000000000u), (long)(due_ns % 1000000000u)};
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, NULL);
        if (fd < 0 && now_ns() < p->give_up_ns)
            fd = open_connection(p);
        bool answered = ask(fd);
        uint64_t took_ns = now_ns() - due_ns;
        latency_add(&p->latency, took_ns);
        p->failed += !answered;
        if (fd >= 0 && (!p->keeps || !answered)) {
            close(fd);
            fd = -1;
        }
    }
    return NULL;
}

static void tell(const struct probe *p, const char *name, const char *between)
{
    printf("%s\"%s_p50_us\":%llu,\"%s_p99_us\":%llu,\"%s_max_us\":%llu,\"%s_failed\":%llu", between, name,
           (unsigned long long)latency_percentile_ns(&p->latency, 50) / 1000, name,
           (unsigned long long)latency_percentile_ns(&p->latency, 99) / 1000, name,
           (unsigned long long)p->latency.most_ns / 1000, name, (unsigned long long)p->failed);
}

int main(int argc, char **argv)
{
    static struct probe fresh, kept;
    unsigned long port = argc == 4 ? strtoul(argv[1], NULL, 10) : 0;
    unsigned long rate = argc == 4 ? strtoul(argv[2], NULL, 10) : 0;
    unsigned long ms = argc == 4 ? strtoul(argv[3], NULL, 10) : 0;
    if (port < 1 || port > UINT16_MAX || rate < 1 || rate > 10000 || ms < 1 || ms > 600000) {
        fprintf(stderr, "usage: probe PORT PER_SECOND MS\n");
        return 2;
    }
    fresh.port = (uint16_t)port;
    fresh.start_ns = now_ns();
    fresh.step_ns = UINT64_C(1000000000) / rate;
    fresh.count = ms * rate / 1000 + 1;
    fresh.give_up_ns = fresh.start_ns + (ms + WAIT_MS) * NS_PER_MS;
    kept = fresh;
    kept.keeps = true;
    kept.start_ns += fresh.step_ns / 2;
    if (pthread_create(&fresh.thread, NULL, run, &fresh) != 0 ||
        pthread_create(&kept.thread, NULL, run, &kept) != 0)
        return 1;
    pthread_join(fresh.thread, NULL);
    pthread_join(kept.thread, NULL);
    tell(&fresh, "new", "{");
    tell(&kept, "kept", ",");
    printf("}\n");
    return 0;
}
