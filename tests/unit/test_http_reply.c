/* Whole replies, cut in every way, with and without an end of the stream after them. */
#include "http_ways.h"

static struct http_reply reply;

struct how {
    bool head_request;
    bool closes;
};

static struct outcome drive(struct span input, const struct cuts *cuts, void *context)
{
    const struct how *how = context;
    return drive_reply(input, cuts, how->head_request, how->closes, &reply);
}

static struct outcome take(struct span input, struct how how)
{
    struct outcome whole = every_way(input, drive, &how);
    if (!how.closes)
        every_prefix(input, drive, &how, &whole);
    return whole;
}

enum close { STAYS, CLOSES };

struct reply_case {
    const char *section; /* of RFC 9112 unless it says otherwise */
    const char *bytes;
    size_t size;
    enum close close;
    int error;
    uint16_t status;
    bool reusable;
    const char *content;
    size_t surplus;
};

#define REPLY(text) text, sizeof(text) - 1

static void run(const struct reply_case *cases, size_t count, bool head_request)
{
    for (size_t i = 0; i < count; i++) {
        const struct reply_case *c = &cases[i];
        struct outcome o = take(span_of(c->bytes, c->size), (struct how){head_request, c->close == CLOSES});
        if (o.error != c->error || o.status != c->status || o.reusable != c->reusable)
            print_error("section %s: error %d status %u reusable %d:\n%s\n", c->section, o.error, o.status,
                        o.reusable, c->bytes);
        assert_int_equal(o.error, c->error);
        assert_int_equal(o.status, c->status);
        assert_int_equal(o.reusable, c->reusable);
        if (o.error < 0)
            continue;
        assert_int_equal(o.content, strlen(c->content));
        assert_int_equal(o.hash, drive_hash(DRIVE_HASH_START, span_text(c->content)));
        assert_int_equal(c->size - o.used, c->surplus);
    }
}

#define V11 "HTTP/1.1 200 OK\r\n"
#define V10 "HTTP/1.0 200 OK\r\n"
#define CL  "Content-Length: "
#define TE  "Transfer-Encoding: chunked\r\n"

