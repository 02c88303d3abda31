#include "tls/x509_constraints.h"

#include "tls/der.h"
#include "tls/x509_dn.h"
#include "tls/x509_names.h"

struct constraints {
    struct der permitted, excluded; /* GeneralSubtrees, well-formed; empty: none */
    unsigned *budget;
};

/* --- the constraints themselves --- */

/* Ones, then zeros: RFC 4632. */
static bool is_mask(struct span mask)
{
    bool ended = false;
    for (size_t bit = 0; bit < 8 * mask.size; bit++) {
        bool one = mask.data[bit / 8] >> (7 - bit % 8) & 1;
        if (one && ended)
            return false;
        ended |= !one;
    }
    return true;
}

/* A host, or with a dot before it whatever is below the host. */
static bool is_domain(struct span base)
{
    if (base.size > 0 && base.data[0] == '.')
        base = span_of(base.data + 1, base.size - 1);
    return x509_host_valid(base);
}

static const uint8_t *at_sign(struct span text)
{
    return memrchr(text.data, '@', text.size);
}

static struct span after(struct span text, const uint8_t *sign)
{
    return span_of(sign + 1, text.size - (size_t)(sign + 1 - text.data));
}

static bool is_mailbox(struct span text)
{
    const uint8_t *at = at_sign(text);
    return at && at > text.data && x509_host_valid(after(text, at));
}

static bool base_valid(uint8_t tag, struct span base)
{
    switch (tag) {
    case X509_DNS_NAME:
        return base.size == 0 || x509_host_valid(base);
    case X509_IP_ADDRESS:
        return (base.size == 8 || base.size == 32) &&
               is_mask(span_of(base.data + base.size / 2, base.size / 2));
    case X509_RFC822_NAME:
        return is_mailbox(base) || is_domain(base);
    case X509_URI:
        return is_domain(base);
    default:
        return x509_general_name_valid(tag, base);
    }
}

/* GeneralSubtree: a base alone, since minimum has to be zero, which DER leaves out, and maximum absent. */
static bool take_subtree(struct der *subtrees, uint8_t *tag, struct span *base)
{
    struct der subtree;
    return der_enter(subtrees, DER_SEQUENCE, &subtree) && der_any(&subtree, tag, base, NULL) &&
           der_done(&subtree) && base_valid(*tag, *base);
}

/* One of the two lists, which is not empty if it is there. */
static bool take_subtrees(struct der *d, uint8_t tag, struct der *subtrees)
{
    struct span base;
    uint8_t kind;
    *subtrees = (struct der){0};
    if (!der_next_is(d, tag))
        return true;
    if (!der_enter(d, tag, subtrees) || der_done(subtrees))
        return false;
    for (struct der rest = *subtrees; !der_done(&rest);) {
        if (!take_subtree(&rest, &kind, &base))
            return false;
    }
    return true;
}

static bool parse(struct constraints *c, struct span value)
{
    struct der d;
    return der_only(value, DER_SEQUENCE, &d) && !der_done(&d) &&
           take_subtrees(&d, DER_CONTEXT_CONSTRUCTED(0), &c->permitted) &&
           take_subtrees(&d, DER_CONTEXT_CONSTRUCTED(1), &c->excluded) && der_done(&d);
}

/* --- whether a name is within a subtree --- */

static bool equal_hosts(struct span a, struct span b)
{
    return x509_host_valid(a) && x509_dns_name_matches(a, b);
}

/* Strictly below: one label or more before it. */
static bool is_below(struct span host, struct span base)
{
    if (host.size <= base.size || host.data[host.size - base.size - 1] != '.')
        return false;
    return equal_hosts(span_of(host.data + host.size - base.size, base.size), base);
}

/* A wildcard is within what all its names are within; it meets what one of them is within. */
static bool dns_within(struct span name, struct span base, bool meets)
{
    if (base.size == 0)
        return true;
    if (x509_wildcard_valid(name)) {
        if (meets && x509_dns_name_matches(name, base))
            return true;
        name = span_of(name.data + 2, name.size - 2);
    }
    return equal_hosts(name, base) || is_below(name, base);
}

static bool address_within(struct span address, struct span base)
{
    if (base.size != 2 * address.size)
        return false;
    for (size_t i = 0; i < address.size; i++) {
        if ((address.data[i] ^ base.data[i]) & base.data[address.size + i])
            return false;
    }
    return true;
}

/* Of mail addresses and URIs: the host itself, or with a dot before it what is below it. */
static bool domain_within(struct span host, struct span base)
{
    if (base.data[0] == '.')
        return is_below(host, span_of(base.data + 1, base.size - 1));
    return equal_hosts(host, base);
}

