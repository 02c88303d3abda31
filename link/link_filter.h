/* What the kernel drops of the datagrams that come to a listener's socket, before they cost it a wake, a copy
 * or a buffer: a classic BPF program (socket(7), SO_ATTACH_FILTER). All of it would be dropped unanswered by
 * link_receiver_receive as well: what is neither an INIT nor a DATA by its first four bytes and its length,
 * and a DATA whose index does not have the mark that all indices of this socket have. Blind garbage passes
 * only as an INIT, which its mac1 stops, or with one chance in 256. Whoever sees the traffic knows the mark:
 * against those there are the quotas (link_receiver.h).
 *
 * Of datagrams that the kernel has put together (GRO) the first one decides: they are of one flow. */
#ifndef PURE_LINK_LINK_FILTER_H
#define PURE_LINK_LINK_FILTER_H

#include <linux/filter.h>
#include <stdint.h>

#define LINK_FILTER_LENGTH 11

/* `mark`: the top byte of the socket's indices, see indices_mark. */
void link_filter_make(struct sock_filter program[LINK_FILTER_LENGTH], uint8_t mark);

#endif
