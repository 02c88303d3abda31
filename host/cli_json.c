#include "host/cli_json.h"

#include "core/error.h"

#include <ctype.h>
#include <stdlib.h>

/* Reading is by position: each skip_ function takes the value at `at` and returns where it ends, or NULL. */
struct text {
    const char *at, *end;
};

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

/* --- walking what is known to be well-formed --- */

struct member {
    struct span name;  /* with its quotes; empty in arrays */
    struct span value; /* as it stands */
};

static struct text inside(struct span container)
{
    const char *at = (const char *)container.data;
    return (struct text){at + 1, at + container.size - 1};
}

static bool next_item(struct text *text, bool named, struct member *member)
{
    const char *at = skip_space(text->at, text->end), *start = at;
    if (at >= text->end)
        return false;
    member->name = span_of(at, 0);
    if (named) {
        at = skip_string(at, text->end);
        member->name = span_of(start, (size_t)(at - start));
        at = skip_space(skip_space(at, text->end) + 1, text->end);
    }
    start = at;
    at = skip_value(at, text->end, 0);
    member->value = span_of(start, (size_t)(at - start));
    at = skip_space(at, text->end);
    text->at = at < text->end ? at + 1 : at; /* the comma */
    return true;
}

static bool is_kind(struct span value, char first)
{
    return value.size > 0 && value.data[0] == (uint8_t)first;
}

static bool is_table(struct span value)
{
    struct text text = inside(value);
    struct member element;
    bool any = false;
    if (!is_kind(value, '['))
        return false;
    while (next_item(&text, false, &element)) {
        if (!is_kind(element.value, '{'))
            return false;
        any = true;
    }
    return any;
}

static bool find_member(struct span object, struct span name, struct span *value)
{
    struct text text = inside(object);
    struct member member;
    while (next_item(&text, true, &member))
        if (span_equal(member.name, name)) {
            *value = member.value;
            return true;
        }
    return false;
}

/* --- writing --- */

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

/* Writes a string without its quotes, anything else as it stands; returns the bytes written. `out` NULL: only
 * counts. */
static size_t put_plain(FILE *out, struct span value)
{
    const char *at = (const char *)value.data, *end = at + value.size;
    bool string = is_kind(value, '"');
    size_t size = 0;
    if (string)
        at++, end--;
    while (at < end) {
        char byte = *at;
        at += string ? unescape(at, end, &byte) : 1;
        if (out)
            fputc(iscntrl((unsigned char)byte) ? '?' : byte, out);
        size++;
    }
    return size;
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

static size_t put_age(FILE *out, uint64_t since_ms, uint64_t now_ms)
{
    char text[32] = "-";
    uint64_t s = since_ms < now_ms ? (now_ms - since_ms) / 1000 : 0;
    if (since_ms > 0)
        snprintf(text, sizeof(text), "%llu%s ago", (unsigned long long)(s < 600 ? s : s / 60),
                 s < 600 ? "s" : "min");
    if (out)
        fputs(text, out);
    return strlen(text);
}

/* The value of a member for people; returns the bytes written. `out` NULL: only counts. */
static size_t put_member(FILE *out, struct span name, struct span value, uint64_t now_ms)
{
    uint64_t since_ms;
    if (span_is(name, "\"since_ms\"") && read_number(value, &since_ms))
        return put_age(out, since_ms, now_ms);
    return put_plain(out, value);
}

static size_t put_name(FILE *out, struct span name)
{
    return put_plain(out, span_is(name, "\"since_ms\"") ? span_text("since") : name);
}

static void pad(FILE *out, size_t size, size_t width)
{
    for (; size < width; size++)
        fputc(' ', out);
}

struct column {
    struct span name;
    size_t width;
};

struct columns {
    struct column list[CLI_JSON_COLUMNS_MAX];
    unsigned count;
};

static void widen(struct columns *columns, const struct member *member, size_t width)
{
    unsigned i = 0;
    while (i < columns->count && !span_equal(columns->list[i].name, member->name))
        i++;
    if (i == CLI_JSON_COLUMNS_MAX)
        return;
    if (i == columns->count)
        columns->list[columns->count++] = (struct column){member->name, put_name(NULL, member->name)};
    if (width > columns->list[i].width)
        columns->list[i].width = width;
}

static void find_columns(struct span array, uint64_t now_ms, struct columns *columns)
{
    struct text rows = inside(array);
    struct member row, member;
    columns->count = 0;
    while (next_item(&rows, false, &row)) {
        struct text members = inside(row.value);
        while (next_item(&members, true, &member))
            widen(columns, &member, put_member(NULL, member.name, member.value, now_ms));
    }
}

static void show_row(FILE *out, struct span object, uint64_t now_ms, const struct columns *columns)
{
    for (unsigned i = 0; i < columns->count; i++) {
        const struct column *column = &columns->list[i];
        struct span value;
        size_t size = 0;
        fputs("  ", out);
        if (find_member(object, column->name, &value))
            size = put_member(out, column->name, value, now_ms);
        if (i + 1 < columns->count)
            pad(out, size, column->width);
    }
    fputc('\n', out);
}

static void show_table(FILE *out, struct span array, uint64_t now_ms)
{
    struct columns columns;
    struct text rows = inside(array);
    struct member row;
    find_columns(array, now_ms, &columns);
    for (unsigned i = 0; i < columns.count; i++) {
        fputs("  ", out);
        size_t size = put_name(out, columns.list[i].name);
        if (i + 1 < columns.count)
            pad(out, size, columns.list[i].width);
    }
    fputc('\n', out);
    while (next_item(&rows, false, &row))
        show_row(out, row.value, now_ms, &columns);
}

static void show_object(FILE *out, struct span object, uint64_t now_ms, unsigned indent)
{
    struct text text = inside(object);
    struct member member;
    while (next_item(&text, true, &member)) {
        fprintf(out, "%*s", (int)indent, "");
        put_name(out, member.name);
        if (is_table(member.value)) {
            fputs("\n", out);
            show_table(out, member.value, now_ms);
        } else if (is_kind(member.value, '{')) {
            fputs("\n", out);
            show_object(out, member.value, now_ms, indent + 2);
        } else {
            fputs(": ", out);
            put_member(out, member.name, member.value, now_ms);
            fputc('\n', out);
        }
    }
}

/* The one value that `json` is, without the space around it; an empty span if it is malformed. */
static struct span whole_value(struct span json)
{
    const char *at = (const char *)json.data, *end = at + json.size;
    const char *start = skip_space(at, end), *after = skip_value(start, end, 0);
    if (!after || skip_space(after, end) != end)
        return span_of(at, 0);
    return span_of(start, (size_t)(after - start));
}

int cli_json_show(FILE *out, struct span json, uint64_t now_ms)
{
    struct span value = whole_value(json);
    if (value.size == 0)
        return PE_MALFORMED;
    if (is_kind(value, '{')) {
        show_object(out, value, now_ms, 0);
    } else if (is_table(value)) {
        show_table(out, value, now_ms);
    } else {
        put_plain(out, value);
        fputc('\n', out);
    }
    return 0;
}

int cli_json_number(struct span json, const char *name, uint64_t *number)
{
    struct span object = whole_value(json), value;
    char quoted[64];
    snprintf(quoted, sizeof(quoted), "\"%s\"", name);
    if (!is_kind(object, '{') || !find_member(object, span_text(quoted), &value))
        return PE_MALFORMED;
    return read_number(value, number) ? 0 : PE_MALFORMED;
}
