/* Heads of requests, cut in every way; fields, lists and numbers; what becomes of a reply's head. */
#include "http_ways.h"

static struct http_head head;

static struct outcome drive(struct span input, const struct cuts *cuts, void *context)
{
    (void)context;
    return drive_request(input, cuts, &head);
}

static struct outcome request(struct span input)
{
    struct outcome whole = every_way(input, drive, NULL);
    every_prefix(input, drive, NULL, &whole);
    return whole;
}

struct request_case {
    const char *section; /* of RFC 9112 unless it says otherwise */
    const char *bytes;
    size_t size; /* 0: strlen */
};

#define REQUEST(text) text, sizeof(text) - 1
#define HOST          "Host: h\r\n"

static void run(const struct request_case *cases, size_t count, int error)
{
    for (size_t i = 0; i < count; i++) {
        struct outcome o = request(span_of(cases[i].bytes, cases[i].size));
        if (o.error != error)
            print_error("section %s: %d, not %d:\n%s\n", cases[i].section, o.error, error, cases[i].bytes);
        assert_int_equal(o.error, error);
        if (error == 0)
            assert_int_equal(o.used, cases[i].size);
    }
}

static void well_formed_requests_are_taken(void **state)
{
    (void)state;
    static const struct request_case cases[] = {
        {"3", REQUEST("GET / HTTP/1.1\r\n" HOST "\r\n")},
        {"3.1: a method is any token", REQUEST("M-SEARCH!~ / HTTP/1.1\r\n" HOST "\r\n")},
        {"3.2: an empty Host", REQUEST("GET / HTTP/1.1\r\nHost:\r\n\r\n")},
        {"3.2: Host with brackets and port", REQUEST("GET / HTTP/1.1\r\nhOST: [::1]:7070\r\n\r\n")},
        {"3.2: HTTP/1.0 needs no Host", REQUEST("GET / HTTP/1.0\r\n\r\n")},
        {"3.2: HTTP/1.0 may have one", REQUEST("GET / HTTP/1.0\r\n" HOST "\r\n")},
        {"2.3: a higher minor version is read as 1", REQUEST("GET / HTTP/1.9\r\n" HOST "\r\n")},
        {"3.2.1: path and query", REQUEST("GET /a%2Fb/c;d=e?f=g&h=/?i HTTP/1.1\r\n" HOST "\r\n")},
        {"3.2.2: absolute form", REQUEST("GET http://h/a?b HTTP/1.1\r\n" HOST "\r\n")},
        {"3.2.2: https, in any case", REQUEST("GET HTTPS://[::1]:8/a HTTP/1.1\r\n" HOST "\r\n")},
        {"3.2.2: absolute form without a path", REQUEST("GET http://h:80 HTTP/1.1\r\n" HOST "\r\n")},
        {"3.2.4: asterisk form", REQUEST("OPTIONS * HTTP/1.1\r\n" HOST "\r\n")},
        {"2.2: empty lines before it", REQUEST("\r\n\r\nGET / HTTP/1.1\r\n" HOST "\r\n")},
        {"2.2: as many as are forgiven", REQUEST("\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\n" HOST "\r\n")},
        {"5: white space around a value", REQUEST("GET / HTTP/1.1\r\nHost: \t h \t\r\nA:b\r\nC: \r\n\r\n")},
        {"5.1: a name is any token", REQUEST("GET / HTTP/1.1\r\n" HOST "!#$%&'*+-.^_`|~9aZ: x\r\n\r\n")},
        {"RFC 9110 5.5: obs-text in a value", REQUEST("GET / HTTP/1.1\r\n" HOST "A: \x80\xff\t~\r\n\r\n")},
    };
    run(cases, ARRAY_SIZE(cases), 0);
}

