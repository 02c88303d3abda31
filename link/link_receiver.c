#include "link/link_receiver.h"

#include <errno.h>
#include <stdlib.h>

/* --- whose turn it is --- */

static void enqueue(struct link_peer *peer)
{
    struct link_receiver *r = peer->receiver;
    if (peer->queued)
        return;
    peer->queued = true;
    peer->next_queued = NULL;
    *r->queue_tail = peer;
    r->queue_tail = &peer->next_queued;
}

static struct link_peer *dequeue(struct link_receiver *r)
{
    struct link_peer *peer = r->queue;
    r->queue = peer->next_queued;
    if (!r->queue)
        r->queue_tail = &r->queue;
    peer->queued = false;
    return peer;
}

static void leave_queue(struct link_peer *peer)
{
    struct link_receiver *r = peer->receiver;
    struct link_peer **at = &r->queue;
    while (*at && *at != peer)
        at = &(*at)->next_queued;
    if (!*at)
        return;
    *at = peer->next_queued;
    if (!*at)
        r->queue_tail = at;
    peer->queued = false;
}

static void inlets_want(struct inlets *inlets)
{
    enqueue(container_of(inlets, struct link_peer, inlets));
}

static void timer_fired(struct timer *timer, uint64_t now_ns)
{
    (void)now_ns;
    enqueue(container_of(timer, struct link_peer, timer));
}

/* --- peers --- */

static void offer(void *context, uint32_t number, bool goes_on, struct responder_terms *terms)
{
    const struct link_receiver *r = context;
    const struct link_peer *peer = r->peers[number];
    terms->most_streams = r->limits.places;
    terms->session_credit = goes_on ? peer->inlets.session_credit : r->limits.session_window;
    terms->session_credit += r->limits.overpromise;
    terms->next_packet = goes_on ? peer->path.sent.next : 0;
}

static void unknown(void *context, const uint8_t key[LINK_KEY_BYTES], uint64_t times)
{
    const struct link_receiver *r = context;
    r->unknown(r->unknown_context, key, times);
}

int link_receiver_init(struct link_receiver *r, const struct link_receiver_options *options,
                       const struct link_consumer *consumer, uint64_t now_ns)
{
    *r = (struct link_receiver){.peer_limit = options->peers,
                                .limits = options->limits,
                                .without_quotas = options->without_quotas,
                                .consumer = *consumer,
                                .unknown = options->unknown,
                                .unknown_context = options->unknown_context,
                                .queue_tail = &r->queue};
    const struct responder_events events = {offer, unknown, r};
    r->peers = calloc(options->peers, sizeof *r->peers);
    if (!r->peers)
        return -ENOMEM;
    int error = timers_init(&r->timers, options->peers);
    if (error == 0)
        error = responder_init(&r->responder, now_ns, options->key, options->ciphers, options->peers,
                               &options->random, &events);
    if (error < 0) {
        timers_dispose(&r->timers);
        free(r->peers);
    }
    return error;
}

static void free_peer(struct link_peer *peer)
{
    timer_unset(&peer->receiver->timers, &peer->timer);
    leave_queue(peer);
    inlets_dispose(&peer->inlets);
    path_dispose(&peer->path);
    free(peer);
}

void link_receiver_dispose(struct link_receiver *r)
{
    for (uint32_t i = 0; i < r->peer_limit; i++) {
        if (r->peers[i])
            free_peer(r->peers[i]);
    }
    responder_dispose(&r->responder);
    timers_dispose(&r->timers);
    free(r->peers);
}

static struct link_peer *new_peer(struct link_receiver *r, uint32_t number, void *context)
{
    struct link_peer *peer = calloc(1, sizeof *peer);
    if (!peer)
        return NULL;
    *peer = (struct link_peer){.receiver = r, .number = number, .context = context};
    timer_init(&peer->timer, timer_fired);
    acks_init(&peer->acks, 0);
    int error = inlets_init(&peer->inlets, &r->limits, &r->consumer, context, inlets_want);
    if (error == 0)
        error = path_init(&peer->path, LINK_RECEIVER_PACKETS, 0, LINK_RECEIVER_BYTES, 0);
    if (error == 0)
        return peer;
    free_peer(peer);
    return NULL;
}

