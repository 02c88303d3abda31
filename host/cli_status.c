#include "host/cli_status.h"

#include "core/error.h"
#include "host/cli_json.h"
#include "host/turn_mark.h"

#include <stdlib.h>

#define NAME_WIDTH    28  /* of the first column, at most: a longer name has a line of its own */
#define NAME_BYTES    272 /* the longest host name, and its port */
#define CELL_BYTES    24
#define OPTIONS_BYTES 512
#define INDENT        4

typedef unsigned long long ull;

struct screen {
    FILE *out;
    struct span outlets;
    uint64_t now_ms;
    const char *options; /* of commands that are hinted at */
    int name_width;      /* of the first column of all tables */
};

/* --- cells: text of a fixed width at most --- */

/* At most 7 columns: 1234567, 12345k, … */
static void show_count(char *cell, uint64_t count)
{
    static const char units[] = " kMGTP";
    unsigned unit = 0;
    for (uint64_t limit = 10000000; count >= limit && units[unit + 1]; limit = 1000000)
        count /= 1000, unit++;
    snprintf(cell, CELL_BYTES, unit ? "%llu%c" : "%llu", (ull)count, units[unit]);
}

/* At most 5 columns: 812, 1.2K, 37K, … */
static void show_bytes(char *cell, uint64_t bytes)
{
    static const char units[] = " KMGTPE";
    unsigned unit = 0;
    uint64_t tenths = 0;
    while (bytes >= 1024 && units[unit + 1]) {
        tenths = bytes % 1024 * 10 / 1024;
        bytes /= 1024, unit++;
    }
    if (unit == 0)
        snprintf(cell, CELL_BYTES, "%llu", (ull)bytes);
    else if (bytes < 10 && tenths > 0)
        snprintf(cell, CELL_BYTES, "%llu.%llu%c", (ull)bytes, (ull)tenths, units[unit]);
    else
        snprintf(cell, CELL_BYTES, "%llu%c", (ull)bytes, units[unit]);
}

/* At most 6 columns: 35s, 12min, 7h, 400d. */
static void show_time(char *cell, uint64_t s)
{
    if (s < 100)
        snprintf(cell, CELL_BYTES, "%llus", (ull)s);
    else if (s < 100 * 60)
        snprintf(cell, CELL_BYTES, "%llumin", (ull)(s / 60));
    else if (s < 100 * 3600)
        snprintf(cell, CELL_BYTES, "%lluh", (ull)(s / 3600));
    else
        snprintf(cell, CELL_BYTES, "%llud", (ull)min_u64(s / 86400, 99999));
}

/* At most 7 columns: 0.052ms, 8.31ms, 120ms, 12s, …; none is known yet: "-". */
static void show_rtt(char *cell, uint64_t ns)
{
    uint64_t us = ns / 1000;
    if (ns == 0)
        snprintf(cell, CELL_BYTES, "-");
    else if (us < 1000)
        snprintf(cell, CELL_BYTES, "0.%03llums", (ull)us);
    else if (us < 10000)
        snprintf(cell, CELL_BYTES, "%llu.%02llums", (ull)(us / 1000), (ull)(us % 1000 / 10));
    else if (us < 10000000)
        snprintf(cell, CELL_BYTES, "%llums", (ull)(us / 1000));
    else
        show_time(cell, us / 1000000);
}

/* A member, or nothing. */
static struct span member_of(struct span object, const char *name)
{
    struct span value;
    return cli_json_member(object, name, &value) ? value : span_of(NULL, 0);
}

static void text_of(struct span object, const char *name, char *text, size_t size)
{
    struct span value;
    snprintf(text, size, "-");
    if (cli_json_member(object, name, &value))
        cli_json_text(value, text, size);
}

static const char *count_of(struct span object, const char *name, char *cell)
{
    uint64_t count;
    snprintf(cell, CELL_BYTES, "-");
    if (cli_json_number(object, name, &count) == 0)
        show_count(cell, count);
    return cell;
}

static const char *bytes_of(struct span object, const char *name, char *cell)
{
    uint64_t bytes;
    snprintf(cell, CELL_BYTES, "-");
    if (cli_json_number(object, name, &bytes) == 0)
        show_bytes(cell, bytes);
    return cell;
}

static const char *rtt_of(struct span link, char *cell)
{
    uint64_t ns = 0;
    cli_json_number(link, "rtt_ns", &ns);
    show_rtt(cell, ns);
    return cell;
}

static const char *since_of(const struct screen *s, struct span object, char *cell)
{
    uint64_t since_ms;
    snprintf(cell, CELL_BYTES, "-");
    if (cli_json_number(object, "since_ms", &since_ms) == 0 && since_ms > 0)
        show_time(cell, s->now_ms > since_ms ? (s->now_ms - since_ms) / 1000 : 0);
    return cell;
}

