#include "host/config_loader.h"

#include "host/config_values.h"

#include <stdio.h>

const struct config_app *config_find_app(const struct config *config, const char *name)
{
    for (unsigned i = 0; i < config->app_count; i++)
        if (strcmp(config->apps[i].name, name) == 0)
            return &config->apps[i];
    return NULL;
}

/* --- apps that are named --- */

/* `section`: which names it, for the message. */
static void check_app(struct config_loader *l, const char *section, unsigned line, const char *name)
{
    const char *names[CONFIG_APPS_MAX];
    const struct config *config = l->config;
    if (config_find_app(config, name))
        return;
    for (unsigned i = 0; i < config->app_count; i++)
        names[i] = config->apps[i].name;
    const char *near = nearest_name(name, names, config->app_count);
    if (near)
        config_fail(l, line, "[%s]: there is no app '%s': did you mean '%s'?", section, name, near);
    else
        config_fail(l, line, "[%s]: there is no app '%s': add [app %s]", section, name, name);
}

static void check_apps_of_outputs(struct config_loader *l)
{
    char section[2 * CONFIG_NAME_MAX + 16];
    for (unsigned i = 0; i < l->config->output_count; i++) {
        const struct config_output *output = &l->config->outputs[i];
        snprintf(section, sizeof(section), "output %s.%s", output->app, output->output);
        check_app(l, section, output->line, output->app);
        if (output->inner_app)
            check_app(l, section, output->inner_line, output->inner_app);
    }
}

static void check_apps_of_peers(struct config_loader *l)
{
    char section[CONFIG_NAME_MAX + 16];
    for (unsigned i = 0; i < l->config->peer_count; i++) {
        const struct config_peer *peer = &l->config->peers[i];
        snprintf(section, sizeof(section), "peer %s", peer->name);
        for (unsigned a = 0; a < peer->app_count; a++)
            check_app(l, section, peer->apps_line, peer->apps[a]);
    }
}

/* --- links --- */

static bool is_link(const struct config_output *output)
{
    return output->link_text && output->link_key_line > 0;
}

/* A host is known by its key and found at its address: one key at two addresses, or two keys at one, is a
 * mistake in one of the two places. Told once an output. */
static void check_place_of_link(struct config_loader *l, const struct config_output *output)
{
    for (const struct config_output *earlier = l->config->outputs; earlier < output; earlier++) {
        if (!is_link(earlier))
            continue;
        bool same_key = memcmp(earlier->link_key, output->link_key, sizeof(output->link_key)) == 0;
        bool same_place = strcmp(earlier->link_text, output->link_text) == 0;
        if (same_key == same_place)
            continue;
        if (same_key)
            config_fail(
                l, output->link_line,
                "link = %s: the host with this key is %s in line %u: outputs with one key lead to one "
                "address",
                output->link_text, earlier->link_text, earlier->link_line);
        else
            config_fail(l, output->link_key_line,
                        "key: the host at %s has another key in line %u: outputs to one address have one key",
                        output->link_text, earlier->link_key_line);
        return;
    }
}

static void check_places_of_links(struct config_loader *l)
{
    for (unsigned i = 0; i < l->config->output_count; i++)
        if (is_link(&l->config->outputs[i]))
            check_place_of_link(l, &l->config->outputs[i]);
}

/* The line of the first key that needs this host's own: a link in or out, a sealed wire; 0: there is none. */
static unsigned first_keyed(const struct config *config, const char **key)
{
    unsigned line = config->link_line;
    *key = "link";
    for (unsigned i = 0; i < config->output_count; i++) {
        const struct config_output *output = &config->outputs[i];
        bool sealed = output->kind == OUTPUT_WIRE;
        unsigned of_output = sealed ? output->link_key_line : output->link_line;
        if (of_output > 0 && (line == 0 || of_output < line)) {
            line = of_output;
            *key = sealed ? "key" : "link";
        }
    }
    return line;
}

static void check_host_key(struct config_loader *l)
{
    const char *key;
    unsigned line = first_keyed(l->config, &key);
    if (line > 0 && !l->config->key_path && !l->config->key_text)
        config_fail(l, line,
                    "%s: this host has no key: make one with 'pure-host key new FILE' and add key = FILE to "
                    "[host]",
                    key);
}

/* --- wires --- */

static bool has_output(const struct config *config, const char *app, const char *name)
{
    for (unsigned i = 0; i < config->output_count; i++)
        if (strcmp(config->outputs[i].app, app) == 0 && strcmp(config->outputs[i].output, name) == 0)
            return true;
    return false;
}