static void malformed_requests_are_refused_in_every_way_they_come(void **state)
{
    (void)state;
    static const struct request_case cases[] = {
        {"2.2: bare LF after the request line", REQUEST("GET / HTTP/1.1\nHost: h\r\n\r\n")},
        {"2.2: bare LF after a field", REQUEST("GET / HTTP/1.1\r\nHost: h\n\r\n")},
        {"2.2: bare LF for the empty line", REQUEST("GET / HTTP/1.1\r\nHost: h\r\n\n")},
        {"2.2: bare LF before the request line", REQUEST("\nGET / HTTP/1.1\r\n" HOST "\r\n")},
        {"2.2: more empty lines than are forgiven",
         REQUEST("\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1\r\n" HOST "\r\n")},
        {"2.2: bare CR in a value", REQUEST("GET / HTTP/1.1\r\n" HOST "A: b\rc\r\n\r\n")},
        {"2.2: bare CR at a line's end", REQUEST("GET / HTTP/1.1\r\n" HOST "A: b\r\r\n\r\n")},
        {"2.2: bare CR in the request line", REQUEST("GET /\r HTTP/1.1\r\n" HOST "\r\n")},
        {"2.2: bare CR before the request line", REQUEST("\rGET / HTTP/1.1\r\n" HOST "\r\n")},
        {"2.2: white space before the first field", REQUEST("GET / HTTP/1.1\r\n " HOST "\r\n")},
        {"2.3: HTTP/2", REQUEST("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")},
        {"2.3: HTTP/0.9", REQUEST("GET /\r\n\r\n")},
        {"2.3: a version in lower case", REQUEST("GET / http/1.1\r\n" HOST "\r\n")},
        {"2.3: two digits", REQUEST("GET / HTTP/1.10\r\n" HOST "\r\n")},
        {"2.3: no digit", REQUEST("GET / HTTP/1.x\r\n" HOST "\r\n")},
        {"3: two spaces", REQUEST("GET  / HTTP/1.1\r\n" HOST "\r\n")},
        {"3: two spaces before the version", REQUEST("GET /  HTTP/1.1\r\n" HOST "\r\n")},
        {"3: a tab", REQUEST("GET\t/ HTTP/1.1\r\n" HOST "\r\n")},
        {"3: white space at the end", REQUEST("GET / HTTP/1.1 \r\n" HOST "\r\n")},
        {"3: white space in the target", REQUEST("GET /a b HTTP/1.1\r\n" HOST "\r\n")},
        {"3: no method", REQUEST(" / HTTP/1.1\r\n" HOST "\r\n")},
        {"3: no target", REQUEST("GET HTTP/1.1\r\n" HOST "\r\n")},
        {"3: an empty target", REQUEST("GET  HTTP/1.1\r\n" HOST "\r\n")},
        {"3.1: no token", REQUEST("G(T / HTTP/1.1\r\n" HOST "\r\n")},
        {"3.1: TLS instead", REQUEST("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03")},
        {"3.2: no Host", REQUEST("GET / HTTP/1.1\r\nA: b\r\n\r\n")},
        {"3.2: no field at all", REQUEST("GET / HTTP/1.1\r\n\r\n")},
        {"3.2: two Hosts", REQUEST("GET / HTTP/1.1\r\n" HOST "hOsT: h\r\n\r\n")},
        {"3.2: two Hosts in HTTP/1.0", REQUEST("GET / HTTP/1.0\r\n" HOST HOST "\r\n")},
        {"3.2: a Host that is none", REQUEST("GET / HTTP/1.1\r\nHost: a b\r\n\r\n")},
        {"3.2: a Host with a path", REQUEST("GET / HTTP/1.1\r\nHost: h/x\r\n\r\n")},
        {"3.2: a Host with user information", REQUEST("GET / HTTP/1.1\r\nHost: u@h\r\n\r\n")},
        {"3.2: a relative target", REQUEST("GET a/b HTTP/1.1\r\n" HOST "\r\n")},
        {"3.2: a fragment", REQUEST("GET /a#b HTTP/1.1\r\n" HOST "\r\n")},
        {"3.2: a byte that wants encoding", REQUEST("GET /\"a HTTP/1.1\r\n" HOST "\r\n")},
        {"3.2: a control byte", REQUEST("GET /\x01 HTTP/1.1\r\n" HOST "\r\n")},
        {"3.2: a byte over 0x7f", REQUEST("GET /\xc3\xa4 HTTP/1.1\r\n" HOST "\r\n")},
        {"RFC 3986 2.1: half an encoding", REQUEST("GET /%4 HTTP/1.1\r\n" HOST "\r\n")},
        {"RFC 3986 2.1: no hexadecimal digits", REQUEST("GET /%zz HTTP/1.1\r\n" HOST "\r\n")},
        {"3.2.2: no authority", REQUEST("GET http:///a HTTP/1.1\r\n" HOST "\r\n")},
        {"3.2.2: user information", REQUEST("GET http://u@h/a HTTP/1.1\r\n" HOST "\r\n")},
        {"3.2.2: a query without a path", REQUEST("GET http://h?a HTTP/1.1\r\n" HOST "\r\n")},
        {"3.2.2: another scheme", REQUEST("GET ftp://h/a HTTP/1.1\r\n" HOST "\r\n")},
        {"3.2.3: authority form", REQUEST("GET h:80 HTTP/1.1\r\n" HOST "\r\n")},
        {"3.2.3: CONNECT without a port", REQUEST("CONNECT h HTTP/1.1\r\n" HOST "\r\n")},
        {"3.2.3: CONNECT to no host", REQUEST("CONNECT :80 HTTP/1.1\r\n" HOST "\r\n")},
        {"3.2.3: CONNECT to no port", REQUEST("CONNECT h:x HTTP/1.1\r\n" HOST "\r\n")},
        {"3.2.3: CONNECT to a path", REQUEST("CONNECT /h:80 HTTP/1.1\r\n" HOST "\r\n")},
        {"3.2.4: asterisk, but not OPTIONS", REQUEST("GET * HTTP/1.1\r\n" HOST "\r\n")},
        {"3.2.4: more than an asterisk", REQUEST("OPTIONS *a HTTP/1.1\r\n" HOST "\r\n")},
        {"5: no colon", REQUEST("GET / HTTP/1.1\r\n" HOST "A\r\n\r\n")},
        {"5: no name", REQUEST("GET / HTTP/1.1\r\n" HOST ": a\r\n\r\n")},
        {"5.1: white space before the colon", REQUEST("GET / HTTP/1.1\r\n" HOST "A : b\r\n\r\n")},
        {"5.1: a tab before the colon", REQUEST("GET / HTTP/1.1\r\n" HOST "A\t: b\r\n\r\n")},
        {"5.1: a name that is no token", REQUEST("GET / HTTP/1.1\r\n" HOST "A(: b\r\n\r\n")},
        {"5.2: a folded field", REQUEST("GET / HTTP/1.1\r\n" HOST "A: b\r\n c\r\n\r\n")},
        {"5.2: folded with a tab", REQUEST("GET / HTTP/1.1\r\n" HOST "A: b\r\n\tc\r\n\r\n")},
        {"RFC 9110 5.5: NUL", REQUEST("GET / HTTP/1.1\r\n" HOST "A: b\0c\r\n\r\n")},
        {"RFC 9110 5.5: NUL in a name", REQUEST("GET / HTTP/1.1\r\n" HOST "A\0: b\r\n\r\n")},
        {"RFC 9110 5.5: a control byte", REQUEST("GET / HTTP/1.1\r\n" HOST "A: b\x1f\r\n\r\n")},
        {"RFC 9110 5.5: DEL", REQUEST("GET / HTTP/1.1\r\n" HOST "A: \x7f\r\n\r\n")},
    };
    run(cases, ARRAY_SIZE(cases), PE_MALFORMED);
}

