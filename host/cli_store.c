#include "host/cli_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <time.h>

static uint64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

struct files *cli_files(const struct host_options *options)
{
    return options->files ? options->files : files_system();
}

int cli_store_open(struct store *store, const char *path, const struct host_options *options, char *why,
                   size_t why_size)
{
    const struct store_options read_only = {.files = cli_files(options),
                                            .path = path,
                                            .segment_bytes = SEGMENT_BYTES_DEFAULT,
                                            .fill_random = options->fill_random,
                                            .random_context = options->context,
                                            .now_ms = now_ms(),
                                            .read_only = true};
    return store_open(store, &read_only, why, why_size);
}

bool cli_store_degraded(const struct store *store)
{
    return store->report.damaged_places > 0;
}

/* The lock is tried, and given back at once if it is free. */
bool cli_store_in_use(const char *path, const struct host_options *options)
{
    struct files *files = cli_files(options);
    int directory = files->backend->open(files, AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0);
    if (directory < 0)
        return false;
    int lock = files->backend->open(files, directory, "lock", O_RDONLY, 0);
    bool used = lock >= 0 && files->backend->lock(files, lock) == -EWOULDBLOCK;
    if (lock >= 0)
        files->backend->close(files, lock);
    files->backend->close(files, directory);
    return used;
}
