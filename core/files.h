/* Files, as calls that block: what a host does with its store before its loops run, and what commands do
 * with a store. Behind a table of functions, so that tests own the disk (tests/sim/disk.h). Descriptors
 * are the same as those of the seam (core/io.h), where loops do what they do with files. Every call returns
 * 0 or more, or a negative errno. */
#ifndef PURE_CORE_FILES_H
#define PURE_CORE_FILES_H

#include <stdint.h>

struct files;

struct files_backend {
    /* `directory`: a descriptor, or AT_FDCWD. O_CLOEXEC is added. A descriptor. */
    int (*open)(struct files *f, int directory, const char *name, int flags, unsigned mode);
    int (*close)(struct files *f, int fd);
    int64_t (*size)(struct files *f, int fd);
    /* May be short at the end of the file only. */
    int64_t (*read)(struct files *f, int fd, void *data, uint64_t size, uint64_t offset);
    /* All of it, or an error. Durable after sync. */
    int64_t (*write)(struct files *f, int fd, const void *data, uint64_t size, uint64_t offset);
    int (*sync)(struct files *f, int fd); /* of a file, or of a directory: its names */
    /* What is read from now on is what the disk has. What was written and is not durable becomes so first, or
     * is lost: after a write that failed, caches show what the disk never got, and a later sync is no help
     * (fsync(2), EIO). An error says that something could not be made durable. */
    int (*refresh)(struct files *f, int fd);
    int (*make_directory)(struct files *f, int directory, const char *name, unsigned mode);
    /* `each` of all names but "." and ".."; in no order; it must not call back. */
    int (*list)(struct files *f, int fd, void (*each)(void *context, const char *name), void *context);
    int (*unlink)(struct files *f, int directory, const char *name);
    /* A file's bytes from `size` on are gone, and what was set aside there. Durable after sync. */
    int (*truncate)(struct files *f, int fd, uint64_t size);
    int (*lock)(struct files *f, int fd); /* alone, until it is closed; -EWOULDBLOCK: somebody else has it */
    int (*space)(struct files *f, int fd, uint64_t *free_bytes); /* in the file system, for this user */
};

struct files {
    const struct files_backend *backend;
};

/* The system's. */
struct files *files_system(void);

#endif
