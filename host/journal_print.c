#include "host/journal_print.h"

#include "core/record.h"
#include "host/cli_time.h"
#include "host/text.h"

#include <inttypes.h>
#include <sodium.h>

/* --- bytes --- */

/* Whether the sequence shows as itself and does nothing to a terminal: C1 controls are control bytes, too. */
static bool is_printable(const uint8_t *at, size_t size)
{
    if (size == 1)
        return at[0] >= ' ' && at[0] < 0x7f && at[0] != '\\';
    return size > 2 || (size == 2 && !(at[0] == 0xc2 && at[1] < 0xa0));
}

static void print_escaped(FILE *out, uint8_t byte)
{
    static const char escapes[] = {['\t'] = 't', ['\n'] = 'n', ['\r'] = 'r', ['\\'] = '\\'};
    if (byte < sizeof escapes && escapes[byte])
        fprintf(out, "\\%c", escapes[byte]);
    else
        fprintf(out, "\\x%02x", byte);
}

static void print_bytes(FILE *out, struct span bytes)
{
    for (size_t at = 0; at < bytes.size;) {
        size_t size = text_utf8(span_of(bytes.data + at, bytes.size - at));
        if (is_printable(bytes.data + at, size)) {
            fwrite(bytes.data + at, 1, size, out);
            at += size;
        } else {
            print_escaped(out, bytes.data[at++]);
        }
    }
}

static void print_data(const struct journal_print *p, struct span data)
{
    bool cut = !p->full && data.size > JOURNAL_PRINT_CUT;
    print_bytes(p->out, cut ? span_of(data.data, JOURNAL_PRINT_CUT) : data);
    if (cut)
        fprintf(p->out, "... (%zu bytes)", data.size);
}

static void print_hex(FILE *out, const uint8_t *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        fprintf(out, "%02x", bytes[i]);
}

/* --- text --- */

static void print_records(const struct journal_print *p, uint64_t first, struct span framed)
{
    const uint8_t *at = framed.data, *end = at + framed.size;
    struct span data;
    for (size_t size; (size = record_get(at, end, &data)) > 0; at += size) {
        fprintf(p->out, "    %" PRIu64 ": ", first++);
        print_data(p, data);
        fputc('\n', p->out);
    }
}

static void print_run(const struct journal_print *p, const char *what, struct span name, uint64_t first,
                      uint64_t records)
{
    fprintf(p->out, "  %s ", what);
    print_bytes(p->out, name);
    fprintf(p->out, " %" PRIu64, first);
    if (records > 1)
        fprintf(p->out, "-%" PRIu64, first + records - 1);
}

static void print_events(const struct journal_print *p, const struct section_events *events)
{
    print_run(p, "event", events->event, events->first, events->records);
    fputs(" from ", p->out);
    print_bytes(p->out, events->source);
    fputs(events->bare ? ", data not kept\n" : "\n", p->out);
    print_records(p, events->first, events->bytes);
}

static void print_sends(const struct journal_print *p, const struct section_sends *sends)
{
    print_run(p, "send", sends->output, sends->first, sends->records);
    fputc('\n', p->out);
    print_records(p, sends->first, sends->bytes);
}

static void print_dead(const struct journal_print *p, const struct section_dead *dead)
{
    print_run(p, "dead letter", dead->output, dead->number, 1);
    fputs(": ", p->out);
    print_bytes(p->out, dead->reason);
    fputs("\n    ", p->out);
    print_data(p, dead->record);
    fputc('\n', p->out);
}

static void print_cursor(const struct journal_print *p, const struct section_cursor *cursor)
{
    fputs("  cursor ", p->out);
    print_bytes(p->out, cursor->identity);
    fputs(" epoch ", p->out);
    print_hex(p->out, cursor->epoch, sizeof cursor->epoch);
    fprintf(p->out, ": stored %" PRIu64 "\n", cursor->stored);
}

static bool has_epoch(const struct section_output *output)
{
    static const uint8_t none[JOURNAL_EPOCH_BYTES];
    return memcmp(output->epoch, none, sizeof none) != 0;
}

static void print_output(const struct journal_print *p, const struct section_output *output)
{
    fputs("  output ", p->out);
    print_bytes(p->out, output->output);
    fprintf(p->out, ": sent %" PRIu64 ", stored %" PRIu64, output->sent, output->stored);
    if (output->reach != OUTPUT_REACH_ALL)
        fprintf(p->out, ", none behind %" PRIu64 " has left", output->reach);
    if (has_epoch(output)) {
        fputs(", epoch ", p->out);
        print_hex(p->out, output->epoch, sizeof output->epoch);
    }
    fputc('\n', p->out);
}

static void print_fare(const struct journal_print *p, const struct section_fare *fare)
{
    fputs("  fare of output ", p->out);
    print_bytes(p->out, fare->output);
    fprintf(p->out, ": %s%" PRIu64 " failures in a row",
            !fare->disabled    ? ""
            : fare->by_command ? "disabled by command, "
                               : "disabled, ",
            fare->failures);
    if (fare->reason.size > 0) {
        fputs(": ", p->out);
        print_bytes(p->out, fare->reason);
    }
    fputc('\n', p->out);
}

