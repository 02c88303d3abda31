/* The readers of keys about requests and what their answers mean: signatures, headers, statuses, rates. */
#include "host/config_readers.h"

#include "core/clock.h"
#include "host/config_values.h"
#include "wire/signature.h"

#include <sodium.h>
#include <stdlib.h>

/* --- sign = whsec_…, whsk_…: no message quotes one --- */

/* A dot is in no base64: it may be quoted, unless it is long enough to be some other secret. */
static bool looks_like_path(const char *written)
{
    return strlen(written) < 32 && strchr(written, '.') && !strpbrk(written, ": ,") &&
           strncmp(written, "whs", 3) != 0;
}

int config_read_sign(struct config_loader *l, const struct config_key *key, void *field,
                     const struct config_value *value)
{
    struct config_wire *wire = field;
    const char *why;
    unsigned which;
    int count = secrets_parse(span_text(value->text), wire->secrets, WIRE_SECRETS_MAX, &which, &why);
    if (count < 0 && value->text[0] && looks_like_path(value->written))
        return config_fail(l, l->line, "%s: %s: did you mean file:%s?", key->name, why, value->written);
    if (count < 0 && which > 1)
        return config_fail(l, l->line, "%s: %s (number %u of those given)", key->name, why, which);
    if (count < 0)
        return config_fail(l, l->line, "%s: %s", key->name, why);
    wire->secret_count = (unsigned)count;
    wire->secrets_line = l->line;
    if (strncmp(value->written, "file:", 5) == 0 &&
        value_path(l->directory, value->written + 5, &wire->secrets_path) < 0)
        return config_fail_memory(l);
    return 0;
}

/* --- header.NAME = TEMPLATE: no message quotes the value --- */

static int check_header_place(struct config_loader *l, const struct config_wire *wire, const char *name)
{
    for (unsigned i = 0; i < wire->header_count; i++)
        if (strcasecmp(wire->headers[i].name, name) == 0)
            return config_fail(l, l->line, "'header.%s' is given twice: it stands in line %u already", name,
                               wire->header_lines[i]);
    if (wire->header_count == WIRE_HEADERS_MAX)
        return config_fail(l, l->line, "header.%s: more than %d headers", name, WIRE_HEADERS_MAX);
    return 0;
}

/* What it may be depends on other keys: see end_headers. */
int config_read_header(struct config_loader *l, const struct config_key *key, void *field,
                       const struct config_value *value)
{
    struct config_wire *wire = field;
    const char *name = strchr(value->key, '.') + 1;
    (void)key;
    if (check_header_place(l, wire, name) < 0)
        return PE_CONFIG;
    struct wire_header *headers = reallocarray(wire->headers, wire->header_count + 1, sizeof(*headers));
    if (!headers)
        return config_fail_memory(l);
    wire->headers = headers;
    wire->header_lines[wire->header_count] = l->line;
    struct wire_header *header = &headers[wire->header_count++];
    *header = (struct wire_header){strdup(name), strdup(value_trim(value->text))};
    return header->name && header->value ? 0 : config_fail_memory(l);
}

static int end_headers(struct config_loader *l, const struct config_output *output)
{
    const struct config_wire *wire = &output->wire;
    const struct wire_options options = {.mode = output->mode,
                                         .token = output->token,
                                         .content_type = "",
                                         .source = "host/app/output",
                                         .event = "event"};
    for (unsigned i = 0; i < wire->header_count; i++) {
        const char *why = wire_header_check(&options, &wire->headers[i]);
        if (why)
            return config_fail(l, wire->header_lines[i], "header.%s: %s", wire->headers[i].name, why);
    }
    return 0;
}

/* --- success, refuse, disable = 200-299, 304 --- */

#define STATUS_MIN 200 /* of final replies */
#define STATUS_MAX 599

static int read_status(const char *text, unsigned *status)
{
    uint64_t number;
    if (value_count(text, &number) < 0 || number < STATUS_MIN || number > STATUS_MAX)
        return PE_CONFIG;
    *status = (unsigned)number;
    return 0;
}

/* "N" or "N-M". */
static int read_range(char *text, struct wire_statuses *statuses)
{
    unsigned from, to;
    char *dash = strchr(text, '-');
    if (dash)
        *dash = '\0';
    if (read_status(value_trim(text), &from) < 0 ||
        read_status(dash ? value_trim(dash + 1) : text, &to) < 0 || from > to)
        return PE_CONFIG;
    wire_statuses_add(statuses, from, to);
    return 0;
}

