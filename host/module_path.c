#include "host/module_path.h"

#include "core/error.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Below the directory of the running program; the last is where an installation has them. */
static const char *const app_directories[] = {"apps", "../apps", "../lib/pure/apps"};

static int program_directory(char *path, size_t size)
{
    ssize_t used = readlink("/proc/self/exe", path, size - 1);
    if (used <= 0 || (size_t)used >= size - 1)
        return PE_TOO_LARGE;
    path[used] = '\0';
    *strrchr(path, '/') = '\0';
    return 0;
}

static int installed_path(char *path, size_t size, const char *module)
{
    char program[4096];
    if (program_directory(program, sizeof(program)) < 0)
        return PE_TOO_LARGE;
    for (size_t i = 0; i < sizeof(app_directories) / sizeof(app_directories[0]); i++) {
        int used = snprintf(path, size, "%s/%s/%s", program, app_directories[i], module);
        if (used < 0 || (size_t)used >= size)
            return PE_TOO_LARGE;
        if (access(path, F_OK) == 0)
            break;
    }
    return 0;
}

int module_path(char *path, size_t size, const char *directory, const char *module)
{
    if (!strchr(module, '/'))
        return installed_path(path, size, module);
    int used = module[0] == '/' ? snprintf(path, size, "%s", module)
                                : snprintf(path, size, "%s/%s", directory, module);
    return used < 0 || (size_t)used >= size ? PE_TOO_LARGE : 0;
}
