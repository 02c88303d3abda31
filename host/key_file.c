#include "host/key_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

struct reason {
    char *text;
    size_t size;
};

static int fail(const struct reason *why, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static int fail(const struct reason *why, int error, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why->text, why->size, format, arguments);
    va_end(arguments);
    return error;
}

/* --- reading --- */

bool key_file_is_credential(const char *path)
{
    const char *directory = getenv("CREDENTIALS_DIRECTORY");
    size_t size = directory ? strlen(directory) : 0;
    return size > 0 && strncmp(path, directory, size) == 0 && path[size] == '/' && !strstr(path, "/../");
}

static int check_file(int fd, const char *path, const struct reason *why)
{
    struct stat file;
    if (fstat(fd, &file) < 0)
        return fail(why, PE_CONFIG, "%s: cannot be looked at: %s", path, strerror(errno));
    if (!S_ISREG(file.st_mode))
        return fail(why, PE_CONFIG, "%s: is no regular file: name that of a host key", path);
    if ((file.st_mode & (S_IRWXG | S_IRWXO)) != 0 && !key_file_is_credential(path))
        return fail(
            why, PE_CONFIG,
            "%s: others than its owner have access to it (mode %03o): chmod 600 %s, and make a new key "
            "if one of them may have read it",
            path, (unsigned)(file.st_mode & 0777), path);
    return 0;
}

/* At most `size` bytes from where the file stands. Their number or a negative errno. */
static ssize_t read_all(int fd, void *bytes, size_t size)
{
    size_t used = 0;
    ssize_t got = 0;
    while (used < size && (got = read(fd, (char *)bytes + used, size - used)) > 0)
        used += (size_t)got;
    return got < 0 ? -errno : (ssize_t)used;
}

static int parse(struct span text, const char *path, struct host_key *key, const struct reason *why)
{
    if (text.size > KEY_FILE_MAX)
        return fail(why, PE_CONFIG, "%s: is larger than %d bytes and no host key: name the right file", path,
                    KEY_FILE_MAX);
    switch (host_key_parse_private(text, key)) {
    case 0:
        return 0;
    case PE_KEY_IS_PUBLIC:
        return fail(why, PE_CONFIG,
                    "%s: holds a public key, or one without its '%s': name the file that 'pure-host key new' "
                    "made",
                    path, HOST_KEY_PRIVATE_PREFIX);
    default:
        return fail(
            why, PE_CONFIG,
            "%s: holds no host key, or a damaged one: restore it, or make another with 'pure-host key "
            "new FILE'",
            path);
    }
}

static int read_key(int fd, const char *path, struct host_key *key, const struct reason *why)
{
    uint8_t bytes[KEY_FILE_MAX + 1];
    int error = check_file(fd, path, why);
    if (error < 0)
        return error;
    ssize_t used = read_all(fd, bytes, sizeof(bytes));
    if (used < 0)
        error = fail(why, PE_CONFIG, "%s: cannot be read: %s", path, strerror((int)-used));
    else
        error = parse(span_of(bytes, (size_t)used), path, key, why);
    sodium_memzero(bytes, sizeof(bytes));
    return error;
}

/* Not waiting for a writer, if it is a pipe. */
int key_file_read(const char *path, struct host_key *key, char *why, size_t why_size)
{
    const struct reason reason = {why, why_size};
    *key = (struct host_key){0};
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return fail(&reason, PE_CONFIG, "%s: cannot be read: %s%s", path, strerror(errno),
                    errno == ENOENT ? ": make a key with 'pure-host key new FILE'" : "");
    int error = read_key(fd, path, key, &reason);
    close(fd);
    return error;
}

int key_file_of_config(const struct config *config, struct host_key *key, char *why, size_t why_size)
{
    const struct reason reason = {why, why_size};
    *key = (struct host_key){0};
    if (config->key_path)
        return key_file_read(config->key_path, key, why, why_size);
    if (!config->key_text)
        return fail(&reason, PE_CONFIG, "%s: [host] has no key: add key = FILE", config->path);
    if (host_key_parse_private(span_text(config->key_text), key) < 0)
        return fail(&reason, PE_CONFIG, "%s: [host] key is no host key", config->path);
    return 0;
}

/* --- making --- */

static int write_all(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t written = write(fd, bytes, size);
        if (written < 0)
            return -errno;
        bytes += written;
        size -= (size_t)written;
    }
    return fsync(fd) < 0 ? -errno : 0;
}

static int write_key(int fd, const struct host_key *key)
{
    char line[HOST_KEY_PRIVATE_TEXT];
    host_key_private_text(key, line);
    line[sizeof(line) - 1] = '\n'; /* in the place of the NUL */
    int error = write_all(fd, line, sizeof(line));
    sodium_memzero(line, sizeof(line));
    return error;
}

/* That the name is on disk, too. */
static int sync_directory(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *directory = slash ? strndup(path, (size_t)(slash - path) + 1) : strdup(".");
    if (!directory)
        return -ENOMEM;
    int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(directory);
    if (fd < 0)
        return -errno;
    int error = fsync(fd) < 0 ? -errno : 0;
    close(fd);
    return error;
}

int key_file_new(const char *path, const struct noise_random *random, uint8_t public[LINK_KEY_BYTES],
                 char *why, size_t why_size)
{
    const struct reason reason = {why, why_size};
    struct host_key key;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOCTTY, S_IRUSR | S_IWUSR);
    if (fd < 0)
        return fail(&reason, -errno, "%s: cannot be made: %s%s", path, strerror(errno),
                    errno == EEXIST ? ": a key is never replaced: remove it first, or take another name"
                                    : "");
    host_key_generate(&key, random);
    int error = write_key(fd, &key);
    memcpy(public, key.public, LINK_KEY_BYTES);
    host_key_wipe(&key);
    if (close(fd) < 0 && error == 0)
        error = -errno;
    if (error == 0)
        error = sync_directory(path);
    if (error < 0) {
        unlink(path);
        return fail(&reason, error, "%s: cannot be written: %s", path, strerror(-error));
    }
    return 0;
}
