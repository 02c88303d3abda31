#include "host/config_readers.h"

#include "core/clock.h"
#include "core/record.h"
#include "host/config_values.h"
#include "host/inbox.h"
#include "host/module_path.h"
#include "link/mtu.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

enum applies { FOR_WEBHOOK = 1 << WIRE_WEBHOOK, FOR_BATCH = 1 << WIRE_BATCH, FOR_PURE = 1 << WIRE_PURE };
#define FOR_WIRES (FOR_WEBHOOK | FOR_BATCH | FOR_PURE)
#define FOR_HOOKS (FOR_WEBHOOK | FOR_BATCH)
#define FOR_INNER (1 << 8)
#define FOR_LINK  (1 << 9)
#define FOR_ALL   (FOR_WIRES | FOR_INNER | FOR_LINK)

/* --- readers --- */

int config_keep_text(struct config_loader *l, char **field, const char *text)
{
    char *copy = strdup(text);
    if (!copy)
        return config_fail_memory(l);
    value_dispose(*field);
    *field = copy;
    return 0;
}

static int read_arg(struct config_loader *l, const struct config_key *key, void *field,
                    const struct config_value *value)
{
    struct config_app *app = field;
    (void)key;
    app->arg_line = l->line;
    return config_keep_text(l, &app->arg, value->text);
}

static bool printable(const char *text, char first)
{
    for (; *text; text++)
        if (*text < first || *text > '~')
            return false;
    return true;
}

static int read_content_type(struct config_loader *l, const struct config_key *key, void *field,
                             const struct config_value *value)
{
    if (value->text[0] == '\0' || !printable(value->text, ' '))
        return config_fail(l, l->line, "%s: needs printable ASCII text, such as application/json", key->name);
    return config_keep_text(l, field, value->text);
}

/* A secret: no message holds it. */
static int read_token(struct config_loader *l, const struct config_key *key, void *field,
                      const struct config_value *value)
{
    size_t size = strlen(value->text);
    if (size == 0 || size > CONFIG_TOKEN_MAX || !printable(value->text, '!'))
        return config_fail(l, l->line, "%s: needs 1 to %d printable ASCII characters without spaces",
                           key->name, CONFIG_TOKEN_MAX);
    return config_keep_text(l, field, value->text);
}

static int read_name(struct config_loader *l, const struct config_key *key, void *field,
                     const struct config_value *value)
{
    bool dots = key->max == EVENT_NAME_MAX;
    if (!value_is_name(value->text, key->max, dots ? "." : ""))
        return config_fail(l, l->line, "%s = %s: needs 1 to %u letters, digits, %s", key->name,
                           value->written, (unsigned)key->max, dots ? "'-', '_' or '.'" : "'-' or '_'");
    return config_keep_text(l, field, value->text);
}

static int read_count(struct config_loader *l, const struct config_key *key, void *field,
                      const struct config_value *value)
{
    uint64_t count;
    if (value_count(value->text, &count) < 0 || count < key->min || count > key->max)
        return config_fail(l, l->line, "%s = %s: needs a whole number from %u to %u", key->name,
                           value->written, (unsigned)key->min, (unsigned)key->max);
    *(uint32_t *)field = (uint32_t)count;
    return 0;
}

static bool *without_named(struct overload_without *without, const char *name)
{
    const struct {
        const char *name;
        bool *field;
    } words[] = {{"quotas", &without->quotas},
                 {"early", &without->early},
                 {"feedback", &without->feedback},
                 {"share", &without->share}};
    for (unsigned i = 0; i < ARRAY_SIZE(words); i++) {
        if (strcmp(name, words[i].name) == 0)
            return words[i].field;
    }
    return NULL;
}

static int read_without(struct config_loader *l, const struct config_key *key, void *field,
                        const struct config_value *value)
{
    struct overload_without without = {false};
    char *rest = value->text, *name;
    if (value->text[0] == '\0' || strcmp(value->text, "none") == 0)
        rest = NULL; /* nothing is left out */
    while ((name = strsep(&rest, ","))) {
        bool *left_out = without_named(&without, value_trim(name));
        if (!left_out)
            return config_fail(l, l->line,
                               "%s = %s: '%s' is unknown: known are none, quotas, early, feedback, share",
                               key->name, value->written, value_trim(name));
        *left_out = true;
    }
    *(struct overload_without *)field = without;
    return 0;
}

