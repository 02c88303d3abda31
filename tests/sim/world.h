/* The inside of the simulated world, shared by the files of tests/sim only.
 *
 *     world.c      clock, events, descriptors, memory, trace     scheduler.c  loops, runs
 *     sim_io.c     the seam: hand-over, completions              network.c    hosts, links, connecting
 *     tcp.c        one TCP connection: two ends                  peer.c       scripted peers
 *     datagram.c   UDP sockets, datagrams on their way           path.c       their paths, NATs
 *     match.c      what scripts expect                           pipe.c       descriptors of memory
 *     resolver.c   names                                     disk*.c      files (disk_model.h)
 *
 * One real thread; every decision comes from sim->random, every order from lists or from (time, sequence). */
#ifndef PURE_TESTS_SIM_WORLD_H
#define PURE_TESTS_SIM_WORLD_H

#include "tests/sim/datagrams.h"
#include "tests/sim/sim.h"

/* A growing run of bytes, taken from the front. */
struct bytes {
    uint8_t *data;
    size_t start, end, room; /* data[start, end) of `room` */
};

void bytes_add(struct bytes *b, const void *data, size_t size);
void bytes_drop(struct bytes *b, size_t size); /* from the front */
void bytes_free(struct bytes *b);

static inline size_t bytes_size(const struct bytes *b)
{
    return b->end - b->start;
}

/* Something that will happen, embedded in whom it happens to. */
struct event {
    uint64_t at_ns, sequence; /* happens in this order */
    uint32_t place;           /* in the heap + 1; 0 while not set */
    void (*happen)(struct sim *sim, struct event *event);
};

/* What a descriptor stands for. */
enum descriptor_kind { FD_SOCKET, FD_LISTENER, FD_END, FD_PIPE, FD_DATAGRAMS, FD_FILE };

struct descriptor {
    enum descriptor_kind kind;
    int family;
    uint32_t user_timeout_ms;
    unsigned in_flight; /* operations handed over and not ended */
    union {
        struct listener *listener;
        struct end *end;
        struct pipe *pipe;
        struct datagram_socket *datagrams;
        struct open_file *file;
    };
};

struct sim_host {
    struct sockaddr_storage address; /* port 0 */
    bool silent;
    uint64_t connects;      /* to it, begun */
    int segmentation_error; /* what sends of several segments fail with; 0: they do not */
    uint16_t next_port;     /* ephemeral, of its datagram sockets */
    struct sim_disk *disk;  /* that its files are on; NULL: any */
    struct sim_host *next;
};

struct sim_thread {
    struct io io;
    struct sim *sim;
    struct sim_host *host;
    struct io_op **ops; /* handed over and not ended, in that order */
    size_t op_count, op_room;
    uint64_t deadline_ns; /* of the wait it sleeps in */
    struct sim_thread *next;
};

struct sim {
    uint64_t now_ns, wall_ms; /* wall_ms: at SIM_START_NS, as if never set since */
    struct random random;
    uint64_t trace, sequence;
    struct event **events; /* a heap: events[i] is before events[2i+1], events[2i+2] */
    uint32_t event_count, event_room;
    struct descriptor **descriptors; /* [fd - SIM_FIRST_FD]; NULL once closed, and never used again */
    unsigned descriptor_count, descriptor_room, open, open_limit;
    int lacking_family;
    struct sim_faults faults;
    struct sim_datagram_faults datagram_faults;
    struct sim_thread *threads;
    struct loop **loops;
    unsigned loop_count, loop_room;
    struct sim_host *hosts;
    struct link_rule *links;
    struct listener *listeners;
    struct connection *connections;
    struct name *names;
    struct sim_resolver *resolvers;
    struct sim_server *servers;
    struct sim_connection *peers;
    struct call *calls;
    struct path *paths;
    struct nat *nats;
    struct datagram_socket *datagram_sockets;
    struct datagram *datagrams; /* on their way */
    struct sim_disk *disks;
    sim_tap *tap;
    void *tap_context;
};

/* ---- world.c ---- */

void *sim_allocate(size_t size); /* zeroed; aborts without memory */
void *sim_grow(void *array, size_t element_size, size_t count, size_t room_before, size_t *room);

/* (Re)sets an event; NEVER unsets it. */
void event_set(struct sim *sim, struct event *event, uint64_t at_ns);
uint64_t sim_next_event_ns(const struct sim *sim);
/* Lets what is due happen. */
void sim_happen(struct sim *sim);

