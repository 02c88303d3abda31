/* A request, whole and cut at two places that the input gives: the same outcome, and spans within the head.
 */
#include "fuzz_input.h"

static struct http_head head;

/* The head's parts lie in its bytes, or are the static "/" of an absolute target. */
static void touch_head(struct span input)
{
    uint8_t *copy = drive_copy(input);
    size_t scanned = 0;
    int size = http_request_head(span_of(copy, input.size), &scanned, &head);
    if (size > 0) {
        uint64_t hash = drive_hash(drive_hash(0, head.method), head.target);
        for (unsigned i = 0; i < head.count; i++)
            hash = drive_hash(drive_hash(hash, head.fields[i].name), head.fields[i].value);
        if ((size_t)size > input.size || head.count > HTTP_FIELDS_MAX || head.target.size == 0 || hash == 1)
            abort();
        http_field_has(&head, "connection", "close");
    }
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < FUZZ_CUTS_SIZE)
        return 0;
    struct span input = span_of(data, size);
    struct cuts cuts = fuzz_cuts(&input), none = {.count = 0}, every = {.every = true};
    struct outcome whole = drive_request(input, &none, &head);
    struct outcome split = drive_request(input, &cuts, &head);
    fuzz_same(&whole, &split);
    if (input.size < 300) {
        split = drive_request(input, &every, &head);
        fuzz_same(&whole, &split);
    }
    touch_head(input);
    return 0;
}
