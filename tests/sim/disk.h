/* A simulated disk: files of a host that outlive its process, and lose at a crash what a real disk may lose.
 *
 * Blocking calls (core/files.h) through sim_disk_files, the loops' operations through the seam: each io of a
 * host has its host's disk (sim_host_disk). Descriptors are the world's.
 *
 * What is durable: of a file, all that was written before its last sync (or by IO_FILE_WRITE, when that has
 * completed); of a directory, the names in it as of its last sync. A file that was made is there after a
 * crash only if its directory was synced since; an unlinked one may be back. At sim_disk_crash, decided by
 * the seed for each write that was not durable and each 512-byte sector of it: it is there, it is not, it is
 * torn (the beginning of the sector is new, the rest old) or garbled. The size of a file may be that of the
 * new write with zeros where the data is not. Writes under way when the host crashes are such writes; what
 * was written by calls without a sync, too. Space that was set aside stays so.
 *
 * Times: an operation of the seam takes `operation_ns` and `byte_ns` a byte; a durable write and a sync
 * `sync_ns` more, `slow_sync_ns` with a chance. Blocking calls take no time. */
#ifndef PURE_TESTS_SIM_DISK_H
#define PURE_TESTS_SIM_DISK_H

#include "core/files.h"
#include "tests/sim/sim.h"

struct sim_disk;

/* Chances in 1/1000. Zeroed but for the times: a good disk. */
struct sim_disk_policy {
    uint64_t operation_min_ns, operation_max_ns;
    uint64_t sync_min_ns, sync_max_ns;
    uint32_t slow_sync;      /* chance of … */
    uint64_t slow_sync_ns;   /* … this instead */
    uint64_t capacity_bytes; /* 0: unlimited. Beyond it: ENOSPC from allocating and writing */
    uint32_t short_write;    /* chance that a write of the seam takes less */
    uint32_t short_read;     /* and a read */
    uint32_t write_error;    /* chance of EIO: the data may be there or not, as after a crash */
    uint32_t read_error;     /* of EIO */
    uint32_t no_space; /* chance of ENOSPC from an allocation, a creation or a write, though there is room */
    bool no_allocate;  /* EOPNOTSUPP from allocating */
    bool read_only;    /* EROFS from all that changes anything */
    /* at a crash, of each sector that is not durable: */
    uint32_t lost, torn, garbled; /* else it is there */
    uint32_t name_lost;           /* of a name that is not durable */
    uint32_t unlink_undone;
};
extern const struct sim_disk_policy
    sim_disk_default; /* 20-80 us, syncs 200 us to 2 ms; crashes that do all of it */

struct sim_disk *sim_disk_new(struct sim *sim); /* the world's: freed with it */
void sim_disk_set(struct sim_disk *disk, const struct sim_disk_policy *policy); /* from now on */
struct files *sim_disk_files(struct sim_disk *disk);
/* The seam's file operations of this host's ios (those made and to be made) are this disk's. */
void sim_host_disk(struct sim *sim, const char *host, struct sim_disk *disk);

/* The machine loses its power. The ios of the host are disposed of already; its descriptors are closed, its
 * locks gone. */
void sim_disk_crash(struct sim_disk *disk);
/* The process ends, the machine does not: descriptors and locks go, nothing is lost, and all is durable some
 * time. */
void sim_disk_process_ended(struct sim_disk *disk);

/* For tests: direct access, durable at once. Paths as they were opened: "/store/x". */
bool sim_disk_read(struct sim_disk *disk, const char *path, uint8_t **bytes,
                   size_t *size); /* malloc'ed copy */
void sim_disk_write(struct sim_disk *disk, const char *path, const void *bytes, size_t size); /* whole file */
bool sim_disk_remove(struct sim_disk *disk, const char *path);
/* Names of files in a directory, one call each, in order. */
void sim_disk_list(struct sim_disk *disk, const char *path, void (*each)(void *context, const char *name),
                   void *context);
/* A copy of all that is durable, and the disk as it was then. */
struct sim_disk_copy;
struct sim_disk_copy *sim_disk_save(const struct sim_disk *disk);
void sim_disk_restore(struct sim_disk *disk, const struct sim_disk_copy *copy);
void sim_disk_copy_free(struct sim_disk_copy *copy);
uint64_t sim_disk_used(const struct sim_disk *disk);  /* bytes, with what is set aside */
uint64_t sim_disk_syncs(const struct sim_disk *disk); /* durable writes and syncs, ever */

#endif