/* key->max: whether it may be none. */
int config_read_statuses(struct config_loader *l, const struct config_key *key, void *field,
                         const struct config_value *value)
{
    struct wire_statuses statuses = {0};
    char *rest = value->text, *part;
    bool none = key->max > 0 && strcmp(value->text, "none") == 0;
    while (!none && (part = strsep(&rest, ",")))
        if (read_range(value_trim(part), &statuses) < 0)
            return config_fail(l, l->line, "%s = %s: needs statuses from %d to %d, such as 200-299, 304%s",
                               key->name, value->written, STATUS_MIN, STATUS_MAX,
                               key->max > 0 ? ", or none" : "");
    *(struct wire_statuses *)field = statuses;
    return 0;
}

struct status_list {
    const char *key;
    struct wire_statuses *given;
    const struct wire_statuses *usual;
};

static int check_overlap(struct config_loader *l, const struct status_list *a, const struct status_list *b)
{
    for (unsigned status = STATUS_MIN; status <= STATUS_MAX; status++)
        if (wire_statuses_have(a->given, status) && wire_statuses_have(b->given, status))
            return config_fail(l, config_key_line(l, b->key),
                               "%s: %u is in %s already (line %u): a status means one thing", b->key, status,
                               a->key, config_key_line(l, a->key));
    return 0;
}

/* A list that is not given is the usual one without what the given ones have. */
static int end_statuses(struct config_loader *l, struct config_output *output)
{
    struct config_wire *w = &output->wire;
    struct wire_options usual = {.mode = output->mode};
    wire_options_statuses(&usual);
    const struct status_list lists[] = {{"success", &w->stored, &usual.stored},
                                        {"refuse", &w->refused, &usual.refused},
                                        {"disable", &w->disables, &usual.disables}};
    for (unsigned i = 0; i < ARRAY_SIZE(lists); i++)
        for (unsigned j = 0; j < i; j++)
            if (config_key_line(l, lists[i].key) > 0 && config_key_line(l, lists[j].key) > 0 &&
                check_overlap(l, &lists[j], &lists[i]) < 0)
                return PE_CONFIG;
    for (unsigned status = STATUS_MIN; status <= STATUS_MAX; status++) {
        bool taken = false;
        for (unsigned i = 0; i < ARRAY_SIZE(lists); i++)
            taken |= wire_statuses_have(lists[i].given, status);
        for (unsigned i = 0; i < ARRAY_SIZE(lists) && !taken; i++)
            if (config_key_line(l, lists[i].key) == 0 && wire_statuses_have(lists[i].usual, status))
                wire_statuses_add(lists[i].given, status, status);
    }
    return 0;
}

/* --- disable_after = 100, 5d; on_disable = OUTPUT --- */

#define DISABLE_NS_MIN       NS_PER_S
#define DISABLE_NS_MAX       (365 * 24 * 3600 * NS_PER_S)
#define DISABLE_FAILURES_MAX 1000000

/* One of the two limits, told apart by the unit. 0 or PE_CONFIG. */
static int read_disable_limit(const char *text, uint64_t *failures, uint64_t *ns)
{
    uint64_t number;
    if (value_count(text, &number) == 0) {
        if (*failures > 0 || number == 0 || number > DISABLE_FAILURES_MAX)
            return PE_CONFIG;
        *failures = number;
        return 0;
    }
    if (value_time(text, &number) < 0 || *ns > 0 || number < DISABLE_NS_MIN || number > DISABLE_NS_MAX)
        return PE_CONFIG;
    *ns = number;
    return 0;
}

int config_read_disable_after(struct config_loader *l, const struct config_key *key, void *field,
                              const struct config_value *value)
{
    struct config_wire *wire = field;
    char *rest = value->text, *part;
    uint64_t failures = 0, ns = 0;
    while ((part = strsep(&rest, ",")))
        if (read_disable_limit(value_trim(part), &failures, &ns) < 0)
            return config_fail(l, l->line,
                               "%s = %s: needs a number of failures in a row from 1 to %d, a time from 1s to "
                               "365d, or both, such as 100, 5d",
                               key->name, value->written, DISABLE_FAILURES_MAX);
    wire->disable_failures = (uint32_t)failures;
    wire->disable_ns = ns;
    return 0;
}

/* The name of an output of the same app, which may also be written as in its section: APP.OUTPUT. */
static const char *own_output(const struct config_output *output, const char *text)
{
    size_t size = strlen(output->app);
    return strncmp(text, output->app, size) == 0 && text[size] == '.' ? text + size + 1 : text;
}

