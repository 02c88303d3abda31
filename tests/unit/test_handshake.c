/* INIT, REPLY, COOKIE and the first packet: what is refused, what is bounded, and that what fails changes
 * nothing. */
#include "tests/unit/link_world.h"

static struct link_world w;
static struct link_world_memory memory;

static int start(void **state)
{
    (void)state;
    link_world_start(&w, 1);
    return 0;
}

static int end(void **state)
{
    (void)state;
    link_world_end(&w);
    return 0;
}

/* The answer to an INIT whose mac1 was put right again, as who knows the receiver's public key can. */
static int answer_signed(struct link_init *init)
{
    struct cookie_held none = {{0}, 0};
    uint8_t out[LINK_ANSWER_BYTES];
    w.receiver.handshakes.full_ns = 0; /* the budget is another test's */
    cookie_sign(&none, &w.receiver.cookie_keys, w.now_ns, init);
    return responder_answer(&w.receiver, w.now_ns, &w.source, init, out);
}

static int answer(const struct link_init *init)
{
    uint8_t out[LINK_ANSWER_BYTES];
    return link_world_answer(&w, init, out);
}

/* The INIT has to be answered by a COOKIE. */
static void ask_cookie(const struct link_init *init, struct link_cookie *cookie)
{
    uint8_t out[LINK_ANSWER_BYTES];
    assert_int_equal(link_world_answer(&w, init, out), LINK_COOKIE_BYTES);
    memcpy(cookie, out, sizeof *cookie);
}

static struct session *receiver_session(void)
{
    return responder_sealing(&w.receiver, w.peer, w.now_ns);
}

static void a_handshake_gives_both_ends_the_same_keys(void **state)
{
    (void)state;
    struct initiator_terms terms = link_world_handshake(&w);
    assert_false(terms.goes_on);
    assert_int_equal(terms.most_streams, 1024);
    assert_int_equal(terms.session_credit, 4 << 20);
    assert_int_equal(terms.next_packet, 0);
    assert_null(receiver_session()); /* not before the first packet */
    struct responder_packet opened = link_world_ping(&w);
    assert_true(opened.confirmed && opened.begins);
    assert_int_equal(opened.peer, w.peer);
    struct session *theirs = receiver_session(), *ours = initiator_sealing(&w.sender, w.now_ns);
    assert_memory_equal(ours->seal.chacha20, theirs->open.chacha20, LINK_KEY_BYTES);
    assert_memory_equal(ours->open.chacha20, theirs->seal.chacha20, LINK_KEY_BYTES);
    assert_memory_not_equal(ours->open.chacha20, ours->seal.chacha20, LINK_KEY_BYTES);
    assert_memory_equal(w.sender.association, w.receiver.peers[w.peer].association, LINK_ASSOCIATION_BYTES);
    opened = link_world_ping(&w);
    assert_false(opened.confirmed || opened.begins);
}

static void an_init_altered_in_any_byte_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    struct link_init init = link_world_init(&w);
    uint8_t out[LINK_ANSWER_BYTES];
    link_world_remember(&w, &memory);
    for (size_t at = 0; at < sizeof init; at++) {
        ((uint8_t *)&init)[at] ^= 0x20;
        int size = link_type_of((const uint8_t *)&init, sizeof init) != LINK_INIT
                       ? PE_MALFORMED
                       : responder_answer(&w.receiver, w.now_ns, &w.source, &init, out);
        /* A wrong mac2 is told what is right now; else silence. */
        assert_true(at < offsetof(struct link_init, mac2) ? size < 0 : size == LINK_COOKIE_BYTES);
        memory.responder.jar.random = w.receiver.jar.random;
        assert_true(link_world_same(&w, &memory, false));
        ((uint8_t *)&init)[at] ^= 0x20;
    }
    assert_int_equal(answer(&init), LINK_REPLY_BYTES);
}

