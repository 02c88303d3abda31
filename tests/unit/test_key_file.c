/* Key files: made once, read back, and each one that must not be used refused by its name. */
#include "host/key_file.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define SECRET "rP0ZnVoGHzzuA/Wt7L1+CGwKkUBGelO8eG58mbiCIe4="
#define LINE   HOST_KEY_PRIVATE_PREFIX SECRET
#define PUBLIC "PHeMdsnWZDJDbb7qWMobcZRzbIG/L3IcSe79r0PyFhg="

struct place {
    char directory[32], path[64], why[512];
};

static void make_place(struct place *p)
{
    strcpy(p->directory, "test-key-file-XXXXXX");
    assert_non_null(mkdtemp(p->directory));
    snprintf(p->path, sizeof(p->path), "%s/host.key", p->directory);
    p->why[0] = '\0';
}

static void remove_place(struct place *p)
{
    unlink(p->path);
    assert_int_equal(rmdir(p->directory), 0);
}

static void write_file(const struct place *p, const char *bytes, size_t size, mode_t mode)
{
    int fd = open(p->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, size), (ssize_t)size);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

static void fill(void *context, void *bytes, size_t size)
{
    memset(bytes, *(const int *)context, size);
}

static bool is_zero(const struct host_key *key)
{
    return sodium_is_zero((const uint8_t *)key, sizeof(*key)) == 1;
}

/* --- making --- */

static void a_new_key_is_one_line_of_mode_600_and_reads_back(void **state)
{
    (void)state;
    struct place p;
    make_place(&p);
    int seed = 9;
    const struct noise_random random = {fill, &seed};
    uint8_t public[LINK_KEY_BYTES];
    mode_t mask = umask(0);
    assert_int_equal(key_file_new(p.path, &random, public, p.why, sizeof(p.why)), 0);
    umask(mask);
    struct stat file;
    assert_int_equal(stat(p.path, &file), 0);
    assert_int_equal(file.st_mode & 07777, 0600);
    assert_int_equal(file.st_size, HOST_KEY_PRIVATE_TEXT); /* its newline in the place of the NUL */
    char text[HOST_KEY_PRIVATE_TEXT], wanted[HOST_KEY_PRIVATE_TEXT];
    int fd = open(p.path, O_RDONLY | O_CLOEXEC);
    assert_int_equal(read(fd, text, sizeof(text)), (ssize_t)sizeof(text));
    close(fd);
    struct host_key key;
    assert_int_equal(key_file_read(p.path, &key, p.why, sizeof(p.why)), 0);
    assert_memory_equal(key.public, public, sizeof(public));
    host_key_private_text(&key, wanted);
    assert_memory_equal(text, wanted, sizeof(text) - 1);
    assert_int_equal(text[sizeof(text) - 1], '\n');
    remove_place(&p);
}

static void a_key_is_never_replaced(void **state)
{
    (void)state;
    struct place p;
    make_place(&p);
    int seed = 1;
    const struct noise_random random = {fill, &seed};
    uint8_t first[LINK_KEY_BYTES], second[LINK_KEY_BYTES];
    assert_int_equal(key_file_new(p.path, &random, first, p.why, sizeof(p.why)), 0);
    seed = 2;
    assert_int_equal(key_file_new(p.path, &random, second, p.why, sizeof(p.why)), -EEXIST);
    char wanted[300];
    snprintf(
        wanted, sizeof(wanted),
        "%s: cannot be made: File exists: a key is never replaced: remove it first, or take another name",
        p.path);
    assert_string_equal(p.why, wanted);
    struct host_key key;
    assert_int_equal(key_file_read(p.path, &key, p.why, sizeof(p.why)), 0);
    assert_memory_equal(key.public, first, sizeof(first));
    /* nor is what a link leads to */
    unlink(p.path);
    assert_int_equal(symlink("elsewhere", p.path), 0);
    assert_int_equal(key_file_new(p.path, &random, second, p.why, sizeof(p.why)), -EEXIST);
    remove_place(&p);
}

