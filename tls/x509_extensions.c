/* The extensions of RFC 5280 section 4.2, as far as they are processed: each taken apart, or refused. */
#include "tls/der.h"
#include "tls/x509.h"
#include "tls/x509_names.h"

static bool parse_alternative_names(struct x509 *x, struct span value)
{
    x->subject_alt_names = value;
    return x509_general_names_valid(value);
}

/* Section 4.2.1.9: a path length is for CAs only. */
static bool parse_basic_constraints(struct x509 *x, struct span value)
{
    struct der constraints;
    if (!der_only(value, DER_SEQUENCE, &constraints) || !der_take_default_false(&constraints, &x->is_ca))
        return false;
    if (!der_done(&constraints) && (!x->is_ca || !der_take_small(&constraints, DER_INTEGER, &x->path_length)))
        return false;
    x->has_basic_constraints = true;
    return der_done(&constraints);
}

/* A BIT STRING of named bits, of which at least one has to be set (section 4.2.1.3). DER leaves zero bits at
 * the end out; roots in use have them. */
static bool parse_key_usage(struct x509 *x, struct span value)
{
    struct der d = der_of(value);
    struct span bits;
    if (!der_take(&d, DER_BIT_STRING, &bits) || !der_done(&d) || bits.size < 2 || bits.size > 3 ||
        bits.data[0] > 7)
        return false;
    unsigned unused = bits.data[0], last = bits.data[bits.size - 1];
    if ((last & ((1u << unused) - 1)) != 0)
        return false;
    for (unsigned bit = 0; bit < 8 * (bits.size - 1); bit++)
        x->key_usage |= (uint16_t)((bits.data[1 + bit / 8] >> (7 - bit % 8) & 1) << bit);
    x->has_key_usage = true;
    return x->key_usage != 0;
}

static bool parse_extended_key_usage(struct x509 *x, struct span value)
{
    struct der purposes;
    struct span purpose;
    if (!der_only(value, DER_SEQUENCE, &purposes) || der_done(&purposes))
        return false;
    while (!der_done(&purposes)) {
        if (!der_take(&purposes, DER_OID, &purpose) || !der_is_oid(purpose))
            return false;
    }
    x->extended_key_usage = value;
    return true;
}

/* What it says is looked at when it is to constrain something (x509_constraints.h), since an error in it
 * belongs to a chain. */
static bool parse_name_constraints(struct x509 *x, struct span value)
{
    x->name_constraints = value;
    return true;
}

static bool parse_subject_key_id(struct x509 *x, struct span value)
{
    struct der d = der_of(value);
    return der_take(&d, DER_OCTET_STRING, &x->subject_key_id) && der_done(&d);
}

/* Section 4.2.1.1: the issuer and its serial number are there both or not at all. */
static bool parse_authority_key_id(struct x509 *x, struct span value)
{
    struct der id;
    struct span names, serial;
    bool has_names, has_serial;
    if (!der_only(value, DER_SEQUENCE, &id))
        return false;
    if (der_next_is(&id, DER_CONTEXT(0)) && !der_take(&id, DER_CONTEXT(0), &x->authority_key_id))
        return false;
    has_names = der_next_is(&id, DER_CONTEXT_CONSTRUCTED(1));
    if (has_names && !der_take(&id, DER_CONTEXT_CONSTRUCTED(1), &names))
        return false;
    has_serial = der_next_is(&id, DER_CONTEXT(2));
    if (has_serial && (!der_take(&id, DER_CONTEXT(2), &serial) || !der_is_integer(serial)))
        return false;
    x->authority_issuer = has_names;
    return has_names == has_serial && der_done(&id);
}

/* Section 4.2.2.1. */
static bool parse_authority_access(struct x509 *x, struct span value)
{
    struct der descriptions, description;
    struct span method;
    uint8_t tag;
    if (!der_only(value, DER_SEQUENCE, &descriptions) || der_done(&descriptions))
        return false;
    while (!der_done(&descriptions)) {
        struct span location;
        if (!der_enter(&descriptions, DER_SEQUENCE, &description) ||
            !der_take(&description, DER_OID, &method) || !der_is_oid(method) ||
            !der_any(&description, &tag, &location, NULL) || !der_done(&description) ||
            !x509_general_name_valid(tag, location))
            return false;
        if (span_equal(method, span_of("\x2b\x06\x01\x05\x05\x07\x30\x02", 8)))
            x->authority_published = true;
    }
    return true;
}

