/* Network namespaces of others, by their files: /proc/PID/fd/N of who holds one open. */
#ifndef PURE_EXPERIMENTS_BENCH_NETWORK_H
#define PURE_EXPERIMENTS_BENCH_NETWORK_H

#include "experiments/bench/client.h"

/* This thread makes its sockets there from now on. A descriptor of where it was, or a negative errno. */
int network_enter(const char *network);

/* As client_open, to 127.0.0.1 of a namespace (NULL: ours). */
int network_client(struct client *client, const char *network, uint16_t port);

#endif
