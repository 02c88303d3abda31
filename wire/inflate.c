#include "wire/inflate.h"

#include <errno.h>

/* Window bits as zlib has them. What is called deflate is the zlib format, but some servers send the bare one
 * (RFC 9110 section 8.4.1.2). Its first byte tells: the zlib format's lower half is 8, which as a bare one
 * would be a stored block with padding that is not zero. */
static int format_of(enum http_coding coding, uint8_t first)
{
    if (coding == HTTP_GZIP)
        return MAX_WBITS + 16;
    return (first & 0x0f) == 8 ? MAX_WBITS : -MAX_WBITS;
}

static int begin(struct inflater *inflater, enum http_coding coding, uint8_t first)
{
    inflater->z = (z_stream){0};
    if (inflateInit2(&inflater->z, format_of(coding, first)) != Z_OK)
        return -ENOMEM;
    inflater->open = true;
    inflater->whole = false;
    return 0;
}

int inflater_take(struct inflater *inflater, enum http_coding coding, struct span *coded, uint8_t *out,
                  size_t room, size_t *made)
{
    *made = 0;
    if (coded->size == 0 && !inflater->open)
        return 0;
    int error = inflater->open ? 0 : begin(inflater, coding, coded->data[0]);
    if (error < 0)
        return error;
    if (inflater->whole && coded->size > 0) { /* a further member (RFC 1952 section 2.2) */
        if (coding != HTTP_GZIP)
            return PE_MALFORMED;
        inflateReset(&inflater->z);
        inflater->whole = false;
    }
    z_stream *z = &inflater->z;
    uInt given = (uInt)min_size(coded->size, 1 << 20);
    z->next_in = (Bytef *)(uintptr_t)coded->data;
    z->avail_in = given;
    z->next_out = out;
    z->avail_out = (uInt)room;
    int result = inflater->whole ? Z_BUF_ERROR : inflate(z, Z_NO_FLUSH);
    *coded = span_of(coded->data + (given - z->avail_in), coded->size - (given - z->avail_in));
    *made = room - z->avail_out;
    inflater->whole |= result == Z_STREAM_END;
    if (result == Z_MEM_ERROR)
        return -ENOMEM;
    return result == Z_OK || result == Z_STREAM_END || result == Z_BUF_ERROR ? 0 : PE_MALFORMED;
}

bool inflater_end(struct inflater *inflater)
{
    bool whole = !inflater->open || inflater->whole;
    if (inflater->open)
        inflateEnd(&inflater->z);
    inflater->open = false;
    return whole;
}