static void valid_replies_are_taken(void **state)
{
    (void)state;
    static const struct reply_case cases[] = {
        {"6.3", REPLY(V11 CL "5\r\n\r\nhello"), STAYS, 0, 200, true, "hello", 0},
        {"6.3: nothing", REPLY(V11 CL "0\r\n\r\n"), STAYS, 0, 200, true, "", 0},
        {"6.3: surplus is left", REPLY(V11 CL "5\r\n\r\nhelloHTTP/1.1 500"), STAYS, 0, 200, true, "hello",
         12},
        {"6.3: the end after it changes nothing", REPLY(V11 CL "5\r\n\r\nhello"), CLOSES, 0, 200, true,
         "hello", 0},
        {"6.3: until close", REPLY(V11 "\r\nhello"), CLOSES, 0, 200, false, "hello", 0},
        {"6.3: until close, nothing", REPLY(V11 "\r\n"), CLOSES, 0, 200, false, "", 0},
        {"6.3: until close, HTTP/1.0", REPLY(V10 "A: b\r\n\r\nhello"), CLOSES, 0, 200, false, "hello", 0},
        {"6.3: a coding nobody asked for", REPLY(V11 CL "1\r\nTransfer-Encoding: gzip\r\n\r\nhello"), CLOSES,
         0, 200, false, "hello", 0},
        {"RFC 9110 8.6: no such length can be", REPLY(V11 CL "36893488147419103232\r\n\r\nhello"), CLOSES, 0,
         200, false, "hello", 0},
        {"6.3: 204", REPLY("HTTP/1.1 204 No Content\r\n\r\nx"), STAYS, 0, 204, true, "", 1},
        {"6.3: 304", REPLY("HTTP/1.1 304 Not Modified\r\n" CL "5\r\n\r\n"), STAYS, 0, 304, true, "", 0},
        {"4: no reason", REPLY("HTTP/1.1 503\r\n" CL "0\r\n\r\n"), STAYS, 0, 503, true, "", 0},
        {"4: a status of no class", REPLY("HTTP/1.1 999 \r\n" CL "0\r\n\r\n"), STAYS, 0, 999, true, "", 0},
        {"2.3: a higher minor version", REPLY("HTTP/1.2 200 OK\r\n" CL "0\r\n\r\n"), STAYS, 0, 200, true, "",
         0},
        {"2.2: bare LF", REPLY("HTTP/1.1 200 OK\n" CL "5\n\nhello"), STAYS, 0, 200, true, "hello", 0},
        {"2.2: both line ends", REPLY("HTTP/1.1 200 OK\nA: b\r\n" CL "2\n\r\nhi"), STAYS, 0, 200, true, "hi",
         0},
        {"5.2: folded fields", REPLY(V11 CL "\r\n 2\r\nConnection: \r\n  close\r\n\r\nhi"), STAYS, 0, 200,
         false, "hi", 0},
        {"RFC 9110 5.5: control bytes", REPLY(V11 "A: \x01\x7f\x80\r\n" CL "0\r\n\r\n"), STAYS, 0, 200, true,
         "", 0},
        {"9.3: close", REPLY(V11 "Connection: close\r\n" CL "0\r\n\r\n"), STAYS, 0, 200, false, "", 0},
        {"9.3: close among others", REPLY(V11 "Connection: a-close, close-a, CLOSE\r\n" CL "0\r\n\r\n"),
         STAYS, 0, 200, false, "", 0},
        {"9.3: close in the second line", REPLY(V11 "Connection: a\r\nConnection: close\r\n" CL "0\r\n\r\n"),
         STAYS, 0, 200, false, "", 0},
        {"9.3: close wins", REPLY(V11 "Connection: keep-alive, close\r\n" CL "0\r\n\r\n"), STAYS, 0, 200,
         false, "", 0},
        {"9.3: HTTP/1.0", REPLY(V10 CL "2\r\n\r\nhi"), STAYS, 0, 200, false, "hi", 0},
        {"9.3: HTTP/1.0 keep-alive", REPLY(V10 CL "2\r\nConnection: Keep-Alive\r\n\r\nhi"), STAYS, 0, 200,
         true, "hi", 0},
        {"15.2 of RFC 9110", REPLY("HTTP/1.1 100 Continue\r\n\r\n" V11 CL "2\r\n\r\nhi"), STAYS, 0, 200, true,
         "hi", 0},
        {"15.2 of RFC 9110: with fields, bare LF",
         REPLY("HTTP/1.1 102 hm?!\n\nHTTP/1.1 103 E\nLink: a\n\n" V11 CL "0\n\n"), STAYS, 0, 200, true, "",
         0},
        {"8: HTTP/1.0 head without its end", REPLY("HTTP/1.0 200 OK\nA: b\n"), CLOSES, 0, 200, false, "", 0},
    };
    run(cases, ARRAY_SIZE(cases), false);
}

/* What the RFC lets clients pass over; but such a connection is not used again. */
static void odd_heads_are_forgiven_once(void **state)
{
    (void)state;
    static const struct reply_case cases[] = {
        {"4: tabs are spaces", REPLY("HTTP/1.1\t200\tOK\r\n" CL "0\r\n\r\n"), STAYS, 0, 200, true, "", 0},
        {"2.2: white space before the first field", REPLY(V11 " A: b\r\n\tc\r\n" CL "2\r\n\r\nhi"), STAYS, 0,
         200, false, "hi", 0},
        {"2.2: a length there is none", REPLY(V11 " " CL "9\r\n" CL "2\r\n\r\nhi"), STAYS, 0, 200, false,
         "hi", 0},
        {"5.1: white space before the colon", REPLY(V11 "Content-Length \t: 2\r\n\r\nhi"), STAYS, 0, 200,
         false, "hi", 0},
        {"5: no token", REPLY(V11 "A b: c\r\n" CL "0\r\n\r\n"), STAYS, 0, 200, false, "", 0},
        {"5: no name", REPLY(V11 ": b\r\n" CL "0\r\n\r\n"), STAYS, 0, 200, false, "", 0},
        {"5: odd, chunked", REPLY(V11 TE "\x7f: b\r\n\r\n1\r\na\r\n0\r\n\r\n"), STAYS, 0, 200, false, "a", 0},
    };
    run(cases, ARRAY_SIZE(cases), false);
}

