/* Files of one: a file that lies in a test's memory, behind core/files.h. Only what readers call is there. */
#ifndef PURE_TESTS_MEMORY_FILES_H
#define PURE_TESTS_MEMORY_FILES_H

#include "core/bytes.h"
#include "core/files.h"

#include <errno.h>

#define MEMORY_FD 3

struct memory_files {
    struct files files;
    const uint8_t *data;
    uint64_t size;
    uint64_t seen;       /* the size that is told; more than `size`: it has been cut since */
    uint64_t reads_left; /* then EIO */
    uint64_t read_bytes; /* in all */
    uint64_t largest;    /* read at once */
};

static inline int64_t memory_size(struct files *f, int fd)
{
    assert(fd == MEMORY_FD);
    return (int64_t)container_of(f, struct memory_files, files)->seen;
}

static inline int64_t memory_read(struct files *f, int fd, void *data, uint64_t size, uint64_t offset)
{
    struct memory_files *m = container_of(f, struct memory_files, files);
    assert(fd == MEMORY_FD);
    if (m->reads_left-- == 0)
        return -EIO;
    if (offset >= m->size)
        return 0;
    size = min_u64(size, m->size - offset);
    memcpy(data, m->data + offset, size);
    m->read_bytes += size;
    m->largest = max_u64(m->largest, size);
    return (int64_t)size;
}

static inline struct memory_files memory_files_of(const void *data, size_t size)
{
    static const struct files_backend backend = {.size = memory_size, .read = memory_read};
    return (struct memory_files){{&backend}, data, size, size, UINT64_MAX, 0, 0};
}

#endif
