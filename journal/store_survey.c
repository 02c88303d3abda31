/* What is in a segment: its frames are read from an offset to its end. What scan.h calls a tail is one only
 * if no HEADER names a seal behind it: a seal is written when all in front of it is durable, so then those
 * bytes are damage, even if the file ends in front of them. */
#include "journal/store_private.h"

#include <errno.h>
#include <fcntl.h>

struct surveying {
    struct survey *v;
    bool note;
    void (*each)(void *context, const struct journal_frame *frame);
    void *context;
};

/* In order. What is more than SURVEY_HOLES_MAX is one with the last. */
static int add_hole(struct survey *v, uint64_t offset, uint64_t size)
{
    if (v->found.hole_count < SURVEY_HOLES_MAX)
        return seal_add_hole(&v->found, offset, size);
    struct seal_hole *last = &v->found.holes[SURVEY_HOLES_MAX - 1];
    last->size = offset + size - last->offset;
    return 0;
}

static int take_seal(struct survey *v, const struct journal_frame *frame)
{
    int error = seal_read(frame->payload, &v->stored);
    v->sealed = error == 0;
    return error == PE_JOURNAL ? 0 : error;
}

static int take_frame(struct surveying *w, const struct journal_frame *frame)
{
    struct survey *v = w->v;
    v->end = frame->offset + frame->size;
    v->frames++;
    if (frame->kind == FRAME_HEADER)
        return 0;
    if (w->note) {
        int error = seal_note(&v->found, frame);
        if (error == PE_JOURNAL) /* written so: its checksum is right */
            return add_hole(v, frame->offset, frame->size);
        if (error < 0)
            return error;
    }
    if (w->each != NULL)
        w->each(w->context, frame);
    return 0;
}

static int take_item(struct surveying *w, const struct scan_item *item)
{
    struct survey *v = w->v;
    switch (item->kind) {
    case SCAN_FRAME:
        if (item->frame.kind != FRAME_SEAL)
            return take_frame(w, &item->frame);
        v->end = item->offset;
        return take_seal(v, &item->frame);
    case SCAN_DAMAGE:
        return add_hole(v, item->offset, item->size);
    case SCAN_TAIL:
        v->end = item->offset;
        v->tail_bytes = item->blank ? 0 : item->size;
        return 0;
    case SCAN_END:
        break;
    }
    return 0;
}

/* There is no seal where a HEADER says it is. */
static int take_lost_seal(struct survey *v, uint64_t named)
{
    if (named < v->end)
        return 0; /* no writer did that: the HEADER is wrong */
    v->tail_bytes = 0;
    v->seal_lost = named == v->end;
    if (v->seal_lost)
        return 0;
    int error = add_hole(v, v->end, named - v->end);
    v->end = named;
    return error;
}

static int survey_all(struct surveying *w, struct scan *scan, const struct segment *segment)
{
    struct survey *v = w->v;
    struct scan_item item;
    int error = 0;
    do {
        v->error = scan_next(scan, &item);
        if (v->error == 0)
            error = take_item(w, &item);
    } while (v->error == 0 && error == 0 && item.kind != SCAN_END);
    if (error == 0 && v->error == 0 && segment->named != 0 && !v->sealed)
        error = take_lost_seal(v, segment->named);
    return error;
}

int survey_segment(struct store *s, const struct segment *segment, uint64_t from, bool note,
                   void (*each)(void *context, const struct journal_frame *frame), void *context,
                   struct survey *v)
{
    *v = (struct survey){.end = from};
    seal_init(&v->stored);
    seal_init(&v->found);
    struct surveying w = {v, note, each, context};
    struct files *files = s->options.files;
    int fd = store_open_segment(s, segment->number, O_RDONLY);
    v->error = fd < 0 ? fd : 0;
    int error = 0;
    if (fd >= 0) {
        struct scan scan;
        if (!s->options.read_only)
            (void)files->backend->refresh(files, fd); /* what is lost then was not acknowledged */
        v->error = scan_init(&scan, files, fd, s->id, segment->number, from);
        if (v->error == 0) {
            scan.durable = segment->named;
            error = survey_all(&w, &scan, segment);
            scan_dispose(&scan);
        }
        files->backend->close(files, fd);
    }
    if (v->error == -ENOMEM)
        error = -ENOMEM;
    if (error == 0 && v->error < 0)
        error = add_hole(v, v->end, segment->bytes > v->end ? segment->bytes - v->end : 0);
    if (error < 0)
        survey_dispose(v);
    return error;
}

void survey_dispose(struct survey *v)
{
    seal_dispose(&v->stored);
    seal_dispose(&v->found);
}