/* The coding is named, and undone by whoever wants the content (wire/inflate.h). */
static void transfer_codings_are_told(void **state)
{
    (void)state;
    static const struct {
        const char *head;
        enum http_framing framing;
        enum http_coding coding;
    } cases[] = {
        {V11 "Transfer-Encoding: gzip\r\n\r\n", HTTP_UNTIL_CLOSE, HTTP_GZIP},
        {V11 "Transfer-Encoding: X-Gzip , chunked\r\n\r\n", HTTP_CHUNKED, HTTP_GZIP},
        {V11 "Transfer-Encoding: deflate\r\nTransfer-Encoding: chunked\r\n\r\n", HTTP_CHUNKED, HTTP_DEFLATE},
        {V11 "Transfer-Encoding: chunked, chunked\r\n\r\n", HTTP_CHUNKED, HTTP_PLAIN},
        {V11 "Transfer-Encoding: identity\r\n\r\n", HTTP_UNTIL_CLOSE, HTTP_PLAIN},
        {V11 "Transfer-Encoding: gzip, gzip\r\n\r\n", HTTP_UNTIL_CLOSE, HTTP_UNKNOWN},
        {V11 "Transfer-Encoding: chunked, gzip\r\n\r\n", HTTP_UNTIL_CLOSE, HTTP_UNKNOWN},
        {V11 "Transfer-Encoding: br, chunked\r\n\r\n", HTTP_CHUNKED, HTTP_UNKNOWN},
        {V11 "Transfer-Encoding: gobbledygook\r\n\r\n", HTTP_UNTIL_CLOSE, HTTP_UNKNOWN},
        {"HTTP/1.1 204\r\nTransfer-Encoding: gobbledygook\r\n\r\n", HTTP_NO_BODY, HTTP_PLAIN},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        bool known = cases[i].coding != HTTP_UNKNOWN;
        struct outcome o = take(span_text(cases[i].head), (struct how){.closes = false});
        if (reply.body.framing != cases[i].framing || reply.body.coding != cases[i].coding)
            print_error("%s", cases[i].head);
        assert_int_equal(reply.body.framing, cases[i].framing);
        assert_int_equal(reply.body.coding, cases[i].coding);
        assert_true(o.status > 0);
        assert_int_equal(o.error == PE_HTTP_REPLY, !known);
        assert_true(!o.reusable || o.status == 204);
    }
}