static int check_size(struct config_loader *l, const struct config_key *key, const struct config_value *value,
                      uint64_t *bytes)
{
    char min[24], max[24];
    if (value_size(value->text, bytes) == 0 && *bytes >= key->min && *bytes <= key->max)
        return 0;
    value_show_size(min, sizeof(min), key->min);
    value_show_size(max, sizeof(max), key->max);
    return config_fail(l, l->line, "%s = %s: needs a size from %s to %s, in bytes or with K, M, G or T",
                       key->name, value->written, min, max);
}

static int read_size(struct config_loader *l, const struct config_key *key, void *field,
                     const struct config_value *value)
{
    uint64_t bytes;
    if (check_size(l, key, value, &bytes) < 0)
        return PE_CONFIG;
    *(uint64_t *)field = bytes;
    return 0;
}

static int read_size32(struct config_loader *l, const struct config_key *key, void *field,
                       const struct config_value *value)
{
    uint64_t bytes;
    if (check_size(l, key, value, &bytes) < 0)
        return PE_CONFIG;
    *(uint32_t *)field = (uint32_t)bytes;
    return 0;
}

static int read_time(struct config_loader *l, const struct config_key *key, void *field,
                     const struct config_value *value)
{
    uint64_t ns;
    char min[24], max[24];
    if (value_time(value->text, &ns) == 0 && ns >= key->min && ns <= key->max) {
        *(uint64_t *)field = ns;
        return 0;
    }
    value_show_time(min, sizeof(min), key->min);
    value_show_time(max, sizeof(max), key->max);
    return config_fail(l, l->line, "%s = %s: needs a time from %s to %s, with ms, s, m, h or d", key->name,
                       value->written, min, max);
}

/* `none` is the type's largest value: a limit that is never reached. */
static int read_limit(struct config_loader *l, const struct config_key *key, void *field,
                      const struct config_value *value)
{
    bool is_size = key->offset == offsetof(struct config_app, memory_bytes);
    uint64_t limit = UINT64_MAX;
    char min[24], max[24];
    bool none = strcmp(value->text, "none") == 0;
    int error = none ? 0 : is_size ? value_size(value->text, &limit) : value_time(value->text, &limit);
    if (none || (error == 0 && limit >= key->min && limit <= key->max)) {
        *(uint64_t *)field = limit;
        return 0;
    }
    (is_size ? value_show_size : value_show_time)(min, sizeof(min), key->min);
    (is_size ? value_show_size : value_show_time)(max, sizeof(max), key->max);
    return config_fail(l, l->line, "%s = %s: needs a %s from %s to %s, %s, or none", key->name,
                       value->written, is_size ? "size" : "time", min, max,
                       is_size ? "in bytes or with K, M, G or T" : "with ms, s, m, h or d");
}

/* A path with a slash is relative to the configuration's directory; without one it is a name among the
 * installed apps. */
static int read_module(struct config_loader *l, const struct config_key *key, void *field,
                       const struct config_value *value)
{
    struct config_app *app = field;
    char path[4096];
    if (value->text[0] == '\0')
        return config_fail(l, l->line, "%s: needs the path of a module, or the name of an installed one",
                           key->name);
    if (module_path(path, sizeof(path), l->directory, value->text) < 0)
        return config_fail(l, l->line, "%s = %s: the path is too long", key->name, value->written);
    app->module_line = l->line;
    return config_keep_text(l, &app->module, path);
}

int config_read_address(struct config_loader *l, const struct config_key *key,
                        const struct config_value *value, const char *clients, const char *examples,
                        unsigned port, struct sockaddr_storage *address, socklen_t *len)
{
    struct sockaddr_storage read;
    if (value_address(value->text, &read, len) < 0)
        return config_fail(l, l->line, "%s = %s: needs an IP address and a port, such as %s", key->name,
                           value->written, examples);
    if (((struct sockaddr_in *)&read)->sin_port == 0)
        return config_fail(l, l->line,
                           "%s = %s: port 0 is none that %s could be given: write one from 1 to 65535, such "
                           "as %u",
                           key->name, value->written, clients, port);
    *address = read;
    return 0;
}