int link_receiver_allow(struct link_receiver *r, const uint8_t key[LINK_KEY_BYTES], void *context)
{
    int number = responder_allow(&r->responder, key);
    if (number < 0 || r->peers[number])
        return number;
    r->peers[number] = new_peer(r, (uint32_t)number, context);
    if (r->peers[number])
        return number;
    responder_forbid(&r->responder, (uint32_t)number);
    return -ENOMEM;
}

void link_receiver_forbid(struct link_receiver *r, uint32_t peer)
{
    responder_forbid(&r->responder, peer);
    free_peer(r->peers[peer]);
    r->peers[peer] = NULL;
}

/* --- what comes --- */

static void item_acked(void *context, const struct sent_item *item)
{
    struct link_peer *peer = context;
    if (item->kind == SENT_ACK)
        acks_seen(&peer->acks, item->offset);
}

static void item_lost(void *context, const struct sent_item *item)
{
    struct link_peer *peer = context;
    inlets_lost(&peer->inlets, item);
}

static struct sent_handler handler(struct link_peer *peer)
{
    return (struct sent_handler){item_acked, item_lost, peer};
}

/* The association is over, by the sender's will or ours. Its streams are closed when another begins. */
static void forget(struct link_peer *peer)
{
    peer->associated = false;
    peer->close_due = false;
    timer_unset(&peer->receiver->timers, &peer->timer);
    responder_forget(&peer->receiver->responder, peer->number);
}

static void begin_association(struct link_peer *peer, uint64_t now_ns)
{
    peer->associated = true;
    peer->close_due = false;
    peer->newest = 0;
    path_restart(&peer->path, 0, LINK_RECEIVER_BYTES, now_ns);
    acks_init(&peer->acks, 0);
    inlets_begin(&peer->inlets);
}

static int take_frame(struct link_peer *peer, const struct frame *frame, uint64_t now_ns)
{
    struct sent_handler items = handler(peer);
    switch (frame->type) {
    case FRAME_PADDING:
    case FRAME_PING:
    case FRAME_CLOSE:
        return 0;
    case FRAME_ACK:
        return path_acked(&peer->path, &frame->ack, now_ns, &items);
    case FRAME_OPEN:
        return inlets_open(&peer->inlets, &frame->open);
    case FRAME_RECORDS:
        return inlets_records(&peer->inlets, &frame->records);
    default:
        return PE_MALFORMED;
    }
}

/* Frames up to one that cannot be taken in have had their effect; they may come again without harm. */
static int take_frames(struct link_peer *peer, const struct session_packet *packet, uint64_t now_ns)
{
    const uint8_t *at = packet->frames, *end = at + packet->size;
    bool eliciting = false, hurry = false, closed = false;
    unsigned frames = 0;
    while (at < end) {
        struct frame frame;
        ptrdiff_t size = frames++ < FRAMES_PER_PACKET ? frame_get(at, end, &frame) : PE_MALFORMED;
        int error = size < 0 ? (int)size : take_frame(peer, &frame, now_ns);
        if (error < 0)
            return error;
        eliciting |= frame_elicits(frame.type);
        hurry |= frame.type == FRAME_PING;
        closed |= frame.type == FRAME_CLOSE;
        at += size;
    }
    acks_received(&peer->acks, packet->number, eliciting, now_ns);
    if (hurry)
        acks_hurry(&peer->acks, now_ns);
    if (closed)
        forget(peer);
    return 0;
}

static void close_peer(struct link_peer *peer, uint64_t reason)
{
    peer->close_due = true;
    peer->close_reason = reason;
    enqueue(peer);
}

