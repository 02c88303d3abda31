#include "host/cli_time.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#define YEAR_10000_S 253402300800

const char *cli_time_text(char *text, uint64_t time_ms)
{
    time_t seconds = (time_t)(time_ms / 1000);
    struct tm tm;
    if (time_ms == 0 || seconds >= YEAR_10000_S || !gmtime_r(&seconds, &tm))
        return strcpy(text, "-");
    size_t used = strftime(text, CLI_TIME_TEXT, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(text + used, CLI_TIME_TEXT - used, ".%03uZ", (unsigned)(time_ms % 1000));
    return text;
}
