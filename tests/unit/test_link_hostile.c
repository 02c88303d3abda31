/* What strangers, and peers of no good will, can do to a listener and its links: nothing that is stored
 * twice, nothing that is reset, nothing that grows, nothing that others wait for. See link_hosts.h. */
#include "link_hosts.h"

static struct links w;

/* --- all that passes a tap --- */

#define CAPTURED_MAX 6000

struct captured {
    struct sockaddr_storage from, to;
    size_t size;
    uint8_t bytes[1500];
};

static struct captured captured[CAPTURED_MAX];
static unsigned captured_count;

static void capture(void *context, const struct sockaddr_storage *from, const struct sockaddr_storage *to,
                    struct span bytes)
{
    (void)context;
    if (captured_count == CAPTURED_MAX || bytes.size > sizeof captured->bytes)
        return;
    struct captured *c = &captured[captured_count++];
    c->from = *from;
    c->to = *to;
    c->size = bytes.size;
    memcpy(c->bytes, bytes.data, bytes.size);
}

static void start_capture(void)
{
    captured_count = 0;
    sim_set_tap(w.sim, capture, NULL);
}

/* The newest of a type. */
static struct captured *find(enum link_type type)
{
    for (unsigned i = captured_count; i-- > 0;) {
        if (link_type_of(captured[i].bytes, captured[i].size) == type)
            return &captured[i];
    }
    fail_msg("no datagram of type %d was sent", type);
    return NULL;
}

static void set_black_hole(bool black_hole)
{
    struct sim_path path = sim_path_default;
    path.black_hole = black_hole;
    sim_set_path(w.sim, NULL, NULL, &path);
}

/* --- what the ends know --- */

/* All of it but how much work they have left, and what the consumer has. */
struct knowledge {
    struct link_receiver receiver;
    struct responder_peer peers[LINKS_PEERS];
    struct indices_slot slots[64];
    struct link_peer peer;
    struct inlet inlets[8];
    struct link_sender sender;
    struct indices_slot sender_slots[16];
};

static struct knowledge before, now;

static void look(struct knowledge *k)
{
    const struct link_receiver *r = &w.listener.receiver;
    const struct indices *theirs = &r->responder.indices, *ours = &w.sender[0].link.indices;
    memset(k, 0, sizeof *k);
    assert_true(theirs->mask < ARRAY_SIZE(k->slots) && ours->mask < ARRAY_SIZE(k->sender_slots));
    memcpy(&k->receiver, r, sizeof k->receiver);
    memcpy(k->peers, r->responder.peers, sizeof k->peers);
    memcpy(k->slots, theirs->slots, (theirs->mask + 1) * sizeof k->slots[0]);
    memcpy(&k->peer, r->peers[0], sizeof k->peer);
    memcpy(k->inlets, r->peers[0]->inlets.list, sizeof k->inlets);
    memcpy(&k->sender, &w.sender[0].link.sender, sizeof k->sender);
    memcpy(k->sender_slots, ours->slots, (ours->mask + 1) * sizeof k->sender_slots[0]);
    memset(&k->receiver.strangers, 0, sizeof k->receiver.strangers);
    memset(&k->receiver.responder.handshakes, 0, 2 * sizeof(struct responder_budget));
    memset(&k->peer.quota, 0, sizeof k->peer.quota);
    for (unsigned i = 0; i < RESPONDER_SESSIONS; i++) /* that they came is counted */
        k->peers[0].sessions[i].session.forgeries = 0;
}

static bool nothing_changed(void)
{
    look(&now);
    return memcmp(&before, &now, sizeof now) == 0;
}

/* A datagram straight into the end it is meant for; a copy, as it is opened in place. */
static int give(const struct captured *c, uint8_t answer[LINK_ANSWER_BYTES])
{
    uint8_t copy[sizeof c->bytes];
    struct link_address source = {c->from, sizeof(struct sockaddr_in)};
    memcpy(copy, c->bytes, c->size);
    if (((const struct sockaddr_in *)&c->to)->sin_port != htons(7071))
        return link_sender_receive(&w.sender[0].link.sender, sim_now_ns(w.sim), copy, c->size);
    w.listener.receiver.responder.handshakes.full_ns = 0; /* work is another test's */
    w.listener.receiver.strangers.used = 0;
    link_receiver_deliver(&w.listener.receiver);
    before.receiver.round = w.listener.receiver.round;
    return link_receiver_receive(&w.listener.receiver, sim_now_ns(w.sim), &source, copy, c->size, answer);
}

