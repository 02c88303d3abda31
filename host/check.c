#include "host/check.h"

#include "host/cli_store.h"
#include "host/config_values.h"
#include "host/key_file.h"
#include "host/turn_guard.h"

#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define APP_OUTPUTS_MAX 256

static bool has_output(const struct pure_app *app, const char *name)
{
    for (unsigned i = 0; app->outputs[i]; i++)
        if (strcmp(app->outputs[i], name) == 0)
            return true;
    return false;
}

static void print_unknown_output(const struct config *config, const struct config_output *output,
                                 const struct pure_app *app, FILE *out)
{
    unsigned count = 0;
    while (count < APP_OUTPUTS_MAX && app->outputs[count])
        count++;
    fprintf(out, "pure-host: %s:%u: [output %s.%s]: the module has no output '%s': ", config->path,
            output->line, output->app, output->output, output->output);
    const char *near = nearest_name(output->output, app->outputs, count);
    if (near)
        fprintf(out, "did you mean '%s'?\n", near);
    else if (count == 0)
        fputs("it has none\n", out);
    else {
        fputs("known are ", out);
        for (unsigned i = 0; i < count; i++)
            fprintf(out, "%s%s", i ? ", " : "", app->outputs[i]);
        fputc('\n', out);
    }
}

static unsigned check_outputs(const struct config *config, const char *name, const struct pure_app *app,
                              FILE *out)
{
    unsigned problems = 0;
    for (unsigned i = 0; i < config->output_count; i++) {
        const struct config_output *output = &config->outputs[i];
        if (strcmp(output->app, name) != 0 || has_output(app, output->output) || config_hears(config, output))
            continue;
        print_unknown_output(config, output, app, out);
        problems++;
    }
    return problems;
}

/* Opens the app as the host would, so that what it thinks of its argument is heard. */
static unsigned check_opening(const struct config *config, const struct config_app *entry,
                              const struct pure_app *app, struct guard_app *guard, FILE *out)
{
    char why[160] = "";
    void *state = NULL;
    guard_enter(guard, "open");
    bool opened = app->open(&state, entry->arg, why, sizeof(why)) == 0;
    guard_leave();
    if (opened) {
        guard_enter(guard, "close");
        app->close(state);
        guard_leave();
        return 0;
    }
    fprintf(out, "pure-host: %s:%u: [app %s]: the app does not open: %s\n", config->path, entry->arg_line,
            entry->name, why[0] ? why : "it gives no reason");
    return 1;
}

/* What has ended the host's process as often would end this one, too. */
static bool has_died(const struct config *config, const struct config_app *entry, FILE *out)
{
    struct mark_app app = {.module = mark_module_at(entry->module)};
    memcpy(app.name, entry->name, strlen(entry->name));
    if (!config->store_path || mark_peek(config->store_path, &app) < MARK_DEATHS)
        return false;
    fprintf(
        out,
        "pure-host: note: %s:%u: [app %s]: not loaded: it has ended the host's process %d times in a row; "
        "pure-host app resume %s forgets that\n",
        config->path, entry->line, entry->name, MARK_DEATHS, entry->name);
    return true;
}

static unsigned check_app(const struct config *config, const struct config_app *entry,
                          const struct host_options *options, struct guard_app *guard, FILE *out)
{
    const struct pure_app *app;
    void *handle;
    char why[512] = "";
    if (has_died(config, entry, out))
        return 0;
    guard_enter(guard, "loading");
    int error = options->load_module(options->context, entry->module, &app, &handle, why, sizeof(why));
    guard_leave();
    if (error < 0) {
        fprintf(out, "pure-host: %s:%u: [app %s]: the module cannot be used: %s\n", config->path,
                entry->module_line, entry->name, why);
        return 1;
    }
    unsigned problems = check_outputs(config, entry->name, app, out);
    problems += check_opening(config, entry, app, guard, out);
    guard_enter(guard, "unloading");
    options->unload_module(options->context, handle);
    guard_leave();
    return problems;
}

static bool kernel_refuses(const struct host_options *options, FILE *out)
{
    struct io *io;
    char why[512] = "";
    int error = options->open_io(options->context, &io, why, sizeof(why));
    if (error == 0) {
        io_dispose(io);
        return false;
    }
    fprintf(out, "pure-host: the kernel: %s\n", why[0] ? why : pure_error_text(error));
    return true;
}

/* The process's own, as a host has it, but that deaths here are not remembered: `run` is to have its tries.
 */
struct check_guard {
    struct turn_guard guard;
    struct guard_watch watch;
    bool open;
};

static int open_guard(struct check_guard *g, const struct config *config)
{
    int unmarked;
    const struct guard_options options = {
        .config = config, .threads = 1, .fd = STDERR_FILENO, .for_people = true};
    int error = guard_open(&g->guard, &options, &unmarked);
    g->open = error == 0;
    if (error == 0)
        error = guard_thread_begin(&g->guard, 0);
    if (error == 0)
        error = guard_watch_begin(&g->watch, false);
    if (error == 0)
        guard_watch(&g->watch, guard_here);
    return error;
}

static void close_guard(struct check_guard *g)
{
    guard_watch_end(&g->watch);
    guard_thread_end();
    if (g->open)
        guard_close(&g->guard);
}

