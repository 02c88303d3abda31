/* UDP as the kernel has it: what the back ends that talk to one share. */
#ifndef PURE_CORE_DATAGRAM_H
#define PURE_CORE_DATAGRAM_H

#include "core/io.h"

/* The room that a receive needs for a source address, a multiple of 8, and for the segment size (an int). */
#define DATAGRAM_NAME_BYTES    32
#define DATAGRAM_CONTROL_BYTES CMSG_SPACE(sizeof(int))

/* A bound, blocking socket, with all that core/io.h says of it. GRO only where the kernel has it. Or a
 * negative errno. */
int datagram_open(const struct sockaddr *address, socklen_t len, const struct io_datagram_options *options);

/* One call of recvmsg(2), or one completion that is laid out otherwise, as fields of the op: `message` has
 * the source, the control messages and the flags, `data` [0, size) the payload. */
void datagram_received(struct io_op *op, const struct msghdr *message, uint8_t *data, uint32_t size);

#endif
