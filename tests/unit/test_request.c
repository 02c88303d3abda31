/* Heads of requests: each mode's lines, what headers of the configuration replace and may not, proxies,
 * signatures, and that they fit where they are written. */
#include "wire/request.h"

#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

static struct wire_options options_of(enum wire_mode mode, const char *url)
{
    struct wire_options o;
    const char *why;
    wire_options_default(&o);
    assert_int_equal(url_parse(&o.url, url, &why), 0);
    o.mode = mode;
    wire_options_statuses(&o);
    o.agent = "pure-host/1.0";
    o.source = "pi1/counter/cloud";
    o.event = "measured";
    for (int i = 0; i < WIRE_EPOCH_BYTES; i++)
        o.epoch[i] = (uint8_t)(0xa0 + i);
    return o;
}

static void add_header(struct wire_options *o, const char *name, const char *value)
{
    o->headers[o->header_count++] = (struct wire_header){name, value};
}

static const struct request_numbers some = {
    .first = 7, .count = 2, .base = 4, .sent = 9, .wall_s = 1700000000, .attempt = 3};

/* The head with a NUL, written into memory of the room it says it needs. */
static char *head_of(const struct wire_options *o, const struct request_numbers *n, const char *content,
                     bool gzip)
{
    const char *why = NULL;
    struct request r;
    if (wire_options_check(o, &why) < 0)
        fail_msg("%s", why);
    assert_int_equal(request_init(&r, o), 0);
    struct request_body body = {
        .content = span_text(content), .bytes = gzip ? 5 : strlen(content), .gzip = gzip};
    char *memory = malloc(request_room(&r));
    size_t before = mallinfo2().uordblks;
    size_t size = request_write(&r, n, &body, memory, request_room(&r));
    assert_int_equal(mallinfo2().uordblks, before);
    char *head = malloc(size + 1);
    memcpy(head, memory, size);
    head[size] = '\0';
    assert_int_equal(strlen(head), size);
    free(memory);
    request_dispose(&r);
    return head;
}

static void assert_head(const struct wire_options *o, const struct request_numbers *n, const char *content,
                        bool gzip, const char *expected)
{
    char *head = head_of(o, n, content, gzip);
    assert_string_equal(head, expected);
    free(head);
}

static void assert_has(const struct wire_options *o, const char *content, const char *part, bool has)
{
    char *head = head_of(o, &some, content, false);
    assert_int_equal(strstr(head, part) != NULL, has);
    free(head);
}

/* --- modes --- */

static void a_webhook_says_who_it_is(void **state)
{
    (void)state;
    struct wire_options o = options_of(WIRE_WEBHOOK, "http://example.test:8080/hook?k=v");
    o.token = "secret";
    assert_head(&o, &some, "{\"a\":1}", false,
                "POST /hook?k=v HTTP/1.1\r\n"
                "Host: example.test:8080\r\n"
                "User-Agent: pure-host/1.0\r\n"
                "Authorization: Bearer secret\r\n"
                "Content-Type: application/json\r\n"
                "Content-Length: 7\r\n"
                "webhook-id: msg_a0a1a2a3a4a5a6a7_7\r\n"
                "webhook-timestamp: 1700000000\r\n"
                "\r\n");
}

static void a_batch_has_its_numbers(void **state)
{
    (void)state;
    struct wire_options o = options_of(WIRE_BATCH, "http://example.test/");
    assert_head(&o, &some, "1\n2\n", true,
                "POST / HTTP/1.1\r\n"
                "Host: example.test\r\n"
                "User-Agent: pure-host/1.0\r\n"
                "Content-Type: application/x-ndjson\r\n"
                "Content-Length: 5\r\n"
                "Content-Encoding: gzip\r\n"
                "Pure-First: 7\r\n"
                "Pure-Count: 2\r\n"
                "webhook-id: msg_a0a1a2a3a4a5a6a7_7-8\r\n"
                "webhook-timestamp: 1700000000\r\n"
                "\r\n");
}

