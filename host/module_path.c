#include "host/module_path.h"

#include "core/error.h"

#include <stdbool.h>
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

static bool is_there(const char *path, const char *suffix)
{
    char whole[4096];
    int used = snprintf(whole, sizeof(whole), "%s%s", path, suffix);
    return used > 0 && (size_t)used < sizeof(whole) && access(whole, F_OK) == 0;
}

static void explain_installed(const char *name, char *why, size_t why_size)
{
    char suffixed[4096], path[4096], program[4096];
    int used = snprintf(suffixed, sizeof(suffixed), "%s.so", name);
    if ((size_t)used < sizeof(suffixed) && installed_path(path, sizeof(path), suffixed) == 0 &&
        is_there(path, ""))
        snprintf(why, why_size, "there is no installed app '%s': did you mean '%s'?", name, suffixed);
    else if (program_directory(program, sizeof(program)) == 0)
        snprintf(why, why_size,
                 "there is no installed app '%s': write its path, with a slash, or put it into one of "
                 "%s/{%s,%s,%s}",
                 name, program, app_directories[0], app_directories[1], app_directories[2]);
}

void module_path_explain(const char *path, char *why, size_t why_size)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    char installed[4096];
    if (installed_path(installed, sizeof(installed), name) == 0 && strcmp(installed, path) == 0)
        explain_installed(name, why, why_size);
    else if (is_there(path, ".so"))
        snprintf(why, why_size, "there is no file %s: did you mean '%s.so'?", path, name);
    else
        snprintf(why, why_size, "there is no file %s: build it, or correct the path", path);
}
