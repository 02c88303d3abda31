#include "host/config.h"

#include "core/clock.h"
#include "core/record.h"
#include "host/config_loader.h"
#include "host/config_values.h"

#include <ctype.h>
#include <errno.h>
#include <ini.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int config_fail(struct config_loader *l, unsigned line, const char *format, ...)
{
    if (l->stopped)
        return PE_CONFIG;
    char text[1500], problem[CONFIG_PROBLEM_MAX];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    for (char *at = text; *at; at++)
        if (iscntrl((unsigned char)*at))
            *at = '?';
    snprintf(problem, sizeof(problem), "%s:%u: %s", l->path, line, text);
    l->listener.tell(l->listener.context, problem);
    l->stopped = ++l->problems == l->listener.max;
    return PE_CONFIG;
}

int config_fail_memory(struct config_loader *l)
{
    config_fail(l, l->line, "out of memory");
    l->stopped = true;
    return PE_CONFIG;
}

/* --- defaults --- */

/* The system's name, made fit to be one of ours. */
static void default_name(char *name, size_t size)
{
    if (gethostname(name, size) < 0)
        name[0] = '\0';
    name[size - 1] = '\0';
    for (char *at = name; *at; at++)
        if (!isalnum((unsigned char)*at) && !strchr("-_.", *at))
            *at = '-';
    if (name[0] == '\0')
        snprintf(name, size, "pure-host");
}

static int host_defaults(struct config *config, const char *path)
{
    struct sockaddr_in *address = (struct sockaddr_in *)&config->http_address;
    char name[65];
    default_name(name, sizeof(name));
    memset(config, 0, sizeof(*config));
    address->sin_family = AF_INET;
    address->sin_port = htons(CONFIG_HTTP_PORT);
    address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    config->http_address_len = sizeof(*address);
    config->owners = 2;
    config->loops = 1;
    config->connections = 1024;
    config->max_body = (1 << 20) + (64 << 10); /* the largest record, as a line or framed */
    config->body_memory = 64 << 20;
    config->request_ns = 30 * NS_PER_S;
    config->idle_ns = 60 * NS_PER_S;
    config->link_window = 16 << 20;
    config->segment_bytes = 64 << 20;
    config->path = strdup(path);
    config->name = strdup(name);
    config->http = strdup(CONFIG_HTTP);
    return config->path && config->name && config->http ? 0 : -ENOMEM;
}

/* --- lines --- */

#define SECTION_TEXT_MAX 256

/* A line that begins with '['. Sections are read here and not by inih, which would cut a long one without a
 * word and not tell of one without keys. */
static void read_section_line(struct config_loader *l, struct span line)
{
    const uint8_t *end = memchr(line.data, ']', line.size);
    char text[SECTION_TEXT_MAX];
    config_end_section(l);
    l->skipping = false;
    if (!end || (size_t)(end - line.data) > sizeof(text)) {
        config_fail(l, l->line, "a section without its closing ']', or longer than %zu bytes", sizeof(text));
        config_skip_section(l);
        return;
    }
    const uint8_t *rest = end + 1, *line_end = line.data + line.size;
    while (rest < line_end && (*rest == ' ' || *rest == '\t'))
        rest++;
    if (rest < line_end && *rest != ';' && *rest != '#') {
        config_fail(l, l->line, "text after the section's ']': begin a new line");
        config_skip_section(l);
        return;
    }
    size_t size = (size_t)(end - line.data) - 1;
    memcpy(text, line.data + 1, size);
    text[size] = '\0';
    config_start_section(l, text);
}

static struct span trim(struct span line)
{
    while (line.size > 0 && isspace(line.data[0]))
        line = span_of(line.data + 1, line.size - 1);
    while (line.size > 0 && isspace(line.data[line.size - 1]))
        line.size--;
    return line;
}

/* The next line, without the white space around it: an indented line is a line of its own. */
static struct span next_line(struct config_loader *l)
{
    const uint8_t *newline = memchr(l->left.data, '\n', l->left.size);
    size_t size = newline ? (size_t)(newline - l->left.data) : l->left.size;
    struct span line = span_of(l->left.data, size);
    size_t taken = newline ? size + 1 : size;
    l->left = span_of(l->left.data + taken, l->left.size - taken);
    l->line++;
    return trim(line);
}

/* Whether inih will find a key and a value in the line: a '=' or ':' before any comment. */
static bool is_pair(struct span line)
{
    for (size_t i = 0; i < line.size; i++) {
        if (line.data[i] == '=' || line.data[i] == ':')
            return true;
        if (line.data[i] == ';' && i > 0 && isspace(line.data[i - 1]))
            return false;
    }
    return false;
}

