/* What DATA packets are sealed with: ChaCha20-Poly1305 (RFC 8439), which every end has, or AES-256-GCM (NIST
 * SP 800-38D), which two ends use that both have it in hardware (docs/link-protocol.md section 3).
 *
 * Both have keys of 32, nonces of 12 and tags of 16 bytes. The nonce is four zero bytes and the packet number
 * as the head has it, so that who never seals one number twice under a key uses no nonce twice. AES without
 * hardware is not there at all: in software it is slow, or its time depends on the key. Why there are two:
 * docs/decisions/0008-ciphers.md. */
#ifndef PURE_LINK_CIPHER_H
#define PURE_LINK_CIPHER_H

#include "link/messages.h"

#include <sodium.h>

/* One direction's key. Secret; wiped by who holds it. May be copied. */
struct cipher_key {
    enum link_cipher cipher;
    union {
        uint8_t chacha20[LINK_KEY_BYTES];
        crypto_aead_aes256gcm_state aes; /* the schedule of round keys, and what GHASH needs */
    };
};

/* enum link_offer of what this machine has in hardware. After sodium_init. */
uint8_t cipher_hardware(void);

/* The key that a cipher makes of one of Split()'s: ChaCha20-Poly1305 that itself, AES-256-GCM one derived
 * from it, so that no key ever serves both. Asserts that the machine has the cipher. */
void cipher_key_init(struct cipher_key *key, enum link_cipher cipher, const uint8_t split[LINK_KEY_BYTES]);

/* Seals in place the `size` bytes of frames of a packet whose head is written; the tag goes behind them. */
void cipher_seal(const struct cipher_key *key, struct link_data *data, size_t size);

/* Opens in place the `size` bytes behind a packet's head, the tag among them. 0, or PE_NOT_AUTHENTIC: then
 * they are destroyed. */
int cipher_open(const struct cipher_key *key, struct link_data *data, size_t size);

#endif
