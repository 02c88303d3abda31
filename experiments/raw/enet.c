/* raw-enet: the same over ENet (libenet-dev), a reliable UDP library for games: one packet a record,
 * reliable, on one channel. Its own defaults: no cipher, a window of 64 KiB, a retransmission timer in
 * milliseconds.
 *
 * The sender has at most IN_FLIGHT packets with ENet, which frees each when it is acknowledged. It sleeps in
 * poll rather than in enet_host_service: acknowledgements are no events, that call would not return for them.
 */
#include "experiments/raw/raw.h"

#include "core/error.h"

#include <enet/enet.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>

#define IN_FLIGHT  4096 /* more only makes its lists longer: the window is 64 KiB */
#define CONNECT_MS 5000
#define SERVICE_MS 100
#define SILENCE_MS 10000
#define SLEEP_MS   1 /* the longest sleep of a sender: ENet's timers are due */

static void enet_prepare(void)
{
    if (enet_initialize() != 0)
        fprintf(stderr, "enet: cannot be initialized\n");
}

static int failed(const char *what)
{
    fprintf(stderr, "enet: %s\n", what);
    return -1;
}

/* --- the receiver --- */

/* False: the sender is gone. */
static bool take_event(ENetEvent *event, struct raw_tally *tally)
{
    if (event->type == ENET_EVENT_TYPE_DISCONNECT)
        return false;
    if (event->type != ENET_EVENT_TYPE_RECEIVE)
        return true;
    raw_tally_add(tally, event->packet->data, event->packet->dataLength);
    if (tally->run->one_in_flight)
        enet_peer_send(event->peer, 0, event->packet); /* ENet's own from here on */
    else
        enet_packet_destroy(event->packet);
    return true;
}

/* Until the sender disconnects: what it was sent is acknowledged by then. */
static int receive_all(ENetHost *host, struct raw_tally *tally)
{
    ENetEvent event;
    for (unsigned silent_ms = 0; silent_ms < SILENCE_MS;) {
        int n = enet_host_service(host, &event, SERVICE_MS);
        if (n < 0)
            return failed("receiving failed");
        silent_ms = n == 0 ? silent_ms + SERVICE_MS : 0;
        for (; n > 0; n = enet_host_check_events(host, &event))
            if (!take_event(&event, tally))
                return raw_tally_complete(tally) ? 0 : failed("the sender left early");
    }
    return failed("the sender is silent");
}

static int enet_receive(const struct raw_run *run, const struct raw_pipes *pipes,
                        struct raw_received *received)
{
    struct raw_tally tally;
    ENetAddress address = {.host = ENET_HOST_TO_NET_32(0x7f000001), .port = 0};
    ENetHost *host = enet_host_create(&address, 1, 1, 0, 0);
    if (!host || enet_socket_get_address(host->socket, &address) != 0)
        return failed("no host");
    raw_tally_init(&tally, run, received);
    int error = raw_ready(pipes, address.port);
    if (error == 0)
        error = receive_all(host, &tally);
    received->datagrams = host->totalSentPackets;
    enet_host_destroy(host);
    return error;
}

/* --- the sender --- */

struct sender {
    const struct raw_run *run;
    ENetHost *host;
    ENetPeer *peer;
    uint64_t number; /* of the last record that ENet was given */
    uint64_t acked;  /* records, also those echoed */
    struct raw_trips trips;
};

static void ENET_CALLBACK acknowledged(ENetPacket *packet)
{
    ++*(uint64_t *)packet->userData;
}

static int connect_to(struct sender *s, uint16_t port)
{
    ENetAddress address = {.host = ENET_HOST_TO_NET_32(0x7f000001), .port = port};
    ENetEvent event;
    s->host = enet_host_create(NULL, 1, 1, 0, 0);
    s->peer = s->host ? enet_host_connect(s->host, &address, 1, 0) : NULL;
    if (!s->peer || enet_host_service(s->host, &event, CONNECT_MS) <= 0 ||
        event.type != ENET_EVENT_TYPE_CONNECT)
        return failed("does not connect");
    return 0;
}

static int give(struct sender *s)
{
    uint8_t record[RAW_RECORD_MAX];
    memset(record, '.', s->run->record_bytes);
    raw_put_number(record, s->number + 1);
    ENetPacket *packet = enet_packet_create(record, s->run->record_bytes, ENET_PACKET_FLAG_RELIABLE);
    if (!packet)
        return failed("no memory");
    packet->userData = &s->acked;
    packet->freeCallback = acknowledged;
    if (enet_peer_send(s->peer, 0, packet) != 0)
        return failed("sending failed");
    s->number++;
    return 0;
}

/* One call: acknowledgements in, packets out. */
static int serve(struct sender *s)
{
    ENetEvent event;
    if (enet_host_service(s->host, &event, 0) < 0 || s->peer->state != ENET_PEER_STATE_CONNECTED)
        return failed("the connection is lost");
    return 0;
}

/* Records up to number `last`, and their acknowledgements. */
static int send_to(struct sender *s, uint64_t last)
{
    while (s->acked < last) {
        while (s->number < last && s->number - s->acked < IN_FLIGHT)
            if (give(s) != 0)
                return -1;
        uint64_t before = s->acked;
        if (serve(s) != 0)
            return -1;
        struct pollfd socket = {.fd = s->host->socket, .events = POLLIN};
        if (s->acked == before && poll(&socket, 1, SLEEP_MS) < 0 && errno != EINTR)
            return raw_failed("poll", -errno);
    }
    return 0;
}

/* Round trips up to record `last`: each is sent, and waited for until its echo has come. */
static int echo_to(struct sender *s, uint64_t last)
{
    while (s->number < last) {
        ENetEvent event;
        uint64_t start_ns = raw_now_ns();
        if (give(s) != 0)
            return -1;
        if (enet_host_service(s->host, &event, SILENCE_MS) <= 0 || event.type != ENET_EVENT_TYPE_RECEIVE)
            return failed("no echo");
        enet_packet_destroy(event.packet);
        if (s->number > s->run->warm)
            raw_trips_add(&s->trips, raw_now_ns() - start_ns);
    }
    return 0;
}

static void disconnect(struct sender *s)
{
    ENetEvent event;
    enet_peer_disconnect(s->peer, 0);
    while (enet_host_service(s->host, &event, SERVICE_MS) > 0)
        if (event.type == ENET_EVENT_TYPE_RECEIVE)
            enet_packet_destroy(event.packet);
        else if (event.type == ENET_EVENT_TYPE_DISCONNECT)
            break;
}

static int enet_send(const struct raw_run *run, uint16_t port, struct raw_sent *sent)
{
    struct sender s = {.run = run};
    int (*phase)(struct sender *, uint64_t) = run->one_in_flight ? echo_to : send_to;
    if (raw_trips_init(&s.trips, run) != 0 || connect_to(&s, port) != 0 || phase(&s, run->warm) != 0)
        return -1;
    s.host->totalSentPackets = 0;
    raw_send_begins(sent);
    int error = phase(&s, raw_total(run));
    raw_send_ends(sent);
    sent->packets = sent->sends = s.host->totalSentPackets;
    sent->datagram_bytes = s.peer->mtu;
    raw_trips_end(&s.trips, sent);
    disconnect(&s);
    enet_host_destroy(s.host);
    return error;
}

const struct raw_transport raw_transport = {.name = "enet",
                                            .back_end = "sockets",
                                            .prepare = enet_prepare,
                                            .receive = enet_receive,
                                            .send = enet_send};
