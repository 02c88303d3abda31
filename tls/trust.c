#include "tls/trust.h"

#include "tls/pem.h"
#include "tls/x509_dn.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT_MAX (16u << 20)

/* --- what is read, as one text --- */

struct text {
    char *data;
    size_t size, room;
};

static int text_reserve(struct text *text, size_t more)
{
    if (more > TEXT_MAX - text->size)
        return -EFBIG;
    if (text->size + more <= text->room)
        return 0;
    size_t room = 2 * (text->size + more);
    char *data = realloc(text->data, room);
    if (!data)
        return -ENOMEM;
    text->data = data;
    text->room = room;
    return 0;
}

/* All of the file, and a newline. */
static int text_read_fd(struct text *text, int fd)
{
    for (;;) {
        int error = text_reserve(text, 65536);
        if (error)
            return error;
        ssize_t got = read(fd, text->data + text->size, 65535);
        if (got < 0 && errno != EINTR)
            return -errno;
        if (got == 0)
            break;
        text->size += got > 0 ? (size_t)got : 0;
    }
    text->data[text->size++] = '\n';
    return 0;
}

static int text_read_file(struct text *text, int directory, const char *name)
{
    int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return -errno;
    struct stat status;
    int error = fstat(fd, &status) < 0 ? -errno : 0;
    if (!error && S_ISREG(status.st_mode))
        error = text_read_fd(text, fd);
    close(fd);
    return error;
}

/* A file that went away in the meantime, or a link to nowhere, is as if it had not been there. */
static int text_read_folder(struct text *text, const char *path)
{
    DIR *folder = opendir(path);
    if (!folder)
        return -errno;
    int error = 0;
    struct dirent *entry;
    while (!error && (entry = readdir(folder))) {
        if (entry->d_name[0] != '.')
            error = text_read_file(text, dirfd(folder), entry->d_name);
        if (error == -ENOENT)
            error = 0;
    }
    closedir(folder);
    return error;
}

static int text_read(struct text *text, const char *path)
{
    struct stat status;
    if (stat(path, &status) < 0)
        return -errno;
    return S_ISDIR(status.st_mode) ? text_read_folder(text, path) : text_read_file(text, AT_FDCWD, path);
}

/* --- anchors --- */

static int anchor_compare(const void *left, const void *right)
{
    const struct x509 *a = left, *b = right;
    int order = x509_dn_compare(a->subject, b->subject);
    if (order || a->der.size != b->der.size)
        return order ? order : a->der.size < b->der.size ? -1 : 1;
    return memcmp(a->der.data, b->der.data, a->der.size);
}

static int trust_add(struct tls_trust *trust, unsigned *room, const struct x509 *anchor)
{
    if (trust->count == *room) {
        unsigned more = *room ? 2 * *room : 16;
        struct x509 *anchors = realloc(trust->anchors, more * sizeof *anchors);
        if (!anchors)
            return -ENOMEM;
        trust->anchors = anchors;
        *room = more;
    }
    trust->anchors[trust->count++] = *anchor;
    return 0;
}

static int trust_fill(struct tls_trust *trust, struct span pem, unsigned *passed_over)
{
    uint8_t *out = trust->bytes;
    unsigned room = 0;
    long size;
    while ((size = pem_next_certificate(&pem, out)) >= 0) {
        struct x509 anchor;
        if (size == 0 || x509_parse(&anchor, span_of(out, (size_t)size)) != 0) {
            ++*passed_over;
            continue;
        }
        if (trust_add(trust, &room, &anchor) < 0)
            return -ENOMEM;
        out += size;
    }
    return 0;
}

static void trust_sort(struct tls_trust *trust)
{
    qsort(trust->anchors, trust->count, sizeof *trust->anchors, anchor_compare);
    unsigned kept = 0;
    for (unsigned i = 0; i < trust->count; i++) {
        if (kept == 0 || anchor_compare(&trust->anchors[kept - 1], &trust->anchors[i]) != 0)
            trust->anchors[kept++] = trust->anchors[i];
    }
    trust->count = kept;
}

int tls_trust_of(struct tls_trust **made, struct span pem, unsigned *passed_over, char *why, size_t why_size)
{
    struct tls_trust *trust = calloc(1, sizeof *trust);
    int error = trust ? 0 : -ENOMEM;
    *passed_over = 0;
    if (trust) {
        trust->holders = 1;
        trust->bytes = malloc(pem_bytes_max(pem.size));
        error = trust->bytes ? trust_fill(trust, pem, passed_over) : -ENOMEM;
    }
    if (!error && trust->count == 0)
        error = PE_TLS_FILES;
    if (error) {
        snprintf(why, why_size,
                 error == PE_TLS_FILES ? "no certificate in it that can be used"
                                       : "no memory for certificates");
        tls_trust_drop(trust);
        return error;
    }
    trust_sort(trust);
    *made = trust;
    return 0;
}

/* Debian, Fedora, SUSE, Alpine. */
const char *tls_trust_system(void)
{
    static const char *const places[] = {"/etc/ssl/certs/ca-certificates.crt",
                                         "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem",
                                         "/etc/ssl/cert.pem"};
    for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
        if (access(places[i], R_OK) == 0)
            return places[i];
    }
    return NULL;
}

int tls_trust_read(struct tls_trust **made, const char *path, unsigned *passed_over, char *why,
                   size_t why_size)
{
    const char *place = path ? path : tls_trust_system();
    *passed_over = 0;
    if (!place) {
        snprintf(why, why_size,
                 "this system has no CA certificates where they are looked for; "
                 "install the package ca-certificates, or name a file");
        return PE_TLS_FILES;
    }
    struct text text = {0};
    char reason[80] = "";
    int error = text_read(&text, place);
    if (error)
        snprintf(reason, sizeof reason, "%s", pure_error_text(error));
    else
        error = tls_trust_of(made, span_of(text.data, text.size), passed_over, reason, sizeof reason);
    free(text.data);
    if (error)
        snprintf(why, why_size, "%s: %s", place, reason);
    return error;
}

struct tls_trust *tls_trust_hold(struct tls_trust *trust)
{
    trust->holders++;
    return trust;
}

void tls_trust_drop(struct tls_trust *trust)
{
    if (!trust || --trust->holders > 0)
        return;
    free(trust->anchors);
    free(trust->bytes);
    free(trust);
}

unsigned tls_trust_find(const struct tls_trust *trust, struct span subject, unsigned *first)
{
    unsigned low = 0, high = trust->count;
    while (low < high) {
        unsigned middle = low + (high - low) / 2;
        if (x509_dn_compare(trust->anchors[middle].subject, subject) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *first = low;
    while (high < trust->count && x509_dn_compare(trust->anchors[high].subject, subject) == 0)
        high++;
    return high - low;
}