/* Whether there is such an output is seen once all sections are read (config_whole.c). */
int config_read_on_disable(struct config_loader *l, const struct config_key *key, void *field,
                           const struct config_value *value)
{
    struct config_wire *wire = field;
    const char *name = own_output(&l->config->outputs[l->config->output_count - 1], value->text);
    if (!value_is_name(name, CONFIG_NAME_MAX, ""))
        return config_fail(l, l->line, "%s = %s: needs the name of another output of the same app", key->name,
                           value->written);
    wire->on_disable_line = l->line;
    return config_keep_text(l, &wire->on_disable, name);
}

/* --- order_by, rate --- */

int config_read_order_by(struct config_loader *l, const struct config_key *key, void *field,
                         const struct config_value *value)
{
    size_t size = strlen(value->text);
    if (size == 0 || size > WIRE_MEMBER_MAX)
        return config_fail(
            l, l->line,
            "%s: needs the name of a member of the records, which are JSON objects: 1 to %d bytes", key->name,
            WIRE_MEMBER_MAX);
    return config_keep_text(l, field, value->text);
}

#define RATE_MAX 1000000

/* Requests in 1000 s; rounded down, as it is a limit. */
int config_read_rate(struct config_loader *l, const struct config_key *key, void *field,
                     const struct config_value *value)
{
    char *slash = strchr(value->text, '/');
    const char *unit = slash ? value_trim(slash + 1) : "";
    uint64_t count, seconds = strcmp(unit, "s") == 0 ? 1 : strcmp(unit, "m") == 0 ? 60 : 0;
    if (slash)
        *slash = '\0';
    if (seconds == 0 || value_count(value_trim(value->text), &count) < 0 || count == 0 ||
        count > RATE_MAX * seconds)
        return config_fail(l, l->line,
                           "%s = %s: needs requests a second or a minute, such as 100/s or 6000/m", key->name,
                           value->written);
    *(uint64_t *)field = count * 1000 / seconds;
    return 0;
}

/* --- all keys of a wire together --- */

static const char *const tls_keys[] = {"ca", "certificate", "certificate_key", "pin"};

static int check_tls(struct config_loader *l, const struct config_output *output)
{
    const struct config_pair *pair = &output->wire.pair;
    for (unsigned i = 0; i < ARRAY_SIZE(tls_keys) && !output->url.tls; i++)
        if (config_key_line(l, tls_keys[i]) > 0)
            return config_fail(l, config_key_line(l, tls_keys[i]),
                               "'%s' is for wires to https:// URLs only: remove it", tls_keys[i]);
    if (pair->certificate && !pair->key)
        return config_fail(l, pair->certificate_line,
                           "certificate: its private key is missing: add certificate_key = FILE");
    if (pair->key && !pair->certificate)
        return config_fail(l, pair->key_line,
                           "certificate_key: its certificate is missing: add certificate = FILE");
    return 0;
}

/* All that is wrong is told at once: no part depends on another. */
int config_end_wire(struct config_loader *l, struct config_output *output)
{
    struct config_wire *wire = &output->wire;
    if (output->kind != OUTPUT_WIRE)
        return 0;
    int error = 0;
    if (wire->order_by && wire->concurrency < 2)
        error =
            config_fail(l, config_key_line(l, "order_by"),
                        "order_by is for wires with concurrency above 1: without, all records are in order");
    if (wire->on_disable && strcmp(wire->on_disable, output->output) == 0)
        error = config_fail(l, wire->on_disable_line,
                            "on_disable: needs another output of the app, not this one");
    if (end_headers(l, output) < 0)
        error = PE_CONFIG;
    if (check_tls(l, output) < 0)
        error = PE_CONFIG;
    return end_statuses(l, output) < 0 ? PE_CONFIG : error;
}

static void dispose_header(const struct wire_header *header)
{
    free((char *)header->name);
    value_dispose((char *)header->value);
}

void config_dispose_wire(struct config_wire *wire)
{
    for (unsigned i = 0; i < wire->header_count; i++)
        dispose_header(&wire->headers[i]);
    free(wire->headers);
    free(wire->secrets_path);
    free(wire->on_disable);
    free(wire->order_by);
    config_dispose_egress(&wire->egress);
    config_dispose_pair(&wire->pair);
    sodium_memzero(wire->secrets, sizeof(wire->secrets));
}
