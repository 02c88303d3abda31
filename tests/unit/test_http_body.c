/* Bodies: framing of requests and replies, the chunked coding, ends; cut in every way. */
#include "http_ways.h"

static struct http_head head;

static struct outcome drive(struct span input, const struct cuts *cuts, void *context)
{
    (void)context;
    return drive_request(input, cuts, &head);
}

/* What `fields` and `body` do in a request. */
static struct outcome request(const char *version, const char *fields, const char *body)
{
    char text[2048];
    int size = snprintf(text, sizeof text, "POST / HTTP/%s\r\nHost: h\r\n%s\r\n%s", version, fields, body);
    assert_true(size > 0 && (size_t)size < sizeof text);
    struct span input = span_of(text, (size_t)size);
    struct outcome whole = every_way(input, drive, NULL);
    every_prefix(input, drive, NULL, &whole);
    if (whole.error == 0)
        whole.used = input.size - whole.used; /* what is left is easier to state */
    return whole;
}

static void expect_content(const struct outcome *o, const char *content)
{
    assert_int_equal(o->content, strlen(content));
    assert_int_equal(o->hash, drive_hash(DRIVE_HASH_START, span_text(content)));
}

struct body_case {
    const char *section; /* of RFC 9112 */
    const char *version;
    const char *fields;
    const char *body;
    const char *content; /* NULL: malformed */
    size_t left;         /* bytes after the body */
};

static void run(const struct body_case *cases, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct body_case *c = &cases[i];
        struct outcome o = request(c->version, c->fields, c->body);
        if (o.error != (c->content ? 0 : PE_MALFORMED))
            print_error("section %s: %d: %s%s\n", c->section, o.error, c->fields, c->body);
        assert_int_equal(o.error, c->content ? 0 : PE_MALFORMED);
        if (!c->content)
            continue;
        expect_content(&o, c->content);
        assert_int_equal(o.used, c->left);
    }
}

#define TE "Transfer-Encoding: chunked\r\n"
#define CL "Content-Length: "

static void the_framing_of_a_request_is_beyond_doubt_or_malformed(void **state)
{
    (void)state;
    static const struct body_case cases[] = {
        {"6.3 rule 7: no body", "1.1", "", "GET", "", 3},
        {"6.3 rule 6", "1.1", CL "5\r\n", "hello", "hello", 0},
        {"6.3 rule 6: what follows is the next request's", "1.1", "content-length:\t05 \r\n", "helloGET",
         "hello", 3},
        {"6.3 rule 6: nothing", "1.1", CL "0\r\n", "GET", "", 3},
        {"6.3 rule 4", "1.1", TE, "5\r\nhello\r\n0\r\n\r\nGET", "hello", 3},
        {"7: codings are compared without case", "1.1", "transfer-encoding: CHUNKED\r\n", "0\r\n\r\n", "", 0},
        {"6.3 rule 5: repeated", "1.1", CL "5\r\n" CL "5\r\n", "hello", NULL, 0},
        {"6.3 rule 5: conflicting", "1.1", CL "5\r\n" CL "6\r\n", "hello", NULL, 0},
        {"6.3 rule 5: a list", "1.1", CL "5, 5\r\n", "hello", NULL, 0},
        {"6.3 rule 5: empty", "1.1", CL "\r\n", "hello", NULL, 0},
        {"6.3 rule 5: signed", "1.1", CL "+5\r\n", "hello", NULL, 0},
        {"6.3 rule 5: negative", "1.1", CL "-5\r\n", "hello", NULL, 0},
        {"6.3 rule 5: hexadecimal", "1.1", CL "0x5\r\n", "hello", NULL, 0},
        {"6.3 rule 5: letters after it", "1.1", CL "5a\r\n", "hello", NULL, 0},
        {"6.3 rule 5: white space inside", "1.1", CL "5 5\r\n", "hello", NULL, 0},
        {"6.3 rule 5: over 63 bits", "1.1", CL "9223372036854775808\r\n", "hello", NULL, 0},
        {"6.3 rule 5: wraps to 5 in 64 bits", "1.1", CL "18446744073709551621\r\n", "hello", NULL, 0},
        {"6.1: both", "1.1", TE CL "5\r\n", "0\r\n\r\n", NULL, 0},
        {"6.1: both, the other way round", "1.1", CL "5\r\n" TE, "hello", NULL, 0},
        {"6.1: in HTTP/1.0", "1.0", TE, "0\r\n\r\n", NULL, 0},
        {"6.1: twice", "1.1", TE TE, "0\r\n\r\n", NULL, 0},
        {"6.1: twice in a list", "1.1", "Transfer-Encoding: chunked, chunked\r\n", "0\r\n\r\n", NULL, 0},
        {"6.1: another coding", "1.1", "Transfer-Encoding: gzip\r\n", "", NULL, 0},
        {"6.1: another coding first", "1.1", "Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n", NULL, 0},
        {"6.1: another coding last", "1.1", "Transfer-Encoding: chunked, gzip\r\n", "", NULL, 0},
        {"6.1: identity", "1.1", "Transfer-Encoding: identity\r\n", "", NULL, 0},
        {"6.1: none", "1.1", "Transfer-Encoding:\r\n", "", NULL, 0},
        {"6.1: with a parameter", "1.1", "Transfer-Encoding: chunked;q=1\r\n", "", NULL, 0},
        {"6.1: quoted", "1.1", "Transfer-Encoding: \"chunked\"\r\n", "", NULL, 0},
        {"6.1: a disguise", "1.1", "Transfer-Encoding: xchunked\r\n", "", NULL, 0},
    };
    run(cases, ARRAY_SIZE(cases));
}

