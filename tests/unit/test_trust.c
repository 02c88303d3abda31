/* Whom we trust, from memory, files and folders. */
#include "tests/unit/temp_directory.h"
#include "tests/unit/x509_build.h"
#include "tls/x509_dn.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static char why[300];
static unsigned passed_over;

static struct blob root_of(const char *name, uint8_t key)
{
    return built((struct spec){.subject = name, .key = key, .signer = key, .ca = true});
}

/* A new, empty directory, by its path. */
static const char *fresh(void)
{
    static char path[sizeof temp_path + 40];
    char own[40];
    int fd = temp_directory();
    snprintf(own, sizeof own, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(own, path, sizeof path - 1);
    assert_true(size > 0);
    path[size] = '\0';
    close(fd);
    return path;
}

static void write_file(const char *directory, const char *name, const char *text)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *out = fopen(path, "w");
    assert_non_null(out);
    assert_true(fputs(text, out) >= 0);
    fclose(out);
}

static void anchors_are_sorted_and_none_is_there_twice(void **state)
{
    (void)state;
    struct blob roots[] = {root_of("Z", 1), root_of("A", 2), root_of("M", 3), root_of("A", 2),
                           root_of("A", 4)};
    struct tls_trust *trust = built_trust(roots, ARRAY_SIZE(roots));
    assert_int_equal(trust->count, 4);
    for (unsigned i = 1; i < trust->count; i++)
        assert_true(x509_dn_compare(trust->anchors[i - 1].subject, trust->anchors[i].subject) <= 0);
    tls_trust_drop(trust);
}

static void anchors_are_found_by_name_all_of_them(void **state)
{
    (void)state;
    struct blob roots[] = {root_of("b", 1), root_of("B", 2), root_of("a", 3), root_of("c", 4)};
    struct tls_trust *trust = built_trust(roots, ARRAY_SIZE(roots));
    struct blob wanted = built_name(" B "), missing = built_name("bb"), last = built_name("zz");
    unsigned first;
    assert_int_equal(tls_trust_find(trust, blob_span(&wanted), &first), 2);
    assert_int_equal(first, 1);
    assert_int_equal(tls_trust_find(trust, blob_span(&missing), &first), 0);
    assert_int_equal(tls_trust_find(trust, blob_span(&last), &first), 0);
    tls_trust_drop(trust);
}

static void what_cannot_be_parsed_is_passed_over_and_counted(void **state)
{
    (void)state;
    struct blob roots[] = {root_of("a", 1), root_of("b", 2)};
    roots[0].bytes[5] ^= 0xff;
    char text[8000], *pem = built_pem(roots, 2);
    snprintf(text, sizeof text,
             "words\n-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n%s"
             "-----BEGIN CERTIFICATE-----\nMIIB",
             pem);
    struct tls_trust *trust;
    assert_int_equal(tls_trust_of(&trust, span_text(text), &passed_over, why, sizeof why), 0);
    assert_int_equal(trust->count, 1);
    assert_int_equal(passed_over, 3);
    tls_trust_drop(trust);
    free(pem);
}

static void nothing_to_trust_is_an_error(void **state)
{
    (void)state;
    struct tls_trust *trust;
    const char *directory = fresh();
    write_file(directory, "empty.pem", "");
    char path[300];
    snprintf(path, sizeof path, "%s/empty.pem", directory);
    assert_int_equal(tls_trust_of(&trust, span_text(""), &passed_over, why, sizeof why), PE_TLS_FILES);
    assert_int_equal(tls_trust_read(&trust, path, &passed_over, why, sizeof why), PE_TLS_FILES);
    assert_non_null(strstr(why, path));
    assert_int_equal(tls_trust_read(&trust, directory, &passed_over, why, sizeof why), PE_TLS_FILES);
    strcat(path, ".gone");
    assert_int_equal(tls_trust_read(&trust, path, &passed_over, why, sizeof why), -ENOENT);
    assert_non_null(strstr(why, path));
}

static void a_folder_is_all_its_files_but_hidden_ones(void **state)
{
    (void)state;
    struct blob roots[] = {root_of("a", 1), root_of("b", 2), root_of("hidden", 3)};
    const char *names[] = {"a.pem", "b.crt", ".hidden.pem"};
    const char *directory = fresh();
    char link[300];
    for (unsigned i = 0; i < 3; i++) {
        char *pem = built_pem(&roots[i], 1);
        pem[strlen(pem) - 1] = '\0'; /* its last line has no end */
        write_file(directory, names[i], pem);
        free(pem);
    }
    snprintf(link, sizeof link, "%s/again", directory);
    assert_int_equal(symlink("a.pem", link), 0);
    snprintf(link, sizeof link, "%s/nowhere", directory);
    assert_int_equal(symlink("gone.pem", link), 0);
    snprintf(link, sizeof link, "%s/folder", directory);
    assert_int_equal(mkdir(link, 0700), 0);
    struct tls_trust *trust;
    assert_int_equal(tls_trust_read(&trust, directory, &passed_over, why, sizeof why), 0);
    assert_int_equal(trust->count, 2);
    assert_int_equal(passed_over, 0);
    tls_trust_drop(trust);
}

static void a_file_of_endless_text_is_refused(void **state)
{
    (void)state;
    struct tls_trust *trust;
    const char *directory = fresh();
    char path[300];
    snprintf(path, sizeof path, "%s/large", directory);
    write_file(directory, "large", "x");
    assert_int_equal(truncate(path, 17 << 20), 0);
    assert_int_equal(tls_trust_read(&trust, path, &passed_over, why, sizeof why), -EFBIG);
}

static void it_stays_until_the_last_holder_drops_it(void **state)
{
    (void)state;
    struct blob root = root_of("a", 1);
    struct tls_trust *trust = built_trust(&root, 1);
    assert_ptr_equal(tls_trust_hold(trust), trust);
    tls_trust_drop(trust);
    assert_int_equal(trust->count, 1);
    tls_trust_drop(trust);
    tls_trust_drop(NULL);
}

static int prepare(void **state)
{
    (void)state;
    temp_make();
    return sodium_init() < 0 ? -1 : 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(anchors_are_sorted_and_none_is_there_twice),
        cmocka_unit_test(anchors_are_found_by_name_all_of_them),
        cmocka_unit_test(what_cannot_be_parsed_is_passed_over_and_counted),
        cmocka_unit_test(nothing_to_trust_is_an_error),
        cmocka_unit_test(a_folder_is_all_its_files_but_hidden_ones),
        cmocka_unit_test(a_file_of_endless_text_is_refused),
        cmocka_unit_test(it_stays_until_the_last_holder_drops_it),
    };
    return cmocka_run_group_tests(tests, prepare, NULL);
}