/* A batch that was of one record may be of more after a restart. */
static void batches_that_begin_alike_and_end_elsewhere_have_ids_of_their_own(void **state)
{
    (void)state;
    struct wire_options o = options_of(WIRE_BATCH, "http://example.test/");
    static const struct {
        struct request_numbers numbers;
        const char *id;
    } cases[] = {
        {{.first = 7, .count = 1}, "webhook-id: msg_a0a1a2a3a4a5a6a7_7\r\n"},
        {{.first = 7, .count = 5}, "webhook-id: msg_a0a1a2a3a4a5a6a7_7-11\r\n"},
        {{.first = UINT64_MAX - 1, .count = 2},
         "webhook-id: msg_a0a1a2a3a4a5a6a7_18446744073709551614-18446744073709551615\r\n"},
    };
    for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
        char *head = head_of(&o, &cases[i].numbers, "", false);
        assert_non_null(strstr(head, cases[i].id));
        free(head);
    }
}

#define PURE_HEAD(length, numbers)                     \
    "POST /apps/x/records HTTP/1.1\r\n"                \
    "Host: example.test\r\n"                           \
    "User-Agent: pure-host/1.0\r\n"                    \
    "Content-Type: application/vnd.pure.records\r\n"   \
    "Content-Length: " length "\r\n"                   \
    "Pure-Stream: pi1/counter/cloud\r\n"               \
    "Pure-Epoch: a0a1a2a3a4a5a6a7a8a9aaabacadaeaf\r\n" \
    "Pure-Event: measured\r\n" numbers "\r\n"

static void another_host_is_told_the_stream(void **state)
{
    (void)state;
    struct wire_options o = options_of(WIRE_PURE, "http://example.test/apps/x/records");
    assert_head(&o, &some, "\1a\1b", false,
                PURE_HEAD("4", "Pure-First: 7\r\nPure-Count: 2\r\nPure-Base: 4\r\n"));
    struct request_numbers question = {.first = 5, .base = 4, .sent = 9};
    assert_head(&o, &question, "", false,
                PURE_HEAD("0", "Pure-First: 5\r\nPure-Count: 0\r\nPure-Base: 4\r\nPure-Sent: 9\r\n"));
}

static void a_new_epoch_changes_ids_and_streams_only(void **state)
{
    (void)state;
    static const uint8_t epoch[WIRE_EPOCH_BYTES] = {0x01, 0xfe};
    static const struct {
        enum wire_mode mode;
        const char *says;
    } cases[] = {{WIRE_WEBHOOK, "webhook-id: msg_01fe000000000000_7\r\n"},
                 {WIRE_PURE, "Pure-Epoch: 01fe0000000000000000000000000000\r\n"}};
    for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
        struct wire_options o = options_of(cases[i].mode, "http://example.test/");
        struct request r;
        char head[1024];
        assert_int_equal(request_init(&r, &o), 0);
        request_set_epoch(&r, epoch);
        assert_true(request_room(&r) < sizeof head);
        head[request_write(&r, &some, &(struct request_body){0}, head, sizeof head)] = '\0';
        assert_non_null(strstr(head, cases[i].says));
        request_dispose(&r);
    }
}

/* --- proxies --- */

static void a_proxy_is_asked_for_the_whole_url(void **state)
{
    (void)state;
    struct wire_options o = options_of(WIRE_WEBHOOK, "http://example.test:8080/hook?k=v");
    const char *why;
    assert_int_equal(url_parse(&o.proxy.url, "http://proxy.test:3128", &why), 0);
    o.proxied = true;
    o.proxy.authorization = "Basic dTpw";
    assert_has(&o, "", "POST http://example.test:8080/hook?k=v HTTP/1.1\r\nHost: example.test:8080\r\n",
               true);
    assert_has(&o, "", "\r\nProxy-Authorization: Basic dTpw\r\n", true);
    o.proxy.authorization = NULL;
    assert_has(&o, "", "Proxy-Authorization", false);
}

