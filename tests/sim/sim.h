/* The simulated back end of the seam (core/io.h): a world with a virtual clock, a virtual TCP network, names
 * and any number of threads, run by one real thread from one seed. The same seed gives exactly the same run.
 *
 *     struct sim *sim = sim_new(seed);
 *     struct loop loop;                                        // what is tested: a loop on a simulated io
 *     loop_init(&loop, sim_io(sim, "10.0.0.1"), 64, 64);
 *     sim_add_loop(sim, &loop);
 *     static const struct sim_step hello[] = {SIM_EXPECT_UNTIL("\r\n\r\n"), SIM_SEND("HTTP/1.1 204
 * No\r\n\r\n"), SIM_AGAIN};      // what it talks to: a scripted peer struct sim_server *server =
 * sim_server(sim, "10.0.0.2:80", hello, ARRAY_SIZE(hello)); assert_int_equal(sim_run_until(sim,
 * all_delivered, &test), SIM_DONE); sim_remove_loop(sim, &loop), loop_dispose(&loop), sim_free(sim);
 *
 * UDP is in tests/sim/datagrams.h. Hosts are IP addresses, written as text ("10.0.0.1", "fd00::1"); an
 * endpoint is "10.0.0.1:80" or
 * "[fd00::1]:80". Nothing exists before it is used, and nothing here is a real socket: descriptors count up
 * from SIM_FIRST_FD. A mistake of a test (bad address, unknown descriptor) is an assertion; a stuck or failed
 * run is a result. */
#ifndef PURE_TESTS_SIM_SIM_H
#define PURE_TESTS_SIM_SIM_H

#include "core/io.h"
#include "core/loop.h"
#include "core/random.h"
#include "core/resolver.h"

#define SIM_FIRST_FD 1000

struct sim;

/* ---- World, clock, scheduler ---- */

/* Virtual time starts at SIM_START_NS, the wall clock at SIM_START_WALL_MS (2026-01-01). Aborts without
 * memory. */
#define SIM_START_NS      (1000 * NS_PER_S)
#define SIM_START_WALL_MS UINT64_C(1767225600000)
struct sim *sim_new(uint64_t seed);
/* Frees the world, its ios, servers, connections and resolvers. Loops are their owners' and are disposed
 * first. */
void sim_free(struct sim *sim);

/* One thread of the host with that address (NULL: "127.0.0.1"). The world's; io_dispose is allowed, not
 * needed. io_wait never blocks: it hands over, delivers a seeded batch of what is complete and returns. */
struct io *sim_io(struct sim *sim, const char *host);

void sim_add_loop(struct sim *sim, struct loop *loop);
void sim_remove_loop(struct sim *sim, struct loop *loop);

uint64_t sim_now_ns(const struct sim *sim);
struct random *sim_random(struct sim *sim);
/* A hash of all that happened: hand-overs, completions, steps, network events, with their times. */
uint64_t sim_trace(const struct sim *sim);
/* Sets the wall clock, which then runs on with virtual time. Jumps either way. */
void sim_set_wall_ms(struct sim *sim, uint64_t wall_ms);
/* Calls `call` at virtual time `at_ns` (past: at the next run), before any loop is stepped. */
void sim_at(struct sim *sim, uint64_t at_ns, void (*call)(void *context), void *context);

enum sim_end {
    SIM_DONE,  /* the predicate holds */
    SIM_TIME,  /* until_ns is reached */
    SIM_STUCK, /* nothing will ever happen: no runnable loop, no deadline, no event */
    SIM_STEPS, /* max_steps loop steps were made */
    SIM_ERROR  /* a loop_step failed */
};

/* Steps the loops that have something to do, one at a time in seeded order; when none has, time jumps to the
 * next deadline or event. `until` (NULL: never) is asked after each step. */
enum sim_end sim_run(struct sim *sim, uint64_t until_ns, bool (*until)(void *context), void *context,
                     uint64_t max_steps);
/* The same with bounds that suit most tests: one virtual day, ten million steps. */
enum sim_end sim_run_until(struct sim *sim, bool (*until)(void *context), void *context);
/* Runs for that long: SIM_TIME, also when the world is stuck before. */
enum sim_end sim_run_for(struct sim *sim, uint64_t ns);
/* Time goes on by `ns`: from `until`, as if the step just made had taken it. */
void sim_pass(struct sim *sim, uint64_t ns);
/* For tests that call io_wait themselves: jumps to the next deadline or event and makes it happen. False:
 * stuck. */
bool sim_advance(struct sim *sim);

/* ---- Network ---- */

/* How bytes travel from one host to another. Read anew for each chunk, so a change acts at once. Chances are
 * in 1/1000. The default policy: 50-200 us, split 300, the rest off, window 65536. */
struct sim_link {
    uint64_t latency_min_ns, latency_max_ns; /* one way; later bytes of a stream never overtake */
    uint32_t split;        /* chance that a chunk is cut in two, at any byte (again and again) */
    uint32_t reset;        /* chance a chunk is cut at any byte and the connection reset there */
    uint64_t bytes_s;      /* 0: unlimited */
    uint32_t window_bytes; /* sent and not yet read: the sender waits or sends short beyond. > 0 */
    bool black_hole;       /* everything is lost, in silence */
};