/* Section 4.2.1.4: which policies count is nobody's question here, but none may be there twice. */
static bool parse_policies(struct x509 *x, struct span value)
{
    struct der policies, policy, before;
    struct span id, other, qualifiers;
    (void)x;
    if (!der_only(value, DER_SEQUENCE, &policies) || der_done(&policies))
        return false;
    before = policies;
    for (unsigned count = 0; !der_done(&policies); count++) {
        if (!der_enter(&policies, DER_SEQUENCE, &policy) || !der_take(&policy, DER_OID, &id) ||
            !der_is_oid(id) || count == 64)
            return false;
        if (!der_done(&policy) &&
            (!der_take(&policy, DER_SEQUENCE, &qualifiers) || qualifiers.size == 0 || !der_done(&policy)))
            return false;
        struct der again = before;
        for (unsigned i = 0; i < count; i++) {
            if (!der_enter(&again, DER_SEQUENCE, &policy) || !der_take(&policy, DER_OID, &other) ||
                span_equal(other, id))
                return false;
        }
    }
    return true;
}

static bool parse_sequence(struct x509 *x, struct span value)
{
    struct der inner;
    (void)x;
    return der_only(value, DER_SEQUENCE, &inner) && !der_done(&inner);
}

static bool parse_small_integer(struct x509 *x, struct span value)
{
    struct der d = der_of(value);
    int32_t number;
    (void)x;
    return der_take_small(&d, DER_INTEGER, &number) && der_done(&d);
}

static const struct {
    const char *oid; /* the content, without its NUL */
    uint8_t oid_size;
    bool (*parse)(struct x509 *x, struct span value);
} known[X509_EXTENSION_KINDS] = {
    [X509_SUBJECT_ALT_NAME] = {"\x55\x1d\x11", 3, parse_alternative_names},
    [X509_BASIC_CONSTRAINTS] = {"\x55\x1d\x13", 3, parse_basic_constraints},
    [X509_KEY_USAGE] = {"\x55\x1d\x0f", 3, parse_key_usage},
    [X509_EXTENDED_KEY_USAGE] = {"\x55\x1d\x25", 3, parse_extended_key_usage},
    [X509_NAME_CONSTRAINTS] = {"\x55\x1d\x1e", 3, parse_name_constraints},
    [X509_SUBJECT_KEY_ID] = {"\x55\x1d\x0e", 3, parse_subject_key_id},
    [X509_AUTHORITY_KEY_ID] = {"\x55\x1d\x23", 3, parse_authority_key_id},
    [X509_AUTHORITY_ACCESS] = {"\x2b\x06\x01\x05\x05\x07\x01\x01", 8, parse_authority_access},
    [X509_POLICIES] = {"\x55\x1d\x20", 3, parse_policies},
    [X509_POLICY_MAPPINGS] = {"\x55\x1d\x21", 3, parse_sequence},
    [X509_POLICY_CONSTRAINTS] = {"\x55\x1d\x24", 3, parse_sequence},
    [X509_INHIBIT_ANY_POLICY] = {"\x55\x1d\x36", 3, parse_small_integer},
};

static unsigned extension_of(struct span oid)
{
    unsigned i = 0;
    while (i < X509_EXTENSION_KINDS && !span_equal(oid, span_of(known[i].oid, known[i].oid_size)))
        i++;
    return i;
}

static bool take_extension(struct der *list, struct span *oid, bool *critical, struct span *value)
{
    struct der extension;
    return der_enter(list, DER_SEQUENCE, &extension) && der_take(&extension, DER_OID, oid) &&
           der_is_oid(*oid) && der_take_default_false(&extension, critical) &&
           der_take(&extension, DER_OCTET_STRING, value) && der_done(&extension);
}

/* Section 4.2: no extension twice. */
static bool is_repeated(struct der list, unsigned before, struct span oid)
{
    struct span other, value;
    bool critical;
    for (unsigned i = 0; i < before; i++) {
        if (!take_extension(&list, &other, &critical, &value) || span_equal(other, oid))
            return true;
    }
    return false;
}

#define EXTENSIONS_MAX 64 /* in use are ten; each is compared with all before it */

bool x509_parse_extensions(struct x509 *x, struct span extensions)
{
    struct der list, begin;
    if (!der_only(extensions, DER_SEQUENCE, &list) || der_done(&list))
        return false;
    begin = list;
    for (unsigned count = 0; !der_done(&list); count++) {
        struct span oid, value;
        bool critical;
        if (count == EXTENSIONS_MAX || !take_extension(&list, &oid, &critical, &value) ||
            is_repeated(begin, count, oid))
            return false;
        unsigned kind = extension_of(oid);
        if (kind == X509_EXTENSION_KINDS) {
            x->unknown_critical |= critical;
            continue;
        }
        x->present |= 1u << kind;
        x->critical |= (uint32_t)critical << kind;
        if (!known[kind].parse(x, value))
            return false;
    }
    return true;
}
