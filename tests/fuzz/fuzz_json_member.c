/* A member of JSON: what is found lies within the text, is a value, and is found again where it stands alone.
 * The input: the name's size, the name, the text. */
#include "wire/json_member.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The value in an object of its own, under a name that needs no escapes. */
static void find_alone(struct span value)
{
    static const char front[] = "{\"alone\":";
    size_t size = sizeof front - 1 + value.size + 1;
    char *json = malloc(size), *to = mempcpy(json, front, sizeof front - 1);
    struct span again;
    if (!json)
        abort();
    *(char *)mempcpy(to, value.data, value.size) = '}';
    if (json_member(span_of(json, size), span_text("alone"), &again) < 0 || !span_equal(again, value) ||
        json_text_hash(again) != json_text_hash(value))
        abort();
    free(json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 || data[0] > size - 1)
        return 0;
    struct span name = span_of(data + 1, data[0]), value = {0};
    size_t json_size = size - 1 - name.size;
    uint8_t *json = malloc(json_size + 1), *text = malloc(json_size + 1);
    if (!json || !text)
        abort();
    memcpy(json, name.data + name.size, json_size);
    if (json_member(span_of(json, json_size), name, &value) == 0) {
        if (value.size == 0 || value.data <= json || value.data + value.size >= json + json_size)
            abort();
        size_t said = json_text_copy(value, text, json_size);
        if (said > value.size) /* escapes are longer than what they mean */
            abort();
        for (size_t room = 0; room <= said && room < 8; room++) {
            if (json_text_copy(value, text, room) > room)
                abort();
        }
        find_alone(value);
    }
    free(json);
    free(text);
    return 0;
}
