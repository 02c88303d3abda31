#include "host/platform.h"

#include "host/module.h"
#include "uring/dns.h"
#include "uring/uring.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

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
    assert(!platform->dns);
    int error = dns_open(&platform->dns, loop, NULL);
    if (error == 0)
        *resolver = dns_resolver(platform->dns);
    return error;
}

static void close_resolver(void *context, struct resolver *resolver)
{
    struct platform *platform = context;
    (void)resolver;
    dns_dispose(platform->dns);
    platform->dns = NULL;
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

int platform_prepare(void)
{
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
        .descriptors = descriptor_limit(),
        .log_fd = STDERR_FILENO,
        .log_for_people = getenv("JOURNAL_STREAM") == NULL, /* systemd.exec(5) */
    };
}