bool config_hears(const struct config *config, const struct config_output *output)
{
    for (unsigned i = 0; i < config->output_count; i++) {
        const struct config_output *o = &config->outputs[i];
        if (o->wire.on_disable && strcmp(o->app, output->app) == 0 &&
            strcmp(o->wire.on_disable, output->output) == 0)
            return true;
    }
    return false;
}

/* Where an output's end is told has to lead somewhere. */
static void check_on_disable(struct config_loader *l, const struct config_output *output)
{
    const char *names[CONFIG_OUTPUTS_MAX], *name = output->wire.on_disable;
    unsigned count = 0;
    if (!name || has_output(l->config, output->app, name))
        return;
    for (unsigned i = 0; i < l->config->output_count; i++)
        if (&l->config->outputs[i] != output && strcmp(l->config->outputs[i].app, output->app) == 0)
            names[count++] = l->config->outputs[i].output;
    const char *near = nearest_name(name, names, count);
    if (near)
        config_fail(l, output->wire.on_disable_line,
                    "on_disable: there is no output '%s.%s': did you mean '%s'?", output->app, name, near);
    else
        config_fail(l, output->wire.on_disable_line,
                    "on_disable: there is no output '%s.%s': add [output %s.%s]", output->app, name,
                    output->app, name);
}

static void check_wires(struct config_loader *l)
{
    for (unsigned i = 0; i < l->config->output_count; i++)
        check_on_disable(l, &l->config->outputs[i]);
}

static void settle_wires(struct config_loader *l)
{
    for (unsigned i = 0; i < l->config->output_count; i++) {
        struct config_output *output = &l->config->outputs[i];
        if (output->kind == OUTPUT_WIRE && config_settle_egress(&output->wire.egress, &l->config->egress) < 0)
            config_fail_memory(l);
    }
}

/* --- what has to be on disk --- */

/* Nothing is kept on disk without a place for it. */
static void settle_durability(struct config *config)
{
    for (unsigned i = 0; i < config->app_count; i++)
        if (!config->store_path)
            config->apps[i].durability = DURABILITY_MEMORY;
}

static void check_store_of_output(struct config_loader *l, const struct config_output *output)
{
    const struct config_app *app = config_find_app(l->config, output->app);
    if (!output->disk_key || !app || app->durability != DURABILITY_MEMORY)
        return;
    if (l->config->store_path)
        config_fail(l, output->disk_line,
                    "%s: nothing of app '%s' is on disk: remove durability = memory from [app %s]",
                    output->disk_key, app->name, app->name);
    else
        config_fail(l, output->disk_line, "%s: nothing is on disk: add store = DIRECTORY to [host]",
                    output->disk_key);
}

static void check_store(struct config_loader *l)
{
    const struct config *config = l->config;
    for (unsigned i = 0; i < config->app_count; i++)
        if (config->apps[i].disk_key && !config->store_path)
            config_fail(l, config->apps[i].disk_line,
                        "%s: nothing is on disk: add store = DIRECTORY to [host]", config->apps[i].disk_key);
    for (unsigned i = 0; i < config->output_count; i++)
        check_store_of_output(l, &config->outputs[i]);
}

/* Of sections that were passed over nothing is known: what is missing may stand in them. */
void config_check_whole(struct config_loader *l)
{
    if (l->config->app_count == 0 && !l->skipped) {
        config_fail(l, l->line > 0 ? l->line : 1, "no app: add [app NAME] with module = PATH");
    } else if (!l->skipped) {
        check_apps_of_outputs(l);
        check_apps_of_peers(l);
        check_wires(l);
    }
    check_places_of_links(l);
    settle_durability(l->config);
    settle_wires(l);
    if (!l->skipped && !l->host_failed) {
        check_host_key(l);
        check_store(l);
    }
}

void config_doubts(const struct config *config, const struct config_listener *listener)
{
    char line[CONFIG_PROBLEM_MAX];
    if (config->link && config->peer_count == 0) {
        snprintf(line, sizeof line,
                 "%s:%u: link: nobody may send here: add a section [peer NAME] for each host that may",
                 config->path, config->link_line);
        listener->tell(listener->context, line);
    }
    if (!config->link && !config->key_path && !config->key_text && config->peer_count > 0) {
        snprintf(
            line, sizeof line,
            "%s:%u: [peer %s]: nothing comes in over links: add link = ADDRESS:PORT to [host], or key = FILE "
            "alone for sealed wires",
            config->path, config->peers[0].line, config->peers[0].name);
        listener->tell(listener->context, line);
    }
}