static int read_http(struct config_loader *l, const struct config_key *key, void *field,
                     const struct config_value *value)
{
    struct config *config = l->config;
    if (strcmp(value->text, "none") == 0) {
        value_dispose(config->http);
        config->http = NULL;
        return 0;
    }
    if (config_read_address(l, key, value, "clients", "127.0.0.1:7070 or [::1]:7070", CONFIG_HTTP_PORT,
                            &config->http_address, &config->http_address_len) < 0)
        return PE_CONFIG;
    return config_keep_text(l, field, value->text);
}

int config_check_only(struct config_loader *l, const struct config_key *key)
{
    static const char *const kinds[][2] = {{"inner", "an inner one"}, {"wire", "a wire"}, {"link", "a link"}};
    for (unsigned i = 0; i < ARRAY_SIZE(kinds); i++) {
        unsigned line = config_key_line(l, kinds[i][0]);
        if (line > 0)
            return config_fail(l, l->line, "%s: this output is %s already (line %u): keep one of the two",
                               key->name, kinds[i][1], line);
    }
    return 0;
}

static int read_inner(struct config_loader *l, const struct config_key *key, void *field,
                      const struct config_value *value)
{
    struct config_output *output = field;
    if (config_check_only(l, key) < 0)
        return PE_CONFIG;
    output->kind = OUTPUT_INNER;
    output->inner_line = l->line;
    return read_name(l, key, &output->inner_app, value);
}

/* No message quotes a URL: its query may be a secret. */
static int read_wire(struct config_loader *l, const struct config_key *key, void *field,
                     const struct config_value *value)
{
    struct config_output *output = field;
    struct url url;
    const char *why = "";
    if (config_check_only(l, key) < 0)
        return PE_CONFIG;
    if (strncasecmp(value->text, "http://", 7) != 0 && strncasecmp(value->text, "https://", 8) != 0)
        return config_fail(l, l->line, "%s: the URL must begin with http:// or https://", key->name);
    if (url_parse(&url, value->text, &why) < 0)
        return config_fail(l, l->line, "%s: %s", key->name, why);
    output->kind = OUTPUT_WIRE;
    output->url = url;
    return config_keep_text(l, &output->url_text, value->text);
}

static int read_mode(struct config_loader *l, const struct config_key *key, void *field,
                     const struct config_value *value)
{
    static const char *const names[] = {
        [WIRE_WEBHOOK] = "webhook", [WIRE_BATCH] = "batch", [WIRE_PURE] = "pure"};
    for (unsigned i = 0; i < ARRAY_SIZE(names); i++)
        if (strcmp(value->text, names[i]) == 0) {
            *(enum wire_mode *)field = (enum wire_mode)i;
            return 0;
        }
    const char *near = nearest_name(value->text, names, ARRAY_SIZE(names));
    if (near)
        return config_fail(l, l->line, "%s = %s: unknown: did you mean '%s'?", key->name, value->written,
                           near);
    return config_fail(l, l->line, "%s = %s: unknown: known are webhook, batch, pure", key->name,
                       value->written);
}

/* --- the keys; docs/configuration.md describes each --- */

#define HOST(field)   offsetof(struct config, field)
#define APP(field)    offsetof(struct config_app, field)
#define OUTPUT(field) offsetof(struct config_output, field)
#define KIB           UINT64_C(1024)
#define MIB           (1024 * KIB)
#define GIB           (1024 * MIB)
#define TIB           (1024 * GIB)
#define HOUR          (3600 * NS_PER_S)

