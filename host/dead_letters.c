#include "host/dead_letters.h"

#include <errno.h>
#include <stdlib.h>

typedef unsigned long long ull;

/* More than a row takes: a byte of the reason takes six at most, as \u001f. */
#define ROW_BYTES (6 * OUTLET_REASON_MAX + 128)

void dead_letters_dispose(struct dead_letters *d)
{
    free(d->letters);
    *d = (struct dead_letters){0};
}

/* Index of the first with at least this number. */
static uint32_t index_of(const struct dead_letters *d, uint64_t number)
{
    uint32_t low = 0, high = d->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (d->letters[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int grow(struct dead_letters *d)
{
    uint32_t room = d->room ? 2 * d->room : 16;
    struct dead_letter *letters = realloc(d->letters, room * sizeof *letters);
    if (!letters)
        return -ENOMEM;
    d->letters = letters;
    d->room = room;
    return 0;
}

int dead_letters_add(struct dead_letters *d, const struct dead_letter *letter, struct span reason)
{
    uint32_t at = index_of(d, letter->number);
    if (at < d->count && d->letters[at].number == letter->number)
        return 0;
    if (d->count == d->room && grow(d) < 0)
        return -ENOMEM;
    memmove(d->letters + at + 1, d->letters + at, (d->count++ - at) * sizeof *d->letters);
    d->letters[at] = *letter;
    size_t size = min_size(reason.size, OUTLET_REASON_MAX - 1);
    memset(d->letters[at].reason, 0, OUTLET_REASON_MAX);
    if (size > 0)
        memcpy(d->letters[at].reason, reason.data, size);
    return 0;
}

struct dead_letter *dead_letters_from(const struct dead_letters *d, uint64_t number)
{
    uint32_t at = index_of(d, number);
    while (at < d->count && d->letters[at].stage != DEAD_KEPT)
        at++;
    return at < d->count ? &d->letters[at] : NULL;
}

/* --- a start --- */

void dead_letters_clear(struct dead_letters *d)
{
    d->count = 0;
}

void dead_letters_forget(struct dead_letters *d, uint64_t number)
{
    uint32_t at = index_of(d, number);
    if (at == d->count || d->letters[at].number != number)
        return;
    d->count--;
    memmove(d->letters + at, d->letters + at + 1, (d->count - at) * sizeof *d->letters);
}

uint32_t dead_letters_hold(struct dead_letters *d, struct store *store)
{
    uint32_t lost = 0;
    for (uint32_t i = 0; i < d->count; i++) {
        struct dead_letter *letter = &d->letters[i];
        letter->held = store_has(store, letter->segment);
        if (letter->held)
            store_hold(store, letter->segment);
        lost += !letter->held;
    }
    return lost;
}

/* --- frames --- */

void dead_letters_frame(const struct dead_letter *letter, const char *output, struct frame_buffer *frames)
{
    struct section section = {.type = SECTION_DEAD,
                              .dead = {.output = span_text(output),
                                       .number = letter->number,
                                       .time_ms = letter->time_ms,
                                       .reason = span_text(letter->reason),
                                       .segment = letter->segment,
                                       .offset = letter->offset,
                                       .bytes = letter->bytes}};
    commit_put(frames, &section);
}

void dead_letters_frame_all(const struct dead_letters *d, const char *output, struct frame_buffer *frames)
{
    for (uint32_t i = 0; i < d->count; i++) {
        if (d->letters[i].stage == DEAD_KEPT)
            dead_letters_frame(&d->letters[i], output, frames);
    }
}

void dead_letters_frame_gone(struct dead_letters *d, struct dead_letter *letter, const char *output,
                             struct frame_buffer *frames)
{
    assert(letter->stage == DEAD_KEPT);
    struct section section = {.type = SECTION_DEAD_GONE,
                              .dead_gone = {.output = span_text(output), .number = letter->number}};
    commit_put(frames, &section);
    letter->stage = DEAD_GONE_FILLED;
    d->filled++;
}

void dead_letters_placed(struct dead_letters *d)
{
    if (d->filled == 0)
        return;
    assert(d->writing == 0);
    for (uint32_t i = 0; i < d->count; i++) {
        if (d->letters[i].stage == DEAD_GONE_FILLED)
            d->letters[i].stage = DEAD_GONE_WRITING;
    }
    d->writing = d->filled;
    d->filled = 0;
}

void dead_letters_durable(struct dead_letters *d, struct store *store)
{
    uint32_t left = 0;
    if (d->writing == 0)
        return;
    for (uint32_t i = 0; i < d->count; i++) {
        struct dead_letter *letter = &d->letters[i];
        if (letter->stage != DEAD_GONE_WRITING)
            d->letters[left++] = *letter;
        else if (letter->held)
            store_release(store, letter->segment);
    }
    d->count = left;
    d->writing = 0;
}

/* --- for people --- */

static void list_one(const struct dead_letter *letter, struct text *t)
{
    text_format(t, "{\"number\":%llu,\"time_ms\":%llu,\"reason\":", (ull)letter->number,
                (ull)letter->time_ms);
    text_json(t, letter->reason);
    text_format(t, ",\"bytes\":%u}", letter->bytes);
}

void dead_letters_list(const struct dead_letters *d, uint64_t from, size_t most, struct text *t)
{
    const struct dead_letter *letter = dead_letters_from(d, from);
    text_format(t, "{\"dead\":[");
    for (bool first = true; letter && t->size + ROW_BYTES <= most; first = false) {
        text_add(t, ",", !first);
        list_one(letter, t);
        letter = letter->number < UINT64_MAX ? dead_letters_from(d, letter->number + 1) : NULL;
    }
    text_format(t, "],\"more\":%s}\n", letter ? "true" : "false");
}