unsigned check_apps(const struct config *config, const struct host_options *options, FILE *out)
{
    struct check_guard g = {.open = false};
    unsigned problems = 0;
    int error = options->guards ? open_guard(&g, config) : 0;
    if (error < 0) {
        fprintf(out, "pure-host: the apps cannot be checked: %s\n", pure_error_text(error));
        problems++;
    }
    for (unsigned i = 0; error == 0 && i < config->app_count; i++)
        problems += check_app(config, &config->apps[i], options, g.open ? &g.guard.apps[i] : NULL, out);
    close_guard(&g);
    return problems;
}

unsigned check_key(const struct config *config, FILE *out)
{
    struct host_key key;
    char why[512];
    if (!config->key_path && !config->key_text)
        return 0;
    int error = key_file_of_config(config, &key, why, sizeof(why));
    host_key_wipe(&key);
    if (error == 0)
        return 0;
    fprintf(out, "pure-host: %s:%u: key: %s\n", config->path, config->key_line, why);
    return 1;
}

/* A file that several outputs share is told of for each: each of its lines is to be right. */
unsigned check_secrets(const struct config *config, FILE *out)
{
    unsigned problems = 0;
    for (unsigned i = 0; i < config->output_count; i++) {
        const struct config_wire *w = &config->outputs[i].wire;
        struct stat is;
        if (!w->secrets_path || stat(w->secrets_path, &is) < 0 || (is.st_mode & S_IRWXO) == 0 ||
            key_file_is_credential(w->secrets_path))
            continue;
        fprintf(out,
                "pure-host: %s:%u: sign: %s: everybody on this machine may use these secrets (mode %03o): "
                "chmod o-rwx\n",
                config->path, w->secrets_line, w->secrets_path, (unsigned)(is.st_mode & 0777));
        problems++;
    }
    return problems;
}

/* --- the store --- */

static unsigned store_problem(const struct config *config, FILE *out, const char *what, const char *reason,
                              const char *remedy)
{
    fprintf(out, "pure-host: %s:%u: store: %s%s: %s%s\n", config->path, config->store_line,
            config->store_path, what, reason, remedy);
    return 1;
}

static unsigned check_parent(const struct config *config, FILE *out)
{
    char *path = strdup(config->store_path);
    int error = !path ? ENOMEM : access(dirname(path), W_OK | X_OK) < 0 ? errno : 0;
    free(path);
    if (error == 0)
        return 0;
    return store_problem(config, out, " is not there and cannot be made", strerror(error),
                         error == ENOENT ? ": make the directory above it" : ": make it for the host's user");
}

static unsigned check_directory(const struct config *config, FILE *out)
{
    struct stat is;
    if (stat(config->store_path, &is) < 0)
        return errno == ENOENT ? check_parent(config, out)
                               : store_problem(config, out, " cannot be used", strerror(errno), "");
    if (!S_ISDIR(is.st_mode))
        return store_problem(config, out, " cannot be used", strerror(ENOTDIR), "");
    if (access(config->store_path, R_OK | W_OK | X_OK) < 0)
        return store_problem(config, out, " cannot be used", strerror(errno),
                             ": it is to belong to the host's user, and the check is to be run as that");
    return 0;
}

/* What recovery would find: a running host has a part of it, which may just be written. */
static unsigned check_segments(const struct config *config, const struct host_options *options, FILE *out,
                               bool *degraded)
{
    struct store store;
    char why[512] = "";
    if (cli_store_open(&store, config->store_path, options, why, sizeof(why)) < 0) {
        fprintf(out, "pure-host: %s:%u: store: %s\n", config->path, config->store_line, why);
        return 1;
    }
    *degraded = cli_store_degraded(&store);
    if (*degraded)
        fprintf(out, "pure-host: %s:%u: store: %s is damaged: pure-host fsck %s says where\n", config->path,
                config->store_line, config->store_path, config->store_path);
    store_close(&store);
    return 0;
}

unsigned check_store(const struct config *config, const struct host_options *options, FILE *out,
                     bool *degraded)
{
    *degraded = false;
    if (!config->store_path)
        return 0;
    if (check_directory(config, out) > 0)
        return 1;
    if (access(config->store_path, F_OK) < 0)
        return 0;
    if (cli_store_in_use(config->store_path, options))
        fprintf(out, "pure-host: note: %s:%u: store: a running host has %s open\n", config->path,
                config->store_line, config->store_path);
    return check_segments(config, options, out, degraded);
}

/* Right, but hardly what anybody wants of a host that serves. */
static void warn_left_out(const struct config *config, FILE *out)
{
    char names[OVERLOAD_NAMES_MAX];
    overload_left_out(&config->without, names);
    if (names[0] != '\0')
        fprintf(
            out,
            "pure-host: note: %s: without = %s: for experiments only; a host that serves leaves out none\n",
            config->path, names);
}

struct check_result check_config(const struct config *config, const struct host_options *options, FILE *out)
{
    struct check_result result = {.problems = check_key(config, out)};
    warn_left_out(config, out);
    result.problems += check_secrets(config, out);
    result.problems += check_tls(config, time(NULL), out);
    result.problems += check_apps(config, options, out);
    result.problems += check_store(config, options, out, &result.degraded);
    result.kernel = kernel_refuses(options, out);
    return result;
}
