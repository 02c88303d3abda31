/* Sealed requests and proven replies, both ends without a network. */
#include "core/error.h"
#include "core/random.h"
#include "tests/vectors/sealed.h"
#include "wire/sealing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sodium.h>
#include <cmocka.h>

static struct host_key sender, receiver, stranger;
static struct random seed;

static void fill(void *context, void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)bytes)[i] = (uint8_t)random_next(context);
}

static const struct noise_random noise_random = {fill, &seed};

static void count_up(uint8_t first, uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        bytes[i] = (uint8_t)(first + i);
}

static struct host_key key_from(uint8_t first)
{
    struct host_key key;
    count_up(first, key.private, sizeof key.private);
    crypto_scalarmult_curve25519_base(key.public, key.private);
    return key;
}

static int setup(void **state)
{
    (void)state;
    seed = (struct random){1};
    sender = key_from(SEALED_VECTOR_SENDER);
    receiver = key_from(SEALED_VECTOR_RECEIVER);
    stranger = key_from(0x81);
    return sodium_init() < 0;
}

static unsigned asked; /* how often the gate was */

static bool lets_in_sender(void *context, const uint8_t rs[NOISE_KEY_BYTES])
{
    (void)context;
    asked++;
    return memcmp(rs, sender.public, NOISE_KEY_BYTES) == 0;
}

static const struct noise_gate gate = {lets_in_sender, NULL};

static struct sealed_request a_request(void)
{
    struct sealed_request r = {.first = 1,
                               .count = 3,
                               .body_bytes = 6,
                               .app = span_text("dashboard"),
                               .from = span_text("counter"),
                               .output = span_text("next"),
                               .event = span_text("count")};
    count_up(0x61, r.ticket, sizeof r.ticket);
    count_up(0xa0, r.epoch, sizeof r.epoch);
    return r;
}

static void write_as(const struct host_key *key, char text[SEALED_TEXT_BYTES], struct sealed_keys *keys)
{
    struct sealed_request r = a_request();
    uint8_t e[NOISE_KEY_BYTES];
    count_up(SEALED_VECTOR_E, e, sizeof e);
    assert_int_equal(sealed_request_write(&r, key, receiver.public, e, text, keys), 0);
}

static int read_at(const struct host_key *key, const char *text, struct sealed_opened *opened)
{
    return sealed_request_read(span_of(text, SEALED_TEXT_BYTES), key, &gate, opened);
}

/* --- the page's example --- */

static void the_example_of_the_page_is_made_byte_for_byte(void **state)
{
    (void)state;
    char text[SEALED_TEXT_BYTES], hex[2 * 22 + 1], reply_text[SEALED_REPLY_TEXT_BYTES];
    uint8_t body[22], nonce[SEALED_NONCE_BYTES];
    struct sealed_keys keys;
    struct sealed_reply reply = {.status = 200, .has_stored = true, .stored = 3};
    write_as(&sender, text, &keys);
    assert_int_equal(sizeof sealed_vector_head - 1, SEALED_TEXT_BYTES);
    assert_memory_equal(text, sealed_vector_head, SEALED_TEXT_BYTES);
    assert_int_equal(sealed_size(6), sizeof body);
    sealed_body(&keys, span_of("\x01\x31\x01\x32\x01\x33", 6), body);
    assert_string_equal(sodium_bin2hex(hex, sizeof hex, body, sizeof body), sealed_vector_body);
    count_up(0x81, reply.ticket, sizeof reply.ticket);
    count_up(0, nonce, sizeof nonce);
    sealed_reply_write(&reply, keys.reply, nonce, reply_text);
    assert_int_equal(sizeof sealed_vector_reply - 1, SEALED_REPLY_TEXT_BYTES);
    assert_memory_equal(reply_text, sealed_vector_reply, SEALED_REPLY_TEXT_BYTES);
}

static void the_receiver_reads_all_of_it_and_knows_who_sent(void **state)
{
    (void)state;
    struct sealed_opened opened;
    struct sealed_request is, was = a_request();
    struct sealed_keys keys;
    char text[SEALED_TEXT_BYTES];
    write_as(&sender, text, &keys);
    assert_int_equal(read_at(&receiver, sealed_vector_head, &opened), 0);
    is = opened.request;
    assert_memory_equal(opened.sender, sender.public, HOST_KEY_BYTES);
    assert_memory_equal(is.ticket, was.ticket, sizeof is.ticket);
    assert_memory_equal(is.epoch, was.epoch, sizeof is.epoch);
    assert_true(is.first == 1 && is.count == 3 && is.base == 0 && is.sent == 0 && is.body_bytes == 6);
    assert_true(span_equal(is.app, was.app) && span_equal(is.from, was.from));
    assert_true(span_equal(is.output, was.output) && span_equal(is.event, was.event));
    assert_memory_equal(&opened.keys, &keys, sizeof keys);
    assert_memory_not_equal(keys.body, keys.reply, sizeof keys.body);
}

