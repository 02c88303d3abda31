/* Whom a certificate is for: RFC 9525 (6125), and the GeneralNames of RFC 5280 section 4.2.1.6. */
#ifndef PURE_TLS_X509_NAMES_H
#define PURE_TLS_X509_NAMES_H

#include "tls/x509.h"

/* Tags of the GeneralNames that are looked at; the context-specific numbers of section 4.2.1.6. */
enum x509_general_name {
    X509_OTHER_NAME = 0xa0,
    X509_RFC822_NAME = 0x81,
    X509_DNS_NAME = 0x82,
    X509_X400_ADDRESS = 0xa3,
    X509_DIRECTORY_NAME = 0xa4,
    X509_EDI_PARTY_NAME = 0xa5,
    X509_URI = 0x86,
    X509_IP_ADDRESS = 0x87,
    X509_REGISTERED_ID = 0x88
};

#define X509_ADDRESS_MAX 16

/* One name as it stands in an alternative name: printable ASCII, an address of 4 or 16 bytes, a Name. */
bool x509_general_name_valid(uint8_t tag, struct span value);
/* GeneralNames, whole: a SEQUENCE of one or more such names. */
bool x509_general_names_valid(struct span names);

/* A host name: labels of letters, digits, hyphens and underscores, of 1 to 63 characters and not beginning or
 * ending with a hyphen; 253 in all; the last one not a number, which is of an address; no dot at its end. */
bool x509_host_valid(struct span name);
/* A host name whose leftmost label is exactly `*`, with two labels or more after it. */
bool x509_wildcard_valid(struct span name);
/* Whether a dNSName of a certificate, a host name or a wildcard, is for this host. Anything else never is. */
bool x509_dns_name_matches(struct span presented, struct span host);
/* An address literal of either family, IPv6 with or without brackets: its bytes, 4 or 16; 0: none. */
size_t x509_address_of(const char *text, uint8_t address[X509_ADDRESS_MAX]);

/* Whether the certificate is for `name`, a host or an address. By alternative names alone: a common name is
 * never an identity (RFC 9525 section 2). */
bool x509_names_match(const struct x509 *x, const char *name);

#endif
