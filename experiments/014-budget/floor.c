/* What the parts of a hop cost at least on this machine: each by itself, warm, on one thread, with nothing
 * around it. Prints a line a part, `NAME NS`: nanoseconds of CPU a record of 20 bytes, the least of the
 * rounds; of `wake`, a wake. README.md beside it says what they are for. */
#include "core/record.h"
#include "host/app.h"
#include "journal/crc32c.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <poll.h>
#include <pthread.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    ROUNDS = 9,
    RECORD = 20,
    FRAMED = RECORD + 1,
    DATAGRAM = 1400,
    SEGMENTS = 44, /* of a send, as links have them */
    SENDS = 100,
    REPEATS = 20000,
    BATCH = 1000 * FRAMED, /* a burst: stays in the cache */
    PIECE = 60000,         /* of a TCP send */
    WAKES = 2000,
    WRITE = 1 << 20
};

#define PACKED ((double)DATAGRAM / FRAMED) /* records a datagram */

static uint8_t source[SEGMENTS * DATAGRAM], target[1 << 17];
static volatile uint64_t sink; /* what is computed goes there, so that it is computed */

static void check(bool holds, const char *what)
{
    if (!holds) {
        perror(what);
        exit(1);
    }
}

static double clock_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* Hides from the compiler where memory and functions come from. */
#define OPAQUE(x) __asm__ volatile("" : "+r"(x) : : "memory")

/* --- memory --- */

static uint8_t *put(uint8_t *at, const void *data, size_t size)
{
    at += varint_put(at, size);
    memcpy(at, data, size);
    return at + size;
}

/* Through a pointer, as an app calls its host: what a send cannot do without. */
static double measure_put(void)
{
    uint8_t *(*send)(uint8_t *, const void *, size_t) = put;
    OPAQUE(send);
    for (unsigned i = 0; i < REPEATS / 100; i++) {
        uint8_t *at = target;
        for (unsigned j = 0; j < 1000; j++)
            at = send(at, source + j * RECORD, RECORD);
    }
    return REPEATS / 100 * 1000;
}

static double measure_copy(void)
{
    uint8_t *at = target;
    for (unsigned i = 0; i < REPEATS; i++) {
        OPAQUE(at);
        memcpy(at, source + i % SEGMENTS * DATAGRAM, DATAGRAM);
    }
    return REPEATS * PACKED;
}

static double measure_scan(void)
{
    struct span run = span_of(target, BATCH);
    for (unsigned i = 0; i < REPEATS / 100; i++) {
        OPAQUE(run.data);
        sink += record_scan(run, RECORD, UINT64_MAX).records;
    }
    return REPEATS / 100 * 1000;
}

/* As `dst` does it: a count and a sum. */
static int event(void *state, struct pure_turn *turn, const struct pure_event *e)
{
    (void)turn;
    uint64_t value, *words = state;
    memcpy(&value, e->data, sizeof value);
    words[0]++;
    words[1] += value;
    return 0;
}

static double measure_call(void)
{
    int (*call)(void *, struct pure_turn *, const struct pure_event *) = event;
    uint64_t words[2] = {0, 0};
    OPAQUE(call);
    for (unsigned i = 0; i < REPEATS / 100; i++) {
        struct pure_event e = {.name = "event", .source = "floor", .number = 1};
        for (const uint8_t *at = target, *end = target + BATCH; at < end; e.number++) {
            struct span data;
            at += record_get(at, end, &data);
            e.data = data.data;
            e.size = data.size;
            check(call(words, NULL, &e) == 0, "an event");
        }
    }
    sink += words[1];
    return REPEATS / 100 * 1000;
}

static double measure_crc(void)
{
    for (unsigned i = 0; i < REPEATS / 10; i++)
        sink += crc32c(0, source, sizeof source);
    return REPEATS / 10 * (double)sizeof source / FRAMED;
}

/* --- the cipher --- */

