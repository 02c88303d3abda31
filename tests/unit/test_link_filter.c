/* The filter of the listener's socket, in the kernel: what comes through it over loopback, where a datagram
 * is in the receiver's buffer when the call that sends it returns. */
#include "core/datagram.h"
#include "link/link_filter.h"
#include "link/indices.h"
#include "link/messages.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>
#include <cmocka.h>

#define MARK 0xa7

static int here, there;

static void open_sockets(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t len = sizeof address;
    struct sock_filter filter[LINK_FILTER_LENGTH];
    link_filter_make(filter, MARK);
    struct io_datagram_options options = {.filter = filter, .filter_length = LINK_FILTER_LENGTH};
    here = datagram_open((struct sockaddr *)&address, len, &options);
    there = datagram_open((struct sockaddr *)&address, len, NULL);
    assert_true(here >= 0 && there >= 0);
    assert_int_equal(getsockname(here, (struct sockaddr *)&address, &len), 0);
    assert_int_equal(connect(there, (struct sockaddr *)&address, len), 0);
}

static void close_sockets(void)
{
    close(here);
    close(there);
}

/* Whether a datagram of that head and size comes through, whole. */
static bool passes(const uint8_t head[8], size_t size)
{
    uint8_t bytes[2000] = {0}, come[2000];
    memcpy(bytes, head, 8);
    assert_int_equal(send(there, bytes, size, 0), size);
    ssize_t got = recv(here, come, sizeof come, MSG_DONTWAIT);
    assert_true(got < 0 || (size_t)got == size);
    return got >= 0;
}

static void what_links_send_to_a_listener_passes(void **state)
{
    (void)state;
    const uint8_t data[8] = {LINK_DATA, 0, 0, 0, 1, 2, 3, MARK}, init[8] = {LINK_INIT, 0, 0, 0, 9, 9, 9, 9};
    open_sockets();
    assert_true(passes(data, LINK_DATA_MIN_BYTES));
    assert_true(passes(data, 1400));
    assert_true(passes(init, LINK_INIT_BYTES));
    close_sockets();
}

static void what_a_listener_would_drop_unread_does_not(void **state)
{
    (void)state;
    open_sockets();
    const uint8_t data[8] = {LINK_DATA, 0, 0, 0, 1, 2, 3, MARK}, init[8] = {LINK_INIT};
    assert_false(passes(data, LINK_DATA_MIN_BYTES - 1));
    assert_false(passes(init, LINK_INIT_BYTES - 1));
    for (unsigned type = 0; type < 256; type++) {
        const uint8_t other[8] = {(uint8_t)type, 0, 0, 0, 1, 2, 3, MARK};
        assert_int_equal(passes(other, LINK_INIT_BYTES), type == LINK_DATA || type == LINK_INIT);
    }
    for (unsigned i = 1; i < 4; i++) {
        uint8_t other[8] = {LINK_DATA, 0, 0, 0, 1, 2, 3, MARK};
        other[i] = 1;
        assert_false(passes(other, 100));
    }
    for (unsigned mark = 0; mark < 256; mark++) {
        const uint8_t other[8] = {LINK_DATA, 0, 0, 0, MARK, MARK, MARK, (uint8_t)mark};
        assert_int_equal(passes(other, 100), mark == MARK);
    }
    close_sockets();
}

/* Ten packets in one send, which come as one receive where the kernel does that. */
static void a_run_of_packets_passes_whole(void **state)
{
    (void)state;
    uint8_t bytes[10 * 200] = {0}, come[2001];
    open_sockets();
    for (unsigned i = 0; i < 10; i++)
        memcpy(bytes + i * 200, (const uint8_t[]){LINK_DATA, 0, 0, 0, 1, 2, 3, MARK}, 8);
    int segment = 200;
    assert_int_equal(setsockopt(there, IPPROTO_UDP, UDP_SEGMENT, &segment, sizeof segment), 0);
    assert_int_equal(send(there, bytes, sizeof bytes, 0), sizeof bytes);
    size_t got = 0;
    for (ssize_t size; (size = recv(here, come, sizeof come, MSG_DONTWAIT)) > 0;)
        got += (size_t)size;
    assert_int_equal(got, sizeof bytes);
    close_sockets();
}

static void fill(void *context, void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)bytes)[i] = (uint8_t)(*(unsigned *)context)++;
}

static void indices_have_the_mark_and_are_found(void **state)
{
    (void)state;
    struct indices t;
    unsigned next = 0;
    struct noise_random random = {fill, &next};
    assert_int_equal(indices_init(&t, 1000), 0);
    indices_mark(&t, MARK);
    for (unsigned i = 0; i < 1000; i++) {
        uint32_t index = indices_add(&t, &random, &t);
        assert_int_equal(index >> 24, MARK);
        assert_ptr_equal(indices_find(&t, index), &t);
        assert_null(indices_find(&t, index ^ 1u << 24));
    }
    indices_dispose(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_links_send_to_a_listener_passes),
        cmocka_unit_test(what_a_listener_would_drop_unread_does_not),
        cmocka_unit_test(a_run_of_packets_passes_whole),
        cmocka_unit_test(indices_have_the_mark_and_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
