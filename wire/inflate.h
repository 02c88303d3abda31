/* Undoes the transfer codings gzip and deflate of a reply's body (RFC 9110 section 8.4.1, RFC 9112 section
 * 7.2) with zlib, piece by piece, in bounded memory: about 40 KiB while such a body comes, and what is made
 * of it in a buffer of the caller's. How much may be made in all is the caller's to bound. */
#ifndef PURE_WIRE_INFLATE_H
#define PURE_WIRE_INFLATE_H

#include "wire/http.h"

#include <zlib.h>

/* Zeroed memory is an inflater that is not in use. */
struct inflater {
    bool open;  /* `z` holds memory: bytes have come, and inflater_end has not been called */
    bool whole; /* the coded stream, or each of its members (gzip), has come to its end */
    z_stream z;
};

/* Decodes from the front of `*coded`, which is moved on, into `out`; `*made` is set to the size made. The
 * first bytes open it. Returns 0 (again while coded bytes are left, or `*made` == `room`), PE_MALFORMED or
 * -ENOMEM. */
int inflater_take(struct inflater *inflater, enum http_coding coding, struct span *coded, uint8_t *out,
                  size_t room, size_t *made);

/* Frees what it holds: not in use again. True if the body was whole: not one byte, or all of a stream. */
bool inflater_end(struct inflater *inflater);

#endif
