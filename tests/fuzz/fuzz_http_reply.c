/* A reply, whole and cut at two places that the input gives, to HEAD and others, with and without an end of
 * the stream: the same outcome, and spans within the reply's buffer. The first byte of the input chooses. */
#include "fuzz_input.h"

static struct http_reply reply;

static void check_head(void)
{
    const uint8_t *low = reply.large ? reply.large : reply.buffer;
    const uint8_t *high = low + (reply.large ? HTTP_REPLY_HEAD_MAX : sizeof reply.buffer);
    for (unsigned i = 0; reply.status > 0 && i < reply.head.count; i++) {
        const struct http_field *field = &reply.head.fields[i];
        if (field->name.size == 0 || field->name.data < low || field->value.data < field->name.data ||
            field->value.data + field->value.size > high)
            abort();
    }
    if (reply.status > 0 && (reply.status < 200 || reply.status > 999))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1 + FUZZ_CUTS_SIZE)
        return 0;
    bool head_request = data[0] & 1, closes = data[0] & 2;
    struct span input = span_of(data + 1, size - 1);
    struct cuts cuts = fuzz_cuts(&input), none = {.count = 0}, every = {.every = true};
    struct outcome whole = drive_reply(input, &none, head_request, closes, &reply);
    check_head();
    struct outcome split = drive_reply(input, &cuts, head_request, closes, &reply);
    fuzz_same(&whole, &split);
    split = drive_reply(input, &every, head_request, closes, &reply);
    fuzz_same(&whole, &split);
    return 0;
}
