/* How a fuzzer's input says how its message is cut: two 16-bit places, then the message. */
#ifndef PURE_TESTS_FUZZ_INPUT_H
#define PURE_TESTS_FUZZ_INPUT_H

#include "tests/unit/http_drive.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_CUTS_SIZE 4

/* Takes the two places off the front of `input`, which has them. */
static inline struct cuts fuzz_cuts(struct span *input)
{
    const uint8_t *data = input->data;
    *input = span_of(data + FUZZ_CUTS_SIZE, input->size - FUZZ_CUTS_SIZE);
    size_t a = (size_t)(data[0] << 8 | data[1]) % (input->size + 1);
    size_t b = (size_t)(data[2] << 8 | data[3]) % (input->size + 1);
    return (struct cuts){.at = {min_size(a, b), a > b ? a : b}, .count = 2};
}

static inline void fuzz_same(const struct outcome *a, const struct outcome *b)
{
    if (!outcome_equal(a, b))
        abort();
}

#endif
