/* The link on its loop: what joins the sending end of a link (link_sender, a state machine) to sockets, name
 * lookups, and the outlets of the apps that send over it. One link a peer host, one outlet an output.
 *
 * It is a task of a sending loop. A round: pushes are seen, batches of sealed datagrams are filled into the
 * free send buffers and handed over, the timer is set. What comes is opened where the loop received it, in
 * the completion. Nothing is allocated after the start.
 *
 * A socket is the link's own, so that a new source port is a new socket, and a full one nobody else's
 * trouble. While the name is not known, or no socket can be had, nothing is sent and `lookup` is tried again.
 *
 *     send buffers   LINK_BUFFERS of LINK_BATCH_BYTES: a round's quota, and what may be in flight
 *     segmentation   a batch that the system refuses goes again datagram by datagram; if those are taken, no
 *                    more batches are tried on this socket (IP_MTU_DISCOVER etc. are core/io.h's) */
#ifndef PURE_LINK_LINK_H
#define PURE_LINK_LINK_H

#include "core/addresses.h"
#include "core/backoff.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/outlet.h"
#include "link/link_sender.h"

#define LINK_BUFFERS 4
#define LINK_SOCKETS 2 /* the current one, and the one before while it closes */

struct link_options {
    const char *name; /* of the destination, for messages: "pi2.local:7071"; outlives it */
    const char *host; /* as addresses_init's */
    uint16_t port;
    bool literal;
    const struct host_key *key; /* ours; outlives it */
    uint8_t remote_public[LINK_KEY_BYTES];
    struct noise_random random;
    uint8_t ciphers;  /* cipher_hardware(), or less; 0: ChaCha20-Poly1305 alone */
    uint32_t outputs; /* the most */
    uint32_t mtu;     /* the most bytes of UDP payload: MTU_BASE to MTU_MAX */
};

/* What a link says of itself; one writer, read by any thread. Counters, but for the last four, which are as
 * of now. */
struct link_report {
    _Atomic uint64_t packets;        /* sent */
    _Atomic uint64_t bytes;          /* sent, of UDP payload */
    _Atomic uint64_t sends;          /* operations that carried them */
    _Atomic uint64_t received;       /* packets */
    _Atomic uint64_t lost;           /* packets taken as lost */
    _Atomic uint64_t dropped;        /* datagrams that came and were nobody's, or did not open */
    _Atomic uint64_t handshakes;     /* sessions begun */
    _Atomic uint64_t ports;          /* sockets opened */
    _Atomic uint64_t lookups;        /* of its name */
    _Atomic uint64_t send_errors;    /* sends that failed, of whatever kind */
    _Atomic uint64_t rtt_ns;         /* smoothed; 0: not known yet */
    _Atomic uint64_t window_bytes;   /* of congestion control */
    _Atomic uint64_t datagram_bytes; /* MTU as found */
    _Atomic uint64_t segmentation;   /* 1: batches go out in one send */
};

struct link;

struct link_socket {
    struct link *link;
    int fd;                   /* -1: none */
    bool segmentation;        /* batches are tried */
    bool closing;             /* nothing new is sent from here */
    unsigned sending;         /* buffers that are in flight from here, or wait in `line` */
    struct link_buffer *line; /* those that go datagram by datagram; the first is in flight */
    struct io_op receive, close;
};

/* A batch that is on its way into the kernel. */
struct link_buffer {
    struct link *link;
    struct link_buffer *next; /* of the free ones, or of its socket's line */
    struct link_socket *socket;
    uint8_t *bytes; /* LINK_BATCH_BYTES */
    struct link_batch batch;
    uint32_t gone;  /* bytes of it that were handed over, where it goes datagram by datagram */
    bool refused;   /* as a whole: it goes datagram by datagram for that */
    bool failed;    /* in part, for whatever reason */
    bool too_large; /* a datagram of it was refused for its size */
    struct io_op op;
};

/* An output that goes over a link. */
struct link_outlet {
    struct outlet outlet;
    struct link_output output;
    struct task task; /* runs when there was a push */
    struct link *link;
    bool refused; /* by the receiver, and nothing stored since: it is said of the outlet */
};

struct link {
    struct loop *loop;
    struct log *log;
    struct resolver *resolver;
    const char *name;
    struct link_report report;
    struct task task;
    struct timer timer;
    struct link_sender sender;
    struct indices indices;
    /* where to */
    struct addresses addresses;
    struct resolver_address to; /* while there is a socket */
    struct resolver_request lookup;
    bool looking_up;
    bool moving;              /* another address or port is due, as soon as one of `sockets` has closed */
    uint64_t lookup_until_ns; /* looking_up: for how long */
    struct backoff backoff;   /* of lookups and sockets that fail while nothing can be sent */
    uint64_t rest_until_ns;   /* no such try before */
    struct link_socket sockets[LINK_SOCKETS];
    struct link_socket *socket; /* NULL: nothing can be sent */
    struct link_buffer buffers[LINK_BUFFERS];
    uint8_t *memory; /* theirs */
    struct link_buffer *free;
    uint64_t full_ns; /* since when none is; NEVER: one is, or was seen to be */
    /* what is said of it */
    int trouble;         /* why nothing gets through; 0: it does, or nothing is to */
    uint64_t trouble_ns; /* since when */
    int said;            /* of it in the log, last; 0: nothing */
    uint64_t say_ns;     /* nothing more of trouble before */
    int send_error;      /* of the last datagram that the system was given; 0: it took it */
    bool told_segmentation;
    _Atomic bool hurried;
    bool stopping;
    uint64_t stop_until_ns; /* stopping: then what is in flight is given up */
};

/* On a loop that has room for 1 + outputs tasks and 1 timer. sodium_init() was called. 0, PE_KEY_WEAK,
 * PE_FULL or a negative errno. */
int link_init(struct link *l, const struct link_options *options, struct loop *loop,
              struct resolver *resolver, struct log *log);

/* An output: its stream's epoch, and the receiving app and event there (texts that outlive it). The outlet's
 * producer is set by whoever joins it. 0, PE_FULL or a negative errno. */
int link_add(struct link *l, struct link_outlet *o, const char *app, const char *output, uint64_t queue_bytes,
             uint32_t max_record, const uint8_t epoch[FRAME_EPOCH_BYTES], const char *target,
             const char *event);

/* Any thread: the host stops; what rests is tried once more soon. */
void link_hurry(struct link *l);

/* On the loop's thread: tells the receiver that the session is over, and closes the sockets. */
void link_stop(struct link *l);

/* Whether that is done: nothing is in flight any more. */
bool link_stopped(const struct link *l);

/* A link that never ran or has stopped; or any, when its loop's io and its resolver have been disposed of.
 * Its outlets go with it. */
void link_dispose(struct link *l);

#endif
