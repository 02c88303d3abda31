/* Sealed requests and their proven replies: the format, for both ends. docs/records-protocol.md is the page.
 *
 * Pure functions: randomness comes from the caller, nothing is allocated. What is secret is wiped. */
#ifndef PURE_WIRE_SEALED_H
#define PURE_WIRE_SEALED_H

#include "core/bytes.h"
#include "noise/key.h"
#include "noise/noise.h"

#define SEALED_PROLOGUE     "pure-sealed/1"
#define SEALED_TYPE         "application/vnd.pure.sealed"
#define SEALED_EPOCH_BYTES  16
#define SEALED_TICKET_BYTES 24
#define SEALED_NAME_MAX     63 /* of an app or an output */
#define SEALED_EVENT_MAX    64

/* --- the request's head: in the field Pure-Sealed, base64 of one message of Noise X --- */

#define SEALED_PAYLOAD_BYTES 354
#define SEALED_MESSAGE_BYTES (NOISE_KEY_BYTES + NOISE_KEY_BYTES + 2 * NOISE_TAG_BYTES + SEALED_PAYLOAD_BYTES)
#define SEALED_TEXT_BYTES    (SEALED_MESSAGE_BYTES / 3 * 4) /* no padding: it is a multiple of 3 */

/* What stands in Pure-* fields where nothing is sealed. The ticket is the receiver's last one, zero if there
 * is none. */
struct sealed_request {
    uint8_t ticket[SEALED_TICKET_BYTES];
    uint8_t epoch[SEALED_EPOCH_BYTES];
    uint64_t first, count, base, sent;
    uint64_t body_bytes; /* before sealing */
    struct span app;     /* that receives; 1 to SEALED_NAME_MAX bytes, as are the next two */
    struct span from;    /* the app that sends … */
    struct span output;  /* … and its output */
    struct span event;   /* 1 to SEALED_EVENT_MAX bytes */
};

/* What one request's body and its reply are sealed with. */
struct sealed_keys {
    uint8_t body[NOISE_KEY_BYTES];
    uint8_t reply[NOISE_KEY_BYTES];
};

/* Seals a head for the owner of the public key `to`. `e` is a fresh private key, used for nothing else. 0, or
 * PE_KEY_WEAK. Asserts that the names have their sizes. */
int sealed_request_write(const struct sealed_request *request, const struct host_key *with,
                         const uint8_t to[HOST_KEY_BYTES], const uint8_t e[NOISE_KEY_BYTES],
                         char text[SEALED_TEXT_BYTES], struct sealed_keys *keys);

/* A head that was opened; the request's names point into `payload`. */
struct sealed_opened {
    struct sealed_request request;
    struct sealed_keys keys;
    uint8_t sender[HOST_KEY_BYTES]; /* proven */
    uint8_t payload[SEALED_PAYLOAD_BYTES];
};

/* Opens one. 0; PE_MALFORMED: not the text of a head, or names that cannot be; PE_UNKNOWN_KEY: the gate does
 * not let the sender in, which took one DH; PE_NOT_AUTHENTIC, PE_KEY_WEAK. Nothing is left in `opened` then.
 */
int sealed_request_read(struct span text, const struct host_key *with, const struct noise_gate *gate,
                        struct sealed_opened *opened);

void sealed_keys_wipe(struct sealed_keys *keys);

/* --- the body: chunks, each sealed as a transport message of Noise --- */

#define SEALED_CHUNK_MAX   (16 * 1024) /* sealed; the last one of a body is what is left */
#define SEALED_CHUNK_BYTES (SEALED_CHUNK_MAX - NOISE_TAG_BYTES) /* before that */

/* Bytes that a body of `body` bytes is sealed; UINT64_MAX if that is more than can be. */
uint64_t sealed_size(uint64_t body);

/* Writes sealed_size(body.size) bytes, which do not overlap the body. */
void sealed_body(const struct sealed_keys *keys, struct span body, uint8_t *out);

/* Chunk `number`, from 0 on, of at least a tag's bytes, to `plain`, which has room for what is left without
 * the tag, and may begin where the chunk begins. 0 or PE_NOT_AUTHENTIC. */
int sealed_chunk_open(const uint8_t key[NOISE_KEY_BYTES], uint64_t number, struct span chunk, uint8_t *plain);

/* --- the reply: in the field Pure-Sealed, base64 of a nonce and what is sealed --- */

#define SEALED_NONCE_BYTES         24
#define SEALED_REPLY_PAYLOAD_BYTES 128
#define SEALED_REPLY_BYTES         (SEALED_NONCE_BYTES + SEALED_REPLY_PAYLOAD_BYTES + NOISE_TAG_BYTES)
#define SEALED_REPLY_TEXT_BYTES    (SEALED_REPLY_BYTES / 3 * 4)
#define SEALED_WHY_MAX             87

enum sealed_error { SEALED_OK, SEALED_GAP, SEALED_ROLLED_BACK, SEALED_RETIRED, SEALED_STALE };

struct sealed_reply {
    uint16_t status;
    uint8_t error; /* enum sealed_error; others are of later versions */
    bool has_stored;
    uint64_t stored;
    uint32_t retry_after_s;              /* 0: not said */
    uint8_t ticket[SEALED_TICKET_BYTES]; /* for the requests to come */
    char why[SEALED_WHY_MAX + 1];        /* of failures, for people; printable ASCII */
};

/* `nonce` is random: a request that is sent again to the receiver is answered anew under the same key. */
void sealed_reply_write(const struct sealed_reply *reply, const uint8_t key[NOISE_KEY_BYTES],
                        const uint8_t nonce[SEALED_NONCE_BYTES], char text[SEALED_REPLY_TEXT_BYTES]);

/* 0 or PE_NOT_AUTHENTIC, whatever is wrong with it. */
int sealed_reply_read(struct span text, const uint8_t key[NOISE_KEY_BYTES], struct sealed_reply *reply);

#endif
