/* Certificates as a peer sends them: two bytes of size before each, the leaf first, the last one an anchor.
 * Whatever they are, there is a verdict, and a certificate that is taken lies within its bytes. Signatures do
 * count, so mutations rarely lead to an anchor: each certificate is put to the checks of an issuer as well.
 */
#include "tls/x509_constraints.h"
#include "tls/x509_dn.h"
#include "tls/x509_names.h"
#include "tls/x509_profile.h"

#include <sodium.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_within(struct span whole, struct span part)
{
    assert(!part.data || (part.data >= whole.data && part.data + part.size <= whole.data + whole.size));
}

static void check_parsed(const struct x509 *x)
{
    const struct span parts[] = {x->tbs,
                                 x->signature_algorithm,
                                 x->signature,
                                 x->serial,
                                 x->issuer,
                                 x->subject,
                                 x->subject_alt_names,
                                 x->name_constraints,
                                 x->key_info,
                                 x->extended_key_usage,
                                 x->subject_key_id,
                                 x->authority_key_id};
    for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
        check_within(x->der, parts[i]);
    assert(x->version == 1 || x->version == 3);
    assert(x->path_length >= -1 && (x->is_ca || x->path_length == -1));
    assert(x509_dn_valid(x->subject) && x509_dn_compare(x->subject, x->subject) == 0);
}

static void check_rules(const struct x509 *x)
{
    struct x509_key key;
    const char *why;
    char name[32];
    unsigned budget = 1000;
    x509_dn_print(x->subject, name, sizeof name);
    for (int anchor = 0; anchor < 2; anchor++) {
        if (x509_check_ca(x, X509_SERVER, anchor, &key, &why) == 0)
            x509_signature_check(x, &key);
        x509_check_leaf(x, X509_SERVER, anchor, &why);
    }
    if (x->name_constraints.data)
        x509_constraints_check(x, x, &budget);
    x509_names_match(x, "x.a.example");
    x509_names_match(x, "192.0.2.1");
}

/* Each in memory of its size, so that a sanitizer sees what is behind it. */
static unsigned take(const uint8_t *data, size_t size, struct span chain[X509_CHAIN_MAX])
{
    unsigned count = 0;
    while (size > 2 && count < X509_CHAIN_MAX) {
        size_t want = min_size((size_t)data[0] << 8 | data[1], size - 2);
        uint8_t *copy = malloc(want ? want : 1);
        if (!copy)
            abort();
        memcpy(copy, data + 2, want);
        chain[count++] = span_of(copy, want);
        data += 2 + want;
        size -= 2 + want;
    }
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct span chain[X509_CHAIN_MAX];
    struct x509 anchor;
    struct x509_answer answer;
    if (sodium_init() < 0)
        abort();
    unsigned count = take(data, size, chain);
    for (unsigned i = 0; i < count; i++) {
        if (x509_parse(&anchor, chain[i]) == 0) {
            check_parsed(&anchor);
            check_rules(&anchor);
        }
    }
    struct tls_trust trust = {.count = 0, .anchors = &anchor};
    if (count > 0)
        trust.count = x509_parse(&anchor, chain[count - 1]) == 0;
    struct x509_question question = {
        .trust = &trust, .name = "a.example", .now_s = INT64_C(1780272000), .chain = chain, .count = count};
    int error = x509_verify(&question, &answer);
    assert(error == answer.error && (error == 0 || (error > PE_FIRST && error < PE_LAST)));
    for (unsigned i = 0; i < count; i++)
        free((void *)chain[i].data);
    return 0;
}
