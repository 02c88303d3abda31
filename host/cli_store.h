/* What commands share that look into a store: they change nothing, and a host may have it open. */
#ifndef PURE_HOST_CLI_STORE_H
#define PURE_HOST_CLI_STORE_H

#include "host/host.h"
#include "journal/store.h"

/* For reading. As store_open; `path` is the caller's, as long as the store is open. */
int cli_store_open(struct store *store, const char *path, const struct host_options *options, char *why,
                   size_t why_size);

/* Whether opening found damage that no recovery and no repair has noted yet. Segments that were ended in
 * order are not read for that: fsck reads all. */
bool cli_store_degraded(const struct store *store);

/* Whether a process, most likely a host, has the store at `path` open to write. */
bool cli_store_in_use(const char *path, const struct host_options *options);

/* The calls that it is looked at with. */
struct files *cli_files(const struct host_options *options);

#endif