/* mac1 is no secret to who knows the receiver's key: the handshake itself has to refuse. */
static void an_init_altered_by_who_can_sign_it_is_refused_too(void **state)
{
    (void)state;
    link_world_connect(&w);
    initiator_restart(&w.sender);
    struct link_init init = link_world_init(&w);
    link_world_remember(&w, &memory);
    for (size_t at = 4; at < offsetof(struct link_init, mac1); at += at < 110 ? 1 : 13) {
        ((uint8_t *)&init)[at] ^= 1;
        int error = answer_signed(&init);
        assert_true(error == PE_NOT_AUTHENTIC || error == PE_KEY_WEAK);
        assert_true(link_world_same(&w, &memory, true));
        ((uint8_t *)&init)[at] ^= 1;
    }
    assert_int_equal(answer_signed(&init), LINK_REPLY_BYTES);
}

static void a_reply_altered_in_any_byte_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    link_world_connect(&w);
    initiator_restart(&w.sender);
    struct link_reply reply = link_world_reply(&w);
    struct initiator before = w.sender;
    struct initiator_terms terms;
    for (size_t at = 0; at < sizeof reply; at++) {
        ((uint8_t *)&reply)[at] ^= 0x04;
        if (link_type_of((const uint8_t *)&reply, sizeof reply) == LINK_REPLY)
            assert_true(initiator_reply(&w.sender, w.now_ns, &reply, &terms) < 0);
        else
            assert_true(at < 4);
        assert_memory_equal(&w.sender, &before, sizeof before);
        ((uint8_t *)&reply)[at] ^= 0x04;
    }
    assert_int_equal(initiator_reply(&w.sender, w.now_ns, &reply, &terms), 0);
    assert_true(terms.goes_on);
    before = w.sender;
    assert_int_equal(initiator_reply(&w.sender, w.now_ns, &reply, &terms), PE_EXPIRED); /* a second time */
    assert_memory_equal(&w.sender, &before, sizeof before);
}

static void a_first_packet_altered_in_any_byte_confirms_nothing(void **state)
{
    (void)state;
    link_world_handshake(&w);
    struct link_world_packet packet = link_world_packet(&w);
    struct responder_packet opened;
    link_world_remember(&w, &memory);
    for (size_t at = 4; at < packet.size; at++) {
        packet.bytes[at] ^= 0x80;
        assert_true(link_world_open(&w, packet, &opened) < 0);
        for (unsigned i = 0; i < RESPONDER_SESSIONS; i++) /* their number is all that is kept */
            w.receiver.peers[w.peer].sessions[i].session.forgeries = 0;
        assert_true(link_world_same(&w, &memory, false));
        packet.bytes[at] ^= 0x80;
    }
    assert_int_equal(link_world_open(&w, packet, &opened), 0);
}

static void a_cookie_altered_in_any_byte_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    struct link_init init = link_world_init(&w);
    struct link_cookie cookie;
    w.receiver.handshakes.full_ns = NEVER / 2;
    ask_cookie(&init, &cookie);
    struct initiator before = w.sender;
    for (size_t at = 4; at < sizeof cookie; at++) {
        ((uint8_t *)&cookie)[at] ^= 1;
        assert_true(initiator_cookie(&w.sender, w.now_ns, &cookie) < 0);
        assert_memory_equal(&w.sender, &before, sizeof before);
        ((uint8_t *)&cookie)[at] ^= 1;
    }
    assert_int_equal(initiator_cookie(&w.sender, w.now_ns, &cookie), 0);
}

static void a_replayed_init_changes_nothing(void **state)
{
    (void)state;
    struct link_init init = link_world_init(&w);
    struct link_reply reply;
    struct initiator_terms terms;
    assert_int_equal(link_world_answer(&w, &init, (uint8_t *)&reply), LINK_REPLY_BYTES);
    link_world_remember(&w, &memory);
    assert_int_equal(answer(&init), PE_REPLAYED); /* before its session is confirmed … */
    assert_true(link_world_same(&w, &memory, true));
    assert_int_equal(initiator_reply(&w.sender, w.now_ns, &reply, &terms), 0);
    link_world_ping(&w);
    link_world_remember(&w, &memory);
    assert_int_equal(answer(&init), PE_REPLAYED); /* … and after */
    assert_true(link_world_same(&w, &memory, true));
}