static void what_goes_through_a_tunnel_says_nothing_to_the_proxy(void **state)
{
    (void)state;
    struct wire_options o = options_of(WIRE_WEBHOOK, "https://example.test/hook");
    struct request r;
    char head[1024];
    o.proxied = true;
    o.proxy.authorization = "Basic dTpw";
    assert_int_equal(request_init(&r, &o), 0);
    head[request_write(&r, &some, &(struct request_body){0}, head, sizeof head)] = '\0';
    assert_ptr_equal(strstr(head, "POST /hook HTTP/1.1\r\nHost: example.test\r\n"), head);
    assert_null(strstr(head, "Proxy-Authorization"));
    request_dispose(&r);
}

/* --- headers --- */

static void headers_are_templates_and_replace_defaults(void **state)
{
    (void)state;
    struct wire_options o = options_of(WIRE_WEBHOOK, "http://example.test/");
    add_header(&o, "X-Thing", "{app}-{number} {attempt}");
    add_header(&o, "content-type", "application/cloudevents+json");
    add_header(&o, "User-Agent", "mine/{event}");
    add_header(&o, "Authorization", "Basic dTpw");
    add_header(&o, "X-Kind", "{data.kind}");
    add_header(&o, "X-Same-Id", "{id}");
    add_header(&o, "X-Time", "{timestamp}");
    assert_head(&o, &some, "{\"kind\":\"a\\r\\nb\"}", false,
                "POST / HTTP/1.1\r\n"
                "Host: example.test\r\n"
                "Content-Length: 17\r\n"
                "webhook-id: msg_a0a1a2a3a4a5a6a7_7\r\n"
                "webhook-timestamp: 1700000000\r\n"
                "X-Thing: counter-7 3\r\n"
                "content-type: application/cloudevents+json\r\n"
                "User-Agent: mine/measured\r\n"
                "Authorization: Basic dTpw\r\n"
                "X-Kind: a%0D%0Ab\r\n"
                "X-Same-Id: msg_a0a1a2a3a4a5a6a7_7\r\n"
                "X-Time: 1700000000\r\n"
                "\r\n");
}

static void a_header_that_would_be_empty_is_left_out(void **state)
{
    (void)state;
    struct wire_options o = options_of(WIRE_WEBHOOK, "http://example.test/");
    add_header(&o, "X-Kind", "{data.kind}");
    add_header(&o, "X-Last", "z");
    assert_has(&o, "{\"kind\":\"\"}", "1700000000\r\nX-Last: z\r\n\r\n", true);
    assert_has(&o, "no JSON", "X-Kind", false);
}

static void the_longest_head_fits(void **state)
{
    (void)state;
    static char text[TEMPLATE_TEXT_MAX + 1], record[2048] = "{\"a\":\"", names[WIRE_HEADERS_MAX][16];
    struct request_numbers most = {UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX, UINT64_MAX};
    for (unsigned i = 0; i < TEMPLATE_PIECES_MAX / 4; i++)
        strcat(text, "{id}{data.a}{timestamp}{attempt}");
    memset(record + 6, '%', 1000);
    strcat(record, "\"}");
    for (int mode = WIRE_WEBHOOK; mode <= WIRE_BATCH; mode++) {
        struct wire_options o = options_of((enum wire_mode)mode, "http://example.test/");
        for (int i = 0; i < WIRE_SECRETS_MAX; i++)
            o.secrets[o.secret_count++] = (struct wire_secret){.kind = WIRE_ED25519, .size = 32};
        free(head_of(&o, &most, record, true));
        for (int i = 0; i < WIRE_HEADERS_MAX; i++) {
            snprintf(names[i], sizeof names[i], "X-%d", i);
            add_header(&o, names[i], mode == WIRE_BATCH ? "{number}{id}" : text);
        }
        free(head_of(&o, &most, record, true));
    }
    struct wire_options o = options_of(WIRE_PURE, "http://example.test/");
    static char source[WIRE_SOURCE_MAX + 1], event[WIRE_EVENT_MAX + 1];
    o.source = memset(source, 's', WIRE_SOURCE_MAX);
    o.event = memset(event, 'e', WIRE_EVENT_MAX);
    free(head_of(&o, &most, "", false));
    most.count = 0;
    free(head_of(&o, &most, "", false));
}

