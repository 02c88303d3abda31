/* Plays the server replies of a JSONL file to a wire (docs/runners.md has the format):
 *
 *     build/tests/replies [--splits] [--live] FILE.jsonl
 *
 * A row's reply answers the wire's first request. Its second request comes on whatever connection the wire
 * would use, and has to get its own answer. */
#include "tests/runners/replies_live.h"
#include "tests/runners/replies_sim.h"

#define EVERY_BYTE_MAX 1200 /* bytes of replies that are sent byte by byte, too */

struct run {
    bool splits, live;
    unsigned passed, failed;
};

static struct reply_row read_row(const struct row *row)
{
    static const char *const expectations[] = {"reject", "accept"};
    struct reply_row r = {.id = row_text(row, "id"),
                          .name = row_text(row, "name"),
                          .accept = row_choice(row, "expect", expectations, 2),
                          .status = (unsigned)row_number(row, "status"),
                          .body_bytes = row_number(row, "body_len"),
                          .server_closes = row_flag(row, "server_closes")};
    r.says_reuse = row_has(row, "reuse");
    r.reuse = r.says_reuse && row_flag(row, "reuse");
    row_digest(row, "body_sha256", r.body_digest);
    r.reply = row_bytes(row, "reply_b64");
    return r;
}

/* Plays it one way; what went wrong in `why`. */
static bool play(const struct run *run, const struct reply_row *row, const struct cut *cut, char *why,
                 size_t size)
{
    struct played played;
    struct seen seen;
    if (run->live)
        play_live(row, &played, &seen);
    else
        play_simulated(row, cut, &played, &seen);
    return played_right(row, &played, why, size);
}

static bool play_splits(const struct run *run, const struct reply_row *row, char *why, size_t size)
{
    struct cut cut = {.every = true};
    if (row->reply.size <= EVERY_BYTE_MAX && !play(run, row, &cut, why, size)) {
        snprintf(why + strlen(why), size - strlen(why), " (byte by byte)");
        return false;
    }
    cut.every = false;
    for (size_t i = 0; (cut.at = row_cut(row->reply.size, i)) > 0; i++) {
        if (!play(run, row, &cut, why, size)) {
            snprintf(why + strlen(why), size - strlen(why), " (cut after %zu bytes)", cut.at);
            return false;
        }
    }
    return true;
}

static void run_row(const struct row *json, void *context)
{
    struct run *run = context;
    struct reply_row row = read_row(json);
    const struct cut whole = {.at = 0};
    char why[300];
    bool right = play(run, &row, &whole, why, sizeof why - 40) &&
                 (!run->splits || play_splits(run, &row, why, sizeof why));
    if (!right)
        printf("FAILED  %s: %s (%s)\n", row.id, why, row.name);
    run->passed += right;
    run->failed += !right;
    free((void *)(uintptr_t)row.reply.data);
}

static const char *parse_arguments(int argc, char **argv, struct run *run)
{
    const char *file = NULL;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--splits") == 0)
            run->splits = true;
        else if (strcmp(argv[i], "--live") == 0)
            run->live = true;
        else if (argv[i][0] != '-' && !file)
            file = argv[i];
        else
            return NULL;
    }
    return run->splits && run->live ? NULL : file; /* real networks cut where they like */
}

int main(int argc, char **argv)
{
    struct run run = {0};
    const char *file = parse_arguments(argc, argv, &run);
    if (!file || sodium_init() < 0) {
        fprintf(stderr, "replies [--splits | --live] FILE.jsonl\n");
        return 2;
    }
    rows_run(file, run_row, &run);
    printf("%u passed, %u failed\n", run.passed, run.failed);
    return run.failed > 0;
}
