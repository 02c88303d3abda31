#include "host/turn_mark.h"

#include "journal/crc32c.h"
#include "journal/store.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define MARK_VERSION 1

static const char magic[8] = {'P', 'U', 'R', 'E', 'M', 'A', 'R', 'K'};

/* What units hold; each ends with its CRC. No structure has padding. */
struct head {
    char magic[8];
    uint32_t version, app_count;
};

struct note {
    uint32_t app, cause; /* its index + 1; 0: nobody has died */
};

struct entry {
    char name[CONFIG_NAME_MAX + 1];
    struct mark_module module;
    uint32_t deaths, cause;
};

struct unit {
    union {
        struct head head;
        struct note note;
        struct entry entry;
        uint8_t bytes[MARK_UNIT - 2 * sizeof(uint32_t)];
    };
    uint32_t unused; /* 0 */
    uint32_t crc;    /* of all before it */
};

_Static_assert(sizeof(struct unit) == MARK_UNIT, "as the file has it");

enum { HEAD_UNIT, NOTE_UNIT, APP_UNITS };

/* --- units --- */

static bool unit_valid(const struct unit *unit)
{
    return unit->crc == crc32c(0, unit, offsetof(struct unit, crc));
}

/* Of a file that may end there, or be none. */
static bool read_unit(int fd, unsigned number, struct unit *unit)
{
    ssize_t got = pread(fd, unit, sizeof *unit, (off_t)number * MARK_UNIT);
    return got == (ssize_t)sizeof *unit && unit_valid(unit);
}

/* 0 or a negative errno. Async-signal-safe. */
static int write_unit(int fd, unsigned number, struct unit *unit)
{
    unit->crc = crc32c(0, unit, offsetof(struct unit, crc));
    ssize_t put = pwrite(fd, unit, sizeof *unit, (off_t)number * MARK_UNIT);
    return put == (ssize_t)sizeof *unit ? 0 : put < 0 ? -errno : -ENOSPC;
}

static int write_app(int fd, unsigned index, const struct mark_app *app)
{
    struct unit unit = {.entry = {.module = app->module, .deaths = app->deaths, .cause = app->cause}};
    memcpy(unit.entry.name, app->name, sizeof unit.entry.name);
    return write_unit(fd, APP_UNITS + index, &unit);
}

/* --- the file of an earlier life --- */

static int open_file(const char *directory, int flags)
{
    char path[4096];
    struct stat is;
    if ((size_t)snprintf(path, sizeof path, "%s/%s", directory, STORE_DEATHS_NAME) >= sizeof path)
        return -ENAMETOOLONG;
    int fd = open(path, flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600);
    if (fd < 0)
        return -errno;
    if (fstat(fd, &is) == 0 && S_ISREG(is.st_mode))
        return fd;
    close(fd);
    return -ENOTSUP;
}

/* How many apps it has; 0: it is none of ours. */
static unsigned file_apps(int fd)
{
    struct unit unit;
    bool ours = read_unit(fd, HEAD_UNIT, &unit) && memcmp(unit.head.magic, magic, sizeof magic) == 0 &&
                unit.head.version == MARK_VERSION;
    return ours && unit.head.app_count <= CONFIG_APPS_MAX ? unit.head.app_count : 0;
}

static bool same_module(const struct mark_module *a, const struct mark_module *b)
{
    return a->device == b->device && a->inode == b->inode && a->modified_ns == b->modified_ns &&
           a->size == b->size;
}

/* What an earlier life has left in the file; its units may be damaged. */
struct earlier {
    struct unit *apps; /* count of them */
    unsigned count;
    struct note note;
};

/* 0 or -ENOMEM. In one read: apps are looked for by name, each among all. */
static int read_earlier(int fd, struct earlier *e)
{
    struct unit note;
    *e = (struct earlier){0};
    size_t size = file_apps(fd) * sizeof *e->apps;
    e->apps = malloc(size + 1);
    if (!e->apps)
        return -ENOMEM;
    ssize_t got = pread(fd, e->apps, size, (off_t)APP_UNITS * MARK_UNIT);
    e->count = got > 0 ? (unsigned)((size_t)got / sizeof *e->apps) : 0;
    if (read_unit(fd, NOTE_UNIT, &note))
        e->note = note.note;
    return 0;
}

/* What it says of an app: deaths, the noted one included. The app's index there; negative: nothing, or
 * only of another file of its module, of which the deaths are forgotten. */
static int find_app(const struct earlier *e, struct mark_app *app)
{
    app->deaths = app->cause = 0;
    for (unsigned i = 0; i < e->count; i++) {
        const struct unit *unit = &e->apps[i];
        if (strncmp(unit->entry.name, app->name, sizeof unit->entry.name) != 0 || !unit_valid(unit))
            continue;
        bool died = e->note.app == i + 1;
        uint32_t deaths = unit->entry.deaths + (died && unit->entry.deaths < MARK_DEATHS);
        if (!same_module(&unit->entry.module, &app->module)) {
            app->forgotten = deaths;
            return -1;
        }
        app->deaths = deaths;
        app->cause = died ? e->note.cause : unit->entry.cause;
        return (int)i;
    }
    return -1;
}

/* --- a life --- */

/* The note first: if the rest is not written, a death is forgotten rather than charged to another. */
static int write_file(const struct turn_mark *mark)
{
    struct unit head = {.head = {.version = MARK_VERSION, .app_count = mark->app_count}};
    struct unit note = {.note = {0}};
    memcpy(head.head.magic, magic, sizeof magic);
    int error = write_unit(mark->fd, NOTE_UNIT, &note);
    if (error == 0)
        error = write_unit(mark->fd, HEAD_UNIT, &head);
    for (unsigned i = 0; error == 0 && i < mark->app_count; i++)
        error = write_app(mark->fd, i, &mark->apps[i]);
    if (error == 0 && ftruncate(mark->fd, (off_t)(APP_UNITS + mark->app_count) * MARK_UNIT) < 0)
        error = -errno;
    return error;
}

