#include "tls/x509_dn.h"

#include "tls/der.h"

#include <stdio.h>

const struct span x509_dn_common_name = {(const uint8_t *)"\x55\x04\x03", 3};
const struct span x509_dn_organization = {(const uint8_t *)"\x55\x04\x0a", 3};
const struct span x509_dn_email = {(const uint8_t *)"\x2a\x86\x48\x86\xf7\x0d\x01\x09\x01", 9};

static bool attribute_take(struct der *attributes, struct x509_dn_attribute *attribute)
{
    struct der pair;
    return der_enter(attributes, DER_SEQUENCE, &pair) && der_take(&pair, DER_OID, &attribute->type) &&
           der_is_oid(attribute->type) && der_any(&pair, &attribute->tag, &attribute->value, NULL) &&
           der_done(&pair);
}

bool x509_dn_valid(struct span name)
{
    struct der rdns, attributes;
    struct x509_dn_attribute attribute;
    if (!der_only(name, DER_SEQUENCE, &rdns))
        return false;
    while (!der_done(&rdns)) {
        if (!der_enter(&rdns, DER_SET, &attributes) || der_done(&attributes))
            return false;
        while (!der_done(&attributes)) {
            if (!attribute_take(&attributes, &attribute))
                return false;
        }
    }
    return true;
}

bool x509_dn_empty(struct span name)
{
    return name.size <= 2;
}

static struct span left(const struct der *d)
{
    return span_of(d->at, (size_t)(d->end - d->at));
}

struct x509_dn_cursor x509_dn_begin(struct span name)
{
    struct der rdns = {0};
    bool valid = der_only(name, DER_SEQUENCE, &rdns);
    assert(valid);
    return (struct x509_dn_cursor){.rdns = left(&rdns)};
}

/* Into the next RDN. */
static bool rdn_next(struct x509_dn_cursor *cursor)
{
    struct der rdns = der_of(cursor->rdns);
    if (!der_take(&rdns, DER_SET, &cursor->attributes))
        return false;
    cursor->rdns = left(&rdns);
    return true;
}

static bool rdn_attribute(struct x509_dn_cursor *cursor, struct x509_dn_attribute *attribute)
{
    struct der attributes = der_of(cursor->attributes);
    if (!attribute_take(&attributes, attribute))
        return false;
    cursor->attributes = left(&attributes);
    return true;
}

bool x509_dn_next(struct x509_dn_cursor *cursor, struct x509_dn_attribute *attribute)
{
    return (cursor->attributes.size > 0 || rdn_next(cursor)) && rdn_attribute(cursor, attribute);
}

bool x509_dn_find(struct span name, struct span type, struct x509_dn_attribute *attribute)
{
    struct x509_dn_cursor cursor = x509_dn_begin(name);
    while (x509_dn_next(&cursor, attribute)) {
        if (span_equal(attribute->type, type))
            return true;
    }
    return false;
}

static bool is_text(uint8_t tag)
{
    return tag == DER_UTF8 || tag == DER_PRINTABLE;
}

/* The next character of a text as it is compared, from *at on; -1: the end. Spaces before and after do not
 * count, several in a row are one. */
static int folded_next(struct span text, size_t *at)
{
    size_t i = *at;
    while (i < text.size && text.data[i] == ' ')
        i++;
    if (i == text.size) {
        *at = i;
        return -1;
    }
    if (i > *at && *at > 0) {
        *at = i;
        return ' ';
    }
    *at = i + 1;
    return text.data[i] >= 'A' && text.data[i] <= 'Z' ? text.data[i] | 0x20 : text.data[i];
}

static int span_compare(struct span a, struct span b)
{
    int order = memcmp(a.data, b.data, min_size(a.size, b.size));
    return order ? order : (a.size > b.size) - (a.size < b.size);
}

static int attribute_compare(const struct x509_dn_attribute *a, const struct x509_dn_attribute *b)
{
    int order = span_compare(a->type, b->type);
    if (order)
        return order;
    if (!is_text(a->tag) || !is_text(b->tag)) {
        int tags = (is_text(a->tag) ? 0 : a->tag) - (is_text(b->tag) ? 0 : b->tag);
        return tags ? tags : span_compare(a->value, b->value);
    }
    for (size_t i = 0, j = 0;;) {
        int x = folded_next(a->value, &i), y = folded_next(b->value, &j);
        if (x != y)
            return x - y;
        if (x < 0)
            return 0;
    }
}

/* Two RDNs; the attributes of one come sorted, as in any DER SET OF. */
static int rdn_compare(struct x509_dn_cursor *a, struct x509_dn_cursor *b)
{
    struct x509_dn_attribute x, y;
    while (a->attributes.size > 0 && b->attributes.size > 0) {
        bool both = rdn_attribute(a, &x) && rdn_attribute(b, &y);
        assert(both);
        int order = attribute_compare(&x, &y);
        if (order)
            return order;
    }
    return (a->attributes.size > 0) - (b->attributes.size > 0);
}

int x509_dn_compare(struct span a, struct span b)
{
    if (span_equal(a, b))
        return 0;
    struct x509_dn_cursor x = x509_dn_begin(a), y = x509_dn_begin(b);
    for (;;) {
        bool more_x = rdn_next(&x), more_y = rdn_next(&y);
        if (!more_x || !more_y)
            return more_x - more_y;
        int order = rdn_compare(&x, &y);
        if (order)
            return order;
    }
}

bool x509_dn_within(struct span name, struct span base)
{
    struct x509_dn_cursor x = x509_dn_begin(name), y = x509_dn_begin(base);
    while (rdn_next(&y)) {
        if (!rdn_next(&x) || rdn_compare(&x, &y) != 0)
            return false;
    }
    return true;
}

void x509_dn_print(struct span name, char *text, size_t size)
{
    struct x509_dn_attribute attribute;
    if (!x509_dn_find(name, x509_dn_common_name, &attribute) &&
        !x509_dn_find(name, x509_dn_organization, &attribute)) {
        snprintf(text, size, "(no name)");
        return;
    }
    size_t used = 0;
    for (size_t i = 0; i < attribute.value.size && used + 1 < size; i++) {
        uint8_t c = attribute.value.data[i];
        text[used++] = c < 0x20 || c >= 0x7f || c == '"' ? '?' : (char)c;
    }
    text[used] = 0;
}
