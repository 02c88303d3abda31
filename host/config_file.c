/* Configurations from files, and those of which the first problem is enough. */
#include "host/config.h"

#include "host/config_values.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

static int tell_whole(const struct config_listener *listener, const char *path, int error, const char *what)
{
    char problem[CONFIG_PROBLEM_MAX];
    snprintf(problem, sizeof(problem), "%s: %s", path, what);
    listener->tell(listener->context, problem);
    return error;
}

int config_load_all(struct config *config, const char *path, const struct config_listener *listener)
{
    size_t size = CONFIG_FILE_MAX + 1;
    uint8_t *bytes = malloc(size);
    ssize_t used = bytes ? config_read_file(path, bytes, size) : -ENOMEM;
    char why[128];
    int failed;
    memset(config, 0, sizeof(*config));
    if (used < 0) {
        snprintf(why, sizeof(why), "cannot be read: %s", strerror((int)-used));
        failed = tell_whole(listener, path, (int)used, why);
    } else if (used > CONFIG_FILE_MAX) {
        snprintf(why, sizeof(why), "larger than %d bytes", CONFIG_FILE_MAX);
        failed = tell_whole(listener, path, PE_CONFIG, why);
    } else {
        failed = config_load_text_all(config, path, span_of(bytes, (size_t)used), listener);
    }
    if (bytes)
        explicit_bzero(bytes, size);
    free(bytes);
    return failed;
}

/* --- the first problem only --- */

struct first_problem {
    char *text;
    size_t size;
};

static void keep_problem(void *context, const char *problem)
{
    struct first_problem *first = context;
    snprintf(first->text, first->size, "%s", problem);
}

int config_load_text(struct config *config, const char *path, struct span text, char *error,
                     size_t error_size)
{
    struct first_problem first = {error, error_size};
    const struct config_listener listener = {keep_problem, &first, 1};
    return config_load_text_all(config, path, text, &listener);
}

int config_load(struct config *config, const char *path, char *error, size_t error_size)
{
    struct first_problem first = {error, error_size};
    const struct config_listener listener = {keep_problem, &first, 1};
    return config_load_all(config, path, &listener);
}
