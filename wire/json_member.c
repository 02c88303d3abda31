#include "wire/json_member.h"

#include "wire/http_class.h"

#include <errno.h>

/* --- the structure. These return the place behind what they skip, NULL if it is not there whole --- */

static const uint8_t *skip_space(const uint8_t *at, const uint8_t *end)
{
    while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r'))
        at++;
    return at;
}

static const uint8_t *skip_byte(const uint8_t *at, const uint8_t *end, uint8_t byte)
{
    return at < end && *at == byte ? at + 1 : NULL;
}

/* `at` is behind the backslash. */
static const uint8_t *skip_escape(const uint8_t *at, const uint8_t *end)
{
    if (at == end || !*at || !strchr("\"\\/bfnrtu", *at))
        return NULL;
    if (*at++ != 'u')
        return at;
    return http_class_run(at, end, CLASS_HEX) >= 4 ? at + 4 : NULL;
}

static const uint8_t *skip_string(const uint8_t *at, const uint8_t *end)
{
    at = skip_byte(at, end, '"');
    while (at && at < end && *at != '"') {
        if (*at < 0x20)
            return NULL;
        at = *at == '\\' ? skip_escape(at + 1, end) : at + 1;
    }
    return at && at < end ? at + 1 : NULL;
}

/* `at` is at its first bracket. */
static const uint8_t *skip_nested(const uint8_t *at, const uint8_t *end)
{
    size_t depth = 0;
    while (at && at < end) {
        if (*at == '"') {
            at = skip_string(at, end);
            continue;
        }
        if (*at == '{' || *at == '[')
            depth++;
        else if (*at == '}' || *at == ']')
            depth--;
        at++;
        if (depth == 0)
            return at;
    }
    return NULL;
}

static bool scalar_byte(uint8_t byte)
{
    return (byte >= '0' && byte <= '9') || (http_lower(byte) >= 'a' && http_lower(byte) <= 'z') ||
           byte == '-' || byte == '+' || byte == '.';
}

static const uint8_t *skip_scalar(const uint8_t *at, const uint8_t *end)
{
    const uint8_t *start = at;
    while (at < end && scalar_byte(*at))
        at++;
    return at > start ? at : NULL;
}

static const uint8_t *skip_value(const uint8_t *at, const uint8_t *end)
{
    if (at < end && *at == '"')
        return skip_string(at, end);
    if (at < end && (*at == '{' || *at == '['))
        return skip_nested(at, end);
    return skip_scalar(at, end);
}

/* --- what values say --- */

struct json_text json_text(struct span value)
{
    bool string = value.size >= 2 && value.data[0] == '"';
    const uint8_t *at = value.data, *end = at + value.size;
    return string ? (struct json_text){at + 1, end - 1, true} : (struct json_text){at, end, false};
}

/* The size of a character by its first byte, cut where no continuation byte follows. */
static size_t utf8_size(const uint8_t *at, const uint8_t *end)
{
    size_t size = *at < 0xc0 ? 1 : *at < 0xe0 ? 2 : *at < 0xf0 ? 3 : *at < 0xf8 ? 4 : 1;
    if (size > (size_t)(end - at))
        return 1;
    for (size_t i = 1; i < size; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 1;
    }
    return size;
}

static size_t put_utf8(uint32_t code, uint8_t to[4])
{
    if (code < 0x80) {
        to[0] = (uint8_t)code;
        return 1;
    }
    size_t size = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const uint8_t first[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = size - 1; i > 0; i--, code >>= 6)
        to[i] = (uint8_t)(0x80 | (code & 0x3f));
    to[0] = (uint8_t)(first[size] | code);
    return size;
}

/* The four digits at the front of [at, end), which skip_escape has seen. */
static uint32_t hex4(const uint8_t *at)
{
    return http_hex(at[0]) << 12 | http_hex(at[1]) << 8 | http_hex(at[2]) << 4 | http_hex(at[3]);
}