/* The requests of an outlet; hosts of version 0.1.0 and before called them tries. */
static const char *requests_of(struct span outlet, char *cell)
{
    uint64_t count;
    return count_of(outlet, cli_json_number(outlet, "requests", &count) == 0 ? "requests" : "tries", cell);
}

static void name_of_app(struct span app, char *name)
{
    text_of(app, "name", name, NAME_BYTES);
}

static void name_of_outlet(struct span outlet, char *name)
{
    char app[NAME_BYTES / 2], output[NAME_BYTES / 2];
    text_of(outlet, "app", app, sizeof(app));
    text_of(outlet, "output", output, sizeof(output));
    snprintf(name, NAME_BYTES, "%s.%s", app, output);
}

static void name_of_link(struct span link, char *name)
{
    text_of(link, "name", name, NAME_BYTES);
}

static void name_of_listener(struct span listener, char *name)
{
    text_of(listener, "address", name, NAME_BYTES);
}

/* --- rows and the lines below them --- */

static void show_name(const struct screen *s, const char *name)
{
    if (strlen(name) > (size_t)s->name_width)
        fprintf(s->out, "%s\n%*s", name, s->name_width, "");
    else
        fprintf(s->out, "%-*s", s->name_width, name);
}

/* How many bytes of `text` go on a line of `width`: up to the last space that fits, if there is one. */
static size_t line_of(const char *text, size_t width)
{
    size_t size = strlen(text);
    if (size <= width)
        return size;
    for (size = width; size > 0 && text[size] != ' ';)
        size--;
    return size > 0 ? size : width;
}

static void show_below(const struct screen *s, const char *text)
{
    while (*text) {
        size_t size = line_of(text, CLI_STATUS_WIDTH - INDENT);
        fprintf(s->out, "%*s%.*s\n", INDENT, "", (int)size, text);
        text += size;
        text += *text == ' ';
    }
}

/* --- apps --- */

/* The outlet whose room the app waits for: the one that the host names, else its fullest. */
static void explain_wait(const struct screen *s, struct span app, const char *name, char *why,
                         size_t why_size)
{
    struct cli_json_items items = cli_json_items(s->outlets);
    struct span unnamed, outlet, full, output;
    bool told = cli_json_member(app, "waits_for", &full);
    uint64_t most = 0;
    while (cli_json_next(&items, &unnamed, &outlet)) {
        char owner[NAME_BYTES], whole[NAME_BYTES];
        uint64_t held, capacity;
        text_of(outlet, "app", owner, sizeof(owner));
        if (strcmp(owner, name) != 0 || cli_json_number(outlet, "held_bytes", &held) < 0 ||
            cli_json_number(outlet, "capacity", &capacity) < 0 || !cli_json_member(outlet, "output", &output))
            continue;
        uint64_t percent = held / (capacity / 100 + 1);
        if (told ? !span_equal(output, full) : percent < most)
            continue;
        most = percent;
        name_of_outlet(outlet, whole);
        snprintf(why, why_size, "waits for room in %s, which is %llu %% full", whole, (ull)percent);
    }
}

/* In a call that does not return. */
static void explain_standing(const struct screen *s, struct span app)
{
    char text[100], cell[CELL_BYTES];
    uint64_t since_ms;
    if (cli_json_number(app, "stuck_since_ms", &since_ms) < 0)
        return;
    show_time(cell, s->now_ms > since_ms ? (s->now_ms - since_ms) / 1000 : 0);
    snprintf(text, sizeof(text), "It is in a call that has not returned for %s.", cell);
    show_below(s, text);
}

/* Whether `why` says what helps: an app that is suspended for its deaths is not loaded by a restart alone,
 * one that is resumed is. */
static bool has_remedy(struct span app)
{
    struct span resumed;
    uint64_t deaths = 0;
    cli_json_number(app, "deaths", &deaths);
    return deaths >= MARK_DEATHS || cli_json_member(app, "resumed", &resumed);
}

static void explain_app(const struct screen *s, struct span app, const char *name, const char *condition)
{
    char why[512] = "";
    struct span given;
    if (cli_json_member(app, "why", &given))
        cli_json_text(given, why, sizeof(why));
    else if (strcmp(condition, "waiting") == 0)
        explain_wait(s, app, name, why, sizeof(why));
    show_below(s, why);
    explain_standing(s, app);
    if (strcmp(condition, "suspended") == 0 && !has_remedy(app))
        show_below(s, "Once its cause is gone, restart the host to try it again.");
}

