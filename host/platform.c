#include "host/platform.h"

#include "host/module.h"
#include "uring/dns.h"
#include "uring/uring.h"

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define ADDRESS_PAUSE_MS 20
#define ADDRESS_WAIT_MS  3000

static int open_io(void *context, struct io **io, char *why, size_t why_size)
{
    struct platform *platform = context;
    if (!platform->probed && uring_probe(why, why_size) < 0)
        return PE_KERNEL; /* also what uring_open would not notice, but the first wait would */
    platform->probed = true;
    int error = uring_open(io, NULL);
    if (error < 0 && uring_probe(why, why_size) < 0)
        return PE_KERNEL;
    if (error < 0)
        snprintf(why, why_size, "io_uring: %s", pure_error_text(error));
    return error;
}

static int open_resolver(void *context, struct loop *loop, struct resolver **resolver)
{
    struct platform *platform = context;
    struct dns *dns;
    int error = platform->dns ? dns_open_beside(&dns, loop, platform->dns) : dns_open(&dns, loop, NULL);
    if (error < 0)
        return error;
    if (!platform->dns)
        platform->dns = dns;
    *resolver = dns_resolver(dns);
    return 0;
}

static void close_resolver(void *context, struct resolver *resolver)
{
    struct platform *platform = context;
    if (dns_of(resolver) == platform->dns)
        platform->dns = NULL;
    dns_dispose(dns_of(resolver));
}

static int load_module(void *context, const char *path, const struct pure_app **app, void **handle, char *why,
                       size_t why_size)
{
    (void)context;
    return module_load(path, app, handle, why, why_size);
}

static void unload_module(void *context, void *handle)
{
    (void)context;
    module_unload(handle);
}

static void fill_random(void *context, void *bytes, size_t size)
{
    (void)context;
    randombytes_buf(bytes, size);
}

/* A process that was killed with operations in flight on its ring leaves its sockets to the kernel, which
 * closes them a little after its parent has seen it end; on a busy machine, a supervisor starts the next one
 * sooner. */
static bool await_address(void *context, unsigned tries)
{
    (void)context;
    const struct timespec pause = {.tv_nsec = ADDRESS_PAUSE_MS * 1000000L};
    if (tries > ADDRESS_WAIT_MS / ADDRESS_PAUSE_MS)
        return false;
    nanosleep(&pause, NULL);
    return true;
}

/* Linux has a nice value for each thread (setpriority(2), under "C library/kernel differences"), and raising
 * it needs no privilege. It counts as a weight, 1.25 times less a step, among the threads of one group: of
 * the control group, or with SCHED_AUTOGROUP of the session (sched(7), "The nice value and group
 * scheduling"). This process's are in one of each. So are other processes where nobody has told them apart:
 * against these the thread weighs less, too. */
#define LIGHT_STEPS 5 /* 1.25^5 is about 3 */

static int lighten(void *context)
{
    (void)context;
    id_t thread = (id_t)gettid();
    errno = 0;
    int nice_value = getpriority(PRIO_PROCESS, thread);
    if (nice_value == -1 && errno != 0)
        return -errno;
    return setpriority(PRIO_PROCESS, thread, nice_value + LIGHT_STEPS) < 0 ? -errno : 0;
}

static int open_standard_descriptors(void)
{
    int fd;
    do {
        fd = open("/dev/null", O_RDWR); /* the lowest that is free */
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd < 0)
        return -errno;
    close(fd);
    return 0;
}

/* The soft limit is low for the sake of programs that use select, which this is not. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur == limit.rlim_max)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit); /* refused: then the host makes do with less (host.c) */
}

/* The C library maps large blocks by themselves and unmaps them when they are freed; but each one freed
 * raises what it takes for large, up to 32 MiB, and then a freed block stays the process's for good. What one
 * event made the host take once would be taken for ever. The trim threshold is raised with it, so that memory
 * which turns take and give back all the time does not go to the kernel in between. Refused: it costs memory.
 */
static void give_large_blocks_back(void)
{
    mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK);
    mallopt(M_TRIM_THRESHOLD, LARGE_BLOCK);
}

int platform_prepare(void)
{
    give_large_blocks_back();
    raise_descriptor_limit();
    return open_standard_descriptors();
}

static uint32_t descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return UINT32_MAX;
    return limit.rlim_cur < UINT32_MAX ? (uint32_t)limit.rlim_cur : UINT32_MAX;
}

void platform_options(struct platform *platform, struct host_options *options)
{
    *platform = (struct platform){0};
    *options = (struct host_options){
        .context = platform,
        .open_io = open_io,
        .open_resolver = open_resolver,
        .close_resolver = close_resolver,
        .load_module = load_module,
        .unload_module = unload_module,
        .fill_random = fill_random,
        .guards = true,
        .await_address = await_address,
        .lighten = lighten,
        .descriptors = descriptor_limit(),
        .log_fd = STDERR_FILENO,
        .log_for_people = getenv("JOURNAL_STREAM") == NULL, /* systemd.exec(5) */
    };
}