/* Every byte in turn, in one bit, in others, in all: it is refused, or (a mac2 only) answered by a COOKIE,
 * and nothing has changed. With `signs` whoever alters it puts mac1 right again. */
static void alter_everywhere(struct captured *c, size_t size, bool signs)
{
    static const uint8_t masks[] = {0x01, 0x80, 0x42, 0xff};
    uint8_t answer[LINK_ANSWER_BYTES];
    const struct captured original = *c;
    look(&before);
    for (size_t i = 0; i < size * ARRAY_SIZE(masks); i++) {
        size_t at = i / ARRAY_SIZE(masks);
        c->bytes[at] ^= masks[i % ARRAY_SIZE(masks)];
        if (signs)
            cookie_sign(&(struct cookie_held){.until_ns = 0}, &w.listener.receiver.responder.cookie_keys, 0,
                        (struct link_init *)c->bytes);
        int result = give(c, answer);
        bool only_mac2 = original.bytes[0] == LINK_INIT && at >= offsetof(struct link_init, mac2);
        if (only_mac2 ? result != LINK_COOKIE_BYTES : result >= 0)
            fail_msg("type %u, byte %zu: %d", original.bytes[0], at, result);
        if (!nothing_changed())
            fail_msg("type %u, byte %zu changed something", original.bytes[0], at);
        *c = original;
    }
}

/* Nothing gets through but what the test carries across. */
static void start_by_hand(void)
{
    links_open(&w, 1, 1, 2, 500);
    set_black_hole(true);
    start_capture();
    links_done(&w);
    sim_run_for(w.sim, NS_PER_MS);
}

static void carry(const struct captured *c)
{
    struct captured answer = {.from = c->to, .to = c->from};
    int size = give(c, answer.bytes);
    assert_true(size >= 0);
    if (size == 0)
        return;
    answer.size = (size_t)size;
    captured[captured_count++] = answer;
}

static void each_handshake_message_altered_in_any_byte_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    start_by_hand();
    alter_everywhere(find(LINK_INIT), LINK_INIT_BYTES, false);
    carry(find(LINK_INIT));
    alter_everywhere(find(LINK_REPLY), LINK_REPLY_BYTES, false);
    carry(find(LINK_REPLY));
    link_listener_want(&w.listener);
    loop_want(&w.sender[0].loop, &w.sender[0].link.task);
    sim_run_for(w.sim, NS_PER_MS);
    struct captured *first = NULL;
    for (unsigned i = 0; !first && i < captured_count; i++)
        first = captured[i].bytes[0] == LINK_DATA ? &captured[i] : NULL;
    assert_non_null(first);
    alter_everywhere(first, first->size, false);
    assert_false(w.listener.receiver.peers[0]->associated);
    carry(first);
    assert_true(w.listener.receiver.peers[0]->associated);
    set_black_hole(false);
    links_finish(&w);
    links_close(&w);
}

/* mac1 keeps out only who does not know the receiver's public key. */
static void an_init_altered_by_who_signs_it_again_is_refused_and_changes_nothing(void **state)
{
    (void)state;
    start_by_hand();
    struct captured *init = find(LINK_INIT);
    static struct captured shortened;
    alter_everywhere(init, offsetof(struct link_init, payload) + sizeof(uint64_t), true);
    shortened = *init;
    shortened.size--;
    assert_true(give(&shortened, NULL) < 0);
    carry(init);
    set_black_hole(false);
    links_finish(&w);
    links_close(&w);
}

static void a_cookie_altered_in_any_byte_is_refused_and_the_right_one_opens_the_way(void **state)
{
    (void)state;
    start_by_hand();
    struct captured *init = find(LINK_INIT), cookie = {.from = init->to, .to = init->from};
    struct link_address source = {init->from, sizeof(struct sockaddr_in)};
    w.listener.receiver.responder.handshakes.full_ns = NEVER / 2; /* under load for good */
    cookie.size = (size_t)link_receiver_receive(&w.listener.receiver, sim_now_ns(w.sim), &source, init->bytes,
                                                init->size, cookie.bytes);
    assert_int_equal(cookie.size, LINK_COOKIE_BYTES);
    alter_everywhere(&cookie, LINK_COOKIE_BYTES, false);
    carry(&cookie);
    set_black_hole(false);
    w.listener.receiver.responder.handshakes.full_ns = NEVER / 2;
    links_finish(&w);
    links_close(&w);
}

