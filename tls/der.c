#include "tls/der.h"

/* The length at d->at; long forms of up to four bytes. */
static bool take_length(struct der *d, size_t *length)
{
    if (d->at == d->end)
        return false;
    uint8_t first = *d->at++;
    *length = first;
    if (first < 0x80)
        return true;
    size_t count = first & 0x7f;
    if (count == 0 || count > 4 || (size_t)(d->end - d->at) < count || *d->at == 0)
        return false;
    for (*length = 0; count > 0; count--)
        *length = *length << 8 | *d->at++;
    return *length >= 0x80;
}

bool der_any(struct der *d, uint8_t *tag, struct span *content, struct span *whole)
{
    const uint8_t *begin = d->at;
    size_t length;
    if (begin == d->end || (*begin & 0x1f) == 0x1f)
        return false;
    d->at++;
    if (!take_length(d, &length) || (size_t)(d->end - d->at) < length)
        return false;
    if (tag)
        *tag = *begin;
    if (content)
        *content = span_of(d->at, length);
    d->at += length;
    if (whole)
        *whole = span_of(begin, (size_t)(d->at - begin));
    return true;
}

bool der_take(struct der *d, uint8_t tag, struct span *content)
{
    return der_next_is(d, tag) && der_any(d, NULL, content, NULL);
}

bool der_take_whole(struct der *d, uint8_t tag, struct span *whole)
{
    return der_next_is(d, tag) && der_any(d, NULL, NULL, whole);
}

bool der_enter(struct der *d, uint8_t tag, struct der *inner)
{
    struct span content;
    if (!der_take(d, tag, &content))
        return false;
    *inner = der_of(content);
    return true;
}

bool der_only(struct span bytes, uint8_t tag, struct der *inner)
{
    struct der d = der_of(bytes);
    return bytes.data && der_enter(&d, tag, inner) && der_done(&d);
}

bool der_take_default_false(struct der *d, bool *value)
{
    struct span content;
    *value = false;
    if (!der_next_is(d, DER_BOOLEAN))
        return true;
    if (!der_take(d, DER_BOOLEAN, &content) || content.size != 1)
        return false;
    *value = content.data[0] == 0xff;
    return content.data[0] == 0 || content.data[0] == 0xff;
}

bool der_is_integer(struct span content)
{
    if (content.size == 0)
        return false;
    if (content.size == 1)
        return true;
    unsigned head = (unsigned)content.data[0] << 1 | content.data[1] >> 7;
    return head != 0 && head != 0x1ff;
}

bool der_take_small(struct der *d, uint8_t tag, int32_t *value)
{
    struct span content;
    if (!der_take(d, tag, &content) || !der_is_integer(content) || content.size > 4 || content.data[0] > 0x7f)
        return false;
    *value = 0;
    for (size_t i = 0; i < content.size; i++)
        *value = *value << 8 | content.data[i];
    return true;
}

bool der_take_positive(struct der *d, struct span *magnitude)
{
    struct span content;
    if (!der_take(d, DER_INTEGER, &content) || !der_is_integer(content) || content.data[0] > 0x7f)
        return false;
    if (content.data[0] == 0)
        content = span_of(content.data + 1, content.size - 1);
    *magnitude = content;
    return content.size > 0;
}

bool der_is_oid(struct span content)
{
    bool begin = true;
    for (size_t i = 0; i < content.size; i++) {
        if (begin && content.data[i] == 0x80)
            return false;
        begin = content.data[i] < 0x80;
    }
    return content.size > 0 && begin;
}

bool der_take_octets(struct der *d, uint8_t tag, struct span *octets)
{
    struct span content;
    if (!der_take(d, tag, &content) || content.size == 0 || content.data[0] != 0)
        return false;
    *octets = span_of(content.data + 1, content.size - 1);
    return true;
}