static void a_key_that_cannot_be_made_leaves_nothing(void **state)
{
    (void)state;
    int seed = 1;
    const struct noise_random random = {fill, &seed};
    uint8_t public[LINK_KEY_BYTES];
    char why[512];
    assert_int_equal(key_file_new("nonexistent/host.key", &random, public, why, sizeof(why)), -ENOENT);
    assert_string_equal(why, "nonexistent/host.key: cannot be made: No such file or directory");
}

/* --- reading --- */

static void white_space_around_a_key_is_no_part_of_it(void **state)
{
    (void)state;
    static const char *const texts[] = {LINE, LINE "\n", LINE "\r\n", "\n " LINE " \n\n"};
    struct place p;
    make_place(&p);
    for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
        struct host_key key;
        char text[HOST_KEY_PUBLIC_TEXT];
        write_file(&p, texts[i], strlen(texts[i]), 0600);
        assert_int_equal(key_file_read(p.path, &key, p.why, sizeof(p.why)), 0);
        host_key_public_text(key.public, text);
        assert_string_equal(text, PUBLIC);
    }
    remove_place(&p);
}

static const struct {
    const char *text;
    mode_t mode;
    const char *why; /* behind the path */
} refused[] = {
    {LINE, 0640, ": others than its owner have access to it (mode 640): chmod 600 "},
    {LINE, 0604, ": others than its owner have access to it (mode 604): chmod 600 "},
    {LINE, 0620, ": others than its owner have access to it (mode 620): chmod 600 "},
    {LINE, 0610, ": others than its owner have access to it (mode 610): chmod 600 "},
    {"", 0600,
     ": holds no host key, or a damaged one: restore it, or make another with 'pure-host key new FILE'"},
    {HOST_KEY_PRIVATE_PREFIX "rP0ZnVoGHzzuA/Wt7L1+CGwKkUBGelO8eG58mbiCIe4\n", 0600,
     ": holds no host key, or a damaged one: restore it, or make another with 'pure-host key new FILE'"},
    {LINE "\n" LINE "\n", 0600,
     ": holds no host key, or a damaged one: restore it, or make another with 'pure-host key new FILE'"},
    {PUBLIC "\n", 0600,
     ": holds a public key, or one without its 'pure-host-private-key:': name the file that 'pure-host key "
     "new' made"},
    {SECRET "\n", 0600,
     ": holds a public key, or one without its 'pure-host-private-key:': name the file that 'pure-host key "
     "new' made"},
};

static void what_must_not_be_used_is_refused_without_a_word_of_its_content(void **state)
{
    (void)state;
    struct place p;
    make_place(&p);
    for (size_t i = 0; i < ARRAY_SIZE(refused); i++) {
        struct host_key key;
        memset(&key, 1, sizeof(key));
        write_file(&p, refused[i].text, strlen(refused[i].text), refused[i].mode);
        assert_int_equal(key_file_read(p.path, &key, p.why, sizeof(p.why)), PE_CONFIG);
        char wanted[300];
        int size = snprintf(wanted, sizeof(wanted), "%s%s", p.path, refused[i].why);
        assert_int_equal(strncmp(p.why, wanted, (size_t)size), 0);
        assert_null(strstr(p.why, "rP0ZnVo"));
        assert_null(strstr(p.why, "PHeMdsn"));
        assert_true(is_zero(&key));
    }
    remove_place(&p);
}

static void the_size_of_a_key_file_is_limited(void **state)
{
    (void)state;
    struct place p;
    struct host_key key;
    char bytes[KEY_FILE_MAX + 1];
    make_place(&p);
    memset(bytes, '\n', sizeof(bytes));
    memcpy(bytes, LINE, strlen(LINE));
    write_file(&p, bytes, KEY_FILE_MAX, 0600);
    assert_int_equal(key_file_read(p.path, &key, p.why, sizeof(p.why)), 0);
    write_file(&p, bytes, KEY_FILE_MAX + 1, 0600);
    assert_int_equal(key_file_read(p.path, &key, p.why, sizeof(p.why)), PE_CONFIG);
    assert_non_null(strstr(p.why, ": is larger than 4096 bytes and no host key: name the right file"));
    assert_true(is_zero(&key));
    remove_place(&p);
}