static void chunked_replies_are_taken(void **state)
{
    (void)state;
    static const struct reply_case cases[] = {
        {"7.1", REPLY(V11 TE "\r\n5\r\nhello\r\n0\r\n\r\n"), STAYS, 0, 200, true, "hello", 0},
        {"7.1: surplus", REPLY(V11 TE "\r\n0\r\n\r\nxy"), STAYS, 0, 200, true, "", 2},
        {"7.1.1, 7.1.2", REPLY(V11 TE "\r\n5;a=\"b\"\r\nhello\r\n0;c\r\nA: b\r\nC: d\r\n\r\n"), STAYS, 0, 200,
         true, "hello", 0},
        {"7.1: bare LF", REPLY(V11 TE "\n5\nhello\n1;a\n!\n0\nA: b\n\n"), STAYS, 0, 200, true, "hello!", 0},
        {"7.1: white space after the size", REPLY(V11 TE "\r\n5  \r\nhello\r\n0\t\r\n\r\n"), STAYS, 0, 200,
         true, "hello", 0},
        {"7.1.2: a folded trailer", REPLY(V11 TE "\r\n0\r\nA: b\r\n c\r\n\r\n"), STAYS, 0, 200, true, "", 0},
        {"6.1: twice is once", REPLY(V11 "Transfer-Encoding: chunked\r\n" TE "\r\n1\r\na\r\n0\r\n\r\n"),
         STAYS, 0, 200, false, "a", 0},
        {"6.3: it overrides the length", REPLY(V11 CL "99\r\n" TE "\r\n1\r\na\r\n0\r\n\r\n"), STAYS, 0, 200,
         false, "a", 0},
        {"6.1: HTTP/1.0", REPLY(V10 TE "Connection: keep-alive\r\n\r\n1\r\na\r\n0\r\n\r\n"), STAYS, 0, 200,
         false, "a", 0},
        {"7.1: no size", REPLY(V11 TE "\r\nstuff"), STAYS, PE_HTTP_REPLY, 200, false, "", 0},
        {"7.1: too long a size", REPLY(V11 TE "\r\n11111111111111111\r\n"), STAYS, PE_HTTP_REPLY, 200, false,
         "", 0},
        {"7.1: data longer than its size", REPLY(V11 TE "\r\n1\r\nab"), STAYS, PE_HTTP_REPLY, 200, false, "",
         0},
        {"7.1.1: control bytes", REPLY(V11 TE "\r\n1;\x01\r\na\r\n0\r\n\r\n"), STAYS, 0, 200, true, "a", 0},
        {"2.2: bare CR", REPLY(V11 TE "\r\n1;a\rb\r\n"), STAYS, PE_HTTP_REPLY, 200, false, "", 0},
        {"7.1.2: a fold before any trailer", REPLY(V11 TE "\r\n0\r\n a\r\n\r\n"), STAYS, PE_HTTP_REPLY, 200,
         false, "", 0},
        {"7.1.2: NUL", REPLY(V11 TE "\r\n0\r\nA: \0\r\n\r\n"), STAYS, PE_HTTP_REPLY, 200, false, "", 0},
        {"8: ended in a chunk", REPLY(V11 TE "\r\n5\r\nhell"), CLOSES, PE_CLOSED_EARLY, 200, false, "", 0},
        {"8: ended between chunks", REPLY(V11 TE "\r\n5\r\nhello\r\n"), CLOSES, PE_CLOSED_EARLY, 200, false,
         "", 0},
        {"8: ended in the trailers", REPLY(V11 TE "\r\n0\r\nA: b\r\n"), CLOSES, PE_CLOSED_EARLY, 200, false,
         "", 0},
        {"8: ended before the last LF", REPLY(V11 TE "\r\n0\r\n\r"), CLOSES, PE_CLOSED_EARLY, 200, false, "",
         0},
    };
    run(cases, ARRAY_SIZE(cases), false);
}