static crypto_aead_aes256gcm_state key;
static uint8_t packet[DATAGRAM], tag[crypto_aead_aes256gcm_ABYTES], nonce[crypto_aead_aes256gcm_NPUBBYTES];

static double measure_seal(void)
{
    for (unsigned i = 0; i < REPEATS; i++)
        crypto_aead_aes256gcm_encrypt_detached_afternm(target, tag, NULL, packet, DATAGRAM, nonce, 13, NULL,
                                                       nonce, &key);
    return REPEATS * PACKED;
}

static double measure_open(void)
{
    uint8_t plain[DATAGRAM];
    crypto_aead_aes256gcm_encrypt_detached_afternm(target, tag, NULL, packet, DATAGRAM, nonce, sizeof nonce,
                                                   NULL, nonce, &key);
    for (unsigned i = 0; i < REPEATS; i++)
        check(crypto_aead_aes256gcm_decrypt_detached_afternm(plain, NULL, target, DATAGRAM, tag, nonce,
                                                             sizeof nonce, nonce, &key) == 0,
              "opening");
    return REPEATS * PACKED;
}

/* --- sockets --- */

static int udp_from, udp_to, tcp_from, tcp_to;

static int loopback(int type, struct sockaddr_in *address)
{
    socklen_t size = sizeof *address;
    *address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    check(fd >= 0 && bind(fd, (struct sockaddr *)address, size) == 0 &&
              getsockname(fd, (struct sockaddr *)address, &size) == 0,
          "a socket");
    return fd;
}

static void open_udp(void)
{
    struct sockaddr_in to;
    int segment = DATAGRAM, on = 1, room = 4 << 20;
    udp_from = loopback(SOCK_DGRAM, &to);
    udp_to = loopback(SOCK_DGRAM, &to);
    check(connect(udp_from, (struct sockaddr *)&to, sizeof to) == 0 &&
              setsockopt(udp_from, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment) == 0 &&
              setsockopt(udp_to, IPPROTO_UDP, UDP_GRO, &on, sizeof on) == 0 &&
              setsockopt(udp_to, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room) == 0,
          "UDP with GSO and GRO (root)");
}

static void open_tcp(void)
{
    struct sockaddr_in to;
    int listener = loopback(SOCK_STREAM, &to);
    tcp_from = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    check(listen(listener, 1) == 0 && connect(tcp_from, (struct sockaddr *)&to, sizeof to) == 0, "TCP");
    tcp_to = accept(listener, NULL, NULL);
    close(listener);
}

/* Both halves in turn, each by its own clock; what the kernel does to get it to the receiving socket is the
 * send's, as it happens there. */
static void halves(int from, int to, size_t bytes, double *send_ns, double *receive_ns)
{
    *send_ns = *receive_ns = 0;
    for (unsigned i = 0; i < SENDS; i++) {
        double begin = clock_of(CLOCK_THREAD_CPUTIME_ID);
        check(send(from, source, bytes, 0) == (ssize_t)bytes, "a send");
        double sent = clock_of(CLOCK_THREAD_CPUTIME_ID);
        for (size_t got = 0; got < bytes;) {
            ssize_t n = recv(to, target, sizeof target, 0);
            check(n > 0, "a receive");
            got += (size_t)n;
        }
        *send_ns += sent - begin;
        *receive_ns += clock_of(CLOCK_THREAD_CPUTIME_ID) - sent;
    }
    *send_ns /= SENDS * (double)bytes / FRAMED;
    *receive_ns /= SENDS * (double)bytes / FRAMED;
}

static void print_halves(const char *name, int from, int to, size_t bytes)
{
    double send_least = 1e9, receive_least = 1e9;
    for (unsigned round = 0; round < ROUNDS; round++) {
        double send_ns, receive_ns;
        halves(from, to, bytes, &send_ns, &receive_ns);
        send_least = send_ns < send_least ? send_ns : send_least;
        receive_least = receive_ns < receive_least ? receive_ns : receive_least;
    }
    printf("%s-send %.3f\n%s-receive %.3f\n", name, send_least, name, receive_least);
}