static void what_is_no_file_is_refused_and_not_waited_for(void **state)
{
    (void)state;
    struct place p;
    struct host_key key;
    make_place(&p);
    assert_int_equal(key_file_read(p.path, &key, p.why, sizeof(p.why)), PE_CONFIG);
    assert_non_null(strstr(
        p.why,
        "/host.key: cannot be read: No such file or directory: make a key with 'pure-host key new FILE'"));
    assert_int_equal(mkfifo(p.path, 0600), 0);
    alarm(20); /* nobody will ever write */
    assert_int_equal(key_file_read(p.path, &key, p.why, sizeof(p.why)), PE_CONFIG);
    alarm(0);
    assert_non_null(strstr(p.why, ": is no regular file: name that of a host key"));
    assert_int_equal(key_file_read(p.directory, &key, p.why, sizeof(p.why)), PE_CONFIG);
    assert_non_null(strstr(p.why, ": is no regular file: name that of a host key"));
    remove_place(&p);
}

static void systemd_sees_to_the_modes_of_its_credentials(void **state)
{
    (void)state;
    struct place p;
    struct host_key key;
    char around[300];
    make_place(&p);
    write_file(&p, LINE, strlen(LINE), 0440);
    setenv("CREDENTIALS_DIRECTORY", p.directory, 1);
    assert_int_equal(key_file_read(p.path, &key, p.why, sizeof(p.why)), 0);
    snprintf(around, sizeof(around), "%s/../%s", p.directory,
             p.path); /* out of it, and into what it may be */
    assert_int_equal(key_file_read(around, &key, p.why, sizeof(p.why)), PE_CONFIG);
    setenv("CREDENTIALS_DIRECTORY", "test-key-fil", 1); /* a part of the name is not the directory */
    assert_int_equal(key_file_read(p.path, &key, p.why, sizeof(p.why)), PE_CONFIG);
    setenv("CREDENTIALS_DIRECTORY", "", 1);
    assert_int_equal(key_file_read(p.path, &key, p.why, sizeof(p.why)), PE_CONFIG);
    unsetenv("CREDENTIALS_DIRECTORY");
    assert_int_equal(key_file_read(p.path, &key, p.why, sizeof(p.why)), PE_CONFIG);
    remove_place(&p);
}

static void the_configuration_s_key_is_found_wherever_it_is(void **state)
{
    (void)state;
    struct place p;
    struct host_key key;
    char text[HOST_KEY_PUBLIC_TEXT];
    make_place(&p);
    write_file(&p, LINE "\n", strlen(LINE) + 1, 0600);
    const struct config of_file = {.path = (char *)"x.conf", .key_path = p.path};
    const struct config of_text = {.path = (char *)"x.conf", .key_text = (char *)LINE};
    const struct config of_none = {.path = (char *)"x.conf"};
    assert_int_equal(key_file_of_config(&of_file, &key, p.why, sizeof(p.why)), 0);
    host_key_public_text(key.public, text);
    assert_string_equal(text, PUBLIC);
    assert_int_equal(key_file_of_config(&of_text, &key, p.why, sizeof(p.why)), 0);
    host_key_public_text(key.public, text);
    assert_string_equal(text, PUBLIC);
    assert_int_equal(key_file_of_config(&of_none, &key, p.why, sizeof(p.why)), PE_CONFIG);
    assert_string_equal(p.why, "x.conf: [host] has no key: add key = FILE");
    assert_true(is_zero(&key));
    remove_place(&p);
}

static int start_sodium(void **state)
{
    (void)state;
    return sodium_init() < 0 ? -1 : 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_key_is_one_line_of_mode_600_and_reads_back),
        cmocka_unit_test(a_key_is_never_replaced),
        cmocka_unit_test(a_key_that_cannot_be_made_leaves_nothing),
        cmocka_unit_test(white_space_around_a_key_is_no_part_of_it),
        cmocka_unit_test(what_must_not_be_used_is_refused_without_a_word_of_its_content),
        cmocka_unit_test(the_size_of_a_key_file_is_limited),
        cmocka_unit_test(what_is_no_file_is_refused_and_not_waited_for),
        cmocka_unit_test(systemd_sees_to_the_modes_of_its_credentials),
        cmocka_unit_test(the_configuration_s_key_is_found_wherever_it_is),
    };
    return cmocka_run_group_tests(tests, start_sodium, NULL);
}
