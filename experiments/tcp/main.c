/* One bulk transfer by the kernel's TCP, to set links against.
 *
 *     tcp receive ADDRESS WARM_S SECONDS     takes one connection; prints "port PORT" once it listens, and
 *                                            "bytes B ns T" for SECONDS after WARM_S from the first byte
 *     tcp send ADDRESS PORT CONTROL          sends as fast as congestion control CONTROL lets it, until the
 *                                            receiver has had enough; then prints "CONTROL rtt_us R sent S
 *                                            again A", of the kernel's TCP_INFO: segments, smoothed RTT */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <linux/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S UINT64_C(1000000000)
#define BUFFER   (256u << 10)

static char buffer[BUFFER];

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static int failed(const char *what)
{
    fprintf(stderr, "tcp: %s: %s\n", what, strerror(errno));
    return 1;
}

/* Counts what comes in [from, until]. A read that ends the wait for either is counted where it ended. */
static int count(int fd, uint64_t warm_ns, uint64_t length_ns)
{
    uint64_t bytes = 0, from_ns = 0, now;
    for (uint64_t first_ns = 0;;) {
        ssize_t n = recv(fd, buffer, sizeof buffer, 0);
        now = now_ns();
        if (n <= 0)
            return failed("the sender ended");
        if (first_ns == 0)
            first_ns = now;
        if (from_ns > 0)
            bytes += (uint64_t)n;
        else if (now - first_ns >= warm_ns)
            from_ns = now;
        if (from_ns > 0 && now - from_ns >= length_ns)
            break;
    }
    printf("bytes %llu ns %llu\n", (unsigned long long)bytes, (unsigned long long)(now - from_ns));
    fflush(stdout);
    return 0;
}

static int receive(const char *address, double warm_s, double seconds)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t size = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    inet_pton(AF_INET, address, &at.sin_addr);
    if (listener < 0 || bind(listener, (struct sockaddr *)&at, sizeof at) != 0 || listen(listener, 1) != 0 ||
        getsockname(listener, (struct sockaddr *)&at, &size) != 0)
        return failed(address);
    printf("port %u\n", ntohs(at.sin_port));
    fflush(stdout);
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    return fd < 0 ? failed("accept") : count(fd, (uint64_t)(warm_s * 1e9), (uint64_t)(seconds * 1e9));
}

static int transfer(const char *address, unsigned port, const char *control)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    inet_pton(AF_INET, address, &to.sin_addr);
    if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, control, (socklen_t)strlen(control)) != 0)
        return failed(control);
    if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0)
        return failed(address);
    struct tcp_info info, last = {.tcpi_rtt = 0};
    while (send(fd, buffer, sizeof buffer, MSG_NOSIGNAL) > 0) {
        socklen_t size = sizeof info;
        if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0)
            last = info;
    }
    printf("%s rtt_us %u sent %u again %u\n", control, last.tcpi_rtt, last.tcpi_segs_out,
           last.tcpi_total_retrans);
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "receive") == 0)
        return receive(argv[2], strtod(argv[3], NULL), strtod(argv[4], NULL));
    if (argc == 5 && strcmp(argv[1], "send") == 0)
        return transfer(argv[2], (unsigned)strtoul(argv[3], NULL, 10), argv[4]);
    fprintf(stderr, "usage: tcp receive ADDRESS WARM_S SECONDS | tcp send ADDRESS PORT CONTROL\n");
    return 2;
}