extern const struct sim_link sim_link_default;

/* Sets the policy of what `from` sends to `to`, host addresses; NULL: any. The most specific counts: the
 * pair, then any → to, from → any, any → any. */
void sim_set_link(struct sim *sim, const char *from, const char *to, const struct sim_link *link);

/* Ends every connection between two hosts as a crash of the network in between: NULL: any. Both sides get
 * ECONNRESET, unread bytes are lost. */
void sim_reset_connections(struct sim *sim, const char *a, const char *b);
/* The host falls silent (a pulled cable) or comes back. Its connections are half-open meanwhile: the other
 * side notices only by TCP_USER_TIMEOUT, or by the reset when it comes back after sim_reboot_host. */
void sim_silence_host(struct sim *sim, const char *host, bool silent);
/* The kernel of the host forgets all its connections, without a word: bytes that reach it are answered by a
 * reset. */
void sim_reboot_host(struct sim *sim, const char *host);

/* At most `limit` descriptors of the world are open: then EMFILE from io_socket, io_listen and IO_ACCEPT. */
void sim_limit_descriptors(struct sim *sim, unsigned limit);
unsigned sim_open_descriptors(const struct sim *sim);
/* Systems without this family (AF_UNSPEC: they have all): EAFNOSUPPORT from io_socket. */
void sim_lack_family(struct sim *sim, int family);
/* What becomes of a descriptor when its process is killed; the ios that used it are disposed of already. */
void sim_close_descriptor(struct sim *sim, int fd);
/* Connections to any port of that host that were begun, refused and lost ones among them. */
uint64_t sim_connects(struct sim *sim, const char *host);
/* Connections that wait in the backlog of the listener at `endpoint`. */
unsigned sim_backlog(struct sim *sim, const char *endpoint);

/* What a kernel may do at any time. Chances in 1/1000; all 0 at first, but batch_max 64 and buffer_bytes
 * 4096. */
struct sim_faults {
    uint32_t no_buffers;    /* a receive with bytes ready ends with ENOBUFS */
    uint32_t multishot_end; /* an accept or receive delivers its result as the last, though it could go on */
    uint32_t short_send;    /* a send takes fewer bytes than there is room for */
    uint32_t batch_max;     /* completions per io_wait: 1 to this, seeded. > 0 */
    uint32_t buffer_bytes;  /* the most bytes of one receive. > 0 */
};
void sim_set_faults(struct sim *sim, const struct sim_faults *faults);

/* ---- Descriptors of memory, for IO_READ and IO_WRITE ---- */

/* A pipe opened for both: IO_WRITE appends (waits while full, short at the limit), IO_READ takes (waits while
 * empty). Closed with IO_CLOSE or sim_free. */
int sim_pipe(struct sim *sim, size_t capacity_bytes);
size_t sim_pipe_put(struct sim *sim, int fd, const void *bytes, size_t size); /* returns how many fitted */
size_t sim_pipe_take(struct sim *sim, int fd, void *out, size_t size); /* returns how many there were */
/* From now on writes and reads fail with this negative errno; 0: they work. */
void sim_pipe_fail(struct sim *sim, int fd, int error);

/* ---- Names ---- */

#define SIM_HANGS NEVER

struct sim_answer {
    int error;                                 /* 0, PE_NAME_NOT_FOUND, PE_NAME_FAILED, PE_NAME_BUSY */
    const char *addresses[RESOLVER_ADDRESSES]; /* hosts; up to the first NULL */
    uint64_t delay_ns;                         /* SIM_HANGS: no answer, ever */
    uint64_t valid_ns;                         /* 0: a minute */
};

/* A resolver whose answers are called on the loop, through a task and the board as the real one's. Addresses
 * written as text are answered without a script; other names without one are PE_NAME_NOT_FOUND after 1 ms. */
struct resolver *sim_resolver(struct sim *sim, struct loop *loop);
void sim_set_name(struct sim *sim, const char *name, const struct sim_answer *answer); /* copied */
uint64_t sim_lookups(const struct sim *sim, const char *name);                         /* of all resolvers */

/* ---- Scripted peers ---- */

struct sim_connection;

enum sim_step_kind {
    SIM_STEP_EXPECT, /* waits until `match` finds its message at the start of the untaken bytes; takes it */
    SIM_STEP_SEND,
    SIM_STEP_WAIT,
    SIM_STEP_CALL,
    SIM_STEP_EXPECT_END,
    SIM_STEP_SHUTDOWN,
    SIM_STEP_CLOSE,
    SIM_STEP_RESET,
    SIM_STEP_STOP_READING,
    SIM_STEP_DISCARD,
    SIM_STEP_AGAIN
};

struct sim_step;

/* The size of the message at the start of `bytes`, 0 while it is incomplete. */
typedef size_t sim_match(struct span bytes, const struct sim_step *step);