/* --- memory that another thread has written --- */

enum { FAR = 8 << 20 }; /* as much as an outlet's queue has */

static uint8_t far_bytes[FAR];

static void *write_far(void *value)
{
    memset(far_bytes, *(int *)value, FAR);
    return NULL;
}

/* What every hop from thread to thread pays besides: the lines are not in this processor's first caches. */
static void print_far(void)
{
    double least = 1e9;
    for (int round = 0; round < ROUNDS; round++) {
        pthread_t thread;
        check(pthread_create(&thread, NULL, write_far, &round) == 0, "a thread");
        pthread_join(thread, NULL);
        double begin = clock_of(CLOCK_THREAD_CPUTIME_ID);
        for (size_t at = 0; at + DATAGRAM <= FAR; at += DATAGRAM)
            memcpy(target + at % PIECE, far_bytes + at, DATAGRAM);
        double ns = (clock_of(CLOCK_THREAD_CPUTIME_ID) - begin) / ((double)FAR / FRAMED);
        least = ns < least ? ns : least;
    }
    printf("far %.3f\n", least);
}

/* --- waking --- */

static int there, back;

static void *answer(void *context)
{
    (void)context;
    uint64_t word;
    for (unsigned i = 0; i < WAKES; i++)
        check(read(there, &word, sizeof word) == sizeof word &&
                  write(back, &word, sizeof word) == sizeof word,
              "an eventfd");
    return NULL;
}

/* Both sides of it: the write that wakes, and the sleep that ends. A trip is two. */
static double measure_wake(void)
{
    pthread_t thread;
    uint64_t word = 1;
    there = eventfd(0, EFD_CLOEXEC);
    back = eventfd(0, EFD_CLOEXEC);
    check(there >= 0 && back >= 0 && pthread_create(&thread, NULL, answer, NULL) == 0, "a thread");
    for (unsigned i = 0; i < WAKES; i++)
        check(write(there, &word, sizeof word) == sizeof word &&
                  read(back, &word, sizeof word) == sizeof word,
              "an eventfd");
    pthread_join(thread, NULL);
    close(there);
    close(back);
    return 2 * WAKES;
}

/* --- the disk --- */

/* The CPU of all threads, the kernel's workers not among them. */
static double measure_write(void)
{
    static uint8_t block[WRITE];
    char name[] = "build/floor-XXXXXX";
    int fd = mkstemp(name);
    check(fd >= 0 && unlink(name) == 0, "a file in build/");
    check(pwrite(fd, block, WRITE, 0) == WRITE && fdatasync(fd) == 0, "a write");
    close(fd);
    return (double)WRITE / FRAMED;
}

/* --- rounds --- */

/* `measure` returns of how many records (or wakes) it was. */
static void print(const char *name, double (*measure)(void))
{
    double least = 1e9;
    for (unsigned round = 0; round < ROUNDS; round++) {
        double begin = clock_of(CLOCK_PROCESS_CPUTIME_ID), records = measure();
        double ns = (clock_of(CLOCK_PROCESS_CPUTIME_ID) - begin) / records;
        least = ns < least ? ns : least;
    }
    printf("%s %.3f\n", name, least);
}

int main(void)
{
    uint8_t secret[crypto_aead_aes256gcm_KEYBYTES] = {1};
    check(sodium_init() >= 0 && crypto_aead_aes256gcm_is_available(), "AES-256-GCM");
    crypto_aead_aes256gcm_beforenm(&key, secret);
    open_udp();
    open_tcp();
    print("put", measure_put); /* first: it fills what the next two read */
    print("scan", measure_scan);
    print("call", measure_call);
    print("copy", measure_copy);
    print_far();
    print("crc", measure_crc);
    print("seal", measure_seal);
    print("open", measure_open);
    print_halves("udp", udp_from, udp_to, SEGMENTS * DATAGRAM);
    print_halves("tcp", tcp_from, tcp_to, PIECE);
    print("wake", measure_wake);
    print("write", measure_write);
    return 0;
}
