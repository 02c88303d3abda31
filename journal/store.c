#include "journal/store.h"

#include "journal/store_private.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

/* --- names --- */

void segment_name(uint64_t number, char name[SEGMENT_NAME_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    for (int i = SEGMENT_NAME_DIGITS - 1; i >= 0; i--, number >>= 4)
        name[i] = digits[number & 15];
    memcpy(name + SEGMENT_NAME_DIGITS, SEGMENT_SUFFIX, sizeof SEGMENT_SUFFIX);
}

bool segment_number(const char *name, uint64_t *number)
{
    if (strlen(name) != SEGMENT_NAME_SIZE - 1 || strcmp(name + SEGMENT_NAME_DIGITS, SEGMENT_SUFFIX) != 0)
        return false;
    uint64_t value = 0;
    for (int i = 0; i < SEGMENT_NAME_DIGITS; i++) {
        char c = name[i];
        if (c >= '0' && c <= '9')
            value = value << 4 | (uint64_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            value = value << 4 | (uint64_t)(c - 'a' + 10);
        else
            return false;
    }
    *number = value;
    return value > 0 && value <= SEGMENT_NUMBER_MAX;
}

void store_epoch(const struct store *s, uint8_t epoch[JOURNAL_EPOCH_BYTES])
{
    uint8_t id[8];
    for (int i = 0; i < 8; i++)
        id[i] = (uint8_t)(s->id >> 8 * i);
    crypto_generichash(epoch, JOURNAL_EPOCH_BYTES, id, sizeof id, NULL, 0);
}

void store_say(const struct store *s, bool serious, const char *format, ...)
{
    if (s->options.say == NULL)
        return;
    char line[STORE_LINE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    s->options.say(s->options.say_context, serious, line);
}

int store_open_segment(const struct store *s, uint64_t number, int flags)
{
    char name[SEGMENT_NAME_SIZE];
    segment_name(number, name);
    flags |= O_NOFOLLOW | O_NONBLOCK;
    return s->options.files->backend->open(s->options.files, s->directory, name, flags, 0);
}

/* --- the segments, by number --- */

/* Index of the first whose number is not less. */
static uint32_t lower_bound(const struct store *s, uint64_t number)
{
    uint32_t low = 0, high = s->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (s->segments[middle]->number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

struct segment *store_find(const struct store *s, uint64_t number)
{
    uint32_t at = lower_bound(s, number);
    return at < s->count && s->segments[at]->number == number ? s->segments[at] : NULL;
}

struct segment *store_insert(struct store *s, uint64_t number, uint64_t bytes)
{
    if (s->count == s->room) {
        uint32_t room = s->room == 0 ? 16 : s->room * 2;
        struct segment **more = realloc(s->segments, room * sizeof *more);
        if (more == NULL)
            return NULL;
        s->segments = more;
        s->room = room;
    }
    struct segment *segment = calloc(1, sizeof *segment);
    if (segment == NULL)
        return NULL;
    segment->number = number;
    segment->bytes = bytes;
    segment->place.segment = number;
    seal_init(&segment->seal);
    uint32_t at = lower_bound(s, number);
    memmove(s->segments + at + 1, s->segments + at, (s->count - at) * sizeof *s->segments);
    s->segments[at] = segment;
    s->count++;
    s->bytes += bytes;
    return segment;
}

static void forget_seal(struct store *s, uint64_t number)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->new_seal_count; i++)
        if (s->new_seals[i].segment != number)
            s->new_seals[kept++] = s->new_seals[i];
    s->new_seal_count = kept;
}

static void remove_at(struct store *s, uint32_t at)
{
    struct segment *segment = s->segments[at];
    forget_seal(s, segment->number);
    s->bytes -= segment->bytes;
    s->count--;
    memmove(s->segments + at, s->segments + at + 1, (s->count - at) * sizeof *s->segments);
    seal_dispose(&segment->seal);
    free(segment);
}

void store_close(struct store *s)
{
    const struct files_backend *files = s->options.files->backend;
    while (s->count > 0)
        remove_at(s, s->count - 1);
    free(s->segments);
    free(s->new_seals);
    if (s->lock_fd >= 0)
        files->close(s->options.files, s->lock_fd);
    if (s->directory >= 0)
        files->close(s->options.files, s->directory);
    pthread_mutex_destroy(&s->mutex);
}

/* --- what is where --- */

void store_each_sends(struct store *s, const char *app, const char *output, uint64_t after,
                      void (*each)(void *context, const struct store_sends *sends), void *context)
{
    pthread_mutex_lock(&s->mutex);
    for (uint32_t i = 0; i < s->count; i++) {
        const struct segment *segment = s->segments[i];
        const struct seal_app *a = segment->writing ? NULL : seal_find_app(&segment->seal, span_text(app));
        const struct seal_output *o = a == NULL ? NULL : seal_find_output(a, span_text(output));
        if (o == NULL || o->last <= after)
            continue;
        each(context, &(struct store_sends){.segment = segment->number,
                                            .offset = o->first_offset,
                                            .first = o->first,
                                            .last = o->last,
                                            .bytes = o->bytes});
    }
    pthread_mutex_unlock(&s->mutex);
}

/* --- holds --- */

uint32_t store_segments(struct store *s)
{
    pthread_mutex_lock(&s->mutex);
    uint32_t count = s->count;
    pthread_mutex_unlock(&s->mutex);
    return count;
}

bool store_has(struct store *s, uint64_t number)
{
    pthread_mutex_lock(&s->mutex);
    bool has = store_find(s, number) != NULL;
    pthread_mutex_unlock(&s->mutex);
    return has;
}

void store_hold(struct store *s, uint64_t number)
{
    pthread_mutex_lock(&s->mutex);
    struct segment *segment = store_find(s, number);
    assert(segment != NULL && !segment->removing);
    segment->holds++;
    pthread_mutex_unlock(&s->mutex);
}

void store_release(struct store *s, uint64_t number)
{
    pthread_mutex_lock(&s->mutex);
    struct segment *segment = store_find(s, number);
    assert(segment != NULL && segment->holds > 0);
    segment->holds--;
    pthread_mutex_unlock(&s->mutex);
}

static bool is_removable(const struct store *s, const struct segment *segment)
{
    if (segment->writing || segment->removing || segment->unreadable || segment->holds > 0)
        return false;
    return s->kept == NULL || !s->kept(s->kept_context, segment);
}

bool store_take_removable(struct store *s, uint64_t *number)
{
    bool found = false;
    pthread_mutex_lock(&s->mutex);
    for (uint32_t i = 0; !found && i + 1 < s->count; i++) {
        if (!is_removable(s, s->segments[i]))
            continue;
        s->segments[i]->removing = found = true;
        *number = s->segments[i]->number;
    }
    pthread_mutex_unlock(&s->mutex);
    return found;
}

void store_removed(struct store *s, uint64_t number)
{
    pthread_mutex_lock(&s->mutex);
    uint32_t at = lower_bound(s, number);
    assert(at < s->count && s->segments[at]->number == number && s->segments[at]->removing);
    remove_at(s, at);
    pthread_mutex_unlock(&s->mutex);
}

void store_not_removed(struct store *s, uint64_t number)
{
    pthread_mutex_lock(&s->mutex);
    struct segment *segment = store_find(s, number);
    assert(segment != NULL && segment->removing);
    segment->removing = false;
    pthread_mutex_unlock(&s->mutex);
}

/* --- writers --- */

uint64_t store_new_number(struct store *s)
{
    return s->next_number++;
}

int store_begin(struct store *s, uint64_t number, uint64_t bytes, struct segment **segment)
{
    pthread_mutex_lock(&s->mutex);
    assert(store_find(s, number) == NULL);
    *segment = store_insert(s, number, bytes);
    if (*segment != NULL)
        (*segment)->writing = true;
    pthread_mutex_unlock(&s->mutex);
    return *segment == NULL ? -ENOMEM : 0;
}

void store_name_seal(struct store *s, struct journal_place place)
{
    if (s->new_seal_count == s->new_seal_room) {
        uint32_t room = s->new_seal_room == 0 ? 16 : s->new_seal_room * 2;
        struct journal_place *more = realloc(s->new_seals, room * sizeof *more);
        if (more == NULL)
            return;
        s->new_seals = more;
        s->new_seal_room = room;
    }
    s->new_seals[s->new_seal_count++] = place;
}

static bool is_listed(const struct journal_place *seals, uint32_t count, uint64_t segment)
{
    for (uint32_t i = 0; i < count; i++)
        if (seals[i].segment == segment)
            return true;
    return false;
}

uint32_t store_take_seals(struct store *s, struct journal_place *seals, uint32_t room)
{
    pthread_mutex_lock(&s->mutex);
    uint32_t taken = s->new_seal_count < room ? s->new_seal_count : room;
    if (taken > 0)
        memcpy(seals, s->new_seals, taken * sizeof *seals);
    s->new_seal_count -= taken;
    if (s->new_seal_count > 0)
        memmove(s->new_seals, s->new_seals + taken, s->new_seal_count * sizeof *seals);
    uint32_t count = taken;
    for (uint32_t i = 0; i < s->count && count < room; i++) {
        const struct segment *segment = s->segments[i];
        if (!segment->writing && segment->place.offset != 0 && !is_listed(seals, taken, segment->number))
            seals[count++] = segment->place;
    }
    pthread_mutex_unlock(&s->mutex);
    return count;
}

void store_sealed(struct store *s, struct segment *segment, uint64_t seal_offset)
{
    pthread_mutex_lock(&s->mutex);
    assert(segment->writing);
    segment->writing = false;
    segment->place.offset = seal_offset;
    if (seal_offset != 0)
        store_name_seal(s, segment->place);
    pthread_mutex_unlock(&s->mutex);
}
