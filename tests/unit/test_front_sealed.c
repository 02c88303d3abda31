/* Sealed records at the front: what it takes, from whom, and what it proves. */
#include "host/sealed_door.h"
#include "tests/sim/front_world.h"
#include "wire/sealing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <cmocka.h>

#define BODY_MAX (300 * 1024)

static struct front_world w;
static struct sealed_door door;
static struct host_key sender, receiver, stranger;
static struct config_peer peers[2];
static struct config config;
static struct sealing sealing;

static void fill(void *context, void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)bytes)[i] = (uint8_t)random_next(context);
}

static struct noise_random random_of_world(void)
{
    return (struct noise_random){fill, sim_random(w.sim)};
}

/* A new life of the receiver: its secret is another. */
static void open_door(void)
{
    static char *apps[] = {"counter"};
    const struct noise_random random = random_of_world();
    peers[0] = (struct config_peer){.name = "pi1", .apps = apps, .app_count = 1};
    peers[1] = (struct config_peer){.name = "pi2", .apps = apps, .app_count = 1};
    memcpy(peers[0].key, sender.public, HOST_KEY_BYTES);
    memset(peers[1].key, 7, HOST_KEY_BYTES);
    config = (struct config){.peers = peers, .peer_count = 2};
    assert_int_equal(sealed_door_init(&door, &config, &w.registry, &receiver, &random, &w.log), 0);
    w.front.door = &door;
}

static void begin_sealing(const struct host_key *with, const char *url)
{
    struct wire_options o;
    const char *why;
    wire_options_default(&o);
    o.mode = WIRE_PURE;
    assert_int_equal(url_parse(&o.url, url, &why), 0);
    o.source = "mine/relay/next";
    o.event = "count";
    o.seal_to = receiver.public;
    o.seal_with = with;
    o.seal_random = random_of_world();
    memset(o.epoch, 0xab, sizeof o.epoch);
    sealing_dispose(&sealing);
    assert_int_equal(wire_options_check(&o, &why), 0);
    assert_int_equal(sealing_init(&sealing, &o), 0);
}

static void open_world_with(uint64_t seed, const struct config *limits)
{
    front_world_open(&w, seed, limits);
    const struct noise_random random = random_of_world();
    host_key_generate(&sender, &random);
    host_key_generate(&receiver, &random);
    host_key_generate(&stranger, &random);
    open_door();
    begin_sealing(&sender, "http://10.0.0.1/apps/counter/records");
}

static void open_world(uint64_t seed)
{
    open_world_with(seed, NULL);
}

static void close_world(void)
{
    front_world_close(&w);
    sealed_door_dispose(&door);
    sealing_dispose(&sealing);
}

/* A request and what its reply is proven with. */
struct request_bytes {
    uint8_t bytes[BODY_MAX + BODY_MAX / 512 + 2048];
    size_t head, size;
    struct sealed_keys keys;
};

static void make_of(struct request_bytes *r, uint64_t first, uint64_t count, struct span body)
{
    struct request_numbers numbers = {.first = first, .count = count, .base = first - 1};
    r->head = sealing_write(&sealing, &numbers, body.size, (char *)r->bytes, &r->keys);
    assert_in_range(r->head, 1, 2048);
    sealed_body(&r->keys, body, r->bytes + r->head);
    r->size = r->head + (size_t)sealed_size(body.size);
    assert_true(r->size <= sizeof r->bytes);
}

/* Records of `each` bytes. */
static void make(struct request_bytes *r, uint64_t first, uint64_t count, size_t each)
{
    static uint8_t body[BODY_MAX];
    size_t size = 0;
    for (uint64_t i = 0; i < count; i++) {
        assert_true(size + record_framed_size(each) <= sizeof body);
        size += varint_put(body + size, each);
        memset(body + size, (int)('a' + i % 26), each);
        size += each;
    }
    make_of(r, first, count, span_of(body, size));
}

/* What the next reply on the connection says, of the bytes from `*from` on. False: it is not whole. */
static bool next_answer(struct sim_connection *c, size_t *from, struct answer *a)
{
    static struct http_reply reply;
    struct span all = sim_received(c), rest = span_of(all.data + *from, all.size - *from), content;
    size_t used;
    http_reply_init(&reply, false);
    while (rest.size > 0 && reply.state != HTTP_REPLY_DONE) {
        assert_int_equal(http_reply_take(&reply, rest, &used, &content), 0);
        rest = span_of(rest.data + used, rest.size - used);
        *from += used;
    }
    *a = (struct answer){.status = 0};
    if (reply.state == HTTP_REPLY_DONE)
        answer_read(a, &reply.head);
    return reply.state == HTTP_REPLY_DONE;
}

