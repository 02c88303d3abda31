/* What a reply's head says to a wire, in a form that outlives the bytes it was read from. */
#ifndef PURE_WIRE_ANSWER_H
#define PURE_WIRE_ANSWER_H

#include "wire/http.h"
#include "wire/sealed.h"

struct answer {
    uint16_t status; /* 200 to 999 */
    bool has_stored; /* a readable Pure-Stored came */
    uint64_t stored; /* its number */
    bool unproven;   /* of a sealed wire: it is not the receiver's word (wire/sealing.h) */
    char proof[SEALED_REPLY_TEXT_BYTES + 1]; /* the field Pure-Sealed, if it has the size of one; else "" */
    /* Of failures only, "" if not given; cut to fit, bytes that cannot be printed become '?'. */
    char reason[48];
    char location[128];
    char retry_after[48];
    char date[48];
    char pure_error[32];
};

void answer_read(struct answer *answer, const struct http_head *head);

static inline bool answer_success(const struct answer *answer)
{
    return answer->status / 100 == 2;
}

#endif
