/* The Noise Protocol Framework, revision 34, as far as links and sealed bodies need it: DH 25519, cipher
 * ChaChaPoly, hash BLAKE2b (sections 12.1, 12.3, 12.8), and the patterns in the list below. On libsodium;
 * what it lacks, HMAC and HKDF of BLAKE2b (section 4.3), is here.
 *
 * A message that fails leaves the state as it was: all is done on a copy that replaces the state at the end,
 * or is wiped. A DH result of all zeros is a failure, as from a public key of low order. */
#ifndef PURE_NOISE_NOISE_H
#define PURE_NOISE_NOISE_H

#include "core/bytes.h"

#define NOISE_KEY_BYTES  32
#define NOISE_HASH_BYTES 64
#define NOISE_TAG_BYTES  16

enum noise_pattern { NOISE_N, NOISE_K, NOISE_X, NOISE_KK, NOISE_IK, NOISE_IKPSK2 };

/* What a side brings along; NULL for what its role in the pattern does not use. Copied by noise_init. */
struct noise_keys {
    const uint8_t *s_private, *s_public; /* its own static key pair */
    const uint8_t *rs;                   /* the other's static public key, where it is known before */
    const uint8_t *psk;
};

/* Section 5.2. Names of fields are the specification's. */
struct noise_symmetric {
    uint8_t ck[NOISE_HASH_BYTES];
    uint8_t h[NOISE_HASH_BYTES];
    uint8_t k[NOISE_KEY_BYTES];
    uint64_t n; /* the nonce for k; counts what k has sealed or opened */
    bool has_k;
};

/* Section 5.3. All of it is secret; noise_wipe when done. */
struct noise {
    struct noise_symmetric symmetric;
    enum noise_pattern pattern;
    bool initiator;
    unsigned message; /* the next one: 0 and up; even ones are the initiator's */
    bool has_rs;      /* rs is known, from the keys or from a message that was read */
    uint8_t s_private[NOISE_KEY_BYTES], s_public[NOISE_KEY_BYTES];
    uint8_t e_private[NOISE_KEY_BYTES], e_public[NOISE_KEY_BYTES];
    uint8_t rs[NOISE_KEY_BYTES];
    uint8_t re[NOISE_KEY_BYTES];
    uint8_t psk[NOISE_KEY_BYTES];
};

/* Begins a handshake. Asserts that the keys are there which the pattern needs. */
void noise_init(struct noise *n, enum noise_pattern pattern, bool initiator, struct span prologue,
                const struct noise_keys *keys);

/* How many bytes the next message has more than its payload. */
size_t noise_overhead(const struct noise *n);

/* Writes the next message, of noise_overhead() + payload.size bytes, to `out`, which does not overlap the
 * payload. `e` is a fresh private key. 0, or PE_KEY_WEAK if the other's key is of low order. Asserts that it
 * is our turn. */
int noise_write(struct noise *n, const uint8_t e[NOISE_KEY_BYTES], struct span payload, uint8_t *out);

/* Reads the next message. `payload` has room for message.size - noise_overhead() bytes and does not overlap
 * it; is zeroed or untouched on failure. 0, PE_MALFORMED if it is too short, PE_NOT_AUTHENTIC, PE_KEY_WEAK.
 * Asserts that it is the other's turn. */
int noise_read(struct noise *n, struct span message, uint8_t *payload);

/* Who is let in: asked as soon as a message has shown its sender's static key (the token `s`), which is after
 * one DH, and before the DHs that prove it. */
struct noise_gate {
    bool (*lets_in)(void *context, const uint8_t rs[NOISE_KEY_BYTES]);
    void *context;
};

/* noise_read, but for a sender that the gate does not let in: PE_UNKNOWN_KEY. */
int noise_read_gated(struct noise *n, struct span message, const struct noise_gate *gate, uint8_t *payload);

/* All messages are through: only noise_split, the hash and the wipe are left. */
bool noise_done(const struct noise *n);

/* The keys of both directions (section 5.2, Split); of a one-way pattern only the initiator's sending one is
 * to be used. Asserts noise_done. */
void noise_split(const struct noise *n, uint8_t send[NOISE_KEY_BYTES], uint8_t receive[NOISE_KEY_BYTES]);

/* The handshake hash (section 11.2), unique to this handshake: NOISE_HASH_BYTES at symmetric.h. */
static inline const uint8_t *noise_hash(const struct noise *n)
{
    return n->symmetric.h;
}

void noise_wipe(struct noise *n);

#endif
