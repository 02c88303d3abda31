/* The journal's layout on disk: segments of frames. docs/journal-format.md is this page in full.
 *
 * A store is a directory of segments, files named by 16 hexadecimal digits and ".journal": numbers count up
 * over all that write into the store, and are never used again. One owner writes a segment, from its front.
 * A segment is frames, one behind the other; each begins at a multiple of 8. All numbers are little-endian.
 *
 *      0  magic    4   "PjF1"
 *      4  crc      4   CRC-32C (RFC 3720, appendix B.4) of bytes [8, size)
 *      8  size     4   bytes of the frame, this head and padding included: a multiple of 8, 48 to 2^28
 *     12  kind     1   enum frame_kind
 *     13  padding  1   zero bytes at its end: 0 to 7
 *     14           2   0
 *     16  store    8   which store: random, never 0; the streams' epoch is made from it (store.h)
 *     24  segment  8   number of the segment
 *     32  offset   8   of this frame in the segment
 *     40  batch    8   where the write begins that it was a part of: at most `offset`
 *     48  payload
 *
 * A frame is valid if and only if it lies whole within the file, its magic, size, padding and kind are
 * possible, its segment and offset are where it lies, its store is the store's, and its crc is right. So
 * nothing that lay there before, in another place or another store is ever taken for a frame.
 *
 * A batch is what one write made durable: it was not begun before all frames in front of it were durable.
 * Only the last batch of a segment can be unfinished, and then nothing in it was acknowledged. */
#ifndef PURE_JOURNAL_FORMAT_H
#define PURE_JOURNAL_FORMAT_H

#define JOURNAL_VERSION     2u /* of the format, in each FRAME_HEADER: what is written; all older are read */
#define FRAME_MAGIC         0x31466a50u
#define FRAME_HEAD          48u
#define FRAME_ALIGN         8u
#define FRAME_MAX           (1u << 28)
#define SEGMENT_NAME_DIGITS 16
#define SEGMENT_SUFFIX      ".journal"
#define JOURNAL_NAME_MAX    200 /* bytes of a name in it: app, output, event, source, identity */

enum frame_kind {
    FRAME_HEADER = 1,   /* the first of a segment, at offset 0 */
    FRAME_COMMIT = 2,   /* what one app did in one turn */
    FRAME_SNAPSHOT = 3, /* all of an app, in place of its commits before */
    FRAME_SEAL = 4,     /* the last of a segment: what is in it */
};

/* What a COMMIT and a SNAPSHOT say, behind their head (app, sequence number, events stored in all). */
enum section_type {
    SECTION_EVENTS = 1,    /* a run of events that the app took; commits only */
    SECTION_SENDS = 2,     /* records that it sent to one output; commits only */
    SECTION_CURSOR = 3,    /* of a numbered source: what is stored of it */
    SECTION_KEY = 4,       /* an Idempotency-Key, and what its request was answered */
    SECTION_OUTPUT = 5,    /* how many records an output has sent, and how many are stored at its receiver */
    SECTION_STATE = 6,     /* the app's own snapshot; snapshots only */
    SECTION_DEAD = 7,      /* a record that its receiver always refuses, set aside */
    SECTION_DEAD_GONE = 8, /* one that was replayed or dropped */
    SECTION_FARE = 9,      /* how deliveries of an output go: failures in a row, whether it is disabled */
};

#endif