/* --- heads that are not what they should be --- */

static void a_head_with_any_byte_changed_does_not_open(void **state)
{
    (void)state;
    for (size_t at = 0; at < SEALED_TEXT_BYTES; at++) {
        char text[SEALED_TEXT_BYTES];
        struct sealed_opened opened;
        memcpy(text, sealed_vector_head, sizeof text);
        text[at] = text[at] == 'A' ? 'B' : 'A';
        assert_true(read_at(&receiver, text, &opened) < 0);
        text[at] = '\0';
        assert_int_equal(read_at(&receiver, text, &opened), PE_MALFORMED);
    }
}

static void a_head_of_another_size_is_malformed(void **state)
{
    (void)state;
    char text[SEALED_TEXT_BYTES + 4];
    struct sealed_opened opened;
    memset(text, 'A', sizeof text);
    memcpy(text, sealed_vector_head, SEALED_TEXT_BYTES);
    for (size_t size = 0; size <= sizeof text; size++) {
        int error = sealed_request_read(span_of(text, size), &receiver, &gate, &opened);
        assert_int_equal(error, size == SEALED_TEXT_BYTES ? 0 : PE_MALFORMED);
    }
    assert_int_equal(sealed_request_read(span_of(NULL, 0), &receiver, &gate, &opened), PE_MALFORMED);
}

static void a_stranger_is_stopped_at_the_gate(void **state)
{
    (void)state;
    char text[SEALED_TEXT_BYTES];
    struct sealed_opened opened;
    struct sealed_keys keys;
    write_as(&stranger, text, &keys);
    asked = 0;
    assert_int_equal(read_at(&receiver, text, &opened), PE_UNKNOWN_KEY);
    assert_int_equal(asked, 1);
}

/* Who knows a peer's public key, and not the private one, passes the gate and no further. */
static void who_says_that_he_is_a_peer_has_to_prove_it(void **state)
{
    (void)state;
    char text[SEALED_TEXT_BYTES];
    struct sealed_opened opened;
    struct sealed_keys keys;
    struct host_key liar = stranger;
    memcpy(liar.public, sender.public, sizeof liar.public);
    write_as(&liar, text, &keys);
    asked = 0;
    assert_int_equal(read_at(&receiver, text, &opened), PE_NOT_AUTHENTIC);
    assert_int_equal(asked, 1);
}

static void a_head_for_another_receiver_does_not_even_reach_the_gate(void **state)
{
    (void)state;
    struct sealed_opened opened;
    asked = 0;
    assert_int_equal(read_at(&stranger, sealed_vector_head, &opened), PE_NOT_AUTHENTIC);
    assert_int_equal(asked, 0);
}

/* --- bodies --- */

static void bodies_of_all_sizes_open_chunk_by_chunk(void **state)
{
    (void)state;
    static const size_t sizes[] = {1,
                                   100,
                                   SEALED_CHUNK_BYTES - 1,
                                   SEALED_CHUNK_BYTES,
                                   SEALED_CHUNK_BYTES + 1,
                                   5 * SEALED_CHUNK_BYTES,
                                   300000};
    static uint8_t body[300000], out[310000], back[SEALED_CHUNK_BYTES];
    struct sealed_keys keys;
    fill(&seed, &keys, sizeof keys);
    fill(&seed, body, sizeof body);
    assert_int_equal(sealed_size(0), 0);
    for (unsigned i = 0; i < ARRAY_SIZE(sizes); i++) {
        size_t size = sizes[i], at = 0, from = 0;
        sealed_body(&keys, span_of(body, size), out);
        for (uint64_t number = 0; at < size; number++) {
            size_t part = min_size(size - at, SEALED_CHUNK_BYTES), whole = part + NOISE_TAG_BYTES;
            assert_int_equal(sealed_chunk_open(keys.body, number + 1, span_of(out + from, whole), back),
                             PE_NOT_AUTHENTIC); /* in another place */
            assert_int_equal(sealed_chunk_open(keys.body, number, span_of(out + from, whole), back), 0);
            assert_memory_equal(back, body + at, part);
            at += part;
            from += whole;
        }
        assert_int_equal(from, sealed_size(size));
    }
}

