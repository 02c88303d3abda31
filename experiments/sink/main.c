/* A webhook receiver for the benchmarks: takes any number of connections, reads every request whole, answers
 * 204, and keeps the books that prove delivery. A body's first 8 bytes are its value
 * (experiments/apps/items.h).
 *
 *     sink [-p PORT] [-s CA_FILE [-r] [-n] [-c]]
 *
 *     -s      also over TLS, on a port of its own, with a certificate for localhost by a CA that is written
 * to CA_FILE; -r: RSA keys; -n: no session is resumed -c      over TLS, a connection ends after one reply
 *
 *     GET /count      {"requests":N,"bytes":B,"sum":S,"descents":D,"handshakes":H,"resumed":R}; not counted
 *
 * descents: values not above the one before on the same connection. Prints "port PORT" once it listens, and
 * "tls PORT"; ends by a signal. */
#include "experiments/common/listener.h"
#include "experiments/reactor/server.h"
#include "experiments/sink/identity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct books {
    uint64_t requests;
    uint64_t bytes; /* of bodies */
    uint64_t sum;   /* of values, modulo 2^64 */
    uint64_t descents;
    const struct server *secure;
    bool closes; /* connections over TLS end after one reply */
};

static const char taken[] = "HTTP/1.1 204 No Content\r\n\r\n";
static const char last_taken[] = "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n";

static size_t answer_count(const struct books *books, char *out)
{
    char body[240];
    int size =
        snprintf(body, sizeof body,
                 "{\"requests\":%llu,\"bytes\":%llu,\"sum\":%llu,\"descents\":%llu,"
                 "\"handshakes\":%llu,\"resumed\":%llu}\n",
                 (unsigned long long)books->requests, (unsigned long long)books->bytes,
                 (unsigned long long)books->sum, (unsigned long long)books->descents,
                 (unsigned long long)books->secure->handshakes, (unsigned long long)books->secure->resumed);
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
    const char *reply = books->closes ? last_taken : taken;
    size_t size = strlen(reply);
    memcpy(out, reply, size);
    return size;
}

struct options {
    unsigned port;
    const char *ca_file; /* NULL: no TLS */
    bool rsa, tickets, closes;
};

static int read_options(int argc, char **argv, struct options *o)
{
    *o = (struct options){.tickets = true};
    for (int option; (option = getopt(argc, argv, "p:s:rnc")) != -1;) {
        if (option == 'p')
            o->port = (unsigned)strtoul(optarg, NULL, 10);
        else if (option == 's')
            o->ca_file = optarg;
        else if (option == 'r')
            o->rsa = true;
        else if (option == 'n')
            o->tickets = false;
        else if (option == 'c')
            o->closes = true;
        else
            return -1;
    }
    return optind == argc ? 0 : -1;
}

static int listen_at(struct server *server, unsigned port)
{
    server->listener = listener_open((uint16_t)port, 1024, false);
    if (server->listener >= 0 && server_start(server) == 0)
        return 0;
    fprintf(stderr, "sink: cannot listen\n");
    return -1;
}

int main(int argc, char **argv)
{
    struct options options;
    if (read_options(argc, argv, &options) != 0) {
        fprintf(stderr, "usage: sink [-p PORT] [-s CA_FILE [-r] [-n] [-c]]\n");
        return 2;
    }
    struct reactor *reactor = reactor_new();
    struct server secure = {.reactor = reactor, .answer = answer, .closes = options.closes};
    struct books books = {.secure = &secure, .closes = options.closes};
    struct server plain = {.reactor = reactor, .answer = answer, .arg = &books};
    secure.arg = &books;
    if (!reactor || listen_at(&plain, options.port) != 0)
        return 1;
    if (options.ca_file && (!(secure.secure = identity_make(options.ca_file, options.rsa, options.tickets)) ||
                            listen_at(&secure, 0) != 0))
        return 1;
    printf("port %u\n", listener_port(plain.listener));
    if (options.ca_file)
        printf("tls %u\n", listener_port(secure.listener));
    fflush(stdout);
    while (reactor_run(reactor, -1) >= 0)
        ;
    return 1;
}
