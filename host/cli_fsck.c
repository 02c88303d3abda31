/* `pure-host fsck`: every byte of a store. */
#include "host/cli_commands.h"

#include "host/cli_store.h"
#include "journal/fsck.h"

#include <inttypes.h>
#include <stdio.h>

static void print_line(void *context, const char *text)
{
    (void)context;
    puts(text);
}

static bool is_damaged(const struct fsck_report *r)
{
    return r->damaged_places + r->wrong_seals + r->wrong_frames + r->lost_commits + r->lost_records > 0;
}

static void print_count(const char *what, uint64_t count)
{
    if (count > 0)
        printf("%s: %" PRIu64 "\n", what, count);
}

static void print_report(const struct fsck_report *r)
{
    printf("%" PRIu64 " %s, %" PRIu64 " bytes, %" PRIu64 " %s\n", r->segments,
           r->segments == 1 ? "segment" : "segments", r->bytes, r->frames,
           r->frames == 1 ? "frame" : "frames");
    if (r->damaged_places > 0)
        printf("damaged: %" PRIu64 " bytes in %" PRIu64 " %s\n", r->damaged_bytes, r->damaged_places,
               r->damaged_places == 1 ? "place" : "places");
    print_count("frames whose records are not whole", r->wrong_frames);
    print_count("segments that say wrongly what is in them", r->wrong_seals);
    print_count("commits lost", r->lost_commits);
    print_count("records lost", r->lost_records);
    print_count("losses that no damage explains: a segment is missing", r->unexplained);
    print_count("places of damage noted before", r->known_places);
    if (r->torn_segments > 0)
        printf("writes that were not finished: %" PRIu64 ", %" PRIu64
               " bytes; nothing of them was acknowledged\n",
               r->torn_segments, r->torn_bytes);
    print_count("files that are none of the store's", r->foreign_files);
}

/* `error`: PE_JOURNAL or 0. */
static int finish(const char *directory, bool repair, int error, const struct fsck_report *report)
{
    print_report(report);
    if (error == 0) {
        puts(is_damaged(report) ? "repaired" : "clean");
        return CLI_DONE;
    }
    if (repair)
        return cli_fail(CLI_DEGRADED, "%s: it could not be repaired in full", directory);
    return cli_fail(CLI_DEGRADED, "%s is damaged: %s", directory,
                    report->running ? "end the host that runs with it, then pure-host fsck --repair"
                                    : "pure-host fsck --repair makes it clean");
}

int cli_fsck(const struct cli_arguments *arguments, const struct host_options *options)
{
    const char *directory = arguments->operands[0];
    struct fsck_report report = {0};
    int error = fsck_store(cli_files(options), directory, arguments->repair, print_line, NULL, &report);
    if (error == 0 && report.segments == 0)
        return cli_fail(CLI_FAILED, "%s: there is no store: not one segment", directory);
    if (error == 0 || error == PE_JOURNAL)
        return finish(directory, arguments->repair, error, &report);
    if (error == PE_JOURNAL_LOCKED)
        return cli_fail(CLI_FAILED, "%s: a running host has it open: end the host first", directory);
    return cli_fail(CLI_FAILED, "%s cannot be examined: %s", directory, pure_error_text(error));
}