/* --- amplification --- */

#define SOURCES 200

static struct {
    uint64_t in, out; /* bytes of payload */
} sources[SOURCES];
static uint64_t answers_seen;

static void source_name(unsigned i, char text[32])
{
    snprintf(text, 32, "10.1.0.%u:%u", i, 4000 + i);
}

static void count_answer(void *context, const struct sockaddr_storage *from,
                         const struct sockaddr_storage *to, struct span bytes)
{
    const struct sockaddr_in *in = (const struct sockaddr_in *)to;
    uint32_t host = ntohl(in->sin_addr.s_addr);
    (void)context, (void)from;
    if (host < 0x0a010000 || host >= 0x0a010000 + SOURCES)
        return;
    sources[host - 0x0a010000].out += bytes.size;
    answers_seen++;
}

static void inject(unsigned source, const void *bytes, size_t size)
{
    char from[32];
    source_name(source, from);
    sources[source].in += size;
    sim_inject(w.sim, from, LINKS_LISTENER, bytes, size);
}

/* Random, captured, captured and altered, cut, lengthened, or signed as who knows the public key can. */
static size_t make_hostile(struct random *r, uint8_t bytes[1500])
{
    const struct captured *c = &captured[random_below(r, captured_count)];
    unsigned how = (unsigned)random_below(r, 8);
    size_t size = c->size;
    links_fill(r, bytes, 1500);
    if (how == 0)
        return random_below(r, 1500);
    memcpy(bytes, c->bytes, size);
    if (how >= 3 && size > 0)
        bytes[random_below(r, size)] ^= (uint8_t)(1 + random_below(r, 255));
    if (how == 4)
        size = random_below(r, size + 1);
    if (how == 5)
        size = size + random_below(r, 1500 - size + 1);
    if (how >= 6)
        size = LINK_INIT_BYTES, bytes[0] = LINK_INIT, memset(bytes + 1, 0, 3);
    if (how >= 6)
        cookie_sign(&(struct cookie_held){.until_ns = 0}, &w.listener.receiver.responder.cookie_keys, 0,
                    (struct link_init *)bytes);
    return size;
}

static void what_is_answered_to_unproven_addresses_is_a_third_of_what_they_sent(void **state)
{
    (void)state;
    struct random r = {2};
    uint8_t bytes[1500];
    links_open(&w, 2, 2, 2, 1000);
    start_capture();
    links_finish(&w);
    memset(sources, 0, sizeof sources);
    answers_seen = 0;
    sim_set_tap(w.sim, count_answer, NULL);
    for (unsigned batch = 0; batch < 300; batch++) {
        for (unsigned i = 0; i < 60; i++) {
            size_t size = make_hostile(&r, bytes);
            inject((unsigned)random_below(&r, SOURCES), bytes, size);
        }
        sim_run_for(w.sim, 10 * NS_PER_MS);
        for (unsigned i = 0; i < SOURCES; i++)
            assert_true(3 * sources[i].out <= sources[i].in);
    }
    assert_true(answers_seen > 1000);
    links_finish_more(&w, 500);
    links_close(&w);
}

/* --- replay --- */

enum order { FORWARD, BACKWARD, SHUFFLED, ORDERS };
enum when { AT_ONCE, LATER, LISTENER_RESTARTED, SENDER_RESTARTED, WHENS };

/* Each from where it came, and from elsewhere: who captured it. */
static void replay_all(enum order order, struct random *r)
{
    struct sockaddr_storage elsewhere = {0};
    *(struct sockaddr_in *)&elsewhere = (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(666), .sin_addr.s_addr = htonl(0x0a090909)};
    for (unsigned i = 0; order == SHUFFLED && i < captured_count; i++) {
        unsigned k = (unsigned)random_below(r, captured_count);
        struct captured swapped = captured[i];
        captured[i] = captured[k];
        captured[k] = swapped;
    }
    for (unsigned i = 0; i < captured_count; i++) {
        const struct captured *c = &captured[order == BACKWARD ? captured_count - 1 - i : i];
        sim_replay(w.sim, i % 2 ? &c->from : &elsewhere, &c->to, span_of(c->bytes, c->size));
        if (i % 50 == 49)
            sim_run_for(w.sim, NS_PER_MS);
    }
    sim_run_for(w.sim, 20 * NS_PER_MS);
}

