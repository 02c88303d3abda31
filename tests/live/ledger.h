/* What the ledger (ledger.c) and those who judge it (crash.c) have in common. */
#ifndef PURE_TESTS_LIVE_LEDGER_H
#define PURE_TESTS_LIVE_LEDGER_H

#include <stdint.h>

/* The hash of the numbers so far, in their order; 0 before the first. */
static inline uint64_t ledger_hash(uint64_t hash, uint64_t number)
{
    hash = (hash ^ number) * UINT64_C(0x9e3779b97f4a7c15);
    return hash ^ (hash >> 29);
}

#endif
