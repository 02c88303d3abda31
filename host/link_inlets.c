#include "host/link_inlets.h"

#include "host/waiters.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum line {
    LINE_WAITING, /* of the app: records of it lie in its ring */
    LINE_NEWS,    /* of the app: its stored number has moved in this round */
    LINE_HELD,    /* of the host: that is held back */
    LINES
};

/* What its OPEN asks, if it does: a run without records, in front of all others. */
enum question {
    QUESTION_NONE,
    QUESTION_DUE, /* is to be put into the inbox */
    QUESTION_PUT, /* the next result is its answer */
};

/* A stream, from its OPEN until the last of its runs has its result: it may outlive its inlet. */
struct link_stream {
    uint32_t index; /* in link_inlets.streams */
    struct linked_app *app;
    struct link_peer_access *peer;
    struct inlet *inlet; /* NULL: closed or refused: results are nobody's any more */
    uint8_t epoch[EPOCH_BYTES];
    char event[EVENT_NAME_MAX + 1], source[SOURCE_NAME_MAX + 1], identity[SOURCE_NAME_MAX + 1];
    uint64_t base;
    uint64_t asks; /* as of a run */
    enum question question;
    uint64_t first;  /* number of the record it began with */
    uint64_t next;   /* number of the first record that is not in the inbox */
    uint64_t stored; /* as the app has said, at least `base`; never decreases */
    uint64_t told;   /* what the inlet knows of it */
    uint32_t runs;   /* in the inbox, that have no result */
    bool proven;     /* records were stored */
    bool in_line[LINES];
    struct link_stream *next_in[LINES];
    struct link_stream *next_free;
};

/* An app, as the listener sees it. */
struct linked_app {
    struct link_inlets *inlets;
    struct registry_app *app;
    struct task task;       /* results are there, or a stream waits; linked apps only */
    struct waiters waiters; /* the streams of the runs in the inbox, by index */
    struct link_stream_line waiting, news;
};

/* --- lines --- */

static void line_add(struct link_stream_line *line, enum line which, struct link_stream *s)
{
    if (s->in_line[which])
        return;
    s->in_line[which] = true;
    s->next_in[which] = NULL;
    if (line->last)
        line->last->next_in[which] = s;
    else
        line->first = s;
    line->last = s;
}

/* The first in line, or NULL. */
static struct link_stream *line_take(struct link_stream_line *line, enum line which)
{
    struct link_stream *s = line->first;
    if (!s)
        return NULL;
    line->first = s->next_in[which];
    if (!line->first)
        line->last = NULL;
    s->in_line[which] = false;
    return s;
}

/* --- the life of a stream --- */

/* Makes room for one more stream. */
static int grow(struct link_inlets *li)
{
    if (li->stream_count == li->stream_capacity) {
        uint32_t capacity = li->stream_capacity ? 2 * li->stream_capacity : 16;
        struct link_stream **streams = realloc(li->streams, capacity * sizeof(struct link_stream *));
        if (!streams)
            return -ENOMEM;
        li->streams = streams;
        li->stream_capacity = capacity;
    }
    struct link_stream *s = malloc(sizeof *s);
    if (!s)
        return -ENOMEM;
    *s = (struct link_stream){.index = li->stream_count};
    li->streams[li->stream_count++] = s;
    li->free = s;
    return 0;
}

/* NULL: the peer has too many, or there is no memory. */
static struct link_stream *stream_new(struct linked_app *app, struct link_peer_access *peer)
{
    struct link_inlets *li = app->inlets;
    if (peer->streams >= li->options.peer_streams || (!li->free && grow(li) < 0))
        return NULL;
    struct link_stream *s = li->free;
    li->free = s->next_free;
    *s = (struct link_stream){.index = s->index, .app = app, .peer = peer};
    peer->streams++;
    return s;
}

/* Frees it, if it has ended and nothing knows of it any more. */
static void stream_release(struct link_stream *s)
{
    struct link_inlets *li = s->app->inlets;
    bool in_line = s->in_line[LINE_WAITING] || s->in_line[LINE_NEWS] || s->in_line[LINE_HELD];
    if (s->inlet || s->runs > 0 || in_line)
        return;
    s->peer->streams--;
    s->next_free = li->free;
    li->free = s;
}

/* --- what the log says of refusals --- */