struct standing {
    uint8_t associations[2][LINK_ASSOCIATION_BYTES];
    struct link_address sources[2];
    uint64_t stored[2], received[2];
};

static struct standing standing_of(void)
{
    struct standing s;
    memset(&s, 0, sizeof s);
    for (unsigned i = 0; i < 2; i++) {
        const struct link_peer *peer = w.listener.receiver.peers[i];
        memcpy(s.associations[i], w.listener.receiver.responder.peers[i].association, LINK_ASSOCIATION_BYTES);
        s.sources[i].address = peer->source.address; /* by field: what pads them may be anything */
        s.sources[i].len = peer->source.len;
        s.stored[i] = w.sender[i].streams[0].stored;
        s.received[i] = peer->inlets.session_received;
    }
    return s;
}

static void replay(uint64_t seed, enum order order, enum when when)
{
    struct random r = {seed};
    links_open(&w, seed, 2, 1, 3000);
    start_capture();
    links_finish(&w);
    sim_run_for(w.sim, NS_PER_S);
    sim_set_tap(w.sim, NULL, NULL);
    assert_in_range(captured_count, 100, CAPTURED_MAX - 1);
    if (when == LATER)
        sim_run_for(w.sim, 600 * NS_PER_S);
    if (when == LISTENER_RESTARTED)
        links_restart_listener(&w);
    if (when == SENDER_RESTARTED) {
        links_restart_sender(&w, 0);
        links_finish(&w); /* it has an association of its own */
    }
    struct standing standing = standing_of();
    replay_all(order, &r);
    struct standing after = standing_of();
    assert_memory_equal(&standing, &after, sizeof after);
    assert_true(w.listener.receiver.responder.indices.count <= 2 * RESPONDER_SESSIONS);
    links_finish_more(&w, 1000);
    links_close(&w);
}

static void captured_traffic_replayed_at_any_time_stores_nothing_twice_and_resets_nothing(void **state)
{
    (void)state;
    uint64_t seed = 100;
    for (enum order order = FORWARD; order < ORDERS; order++) {
        for (enum when when = AT_ONCE; when < WHENS; when++)
            replay(seed++, order, when);
    }
}

/* The traffic of yesterday in the midst of today's. */
static void replays_in_the_midst_of_traffic_harm_nothing(void **state)
{
    (void)state;
    struct random r = {3};
    links_open(&w, 3, 2, 1, 5000);
    start_capture();
    links_finish(&w);
    sim_set_tap(w.sim, NULL, NULL);
    links_restart_sender(&w, 0);
    links_restart_listener(&w);
    for (unsigned i = 0; i < 2; i++)
        w.sender[i].streams[0].total += 5000;
    for (unsigned i = 0; i < 4000; i++) {
        const struct captured *c = &captured[random_below(&r, captured_count)];
        sim_replay(w.sim, &c->from, &c->to, span_of(c->bytes, c->size));
        if (i % 20 == 0)
            sim_run(w.sim, sim_now_ns(w.sim) + NS_PER_MS, links_done, &w, 10000);
    }
    uint64_t start_ns = sim_now_ns(w.sim);
    links_finish(&w);
    /* as long as it takes without: LINK_SENDER_SILENCE_NS, until the listener is known to be another */
    assert_true(sim_now_ns(w.sim) - start_ns < 10 * NS_PER_S);
    links_close(&w);
}

/* --- floods --- */

static size_t make_garbage(struct random *r, uint8_t bytes[1500])
{
    const struct responder_peer *victim = &w.listener.receiver.responder.peers[0];
    size_t size = 16 + random_below(r, 1400);
    for (size_t i = 0; i < size; i += 8)
        memcpy(bytes + i, &(uint64_t){random_next(r)}, 8);
    bytes[0] = (uint8_t)random_below(r, 6);
    memset(bytes + 1, 0, 3);
    if (bytes[0] == LINK_INIT)
        size = LINK_INIT_BYTES;
    if (bytes[0] == LINK_DATA && random_below(r, 2)) /* who watches the first peer knows its index */
        link_put32(bytes + 4, victim->sessions[random_below(r, RESPONDER_SESSIONS)].session.index);
    return size;
}

