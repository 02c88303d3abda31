/* The fault server on the simulated network: what one listener does to whom connects. */
#ifndef PURE_TESTS_FAULTS_SIM_PEER_H
#define PURE_TESTS_FAULTS_SIM_PEER_H

#include "tests/faults/player.h"
#include "tests/sim/sim.h"

struct fault_sim_connection;

struct fault_sim_peer {
    struct sim *sim;
    struct sim_server *server;
    const struct fault_step *first, *then; /* of the first `first_times` connections; of those after */
    unsigned first_times;
    struct ssl_ctx_st *identity; /* NULL: no TLS */
    struct fault_account account;
    struct fault_sim_connection *connections;
    struct sim_step script[3]; /* the seam's: takes whatever comes */
};

/* The fields above `account` but `server` are set; listens at `endpoint`. */
void fault_sim_listen(struct fault_sim_peer *peer, const char *endpoint);
/* After sim_free. */
void fault_sim_dispose(struct fault_sim_peer *peer);

#endif
