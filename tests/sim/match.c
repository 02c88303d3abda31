/* What scripts expect: the size of the message at the start of the bytes, 0 while it is incomplete. The HTTP
 * one is written apart from the product's parser, for a test must not believe what it tests. */
#include "tests/sim/sim.h"

#include <stdlib.h>
#include <strings.h>

size_t sim_match_bytes(struct span bytes, const struct sim_step *step)
{
    return bytes.size >= step->number ? step->number : 0;
}

static size_t size_until(struct span bytes, const char *text)
{
    const uint8_t *at = bytes.size > 0 ? memmem(bytes.data, bytes.size, text, strlen(text)) : NULL;
    return at ? (size_t)(at - bytes.data) + strlen(text) : 0;
}

size_t sim_match_until(struct span bytes, const struct sim_step *step)
{
    return size_until(bytes, step->data);
}

static struct span after(struct span bytes, size_t size)
{
    return size < bytes.size ? span_of(bytes.data + size, bytes.size - size) : span_of(NULL, 0);
}

/* The value of a field of the head, up to its line's end; data NULL: there is none. */
static struct span field(struct span head, const char *name)
{
    size_t line = size_until(head, "\r\n"), name_size = strlen(name);
    for (struct span rest = after(head, line); (line = size_until(rest, "\r\n")) > 2;
         rest = after(rest, line)) {
        if (line <= name_size || rest.data[name_size] != ':')
            continue;
        if (strncasecmp((const char *)rest.data, name, name_size) == 0)
            return span_of(rest.data + name_size + 1, line - name_size - 3);
    }
    return span_of(NULL, 0);
}

static uint64_t number(struct span text, int base)
{
    char digits[32] = {0};
    memcpy(digits, text.data, min_size(text.size, sizeof digits - 1));
    return strtoull(digits, NULL, base);
}

static size_t chunked_size(struct span body)
{
    size_t size = 0;
    for (;;) {
        struct span rest = after(body, size);
        size_t line = size_until(rest, "\r\n");
        if (line == 0)
            return 0;
        uint64_t chunk = number(span_of(rest.data, line), 16);
        if (chunk > body.size)
            return 0;
        if (chunk > 0) {
            size += line + chunk + 2;
            continue;
        }
        for (size += line; (line = size_until(after(body, size), "\r\n")) > 2;)
            size += line; /* trailers */
        return line == 2 ? size + 2 : 0;
    }
}

size_t sim_match_http(struct span bytes, const struct sim_step *step)
{
    (void)step;
    size_t head_size = size_until(bytes, "\r\n\r\n");
    if (head_size == 0)
        return 0;
    struct span head = span_of(bytes.data, head_size);
    if (field(head, "transfer-encoding").data) {
        size_t body = chunked_size(after(bytes, head_size));
        return body ? head_size + body : 0;
    }
    struct span length = field(head, "content-length");
    uint64_t size = head_size + (length.data ? number(length, 10) : 0);
    return bytes.size >= size ? size : 0;
}
