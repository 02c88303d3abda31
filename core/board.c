#include "core/board.h"

#include <errno.h>
#include <stdlib.h>

int board_init(struct board *b, struct io *io, uint32_t slots)
{
    uint32_t words = (slots + 63) / 64;
    *b = (struct board){.io = io, .slots = words * 64, .words = calloc(words, sizeof *b->words)};
    return b->words ? 0 : -ENOMEM;
}

void board_dispose(struct board *b)
{
    free(b->words);
    *b = (struct board){0};
}