static void a_request_that_stops_early_is_incomplete(void **state)
{
    (void)state;
    static const struct request_case cases[] = {
        {"2.2", REQUEST("\r")},
        {"2.2", REQUEST("\r\n\r\n")},
        {"3", REQUEST("GET / HTTP/1.1\r\n" HOST "\r")},
        {"3", REQUEST("GET / HTTP/1.1\r\n" HOST)},
    };
    run(cases, ARRAY_SIZE(cases), PE_INCOMPLETE);
}

static void the_parts_of_a_request_are_found(void **state)
{
    (void)state;
    struct span input = span_text("\r\nPUT /a?b HTTP/1.0\r\nA:  b c \r\nEmpty:\r\nA: d\r\n\r\n");
    size_t scanned = 0;
    assert_int_equal(http_request_head(input, &scanned, &head), input.size);
    assert_true(span_is(head.method, "PUT"));
    assert_true(span_is(head.target, "/a?b"));
    assert_int_equal(head.minor, 0);
    assert_int_equal(head.count, 3);
    assert_true(span_is(head.fields[0].name, "A"));
    assert_true(span_is(head.fields[0].value, "b c"));
    assert_true(span_is(head.fields[1].value, ""));
    assert_ptr_equal(http_field(&head, "a"), &head.fields[0]);
    assert_null(http_field(&head, "b"));
    assert_null(http_field(&head, "emptyy"));
    assert_null(http_field(&head, "empt"));
}

