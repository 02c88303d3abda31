#include "link/link_sender.h"

#include <errno.h>

#define PAD_BYTES 64 /* a packet that lacks no more than this is filled up, so that the batch goes on */

int link_sender_init(struct link_sender *l, const struct link_sender_options *options,
                     const struct link_sender_events *events, uint64_t now_ns)
{
    *l = (struct link_sender){.events = *events,
                              .mtu_limit = options->mtu_limit,
                              .heard_ns = now_ns,
                              .ping_ns = LINK_SENDER_PING_NS};
    int error = initiator_init(&l->initiator, options->key, options->ciphers, options->remote_public,
                               options->indices, l, &options->random);
    if (error < 0)
        return error;
    error = outputs_init(&l->outputs, options->outputs, noise_random_u64(&options->random), &events->outputs);
    if (error == 0)
        error = path_init(&l->path, options->sent_packets, 0, options->mtu_limit, now_ns);
    if (error < 0)
        link_sender_dispose(l);
    return error;
}

void link_sender_dispose(struct link_sender *l)
{
    path_dispose(&l->path);
    outputs_dispose(&l->outputs);
    initiator_dispose(&l->initiator);
}

/* --- what became of items --- */

static void item_acked(void *context, const struct sent_item *item)
{
    struct link_sender *l = context;
    if (item->kind == SENT_ACK)
        acks_seen(&l->acks, item->offset);
    else
        outputs_acked(&l->outputs, item);
}

static void item_lost(void *context, const struct sent_item *item)
{
    struct link_sender *l = context;
    outputs_lost(&l->outputs, item);
}

static struct sent_handler handler(struct link_sender *l)
{
    return (struct sent_handler){item_acked, item_lost, l};
}

/* --- what comes --- */

static int take_frame(struct link_sender *l, const struct frame *frame, uint64_t now_ns)
{
    struct sent_handler items = handler(l);
    switch (frame->type) {
    case FRAME_PADDING:
    case FRAME_PING:
        return 0;
    case FRAME_ACK:
        return path_acked(&l->path, &frame->ack, now_ns, &items);
    case FRAME_STORED:
        outputs_stored(&l->outputs, &frame->stored, now_ns);
        l->ping_ns = LINK_SENDER_PING_NS;
        return 0;
    case FRAME_CREDIT:
        outputs_credit(&l->outputs, frame->credit);
        return 0;
    case FRAME_REFUSED:
        outputs_refused(&l->outputs, &frame->refused, now_ns);
        return 0;
    case FRAME_CLOSE:
        initiator_restart(&l->initiator);
        return 0;
    default:
        return PE_MALFORMED;
    }
}

static int take_frames(struct link_sender *l, const struct session_packet *packet, uint64_t now_ns)
{
    const uint8_t *at = packet->frames, *end = at + packet->size;
    bool eliciting = false, hurry = false;
    unsigned frames = 0;
    while (at < end) {
        struct frame frame;
        ptrdiff_t size = frames++ < FRAMES_PER_PACKET ? frame_get(at, end, &frame) : PE_MALFORMED;
        int error = size < 0 ? (int)size : take_frame(l, &frame, now_ns);
        if (error < 0)
            return error;
        eliciting |= frame_elicits(frame.type);
        hurry |= frame.type == FRAME_PING;
        at += size;
    }
    acks_received(&l->acks, packet->number, eliciting, now_ns);
    if (hurry)
        acks_hurry(&l->acks, now_ns);
    return 0;
}

/* The receiver does not keep to the protocol: this association is over. It learns so by CLOSE; the INIT that
 * follows finds no association to go on with. */
static void give_up(struct link_sender *l, uint64_t reason)
{
    l->close_due = true;
    l->close_reason = reason;
    initiator_restart(&l->initiator);
}