static const struct config_key host_keys[] = {
    {"name", read_name, HOST(name), 1, EVENT_NAME_MAX, 0},
    {"http", read_http, HOST(http), 0, 0, 0},
    {"token", read_token, HOST(token), 0, 0, 0},
    {"store", config_read_store, HOST(store_path), 0, 0, 0},
    {"segment", read_size, HOST(segment_bytes), 256 * KIB, GIB, 0},
    {"owners", read_count, HOST(owners), 1, 64, 0},
    {"loops", read_count, HOST(loops), 1, 32, 0},
    {"connections", read_count, HOST(connections), 1, 65536, 0},
    {"max_body", read_size, HOST(max_body), KIB, 256 * MIB, 0},
    {"body_memory", read_size, HOST(body_memory), KIB, 64 * GIB, 0},
    {"request_timeout", read_time, HOST(request_ns), 100 * NS_PER_MS, 24 * HOUR, 0},
    {"idle_timeout", read_time, HOST(idle_ns), 100 * NS_PER_MS, 24 * HOUR, 0},
    {"link", config_read_host_link, HOST(link), 0, 0, 0},
    {"key", config_read_host_key, 0, 0, 0, 0},
    {"link_window", read_size, HOST(link_window), 2 * MIB, GIB, 0},
    {"https", config_read_https, HOST(https), 0, 0, 0},
    {"https_certificate", config_read_certificate, HOST(https.pair), 0, 0, 0},
    {"https_key", config_read_certificate_key, HOST(https.pair), 0, 0, 0},
    {"https_ca", config_read_https_ca, HOST(https), 0, 0, 0},
    {"proxy", config_read_proxy, HOST(egress), 0, 0, 0},
    {"allow", config_read_allow, HOST(egress), 0, 0, 0},
    {"deny", config_read_deny, HOST(egress), 0, 0, 0},
    {"ca", config_read_ca, HOST(egress), 0, 0, 0},
    {"without", read_without, HOST(without), 0, 0, 0},
};

static const struct config_key app_keys[] = {
    {"module", read_module, 0, 0, 0, 0},
    {"arg", read_arg, 0, 0, 0, 0},
    {"inbox", read_size, APP(inbox_bytes), 64 * KIB, GIB, 0},
    {"durability", config_read_durability, APP(durability), 0, 0, 0},
    {"interval", read_time, APP(interval_ns), NS_PER_MS, 60 * NS_PER_S, 0},
    {"keep", config_read_keep, 0, 0, 0, 0},
    {"turn_limit", read_limit, APP(turn_limit_ns), NS_PER_S, HOUR, 0},
    {"memory", read_limit, APP(memory_bytes), MIB, TIB, 0},
};

