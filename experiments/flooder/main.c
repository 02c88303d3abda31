/* Garbage at a steady rate to a UDP port of 127.0.0.1, from a few sockets.
 *
 *     flooder PORT PACKETS_S
 *
 * A quarter is noise of any size from 64 to 1200 bytes; the others have the first four bytes, and the length,
 * of an INIT, a DATA and a REPLY of the link protocol (docs/link-protocol.md, section 2), and noise behind
 * them. It is paced by the millisecond, and what was missed is made up for, so that the rate holds over
 * time also where it is not always scheduled; but never more than BEHIND_MS of it at once. Standard output
 * gets "started", and at SIGTERM "sent N bytes B answered C ns T": datagrams and bytes that were sent, bytes
 * that came back, the time it took. It ends by itself after ten minutes. */
#include "core/random.h"
#include "link/messages.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S       UINT64_C(1000000000)
#define NS_PER_MS      UINT64_C(1000000)
#define SOCKETS        4
#define SHAPES         4
#define SEND_BATCH     64 /* datagrams a system call */
#define LEAST          64u
#define MOST           1200u
#define BEHIND_MS      20u
#define LONGEST_MS     600000u
#define PACKETS_S_MOST 10000000u
#define POOL           (1u << 16) /* bytes of noise; each datagram begins elsewhere in it */

struct flooder {
    int sockets[SOCKETS];
    struct random random;
    uint64_t sent, bytes, answered;
    uint8_t noise[POOL + MOST];
};

/* What a datagram pretends to be: how it begins and, where that is fixed, its length. */
static const struct shape {
    uint8_t head[4];
    size_t head_size, size; /* 0: noise from the start; of any size */
} shapes[SHAPES] = {
    {{0}, 0, 0},
    {{LINK_INIT}, 4, LINK_INIT_BYTES},
    {{LINK_DATA}, 4, 0},
    {{LINK_REPLY}, 4, LINK_REPLY_BYTES},
};

static volatile sig_atomic_t told_to_stop;

static void stop(int number)
{
    (void)number;
    told_to_stop = 1;
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static void pause_until(uint64_t when_ns)
{
    struct timespec when = {(time_t)(when_ns / NS_PER_S), (long)(when_ns % NS_PER_S)};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &when, NULL);
}

static void fill(struct flooder *f, struct iovec parts[2], struct msghdr *message)
{
    uint64_t random = random_next(&f->random);
    const struct shape *shape = &shapes[random % SHAPES];
    size_t size = shape->size ? shape->size : LEAST + (random >> 8 & 0xffff) % (MOST - LEAST + 1);
    parts[0] = (struct iovec){(void *)(uintptr_t)shape->head, shape->head_size};
    parts[1] = (struct iovec){f->noise + (random >> 32) % POOL, size - shape->head_size};
    *message = (struct msghdr){.msg_iov = parts, .msg_iovlen = 2};
}

/* Sends up to SEND_BATCH from one socket; returns how many went. */
static unsigned send_batch(struct flooder *f, unsigned count)
{
    struct iovec parts[SEND_BATCH][2];
    struct mmsghdr messages[SEND_BATCH] = {{.msg_len = 0}};
    int fd = f->sockets[random_below(&f->random, SOCKETS)];
    count = count < SEND_BATCH ? count : SEND_BATCH;
    for (unsigned i = 0; i < count; i++)
        fill(f, parts[i], &messages[i].msg_hdr);
    int went = sendmmsg(fd, messages, count, MSG_DONTWAIT);
    for (int i = 0; i < went; i++)
        f->bytes += messages[i].msg_len;
    f->sent += went > 0 ? (unsigned)went : 0;
    return went > 0 ? (unsigned)went : 0;
}

static void count_answers(struct flooder *f)
{
    uint8_t answer[MOST];
    ssize_t n;
    for (int i = 0; i < SOCKETS; i++)
        while ((n = recv(f->sockets[i], answer, sizeof answer, MSG_DONTWAIT | MSG_TRUNC)) >= 0)
            f->answered += (uint64_t)n;
}

/* Each millisecond sends what is due by then. What cannot be sent now is due later. */
static void flood(struct flooder *f, uint64_t packets_s)
{
    uint64_t start_ns = now_ns(), due = 0, most_behind = packets_s * BEHIND_MS / 1000;
    for (uint64_t ms = 1; !told_to_stop && ms <= LONGEST_MS; ms++) {
        pause_until(start_ns + ms * NS_PER_MS);
        uint64_t now_ms = (now_ns() - start_ns) / NS_PER_MS;
        ms = now_ms > ms ? now_ms : ms;
        due = ms * packets_s / 1000;
        uint64_t left = due > f->sent ? due - f->sent : 0;
        left = left < most_behind ? left : most_behind;
        while (left > 0) {
            unsigned went = send_batch(f, left < SEND_BATCH ? (unsigned)left : SEND_BATCH);
            if (went == 0)
                break;
            left -= went;
        }
        count_answers(f);
    }
    printf("sent %llu bytes %llu answered %llu ns %llu\n", (unsigned long long)f->sent,
           (unsigned long long)f->bytes, (unsigned long long)f->answered,
           (unsigned long long)(now_ns() - start_ns));
}

static int open_sockets(struct flooder *f, unsigned port)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    for (int i = 0; i < SOCKETS; i++) {
        f->sockets[i] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (f->sockets[i] < 0 || connect(f->sockets[i], (struct sockaddr *)&to, sizeof to) != 0)
            return -1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    static struct flooder f = {.random = {1}};
    unsigned long port = argc == 3 ? strtoul(argv[1], NULL, 10) : 0;
    unsigned long packets_s = argc == 3 ? strtoul(argv[2], NULL, 10) : 0;
    if (port < 1 || port > UINT16_MAX || packets_s < 1 || packets_s > PACKETS_S_MOST) {
        fprintf(stderr, "usage: flooder PORT PACKETS_S\n");
        return 2;
    }
    if (open_sockets(&f, (unsigned)port) != 0) {
        fprintf(stderr, "flooder: 127.0.0.1:%lu: %s\n", port, strerror(errno));
        return 1;
    }
    for (size_t i = 0; i < sizeof f.noise; i++)
        f.noise[i] = (uint8_t)random_next(&f.random);
    sigaction(SIGTERM, &(struct sigaction){.sa_handler = stop}, NULL);
    puts("started");
    fflush(stdout);
    flood(&f, packets_s);
    return 0;
}