static bool mailbox_within(struct span mailbox, struct span base)
{
    const uint8_t *at = at_sign(mailbox), *base_at = at_sign(base);
    if (!base_at)
        return domain_within(after(mailbox, at), base);
    struct span local = span_of(mailbox.data, (size_t)(at - mailbox.data));
    return span_equal(local, span_of(base.data, (size_t)(base_at - base.data))) &&
           equal_hosts(after(mailbox, at), after(base, base_at));
}

/* The host of a URI with an authority (RFC 3986 section 3.2); empty: none. */
static struct span host_of_uri(struct span uri)
{
    const uint8_t *slashes = memmem(uri.data, uri.size, "://", 3);
    if (!slashes)
        return span_of(uri.data, 0);
    const uint8_t *begin = slashes + 3, *end = begin, *limit = uri.data + uri.size;
    while (end < limit && *end != '/' && *end != '?' && *end != '#')
        end++;
    const uint8_t *at = memrchr(begin, '@', (size_t)(end - begin));
    begin = at ? at + 1 : begin;
    const uint8_t *colon = memchr(begin, ':', (size_t)(end - begin));
    return span_of(begin, (size_t)((colon ? colon : end) - begin));
}

/* What cannot be compared with a constraint of its kind is not allowed where there is one. */
static bool is_comparable(uint8_t tag, struct span name)
{
    switch (tag) {
    case X509_DNS_NAME:
        return x509_host_valid(name) || x509_wildcard_valid(name);
    case X509_RFC822_NAME:
        return is_mailbox(name);
    case X509_URI:
        return x509_host_valid(host_of_uri(name));
    case X509_IP_ADDRESS:
    case X509_DIRECTORY_NAME:
        return true;
    default:
        return false;
    }
}

static bool is_within(uint8_t tag, struct span name, struct span base, bool meets)
{
    switch (tag) {
    case X509_DNS_NAME:
        return dns_within(name, base, meets);
    case X509_RFC822_NAME:
        return mailbox_within(name, base);
    case X509_URI:
        return domain_within(host_of_uri(name), base);
    case X509_IP_ADDRESS:
        return address_within(name, base);
    default:
        return x509_dn_within(name, base);
    }
}

/* --- all names of a certificate --- */

enum verdict { NO_SUBTREE, OUTSIDE, WITHIN };

/* Where `name` stands to the subtrees of its kind. */
static int look_up(const struct constraints *c, struct der subtrees, bool meets, uint8_t tag,
                   struct span name, enum verdict *verdict)
{
    struct span base;
    uint8_t kind;
    *verdict = NO_SUBTREE;
    while (*verdict != WITHIN && !der_done(&subtrees) && take_subtree(&subtrees, &kind, &base)) {
        if (*c->budget == 0)
            return PE_CERT_PATH;
        --*c->budget;
        if (kind != tag)
            continue;
        if (!is_comparable(tag, name))
            return PE_CERT_CONSTRAINTS;
        *verdict = is_within(tag, name, base, meets) ? WITHIN : OUTSIDE;
    }
    return 0;
}

static int check_name(const struct constraints *c, uint8_t tag, struct span name)
{
    enum verdict permitted, excluded;
    int error = look_up(c, c->excluded, true, tag, name, &excluded);
    if (!error)
        error = look_up(c, c->permitted, false, tag, name, &permitted);
    if (error)
        return error;
    return excluded == WITHIN || permitted == OUTSIDE ? PE_CERT_CONSTRAINTS : 0;
}

static int check_alternative_names(const struct constraints *c, const struct x509 *x)
{
    struct der list;
    struct span name;
    uint8_t tag;
    int error = 0;
    if (!der_only(x->subject_alt_names, DER_SEQUENCE, &list))
        return 0;
    while (!error && der_any(&list, &tag, &name, NULL))
        error = check_name(c, tag, name);
    return error;
}

/* Mail addresses in the subject count where there are no alternative names. */
static int check_subject_mail(const struct constraints *c, const struct x509 *x)
{
    struct x509_dn_cursor cursor = x509_dn_begin(x->subject);
    struct x509_dn_attribute attribute;
    int error = 0;
    while (!error && x509_dn_next(&cursor, &attribute)) {
        if (span_equal(attribute.type, x509_dn_email))
            error = check_name(c, X509_RFC822_NAME, attribute.value);
    }
    return error;
}

int x509_constraints_check(const struct x509 *ca, const struct x509 *x, unsigned *budget)
{
    struct constraints c = {.budget = budget};
    if (!parse(&c, ca->name_constraints))
        return PE_CERT_MALFORMED;
    int error = 0;
    if (!x509_dn_empty(x->subject))
        error = check_name(&c, X509_DIRECTORY_NAME, x->subject);
    if (!error && !x->subject_alt_names.data)
        error = check_subject_mail(&c, x);
    return error ? error : check_alternative_names(&c, x);
}
