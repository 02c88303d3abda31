/* AES-256-GCM by libsodium, which uses the processor's own instructions, for the records of TLS: wolfSSL as
 * Debian builds it computes AES in C. Measured on x86-64, records of 16 KiB, sealed: see
 * docs/measurements.md. */
#ifndef PURE_TLS_ACCELERATE_H
#define PURE_TLS_ACCELERATE_H

#include <stdbool.h>

/* Whether this processor has what it takes; then AES-256 is the fastest of all suites. Any thread, any time;
 * sodium_init has been called. */
bool tls_aes_accelerated(void);

/* Tells wolfSSL, once in a process. What wolfSSL_CTX_SetDevId is given: without the instructions
 * INVALID_DEVID, which is its own code. */
int tls_accelerate(void);

#endif
