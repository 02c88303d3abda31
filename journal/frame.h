/* Frames in memory: written one behind the other into a buffer, given their place when they are handed to
 * the disk, and read back. Nothing here trusts what it reads. */
#ifndef PURE_JOURNAL_FRAME_H
#define PURE_JOURNAL_FRAME_H

#include "core/bytes.h"
#include "core/error.h"
#include "journal/format.h"

/* What is to be written: whole frames, and perhaps one that is not ended. Grows by doubling; what it has
 * grown to is kept. */
struct frame_buffer {
    uint8_t *data;
    size_t size, capacity;
    size_t begun; /* where the frame that is not ended begins; SIZE_MAX: there is none */
    /* -ENOMEM, PE_TOO_LARGE (over FRAME_MAX, or a name over JOURNAL_NAME_MAX), PE_MALFORMED (a zero byte in a
     * name): the frame begun cannot be ended, only dropped */
    int error;
};

void frame_buffer_init(struct frame_buffer *b); /* allocates nothing */
void frame_buffer_dispose(struct frame_buffer *b);
/* Forgets all frames; gives memory over `keep` bytes back. */
void frame_buffer_clear(struct frame_buffer *b, size_t keep);

/* Begins a frame; what is put until frame_end is its payload. Failures of puts are kept in b->error. */
void frame_begin(struct frame_buffer *b, enum frame_kind kind);
void frame_put(struct frame_buffer *b, const void *data, size_t size);
void frame_put_u8(struct frame_buffer *b, uint8_t value);
void frame_put_u32(struct frame_buffer *b, uint32_t value);
void frame_put_u64(struct frame_buffer *b, uint64_t value);
/* A byte with its size, then it. At most JOURNAL_NAME_MAX bytes, none of them zero. */
void frame_put_name(struct frame_buffer *b, struct span name);
/* Bytes put into the frame begun. */
size_t frame_payload_size(const struct frame_buffer *b);
/* Ends it. 0 or b->error, and then it is dropped and the error gone. */
int frame_end(struct frame_buffer *b);
void frame_drop(struct frame_buffer *b); /* the frame begun was never there */

struct journal_frame {
    enum frame_kind kind;
    uint32_t size; /* on disk */
    uint64_t store, segment, offset, batch;
    struct span payload;
};

/* All frames of the buffer become one batch, at `offset` of a segment: writes places and CRCs. May be called
 * again, for another place. */
void frames_place(struct frame_buffer *b, uint64_t store, uint64_t segment, uint64_t offset);

/* The frames of the buffer, one by one: `*at` is 0 at first. False: there is none left. They are our own, so
 * nothing is checked, and their places are what frames_place made them. */
bool frames_next(const struct frame_buffer *b, size_t *at, struct journal_frame *frame);

/* --- reading --- */

enum frame_verdict {
    FRAME_VALID,
    FRAME_INVALID,
    FRAME_MORE, /* the head is possible, and states a size that is more than there is: `frame->size` */
};

/* Reads the frame at the front of `bytes`, which lie at `offset` of segment `segment`. `store` 0: any. The
 * payload lies in `bytes`. With FRAME_MORE only size and kind are set; of less than a head, only size, to
 * FRAME_HEAD. So whoever has no more bytes takes FRAME_MORE for FRAME_INVALID. */
enum frame_verdict frame_read(struct span bytes, uint64_t store, uint64_t segment, uint64_t offset,
                              struct journal_frame *frame);

/* --- COMMIT and SNAPSHOT --- */

#define JOURNAL_EPOCH_BYTES  16
#define JOURNAL_DIGEST_BYTES 16
#define JOURNAL_RETIRED_MAX  16

/* Names and texts have no zero byte and at most JOURNAL_NAME_MAX bytes. Those of apps and outputs are not
 * empty. Numbers of records are at most VARINT_MAX. */
struct section_events {
    struct span event, source;
    uint64_t first, time_ms; /* number of the first; wall clock of acceptance */
    uint64_t records;        /* at least 1 */
    bool bare;               /* the records are left out: the app has no state, and no history is kept */
    struct span bytes;       /* framed records (core/record.h); empty if bare */
};

struct section_sends {
    struct span output;
    uint64_t first;    /* number of the first record in the output's stream, from 1 */
    uint64_t records;  /* at least 1 */
    struct span bytes; /* framed records */
};

struct section_cursor {
    struct span identity;
    uint8_t epoch[JOURNAL_EPOCH_BYTES];
    uint64_t stored;
    /* the epochs that it had before; `has_retired` false: those that are known stay */
    bool has_retired;
    uint8_t retired_count;
    uint8_t retired[JOURNAL_RETIRED_MAX][JOURNAL_EPOCH_BYTES];
};

struct section_key {
    uint8_t digest[JOURNAL_DIGEST_BYTES];
    uint64_t stored;
};

struct section_output {
    struct span output;
    uint64_t sent;   /* number of the last record sent to it */
    uint64_t stored; /* all up to here are stored at its receiver, or dead; at most `sent` */
    uint64_t reach;  /* those up to here may have left the host. OUTPUT_REACH_ALL: any, later ones too */
    uint8_t epoch[JOURNAL_EPOCH_BYTES]; /* of its stream; zero: the store's */
};

#define OUTPUT_REACH_ALL VARINT_MAX

/* Records always refused. The record lies among the SENDS of `segment`, at or behind `offset`, and `record`
 * is empty; or, both being 0, it lies here. */
struct section_dead {
    struct span output;
    uint64_t number;    /* of the record in the output's stream */
    uint64_t time_ms;   /* when it was set aside */
    struct span reason; /* what is over JOURNAL_NAME_MAX is cut off when it is written */
    uint64_t segment, offset;
    uint32_t bytes; /* of the record, wherever it lies; written from `record` if that is not empty */
    struct span record;
};

