#include "host/streams.h"

#include <errno.h>
#include <stdlib.h>

void streams_dispose(struct streams *s)
{
    free(s->cursors);
    free(s->moved);
    *s = (struct streams){0};
}

static struct span identity_of(const struct run *run)
{
    return run->identity.size > 0 ? run->identity : run->source;
}

static bool is(const struct stream_cursor *c, struct span identity)
{
    return memcmp(c->identity, identity.data, identity.size) == 0 && c->identity[identity.size] == '\0';
}

static struct stream_cursor *look_up(struct streams *s, struct span identity)
{
    for (uint32_t i = 0; i < s->count; i++) {
        uint32_t at = (s->last + i) % s->count;
        if (!is(&s->cursors[at], identity))
            continue;
        s->last = at;
        return &s->cursors[at];
    }
    return NULL;
}

/* How many are of the host that this identity is of. */
static uint32_t count_of_owner(const struct streams *s, struct span identity)
{
    const uint8_t *slash = memchr(identity.data, '/', identity.size);
    size_t owner = slash ? (size_t)(slash - identity.data) + 1 : identity.size;
    uint32_t count = 0;
    for (uint32_t i = 0; i < s->count; i++)
        count += memcmp(s->cursors[i].identity, identity.data, owner) == 0;
    return count;
}

static int grow(struct streams *s)
{
    uint32_t capacity = s->capacity ? s->capacity * 2 : 4;
    uint32_t *moved = realloc(s->moved, capacity * sizeof *moved);
    if (!moved)
        return -ENOMEM;
    s->moved = moved;
    struct stream_cursor *cursors = realloc(s->cursors, capacity * sizeof *cursors);
    if (!cursors)
        return -ENOMEM;
    s->cursors = cursors;
    s->capacity = capacity;
    return 0;
}

static int add(struct streams *s, struct span identity, struct stream_cursor **cursor)
{
    if (s->count == STREAMS_MAX || count_of_owner(s, identity) >= STREAMS_OWNER_MAX)
        return PE_FULL;
    if (s->count == s->capacity && grow(s) < 0)
        return -ENOMEM;
    struct stream_cursor *c = *cursor = &s->cursors[s->count++];
    *c = (struct stream_cursor){0};
    memcpy(c->identity, identity.data, identity.size);
    return 0;
}

static void note_moved(struct streams *s, struct stream_cursor *c)
{
    if (!c->moved)
        s->moved[s->moved_count++] = (uint32_t)(c - s->cursors);
    c->moved = true;
}

void streams_move(struct streams *s, struct stream_cursor *cursor, uint64_t stored)
{
    cursor->stored = stored;
    note_moved(s, cursor);
}

const struct stream_cursor *streams_take_moved(struct streams *s, bool *new_epoch)
{
    if (s->moved_count == 0)
        return NULL;
    struct stream_cursor *c = &s->cursors[s->moved[--s->moved_count]];
    *new_epoch = c->new_epoch;
    c->moved = c->new_epoch = false;
    return c;
}

static bool retired(const struct stream_cursor *c, const uint8_t *epoch)
{
    for (unsigned i = 0; i < c->retired_count; i++) {
        if (memcmp(c->retired[i], epoch, EPOCH_BYTES) == 0)
            return true;
    }
    return false;
}

static void begin_epoch(struct stream_cursor *c, const struct run *run)
{
    memcpy(c->retired[c->retired_next], c->epoch, EPOCH_BYTES);
    c->retired_next = (uint8_t)((c->retired_next + 1) % RETIRED_EPOCHS);
    if (c->retired_count < RETIRED_EPOCHS)
        c->retired_count++;
    memcpy(c->epoch, run->epoch, EPOCH_BYTES);
    c->stored = run->base;
    c->new_epoch = true;
}

static int begin(struct streams *s, const struct run *run, struct stream_cursor **cursor)
{
    int error = add(s, identity_of(run), cursor);
    if (error < 0)
        return error;
    memcpy((*cursor)->epoch, run->epoch, EPOCH_BYTES);
    (*cursor)->fresh_ns = run->fresh_ns;
    streams_move(s, *cursor, run->base);
    return 0;
}

int streams_restore(struct streams *s, struct span identity, const uint8_t epoch[EPOCH_BYTES],
                    uint64_t stored, bool has_retired, const uint8_t (*retired)[EPOCH_BYTES],
                    unsigned retired_count)
{
    assert(identity.size <= SOURCE_NAME_MAX && retired_count <= RETIRED_EPOCHS);
    struct stream_cursor *c = look_up(s, identity);
    int error = c ? 0 : add(s, identity, &c);
    if (error < 0)
        return error;
    memcpy(c->epoch, epoch, EPOCH_BYTES);
    c->stored = stored;
    if (has_retired) {
        memcpy(c->retired, retired, retired_count * sizeof *retired);
        c->retired_count = (uint8_t)retired_count;
        c->retired_next = (uint8_t)(retired_count % RETIRED_EPOCHS);
    }
    return 0;
}

int streams_find(struct streams *s, const struct run *run, struct stream_cursor **cursor,
                 enum stream_news *news)
{
    assert(identity_of(run).size <= SOURCE_NAME_MAX);
    *news = STREAM_KNOWN;
    struct stream_cursor *c = look_up(s, identity_of(run));
    bool gap = run->first > run->base + 1; /* then it says nothing that is worth to be believed */
    if (!c && gap)
        return PE_STREAM_GAP;
    if (!c) {
        *news = STREAM_NEW;
        return begin(s, run, cursor);
    }
    *cursor = c;
    if (memcmp(c->epoch, run->epoch, EPOCH_BYTES) != 0) {
        if (retired(c, run->epoch))
            return PE_STREAM_RETIRED;
        if (run->fresh_ns > 0 && run->fresh_ns <= c->fresh_ns)
            return PE_STREAM_STALE;
        if (gap)
            return PE_STREAM_GAP;
        begin_epoch(c, run);
        note_moved(s, c);
        *news = STREAM_NEW_EPOCH;
    } else if (run->asks > 0 && c->stored >= run->asks) {
        return PE_STREAM_ROLLED_BACK;
    } else if (c->stored < run->base && !gap) {
        streams_move(s, c, run->base);
        *news = STREAM_ROLLED_BACK;
    }
    c->fresh_ns = max_u64(c->fresh_ns, run->fresh_ns);
    return 0;
}
