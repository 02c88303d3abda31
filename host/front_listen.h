/* Where the front's connections come in: at [host] http, and secured at [host] https. */
#ifndef PURE_HOST_FRONT_LISTEN_H
#define PURE_HOST_FRONT_LISTEN_H

#include "core/io.h"

#define FRONT_LISTENERS 2

struct front;
struct front_options;

struct front_listener {
    struct front *front;
    int fd;
    bool secured;   /* its connections speak TLS */
    bool accepting; /* accepts are wanted: there is room for those that come */
    bool closed;
    struct io_op accept;
    struct io_op close;
};

void front_listen_init(struct front *front);

/* 0, or a negative errno with one line in `why`. */
int front_listen_start(struct front *front, const struct front_options *options, char *why, size_t why_size);

/* Room has come or gone: of the pool, or of handshakes. */
void front_listen_adjust(struct front *front);

/* Accepts no more and closes what it listens on; step the loop until it has stopped. */
void front_listen_stop(struct front *front);
bool front_listen_stopped(const struct front *front);

#endif