void link_receiver_close(struct link_receiver *r)
{
    for (uint32_t i = 0; i < r->peer_limit; i++) {
        if (r->peers[i] && r->peers[i]->associated)
            close_peer(r->peers[i], CLOSE_DONE);
    }
}

static bool same_address(const struct link_address *a, const struct link_address *b)
{
    return a->len == b->len && memcmp(&a->address, &b->address, a->len) == 0;
}

/* RFC 9000 section 9: the source of the newest packet is where the sender is. What was sent to where it was
 * before, in vain, need not wait for its time-out. */
static void follow(struct link_peer *peer, uint64_t number, const struct link_address *source)
{
    if (number < peer->newest)
        return;
    peer->newest = number + 1;
    if (!same_address(&peer->source, source))
        path_found(&peer->path);
    peer->source = *source;
}

/* Whether a datagram may still be looked into in this round. */
static bool within_quota(const struct link_receiver *r, struct link_quota *quota, size_t size)
{
    if (quota->round != r->round)
        *quota = (struct link_quota){.round = r->round};
    return quota->used + size + LINK_QUOTA_BASE <= LINK_QUOTA || r->without_quotas;
}

static void use_quota(struct link_quota *quota, size_t size)
{
    quota->used += size + LINK_QUOTA_BASE;
}

static int open_data(struct link_receiver *r, uint64_t now_ns, const struct link_address *source,
                     uint8_t *datagram, size_t size)
{
    struct responder_packet opened;
    int error = responder_open(&r->responder, now_ns, datagram, size, &opened);
    if (error < 0)
        return error;
    struct link_peer *peer = r->peers[opened.peer];
    if (opened.begins)
        begin_association(peer, now_ns);
    follow(peer, opened.packet.number, source);
    enqueue(peer);
    if (peer->close_due)
        return 0;
    error = take_frames(peer, &opened.packet, now_ns);
    if (error == PE_MALFORMED)
        close_peer(peer, CLOSE_MALFORMED);
    return error;
}

static int take_data(struct link_receiver *r, uint64_t now_ns, const struct link_address *source,
                     uint8_t *datagram, size_t size)
{
    int named = responder_named(&r->responder, datagram);
    if (named < 0)
        return named;
    struct link_peer *peer = r->peers[named];
    if (!within_quota(r, &peer->quota, size))
        return PE_LINK_QUOTA;
    uint64_t received = peer->inlets.session_received;
    int error = open_data(r, now_ns, source, datagram, size);
    if (error < 0 || (peer->inlets.session_received - received) * LINK_QUOTA_GAIN < size)
        use_quota(&peer->quota, size);
    return error;
}

int link_receiver_receive(struct link_receiver *r, uint64_t now_ns, const struct link_address *source,
                          uint8_t *datagram, size_t size, uint8_t answer[LINK_ANSWER_BYTES])
{
    unsigned type = link_type_of(datagram, size);
    if (type == LINK_DATA)
        return take_data(r, now_ns, source, datagram, size);
    if (type != LINK_INIT)
        return PE_NOT_AUTHENTIC;
    if (!within_quota(r, &r->strangers, size))
        return PE_LINK_QUOTA;
    use_quota(&r->strangers, size);
    struct cookie_source from = cookie_source_of((const struct sockaddr *)&source->address);
    return responder_answer(&r->responder, now_ns, &from, (const struct link_init *)datagram, answer);
}

/* Those to whom records came are in the line. */
void link_receiver_deliver(struct link_receiver *r)
{
    r->round++;
    for (struct link_peer *peer = r->queue; peer; peer = peer->next_queued)
        inlets_deliver(&peer->inlets);
}

/* --- what goes --- */

struct packing {
    uint8_t *at;        /* of the next frame */
    const uint8_t *end; /* behind the last */
    bool eliciting;
};