static const struct config_key output_keys[] = {
    {"inner", read_inner, 0, 1, CONFIG_NAME_MAX, FOR_ALL},
    {"wire", read_wire, 0, 0, 0, FOR_ALL},
    {"link", config_read_link, 0, 0, 0, FOR_ALL},
    {"event", read_name, OUTPUT(event), 1, EVENT_NAME_MAX, FOR_INNER | FOR_LINK | FOR_PURE},
    {"queue", read_size, OUTPUT(queue_bytes), 4 * KIB, GIB, FOR_ALL},
    {"max_record", read_size32, OUTPUT(max_record), 1, 256 * MIB, FOR_ALL},
    {"backlog", read_size, OUTPUT(backlog_bytes), 0, TIB, FOR_ALL},
    {"attempts", read_count, OUTPUT(attempts), 0, 1000000, FOR_WIRES},
    {"dead", read_count, OUTPUT(dead), 1, 1000000, FOR_WIRES},
    {"mode", read_mode, OUTPUT(mode), 0, 0, FOR_WIRES},
    {"app", read_name, OUTPUT(target_app), 1, CONFIG_NAME_MAX, FOR_LINK | FOR_PURE},
    {"key", config_read_link_key, 0, 0, 0, FOR_LINK | FOR_PURE},
    {"mtu", read_count, OUTPUT(link_mtu), MTU_BASE, MTU_MAX, FOR_LINK},
    {"token", read_token, OUTPUT(token), 0, 0, FOR_WIRES},
    {"content_type", read_content_type, OUTPUT(content_type), 0, 0, FOR_WEBHOOK},
    {"batch_bytes", read_size, OUTPUT(batch_bytes), KIB, 256 * MIB, FOR_BATCH | FOR_PURE},
    {"batch_records", read_count, OUTPUT(batch_records), 0, 1000000000, FOR_BATCH | FOR_PURE},
    {"progress_timeout", read_time, OUTPUT(progress_ns), 100 * NS_PER_MS, HOUR, FOR_WIRES},
    {"reply_timeout", read_time, OUTPUT(reply_ns), 100 * NS_PER_MS, 24 * HOUR, FOR_WIRES},
    {"total_timeout", read_time, OUTPUT(total_ns), 100 * NS_PER_MS, 24 * HOUR, FOR_WIRES},
    {"backoff_min", read_time, OUTPUT(backoff_min_ns), NS_PER_MS, HOUR, FOR_WIRES},
    {"backoff_max", read_time, OUTPUT(backoff_max_ns), NS_PER_MS, 24 * HOUR, FOR_WIRES},
    {"sign", config_read_sign, OUTPUT(wire), 0, 0, FOR_HOOKS},
    {"header.NAME", config_read_header, OUTPUT(wire), 0, 0, FOR_HOOKS},
    {"gzip", read_count, OUTPUT(wire.gzip), 1, 9, FOR_HOOKS},
    {"success", config_read_statuses, OUTPUT(wire.stored), 0, 0, FOR_HOOKS},
    {"refuse", config_read_statuses, OUTPUT(wire.refused), 0, 1, FOR_HOOKS},
    {"disable", config_read_statuses, OUTPUT(wire.disables), 0, 1, FOR_HOOKS},
    {"disable_after", config_read_disable_after, OUTPUT(wire), 0, 0, FOR_WIRES},
    {"on_disable", config_read_on_disable, OUTPUT(wire), 0, 0, FOR_WIRES},
    {"concurrency", read_count, OUTPUT(wire.concurrency), 1, WIRE_CONCURRENCY_MAX, FOR_WEBHOOK},
    {"order_by", config_read_order_by, OUTPUT(wire.order_by), 0, 0, FOR_WEBHOOK},
    {"rate", config_read_rate, OUTPUT(wire.rate_mhz), 0, 0, FOR_HOOKS},
    {"batch_wait", read_time, OUTPUT(wire.batch_wait_ns), 0, HOUR, FOR_BATCH},
    {"connection_age", read_time, OUTPUT(wire.connection_age_ns), NS_PER_S, 365 * 24 * HOUR, FOR_WIRES},
    {"proxy", config_read_proxy, OUTPUT(wire.egress), 0, 0, FOR_WIRES},
    {"allow", config_read_allow, OUTPUT(wire.egress), 0, 0, FOR_WIRES},
    {"deny", config_read_deny, OUTPUT(wire.egress), 0, 0, FOR_WIRES},
    {"ca", config_read_ca, OUTPUT(wire.egress), 0, 0, FOR_WIRES},
    {"certificate", config_read_certificate, OUTPUT(wire.pair), 0, 0, FOR_WIRES},
    {"certificate_key", config_read_certificate_key, OUTPUT(wire.pair), 0, 0, FOR_WIRES},
    {"pin", config_read_pins, OUTPUT(wire), 0, 0, FOR_WIRES},
};

static const struct config_key peer_keys[] = {
    {"key", config_read_peer_key, 0, 0, 0, 0},
    {"apps", config_read_apps, 0, 0, 0, 0},
};

static const struct {
    const struct config_key *keys;
    unsigned count;
} tables[CONFIG_SECTIONS] = {
    [SECTION_HOST] = {host_keys, ARRAY_SIZE(host_keys)},
    [SECTION_APP] = {app_keys, ARRAY_SIZE(app_keys)},
    [SECTION_OUTPUT] = {output_keys, ARRAY_SIZE(output_keys)},
    [SECTION_PEER] = {peer_keys, ARRAY_SIZE(peer_keys)},
};

_Static_assert(ARRAY_SIZE(host_keys) <= CONFIG_KEYS_MAX && ARRAY_SIZE(output_keys) <= CONFIG_KEYS_MAX,
               "lines[] has room for each table");

static void *section_structure(struct config_loader *l)
{
    struct config *config = l->config;
    switch (l->section) {
    case SECTION_APP:
        return &config->apps[config->app_count - 1];
    case SECTION_OUTPUT:
        return &config->outputs[config->output_count - 1];
    case SECTION_PEER:
        return &config->peers[config->peer_count - 1];
    default:
        return config;
    }
}

/* Whether what stands before the dot is meant to be the word of header.NAME. */
static bool edit_of_header(const char *name, size_t size)
{
    static const char *const words[] = {"header"};
    char word[16];
    if (size >= sizeof(word))
        return false;
    memcpy(word, name, size);
    word[size] = '\0';
    return nearest_name(word, words, 1) != NULL;
}

