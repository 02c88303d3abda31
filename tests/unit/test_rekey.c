/* Sessions one after the other: rekey under traffic, lost state at either end, silence, storms; and keys
 * wiped. */
#include "tests/unit/link_world.h"

static struct link_world w;

static int start(void **state)
{
    (void)state;
    link_world_start(&w, 1);
    return 0;
}

/* … with AES-256-GCM, where the machine has it. */
static int start_aes(void **state)
{
    (void)state;
    link_world_start_with(&w, 1, cipher_hardware(), cipher_hardware());
    return 0;
}

static int end(void **state)
{
    (void)state;
    link_world_end(&w);
    return 0;
}

static void tick(uint64_t by_ns)
{
    w.now_ns += by_ns;
    initiator_tick(&w.sender, w.now_ns);
    responder_tick(&w.receiver, w.now_ns);
}

static struct session *receiver_session(void)
{
    return responder_sealing(&w.receiver, w.peer, w.now_ns);
}

/* A packet each way every 100 ms for half an hour; INIT and REPLY take a second each. */
static void traffic_does_not_pause_for_a_rekey(void **state)
{
    (void)state;
    link_world_connect(&w);
    unsigned confirmed = 0;
    uint64_t answered_ns = NEVER;
    struct link_reply reply;
    for (unsigned i = 0; i < 18000; i++) {
        struct link_init init;
        struct initiator_terms terms;
        tick(100 * NS_PER_MS);
        if (initiator_write(&w.sender, w.now_ns, w.next_packet, (uint8_t *)&init) > 0) {
            assert_int_equal(answered_ns, NEVER);
            assert_int_equal(link_world_answer(&w, &init, (uint8_t *)&reply), LINK_REPLY_BYTES);
            answered_ns = w.now_ns + 600 * NS_PER_MS;
        }
        if (w.now_ns >= answered_ns) {
            assert_int_equal(initiator_reply(&w.sender, w.now_ns, &reply, &terms), 0);
            assert_true(terms.goes_on);
            answered_ns = NEVER;
        }
        confirmed += link_world_ping(&w).confirmed;
        assert_true(w.now_ns - w.sender.current.born_ns < LINK_REKEY_NS + 2 * NS_PER_S);
    }
    assert_in_range(confirmed, 1800 / 122, 1800 / 120);
    assert_int_equal(w.next_packet, 18001); /* numbers went on */
    assert_in_range(w.receiver.indices.count, 1, 2);
    assert_in_range(w.indices.count, 1, 2);
}

static void what_was_sealed_under_the_old_session_opens_for_thirty_seconds(void **state)
{
    (void)state;
    link_world_connect(&w);
    struct responder_packet opened;
    struct link_world_packet there[2], back[2];
    for (unsigned i = 0; i < 2; i++) {
        there[i] = link_world_packet(&w);
        back[i] = link_world_seal(receiver_session(), w.now_ns, w.receiver_packet++);
    }
    initiator_restart(&w.sender);
    link_world_handshake(&w);
    link_world_ping(&w);
    tick(LINK_PREVIOUS_NS - 1);
    assert_int_equal(link_world_open(&w, there[0], &opened), 0);
    assert_false(opened.confirmed);
    assert_int_equal(link_world_open_back(&w, back[0]), 0);
    tick(1);
    assert_int_equal(link_world_open(&w, there[1], &opened), PE_EXPIRED);
    assert_int_equal(link_world_open_back(&w, back[1]), PE_EXPIRED);
    link_world_ping(&w);
}

/* The receiver goes on under the old session until the new one is confirmed, however long that takes. */
static void an_unconfirmed_session_replaces_nothing(void **state)
{
    (void)state;
    link_world_connect(&w);
    initiator_restart(&w.sender);
    link_world_handshake(&w);
    struct link_world_packet late = link_world_packet(&w);
    for (unsigned i = 0; i < 100; i++) {
        tick(NS_PER_S);
        struct session *s = receiver_session();
        assert_int_equal(link_world_open_back(&w, link_world_seal(s, w.now_ns, w.receiver_packet++)), 0);
        assert_false(w.sender.confirmed);
    }
    struct responder_packet opened;
    assert_int_equal(link_world_open(&w, late, &opened), 0);
    assert_true(opened.confirmed && !opened.begins);
}

