/* A file system in memory for tests of stores: one directory of files, and one in it. What is written is
 * durable at once. Faults can be set: bytes of a file that cannot be read, no space, read-only. */
#ifndef PURE_TESTS_UNIT_STORE_FILES_H
#define PURE_TESTS_UNIT_STORE_FILES_H

#include "core/bytes.h"
#include "core/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#define MEMORY_FILES 64 /* names, and descriptors */

struct memory_file {
    char name[96]; /* empty: no file; "damaged/…": in that directory */
    uint8_t *data;
    size_t size, room;
    uint64_t bad_from, bad_to; /* reads that touch these bytes fail */
    bool locked, directory;
    uint64_t syncs;
};

struct memory_files {
    struct files files;
    struct memory_file file[MEMORY_FILES];
    int open[MEMORY_FILES]; /* by descriptor: index of the file, -1: closed */
    bool lock_here[MEMORY_FILES];
    bool read_only, full, no_names;     /* the last: nothing can be created */
    uint64_t reads, read_bytes, writes; /* counted, as are opened files */
    uint64_t read_backwards;            /* reads of a file in front of where the last one ended */
    uint64_t read_end[MEMORY_FILES];
};

static inline struct memory_files *memory_of(struct files *f)
{
    return container_of(f, struct memory_files, files);
}

static inline struct memory_file *memory_find(struct memory_files *m, const char *name)
{
    for (int i = 0; i < MEMORY_FILES; i++)
        if (m->file[i].name[0] != '\0' && strcmp(m->file[i].name, name) == 0)
            return &m->file[i];
    return NULL;
}

static inline struct memory_file *memory_make(struct memory_files *m, const char *name)
{
    for (int i = 0; i < MEMORY_FILES; i++)
        if (m->file[i].name[0] == '\0') {
            snprintf(m->file[i].name, sizeof m->file[i].name, "%s", name);
            return &m->file[i];
        }
    abort();
}

/* Names are kept without the store's own directory, which is "" inside. */
static inline void memory_path(struct memory_files *m, int directory, const char *name, char *path,
                               size_t size)
{
    bool inside = directory != AT_FDCWD && strcmp(m->file[m->open[directory]].name, "damaged") == 0;
    snprintf(path, size, "%s%s", inside ? "damaged/" : "", name);
}

static inline int memory_open(struct files *f, int directory, const char *name, int flags, unsigned mode)
{
    struct memory_files *m = memory_of(f);
    char path[96];
    (void)mode;
    memory_path(m, directory, name, path, sizeof path);
    struct memory_file *file = memory_find(m, path);
    bool writes = (flags & O_ACCMODE) != O_RDONLY || (flags & O_CREAT) != 0;
    if (m->read_only && writes)
        return -EROFS;
    if (file != NULL && (flags & O_EXCL))
        return -EEXIST;
    if (file == NULL && !(flags & O_CREAT))
        return -ENOENT;
    if (file == NULL && (m->full || m->no_names))
        return -ENOSPC;
    if (file == NULL)
        file = memory_make(m, path);
    for (int fd = 0; fd < MEMORY_FILES; fd++)
        if (m->open[fd] < 0) {
            m->open[fd] = (int)(file - m->file);
            m->read_end[fd] = 0;
            return fd;
        }
    return -EMFILE;
}

static inline struct memory_file *memory_at(struct files *f, int fd)
{
    struct memory_files *m = memory_of(f);
    assert(fd >= 0 && fd < MEMORY_FILES && m->open[fd] >= 0);
    return &m->file[m->open[fd]];
}

static inline int memory_close(struct files *f, int fd)
{
    struct memory_files *m = memory_of(f);
    if (m->lock_here[fd])
        memory_at(f, fd)->locked = m->lock_here[fd] = false;
    m->open[fd] = -1;
    return 0;
}

static inline int64_t memory_size(struct files *f, int fd)
{
    return (int64_t)memory_at(f, fd)->size;
}

static inline int64_t memory_read(struct files *f, int fd, void *data, uint64_t size, uint64_t offset)
{
    struct memory_files *m = memory_of(f);
    const struct memory_file *file = memory_at(f, fd);
    size_t there = offset >= file->size ? 0 : (size_t)min_u64(size, file->size - offset);
    m->reads++;
    m->read_bytes += there;
    m->read_backwards += offset < m->read_end[fd];
    m->read_end[fd] = offset + there;
    if (offset < file->bad_to && offset + there > file->bad_from)
        return -EIO;
    if (there > 0)
        memcpy(data, file->data + offset, there);
    return (int64_t)there;
}

