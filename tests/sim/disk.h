/* A simulated disk: files of a host that outlive its process, and lose at a crash what a real disk may lose.
 *
 * Blocking calls (core/files.h) through sim_disk_files, the loops' operations through the seam. Descriptors
 * are the world's; those of a disk's files are of FD_FILE and know their disk. The root is there from the
 * start, and is the working directory.
 *
 * What is durable: of a file, all that was written before its last sync, and of each IO_FILE_WRITE what it
 * took, once it has completed; a durable write, like a sync, has the file's size with it. Of a directory, the
 * names in it as of its last sync: a file that was made since may be gone after a crash, an unlinked one may
 * be back, even one whose name was never synced.
 *
 * At sim_disk_crash, decided by the seed for each write that was not durable and each 512-byte sector of it:
 * it is there, it is lost, it is torn (the beginning of the sector is new, the rest old) or garbled. Only its
 * own bytes are touched: those beside them in the sector, if durable, stay. The size of the file may be that
 * of the new write with zeros where the data is not. Space that was set aside stays so if the file was synced
 * since; else it may be gone. So it is with what was written without a sync, and with what was under way in
 * the seam when its io was disposed of or the disk was cut off: a write was done, from the front and as far
 * as the seed says, or not, and is not durable; any other operation was done or not.
 *
 * A write or sync that fails with EIO: what it was to make durable is there or is not, sector by sector, at
 * once and for good. Reads still see it until the next crash, and no later sync makes it durable: as Linux,
 * which marks such pages clean (fsync(2), "EIO"). Only writing it again does.
 *
 * An operation of the seam that is cancelled ends with ECANCELED, not done, or is not to be stopped any more.
 *
 * Times: an operation of the seam takes `operation_…_ns`, and its bytes what `bytes_s` says; a durable write
 * and a sync `sync_…_ns` more, or, with a chance, `slow_sync_ns`. What it does happens at its end. Blocking
 * calls take no time. */
#ifndef PURE_TESTS_SIM_DISK_H
#define PURE_TESTS_SIM_DISK_H

#include "core/files.h"
#include "tests/sim/sim.h"

struct sim_disk;

/* Chances in 1/1000. Zeroed but for the times: a good disk. */
struct sim_disk_policy {
    uint64_t operation_min_ns, operation_max_ns;
    uint64_t bytes_s; /* of reads and writes; 0: unlimited */
    uint64_t sync_min_ns, sync_max_ns;
    uint32_t slow_sync;      /* chance of … */
    uint64_t slow_sync_ns;   /* … this instead */
    uint64_t capacity_bytes; /* 0: unlimited. Beyond it: ENOSPC from allocating and writing */
    uint32_t short_write;    /* chance that a write of the seam takes less */
    uint32_t short_read;     /* and a read */
    uint32_t write_error;    /* chance of EIO from all that changes anything, and from syncs */
    uint32_t read_error;     /* of EIO from a read or a list */
    uint32_t no_space; /* chance of ENOSPC from an allocation, a creation or a write, though there is room */
    bool no_allocate;  /* EOPNOTSUPP from allocating */
    bool read_only;    /* EROFS from all that changes anything, and from opening to write */
    /* at a crash, of each sector that is not durable: */
    uint32_t lost, torn, garbled; /* else it is there */
    uint32_t name_lost;           /* of a name that is not durable */
    uint32_t unlink_undone;
};
extern const struct sim_disk_policy
    sim_disk_default; /* 20-80 us, syncs 200 us to 2 ms; crashes that do all of it */

struct sim_disk *sim_disk_new(struct sim *sim); /* the world's: freed with it */
void sim_disk_set(struct sim_disk *disk, const struct sim_disk_policy *policy); /* from now on */
uint64_t sim_disk_memory(const struct sim_disk *disk); /* bytes allocated for what its files hold */
struct files *sim_disk_files(struct sim_disk *disk);
/* The files of this host's ios are this disk's: those of any other are a mistake from now on. */
void sim_host_disk(struct sim *sim, const char *host, struct sim_disk *disk);

/* From now on nothing of its users reaches the disk: what is under way is done or not (above), what comes
 * later fails with EIO, until it crashes or its process has ended. For ends of hosts that take a while. */
void sim_disk_cut_off(struct sim_disk *disk);
/* The machine loses its power. The ios of the host are disposed of already; the descriptors of the disk are
 * closed, its locks gone. */
void sim_disk_crash(struct sim_disk *disk);
/* The process ends, the machine does not: descriptors and locks go, nothing is lost, and all is durable after
 * half a minute, as the kernel then has written it back. */
void sim_disk_process_ended(struct sim_disk *disk);

/* For tests: direct access to what is seen now, past all faults and durable at once. Paths from the root:
 * "/store/x". The directory must be there. */
bool sim_disk_read(struct sim_disk *disk, const char *path, uint8_t **bytes,
                   size_t *size); /* malloc'ed copy */
void sim_disk_write(struct sim_disk *disk, const char *path, const void *bytes, size_t size); /* whole file */
void sim_disk_make_directory(struct sim_disk *disk, const char *path);
bool sim_disk_remove(struct sim_disk *disk, const char *path);
/* Names in a directory, one call each, in order. */
void sim_disk_list(struct sim_disk *disk, const char *path, void (*each)(void *context, const char *name),
                   void *context);
/* A copy of all that is durable; the disk as it was then, with no descriptor open. */
struct sim_disk_copy;
struct sim_disk_copy *sim_disk_save(const struct sim_disk *disk);
void sim_disk_restore(struct sim_disk *disk, const struct sim_disk_copy *copy);
void sim_disk_copy_free(struct sim_disk_copy *copy);
uint64_t sim_disk_used(const struct sim_disk *disk);  /* bytes of files that have a name or are open */
uint64_t sim_disk_syncs(const struct sim_disk *disk); /* durable writes and syncs, ever */

#endif
