/* Sends the raw requests of a JSONL file to a front whose apps count events (docs/runners.md has the format):
 *
 *     build/tests/requests [--splits] FILE.jsonl
 *
 * A row's bytes come on one connection, which stays open. A request that comes in whole and well-formed is a
 * message, whatever the front answers to what it asks for: paths and methods may be any. */
#include "host/front_client.h"
#include "tests/runners/rows.h"
#include "tests/sim/front_world.h"
#include "wire/http.h"

#define EVERY_BYTE_MAX 1200 /* bytes of rows that are sent byte by byte, too */
#define PIECE_NS       NS_PER_MS
#define REPLIES_MAX    1000

enum verdict { ACCEPT, REJECT, INCOMPLETE };
static const char *const verdicts[] = {"accept", "reject", "incomplete"};

struct request_row {
    const char *id;
    struct span raw;
    enum verdict expect;
    uint64_t messages;
    char names[WORLD_APPS][256]; /* of the apps that the front has */
};

/* What the front made of a row. */
struct outcome {
    enum verdict verdict;
    uint64_t messages;
    uint64_t events;   /* that the apps got */
    uint64_t stored;   /* replies that say an event is stored */
    unsigned replies;  /* final ones */
    unsigned last;     /* status of the last */
    bool reply_broken; /* what came from the front is no row of replies */
};

struct checked {
    bool splits;
    unsigned passed, failed;
};

/* --- rows --- */

/* The apps that the row's targets name, so that they are there: as many as the world has. */
static void find_names(struct request_row *r)
{
    static const char mark[] = "/apps/";
    static const char *const usual[WORLD_APPS] = {"counter", "other"};
    const uint8_t *at = r->raw.data, *end = at + r->raw.size;
    unsigned found = 0;
    while (found < WORLD_APPS && (at = memmem(at, (size_t)(end - at), mark, sizeof mark - 1))) {
        at += sizeof mark - 1;
        size_t size = 0;
        while (at + size < end && at[size] > ' ' && at[size] < 0x7f && !strchr("/?#", at[size]))
            size++;
        if (size == 0 || size >= sizeof r->names[0])
            continue;
        memcpy(r->names[found], at, size);
        r->names[found][size] = '\0';
        found += found == 0 || strcmp(r->names[0], r->names[1]) != 0;
    }
    for (unsigned i = 0; found < WORLD_APPS && i < WORLD_APPS; i++)
        if (found == 0 || strcmp(r->names[0], usual[i]) != 0)
            strcpy(r->names[found++], usual[i]);
}

static struct request_row read_row(const struct row *row)
{
    struct request_row r = {.id = row_text(row, "id"),
                            .expect = (enum verdict)row_choice(row, "expect", verdicts, ARRAY_SIZE(verdicts)),
                            .messages = row_number(row, "messages")};
    r.raw = row_bytes(row, "raw_b64");
    find_names(&r);
    return r;
}

/* --- what came back --- */

/* Takes a reply off the front's bytes. A reply to HEAD states a length and has no body: the next reply, or
 * nothing, stands where the body would. False: it is none. */
static bool take_reply(struct span *bytes, struct outcome *o)
{
    static struct http_head head;
    size_t scanned = 0;
    uint64_t length = 0;
    int size = http_reply_head((uint8_t *)(uintptr_t)bytes->data, bytes->size, &scanned, &head);
    if (size <= 0)
        return false;
    *bytes = span_of(bytes->data + size, bytes->size - (size_t)size);
    if (head.status < 200)
        return true;
    const struct http_field *field = http_field(&head, "content-length");
    if (!field || http_number(field->value, SIZE_MAX, &length) < 0)
        return false;
    bool no_body = bytes->size == 0 || (bytes->size >= 7 && memcmp(bytes->data, "HTTP/1.", 7) == 0);
    size_t body = no_body ? 0 : (size_t)length;
    if (body > bytes->size)
        return false;
    o->stored += head.status == 200 && body > 10 && memcmp(bytes->data, "{\"stored\":", 10) == 0;
    *bytes = span_of(bytes->data + body, bytes->size - body);
    o->replies++;
    o->last = head.status;
    return true;
}

static void take_replies(struct sim_connection *c, struct outcome *o)
{
    struct span bytes = sim_received(c);
    while (bytes.size > 0 && o->replies < REPLIES_MAX)
        if (!take_reply(&bytes, o)) {
            o->reply_broken = true;
            return;
        }
}

/* --- the front --- */

/* Whether the front waits for more of a request: part of a body is missing, or bytes of a head are there. An
 * empty line before a request is nothing yet. */
static bool waits(const struct front *front)
{
    for (unsigned i = 0; i < front->pool; i++) {
        const struct client *c = &front->clients[i];
        if (!c->used || c->closing)
            continue;
        for (uint32_t at = c->kept_at; at < c->kept_size; at++)
            if (c->kept[at] != '\r' && c->kept[at] != '\n')
                return true;
        if (c->reading == READING_BODY)
            return true;
    }
    return false;
}