static void print_section(const struct journal_print *p, const struct section *s)
{
    switch (s->type) {
    case SECTION_EVENTS:
        print_events(p, &s->events);
        break;
    case SECTION_SENDS:
        print_sends(p, &s->sends);
        break;
    case SECTION_CURSOR:
        print_cursor(p, &s->cursor);
        break;
    case SECTION_KEY:
        fputs("  key ", p->out);
        print_hex(p->out, s->key.digest, sizeof s->key.digest);
        fprintf(p->out, ": stored %" PRIu64 "\n", s->key.stored);
        break;
    case SECTION_OUTPUT:
        print_output(p, &s->output);
        break;
    case SECTION_STATE:
        fprintf(p->out, "  state, %zu bytes\n", s->state.size);
        break;
    case SECTION_DEAD:
        print_dead(p, &s->dead);
        break;
    case SECTION_DEAD_GONE:
        print_run(p, "dead letter gone", s->dead_gone.output, s->dead_gone.number, 1);
        fputc('\n', p->out);
        break;
    case SECTION_FARE:
        print_fare(p, &s->fare);
        break;
    }
}

/* --- JSON --- */

static bool is_utf8(struct span bytes)
{
    size_t at = 0, size = 1;
    while (at < bytes.size && (size = text_utf8(span_of(bytes.data + at, bytes.size - at))) > 0)
        at += size;
    return size > 0;
}

/* RFC 8259 section 7. Bytes that are not UTF-8 become U+FFFD. */
static void json_string(FILE *out, struct span bytes)
{
    fputc('"', out);
    for (size_t at = 0; at < bytes.size;) {
        size_t size = text_utf8(span_of(bytes.data + at, bytes.size - at));
        uint8_t byte = bytes.data[at];
        if (byte == '"' || byte == '\\')
            fprintf(out, "\\%c", byte);
        else if (byte < 0x20 || byte == 0x7f)
            fprintf(out, "\\u%04x", byte);
        else if (size == 0)
            fputs("\xef\xbf\xbd", out);
        else
            fwrite(bytes.data + at, 1, size, out);
        at += size ? size : 1;
    }
    fputc('"', out);
}

static void json_base64(FILE *out, struct span bytes)
{
    enum { PIECE = 768 }; /* a multiple of 3: padding comes at the end only */
    char text[sodium_base64_ENCODED_LEN(PIECE, sodium_base64_VARIANT_ORIGINAL)];
    fputc('"', out);
    for (size_t at = 0; at < bytes.size; at += PIECE) {
        size_t size = min_size(PIECE, bytes.size - at);
        fputs(sodium_bin2base64(text, sizeof text, bytes.data + at, size, sodium_base64_VARIANT_ORIGINAL),
              out);
    }
    fputc('"', out);
}

/* ,"NAME":"…" */
static void json_member(FILE *out, const char *name, struct span bytes)
{
    fprintf(out, ",\"%s\":", name);
    json_string(out, bytes);
}

static void json_data(FILE *out, struct span data)
{
    if (is_utf8(data)) {
        json_member(out, "data", data);
    } else {
        fputs(",\"data_base64\":", out);
        json_base64(out, data);
    }
}

static void json_hex(FILE *out, const char *name, const uint8_t *bytes, size_t size)
{
    fprintf(out, ",\"%s\":\"", name);
    print_hex(out, bytes, size);
    fputc('"', out);
}

static void json_records(FILE *out, struct span framed)
{
    const uint8_t *at = framed.data, *end = at + framed.size;
    struct span data;
    fputs(",\"records\":[", out);
    for (size_t size; (size = record_get(at, end, &data)) > 0; at += size) {
        fprintf(out, "%s{\"bytes\":%zu", at > framed.data ? "," : "", data.size);
        json_data(out, data);
        fputc('}', out);
    }
    fputc(']', out);
}

