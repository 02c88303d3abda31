#include "host/config_loader.h"

#include "core/clock.h"
#include "core/record.h"
#include "host/config_values.h"
#include "link/mtu.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const section_words[CONFIG_SECTIONS] = {[SECTION_NONE] = "",
                                                           [SECTION_HOST] = "host",
                                                           [SECTION_APP] = "app",
                                                           [SECTION_OUTPUT] = "output",
                                                           [SECTION_PEER] = "peer"};

const char *config_section_text(enum config_section section)
{
    static const char *const texts[CONFIG_SECTIONS] = {[SECTION_NONE] = "",
                                                       [SECTION_HOST] = "[host]",
                                                       [SECTION_APP] = "[app]",
                                                       [SECTION_OUTPUT] = "[output]",
                                                       [SECTION_PEER] = "[peer]"};
    return texts[section];
}

/* --- the start of a section --- */

/* Room for one more, `count` being there: grown at powers of two. */
static void *grow(void *array, unsigned count, size_t size)
{
    if (count > 0 && (count & (count - 1)) != 0)
        return array;
    return reallocarray(array, count > 0 ? 2 * count : 1, size);
}

static int start_host(struct config_loader *l, const char *name)
{
    if (name[0])
        return config_fail(l, l->line, "[host] takes no name: write [host]");
    if (l->host_line > 0)
        return config_fail(l, l->line, "[host] is given twice: it stands in line %u already", l->host_line);
    l->host_line = l->line;
    return 0;
}

static int start_app(struct config_loader *l, const char *name)
{
    struct config *config = l->config;
    if (!value_is_name(name, CONFIG_NAME_MAX, ""))
        return config_fail(l, l->line, "[app %s]: an app's name is 1 to %d letters, digits, '-' or '_'", name,
                           CONFIG_NAME_MAX);
    const struct config_app *earlier = config_find_app(config, name);
    if (earlier)
        return config_fail(l, l->line, "[app %s] is given twice: it stands in line %u already", name,
                           earlier->line);
    if (config->app_count == CONFIG_APPS_MAX)
        return config_fail(l, l->line, "more than %d apps", CONFIG_APPS_MAX);
    struct config_app *apps = grow(config->apps, config->app_count, sizeof(*apps));
    if (!apps)
        return config_fail_memory(l);
    config->apps = apps;
    struct config_app *app = &apps[config->app_count++];
    *app = (struct config_app){.line = l->line,
                               .arg_line = l->line,
                               .inbox_bytes = 4 << 20,
                               .interval_ns = 5 * NS_PER_MS,
                               .turn_limit_ns = 10 * NS_PER_S,
                               .memory_bytes = 256 << 20};
    app->name = strdup(name);
    app->arg = strdup("");
    return app->name && app->arg ? 0 : config_fail_memory(l);
}

static void output_defaults(struct config_output *output)
{
    output->kind = OUTPUT_WIRE;
    output->mode = WIRE_WEBHOOK;
    output->queue_bytes = 4 << 20;
    output->backlog_bytes = UINT64_C(1) << 30;
    output->dead = 10000;
    output->batch_bytes = 256 << 10;
    output->progress_ns = 10 * NS_PER_S;
    output->reply_ns = 30 * NS_PER_S;
    output->total_ns = 300 * NS_PER_S;
    output->backoff_min_ns = 100 * NS_PER_MS;
    output->backoff_max_ns = 60 * NS_PER_S;
    output->link_mtu = MTU_MAX;
    output->wire.concurrency = 1;
}

static int check_output_name(struct config_loader *l, const char *app, const char *output)
{
    if (!value_is_name(app, CONFIG_NAME_MAX, "") || !value_is_name(output, CONFIG_NAME_MAX, ""))
        return config_fail(l, l->line,
                           "an output's section is [output APP.OUTPUT], both 1 to %d letters, digits, '-' or "
                           "'_'",
                           CONFIG_NAME_MAX);
    const struct config *config = l->config;
    for (unsigned i = 0; i < config->output_count; i++) {
        const struct config_output *earlier = &config->outputs[i];
        if (strcmp(earlier->app, app) == 0 && strcmp(earlier->output, output) == 0)
            return config_fail(l, l->line, "[output %s.%s] is given twice: it stands in line %u already", app,
                               output, earlier->line);
    }
    if (config->output_count == CONFIG_OUTPUTS_MAX)
        return config_fail(l, l->line, "more than %d outputs", CONFIG_OUTPUTS_MAX);
    return 0;
}

