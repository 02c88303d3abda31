/* pure-host on the epoll back end of the seam: the baseline of the benchmarks. All else is the product's. */
#include "experiments/epoll/epoll.h"
#include "host/cli.h"
#include "host/platform.h"

#include <stdio.h>

static int open_io(void *context, struct io **io, char *why, size_t why_size)
{
    (void)context;
    int error = epoll_open(io, NULL);
    if (error < 0)
        snprintf(why, why_size, "epoll: %s", pure_error_text(error));
    return error;
}

int main(int argc, char **argv)
{
    struct platform platform;
    struct host_options options;
    platform_options(&platform, &options);
    options.open_io = open_io;
    return cli_main(argc, argv, &options);
}
