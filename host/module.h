/* App modules: shared objects that export `pure_app` (app.h). */
#ifndef PURE_HOST_MODULE_H
#define PURE_HOST_MODULE_H

#include "host/app.h"

#include <stddef.h>

/* Loads and checks a module. 0, or PE_MODULE with what is wrong and what to do in `why`. */
int module_load(const char *path, const struct pure_app **app, void **handle, char *why, size_t why_size);
void module_unload(void *handle);

/* Checks an app's table: the ABI, the functions that must be there, the outputs' names. As above. */
int module_check(const struct pure_app *app, char *why, size_t why_size);

#endif