/* All INITs that were ever captured, again and again, between any two steps of the next handshake. */
static void replays_of_any_age_do_not_disturb_a_rekey(void **state)
{
    (void)state;
    enum { CAPTURED = 12 };
    static struct link_init captured[CAPTURED];
    unsigned count = 0;
    for (unsigned restart = 0; restart < 4; restart++) { /* senders that were */
        link_world_end_sender(&w);
        link_world_start_sender(&w);
        for (unsigned i = 0; i < 3; i++) {
            captured[count] = link_world_init(&w);
            w.receiver.handshakes.full_ns = 0;
            struct link_reply reply;
            struct initiator_terms terms;
            assert_int_equal(link_world_answer(&w, &captured[count++], (uint8_t *)&reply), LINK_REPLY_BYTES);
            if (i == 1) {
                assert_int_equal(initiator_reply(&w.sender, w.now_ns, &reply, &terms), 0);
                w.next_packet = 0;
                link_world_ping(&w);
            }
            initiator_restart(&w.sender);
        }
    }
    assert_int_equal(count, CAPTURED);
    link_world_end_sender(&w);
    link_world_start_sender(&w);
    link_world_connect(&w);
    uint8_t association[LINK_ASSOCIATION_BYTES];
    memcpy(association, w.sender.association, sizeof association);
    initiator_restart(&w.sender);
    struct link_reply reply = link_world_reply(&w);
    for (unsigned i = 0; i < 10 * CAPTURED; i++) {
        w.now_ns += NS_PER_MS;
        w.receiver.handshakes.full_ns = 0;
        answer(&captured[i % CAPTURED]);
        assert_in_range(link_world_count(&w, RESPONDER_UNCONFIRMED), 1, LINK_UNCONFIRMED);
    }
    struct initiator_terms terms;
    link_world_ping(&w); /* under the old session */
    assert_int_equal(initiator_reply(&w.sender, w.now_ns, &reply, &terms), 0);
    assert_true(terms.goes_on);
    struct responder_packet opened = link_world_ping(&w);
    assert_true(opened.confirmed && !opened.begins);
    assert_memory_equal(association, w.receiver.peers[w.peer].association, sizeof association);
}

static void a_replayed_init_changes_nothing_after_a_restart_of_the_receiver(void **state)
{
    (void)state;
    struct link_init first = link_world_init(&w);
    struct link_world_packet packets[2];
    struct responder_packet opened;
    struct link_reply reply;
    struct initiator_terms terms;
    link_world_answer(&w, &first, (uint8_t *)&reply);
    assert_int_equal(initiator_reply(&w.sender, w.now_ns, &reply, &terms), 0);
    for (unsigned i = 0; i < 2; i++) {
        packets[i] = link_world_packet(&w);
        assert_int_equal(link_world_open(&w, packets[i], &opened), 0);
    }
    responder_dispose(&w.receiver);
    link_world_start_receiver(&w);
    assert_int_equal(answer(&first), LINK_REPLY_BYTES); /* it cannot know … */
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(link_world_open(&w, packets[i], &opened),
                         PE_EXPIRED); /* … but nothing comes of it */
    assert_int_equal(link_world_count(&w, RESPONDER_CURRENT), 0);
    initiator_restart(&w.sender);
    assert_false(link_world_handshake(&w).goes_on);
    assert_true(link_world_ping(&w).begins);
    link_world_remember(&w, &memory);
    assert_int_equal(answer(&first), LINK_REPLY_BYTES);
    assert_memory_equal(w.receiver.peers[w.peer].association, memory.peers[w.peer].association,
                        LINK_ASSOCIATION_BYTES);
    assert_false(link_world_ping(&w).confirmed);
}

