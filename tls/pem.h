/* PEM as RFC 7468 has it: one base64 text after the other between BEGIN and END lines, and whatever else
 * around them. */
#ifndef PURE_TLS_PEM_H
#define PURE_TLS_PEM_H

#include "core/bytes.h"

/* Bytes that the certificates in a PEM text of `size` can have, all together. */
static inline size_t pem_bytes_max(size_t size)
{
    return size / 4 * 3 + 3;
}

/* The next certificate of `*text`, written to `out`, which has room for pem_bytes_max of what is left.
 * Returns its size, zero for one whose base64 is wrong, or -1 if there is none left; `*text` goes on after
 * it. */
long pem_next_certificate(struct span *text, uint8_t *out);

#endif
