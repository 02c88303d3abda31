/* A directory of a test program's own in $TMPDIR (else /tmp), and fresh ones in it, one a test. */
#ifndef PURE_TESTS_UNIT_TEMP_DIRECTORY_H
#define PURE_TESTS_UNIT_TEMP_DIRECTORY_H

#include <assert.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char temp_path[200];

static inline int temp_remove_one(const char *path, const struct stat *status, int kind, struct FTW *at)
{
    (void)status, (void)kind, (void)at;
    return remove(path);
}

static inline void temp_remove(void)
{
    nftw(temp_path, temp_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* Once, in main. It goes with all that is in it when the program exits. */
static inline void temp_make(void)
{
    const char *parent = getenv("TMPDIR");
    int size = snprintf(temp_path, sizeof temp_path, "%s/pure-XXXXXX", parent ? parent : "/tmp");
    assert(size > 0 && (size_t)size < sizeof temp_path);
    char *made = mkdtemp(temp_path);
    assert(made);
    atexit(temp_remove);
}

/* A new, empty directory in it; the caller closes the descriptor. */
static inline int temp_directory(void)
{
    static unsigned count;
    char path[sizeof temp_path + 16];
    snprintf(path, sizeof path, "%s/%u", temp_path, count++);
    int failed = mkdir(path, 0700);
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert(!failed && fd >= 0);
    return fd;
}

#endif
