/* The connection's state machine by itself: no socket, no loop; time is a number. */
#include "wire/connection.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static const struct connection_limits limits = {
    .progress_ns = 10, .reply_ns = 30, .total_ns = 100, .pipeline = 2};

#define OK "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

static struct connection *open_connection(void)
{
    static struct connection c; /* large: not on the stack of each test */
    connection_init(&c, &limits);
    connection_connect(&c, 0);
    connection_connected(&c, 0);
    return &c;
}

static void receive(struct connection *c, uint64_t now_ns, const char *text)
{
    connection_received(c, now_ns, span_text(text));
}

/* One exchange from begin to end. */
static void exchange(struct connection *c, uint64_t now_ns)
{
    uint64_t number;
    const struct answer *answer;
    connection_begin(c, now_ns, 100);
    connection_sent(c, now_ns, 100);
    receive(c, now_ns, OK);
    assert_true(connection_take(c, &number, &answer));
    assert_int_equal(answer->status, 200);
}

static void an_exchange_is_answered_by_its_head(void **state)
{
    (void)state;
    struct connection *c = open_connection();
    uint64_t number;
    const struct answer *answer;
    assert_true(connection_ready(c));
    assert_int_equal(connection_begin(c, 0, 100), 0);
    connection_sent(c, 1, 100);
    receive(c, 2, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r");
    assert_false(connection_take(c, &number, &answer));
    receive(c, 2, "\n");
    assert_true(connection_take(c, &number, &answer));
    assert_int_equal(number, 0);
    assert_false(connection_ready(c)); /* its body is not read yet */
    receive(c, 3, "ok");
    assert_true(connection_ready(c));
    assert_false(connection_take(c, &number, &answer));
}

static void deadlines_follow_what_is_waited_for(void **state)
{
    (void)state;
    static struct connection fresh;
    connection_init(&fresh, &limits);
    assert_int_equal(connection_deadline_ns(&fresh), NEVER);
    connection_connect(&fresh, 5);
    assert_int_equal(connection_deadline_ns(&fresh), 15);

    struct connection *c = open_connection();
    assert_int_equal(connection_deadline_ns(c), NEVER);
    connection_begin(c, 20, 100);
    assert_int_equal(connection_deadline_ns(c), 30);
    connection_sent(c, 25, 1); /* progress */
    assert_int_equal(connection_deadline_ns(c), 35);
    connection_sent(c, 33, 99); /* whole: the reply's own limit */
    assert_int_equal(connection_deadline_ns(c), 63);
    receive(c, 60, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n");
    assert_int_equal(connection_deadline_ns(c), 120); /* the body: the total limit only */
    connection_tick(c, 119);
    assert_false(c->ending);
    connection_tick(c, 120);
    assert_true(c->ending && c->late);
    assert_int_equal(c->error, PE_TOTAL_TIMEOUT);
}

static void each_deadline_has_its_error(void **state)
{
    (void)state;
    static struct connection c;
    connection_init(&c, &limits);
    connection_connect(&c, 0);
    connection_tick(&c, 9);
    assert_false(c.ending);
    connection_tick(&c, 10);
    assert_int_equal(c.error, PE_CONNECT_TIMEOUT);

    struct connection *o = open_connection();
    connection_begin(o, 0, 2);
    connection_tick(o, 10);
    assert_int_equal(o->error, PE_SEND_TIMEOUT);

    o = open_connection();
    connection_begin(o, 0, 2);
    connection_sent(o, 0, 2);
    connection_tick(o, 29);
    assert_false(o->ending);
    receive(o, 29, "HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 2"); /* interim replies and parts prolong nothing */
    connection_tick(o, 30);
    assert_int_equal(o->error, PE_REPLY_TIMEOUT);
}

static void a_reply_in_the_same_batch_of_completions_is_not_early(void **state)
{
    (void)state;
    struct connection *c = open_connection();
    uint64_t number;
    const struct answer *answer;
    connection_begin(c, 0, 100);
    receive(c, 1, OK); /* the completion of the send comes behind it */
    assert_false(connection_take(c, &number, &answer));
    connection_sent(c, 1, 100);
    connection_tick(c, 1);
    assert_false(c->ending);
    assert_true(connection_take(c, &number, &answer));
    assert_true(connection_ready(c));
}

static void an_early_reply_is_believed_once_the_memory_is_free(void **state)
{
    (void)state;
    struct connection *c = open_connection();
    uint64_t number;
    const struct answer *answer;
    connection_begin(c, 0, 100);
    connection_sent(c, 0, 50);
    receive(c, 1, "HTTP/1.1 413 Large\r\nContent-Length: 0\r\n\r\n");
    connection_tick(c, 1);
    assert_true(c->ending);
    assert_false(connection_take(c, &number, &answer)); /* the kernel may still read the request */
    connection_closed(c);
    assert_true(connection_take(c, &number, &answer));
    assert_int_equal(answer->status, 413);
    assert_false(connection_unanswered(c));
}

static void surplus_bytes_are_never_the_next_reply(void **state)
{
    (void)state;
    struct connection *c = open_connection();
    uint64_t number;
    const struct answer *answer;
    exchange(c, 0);
    connection_begin(c, 1, 100);
    receive(c, 1, OK); /* before one byte of the request was sent */
    connection_tick(c, 1);
    assert_true(c->ending);
    connection_closed(c);
    assert_false(connection_take(c, &number, &answer));
    assert_true(connection_unanswered(c));
    assert_true(connection_go_again(c));
}

static void only_a_used_connection_lets_a_request_go_again(void **state)
{
    (void)state;
    static const struct {
        bool used, late;
        const char *bytes; /* of the second reply */
        bool again;
    } cases[] = {{false, false, NULL, false},
                 {true, false, NULL, true},
                 {true, false, "H", false},
                 {true, true, NULL, false}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct connection *c = open_connection();
        if (cases[i].used)
            exchange(c, 0);
        connection_begin(c, 1, 100);
        connection_sent(c, 1, 100);
        if (cases[i].bytes)
            receive(c, 1, cases[i].bytes);
        if (cases[i].late)
            connection_tick(c, 1000);
        connection_ended(c);
        connection_closed(c);
        assert_true(connection_unanswered(c));
        assert_int_equal(connection_go_again(c), cases[i].again);
    }
}

static void a_pipeline_begins_with_one_and_keeps_its_depth(void **state)
{
    (void)state;
    struct connection *c = open_connection();
    uint64_t number;
    const struct answer *answer;
    connection_begin(c, 0, 10);
    connection_sent(c, 0, 10);
    assert_false(connection_ready(c)); /* the first goes alone */
    receive(c, 1, OK);
    assert_true(connection_take(c, &number, &answer));
    for (uint64_t n = 1; n <= 2; n++) {
        assert_true(connection_ready(c));
        assert_int_equal(connection_begin(c, 2, 10), n);
        assert_false(connection_ready(c)); /* one is sent at a time */
        connection_sent(c, 2, 10);
    }
    assert_false(connection_ready(c));
    receive(c, 20, OK);
    assert_int_equal(connection_deadline_ns(c), 50); /* the second reply's time runs from the first */
    receive(c, 21, OK);
    for (uint64_t n = 1; n <= 2; n++) {
        assert_true(connection_take(c, &number, &answer));
        assert_int_equal(number, n);
    }
    assert_false(c->ending);
}

static void a_body_over_its_limit_ends_the_connection_and_the_status_stands(void **state)
{
    (void)state;
    struct connection *c = open_connection();
    uint64_t number;
    const struct answer *answer;
    connection_begin(c, 0, 10);
    connection_sent(c, 0, 10);
    receive(c, 0, "HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n");
    static char body[CONNECTION_BODY_MAX];
    connection_received(c, 0, span_of(body, sizeof body));
    assert_false(c->ending);
    connection_received(c, 0, span_of(body, 1));
    assert_true(c->ending);
    assert_true(connection_take(c, &number, &answer));
    assert_int_equal(answer->status, 200);
    connection_closed(c);
    assert_false(connection_unanswered(c));
}

/* RFC 9112 section 8; an HTTP/1.1 head in the same place says nothing. */
static void the_end_completes_an_old_head_behind_a_whole_field(void **state)
{
    (void)state;
    static const struct {
        const char *head;
        uint16_t status; /* 0: none is believed */
    } cases[] = {
        {"HTTP/1.0 200 OK\nA: b\n", 200}, {"HTTP/1.0 200 OK\r\nA: b", 0}, {"HTTP/1.1 200 OK\r\nA: b\r\n", 0}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct connection *c = open_connection();
        uint64_t number;
        const struct answer *answer;
        connection_begin(c, 0, 10);
        connection_sent(c, 0, 10);
        receive(c, 0, cases[i].head);
        assert_false(connection_take(c, &number, &answer));
        connection_ended(c);
        bool known = connection_take(c, &number, &answer);
        assert_int_equal(known ? answer->status : 0, cases[i].status);
        assert_int_equal(c->done, known);
        assert_int_equal(c->error, known ? PE_CLOSED : PE_CLOSED_EARLY);
    }
}

static void a_large_head_is_freed_with_its_connection(void **state)
{
    (void)state;
    struct connection *c = open_connection();
    static char field[HTTP_HEAD_MAX + 10];
    memset(field, 'x', sizeof field - 1);
    field[0] = 'A', field[1] = ':';
    connection_begin(c, 0, 10);
    connection_sent(c, 0, 10);
    receive(c, 0, "HTTP/1.1 200 OK\r\n");
    receive(c, 0, field);
    assert_non_null(c->reply.large);
    connection_closed(c);
    connection_clear(c);
    assert_null(c->reply.large);
}

static void a_failed_send_does_not_hide_a_reply_that_came(void **state)
{
    (void)state;
    struct connection *c = open_connection();
    uint64_t number;
    const struct answer *answer;
    connection_begin(c, 0, 100);
    connection_sent(c, 0, 50);
    connection_failed(c, -32);
    receive(c, 0, "HTTP/1.1 413 Large\r\nContent-Length: 0\r\n\r\n");
    connection_closed(c);
    assert_true(connection_take(c, &number, &answer));
    assert_int_equal(answer->status, 413);
}

/* TLS that ends without close_notify: only what needs the end to be whole is not. */
static void a_cut_end_ends_no_reply(void **state)
{
    (void)state;
    static const struct {
        const char *reply;
        unsigned answered, done;
    } cases[] = {
        {"HTTP/1.1 200 OK\r\n\r\nsome", 1, 0}, /* the head decides, but the body may be cut */
        {"HTTP/1.0 200 OK\r\nA: b\r\n", 0, 0}, /* an end would have completed it */
        {OK, 1, 1},
        {"", 0, 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct connection *c = open_connection();
        connection_begin(c, 1, 100);
        connection_sent(c, 1, 100);
        receive(c, 2, cases[i].reply);
        connection_cut(c);
        assert_true(c->ending);
        assert_int_equal(c->error, cases[i].done ? PE_CLOSED : PE_TLS_CUT);
        connection_closed(c);
        assert_int_equal(c->answered, cases[i].answered);
        assert_int_equal(c->done, cases[i].done);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_cut_end_ends_no_reply),
        cmocka_unit_test(an_exchange_is_answered_by_its_head),
        cmocka_unit_test(deadlines_follow_what_is_waited_for),
        cmocka_unit_test(each_deadline_has_its_error),
        cmocka_unit_test(a_reply_in_the_same_batch_of_completions_is_not_early),
        cmocka_unit_test(an_early_reply_is_believed_once_the_memory_is_free),
        cmocka_unit_test(surplus_bytes_are_never_the_next_reply),
        cmocka_unit_test(only_a_used_connection_lets_a_request_go_again),
        cmocka_unit_test(a_pipeline_begins_with_one_and_keeps_its_depth),
        cmocka_unit_test(a_body_over_its_limit_ends_the_connection_and_the_status_stands),
        cmocka_unit_test(the_end_completes_an_old_head_behind_a_whole_field),
        cmocka_unit_test(a_large_head_is_freed_with_its_connection),
        cmocka_unit_test(a_failed_send_does_not_hide_a_reply_that_came),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
