/* What a wire is told: plain values, filled by the host from its configuration. */
#ifndef PURE_WIRE_OPTIONS_H
#define PURE_WIRE_OPTIONS_H

#include "core/clock.h"
#include "core/networks.h"
#include "noise/key.h"
#include "tls/context.h"
#include "wire/url.h"

enum wire_mode {
    WIRE_WEBHOOK, /* one record a request, to any HTTP endpoint */
    WIRE_BATCH,   /* many records a request, one JSON value a line (NDJSON), to any HTTP endpoint */
    WIRE_PURE,    /* many records a request, numbered, to another host: docs/records-protocol.md */
};

#define WIRE_SOURCE_MAX      200 /* bytes of HOST/APP/OUTPUT */
#define WIRE_EVENT_MAX       64
#define WIRE_EPOCH_BYTES     16
#define WIRE_SECRETS_MAX     4
#define WIRE_SECRET_BYTES    64
#define WIRE_HEADERS_MAX     32
#define WIRE_CONCURRENCY_MAX 64
#define WIRE_MEMBER_MAX      128

/* One of the keys that webhook requests are signed with; several while they are rotated. */
struct wire_secret {
    enum { WIRE_HMAC, WIRE_ED25519 } kind;
    uint32_t size; /* bytes of `key`: HMAC 24 to 64; ed25519 32, the seed */
    uint8_t key[WIRE_SECRET_BYTES];
};

/* A header of the configuration; the value is a template (docs/wires.md). */
struct wire_header {
    const char *name;  /* a token, none that the wire writes itself */
    const char *value; /* template.h */
};

/* What final statuses mean: a bit a status, status - 100. What is in none of them is a failure that is tried
 * again. A status is in one of them at most. */
#define WIRE_STATUSES 500
struct wire_statuses {
    uint64_t bits[(WIRE_STATUSES + 63) / 64];
};

static inline bool wire_statuses_have(const struct wire_statuses *s, unsigned status)
{
    unsigned bit = status - 100;
    return bit < WIRE_STATUSES && (s->bits[bit / 64] >> bit % 64 & 1) != 0;
}

static inline void wire_statuses_add(struct wire_statuses *s, unsigned from, unsigned to)
{
    for (unsigned bit = from - 100; bit <= to - 100 && bit < WIRE_STATUSES; bit++)
        s->bits[bit / 64] |= UINT64_C(1) << bit % 64;
}

static inline void wire_statuses_remove(struct wire_statuses *s, unsigned status)
{
    unsigned bit = status - 100;
    if (bit < WIRE_STATUSES)
        s->bits[bit / 64] &= ~(UINT64_C(1) << bit % 64);
}

/* A proxy that all connections of a wire go through: with CONNECT for https, with the whole URL in the
 * request line for http (RFC 9110 section 9.3.6, RFC 9112 section 3.2.2). */
struct wire_proxy {
    struct url url;            /* http only; its target means nothing */
    const char *authorization; /* the value of Proxy-Authorization; NULL: none */
};

/* Texts are read by wire_init only; they may hold no control bytes (they become header fields). */
struct wire_options {
    struct url url;
    enum wire_mode mode;
    const char *agent;        /* the User-Agent: pure-host/VERSION */
    const char *source;       /* pure: who sends, HOST/APP/OUTPUT; for templates, too */
    const char *event;        /* pure: the name of the events at the receiving app; for templates, too */
    const char *token;        /* Authorization: Bearer; NULL: none */
    const char *content_type; /* webhook; NULL: application/json */
    uint8_t epoch[WIRE_EPOCH_BYTES]; /* random, new for each numbering of the records from 1 */
    uint64_t batch_bytes;   /* pure, batch: most bytes of a body, unless one record alone is larger */
    uint32_t batch_records; /* pure, batch: most records of a body; 0: no limit */
    uint64_t batch_wait_ns; /* batch: how long a body that is not full waits for more; 0: not at all */
    uint32_t pipeline;      /* requests in flight; 0: 2 for pure, else 1. Above 1 for pure only */
    uint32_t attempts;      /* refusals of one record in a row, then it is a dead letter; 0: never */
    uint64_t progress_ns;   /* connecting or sending without progress; a lookup without an answer */
    uint64_t reply_ns;      /* from a request's last byte to the reply's head */
    uint64_t total_ns;      /* one exchange */
    uint64_t backoff_min_ns;
    uint64_t backoff_max_ns;
    uint64_t seed; /* of the jitter */

    /* webhook, batch */
    struct wire_secret secrets[WIRE_SECRETS_MAX]; /* in the order of the signatures */
    unsigned secret_count;                        /* 0: requests are not signed */
    struct wire_header headers[WIRE_HEADERS_MAX];
    unsigned header_count;
    int gzip;                      /* level 1 to 9 of bodies' Content-Encoding; 0: none */
    struct wire_statuses stored;   /* default 2xx */
    struct wire_statuses refused;  /* default 4xx, but for those about the sender or the moment */
    struct wire_statuses disables; /* default 410 */
    uint32_t disable_failures;     /* so many failures in a row disable the output; 0: none do */
    uint64_t disable_ns;           /* so long without a success while it is tried; 0: none does */
    uint64_t rate_mhz;    /* requests in 1000 s at most (a mean, with one second's worth at once); 0: any */
    uint32_t concurrency; /* webhook: requests in flight at a time, each on its connection; 0 is 1 */
    const char *order_by; /* webhook, concurrency > 1: top-level JSON member; records that have the same
                             there are sent one after the other. NULL: no order */

    /* connections */
    uint64_t connection_age_ns; /* none is used for longer; 0: for ever */
    bool proxied;
    struct wire_proxy proxy;
    const struct networks *egress; /* where connections may go to; NULL: anywhere. Outlives the wire */
    struct tls_current *tls;       /* https: outlives the wire */

    /* pure: the body is sealed to the receiver (docs/records-protocol.md). Outlive the wire */
    const uint8_t *seal_to;           /* its public key, 32 bytes; NULL: not sealed */
    const struct host_key *seal_with; /* this host's */
    struct noise_random seal_random;  /* for a fresh key a request */
};

/* All limits to their defaults (256 KiB, no limit, 0, 0, 10 s, 30 s, 5 min, 100 ms, 60 s), mode webhook, no
 * texts, no URL, statuses as above. */
void wire_options_default(struct wire_options *options);

/* The default statuses of a mode: 409 is no refusal in mode pure. */
void wire_options_statuses(struct wire_options *options);

/* Of one of the headers, in these options: NULL, or what is wrong with it (static, and without its value). */
const char *wire_header_check(const struct wire_options *options, const struct wire_header *header);

/* 0, or PE_CONFIG with `*why` (static, and without secrets) saying what is wrong. */
int wire_options_check(const struct wire_options *options, const char **why);

#endif
