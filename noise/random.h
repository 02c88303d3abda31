/* Random bytes for keys, nonces, indices and jitter, injected so that a test owns them. The product fills
 * from the kernel's generator; nothing weaker is fit for it. */
#ifndef PURE_NOISE_RANDOM_H
#define PURE_NOISE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

struct noise_random {
    void (*fill)(void *context, void *bytes, size_t size); /* cannot fail */
    void *context;
};

static inline void noise_random_fill(const struct noise_random *r, void *bytes, size_t size)
{
    r->fill(r->context, bytes, size);
}

static inline uint64_t noise_random_u64(const struct noise_random *r)
{
    uint64_t value;
    noise_random_fill(r, &value, sizeof value);
    return value;
}

#endif