static void a_session_that_sealed_enough_is_replaced(void **state)
{
    (void)state;
    link_world_connect(&w);
    struct link_init init;
    w.sender.current.sealed = LINK_REKEY_BYTES - 1;
    assert_int_equal(initiator_write(&w.sender, w.now_ns, w.next_packet, (uint8_t *)&init), 0);
    link_world_ping(&w);
    assert_true(initiator_next_ns(&w.sender) <= w.now_ns);
    assert_true(link_world_handshake(&w).goes_on);
    link_world_ping(&w);
    assert_true(w.sender.current.sealed < 2 * LINK_DATA_OVERHEAD);
}

static void after_too_many_forgeries_a_session_ends_and_the_next_begins(void **state)
{
    (void)state;
    link_world_connect(&w);
    w.sender.current.forgeries = LINK_FORGERIES - 1;
    struct link_world_packet good = link_world_seal(receiver_session(), w.now_ns, w.receiver_packet++);
    struct link_world_packet forged = good;
    forged.bytes[forged.size - 1] ^= 1;
    assert_int_equal(link_world_open_back(&w, forged), PE_NOT_AUTHENTIC);
    assert_int_equal(link_world_open_back(&w, good), PE_EXPIRED);
    assert_true(initiator_next_ns(&w.sender) <= w.now_ns);
    tick(0);
    assert_false(w.sender.current.live);
    assert_true(link_world_handshake(&w).goes_on);
    link_world_ping(&w);
}

static void a_receiver_that_lost_its_state_begins_a_new_association(void **state)
{
    (void)state;
    link_world_connect(&w);
    uint8_t before[LINK_ASSOCIATION_BYTES];
    memcpy(before, w.sender.association, sizeof before);
    responder_dispose(&w.receiver);
    link_world_start_receiver(&w);
    struct responder_packet opened;
    assert_int_equal(link_world_open(&w, link_world_packet(&w), &opened), PE_EXPIRED);
    initiator_restart(&w.sender);
    assert_false(link_world_handshake(&w).goes_on);
    assert_false(w.sender.previous.live); /* its packets would be of another association */
    assert_true(link_world_ping(&w).begins);
    assert_memory_not_equal(before, w.sender.association, sizeof before);
    initiator_restart(&w.sender);
    assert_true(link_world_handshake(&w).goes_on);
    assert_false(link_world_ping(&w).begins);
}

/* Packets of the sender that was, kept by the network, do not reach the association of the one that is. */
static void a_restarted_sender_leaves_nothing_of_the_old_one(void **state)
{
    (void)state;
    link_world_connect(&w);
    struct link_world_packet current = link_world_packet(&w), held = link_world_packet(&w);
    initiator_restart(&w.sender);
    assert_true(link_world_handshake(&w).goes_on);
    struct link_world_packet unconfirmed = link_world_packet(&w);
    link_world_end_sender(&w);
    link_world_start_sender(&w);
    w.now_ns += NS_PER_S;
    assert_false(link_world_handshake(&w).goes_on);
    struct responder_packet opened;
    assert_int_equal(link_world_open(&w, current, &opened), 0); /* still the old association's */
    assert_true(link_world_ping(&w).begins);
    assert_int_equal(link_world_open(&w, held, &opened), PE_EXPIRED);
    assert_int_equal(link_world_open(&w, unconfirmed, &opened), PE_EXPIRED);
    assert_false(link_world_ping(&w).confirmed);
}

static void a_reply_cannot_go_on_with_what_its_sender_does_not_have(void **state)
{
    (void)state;
    link_world_connect(&w);
    initiator_restart(&w.sender);
    struct link_reply reply = link_world_reply(&w);
    struct initiator_terms terms;
    memset(w.sender.association, 0, sizeof w.sender.association);
    struct initiator before = w.sender;
    assert_int_equal(initiator_reply(&w.sender, w.now_ns, &reply, &terms), PE_MALFORMED);
    assert_memory_equal(&w.sender, &before, sizeof before);
}