static int fail_unknown(struct config_loader *l, const char *name)
{
    const char *names[CONFIG_KEYS_MAX], *section = config_section_text(l->section);
    char list[1024] = "";
    unsigned count = tables[l->section].count;
    for (unsigned i = 0; i < count; i++) {
        names[i] = tables[l->section].keys[i].name;
        size_t used = strlen(list);
        snprintf(list + used, sizeof(list) - used, "%s%s", i ? ", " : "", names[i]);
    }
    const char *dot = strchr(name, '.');
    if (dot && l->section == SECTION_OUTPUT && dot > name && edit_of_header(name, (size_t)(dot - name)))
        return config_fail(l, l->line, "unknown key '%s' in %s: did you mean 'header%s'?", name, section,
                           dot);
    const char *near = nearest_name(name, names, count);
    if (near)
        return config_fail(l, l->line, "unknown key '%s' in %s: did you mean '%s'?", name, section, near);
    return config_fail(l, l->line, "unknown key '%s' in %s: known are %s", name, section, list);
}

/* Whether a key as it stands in the file is this one of a table. */
static bool is_key(const struct config_key *key, const char *written)
{
    const char *dot = strchr(key->name, '.');
    return dot ? strncmp(key->name, written, (size_t)(dot - key->name) + 1) == 0
               : strcmp(key->name, written) == 0;
}

/* Whether the value is the path of a file that is read when it is needed. */
static bool takes_path(const struct config_key *key)
{
    return key->read == config_read_ca || key->read == config_read_https_ca ||
           key->read == config_read_certificate || key->read == config_read_certificate_key;
}

static int read_value(struct config_loader *l, const struct config_key *key, struct config_value *value)
{
    char why[512];
    int error = takes_path(key) ? value_resolve_path(value->written, &value->text, why, sizeof(why))
                                : value_resolve(value->written, l->directory, &value->text, why, sizeof(why));
    if (error < 0)
        return config_fail(l, l->line, "%s: %s", value->key, why);
    char *field = (char *)section_structure(l) + key->offset;
    error = key->read != config_read_host_key && config_holds_private_key(value->text)
                ? config_fail_private_key(l, key)
                : key->read(l, key, field, value);
    value_dispose(value->text);
    return error;
}

int config_read_key(struct config_loader *l, const char *key, const char *written)
{
    unsigned place = 0, count = tables[l->section].count;
    const struct config_key *keys = tables[l->section].keys;
    while (place < count && !is_key(&keys[place], key))
        place++;
    if (place == count)
        return fail_unknown(l, key);
    if (l->lines[place] > 0 && !strchr(keys[place].name, '.'))
        return config_fail(l, l->line, "'%s' is given twice: it stands in line %u already", key,
                           l->lines[place]);
    int error = read_value(l, &keys[place], &(struct config_value){key, written, NULL});
    l->lines[place] = l->line;
    return error;
}

unsigned config_key_line(const struct config_loader *l, const char *key)
{
    for (unsigned i = 0; i < tables[l->section].count; i++)
        if (strcmp(tables[l->section].keys[i].name, key) == 0)
            return l->lines[i];
    return 0;
}

static const char *applies_text(unsigned applies)
{
    switch (applies) {
    case FOR_WEBHOOK:
        return "wires with mode = webhook";
    case FOR_BATCH:
        return "wires with mode = batch";
    case FOR_WEBHOOK | FOR_BATCH:
        return "wires with mode = webhook or batch";
    case FOR_BATCH | FOR_PURE:
        return "wires with mode = batch or pure";
    case FOR_LINK:
        return "links";
    case FOR_LINK | FOR_PURE:
        return "links and wires with mode = pure";
    case FOR_INNER | FOR_LINK | FOR_PURE:
        return "inner outputs, links and wires with mode = pure";
    default:
        return "wires";
    }
}

const char *config_misplaced_key(const struct config_loader *l, const struct config_output *output,
                                 unsigned *place, const char **belongs)
{
    unsigned here = output->kind == OUTPUT_INNER  ? FOR_INNER
                    : output->kind == OUTPUT_LINK ? FOR_LINK
                                                  : 1u << output->mode;
    while (*place < ARRAY_SIZE(output_keys)) {
        unsigned i = (*place)++;
        if (l->lines[i] > 0 && !(output_keys[i].applies & here)) {
            *belongs = applies_text(output_keys[i].applies);
            return output_keys[i].name;
        }
    }
    return NULL;
}