static uint64_t time_with_garbage(unsigned each_ms)
{
    struct random r = {5};
    uint8_t bytes[1500 + 8];
    links_open(&w, 5, 2, 2, 2000);
    links_finish(&w);
    uint64_t start_ns = sim_now_ns(w.sim), done_ns = 0;
    for (unsigned i = 0; i < 2; i++)
        w.sender[i].streams[0].total += 60000;
    for (unsigned ms = 0; ms < 1000; ms++) {
        for (unsigned i = 0; i < each_ms; i++)
            inject((unsigned)random_below(&r, SOURCES), bytes, make_garbage(&r, bytes));
        sim_run_for(w.sim, NS_PER_MS);
        if (links_done(&w) && done_ns == 0)
            done_ns = sim_now_ns(w.sim) - start_ns;
    }
    assert_true(done_ns > 0);
    return done_ns;
}

static void a_hundred_thousand_garbage_datagrams_a_second_cost_others_little(void **state)
{
    (void)state;
    uint64_t alone_ns = time_with_garbage(0);
    links_close(&w);
    uint64_t flooded_ns = time_with_garbage(100);
    assert_true(counter_read(&w.listener.report.dropped) > 90000);
    assert_int_equal(counter_read(&w.listener.report.answers), 2);
    assert_int_equal(w.listener.receiver.responder.indices.count, 2);
    assert_true(flooded_ns * 9 < alone_ns * 10 + 20 * NS_PER_MS);
    links_close(&w);
}

/* Signed INITs come as far as a handshake: that many a second, and no more, are computed. The rest is told to
 * prove its address, which costs a cookie. */
static void strangers_get_so_many_handshakes_a_second(void **state)
{
    (void)state;
    enum { SECONDS = 3, EACH_MS = 10 };
    uint8_t answer[LINK_ANSWER_BYTES];
    unsigned computed = 0, cookies = 0;
    links_open(&w, 6, 1, 1, 0);
    struct link_receiver *receiver = &w.listener.receiver;
    struct link_address source = {.len = sizeof(struct sockaddr_in)};
    source.address.ss_family = AF_INET;
    for (unsigned i = 0; i < SECONDS * 1000 * EACH_MS; i++) {
        struct link_init init;
        links_fill(&w.random, &init, 200); /* the rest is as good as it is */
        link_put_head(&init.head, LINK_INIT);
        cookie_sign(&(struct cookie_held){.until_ns = 0}, &receiver->responder.cookie_keys, 0, &init);
        uint64_t now_ns = SIM_START_NS + i * NS_PER_MS / EACH_MS;
        if (i % EACH_MS == 0)
            link_receiver_deliver(receiver);
        int result = link_receiver_receive(receiver, now_ns, &source, (uint8_t *)&init, sizeof init, answer);
        assert_true(result == LINK_COOKIE_BYTES || result == PE_NOT_AUTHENTIC || result == PE_KEY_WEAK);
        cookies += result > 0;
        computed += result < 0;
    }
    assert_in_range(computed, LINK_HANDSHAKES, (SECONDS + 1) * LINK_HANDSHAKES);
    assert_int_equal(cookies, SECONDS * 1000 * EACH_MS - computed);
    links_close(&w);
}

/* Small packets, each of which asks for an answer at once, and each twice. */
static uint64_t time_with_pings(unsigned each_ms)
{
    links_open(&w, 7, 1, 2, 2000);
    links_finish(&w);
    links_rogue_start(&w);
    uint64_t start_ns = sim_now_ns(w.sim);
    for (unsigned k = 0; k < 2; k++)
        w.sender[0].streams[k].total += 50000;
    for (unsigned ms = 0; ms < 1000 && !links_done(&w); ms++) {
        for (unsigned i = 0; i < each_ms; i++) {
            links_rogue_ping(&w, 40);
            w.rogue.number--; /* the very same number, which no honest session seals twice */
            initiator_sealing(&w.rogue.initiator, sim_now_ns(w.sim))->next_number--;
            links_rogue_ping(&w, 40);
        }
        sim_run(w.sim, sim_now_ns(w.sim) + NS_PER_MS, links_done, &w, 100000);
    }
    assert_true(links_done(&w));
    return sim_now_ns(w.sim) - start_ns;
}