struct section_dead_gone {
    struct span output;
    uint64_t number;
};

/* Without one, and with failures 0 and disabled false, all is well. */
struct section_fare {
    struct span output;
    bool disabled;
    bool by_command;   /* disabled: somebody wanted it */
    bool said;         /* disabled: the output that hears of it has been sent a record, or none is to hear */
    uint64_t failures; /* in a row */
    uint64_t since_ms; /* wall clock of the first */
    uint64_t configuration; /* a digest of what the deliverer was told: of another one it says nothing */
    uint32_t status;        /* of the last answer that was a failure; 0: there was none */
    struct span reason;     /* for people; what is over JOURNAL_NAME_MAX is cut off when it is written */
};

struct section {
    enum section_type type;
    union {
        struct section_events events;
        struct section_sends sends;
        struct section_cursor cursor;
        struct section_key key;
        struct section_output output;
        struct span state;
        struct section_dead dead;
        struct section_dead_gone dead_gone;
        struct section_fare fare;
    };
};

struct commit_head {
    struct span app;
    uint64_t sequence; /* of this app: counts its commits, without gaps; a snapshot has that of the commit
                          before it */
    uint64_t stored;   /* events the app has stored in all, with those of this frame */
};

/* Begins a frame of the kind (FRAME_COMMIT, FRAME_SNAPSHOT). `stored` is known at the end only, so it is set
 * by commit_end. */
void commit_begin(struct frame_buffer *b, enum frame_kind kind, struct span app, uint64_t sequence);
void commit_put(struct frame_buffer *b, const struct section *section);
/* SENDS whose records lie in two pieces, one behind the other: section->bytes is the first. */
void commit_put_sends(struct frame_buffer *b, const struct section_sends *sends, struct span rest);
int commit_end(struct frame_buffer *b, uint64_t stored); /* as frame_end */

/* Reads the head; `*rest` is left at the first section. 0 or PE_JOURNAL. */
int commit_read_head(struct span payload, struct commit_head *head, struct span *rest);
/* The next section. 1; 0 at the end; PE_JOURNAL: it is none of this format. Spans lie in the payload. Costs
 * the same whatever it holds: records are not looked at, but their bytes are at least as many as they are. */
int commit_read_section(struct span *rest, struct section *section);
/* Walks the records of EVENTS and SENDS: they are whole, as many as stated, and nothing is behind them. True
 * of all other sections. */
bool section_records_whole(const struct section *section);

/* --- HEADER --- */

struct journal_place {
    uint64_t segment, offset;
};

/* HEADER: of this segment. Also where the seals are of segments that were ended before it was begun, so that
 * they are found without reading all of them. */
struct header {
    uint32_t version;
    uint64_t created_ms; /* wall clock */
    uint32_t seal_count;
    struct span seals; /* seal_count of {u64 segment, u64 offset} */
};

/* Puts a whole frame. 0, or as frame_end. */
int header_write(struct frame_buffer *b, uint64_t created_ms, const struct journal_place *seals,
                 uint32_t seal_count);
/* 0; PE_JOURNAL; PE_JOURNAL_VERSION: of a newer format (only `version` is set). */
int header_read(struct span payload, struct header *header);
struct journal_place header_seal(const struct header *header, uint32_t index);

/* --- SEAL --- */

/* What a segment holds, by app and output. Kept in memory for each segment; made by whoever writes it, read
 * from its seal, or found by reading the segment. */
struct seal_output {
    char name[JOURNAL_NAME_MAX + 1];
    uint8_t name_size;
    uint64_t first_offset; /* where the batch begins that has its first SENDS here */
    uint64_t first, last;  /* numbers of its records here: first <= last */
    uint64_t bytes;        /* framed, of those */
};

struct seal_app {
    char name[JOURNAL_NAME_MAX + 1];
    uint8_t name_size;
    uint64_t first_sequence, last_sequence; /* of commits here; last 0: none */
    uint64_t snapshot_offset;               /* of its last snapshot here; 0: none */
    uint64_t first_ms, last_ms;             /* wall clock of the first and last events here; 0: none */
    uint32_t dead;                          /* DEAD sections with a record here */
    uint32_t output_count, output_room;
    uint32_t output_noted; /* index of the last one noted: the next is most often this or the one behind it */
    struct seal_output *outputs;
};

/* Bytes that were damaged when the segment was sealed by a recovery. */
struct seal_hole {
    uint64_t offset, size;
};

struct seal {
    uint32_t app_count, app_room;
    uint32_t app_noted; /* as output_noted */
    struct seal_app *apps;
    uint32_t hole_count, hole_room;
    struct seal_hole *holes;
};

void seal_init(struct seal *s);
void seal_dispose(struct seal *s);
/* Notes a valid COMMIT or SNAPSHOT of the segment; frames in order. Nothing is allocated for apps and outputs
 * that are known. 0, -ENOMEM or PE_JOURNAL (its payload is none): then it is noted in part, which makes the
 * seal say more than is there, never less. */
int seal_note(struct seal *s, const struct journal_frame *frame);
int seal_add_hole(struct seal *s, uint64_t offset, uint64_t size); /* 0 or -ENOMEM */
/* NULL: not here. Valid until the next seal_note. */
struct seal_app *seal_find_app(const struct seal *s, struct span app);
struct seal_output *seal_find_output(const struct seal_app *a, struct span output);
int seal_write(struct frame_buffer *b, const struct seal *s); /* puts a whole frame. 0, or as frame_end */
/* Into an empty one. 0; PE_JOURNAL, -ENOMEM: it is empty still. */
int seal_read(struct span payload, struct seal *s);

#endif
