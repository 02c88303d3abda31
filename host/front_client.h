/* One connection of the front.
 *
 * Input: bytes are parsed where they were received, within the connection's visit (front.h); what cannot be
 * taken yet (a head that is not whole, requests behind the visit's, or behind the 64th unanswered one) is
 * kept and comes first when more comes, or with the next visit, for which the connection waits in line.
 * Replies: an exchange a request, in order, each answered once its body is in and its results are there.
 *
 *     reading   a head, a body, or nothing more: after the last request everything is discarded
 *     end       the last reply is sent; if the client may be sending still, we shut down our half and
 *               discard for a while (lingering), so that it sees the reply and not a reset */
#ifndef PURE_HOST_FRONT_CLIENT_H
#define PURE_HOST_FRONT_CLIENT_H

#include "host/front_routes.h"
#include "tls/secure_stream.h"

struct client_sealed;

#define FRONT_PIPELINE     64   /* unanswered requests; a power of two */
#define FRONT_OUTPUT_BYTES 4096 /* replies that go in one send */

#define FRONT_VISIT 8 /* requests of one connection that a round of the front begins; each is some 2 us */

/* Who has begun no request for so long begins one past the line. */
#define FRONT_LIGHT_NS (10 * NS_PER_MS)

/* A connection that waits in line is read on while less than so much of it is kept: then the next visit finds
 * its requests here, without a receive that is armed anew for each. */
#define FRONT_KEEP_BYTES (16 * 1024)

enum exchange_kind { EXCHANGE_EVENTS, EXCHANGE_RECORDS, EXCHANGE_SHOW, EXCHANGE_DEAD, EXCHANGE_TEXT };

/* One request and what is to be answered. Ready when !receiving && runs == 0. An EXCHANGE_TEXT is written
 * only when its reply is the next to go out: unread replies hold one text a connection. */
struct exchange {
    enum exchange_kind kind;
    uint16_t status;       /* 0: by `error` */
    int error;             /* first error of its runs */
    uint32_t runs;         /* put, without a result yet, and it is not given up on */
    uint64_t stored;       /* of the last result */
    uint64_t since_ns;     /* its body is in since then */
    struct front_app *app; /* of its runs, or for whose sake it is declined */
    enum route route;      /* EXCHANGE_TEXT that is not written yet; else ROUTE_NONE */
    const char *refused;   /* text of a refusal */
    const char *type;      /* EXCHANGE_TEXT, EXCHANGE_SHOW, EXCHANGE_DEAD: Content-Type of `text` */
    const char *allow;     /* with 405 */
    uint8_t *text;         /* kept (front_keep), or NULL */
    uint32_t text_size, text_room;
    bool receiving;    /* its body has to come in first */
    bool expects;      /* 100 (Continue) is due before the body comes */
    bool head_only;    /* HEAD */
    bool close;        /* the last on its connection */
    bool says_keep;    /* HTTP/1.0 with keep-alive */
    bool stored_known; /* a result has stated `stored` */
    bool sealed;       /* its reply says nothing in clear but the status … */
    bool proven;       /* … and all of it with the proof (front_sealed.h) */
};

enum body_sink { SINK_DISCARD, SINK_EVENT, SINK_LINES, SINK_RECORDS, SINK_RANGE };

/* The body that comes in: the last exchange's. */
struct front_body {
    struct http_body framing;
    enum body_sink sink;
    uint64_t received; /* content bytes */
    /* where it goes */
    struct front_app *app;
    uint64_t reserved;       /* of its inbox */
    enum dead_action action; /* SINK_RANGE; its output is in `source`, its content in `key` */
    /* content that is kept: a body in pieces; records that are not whole or too few to put */
    uint8_t *bytes;
    uint32_t size, room;
    /* SINK_RECORDS */
    uint32_t whole;         /* bytes[0, whole) are whole records … */
    uint64_t whole_records; /* … so many */
    uint64_t next;          /* number of the next record to put */
    uint64_t base;          /* how many the sender has been told are stored */
    uint64_t asks;          /* as of a run; 0: the body has records */
    uint64_t left;          /* records to come by Pure-Count */
    uint8_t epoch[EPOCH_BYTES];
    uint64_t fresh_ns; /* as of a run */
    bool sealed;       /* the content comes in chunks that have to be opened */
    uint8_t event_size, source_size, identity_size, key_size;
    char event[EVENT_NAME_MAX];
    char source[SOURCE_NAME_MAX];
    char identity[SOURCE_NAME_MAX];
    char key[IDEMPOTENCY_KEY_MAX];
};

enum client_reading { READING_HEAD, READING_BODY, READING_NOTHING };

