#include "tls/pem.h"

#include <sodium.h>

static const char begin_line[] = "-----BEGIN CERTIFICATE-----";
static const char end_line[] = "-----END CERTIFICATE-----";

/* To after the next `line` in `*text`; its beginning, or NULL. */
static const uint8_t *skip_past(struct span *text, const char *line, size_t size)
{
    const uint8_t *found = text->size ? memmem(text->data, text->size, line, size) : NULL;
    if (found)
        *text = span_of(found + size, text->size - (size_t)(found + size - text->data));
    return found;
}

long pem_next_certificate(struct span *text, uint8_t *out)
{
    if (!skip_past(text, begin_line, sizeof begin_line - 1))
        return -1;
    const uint8_t *base64 = text->data;
    const uint8_t *end = skip_past(text, end_line, sizeof end_line - 1);
    if (!end) {
        *text = span_of(text->data, 0);
        return 0;
    }
    size_t size, used = (size_t)(end - base64);
    if (sodium_base642bin(out, pem_bytes_max(used), (const char *)base64, used, " \t\r\n", &size, NULL,
                          sodium_base64_VARIANT_ORIGINAL) != 0)
        return 0;
    return (long)size;
}
