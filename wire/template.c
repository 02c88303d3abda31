#include "wire/template.h"

#include "wire/json_member.h"
#include "wire/put.h"

#include <errno.h>
#include <stdlib.h>

/* RFC 9110 section 5.5, but for the tab. Bytes above 0x7f are the configuration's own affair. */
bool template_field_value(const char *text, size_t max)
{
    size_t size = strlen(text);
    if (size == 0 || size > max || text[0] == ' ' || text[size - 1] == ' ')
        return false;
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        if (*at < 0x20 || *at == 0x7f)
            return false;
    }
    return true;
}

/* --- values --- */

/* Puts a character, escaped where it has to be, if that keeps within [to, end); else returns NULL. */
static char *put_escaped(char *to, const char *end, const uint8_t *character, size_t size)
{
    static const char digits[] = "0123456789ABCDEF";
    bool plain = size == 1 && *character >= 0x20 && *character < 0x7f && *character != '%';
    if ((size_t)(end - to) < (plain ? 1 : 3 * size))
        return NULL;
    if (plain) {
        *to++ = (char)*character;
        return to;
    }
    for (size_t i = 0; i < size; i++) {
        *to++ = '%';
        *to++ = digits[character[i] >> 4];
        *to++ = digits[character[i] & 15];
    }
    return to;
}

/* As much of a JSON value, or a plain text, as has room. */
static char *put_value(char *to, const char *end, struct json_text text)
{
    uint8_t character[4];
    size_t size;
    while ((size = json_text_next(&text, character)) > 0) {
        char *behind = put_escaped(to, end, character, size);
        if (!behind)
            break;
        to = behind;
    }
    return to;
}

static char *put_plain(char *to, struct span text)
{
    struct json_text plain = {text.data, text.data + text.size, false};
    return put_value(to, to + 3 * text.size, plain);
}

static char *put_member(char *to, struct span record, struct span name)
{
    struct span value;
    if (json_member(record, name, &value) < 0 || span_is(value, "null"))
        return to;
    return put_value(to, to + TEMPLATE_MEMBER_MAX, json_text(value));
}

/* --- reading a template --- */

/* One of the output's names: the part of `source` between its slashes. False: it is not known. */
static bool output_name(const struct template_names *names, struct span placeholder, struct span *name)
{
    if (span_is(placeholder, "event")) {
        *name = names->event ? span_text(names->event) : span_of(NULL, 0);
        return names->event != NULL;
    }
    const char *app = names->source ? strchr(names->source, '/') : NULL;
    const char *output = app ? strchr(app + 1, '/') : NULL;
    if (!output)
        return false;
    if (span_is(placeholder, "host"))
        *name = span_of(names->source, (size_t)(app - names->source));
    else if (span_is(placeholder, "app"))
        *name = span_of(app + 1, (size_t)(output - app - 1));
    else
        *name = span_text(output + 1);
    return true;
}

static bool is_output_name(struct span placeholder)
{
    return span_is(placeholder, "host") || span_is(placeholder, "app") || span_is(placeholder, "output") ||
           span_is(placeholder, "event");
}

/* A piece as it is read: texts point into the template or the names. */
struct read_piece {
    enum template_kind kind;
    bool name; /* of the output: text to be escaped */
    struct span text;
};

static const char *read_member(struct span name, const struct template_names *names, struct read_piece *piece)
{
    if (!names->members)
        return "{data.MEMBER} in a header is of one record: with mode = webhook only";
    if (name.size == 0 || name.size > TEMPLATE_NAME_MAX)
        return "MEMBER of {data.MEMBER} in a header has 1 to 128 bytes";
    *piece = (struct read_piece){.kind = TEMPLATE_DATA, .text = name};
    return NULL;
}

static const char *read_placeholder(struct span inside, const struct template_names *names,
                                    struct read_piece *piece)
{
    static const struct {
        const char *name;
        enum template_kind kind;
    } numbers[] = {{"id", TEMPLATE_ID},
                   {"number", TEMPLATE_NUMBER},
                   {"timestamp", TEMPLATE_TIMESTAMP},
                   {"attempt", TEMPLATE_ATTEMPT}};
    for (unsigned i = 0; i < ARRAY_SIZE(numbers); i++) {
        if (span_is(inside, numbers[i].name)) {
            *piece = (struct read_piece){.kind = numbers[i].kind};
            return NULL;
        }
    }
    if (inside.size >= 5 && memcmp(inside.data, "data.", 5) == 0)
        return read_member(span_of(inside.data + 5, inside.size - 5), names, piece);
    *piece = (struct read_piece){.kind = TEMPLATE_TEXT, .name = true};
    if (!is_output_name(inside))
        return "no such placeholder in a header: there are {id}, {number}, {timestamp}, {attempt}, {host}, "
               "{app}, {output}, {event} and {data.MEMBER}, and {{ is a brace";
    if (!output_name(names, inside, &piece->text))
        return "a header has a placeholder for a name that this output does not have";
    return NULL;
}

