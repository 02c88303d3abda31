/* A run of records: record_scan and record_get agree on what lies whole in it, whatever its bytes. */
#include "core/record.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MAX_RECORD 1000

static void check(struct span run, uint64_t max_records)
{
    struct record_scan scan = record_scan(run, MAX_RECORD, max_records);
    const uint8_t *at = run.data, *end = run.data + run.size;
    uint64_t records = 0;
    struct span record = {NULL, 0};
    for (; records < scan.records; records++) {
        size_t framed = record_get(at, end, &record);
        if (framed == 0 || record.size > MAX_RECORD || record.data + record.size != at + framed)
            abort();
        at += framed;
    }
    if ((size_t)(at - run.data) != scan.bytes || scan.records > max_records)
        abort();
    if (scan.records == max_records || scan.error)
        return;
    if (record_get(at, end, &record) != 0) /* the scan stopped before a whole record */
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    uint8_t *copy = malloc(size);
    if (!copy)
        abort();
    memcpy(copy, data, size);
    struct span run = span_of(copy + 1, size - 1);
    check(run, copy[0]);
    check(run, UINT64_MAX);
    free(copy);
    return 0;
}