static enum sealing_verdict verdict_of(struct sim_connection *c, const struct request_bytes *r,
                                       struct answer *a)
{
    size_t from = 0;
    sim_run_for(w.sim, NS_PER_S);
    assert_true(next_answer(c, &from, a));
    return sealing_prove(&sealing, r->keys.reply, a);
}

static enum sealing_verdict ask(const struct request_bytes *r, struct answer *a)
{
    struct sim_connection *c = front_world_send(&w, r->bytes, r->size);
    enum sealing_verdict verdict = verdict_of(c, r, a);
    sim_peer_close(c);
    sim_run_for(w.sim, NS_PER_S);
    return verdict;
}

static struct request_bytes request;

/* Gets a ticket. */
static void greet(void)
{
    struct answer a;
    make(&request, 1, 1, 5);
    assert_int_equal(ask(&request, &a), SEALING_STALE);
}

/* --- */

static void what_a_peer_sends_is_stored_and_proven(void **state)
{
    (void)state;
    open_world(1);
    struct answer a;
    make(&request, 1, 3, 5);
    assert_int_equal(ask(&request, &a), SEALING_STALE);
    assert_int_equal(w.apps[0].runs, 0);
    make(&request, 1, 3, 5);
    assert_int_equal(ask(&request, &a), SEALING_PROVEN);
    assert_true(a.status == 200 && a.has_stored && a.stored == 3);
    assert_int_equal(w.apps[0].events, 3);
    assert_string_equal(w.apps[0].source, "pi1/relay/next"); /* not as the sender calls itself */
    assert_string_equal(w.apps[0].event, "count");
    char identity[SOURCE_NAME_MAX + 1] = "link ";
    host_key_public_text(sender.public, identity + 5);
    strcat(identity, "/relay/next");
    assert_int_equal(w.apps[0].last.identity.size, strlen(identity));
    assert_true(w.apps[0].last.fresh_ns > 0);
    close_world();
}

static void replies_show_nothing_but_their_status(void **state)
{
    (void)state;
    open_world(2);
    struct answer a;
    greet();
    make(&request, 1, 3, 5);
    struct sim_connection *c = front_world_send(&w, request.bytes, request.size);
    assert_int_equal(verdict_of(c, &request, &a), SEALING_PROVEN);
    assert_int_equal(front_world_count(c, "tored"), 0);
    assert_int_equal(front_world_count(c, "error"), 0);
    assert_int_equal(front_world_count(c, "Pure-"), 1);
    w.apps[0].error = PE_STREAM_RETIRED;
    make(&request, 4, 3, 5);
    c = front_world_send(&w, request.bytes, request.size);
    assert_int_equal(verdict_of(c, &request, &a), SEALING_PROVEN);
    assert_string_equal(a.pure_error, "epoch-retired");
    assert_int_equal(front_world_count(c, "HTTP/1.1 409 "), 1);
    assert_int_equal(front_world_count(c, "retired"), 0);
    close_world();
}

static void bodies_in_any_pieces_are_opened(void **state)
{
    (void)state;
    static const struct {
        uint64_t count;
        size_t each;
    } bodies[] = {{1, 0}, {2000, 100}, {3, 90000}, {1, SEALED_CHUNK_BYTES - 2}, {40, SEALED_CHUNK_BYTES / 3}};
    for (uint64_t seed = 0; seed < 40; seed++) {
        open_world(seed);
        struct answer a;
        greet();
        uint64_t count = bodies[seed % ARRAY_SIZE(bodies)].count;
        make(&request, 1, count, bodies[seed % ARRAY_SIZE(bodies)].each);
        struct sim_connection *c = sim_client(w.sim, "10.0.0.9", WORLD_ENDPOINT, NULL, 0);
        size_t most = seed % 2 ? 40000 : 1500;
        for (size_t at = 0; at < request.size;) {
            size_t piece = min_size(request.size - at, 1 + random_below(sim_random(w.sim), most));
            sim_peer_send(c, request.bytes + at, piece);
            at += piece;
            sim_run_for(w.sim, random_below(sim_random(w.sim), NS_PER_MS));
        }
        assert_int_equal(verdict_of(c, &request, &a), SEALING_PROVEN);
        assert_true(a.status == 200 && a.stored == count);
        assert_int_equal(w.apps[0].events, count);
        assert_true(w.front.kept_bytes <= 4096); /* the chunk's memory is given back */
        sim_peer_close(c);
        sim_run_for(w.sim, NS_PER_S);
        assert_int_equal(w.front.kept_bytes, 0);
        close_world();
    }
}

