/* Frames, behind the seal: the input is sealed as DATA packets with the keys of a session that two ends have,
 * and given to one of them in the midst of their association, as a peer of no good will can. Whatever it
 * says: memory stays within its limits, what the consumer is given is whole and in order, what is freed was
 * sent, neither end talks without end; and a receiver serves the honest sender that comes next.
 *
 * The input: bit 0: to the receiver, or the sender; bit 1: the consumer keeps what it gets; bit 2: its
 * records are larger; the rest: how many exchanges come before. Then packets: milliseconds that pass before
 * it (1 byte), size (2 bytes), frames. */
#include "link/link_receiver.h"
#include "link/link_sender.h"
#include "link/stream_limits.h"

#include "core/random.h"
#include "noise/random.h"

#include <netinet/in.h>
#include <sodium.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define OUTPUTS    2
#define INLETS     4
#define SENT       64 /* packets in the sender's sent map */
#define FRAMES_MAX 1400
#define ROUND_MOST 2000 /* datagrams of one end in one round */

/* What the consumer knows of an inlet. */
struct taken {
    struct inlet *inlet; /* NULL: closed */
    uint64_t next;       /* the record that has to come next */
    uint64_t held;       /* bytes that were not freed */
};

static struct {
    struct random random;
    uint64_t now_ns;
    struct host_key sender_key, receiver_key;
    struct indices indices;
    struct link_sender sender;
    _Alignas(CACHE_LINE) struct outlet outlets[OUTPUTS];
    struct link_output outputs[OUTPUTS];
    struct link_receiver receiver;
    struct taken taken[INLETS];
    bool keeps;
    uint64_t records; /* that the consumer got */
    uint8_t buffer[LINK_BATCH_BYTES];
} w;

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void fill(void *context, void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        ((uint8_t *)bytes)[i] = (uint8_t)random_next(context);
}

/* --- the consumer --- */

static int admit(void *context, void *peer, const struct frame_open *open, struct inlet *inlet,
                 uint64_t *stored)
{
    (void)context, (void)peer;
    require(open->first >= 1);
    *stored = open->first - 1;
    if (open->app.size > 20)
        return REFUSED_NO_APP;
    for (unsigned i = 0; i < INLETS; i++) {
        if (w.taken[i].inlet)
            continue;
        w.taken[i] = (struct taken){.inlet = inlet, .next = open->first};
        inlet->context = &w.taken[i];
        return 0;
    }
    abort(); /* more inlets than places */
}

static void records(void *context, struct inlet *inlet, uint64_t first, struct span bytes, uint64_t count)
{
    struct taken *t = inlet->context;
    const uint8_t *at = bytes.data, *end = at + bytes.size;
    (void)context;
    require(t->inlet == inlet && t->next == first && count > 0);
    for (uint64_t i = 0; i < count; i++) {
        struct span record;
        size_t framed = record_get(at, end, &record);
        require(framed > 0 && record.size <= inlet->inlets->limits.max_record);
        at += framed;
    }
    require(at == end);
    t->next += count;
    t->held += bytes.size;
    w.records += count;
    require(t->held <= inlet->stream.ring.size);
    if (w.keeps)
        return;
    inlet_freed(inlet, t->held);
    inlet_stored(inlet, t->next - 1);
    t->held = 0;
}

static void closed(void *context, struct inlet *inlet)
{
    struct taken *t = inlet->context;
    (void)context;
    require(t->inlet == inlet);
    t->inlet = NULL;
}

/* --- the ends --- */

static void unknown(void *context, const uint8_t key[LINK_KEY_BYTES], uint64_t times)
{
    (void)context, (void)key, (void)times;
    abort();
}

static void stored(void *context, struct link_output *output)
{
    const struct send_stream *s = &output->stream;
    const struct record_queue *q = &s->outlet->queue;
    (void)context;
    require(q->freed.bytes <= max_u64(s->sent_ever, s->live ? s->origin.bytes + s->sent : 0));
    require(q->freed.bytes <= q->published_seen.bytes && q->freed.records <= q->published_seen.records);
}

static void refused(void *context, struct link_output *output, int error, bool for_ever)
{
    (void)context, (void)output, (void)for_ever;
    require(error < 0);
}

