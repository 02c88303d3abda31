/* CRC-32C: the published vectors, and all ways to compute it agree. */
#include "core/bytes.h"
#include "journal/crc32c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define BIG 50000 /* some blocks of every kind, and what is left of them */

/* The definition, a bit at a time. */
static uint32_t by_definition(const uint8_t *data, size_t size)
{
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < size; i++) {
        crc ^= data[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
    }
    return ~crc;
}

static void fill(uint8_t *data, size_t size, uint64_t seed)
{
    for (size_t i = 0; i < size; i++) {
        seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        data[i] = (uint8_t)(seed >> 56);
    }
}

static void expect(const uint8_t *data, size_t size, uint32_t crc)
{
    assert_int_equal(crc32c(0, data, size), crc);
    assert_int_equal(crc32c_portable(0, data, size), crc);
}

/* RFC 3720, appendix B.4; there, the bytes of the CRC are in the order of sending, the lowest first. */
static void the_vectors_of_rfc_3720_are_met(void **state)
{
    (void)state;
    uint8_t data[32];
    static const uint8_t read_command[48] = {
        [0] = 0x01, [1] = 0xc0, [16] = 0x14, [22] = 0x04, [27] = 0x14, [31] = 0x18, [32] = 0x28, [40] = 0x02};
    memset(data, 0, sizeof data);
    expect(data, sizeof data, 0x8a9136aa);
    memset(data, 0xff, sizeof data);
    expect(data, sizeof data, 0x62a8ab43);
    for (uint8_t i = 0; i < sizeof data; i++)
        data[i] = i;
    expect(data, sizeof data, 0x46dd794e);
    for (uint8_t i = 0; i < sizeof data; i++)
        data[i] = 31 - i;
    expect(data, sizeof data, 0x113fdb5c);
    expect(read_command, sizeof read_command, 0xd9963a56);
}

static void no_bytes_leave_it_as_it_was(void **state)
{
    (void)state;
    assert_int_equal(crc32c(0, NULL, 0), 0);
    assert_int_equal(crc32c(0x12345678, "", 0), 0x12345678);
    assert_int_equal(crc32c_portable(0x12345678, "", 0), 0x12345678);
}

static void every_size_from_every_alignment_is_as_the_definition_says(void **state)
{
    (void)state;
    uint8_t data[900];
    fill(data, sizeof data, 1);
    for (size_t from = 0; from < 9; from++) {
        for (size_t size = 0; size < sizeof data - 9; size++)
            expect(data + from, size, by_definition(data + from, size));
    }
}

static void large_buffers_are_as_the_definition_says(void **state)
{
    (void)state;
    static const size_t sizes[] = {3 * 256 - 1,  3 * 256,      3 * 4096 - 1, 3 * 4096,
                                   3 * 4096 + 1, 6 * 4096 + 7, BIG - 1};
    uint8_t *data = malloc(BIG);
    assert_non_null(data);
    fill(data, BIG, 2);
    for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
        expect(data, sizes[i], by_definition(data, sizes[i]));
        expect(data + 1, sizes[i], by_definition(data + 1, sizes[i]));
    }
    free(data);
}

static void it_goes_on_where_it_was_cut(void **state)
{
    (void)state;
    uint8_t *data = malloc(BIG);
    assert_non_null(data);
    fill(data, BIG, 3);
    uint32_t whole = by_definition(data, BIG);
    for (size_t cut = 0; cut <= BIG; cut += cut < 1000 ? 1 : 997) {
        assert_int_equal(crc32c(crc32c(0, data, cut), data + cut, BIG - cut), whole);
        assert_int_equal(crc32c_portable(crc32c_portable(0, data, cut), data + cut, BIG - cut), whole);
    }
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_vectors_of_rfc_3720_are_met),
        cmocka_unit_test(no_bytes_leave_it_as_it_was),
        cmocka_unit_test(every_size_from_every_alignment_is_as_the_definition_says),
        cmocka_unit_test(large_buffers_are_as_the_definition_says),
        cmocka_unit_test(it_goes_on_where_it_was_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