static void show_app(const struct screen *s, struct span app)
{
    char name[NAME_BYTES], condition[CELL_BYTES], cells[5][CELL_BYTES];
    name_of_app(app, name);
    text_of(app, "condition", condition, sizeof(condition));
    show_name(s, name);
    fprintf(s->out, "  %-9.9s  %7s  %7s  %7s  %5s  %5s\n", condition, count_of(app, "stored", cells[0]),
            count_of(app, "failures", cells[1]), count_of(app, "refused", cells[2]),
            bytes_of(app, "inbox_bytes", cells[3]), bytes_of(app, "inbox_capacity", cells[4]));
    explain_app(s, app, name, condition);
}

/* --- outlets --- */

static void explain_outlet(const struct screen *s, struct span outlet)
{
    char error[512], text[600];
    struct span given;
    uint64_t in_a_row = 0;
    if (!cli_json_member(outlet, "error", &given))
        return;
    cli_json_text(given, error, sizeof(error));
    cli_json_number(outlet, "failures_in_a_row", &in_a_row);
    if (in_a_row > 1)
        snprintf(text, sizeof(text), "%llu failures in a row: %s", (ull)in_a_row, error);
    else
        snprintf(text, sizeof(text), "%s", error);
    show_below(s, text);
}

static void explain_disabled(const struct screen *s, const char *name)
{
    char text[2 * NAME_BYTES + OPTIONS_BYTES];
    snprintf(text, sizeof(text), "To have it tried again: pure-host output enable%s %s", s->options, name);
    show_below(s, text);
}

/* What of its records is not on its ordinary way. */
static void explain_records(const struct screen *s, struct span outlet, const char *name)
{
    uint64_t beyond = 0, waiting = 0, lost = 0, dead = 0;
    char text[2 * NAME_BYTES + OPTIONS_BYTES], bytes[CELL_BYTES];
    cli_json_number(outlet, "beyond_bytes", &beyond);
    cli_json_number(outlet, "waiting_records", &waiting);
    cli_json_number(outlet, "lost_records", &lost);
    cli_json_number(outlet, "dead", &dead);
    show_bytes(bytes, beyond);
    if (beyond > 0) {
        snprintf(text, sizeof(text), "%llu records wait, %s of them on disk.", (ull)waiting, bytes);
        show_below(s, text);
    }
    if (lost > 0) {
        snprintf(text, sizeof(text), "%llu records are lost: the disk has not kept them.", (ull)lost);
        show_below(s, text);
    }
    if (dead > 0) {
        snprintf(text, sizeof(text), "%llu dead letters: pure-host dead list%s %s", (ull)dead, s->options,
                 name);
        show_below(s, text);
    }
}

static void show_outlet(const struct screen *s, struct span outlet)
{
    char name[NAME_BYTES], kind[CELL_BYTES], state[CELL_BYTES], cells[7][CELL_BYTES];
    name_of_outlet(outlet, name);
    text_of(outlet, "kind", kind, sizeof(kind));
    text_of(outlet, "state", state, sizeof(state));
    show_name(s, name);
    fprintf(s->out, "  %-5.5s  %-8.8s  %6s  %8s  %7s  %7s  %7s  %5s  %5s\n", kind, state,
            since_of(s, outlet, cells[0]), requests_of(outlet, cells[1]),
            count_of(outlet, "stored", cells[2]), count_of(outlet, "failures", cells[3]),
            count_of(outlet, "held_records", cells[4]), bytes_of(outlet, "held_bytes", cells[5]),
            bytes_of(outlet, "capacity", cells[6]));
    explain_outlet(s, outlet);
    if (strcmp(kind, "wire") == 0 && strcmp(state, "disabled") == 0)
        explain_disabled(s, name);
    explain_records(s, outlet, name);
}

/* --- links --- */

static void show_link(const struct screen *s, struct span link)
{
    char name[NAME_BYTES], cells[7][CELL_BYTES];
    name_of_link(link, name);
    show_name(s, name);
    fprintf(s->out, "  %7s  %7s  %7s  %8s  %8s  %8s  %6s\n", rtt_of(link, cells[0]),
            count_of(link, "packets", cells[1]), count_of(link, "lost", cells[2]),
            count_of(link, "received", cells[3]), count_of(link, "handshakes", cells[4]),
            count_of(link, "datagram_bytes", cells[5]), bytes_of(link, "window_bytes", cells[6]));
}

