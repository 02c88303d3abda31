/* The journal as people and programs read it: `pure-host log`. */
#ifndef PURE_HOST_JOURNAL_PRINT_H
#define PURE_HOST_JOURNAL_PRINT_H

#include "journal/frame.h"

#include <stdio.h>

#define JOURNAL_PRINT_CUT 200 /* bytes of data that are shown unless all are wanted */

struct journal_print {
    FILE *out;
    bool json; /* one object a line, whole data; else text: a line a frame, indented lines for what it says */
    bool full; /* text: whole data */
};

/* A COMMIT or a SNAPSHOT, whose head and sections have been read from `frame`. In text, bytes that are no
 * printable UTF-8 are escaped as \n, \r, \t, \\ or \xNN; in JSON, data that is no UTF-8 is "data_base64".
 * 0; PE_JOURNAL: a section is none of this format (what was before it is printed). */
int journal_print_frame(const struct journal_print *p, const struct journal_frame *frame,
                        const struct commit_head *head, struct span sections);

/* Bytes of a segment that are damaged. */
void journal_print_damage(const struct journal_print *p, uint64_t segment, uint64_t offset, uint64_t size);

/* Commits `first` to `last` of the app are not there. */
void journal_print_gap(const struct journal_print *p, uint64_t first, uint64_t last);

#endif