/* Of "\uXXXX", or of two that are a surrogate pair (RFC 8259 section 7). */
static uint32_t take_code(struct json_text *t)
{
    uint32_t code = hex4(t->at + 2);
    t->at += 6;
    if (code < 0xd800 || code > 0xdfff)
        return code;
    if (code <= 0xdbff && t->end - t->at >= 6 && t->at[0] == '\\' && t->at[1] == 'u') {
        uint32_t low = hex4(t->at + 2);
        if (low >= 0xdc00 && low <= 0xdfff) {
            t->at += 6;
            return 0x10000 + ((code - 0xd800) << 10 | (low - 0xdc00));
        }
    }
    return 0xfffd;
}

static uint8_t short_escape(uint8_t letter)
{
    switch (letter) {
    case 'b':
        return '\b';
    case 'f':
        return '\f';
    case 'n':
        return '\n';
    case 'r':
        return '\r';
    case 't':
        return '\t';
    default:
        return letter; /* '"', '\\', '/' */
    }
}

size_t json_text_next(struct json_text *t, uint8_t character[4])
{
    if (t->at >= t->end)
        return 0;
    if (t->string && *t->at == '\\') {
        if (t->at[1] == 'u')
            return put_utf8(take_code(t), character);
        character[0] = short_escape(t->at[1]);
        t->at += 2;
        return 1;
    }
    size_t size = utf8_size(t->at, t->end);
    memcpy(character, t->at, size);
    t->at += size;
    return size;
}

size_t json_text_copy(struct span value, uint8_t *to, size_t room)
{
    struct json_text text = json_text(value);
    uint8_t character[4];
    size_t size, used = 0;
    while ((size = json_text_next(&text, character)) > 0 && size <= room - used) {
        memcpy(to + used, character, size);
        used += size;
    }
    return used;
}

/* FNV-1a, its high half folded into the low one for tables. */
uint64_t json_text_hash(struct span value)
{
    struct json_text text = json_text(value);
    uint64_t hash = UINT64_C(0xcbf29ce484222325) ^ text.string;
    uint8_t character[4];
    size_t size;
    while ((size = json_text_next(&text, character)) > 0) {
        for (size_t i = 0; i < size; i++)
            hash = (hash ^ character[i]) * UINT64_C(0x100000001b3);
    }
    return hash ^ hash >> 32;
}

/* --- the member --- */

static bool name_is(struct span quoted, struct span name)
{
    struct json_text text = json_text(quoted);
    uint8_t character[4];
    size_t size, at = 0;
    while ((size = json_text_next(&text, character)) > 0) {
        if (size > name.size - at || memcmp(character, name.data + at, size) != 0)
            return false;
        at += size;
    }
    return at == name.size;
}

/* Takes `"name": value` off the front, with the white space behind it. False: there is none. */
static bool take_member(const uint8_t **at, const uint8_t *end, struct span *name, struct span *value)
{
    const uint8_t *start = *at, *behind = skip_string(start, end);
    if (!behind)
        return false;
    *name = span_of(start, (size_t)(behind - start));
    const uint8_t *colon = skip_byte(skip_space(behind, end), end, ':');
    if (!colon)
        return false;
    start = skip_space(colon, end);
    behind = skip_value(start, end);
    if (!behind)
        return false;
    *value = span_of(start, (size_t)(behind - start));
    *at = skip_space(behind, end);
    return *at < end && (**at == ',' || **at == '}');
}

int json_member(struct span json, struct span name, struct span *value)
{
    struct span member, found;
    const uint8_t *end = json.data + json.size;
    const uint8_t *at = skip_byte(skip_space(json.data, end), end, '{');
    if (!at)
        return PE_MALFORMED;
    at = skip_space(at, end);
    if (at < end && *at == '}')
        return -ENOENT;
    while (take_member(&at, end, &member, &found)) {
        if (name_is(member, name)) {
            *value = found;
            return 0;
        }
        if (*at == '}')
            return -ENOENT;
        at = skip_space(at + 1, end);
    }
    return PE_MALFORMED;
}