static void show_listener(const struct screen *s, struct span listener)
{
    char name[NAME_BYTES], cells[6][CELL_BYTES];
    name_of_listener(listener, name);
    show_name(s, name);
    fprintf(s->out, "  %5s  %9s  %7s  %8s  %7s  %7s\n", count_of(listener, "peers", cells[0]),
            count_of(listener, "datagrams", cells[1]), count_of(listener, "dropped", cells[2]),
            count_of(listener, "unopened", cells[3]), count_of(listener, "sent", cells[4]),
            count_of(listener, "send_errors", cells[5]));
}

/* --- the store --- */

static void name_of_journal(struct span journal, char *name)
{
    text_of(journal, "owner", name, NAME_BYTES);
}

static const char *ns_of(struct span object, const char *name, char *cell)
{
    uint64_t ns = 0;
    cli_json_number(object, name, &ns);
    show_rtt(cell, ns);
    return cell;
}

static void explain_journal(const struct screen *s, struct span journal, const char *condition)
{
    char error[512];
    struct span given;
    if (!cli_json_member(journal, "error", &given))
        return;
    cli_json_text(given, error, sizeof(error));
    show_below(s, error);
    if (strcmp(condition, "failed") == 0)
        show_below(s, "Nothing more is stored until the host is restarted.");
    else
        show_below(s, "It goes on by itself once there is space on the disk.");
}

static void show_journal(const struct screen *s, struct span journal)
{
    char name[NAME_BYTES], condition[CELL_BYTES], cells[6][CELL_BYTES];
    name_of_journal(journal, name);
    text_of(journal, "condition", condition, sizeof(condition));
    show_name(s, name);
    fprintf(s->out, "  %-9.9s  %7s  %7s  %7s  %8s  %7s  %7s\n", condition,
            count_of(journal, "writes", cells[0]), bytes_of(journal, "bytes", cells[1]),
            count_of(journal, "frames", cells[2]), count_of(journal, "segments", cells[3]),
            count_of(journal, "removed", cells[4]), ns_of(journal, "slowest_ns", cells[5]));
    explain_journal(s, journal, condition);
}

static bool is_degraded(struct span store)
{
    return span_is(member_of(store, "degraded"), "true");
}

/* --- the screen --- */

static int name_width(struct span item, void (*name_of)(struct span item, char *name), int width)
{
    char name[NAME_BYTES];
    name_of(item, name);
    int size = (int)strlen(name);
    return size > width && size <= NAME_WIDTH ? size : width;
}

static int widest(struct span array, void (*name_of)(struct span item, char *name), int width)
{
    struct cli_json_items items = cli_json_items(array);
    struct span unnamed, item;
    while (cli_json_next(&items, &unnamed, &item))
        width = name_width(item, name_of, width);
    return width;
}

static void show_rows(const struct screen *s, struct span array,
                      void (*show)(const struct screen *s, struct span item))
{
    struct cli_json_items items = cli_json_items(array);
    struct span unnamed, item;
    while (cli_json_next(&items, &unnamed, &item))
        show(s, item);
}

/* Only if there is more than plain HTTP: that is where the answer came from. */
static void show_front(const struct screen *s, struct span front)
{
    char https[CELL_BYTES + 48], certificate[CELL_BYTES], done[CELL_BYTES], failed[CELL_BYTES];
    text_of(front, "https", https, sizeof(https));
    if (member_of(front, "https").size == 0)
        return;
    text_of(front, "certificate", certificate, sizeof(certificate));
    fprintf(s->out, "https on %s: certificate %s, handshakes: %s, failed: %s\n", https, certificate,
            count_of(front, "handshakes", done), count_of(front, "failed_handshakes", failed));
}

/* One line for all; which others there are is in the log. */
static void show_tls_files(const struct screen *s, struct span files)
{
    char why[512], text[640];
    uint64_t unreadable = 0;
    cli_json_number(files, "unreadable", &unreadable);
    if (unreadable == 0)
        return;
    text_of(files, "why", why, sizeof(why));
    snprintf(text, sizeof(text), "%s%s", why, unreadable > 1 ? " (and others: see the log)" : "");
    fprintf(s->out, "TLS: files cannot be read as they are now:\n");
    show_below(s, text);
}

static void show_title(const struct screen *s, struct span status)
{
    char version[64], name[80], connections[CELL_BYTES], uptime[CELL_BYTES] = "-";
    uint64_t uptime_s;
    text_of(status, "version", version, sizeof(version));
    text_of(status, "name", name, sizeof(name));
    if (cli_json_number(status, "uptime_s", &uptime_s) == 0)
        show_time(uptime, uptime_s);
    fprintf(s->out, "%s: pure-host %s, up for %s, connections: %s\n", name, version, uptime,
            count_of(status, "connections", connections));
    show_front(s, member_of(status, "front"));
    show_tls_files(s, member_of(status, "tls_files"));
}

