/* One input, every way it can come: what each test of the HTTP parsers runs its cases through. */
#ifndef PURE_TESTS_HTTP_WAYS_H
#define PURE_TESTS_HTTP_WAYS_H

#include "http_drive.h"
#include "core/random.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

typedef struct outcome drive_fn(struct span input, const struct cuts *cuts, void *context);

/* Inputs up to this are cut at every place, longer ones at some. */
#define WAYS_ALL_MAX 1200
#define WAYS_RANDOM  60

static void same_outcome(struct span input, const struct cuts *cuts, drive_fn *drive, void *context,
                         const struct outcome *whole)
{
    struct outcome o = drive(input, cuts, context);
    if (!outcome_equal(&o, whole))
        print_error("cut at %zu, %zu (every: %d): error %d used %zu status %u, not %d %zu %u\n%.*s\n",
                    cuts->at[0], cuts->at[1], cuts->every, o.error, o.used, o.status, whole->error,
                    whole->used, whole->status, (int)min_size(input.size, 400), (const char *)input.data);
    assert_true(outcome_equal(&o, whole));
}

/* The outcome of the whole, which every way of cutting it has, too. */
static struct outcome every_way(struct span input, drive_fn *drive, void *context)
{
    struct cuts cuts = {.count = 0};
    struct outcome whole = drive(input, &cuts, context);
    struct random random = {input.size};
    if (input.size <= WAYS_ALL_MAX) {
        same_outcome(input, &(struct cuts){.every = true}, drive, context, &whole);
        for (size_t i = 1; i < input.size; i++)
            same_outcome(input, &(struct cuts){.at = {i}, .count = 1}, drive, context, &whole);
    }
    for (unsigned i = 0; i < WAYS_RANDOM && input.size > 2; i++) {
        size_t a = 1 + random_below(&random, input.size - 1), b = 1 + random_below(&random, input.size - 1);
        cuts = (struct cuts){.at = {min_size(a, b), a > b ? a : b}, .count = 2};
        same_outcome(input, &cuts, drive, context, &whole);
    }
    return whole;
}

/* Every prefix is incomplete until the whole is decided, and then decided as the whole is. `drive` ends no
 * stream. */
static void every_prefix(struct span input, drive_fn *drive, void *context, const struct outcome *whole)
{
    size_t step = input.size <= WAYS_ALL_MAX ? 1 : 97;
    int last = PE_INCOMPLETE;
    for (size_t size = 0; size < input.size; size += step) {
        struct cuts cuts = {.count = 0};
        struct outcome o = drive(span_of(input.data, size), &cuts, context);
        if (whole->error == 0)
            assert_int_equal(o.error, size < whole->used ? PE_INCOMPLETE : 0);
        else if (o.error != PE_INCOMPLETE || last != PE_INCOMPLETE)
            assert_int_equal(o.error, whole->error);
        last = o.error;
    }
}

/* `piece`, `times` over, between `before` and `after`, in static memory. */
static struct span repeated(const char *before, const char *piece, size_t times, const char *after)
{
    static uint8_t text[1 << 19];
    size_t size = strlen(before), one = strlen(piece), tail = strlen(after);
    assert_true(size + one * times + tail <= sizeof text);
    memcpy(text, before, size);
    for (size_t i = 0; i < times; i++, size += one)
        memcpy(text + size, piece, one);
    memcpy(text + size, after, tail);
    return span_of(text, size + tail);
}

#endif