static void unconfirmed_sessions_are_four_at_most_and_the_oldest_goes(void **state)
{
    (void)state;
    struct link_reply replies[7];
    for (unsigned i = 0; i < 7; i++) {
        w.receiver.handshakes.full_ns = 0;
        replies[i] = link_world_reply(&w);
        assert_int_equal(link_world_count(&w, RESPONDER_UNCONFIRMED), i < 4 ? i + 1 : 4);
    }
    assert_int_equal(w.receiver.indices.count, 4);
    for (unsigned i = 0; i < 7; i++) {
        struct responder_session *s = indices_find(&w.receiver.indices, link_get32(replies[i].receiver));
        assert_int_equal(s != NULL, i >= 3);
    }
    struct initiator_terms terms;
    assert_int_equal(initiator_reply(&w.sender, w.now_ns, &replies[6], &terms), 0);
    link_world_ping(&w);
    assert_int_equal(w.receiver.indices.count, 1); /* the older ones end with it */
}

/* Of a peer whose REPLYs are lost there is one session that goes on, not four. */
static void a_renewed_attempt_takes_the_place_of_the_one_before(void **state)
{
    (void)state;
    link_world_connect(&w);
    initiator_restart(&w.sender);
    struct link_init first = link_world_init(&w);
    for (unsigned i = 0; i < 5; i++) {
        link_world_reply(&w);
        assert_int_equal(link_world_count(&w, RESPONDER_UNCONFIRMED), 1);
    }
    w.receiver.handshakes.full_ns = 0;
    assert_int_equal(answer(&first), PE_REPLAYED); /* an earlier attempt, though it never came before */
}

static void under_load_a_cookie_is_asked_for_and_opens_the_way(void **state)
{
    (void)state;
    struct link_init init = link_world_init(&w);
    for (unsigned i = 0; i < LINK_HANDSHAKES; i++)
        assert_true(answer(&init) != LINK_COOKIE_BYTES);
    struct link_init forged = init;
    w.source = link_world_source(0x7f000009, 1);
    link_world_remember(&w, &memory);
    for (unsigned i = 0; i < 1000; i++) {
        struct link_cookie cookie;
        ask_cookie(&forged, &cookie);
        assert_true(link_world_same(&w, &memory, false)); /* nothing is kept */
    }
    w.source = link_world_source(0x7f000001, 4000);
    struct link_cookie cookie;
    ask_cookie(&init, &cookie);
    assert_int_equal(initiator_cookie(&w.sender, w.now_ns, &cookie), 0);
    init = link_world_init(&w);
    w.receiver.handshakes.full_ns = w.now_ns + 2 * NS_PER_S; /* the load goes on */
    assert_int_equal(answer(&init), LINK_REPLY_BYTES);
    w.source = link_world_source(0x7f000001, 4001);
    assert_int_equal(answer(&init), LINK_COOKIE_BYTES);
}

static void the_work_for_proven_addresses_is_bounded_too(void **state)
{
    (void)state;
    struct link_init init = link_world_init(&w);
    struct link_cookie cookie;
    w.receiver.handshakes.full_ns = NEVER / 2;
    ask_cookie(&init, &cookie);
    assert_int_equal(initiator_cookie(&w.sender, w.now_ns, &cookie), 0);
    init = link_world_init(&w);
    unsigned worked = 0;
    for (unsigned i = 0; i < 2 * LINK_PROVEN_HANDSHAKES; i++)
        worked += answer(&init) != PE_LINK_BUSY;
    assert_int_equal(worked, LINK_PROVEN_HANDSHAKES);
    w.now_ns += NS_PER_S / 2 + NS_PER_MS;
    for (worked = 0; answer(&init) != PE_LINK_BUSY;)
        worked++;
    assert_int_equal(worked, LINK_PROVEN_HANDSHAKES / 2);
}

static void an_unknown_key_gets_silence_and_one_report_a_minute(void **state)
{
    (void)state;
    responder_forbid(&w.receiver, w.peer);
    for (unsigned i = 0; i < 100; i++) {
        struct link_init init = link_world_init(&w);
        if (i == 99)
            w.now_ns += RESPONDER_REPORT_NS;
        w.receiver.handshakes.full_ns = 0;
        unsigned before = w.reports;
        uint64_t due_ns = w.receiver.report_ns;
        assert_int_equal(answer(&init), PE_UNKNOWN_KEY);
        assert_int_equal(w.reports - before, w.now_ns >= due_ns);
    }
    assert_true(w.reports > 1 && w.reported_times > 0);
    assert_memory_equal(w.reported_key, w.sender_key.public, LINK_KEY_BYTES);
    assert_int_equal(w.receiver.indices.count, 0);
}