static void a_session_that_goes_on_ends_with_its_association(void **state)
{
    (void)state;
    link_world_connect(&w);
    struct link_init begin = {.sender = {0}};
    struct initiator other; /* the sender, restarted */
    struct indices indices;
    assert_int_equal(indices_init(&indices, INITIATOR_INDICES), 0);
    assert_int_equal(initiator_init(&other, &w.sender_key, 0, w.receiver_key.public, &indices, &w, &w.random),
                     0);
    initiator_want(&other, true);
    struct link_reply reply;
    struct initiator_terms terms;
    assert_true(initiator_write(&other, w.now_ns, 0, (uint8_t *)&begin) > 0);
    assert_int_equal(link_world_answer(&w, &begin, (uint8_t *)&reply), LINK_REPLY_BYTES);
    assert_int_equal(initiator_reply(&other, w.now_ns, &reply, &terms), 0);
    tick(NS_PER_S);
    initiator_restart(
        &w.sender); /* the old one is not dead yet: a younger session, of the association before */
    assert_true(link_world_handshake(&w).goes_on);
    struct link_world_packet late = link_world_packet(&w);
    struct responder_packet opened;
    struct link_world_packet first = link_world_seal(initiator_sealing(&other, w.now_ns), w.now_ns, 0);
    assert_int_equal(link_world_open(&w, first, &opened), 0);
    assert_true(opened.begins);
    assert_int_equal(link_world_open(&w, late, &opened), PE_EXPIRED);
    initiator_dispose(&other);
    indices_dispose(&indices);
}

static void without_a_reply_inits_go_on_for_ever_at_growing_intervals(void **state)
{
    (void)state;
    uint64_t last_ns = 0, expected_ns = NS_PER_S;
    for (unsigned i = 0; i < 2000; i++) {
        link_world_init(&w);
        if (i > 0) {
            uint64_t interval_ns = w.now_ns - last_ns;
            assert_in_range(interval_ns, expected_ns * 3 / 4, expected_ns * 5 / 4);
            expected_ns = min_u64(2 * expected_ns, 60 * NS_PER_S);
        }
        last_ns = w.now_ns;
        assert_int_equal(initiator_write(&w.sender, w.now_ns, 0, (uint8_t *)&(struct link_init){0}), 0);
        assert_int_equal(w.indices.count, 1);
    }
    link_world_connect(&w);
    initiator_restart(&w.sender);
    link_world_init(&w);
    uint64_t begin_ns = w.now_ns;
    link_world_init(&w);
    assert_true(w.now_ns - begin_ns <= NS_PER_S * 5 / 4); /* a REPLY began the intervals anew */
}

static void a_link_whose_rekeys_fail_goes_down_and_comes_up_again(void **state)
{
    (void)state;
    link_world_connect(&w);
    uint64_t born_ns = w.sender.current.born_ns;
    unsigned inits = 0;
    while (w.now_ns < born_ns + LINK_OPEN_NS) {
        struct link_init init;
        assert_int_equal(initiator_sealing(&w.sender, w.now_ns) != NULL, w.now_ns < born_ns + LINK_SEAL_NS);
        inits += initiator_write(&w.sender, w.now_ns, w.next_packet, (uint8_t *)&init) > 0;
        tick(NS_PER_S / 2);
    }
    assert_in_range(inits, 5, 9);
    assert_null(receiver_session());
    assert_false(w.sender.current.live);
    assert_int_equal(w.receiver.indices.count, 0);
    assert_true(link_world_handshake(&w).goes_on); /* the association is not the session's */
    assert_false(link_world_ping(&w).begins);
}

