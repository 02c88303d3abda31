/* The deaths of a process that were an app's: counted over its lives, in the file "deaths" of the store.
 *
 * A module that crashes, or calls exit, ends the process. Whatever ends it so says first, in the file, in
 * which app's call it was (mark_note); the next life reads that and counts. A process that is killed or loses
 * its power writes nothing, and that is nobody's death. The note is written by the process as it dies, and
 * nothing before: a page that every turn marked in a mapping would be written to the disk all the time, and a
 * turn would now and then wait for it.
 *
 * MARK_DEATHS deaths in a row suspend an app from the start, without its module being loaded. They are
 * forgotten when the file of its module is another, when somebody resumes the app (mark_forget), and when it
 * has lived for MARK_LIFE_NS without another.
 *
 * The file: units of MARK_UNIT bytes, in the machine's own byte order, each with a CRC of its own at its end.
 *
 *     0     head    "PUREMARK", version 1, number of apps
 *     1     note    index of the app that died + 1, cause; zeros as long as none has
 *     2 …   app     name, its module's identity, deaths in a row, cause of the last
 *
 * A unit counts if and only if its CRC is right: damage, or a file of something else, costs the counts that
 * are in it, and nothing but these; a start never fails for it. Nothing is synced: what a power cut takes are
 * counts. */
#ifndef PURE_HOST_TURN_MARK_H
#define PURE_HOST_TURN_MARK_H

#include "host/config.h"

#include <stdint.h>

#define MARK_DEATHS  3
#define MARK_LIFE_NS (600 * NS_PER_S)
#define MARK_UNIT    128 /* bytes */

/* Causes of a death: a signal's number, or one of these. */
enum mark_cause {
    MARK_EXIT = 1000, /* it called exit */
    MARK_OVERRAN,     /* a call burned more than twice its turn_limit, and could not be left */
    MARK_HUNG,        /* a call did not return for twice its turn_limit */
};

/* Which file a module is; zeros: there is none. */
struct mark_module {
    uint64_t device, inode, modified_ns, size;
};

/* An app, and what is known of its deaths. */
struct mark_app {
    char name[CONFIG_NAME_MAX + 1];
    struct mark_module module;
    uint32_t deaths;    /* in a row */
    uint32_t cause;     /* of the last; 0: none is known */
    uint32_t forgotten; /* deaths that this start forgot, as the module's file is another */
};

struct turn_mark {
    int fd; /* -1: there is no file, and nothing is remembered */
    unsigned app_count;
    struct mark_app *apps; /* as of this life's start, but for those forgotten since */
    uint64_t lived_ns;     /* when this life has been long enough; 0: it has not begun, NEVER: it was */
};

/* Begins a life: reads the file of the last one in `directory` (NULL: there is no store, nor a file), counts
 * the death that is noted there, and writes the file anew. `apps`: names and modules of this life. 0;
 * -ENOMEM; or the negative errno for which nothing can be written: then `mark` is usable and knows what was
 * read, but remembers nothing. */
int mark_open(struct turn_mark *mark, const char *directory, const struct mark_app *apps, unsigned app_count);
void mark_close(struct turn_mark *mark);

/* Async-signal-safe, once in a life: it ends in a call of that app. */
void mark_note(const struct turn_mark *mark, unsigned app, uint32_t cause);

/* The app's deaths count no more. 0 or the negative errno for which the file still has them. */
int mark_forget(struct turn_mark *mark, unsigned app);

/* This life goes on, at `now_ns`: MARK_LIFE_NS after the first such call deaths are forgotten, but for those
 * of apps that are suspended for them, and so do not live. As mark_forget. */
int mark_live(struct turn_mark *mark, uint64_t now_ns);

static inline bool mark_suspends(const struct mark_app *app)
{
    return app->deaths >= MARK_DEATHS;
}

/* What a start would find of this app now, of a store that no host has open or another has: its deaths. */
uint32_t mark_peek(const char *directory, const struct mark_app *app);

/* As mark_forget, in the store of a host that does not run. The deaths that were counted, or a negative
 * errno. */
int mark_forget_in(const char *directory, const struct mark_app *app);

struct mark_module mark_module_at(const char *path);

/* "signal 11 (SIGSEGV)", "a call of exit", …; cut to fit. Async-signal-safe. */
#define MARK_CAUSE_TEXT 64
void mark_cause_text(uint32_t cause, char text[MARK_CAUSE_TEXT]);

#endif