static void a_peer_that_asks_without_end_delays_nobodys_records(void **state)
{
    (void)state;
    uint64_t alone_ns = time_with_pings(0), rounds = counter_read(&w.loop.counters.rounds);
    links_rogue_end(&w);
    links_close(&w);
    uint64_t flooded_ns = time_with_pings(500);
    uint64_t more = counter_read(&w.loop.counters.rounds) - rounds;
    uint64_t to_rogue = w.listener.receiver.peers[1]->path.sent.next;
    assert_true(flooded_ns <= alone_ns + 5 * NS_PER_MS);
    assert_true(to_rogue <= more + rounds); /* one answer a round, however many asked */
    assert_true(w.listener.receiver.peers[1]->path.sent.bytes_in_flight < LINK_RECEIVER_BYTES);
    links_rogue_end(&w);
    links_close(&w);
}

/* Each frame may be an ACK that looks at all that is in flight, or an OPEN that is refused. */
static void a_packet_of_too_many_frames_ends_its_session(void **state)
{
    (void)state;
    links_open(&w, 8, 1, 1, 100);
    links_rogue_start(&w);
    const struct link_peer *rogue = w.listener.receiver.peers[1];
    for (unsigned frames = FRAMES_PER_PACKET; frames <= FRAMES_PER_PACKET + 1; frames++) {
        uint8_t packet[200] = {0};
        memset(packet + LINK_DATA_HEAD, FRAME_PING, frames);
        links_rogue_send(&w, packet, frames + LINK_DATA_OVERHEAD);
        sim_run_for(w.sim, NS_PER_MS);
        assert_int_equal(rogue->associated, frames == FRAMES_PER_PACKET);
    }
    links_finish(&w);
    links_rogue_end(&w);
    links_close(&w);
}

/* Who brings a byte in each large packet is not who brings records forward. */
static void a_peer_that_brings_next_to_nothing_is_cut_to_its_quota(void **state)
{
    (void)state;
    enum { PACKETS = 1000, SIZE = 1400 };
    links_open(&w, 9, 1, 1, 100);
    links_finish(&w);
    links_rogue_start(&w);
    struct session *session = initiator_sealing(&w.rogue.initiator, sim_now_ns(w.sim));
    const struct link_address source = {.address.ss_family = AF_INET, .len = sizeof(struct sockaddr_in)};
    const struct frame_open open = {.base = 0, .first = 1};
    unsigned opened = 0;
    for (unsigned i = 0; i < PACKETS; i++) { /* all in one round */
        uint8_t packet[SIZE] = {0}, *at = packet + LINK_DATA_HEAD;
        at += frame_put_open(at, packet + SIZE, &open);
        frame_put_records_head(at, 0, i, 1);
        session_seal(session, sim_now_ns(w.sim), i, packet, SIZE - LINK_DATA_OVERHEAD);
        int result =
            link_receiver_receive(&w.listener.receiver, sim_now_ns(w.sim), &source, packet, SIZE, NULL);
        assert_true(result == 0 || result == PE_LINK_QUOTA);
        opened += result == 0;
    }
    assert_in_range(opened, 1, LINK_QUOTA / SIZE);
    link_receiver_deliver(&w.listener.receiver);
    links_finish_more(&w, 100);
    links_rogue_end(&w);
    links_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_handshake_message_altered_in_any_byte_is_refused_and_changes_nothing),
        cmocka_unit_test(an_init_altered_by_who_signs_it_again_is_refused_and_changes_nothing),
        cmocka_unit_test(a_cookie_altered_in_any_byte_is_refused_and_the_right_one_opens_the_way),
        cmocka_unit_test(what_is_answered_to_unproven_addresses_is_a_third_of_what_they_sent),
        cmocka_unit_test(captured_traffic_replayed_at_any_time_stores_nothing_twice_and_resets_nothing),
        cmocka_unit_test(replays_in_the_midst_of_traffic_harm_nothing),
        cmocka_unit_test(a_hundred_thousand_garbage_datagrams_a_second_cost_others_little),
        cmocka_unit_test(strangers_get_so_many_handshakes_a_second),
        cmocka_unit_test(a_peer_that_asks_without_end_delays_nobodys_records),
        cmocka_unit_test(a_packet_of_too_many_frames_ends_its_session),
        cmocka_unit_test(a_peer_that_brings_next_to_nothing_is_cut_to_its_quota),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
