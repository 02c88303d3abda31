/* What a peer says to an engine, in pieces, before and behind an honest handshake's beginning: the engine
 * waits, ends or fails, with its output bounded, and keeps nothing of the memory that it was fed from.
 *
 * The first byte says which end the engine is, and how much of an honest peer's first flight comes first;
 * each piece is a byte for its size, then its bytes. */
#include "tests/fuzz/fuzz_input.h"
#include "tests/sim/tls_ends.h"

#include <stdlib.h>

static struct tls_world world;
static struct tls_context *contexts[2]; /* [server] */

static void begin(void)
{
    if (contexts[0])
        return;
    tls_world_init(&world);
    for (unsigned server = 0; server < 2; server++)
        contexts[server] = tls_world_context(&world, &(struct tls_world_options){.server = server});
}

static void feed(struct tls_end *end, const uint8_t *data, size_t size)
{
    if (!end->ended && end->error == 0 && size > 0)
        tls_end_feed(end, span_of(data, size), SIZE_MAX);
    assert(tls_engine_pending(end->engine) <= TLS_OUTPUT_BYTES);
    if (tls_engine_pending(end->engine) > TLS_OUTPUT_BYTES / 2)
        tls_engine_took(end->engine, tls_engine_pending(end->engine));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tls_end engine, peer;
    begin();
    if (size == 0)
        return 0;
    bool server = *data & 1;
    tls_end_init(&engine, contexts[server], server ? NULL : "a.example", NULL);
    tls_end_init(&peer, contexts[!server], server ? "a.example" : NULL, NULL);
    if (!server)
        tls_end_say(&engine, &peer, SIZE_MAX);
    struct span flight = tls_engine_output(peer.engine);
    feed(&engine, flight.data, flight.size * (*data >> 1) / 127);
    data++, size--;
    while (size > 0) {
        size_t piece = min_size(*data + (size_t)1, size - 1);
        feed(&engine, data + 1, piece);
        data += piece + 1;
        size -= piece + 1;
    }
    assert(!engine.ready || !server);
    tls_end_dispose(&engine);
    tls_end_dispose(&peer);
    return 0;
}
