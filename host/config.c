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

static const char *const section_words[CONFIG_SECTIONS] = {
    [SECTION_NONE] = "", [SECTION_HOST] = "host", [SECTION_APP] = "app", [SECTION_OUTPUT] = "output"};

const char *config_section_text(enum config_section section)
{
    static const char *const texts[CONFIG_SECTIONS] = {[SECTION_NONE] = "",
                                                       [SECTION_HOST] = "[host]",
                                                       [SECTION_APP] = "[app]",
                                                       [SECTION_OUTPUT] = "[output]"};
    return texts[section];
}

int config_fail(struct config_loader *l, unsigned line, const char *format, ...)
{
    if (l->stopped)
        return PE_CONFIG;
    char text[1024], problem[CONFIG_PROBLEM_MAX];
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
    config->path = strdup(path);
    config->name = strdup(name);
    config->http = strdup(CONFIG_HTTP);
    config->store = strdup("memory");
    return config->path && config->name && config->http && config->store ? 0 : -ENOMEM;
}

static void output_defaults(struct config_output *output)
{
    output->kind = OUTPUT_WIRE;
    output->mode = WIRE_WEBHOOK;
    output->queue_bytes = 4 << 20;
    output->batch_bytes = 256 << 10;
    output->progress_ns = 10 * NS_PER_S;
    output->reply_ns = 30 * NS_PER_S;
    output->total_ns = 300 * NS_PER_S;
    output->backoff_min_ns = 100 * NS_PER_MS;
    output->backoff_max_ns = 60 * NS_PER_S;
}

/* --- the end of a section: what its keys must be together --- */

static int end_app(struct config_loader *l, struct config_app *app)
{
    if (!app->module)
        return config_fail(l, l->section_line, "[app %s] has no module: add module = PATH", app->name);
    return 0;
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

static int end_output(struct config_loader *l, struct config_output *output)
{
    const char *belongs, *misplaced;
    if (config_key_line(l, "wire") == 0 && config_key_line(l, "inner") == 0)
        return config_fail(l, l->section_line, "[output %s.%s] leads nowhere: add wire = URL or inner = APP",
                           output->app, output->output);
    if ((misplaced = config_misplaced_key(l, output, &belongs)))
        return config_fail(l, config_key_line(l, misplaced), "'%s' is for %s only: remove it", misplaced,
                           belongs);
    if (output->kind == OUTPUT_WIRE && output->mode == WIRE_PURE && end_pure_wire(l, output) < 0)
        return PE_CONFIG;
    if (end_output_sizes(l, output) < 0)
        return PE_CONFIG;
    return end_output_strings(l, output);
}

static bool is_loopback(const struct sockaddr_storage *address)
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
    if (is_loopback(&config->http_address) || config->token)
        return 0;
    return config_fail(l, config_key_line(l, "http"),
                       "http is reached from other machines: add token = file:PATH to [host], or listen on "
                       "127.0.0.1");
}

/* A section with a problem is not complained of as a whole, too: what it seems to lack may be misspelt. */
static int end_section(struct config_loader *l)
{
    struct config *config = l->config;
    if (l->problems > l->section_problems)
        return PE_CONFIG;
    switch (l->section) {
    case SECTION_HOST:
        return end_host(l, config);
    case SECTION_APP:
        return end_app(l, &config->apps[config->app_count - 1]);
    case SECTION_OUTPUT:
        return end_output(l, &config->outputs[config->output_count - 1]);
    default:
        return 0;
    }
}

/* --- the start of a section --- */

/* Room for one more, `count` being there: grown at powers of two. */
static void *grow(void *array, unsigned count, size_t size)
{
    if (count > 0 && (count & (count - 1)) != 0)
        return array;
    return reallocarray(array, count > 0 ? 2 * count : 1, size);
}