/* --- signatures --- */

static void signed_requests_carry_the_signature_of_their_content(void **state)
{
    (void)state;
    struct wire_options o = options_of(WIRE_WEBHOOK, "http://example.test/");
    const char *why;
    unsigned which;
    int count = secrets_parse(span_text("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw "
                                        "whsk_nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A="),
                              o.secrets, WIRE_SECRETS_MAX, &which, &why);
    o.secret_count = (unsigned)count;
    struct signer signer;
    char expected[256] = "\r\nwebhook-timestamp: 1700000000\r\nwebhook-signature: ",
         *to = strchr(expected, '\0');
    signer_init(&signer, o.secrets, o.secret_count);
    to += signer_write(&signer, span_text("msg_a0a1a2a3a4a5a6a7_7"), 1700000000, span_text("{\"a\":1}"), to);
    strcpy(to, "\r\n\r\n");
    assert_has(&o, "{\"a\":1}", expected, true);
    char *packed = head_of(&o, &some, "{\"a\":1}", true); /* the content, not the bytes on the wire */
    assert_non_null(strstr(packed, expected));
    free(packed);
    assert_has(&o, "{\"a\":2}", expected, false);
}

/* --- what is refused --- */

static void assert_refused(const struct wire_options *o, const char *says)
{
    const char *why = NULL;
    assert_int_equal(wire_options_check(o, &why), PE_CONFIG);
    assert_non_null(why);
    if (!strstr(why, says))
        fail_msg("\"%s\" says nothing of \"%s\"", why, says);
}

static void what_the_wire_writes_itself_is_no_header(void **state)
{
    (void)state;
    static const struct {
        const char *name, *says;
    } cases[] = {
        {"Host", "Host"},
        {"content-length", "Content-Length"},
        {"CONTENT-ENCODING", "Content-Encoding"},
        {"Transfer-Encoding", "Transfer-Encoding"},
        {"connection", "Connection"},
        {"Keep-Alive", "Keep-Alive"},
        {"te", "TE"},
        {"Trailer", "Trailer"},
        {"upgrade", "Upgrade"},
        {"Expect", "Expect"},
        {"Proxy-Connection", "Proxy-Connection"},
        {"Proxy-Authorization", "Proxy-Authorization"},
        {"Webhook-Id", "webhook-*"},
        {"webhook-anything", "webhook-*"},
        {"pure-first", "Pure-*"},
        {"", "1 to 128"},
        {"a b", "1 to 128"},
        {"a:", "1 to 128"},
        {"a\r\nb", "1 to 128"},
        {"caf\xc3\xa9", "1 to 128"},
    };
    for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
        struct wire_options o = options_of(WIRE_WEBHOOK, "http://example.test/");
        add_header(&o, cases[i].name, "x");
        assert_refused(&o, cases[i].says);
        const char *why = wire_header_check(&o, &o.headers[0]);
        assert_non_null(why);
        assert_non_null(strstr(why, cases[i].says));
    }
}

static void token_and_type(struct wire_options *o)
{
    o->token = "t";
    add_header(o, "authorization", "Basic dTpw");
}

static void type_twice(struct wire_options *o)
{
    o->content_type = "text/plain";
    add_header(o, "Content-Type", "text/html");
}

static void header_twice(struct wire_options *o)
{
    add_header(o, "X-A", "1");
    add_header(o, "x-a", "2");
}

static void header_template(struct wire_options *o)
{
    add_header(o, "X-A", "{nothing}");
}

static void member_in_batch(struct wire_options *o)
{
    o->mode = WIRE_BATCH;
    add_header(o, "X-A", "{data.a}");
}