#define NAMES_REFUSED 0  /* stands for REFUSED_NOT_ALLOWED, where names are the reason */
#define RELIEVED      10 /* stands for REFUSED_NO_ROOM, where it is the inlets' (link/inlets.h) */

static const char *const refusal_texts[] = {
    [NAMES_REFUSED] = "its names of app, output or event are not such as hosts give, or too long",
    [REFUSED_NO_APP] = "there is no such app here",
    [REFUSED_NOT_ALLOWED] = "apps = of its [peer] does not name this app",
    [REFUSED_RETIRED] = "its epoch has been replaced by a newer one",
    [REFUSED_GAP] = "records are missing before those it sends",
    [REFUSED_APP_FAILED] = "the app failed a record",
    [REFUSED_APP_SUSPENDED] = "the app is suspended",
    [REFUSED_NO_ROOM] = "too many streams",
    [REFUSED_RECORD_TOO_LARGE] = "a record is larger than inbox = of the app",
    [RELIEVED] = "its records wait for the app, and would leave no room (link_window =) for others",
};

/* FNV-1a. Two targets with one hash cost a line in the log at most. */
static uint64_t hash_of(struct span name)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < name.size; i++)
        hash = (hash ^ name.data[i]) * UINT64_C(0x100000001b3);
    return hash | 1;
}

static struct link_refusal_said *find_said(struct link_refusals *r, uint64_t target)
{
    for (unsigned i = 0; i < LINK_REFUSALS_SAID; i++) {
        if (r->said[i].target == target)
            return &r->said[i];
    }
    return NULL;
}

static void say_refused(struct link_inlets *li, struct link_peer_access *peer, struct span target,
                        unsigned reason)
{
    struct link_refusals *r = &peer->refusals;
    uint64_t hash = hash_of(target), now_ns = li->options.loop->now_ns;
    struct link_refusal_said *said = find_said(r, hash);
    if (said && (said->reasons & 1u << reason))
        return;
    if (r->lines >= LINK_REFUSALS_SAID && now_ns - r->last_ns < NS_PER_S)
        return;
    if (!said) {
        said = &r->said[r->next];
        r->next = (r->next + 1) % LINK_REFUSALS_SAID;
        *said = (struct link_refusal_said){.target = hash};
    }
    said->reasons |= 1u << reason;
    r->lines++;
    r->last_ns = now_ns;
    log_line(li->options.log, LOG_WARNING, "a link from %s to app '%.*s' is refused: %s", peer->name,
             (int)target.size, (const char *)target.data, refusal_texts[reason]);
}

/* Records are stored: the next refusal is worth a line again. */
static void see_proven(struct link_stream *s)
{
    if (s->proven)
        return;
    s->proven = true;
    struct link_refusal_said *said = find_said(&s->peer->refusals, hash_of(span_text(s->app->app->name)));
    if (said)
        said->reasons = 0;
}

/* --- a stream begins --- */

static struct linked_app *find_app(struct link_inlets *li, struct span name, unsigned *index)
{
    for (unsigned i = 0; i < li->options.app_count; i++) {
        if (!span_is(name, li->options.apps[i]->name))
            continue;
        *index = i;
        return &li->apps[i];
    }
    return NULL;
}

/* "OWNER/APP/OUTPUT". False: too long, or a name has a NUL. */
static bool join_names(char to[SOURCE_NAME_MAX + 1], const char *owner, const struct frame_open *open)
{
    size_t size = strlen(owner) + 1 + open->app.size + 1 + open->output.size;
    if (size > SOURCE_NAME_MAX)
        return false;
    int written =
        snprintf(to, SOURCE_NAME_MAX + 1, "%s/%.*s/%.*s", owner, (int)open->app.size,
                 (const char *)open->app.data, (int)open->output.size, (const char *)open->output.data);
    return (size_t)written == size;
}

/* False: they are not such as a wire may have. */
static bool set_names(struct link_stream *s, const struct frame_open *open)
{
    char owner[sizeof "link " + HOST_KEY_PUBLIC_TEXT] = "link ";
    host_key_public_text(s->peer->key, owner + sizeof "link " - 1);
    if (!join_names(s->source, s->peer->name, open) || !run_stream_name(span_text(s->source)) ||
        !join_names(s->identity, owner, open) || !run_event_name(open->event))
        return false;
    memcpy(s->event, open->event.data, open->event.size); /* zeroed: it ends with a NUL */
    return true;
}

