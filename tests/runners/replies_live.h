/* Plays a row over loopback: the wire on io_uring, its server a thread with blocking sockets. */
#ifndef PURE_TESTS_RUNNERS_REPLIES_LIVE_H
#define PURE_TESTS_RUNNERS_REPLIES_LIVE_H

#include "tests/runners/replies_wire.h"
#include "uring/uring.h"

#include <arpa/inet.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#define LIVE_LIMIT_NS   NS_PER_S /* an exchange that the server leaves unfinished */
#define LIVE_LOOK_NS    (2 * NS_PER_MS)
#define LIVE_GIVE_UP_NS (10 * NS_PER_S)

struct live_server {
    int listener;
    struct sockaddr_in address;
    pthread_t thread;
    const struct reply_row *row;
    _Atomic bool over; /* the row's reply is sent, and its end if it has one */
    _Atomic unsigned requests;
    _Atomic bool reused; /* the second of them came where the first did */
};

struct live_play {
    struct io *io;
    struct loop loop;
    struct log log;
    struct resolver resolver; /* asked for nothing: the host is an address */
    struct timer timer;       /* wakes the loop, so that we can look */
    struct rig rig;
    struct live_server server;
};

/* --- the server --- */

static inline void live_send(int fd, const void *bytes, size_t size)
{
    const char *at = bytes;
    while (size > 0) {
        ssize_t sent = send(fd, at, size, MSG_NOSIGNAL);
        if (sent <= 0)
            return; /* the wire has closed: it has seen enough */
        at += sent;
        size -= (size_t)sent;
    }
}

/* Reads one request to its end. False: the stream ended. */
static inline bool live_read_request(int fd)
{
    static struct http_head head;
    uint8_t bytes[4096];
    size_t size = 0, scanned = 0;
    for (int whole = PE_INCOMPLETE; size < sizeof bytes;) {
        ssize_t got = recv(fd, bytes + size, sizeof bytes - size, 0);
        if (got <= 0)
            return false;
        size += (size_t)got;
        if (whole < 0)
            whole = http_request_head(span_of(bytes, size), &scanned, &head);
        struct http_body body;
        if (whole > 0 && http_request_body(&head, &body) == 0 && size - (size_t)whole >= body.left)
            return true;
    }
    return false;
}

static inline void live_serve(struct live_server *s, int fd)
{
    for (bool first = false; live_read_request(fd);) {
        char text[128];
        unsigned request = atomic_fetch_add(&s->requests, 1) + 1;
        if (request == 2)
            atomic_store(&s->reused, first);
        first |= request == 1;
        if (request > 1) {
            live_send(fd, text, later_reply(text, sizeof text, request));
            continue;
        }
        live_send(fd, s->row->reply.data, s->row->reply.size);
        if (s->row->server_closes)
            shutdown(fd, SHUT_WR);
        atomic_store(&s->over, true);
    }
}

static inline void *live_run_server(void *context)
{
    struct live_server *s = context;
    for (int fd; (fd = accept4(s->listener, NULL, NULL, SOCK_CLOEXEC)) >= 0; close(fd))
        live_serve(s, fd);
    return NULL;
}

static inline void live_server_open(struct live_server *s, const struct reply_row *row)
{
    socklen_t len = sizeof s->address;
    *s = (struct live_server){.row = row};
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    s->address.sin_family = AF_INET;
    s->address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (s->listener < 0 || bind(s->listener, (struct sockaddr *)&s->address, len) < 0 ||
        getsockname(s->listener, (struct sockaddr *)&s->address, &len) < 0 || listen(s->listener, 8) < 0 ||
        pthread_create(&s->thread, NULL, live_run_server, s) != 0)
        abort();
}

/* After the wire has closed its connections, so that the thread waits in accept. */
static inline void live_server_close(struct live_server *s)
{
    shutdown(s->listener, SHUT_RDWR);
    pthread_join(s->thread, NULL);
    close(s->listener);
}

/* --- the wire's side --- */

static inline uint64_t live_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static inline void live_timer_fired(struct timer *timer, uint64_t now_ns)
{
    timer_set(&container_of(timer, struct live_play, timer)->loop.timers, timer, now_ns + LIVE_LOOK_NS);
}

/* Steps the loop until `until` (NULL: never) holds or the time is over. */
static inline void live_until(struct live_play *t, bool (*until)(struct live_play *t), uint64_t ns)
{
    for (uint64_t end_ns = live_now_ns() + ns; live_now_ns() < end_ns && !(until && until(t));)
        if (loop_step(&t->loop) < 0)
            abort();
}

static inline bool live_first_over(struct live_play *t)
{
    return atomic_load(&t->server.over) && rig_quiet(&t->rig);
}

static inline bool live_all_stored(struct live_play *t)
{
    return rig_all_stored(&t->rig);
}

static inline bool live_wire_stopped(struct live_play *t)
{
    return wire_stopped(t->rig.wire);
}

static inline void live_play_open(struct live_play *t, const struct reply_row *row)
{
    char url[64];
    *t = (struct live_play){0};
    live_server_open(&t->server, row);
    if (uring_open(&t->io, NULL) < 0 || loop_init(&t->loop, t->io, 64, 8) < 0 ||
        log_init(&t->log, NULL, 0) < 0) {
        fprintf(stderr, "io_uring is not to be had here\n");
        exit(2);
    }
    timer_init(&t->timer, live_timer_fired);
    timer_set(&t->loop.timers, &t->timer, live_now_ns() + LIVE_LOOK_NS);
    snprintf(url, sizeof url, "http://127.0.0.1:%u/hook", ntohs(t->server.address.sin_port));
    rig_options(&t->rig, url, LIVE_LIMIT_NS);
    rig_open(&t->rig, &t->loop, &t->resolver, &t->log);
}

static inline void live_play_close(struct live_play *t)
{
    wire_stop(t->rig.wire);
    live_until(t, live_wire_stopped, LIVE_GIVE_UP_NS);
    if (!wire_stopped(t->rig.wire))
        abort();
    wire_dispose(t->rig.wire);
    free(t->rig.wire);
    live_server_close(&t->server);
    timer_unset(&t->loop.timers, &t->timer);
    loop_dispose(&t->loop);
    io_dispose(t->io);
    log_dispose(&t->log);
}

static inline void play_live(const struct reply_row *row, struct played *p, struct seen *seen)
{
    static struct live_play play;
    struct live_play *t = &play;
    live_play_open(t, row);
    rig_push(&t->rig);
    live_until(t, live_first_over, LIVE_GIVE_UP_NS);
    live_until(t, NULL, 3 * NS_PER_MS); /* what is surplus arrives, too */
    rig_note_first(&t->rig, p);
    rig_push_second(&t->rig);
    live_until(t, live_all_stored, LIVE_GIVE_UP_NS);
    p->all_stored = rig_all_stored(&t->rig);
    p->requests = atomic_load(&t->server.requests);
    p->reused = atomic_load(&t->server.reused);
    *seen = t->rig.seen;
    p->seen = seen;
    live_play_close(t);
}

#endif