/* Takes a piece off the front of `*text`, which is not empty. NULL, or what is wrong. */
static const char *read_piece(const char **text, const struct template_names *names, struct read_piece *piece)
{
    const char *at = *text;
    if (*at != '{' || at[1] == '{') {
        size_t size = *at == '{' ? 1 : strcspn(at, "{");
        *piece = (struct read_piece){.kind = TEMPLATE_TEXT, .text = span_of(at, size)};
        *text = at + size + (*at == '{');
        return NULL;
    }
    const char *end = strchr(at, '}');
    if (!end)
        return "a '{' in a header has no '}' ({{ is a brace)";
    *text = end + 1;
    return read_placeholder(span_of(at + 1, (size_t)(end - at - 1)), names, piece);
}

const char *template_check(const char *text, const struct template_names *names)
{
    if (!template_field_value(text, TEMPLATE_TEXT_MAX))
        return "a header's value has 1 to 4096 bytes, no control bytes, and no space at its ends";
    for (unsigned count = 0; *text; count++) {
        struct read_piece piece;
        if (count == TEMPLATE_PIECES_MAX)
            return "a header has more than 32 placeholders and texts between them";
        const char *why = read_piece(&text, names, &piece);
        if (why)
            return why;
    }
    return NULL;
}

/* --- templates --- */

static size_t piece_room(const struct template_piece *piece)
{
    static const size_t rooms[] = {[TEMPLATE_ID] = 3 * TEMPLATE_ID_MAX,
                                   [TEMPLATE_NUMBER] = PUT_NUMBER_MAX,
                                   [TEMPLATE_TIMESTAMP] = PUT_NUMBER_MAX,
                                   [TEMPLATE_ATTEMPT] = PUT_NUMBER_MAX,
                                   [TEMPLATE_DATA] = TEMPLATE_MEMBER_MAX};
    return piece->kind == TEMPLATE_TEXT ? piece->size : rooms[piece->kind];
}

/* Bytes for the texts of all pieces: that of the template, and the output's names, escaped. */
static size_t text_room(const char *text, const struct template_names *names)
{
    size_t room = strlen(text) + 1;
    while (*text) {
        struct read_piece piece;
        const char *why = read_piece(&text, names, &piece);
        assert(!why);
        room += piece.name ? 3 * piece.text.size : 0;
    }
    return room;
}

int template_init(struct header_template *t, const char *text, const struct template_names *names)
{
    *t = (struct header_template){.text = malloc(text_room(text, names))};
    if (!t->text)
        return -ENOMEM;
    char *to = t->text;
    while (*text) {
        struct read_piece read;
        const char *why = read_piece(&text, names, &read);
        assert(!why && t->count < TEMPLATE_PIECES_MAX);
        char *behind = read.name ? put_plain(to, read.text) : put_span(to, read.text);
        struct template_piece *piece = &t->pieces[t->count++];
        piece->kind = read.kind;
        piece->at = (uint32_t)(to - t->text);
        piece->size = (uint32_t)(behind - to);
        t->room += piece_room(piece);
        to = behind;
    }
    return 0;
}

void template_dispose(struct header_template *t)
{
    free(t->text);
    *t = (struct header_template){0};
}

static char *put_piece(char *to, const struct header_template *t, const struct template_piece *piece,
                       const struct template_values *v)
{
    struct span text = span_of(t->text + piece->at, piece->size);
    switch (piece->kind) {
    case TEMPLATE_TEXT:
        return put_span(to, text);
    case TEMPLATE_ID:
        return put_plain(to, v->id);
    case TEMPLATE_NUMBER:
        return put_number(to, v->number);
    case TEMPLATE_TIMESTAMP:
        return put_number(to, v->timestamp_s);
    case TEMPLATE_ATTEMPT:
        return put_number(to, v->attempt);
    case TEMPLATE_DATA:
        return put_member(to, v->record, text);
    }
    return to;
}

size_t template_write(const struct header_template *t, const struct template_values *values,
                      char *const start)
{
    char *to = start;
    assert(values->id.size <= TEMPLATE_ID_MAX);
    for (unsigned i = 0; i < t->count; i++)
        to = put_piece(to, t, &t->pieces[i], values);
    assert(to <= start + t->room);
    return (size_t)(to - start);
}