static void the_chunked_coding_of_a_request_is_read_strictly(void **state)
{
    (void)state;
    static const struct body_case cases[] = {
        {"7.1: several chunks", "1.1", TE, "1\r\na\r\n0a\r\n0123456789\r\n0\r\n\r\n", "a0123456789", 0},
        {"7.1: digits of both cases", "1.1", TE, "A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n",
         "01234567890123456789", 0},
        {"7.1: sixteen digits", "1.1", TE, "0000000000000001\r\na\r\n0000000000000000\r\n\r\n", "a", 0},
        {"7.1: content that looks like the coding", "1.1", TE, "7\r\n\r\n0\r\n\r\n\r\n0\r\n\r\n",
         "\r\n0\r\n\r\n", 0},
        {"7.1.1: extensions", "1.1", TE, "1;a;b=c;d=\"e f\"\r\na\r\n0;x\r\n\r\n", "a", 0},
        {"7.1.1: white space before one", "1.1", TE, "1 \t; a = b\r\na\r\n0\r\n\r\n", "a", 0},
        {"7.1.2: trailers", "1.1", TE, "1\r\na\r\n0\r\nA: b\r\nC:\r\n\r\nGET", "a", 3},
        {"7.1: no size", "1.1", TE, "\r\n\r\n", NULL, 0},
        {"7.1: no digits", "1.1", TE, ";a\r\n\r\n", NULL, 0},
        {"7.1: not hexadecimal", "1.1", TE, "g\r\n", NULL, 0},
        {"7.1: a prefix", "1.1", TE, "0x1\r\na\r\n", NULL, 0},
        {"7.1: signed", "1.1", TE, "+1\r\na\r\n", NULL, 0},
        {"7.1: negative", "1.1", TE, "-1\r\na\r\n", NULL, 0},
        {"7.1: white space first", "1.1", TE, " 1\r\na\r\n", NULL, 0},
        {"7.1: white space and no extension", "1.1", TE, "1 \r\na\r\n0\r\n\r\n", NULL, 0},
        {"7.1: white space inside", "1.1", TE, "1 1\r\na\r\n", NULL, 0},
        {"7.1: seventeen digits", "1.1", TE, "00000000000000001\r\na\r\n", NULL, 0},
        {"7.1: overflowing", "1.1", TE, "10000000000000001\r\na\r\n", NULL, 0},
        {"7.1: longer than it says", "1.1", TE, "1\r\nab\r\n0\r\n\r\n", NULL, 0},
        {"7.1: shorter than it says", "1.1", TE, "3\r\na\r\n0\r\n\r\n", NULL, 0},
        {"7.1: no line end after the data", "1.1", TE, "1\r\na0\r\n\r\n", NULL, 0},
        {"2.2: bare LF after the size", "1.1", TE, "1\na\r\n0\r\n\r\n", NULL, 0},
        {"2.2: bare LF after an extension", "1.1", TE, "1;a\na\r\n0\r\n\r\n", NULL, 0},
        {"2.2: bare LF after the data", "1.1", TE, "1\r\na\n0\r\n\r\n", NULL, 0},
        {"2.2: bare LF for the last line", "1.1", TE, "0\r\n\n", NULL, 0},
        {"2.2: bare LF in the trailers", "1.1", TE, "0\r\nA: b\n\r\n", NULL, 0},
        {"2.2: bare CR after the size", "1.1", TE, "1\ra\r\n", NULL, 0},
        {"2.2: bare CR in an extension", "1.1", TE, "1;a\rb\r\n", NULL, 0},
        {"2.2: bare CR after the data", "1.1", TE, "1\r\na\rb", NULL, 0},
        {"2.2: bare CR for the last line", "1.1", TE, "0\r\n\rG", NULL, 0},
        {"2.2: bare CR in the trailers", "1.1", TE, "0\r\nA: b\rc\r\n\r\n", NULL, 0},
        {"7.1.1: a control byte", "1.1", TE, "1;\x01\r\na\r\n", NULL, 0},
        {"7.1.2: no colon", "1.1", TE, "0\r\nA\r\n\r\n", NULL, 0},
        {"7.1.2: white space before the colon", "1.1", TE, "0\r\nA : b\r\n\r\n", NULL, 0},
        {"7.1.2: no name", "1.1", TE, "0\r\n: b\r\n\r\n", NULL, 0},
        {"7.1.2: folded", "1.1", TE, "0\r\nA: b\r\n c\r\n\r\n", NULL, 0},
        {"7.1.2: a control byte", "1.1", TE, "0\r\nA: \x01\r\n\r\n", NULL, 0},
    };
    run(cases, ARRAY_SIZE(cases));
}

