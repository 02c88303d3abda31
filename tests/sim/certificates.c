#include "tests/sim/certificates.h"

#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define NOT_BEFORE_S INT64_C(1577836800) /* 2020-01-01 */
#define NOT_AFTER_S  INT64_C(2524607999) /* 2049-12-31 */
#define FILES_MAX    1024

static EVP_PKEY *make_key(enum test_key kind)
{
    switch (kind) {
    case TEST_P256:
        return EVP_EC_gen("P-256");
    case TEST_RSA2048:
        return EVP_RSA_gen(2048);
    case TEST_ED25519:
        return EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
    case TEST_P521:
        return EVP_EC_gen("P-521");
    }
    return NULL;
}

static void add(X509 *x, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX context;
    X509V3_set_ctx(&context, issuer, x, NULL, NULL, 0);
    X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, nid, value);
    assert(extension && X509_add_ext(x, extension, -1));
    X509_EXTENSION_free(extension);
}

static void add_unknown(X509 *x, const char *oid)
{
    ASN1_OBJECT *object = OBJ_txt2obj(oid, 1);
    ASN1_OCTET_STRING *value = ASN1_OCTET_STRING_new();
    assert(object && ASN1_OCTET_STRING_set(value, (const uint8_t *)"\x05\x00", 2));
    X509_EXTENSION *extension = X509_EXTENSION_create_by_OBJ(NULL, object, 1, value);
    assert(extension && X509_add_ext(x, extension, -1));
    X509_EXTENSION_free(extension);
    ASN1_OCTET_STRING_free(value);
    ASN1_OBJECT_free(object);
}

static void set_name(X509 *x, const char *common_name)
{
    X509_NAME *name = X509_get_subject_name(x);
    assert(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const uint8_t *)common_name, -1, -1, 0));
}

static void add_extensions(X509 *x, X509 *issuer, const struct test_certificate_options *o)
{
    add(x, issuer, NID_basic_constraints, o->ca ? "critical,CA:TRUE" : "critical,CA:FALSE");
    add(x, issuer, NID_key_usage, o->ca ? "critical,keyCertSign,cRLSign" : "critical,digitalSignature");
    add(x, issuer, NID_subject_key_identifier, "hash");
    if (issuer != x)
        add(x, issuer, NID_authority_key_identifier, "keyid:always");
    if (!o->ca)
        add(x, issuer, NID_ext_key_usage, o->purpose ? o->purpose : "serverAuth,clientAuth");
    if (o->names)
        add(x, issuer, NID_subject_alt_name, o->names);
    if (o->authority)
        add(x, issuer, NID_info_access, o->authority);
    if (o->critical)
        add_unknown(x, o->critical);
}

struct test_certificate *test_certificate(const struct test_certificate_options *o)
{
    static long serial = 0x1000;
    struct test_certificate *c = calloc(1, sizeof *c);
    EVP_PKEY *key = make_key(o->key);
    X509 *x = X509_new();
    assert(c && key && x && X509_set_version(x, X509_VERSION_3));
    X509 *issuer = o->issuer ? o->issuer->x509 : x;
    EVP_PKEY *signer = o->issuer ? o->issuer->key : key;
    ASN1_INTEGER_set(X509_get_serialNumber(x), ++serial);
    set_name(x, o->subject);
    X509_set_issuer_name(x, X509_get_subject_name(issuer));
    ASN1_TIME_set(X509_getm_notBefore(x), o->not_before_s ? o->not_before_s : NOT_BEFORE_S);
    ASN1_TIME_set(X509_getm_notAfter(x), o->not_after_s ? o->not_after_s : NOT_AFTER_S);
    X509_set_pubkey(x, key);
    add_extensions(x, issuer, o);
    assert(X509_sign(x, signer, EVP_PKEY_is_a(signer, "ED25519") ? NULL : EVP_sha256()));
    c->x509 = x;
    c->key = key;
    c->der_size = (size_t)i2d_X509(x, &c->der);
    return c;
}

void test_certificate_free(struct test_certificate *c)
{
    if (!c)
        return;
    X509_free(c->x509);
    EVP_PKEY_free(c->key);
    OPENSSL_free(c->der);
    free(c);
}

/* --- files of memory --- */

static int descriptors[FILES_MAX];
static char paths[FILES_MAX][32];
static unsigned file_count;

const char *test_file(struct span content)
{
    assert(file_count < FILES_MAX);
    int fd = memfd_create("pure", MFD_CLOEXEC);
    assert(fd >= 0 && write(fd, content.data, content.size) == (ssize_t)content.size);
    descriptors[file_count] = fd;
    snprintf(paths[file_count], sizeof paths[0], "/proc/self/fd/%d", fd);
    return paths[file_count++];
}

static const char *file_of(BIO *bio)
{
    char *text;
    long size = BIO_get_mem_data(bio, &text);
    const char *path = test_file(span_of(text, (size_t)size));
    BIO_free(bio);
    return path;
}

const char *test_chain_file(const struct test_certificate *const *chain, unsigned count)
{
    BIO *bio = BIO_new(BIO_s_mem());
    for (unsigned i = 0; i < count; i++)
        assert(PEM_write_bio_X509(bio, chain[i]->x509));
    return file_of(bio);
}

const char *test_key_file(const struct test_certificate *c)
{
    BIO *bio = BIO_new(BIO_s_mem());
    assert(PEM_write_bio_PrivateKey(bio, c->key, NULL, NULL, 0, NULL, NULL));
    return file_of(bio);
}

void test_files_close(void)
{
    while (file_count > 0)
        close(descriptors[--file_count]);
}
