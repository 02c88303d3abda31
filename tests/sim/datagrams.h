/* UDP in the simulated world (tests/sim/sim.h): sockets through the seam, paths that do what paths do, NATs.
 *
 *     socket --> (host: segmentation, MTU) --> NAT --> path: loss, queue, delay --> NAT --> socket's buffer
 *
 * A path is one way, so that a failure of one direction is a path of its own. Addresses and endpoints are
 * written as in sim.h. Pauses are sim_remove_loop, sim_add_loop; a silent host (sim_silence_host) neither
 * sends nor gets datagrams; one that is rebooted (sim_reboot_host) forgets those it had not read. */
#ifndef PURE_TESTS_SIM_DATAGRAMS_H
#define PURE_TESTS_SIM_DATAGRAMS_H

#include "tests/sim/sim.h"

/* How datagrams get from one host to another; read anew for each. Chances in 1/1000. The default: 50-200 us,
 * in order, no loss, MTU 1500. */
struct sim_path {
    uint64_t latency_min_ns, latency_max_ns;
    uint64_t reorder_ns; /* the most that one of `reorder` comes later, overtaken by others */
    uint32_t loss, duplicate, reorder;
    uint32_t corrupt;     /* one to three bytes are others */
    uint64_t bytes_s;     /* 0: unlimited */
    uint64_t queue_bytes; /* in front of that; what does not fit is lost. With bytes_s: > 0 */
    uint32_t mtu;         /* bytes of an IP packet */
    bool mtu_told; /* larger ones fail to be sent (EMSGSIZE; EINVAL with segments): an interface of one's
                    * own. Else they are lost in silence: ICMP or none is the same to a socket that
                    * ignores what is known of the path */
    bool black_hole;
};

extern const struct sim_path sim_path_default;

/* Sets what `from` sends to `to`, host addresses; NULL: any. The most specific counts, as with sim_set_link.
 * A host behind a NAT counts by its own address as a source, by its public one as a destination. */
void sim_set_path(struct sim *sim, const char *from, const char *to, const struct sim_path *path);

/* What a kernel may do, beside sim_faults of sim.h, whose no_buffers and multishot_end count here as well.
 * All 0 at first. */
struct sim_datagram_faults {
    uint32_t buffer_bytes;  /* the most bytes of one receive; 0: 64 KiB */
    uint32_t no_coalescing; /* chance in 1000 that a receive gives one, though a run is there */
};
void sim_set_datagram_faults(struct sim *sim, const struct sim_datagram_faults *faults);

/* From now on sends of several segments fail on that host: -EIO, -EINVAL; 0: they work. */
void sim_refuse_segmentation(struct sim *sim, const char *host, int error);

/* Puts a NAT before a host: its sockets are seen at ports of `public_address`, one for each socket, and are
 * reached there by the endpoints that they sent to. */
void sim_set_nat(struct sim *sim, const char *host, const char *public_address);
/* It forgets its ports: the next datagram of each socket gets a new one. */
void sim_rebind_nat(struct sim *sim, const char *host);
/* Its entries are dead: what these sockets send, or should get, is lost. New sockets work. */
void sim_kill_nat_entries(struct sim *sim, const char *host);

/* Puts a datagram on the path between the two endpoints' hosts, whoever has them: forged, replayed, garbage.
 */
void sim_inject(struct sim *sim, const char *from, const char *to, const void *bytes, size_t size);

/* Sees each datagram that a host sends, before the network does anything to it; with its public source. NULL:
 * nobody. */
typedef void sim_tap(void *context, const struct sockaddr_storage *from, const struct sockaddr_storage *to,
                     struct span bytes);
void sim_set_tap(struct sim *sim, sim_tap *tap, void *context);

/* Puts what was seen on the path again. */
void sim_replay(struct sim *sim, const struct sockaddr_storage *from, const struct sockaddr_storage *to,
                struct span bytes);

#endif
