/* HEADER and SEAL, the frames about a segment: docs/journal-format.md. */
#include "journal/frame.h"
#include "journal/take.h"

#include <errno.h>
#include <stdlib.h>

#define SEAL_PLACE_BYTES 16 /* of a seal's place in a HEADER */

/* --- HEADER --- */

int header_write(struct frame_buffer *b, uint64_t created_ms, const struct journal_place *seals,
                 uint32_t seal_count)
{
    frame_begin(b, FRAME_HEADER);
    frame_put_u32(b, JOURNAL_VERSION);
    frame_put_u32(b, seal_count);
    frame_put_u64(b, created_ms);
    for (uint32_t i = 0; i < seal_count; i++) {
        frame_put_u64(b, seals[i].segment);
        frame_put_u64(b, seals[i].offset);
    }
    return frame_end(b);
}

int header_read(struct span payload, struct header *header)
{
    struct taker t = taker_of(payload);
    *header = (struct header){.version = take_u32(&t)};
    if (header->version > JOURNAL_VERSION)
        return PE_JOURNAL_VERSION;
    header->seal_count = take_u32(&t);
    header->created_ms = take_u64(&t);
    header->seals = take_bytes(&t, (uint64_t)header->seal_count * SEAL_PLACE_BYTES);
    return t.failed || header->version == 0 || take_left(&t) > 0 ? PE_JOURNAL : 0;
}

struct journal_place header_seal(const struct header *header, uint32_t index)
{
    assert(index < header->seal_count);
    struct taker t =
        taker_of(span_of(header->seals.data + (size_t)index * SEAL_PLACE_BYTES, SEAL_PLACE_BYTES));
    struct journal_place place;
    place.segment = take_u64(&t);
    place.offset = take_u64(&t);
    return place;
}

/* --- what is in a segment --- */

void seal_init(struct seal *s)
{
    *s = (struct seal){0};
}

void seal_dispose(struct seal *s)
{
    for (uint32_t i = 0; i < s->app_count; i++)
        free(s->apps[i].outputs);
    free(s->apps);
    free(s->holes);
    seal_init(s);
}

/* Room for one more at the end of an array. */
static bool make_room(void **array, uint32_t count, uint32_t *room, size_t item)
{
    if (count < *room)
        return true;
    uint32_t more = *room > 0 ? 2 * *room : 4;
    void *grown = realloc(*array, more * item);
    if (!grown)
        return false;
    *array = grown;
    *room = more;
    return true;
}

static struct seal_app *add_app(struct seal *s, struct span name)
{
    void *apps = s->apps;
    if (!make_room(&apps, s->app_count, &s->app_room, sizeof *s->apps))
        return NULL;
    s->apps = apps;
    struct seal_app *a = &s->apps[s->app_count++];
    *a = (struct seal_app){.name_size = (uint8_t)name.size};
    memcpy(a->name, name.data, name.size);
    return a;
}

static struct seal_output *add_output(struct seal_app *a, struct span name)
{
    void *outputs = a->outputs;
    if (!make_room(&outputs, a->output_count, &a->output_room, sizeof *a->outputs))
        return NULL;
    a->outputs = outputs;
    struct seal_output *o = &a->outputs[a->output_count++];
    *o = (struct seal_output){.name_size = (uint8_t)name.size};
    memcpy(o->name, name.data, name.size);
    return o;
}

int seal_add_hole(struct seal *s, uint64_t offset, uint64_t size)
{
    void *holes = s->holes;
    if (!make_room(&holes, s->hole_count, &s->hole_room, sizeof *s->holes))
        return -ENOMEM;
    s->holes = holes;
    s->holes[s->hole_count++] = (struct seal_hole){offset, size};
    return 0;
}

/* Looks at all, from index `from` on and around. */
static struct seal_app *find_app(const struct seal *s, struct span name, uint32_t from)
{
    for (uint32_t n = 0, i = from; n < s->app_count; n++, i = i + 1 < s->app_count ? i + 1 : 0) {
        if (span_equal(name, span_of(s->apps[i].name, s->apps[i].name_size)))
            return &s->apps[i];
    }
    return NULL;
}

static struct seal_output *find_output(const struct seal_app *a, struct span name, uint32_t from)
{
    for (uint32_t n = 0, i = from; n < a->output_count; n++, i = i + 1 < a->output_count ? i + 1 : 0) {
        if (span_equal(name, span_of(a->outputs[i].name, a->outputs[i].name_size)))
            return &a->outputs[i];
    }
    return NULL;
}

struct seal_app *seal_find_app(const struct seal *s, struct span app)
{
    return find_app(s, app, 0);
}

struct seal_output *seal_find_output(const struct seal_app *a, struct span output)
{
    return find_output(a, output, 0);
}

/* --- noting frames --- */

static struct seal_app *app_of(struct seal *s, struct span name)
{
    struct seal_app *a = find_app(s, name, s->app_noted);
    if (!a)
        a = add_app(s, name);
    if (a)
        s->app_noted = (uint32_t)(a - s->apps);
    return a;
}

static struct seal_output *output_of(struct seal_app *a, struct span name)
{
    struct seal_output *o = find_output(a, name, a->output_noted);
    if (!o)
        o = add_output(a, name);
    if (o)
        a->output_noted = (uint32_t)(o - a->outputs);
    return o;
}

static int note_sends(struct seal_app *a, const struct section_sends *sends, uint64_t batch)
{
    struct seal_output *o = output_of(a, sends->output);
    if (!o)
        return -ENOMEM;
    if (o->last == 0) {
        o->first_offset = batch;
        o->first = sends->first;
    }
    o->first = min_u64(o->first, sends->first);
    o->last = max_u64(o->last, sends->first + sends->records - 1);
    o->bytes += sends->bytes.size;
    return 0;
}

