/* Paths from a leaf to an anchor: which is found, what is said when there is none, and how much work it may
 * be. The kinds of certificates, one by one, are in tests/vectors/certs.json, played by build/tests/certs. */
#include "tests/unit/x509_build.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

struct chain {
    struct blob certificates[X509_CHAIN_MAX + 1];
    unsigned count;
};

static void add(struct chain *chain, struct spec spec)
{
    chain->certificates[chain->count++] = built(spec);
}

static int verify(const struct chain *chain, struct tls_trust *trust, struct x509_answer *answer)
{
    struct span spans[X509_CHAIN_MAX + 1];
    for (unsigned i = 0; i < chain->count; i++)
        spans[i] = blob_span(&chain->certificates[i]);
    struct x509_question question = {.trust = trust,
                                     .purpose = X509_SERVER,
                                     .name = "a.example",
                                     .now_s = BUILD_NOW_S,
                                     .chain = spans,
                                     .count = chain->count};
    int error = x509_verify(&question, answer);
    assert_int_equal(error, answer->error);
    assert_true(error == 0 ? answer->length > 0 : strlen(answer->detail) > 0);
    return error;
}

static struct blob root_of(const char *name, uint8_t key)
{
    return built((struct spec){.subject = name, .key = key, .signer = key, .ca = true});
}

/* The verdict on a chain with one anchor, "Org/Root" of key 1. */
static int verdict(const struct chain *chain)
{
    struct x509_answer answer;
    struct blob root = root_of("Org/Root", 1);
    struct tls_trust *trust = built_trust(&root, 1);
    int error = verify(chain, trust, &answer);
    tls_trust_drop(trust);
    return error;
}

#define LEAF(...)                                \
    (struct spec)                                \
    {                                            \
        .subject = "leaf", .key = 9, __VA_ARGS__ \
    }
#define CA(...)                 \
    (struct spec)               \
    {                           \
        .ca = true, __VA_ARGS__ \
    }

static void a_path_is_found_and_its_keys_are_told(void **state)
{
    (void)state;
    struct chain chain = {.count = 0};
    struct x509_answer answer;
    struct x509 leaf, anchor;
    struct blob root = root_of("Org/Root", 1);
    struct tls_trust *trust = built_trust(&root, 1);
    add(&chain, LEAF(.issuer = "CA", .signer = 2));
    add(&chain, CA(.subject = "CA", .issuer = "Org/Root", .key = 2, .signer = 1));
    assert_int_equal(verify(&chain, trust, &answer), 0);
    assert_int_equal(answer.length, 3);
    x509_parse(&leaf, blob_span(&chain.certificates[0]));
    x509_parse(&anchor, blob_span(&root));
    assert_true(span_equal(answer.path[0], leaf.key_info));
    assert_true(span_equal(answer.path[2], anchor.key_info));
    tls_trust_drop(trust);
}

/* Six CAs in each of many orders: the n-th permutation of the factorial number system. */
static void the_order_of_what_is_sent_means_nothing(void **state)
{
    (void)state;
    static const char *const names[] = {"Org/Root", "C1", "C2", "C3", "C4", "C5"};
    for (unsigned n = 0; n < 120; n++) {
        unsigned left[5] = {1, 2, 3, 4, 5}, number = n;
        struct chain chain = {.count = 0};
        add(&chain, LEAF(.issuer = "C5", .signer = 15));
        for (unsigned i = 5; i > 0; number /= i, i--) {
            unsigned pick = number % i, level = left[pick];
            left[pick] = left[i - 1];
            add(&chain, CA(.subject = names[level], .issuer = names[level - 1], .key = (uint8_t)(10 + level),
                           .signer = level == 1 ? 1 : (uint8_t)(9 + level)));
        }
        assert_int_equal(verdict(&chain), 0);
    }
}

static void a_dead_end_is_left_for_another_way(void **state)
{
    (void)state;
    for (unsigned first = 0; first < 2; first++) {
        struct chain chain = {.count = 0};
        add(&chain, LEAF(.issuer = "CA", .signer = 2));
        for (unsigned i = 0; i < 2; i++) {
            bool good = i == first;
            add(&chain,
                CA(.subject = "CA", .issuer = good ? "Org/Root" : "Gone", .key = 2, .signer = good ? 1 : 7));
        }
        add(&chain, CA(.subject = "Gone", .issuer = "Farther", .key = 7, .signer = 8));
        assert_int_equal(verdict(&chain), 0);
    }
}

