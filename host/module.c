#include "host/module.h"

#include "core/error.h"
#include "core/outlet.h"
#include "host/module_path.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define OUTPUTS_MAX 256

int module_check(const struct pure_app *app, char *why, size_t why_size)
{
    if (app->abi != PURE_APP_ABI) {
        snprintf(why, why_size, "it was built for app ABI %u, this host has %u: build it anew", app->abi,
                 PURE_APP_ABI);
        return PE_MODULE;
    }
    if (!app->open || !app->event || !app->close || !app->outputs) {
        snprintf(why, why_size, "its pure_app lacks open, event, close or outputs");
        return PE_MODULE;
    }
    if (!app->snapshot != !app->restore) {
        snprintf(why, why_size, "its pure_app has only one of snapshot and restore");
        return PE_MODULE;
    }
    for (unsigned i = 0; app->outputs[i]; i++) {
        size_t length = strlen(app->outputs[i]);
        if (length > 0 && length < OUTLET_NAME_MAX && i < OUTPUTS_MAX)
            continue;
        snprintf(why, why_size, "its output %u has no name, a name over %d bytes, or is one too many", i,
                 OUTLET_NAME_MAX - 1);
        return PE_MODULE;
    }
    return 0;
}

int module_load(const char *path, const struct pure_app **app, void **handle, char *why, size_t why_size)
{
    if (access(path, F_OK) < 0 && errno == ENOENT) {
        module_path_explain(path, why, why_size);
        return PE_MODULE;
    }
    void *object = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!object) {
        snprintf(why, why_size, "%s", dlerror());
        return PE_MODULE;
    }
    const struct pure_app *found = dlsym(object, "pure_app");
    int error = PE_MODULE;
    if (!found)
        snprintf(why, why_size, "it exports no symbol pure_app: is it an app?");
    else
        error = module_check(found, why, why_size);
    if (error < 0) {
        dlclose(object);
        return error;
    }
    *app = found;
    *handle = object;
    return 0;
}

void module_unload(void *handle)
{
    dlclose(handle);
}