/* A host without links, and one of a version before them, has no tables of them. */
static void show_links(const struct screen *s, struct span links)
{
    struct cli_json_items items = cli_json_items(links);
    struct span unnamed, item;
    if (!cli_json_next(&items, &unnamed, &item))
        return;
    fprintf(s->out, "\n%-*s  %7s  %7s  %7s  %8s  %8s  %8s  %6s\n", s->name_width, "link", "rtt", "packets",
            "lost", "received", "sessions", "datagram", "window");
    show_rows(s, links, show_link);
}

static void show_links_in(const struct screen *s, struct span listener)
{
    if (listener.size == 0)
        return;
    fprintf(s->out, "\n%-*s  %5s  %9s  %7s  %8s  %7s  %7s\n", s->name_width, "links in", "peers", "datagrams",
            "dropped", "unopened", "sent", "failed");
    show_listener(s, listener);
}

static void show_store(const struct screen *s, struct span store)
{
    uint64_t places = 0, commits = 0, records = 0;
    char segments[CELL_BYTES], bytes[CELL_BYTES], text[200];
    if (store.size == 0)
        return;
    fprintf(s->out, "\n%-*s  %-9s  %7s  %7s  %7s  %8s  %7s  %7s\n", s->name_width, "journal", "condition",
            "writes", "written", "frames", "segments", "removed", "slowest");
    show_rows(s, member_of(store, "journals"), show_journal);
    fprintf(s->out, "store: %s segments, %s on disk\n", count_of(store, "segments", segments),
            bytes_of(store, "bytes", bytes));
    cli_json_number(store, "damaged_places", &places);
    cli_json_number(store, "lost_commits", &commits);
    cli_json_number(store, "lost_records", &records);
    snprintf(
        text, sizeof(text),
        "degraded: %llu places were damaged at the start; %llu turns and %llu records of outputs were lost. "
        "The log says which.",
        (ull)places, (ull)commits, (ull)records);
    if (is_degraded(store))
        show_below(s, text);
}

/* Of the first column of all tables. */
static int width_of_names(const struct screen *s, struct span apps, struct span links, struct span listener,
                          struct span journals)
{
    int width = widest(s->outlets, name_of_outlet, widest(apps, name_of_app, (int)strlen("output")));
    width = widest(links, name_of_link, width);
    width = widest(journals, name_of_journal, width);
    return listener.size > 0 ? name_width(listener, name_of_listener, width) : width;
}

int cli_status_show(FILE *out, struct span json, uint64_t now_ms, const char *options)
{
    struct span status;
    struct screen s = {.out = out, .now_ms = now_ms, .options = options};
    if (cli_json_whole(json, &status) < 0 || status.data[0] != '{')
        return PE_MALFORMED;
    struct span apps = member_of(status, "apps"), links = member_of(status, "links");
    struct span listener = member_of(status, "listener");
    s.outlets = member_of(status, "outlets");
    struct span store = member_of(status, "store");
    s.name_width = width_of_names(&s, apps, links, listener, member_of(store, "journals"));
    show_title(&s, status);
    fprintf(out, "\n%-*s  %-9s  %7s  %7s  %7s  %5s  %5s\n", s.name_width, "app", "condition", "stored",
            "failed", "refused", "inbox", "of");
    show_rows(&s, apps, show_app);
    fprintf(out, "\n%-*s  %-5s  %-8s  %6s  %8s  %7s  %7s  %7s  %5s  %5s\n", s.name_width, "output", "kind",
            "state", "since", "requests", "stored", "failed", "records", "held", "of");
    show_rows(&s, s.outlets, show_outlet);
    show_links(&s, links);
    show_links_in(&s, listener);
    show_store(&s, store);
    return 0;
}

bool cli_status_degraded(struct span json)
{
    struct span status;
    return cli_json_whole(json, &status) == 0 && is_degraded(member_of(status, "store"));
}

const char *cli_status_remedy(struct span json, const char *app)
{
    static const char later[] = ": try again later";
    struct span status, unnamed, item;
    if (cli_json_whole(json, &status) < 0)
        return later;
    struct cli_json_items items = cli_json_items(member_of(status, "apps"));
    while (cli_json_next(&items, &unnamed, &item)) {
        char name[NAME_BYTES], condition[CELL_BYTES];
        name_of_app(item, name);
        text_of(item, "condition", condition, sizeof(condition));
        if (strcmp(name, app) == 0 && strcmp(condition, "suspended") == 0)
            return has_remedy(item) ? "" : ": once its cause is gone, restart the host to try it again";
    }
    return later;
}