static void json_section(FILE *out, const struct section *s)
{
    switch (s->type) {
    case SECTION_EVENTS:
        fprintf(out, "{\"type\":\"events\",\"first\":%" PRIu64 ",\"count\":%" PRIu64 ",\"time_ms\":%" PRIu64,
                s->events.first, s->events.records, s->events.time_ms);
        json_member(out, "event", s->events.event);
        json_member(out, "source", s->events.source);
        if (!s->events.bare)
            json_records(out, s->events.bytes);
        break;
    case SECTION_SENDS:
        fprintf(out, "{\"type\":\"sends\",\"first\":%" PRIu64 ",\"count\":%" PRIu64, s->sends.first,
                s->sends.records);
        json_member(out, "output", s->sends.output);
        json_records(out, s->sends.bytes);
        break;
    case SECTION_CURSOR:
        fprintf(out, "{\"type\":\"cursor\",\"stored\":%" PRIu64, s->cursor.stored);
        json_member(out, "source", s->cursor.identity);
        json_hex(out, "epoch", s->cursor.epoch, sizeof s->cursor.epoch);
        break;
    case SECTION_KEY:
        fprintf(out, "{\"type\":\"key\",\"stored\":%" PRIu64, s->key.stored);
        json_hex(out, "digest", s->key.digest, sizeof s->key.digest);
        break;
    case SECTION_OUTPUT:
        fprintf(out, "{\"type\":\"output\",\"sent\":%" PRIu64 ",\"stored\":%" PRIu64, s->output.sent,
                s->output.stored);
        json_member(out, "output", s->output.output);
        if (s->output.reach != OUTPUT_REACH_ALL)
            fprintf(out, ",\"reach\":%" PRIu64, s->output.reach);
        if (has_epoch(&s->output))
            json_hex(out, "epoch", s->output.epoch, sizeof s->output.epoch);
        break;
    case SECTION_STATE:
        fprintf(out, "{\"type\":\"state\",\"bytes\":%zu", s->state.size);
        break;
    case SECTION_DEAD:
        fprintf(out, "{\"type\":\"dead\",\"number\":%" PRIu64 ",\"time_ms\":%" PRIu64 ",\"bytes\":%" PRIu32,
                s->dead.number, s->dead.time_ms, s->dead.bytes);
        json_member(out, "output", s->dead.output);
        json_member(out, "reason", s->dead.reason);
        json_data(out, s->dead.record);
        break;
    case SECTION_DEAD_GONE:
        fprintf(out, "{\"type\":\"dead_gone\",\"number\":%" PRIu64, s->dead_gone.number);
        json_member(out, "output", s->dead_gone.output);
        break;
    case SECTION_FARE:
        fprintf(out, "{\"type\":\"fare\",\"disabled\":%s,\"failures\":%" PRIu64 ",\"since_ms\":%" PRIu64,
                s->fare.disabled ? "true" : "false", s->fare.failures, s->fare.since_ms);
        json_member(out, "output", s->fare.output);
        json_member(out, "reason", s->fare.reason);
        break;
    }
    fputc('}', out);
}

/* --- frames --- */

/* When the first of its events was accepted; 0: it has none. */
static uint64_t time_of(struct span sections)
{
    struct section s;
    while (commit_read_section(&sections, &s) > 0)
        if (s.type == SECTION_EVENTS)
            return s.events.time_ms;
    return 0;
}

static int print_text(const struct journal_print *p, const struct journal_frame *frame,
                      const struct commit_head *head, struct span sections)
{
    char time[CLI_TIME_TEXT];
    struct section s;
    int more;
    fprintf(p->out, "%s %s %" PRIu64 ", stored %" PRIu64 "\n", cli_time_text(time, time_of(sections)),
            frame->kind == FRAME_SNAPSHOT ? "snapshot after commit" : "commit", head->sequence, head->stored);
    while ((more = commit_read_section(&sections, &s)) > 0)
        print_section(p, &s);
    return more;
}

static int print_json(const struct journal_print *p, const struct journal_frame *frame,
                      const struct commit_head *head, struct span sections)
{
    struct section s;
    int more;
    fprintf(p->out, "{\"%s\":%" PRIu64 ",\"stored\":%" PRIu64 ",\"segment\":%" PRIu64 ",\"offset\":%" PRIu64,
            frame->kind == FRAME_SNAPSHOT ? "snapshot" : "commit", head->sequence, head->stored,
            frame->segment, frame->offset);
    json_member(p->out, "app", head->app);
    fputs(",\"sections\":[", p->out);
    for (bool first = true; (more = commit_read_section(&sections, &s)) > 0; first = false) {
        fputs(first ? "" : ",", p->out);
        json_section(p->out, &s);
    }
    fputs("]}\n", p->out);
    return more;
}

int journal_print_frame(const struct journal_print *p, const struct journal_frame *frame,
                        const struct commit_head *head, struct span sections)
{
    return p->json ? print_json(p, frame, head, sections) : print_text(p, frame, head, sections);
}

void journal_print_damage(const struct journal_print *p, uint64_t segment, uint64_t offset, uint64_t size)
{
    fprintf(p->out,
            p->json ? "{\"damage\":{\"segment\":%" PRIu64 ",\"offset\":%" PRIu64 ",\"bytes\":%" PRIu64 "}}\n"
                    : "- segment %" PRIu64 ", offset %" PRIu64 ": %" PRIu64 " bytes are damaged\n",
            segment, offset, size);
}

void journal_print_gap(const struct journal_print *p, uint64_t first, uint64_t last)
{
    fprintf(p->out,
            p->json ? "{\"gap\":{\"first\":%" PRIu64 ",\"last\":%" PRIu64 "}}\n"
                    : "- commits %" PRIu64 " to %" PRIu64 " are not there\n",
            first, last);
}
