/* Where an app writes its shown state and its snapshots: bytes that grow up to a limit. */
#ifndef PURE_HOST_SINK_H
#define PURE_HOST_SINK_H

#include "core/bytes.h"
#include "host/app.h"

struct pure_sink {
    uint8_t *data;
    size_t size, capacity, limit;
    int error; /* the first failure; what was written before it stays */
};

static inline void sink_init(struct pure_sink *sink, size_t limit)
{
    *sink = (struct pure_sink){.limit = limit};
}

void sink_dispose(struct pure_sink *sink);

/* Forgets what was written; keeps the memory. */
static inline void sink_clear(struct pure_sink *sink)
{
    sink->size = 0;
    sink->error = 0;
}

#endif
