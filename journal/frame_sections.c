/* What COMMIT and SNAPSHOT say: docs/journal-format.md, "Sections". */
#include "journal/frame.h"
#include "journal/take.h"

#include "core/record.h"

/* flags of FARE */
#define FARE_DISABLED   1
#define FARE_BY_COMMAND 2
#define FARE_SAID       4
#define FARE_FLAGS      7

#define EVENTS_BARE     1   /* flag of EVENTS: the records are left out */
#define RETIRED_AS_WAS  255 /* count of a CURSOR's retired epochs: those that are known stay */
#define STORED_AT(app_) (FRAME_HEAD + 1u + (app_) + 8u) /* of the number in a frame, by the name's size */

/* --- writing --- */

void commit_begin(struct frame_buffer *b, enum frame_kind kind, struct span app, uint64_t sequence)
{
    assert(kind == FRAME_COMMIT || kind == FRAME_SNAPSHOT);
    assert(app.size > 0 && (sequence > 0 || kind == FRAME_SNAPSHOT));
    frame_begin(b, kind);
    frame_put_name(b, app);
    frame_put_u64(b, sequence);
    frame_put_u64(b, 0);
}

int commit_end(struct frame_buffer *b, uint64_t stored)
{
    if (b->error == 0) {
        uint8_t *frame = b->data + b->begun;
        stored = htole64(stored);
        memcpy(frame + STORED_AT(frame[FRAME_HEAD]), &stored, sizeof stored);
    }
    return frame_end(b);
}

/* Their size in 4 bytes, then they. What would not fit into those does not fit into a frame. */
static void put_bytes(struct frame_buffer *b, struct span bytes, struct span rest)
{
    if (b->error == 0 && (bytes.size > FRAME_MAX || rest.size > FRAME_MAX))
        b->error = PE_TOO_LARGE;
    frame_put_u32(b, (uint32_t)(bytes.size + rest.size));
    frame_put(b, bytes.data, bytes.size);
    frame_put(b, rest.data, rest.size);
}

static void put_events(struct frame_buffer *b, const struct section_events *events)
{
    assert(events->records > 0 && (!events->bare || events->bytes.size == 0));
    frame_put_u8(b, events->bare ? EVENTS_BARE : 0);
    frame_put_name(b, events->event);
    frame_put_name(b, events->source);
    frame_put_u64(b, events->first);
    frame_put_u64(b, events->time_ms);
    frame_put_u64(b, events->records);
    put_bytes(b, events->bytes, span_of(NULL, 0));
}

void commit_put_sends(struct frame_buffer *b, const struct section_sends *sends, struct span rest)
{
    assert(sends->records > 0 && sends->first > 0);
    frame_put_u8(b, SECTION_SENDS);
    frame_put_name(b, sends->output);
    frame_put_u64(b, sends->first);
    frame_put_u64(b, sends->records);
    put_bytes(b, sends->bytes, rest);
}

static void put_cursor(struct frame_buffer *b, const struct section_cursor *cursor)
{
    assert(cursor->retired_count <= JOURNAL_RETIRED_MAX);
    frame_put_name(b, cursor->identity);
    frame_put(b, cursor->epoch, JOURNAL_EPOCH_BYTES);
    frame_put_u64(b, cursor->stored);
    frame_put_u8(b, cursor->has_retired ? cursor->retired_count : RETIRED_AS_WAS);
    if (cursor->has_retired)
        frame_put(b, cursor->retired, (size_t)cursor->retired_count * JOURNAL_EPOCH_BYTES);
}

static void put_output(struct frame_buffer *b, const struct section_output *output)
{
    assert(output->stored <= output->sent);
    frame_put_name(b, output->output);
    frame_put_u64(b, output->sent);
    frame_put_u64(b, output->stored);
    frame_put_u64(b, output->reach);
    frame_put(b, output->epoch, JOURNAL_EPOCH_BYTES);
}

