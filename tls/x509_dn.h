/* Distinguished names: RFC 5280 sections 4.1.2.4 and 7.1. Compared as section 7.1 wants it for the strings in
 * use: case of ASCII letters, and spaces, do not count, nor whether a string is UTF8String or
 * PrintableString. All other values are compared byte by byte. */
#ifndef PURE_TLS_X509_DN_H
#define PURE_TLS_X509_DN_H

#include "core/bytes.h"

/* `name` is one Name, whole: RDNs that are not empty, of attributes with a value each. May have no RDN. */
bool x509_dn_valid(struct span name);
bool x509_dn_empty(struct span name);
/* Orders valid names: below, equal to or above zero. */
int x509_dn_compare(struct span a, struct span b);
/* Whether the RDNs of `base` are the first ones of `name`. */
bool x509_dn_within(struct span name, struct span base);

/* The attributes of a valid name, one after the other. */
struct x509_dn_attribute {
    struct span type; /* the OID's content */
    uint8_t tag;
    struct span value;
};
struct x509_dn_cursor {
    struct span rdns, attributes; /* what is left of the name, and of its current RDN */
};
struct x509_dn_cursor x509_dn_begin(struct span name);
bool x509_dn_next(struct x509_dn_cursor *cursor, struct x509_dn_attribute *attribute);

extern const struct span x509_dn_common_name, x509_dn_organization, x509_dn_email;
/* The first attribute of this type; false: there is none. */
bool x509_dn_find(struct span name, struct span type, struct x509_dn_attribute *attribute);
/* For people: its common name, or organisation, or "(no name)". Printable ASCII, NUL-terminated. */
void x509_dn_print(struct span name, char *text, size_t size);

#endif