static int take_data(struct link_sender *l, uint64_t now_ns, uint8_t *datagram, size_t size)
{
    struct session_packet packet;
    int error = initiator_open(&l->initiator, now_ns, datagram, size, &packet);
    if (error < 0)
        return error;
    l->heard_ns = now_ns;
    l->looked_up = 0;
    error = take_frames(l, &packet, now_ns);
    if (error < 0)
        give_up(l, CLOSE_MALFORMED);
    return error;
}

static int take_reply(struct link_sender *l, uint64_t now_ns, const uint8_t *datagram)
{
    struct initiator_terms terms;
    int error = initiator_reply(&l->initiator, now_ns, (const struct link_reply *)datagram, &terms);
    if (error < 0)
        return error;
    l->heard_ns = now_ns;
    l->looked_up = 0;
    l->ping_due = true;
    if (terms.goes_on) {
        outputs_credit(&l->outputs, terms.session_credit);
        return 0;
    }
    path_restart(&l->path, 0, l->mtu_limit, now_ns);
    acks_init(&l->acks, 0);
    outputs_begin(&l->outputs, terms.most_streams, terms.session_credit);
    l->associated = true;
    l->close_due = false;
    return 0;
}

int link_sender_receive(struct link_sender *l, uint64_t now_ns, uint8_t *datagram, size_t size)
{
    switch (link_type_of(datagram, size)) {
    case LINK_REPLY:
        return take_reply(l, now_ns, datagram);
    case LINK_COOKIE:
        return initiator_cookie(&l->initiator, now_ns, (const struct link_cookie *)datagram);
    case LINK_DATA:
        return take_data(l, now_ns, datagram, size);
    default:
        return PE_NOT_AUTHENTIC;
    }
}

/* --- time --- */

/* Neither probes nor INITs are answered: once more for each time-out, before what it sends. But a cookie is
 * good for the source that it was given to only: the INIT that carries it leaves from there. */
static void see_silence(struct link_sender *l, uint64_t now_ns)
{
    const struct initiator *i = &l->initiator;
    uint32_t probes = l->associated ? path_unanswered(&l->path) : 0;
    uint32_t inits = i->wanted && now_ns >= i->retry_ns ? i->retries : 0;
    uint32_t unanswered = probes + inits;
    if (probes >= LINK_SENDER_LOOKUP_PTOS && now_ns - l->heard_ns >= LINK_SENDER_SILENCE_NS)
        initiator_restart(&l->initiator);
    if (l->outputs.holding == 0 || i->cookie_due || unanswered < LINK_SENDER_LOOKUP_PTOS ||
        unanswered <= l->looked_up)
        return;
    l->looked_up = unanswered;
    l->events.want_lookup(l->events.context);
}

/* While records wait to be stored the receiver is told every now and then where we are: if a NAT in between
 * has forgotten us, what it says comes no more. Whatever waits for its acknowledgement does that by its
 * probes, which a PING would put off. */
static uint64_t keepalive_ns(const struct link_sender *l)
{
    bool waits = l->outputs.holding > 0 && l->path.sent.outstanding == 0;
    return waits ? l->sent_ns + l->ping_ns : NEVER;
}

static void pass_time(struct link_sender *l, uint64_t now_ns)
{
    struct sent_handler items = handler(l);
    initiator_want(&l->initiator, l->outputs.holding > 0 && !l->stopping);
    initiator_tick(&l->initiator, now_ns);
    outputs_expired(&l->outputs, now_ns);
    if (!l->associated)
        return;
    if (now_ns >= path_deadline_ns(&l->path))
        path_expired(&l->path, now_ns, &items);
    if (now_ns >= keepalive_ns(l) && !l->ping_due) {
        l->ping_due = true;
        l->ping_ns = min_u64(2 * l->ping_ns, LINK_SENDER_KEEPALIVE_NS);
    }
}