static void invalid_replies_are_refused_in_every_way_they_come(void **state)
{
    (void)state;
    static const struct {
        const char *section;
        const char *bytes;
        size_t size;
    } cases[] = {
        {"2.3: HTTP/0.9", REPLY("<html>hello</html>\n")},
        {"2.3: HTTP/2", REPLY("HTTP/2 200 OK\r\n\r\n")},
        {"2.3: HTTP/2.0", REPLY("HTTP/2.0 200 OK\r\n\r\n")},
        {"2.3: HTTP/3", REPLY("HTTP/3 200\r\n\r\n")},
        {"2.3: HTTP/1", REPLY("HTTP/1 200 OK\r\n\r\n")},
        {"2.3: two digits", REPLY("HTTP/1.11 200 OK\r\n\r\n")},
        {"2.3: lower case", REPLY("http/1.1 200 OK\r\n\r\n")},
        {"2.3: something else", REPLY("ICY 200 OK\r\n\r\n")},
        {"2.3: TLS", REPLY("\x15\x03\x01\x00\x02\x02\x16")},
        {"2.2: an empty line before", REPLY("\r\n" V11 "\r\n")},
        {"4: one digit", REPLY("HTTP/1.1 2 OK\r\n" CL "0\r\n\r\n")},
        {"4: two digits", REPLY("HTTP/1.1 20 OK\r\n" CL "0\r\n\r\n")},
        {"4: four digits", REPLY("HTTP/1.1 2000 OK\r\n" CL "0\r\n\r\n")},
        {"4: no digits", REPLY("HTTP/1.1 OK\r\n" CL "0\r\n\r\n")},
        {"4: negative", REPLY("HTTP/1.1 -20 OK\r\n" CL "0\r\n\r\n")},
        {"4: under 100", REPLY("HTTP/1.1 099 OK\r\n" CL "0\r\n\r\n")},
        {"4: no space after it", REPLY("HTTP/1.1 200OK\r\n" CL "0\r\n\r\n")},
        {"4: no status", REPLY("HTTP/1.1\r\n" CL "0\r\n\r\n")},
        {"4: a NUL in the reason", REPLY("HTTP/1.1 200 O\0K\r\n" CL "0\r\n\r\n")},
        {"2.2: bare CR in the status line", REPLY("HTTP/1.1 200 O\rK\r\n" CL "0\r\n\r\n")},
        {"2.2: bare CR in a field", REPLY(V11 "A: b\rc\r\n" CL "0\r\n\r\n")},
        {"2.2: bare CR before a line end", REPLY(V11 "A: b\r\r\n" CL "0\r\n\r\n")},
        {"RFC 9110 5.5: NUL", REPLY(V11 "A: b\0c\r\n" CL "0\r\n\r\n")},
        {"5.2: NUL in a fold", REPLY(V11 "A: b\r\n \0c\r\n" CL "0\r\n\r\n")},
        {"5.2: bare CR in a fold", REPLY(V11 "A: b\r\n \rc\r\n" CL "0\r\n\r\n")},
        {"5.2: a colon behind a fold only", REPLY(V11 "A\r\n b: c\r\n" CL "0\r\n\r\n")},
        {"5.2: a folded line without a colon", REPLY(V11 "A\r\n b\r\n" CL "0\r\n\r\n")},
        {"5: no colon", REPLY(V11 "A\r\n" CL "0\r\n\r\n")},
        {"5: a NUL in a name", REPLY(V11 "A\0: b\r\n" CL "0\r\n\r\n")},
        {"5: a bare CR in a name", REPLY(V11 "A\r: b\r\n" CL "0\r\n\r\n")},
        {"2.2: a bare CR before the first field", REPLY(V11 " A\rb\r\n" CL "0\r\n\r\n")},
        {"4: two spaces", REPLY("HTTP/1.1  200 OK\r\n" CL "0\r\n\r\n")},
        {"6.3: different lengths", REPLY(V11 CL "5\r\n" CL "6\r\n\r\nhello")},
        {"6.3: not a length", REPLY(V11 CL "5x\r\n\r\nhello")},
        {"6.3: a negative length", REPLY(V11 CL "-5\r\n\r\nhello")},
        {"RFC 9110 15.2.2: nothing was upgraded", REPLY("HTTP/1.1 101 Switching\r\nUpgrade: h2c\r\n\r\n")},
        {"6.3: after an interim reply", REPLY("HTTP/1.1 100\r\n\r\nHTTP/2 200\r\n\r\n")},
        {"6.3: an interim reply has no body", REPLY("HTTP/1.1 100\r\n" CL "2\r\n\r\nhi" V11 "\r\n")},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct span input = span_of(cases[i].bytes, cases[i].size);
        struct outcome open = take(input, (struct how){.closes = false});
        struct outcome closed = take(input, (struct how){.closes = true});
        if (open.error != PE_HTTP_REPLY || closed.error != PE_HTTP_REPLY)
            print_error("section %s: %d:\n%s\n", cases[i].section, open.error, cases[i].bytes);
        assert_int_equal(open.error, PE_HTTP_REPLY);
        assert_int_equal(closed.error, PE_HTTP_REPLY);
        assert_int_equal(open.status, 0);
        assert_false(open.reusable);
    }
}

