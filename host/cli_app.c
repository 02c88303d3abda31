/* `pure-host app`: deaths of an app are forgotten, in a running host or in the store of one that does not
 * run.
 */
#include "host/cli_commands.h"

#include "host/cli_running.h"
#include "host/cli_store.h"
#include "host/config_values.h"
#include "host/turn_mark.h"

#include <stdio.h>
#include <stdlib.h>

static bool is_verb(const char *text)
{
    static const char *const verbs[] = {"resume"};
    if (strcmp(text, verbs[0]) == 0)
        return true;
    if (nearest_name(text, verbs, ARRAY_SIZE(verbs)))
        cli_fail(CLI_USAGE, "unknown 'app %s': did you mean 'app resume'?", text);
    else
        cli_fail(CLI_USAGE, "unknown 'app %s': known is resume", text);
    return false;
}

static int ask(struct cli_running *running, const char *app)
{
    char path[CLI_PATH_MAX];
    struct cli_reply reply;
    struct span answer;
    snprintf(path, sizeof(path), "/apps/%s/resume", app);
    int status = cli_ask(running, "POST", path, "", &reply, &answer);
    if (status != 0)
        return status;
    free(reply.body);
    printf("%s is resumed: restart the host to load it\n", app);
    return CLI_DONE;
}

static const struct config_app *find(const struct config *config, const char *name)
{
    for (unsigned i = 0; i < config->app_count; i++)
        if (strcmp(config->apps[i].name, name) == 0)
            return &config->apps[i];
    return NULL;
}

static int forget(const struct config *config, const char *name)
{
    const struct config_app *entry = find(config, name);
    struct mark_app app = {0};
    if (!entry)
        return cli_fail(CLI_USAGE, "%s has no [app %s]", config->path, name);
    snprintf(app.name, sizeof(app.name), "%s", name);
    app.module = mark_module_at(entry->module);
    int deaths = mark_forget_in(config->store_path, &app);
    if (deaths < 0)
        return cli_fail(CLI_FAILED, "%s: %s", config->store_path, pure_error_text(deaths));
    if (deaths == 0)
        return cli_fail(CLI_FAILED, "no deaths of %s are counted: nothing to resume", name);
    printf("%s is resumed\n", name);
    return CLI_DONE;
}

int cli_app(const struct cli_arguments *arguments, const struct host_options *options)
{
    const char *verb = arguments->operands[0], *app = arguments->operands[1];
    struct cli_running running;
    if (!is_verb(verb) || !cli_is_app(app))
        return CLI_USAGE;
    int status = cli_find_running(&running, arguments);
    bool stopped = status == 0 && running.configured && running.config.store_path &&
                   !cli_store_in_use(running.config.store_path, options);
    if (status == 0)
        status = stopped ? forget(&running.config, app) : ask(&running, app);
    cli_forget_running(&running);
    return status;
}
