#include "wire/gzip.h"

#include <errno.h>

#define GZIP_WINDOW (15 + 16) /* 32 KiB, and zlib is to write gzip's frame: without a name, at time 0 */
#define GZIP_MEMORY 8         /* zlib's default */

int gzip_init(struct gzip *g, int level)
{
    assert(level >= 1 && level <= 9);
    *g = (struct gzip){0};
    int status = deflateInit2(&g->stream, level, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY, Z_DEFAULT_STRATEGY);
    assert(status == Z_OK || status == Z_MEM_ERROR); /* else the library is not the one of its header */
    return status == Z_OK ? 0 : -ENOMEM;
}

void gzip_dispose(struct gzip *g)
{
    deflateEnd(&g->stream);
    *g = (struct gzip){0};
}

size_t gzip_write(struct gzip *g, struct span content, uint8_t *to)
{
    if (content.size < 2 || content.size > UINT32_MAX)
        return 0;
    z_stream *z = &g->stream;
    int status = deflateReset(z);
    assert(status == Z_OK);
    z->next_in = (Bytef *)content.data; /* only read */
    z->avail_in = (uInt)content.size;
    z->next_out = to;
    z->avail_out = (uInt)content.size - 1;
    status = deflate(z, Z_FINISH);
    return status == Z_STREAM_END ? z->total_out : 0; /* else it has run out of room */
}
