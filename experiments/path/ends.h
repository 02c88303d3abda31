/* One end of an emulated path: a network namespace of its own, and a TUN device in it. What processes in that
 * namespace send to the other end is read from `tun`; what is written there, they receive. Plain IP packets:
 * no segmentation offload, so that the kernel cuts batches down to the device's MTU before they come here. */
#ifndef PURE_EXPERIMENTS_PATH_ENDS_H
#define PURE_EXPERIMENTS_PATH_ENDS_H

#include <stdint.h>

struct end {
    int tun;     /* non-blocking */
    int network; /* the namespace: others enter it by /proc/PID/fd/`network` */
};

/* Makes the namespace, its loopback and the device, which has the IPv4 `address` in a network of 24 bits.
 * Needs CAP_SYS_ADMIN and CAP_NET_ADMIN, and stays in the namespace. 0 or a negative errno, after a line on
 * stderr. */
int end_open(struct end *end, const char *address, uint32_t mtu);

#endif