/* inih's reader: one line a call into `buffer`, NULL at the end or when reading stops. Comments, sections and
 * lines that are refused reach inih as empty ones. inih cuts a line at its buffer's end, whose size is up to
 * how it was built: such a line is refused here. */
static char *read_line(char *buffer, int size, void *context)
{
    struct config_loader *l = context;
    if (l->stopped || l->left.size == 0)
        return NULL;
    struct span line = next_line(l);
    buffer[0] = '\0';
    if (line.size == 0 || line.data[0] == ';' || line.data[0] == '#')
        return buffer;
    if (memchr(line.data, '\0', line.size)) {
        config_fail(l, l->line, "a NUL byte: is this a text file?");
    } else if (line.data[0] == '[') {
        read_section_line(l, line);
    } else if (line.size + 3 > (size_t)size) {
        config_fail(l, l->line,
                    "the line is longer than %d bytes: put the value into a file and write KEY = file:PATH",
                    size - 3);
    } else if (!is_pair(line)) {
        config_fail(l, l->line, "neither [SECTION] nor KEY = VALUE");
    } else {
        memcpy(buffer, line.data, line.size);
        buffer[line.size] = '\0';
    }
    return buffer;
}

/* inih's handler: nonzero is content. inih keeps sections of its own, which are all empty here. */
static int read_pair(void *context, const char *section, const char *key, const char *value)
{
    (void)section;
    struct config_loader *l = context;
    if (l->stopped || l->skipping)
        return 1;
    if (key[0] == '\0')
        config_fail(l, l->line, "a value without a key: write KEY = VALUE");
    else if (l->section == SECTION_NONE)
        config_fail(l, l->line, "'%s' stands before any section: write [host] above it", key);
    else
        config_read_key(l, key, value);
    return 1;
}

/* --- the whole --- */

static int read_text(struct config_loader *l)
{
    int refused = ini_parse_stream(read_line, l, read_pair, l);
    if (refused < 0)
        config_fail_memory(l);
    else if (refused > 0) /* by what only some builds of inih refuse: is_pair is the others' rule */
        config_fail(l, (unsigned)refused, "neither [SECTION] nor KEY = VALUE");
    config_end_section(l);
    config_check_whole(l);
    return l->problems > 0 ? PE_CONFIG : 0;
}

static void set_directory(struct config_loader *l)
{
    const char *slash = strrchr(l->path, '/');
    if (!slash)
        snprintf(l->directory, sizeof(l->directory), ".");
    else
        snprintf(l->directory, sizeof(l->directory), "%.*s", (int)(slash - l->path) + (slash == l->path),
                 l->path);
}

int config_load_text_all(struct config *config, const char *path, struct span text,
                         const struct config_listener *listener)
{
    struct config_loader l = {.config = config, .path = path, .listener = *listener};
    static const uint8_t bom[] = {0xef, 0xbb, 0xbf};
    bool marked = text.size >= sizeof(bom) && memcmp(text.data, bom, sizeof(bom)) == 0;
    l.left = marked ? span_of(text.data + sizeof(bom), text.size - sizeof(bom)) : text;
    set_directory(&l);
    int failed = host_defaults(config, path);
    if (failed < 0)
        config_fail(&l, 1, "out of memory");
    else
        failed = read_text(&l);
    if (failed < 0)
        config_dispose(config);
    return failed;
}

static void dispose_output(struct config_output *output)
{
    free(output->app);
    free(output->output);
    free(output->event);
    free(output->inner_app);
    value_dispose(output->url_text);
    free(output->target_app);
    free(output->link_text);
    value_dispose(output->token);
    config_dispose_wire(&output->wire);
    free(output->content_type);
    explicit_bzero(&output->url, sizeof(output->url));
}

static void dispose_peer(struct config_peer *peer)
{
    for (unsigned i = 0; i < peer->app_count; i++)
        free(peer->apps[i]);
    free(peer->apps);
    free(peer->name);
}

void config_dispose(struct config *config)
{
    for (unsigned i = 0; i < config->app_count; i++) {
        free(config->apps[i].name);
        free(config->apps[i].module);
        value_dispose(config->apps[i].arg);
    }
    for (unsigned i = 0; i < config->output_count; i++)
        dispose_output(&config->outputs[i]);
    for (unsigned i = 0; i < config->peer_count; i++)
        dispose_peer(&config->peers[i]);
    free(config->apps);
    free(config->outputs);
    free(config->peers);
    free(config->path);
    free(config->name);
    free(config->http);
    value_dispose(config->token);
    free(config->https.text);
    free(config->https.ca);
    config_dispose_pair(&config->https.pair);
    config_dispose_egress(&config->egress);
    free(config->store_path);
    free(config->link);
    free(config->key_path);
    value_dispose(config->key_text);
    memset(config, 0, sizeof(*config));
}