static uint64_t events_of(const struct front_world *w)
{
    uint64_t events = 0;
    for (unsigned i = 0; i < WORLD_APPS; i++)
        events += w->apps[i].events;
    return events;
}

/* Sends the row, cut after `at` bytes (0: nowhere) or after each, on a connection of its own. */
static struct outcome play(struct front_world *w, const struct request_row *row, size_t at, bool every)
{
    struct outcome o = {.events = events_of(w)};
    struct front_counters before = w->front.counters;
    struct sim_connection *c = sim_client(w->sim, "10.0.0.9", WORLD_ENDPOINT, NULL, 0);
    for (size_t sent = 0; sent < row->raw.size;) {
        size_t end = every ? sent + 1 : sent < at ? at : row->raw.size;
        sim_peer_send(c, row->raw.data + sent, end - sent);
        sim_run_for(w->sim, PIECE_NS);
        sent = end;
    }
    sim_run_for(w->sim, 100 * NS_PER_MS); /* nothing that concerns messages takes longer */
    bool closed = sim_peer_ended(c);
    o.messages = w->front.counters.whole_requests - before.whole_requests;
    uint64_t begun = w->front.counters.requests - before.requests;
    if (closed && begun > o.messages)
        o.verdict = REJECT;
    else if (!closed && (waits(&w->front) || o.messages == 0))
        o.verdict = INCOMPLETE;
    o.events = events_of(w) - o.events;
    take_replies(c, &o);
    sim_peer_close(c);
    sim_run_for(w->sim, 5 * NS_PER_S); /* the front has closed it, too */
    return o;
}

/* False, and what is wrong in `why`. Every message has its reply, every event that is said to be stored is,
 * and no other. */
static bool right(const struct request_row *row, const struct outcome *o, char *why, size_t size)
{
    if (o->verdict != row->expect || o->messages != row->messages)
        snprintf(why, size, "expected %s with %llu messages, got %s with %llu (last reply %u)",
                 verdicts[row->expect], (unsigned long long)row->messages, verdicts[o->verdict],
                 (unsigned long long)o->messages, o->last);
    else if (o->reply_broken)
        snprintf(why, size, "what the front sent is not a row of replies");
    else if (o->replies < o->messages)
        snprintf(why, size, "%llu messages got %u replies", (unsigned long long)o->messages, o->replies);
    else if (o->verdict == REJECT && o->last < 400)
        snprintf(why, size, "refused with %u", o->last);
    else if (o->events != o->stored)
        snprintf(why, size, "the apps got %llu events, and %llu replies say stored",
                 (unsigned long long)o->events, (unsigned long long)o->stored);
    else
        return true;
    return false;
}

/* --- all ways of a row --- */

static bool play_splits(struct front_world *w, const struct request_row *row, char *why, size_t size)
{
    struct outcome o;
    size_t at;
    if (row->raw.size <= EVERY_BYTE_MAX) {
        o = play(w, row, 0, true);
        if (!right(row, &o, why, size)) {
            snprintf(why + strlen(why), size - strlen(why), " (byte by byte)");
            return false;
        }
    }
    for (size_t i = 0; (at = row_cut(row->raw.size, i)) > 0; i++) {
        o = play(w, row, at, false);
        if (!right(row, &o, why, size)) {
            snprintf(why + strlen(why), size - strlen(why), " (cut after %zu bytes)", at);
            return false;
        }
    }
    return true;
}

static void run_row(const struct row *json, void *context)
{
    static struct front_world world;
    struct checked *all = context;
    struct request_row row = read_row(json);
    const char *const names[WORLD_APPS] = {row.names[0], row.names[1]};
    char why[300];
    front_world_open_named(&world, 1, NULL, names);
    struct sim_link link = sim_link_default;
    link.split = 0; /* the cuts are ours */
    sim_set_link(world.sim, NULL, NULL, &link);
    struct outcome o = play(&world, &row, 0, false);
    bool passed =
        right(&row, &o, why, sizeof why) && (!all->splits || play_splits(&world, &row, why, sizeof why));
    if (!passed)
        printf("FAILED  %s: %s\n", row.id, why);
    all->passed += passed;
    all->failed += !passed;
    front_world_close(&world);
    free((void *)(uintptr_t)row.raw.data);
}

static const char *parse_arguments(int argc, char **argv, struct checked *all)
{
    const char *file = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--splits") == 0)
            all->splits = true;
        else if (argv[i][0] != '-' && !file)
            file = argv[i];
        else
            return NULL;
    }
    return file;
}

int main(int argc, char **argv)
{
    struct checked all = {0};
    const char *file = parse_arguments(argc, argv, &all);
    if (!file || sodium_init() < 0) {
        fprintf(stderr, "requests [--splits] FILE.jsonl\n");
        return 2;
    }
    rows_run(file, run_row, &all);
    printf("%u passed, %u failed\n", all.passed, all.failed);
    return all.failed > 0;
}