static void requests_in_a_row_have_their_own_proofs(void **state)
{
    (void)state;
    static struct request_bytes requests[70];
    open_world(3);
    greet();
    struct sim_connection *c = sim_client(w.sim, "10.0.0.9", WORLD_ENDPOINT, NULL, 0);
    for (unsigned i = 0; i < ARRAY_SIZE(requests); i++) {
        make(&requests[i], 1 + i, 1, 5);
        sim_peer_send(c, requests[i].bytes, requests[i].size);
    }
    sim_run_for(w.sim, 5 * NS_PER_S);
    size_t from = 0;
    for (unsigned i = 0; i < ARRAY_SIZE(requests); i++) {
        struct answer a;
        assert_true(next_answer(c, &from, &a));
        assert_int_equal(sealing_prove(&sealing, requests[i].keys.reply, &a), SEALING_PROVEN);
        assert_int_equal(a.stored, 1 + i);
    }
    close_world();
}

static void seal_for(const char *app)
{
    char url[64];
    uint8_t ticket[SEALED_TICKET_BYTES];
    memcpy(ticket, sealing.ticket, sizeof ticket);
    snprintf(url, sizeof url, "http://10.0.0.1/apps/%s/records", app);
    begin_sealing(&sender, url);
    memcpy(sealing.ticket, ticket, sizeof ticket);
}

/* What an app's clients wait for is not known of a sealed request before it is opened: the first after a
 * refusal waits for the app that refused, and no more once it is seen to be for another. */
static void who_seals_for_another_app_than_refused_it_waits_a_second_at_most(void **state)
{
    (void)state;
    static struct request_bytes requests[4];
    open_world(4);
    ((struct sealed_peer *)sealed_door_find(&door, sender.public))->apps[1] = true;
    greet();
    struct inbox *full = &w.apps[0].entry.inbox;
    uint64_t half = full->runs.capacity / 2;
    assert_int_equal(inbox_reserve(full, half, 0), 0);
    assert_int_equal(inbox_reserve(full, half / 2, 0), 0);
    struct sim_connection *c = sim_client(w.sim, "10.0.0.9", WORLD_ENDPOINT, NULL, 0);
    for (unsigned i = 0; i < ARRAY_SIZE(requests); i++) {
        if (i == 1)
            seal_for("other");
        make(&requests[i], 1 + i - (i > 0), 1, 5);
        sim_peer_send(c, requests[i].bytes, requests[i].size);
        sim_run_for(w.sim, (i == 1 ? 1200 : 100) * NS_PER_MS);
        assert_int_equal(w.apps[1].events, i);
    }
    size_t from = 0;
    for (unsigned i = 0; i < ARRAY_SIZE(requests); i++) {
        struct answer a;
        assert_true(next_answer(c, &from, &a));
        assert_int_equal(sealing_prove(&sealing, requests[i].keys.reply, &a), SEALING_PROVEN);
        assert_int_equal(a.status, i == 0 ? 503 : 200);
    }
    inbox_release(full, half + half / 2);
    close_world();
}

/* --- who may not --- */

static void a_stranger_is_told_403_and_the_connection_ends(void **state)
{
    (void)state;
    open_world(4);
    struct answer a;
    begin_sealing(&stranger, "http://10.0.0.1/apps/counter/records");
    make(&request, 1, 20000, 5);
    /* the head alone is enough */
    struct sim_connection *c = front_world_send(&w, request.bytes, request.head);
    assert_int_equal(verdict_of(c, &request, &a), SEALING_UNPROVEN);
    assert_int_equal(a.status, 403);
    assert_int_equal(front_world_count(c, "Connection: close\r\n"), 1);
    assert_int_equal(door.strangers, 1);
    assert_int_equal(w.front.kept_bytes, 0);
    struct host_key liar = stranger;
    memcpy(liar.public, sender.public, HOST_KEY_BYTES);
    begin_sealing(&liar, "http://10.0.0.1/apps/counter/records");
    make(&request, 1, 1, 5);
    assert_int_equal(ask(&request, &a), SEALING_UNPROVEN);
    assert_int_equal(a.status, 403);
    assert_int_equal(w.apps[0].runs, 0);
    close_world();
}

