/* The configuration, from memory: whatever a file holds, it is loaded or refused with lines of text. A
 * file that would read other files or the environment is left out: what it does is not up to the input. */
#include "host/config.h"

#include <sodium.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool reads_elsewhere(const uint8_t *data, size_t size)
{
    return memmem(data, size, "file:", 5) || memmem(data, size, "env:", 4) ||
           memmem(data, size, "credential:", 11);
}

static void check_output(const struct config_output *output)
{
    assert(output->app && output->output && output->event && output->max_record > 0);
    switch (output->kind) {
    case OUTPUT_INNER:
        assert(output->inner_app);
        break;
    case OUTPUT_LINK:
        assert(output->link_text && output->link_host[0] && output->link_port > 0 &&
               output->link_key_line > 0);
        assert(output->target_app && output->max_record <= 1 << 20 && output->link_mtu >= 1200);
        break;
    default:
        assert(output->url.target[0] == '/');
    }
}

static void check_peer(const struct config *config, const struct config_peer *peer)
{
    assert(peer->name && peer->key_line > 0 && peer->app_count > 0 && peer->app_count <= config->app_count);
    for (unsigned i = 0; i < peer->app_count; i++)
        assert(peer->apps[i]);
}

static void check_loaded(const struct config *config)
{
    assert(config->app_count > 0 && config->app_count <= CONFIG_APPS_MAX);
    assert(config->owners >= 1 && config->loops >= 1 && config->loops <= 32 && config->http && config->name);
    for (unsigned i = 0; i < config->app_count; i++)
        assert(config->apps[i].name && strchr(config->apps[i].module, '/') && config->apps[i].arg);
    for (unsigned i = 0; i < config->output_count; i++) {
        check_output(&config->outputs[i]);
        assert(config->outputs[i].kind != OUTPUT_LINK || config->key_path);
    }
    for (unsigned i = 0; i < config->peer_count; i++)
        check_peer(config, &config->peers[i]);
    assert(!config->link || (config->key_path && config->link_address_len > 0));
}

static void check_refused(void *context, const char *error)
{
    ++*(unsigned *)context;
    assert(strncmp(error, "x.conf:", 7) == 0);
    for (const char *at = error; *at; at++)
        assert((unsigned char)*at >= ' ' && *at != 0x7f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct config config;
    unsigned problems = 0;
    const struct config_listener listener = {check_refused, &problems, 20};
    if (size > 65536 || reads_elsewhere(data, size))
        return 0;
    assert(sodium_init() >= 0);
    if (config_load_text_all(&config, "x.conf", span_of(data, size), &listener) < 0) {
        assert(problems > 0 && problems <= 20);
        return 0;
    }
    assert(problems == 0);
    check_loaded(&config);
    config_dispose(&config);
    return 0;
}