static void a_chunk_with_any_byte_changed_or_of_another_request_does_not_open(void **state)
{
    (void)state;
    uint8_t body[200], out[200 + NOISE_TAG_BYTES], back[200];
    struct sealed_keys keys, others;
    fill(&seed, &keys, sizeof keys);
    fill(&seed, &others, sizeof others);
    fill(&seed, body, sizeof body);
    sealed_body(&keys, span_of(body, sizeof body), out);
    for (size_t at = 0; at < sizeof out; at++) {
        out[at] ^= 1u << at % 8;
        assert_int_equal(sealed_chunk_open(keys.body, 0, span_of(out, sizeof out), back), PE_NOT_AUTHENTIC);
        out[at] ^= 1u << at % 8;
    }
    assert_int_equal(sealed_chunk_open(others.body, 0, span_of(out, sizeof out), back), PE_NOT_AUTHENTIC);
    assert_int_equal(sealed_chunk_open(keys.body, 0, span_of(out, sizeof out - 1), back), PE_NOT_AUTHENTIC);
    assert_int_equal(sealed_chunk_open(keys.body, 0, span_of(out, sizeof out), out), 0); /* in place */
    assert_memory_equal(out, body, sizeof body);
}

/* --- the sender --- */

static struct sealing sealing;

static void options_of(struct wire_options *o)
{
    const char *why;
    wire_options_default(o);
    o->mode = WIRE_PURE;
    wire_options_statuses(o);
    assert_int_equal(url_parse(&o->url, "http://10.0.0.2:7070/behind/proxy/apps/dashboard/records", &why), 0);
    o->source = "pi1/counter/next";
    o->event = "count";
    o->token = "secret";
    o->seal_to = receiver.public;
    o->seal_with = &sender;
    o->seal_random = noise_random;
    count_up(0xa0, o->epoch, sizeof o->epoch);
}

static void begin_sealing(void)
{
    struct wire_options o;
    const char *why;
    options_of(&o);
    assert_int_equal(wire_options_check(&o, &why), 0);
    assert_int_equal(sealing_init(&sealing, &o), 0);
}

/* Writes a head; what the receiver opens of it. */
static void exchange(const struct request_numbers *numbers, uint64_t body_bytes, char *head, size_t room,
                     struct sealed_keys *keys, struct sealed_opened *opened)
{
    assert_true(sealing_head_room(&sealing) < room);
    size_t size = sealing_write(&sealing, numbers, body_bytes, head, keys);
    assert_in_range(size, 1, sealing_head_room(&sealing));
    head[size] = '\0';
    const char *text = strstr(head, "Pure-Sealed: ");
    assert_non_null(text);
    assert_int_equal(read_at(&receiver, text + sizeof "Pure-Sealed: " - 1, opened), 0);
}

static void a_head_in_clear_names_neither_app_nor_stream_nor_token(void **state)
{
    (void)state;
    char head[2048], epoch[33];
    struct sealed_keys keys;
    struct sealed_opened opened;
    static const char *const secrets[] = {"dashboard", "counter", "next",       "count\r", "secret",
                                          "pi1",       "Bearer",  "Pure-First", "Stream",  "Event"};
    begin_sealing();
    exchange(&(struct request_numbers){.first = 7, .count = 3, .base = 6}, 6, head, sizeof head, &keys,
             &opened);
    assert_ptr_equal(strstr(head, "POST /behind/proxy/sealed HTTP/1.1\r\nHost: 10.0.0.2:7070\r\n"), head);
    assert_non_null(strstr(head, "\r\nContent-Type: application/vnd.pure.sealed\r\n"));
    assert_non_null(strstr(head, "\r\nContent-Length: 22\r\n\r\n"));
    for (unsigned i = 0; i < ARRAY_SIZE(secrets); i++)
        assert_null(strstr(head, secrets[i]));
    assert_null(strstr(head, sodium_bin2hex(epoch, sizeof epoch, sealing.epoch, sizeof sealing.epoch)));
    assert_true(span_is(opened.request.app, "dashboard") && span_is(opened.request.from, "counter"));
    assert_true(span_is(opened.request.output, "next") && span_is(opened.request.event, "count"));
    assert_true(opened.request.first == 7 && opened.request.base == 6);
    sealing_dispose(&sealing);
}

