#include "tls/x509_profile.h"

#include "tls/der.h"
#include "tls/x509_dn.h"

/* Error and reason in one expression. */
static int say(const char **why, const char *reason, int error)
{
    *why = reason;
    return error;
}

int x509_check_validity(const struct x509 *x, int64_t now_s, const char **why)
{
    if (now_s < x->not_before_s)
        return say(why, "is not yet valid", PE_CERT_NOT_YET_VALID);
    if (now_s > x->not_after_s)
        return say(why, "has expired", PE_CERT_EXPIRED);
    return 0;
}

/* --- purposes --- */

static bool has_purpose(const struct x509 *x, struct span wanted)
{
    struct der purposes;
    struct span purpose;
    bool found = false;
    if (der_only(x->extended_key_usage, DER_SEQUENCE, &purposes)) {
        while (!found && der_take(&purposes, DER_OID, &purpose))
            found = span_equal(purpose, wanted);
    }
    return found;
}

static bool has_any_purpose(const struct x509 *x)
{
    return has_purpose(x, span_of("\x55\x1d\x25\x00", 4));
}

static bool is_for(const struct x509 *x, enum x509_purpose purpose)
{
    const char *oid = purpose == X509_SERVER ? "\x2b\x06\x01\x05\x05\x07\x03\x01" /* serverAuth */
                                             : "\x2b\x06\x01\x05\x05\x07\x03\x02" /* clientAuth */;
    return has_purpose(x, span_of(oid, 8));
}

/* --- what holds for all but anchors --- */

/* Extensions whose criticality RFC 5280 fixes: sections 4.2.1.1, 4.2.1.2, 4.2.2.1, 4.2.1.11, 4.2.1.14. */
static int check_criticality(const struct x509 *x, const char **why)
{
    if (x509_is_critical(x, X509_AUTHORITY_KEY_ID) || x509_is_critical(x, X509_SUBJECT_KEY_ID) ||
        x509_is_critical(x, X509_AUTHORITY_ACCESS))
        return say(why, "has a key identifier or access information that is critical", PE_CERT_MALFORMED);
    if ((x509_has(x, X509_POLICY_CONSTRAINTS) && !x509_is_critical(x, X509_POLICY_CONSTRAINTS)) ||
        (x509_has(x, X509_INHIBIT_ANY_POLICY) && !x509_is_critical(x, X509_INHIBIT_ANY_POLICY)))
        return say(why, "has policy constraints that are not critical", PE_CERT_MALFORMED);
    return 0;
}

/* Policies are not processed. Without a policy that somebody asks for, mappings and inhibitions decide
 * nothing; constraints may ask for one. */
static int check_critical(const struct x509 *x, const char **why)
{
    if (x->unknown_critical)
        return say(why, "has a critical extension that is not understood", PE_CERT_CRITICAL);
    if (x509_is_critical(x, X509_POLICY_CONSTRAINTS))
        return say(why, "has policy constraints, which are not processed", PE_CERT_CRITICAL);
    return check_criticality(x, why);
}

/* Sections 4.1.2.2, 4.1.2.4, 4.2.1.1. */
static int check_issued(const struct x509 *x, const char **why)
{
    if (x->serial.size == 1 && x->serial.data[0] == 0)
        return say(why, "has the serial number zero", PE_CERT_MALFORMED);
    if (x509_dn_empty(x->issuer))
        return say(why, "names no issuer", PE_CERT_MALFORMED);
    if (!x->authority_key_id.data)
        return say(why, "does not say which key signed it (no authority key identifier)", PE_CERT_MALFORMED);
    return 0;
}

/* --- CAs --- */

/* An anchor that names its own issuer's key has to name its own. */
static int check_anchor(const struct x509 *x, const char **why)
{
    if (x->authority_key_id.data && x->subject_key_id.data && x509_dn_compare(x->subject, x->issuer) == 0 &&
        !span_equal(x->authority_key_id, x->subject_key_id))
        return say(why, "names another key as that which signed it", PE_CERT_MALFORMED);
    if (x->extended_key_usage.data)
        return say(why, "is a root for certain purposes only", PE_CERT_PURPOSE);
    if (x509_anchor_algorithm_check(x))
        return say(why, "is signed with an algorithm of no use", PE_CERT_ALGORITHM);
    return 0;
}