/* RFC 9112 section 8: what ends before it is complete says nothing, HTTP/1.0 heads aside. */
static void a_stream_that_ends_early_is_no_reply(void **state)
{
    (void)state;
    static const struct reply_case cases[] = {
        {"8: nothing came", REPLY(""), CLOSES, PE_CLOSED, 0, false, "", 0},
        {"8", REPLY("HT"), CLOSES, PE_CLOSED_EARLY, 0, false, "", 0},
        {"8", REPLY("HTTP/1.1 200 OK"), CLOSES, PE_CLOSED_EARLY, 0, false, "", 0},
        {"8", REPLY("HTTP/1.1 200 OK\r\nA: b\r\n"), CLOSES, PE_CLOSED_EARLY, 0, false, "", 0},
        {"8", REPLY("HTTP/1.1 200 OK\r\nA: b\r\n\r"), CLOSES, PE_CLOSED_EARLY, 0, false, "", 0},
        {"8: HTTP/1.0 within a line", REPLY("HTTP/1.0 200 OK\r\nA: b"), CLOSES, PE_CLOSED_EARLY, 0, false, "",
         0},
        {"8: HTTP/1.0 after the status line", REPLY("HTTP/1.0 200 OK\r\n"), CLOSES, PE_CLOSED_EARLY, 0, false,
         "", 0},
        {"8: HTTP/1.0 with a length", REPLY(V10 CL "5\r\n"), CLOSES, PE_CLOSED_EARLY, 0, false, "", 0},
        {"8: HTTP/1.0, an interim one", REPLY("HTTP/1.0 100 OK\r\nA: b\r\n"), CLOSES, PE_CLOSED_EARLY, 0,
         false, "", 0},
        {"8: after an interim reply", REPLY("HTTP/1.1 100\r\n\r\n"), CLOSES, PE_CLOSED_EARLY, 0, false, "",
         0},
        {"8: in the body", REPLY(V11 CL "5\r\n\r\nhell"), CLOSES, PE_CLOSED_EARLY, 200, false, "", 0},
        {"8: before the body", REPLY(V11 CL "5\r\n\r\n"), CLOSES, PE_CLOSED_EARLY, 200, false, "", 0},
    };
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
        if (cases[i].size == 0)
            assert_int_equal(
                drive(span_of("", 0), &(struct cuts){.count = 0}, &(struct how){.closes = true}).error,
                cases[i].error);
        else
            run(&cases[i], 1, false);
}

static void the_answer_to_a_head_request_ends_with_its_head(void **state)
{
    (void)state;
    static const struct reply_case cases[] = {
        {"6.3", REPLY(V11 CL "5\r\n\r\n"), STAYS, 0, 200, true, "", 0},
        {"6.3", REPLY(V11 TE "\r\nx"), STAYS, 0, 200, false, "", 1},
        {"6.3", REPLY(V11 "\r\n"), STAYS, 0, 200, true, "", 0},
    };
    run(cases, ARRAY_SIZE(cases), true);
}

static void interim_replies_are_bounded(void **state)
{
    (void)state;
    const char *interim = "HTTP/1.1 102 Processing\r\nA: b\r\n\r\n";
    struct how how = {.closes = false};
    assert_int_equal(take(repeated("", interim, HTTP_INTERIM_MAX, V11 CL "0\r\n\r\n"), how).error, 0);
    assert_int_equal(take(repeated("", interim, HTTP_INTERIM_MAX + 1, V11 CL "0\r\n\r\n"), how).error,
                     PE_HTTP_REPLY);
}