static bool is_suspended(const struct registry_app *app)
{
    return app->failure[0] != '\0' ||
           atomic_load_explicit(&app->report.condition, memory_order_relaxed) == APP_SUSPENDED;
}

/* 0 with `*stream`, or why not: an enum frame_refusal, or NAMES_REFUSED in `*why`. */
static int begin(struct link_inlets *li, struct link_peer_access *peer, const struct frame_open *open,
                 struct link_stream **stream, unsigned *why)
{
    unsigned index;
    struct linked_app *app = find_app(li, open->target, &index);
    int reason = 0;
    if (!app)
        reason = REFUSED_NO_APP;
    else if (!peer->apps[index] || !registry_app_linked(app->app))
        reason = REFUSED_NOT_ALLOWED;
    else if (is_suspended(app->app))
        reason = REFUSED_APP_SUSPENDED;
    else if (!(*stream = stream_new(app, peer)))
        reason = REFUSED_NO_ROOM;
    *why = (unsigned)reason;
    if (reason != 0 || set_names(*stream, open))
        return reason;
    stream_release(*stream);
    *why = NAMES_REFUSED;
    return REFUSED_NOT_ALLOWED;
}

static int admit(void *context, void *peer, const struct frame_open *open, struct inlet *inlet,
                 uint64_t *stored)
{
    struct link_inlets *li = context;
    struct link_stream *s;
    unsigned why;
    int reason = begin(li, peer, open, &s, &why);
    if (reason != 0) {
        say_refused(li, peer, open->target, why);
        *stored = open->base;
        return reason;
    }
    memcpy(s->epoch, open->epoch, EPOCH_BYTES);
    s->inlet = inlet;
    s->base = s->stored = open->base;
    s->first = s->next = open->first;
    s->told = open->first - 1;
    inlet->context = s;
    if (open->asks > 0) {
        s->asks = open->asks;
        s->question = QUESTION_DUE;
        line_add(&s->app->waiting, LINE_WAITING, s);
        loop_want(li->options.loop, &s->app->task);
    }
    return 0;
}

/* --- records into the inbox --- */

static void closed(void *context, struct inlet *inlet)
{
    struct link_stream *s = inlet->context;
    s->inlet = NULL;
    if (inlet->reason == REFUSED_NO_ROOM)
        say_refused(context, s->peer, span_text(s->app->app->name), RELIEVED);
    stream_release(s);
}

static void refuse(struct link_stream *s, enum frame_refusal reason, uint64_t stored)
{
    struct inlet *inlet = s->inlet;
    s->inlet = NULL;
    inlet_refuse(inlet, reason, stored);
    if (reason != REFUSED_ROLLED_BACK) /* of which the app's owner says more */
        say_refused(s->app->inlets, s->peer, span_text(s->app->app->name), reason);
}

/* The next run of what waits in the ring: whole records, not more than is good for other streams. */
static struct record_scan next_piece(const struct link_stream *s, struct span held)
{
    size_t most = (size_t)min_u64(LINK_PIECE_BYTES, s->app->app->links.runs.capacity / 4);
    if (held.size <= most)
        return (struct record_scan){held.size, s->inlet->stream.next - s->next, 0};
    struct record_scan piece = record_scan(span_of(held.data, most), held.size, UINT64_MAX);
    return piece.records > 0 ? piece : record_scan(held, held.size, 1);
}

static struct run run_of(const struct link_stream *s, uint64_t records, uint64_t time_ms)
{
    struct run run = {.kind = RUN_STREAM,
                      .records = (uint32_t)records, /* as many as fit into an inbox at most */
                      .first = s->next,
                      .time_ms = time_ms,
                      .base = s->base,
                      .event = span_text(s->event),
                      .source = span_text(s->source),
                      .identity = span_text(s->identity)};
    memcpy(run.epoch, s->epoch, EPOCH_BYTES);
    return run;
}

static bool has_more(const struct link_stream *s)
{
    return s->inlet && (s->question == QUESTION_DUE || s->next < s->inlet->stream.next);
}

/* False: it has to wait for room. */
static bool put_question(struct link_stream *s, uint64_t time_ms)
{
    struct linked_app *app = s->app;
    struct run run = run_of(s, 0, time_ms);
    run.asks = s->asks;
    if (waiters_prepare(&app->waiters) < 0 || inbox_put(&app->app->links, &run) < 0)
        return false;
    waiters_add(&app->waiters, (struct waiter){.client = s->index});
    s->runs++;
    s->question = QUESTION_PUT;
    return true;
}