static void a_link_that_is_not_wanted_sends_nothing_and_forgets(void **state)
{
    (void)state;
    struct link_init init;
    link_world_init(&w);
    initiator_want(&w.sender, false);
    assert_true(initiator_next_ns(&w.sender) < NEVER);
    tick(2 * NS_PER_S);
    assert_int_equal(initiator_write(&w.sender, w.now_ns, 0, (uint8_t *)&init), 0);
    assert_int_equal(w.indices.count, 0);
    assert_true(sodium_is_zero((const uint8_t *)&w.sender.noise, sizeof w.sender.noise));
    assert_int_equal(initiator_next_ns(&w.sender), NEVER);
    initiator_want(&w.sender, true);
    link_world_connect(&w);
}

/* A machine that slept: monotonic time may stand still or leap. No other clock is looked at. */
static void leaps_of_time_end_sessions_and_nothing_else(void **state)
{
    (void)state;
    static const uint64_t leaps_s[] = {1, 119, 121, 200, 300, 31536000, 315360000};
    link_world_connect(&w);
    for (size_t i = 0; i < ARRAY_SIZE(leaps_s); i++) {
        tick(leaps_s[i] * NS_PER_S);
        assert_int_equal(initiator_sealing(&w.sender, w.now_ns) != NULL, leaps_s[i] < 180);
        initiator_restart(&w.sender);
        assert_true(link_world_handshake(&w).goes_on);
        link_world_ping(&w);
    }
}

/* --- wiping --- */

static bool holds(const void *memory, size_t size, const uint8_t *secret)
{
    return memmem(memory, size, secret, LINK_KEY_BYTES) != NULL;
}

/* The beginning of a direction's secret, whichever cipher's: the key itself, or of its schedule. */
static void copy_secret(uint8_t out[LINK_KEY_BYTES], const struct cipher_key *key)
{
    if (key->cipher == LINK_AES_256_GCM)
        memcpy(out, &key->aes, LINK_KEY_BYTES);
    else
        memcpy(out, key->chacha20, LINK_KEY_BYTES);
}

static bool anybody_holds(const uint8_t *secret)
{
    return holds(&w.sender, sizeof w.sender, secret) ||
           holds(w.receiver.peers, LINK_WORLD_PEERS * sizeof *w.receiver.peers, secret);
}

static void keys_are_wiped_when_their_session_is_over(void **state)
{
    (void)state;
    uint8_t e[LINK_KEY_BYTES], seal_key[LINK_KEY_BYTES], open_key[LINK_KEY_BYTES];
    struct link_reply reply = link_world_reply(&w);
    struct initiator_terms terms;
    memcpy(e, w.sender.noise.e_private, sizeof e);
    assert_true(anybody_holds(e));
    assert_int_equal(initiator_reply(&w.sender, w.now_ns, &reply, &terms), 0);
    assert_false(anybody_holds(e));
    link_world_ping(&w);
    copy_secret(seal_key, &w.sender.current.seal);
    copy_secret(open_key, &w.sender.current.open);
    assert_true(anybody_holds(seal_key) && anybody_holds(open_key));
    initiator_restart(&w.sender);
    link_world_handshake(&w);
    link_world_ping(&w);
    assert_true(anybody_holds(seal_key) && anybody_holds(open_key));
    assert_true(responder_next_ns(&w.receiver) <= w.now_ns + LINK_PREVIOUS_NS);
    assert_true(initiator_next_ns(&w.sender) <= w.now_ns + LINK_PREVIOUS_NS);
    tick(LINK_PREVIOUS_NS);
    assert_false(anybody_holds(seal_key) || anybody_holds(open_key));
}

static void keys_are_wiped_with_age_though_nothing_comes(void **state)
{
    (void)state;
    link_world_connect(&w);
    initiator_want(&w.sender, false);
    link_world_ping(&w);
    uint8_t seal_key[LINK_KEY_BYTES];
    copy_secret(seal_key, &w.sender.current.seal);
    for (unsigned i = 0; i < 20 && w.now_ns != NEVER; i++) {
        w.now_ns = min_u64(initiator_next_ns(&w.sender), responder_next_ns(&w.receiver));
        if (w.now_ns != NEVER)
            tick(0);
    }
    assert_int_equal(w.now_ns, NEVER);
    assert_false(anybody_holds(seal_key));
    w.now_ns = 0;
}