struct sim_step {
    enum sim_step_kind kind;
    const void *data; /* SEND: the bytes. EXPECT: what `match` takes it for */
    uint64_t number;  /* bytes, ns */
    sim_match *match;
    void (*call)(struct sim_connection *c, void *context); /* CALL: may use everything below */
    void *context;
};

/* Expectations take their bytes and go on; a peer whose expectation is not met waits there. */
#define SIM_EXPECT_BYTES(n)                                              \
    {                                                                    \
        .kind = SIM_STEP_EXPECT, .match = sim_match_bytes, .number = (n) \
    }
#define SIM_EXPECT_UNTIL(text)                                            \
    {                                                                     \
        .kind = SIM_STEP_EXPECT, .match = sim_match_until, .data = (text) \
    }
/* One HTTP/1.1 head and the body its Content-Length or chunked coding frames (no body without either). */
#define SIM_EXPECT_HTTP                                  \
    {                                                    \
        .kind = SIM_STEP_EXPECT, .match = sim_match_http \
    }
#define SIM_EXPECT_END              \
    {                               \
        .kind = SIM_STEP_EXPECT_END \
    } /* the other side's end of stream; bytes before it are skipped */
#define SIM_SEND(text)                                                    \
    {                                                                     \
        .kind = SIM_STEP_SEND, .data = (text), .number = sizeof(text) - 1 \
    } /* a string literal */
#define SIM_SEND_BYTES(bytes, size)                              \
    {                                                            \
        .kind = SIM_STEP_SEND, .data = (bytes), .number = (size) \
    } /* kept by the test */
#define SIM_WAIT(ns)                          \
    {                                         \
        .kind = SIM_STEP_WAIT, .number = (ns) \
    }
#define SIM_CALL(function, pointer)                                     \
    {                                                                   \
        .kind = SIM_STEP_CALL, .call = (function), .context = (pointer) \
    }
#define SIM_SHUTDOWN              \
    {                             \
        .kind = SIM_STEP_SHUTDOWN \
    } /* after what was sent */
#define SIM_CLOSE              \
    {                          \
        .kind = SIM_STEP_CLOSE \
    } /* after what was sent; with unread bytes: a reset */
#define SIM_RESET              \
    {                          \
        .kind = SIM_STEP_RESET \
    } /* at once */
#define SIM_STOP_READING              \
    {                                 \
        .kind = SIM_STEP_STOP_READING \
    } /* the window fills, the sender stalls */
#define SIM_DISCARD              \
    {                            \
        .kind = SIM_STEP_DISCARD \
    } /* from here on takes and forgets all bytes */
#define SIM_AGAIN              \
    {                          \
        .kind = SIM_STEP_AGAIN \
    } /* from the first step */

sim_match sim_match_bytes, sim_match_until, sim_match_http;

/* A server: each connection it accepts runs `script` (kept by the test) from its first step. After the last
 * step a connection stays open and takes bytes. An accepted connection's script may differ: see
 * sim_server_script. */
struct sim_server;
struct sim_server *sim_server(struct sim *sim, const char *endpoint, const struct sim_step *script,
                              unsigned steps);
/* The script of the connections accepted from now on. */
void sim_server_script(struct sim_server *server, const struct sim_step *script, unsigned steps);
/* No more connections: new ones are refused. Those that exist go on. May be opened again. */
void sim_server_listen(struct sim_server *server, bool listening);
unsigned sim_server_accepted(const struct sim_server *server);
struct sim_connection *sim_server_connection(struct sim_server *server,
                                             unsigned index); /* in order of accept */

/* A client from `host`: connects now and runs the script once connected. */
struct sim_connection *sim_client(struct sim *sim, const char *host, const char *endpoint,
                                  const struct sim_step *script, unsigned steps);

/* What became of a peer's connection. It, and the bytes, stay until sim_free. */
bool sim_script_done(const struct sim_connection *c);     /* its last step is made */
unsigned sim_script_step(const struct sim_connection *c); /* index of the step it is at */
bool sim_connected(const struct sim_connection *c);
bool sim_peer_ended(const struct sim_connection *c);         /* the other side's end, or reset, has arrived */
int sim_peer_error(const struct sim_connection *c);          /* 0, -ECONNREFUSED, -ECONNRESET */
struct span sim_received(const struct sim_connection *c);    /* all bytes so far (none of those discarded) */
uint64_t sim_received_bytes(const struct sim_connection *c); /* their number, with those discarded */
struct span sim_taken(const struct sim_connection *c);       /* the message the last EXPECT took */
struct sim *sim_of(const struct sim_connection *c);
/* For long runs: forgets the bytes that were taken, and all once the connection is closed. sim_taken and
 * sim_received are of what is left. */
void sim_forget(struct sim_connection *c);

/* From a CALL, or from the test between runs. */
void sim_peer_send(struct sim_connection *c, const void *bytes, size_t size); /* copied; any size */
void sim_peer_shutdown(struct sim_connection *c);
void sim_peer_close(struct sim_connection *c);
void sim_peer_reset(struct sim_connection *c);
void sim_peer_read(struct sim_connection *c, bool reading);

#endif
