#include "host/cli.h"
#include "host/platform.h"

int main(int argc, char **argv)
{
    struct platform platform;
    struct host_options options;
    if (platform_prepare() < 0)
        return 1; /* and no place to say why */
    platform_options(&platform, &options);
    return cli_main(argc, argv, &options);
}
