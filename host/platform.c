#include "host/platform.h"

#include "host/module.h"
#include "uring/dns.h"
#include "uring/uring.h"

#include <sodium.h>
#include <stdio.h>
#include <unistd.h>

static int open_io(void *context, struct io **io, char *why, size_t why_size)
{
    (void)context;
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

void platform_options(struct platform *platform, struct host_options *options)
{
    platform->dns = NULL;
    *options = (struct host_options){
        .context = platform,
        .open_io = open_io,
        .open_resolver = open_resolver,
        .close_resolver = close_resolver,
        .load_module = load_module,
        .unload_module = unload_module,
        .fill_random = fill_random,
        .log_fd = STDERR_FILENO,
    };
}
