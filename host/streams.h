/* The cursors of an app's numbered sources: which records of each stream it has stored. This is what makes
 * delivery between hosts exactly once.
 *
 * A stream is known by its identity and its epoch. The identity of a wire's is its source, "HOST/APP/OUTPUT";
 * that of a link's is "link KEY/APP/OUTPUT", KEY being the sender's, which is proven. The epoch is 16 random
 * bytes that are new when the sender's store is new. An identity has one current epoch; the ones it replaced
 * last are remembered, so that a late request of an old life is refused instead of counted anew. */
#ifndef PURE_HOST_STREAMS_H
#define PURE_HOST_STREAMS_H

#include "host/inbox.h"

#define STREAMS_MAX       1024 /* identities an app keeps */
#define STREAMS_OWNER_MAX 256  /* of one host (what is before the first '/'): it cannot keep others out */
#define RETIRED_EPOCHS    16

struct stream_cursor {
    char identity[SOURCE_NAME_MAX + 1];
    uint8_t epoch[EPOCH_BYTES];
    uint8_t retired[RETIRED_EPOCHS][EPOCH_BYTES];
    uint8_t retired_count, retired_next;
    uint64_t stored;   /* never decreases within an epoch */
    uint64_t fresh_ns; /* the latest of its runs; 0: none was sealed in this life */
    bool moved;        /* since streams_take_moved: it is in the list of those */
    bool new_epoch;    /* since then: the retired ones have changed, too */
};

struct streams {
    struct stream_cursor *cursors; /* count of them; grows by doubling, up to STREAMS_MAX */
    uint32_t count, capacity;
    uint32_t last;   /* where the last look-up ended: usually the next one's, too */
    uint32_t *moved; /* moved_count of them, of `capacity`: those that a journal has to hear of */
    uint32_t moved_count;
};

enum stream_news { STREAM_KNOWN, STREAM_NEW, STREAM_NEW_EPOCH, STREAM_ROLLED_BACK };

void streams_dispose(struct streams *s);

/* The cursor of a stream that was found has moved up to `stored`. */
void streams_move(struct streams *s, struct stream_cursor *cursor, uint64_t stored);

/* The next cursor that has moved, or was made, or got a new epoch, since it was taken last. NULL: no more.
 * `*new_epoch`: its retired epochs are to be kept, too. */
const struct stream_cursor *streams_take_moved(struct streams *s, bool *new_epoch);

/* Recovery: a cursor as it was journaled; `has_retired` false: its retired epochs are as they were. 0,
 * PE_FULL or -ENOMEM. */
int streams_restore(struct streams *s, struct span identity, const uint8_t epoch[EPOCH_BYTES],
                    uint64_t stored, bool has_retired, const uint8_t (*retired)[EPOCH_BYTES],
                    unsigned retired_count);

/* Finds the cursor of a RUN_STREAM, making it if need be: a stream not known begins at what its sender has
 * been told is stored (run->base), and a cursor behind that is moved up to it: this host has lost what it
 * said was stored, or the sender what it had to send. `*news` says which of these it was. A run that itself
 * begins behind a gap changes nothing where it would be the first to be believed: PE_STREAM_GAP. Nor does
 * one that asks, where more is stored than its sender can have sent in this epoch: PE_STREAM_ROLLED_BACK,
 * with the cursor: the sender's store is older than that. An epoch that is not the current one begins by a
 * sealed run only if its sender has heard of this host after the current one's senders last had: else the run
 * may be an old one that was captured: PE_STREAM_STALE, and nothing changes. 0; PE_STREAM_RETIRED; PE_FULL:
 * too many streams, of all or of this host; -ENOMEM. */
int streams_find(struct streams *s, const struct run *run, struct stream_cursor **cursor,
                 enum stream_news *news);

#endif