/* Mixes one fact into the trace. */
void sim_note(struct sim *sim, int what, uint64_t a, uint64_t b);
/* True with a chance of `thousandths` in 1000. */
bool sim_chance(struct sim *sim, uint32_t thousandths);

/* A new descriptor or -EMFILE. */
int descriptor_open(struct sim *sim, enum descriptor_kind kind);
/* An open one; asserts that it is: the kernel would say EBADF, or worse, act on somebody else's. */
struct descriptor *descriptor_get(struct sim *sim, int fd);
void descriptor_close(struct sim *sim, int fd);

/* ---- network.c ---- */

/* Parses "10.0.0.1", "fd00::1" (port 0) and "10.0.0.1:80", "[fd00::1]:80". */
struct sockaddr_storage sim_parse_host(const char *text);
struct sockaddr_storage sim_parse_endpoint(const char *text);
socklen_t sim_address_len(const struct sockaddr_storage *address);
struct sim_host *sim_host_of(struct sim *sim, const struct sockaddr_storage *address); /* made on first use */
struct sim_link sim_link_between(struct sim *sim, const struct sim_host *from, const struct sim_host *to);

/* An address somebody accepts at. */
struct listener {
    struct sim *sim;
    struct sockaddr_storage address;
    struct sim_host *host;
    unsigned limit, count; /* of the backlog */
    struct end *first, **last;
    void (*arrived)(struct listener *listener); /* one more in the backlog; may be NULL */
    void *owner;
    struct listener *next;
};

/* NULL when the address is in use. */
struct listener *listener_open(struct sim *sim, const struct sockaddr_storage *address, struct sim_host *host,
                               unsigned limit);
struct end *listener_take(struct listener *listener); /* from the backlog; NULL: none */
void listener_close(struct listener *listener);       /* and resets what waits in the backlog */

/* Begins to connect; the end's `changed` tells when it is connected or failed. */
struct end *network_connect(struct sim *sim, struct sim_host *from, const struct sockaddr_storage *to,
                            uint32_t user_timeout_ms);
void network_free(struct sim *sim);
bool same_ip(const struct sockaddr_storage *a, const struct sockaddr_storage *b);
bool is_any(const struct sockaddr_storage *address);
uint16_t get_port(const struct sockaddr_storage *address);
void set_port(struct sockaddr_storage *address, uint16_t port);
struct sim_host *named_host(struct sim *sim, const char *text); /* NULL: NULL */

/* ---- tcp.c ---- */

enum segment_kind { SEGMENT_DATA, SEGMENT_END, SEGMENT_RESET, SEGMENT_ACCEPT /* SYN and ACK */ };

struct segment {
    struct segment *next;
    enum segment_kind kind;
    uint64_t sent_ns, ready_ns; /* ready_ns: earliest arrival; never decreases along the queue */
    size_t start, size;         /* bytes[start, size) have not arrived */
    uint8_t bytes[];
};

/* One end of a connection, and what travels towards it. */
struct end {
    struct sim *sim;
    struct connection *connection;
    struct end *other;
    struct sim_host *host;
    uint32_t user_timeout_ms;
    bool exists; /* the accepting end: once the SYN arrived */
    bool connected;
    bool shut;   /* our end of stream was sent */
    bool ended;  /* the other's arrived */
    bool dead;   /* reset or timed out */
    int error;   /* why, until an operation has told */
    bool closed; /* by its owner; the kernel still finishes */
    struct bytes received;
    struct segment *first, **last; /* on their way here, in order */
    size_t travelling;             /* bytes in them */
    size_t chunk;                  /* bytes of `first` that arrive next */
    unsigned retries;              /* of the first segment, through a black hole */
    struct event arrival;
    void (*changed)(struct end *end); /* readable, writable, connected or dead; may be NULL */
    void *owner;
    struct end *backlog_next;
};

struct connection {
    struct end ends[2]; /* that which connected, that which accepted */
    struct sockaddr_storage to;
    struct event syn;
    unsigned syn_retries;
    struct connection *next;
};

