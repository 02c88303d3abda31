/* Where a module lies. */
#ifndef PURE_HOST_MODULE_PATH_H
#define PURE_HOST_MODULE_PATH_H

#include <stddef.h>

/* The path of a module as a configuration names it. With a slash: the path, from `directory` if it is
 * relative. Without: an installed app, looked for beside the program that runs (apps/, where a build puts
 * them) and in its ../lib/pure/apps (where an installation does); if it is in neither, the latter's path. 0
 * or PE_TOO_LARGE. */
int module_path(char *path, size_t size, const char *directory, const char *module);

/* Why there is no file at `path`, which module_path has made, and what to do: which places were searched, or
 * that the name lacks its ".so". What matters comes first, for readers with little room. */
void module_path_explain(const char *path, char *why, size_t why_size);

#endif