/* RFC 9112 section 3.2.2: the target stands for itself, the Host field is ignored. */
static void absolute_form_becomes_origin_form(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"http://h/a?b=c", "/a?b=c"}, {"https://h:8/", "/"}, {"http://h", "/"}, {"HTTP://[::1]//x", "//x"}};
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        char text[100];
        int size = snprintf(text, sizeof text, "GET %s HTTP/1.1\r\n" HOST "\r\n", cases[i][0]);
        size_t scanned = 0;
        assert_int_equal(http_request_head(span_of(text, (size_t)size), &scanned, &head), size);
        assert_true(span_is(head.target, cases[i][1]));
    }
}

static void a_head_may_be_as_long_as_its_limit_and_no_longer(void **state)
{
    (void)state;
    size_t rest = strlen("GET / HTTP/1.1\r\n" HOST "A: \r\n\r\n");
    struct span input = repeated("GET / HTTP/1.1\r\n" HOST "A: ", "x", HTTP_HEAD_MAX - rest, "\r\n\r\n");
    assert_int_equal(request(input).error, 0);
    input = repeated("GET / HTTP/1.1\r\n" HOST "A: ", "x", HTTP_HEAD_MAX - rest + 1, "\r\n\r\n");
    assert_int_equal(request(input).error, PE_TOO_LARGE);
    input = repeated("\r\nGET / HTTP/1.1\r\n" HOST "A: ", "x", HTTP_HEAD_MAX - rest - 2, "\r\n\r\n");
    assert_int_equal(request(input).error, 0);
    input = repeated("\r\nGET / HTTP/1.1\r\n" HOST "A: ", "x", HTTP_HEAD_MAX - rest - 1, "\r\n\r\n");
    assert_int_equal(request(input).error, PE_TOO_LARGE);
    assert_int_equal(request(repeated("GET /", "x", HTTP_HEAD_MAX, "")).error, PE_TOO_LARGE);
    assert_int_equal(request(repeated("GET / HTTP/1.1\r\n", HOST, 3000, "")).error, PE_TOO_LARGE);
}

static void a_head_may_have_as_many_fields_as_its_limit_and_no_more(void **state)
{
    (void)state;
    struct span input = repeated("GET / HTTP/1.1\r\n" HOST, "A: b\r\n", HTTP_FIELDS_MAX - 1, "\r\n");
    struct outcome o = request(input);
    assert_int_equal(o.error, 0);
    assert_int_equal(o.count, HTTP_FIELDS_MAX);
    input = repeated("GET / HTTP/1.1\r\n" HOST, "A: b\r\n", HTTP_FIELDS_MAX, "\r\n");
    assert_int_equal(request(input).error, PE_TOO_LARGE);
    input = repeated("GET / HTTP/1.1\r\n" HOST, "A: b\r\n", HTTP_FIELDS_MAX, "malformed\r\n\r\n");
    assert_int_equal(request(input).error, PE_MALFORMED);
}

/* A peer that drips must not make the parser look at everything again: what was scanned is not read. */
static void a_dripping_head_is_not_scanned_again(void **state)
{
    (void)state;
    struct span input = repeated("GET / HTTP/1.1\r\n" HOST "A: ", "x", 8000, "");
    uint8_t *copy = drive_copy(input);
    size_t scanned = 0;
    assert_int_equal(http_request_head(span_of(copy, input.size), &scanned, &head), PE_INCOMPLETE);
    assert_int_equal(scanned, input.size);
    memcpy(copy + 1000, "\r\n\r\n", 4);
    assert_int_equal(http_request_head(span_of(copy, input.size), &scanned, &head), PE_INCOMPLETE);
    free(copy);
}

