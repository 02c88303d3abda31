#include "host/cli_commands.h"
int cli_fsck(const struct cli_arguments *arguments, const struct host_options *options)
{
    (void)arguments, (void)options;
    return CLI_FAILED;
}