static bool was_said(const char *text)
{
    struct record_queue *q = &w.log.lines;
    struct stream_position published = record_queue_see_published(q);
    bool found = false;
    while (q->freed.bytes < published.bytes) {
        struct span bytes = record_queue_span(q, q->freed.bytes), line;
        size_t framed = record_get(bytes.data, bytes.data + (published.bytes - q->freed.bytes), &line);
        assert_true(framed > 0);
        found |= memmem(line.data, line.size, text, strlen(text)) != NULL;
        record_queue_free_to(q, (struct stream_position){q->freed.bytes + framed, q->freed.records + 1});
    }
    return found;
}

static void who_may_not_is_named_in_the_log_and_counted(void **state)
{
    (void)state;
    static const char metrics[] = "GET /metrics HTTP/1.1\r\nHost: h\r\n\r\n";
    struct answer a;
    open_world(4);
    begin_sealing(&stranger, "http://10.0.0.1/apps/counter/records");
    char key[HOST_KEY_PUBLIC_TEXT];
    host_key_public_text(stranger.public, key);
    for (unsigned i = 1; i <= 3; i++) {
        make(&request, 1, 1, 5);
        ask(&request, &a);
        assert_int_equal(was_said(key), i < 3);
    }
    begin_sealing(&sender, "http://10.0.0.1/apps/other/records");
    make(&request, 1, 0, 5);
    ask(&request, &a); /* for a ticket */
    make(&request, 1, 1, 5);
    ask(&request, &a);
    assert_int_equal(a.status, 403);
    assert_true(was_said("add other to apps of [peer pi1]"));
    struct sim_connection *c = front_world_send(&w, metrics, sizeof metrics - 1);
    sim_run_for(w.sim, 20 * NS_PER_MS);
    assert_int_equal(front_world_count(c, "\npure_sealed_strangers_total 3\n"), 1);
    assert_int_equal(front_world_count(c, "\npure_sealed_disallowed_total 1\n"), 1);
    close_world();
}

static void what_a_peer_may_not_do_is_refused_with_proof(void **state)
{
    (void)state;
    static const struct {
        const char *app;
        uint16_t status;
    } cases[] = {{"other", 403}, {"missing", 404}};
    for (unsigned i = 0; i < ARRAY_SIZE(cases); i++) {
        char url[64];
        struct answer a;
        open_world(5 + i);
        snprintf(url, sizeof url, "http://10.0.0.1/apps/%s/records", cases[i].app);
        begin_sealing(&sender, url);
        greet();
        make(&request, 1, 1, 5);
        assert_int_equal(ask(&request, &a), SEALING_PROVEN);
        assert_int_equal(a.status, cases[i].status);
        assert_false(a.has_stored);
        assert_int_equal(w.apps[0].runs + w.apps[1].runs, 0);
        close_world();
    }
}

static void without_peers_nothing_is_opened(void **state)
{
    (void)state;
    open_world(6);
    struct answer a;
    w.front.door = NULL;
    make(&request, 1, 1, 5);
    assert_int_equal(ask(&request, &a), SEALING_UNPROVEN);
    assert_int_equal(a.status, 404);
    close_world();
}

/* The front's token is for those who have no key. */
static void a_peer_needs_no_token_and_a_token_is_no_key(void **state)
{
    (void)state;
    struct config limits = {.token = "t"};
    open_world_with(7, &limits);
    struct answer a;
    greet();
    make(&request, 1, 1, 5);
    assert_int_equal(ask(&request, &a), SEALING_PROVEN);
    assert_int_equal(a.status, 200);
    static const char other[] = "POST /sealed HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer t\r\n"
                                "Content-Length: 3\r\n\r\nabc";
    struct sim_connection *c = front_world_send(&w, other, sizeof other - 1);
    sim_run_for(w.sim, NS_PER_S);
    assert_int_equal(front_world_count(c, "HTTP/1.1 403 "), 1);
    close_world();
}

/* --- what is on the way --- */

/* Of each byte, at each place: either it means nothing, or nothing is stored that the sender has not sent,
 * and no proof says that a record was refused. */