static void list_fields_are_searched_in_all_their_lines(void **state)
{
    (void)state;
    struct span input =
        span_text("GET / HTTP/1.0\r\nConnection: something-close, close-something\r\nconnection:\r\n"
                  "X: upgrade\r\nCONNECTION: ,a ,\t Keep-Alive\r\n\r\n");
    size_t scanned = 0;
    assert_int_equal(http_request_head(input, &scanned, &head), input.size);
    assert_true(http_field_has(&head, "connection", "keep-alive"));
    assert_true(http_field_has(&head, "connection", "close-something"));
    assert_true(http_field_has(&head, "connection", "a"));
    assert_false(http_field_has(&head, "connection", "close"));
    assert_false(http_field_has(&head, "connection", "upgrade"));
    assert_false(http_field_has(&head, "connectio", "a"));
}

static void numbers_are_digits_within_their_limit(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint64_t max;
        int error;
        uint64_t value;
    } cases[] = {
        {"0", 0, 0, 0},
        {"007", 9, 0, 7},
        {"255", 255, 0, 255},
        {"256", 255, PE_MALFORMED, 0},
        {"18446744073709551615", UINT64_MAX, 0, UINT64_MAX},
        {"18446744073709551616", UINT64_MAX, PE_MALFORMED, 0},
        {"99999999999999999999999", UINT64_MAX, PE_MALFORMED, 0},
        {"9223372036854775808", INT64_MAX, PE_MALFORMED, 0},
        {"", 9, PE_MALFORMED, 0},
        {"+1", 9, PE_MALFORMED, 0},
        {"-1", 9, PE_MALFORMED, 0},
        {" 1", 9, PE_MALFORMED, 0},
        {"1 ", 9, PE_MALFORMED, 0},
        {"0x1", 99, PE_MALFORMED, 0},
        {"1e1", 99, PE_MALFORMED, 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint64_t value = 0;
        assert_int_equal(http_number(span_text(cases[i].text), cases[i].max, &value), cases[i].error);
        assert_int_equal(value, cases[i].value);
    }
}

/* RFC 9112 section 5.2: one or more spaces in the place of a fold. */
static void folds_of_a_reply_become_spaces(void **state)
{
    (void)state;
    char text[] = "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\t\r\nConnection:  \n\tclose\r\nC: d\r\n\r\n";
    size_t scanned = 0;
    assert_int_equal(http_reply_head((uint8_t *)text, sizeof text - 1, &scanned, &head), sizeof text - 1);
    assert_int_equal(head.count, 3);
    assert_true(span_is(head.fields[0].value, "b   c"));
    assert_true(http_field_has(&head, "connection", "close"));
    assert_true(span_is(head.fields[2].value, "d"));
}

/* RFC 9112 section 4: the reason may be missing, and the space before it in practice, too. */
static void the_parts_of_a_status_line_are_found(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint16_t status;
        uint8_t minor;
        const char *reason;
    } cases[] = {
        {"HTTP/1.1 200 OK\r\n\r\n", 200, 1, "OK"},
        {"HTTP/1.0 404 Not Found\n\n", 404, 0, "Not Found"},
        {"HTTP/1.1 204\r\n\r\n", 204, 1, ""},
        {"HTTP/1.1 204 \r\n\r\n", 204, 1, ""},
        {"HTTP/1.3 999 a\tb\xff \r\n\r\n", 999, 1, "a\tb\xff "},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        uint8_t *copy = drive_copy(span_text(cases[i].text));
        size_t scanned = 0, size = strlen(cases[i].text);
        assert_int_equal(http_reply_head(copy, size, &scanned, &head), size);
        assert_int_equal(head.status, cases[i].status);
        assert_int_equal(head.minor, cases[i].minor);
        assert_true(span_is(head.reason, cases[i].reason));
        free(copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(well_formed_requests_are_taken),
        cmocka_unit_test(malformed_requests_are_refused_in_every_way_they_come),
        cmocka_unit_test(a_request_that_stops_early_is_incomplete),
        cmocka_unit_test(the_parts_of_a_request_are_found),
        cmocka_unit_test(absolute_form_becomes_origin_form),
        cmocka_unit_test(a_head_may_be_as_long_as_its_limit_and_no_longer),
        cmocka_unit_test(a_head_may_have_as_many_fields_as_its_limit_and_no_more),
        cmocka_unit_test(a_dripping_head_is_not_scanned_again),
        cmocka_unit_test(list_fields_are_searched_in_all_their_lines),
        cmocka_unit_test(numbers_are_digits_within_their_limit),
        cmocka_unit_test(folds_of_a_reply_become_spaces),
        cmocka_unit_test(the_parts_of_a_status_line_are_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
