/* Record framing: how records lie one behind the other, in queues, in the body of a records request and
 * (later) in links and segments alike, so that a run of them is copied or sent whole.
 *
 *     record = size (variable-length integer, RFC 9000 section 16), then `size` bytes
 *
 * A run is zero or more records; it has no header and no trailer. */
#ifndef PURE_CORE_RECORD_H
#define PURE_CORE_RECORD_H

#include "core/bytes.h"
#include "core/error.h"

/* The largest record unless the configuration says less. */
#define RECORD_MAX_BYTES (1u << 20)

static inline size_t record_framed_size(size_t size)
{
    return varint_size(size) + size;
}

/* Reads the record at `at`. Returns its framed size and sets `*data`, or 0 (and `*data` empty) if [at, end)
 * does not hold it whole. */
static inline size_t record_get(const uint8_t *at, const uint8_t *end, struct span *data)
{
    uint64_t size;
    *data = span_of(at, 0);
    size_t prefix = varint_get(at, end, &size);
    if (prefix == 0 || size > (size_t)(end - at) - prefix)
        return 0;
    *data = span_of(at + prefix, (size_t)size);
    return prefix + (size_t)size;
}

/* What lies whole at the front of some bytes. */
struct record_scan {
    size_t bytes;     /* of whole records */
    uint64_t records; /* how many they are */
    int error;        /* PE_TOO_LARGE if the next record states a size over the limit, else 0 */
};

/* Counts whole records at the front of `bytes`, at most `max_records` of them. */
static inline struct record_scan record_scan(struct span bytes, size_t max_record, uint64_t max_records)
{
    struct record_scan scan = {0, 0, 0};
    const uint8_t *at = bytes.data, *end = at + bytes.size;
    while (scan.records < max_records) {
        uint64_t size;
        size_t prefix = varint_get(at, end, &size);
        if (prefix == 0)
            break;
        if (size > max_record) {
            scan.error = PE_TOO_LARGE;
            break;
        }
        if (size > (size_t)(end - at) - prefix)
            break;
        at += prefix + size;
        scan.records++;
    }
    scan.bytes = (size_t)(at - bytes.data);
    return scan;
}

#endif
