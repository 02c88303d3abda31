#include "host/keys.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>

void keys_dispose(struct keys *k)
{
    free(k->entries);
    free(k->buckets);
    *k = (struct keys){0};
}

static uint32_t bucket_of(const uint8_t *digest)
{
    uint32_t word;
    memcpy(&word, digest, sizeof word);
    return word % KEYS_MAX;
}

void keys_digest(struct span key, uint8_t digest[KEY_BYTES])
{
    crypto_generichash(digest, KEY_BYTES, key.data, key.size, NULL, 0);
}

bool keys_find(const struct keys *k, struct span key, uint64_t *stored)
{
    if (!k->entries)
        return false;
    uint8_t digest[KEY_BYTES];
    keys_digest(key, digest);
    for (uint16_t at = k->buckets[bucket_of(digest)]; at; at = k->entries[at - 1].next) {
        if (memcmp(k->entries[at - 1].digest, digest, sizeof digest) != 0)
            continue;
        *stored = k->entries[at - 1].stored;
        return true;
    }
    return false;
}

static void forget(struct keys *k, uint32_t index)
{
    struct key_entry *entry = &k->entries[index];
    uint16_t *at = &k->buckets[bucket_of(entry->digest)];
    while (*at != index + 1)
        at = &k->entries[*at - 1].next;
    *at = entry->next;
}

int keys_restore(struct keys *k, const uint8_t digest[KEY_BYTES], uint64_t stored)
{
    if (!k->entries) {
        k->entries = calloc(KEYS_MAX, sizeof *k->entries);
        k->buckets = calloc(KEYS_MAX, sizeof *k->buckets);
        if (!k->entries || !k->buckets) {
            keys_dispose(k);
            return -ENOMEM;
        }
    }
    uint32_t index = k->next;
    if (k->count == KEYS_MAX)
        forget(k, index);
    else
        k->count++;
    k->next = (k->next + 1) % KEYS_MAX;
    struct key_entry *entry = &k->entries[index];
    memcpy(entry->digest, digest, KEY_BYTES);
    entry->stored = stored;
    uint16_t *bucket = &k->buckets[bucket_of(entry->digest)];
    entry->next = *bucket;
    *bucket = (uint16_t)(index + 1);
    return 0;
}

int keys_add(struct keys *k, struct span key, uint64_t stored)
{
    uint8_t digest[KEY_BYTES];
    keys_digest(key, digest);
    return keys_restore(k, digest, stored);
}

const struct key_entry *keys_at(const struct keys *k, uint32_t index)
{
    assert(index < k->count);
    uint32_t oldest = k->count == KEYS_MAX ? k->next : 0;
    return &k->entries[(oldest + index) % KEYS_MAX];
}
