/* The HTTP server of document 3: a bare epoll reactor that parses a request as far as it must and answers
 * with a fixed reply. One thread, or with -t N one reactor a thread, each with a listener of its own
 * (SO_REUSEPORT).
 *
 *     reactor [-p PORT] [-t THREADS] [-b BYTES] [-s US/N]
 *
 * BYTES: size of the whole reply. -s: the handler of requests to /apps/d1/ blocks for so many microseconds in
 * one of N of them, whichever thread serves it.
 *
 * Prints "port PORT" once it listens; ends by a signal. */
#include "experiments/common/listener.h"
#include "experiments/reactor/server.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define THREADS_MAX 64
#define STALLING    "POST /apps/d1/"

static struct {
    unsigned long us, each; /* us 0: it never blocks */
    _Atomic unsigned long requests;
} stall;

struct reply {
    size_t size;
    char bytes[SERVER_REPLY_MAX];
};

static void handle(const char *request, size_t size)
{
    if (stall.us == 0 || size < sizeof STALLING || memcmp(request, STALLING, sizeof STALLING - 1) != 0 ||
        atomic_fetch_add(&stall.requests, 1) % stall.each != 0)
        return;
    struct timespec pause = {(time_t)(stall.us / 1000000), (long)(stall.us % 1000000) * 1000};
    nanosleep(&pause, NULL);
}

static size_t answer(void *arg, const char *request, const struct message *message, uint64_t *word, char *out)
{
    (void)word;
    handle(request, message->head_size);
    const struct reply *reply = arg;
    memcpy(out, reply->bytes, reply->size);
    return reply->size;
}

/* A 200 of `size` bytes as a whole: the body takes what the head leaves. */
static int make_reply(struct reply *reply, size_t size)
{
    for (size_t body = 0; body < size && size <= sizeof reply->bytes; body++) {
        int head = snprintf(
            reply->bytes, sizeof reply->bytes,
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n", body);
        if ((size_t)head + body != size)
            continue;
        memset(reply->bytes + head, '1', body);
        reply->size = size;
        return 0;
    }
    return -1;
}

static void *serve(void *arg)
{
    struct server *server = arg;
    server->reactor = reactor_new();
    if (!server->reactor || server_start(server) != 0)
        return NULL;
    while (reactor_run(server->reactor, -1) >= 0)
        ;
    return NULL;
}

static int run(uint16_t port, unsigned threads, struct reply *reply)
{
    static struct server servers[THREADS_MAX];
    pthread_t ids[THREADS_MAX];
    for (unsigned i = 0; i < threads; i++) {
        servers[i] = (struct server){.answer = answer, .arg = reply};
        servers[i].listener = listener_open(port, 1024, threads > 1);
        if (servers[i].listener < 0) {
            fprintf(stderr, "reactor: cannot listen: %s\n", strerror(-servers[i].listener));
            return 1;
        }
        port = listener_port(servers[i].listener);
    }
    printf("port %u\n", port);
    fflush(stdout);
    for (unsigned i = 1; i < threads; i++)
        if (pthread_create(&ids[i], NULL, serve, &servers[i]) != 0)
            return 1;
    serve(&servers[0]);
    return 1;
}

int main(int argc, char **argv)
{
    unsigned port = 0, threads = 1, size = 90;
    for (int option; (option = getopt(argc, argv, "p:t:b:s:")) != -1;) {
        unsigned value = optarg ? (unsigned)strtoul(optarg, NULL, 10) : 0;
        if (option == 'p')
            port = value;
        else if (option == 't')
            threads = value;
        else if (option == 'b')
            size = value;
        else if (option != 's' || sscanf(optarg, "%lu/%lu", &stall.us, &stall.each) != 2 || stall.each == 0)
            return 2;
    }
    static struct reply reply;
    if (port > UINT16_MAX || threads < 1 || threads > THREADS_MAX || make_reply(&reply, size) != 0) {
        fprintf(stderr, "reactor: -p 0 to 65535, -t 1 to %u, -b 80 to %u\n", THREADS_MAX, SERVER_REPLY_MAX);
        return 2;
    }
    return run((uint16_t)port, threads, &reply);
}