/* A large input, in one piece and cut where a head outgrows its first room, and near its end. */
static struct outcome at_the_ends(struct span input, struct how *how)
{
    struct outcome whole = drive(input, &(struct cuts){.count = 0}, how);
    const size_t places[] = {HTTP_HEAD_MAX - 1, HTTP_HEAD_MAX, HTTP_HEAD_MAX + 1, input.size - 4,
                             input.size - 1};
    for (size_t i = 0; i < ARRAY_SIZE(places); i++)
        same_outcome(input, &(struct cuts){.at = {places[i]}, .count = 1}, drive, how, &whole);
    return whole;
}

static void endless_heads_are_bounded(void **state)
{
    (void)state;
    struct how how = {.closes = false};
    size_t rest = strlen(V11 CL "2\r\nA: \r\n\r\n"), most = HTTP_REPLY_HEAD_MAX - rest;
    struct outcome o = at_the_ends(repeated(V11 CL "2\r\nA: ", "x", most, "\r\n\r\nhi!"), &how);
    assert_int_equal(o.error, 0);
    assert_int_equal(o.content, 2);
    assert_int_equal(at_the_ends(repeated(V11 CL "2\r\nA: ", "x", most + 1, "\r\n\r\nhi"), &how).error,
                     PE_HTTP_REPLY);
    assert_int_equal(at_the_ends(repeated("HTTP/1.1 200 ", "x", most + rest, ""), &how).error, PE_HTTP_REPLY);
}

static void the_fields_that_are_read_find_room_behind_any_number_of_others(void **state)
{
    (void)state;
    struct how how = {.closes = false};
    size_t most = HTTP_FIELDS_MAX - HTTP_FIELDS_READ;
    struct outcome o = take(repeated(V11, "A: b\r\n", most + 10, CL "2\r\n\r\nhi!"), how);
    assert_int_equal(o.error, 0);
    assert_int_equal(o.count, most + 1);
    assert_int_equal(o.content, 2);
    assert_true(o.reusable);
    o = take(repeated(V11, "Date: b\r\n", HTTP_FIELDS_MAX, CL "2\r\n\r\nhi!"), how);
    assert_int_equal(o.error, PE_HTTP_REPLY); /* a length that was left out would be a lie */
}

static void a_body_larger_than_any_buffer_goes_through(void **state)
{
    (void)state;
    struct outcome o = take(repeated(V11 CL "50000\r\n\r\n", "0123456789", 5000, "surplus"), (struct how){0});
    assert_int_equal(o.error, 0);
    assert_int_equal(o.content, 50000);
}

static void a_reply_structure_serves_one_reply_after_the_other(void **state)
{
    (void)state;
    struct cuts cuts = {.every = true};
    struct how how = {.closes = false};
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(drive(span_text("HTTP/1.1 200 OK\r\nA: b\r\n"), &cuts, &how).error, PE_INCOMPLETE);
        assert_int_equal(drive(span_text("HTTP/1.1 204\r\n\r\n"), &cuts, &how).error, 0);
        assert_int_equal(reply.head.count, 0);
        assert_int_equal(drive(span_text("junk"), &cuts, &how).error, PE_HTTP_REPLY);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(valid_replies_are_taken),
        cmocka_unit_test(odd_heads_are_forgiven_once),
        cmocka_unit_test(transfer_codings_are_told),
        cmocka_unit_test(the_fields_that_are_read_find_room_behind_any_number_of_others),
        cmocka_unit_test(chunked_replies_are_taken),
        cmocka_unit_test(invalid_replies_are_refused_in_every_way_they_come),
        cmocka_unit_test(a_stream_that_ends_early_is_no_reply),
        cmocka_unit_test(the_answer_to_a_head_request_ends_with_its_head),
        cmocka_unit_test(interim_replies_are_bounded),
        cmocka_unit_test(endless_heads_are_bounded),
        cmocka_unit_test(a_body_larger_than_any_buffer_goes_through),
        cmocka_unit_test(a_reply_structure_serves_one_reply_after_the_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
