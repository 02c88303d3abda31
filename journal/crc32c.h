/* CRC-32C (Castagnoli; RFC 3720 appendix B.4), by the processor's own instructions where it has them. */
#ifndef PURE_JOURNAL_CRC32C_H
#define PURE_JOURNAL_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* Of `crc` (0 at first) and then `size` bytes: crc32c(crc32c(0, a), b) is that of a and b together. */
uint32_t crc32c(uint32_t crc, const void *data, size_t size);

/* The same without special instructions: for tests, and processors that lack them. */
uint32_t crc32c_portable(uint32_t crc, const void *data, size_t size);

#endif
