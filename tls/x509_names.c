#include "tls/x509_names.h"

#include "tls/der.h"
#include "tls/x509_dn.h"

#include <arpa/inet.h>

#define HOST_MAX  253
#define LABEL_MAX 63

/* --- general names --- */

static bool is_printable(struct span text)
{
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] < 0x20 || text.data[i] > 0x7e)
            return false;
    }
    return text.size > 0;
}

bool x509_general_name_valid(uint8_t tag, struct span value)
{
    switch (tag) {
    case X509_RFC822_NAME:
    case X509_DNS_NAME:
    case X509_URI:
        return is_printable(value);
    case X509_IP_ADDRESS:
        return value.size == 4 || value.size == 16;
    case X509_DIRECTORY_NAME:
        return x509_dn_valid(value);
    case X509_REGISTERED_ID:
        return der_is_oid(value);
    case X509_OTHER_NAME:
    case X509_X400_ADDRESS:
    case X509_EDI_PARTY_NAME:
        return value.size > 0;
    default:
        return false;
    }
}

bool x509_general_names_valid(struct span names)
{
    struct der list;
    struct span value;
    uint8_t tag;
    if (!der_only(names, DER_SEQUENCE, &list) || der_done(&list))
        return false;
    while (!der_done(&list)) {
        if (!der_any(&list, &tag, &value, NULL) || !x509_general_name_valid(tag, value))
            return false;
    }
    return true;
}

/* --- hosts --- */

static uint8_t lower(uint8_t c)
{
    return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}

static bool is_digit(uint8_t c)
{
    return c >= '0' && c <= '9';
}

static bool in_label(uint8_t c)
{
    return is_digit(c) || (lower(c) >= 'a' && lower(c) <= 'z') || c == '-' || c == '_';
}

static bool label_valid(struct span label)
{
    if (label.size == 0 || label.size > LABEL_MAX || label.data[0] == '-' ||
        label.data[label.size - 1] == '-')
        return false;
    for (size_t i = 0; i < label.size; i++) {
        if (!in_label(label.data[i]))
            return false;
    }
    return true;
}

/* A last label that is a number, in decimal or hexadecimal, makes an address of what looks like a name. */
static bool is_number(struct span label)
{
    bool hexadecimal = label.size > 1 && label.data[0] == '0' && lower(label.data[1]) == 'x';
    for (size_t i = hexadecimal ? 2 : 0; i < label.size; i++) {
        uint8_t c = lower(label.data[i]);
        if (!is_digit(c) && !(hexadecimal && c >= 'a' && c <= 'f'))
            return false;
    }
    return true;
}

/* The label up to the next dot; `name` goes on after that dot, with data NULL after the last label. */
static struct span label_take(struct span *name)
{
    const uint8_t *dot = memchr(name->data, '.', name->size);
    size_t size = dot ? (size_t)(dot - name->data) : name->size;
    struct span label = span_of(name->data, size);
    *name = dot ? span_of(dot + 1, name->size - size - 1) : span_of(NULL, 0);
    return label;
}

bool x509_host_valid(struct span name)
{
    if (name.size == 0 || name.size > HOST_MAX)
        return false;
    for (;;) {
        struct span label = label_take(&name);
        if (!label_valid(label))
            return false;
        if (!name.data)
            return !is_number(label);
    }
}

bool x509_wildcard_valid(struct span name)
{
    if (name.size < 3 || name.size > HOST_MAX || name.data[0] != '*' || name.data[1] != '.')
        return false;
    struct span parent = span_of(name.data + 2, name.size - 2);
    return memchr(parent.data, '.', parent.size) && x509_host_valid(parent);
}

static bool equal_folded(struct span a, struct span b)
{
    if (a.size != b.size)
        return false;
    for (size_t i = 0; i < a.size; i++) {
        if (lower(a.data[i]) != lower(b.data[i]))
            return false;
    }
    return true;
}

bool x509_dns_name_matches(struct span presented, struct span host)
{
    if (!x509_host_valid(host))
        return false;
    if (x509_host_valid(presented))
        return equal_folded(presented, host);
    if (!x509_wildcard_valid(presented))
        return false;
    struct span parent = host;
    label_take(&parent);
    return parent.data && equal_folded(span_of(presented.data + 2, presented.size - 2), parent);
}

size_t x509_address_of(const char *text, uint8_t address[X509_ADDRESS_MAX])
{
    char literal[INET6_ADDRSTRLEN];
    size_t size = strlen(text);
    if (inet_pton(AF_INET, text, address) == 1)
        return 4;
    if (size > 2 && text[0] == '[' && text[size - 1] == ']') {
        text++;
        size -= 2;
    }
    if (size >= sizeof literal)
        return 0;
    memcpy(literal, text, size);
    literal[size] = 0;
    return inet_pton(AF_INET6, literal, address) == 1 ? 16 : 0;
}

/* --- whom a certificate is for --- */

typedef bool name_test(struct span presented, struct span wanted);

static bool any_name(const struct x509 *x, uint8_t kind, name_test *test, struct span wanted)
{
    struct der list;
    struct span value;
    uint8_t tag;
    if (!der_only(x->subject_alt_names, DER_SEQUENCE, &list))
        return false;
    while (der_any(&list, &tag, &value, NULL)) {
        if (tag == kind && test(value, wanted))
            return true;
    }
    return false;
}

bool x509_names_match(const struct x509 *x, const char *name)
{
    uint8_t address[X509_ADDRESS_MAX];
    size_t address_size = x509_address_of(name, address);
    if (address_size > 0)
        return any_name(x, X509_IP_ADDRESS, span_equal, span_of(address, address_size));
    struct span host = span_text(name);
    if (host.size > 0 && host.data[host.size - 1] == '.')
        host.size--;
    return any_name(x, X509_DNS_NAME, x509_dns_name_matches, host);
}
