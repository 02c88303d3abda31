/* The inside of the simulated disk, shared by tests/sim/disk*.c and nobody else.
 *
 *     disk.c            inodes, their bytes and names; what a sync and a crash do to them
 *     disk_access.c     a test's own access, copies of a disk
 *     disk_operations.c what operations do, with their faults; those of the seam
 *     disk_files.c      the blocking calls (core/files.h)
 *
 * All is kept twice: as those who use the disk see it (`now`), and as it would be there after a crash that
 * loses all it may (`safe`). What lies between is the list of changes of each file. */
#ifndef PURE_TESTS_SIM_DISK_MODEL_H
#define PURE_TESTS_SIM_DISK_MODEL_H

#include "tests/sim/disk.h"
#include "tests/sim/world.h"

#include <limits.h>

#define SECTOR 512u

/* The bytes of a file. */
struct content {
    uint8_t *bytes; /* [0, held); those of [held, size) are zero */
    size_t held, room;
    uint64_t size; /* at least `held` */
};

enum change_kind {
    CHANGE_WRITE,
    CHANGE_GROW, /* the size is at least `offset` */
    CHANGE_CUT   /* the size is 0 */
};

/* Something that is not durable. */
struct change {
    struct change *next;
    enum change_kind kind;
    uint64_t offset;
    size_t size;      /* WRITE: of `bytes` */
    uint8_t *settled; /* WRITE: not 0 for each sector that the disk has decided on; first that of `offset` */
    uint8_t bytes[];
};

struct entry;

struct inode {
    struct inode *next, **at; /* in disk->inodes; at: what points here */
    struct sim_disk *disk;
    unsigned references; /* of entries (each `now` and each `safe`), of open files, of the disk (its root) */
    unsigned uses;       /* those of the references by which it takes space: open files, `now` */
    bool directory;
    bool locked;
    struct content now, safe;     /* of a file */
    struct change *first, **last; /* that make `now` of `safe`, but for what was lost; in order */
    struct entry *entries;        /* of a directory, by name */
};

/* A name in a directory. `now` and `safe` differ until the directory is synced; one of them is not NULL. */
struct entry {
    struct entry *next;
    struct inode *now, *safe;
    char name[];
};

/* What a descriptor of kind FD_FILE stands for. */
struct open_file {
    struct inode *inode;
    int flags;
    bool locks;
};

struct sim_disk {
    struct sim *sim;
    struct files files;
    struct sim_disk_policy policy;
    struct inode *root, *inodes;
    bool cut_off;
    uint64_t syncs;
    struct event written_back; /* by the kernel, some time after its process ended */
    struct sim_disk *next;
};

/* What becomes of a sector that is not durable, in 1/1000; else it is there. */
struct odds {
    uint32_t lost, torn, garbled;
};

/* ---- disk.c ---- */

void content_put(struct content *c, const void *data, size_t size, uint64_t offset);
void content_grow(struct content *c, uint64_t size);
void content_copy(struct content *to, const struct content *from);
void content_free(struct content *c);

/* With no references. */
struct inode *inode_new(struct sim_disk *disk, bool directory);
void inode_hold(struct inode *inode, bool use);
void inode_release(struct inode *inode, bool use); /* freed with the last reference */
/* Changes that are seen at once and not durable. */
void inode_write(struct inode *inode, const void *data, size_t size, uint64_t offset);
void inode_grow(struct inode *inode, uint64_t size);
void inode_cut(struct inode *inode);
/* This is durable, and so is all that was written before: a crash that undoes it only brings bytes back. */
void inode_shorten(struct inode *inode, uint64_t size);
/* Decides on what is not durable in the sectors of [from, to): it is durable then, or never will be. Of a
 * directory: its names are durable. `odds` NULL: all is there. */
void inode_settle(struct inode *inode, uint64_t from, uint64_t to, const struct odds *odds);
/* All that is not durable of a file is forgotten, and its bytes are these. */
void inode_set(struct inode *inode, const struct content *content);

struct entry *entry_find(const struct inode *directory, const char *name); /* NULL: no such name, ever */
/* The name means this inode from now on; NULL: nothing. */
void entry_set(struct inode *directory, const char *name, struct inode *inode);
void entry_settle(struct inode *directory, const char *name); /* this name is durable */

/* Where a path leads. */
struct place {
    struct inode *directory, *found; /* found NULL: there is no such name in it */
    char name[NAME_MAX + 1];
};
/* From `start`, or from the root. 0, -ENOENT (of what is not the last name), -ENOTDIR, -ENAMETOOLONG. */
int disk_walk(struct inode *start, const char *path, struct place *place);

/* Its descriptors are closed. */
void disk_close_all(struct sim_disk *disk);

/* ---- disk_operations.c: each as its system call, a negative errno where that fails ---- */

/* `seam`: an operation of the seam, which may be short; a write is durable then. */
int disk_open(struct sim_disk *disk, struct inode *directory, const char *name, int flags);
int64_t disk_read(struct open_file *file, void *data, uint64_t size, uint64_t offset, bool seam);
int64_t disk_write(struct open_file *file, const void *data, uint64_t size, uint64_t offset, bool seam);
int disk_allocate(struct open_file *file, uint64_t size);
int disk_sync(struct open_file *file);
int disk_unlink(struct inode *directory, const char *name);
int disk_truncate(struct open_file *file, uint64_t size);
int disk_make_directory(struct inode *directory, const char *name);

/* ---- disk_files.c ---- */

extern const struct files_backend disk_files_backend;

#endif