static void a_changed_byte_stores_nothing_wrong_and_proves_no_refusal(void **state)
{
    (void)state;
    open_world(8);
    greet();
    static struct request_bytes changed;
    make(&request, 1, 60, 5);
    uint64_t hash = 0;
    for (size_t at = 0; at < request.size; at++) {
        struct answer a;
        changed = request;
        changed.bytes[at] ^= (uint8_t)(1u << at % 7);
        w.apps[0].stored = w.apps[0].events = w.apps[0].hash = 0;
        struct sim_connection *c = front_world_send(&w, changed.bytes, changed.size);
        sim_run_for(w.sim, 50 * NS_PER_MS);
        sim_peer_shutdown(c); /* of those that wait for more */
        sim_run_for(w.sim, 50 * NS_PER_MS);
        size_t from = 0;
        bool stored = w.apps[0].events > 0;
        enum sealing_verdict verdict = SEALING_UNPROVEN;
        if (next_answer(c, &from, &a))
            verdict = sealing_prove(&sealing, request.keys.reply, &a);
        assert_true(verdict == SEALING_UNPROVEN ? !stored : stored && a.status == 200);
        assert_true(!stored || w.apps[0].events == 60);
        if (stored && hash == 0)
            hash = w.apps[0].hash;
        assert_true(!stored || hash == w.apps[0].hash);
        assert_true(at < request.head || !stored);
        sim_peer_close(c);
    }
    assert_true(hash != 0); /* of some, such as the User-Agent's */
    close_world();
}

/* Cut anywhere: what ends early is the way's doing. */
static void a_body_that_ends_early_or_never_is_not_proven(void **state)
{
    (void)state;
    open_world(9);
    greet();
    make(&request, 1, 10, 10000); /* seven pieces */
    static const size_t cuts[] = {0, 1, SEALED_CHUNK_MAX - 1, SEALED_CHUNK_MAX, 3 * SEALED_CHUNK_MAX + 7};
    for (unsigned i = 0; i < 2 * ARRAY_SIZE(cuts); i++) {
        struct answer a;
        struct sim_connection *c = front_world_send(&w, request.bytes, request.head + cuts[i / 2]);
        sim_run_for(w.sim, NS_PER_S);
        if (i % 2)
            sim_peer_shutdown(c);
        else
            sim_run_for(w.sim, 40 * NS_PER_S);
        assert_int_equal(verdict_of(c, &request, &a), SEALING_UNPROVEN);
        assert_int_equal(a.status, i % 2 ? 400 : 408);
        assert_int_equal(front_world_count(c, "tored"), 0);
        w.apps[0].stored = 0;
    }
    close_world();
}

/* Pieces of one request in another, or in another order; what opened before stays stored. */
static void mixed_pieces_are_refused_without_proof(void **state)
{
    (void)state;
    static struct request_bytes other;
    static uint8_t piece[SEALED_CHUNK_MAX];
    open_world(10);
    greet();
    make(&request, 1, 16, 10000);
    make(&other, 1, 16, 10000);
    struct answer a;
    uint8_t *second = request.bytes + request.head + SEALED_CHUNK_MAX, *third = second + SEALED_CHUNK_MAX;
    memcpy(piece, second, sizeof piece);
    memcpy(second, third, sizeof piece);
    memcpy(third, piece, sizeof piece);
    assert_int_equal(ask(&request, &a), SEALING_UNPROVEN);
    assert_int_equal(w.apps[0].events, 1);
    make(&request, 1, 16, 10000);
    memcpy(request.bytes + request.head + SEALED_CHUNK_MAX, other.bytes + other.head + SEALED_CHUNK_MAX,
           SEALED_CHUNK_MAX);
    w.apps[0].stored = w.apps[0].events = 0;
    assert_int_equal(ask(&request, &a), SEALING_UNPROVEN);
    assert_int_equal(w.apps[0].events, 1);
    close_world();
}

/* The same nonce twice under one key would give the key of the authenticator away. */
static void a_request_that_comes_again_is_answered_under_another_nonce(void **state)
{
    (void)state;
    open_world(11);
    greet();
    make(&request, 1, 3, 5);
    char proofs[2][SEALED_REPLY_TEXT_BYTES + 1];
    for (unsigned i = 0; i < 2; i++) {
        struct answer a;
        size_t from = 0;
        struct sim_connection *c = front_world_send(&w, request.bytes, request.size);
        sim_run_for(w.sim, NS_PER_S);
        assert_true(next_answer(c, &from, &a));
        memcpy(proofs[i], a.proof, sizeof a.proof);
        assert_int_equal(sealing_prove(&sealing, request.keys.reply, &a), SEALING_PROVEN);
    }
    assert_memory_not_equal(proofs[0], proofs[1], 32); /* 24 bytes */
    close_world();
}

