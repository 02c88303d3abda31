/* Transfer codings of replies, undone: in the inflater by itself, and in a connection that somebody reads. */
#include "wire/connection.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <cmocka.h>

#define TEXT_SIZE 20000

/* --- what is coded --- */

static uint8_t text[TEXT_SIZE];
static uint8_t coded[2 * TEXT_SIZE];

static void make_text(void)
{
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (uint8_t)(i * i >> 5);
}

/* With window bits as zlib's deflateInit2 has them: 31 gzip, 15 zlib's format, -15 bare. */
static struct span code(struct span plain, int window_bits, size_t at)
{
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *)(uintptr_t)plain.data;
    z.avail_in = (uInt)plain.size;
    z.next_out = coded + at;
    z.avail_out = (uInt)(sizeof coded - at);
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    struct span result = span_of(coded + at, sizeof coded - at - z.avail_out);
    deflateEnd(&z);
    return result;
}

/* --- the inflater --- */

static uint8_t decoded[4 * TEXT_SIZE];
static size_t decoded_size;

/* Feeds it `piece` bytes at a time, with `room` for what is made. 0 or the error. */
static int feed(struct inflater *inflater, enum http_coding coding, struct span bytes, size_t piece,
                size_t room)
{
    decoded_size = 0;
    while (bytes.size > 0) {
        struct span now = span_of(bytes.data, min_size(piece, bytes.size));
        bytes = span_of(bytes.data + now.size, bytes.size - now.size);
        for (size_t made = room; now.size > 0 || made == room; decoded_size += made) {
            assert_true(decoded_size + room <= sizeof decoded);
            int error = inflater_take(inflater, coding, &now, decoded + decoded_size, room, &made);
            if (error < 0)
                return error;
        }
    }
    return 0;
}

static void both_codings_are_undone_however_the_bytes_come(void **state)
{
    (void)state;
    static const struct {
        enum http_coding coding;
        int window_bits;
    } formats[] = {{HTTP_GZIP, 31}, {HTTP_DEFLATE, 15}, {HTTP_DEFLATE, -15}};
    static const size_t pieces[] = {1, 7, 1000, sizeof coded}, rooms[] = {100, 4096, 2 * TEXT_SIZE};
    make_text();
    for (size_t i = 0; i < ARRAY_SIZE(formats) * ARRAY_SIZE(pieces) * ARRAY_SIZE(rooms); i++) {
        struct inflater inflater = {0};
        size_t format = i % 3, piece = pieces[i / 3 % 4], room = rooms[i / 12];
        struct span bytes = code(span_of(text, sizeof text), formats[format].window_bits, 0);
        assert_int_equal(feed(&inflater, formats[format].coding, bytes, piece, room), 0);
        assert_true(inflater_end(&inflater));
        assert_int_equal(decoded_size, sizeof text);
        assert_memory_equal(decoded, text, sizeof text);
    }
}

static void gzip_may_have_members(void **state)
{
    (void)state;
    struct inflater inflater = {0};
    struct span one = code(span_text("one"), 31, 0), two = code(span_text("two"), 31, one.size);
    struct span both = span_of(coded, one.size + two.size);
    assert_int_equal(feed(&inflater, HTTP_GZIP, both, 1, 100), 0);
    assert_true(inflater_end(&inflater));
    assert_int_equal(decoded_size, 6);
    assert_memory_equal(decoded, "onetwo", 6);
}

static void what_is_cut_or_spoilt_is_not_whole(void **state)
{
    (void)state;
    struct inflater inflater = {0};
    struct span bytes = code(span_text("hello, hello, hello"), 31, 0);
    for (size_t size = 1; size < bytes.size; size++) {
        assert_int_equal(feed(&inflater, HTTP_GZIP, span_of(bytes.data, size), 5, 100), 0);
        assert_false(inflater_end(&inflater));
    }
    coded[bytes.size - 6] ^= 1; /* of the check sum */
    assert_int_equal(feed(&inflater, HTTP_GZIP, bytes, 5, 100), PE_MALFORMED);
    assert_false(inflater_end(&inflater));
    assert_int_equal(feed(&inflater, HTTP_GZIP, span_text("stuff"), 5, 100), PE_MALFORMED);
    assert_false(inflater_end(&inflater));
    bytes = code(span_text("hello"), 15, 0);
    coded[bytes.size] = 'x';
    assert_int_equal(feed(&inflater, HTTP_DEFLATE, span_of(coded, bytes.size + 1), 100, 100), PE_MALFORMED);
    inflater_end(&inflater);
}

