#include "host/cli.h"
#include "host/platform.h"

int main(int argc, char **argv)
{
    struct platform platform;
    struct host_options options;
    platform_options(&platform, &options);
    return cli_main(argc, argv, &options);
}
