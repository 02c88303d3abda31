/* The layout of every datagram of docs/link-protocol.md section 2, and of the handshake's payloads (section
 * 3).
 *
 * All fields are arrays of bytes, so that a message may lie at any address; integers are little-endian. What
 * is marked zero is sent as zero; in a head it must be, in a payload (where it is authenticated) it is not
 * looked at: a later version may use it. */
#ifndef PURE_LINK_MESSAGES_H
#define PURE_LINK_MESSAGES_H

#include "core/bytes.h"
#include "core/clock.h"

#define LINK_VERSION  1
#define LINK_PROLOGUE "pure-link/1"

#define LINK_KEY_BYTES         32 /* of a Curve25519 key, and of either cipher's */
#define LINK_TAG_BYTES         16
#define LINK_MAC_BYTES         16
#define LINK_NONCE_BYTES       24 /* of XChaCha20-Poly1305, in COOKIE */
#define LINK_ASSOCIATION_BYTES 16

/* Limits and times (section 7). */
#define LINK_REKEY_NS          (120 * NS_PER_S) /* a session older is replaced */
#define LINK_SEAL_NS           (180 * NS_PER_S) /* nobody seals with one older */
#define LINK_OPEN_NS           (240 * NS_PER_S) /* nobody opens with one older */
#define LINK_PREVIOUS_NS       (30 * NS_PER_S)  /* how long the session before a confirmed one still opens */
#define LINK_REKEY_BYTES       (UINT64_C(1) << 38) /* of datagrams: a session that sealed as many is replaced */
#define LINK_SEAL_BYTES        (UINT64_C(1) << 39) /* nobody seals more (RFC 9001 B.1.1: 2^35 blocks) */
#define LINK_FORGERIES         (UINT64_C(1) << 36) /* nobody opens after as many (RFC 9001 section 6.6) */
#define LINK_NUMBER_MAX        VARINT_MAX /* the largest packet number: an ACK has to be able to name it */
#define LINK_UNCONFIRMED       4          /* sessions of a peer */
#define LINK_COOKIE_NS         (120 * NS_PER_S)
#define LINK_INIT_FIRST_NS     NS_PER_S        /* until INIT is sent again, at first */
#define LINK_INIT_LAST_NS      (60 * NS_PER_S) /* … and at most, before jitter */
#define LINK_HANDSHAKES        32              /* a second and at once, before cookies are asked for */
#define LINK_PROVEN_HANDSHAKES 256             /* a second and at once, with a cookie */

enum link_type { LINK_INIT = 1, LINK_REPLY = 2, LINK_COOKIE = 3, LINK_DATA = 4 };

/* What DATA is sealed with (link/cipher.h); each end has the first. */
enum link_cipher { LINK_CHACHA20_POLY1305 = 0, LINK_AES_256_GCM = 1 };
enum link_offer { LINK_OFFERS_AES_256_GCM = 1 }; /* bits */

struct link_head {
    uint8_t type; /* enum link_type */
    uint8_t zero[3];
};

struct link_init {
    struct link_head head;
    uint8_t sender[4]; /* index */
    uint8_t e[LINK_KEY_BYTES];
    uint8_t s[LINK_KEY_BYTES + LINK_TAG_BYTES];
    uint8_t payload[1064 + LINK_TAG_BYTES];
    uint8_t mac1[LINK_MAC_BYTES];
    uint8_t mac2[LINK_MAC_BYTES];
};

struct link_init_payload {
    uint8_t version;
    uint8_t ciphers; /* enum link_offer: what its sender has in hardware; unknown bits are not looked at */
    uint8_t zero[2];
    uint8_t association[LINK_ASSOCIATION_BYTES]; /* that the sender would go on with; zero: none */
    uint8_t next_packet[8];
    uint8_t attempt[8]; /* strictly increasing within an association */
    uint8_t index[4];   /* the head's, which nothing else authenticates */
    uint8_t padding[1024];
};

struct link_reply {
    struct link_head head;
    uint8_t receiver[4]; /* index that the answerer chose */
    uint8_t sender[4];   /* INIT's index */
    uint8_t e[LINK_KEY_BYTES];
    uint8_t payload[32 + LINK_TAG_BYTES];
};

enum link_reply_flags { LINK_GOES_ON = 1 };