static void keys_are_wiped_at_the_end(void **state)
{
    (void)state;
    link_world_connect(&w);
    initiator_restart(&w.sender);
    link_world_reply(&w);
    uint8_t seal_key[LINK_KEY_BYTES];
    copy_secret(seal_key, &w.sender.current.seal);
    responder_forget(&w.receiver, w.peer);
    assert_false(holds(w.receiver.peers, LINK_WORLD_PEERS * sizeof *w.receiver.peers, seal_key));
    initiator_dispose(&w.sender);
    assert_true(sodium_is_zero((const uint8_t *)&w.sender, sizeof w.sender));
    assert_int_equal(w.indices.count, 0);
    indices_dispose(&w.indices);
    link_world_start_sender(&w);
}

/* --- storms --- */

#define AIR    64
#define STEPS  1500
#define STORMS 20

/* Datagrams on their way, either way; `id` of a DATA packet is unique. */
struct datagram {
    uint8_t bytes[LINK_INIT_BYTES];
    size_t size;
    uint64_t id;
    bool to_receiver;
};

static struct storm {
    struct datagram air[AIR];
    unsigned count;
    bool seen[STEPS + 1]; /* ids that the receiver opened */
    unsigned opened;
} storm;

static void put_in_air(const void *bytes, size_t size, bool to_receiver, uint64_t id)
{
    struct datagram *d = &storm.air[storm.count < AIR ? storm.count++ : random_below(&w.seed, AIR)];
    *d = (struct datagram){.size = size, .id = id, .to_receiver = to_receiver};
    memcpy(d->bytes, bytes, size);
}

static void receive_at_receiver(struct datagram *d, unsigned type)
{
    struct responder_packet opened;
    uint8_t out[LINK_ANSWER_BYTES];
    if (type == LINK_INIT) {
        int size = responder_answer(&w.receiver, w.now_ns, &w.source, (struct link_init *)d->bytes, out);
        if (size > 0)
            put_in_air(out, (size_t)size, false, 0);
    } else if (type == LINK_DATA && responder_open(&w.receiver, w.now_ns, d->bytes, d->size, &opened) == 0) {
        assert_false(storm.seen[d->id]);
        storm.seen[d->id] = true;
        storm.opened++;
    }
}

static void receive_at_sender(struct datagram *d, unsigned type)
{
    struct session_packet opened;
    struct initiator_terms terms;
    if (type == LINK_REPLY) {
        if (initiator_reply(&w.sender, w.now_ns, (struct link_reply *)d->bytes, &terms) == 0 &&
            !terms.goes_on)
            w.next_packet = 0;
    } else if (type == LINK_COOKIE) {
        initiator_cookie(&w.sender, w.now_ns, (struct link_cookie *)d->bytes);
    } else if (type == LINK_DATA) {
        initiator_open(&w.sender, w.now_ns, d->bytes, d->size, &opened);
    }
}

/* One datagram, whichever, perhaps altered; it stays in the air for another time, or not. */
static void receive_any(void)
{
    if (storm.count == 0)
        return;
    unsigned at = (unsigned)random_below(&w.seed, storm.count);
    struct datagram d = storm.air[at];
    if (random_below(&w.seed, 4))
        storm.air[at] = storm.air[--storm.count];
    if (random_below(&w.seed, 10) == 0)
        d.bytes[random_below(&w.seed, d.size)] ^= (uint8_t)(1 + random_below(&w.seed, 255));
    unsigned type = link_type_of(d.bytes, d.size);
    if (d.to_receiver)
        receive_at_receiver(&d, type);
    else
        receive_at_sender(&d, type);
}

/* As what has AES in hardware, or not. */
static void restart_either(void)
{
    w.sender_ciphers = cipher_hardware() & (uint8_t)random_below(&w.seed, 2);
    w.receiver_ciphers = cipher_hardware() & (uint8_t)random_below(&w.seed, 2);
    if (random_below(&w.seed, 2)) {
        responder_dispose(&w.receiver);
        link_world_start_receiver(&w);
    } else {
        link_world_end_sender(&w);
        link_world_start_sender(&w);
    }
}

