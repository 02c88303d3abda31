/* Host names, wildcards and addresses of certificates (RFC 9525), and distinguished names (RFC 5280 7.1). */
#include "tests/unit/x509_build.h"
#include "tls/x509_dn.h"
#include "tls/x509_names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void a_dns_name_matches_to_the_letter(void **state)
{
    (void)state;
    static const struct {
        const char *presented, *host;
        bool matches;
    } rows[] = {
        {"a.example", "a.example", true},
        {"A.Example", "a.eXample", true},
        {"a.example", "b.example", false},
        {"a.example", "x.a.example", false},
        {"x.a.example", "a.example", false},
        {"localhost", "localhost", true},
        {"my_app.example", "my_app.example", true},
        {"a.example.", "a.example", false},
        {".a.example", "x.a.example", false},
        {"a..example", "a..example", false},
        {"-a.example", "-a.example", false},
        {"a-.example", "a-.example", false},
        {"a b.example", "a b.example", false},
        {"", "", false},
        {"*.a.example", "x.a.example", true},
        {"*.a.example", "xn--bcher-kva.a.example", true},
        {"*.a.example", "a.example", false},
        {"*.a.example", ".a.example", false},
        {"*.a.example", "x.y.a.example", false},
        {"*.a.example", "*.a.example", false},
        {"*.example", "a.example", false},
        {"*", "localhost", false},
        {"*", "a.example", false},
        {"*.", "a.", false},
        {"*a.b.example", "xa.b.example", false},
        {"a*.b.example", "ax.b.example", false},
        {"**.b.example", "x.b.example", false},
        {"x.*.example", "x.y.example", false},
        {"*.*.example", "x.y.example", false},
        {"xn--*.b.example", "xn--x.b.example", false},
        {"192.0.2.1", "192.0.2.1", false},
        {"*.0.2.1", "192.0.2.1", false},
        {"a.0x7f", "a.0x7f", false},
        {"a.x7f", "a.x7f", true},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        if (x509_dns_name_matches(span_text(rows[i].presented), span_text(rows[i].host)) != rows[i].matches)
            fail_msg("%s for %s", rows[i].presented, rows[i].host);
    }
}

static void labels_and_names_have_their_lengths(void **state)
{
    (void)state;
    char name[300];
    memset(name, 'a', sizeof name);
    assert_true(x509_host_valid(span_of(name, 63)));
    assert_false(x509_host_valid(span_of(name, 64)));
    for (size_t i = 50; i < sizeof name; i += 51)
        name[i] = '.';
    assert_true(x509_host_valid(span_of(name, 253)));
    assert_false(x509_host_valid(span_of(name, 254)));
}

static void addresses_are_literals_of_either_family(void **state)
{
    (void)state;
    uint8_t address[X509_ADDRESS_MAX];
    assert_int_equal(x509_address_of("192.0.2.1", address), 4);
    assert_memory_equal(address, "\xc0\x00\x02\x01", 4);
    assert_int_equal(x509_address_of("::1", address), 16);
    assert_int_equal(x509_address_of("[::1]", address), 16);
    assert_int_equal(x509_address_of("[192.0.2.1]", address), 0);
    assert_int_equal(x509_address_of("192.0.2", address), 0);
    assert_int_equal(x509_address_of("a.example", address), 0);
    assert_int_equal(x509_address_of("", address), 0);
    assert_int_equal(x509_address_of("[]", address), 0);
}

static struct blob name_of(uint8_t tag, const char *value)
{
    struct blob oid = element(DER_OID, blob_of("\x55\x04\x03", 3));
    struct blob pair = element(DER_SEQUENCE, joined(oid, text_element(tag, value)));
    return element(DER_SEQUENCE, element(DER_SET, pair));
}

static void case_spaces_and_string_types_of_names_do_not_count(void **state)
{
    (void)state;
    static const struct {
        uint8_t a_tag;
        const char *a;
        uint8_t b_tag;
        const char *b;
        bool equal;
    } rows[] = {
        {DER_UTF8, "Some CA", DER_UTF8, "Some CA", true},
        {DER_UTF8, "Some CA", DER_PRINTABLE, "some ca", true},
        {DER_UTF8, "  Some   CA ", DER_UTF8, "Some CA", true},
        {DER_UTF8, "SomeCA", DER_UTF8, "Some CA", false},
        {DER_UTF8, "Some CA", DER_UTF8, "Some CA 2", false},
        {DER_UTF8, "", DER_UTF8, "  ", true},
        {DER_UTF8, "x", DER_UTF8, "", false},
        {DER_IA5, "Some CA", DER_IA5, "some CA", false},
        {DER_IA5, "Some CA", DER_UTF8, "Some CA", false},
    };
    for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
        struct blob a = name_of(rows[i].a_tag, rows[i].a), b = name_of(rows[i].b_tag, rows[i].b);
        int order = x509_dn_compare(blob_span(&a), blob_span(&b));
        int back = x509_dn_compare(blob_span(&b), blob_span(&a));
        if ((order == 0) != rows[i].equal || (order < 0) != (back > 0))
            fail_msg("\"%s\" and \"%s\"", rows[i].a, rows[i].b);
    }
}

static void a_name_is_within_what_it_begins_with(void **state)
{
    (void)state;
    struct blob whole = built_name("Acme/service"), other = built_name("Other/service");
    struct blob base = element(DER_SEQUENCE, blob_of(whole.bytes + 2, 2u + whole.bytes[3]));
    struct blob nothing = element(DER_SEQUENCE, blob_of("", 0));
    assert_true(x509_dn_valid(blob_span(&base)));
    assert_true(x509_dn_within(blob_span(&whole), blob_span(&base)));
    assert_true(x509_dn_within(blob_span(&whole), blob_span(&whole)));
    assert_true(x509_dn_within(blob_span(&whole), blob_span(&nothing)));
    assert_false(x509_dn_within(blob_span(&base), blob_span(&whole)));
    assert_false(x509_dn_within(blob_span(&other), blob_span(&base)));
}

static void a_printed_name_is_short_and_printable(void **state)
{
    (void)state;
    char text[12];
    struct blob name = name_of(DER_UTF8, "a\n\"b\"\xc3\xbc and more of it");
    x509_dn_print(blob_span(&name), text, sizeof text);
    assert_string_equal(text, "a??b??? and");
    struct blob nothing = element(DER_SEQUENCE, blob_of("", 0));
    x509_dn_print(blob_span(&nothing), text, sizeof text);
    assert_string_equal(text, "(no name)");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_dns_name_matches_to_the_letter),
        cmocka_unit_test(labels_and_names_have_their_lengths),
        cmocka_unit_test(addresses_are_literals_of_either_family),
        cmocka_unit_test(case_spaces_and_string_types_of_names_do_not_count),
        cmocka_unit_test(a_name_is_within_what_it_begins_with),
        cmocka_unit_test(a_printed_name_is_short_and_printable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