static void put_dead(struct frame_buffer *b, const struct section_dead *dead)
{
    frame_put_name(b, dead->output);
    frame_put_u64(b, dead->number);
    frame_put_u64(b, dead->time_ms);
    frame_put_name(b, span_of(dead->reason.data, min_size(dead->reason.size, JOURNAL_NAME_MAX)));
    frame_put_u64(b, dead->segment);
    frame_put_u64(b, dead->offset);
    frame_put_u32(b, dead->record.size > 0 ? (uint32_t)dead->record.size : dead->bytes);
    put_bytes(b, dead->record, span_of(NULL, 0));
}

static void put_fare(struct frame_buffer *b, const struct section_fare *fare)
{
    frame_put_name(b, fare->output);
    frame_put_u8(b, (uint8_t)((fare->disabled ? FARE_DISABLED : 0) |
                              (fare->by_command ? FARE_BY_COMMAND : 0) | (fare->said ? FARE_SAID : 0)));
    frame_put_u64(b, fare->failures);
    frame_put_u64(b, fare->since_ms);
    frame_put_u64(b, fare->configuration);
    frame_put_u32(b, fare->status);
    frame_put_name(b, span_of(fare->reason.data, min_size(fare->reason.size, JOURNAL_NAME_MAX)));
}

void commit_put(struct frame_buffer *b, const struct section *section)
{
    if (section->type == SECTION_SENDS) {
        commit_put_sends(b, &section->sends, span_of(NULL, 0));
        return;
    }
    frame_put_u8(b, (uint8_t)section->type);
    switch (section->type) {
    case SECTION_EVENTS:
        put_events(b, &section->events);
        break;
    case SECTION_CURSOR:
        put_cursor(b, &section->cursor);
        break;
    case SECTION_KEY:
        frame_put(b, section->key.digest, JOURNAL_DIGEST_BYTES);
        frame_put_u64(b, section->key.stored);
        break;
    case SECTION_OUTPUT:
        put_output(b, &section->output);
        break;
    case SECTION_STATE:
        put_bytes(b, section->state, span_of(NULL, 0));
        break;
    case SECTION_DEAD:
        put_dead(b, &section->dead);
        break;
    case SECTION_DEAD_GONE:
        frame_put_name(b, section->dead_gone.output);
        frame_put_u64(b, section->dead_gone.number);
        break;
    case SECTION_FARE:
        put_fare(b, &section->fare);
        break;
    case SECTION_SENDS:
        break;
    }
}

/* --- reading --- */

int commit_read_head(struct span payload, struct commit_head *head, struct span *rest)
{
    struct taker t = taker_of(payload);
    head->app = take_name(&t);
    head->sequence = take_u64(&t);
    head->stored = take_u64(&t);
    *rest = span_of(t.at, take_left(&t));
    return t.failed ? PE_JOURNAL : 0;
}

static struct span take_sized(struct taker *t)
{
    return take_bytes(t, take_u32(t));
}

/* Of a run that begins with number `first`: none of its numbers is more than a number can be. */
static bool run_possible(uint64_t first, uint64_t records)
{
    return records > 0 && records <= VARINT_MAX && first <= VARINT_MAX - records;
}

static void take_events(struct taker *t, struct section_events *events)
{
    uint8_t flags = take_u8(t);
    events->bare = flags == EVENTS_BARE;
    events->event = take_text(t);
    events->source = take_text(t);
    events->first = take_u64(t);
    events->time_ms = take_u64(t);
    events->records = take_u64(t);
    events->bytes = take_sized(t);
    if (flags > EVENTS_BARE || !run_possible(events->first, events->records) ||
        (events->bare ? events->bytes.size > 0 : events->records > events->bytes.size))
        t->failed = true;
}

static void take_sends(struct taker *t, struct section_sends *sends)
{
    sends->output = take_name(t);
    sends->first = take_u64(t);
    sends->records = take_u64(t);
    sends->bytes = take_sized(t);
    if (sends->first == 0 || !run_possible(sends->first, sends->records) ||
        sends->records > sends->bytes.size)
        t->failed = true;
}

static void take_epoch(struct taker *t, uint8_t epoch[JOURNAL_EPOCH_BYTES])
{
    struct span bytes = take_bytes(t, JOURNAL_EPOCH_BYTES);
    if (bytes.size == JOURNAL_EPOCH_BYTES)
        memcpy(epoch, bytes.data, JOURNAL_EPOCH_BYTES);
}