static int check_intermediate(const struct x509 *x, enum x509_purpose purpose, const char **why)
{
    if (!x509_is_critical(x, X509_BASIC_CONSTRAINTS))
        return say(why, "has basic constraints that are not critical", PE_CERT_MALFORMED);
    if (!x->subject_key_id.data)
        return say(why, "does not say which key it has (no subject key identifier)", PE_CERT_MALFORMED);
    if (x->extended_key_usage.data && !is_for(x, purpose) && !has_any_purpose(x))
        return say(why, "is a CA's for other purposes", PE_CERT_PURPOSE);
    return check_issued(x, why);
}

int x509_check_ca(const struct x509 *x, enum x509_purpose purpose, bool anchor, struct x509_key *key,
                  const char **why)
{
    int error = check_critical(x, why);
    if (error)
        return error;
    if (!x->is_ca)
        return say(why, "is not a CA's", PE_CERT_NOT_CA);
    if (x->has_key_usage && !(x->key_usage & X509_KEY_CERT_SIGN))
        return say(why, "may not sign certificates", PE_CERT_NOT_CA);
    if (x509_dn_empty(x->subject))
        return say(why, "is a CA's without a name", PE_CERT_MALFORMED);
    error = x509_key_parse(key, x->key_info);
    if (error)
        return say(why, error == PE_CERT_WEAK_KEY ? "has a weak key" : "has a key of no use", error);
    return anchor ? check_anchor(x, why) : check_intermediate(x, purpose, why);
}

/* --- leaves --- */

/* Without an extended key usage a certificate is for every purpose (RFC 5280 section 4.2.1.12). With one,
 * anyExtendedKeyUsage does not stand for a server's, as on the Web. All key exchanges here are signed. */
static int check_purpose(const struct x509 *x, enum x509_purpose purpose, const char **why)
{
    if (x->extended_key_usage.data && !is_for(x, purpose))
        return say(why,
                   purpose == X509_SERVER ? "is not for servers (extended key usage)"
                                          : "is not for clients (extended key usage)",
                   PE_CERT_PURPOSE);
    if (x509_is_critical(x, X509_EXTENDED_KEY_USAGE))
        return say(why, "has an extended key usage that is critical", PE_CERT_MALFORMED);
    if (x->has_key_usage && !(x->key_usage & X509_DIGITAL_SIGNATURE))
        return say(why, "may not sign handshakes (key usage)", PE_CERT_PURPOSE);
    return 0;
}

/* Section 4.2.1.6: alternative names are critical where they stand for the subject, and only there. */
static int check_subject(const struct x509 *x, const char **why)
{
    bool stand_alone = x509_dn_empty(x->subject);
    if (x->subject_alt_names.data && x509_is_critical(x, X509_SUBJECT_ALT_NAME) != stand_alone)
        return say(why,
                   stand_alone ? "has no subject, and alternative names that are not critical"
                               : "has a subject, and alternative names that are critical",
                   PE_CERT_MALFORMED);
    return 0;
}

/* Sections 4.2.1.3, 4.2.1.9, 4.2.1.10: what only CAs may have. */
static int check_no_ca(const struct x509 *x, const char **why)
{
    if (x->is_ca)
        return say(why, "is a CA's", PE_CERT_IS_CA);
    if (x->key_usage & X509_KEY_CERT_SIGN)
        return say(why, "may sign certificates, and is not a CA's", PE_CERT_MALFORMED);
    if (x->name_constraints.data)
        return say(why, "has name constraints, and is not a CA's", PE_CERT_MALFORMED);
    return 0;
}

int x509_check_leaf(const struct x509 *x, enum x509_purpose purpose, bool trusted, const char **why)
{
    struct x509_key key;
    int error = check_critical(x, why);
    if (error)
        return error;
    if (x->version != 3)
        return say(why, "is of version 1, which has no alternative names", PE_CERT_MALFORMED);
    error = x509_key_parse(&key, x->key_info);
    if (error)
        return say(why, error == PE_CERT_WEAK_KEY ? "has a weak key" : "has a key of no use", error);
    if (!trusted) {
        error = check_no_ca(x, why);
        if (!error)
            error = check_issued(x, why);
        if (error)
            return error;
    }
    error = check_subject(x, why);
    return error ? error : check_purpose(x, purpose, why);
}