static void no_two_requests_have_a_key_in_common(void **state)
{
    (void)state;
    char one[2048], two[2048];
    struct sealed_keys keys[2];
    struct sealed_opened opened;
    struct request_numbers numbers = {.first = 1, .count = 3};
    begin_sealing();
    exchange(&numbers, 6, one, sizeof one, &keys[0], &opened);
    exchange(&numbers, 6, two, sizeof two, &keys[1], &opened);
    assert_string_not_equal(one, two);
    assert_memory_not_equal(keys[0].body, keys[1].body, sizeof keys[0].body);
    assert_memory_not_equal(keys[0].reply, keys[1].reply, sizeof keys[0].reply);
    sealing_dispose(&sealing);
}

static void options_that_cannot_be_sealed_say_why(void **state)
{
    (void)state;
    struct wire_options o;
    const char *why;
    options_of(&o);
    o.mode = WIRE_WEBHOOK;
    assert_non_null(sealing_check(&o));
    options_of(&o);
    o.seal_with = NULL;
    assert_int_equal(wire_options_check(&o, &why), PE_CONFIG);
    options_of(&o);
    o.source = "no slashes";
    assert_int_equal(wire_options_check(&o, &why), PE_CONFIG);
    static const char *const urls[] = {"http://h/", "http://h/apps/records", "http://h/apps//records",
                                       "http://h/apps/a/records?q", "http://h/apps/a/b/records"};
    for (unsigned i = 0; i < ARRAY_SIZE(urls); i++) {
        options_of(&o);
        assert_int_equal(url_parse(&o.url, urls[i], &why), 0);
        assert_int_equal(wire_options_check(&o, &why), PE_CONFIG);
        assert_non_null(strstr(why, "/apps/APP/records"));
    }
}

/* --- replies --- */

static struct answer answer_with(const struct sealed_reply *reply, const uint8_t key[NOISE_KEY_BYTES])
{
    struct answer a = {.status = reply->status, .has_stored = true, .stored = 999999};
    uint8_t nonce[SEALED_NONCE_BYTES];
    fill(&seed, nonce, sizeof nonce);
    sealed_reply_write(reply, key, nonce, a.proof);
    snprintf(a.retry_after, sizeof a.retry_after, "86400");
    return a;
}

static void what_a_proven_reply_says_counts_and_nothing_else(void **state)
{
    (void)state;
    uint8_t key[NOISE_KEY_BYTES] = {1};
    begin_sealing();
    struct sealed_reply full = {
        .status = 503, .has_stored = true, .stored = 12, .retry_after_s = 1, .why = "the inbox is full"};
    struct answer a = answer_with(&full, key);
    a.status = 200; /* as the way would have it */
    assert_int_equal(sealing_prove(&sealing, key, &a), SEALING_PROVEN);
    assert_true(a.status == 503 && a.has_stored && a.stored == 12 && !a.unproven);
    assert_string_equal(a.retry_after, "1");
    assert_string_equal(a.reason, "the inbox is full");
    static const struct {
        uint8_t error;
        const char *name;
    } errors[] = {
        {SEALED_GAP, "gap"}, {SEALED_ROLLED_BACK, "rolled-back"}, {SEALED_RETIRED, "epoch-retired"}};
    for (unsigned i = 0; i < ARRAY_SIZE(errors); i++) {
        struct sealed_reply refused = {.status = 409, .error = errors[i].error};
        a = answer_with(&refused, key);
        assert_int_equal(sealing_prove(&sealing, key, &a), SEALING_PROVEN);
        assert_string_equal(a.pure_error, errors[i].name);
        assert_false(a.has_stored);
    }
    sealing_dispose(&sealing);
}