static void a_request_of_an_earlier_life_is_stale(void **state)
{
    (void)state;
    open_world(12);
    greet();
    struct answer a;
    make(&request, 1, 3, 5);
    assert_int_equal(ask(&request, &a), SEALING_PROVEN);
    w.apps[0].stored = w.apps[0].runs = 0;
    sealed_door_dispose(&door);
    open_door();
    for (unsigned i = 0; i < 3; i++) {
        size_t from = 0;
        struct sim_connection *c = front_world_send(&w, request.bytes, request.size);
        sim_run_for(w.sim, NS_PER_S);
        assert_true(next_answer(c, &from, &a));
        assert_int_equal(a.status, 409);
        assert_int_equal(w.apps[0].runs, 0);
    }
    assert_int_equal(sealing_prove(&sealing, request.keys.reply, &a), SEALING_STALE);
    make(&request, 1, 3, 5);
    assert_int_equal(ask(&request, &a), SEALING_PROVEN);
    assert_int_equal(a.stored, 3);
    close_world();
}

static void a_ticket_is_its_peers_own(void **state)
{
    (void)state;
    open_world(13);
    uint8_t ticket[SEALED_TICKET_BYTES];
    const struct sealed_peer *one = sealed_door_find(&door, peers[0].key),
                             *two = sealed_door_find(&door, peers[1].key);
    assert_string_equal(one->name, "pi1");
    assert_string_equal(two->name, "pi2");
    assert_null(sealed_door_find(&door, stranger.public));
    memset(ticket, 0, sizeof ticket);
    assert_int_equal(sealed_door_given_ns(&door, one, ticket), 0); /* before there is a secret */
    sealed_door_ticket(&door, one, 12345, ticket);
    assert_int_equal(sealed_door_given_ns(&door, one, ticket), 12345);
    assert_int_equal(sealed_door_given_ns(&door, two, ticket), 0);
    for (unsigned at = 0; at < sizeof ticket; at++) {
        ticket[at] ^= 1;
        assert_int_equal(sealed_door_given_ns(&door, one, ticket), 0);
        ticket[at] ^= 1;
    }
    close_world();
}

/* What is wrong with what a peer has sealed is his own doing, and he is told so. */
static void records_that_are_none_are_refused_with_proof(void **state)
{
    (void)state;
    open_world(14);
    greet();
    struct answer a;
    make_of(&request, 1, 2, span_of("\x01\x31\x05\x32", 4));
    assert_int_equal(ask(&request, &a), SEALING_PROVEN);
    assert_int_equal(a.status, 400);
    w.apps[0].stored = 0;
    make_of(&request, 1, 1, span_of("\x80\x20\x00\x00", 4)); /* a record of 2 MiB begins */
    assert_int_equal(ask(&request, &a), SEALING_PROVEN);
    assert_int_equal(a.status, 413);
    make_of(&request, 1, 5, span_of("\x01\x31", 2));
    assert_int_equal(ask(&request, &a), SEALING_PROVEN);
    assert_int_equal(a.status, 400);
    close_world();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_peer_sends_is_stored_and_proven),
        cmocka_unit_test(replies_show_nothing_but_their_status),
        cmocka_unit_test(bodies_in_any_pieces_are_opened),
        cmocka_unit_test(requests_in_a_row_have_their_own_proofs),
        cmocka_unit_test(who_seals_for_another_app_than_refused_it_waits_a_second_at_most),
        cmocka_unit_test(a_stranger_is_told_403_and_the_connection_ends),
        cmocka_unit_test(who_may_not_is_named_in_the_log_and_counted),
        cmocka_unit_test(what_a_peer_may_not_do_is_refused_with_proof),
        cmocka_unit_test(without_peers_nothing_is_opened),
        cmocka_unit_test(a_peer_needs_no_token_and_a_token_is_no_key),
        cmocka_unit_test(a_changed_byte_stores_nothing_wrong_and_proves_no_refusal),
        cmocka_unit_test(a_body_that_ends_early_or_never_is_not_proven),
        cmocka_unit_test(mixed_pieces_are_refused_without_proof),
        cmocka_unit_test(a_request_that_comes_again_is_answered_under_another_nonce),
        cmocka_unit_test(a_request_of_an_earlier_life_is_stale),
        cmocka_unit_test(a_ticket_is_its_peers_own),
        cmocka_unit_test(records_that_are_none_are_refused_with_proof),
    };
    return sodium_init() < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
