/* Bodies with Content-Encoding: gzip (RFC 1952, RFC 9110 section 8.4.1.3), by zlib.
 *
 * One state serves all requests of a wire, one after the other: it is needed only while a body is made. The
 * same content gives the same bytes, whatever was compressed before: a request that goes again is the same.
 * What would not become smaller is not compressed. */
#ifndef PURE_WIRE_GZIP_H
#define PURE_WIRE_GZIP_H

#include "core/bytes.h"

#include <zlib.h>

/* Does not move once it is made: zlib points into it. */
struct gzip {
    z_stream stream;
};

/* `level`: 1 to 9. Allocates all it ever needs, about 270 KiB. 0 or -ENOMEM. */
int gzip_init(struct gzip *g, int level);
void gzip_dispose(struct gzip *g);

/* Writes the gzip form to `to`, which has room for content.size bytes. Returns its size, which is below
 * content.size; 0: it would not be, or there is more of it than 4 GiB, and what is in `to` means nothing. */
size_t gzip_write(struct gzip *g, struct span content, uint8_t *to);

#endif