struct client {
    struct secure_stream secure;
    struct front *front;
    struct client *free_next;
    struct client *ready_next; /* kept over its reuse: the list may hold it still */
    uint32_t index;
    uint32_t generation; /* changes when it ends, so that late results find nobody */
    bool used;
    bool ready; /* in the front's list */
    bool closing;
    bool greeting; /* in the TLS handshake: request_ns is its end */
    bool lingering;
    bool lingers; /* the client may be sending still when the last reply is out */
    bool peer_ended;
    bool surplus; /* over the limit: for one request */
    bool paused;  /* not read: enough requests are unanswered */
    /* front_line.h */
    struct client_line *line; /* it waits there for a visit, with more than a head kept; or NULL. Not read, if
                                 that is much */
    struct client *line_last, *line_next;
    uint64_t since_ns;            /* its place there */
    uint64_t held_until_ns;       /* if that is a line of an app … */
    uint64_t held_bytes;          /* … which it asks for room for so many */
    struct front_app *refused_by; /* refused it, or let it in, in its turn … */
    uint64_t refused_ns;          /* … last then, and since then had no room whenever it asked; or NULL */
    uint64_t refused_bytes;       /* it had no room for then; 0: not known */
    uint64_t refused_since_ns;    /* first refused it then, since it was last let in; 0: let it in last */
    struct front_app *turn_of;    /* it was held for, while it is visited and not refused; else NULL */
    uint8_t visit_left;           /* requests that may begin … */
    uint64_t visit_round;         /* … in this round of the front; with another begins another visit */
    uint64_t begun_ns;            /* its last request; 0: none yet */
    enum client_reading reading;
    /* deadlines; NEVER: does not apply */
    struct timer timer;    /* due no later than the earliest of them */
    uint64_t request_ns;   /* a request has begun: it has to be in */
    uint64_t idle_ns;      /* nothing is asked */
    uint64_t progress_ns;  /* the client has to take bytes of replies */
    uint64_t linger_ns;    /* end of lingering */
    uint64_t linger_bytes; /* discarded while lingering */
    /* input */
    uint8_t *kept; /* [kept_at, kept_size) are not taken yet */
    uint32_t kept_at, kept_size, kept_room;
    size_t scanned; /* of the head at kept_at */
    struct front_body body;
    struct client_sealed *sealed; /* front_sealed.h; NULL: no sealed request has come */
    uint32_t sealed_room;
    /* exchanges [first, end), counted from the start; number n in exchanges[n % FRONT_PIPELINE] */
    uint32_t first, end;
    struct exchange exchanges[FRONT_PIPELINE];
    /* output */
    uint8_t *text; /* of the reply whose head ends the output; freed when all is sent */
    uint32_t text_size, text_room;
    uint32_t output_size;
    char output[FRONT_OUTPUT_BYTES];
};

static inline uint32_t client_unanswered(const struct client *c)
{
    return c->end - c->first;
}

static inline struct exchange *client_exchange(struct client *c, uint32_t number)
{
    return &c->exchanges[number % FRONT_PIPELINE];
}

/* The exchange whose request is being read. */
static inline struct exchange *client_last(struct client *c)
{
    return client_exchange(c, c->end - 1);
}

static inline bool exchange_ready(const struct exchange *x)
{
    return !x->receiving && x->runs == 0;
}

/* The last exchange if it can still be changed: its reply is not written yet. */
static inline struct exchange *client_open_exchange(struct client *c)
{
    return c->first != c->end ? client_last(c) : NULL;
}

static inline void client_body_is_in(struct client *c, struct exchange *x)
{
    if (x->receiving)
        x->since_ns = c->front->loop->now_ns;
    x->receiving = false;
}

/* The front's task is to look at it. */
static inline void client_want(struct client *c)
{
    if (!c->closing)
        front_want(c->front, c);
}

/* Takes a descriptor that was accepted. `surplus`: over the limit. It may ask once, soon, for the host's
 * health, status or metrics; else it is told 503 (client_refuse_surplus). `secured`: it speaks TLS. */
void client_open(struct client *c, int fd, bool surplus, bool secured);

/* The front's task: sends what is ready, reads on, ends. */
void client_run(struct client *c);

/* Its turn has come: so many requests may begin. `turn_of`: the app it was held for, or NULL. */
void client_visit(struct client *c, uint8_t requests, struct front_app *turn_of);

/* A result of one of its runs. */
void client_result(struct client *c, uint32_t exchange, const struct run_result *result);

/* The answer of its request for dead letters; `why`: of its error, or NULL. */
void client_dead_result(struct client *c, uint32_t exchange, const struct run_result *result,
                        const char *why);

/* Answers an exchange without the results it waits for; they find nobody. 503, for events 504: they may still
 * be stored. */
void client_give_up(struct client *c, struct exchange *x);

/* The front stops: closes if nothing is open. */
void client_stop(struct client *c);

/* Ends it without further replies. */
void client_close(struct client *c);

/* Frees what it holds when its io is gone already and nothing can be closed. */
void client_dispose(struct client *c);

/* --- for front_request.c and front_body.c --- */

/* Adds an exchange for a request whose head is read; its body comes now. At most FRONT_PIPELINE. */
struct exchange *client_add_exchange(struct client *c);

/* The last exchange has put a run into the app's inbox and awaits its result. */
void client_awaits(struct client *c, struct front_app *app);

/* The last exchange has asked the app's owner for dead letters. */
void client_awaits_dead(struct client *c, struct front_app *app);

/* Answers the last exchange with a refusal (`text` outlives the connection), at once; the rest of its body is
 * discarded and the connection goes on, or is refused, if that is too much or not sure to come. */
void client_decline(struct client *c, uint16_t status, const char *text);

/* Declines with 503 for the app's sake, which counts for it. */
void client_decline_for(struct client *c, struct front_app *app, const char *text);

/* As client_decline_for, for want of room in the app, of so many bytes (0: not known): if the next request
 * asks for some, it may be held (front_line.h). */
void client_decline_full(struct client *c, struct front_app *app, uint64_t bytes, const char *text);

/* The same as client_decline, and nothing more is read. */
void client_refuse(struct client *c, uint16_t status, const char *text);

/* There are too many connections for what it asks. */
void client_refuse_surplus(struct client *c);

/* Nothing more is read: the connection ends with the replies that are open. */
void client_finish(struct client *c);

#endif