uint64_t link_sender_deadline_ns(const struct link_sender *l, uint64_t now_ns)
{
    uint64_t due_ns = min_u64(initiator_next_ns(&l->initiator), l->outputs.rests_ns);
    if (l->stopping)
        return l->close_due && session_may_seal(&l->initiator.current, now_ns) ? now_ns : NEVER;
    if (!l->associated)
        return due_ns;
    due_ns = min_u64(due_ns, path_deadline_ns(&l->path));
    if (!session_may_seal(&l->initiator.current, now_ns) || !sent_room(&l->path.sent))
        return due_ns;
    due_ns = min_u64(due_ns, min_u64(acks_due_ns(&l->acks), keepalive_ns(l)));
    if (l->ping_due || l->close_due)
        return now_ns;
    return outputs_ready(&l->outputs) ? min_u64(due_ns, path_when_ns(&l->path, now_ns)) : due_ns;
}

/* --- what goes --- */

struct packing {
    uint8_t *at;        /* of the next frame */
    const uint8_t *end; /* behind the last */
    bool eliciting;
    bool asks; /* to be acknowledged at once: a PING is in it */
};

static void put_ack(struct link_sender *l, struct packing *p, uint64_t now_ns)
{
    uint64_t largest;
    size_t size = acks_put(&l->acks, p->at, p->end, now_ns, &largest);
    if (size > 0)
        sent_add(&l->path.sent, (struct sent_item){.kind = SENT_ACK, .offset = largest});
    p->at += size;
}

static void put_ping(struct link_sender *l, struct packing *p)
{
    sent_add(&l->path.sent, (struct sent_item){.kind = SENT_PING});
    p->at += frame_put_ping(p->at, p->end);
    p->eliciting = p->asks = true;
    l->ping_due = false;
}

/* With a PING behind them where the path wants one; its byte is kept free. */
static void put_records(struct link_sender *l, struct packing *p, uint64_t now_ns)
{
    if (!outputs_ready(&l->outputs) || path_room(&l->path, now_ns) == 0)
        return;
    bool asks = path_asks(&l->path);
    size_t size = outputs_fill(&l->outputs, &l->path.sent, p->at, p->end - asks);
    p->at += size;
    p->eliciting = size > 0;
    if (p->eliciting)
        l->ping_ns = LINK_SENDER_PING_NS;
    if (asks && p->eliciting)
        put_ping(l, p);
}

/* A full packet, as far as there is something to send: another may follow it in the batch. */
static void pad(struct link_sender *l, struct packing *p)
{
    size_t room = (size_t)(p->end - p->at);
    if (p->eliciting && room <= PAD_BYTES && outputs_ready(&l->outputs))
        p->at += frame_put_padding(p->at, p->end, room);
}

/* Packs and seals a packet of at most `size` bytes. Returns its size, 0 if nothing is to be sent. */
static size_t build(struct link_sender *l, struct session *session, uint64_t now_ns, uint8_t *packet,
                    size_t size)
{
    struct packing p = {packet + LINK_DATA_HEAD, packet + size - LINK_TAG_BYTES, false, false};
    if (!sent_room(&l->path.sent))
        return 0;
    bool ack_due = acks_due_ns(&l->acks) <= now_ns;
    bool probe = path_must_probe(&l->path);
    if (ack_due || (acks_waiting(&l->acks) && (outputs_ready(&l->outputs) || l->ping_due || probe)))
        put_ack(l, &p, now_ns);
    put_records(l, &p, now_ns);
    if (!p.eliciting && (l->ping_due || probe))
        put_ping(l, &p);
    pad(l, &p);
    size_t frames = (size_t)(p.at - packet) - LINK_DATA_HEAD;
    if (frames == 0) {
        sent_abandon(&l->path.sent);
        return 0;
    }
    struct sent_commit_options options = {
        .bytes = (uint32_t)frames + LINK_DATA_OVERHEAD, .eliciting = p.eliciting, .asks = p.asks};
    l->sent_ns = now_ns;
    return session_seal(session, now_ns, path_sent(&l->path, options, now_ns), packet, frames);
}

