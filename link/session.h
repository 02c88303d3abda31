/* The keys of one session, and what binds them: packet numbers, ages, counts. Both ends have one.
 *
 * No nonce is used twice: numbers under one key only rise. What was opened once is not opened again: the
 * replay window. Keys are wiped by session_wipe, which leaves a session that neither seals nor opens. */
#ifndef PURE_LINK_SESSION_H
#define PURE_LINK_SESSION_H

#include "link/cipher.h"
#include "noise/noise.h"
#include "link/window.h"

struct session {
    bool live;                    /* false: all is zero */
    struct cipher_key seal, open; /* of one cipher */
    uint32_t index;               /* ours: what the other end writes into its packets */
    uint32_t remote_index;        /* the other end's */
    uint64_t born_ns;
    uint64_t next_number; /* of the next packet sealed, at least; never decreases */
    uint64_t sealed;      /* bytes of datagrams */
    uint64_t forgeries;   /* packets that did not open; at LINK_FORGERIES the session is at its end */
    struct window window; /* of the numbers opened */
};

/* A session that begins at `now_ns`: it seals from `next_number` on and opens from `first_number` on. Keys
 * and indices are put in by the caller. */
void session_init(struct session *s, uint64_t now_ns, uint64_t next_number, uint64_t first_number);

/* Puts in the keys of a handshake that is done. */
void session_take_keys(struct session *s, enum link_cipher cipher, const struct noise *noise);
void session_wipe(struct session *s);

/* When it is to be replaced; 0 once it has sealed enough; NEVER if it is not live. */
uint64_t session_rekey_ns(const struct session *s);

/* When it has to be wiped, as it opens nothing any more: by age, or 0 after too many forgeries; NEVER if it
 * is not live. */
uint64_t session_end_ns(const struct session *s);

bool session_may_seal(const struct session *s, uint64_t now_ns);

/* Seals a DATA packet in place: `packet` has room for LINK_DATA_OVERHEAD + `size` bytes, the `size` bytes of
 * frames lie at LINK_DATA_HEAD. Returns the packet's size. Asserts session_may_seal, and that `number` is at
 * least next_number and at most LINK_NUMBER_MAX. */
size_t session_seal(struct session *s, uint64_t now_ns, uint64_t number, uint8_t *packet, size_t size);

struct session_packet {
    uint64_t number;
    uint8_t *frames; /* within the packet */
    size_t size;     /* of the frames */
};

/* Opens a DATA packet in place; its head was checked and its index is the session's. 0; PE_EXPIRED if the
 * session is too old; PE_REPLAYED; PE_NOT_AUTHENTIC: then the frames' bytes are destroyed, the session is as
 * it was but for its count of forgeries. */
int session_open(struct session *s, uint64_t now_ns, uint8_t *packet, size_t size,
                 struct session_packet *opened);

#endif
