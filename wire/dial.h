/* From a destination to a connected descriptor: which addresses, tried how, and through which proxy.
 *
 *     destination   one a wire: its host's addresses (or its proxy's), when they are looked up, what of them
 * the egress rules permit, which worked last. All its dials share one lookup. dial          one a connection
 * to be made. Tries the addresses one after the other, the next one when the one before failed or has not
 * answered for DIAL_DELAY_NS; the first to connect is taken, the others end (RFC 8305 sections 4 and 5).
 * Then, if there is a proxy and the URL is https, CONNECT (RFC 9110 section 9.3.6). TLS is not its business.
 *
 * A dial's operations are embedded in it: it is not touched until `done` was called. */
#ifndef PURE_WIRE_DIAL_H
#define PURE_WIRE_DIAL_H

#include "core/addresses.h"
#include "core/loop.h"
#include "core/stream.h"
#include "wire/options.h"

#define DIAL_DELAY_NS (250 * NS_PER_MS) /* RFC 8305 section 5, Connection Attempt Delay */
#define DIAL_RACE     2                 /* attempts at a time */

struct destination {
    struct loop *loop;
    struct resolver *resolver;
    struct addresses addresses;
    const struct networks *egress;
    /* The rest is private; see destination.c. */
};

/* `options` were checked; of them the texts may go afterwards. */
void destination_init(struct destination *d, const struct wire_options *options, struct loop *loop,
                      struct resolver *resolver);
/* Nothing of it is looked up any more; its dials have ended. */
void destination_dispose(struct destination *d);

struct dial {
    struct destination *destination;
    /* Once for each dial_start, from inside the loop's wait or step: `fd` connected, to be adopted by a
     * stream, or negative: `error` says why, and of which address, for people, `destination_text`. */
    void (*done)(struct dial *dial, int fd, int error);
    /* The rest is private; see dial.c. */
};

void dial_init(struct dial *dial, struct destination *destination, void (*done)(struct dial *, int, int));
void dial_start(struct dial *dial, uint64_t now_ns);
/* `done` follows, with PE_STOPPING if with no other outcome. */
void dial_stop(struct dial *dial);
bool dial_busy(const struct dial *dial);

/* The connection that was made of it turned out well (it carried a reply), or badly before it carried one:
 * the next dial begins with the next address, after a lookup. */
void destination_worked(struct destination *d);
void destination_failed(struct destination *d);

#endif