static void note_time(struct seal_app *a, uint64_t time_ms)
{
    if (a->first_ms == 0)
        a->first_ms = time_ms;
    a->last_ms = time_ms;
}

static int note_section(struct seal_app *a, const struct section *section, uint64_t batch)
{
    if (section->type == SECTION_SENDS)
        return note_sends(a, &section->sends, batch);
    if (section->type == SECTION_EVENTS)
        note_time(a, section->events.time_ms);
    if (section->type == SECTION_DEAD && section->dead.segment == 0)
        a->dead++;
    return 0;
}

static int note_sections(struct seal_app *a, struct span rest, uint64_t batch)
{
    struct section section;
    int more;
    while ((more = commit_read_section(&rest, &section)) > 0) {
        int error = note_section(a, &section, batch);
        if (error < 0)
            return error;
    }
    return more;
}

int seal_note(struct seal *s, const struct journal_frame *frame)
{
    struct commit_head head;
    struct span rest;
    assert(frame->kind == FRAME_COMMIT || frame->kind == FRAME_SNAPSHOT);
    int error = commit_read_head(frame->payload, &head, &rest);
    if (error < 0)
        return error;
    struct seal_app *a = app_of(s, head.app);
    if (!a)
        return -ENOMEM;
    if (frame->kind == FRAME_SNAPSHOT) {
        a->snapshot_offset = frame->offset;
        return note_sections(a, rest, frame->batch);
    }
    if (head.sequence == 0)
        return PE_JOURNAL;
    if (a->last_sequence == 0)
        a->first_sequence = head.sequence;
    a->last_sequence = max_u64(a->last_sequence, head.sequence);
    return note_sections(a, rest, frame->batch);
}

/* --- SEAL --- */

static void put_output(struct frame_buffer *b, const struct seal_output *o)
{
    frame_put_name(b, span_of(o->name, o->name_size));
    frame_put_u64(b, o->first_offset);
    frame_put_u64(b, o->first);
    frame_put_u64(b, o->last);
    frame_put_u64(b, o->bytes);
}

static void put_app(struct frame_buffer *b, const struct seal_app *a)
{
    frame_put_name(b, span_of(a->name, a->name_size));
    frame_put_u64(b, a->first_sequence);
    frame_put_u64(b, a->last_sequence);
    frame_put_u64(b, a->snapshot_offset);
    frame_put_u64(b, a->first_ms);
    frame_put_u64(b, a->last_ms);
    frame_put_u32(b, a->dead);
    frame_put_u32(b, a->output_count);
    for (uint32_t i = 0; i < a->output_count; i++)
        put_output(b, &a->outputs[i]);
}

int seal_write(struct frame_buffer *b, const struct seal *s)
{
    frame_begin(b, FRAME_SEAL);
    frame_put_u32(b, s->app_count);
    frame_put_u32(b, s->hole_count);
    for (uint32_t i = 0; i < s->app_count; i++)
        put_app(b, &s->apps[i]);
    for (uint32_t i = 0; i < s->hole_count; i++) {
        frame_put_u64(b, s->holes[i].offset);
        frame_put_u64(b, s->holes[i].size);
    }
    return frame_end(b);
}

static int take_output(struct taker *t, struct seal_app *a)
{
    struct span name = take_name(t);
    struct seal_output *o = t->failed ? NULL : add_output(a, name);
    if (!o)
        return t->failed ? PE_JOURNAL : -ENOMEM;
    o->first_offset = take_u64(t);
    o->first = take_u64(t);
    o->last = take_u64(t);
    o->bytes = take_u64(t);
    bool possible =
        o->first_offset % FRAME_ALIGN == 0 && o->first > 0 && o->first <= o->last && o->last <= VARINT_MAX;
    return t->failed || !possible ? PE_JOURNAL : 0;
}

static int take_app(struct taker *t, struct seal *s)
{
    struct span name = take_name(t);
    struct seal_app *a = t->failed ? NULL : add_app(s, name);
    if (!a)
        return t->failed ? PE_JOURNAL : -ENOMEM;
    a->first_sequence = take_u64(t);
    a->last_sequence = take_u64(t);
    a->snapshot_offset = take_u64(t);
    a->first_ms = take_u64(t);
    a->last_ms = take_u64(t);
    a->dead = take_u32(t);
    uint32_t outputs = take_u32(t);
    int error = t->failed || a->first_sequence > a->last_sequence ? PE_JOURNAL : 0;
    for (uint32_t i = 0; i < outputs && error == 0; i++)
        error = take_output(t, a);
    return error;
}

static int take_hole(struct taker *t, struct seal *s)
{
    uint64_t offset = take_u64(t), size = take_u64(t);
    if (t->failed)
        return PE_JOURNAL;
    return seal_add_hole(s, offset, size);
}

/* What is stated to be many is not believed: room is made for what is there, one by one. */
static int take_seal(struct taker *t, struct seal *s)
{
    uint32_t apps = take_u32(t), holes = take_u32(t);
    int error = t->failed ? PE_JOURNAL : 0;
    for (uint32_t i = 0; i < apps && error == 0; i++)
        error = take_app(t, s);
    for (uint32_t i = 0; i < holes && error == 0; i++)
        error = take_hole(t, s);
    return error == 0 && take_left(t) > 0 ? PE_JOURNAL : error;
}

int seal_read(struct span payload, struct seal *s)
{
    assert(s->app_count == 0 && s->hole_count == 0);
    struct taker t = taker_of(payload);
    int error = take_seal(&t, s);
    if (error < 0)
        seal_dispose(s);
    return error;
}
