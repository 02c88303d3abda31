#include "host/cli_commands.h"

#include "host/config_values.h"
#include "host/key_file.h"

#include <stdio.h>

static int print_public(const uint8_t public[LINK_KEY_BYTES])
{
    char text[HOST_KEY_PUBLIC_TEXT];
    host_key_public_text(public, text);
    puts(text);
    return CLI_DONE;
}

static int make(const char *path, const struct host_options *options)
{
    const struct noise_random random = {options->fill_random, options->context};
    uint8_t public[LINK_KEY_BYTES];
    char why[512];
    if (key_file_new(path, &random, public, why, sizeof(why)) < 0)
        return cli_fail(CLI_FAILED, "%s", why);
    return print_public(public);
}

static int show(const char *path)
{
    struct host_key key;
    char why[512];
    if (key_file_read(path, &key, why, sizeof(why)) < 0)
        return cli_fail(CLI_FAILED, "%s", why);
    int status = print_public(key.public);
    host_key_wipe(&key);
    return status;
}

int cli_key(const struct cli_arguments *arguments, const struct host_options *options)
{
    static const char *const verbs[] = {"new", "show"};
    const char *verb = arguments->operands[0], *path = arguments->operands[1];
    if (strcmp(verb, "new") == 0)
        return make(path, options);
    if (strcmp(verb, "show") == 0)
        return show(path);
    const char *near = nearest_name(verb, verbs, ARRAY_SIZE(verbs));
    if (near)
        return cli_fail(CLI_USAGE, "unknown 'key %s': did you mean 'key %s'?", verb, near);
    return cli_fail(CLI_USAGE, "unknown 'key %s': known are key new FILE and key show FILE", verb);
}
