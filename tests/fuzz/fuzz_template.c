/* A header's template and a record: what is taken gives what fits and cannot break out of the header. The
 * input: the template up to a NUL, then the record. */
#include "wire/template.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void write_it(const char *text, struct span record)
{
    static const struct template_names names = {"h\xc3\xb6st/app/out", "50%", true};
    struct template_values values = {.id = span_text("msg_a0_1\r"), .number = UINT64_MAX, .record = record};
    struct header_template t;
    const char *why = template_check(text, &names);
    if (why)
        return;
    if (template_init(&t, text, &names) < 0)
        abort();
    char *given = malloc(t.room + 1);
    if (!given)
        abort();
    size_t size = template_write(&t, &values, given);
    if (size > t.room)
        abort();
    for (size_t i = 0; i < size; i++) {
        uint8_t byte = (uint8_t)given[i];
        if (byte < 0x20 || byte == 0x7f || (byte > 0x7f && !strchr(text, given[i])))
            abort();
    }
    free(given);
    template_dispose(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *end = size > 0 ? memchr(data, '\0', size) : NULL;
    if (end)
        write_it((const char *)data, span_of(end + 1, (size_t)(data + size - end - 1)));
    return 0;
}
