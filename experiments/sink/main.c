/* A webhook receiver for the benchmarks: takes any number of connections, reads every request whole, answers
 * 204, and keeps the books that prove delivery. A body's first 8 bytes are its value
 * (experiments/apps/items.h).
 *
 *     sink [-p PORT]
 *
 *     GET /count      {"requests":N,"bytes":B,"sum":S,"descents":D}; not counted itself
 *
 * descents: values not above the one before on the same connection. Prints "port PORT" once it listens; ends
 * by a signal. */
#include "experiments/common/listener.h"
#include "experiments/reactor/server.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct books {
    uint64_t requests;
    uint64_t bytes; /* of bodies */
    uint64_t sum;   /* of values, modulo 2^64 */
    uint64_t descents;
};

static const char taken[] = "HTTP/1.1 204 No Content\r\n\r\n";

static size_t answer_count(const struct books *books, char *out)
{
    char body[160];
    int size =
        snprintf(body, sizeof body, "{\"requests\":%llu,\"bytes\":%llu,\"sum\":%llu,\"descents\":%llu}\n",
                 (unsigned long long)books->requests, (unsigned long long)books->bytes,
                 (unsigned long long)books->sum, (unsigned long long)books->descents);
    return (size_t)snprintf(out, SERVER_REPLY_MAX, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", size,
                            body);
}

static uint64_t value_of(const char *body, size_t size)
{
    uint64_t value = 0;
    for (size_t i = 0; i < 8 && i < size; i++)
        value |= (uint64_t)(uint8_t)body[i] << 8 * i;
    return value;
}

static size_t answer(void *arg, const char *request, const struct message *message, uint64_t *last, char *out)
{
    struct books *books = arg;
    static const char count[] = "GET /count ";
    if (message->head_size > sizeof count && memcmp(request, count, sizeof count - 1) == 0)
        return answer_count(books, out);
    uint64_t value = value_of(request + message->head_size, message->body_size);
    books->requests++;
    books->bytes += message->body_size;
    books->sum += value;
    books->descents += value <= *last;
    *last = value;
    memcpy(out, taken, sizeof taken - 1);
    return sizeof taken - 1;
}

int main(int argc, char **argv)
{
    unsigned port = 0;
    if (argc == 3 && strcmp(argv[1], "-p") == 0)
        port = (unsigned)strtoul(argv[2], NULL, 10);
    else if (argc != 1) {
        fprintf(stderr, "usage: sink [-p PORT]\n");
        return 2;
    }
    struct books books = {0};
    struct server server = {.reactor = reactor_new(), .answer = answer, .arg = &books};
    server.listener = listener_open((uint16_t)port, 1024, false);
    if (!server.reactor || server.listener < 0 || server_start(&server) != 0) {
        fprintf(stderr, "sink: cannot listen\n");
        return 1;
    }
    printf("port %u\n", listener_port(server.listener));
    fflush(stdout);
    while (reactor_run(server.reactor, -1) >= 0)
        ;
    return 1;
}
