#include "host/sink.h"

#include "core/error.h"
#include "host/heap.h"
#include "host/turn_guard.h"

#include <errno.h>
#include <stdlib.h>

static int grow(struct pure_sink *sink, size_t size)
{
    if (size > sink->limit)
        return PE_TOO_LARGE;
    size_t capacity = sink->capacity ? sink->capacity : 256;
    while (capacity < size)
        capacity *= 2;
    struct heap_account *account = heap_host_begin();
    uint8_t *data = realloc(sink->data, capacity);
    heap_host_end(account);
    if (!data)
        return -ENOMEM;
    sink->data = data;
    sink->capacity = capacity;
    return 0;
}

int pure_write(struct pure_sink *sink, const void *data, size_t size)
{
    guard_pass();
    if (sink->error == 0 && size > sink->limit - sink->size)
        sink->error = PE_TOO_LARGE;
    if (sink->error == 0 && sink->size + size > sink->capacity)
        sink->error = grow(sink, sink->size + size);
    if (sink->error == 0 && size > 0) {
        memcpy(sink->data + sink->size, data, size);
        sink->size += size;
    }
    return sink->error;
}

void sink_dispose(struct pure_sink *sink)
{
    free(sink->data);
    *sink = (struct pure_sink){0};
}