static void what_is_missing_is_told_apart(void **state)
{
    (void)state;
    struct chain own = {.count = 0}, published = own, organization = own, unknown = own, between = own,
                 top = own;
    add(&own, LEAF(.signer = 9));
    assert_int_equal(verdict(&own), PE_CERT_SELF_SIGNED);
    add(&published, LEAF(.issuer = "CA", .signer = 2, .published = true));
    assert_int_equal(verdict(&published), PE_CERT_INCOMPLETE);
    add(&organization, LEAF(.issuer = "Org/CA", .signer = 2));
    assert_int_equal(verdict(&organization), PE_CERT_INCOMPLETE);
    add(&unknown, LEAF(.issuer = "CA", .signer = 2));
    assert_int_equal(verdict(&unknown), PE_CERT_ISSUER);
    add(&between, LEAF(.issuer = "CA", .signer = 2));
    add(&between, CA(.subject = "CA", .issuer = "Org/Other", .key = 2, .signer = 3));
    assert_int_equal(verdict(&between), PE_CERT_ISSUER);
    add(&top, LEAF(.issuer = "Top", .signer = 3));
    add(&top, CA(.subject = "Top", .key = 3, .signer = 3));
    assert_int_equal(verdict(&top), PE_CERT_ISSUER);
}

static void a_path_to_an_anchor_says_more_than_one_to_nowhere(void **state)
{
    (void)state;
    struct chain chain = {.count = 0};
    add(&chain, LEAF(.issuer = "CA", .signer = 2));
    add(&chain, CA(.subject = "CA", .issuer = "Gone", .key = 2, .signer = 7));
    add(&chain, CA(.subject = "Gone", .issuer = "Farther", .key = 7, .signer = 8));
    add(&chain, CA(.subject = "CA", .issuer = "Org/Root", .key = 2, .signer = 1, .end = "260201000000Z"));
    assert_int_equal(verdict(&chain), PE_CERT_EXPIRED);
}

static void a_wrong_signature_is_told_apart_from_another_key_of_the_name(void **state)
{
    (void)state;
    struct chain wrong = {.count = 0}, other = wrong;
    add(&wrong, LEAF(.issuer = "Org/Root", .signer = 1, .bad_signature = true));
    assert_int_equal(verdict(&wrong), PE_CERT_SIGNATURE);
    add(&other, LEAF(.issuer = "Org/Root", .signer = 5));
    assert_int_equal(verdict(&other), PE_CERT_ISSUER);
}

static void a_wrong_key_identifier_only_says_what_to_try_last(void **state)
{
    (void)state;
    struct chain chain = {.count = 0};
    add(&chain, LEAF(.issuer = "Org/Root", .signer = 1, .said_signer = 5));
    assert_int_equal(verdict(&chain), 0);
}

static void an_anchor_of_the_name_that_fails_does_not_hide_a_good_one(void **state)
{
    (void)state;
    struct chain chain = {.count = 0};
    struct x509_answer answer;
    struct blob anchors[] = {
        built((struct spec){.subject = "R", .key = 1, .signer = 1, .ca = true, .end = "260201000000Z"}),
        root_of("R", 1),
        root_of("R", 4),
        built((struct spec){.subject = "R", .key = 1, .signer = 1, .ca = true, .excluded = "example"}),
    };
    add(&chain, LEAF(.issuer = "R", .signer = 1));
    for (unsigned order = 0; order < 2; order++) {
        struct tls_trust *trust = built_trust(anchors, 4);
        assert_int_equal(verify(&chain, trust, &answer), 0);
        tls_trust_drop(trust);
        struct blob swapped = anchors[0];
        anchors[0] = anchors[3];
        anchors[3] = swapped;
    }
    anchors[1] = anchors[2];
    struct tls_trust *trust = built_trust(anchors, 4);
    assert_true(verify(&chain, trust, &answer) < 0);
    tls_trust_drop(trust);
}

static void signatures_are_tried_within_bounds(void **state)
{
    (void)state;
    struct blob anchors[X509_SIGNATURES_MAX + 1];
    struct chain chain = {.count = 0};
    struct x509_answer answer;
    for (unsigned i = 0; i < ARRAY_SIZE(anchors); i++)
        anchors[i] = root_of("R", (uint8_t)(20 + i));
    /* The key that signed is none of them; the identifier points to none either. */
    add(&chain, LEAF(.issuer = "R", .signer = 1, .said_signer = 2));
    struct tls_trust *trust = built_trust(anchors, X509_SIGNATURES_MAX);
    assert_int_equal(verify(&chain, trust, &answer), PE_CERT_ISSUER);
    tls_trust_drop(trust);
    trust = built_trust(anchors, X509_SIGNATURES_MAX + 1);
    assert_int_equal(verify(&chain, trust, &answer), PE_CERT_PATH);
    tls_trust_drop(trust);
}