static void who_does_not_know_the_receivers_key_gets_silence(void **state)
{
    (void)state;
    struct host_key other;
    host_key_generate(&other, &w.random);
    link_world_end_sender(&w);
    assert_int_equal(indices_init(&w.indices, INITIATOR_INDICES), 0);
    assert_int_equal(initiator_init(&w.sender, &w.sender_key, 0, other.public, &w.indices, &w, &w.random), 0);
    initiator_want(&w.sender, true);
    struct link_init init = link_world_init(&w);
    link_world_remember(&w, &memory);
    assert_int_equal(answer(&init), PE_NOT_AUTHENTIC);
    assert_true(link_world_same(&w, &memory, false));
    assert_int_equal(answer_signed(&init), PE_NOT_AUTHENTIC); /* its mac1 alone does not do */
}

/* No answer at all to garbage, and none that is larger than a third of what came. */
static void garbage_gets_silence(void **state)
{
    (void)state;
    link_world_connect(&w);
    link_world_remember(&w, &memory);
    for (unsigned i = 0; i < 20000; i++) {
        struct link_init garbage;
        struct responder_packet opened;
        link_world_fill(&w.seed, &garbage, 64);
        link_put_head(&garbage.head, LINK_INIT);
        assert_true(answer(&garbage) < 0);
        link_put_head(&garbage.head, LINK_DATA);
        assert_true(responder_open(&w.receiver, w.now_ns, (uint8_t *)&garbage, 64, &opened) < 0);
    }
    assert_true(link_world_same(&w, &memory, false));
}

static void peers_are_bounded_and_stable(void **state)
{
    (void)state;
    uint8_t key[LINK_KEY_BYTES] = {1};
    assert_int_equal(responder_allow(&w.receiver, w.sender_key.public), w.peer);
    for (uint8_t i = 1; i < LINK_WORLD_PEERS; i++) {
        key[0] = i;
        assert_int_equal(responder_allow(&w.receiver, key), i);
    }
    key[0] = 200;
    assert_int_equal(responder_allow(&w.receiver, key), PE_FULL);
    link_world_connect(&w);
    responder_forbid(&w.receiver, w.peer);
    assert_null(receiver_session());
    assert_int_equal(w.receiver.indices.count, 0);
    assert_int_equal(responder_allow(&w.receiver, key), w.peer);
}

static void a_weak_remote_key_is_refused_at_the_start(void **state)
{
    (void)state;
    struct initiator i;
    uint8_t weak[LINK_KEY_BYTES] = {0};
    assert_int_equal(initiator_init(&i, &w.sender_key, 0, weak, &w.indices, &w, &w.random), PE_KEY_WEAK);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, start, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_handshake_gives_both_ends_the_same_keys),
        TEST(an_init_altered_in_any_byte_is_refused_and_changes_nothing),
        TEST(an_init_altered_by_who_can_sign_it_is_refused_too),
        TEST(a_reply_altered_in_any_byte_is_refused_and_changes_nothing),
        TEST(a_first_packet_altered_in_any_byte_confirms_nothing),
        TEST(a_cookie_altered_in_any_byte_is_refused_and_changes_nothing),
        TEST(a_replayed_init_changes_nothing),
        TEST(replays_of_any_age_do_not_disturb_a_rekey),
        TEST(a_replayed_init_changes_nothing_after_a_restart_of_the_receiver),
        TEST(unconfirmed_sessions_are_four_at_most_and_the_oldest_goes),
        TEST(a_renewed_attempt_takes_the_place_of_the_one_before),
        TEST(under_load_a_cookie_is_asked_for_and_opens_the_way),
        TEST(the_work_for_proven_addresses_is_bounded_too),
        TEST(an_unknown_key_gets_silence_and_one_report_a_minute),
        TEST(who_does_not_know_the_receivers_key_gets_silence),
        TEST(garbage_gets_silence),
        TEST(peers_are_bounded_and_stable),
        TEST(a_weak_remote_key_is_refused_at_the_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