static void take_cursor(struct taker *t, struct section_cursor *cursor)
{
    cursor->identity = take_text(t);
    take_epoch(t, cursor->epoch);
    cursor->stored = take_u64(t);
    uint8_t count = take_u8(t);
    cursor->has_retired = count != RETIRED_AS_WAS;
    if (!cursor->has_retired)
        return;
    if (count > JOURNAL_RETIRED_MAX)
        t->failed = true;
    for (; !t->failed && cursor->retired_count < count; cursor->retired_count++)
        take_epoch(t, cursor->retired[cursor->retired_count]);
}

static void take_key(struct taker *t, struct section_key *key)
{
    struct span digest = take_bytes(t, JOURNAL_DIGEST_BYTES);
    if (digest.size == JOURNAL_DIGEST_BYTES)
        memcpy(key->digest, digest.data, JOURNAL_DIGEST_BYTES);
    key->stored = take_u64(t);
}

static void take_output(struct taker *t, struct section_output *output)
{
    output->output = take_name(t);
    output->sent = take_u64(t);
    output->stored = take_u64(t);
    output->reach = take_u64(t);
    take_epoch(t, output->epoch);
    if (output->stored > output->sent || output->sent > VARINT_MAX || output->reach > VARINT_MAX)
        t->failed = true;
}

static void take_dead(struct taker *t, struct section_dead *dead)
{
    dead->output = take_name(t);
    dead->number = take_u64(t);
    dead->time_ms = take_u64(t);
    dead->reason = take_text(t);
    dead->segment = take_u64(t);
    dead->offset = take_u64(t);
    dead->bytes = take_u32(t);
    dead->record = take_sized(t);
    if (dead->segment != 0 && dead->record.size > 0)
        t->failed = true;
}

static void take_fare(struct taker *t, struct section_fare *fare)
{
    fare->output = take_name(t);
    uint8_t flags = take_u8(t);
    fare->disabled = flags & FARE_DISABLED;
    fare->by_command = flags & FARE_BY_COMMAND;
    fare->said = flags & FARE_SAID;
    fare->failures = take_u64(t);
    fare->since_ms = take_u64(t);
    fare->configuration = take_u64(t);
    fare->status = take_u32(t);
    fare->reason = take_text(t);
    if (flags > FARE_FLAGS || (!fare->disabled && flags != 0))
        t->failed = true;
}

static void take_section(struct taker *t, struct section *section)
{
    switch (section->type) {
    case SECTION_EVENTS:
        take_events(t, &section->events);
        break;
    case SECTION_SENDS:
        take_sends(t, &section->sends);
        break;
    case SECTION_CURSOR:
        take_cursor(t, &section->cursor);
        break;
    case SECTION_KEY:
        take_key(t, &section->key);
        break;
    case SECTION_OUTPUT:
        take_output(t, &section->output);
        break;
    case SECTION_STATE:
        section->state = take_sized(t);
        break;
    case SECTION_DEAD:
        take_dead(t, &section->dead);
        break;
    case SECTION_DEAD_GONE:
        section->dead_gone.output = take_name(t);
        section->dead_gone.number = take_u64(t);
        break;
    case SECTION_FARE:
        take_fare(t, &section->fare);
        break;
    default:
        t->failed = true;
    }
}

int commit_read_section(struct span *rest, struct section *section)
{
    if (rest->size == 0)
        return 0;
    struct taker t = taker_of(*rest);
    *section = (struct section){.type = (enum section_type)take_u8(&t)};
    take_section(&t, section);
    if (t.failed)
        return PE_JOURNAL;
    *rest = span_of(t.at, take_left(&t));
    return 1;
}

static bool whole(struct span bytes, uint64_t records)
{
    struct record_scan scan = record_scan(bytes, FRAME_MAX, records);
    return scan.error == 0 && scan.records == records && scan.bytes == bytes.size;
}

bool section_records_whole(const struct section *section)
{
    if (section->type == SECTION_SENDS)
        return whole(section->sends.bytes, section->sends.records);
    if (section->type == SECTION_EVENTS && !section->events.bare)
        return whole(section->events.bytes, section->events.records);
    return true;
}