static struct outcome chunked(const char *before, const char *piece, size_t times, const char *after)
{
    char start[100];
    snprintf(start, sizeof start, "POST / HTTP/1.1\r\nHost: h\r\n" TE "\r\n%s", before);
    struct span input = repeated(start, piece, times, after);
    struct outcome whole = every_way(input, drive, NULL);
    every_prefix(input, drive, NULL, &whole);
    return whole;
}

static void chunk_size_lines_and_trailers_are_bounded(void **state)
{
    (void)state;
    size_t line = HTTP_CHUNK_LINE_MAX - strlen("1;\r\n");
    assert_int_equal(chunked("1;", "x", line, "\r\na\r\n0\r\n\r\n").error, 0);
    assert_int_equal(chunked("1;", "x", line + 1, "\r\na\r\n0\r\n\r\n").error, PE_MALFORMED);
    size_t trailers = HTTP_HEAD_MAX / 8;
    assert_int_equal(chunked("0\r\n", "A: bcd\r\n", trailers - 1, "A:xxx\n\r\n").error, PE_MALFORMED);
    assert_int_equal(chunked("0\r\n", "A: bcd\r\n", trailers - 1, "A:bc\r\n\r\n").error, 0);
    assert_int_equal(chunked("0\r\n", "A: bcd\r\n", trailers - 1, "A:bcd\r\n\r\n").error, PE_MALFORMED);
    assert_int_equal(chunked("0\r\n", "A: bcd\r\n", 4000, "").error, PE_MALFORMED);
    /* the bound is a line's, not the body's */
    struct outcome o = chunked("", "1;extension\r\nx\r\n", 2000, "0\r\n\r\n");
    assert_int_equal(o.error, 0);
    assert_int_equal(o.content, 2000);
}

struct framing_case {
    const char *section;
    const char *head;
    int error;
    enum http_framing framing;
    uint64_t left;
    bool exact;
};

static void run_framing(const struct framing_case *cases, size_t count, bool head_request)
{
    for (size_t i = 0; i < count; i++) {
        const struct framing_case *c = &cases[i];
        uint8_t *copy = drive_copy(span_text(c->head));
        struct http_body body;
        bool exact = false;
        size_t scanned = 0;
        assert_int_equal(http_reply_head(copy, strlen(c->head), &scanned, &head), strlen(c->head));
        int error = http_reply_body(&head, head_request, &body, &exact);
        if (error != c->error || (error == 0 && (body.framing != c->framing || exact != c->exact)))
            print_error("section %s: %d, framing %d, exact %d:\n%s", c->section, error, (int)body.framing,
                        exact, c->head);
        assert_int_equal(error, c->error);
        free(copy);
        if (error < 0)
            continue;
        assert_int_equal(body.framing, c->framing);
        assert_int_equal(body.left, c->left);
        assert_int_equal(exact, c->exact);
    }
}

#define OK_11 "HTTP/1.1 200 OK\r\n"
#define OK_10 "HTTP/1.0 200 OK\r\n"

