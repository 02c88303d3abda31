/* raw-tcp: framed records as one stream of a TCP connection, sealed by nobody: what the kernel's own
 * transport takes for the same. The sender packs records into a buffer of BUFFER_BYTES and writes it; the
 * receiver parses them where they were received. A byte goes back when the untimed records have arrived, and,
 * one in flight, for each record. */
#include "core/error.h"
#include "core/record.h"
#include "experiments/raw/raw.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define BUFFER_BYTES (256 * 1024)

static struct sockaddr_in loopback(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* As all others are set up by default, but this is said to be CUBIC, and an answer is not to be delayed. */
static void set_options(int fd)
{
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "cubic", 5);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

/* --- the receiver --- */

static int accept_one(const struct raw_pipes *pipes)
{
    struct sockaddr_in address = loopback(0);
    socklen_t len = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd = -1;
    if (listener >= 0 && bind(listener, (struct sockaddr *)&address, len) == 0 && listen(listener, 1) == 0 &&
        getsockname(listener, (struct sockaddr *)&address, &len) == 0 &&
        raw_ready(pipes, ntohs(address.sin_port)) == 0)
        fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    int error = errno;
    if (listener >= 0)
        close(listener);
    if (fd < 0)
        return raw_failed("accept", -error);
    set_options(fd);
    return fd;
}

/* Counts the whole records of `bytes`; returns how many bytes they were. */
static size_t count(struct raw_tally *tally, struct span bytes)
{
    struct span record;
    const uint8_t *at = bytes.data, *end = at + bytes.size;
    for (size_t framed; (framed = record_get(at, end, &record)) > 0; at += framed)
        raw_tally_add(tally, record.data, record.size);
    return (size_t)(at - bytes.data);
}

static int receive_all(int fd, uint8_t *buffer, struct raw_tally *tally)
{
    size_t filled = 0;
    bool told = false;
    while (!raw_tally_complete(tally)) {
        ssize_t n = recv(fd, buffer + filled, BUFFER_BYTES - filled, 0);
        if (n <= 0)
            return raw_failed("recv", n < 0 ? -errno : PE_CLOSED);
        tally->received->enters++;
        filled += (size_t)n;
        size_t used = count(tally, span_of(buffer, filled));
        memmove(buffer, buffer + used, filled - used);
        filled -= used;
        bool tell = tally->run->one_in_flight || (!told && tally->records >= tally->run->warm);
        told |= tell;
        if (tell && send(fd, "", 1, MSG_NOSIGNAL) != 1)
            return raw_failed("send", -errno);
    }
    return 0;
}

static int tcp_receive(const struct raw_run *run, const struct raw_pipes *pipes,
                       struct raw_received *received)
{
    struct raw_tally tally;
    uint8_t *buffer = malloc(BUFFER_BYTES);
    int fd = buffer ? accept_one(pipes) : -1;
    raw_tally_init(&tally, run, received);
    int error = fd < 0 ? -1 : receive_all(fd, buffer, &tally);
    if (fd >= 0)
        close(fd);
    free(buffer);
    return error;
}

/* --- the sender --- */

static int connect_to(uint16_t port)
{
    struct sockaddr_in address = loopback(port);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return raw_failed("socket", -errno);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) < 0) {
        int error = -errno;
        close(fd);
        return raw_failed("connect", error);
    }
    set_options(fd);
    return fd;
}

static size_t pack(const struct raw_run *run, uint8_t *buffer, uint64_t *number, uint64_t last)
{
    uint8_t *at = buffer, *end = buffer + BUFFER_BYTES;
    size_t framed = record_framed_size(run->record_bytes);
    while (*number < last && framed <= (size_t)(end - at)) {
        uint8_t *data = at + varint_put(at, run->record_bytes);
        memset(data, '.', run->record_bytes);
        raw_put_number(data, ++*number);
        at += framed;
    }
    return (size_t)(at - buffer);
}

static int send_whole(int fd, const uint8_t *bytes, size_t size, struct raw_sent *sent)
{
    while (size > 0) {
        ssize_t n = send(fd, bytes, size, MSG_NOSIGNAL);
        if (n < 0)
            return raw_failed("send", -errno);
        sent->sends++;
        bytes += n;
        size -= (size_t)n;
    }
    return 0;
}

static int wait_for_answer(int fd)
{
    uint8_t byte;
    ssize_t n = recv(fd, &byte, 1, 0);
    return n == 1 ? 0 : raw_failed("recv", n < 0 ? -errno : PE_CLOSED);
}

/* Records up to number `last`. */
static int send_to(int fd, const struct raw_run *run, uint64_t *number, uint64_t last, struct raw_sent *sent,
                   struct raw_trips *trips)
{
    static uint8_t buffer[BUFFER_BYTES];
    while (*number < last) {
        size_t size = pack(run, buffer, number, run->one_in_flight ? *number + 1 : last);
        uint64_t start_ns = run->one_in_flight ? raw_now_ns() : 0;
        if (send_whole(fd, buffer, size, sent) != 0 || (run->one_in_flight && wait_for_answer(fd) != 0))
            return -1;
        if (run->one_in_flight && *number > run->warm)
            raw_trips_add(trips, raw_now_ns() - start_ns);
    }
    return 0;
}

static int tcp_send(const struct raw_run *run, uint16_t port, struct raw_sent *sent)
{
    struct raw_trips trips;
    uint64_t number = 0;
    int fd = connect_to(port);
    if (fd < 0)
        return -1;
    int error = raw_trips_init(&trips, run);
    if (error == 0)
        error = send_to(fd, run, &number, run->warm, sent, &trips);
    if (error == 0 && !run->one_in_flight)
        error = wait_for_answer(fd);
    sent->sends = 0;
    raw_send_begins(sent);
    if (error == 0)
        error = send_to(fd, run, &number, raw_total(run), sent, &trips);
    raw_send_ends(sent);
    sent->enters = sent->sends;
    raw_trips_end(&trips, sent);
    close(fd);
    return error;
}

const struct raw_transport raw_transport = {
    .name = "tcp", .back_end = "sockets", .receive = tcp_receive, .send = tcp_send};
