/* Idempotency keys: which requests an app has stored already. The last KEYS_MAX keys are remembered, in the
 * order they came. */
#ifndef PURE_HOST_KEYS_H
#define PURE_HOST_KEYS_H

#include "core/bytes.h"

#define KEYS_MAX  4096
#define KEY_BYTES 16

struct key_entry {
    uint8_t digest[KEY_BYTES]; /* BLAKE2b-128 of the key (RFC 7693) */
    uint64_t stored;           /* what the request was answered */
    uint16_t next;             /* in its bucket: index + 1, 0 at the end */
};

struct keys {
    struct key_entry *entries; /* a ring of KEYS_MAX, allocated with the first key */
    uint16_t *buckets;         /* KEYS_MAX: index + 1 of the newest entry, or 0 */
    uint32_t count, next;
};

void keys_dispose(struct keys *k);

/* Whether the key is known, and what its request was answered. */
bool keys_find(const struct keys *k, struct span key, uint64_t *stored);

/* Remembers a key that is not known, in the place of the oldest if need be. 0 or -ENOMEM. */
int keys_add(struct keys *k, struct span key, uint64_t stored);

/* What a journal keeps of a key. */
void keys_digest(struct span key, uint8_t digest[KEY_BYTES]);
int keys_restore(struct keys *k, const uint8_t digest[KEY_BYTES], uint64_t stored); /* as keys_add */

/* The `index`th of k->count keys, the oldest first. */
const struct key_entry *keys_at(const struct keys *k, uint32_t index);

#endif