static void the_framing_of_a_reply_is_read_as_the_rfc_says(void **state)
{
    (void)state;
    static const struct framing_case cases[] = {
        {"9112 6.3 rule 6", OK_11 CL "5\r\n\r\n", 0, HTTP_SIZED, 5, true},
        {"9112 6.3 rule 6", OK_11 CL "9223372036854775807\r\n\r\n", 0, HTTP_SIZED, INT64_MAX, true},
        {"9112 6.3 rule 8", OK_11 "\r\n", 0, HTTP_UNTIL_CLOSE, 0, false},
        {"9112 6.3 rule 8", OK_10 "\r\n", 0, HTTP_UNTIL_CLOSE, 0, false},
        {"9112 6.3 rule 4", OK_11 TE "\r\n", 0, HTTP_CHUNKED, 0, true},
        {"9112 6.3 rule 4: another coding", OK_11 "Transfer-Encoding: gzip\r\n\r\n", 0, HTTP_UNTIL_CLOSE, 0,
         false},
        {"9112 6.3 rule 4: chunked last", OK_11 "Transfer-Encoding: gzip, chunked\r\n\r\n", 0, HTTP_CHUNKED,
         0, false},
        {"9112 6.3 rule 4: in two lines", OK_11 "Transfer-Encoding: gzip\r\n" TE "\r\n", 0, HTTP_CHUNKED, 0,
         false},
        {"9112 6.3 rule 4: chunked, but not last", OK_11 "Transfer-Encoding: chunked, gzip\r\n\r\n", 0,
         HTTP_UNTIL_CLOSE, 0, false},
        {"9112 6.1: chunked twice", OK_11 "Transfer-Encoding: chunked , chunked\r\n\r\n", 0, HTTP_CHUNKED, 0,
         false},
        {"9112 6.3 rule 3: it overrides the length", OK_11 CL "5\r\n" TE "\r\n", 0, HTTP_CHUNKED, 0, false},
        {"9112 6.3 rule 3: even an invalid one", OK_11 CL "x\r\n" TE "\r\n", 0, HTTP_CHUNKED, 0, false},
        {"9112 6.3 rule 3: until close", OK_11 CL "5\r\nTransfer-Encoding: gzip\r\n\r\n", 0, HTTP_UNTIL_CLOSE,
         0, false},
        {"9112 6.1: in HTTP/1.0", OK_10 TE "Connection: keep-alive\r\n\r\n", 0, HTTP_CHUNKED, 0, false},
        {"9110 5.6.1: empty elements", OK_11 "Transfer-Encoding: , chunked,\r\n\r\n", 0, HTTP_CHUNKED, 0,
         true},
        {"2616 3.6: identity is nothing", OK_11 "Transfer-Encoding: identity\r\n" CL "5\r\n\r\n", 0,
         HTTP_SIZED, 5, false},
        {"9110 8.6: the same twice", OK_11 CL "5\r\n" CL "05\r\n\r\n", 0, HTTP_SIZED, 5, true},
        {"9110 8.6: the same in a list", OK_11 CL "5, 5,5\r\n\r\n", 0, HTTP_SIZED, 5, true},
        {"9112 6.3 rule 5: different", OK_11 CL "5\r\n" CL "6\r\n\r\n", PE_MALFORMED, 0, 0, false},
        {"9112 6.3 rule 5: different in a list", OK_11 CL "5, 6\r\n\r\n", PE_MALFORMED, 0, 0, false},
        {"9112 6.3 rule 5: two of three", OK_11 CL "5, 6\r\n" CL "6\r\n\r\n", PE_MALFORMED, 0, 0, false},
        {"9112 6.3 rule 5: one is huge", OK_11 CL "5, 99999999999999999999\r\n\r\n", PE_MALFORMED, 0, 0,
         false},
        {"9112 6.3 rule 5: empty", OK_11 CL "\r\n\r\n", PE_MALFORMED, 0, 0, false},
        {"9112 6.3 rule 5: an empty element", OK_11 CL "5,\r\n\r\n", PE_MALFORMED, 0, 0, false},
        {"9112 6.3 rule 5: negative", OK_11 CL "-5\r\n\r\n", PE_MALFORMED, 0, 0, false},
        {"9112 6.3 rule 5: signed", OK_11 CL "+5\r\n\r\n", PE_MALFORMED, 0, 0, false},
        {"9112 6.3 rule 5: letters after it", OK_11 CL "5x\r\n" CL "5\r\n\r\n", PE_MALFORMED, 0, 0, false},
        {"9112 5.2: folded, and two numbers by that", OK_11 CL "5\r\n 5\r\n\r\n", PE_MALFORMED, 0, 0, false},
        {"9112 5.2: folded before the number", OK_11 CL "\r\n 5\r\n\r\n", 0, HTTP_SIZED, 5, true},
        {"9110 8.6: over 63 bits", OK_11 CL "36893488147419103232\r\n\r\n", 0, HTTP_UNTIL_CLOSE, 0, false},
        {"9110 8.6: just over", OK_11 CL "9223372036854775808\r\n\r\n", 0, HTTP_UNTIL_CLOSE, 0, false},
        {"9112 6.3 rule 1: 204", "HTTP/1.1 204\r\n\r\n", 0, HTTP_NO_BODY, 0, true},
        {"9110 8.6: 204 with a length", "HTTP/1.1 204\r\n" CL "5\r\n\r\n", 0, HTTP_NO_BODY, 0, false},
        {"9110 8.6: 204 with length 0", "HTTP/1.1 204\r\n" CL "0\r\n\r\n", 0, HTTP_NO_BODY, 0, true},
        {"9112 6.1: 204 with a coding", "HTTP/1.1 204\r\n" TE "\r\n", 0, HTTP_NO_BODY, 0, false},
        {"9112 6.3 rule 1: 304", "HTTP/1.1 304\r\n" CL "5\r\n\r\n", 0, HTTP_NO_BODY, 0, true},
        {"9112 6.3 rule 1: 1xx", "HTTP/1.1 103\r\n\r\n", 0, HTTP_NO_BODY, 0, true},
        {"9110 15.3.6: 205 is framed as any", "HTTP/1.1 205\r\n" CL "0\r\n\r\n", 0, HTTP_SIZED, 0, true},
    };
    run_framing(cases, ARRAY_SIZE(cases), false);
}

