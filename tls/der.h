/* DER (X.690 section 10), read strictly: definite lengths in their shortest form, low tag numbers, no byte
 * too many. A reader walks over bytes that outlive it; every call either takes one element whole or returns
 * false, after which the reader is of no use. Nothing recurses. */
#ifndef PURE_TLS_DER_H
#define PURE_TLS_DER_H

#include "core/bytes.h"

enum der_tag {
    DER_BOOLEAN = 0x01,
    DER_INTEGER = 0x02,
    DER_BIT_STRING = 0x03,
    DER_OCTET_STRING = 0x04,
    DER_NULL = 0x05,
    DER_OID = 0x06,
    DER_UTF8 = 0x0c,
    DER_PRINTABLE = 0x13,
    DER_IA5 = 0x16,
    DER_UTC_TIME = 0x17,
    DER_GENERALIZED_TIME = 0x18,
    DER_SEQUENCE = 0x30,
    DER_SET = 0x31
};

/* Context-specific tags: of a primitive, and of what holds other elements. */
#define DER_CONTEXT(number)             (0x80 | (number))
#define DER_CONTEXT_CONSTRUCTED(number) (0xa0 | (number))

struct der {
    const uint8_t *at, *end;
};

static inline struct der der_of(struct span bytes)
{
    return (struct der){bytes.data, bytes.data ? bytes.data + bytes.size : NULL};
}

static inline bool der_done(const struct der *d)
{
    return d->at == d->end;
}

static inline bool der_next_is(const struct der *d, uint8_t tag)
{
    return d->at < d->end && *d->at == tag;
}

/* The next element, of any tag: its content, and the whole of it. Either may be NULL. */
bool der_any(struct der *d, uint8_t *tag, struct span *content, struct span *whole);
/* The next element, which has to be of this tag. */
bool der_take(struct der *d, uint8_t tag, struct span *content);
bool der_take_whole(struct der *d, uint8_t tag, struct span *whole);
/* Into an element: `inner` reads its content. */
bool der_enter(struct der *d, uint8_t tag, struct der *inner);
/* The element that `bytes` are, and nothing after it. */
bool der_only(struct span bytes, uint8_t tag, struct der *inner);
/* BOOLEAN DEFAULT FALSE. That the default is written out is not DER, but certificates in use do it. */
bool der_take_default_false(struct der *d, bool *value);
/* An INTEGER of at most 31 bits, not negative. */
bool der_take_small(struct der *d, uint8_t tag, int32_t *value);
/* An INTEGER above zero, without the leading zero byte. */
bool der_take_positive(struct der *d, struct span *magnitude);
/* The content of an INTEGER, in its shortest form. */
bool der_is_integer(struct span content);
/* The content of an OBJECT IDENTIFIER: not empty, every arc whole and in its shortest form. */
bool der_is_oid(struct span content);
/* A BIT STRING of whole bytes. */
bool der_take_octets(struct der *d, uint8_t tag, struct span *octets);

#endif