static void want_lookup(void *context)
{
    (void)context;
}

static void start_sender(void)
{
    const struct link_sender_options options = {.key = &w.sender_key,
                                                .remote_public = w.receiver_key.public,
                                                .indices = &w.indices,
                                                .random = {fill, &w.random},
                                                .outputs = OUTPUTS,
                                                .sent_packets = SENT,
                                                .mtu_limit = MTU_BASE};
    const struct link_sender_events events = {.outputs = {stored, refused, NULL}, .want_lookup = want_lookup};
    static const uint8_t epoch[FRAME_EPOCH_BYTES] = {1};
    require(link_sender_init(&w.sender, &options, &events, w.now_ns) == 0);
    for (unsigned i = 0; i < OUTPUTS; i++) {
        require(outputs_add(&w.sender.outputs, &w.outputs[i], &w.outlets[i], epoch, span_text("dst"),
                            span_text("ev")) == 0);
    }
}

static void start(uint8_t how)
{
    static const char *const names[OUTPUTS] = {"0", "1"};
    w.random.state = 1;
    w.now_ns = NS_PER_S;
    w.records = 0;
    w.keeps = how & 2;
    memset(w.taken, 0, sizeof w.taken);
    const struct noise_random random = {fill, &w.random};
    const struct link_receiver_options options = {.key = &w.receiver_key,
                                                  .random = random,
                                                  .peers = 1,
                                                  .limits = {.places = INLETS,
                                                             .stream_window = LINK_STREAM_CREDIT,
                                                             .session_window = 2 * LINK_STREAM_CREDIT,
                                                             .max_record = 3000},
                                                  .unknown = unknown};
    const struct link_consumer consumer = {admit, records, closed, NULL};
    host_key_generate(&w.sender_key, &random);
    host_key_generate(&w.receiver_key, &random);
    require(indices_init(&w.indices, INITIATOR_INDICES) == 0);
    for (unsigned i = 0; i < OUTPUTS; i++)
        require(outlet_init(&w.outlets[i], "link", "src", names[i], 20000, 3000) == 0);
    start_sender();
    require(link_receiver_init(&w.receiver, &options, &consumer, w.now_ns) == 0);
    require(link_receiver_allow(&w.receiver, w.sender_key.public, NULL) == 0);
}

static void end(void)
{
    link_sender_dispose(&w.sender);
    link_receiver_dispose(&w.receiver);
    for (unsigned i = 0; i < OUTPUTS; i++)
        outlet_dispose(&w.outlets[i]);
    indices_dispose(&w.indices);
}

static void push(size_t size)
{
    static const uint8_t bytes[3000];
    for (unsigned i = 0; i < OUTPUTS; i++) {
        while (outlet_queue(&w.outlets[i], bytes, size) == 0)
            continue;
        record_queue_publish(&w.outlets[i].queue);
        outputs_pushed(&w.sender.outputs, &w.outputs[i]);
    }
}

/* --- invariants --- */

static void check_inlets(const struct inlets *in)
{
    uint64_t promised = 0;
    require(in->session_freed <= in->session_handed && in->session_handed <= in->session_received);
    require(in->session_received <= in->session_credit);
    require(in->session_credit <= in->session_freed + in->limits.session_window + in->extra);
    require(in->extra <= record_framed_size(in->limits.max_record) * in->limits.places);
    for (uint32_t i = 0; i < in->limits.places; i++) {
        const struct receive_stream *s = &in->list[i].stream;
        if (in->list[i].state != INLET_OPEN)
            continue;
        require(s->freed <= s->handed && s->handed <= s->contiguous && s->contiguous <= s->highest);
        require(s->highest <= s->credit && s->credit <= s->freed + s->ring.size);
        require(s->pieces.count <= RECEIVE_STREAM_PIECES);
        promised += s->credit - s->freed;
    }
    require(in->promised == promised);
}

static void check(void)
{
    const struct link_peer *peer = w.receiver.peers[0];
    check_inlets(&peer->inlets);
    require(peer->acks.received.count <= FRAME_ACK_RANGES);
    require(w.sender.acks.received.count <= FRAME_ACK_RANGES);
    require(w.sender.outputs.session_sent <= w.sender.outputs.session_credit);
    require(w.indices.count <= INITIATOR_INDICES);
    require(w.receiver.responder.indices.count <= RESPONDER_SESSIONS);
}