static void put_ack(struct link_peer *peer, struct packing *p, uint64_t now_ns)
{
    uint64_t largest;
    size_t size = acks_put(&peer->acks, p->at, p->end, now_ns, &largest);
    if (size > 0)
        sent_add(&peer->path.sent, (struct sent_item){.kind = SENT_ACK, .offset = largest});
    p->at += size;
}

static void put_frames(struct link_peer *peer, struct packing *p, uint64_t now_ns)
{
    bool probe = path_must_probe(&peer->path), due = inlets_due(&peer->inlets);
    if (acks_due_ns(&peer->acks) <= now_ns || (acks_waiting(&peer->acks) && (due || probe)))
        put_ack(peer, p, now_ns);
    size_t size = inlets_fill(&peer->inlets, &peer->path.sent, p->at, p->end);
    p->at += size;
    p->eliciting = size > 0;
    if (probe && !p->eliciting) {
        sent_add(&peer->path.sent, (struct sent_item){.kind = SENT_PING});
        p->at += frame_put_ping(p->at, p->end);
        p->eliciting = true;
    }
}

/* Packs and seals a packet. Returns its size, 0 if nothing is to be sent. */
static size_t build(struct link_peer *peer, struct session *session, uint64_t now_ns, uint8_t *packet)
{
    struct packing p = {packet + LINK_DATA_HEAD, packet + LINK_RECEIVER_BYTES - LINK_TAG_BYTES, false};
    if (!sent_room(&peer->path.sent))
        return 0;
    if (peer->close_due)
        p.at += frame_put_close(p.at, p.end, peer->close_reason, span_of(NULL, 0));
    else
        put_frames(peer, &p, now_ns);
    size_t frames = (size_t)(p.at - packet) - LINK_DATA_HEAD;
    if (frames == 0) {
        sent_abandon(&peer->path.sent);
        return 0;
    }
    struct sent_commit_options options = {.bytes = (uint32_t)frames + LINK_DATA_OVERHEAD,
                                          .eliciting = p.eliciting};
    return session_seal(session, now_ns, path_sent(&peer->path, options, now_ns), packet, frames);
}

/* Nothing is left at this moment: when is there? Without a session nothing can be sent, so nothing is waited
 * for. */
static void arm(struct link_peer *peer, bool sealing)
{
    uint64_t due_ns = NEVER;
    if (peer->associated && sealing) {
        due_ns = min_u64(path_deadline_ns(&peer->path), peer->inlets.look_ns);
        if (sent_room(&peer->path.sent))
            due_ns = min_u64(due_ns, acks_due_ns(&peer->acks));
    }
    timer_set(&peer->receiver->timers, &peer->timer, due_ns);
}

static size_t fill(struct link_peer *peer, uint64_t now_ns, uint8_t *packet)
{
    struct sent_handler items = handler(peer);
    struct session *session = responder_sealing(&peer->receiver->responder, peer->number, now_ns);
    size_t size = 0;
    if (session && peer->associated) {
        inlets_relieve(&peer->inlets, now_ns);
        if (now_ns >= path_deadline_ns(&peer->path))
            path_expired(&peer->path, now_ns, &items);
        size = build(peer, session, now_ns, packet);
    }
    if (size > 0 && peer->close_due)
        forget(peer);
    else if (size > 0)
        enqueue(peer);
    else
        arm(peer, session != NULL);
    return size;
}

size_t link_receiver_fill(struct link_receiver *r, uint64_t now_ns, uint8_t *buffer,
                          const struct link_address **to)
{
    responder_tick(&r->responder, now_ns);
    timers_fire(&r->timers, now_ns);
    while (r->queue) {
        struct link_peer *peer = dequeue(r);
        size_t size = fill(peer, now_ns, buffer);
        if (size > 0) {
            *to = &peer->source;
            return size;
        }
    }
    return 0;
}

uint64_t link_receiver_deadline_ns(const struct link_receiver *r)
{
    return min_u64(responder_next_ns(&r->responder), timers_next_ns(&r->timers));
}
