/* Certificates for tests of TLS: keys and chains made on the spot by OpenSSL, which shares no code with what
 * is tested, as files that are only memory. */
#ifndef PURE_TESTS_SIM_CERTIFICATES_H
#define PURE_TESTS_SIM_CERTIFICATES_H

#include "core/bytes.h"

enum test_key { TEST_P256, TEST_RSA2048, TEST_ED25519, TEST_P521 };

/* What a certificate says; of zeros but for the subject it is a server's, valid for the years 2020 to 2049,
 * signed by itself. */
struct test_certificate_options {
    const char *subject; /* the common name */
    const char *names;   /* subjectAltName as OpenSSL writes it: "DNS:a.example,IP:10.0.0.1"; NULL: none */
    enum test_key key;
    bool ca;
    const struct test_certificate *issuer; /* NULL: itself */
    const char *purpose;                   /* extendedKeyUsage; NULL: serverAuth,clientAuth; not for CAs */
    int64_t not_before_s, not_after_s;     /* 0: as above */
    const char *authority;                 /* authorityInfoAccess, "caIssuers;URI:http://…"; NULL: none */
    const char *critical;                  /* OID of a critical extension that nobody knows; NULL: none */
};

struct test_certificate {
    void *x509, *key; /* OpenSSL's */
    uint8_t *der;
    size_t der_size;
};

struct test_certificate *test_certificate(const struct test_certificate_options *options);
void test_certificate_free(struct test_certificate *c);

/* The path of a file of memory with what is given; it is there until the process ends, or test_file_close. */
const char *test_chain_file(const struct test_certificate *const *chain, unsigned count);
const char *test_key_file(const struct test_certificate *c);
const char *test_file(struct span content);
void test_files_close(void); /* all of them */

#endif