static size_t build_mtu_probe(struct link_sender *l, struct session *session, uint64_t now_ns,
                              uint8_t *packet, size_t capacity)
{
    uint32_t size = path_mtu_probe(&l->path, now_ns);
    if (size == 0 || size > capacity)
        return 0;
    struct packing p = {packet + LINK_DATA_HEAD, packet + size - LINK_TAG_BYTES, false, false};
    put_ping(l, &p);
    p.at += frame_put_padding(p.at, p.end, (size_t)(p.end - p.at));
    struct sent_commit_options options = {.bytes = size, .eliciting = true, .mtu_probe = true};
    return session_seal(session, now_ns, path_sent(&l->path, options, now_ns), packet,
                        size - LINK_DATA_OVERHEAD);
}

/* CLOSE goes unacknowledged: who misses it finds out by silence. */
static size_t build_close(struct link_sender *l, struct session *session, uint64_t now_ns, uint8_t *packet)
{
    l->close_due = false;
    if (!sent_room(&l->path.sent))
        return 0;
    uint8_t *at = packet + LINK_DATA_HEAD;
    size_t size = frame_put_close(at, at + FRAME_CLOSE_MAX_BYTES, l->close_reason, span_of(NULL, 0));
    struct sent_commit_options options = {.bytes = (uint32_t)size + LINK_DATA_OVERHEAD};
    return session_seal(session, now_ns, path_sent(&l->path, options, now_ns), packet, size);
}

static bool one(struct link_batch *batch, size_t size)
{
    *batch = (struct link_batch){(uint32_t)size, (uint32_t)size, 1};
    return size > 0;
}

static bool fill_records(struct link_sender *l, struct session *session, uint64_t now_ns, uint8_t *buffer,
                         size_t capacity, struct link_batch *batch)
{
    uint32_t segment = path_datagram(&l->path);
    *batch = (struct link_batch){.segment = segment};
    while (batch->count < LINK_BATCH_PACKETS && batch->bytes + segment <= capacity) {
        size_t size = build(l, session, now_ns, buffer + batch->bytes, segment);
        batch->bytes += (uint32_t)size;
        batch->count += size > 0;
        if (size < segment)
            break;
    }
    batch->segment = batch->count == 1 ? batch->bytes : segment;
    return batch->count > 0;
}

bool link_sender_fill(struct link_sender *l, uint64_t now_ns, uint8_t *buffer, size_t capacity,
                      struct link_batch *batch)
{
    assert(capacity >= MTU_BASE);
    pass_time(l, now_ns);
    see_silence(l, now_ns);
    size_t init = initiator_write(&l->initiator, now_ns, l->path.sent.next, buffer);
    if (init > 0)
        return one(batch, init);
    struct session *session = initiator_sealing(&l->initiator, now_ns);
    if (!session)
        return false;
    if (l->close_due)
        return one(batch, build_close(l, session, now_ns, buffer));
    if (l->stopping)
        return false;
    size_t probe = build_mtu_probe(l, session, now_ns, buffer, capacity);
    if (probe > 0)
        return one(batch, probe);
    return fill_records(l, session, now_ns, buffer, min_size(capacity, LINK_BATCH_BYTES), batch);
}

/* --- the way changes --- */

void link_sender_moved(struct link_sender *l, uint64_t now_ns)
{
    path_moved(&l->path, l->mtu_limit, now_ns);
    initiator_moved(&l->initiator);
    l->ping_due |= l->associated;
}

void link_sender_too_large(struct link_sender *l, uint64_t now_ns, uint32_t bytes)
{
    path_mtu_hint(&l->path, bytes, now_ns);
}

void link_sender_hurry(struct link_sender *l, uint64_t until_ns)
{
    initiator_hurry(&l->initiator, until_ns);
    outputs_hurry(&l->outputs, until_ns);
}

void link_sender_close(struct link_sender *l)
{
    l->stopping = true;
    l->close_due = true;
    l->close_reason = CLOSE_DONE;
}
