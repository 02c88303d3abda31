/* Compressed bodies: they come back whole, are the same each time, and never grow. */
#include "wire/gzip.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define ROOM (1 << 16)

static uint8_t content[ROOM], packed[ROOM], again[ROOM], unpacked[ROOM];

/* Lines that look like records. */
static struct span lines(size_t size)
{
    static const char line[] = "{\"device\":\"pump-7\",\"state\":\"running\",\"value\":";
    for (size_t i = 0; i < size; i++)
        content[i] = i % 64 < sizeof line - 1 ? (uint8_t)line[i % 64] : (uint8_t)('0' + i / 64 % 10);
    return span_of(content, size);
}

static struct span noise(size_t size)
{
    uint64_t seed = 7;
    for (size_t i = 0; i < size; i++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        content[i] = (uint8_t)(seed >> 56);
    }
    return span_of(content, size);
}

static void assert_unpacks(const uint8_t *from, size_t size, struct span expected)
{
    z_stream z = {.next_in = (Bytef *)from, .avail_in = (uInt)size, .next_out = unpacked, .avail_out = ROOM};
    assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK); /* gzip's frame only, with its checksum */
    assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
    assert_int_equal(z.avail_in, 0);
    assert_int_equal(z.total_out, expected.size);
    assert_memory_equal(unpacked, expected.data, expected.size);
    inflateEnd(&z);
}

static void every_level_gives_the_content_back(void **state)
{
    (void)state;
    size_t first = 0, last = 0;
    for (int level = 1; level <= 9; level++) {
        struct gzip g;
        assert_int_equal(gzip_init(&g, level), 0);
        struct span body = lines(50000);
        size_t size = gzip_write(&g, body, packed);
        assert_true(size > 0 && size < body.size / 4);
        assert_unpacks(packed, size, body);
        gzip_dispose(&g);
        first = level == 1 ? size : first;
        last = size;
    }
    assert_true(last < first);
}

static void the_same_content_gives_the_same_bytes(void **state)
{
    (void)state;
    struct gzip g;
    assert_int_equal(gzip_init(&g, 6), 0);
    size_t size = gzip_write(&g, lines(3000), packed);
    assert_true(size > 0);
    for (unsigned i = 0; i < 4; i++) {
        gzip_write(&g, i % 2 ? noise(20000) : lines(200 * i + 100), again);
        assert_int_equal(gzip_write(&g, lines(3000), again), size);
        assert_memory_equal(again, packed, size);
    }
    gzip_dispose(&g);
}

static void what_would_not_become_smaller_is_not_compressed(void **state)
{
    (void)state;
    struct gzip g;
    assert_int_equal(gzip_init(&g, 9), 0);
    assert_int_equal(gzip_write(&g, span_of(NULL, 0), packed), 0);
    bool compressed = false;
    for (size_t size = 1; size < 400; size++) {
        memset(packed, '#', sizeof packed);
        size_t got = gzip_write(&g, lines(size), packed);
        assert_true(got < size);
        assert_int_equal(packed[size], '#'); /* nothing behind the room it has */
        assert_true(got > 0 || !compressed); /* these only gain by growing */
        compressed |= got > 0;
        if (got > 0)
            assert_unpacks(packed, got, span_of(content, size));
    }
    assert_true(compressed);
    assert_int_equal(gzip_write(&g, noise(ROOM), packed), 0);
    gzip_dispose(&g);
}

/* Counts nothing under sanitizers, whose own allocator does not fill mallinfo. */
static void no_body_allocates(void **state)
{
    (void)state;
    struct gzip g;
    assert_int_equal(gzip_init(&g, 6), 0);
    size_t before = mallinfo2().uordblks;
    for (unsigned i = 0; i < 8; i++) {
        gzip_write(&g, lines(1000 * i), packed);
        assert_int_equal(mallinfo2().uordblks, before);
    }
    gzip_dispose(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_level_gives_the_content_back),
        cmocka_unit_test(the_same_content_gives_the_same_bytes),
        cmocka_unit_test(what_would_not_become_smaller_is_not_compressed),
        cmocka_unit_test(no_body_allocates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
