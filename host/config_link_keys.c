/* The readers of keys about links: [host] link and key, an [output]'s, all of a [peer]. */
#include "host/config_readers.h"

#include "host/config_values.h"
#include "noise/key.h"

#include <stdlib.h>

/* --- addresses --- */

int config_read_host_link(struct config_loader *l, const struct config_key *key, void *field,
                          const struct config_value *value)
{
    struct config *config = l->config;
    if (config_read_address(l, key, value, "peers", "0.0.0.0:7071 or [::]:7071", CONFIG_LINK_PORT,
                            &config->link_address, &config->link_address_len) < 0)
        return PE_CONFIG;
    config->link_line = l->line;
    return config_keep_text(l, field, value->text);
}

int config_read_link(struct config_loader *l, const struct config_key *key, void *field,
                     const struct config_value *value)
{
    struct config_output *output = field;
    struct value_place place;
    const char *why;
    if (config_check_only(l, key) < 0)
        return PE_CONFIG;
    output->kind = OUTPUT_LINK;
    if (value_place(&place, value->text, &why) < 0)
        return config_fail(l, l->line, "%s = %s: %s", key->name, value->written, why);
    memcpy(output->link_host, place.host, sizeof(output->link_host));
    output->link_port = place.port;
    output->link_literal = place.literal;
    output->link_line = l->line;
    return config_keep_text(l, &output->link_text, place.text);
}

/* --- Curve25519 keys: no message quotes one --- */

static bool begins(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Whether the value stands in this file, or is a file's, rather than a credential's or a variable's. */
static bool is_path(const struct config_value *value)
{
    return !begins(value->written, "credential:") && !begins(value->written, "env:");
}

bool config_holds_private_key(const char *text)
{
    return strstr(text, HOST_KEY_PRIVATE_PREFIX) != NULL;
}

int config_fail_private_key(struct config_loader *l, const struct config_key *key)
{
    return config_fail(l, l->line,
                       "%s: a private key does not belong here: keep it in its file, name that as key = FILE "
                       "in [host], and give others the public half, which 'pure-host key show FILE' prints",
                       key->name);
}

/* The key's text, from a credential or a variable. */
static int read_key_text(struct config_loader *l, const struct config_key *key, struct config *config,
                         const struct config_value *value)
{
    struct host_key host_key;
    int error = host_key_parse_private(span_text(value->text), &host_key);
    host_key_wipe(&host_key);
    if (error < 0)
        return config_fail(
            l, l->line, "%s: %s holds %s: make one with 'pure-host key new FILE'", key->name, value->written,
            error == PE_KEY_IS_PUBLIC ? "a public key, not the host's private one" : "no host key");
    return config_keep_text(l, &config->key_text, value->text);
}

/* The file is read when it is needed (host/key_file.h): a configuration is right without it. file:PATH is
 * PATH, so that its mode is looked at. */
int config_read_host_key(struct config_loader *l, const struct config_key *key, void *field,
                         const struct config_value *value)
{
    struct config *config = field;
    uint8_t public[LINK_KEY_BYTES];
    config->key_line = l->line;
    if (!is_path(value))
        return read_key_text(l, key, config, value);
    const char *path = value->written + (begins(value->written, "file:") ? strlen("file:") : 0);
    if (config_holds_private_key(path))
        return config_fail_private_key(l, key);
    if (path[0] == '\0' || host_key_parse_public(span_text(path), public) != PE_KEY)
        return config_fail(l, l->line,
                           "%s: needs the path of the host's key file: make one with 'pure-host key new "
                           "FILE'",
                           key->name);
    return value_path(l->directory, path, &config->key_path) < 0 ? config_fail_memory(l) : 0;
}

static int read_public_key(struct config_loader *l, const struct config_key *key,
                           uint8_t public[LINK_KEY_BYTES], const struct config_value *value)
{
    switch (host_key_parse_public(span_text(value->text), public)) {
    case 0:
        return 0;
    case PE_KEY_WEAK:
        return config_fail(l, l->line,
                           "%s: a key of low order, with which no secret can be agreed on: no host has made "
                           "it: copy the right one",
                           key->name);
    default:
        return config_fail(l, l->line,
                           "%s: needs a public key, 44 characters of base64 as 'pure-host key show FILE' "
                           "prints them, or file:PATH of a file that holds them",
                           key->name);
    }
}

int config_read_link_key(struct config_loader *l, const struct config_key *key, void *field,
                         const struct config_value *value)
{
    struct config_output *output = field;
    if (read_public_key(l, key, output->link_key, value) < 0)
        return PE_CONFIG;
    output->link_key_line = l->line;
    return 0;
}

int config_read_peer_key(struct config_loader *l, const struct config_key *key, void *field,
                         const struct config_value *value)
{
    struct config_peer *peer = field;
    uint8_t public[LINK_KEY_BYTES];
    if (read_public_key(l, key, public, value) < 0)
        return PE_CONFIG;
    for (const struct config_peer *earlier = l->config->peers; earlier < peer; earlier++)
        if (earlier->key_line > 0 && memcmp(earlier->key, public, sizeof(public)) == 0)
            return config_fail(l, l->line, "%s: [peer %s] has this key already (line %u)", key->name,
                               earlier->name, earlier->key_line);
    memcpy(peer->key, public, sizeof(public));
    peer->key_line = l->line;
    return 0;
}

/* --- apps = A, B --- */

static bool has_app(const struct config_peer *peer, const char *name)
{
    for (unsigned i = 0; i < peer->app_count; i++)
        if (strcmp(peer->apps[i], name) == 0)
            return true;
    return false;
}

static int add_app(struct config_loader *l, struct config_peer *peer, const char *name)
{
    char **apps = reallocarray(peer->apps, peer->app_count + 1, sizeof(*apps));
    if (!apps)
        return config_fail_memory(l);
    peer->apps = apps;
    apps[peer->app_count] = strdup(name);
    if (!apps[peer->app_count])
        return config_fail_memory(l);
    peer->app_count++;
    return 0;
}

int config_read_apps(struct config_loader *l, const struct config_key *key, void *field,
                     const struct config_value *value)
{
    struct config_peer *peer = field;
    char *rest = value->text, *name;
    peer->apps_line = l->line;
    while ((name = strsep(&rest, ","))) {
        name = value_trim(name);
        if (!value_is_name(name, CONFIG_NAME_MAX, ""))
            return config_fail(l, l->line,
                               "%s = %s: needs names of apps, separated by commas: each 1 to %d letters, "
                               "digits, '-' or '_'",
                               key->name, value->written, CONFIG_NAME_MAX);
        if (has_app(peer, name))
            return config_fail(l, l->line, "%s = %s: an app is named twice", key->name, value->written);
        if (peer->app_count == CONFIG_APPS_MAX)
            return config_fail(l, l->line, "%s: more than %d apps", key->name, CONFIG_APPS_MAX);
        if (add_app(l, peer, name) < 0)
            return PE_CONFIG;
    }
    return 0;
}