/* False: it has to wait for room. */
static bool put_piece(struct link_stream *s, uint64_t time_ms)
{
    struct linked_app *app = s->app;
    if (s->question == QUESTION_DUE)
        return put_question(s, time_ms);
    struct inbox *inbox = &app->app->links;
    struct span held = receive_stream_held(&s->inlet->stream);
    struct record_scan piece = next_piece(s, held);
    struct run run = run_of(s, piece.records, time_ms);
    if (waiters_prepare(&app->waiters) < 0) {
        refuse(s, REFUSED_NO_ROOM, s->stored); /* no memory: it is tried again later */
        return true;
    }
    uint8_t *at = inbox_begin(inbox, &run, piece.bytes);
    if (!at && inbox->takes == inbox->puts) { /* it is empty, and all before this record is stored */
        refuse(s, REFUSED_RECORD_TOO_LARGE, s->stored);
        return true;
    }
    if (!at)
        return false;
    memcpy(at, held.data, piece.bytes);
    inbox_commit(inbox, &run, piece.bytes);
    waiters_add(&app->waiters, (struct waiter){.client = s->index});
    s->runs++;
    s->next += piece.records;
    inlet_freed(s->inlet, piece.bytes);
    return true;
}

/* A piece of each stream in turn. Returns how many were put (or refused). */
static unsigned put_pieces(struct linked_app *app)
{
    unsigned pieces = 0;
    if (atomic_load_explicit(&app->inlets->holding, memory_order_relaxed))
        return 0;
    uint64_t time_ms = app->waiting.first ? io_wall_ms(app->inlets->options.loop->io) : 0;
    while (pieces < LINK_ROUND_PIECES && app->waiting.first) {
        struct link_stream *s = app->waiting.first;
        if (s->inlet && !put_piece(s, time_ms))
            break;
        pieces++;
        line_take(&app->waiting, LINE_WAITING);
        if (has_more(s))
            line_add(&app->waiting, LINE_WAITING, s);
        stream_release(s);
    }
    return pieces;
}

/* They go on at once, while they are in the processor's cache and nobody was there before them; what finds no
 * room waits in line. */
static void records(void *context, struct inlet *inlet, uint64_t first, struct span bytes, uint64_t count)
{
    const struct link_inlets *li = context;
    struct link_stream *s = inlet->context;
    struct linked_app *app = s->app;
    assert(first + count == inlet->stream.next);
    (void)first, (void)bytes, (void)count; /* they lie behind what waits there already */
    bool at_once = !app->waiting.first && !atomic_load_explicit(&li->holding, memory_order_relaxed);
    uint64_t time_ms = at_once ? io_wall_ms(li->options.loop->io) : 0;
    while (at_once && has_more(s))
        at_once = put_piece(s, time_ms);
    if (!inlet->more) /* a push for all that has come, or the owner would be woken for each piece */
        inbox_push(&app->app->links); /* it need not wait for what this round has still to send */
    if (has_more(s))
        line_add(&app->waiting, LINE_WAITING, s);
    loop_want(li->options.loop, &app->task);
    stream_release(s);
}

/* --- results --- */

static enum frame_refusal refusal_of(int error)
{
    switch (error) {
    case PE_STREAM_RETIRED:
        return REFUSED_RETIRED;
    case PE_STREAM_GAP:
        return REFUSED_GAP;
    case PE_STREAM_ROLLED_BACK:
        return REFUSED_ROLLED_BACK;
    case PE_APP_SUSPENDED:
        return REFUSED_APP_SUSPENDED;
    case PE_FULL:
        return REFUSED_NO_ROOM;
    default:
        return REFUSED_APP_FAILED;
    }
}

static void see_result(struct link_stream *s, const struct run_result *result)
{
    if (!s->inlet)
        return;
    if (result->error == 0 && s->question == QUESTION_PUT) {
        s->question = QUESTION_NONE;
        inlet_answer(s->inlet);
    }
    if (result->error == 0) {
        s->stored = max_u64(s->stored, result->stored);
        see_proven(s);
        line_add(&s->app->news, LINE_NEWS, s);
        return;
    }
    /* A gap is told with what the app has, though that be less than was said once: it has lost the rest. */
    bool gap = result->error == PE_STREAM_GAP;
    refuse(s, refusal_of(result->error), gap ? result->stored : max_u64(s->stored, result->stored));
}

