/* What a wire is told: plain values, filled by the host from its configuration. */
#ifndef PURE_WIRE_OPTIONS_H
#define PURE_WIRE_OPTIONS_H

#include "core/clock.h"
#include "wire/url.h"

enum wire_mode {
    WIRE_WEBHOOK, /* one record a request, to any HTTP endpoint */
    WIRE_BATCH,   /* many records a request, one JSON value a line (NDJSON), to any HTTP endpoint */
    WIRE_PURE,    /* many records a request, numbered, to another host: docs/records-protocol.md */
};

#define WIRE_SOURCE_MAX  200 /* bytes of HOST/APP/OUTPUT */
#define WIRE_EVENT_MAX   64
#define WIRE_EPOCH_BYTES 16

/* Texts are read by wire_init only; they may hold no control bytes (they become header fields). */
struct wire_options {
    struct url url; /* http only */
    enum wire_mode mode;
    const char *agent;               /* the User-Agent: pure-host/VERSION */
    const char *source;              /* pure: who sends, HOST/APP/OUTPUT */
    const char *event;               /* pure: the name of the events at the receiving app */
    const char *token;               /* Authorization: Bearer; NULL: none */
    const char *content_type;        /* webhook; NULL: application/json */
    uint8_t epoch[WIRE_EPOCH_BYTES]; /* random, new for each numbering of the records from 1 */
    uint64_t batch_bytes;   /* pure, batch: most bytes of a body, unless one record alone is larger */
    uint32_t batch_records; /* pure, batch: most records of a body; 0: no limit */
    uint32_t pipeline;      /* requests in flight; 0: 2 for pure, else 1. Above 1 for pure only */
    uint32_t attempts;      /* refusals of one record in a row, then it is a dead letter; 0: never */
    uint64_t progress_ns;   /* connecting or sending without progress; a lookup without an answer */
    uint64_t reply_ns;      /* from a request's last byte to the reply's head */
    uint64_t total_ns;      /* one exchange */
    uint64_t backoff_min_ns;
    uint64_t backoff_max_ns;
    uint64_t seed; /* of the jitter */
};

/* All limits to their defaults (256 KiB, no limit, 0, 0, 10 s, 30 s, 5 min, 100 ms, 60 s), mode webhook, no
 * texts, no URL. */
void wire_options_default(struct wire_options *options);

/* 0, or PE_CONFIG with `*why` (static) saying what is wrong. */
int wire_options_check(const struct wire_options *options, const char **why);

#endif
