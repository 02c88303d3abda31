#include "host/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

static bool make_room(struct text *t, size_t size)
{
    if (t->failed)
        return false;
    if (size <= t->room - t->size)
        return true;
    size_t room = t->room ? t->room : 4096;
    while (room - t->size < size && room < TEXT_MAX)
        room *= 2;
    char *data = room - t->size < size ? NULL : realloc(t->data, room);
    t->failed = !data;
    if (data) {
        t->data = data;
        t->room = room;
    }
    return data;
}

void text_add(struct text *t, const void *data, size_t size)
{
    if (size == 0 || !make_room(t, size))
        return;
    memcpy(t->data + t->size, data, size);
    t->size += size;
}

void text_format(struct text *t, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (size <= 0 || !make_room(t, (size_t)size + 1))
        return;
    va_start(arguments, format);
    vsnprintf(t->data + t->size, (size_t)size + 1, format, arguments);
    va_end(arguments);
    t->size += (size_t)size;
}

void text_dispose(struct text *t)
{
    free(t->data);
    *t = (struct text){0};
}

size_t text_utf8(struct span bytes)
{
    static const uint8_t least_second[] = {[0] = 0xa0, [0x10] = 0x90};
    static const uint8_t most_second[] = {[0x0d] = 0x9f, [0x14] = 0x8f};
    const uint8_t *at = bytes.data;
    uint8_t lead = bytes.size > 0 ? at[0] : 0xff;
    if (lead < 0x80)
        return 1;
    if (lead < 0xc2 || lead > 0xf4)
        return 0;
    size_t size = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    uint8_t least = 0x80, most = 0xbf;
    if (lead == 0xe0 || lead == 0xf0)
        least = least_second[lead - 0xe0];
    if (lead == 0xed || lead == 0xf4)
        most = most_second[lead - 0xe0];
    if (size > bytes.size || at[1] < least || at[1] > most)
        return 0;
    for (size_t i = 2; i < size; i++) {
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    }
    return size;
}

void text_json(struct text *t, const char *string)
{
    text_add(t, "\"", 1);
    const uint8_t *at = (const uint8_t *)string, *end = at + strlen(string);
    while (at < end) {
        size_t size = text_utf8(span_of(at, (size_t)(end - at)));
        if (*at == '"' || *at == '\\')
            text_format(t, "\\%c", *at);
        else if (*at < 0x20 || *at == 0x7f)
            text_format(t, "\\u%04x", *at);
        else if (size == 0)
            text_add(t, "\xef\xbf\xbd", 3);
        else
            text_add(t, at, size);
        at += size ? size : 1;
    }
    text_add(t, "\"", 1);
}

void text_label(struct text *t, const char *string)
{
    text_add(t, "\"", 1);
    for (const char *at = string; *at; at++) {
        if (*at == '\n')
            text_add(t, "\\n", 2);
        else if (*at == '"' || *at == '\\')
            text_format(t, "\\%c", *at);
        else
            text_add(t, at, 1);
    }
    text_add(t, "\"", 1);
}
