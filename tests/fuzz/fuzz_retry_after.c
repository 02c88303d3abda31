/* Retry-After and dates from any bytes: no crash, and no wait beyond the limit. The first bytes are the wall
 * clock, a zero byte parts the value from the reply's date. */
#include "wire/retry_after.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t wall_ms;
    if (size < sizeof wall_ms)
        return 0;
    memcpy(&wall_ms, data, sizeof wall_ms);
    data += sizeof wall_ms, size -= sizeof wall_ms;
    const uint8_t *zero = size ? memchr(data, 0, size) : NULL;
    size_t value_size = zero ? (size_t)(zero - data) : size;
    struct span value = span_of(data, value_size);
    struct span date = zero ? span_of(zero + 1, size - value_size - 1) : span_of(NULL, 0);
    if (retry_after_ns(value, date, wall_ms) > RETRY_AFTER_MAX_NS)
        abort();
    int64_t seconds;
    if (http_date_parse(value, (int64_t)(wall_ms / 1000), &seconds) == 0 && value.size < 24)
        abort(); /* the shortest form has 24 bytes */
    return 0;
}