static const struct config_app *find_app(const struct config *config, const char *name)
{
    for (unsigned i = 0; i < config->app_count; i++)
        if (strcmp(config->apps[i].name, name) == 0)
            return &config->apps[i];
    return NULL;
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
    const struct config_app *earlier = find_app(config, name);
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
    *app = (struct config_app){.line = l->line, .arg_line = l->line, .inbox_bytes = 4 << 20};
    app->name = strdup(name);
    app->arg = strdup("");
    return app->name && app->arg ? 0 : config_fail_memory(l);
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

static int fail_unknown_section(struct config_loader *l, const char *word, const char *name)
{
    const char *near = nearest_name(word, section_words + 1, CONFIG_SECTIONS - 1);
    const char *space = name[0] ? " " : "";
    if (near)
        return config_fail(l, l->line, "unknown section [%s%s%s]: did you mean [%s%s%s]?", word, space, name,
                           near, space, name);
    return config_fail(l, l->line,
                       "unknown section [%s%s%s]: known are [host], [app NAME], "
                       "[output APP.OUTPUT]",
                       word, space, name);
}

/* Passes over the keys up to the next section. */
static void skip_section(struct config_loader *l)
{
    l->section = SECTION_NONE;
    l->skipping = l->skipped = true;
}

/* `text`: what stands between the brackets, "WORD" or "WORD NAME". */
static void start_section(struct config_loader *l, char *text)
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
    int error;
    if (strcmp(word, "host") == 0) {
        error = start_host(l, name);
        l->section = SECTION_HOST;
    } else if (strcmp(word, "app") == 0) {
        error = start_app(l, name);
        l->section = SECTION_APP;
    } else if (strcmp(word, "output") == 0) {
        error = start_output(l, name);
        l->section = SECTION_OUTPUT;
    } else {
        error = fail_unknown_section(l, word, name);
    }
    if (error < 0)
        skip_section(l);
}

/* --- lines --- */

#define SECTION_TEXT_MAX 256

/* A line that begins with '['. Sections are read here and not by inih, which would cut a long one without a
 * word and not tell of one without keys. */
static void read_section_line(struct config_loader *l, struct span line)
{
    const uint8_t *end = memchr(line.data, ']', line.size);
    char text[SECTION_TEXT_MAX];
    end_section(l);
    l->skipping = false;
    if (!end || (size_t)(end - line.data) > sizeof(text)) {
        config_fail(l, l->line, "a section without its closing ']', or longer than %zu bytes", sizeof(text));
        skip_section(l);
        return;
    }
    const uint8_t *rest = end + 1, *line_end = line.data + line.size;
    while (rest < line_end && (*rest == ' ' || *rest == '\t'))
        rest++;
    if (rest < line_end && *rest != ';' && *rest != '#') {
        config_fail(l, l->line, "text after the section's ']': begin a new line");
        skip_section(l);
        return;
    }
    size_t size = (size_t)(end - line.data) - 1;
    memcpy(text, line.data + 1, size);
    text[size] = '\0';
    start_section(l, text);
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

static int fail_unknown_app(struct config_loader *l, const struct config_output *output, unsigned line,
                            const char *name)
{
    const char *names[CONFIG_APPS_MAX];
    const struct config *config = l->config;
    for (unsigned i = 0; i < config->app_count; i++)
        names[i] = config->apps[i].name;
    const char *near = nearest_name(name, names, config->app_count);
    if (near)
        return config_fail(l, line, "[output %s.%s]: there is no app '%s': did you mean '%s'?", output->app,
                           output->output, name, near);
    return config_fail(l, line, "[output %s.%s]: there is no app '%s': add [app %s]", output->app,
                       output->output, name, name);
}

/* Only of sections that could all be begun: an app that is not there may be one of the others. */
static void check_apps_of_outputs(struct config_loader *l)
{
    for (unsigned i = 0; i < l->config->output_count; i++) {
        const struct config_output *output = &l->config->outputs[i];
        if (!find_app(l->config, output->app))
            fail_unknown_app(l, output, output->line, output->app);
        if (output->inner_app && !find_app(l->config, output->inner_app))
            fail_unknown_app(l, output, output->inner_line, output->inner_app);
    }
}

static int read_text(struct config_loader *l)
{
    int refused = ini_parse_stream(read_line, l, read_pair, l);
    if (refused < 0)
        config_fail_memory(l);
    else if (refused > 0) /* by what only some builds of inih refuse: is_pair is the others' rule */
        config_fail(l, (unsigned)refused, "neither [SECTION] nor KEY = VALUE");
    end_section(l);
    if (l->config->app_count == 0 && !l->skipped)
        config_fail(l, l->line > 0 ? l->line : 1, "no app: add [app NAME] with module = PATH");
    else if (!l->skipped)
        check_apps_of_outputs(l);
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
    value_dispose(output->token);
    free(output->content_type);
    explicit_bzero(&output->url, sizeof(output->url));
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
    free(config->apps);
    free(config->outputs);
    free(config->path);
    free(config->name);
    free(config->http);
    value_dispose(config->token);
    free(config->store);
    memset(config, 0, sizeof(*config));
}