static void an_unproven_reply_says_nothing(void **state)
{
    (void)state;
    uint8_t key[NOISE_KEY_BYTES] = {1}, other[NOISE_KEY_BYTES] = {2};
    struct sealed_reply reply = {.status = 200, .has_stored = true, .stored = 12};
    begin_sealing();
    uint8_t ticket[SEALED_TICKET_BYTES];
    memcpy(ticket, sealing.ticket, sizeof ticket);
    count_up(0x31, reply.ticket, sizeof reply.ticket);
    for (size_t at = 0; at <= SEALED_REPLY_TEXT_BYTES + 1; at++) {
        struct answer a = answer_with(&reply, at == SEALED_REPLY_TEXT_BYTES ? other : key);
        if (at < SEALED_REPLY_TEXT_BYTES)
            a.proof[at] = a.proof[at] == 'A' ? 'B' : 'A';
        else if (at > SEALED_REPLY_TEXT_BYTES)
            a.proof[0] = '\0';
        assert_int_equal(sealing_prove(&sealing, key, &a), SEALING_UNPROVEN);
        assert_true(a.status == 200 && a.unproven && !a.has_stored && a.stored == 0);
        assert_string_equal(a.retry_after, "");
        assert_memory_equal(sealing.ticket, ticket, sizeof ticket);
    }
    sealing_dispose(&sealing);
}

static void a_stale_ticket_is_replaced_and_only_once_without_a_rest(void **state)
{
    (void)state;
    char head[2048];
    uint8_t key[NOISE_KEY_BYTES] = {1};
    struct sealed_keys keys;
    struct sealed_opened opened;
    struct sealed_reply stale = {.status = 409, .error = SEALED_STALE}, good = {.status = 200};
    begin_sealing();
    count_up(0x31, stale.ticket, sizeof stale.ticket);
    count_up(0x51, good.ticket, sizeof good.ticket);
    struct answer a = answer_with(&stale, key);
    assert_int_equal(sealing_prove(&sealing, key, &a), SEALING_STALE);
    exchange(&(struct request_numbers){.first = 1}, 0, head, sizeof head, &keys, &opened);
    assert_memory_equal(opened.request.ticket, stale.ticket, sizeof stale.ticket);
    a = answer_with(&stale, key);
    assert_int_equal(sealing_prove(&sealing, key, &a), SEALING_PROVEN);
    assert_int_equal(a.status, 409);
    assert_string_equal(a.pure_error, "stale");
    a = answer_with(&good, key);
    assert_int_equal(sealing_prove(&sealing, key, &a), SEALING_PROVEN);
    assert_memory_equal(sealing.ticket, good.ticket, sizeof good.ticket);
    a = answer_with(&stale, key);
    assert_int_equal(sealing_prove(&sealing, key, &a), SEALING_STALE);
    sealing_dispose(&sealing);
}

/* An answer's head is gone when it is looked at. */
static void a_proof_is_kept_from_the_replys_head(void **state)
{
    (void)state;
    char text[512];
    struct http_head head;
    struct answer a;
    size_t scanned = 0;
    int size = snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nPure-Sealed: %s\r\n\r\n", sealed_vector_reply);
    assert_int_equal(http_reply_head((uint8_t *)text, (size_t)size, &scanned, &head), size);
    answer_read(&a, &head);
    assert_string_equal(a.proof, sealed_vector_reply);
    scanned = 0;
    size = snprintf(text, sizeof text, "HTTP/1.1 200 OK\r\nPure-Sealed: %s=\r\n\r\n", sealed_vector_reply);
    assert_int_equal(http_reply_head((uint8_t *)text, (size_t)size, &scanned, &head), size);
    answer_read(&a, &head);
    assert_string_equal(a.proof, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_example_of_the_page_is_made_byte_for_byte),
        cmocka_unit_test(the_receiver_reads_all_of_it_and_knows_who_sent),
        cmocka_unit_test(a_head_with_any_byte_changed_does_not_open),
        cmocka_unit_test(a_head_of_another_size_is_malformed),
        cmocka_unit_test(a_stranger_is_stopped_at_the_gate),
        cmocka_unit_test(who_says_that_he_is_a_peer_has_to_prove_it),
        cmocka_unit_test(a_head_for_another_receiver_does_not_even_reach_the_gate),
        cmocka_unit_test(bodies_of_all_sizes_open_chunk_by_chunk),
        cmocka_unit_test(a_chunk_with_any_byte_changed_or_of_another_request_does_not_open),
        cmocka_unit_test(a_head_in_clear_names_neither_app_nor_stream_nor_token),
        cmocka_unit_test(no_two_requests_have_a_key_in_common),
        cmocka_unit_test(options_that_cannot_be_sealed_say_why),
        cmocka_unit_test(what_a_proven_reply_says_counts_and_nothing_else),
        cmocka_unit_test(an_unproven_reply_says_nothing),
        cmocka_unit_test(a_stale_ticket_is_replaced_and_only_once_without_a_rest),
        cmocka_unit_test(a_proof_is_kept_from_the_replys_head),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
