#include "host/cli_json.h"

#include "core/error.h"

#include <ctype.h>
#include <stdlib.h>

/* Reading is by position: each skip_ function takes the value at `at` and returns where it ends, or NULL. */

static const char *skip_space(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r'))
        at++;
    return at;
}

static const char *skip_string(const char *at, const char *end)
{
    for (at++; at < end && *at != '"'; at++)
        if (*at == '\\' && at + 1 < end)
            at++;
    return at < end ? at + 1 : NULL;
}

static const char *skip_word(const char *at, const char *end)
{
    const char *start = at;
    while (at < end && (isalnum((unsigned char)*at) || *at == '-' || *at == '+' || *at == '.'))
        at++;
    return at > start ? at : NULL;
}

static const char *skip_value(const char *at, const char *end, unsigned depth);

/* One member or element; NULL if it is malformed. */
static const char *skip_item(const char *at, const char *end, bool named, unsigned depth)
{
    if (named) {
        at = at < end && *at == '"' ? skip_string(at, end) : NULL;
        at = at ? skip_space(at, end) : NULL;
        if (!at || at >= end || *at != ':')
            return NULL;
        at = skip_space(at + 1, end);
    }
    at = skip_value(at, end, depth);
    return at ? skip_space(at, end) : NULL;
}

static const char *skip_container(const char *at, const char *end, unsigned depth)
{
    bool named = *at == '{';
    char closing = named ? '}' : ']';
    at = skip_space(at + 1, end);
    if (at < end && *at == closing)
        return at + 1;
    while ((at = skip_item(at, end, named, depth + 1)) && at < end && *at == ',')
        at = skip_space(at + 1, end);
    return at && at < end && *at == closing ? at + 1 : NULL;
}

static const char *skip_value(const char *at, const char *end, unsigned depth)
{
    if (at >= end || depth > CLI_JSON_DEPTH_MAX)
        return NULL;
    if (*at == '{' || *at == '[')
        return skip_container(at, end, depth);
    return *at == '"' ? skip_string(at, end) : skip_word(at, end);
}

/* --- what cli_json_whole has found to be well-formed --- */

int cli_json_whole(struct span json, struct span *value)
{
    const char *at = (const char *)json.data, *end = at + json.size;
    const char *start = skip_space(at, end), *after = skip_value(start, end, 0);
    if (!after || skip_space(after, end) != end)
        return PE_MALFORMED;
    *value = span_of(start, (size_t)(after - start));
    return 0;
}

struct cli_json_items cli_json_items(struct span container)
{
    struct cli_json_items items = {NULL, NULL, false};
    if (container.size > 0 && (container.data[0] == '{' || container.data[0] == '[')) {
        items.named = container.data[0] == '{';
        items.at = (const char *)container.data + 1;
        items.end = (const char *)container.data + container.size - 1;
    }
    return items;
}

bool cli_json_next(struct cli_json_items *items, struct span *name, struct span *value)
{
    const char *at = skip_space(items->at, items->end), *start = at;
    if (at >= items->end)
        return false;
    *name = span_of(at, 0);
    if (items->named) {
        at = skip_string(at, items->end);
        *name = span_of(start + 1, (size_t)(at - start) - 2);
        at = skip_space(skip_space(at, items->end) + 1, items->end);
    }
    start = at;
    at = skip_value(at, items->end, 0);
    *value = span_of(start, (size_t)(at - start));
    at = skip_space(at, items->end);
    items->at = at < items->end ? at + 1 : at; /* the comma */
    return true;
}

bool cli_json_member(struct span object, const char *name, struct span *value)
{
    struct cli_json_items items = cli_json_items(object);
    struct span member;
    while (items.named && cli_json_next(&items, &member, value)) {
        if (span_is(member, name))
            return true;
    }
    return false;
}

static unsigned unescape(const char *at, const char *end, char *byte)
{
    *byte = '?';
    if (*at != '\\' || at + 1 >= end) {
        *byte = *at;
        return 1;
    }
    if (at[1] == 'u')
        return (unsigned)min_size(6, (size_t)(end - at));
    if (at[1] == '"' || at[1] == '\\' || at[1] == '/')
        *byte = at[1];
    return 2;
}

void cli_json_text(struct span value, char *text, size_t size)
{
    const char *at = (const char *)value.data, *end = at + value.size;
    size_t used = 0;
    bool string = value.size > 0 && *at == '"';
    if (string)
        at++, end--;
    while (at < end && used + 1 < size) {
        char byte = *at;
        at += string ? unescape(at, end, &byte) : 1;
        text[used++] = iscntrl((unsigned char)byte) ? '?' : byte;
    }
    text[used] = '\0';
}

static bool read_number(struct span value, uint64_t *number)
{
    char digits[24], *end;
    if (value.size == 0 || value.size >= sizeof(digits) || !isdigit(value.data[0]))
        return false;
    memcpy(digits, value.data, value.size);
    digits[value.size] = '\0';
    *number = strtoull(digits, &end, 10);
    return *end == '\0';
}

int cli_json_number(struct span object, const char *name, uint64_t *number)
{
    struct span value;
    if (!cli_json_member(object, name, &value))
        return PE_MALFORMED;
    return read_number(value, number) ? 0 : PE_MALFORMED;
}