/* `name` is cut at its first dot. */
static int start_output(struct config_loader *l, char *name)
{
    struct config *config = l->config;
    char *dot = strchr(name, '.');
    const char *output_name = dot ? dot + 1 : "";
    if (dot)
        *dot = '\0';
    if (check_output_name(l, name, output_name) < 0)
        return PE_CONFIG;
    struct config_output *outputs = grow(config->outputs, config->output_count, sizeof(*outputs));
    if (!outputs)
        return config_fail_memory(l);
    config->outputs = outputs;
    struct config_output *output = &outputs[config->output_count++];
    *output = (struct config_output){.line = l->line};
    output_defaults(output);
    output->app = strdup(name);
    output->output = strdup(output_name);
    return output->app && output->output ? 0 : config_fail_memory(l);
}

static int check_peer_name(struct config_loader *l, const char *name)
{
    const struct config *config = l->config;
    if (!value_is_name(name, CONFIG_NAME_MAX, "."))
        return config_fail(l, l->line, "[peer %s]: a peer's name is 1 to %d letters, digits, '-', '_' or '.'",
                           name, CONFIG_NAME_MAX);
    for (unsigned i = 0; i < config->peer_count; i++)
        if (strcmp(config->peers[i].name, name) == 0)
            return config_fail(l, l->line, "[peer %s] is given twice: it stands in line %u already", name,
                               config->peers[i].line);
    if (config->peer_count == CONFIG_PEERS_MAX)
        return config_fail(l, l->line, "more than %d peers", CONFIG_PEERS_MAX);
    return 0;
}

static int start_peer(struct config_loader *l, const char *name)
{
    struct config *config = l->config;
    if (check_peer_name(l, name) < 0)
        return PE_CONFIG;
    struct config_peer *peers = grow(config->peers, config->peer_count, sizeof(*peers));
    if (!peers)
        return config_fail_memory(l);
    config->peers = peers;
    struct config_peer *peer = &peers[config->peer_count++];
    *peer = (struct config_peer){.line = l->line, .name = strdup(name)};
    return peer->name ? 0 : config_fail_memory(l);
}

static int fail_unknown_section(struct config_loader *l, const char *word, const char *name)
{
    const char *near = nearest_name(word, section_words + 1, CONFIG_SECTIONS - 1);
    const char *space = name[0] ? " " : "";
    if (near)
        return config_fail(l, l->line, "unknown section [%s%s%s]: did you mean [%s%s%s]?", word, space, name,
                           near, space, name);
    return config_fail(l, l->line,
                       "unknown section [%s%s%s]: known are [host], [app NAME], "
                       "[output APP.OUTPUT], [peer NAME]",
                       word, space, name);
}

void config_skip_section(struct config_loader *l)
{
    l->section = SECTION_NONE;
    l->skipping = l->skipped = true;
}

static int start_named(struct config_loader *l, const char *word, char *name)
{
    if (strcmp(word, "host") == 0) {
        l->section = SECTION_HOST;
        return start_host(l, name);
    }
    if (strcmp(word, "app") == 0) {
        l->section = SECTION_APP;
        return start_app(l, name);
    }
    if (strcmp(word, "output") == 0) {
        l->section = SECTION_OUTPUT;
        return start_output(l, name);
    }
    if (strcmp(word, "peer") == 0) {
        l->section = SECTION_PEER;
        return start_peer(l, name);
    }
    return fail_unknown_section(l, word, name);
}

void config_start_section(struct config_loader *l, char *text)
{
    char *word = text + strspn(text, " \t");
    char *name = word + strcspn(word, " \t");
    char *end = text + strlen(text);
    while (end > name && (end[-1] == ' ' || end[-1] == '\t'))
        *--end = '\0';
    if (*name)
        *name++ = '\0';
    name += strspn(name, " \t");
    memset(l->lines, 0, sizeof(l->lines));
    l->section_line = l->line;
    l->section_problems = l->problems;
    if (start_named(l, word, name) < 0)
        config_skip_section(l);
}

