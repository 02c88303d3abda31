/* The sending loop is woken by each record, as the source documents' first loop was, not once a turn: with
 * this in the place of the product's pure_send a record is published, and its outlet's loop posted to, as
 * soon as it is queued. Only for measuring: a unit of work that fails cannot be taken back any more, which an
 * assertion of the queue then says. */
#include "host/turn.h"

/* The product's, of host/turn.c, compiled with pure_send under this name. */
int turn_send(struct pure_turn *turn, uint32_t output, const void *data, size_t size);

int pure_send(struct pure_turn *turn, uint32_t output, const void *data, size_t size)
{
    int error = turn_send(turn, output, data, size);
    if (error == 0 && !turn->replaying && turn->outlets[output].outlet)
        outlet_push(turn->outlets[output].outlet);
    return error;
}