static void send_whatever_is_due(uint64_t id)
{
    struct link_init init;
    struct link_world_packet packet;
    if (initiator_write(&w.sender, w.now_ns, w.next_packet, (uint8_t *)&init) > 0)
        put_in_air(&init, sizeof init, true, 0);
    if (initiator_sealing(&w.sender, w.now_ns)) {
        packet = link_world_packet(&w);
        put_in_air(packet.bytes, packet.size, true, id);
    }
    if (receiver_session()) {
        packet = link_world_seal(receiver_session(), w.now_ns, receiver_session()->next_number);
        put_in_air(packet.bytes, packet.size, false, 0);
    }
}

static void weather(uint64_t seed)
{
    link_world_start_with(&w, seed, cipher_hardware(), cipher_hardware());
    memset(&storm, 0, sizeof storm);
    for (unsigned step = 1; step <= STEPS; step++) {
        tick(random_below(&w.seed, 2 * NS_PER_S));
        send_whatever_is_due(step);
        for (unsigned i = 0; i < 3; i++)
            receive_any();
        if (random_below(&w.seed, 200) == 0)
            restart_either();
        if (random_below(&w.seed, 50) == 0)
            initiator_restart(&w.sender);
        assert_true(link_world_count(&w, RESPONDER_UNCONFIRMED) <= LINK_UNCONFIRMED);
        assert_true(w.receiver.indices.count <= RESPONDER_SESSIONS && w.indices.count <= INITIATOR_INDICES);
    }
    initiator_restart(&w.sender);
    w.receiver.handshakes.full_ns = 0;
    w.sender.cookie.until_ns = 0; /* that of a receiver that was */
    link_world_connect(&w);
    link_world_ping(&w);
    link_world_end(&w);
}

/* Reordered, duplicated, altered, lost, with restarts of both ends: no packet opens twice, all tables stay
 * within their limits, and the next undisturbed handshake works. */
static void storms_pass(void **state)
{
    (void)state;
    unsigned opened = 0;
    for (uint64_t seed = 0; seed < STORMS; seed++) {
        weather(seed);
        opened += storm.opened;
    }
    assert_true(opened > STORMS * STEPS / 10); /* it was not all in vain */
}

#define TEST(f)     cmocka_unit_test_setup_teardown(f, start, end)
#define TEST_AES(f) cmocka_unit_test_setup_teardown(f, start_aes, end)

int main(void)
{
    if (sodium_init() < 0)
        return 1;
    const struct CMUnitTest tests[] = {
        TEST(traffic_does_not_pause_for_a_rekey),
        TEST(what_was_sealed_under_the_old_session_opens_for_thirty_seconds),
        TEST(an_unconfirmed_session_replaces_nothing),
        TEST(a_session_that_sealed_enough_is_replaced),
        TEST(after_too_many_forgeries_a_session_ends_and_the_next_begins),
        TEST(a_receiver_that_lost_its_state_begins_a_new_association),
        TEST(a_restarted_sender_leaves_nothing_of_the_old_one),
        TEST(a_reply_cannot_go_on_with_what_its_sender_does_not_have),
        TEST(a_session_that_goes_on_ends_with_its_association),
        TEST(without_a_reply_inits_go_on_for_ever_at_growing_intervals),
        TEST(a_link_whose_rekeys_fail_goes_down_and_comes_up_again),
        TEST(a_link_that_is_not_wanted_sends_nothing_and_forgets),
        TEST(leaps_of_time_end_sessions_and_nothing_else),
        TEST(keys_are_wiped_when_their_session_is_over),
        TEST(keys_are_wiped_with_age_though_nothing_comes),
        TEST(keys_are_wiped_at_the_end),
        TEST_AES(traffic_does_not_pause_for_a_rekey),
        TEST_AES(keys_are_wiped_when_their_session_is_over),
        TEST_AES(keys_are_wiped_with_age_though_nothing_comes),
        TEST_AES(keys_are_wiped_at_the_end),
        cmocka_unit_test(storms_pass),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