/* --- the end of a section: what its keys must be together --- */

/* Which of the section's keys, of those that `need`, stands first: its name, or NULL. */
static const char *first_given(const struct config_loader *l, const char *const *need, unsigned count,
                               unsigned *line)
{
    const char *first = NULL;
    *line = 0;
    for (unsigned i = 0; i < count; i++) {
        unsigned given = config_key_line(l, need[i]);
        if (given > 0 && (*line == 0 || given < *line)) {
            *line = given;
            first = need[i];
        }
    }
    return first;
}

/* An interval is asked for by its length alone, too. Whether there is a store is seen once all sections are
 * read (config_whole.c). */
static int end_app_durability(struct config_loader *l, struct config_app *app)
{
    static const char *const need[] = {"durability", "interval", "keep"};
    unsigned durability = config_key_line(l, "durability"), interval = config_key_line(l, "interval");
    if (interval > 0 && durability == 0)
        app->durability = DURABILITY_INTERVAL;
    if (interval > 0 && app->durability != DURABILITY_INTERVAL)
        return config_fail(l, interval, "interval is for durability = interval: keep one of the two");
    if (app->durability == DURABILITY_MEMORY) {
        if (config_key_line(l, "keep") > 0)
            return config_fail(l, config_key_line(l, "keep"),
                               "keep: with durability = memory there is no history: keep one of the two");
        return 0;
    }
    app->disk_key = first_given(l, need, ARRAY_SIZE(need), &app->disk_line);
    return 0;
}

static int end_app(struct config_loader *l, struct config_app *app)
{
    if (!app->module)
        return config_fail(l, l->section_line, "[app %s] has no module: add module = PATH", app->name);
    return end_app_durability(l, app);
}

static int end_output_strings(struct config_loader *l, struct config_output *output)
{
    if (!output->event)
        output->event = strdup(output->output);
    if (!output->content_type)
        output->content_type = strdup("application/json");
    return output->event && output->content_type ? 0 : config_fail_memory(l);
}

/* A record that its queue cannot hold could never be sent. */
static int end_output_sizes(struct config_loader *l, struct config_output *output)
{
    unsigned line = config_key_line(l, "max_record");
    if (output->max_record == 0)
        output->max_record = (uint32_t)min_u64(RECORD_MAX_BYTES, output->queue_bytes / 4);
    if (record_framed_size(output->max_record) > output->queue_bytes)
        return config_fail(l, line, "max_record is larger than the queue: raise queue or lower max_record");
    if (output->backoff_min_ns > output->backoff_max_ns) {
        unsigned max_line = config_key_line(l, "backoff_max");
        return config_fail(l, max_line > 0 ? max_line : config_key_line(l, "backoff_min"),
                           "backoff_max is shorter than backoff_min: raise it");
    }
    return 0;
}

/* `backlog = 0` and `attempts = 0` ask for nothing. */
static void end_output_disk(struct config_loader *l, struct config_output *output)
{
    const char *need[3];
    unsigned count = 0;
    if (output->backlog_bytes > 0)
        need[count++] = "backlog";
    if (output->attempts > 0)
        need[count++] = "attempts";
    need[count++] = "dead";
    output->disk_key = first_given(l, need, count, &output->disk_line);
}

/* The URL of mode = pure is that of a host; its requests go to the receiving app's records below it. */
static int end_pure_wire(struct config_loader *l, struct config_output *output)
{
    char *target = output->url.target;
    if (!output->target_app)
        return config_fail(l, l->section_line,
                           "[output %s.%s] has mode = pure and names no receiving app: add app = NAME",
                           output->app, output->output);
    if (strchr(target, '?'))
        return config_fail(l, config_key_line(l, "wire"),
                           "wire: with mode = pure the URL has no query: remove all from the '?' on");
    size_t used = strlen(target), size = sizeof(output->url.target);
    if (used > 0 && target[used - 1] == '/')
        used--;
    if ((size_t)snprintf(target + used, size - used, "/apps/%s/records", output->target_app) >= size - used)
        return config_fail(l, config_key_line(l, "wire"), "wire: the URL is too long");
    return 0;
}

