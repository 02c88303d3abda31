#include "link/window.h"

#include <assert.h>
#include <string.h>

void window_init(struct window *w, uint64_t first)
{
    *w = (struct window){.first = first, .next = first};
}

static uint64_t bit_of(uint64_t number)
{
    return UINT64_C(1) << number % 64;
}

bool window_allows(const struct window *w, uint64_t number)
{
    if (number >= w->next)
        return true;
    if (number < w->first || w->next - number > WINDOW_PACKETS)
        return false;
    return (w->taken[number / 64 % WINDOW_WORDS] & bit_of(number)) == 0;
}

/* Clears the words after that of the largest taken, up to that of `number`. */
static void advance(struct window *w, uint64_t number)
{
    uint64_t newest = w->next > w->first ? (w->next - 1) / 64 : w->first / 64;
    uint64_t words = number / 64 - newest;
    if (words >= WINDOW_WORDS)
        memset(w->taken, 0, sizeof w->taken);
    else
        for (uint64_t i = 1; i <= words; i++)
            w->taken[(newest + i) % WINDOW_WORDS] = 0;
    w->next = number + 1;
}

void window_take(struct window *w, uint64_t number)
{
    assert(window_allows(w, number));
    if (number >= w->next)
        advance(w, number);
    w->taken[number / 64 % WINDOW_WORDS] |= bit_of(number);
}
