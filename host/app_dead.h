/* An app's dead letters on its owner: takes over what deliverers set aside (struct outlet_dead), and does
 * what the front asks for (host/dead_request.h). Part of struct app_journal; works whether the app does or
 * not.
 *
 * A record is set aside for good when its DEAD section is durable; only then does its deliverer go on. That
 * section also says that all records up to it are stored or dead. At the limit nothing more is taken: the
 * output rests with that record in front, until letters are replayed or dropped.
 *
 * Replaying: one letter after the other is read back from its segment, and sent again as a new record at the
 * end of the output's stream, in one frame with its DEAD_GONE: it is a letter or it is sent, after any crash.
 * A request ends, and is answered, when its frames are durable; it may end early, as it has done
 * DEAD_CHANGE_MAX letters or the output has no room for more, and then says from where to go on. */
#ifndef PURE_HOST_APP_DEAD_H
#define PURE_HOST_APP_DEAD_H

#include "host/dead_letters.h"
#include "host/dead_request.h"
#include "journal/reader.h"

struct owned_app;
struct journal_output;

/* Where something is that waits for a batch to be durable. */
enum dead_batch { DEAD_NO_BATCH, DEAD_FILLED, DEAD_WRITING };

/* Of an output. */
struct output_dead {
    struct dead_letters letters;
    struct outlet *outlet; /* NULL: it sets nothing aside */
    uint32_t limit; /* of letters kept; fewer than found at a start, or more, may be kept all the same */
    enum dead_batch asked; /* of the DEAD of the record that its deliverer waits for */
    bool full_said;        /* the log has a line that it is at the limit */
    bool stuck;            /* a record could not be set aside: its deliverer waits for the next life */
};

/* Of an app: the request under way. */
struct app_dead {
    bool busy;
    bool framed;                   /* all is in frames: only the disk is waited for */
    struct journal_output *output; /* that it is about */
    uint64_t next, last;           /* letters to be looked at yet */
    unsigned looked, done;         /* letters looked at; replayed or dropped */
    bool more;                     /* ends early: the rest begins with `next` */
    struct text failed;            /* numbers that could not be replayed, with commas */
    unsigned failed_count;
    enum dead_batch batch; /* after which it is answered */
    /* replay: the letter at hand */
    bool reading, found;
    struct read_request read;
    uint8_t *record; /* `size` bytes of it, if found */
    size_t size, room;
};

/* The outlet hands over what it sets aside, up to `limit` letters. Before the loops run, after the output was
 * added. */
void app_dead_keep(struct owned_app *a, struct outlet *outlet, uint32_t limit);

/* --- a start --- */

int app_dead_restore(struct output_dead *d, const struct section_dead *dead); /* 0, PE_JOURNAL or -ENOMEM */
/* All outputs are known: holds segments, and says what is missing. */
void app_dead_restored(struct owned_app *a);

/* --- parts of the journal's functions of the same names --- */

void app_dead_work(struct owned_app *a);
void app_dead_placed(struct owned_app *a);
void app_dead_durable(struct owned_app *a);
void app_dead_failed(struct owned_app *a);
void app_dead_dispose(struct owned_app *a);

#endif
