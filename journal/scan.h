/* Reading a segment from its front: all valid frames, and what lies between them.
 *
 * Where no valid frame begins at the end of the last, the next one is searched for at every multiple of 8. If
 * there is one, and it or one behind it was written in a later batch than the bytes in between (its `batch`
 * lies behind where they begin), those were durable once and are DAMAGE. Else nothing from there on was ever
 * acknowledged: the last batch was not finished, and all that is left of it is the TAIL, valid frames in it
 * included (one of them may follow from one that is missing). Zeros up to the end are a TAIL, too. A SEAL
 * ends a segment: what lies behind it is of no interest. In a segment that has a seal all in front of it was
 * durable. */
#ifndef PURE_JOURNAL_SCAN_H
#define PURE_JOURNAL_SCAN_H

#include "core/files.h"
#include "journal/frame.h"

#define SCAN_WINDOW (256u << 10) /* bytes read at once; more for a longer frame */

struct scan {
    struct files *files;
    int fd;
    uint64_t store, segment; /* store 0: that of the first valid frame, from then on */
    uint64_t end;            /* of the file */
    uint64_t at;             /* all before is given */
    bool sealed;             /* a SEAL was given */
    int error;               /* negative errno of a read: no more is given */
    /* Found out at the first gap, of all that lies behind it: */
    bool looked_ahead;
    uint64_t durable; /* where the latest batch begins of which there is a valid frame; with a SEAL
                         UINT64_MAX. Gaps that begin in front of it are damage, others are the tail */
    uint64_t zeros;   /* from here on there are only zeros */
    /* what was read last: never more than one window or one frame */
    uint8_t *window;
    uint64_t window_offset;
    size_t window_size, window_room;
};

enum scan_item_kind { SCAN_FRAME, SCAN_DAMAGE, SCAN_TAIL, SCAN_END };

struct scan_item {
    enum scan_item_kind kind;
    uint64_t offset, size;      /* DAMAGE, TAIL: the bytes. FRAME: where it lies */
    bool blank;                 /* TAIL: all zeros */
    struct journal_frame frame; /* its payload is valid until the next call */
};

/* From `from` (0, or the place of a frame) on, to the end that the file has now. 0 or a negative errno. */
int scan_init(struct scan *s, struct files *files, int fd, uint64_t store, uint64_t segment, uint64_t from);
void scan_dispose(struct scan *s);

/* The next item; SCAN_END after the last (and TAIL, if any). 0; a negative errno: it cannot be read. */
int scan_next(struct scan *s, struct scan_item *item);

/* Reads the one frame at `offset`, whole, checked. 0, PE_JOURNAL (there is no valid one), or a negative
 * errno. The payload lies in `*memory`, which is the caller's to free. */
int scan_frame_at(struct files *files, int fd, uint64_t store, uint64_t segment, uint64_t offset,
                  struct journal_frame *frame, uint8_t **memory);

#endif
