#include "core/ring_memory.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

static uint64_t round_up(uint64_t bytes)
{
    uint64_t size = (uint64_t)sysconf(_SC_PAGESIZE);
    while (size < bytes)
        size *= 2;
    return size;
}

static int map_twice(uint8_t *base, uint64_t size, int fd)
{
    for (int half = 0; half < 2; half++) {
        void *at =
            mmap(base + (uint64_t)half * size, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
        if (at == MAP_FAILED)
            return -errno;
    }
    return 0;
}

int ring_memory_init(struct ring_memory *m, uint64_t bytes)
{
    assert(bytes <= UINT64_C(1) << 30);
    uint64_t size = round_up(bytes);
    int fd = memfd_create("pure-queue", MFD_CLOEXEC);
    if (fd < 0)
        return -errno;
    int error = ftruncate(fd, (off_t)size) < 0 ? -errno : 0;
    uint8_t *base = MAP_FAILED;
    if (error == 0) {
        base = mmap(NULL, 2 * size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        error = base == MAP_FAILED ? -errno : map_twice(base, size, fd);
    }
    close(fd); /* the mappings keep the memory */
    if (error < 0) {
        if (base != MAP_FAILED)
            munmap(base, 2 * size);
        return error;
    }
    *m = (struct ring_memory){base, size};
    return 0;
}

/* Where the kernel does not, the memory stays in use: no worse than before. */
void ring_memory_release(struct ring_memory *m)
{
    if (m->base)
        madvise(m->base, m->size, MADV_REMOVE);
}

void ring_memory_dispose(struct ring_memory *m)
{
    if (m->base)
        munmap(m->base, 2 * m->size);
    *m = (struct ring_memory){NULL, 0};
}