static unsigned take_results(struct linked_app *app)
{
    unsigned results = 0;
    struct run_result result;
    while (inbox_take_result(&app->app->links, &result)) {
        struct link_stream *s = app->inlets->streams[waiters_take(&app->waiters).client];
        s->runs--;
        see_result(s, &result);
        stream_release(s);
        results++;
    }
    return results;
}

/* --- stored numbers --- */

/* Of records that the app knows from an earlier stream only as they come (receive_stream_store). */
static void tell(struct link_stream *s)
{
    uint64_t stored = s->inlet ? min_u64(s->stored, s->inlet->stream.next - 1) : 0;
    if (stored <= s->told)
        return;
    s->told = stored;
    inlet_stored(s->inlet, stored);
}

/* Records that lie in the ring are outstanding, too. How many bytes a step frees at the sender is taken from
 * the records' average size. */
static bool may_be_held_back(const struct link_stream *s)
{
    const struct receive_stream *in = &s->inlet->stream;
    if (s->stored >= in->next - 1)
        return false;
    uint64_t average = s->next > s->first ? in->freed / (s->next - s->first) : 0;
    return (s->stored - s->told) * average < min_u64(LINK_TELL_BYTES, in->ring.size / 4);
}

static void tell_news(struct linked_app *app)
{
    struct link_inlets *li = app->inlets;
    struct link_stream *s;
    while ((s = line_take(&app->news, LINE_NEWS))) {
        if (s->inlet && may_be_held_back(s))
            line_add(&li->held, LINE_HELD, s);
        else
            tell(s);
        stream_release(s);
    }
    if (li->held.first && li->timer.due_ns == NEVER)
        timer_set(&li->options.loop->timers, &li->timer, li->options.loop->now_ns + LINK_HOLD_NS);
}

static void tell_held(struct timer *timer, uint64_t now_ns)
{
    (void)now_ns;
    struct link_inlets *li = container_of(timer, struct link_inlets, timer);
    struct link_stream *s;
    while ((s = line_take(&li->held, LINE_HELD))) {
        tell(s);
        stream_release(s);
    }
    li->options.want(li->options.want_context);
}

static bool run(struct task *task, uint64_t now_ns)
{
    (void)now_ns;
    struct linked_app *app = container_of(task, struct linked_app, task);
    struct link_inlets *li = app->inlets;
    unsigned results = take_results(app);
    tell_news(app);
    unsigned pieces = put_pieces(app);
    inbox_push(&app->app->links);
    if (results > 0 || pieces > 0)
        li->options.want(li->options.want_context);
    return pieces == LINK_ROUND_PIECES && app->waiting.first;
}

/* --- life --- */

static int add_app(struct link_inlets *li, struct linked_app *app, struct registry_app *registry_app)
{
    *app = (struct linked_app){.inlets = li, .app = registry_app, .task.run = run};
    if (!registry_app_linked(registry_app))
        return 0;
    int error = loop_add(li->options.loop, &app->task);
    if (error < 0)
        return error;
    registry_app->links.front = &li->options.loop->board;
    registry_app->links.front_slot = app->task.slot;
    return 0;
}

int link_inlets_init(struct link_inlets *li, const struct link_inlets_options *options)
{
    *li = (struct link_inlets){.options = *options, .consumer = {admit, records, closed, li}};
    timer_init(&li->timer, tell_held);
    li->apps = calloc(options->app_count + 1, sizeof *li->apps);
    int error = li->apps ? 0 : -ENOMEM;
    for (unsigned i = 0; i < options->app_count && error == 0; i++)
        error = add_app(li, &li->apps[i], options->apps[i]);
    return error;
}

void link_inlets_hold(struct link_inlets *li)
{
    atomic_store_explicit(&li->holding, true, memory_order_relaxed);
}

void link_inlets_dispose(struct link_inlets *li)
{
    timer_unset(&li->options.loop->timers, &li->timer);
    for (unsigned i = 0; li->apps && i < li->options.app_count; i++) {
        struct linked_app *app = &li->apps[i];
        if (app->app && registry_app_linked(app->app) && app->app->links.front)
            loop_remove(li->options.loop, &app->task);
        waiters_dispose(&app->waiters);
    }
    free(li->apps);
    for (uint32_t i = 0; i < li->stream_count; i++)
        free(li->streams[i]);
    free(li->streams);
}