static void nothing_at_all_is_whole(void **state)
{
    (void)state;
    struct inflater inflater = {0};
    assert_true(inflater_end(&inflater));
}

/* --- a connection --- */

static const struct connection_limits limits = {
    .progress_ns = 10, .reply_ns = 30, .total_ns = 100, .pipeline = 1};
static struct connection connection;
static unsigned whole;

static void read_content(struct connection_reader *reader, struct span content)
{
    (void)reader;
    assert_true(decoded_size + content.size <= sizeof decoded);
    memcpy(decoded + decoded_size, content.data, content.size);
    decoded_size += content.size;
}

static void read_done(struct connection_reader *reader, uint16_t status)
{
    (void)reader;
    assert_int_equal(status, 200);
    whole++;
}

/* A connection on which one request waits for its reply. */
static struct connection *waiting(struct connection_reader *reader)
{
    struct connection *c = &connection;
    connection_init(c, &limits);
    c->reader = reader;
    connection_connect(c, 0);
    connection_connected(c, 0);
    connection_begin(c, 0, 10);
    connection_sent(c, 0, 10);
    decoded_size = whole = 0;
    return c;
}

static void receive(struct connection *c, const char *head, struct span body)
{
    connection_received(c, 0, span_text(head));
    connection_received(c, 0, body);
}

static uint16_t taken_status(struct connection *c)
{
    uint64_t number;
    const struct answer *answer;
    return connection_take(c, &number, &answer) ? answer->status : 0;
}

#define GZIP "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n"

static void a_reader_sees_the_decoded_body(void **state)
{
    (void)state;
    struct connection_reader reader = {read_content, read_done};
    struct connection *c = waiting(&reader);
    make_text();
    receive(c, GZIP, code(span_of(text, sizeof text), 31, 0));
    connection_ended(c);
    assert_int_equal(whole, 1);
    assert_int_equal(decoded_size, sizeof text);
    assert_memory_equal(decoded, text, sizeof text);
    assert_int_equal(taken_status(c), 200);
    assert_false(c->inflater.open);
}

static void a_body_that_cannot_be_decoded_is_not_whole_and_the_status_stands(void **state)
{
    (void)state;
    struct connection_reader reader = {read_content, read_done};
    struct connection *c = waiting(&reader);
    struct span bytes = code(span_text("hello"), 31, 0);
    receive(c, GZIP, span_of(bytes.data, bytes.size - 1));
    connection_ended(c);
    assert_int_equal(c->error, PE_HTTP_REPLY);
    assert_int_equal(taken_status(c), 200);
    c = waiting(&reader);
    receive(c, GZIP, span_text("stuff"));
    assert_true(c->ending);
    assert_int_equal(taken_status(c), 200);
    c = waiting(&reader);
    receive(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: br, chunked\r\n\r\n", span_text("1\r\na\r\n0\r\n\r\n"));
    assert_int_equal(c->error, PE_HTTP_REPLY);
    assert_int_equal(taken_status(c), 200);
    assert_int_equal(whole, 0);
    connection_closed(c);
    connection_clear(c);
}

static void a_body_that_swells_when_decoded_is_bounded(void **state)
{
    (void)state;
    size_t size = 4 * (size_t)CONNECTION_BODY_MAX;
    uint8_t *zeros = calloc(1, size);
    assert_non_null(zeros);
    struct connection *c = waiting(NULL);
    receive(c, GZIP, code(span_of(zeros, size), 31, 0));
    assert_int_equal(c->error, PE_TOO_LARGE);
    assert_true(c->reply_content_bytes <= CONNECTION_BODY_MAX + 4096);
    assert_int_equal(taken_status(c), 200);
    connection_closed(c);
    connection_clear(c);
    assert_false(c->inflater.open);
    free(zeros);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_codings_are_undone_however_the_bytes_come),
        cmocka_unit_test(gzip_may_have_members),
        cmocka_unit_test(what_is_cut_or_spoilt_is_not_whole),
        cmocka_unit_test(nothing_at_all_is_whole),
        cmocka_unit_test(a_reader_sees_the_decoded_body),
        cmocka_unit_test(a_body_that_cannot_be_decoded_is_not_whole_and_the_status_stands),
        cmocka_unit_test(a_body_that_swells_when_decoded_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