static void too_many_headers(struct wire_options *o)
{
    o->header_count = WIRE_HEADERS_MAX + 1;
}

static void pure_header(struct wire_options *o)
{
    o->mode = WIRE_PURE;
    add_header(o, "X-A", "1");
}

static void pure_secret(struct wire_options *o)
{
    o->mode = WIRE_PURE;
    o->secret_count = 1;
}

static void pure_gzip(struct wire_options *o)
{
    o->mode = WIRE_PURE;
    o->gzip = 1;
}

static void too_many_secrets(struct wire_options *o)
{
    o->secret_count = WIRE_SECRETS_MAX + 1;
}

static void short_secret(struct wire_options *o)
{
    o->secrets[o->secret_count++] = (struct wire_secret){.kind = WIRE_HMAC, .size = 23};
}

static void long_secret(struct wire_options *o)
{
    o->secrets[o->secret_count++] = (struct wire_secret){.kind = WIRE_HMAC, .size = 65};
}

static void long_seed(struct wire_options *o)
{
    o->secrets[o->secret_count++] = (struct wire_secret){.kind = WIRE_ED25519, .size = 64};
}

static void gzip_10(struct wire_options *o)
{
    o->gzip = 10;
}

static void gzip_below(struct wire_options *o)
{
    o->gzip = -1;
}

static void bad_type(struct wire_options *o)
{
    o->content_type = "a\r\nb";
}

static void bad_proxy_authorization(struct wire_options *o)
{
    o->proxied = true;
    o->proxy.authorization = "a\nb";
}

static void secure_proxy(struct wire_options *o)
{
    o->proxied = true;
    o->proxy.url.tls = true;
}

static void each_wrong_option_has_its_own_words(void **state)
{
    (void)state;
    static const struct {
        void (*spoil)(struct wire_options *o);
        const char *says;
    } cases[] = {
        {token_and_type, "header Authorization"},
        {type_twice, "header Content-Type"},
        {header_twice, "twice"},
        {header_template, "no such placeholder"},
        {member_in_batch, "of one record"},
        {too_many_headers, "more than 32 headers"},
        {pure_header, "headers are for modes"},
        {pure_secret, "signed in modes"},
        {pure_gzip, "compressed in modes"},
        {too_many_secrets, "4 at most"},
        {short_secret, "24 to 64 bytes"},
        {long_secret, "24 to 64 bytes"},
        {long_seed, "32 or 64 bytes"},
        {gzip_10, "1 to 9"},
        {gzip_below, "1 to 9"},
        {bad_type, "content type"},
        {bad_proxy_authorization, "authorization at the proxy"},
        {secure_proxy, "by http only"},
    };
    for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
        struct wire_options o = options_of(WIRE_WEBHOOK, "http://example.test/");
        cases[i].spoil(&o);
        assert_refused(&o, cases[i].says);
    }
}

int main(void)
{
    if (sodium_init() < 0)
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_webhook_says_who_it_is),
        cmocka_unit_test(a_batch_has_its_numbers),
        cmocka_unit_test(batches_that_begin_alike_and_end_elsewhere_have_ids_of_their_own),
        cmocka_unit_test(another_host_is_told_the_stream),
        cmocka_unit_test(a_new_epoch_changes_ids_and_streams_only),
        cmocka_unit_test(a_proxy_is_asked_for_the_whole_url),
        cmocka_unit_test(what_goes_through_a_tunnel_says_nothing_to_the_proxy),
        cmocka_unit_test(headers_are_templates_and_replace_defaults),
        cmocka_unit_test(a_header_that_would_be_empty_is_left_out),
        cmocka_unit_test(the_longest_head_fits),
        cmocka_unit_test(signed_requests_carry_the_signature_of_their_content),
        cmocka_unit_test(what_the_wire_writes_itself_is_no_header),
        cmocka_unit_test(each_wrong_option_has_its_own_words),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