/* All of one name, and each signed by any of them as far as can be seen: 15! paths. */
static void a_knot_of_cas_ends(void **state)
{
    (void)state;
    struct chain chain = {.count = 0};
    add(&chain, LEAF(.issuer = "K", .signer = 30, .said_signer = 2));
    for (unsigned i = 0; i < X509_CHAIN_MAX - 1; i++)
        add(&chain, CA(.subject = "K", .key = (uint8_t)(30 + i), .signer = (uint8_t)(30 + (i + 1) % 15),
                       .said_signer = 2));
    assert_true(verdict(&chain) < 0);
}

static void more_certificates_than_the_limit_are_refused(void **state)
{
    (void)state;
    struct chain chain = {.count = 0};
    add(&chain, LEAF(.issuer = "Org/Root", .signer = 1));
    while (chain.count < X509_CHAIN_MAX)
        add(&chain, CA(.subject = "S", .key = (uint8_t)(30 + chain.count), .signer = 3));
    assert_int_equal(verdict(&chain), 0);
    add(&chain, CA(.subject = "S", .key = 60, .signer = 3));
    assert_int_equal(verdict(&chain), PE_CERT_PATH);
}

static void nothing_sent_is_refused(void **state)
{
    (void)state;
    struct chain chain = {.count = 0};
    assert_int_equal(verdict(&chain), PE_CERT_MALFORMED);
}

static void a_server_without_a_name_is_never_believed(void **state)
{
    (void)state;
    struct blob root = root_of("Org/Root", 1), leaf = built(LEAF(.issuer = "Org/Root", .signer = 1));
    struct tls_trust *trust = built_trust(&root, 1);
    struct span span = blob_span(&leaf);
    struct x509_question question = {.trust = trust, .now_s = BUILD_NOW_S, .chain = &span, .count = 1};
    struct x509_answer answer;
    assert_int_equal(x509_verify(&question, &answer), PE_CERT_NAME);
    question.purpose = X509_CLIENT;
    assert_int_equal(x509_verify(&question, &answer), 0);
    tls_trust_drop(trust);
}

/* Each byte of the leaf, turned: it is refused, unless wolfSSL's or our own reading is at fault. */
static void no_byte_of_a_certificate_can_be_changed(void **state)
{
    (void)state;
    struct chain chain = {.count = 0};
    add(&chain, LEAF(.issuer = "Org/Root", .signer = 1));
    for (size_t i = 0; i < chain.certificates[0].size; i++) {
        chain.certificates[0].bytes[i] ^= 1;
        if (verdict(&chain) == 0)
            fail_msg("byte %zu", i);
        chain.certificates[0].bytes[i] ^= 1;
    }
    assert_int_equal(verdict(&chain), 0);
}

static void every_cut_of_a_certificate_is_malformed(void **state)
{
    (void)state;
    struct blob leaf = built(LEAF(.issuer = "Org/Root", .signer = 1));
    struct x509 x;
    assert_int_equal(x509_parse(&x, blob_span(&leaf)), 0);
    for (size_t size = 0; size < leaf.size; size++) {
        uint8_t *cut = malloc(size ? size : 1); /* of its size, so that a sanitizer sees what is behind it */
        memcpy(cut, leaf.bytes, size);
        assert_int_equal(x509_parse(&x, span_of(cut, size)), PE_CERT_MALFORMED);
        free(cut);
    }
}

static int prepare(void **state)
{
    (void)state;
    return sodium_init() < 0 ? -1 : 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_is_found_and_its_keys_are_told),
        cmocka_unit_test(the_order_of_what_is_sent_means_nothing),
        cmocka_unit_test(a_dead_end_is_left_for_another_way),
        cmocka_unit_test(what_is_missing_is_told_apart),
        cmocka_unit_test(a_path_to_an_anchor_says_more_than_one_to_nowhere),
        cmocka_unit_test(a_wrong_signature_is_told_apart_from_another_key_of_the_name),
        cmocka_unit_test(a_wrong_key_identifier_only_says_what_to_try_last),
        cmocka_unit_test(an_anchor_of_the_name_that_fails_does_not_hide_a_good_one),
        cmocka_unit_test(signatures_are_tried_within_bounds),
        cmocka_unit_test(a_knot_of_cas_ends),
        cmocka_unit_test(more_certificates_than_the_limit_are_refused),
        cmocka_unit_test(nothing_sent_is_refused),
        cmocka_unit_test(a_server_without_a_name_is_never_believed),
        cmocka_unit_test(no_byte_of_a_certificate_can_be_changed),
        cmocka_unit_test(every_cut_of_a_certificate_is_malformed),
    };
    return cmocka_run_group_tests(tests, prepare, NULL);
}