/* --- a round of both --- */

static void to_receiver(uint8_t *bytes, size_t size)
{
    struct link_address source = {.len = sizeof(struct sockaddr_in)};
    uint8_t answer[LINK_ANSWER_BYTES];
    source.address.ss_family = AF_INET;
    int result = link_receiver_receive(&w.receiver, w.now_ns, &source, bytes, size, answer);
    if (result > 0)
        link_sender_receive(&w.sender, w.now_ns, answer, (size_t)result);
}

static void fill_sender(bool arrives)
{
    struct link_batch batch;
    for (unsigned i = 0; link_sender_fill(&w.sender, w.now_ns, w.buffer, sizeof w.buffer, &batch); i++) {
        require(i < ROUND_MOST && batch.bytes <= LINK_BATCH_BYTES && batch.segment <= MTU_BASE);
        for (uint32_t at = 0; arrives && at < batch.bytes; at += batch.segment)
            to_receiver(w.buffer + at, min_size(batch.segment, batch.bytes - at));
    }
}

static void fill_receiver(bool arrives)
{
    const struct link_address *to;
    size_t size;
    link_receiver_deliver(&w.receiver);
    for (unsigned i = 0; (size = link_receiver_fill(&w.receiver, w.now_ns, w.buffer, &to)) > 0; i++) {
        require(i < ROUND_MOST && size <= LINK_RECEIVER_BYTES);
        if (arrives)
            link_sender_receive(&w.sender, w.now_ns, w.buffer, size);
    }
}

static void exchange(unsigned rounds)
{
    for (unsigned i = 0; i < rounds; i++) {
        fill_sender(true);
        fill_receiver(true);
        check();
        w.now_ns += NS_PER_MS;
    }
}

/* --- the attack --- */

/* The numbers of an end's packets go on from those of the session; what it sends itself is lost from now on.
 */
static void attack(bool receiver, struct span input)
{
    static uint8_t packet[LINK_DATA_OVERHEAD + FRAMES_MAX];
    const struct session *found = receiver ? initiator_sealing(&w.sender.initiator, w.now_ns)
                                           : responder_sealing(&w.receiver.responder, 0, w.now_ns);
    if (!found)
        return;
    struct session session = *found;
    const uint8_t *at = input.data, *last = at + input.size;
    while (last - at >= 3) {
        w.now_ns += at[0] * NS_PER_MS;
        size_t size =
            min_size(min_size((size_t)at[1] | (size_t)at[2] << 8, FRAMES_MAX), (size_t)(last - at) - 3);
        if (!session_may_seal(&session, w.now_ns))
            break;
        memcpy(packet + LINK_DATA_HEAD, at + 3, size);
        size_t sealed = session_seal(&session, w.now_ns, session.next_number, packet, size);
        if (receiver)
            to_receiver(packet, sealed);
        else
            link_sender_receive(&w.sender, w.now_ns, packet, sealed);
        at += 3 + size;
        fill_sender(false);
        fill_receiver(false);
        check();
    }
}

static bool all_stored(void)
{
    bool all = true;
    for (unsigned i = 0; i < OUTPUTS; i++)
        all &= record_queue_see_published(&w.outlets[i].queue).records == w.outlets[i].queue.freed.records;
    return all;
}

/* The honest sender, with its records from the start: none is left. */
static void serve_honest(void)
{
    w.keeps = false;
    for (unsigned i = 0; i < INLETS; i++) {
        if (!w.taken[i].inlet || w.taken[i].held == 0)
            continue;
        inlet_freed(w.taken[i].inlet, w.taken[i].held);
        w.taken[i].held = 0;
    }
    link_sender_dispose(&w.sender);
    start_sender();
    push(100);
    for (unsigned i = 0; i < 400 && !all_stored(); i++)
        exchange(1);
    require(all_stored());
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    require(sodium_init() >= 0);
    start(data[0]);
    push(data[0] & 4 ? 2900 : 40);
    exchange(1 + data[0] / 8);
    bool receiver = data[0] & 1;
    attack(receiver, span_of(data + 1, size - 1));
    if (receiver)
        serve_honest();
    end();
    return 0;
}