static inline void memory_resize(struct memory_file *file, size_t size)
{
    if (size > file->room) {
        file->room = size > 2 * file->room ? size : 2 * file->room;
        file->data = realloc(file->data, file->room);
        assert(file->data != NULL);
    }
    if (size > file->size)
        memset(file->data + file->size, 0, size - file->size);
    file->size = size;
}

static inline int64_t memory_write(struct files *f, int fd, const void *data, uint64_t size, uint64_t offset)
{
    struct memory_files *m = memory_of(f);
    struct memory_file *file = memory_at(f, fd);
    m->writes++;
    if (m->full)
        return -ENOSPC;
    if (offset + size > file->size)
        memory_resize(file, (size_t)(offset + size));
    memcpy(file->data + offset, data, size);
    return (int64_t)size;
}

static inline int memory_sync(struct files *f, int fd)
{
    memory_at(f, fd)->syncs++;
    return 0;
}

static inline int memory_make_directory(struct files *f, int directory, const char *name, unsigned mode)
{
    struct memory_files *m = memory_of(f);
    char path[96];
    memory_path(m, directory, name, path, sizeof path);
    if (memory_find(m, path) != NULL)
        return -EEXIST;
    if (m->read_only || m->full || m->no_names)
        return m->read_only ? -EROFS : -ENOSPC;
    assert(mode == 0700);
    memory_make(m, path)->directory = true;
    return 0;
}

static inline int memory_list(struct files *f, int fd, void (*each)(void *context, const char *name),
                              void *context)
{
    struct memory_files *m = memory_of(f);
    const char *self = memory_at(f, fd)->name;
    for (int i = MEMORY_FILES - 1; i >= 0; i--) { /* so that nobody counts on an order */
        const char *name = m->file[i].name;
        if (name[0] != '\0' && strchr(name, '/') == NULL && strcmp(name, self) != 0 && strcmp(name, ".") != 0)
            each(context, name);
    }
    return 0;
}

static inline int memory_unlink(struct files *f, int directory, const char *name)
{
    struct memory_files *m = memory_of(f);
    char path[96];
    memory_path(m, directory, name, path, sizeof path);
    struct memory_file *file = memory_find(m, path);
    if (file == NULL)
        return -ENOENT;
    free(file->data);
    *file = (struct memory_file){0};
    return 0;
}

static inline int memory_truncate(struct files *f, int fd, uint64_t size)
{
    struct memory_file *file = memory_at(f, fd);
    assert(size <= file->size);
    file->size = (size_t)size;
    return 0;
}

static inline int memory_lock(struct files *f, int fd)
{
    struct memory_file *file = memory_at(f, fd);
    if (file->locked && !memory_of(f)->lock_here[fd])
        return -EWOULDBLOCK;
    file->locked = memory_of(f)->lock_here[fd] = true;
    return 0;
}

static inline int memory_space(struct files *f, int fd, uint64_t *free_bytes)
{
    (void)f;
    (void)fd;
    *free_bytes = UINT64_C(1) << 40;
    return 0;
}

/* The parent "." is there; the store's directory is made by whoever opens it. */
static inline void memory_init(struct memory_files *m)
{
    static const struct files_backend backend = {.open = memory_open,
                                                 .close = memory_close,
                                                 .size = memory_size,
                                                 .read = memory_read,
                                                 .write = memory_write,
                                                 .sync = memory_sync,
                                                 .refresh = memory_sync,
                                                 .make_directory = memory_make_directory,
                                                 .list = memory_list,
                                                 .unlink = memory_unlink,
                                                 .truncate = memory_truncate,
                                                 .lock = memory_lock,
                                                 .space = memory_space};
    *m = (struct memory_files){.files = {&backend}};
    for (int i = 0; i < MEMORY_FILES; i++)
        m->open[i] = -1;
    memory_make(m, ".")->directory = true;
}

static inline void memory_dispose(struct memory_files *m)
{
    for (int i = 0; i < MEMORY_FILES; i++)
        free(m->file[i].data);
}

/* All files of `from`, nothing open; `to` is initialised. */
static inline void memory_copy(struct memory_files *to, const struct memory_files *from)
{
    memory_init(to);
    for (int i = 0; i < MEMORY_FILES; i++) {
        const struct memory_file *file = &from->file[i];
        to->file[i] = *file;
        to->file[i].locked = false;
        to->file[i].data = NULL;
        to->file[i].size = to->file[i].room = 0;
        if (file->size > 0) {
            memory_resize(&to->file[i], file->size);
            memcpy(to->file[i].data, file->data, file->size);
        }
    }
}

static inline int memory_open_count(const struct memory_files *m)
{
    int count = 0;
    for (int i = 0; i < MEMORY_FILES; i++)
        count += m->open[i] >= 0;
    return count;
}

#endif