/* What a link takes is up to the receiving host's limit, which is the largest record. */
static int end_link(struct config_loader *l, struct config_output *output)
{
    if (output->link_key_line == 0)
        return config_fail(l, l->section_line,
                           "[output %s.%s] is a link and has no key: add key = the public key of the other "
                           "host, as 'pure-host key show' prints it there",
                           output->app, output->output);
    if (!output->target_app)
        return config_fail(l, l->section_line,
                           "[output %s.%s] is a link and names no receiving app: add app = NAME", output->app,
                           output->output);
    if (output->max_record > RECORD_MAX_BYTES)
        return config_fail(l, config_key_line(l, "max_record"),
                           "max_record: links take records of up to 1M: lower it");
    return 0;
}

static int end_output(struct config_loader *l, struct config_output *output)
{
    const char *belongs, *misplaced;
    unsigned place = 0;
    int error = 0;
    if (config_key_line(l, "wire") == 0 && config_key_line(l, "inner") == 0 &&
        config_key_line(l, "link") == 0)
        return config_fail(l, l->section_line,
                           "[output %s.%s] leads nowhere: add wire = URL, link = HOST:PORT or inner = APP",
                           output->app, output->output);
    while ((misplaced = config_misplaced_key(l, output, &place, &belongs)))
        error = config_fail(l, config_key_line(l, misplaced), "'%s' is for %s only: remove it", misplaced,
                            belongs);
    if (error < 0)
        return error; /* the output may not be meant to be of the kind that it is */
    if (output->kind == OUTPUT_WIRE && output->mode == WIRE_PURE && end_pure_wire(l, output) < 0)
        return PE_CONFIG;
    if (output->kind == OUTPUT_LINK && end_link(l, output) < 0)
        return PE_CONFIG;
    error = config_end_wire(l, output);
    if (end_output_sizes(l, output) < 0 || error < 0)
        return PE_CONFIG;
    end_output_disk(l, output);
    return end_output_strings(l, output);
}

bool config_is_loopback(const struct sockaddr_storage *address)
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)address;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)address;
    if (address->ss_family == AF_INET)
        return ntohl(v4->sin_addr.s_addr) >> 24 == 127;
    if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
        return v6->sin6_addr.s6_addr[12] == 127;
    return IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
}

static int end_host(struct config_loader *l, const struct config *config)
{
    if (config_key_line(l, "segment") > 0 && !config->store_path)
        return config_fail(l, config_key_line(l, "segment"),
                           "segment is for a store on disk: add store = DIRECTORY, or remove it");
    if (!config->http && !config->https.text)
        return config_fail(l, config_key_line(l, "http"),
                           "http = none leaves no way to ask the host for anything: add https = "
                           "ADDRESS:PORT, or listen on 127.0.0.1");
    if (!config->http || config_is_loopback(&config->http_address) || config->token)
        return config_end_https(l, config);
    return config_fail(l, config_key_line(l, "http"),
                       "http is reached from other machines: add token = file:PATH to [host], or listen on "
                       "127.0.0.1");
}

static int end_peer(struct config_loader *l, const struct config_peer *peer)
{
    if (peer->key_line == 0)
        return config_fail(
            l, l->section_line,
            "[peer %s] has no key: add key = its public key, as 'pure-host key show' prints it "
            "there",
            peer->name);
    if (peer->app_count == 0)
        return config_fail(l, l->section_line,
                           "[peer %s] may send to no app: add apps = those it may send to", peer->name);
    return 0;
}

/* A section with a problem is not complained of as a whole, too: what it seems to lack may be misspelt. */
int config_end_section(struct config_loader *l)
{
    struct config *config = l->config;
    if (l->problems > l->section_problems) {
        l->host_failed |= l->section == SECTION_HOST;
        return PE_CONFIG;
    }
    switch (l->section) {
    case SECTION_HOST:
        return end_host(l, config);
    case SECTION_APP:
        return end_app(l, &config->apps[config->app_count - 1]);
    case SECTION_OUTPUT:
        return end_output(l, &config->outputs[config->output_count - 1]);
    case SECTION_PEER:
        return end_peer(l, &config->peers[config->peer_count - 1]);
    default:
        return 0;
    }
}
