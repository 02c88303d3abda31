/* The readers of keys about what is kept on disk: [host] store, an [app]'s durability and history. */
#include "host/config_readers.h"

#include "core/clock.h"
#include "host/config_values.h"

#include <stdlib.h>

#define KEEP_NS_MIN    NS_PER_S
#define KEEP_NS_MAX    (3650 * 24 * 3600 * NS_PER_S)
#define KEEP_BYTES_MIN (UINT64_C(1) << 20)
#define KEEP_BYTES_MAX (UINT64_C(1) << 40)

/* A directory need not be there yet; one that is nearly called "memory" was most likely not meant to be. */
int config_read_store(struct config_loader *l, const struct config_key *key, void *field,
                      const struct config_value *value)
{
    static const char *const names[] = {"memory"};
    char **path = field;
    l->config->store_line = l->line;
    if (strcmp(value->text, names[0]) == 0)
        return 0;
    if (value->text[0] == '\0')
        return config_fail(l, l->line, "%s: needs memory, or the path of a directory", key->name);
    if (!strchr(value->text, '/') &&
        (strcasecmp(value->text, names[0]) == 0 || nearest_name(value->text, names, ARRAY_SIZE(names))))
        return config_fail(l, l->line,
                           "%s = %s: did you mean 'memory'? If it is a directory, write it with a slash",
                           key->name, value->written);
    return value_path(l->directory, value->text, path) < 0 ? config_fail_memory(l) : 0;
}

int config_read_durability(struct config_loader *l, const struct config_key *key, void *field,
                           const struct config_value *value)
{
    static const char *const names[] = {
        [DURABILITY_SYNC] = "sync", [DURABILITY_INTERVAL] = "interval", [DURABILITY_MEMORY] = "memory"};
    for (unsigned i = 0; i < ARRAY_SIZE(names); i++)
        if (strcmp(value->text, names[i]) == 0) {
            *(enum app_durability *)field = (enum app_durability)i;
            return 0;
        }
    const char *near = nearest_name(value->text, names, ARRAY_SIZE(names));
    if (near)
        return config_fail(l, l->line, "%s = %s: unknown: did you mean '%s'?", key->name, value->written,
                           near);
    return config_fail(l, l->line, "%s = %s: unknown: known are sync, interval, memory", key->name,
                       value->written);
}

/* One of the two limits of a history, told apart by their units. 0 or PE_CONFIG. */
static int read_limit(const char *text, uint64_t *ms, uint64_t *bytes)
{
    uint64_t number;
    if (value_time(text, &number) == 0) {
        if (*ms > 0 || number < KEEP_NS_MIN || number > KEEP_NS_MAX)
            return PE_CONFIG;
        *ms = number / NS_PER_MS;
        return 0;
    }
    if (value_size(text, &number) < 0 || *bytes > 0 || number < KEEP_BYTES_MIN || number > KEEP_BYTES_MAX)
        return PE_CONFIG;
    *bytes = number;
    return 0;
}

int config_read_keep(struct config_loader *l, const struct config_key *key, void *field,
                     const struct config_value *value)
{
    struct config_app *app = field;
    char *rest = value->text, *part;
    uint64_t ms = 0, bytes = 0;
    while ((part = strsep(&rest, ",")))
        if (read_limit(value_trim(part), &ms, &bytes) < 0)
            return config_fail(
                l, l->line,
                "%s = %s: needs a time from 1s to 3650d, a size from 1M to 1T, or both, such as "
                "7d, 1G",
                key->name, value->written);
    app->keep_ms = ms;
    app->keep_bytes = bytes;
    return 0;
}