int mark_open(struct turn_mark *mark, const char *directory, const struct mark_app *apps, unsigned app_count)
{
    *mark = (struct turn_mark){.fd = -1, .app_count = app_count};
    mark->apps = calloc(app_count + 1, sizeof *mark->apps);
    if (!mark->apps)
        return -ENOMEM;
    memcpy(mark->apps, apps, app_count * sizeof *apps);
    if (!directory)
        return 0;
    int fd = open_file(directory, O_RDWR | O_CREAT);
    if (fd < 0)
        return fd;
    struct earlier earlier;
    int error = read_earlier(fd, &earlier);
    for (unsigned i = 0; error == 0 && i < app_count; i++)
        find_app(&earlier, &mark->apps[i]);
    free(earlier.apps);
    mark->fd = fd;
    if (error == 0)
        error = write_file(mark);
    if (error == 0)
        return 0;
    close(fd);
    mark->fd = -1;
    return error;
}

void mark_close(struct turn_mark *mark)
{
    if (mark->fd >= 0)
        close(mark->fd);
    free(mark->apps);
    *mark = (struct turn_mark){.fd = -1};
}

void mark_note(const struct turn_mark *mark, unsigned app, uint32_t cause)
{
    struct unit unit = {.note = {app + 1, cause}};
    if (mark->fd >= 0)
        write_unit(mark->fd, NOTE_UNIT, &unit);
}

int mark_forget(struct turn_mark *mark, unsigned app)
{
    mark->apps[app].deaths = mark->apps[app].cause = 0;
    return mark->fd < 0 ? 0 : write_app(mark->fd, app, &mark->apps[app]);
}

int mark_live(struct turn_mark *mark, uint64_t now_ns)
{
    int first = 0;
    if (mark->lived_ns == 0)
        mark->lived_ns = now_ns + MARK_LIFE_NS;
    if (now_ns < mark->lived_ns)
        return 0;
    mark->lived_ns = NEVER;
    for (unsigned i = 0; i < mark->app_count; i++) {
        bool counts = mark->apps[i].deaths > 0 && !mark_suspends(&mark->apps[i]);
        int error = counts ? mark_forget(mark, i) : 0;
        first = first < 0 ? first : error;
    }
    return first;
}

/* --- between lives --- */

uint32_t mark_peek(const char *directory, const struct mark_app *app)
{
    struct mark_app found = *app;
    int fd = open_file(directory, O_RDONLY);
    if (fd < 0)
        return 0;
    struct earlier earlier;
    if (read_earlier(fd, &earlier) == 0)
        find_app(&earlier, &found);
    free(earlier.apps);
    close(fd);
    return found.deaths;
}

/* Its note, if there is one, is dropped before its count. */
static int forget_at(int fd, unsigned index, const struct mark_app *app)
{
    struct mark_app forgotten = *app;
    struct unit note;
    int error = 0;
    if (read_unit(fd, NOTE_UNIT, &note) && note.note.app == index + 1) {
        note = (struct unit){.note = {0}};
        error = write_unit(fd, NOTE_UNIT, &note);
    }
    forgotten.deaths = forgotten.cause = 0;
    return error < 0 ? error : write_app(fd, index, &forgotten);
}

int mark_forget_in(const char *directory, const struct mark_app *app)
{
    struct mark_app found = *app;
    int fd = open_file(directory, O_RDWR);
    if (fd < 0)
        return fd == -ENOENT ? 0 : fd;
    struct earlier earlier;
    int error = read_earlier(fd, &earlier);
    int index = error == 0 ? find_app(&earlier, &found) : -1;
    if (index >= 0)
        error = forget_at(fd, (unsigned)index, app);
    free(earlier.apps);
    close(fd);
    return error < 0 ? error : (int)found.deaths;
}

struct mark_module mark_module_at(const char *path)
{
    struct stat is;
    if (stat(path, &is) < 0)
        return (struct mark_module){0};
    return (struct mark_module){.device = is.st_dev,
                                .inode = is.st_ino,
                                .modified_ns =
                                    (uint64_t)is.st_mtim.tv_sec * NS_PER_S + (uint64_t)is.st_mtim.tv_nsec,
                                .size = (uint64_t)is.st_size};
}

/* --- causes --- */

static size_t append(char text[MARK_CAUSE_TEXT], size_t at, const char *more)
{
    while (*more && at + 1 < MARK_CAUSE_TEXT)
        text[at++] = *more++;
    text[at] = '\0';
    return at;
}

static size_t append_number(char text[MARK_CAUSE_TEXT], size_t at, uint32_t number)
{
    char digits[11];
    size_t first = sizeof digits - 1;
    digits[first] = '\0';
    do {
        digits[--first] = (char)('0' + number % 10);
    } while ((number /= 10) > 0);
    return append(text, at, digits + first);
}

void mark_cause_text(uint32_t cause, char text[MARK_CAUSE_TEXT])
{
    if (cause == MARK_EXIT) {
        append(text, 0, "a call of exit");
    } else if (cause == MARK_OVERRAN) {
        append(text, 0, "a call over twice its turn_limit that could not be left");
    } else if (cause == MARK_HUNG) {
        append(text, 0, "a call that did not return for twice its turn_limit");
    } else {
        const char *name = sigabbrev_np((int)cause);
        size_t at = append_number(text, append(text, 0, "signal "), cause);
        if (name)
            append(text, append(text, append(text, at, " (SIG"), name), ")");
    }
}
