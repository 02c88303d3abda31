/* Listening sockets of the measuring programs: loopback only. */
#ifndef PURE_EXPERIMENTS_COMMON_LISTENER_H
#define PURE_EXPERIMENTS_COMMON_LISTENER_H

#include <stdbool.h>
#include <stdint.h>

/* A non-blocking TCP socket that listens on 127.0.0.1:`port` (0: a free one). `shared`: with SO_REUSEPORT.
 * Returns the descriptor or a negative errno. */
int listener_open(uint16_t port, int backlog, bool shared);

/* The port a socket is bound to, 0 if it has none. */
uint16_t listener_port(int fd);

/* A port that was free a moment ago, 0 if there is none. */
uint16_t listener_free_port(void);

/* A UDP socket on 127.0.0.1 and a free port, or a negative errno. */
int listener_datagrams(void);

#endif
