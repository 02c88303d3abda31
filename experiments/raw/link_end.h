/* raw-link: what both of its ends stand on. */
#ifndef PURE_EXPERIMENTS_RAW_LINK_END_H
#define PURE_EXPERIMENTS_RAW_LINK_END_H

#include "core/log.h"
#include "core/loop.h"
#include "experiments/raw/raw.h"
#include "noise/key.h"

/* A loop with the io of the back end that is measured. */
struct link_end {
    struct io *io;
    struct loop loop;
    struct log log;
};

/* 0 or -1 after a line on stderr. */
int link_end_open(struct link_end *end, const char *back_end);
/* Says what the log has, and that some of it was dropped. */
void link_end_close(struct link_end *end);

extern const struct noise_random link_end_random;

/* Made before the fork, so that each process has its own and the other's public half. */
struct link_keys {
    struct host_key sender, receiver;
};
extern struct link_keys link_keys;

int link_receive(const struct raw_run *run, const struct raw_pipes *pipes, struct raw_received *received);
int link_send(const struct raw_run *run, uint16_t port, struct raw_sent *sent);

#endif