static void the_answer_to_a_head_request_has_no_body(void **state)
{
    (void)state;
    static const struct framing_case cases[] = {
        {"9112 6.3 rule 1", OK_11 CL "5\r\n\r\n", 0, HTTP_NO_BODY, 0, true},
        {"9112 6.3 rule 1", OK_11 "\r\n", 0, HTTP_NO_BODY, 0, true},
    };
    run_framing(cases, ARRAY_SIZE(cases), true);
}

static void a_body_ends_with_the_stream_only_if_nothing_else_ends_it(void **state)
{
    (void)state;
    struct http_body body = {.framing = HTTP_NO_BODY};
    size_t used;
    struct span content;
    assert_int_equal(http_body_end(&body), 0);
    body = (struct http_body){.framing = HTTP_UNTIL_CLOSE};
    assert_int_equal(http_body_take(&body, span_text("all of it"), &used, &content), 0);
    assert_int_equal(used, 9);
    assert_int_equal(content.size, 9);
    assert_int_equal(http_body_end(&body), 0);
    body = (struct http_body){.framing = HTTP_SIZED, .left = 3};
    assert_int_equal(http_body_take(&body, span_text("ab"), &used, &content), 0);
    assert_int_equal(http_body_end(&body), PE_CLOSED_EARLY);
    assert_int_equal(http_body_take(&body, span_text("cd"), &used, &content), 1);
    assert_int_equal(used, 1);
    assert_int_equal(http_body_end(&body), 0);
    assert_int_equal(http_body_take(&body, span_text("d"), &used, &content), 1);
    assert_int_equal(used, 0);
    body = (struct http_body){.framing = HTTP_CHUNKED};
    assert_int_equal(http_body_take(&body, span_text("1\na\n0\n"), &used, &content), 0);
    assert_int_equal(http_body_end(&body), PE_CLOSED_EARLY);
    assert_int_equal(http_body_take(&body, span_text("\nx"), &used, &content), 1);
    assert_int_equal(used, 1);
    assert_int_equal(http_body_end(&body), 0);
    assert_int_equal(http_body_take(&body, span_text("x"), &used, &content), 1);
    assert_int_equal(used, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_framing_of_a_request_is_beyond_doubt_or_malformed),
        cmocka_unit_test(the_chunked_coding_of_a_request_is_read_strictly),
        cmocka_unit_test(chunk_size_lines_and_trailers_are_bounded),
        cmocka_unit_test(the_framing_of_a_reply_is_read_as_the_rfc_says),
        cmocka_unit_test(the_answer_to_a_head_request_has_no_body),
        cmocka_unit_test(a_body_ends_with_the_stream_only_if_nothing_else_ends_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
