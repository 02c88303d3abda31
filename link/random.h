/* Random bytes for keys, nonces, indices and jitter, injected so that a test owns them. The product fills
 * from the kernel's generator; nothing weaker is fit for it. */
#ifndef PURE_LINK_RANDOM_H
#define PURE_LINK_RANDOM_H

#include <stddef.h>
#include <stdint.h>

struct link_random {
    void (*fill)(void *context, void *bytes, size_t size); /* cannot fail */
    void *context;
};

static inline void link_random_fill(const struct link_random *r, void *bytes, size_t size)
{
    r->fill(r->context, bytes, size);
}

static inline uint64_t link_random_u64(const struct link_random *r)
{
    uint64_t value;
    link_random_fill(r, &value, sizeof value);
    return value;
}

#endif