struct link_reply_payload {
    uint8_t version;
    uint8_t flags;  /* enum link_reply_flags */
    uint8_t cipher; /* enum link_cipher: the session's, both ways */
    uint8_t zero;
    uint8_t most_streams[4];
    uint8_t session_credit[8]; /* bytes, from the association's start */
    uint8_t next_packet[8];
    uint8_t index[4]; /* the head's `receiver`, which nothing else authenticates */
    uint8_t zero2[4];
};

struct link_cookie {
    struct link_head head;
    uint8_t sender[4]; /* INIT's index */
    uint8_t nonce[LINK_NONCE_BYTES];
    uint8_t cookie[LINK_MAC_BYTES + LINK_TAG_BYTES];
};

struct link_data {
    struct link_head head;
    uint8_t receiver[4]; /* index that the other end gave */
    uint8_t number[8];
    uint8_t frames[]; /* then the tag */
};

#define LINK_INIT_BYTES     1200
#define LINK_REPLY_BYTES    92
#define LINK_COOKIE_BYTES   64
#define LINK_DATA_HEAD      16
#define LINK_DATA_OVERHEAD  (LINK_DATA_HEAD + LINK_TAG_BYTES)
#define LINK_DATA_MIN_BYTES LINK_DATA_OVERHEAD
/* The largest answer to an INIT: also what a buffer for it needs. */
#define LINK_ANSWER_BYTES LINK_REPLY_BYTES

_Static_assert(sizeof(struct link_init) == LINK_INIT_BYTES, "INIT");
_Static_assert(offsetof(struct link_init, e) == 8 && offsetof(struct link_init, s) == 40, "INIT");
_Static_assert(offsetof(struct link_init, payload) == 88 && offsetof(struct link_init, mac1) == 1168, "INIT");
_Static_assert(sizeof(struct link_init_payload) == 1064, "INIT's payload");
_Static_assert(sizeof(struct link_reply) == LINK_REPLY_BYTES, "REPLY");
_Static_assert(offsetof(struct link_reply, e) == 12 && offsetof(struct link_reply, payload) == 44, "REPLY");
_Static_assert(sizeof(struct link_reply_payload) == 32, "REPLY's payload");
_Static_assert(sizeof(struct link_cookie) == LINK_COOKIE_BYTES, "COOKIE");
_Static_assert(sizeof(struct link_data) == LINK_DATA_HEAD, "DATA");
_Static_assert(3 * LINK_REPLY_BYTES <= LINK_INIT_BYTES && 3 * LINK_COOKIE_BYTES <= LINK_INIT_BYTES,
               "no answer is larger than a third of its cause");

static inline uint32_t link_get32(const uint8_t bytes[4])
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static inline void link_put32(uint8_t bytes[4], uint32_t value)
{
    for (unsigned i = 0; i < 4; i++)
        bytes[i] = (uint8_t)(value >> 8 * i);
}

static inline uint64_t link_get64(const uint8_t bytes[8])
{
    return (uint64_t)link_get32(bytes) | (uint64_t)link_get32(bytes + 4) << 32;
}

static inline void link_put64(uint8_t bytes[8], uint64_t value)
{
    link_put32(bytes, (uint32_t)value);
    link_put32(bytes + 4, (uint32_t)(value >> 32));
}

static inline void link_put_head(struct link_head *head, enum link_type type)
{
    *head = (struct link_head){.type = (uint8_t)type};
}

/* The type of a datagram, or 0 if it is none of ours: a head that is wrong, a size that its type cannot have.
 */
static inline unsigned link_type_of(const uint8_t *bytes, size_t size)
{
    static const size_t sizes[] = {
        [LINK_INIT] = LINK_INIT_BYTES, [LINK_REPLY] = LINK_REPLY_BYTES, [LINK_COOKIE] = LINK_COOKIE_BYTES};
    if (size < LINK_DATA_MIN_BYTES || bytes[0] < LINK_INIT || bytes[0] > LINK_DATA ||
        (bytes[1] | bytes[2] | bytes[3]) != 0)
        return 0;
    return bytes[0] == LINK_DATA || sizes[bytes[0]] == size ? bytes[0] : 0;
}

/* By which session (of ours) a REPLY, COOKIE or DATA is meant for us: an index of ours. Of an INIT: the other
 * end's. `type` is what link_type_of said. */
static inline uint32_t link_index_of(unsigned type, const uint8_t *bytes)
{
    return link_get32(bytes + (type == LINK_REPLY ? offsetof(struct link_reply, sender) : 4));
}

#endif