void end_init(struct end *end, struct connection *connection, struct end *other, struct sim_host *host);
/* How much may be sent now: 0 also while the other side does not read. */
size_t end_room(const struct end *end);
void end_send(struct end *end, const void *data, size_t size); /* size at most end_room, at least 1 */
void end_shutdown(struct end *end);
/* The owner took `size` bytes of end->received. */
void end_took(struct end *end, size_t size);
void end_close(struct end *end);
void end_abort(struct end *end);                          /* closes with a reset, at once */
void end_answer(struct end *end, enum segment_kind kind); /* SEGMENT_ACCEPT or SEGMENT_RESET, towards `end` */
void end_die(struct end *end, int error);
/* Resets both ends from outside. */
void connection_break(struct connection *c, bool lose_unread);
/* Frees connections nobody will touch again. */
void connections_reap(struct sim *sim);
void connections_free(struct sim *sim); /* all of them */

/* ---- pipe.c ---- */

int pipe_write(struct pipe *pipe, const void *data, size_t size); /* once writable; may be short */
int pipe_read(struct pipe *pipe, void *out, size_t size);         /* once readable */
bool pipe_writable(const struct pipe *pipe);
bool pipe_readable(const struct pipe *pipe);
void pipe_free(struct pipe *pipe);

/* ---- datagram.c ---- */

/* One datagram: on its way, then in the queue of a socket. */
struct datagram {
    struct sim *sim;
    struct event arrival;
    struct datagram *next, **at; /* at: what points here while it is on its way */
    struct sockaddr_storage from, to;
    size_t size;
    uint8_t bytes[];
};

struct datagram_socket {
    struct sim *sim;
    struct sim_host *host;
    struct sockaddr_storage address;
    size_t room_bytes, held_bytes; /* of the receive buffer */
    struct datagram *first, **last;
    struct datagram_socket *next;
};

/* NULL when the address is in use. */
struct datagram_socket *datagram_socket_open(struct sim *sim, const struct sockaddr_storage *address,
                                             struct sim_host *host, size_t room_bytes);
void datagram_socket_close(struct datagram_socket *s);
/* As the operation says. Its bytes, or a negative errno. */
int datagram_send(struct datagram_socket *s, const struct io_op *op);
/* One datagram, or a run of them, into the op; the socket has one. Its bytes, in memory to be freed. */
int datagram_receive(struct datagram_socket *s, struct io_op *op);
/* The sockets of a host forget what they hold. */
void datagrams_reboot(struct sim *sim, const struct sim_host *host);
void datagrams_free(struct sim *sim);

/* ---- path.c ---- */

struct path;

/* The path of what goes from one host to another, with its state. */
struct path *path_between(struct sim *sim, struct sim_host *from, struct sim_host *to);
const struct sim_path *path_policy(const struct path *path);
/* When a datagram of `size` bytes that is sent now arrives; NEVER: it is lost. */
uint64_t path_arrival_ns(struct sim *sim, struct path *path, size_t size);
size_t packet_bytes(const struct sockaddr_storage *to, size_t size); /* with the heads of IP and UDP */

/* The source that the far end sees. False: the NAT drops it. */
bool nat_outbound(struct sim *sim, struct sim_host *host, struct sockaddr_storage *from,
                  const struct sockaddr_storage *to);
/* The destination behind the NAT, if `to` is one's public address. False: dropped. */
bool nat_inbound(struct sim *sim, const struct sockaddr_storage *from, struct sockaddr_storage *to);
void paths_free(struct sim *sim);

/* ---- disk.c, disk_operations.c ---- */

static inline bool file_kind(const struct io_op *op)
{
    return op->kind >= IO_FILE_OPEN && op->kind <= IO_FILE_UNLINK;
}

struct sim_disk *file_disk(struct sim *sim, const struct io_op *op);
/* When an operation that begins now completes. */
uint64_t file_ready_ns(struct sim *sim, const struct io_op *op);
/* Does it, with its faults, now. Its result. */
int file_perform(struct sim *sim, struct io_op *op);
/* Its io ends, or its disk is cut off, while it is under way: it was done, in part or not at all. */
void file_abandon(struct sim *sim, struct io_op *op);
void file_close(struct open_file *file);
void disks_free(struct sim *sim);

/* ---- sim_io.c, peer.c, resolver.c ---- */

bool thread_ready(struct sim_thread *thread); /* has a completion */
uint64_t thread_next_ns(
    const struct sim_thread *thread); /* when time alone gives it one; NEVER: it does not */
void threads_free(struct sim *sim);
void peers_free(struct sim *sim);
void resolvers_free(struct sim *sim);

#endif
