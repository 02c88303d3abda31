/* `pure-host log`: an app's journal, from the store's directory, also while a host has it open. */
#include "host/cli_commands.h"

#include "host/cli_running.h"
#include "host/cli_store.h"
#include "host/config_values.h"
#include "host/journal_print.h"
#include "journal/scan.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>

struct log_walk {
    struct journal_print print;
    struct store *store;
    struct span app;
    uint64_t from;     /* commits before the one that stored this event are passed over */
    uint64_t sequence; /* of the last commit of the app; 0: none yet */
    bool damaged;
};

/* The app is found once its first frame is: a store holds many, of which most are others'. */
static void take_frame(struct log_walk *w, const struct journal_frame *frame)
{
    struct commit_head head;
    struct span sections;
    if (frame->kind != FRAME_COMMIT && frame->kind != FRAME_SNAPSHOT)
        return;
    if (commit_read_head(frame->payload, &head, &sections) < 0) {
        w->damaged = true;
        return;
    }
    if (!span_equal(head.app, w->app))
        return;
    bool wanted = head.stored >= w->from;
    if (frame->kind == FRAME_COMMIT) {
        if (wanted && w->sequence > 0 && head.sequence > w->sequence + 1)
            journal_print_gap(&w->print, w->sequence + 1, head.sequence - 1);
        w->sequence = head.sequence;
    }
    if (wanted && journal_print_frame(&w->print, frame, &head, sections) < 0)
        w->damaged = true;
}

/* Damage that a recovery or a repair has noted is no news. */
static bool is_noted(const struct segment *segment, uint64_t offset)
{
    for (uint32_t i = 0; i < segment->seal.hole_count; i++) {
        const struct seal_hole *hole = &segment->seal.holes[i];
        if (offset >= hole->offset && offset - hole->offset < hole->size)
            return true;
    }
    return false;
}

static int walk_items(struct log_walk *w, struct scan *scan, const struct segment *segment)
{
    struct scan_item item;
    int error;
    while ((error = scan_next(scan, &item)) == 0 && item.kind != SCAN_END && !ferror(w->print.out)) {
        if (item.kind == SCAN_FRAME) {
            take_frame(w, &item.frame);
        } else if (item.kind == SCAN_DAMAGE) {
            w->damaged |= !is_noted(segment, item.offset);
            journal_print_damage(&w->print, segment->number, item.offset, item.size);
        }
    }
    return error;
}

/* A segment may go while it is looked for: a running host removes what nothing needs. */
static int walk_segment(struct log_walk *w, const struct segment *segment)
{
    struct files *files = w->store->options.files;
    char name[SEGMENT_NAME_DIGITS + sizeof SEGMENT_SUFFIX];
    struct scan scan;
    segment_name(segment->number, name);
    int fd = files->backend->open(files, w->store->directory, name, O_RDONLY, 0);
    if (fd < 0)
        return fd == -ENOENT ? 0 : fd;
    int error = scan_init(&scan, files, fd, w->store->id, segment->number, 0);
    if (error == 0) {
        error = walk_items(w, &scan, segment);
        scan_dispose(&scan);
    }
    files->backend->close(files, fd);
    return error < 0 ? cli_fail(CLI_FAILED, "segment %s cannot be read: %s", name, pure_error_text(error))
                     : 0;
}

static int walk(struct log_walk *w)
{
    int status = 0;
    for (uint32_t i = 0; i < w->store->count && status == 0; i++)
        if (seal_find_app(&w->store->segments[i]->seal, w->app))
            status = walk_segment(w, w->store->segments[i]);
    return status;
}

/* --- which app, which store --- */

struct name_search {
    const char *name;
    bool found;
};

static void look_for(void *context, const char *app)
{
    struct name_search *search = context;
    search->found |= strcmp(app, search->name) == 0;
}

/* An app of the configuration may have nothing in the store yet, one in the store may be configured no more.
 */
static bool is_known(const struct config *config, const struct store *store, const char *app)
{
    struct name_search search = {app, false};
    for (unsigned i = 0; config && i < config->app_count; i++)
        look_for(&search, config->apps[i].name);
    store_each_app(store, look_for, &search);
    return search.found;
}

static int show(const struct cli_arguments *arguments, const struct config *config, struct store *store,
                uint64_t from)
{
    const char *app = arguments->operands[0];
    if (!is_known(config, store, app))
        return cli_fail(CLI_FAILED, "the store has nothing of an app '%s'", app);
    struct log_walk w = {.print = {stdout, arguments->json, arguments->full},
                         .store = store,
                         .app = span_text(app),
                         .from = from};
    int status = walk(&w);
    if (status == 0 && (w.damaged || cli_store_degraded(store)))
        status = cli_fail(CLI_DEGRADED, "the store is degraded: pure-host fsck %s tells more",
                          store->options.path);
    return status;
}

static int open_and_show(const struct cli_arguments *arguments, const struct config *config,
                         const char *directory, const struct host_options *options, uint64_t from)
{
    struct store store;
    char why[512] = "";
    if (cli_store_open(&store, directory, options, why, sizeof why) < 0)
        return cli_fail(CLI_FAILED, "%s", why);
    int status = show(arguments, config, &store, from);
    store_close(&store);
    return status;
}

static int show_configured(const struct cli_arguments *arguments, const struct host_options *options,
                           uint64_t from)
{
    struct config config;
    int status = cli_load_config(&config, arguments->config);
    if (status != 0)
        return status;
    if (config.store_path)
        status = open_and_show(arguments, &config, config.store_path, options, from);
    else
        status = cli_fail(CLI_USAGE, "%s has store = memory: there is no journal to read", arguments->config);
    config_dispose(&config);
    return status;
}

int cli_log(const struct cli_arguments *arguments, const struct host_options *options)
{
    uint64_t from = 0;
    if (!value_is_name(arguments->operands[0], CONFIG_NAME_MAX, ""))
        return cli_fail(CLI_USAGE, "an app's name is 1 to %d letters, digits, '-' or '_'", CONFIG_NAME_MAX);
    if (arguments->from && value_count(arguments->from, &from) < 0)
        return cli_fail(CLI_USAGE, "--from %s: needs the number of an event", arguments->from);
    return arguments->store ? open_and_show(arguments, NULL, arguments->store, options, from)
                            : show_configured(arguments, options, from);
}
