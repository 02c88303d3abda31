/* `pure-host dead`: the records that receivers always refuse, as a running host has set them aside. */
#include "host/cli_commands.h"

#include "host/cli_json.h"
#include "host/cli_running.h"
#include "host/cli_time.h"
#include "host/config_values.h"

#include <stdio.h>
#include <stdlib.h>

struct dead_range {
    const char *text;     /* as given, or "all": what the host is asked for */
    uint64_t first, last; /* numbers: 1 <= first <= last */
    bool all;
};

/* "N", "N-M" or "all". */
static int read_range(const char *text, struct dead_range *range)
{
    char first[24];
    const char *dash = strchr(text, '-'), *last = dash ? dash + 1 : text;
    size_t size = dash ? (size_t)(dash - text) : strlen(text);
    *range = (struct dead_range){text, 1, UINT64_MAX, strcmp(text, "all") == 0};
    if (range->all)
        return 0;
    snprintf(first, sizeof(first), "%.*s", (int)min_size(size, sizeof(first)), text);
    if (size >= sizeof(first) || value_count(first, &range->first) < 0 ||
        value_count(last, &range->last) < 0 || range->first == 0 || range->last < range->first)
        return cli_fail(CLI_USAGE, "'%s' is no range: write a number, two as in 5-9, or all", text);
    return 0;
}

/* --- list --- */

static void print_row(struct span dead, uint64_t number)
{
    uint64_t time_ms = 0, bytes = 0;
    char time[CLI_TIME_TEXT], reason[300] = "";
    struct span text;
    cli_json_number(dead, "time_ms", &time_ms);
    cli_json_number(dead, "bytes", &bytes);
    if (cli_json_member(dead, "reason", &text))
        cli_json_text(text, reason, sizeof(reason));
    printf("%-12llu %-*s %10llu  %s\n", (unsigned long long)number, CLI_TIME_WIDTH,
           cli_time_text(time, time_ms), (unsigned long long)bytes, reason);
}

struct listing {
    struct dead_range range;
    uint64_t next; /* the first number that is not shown yet */
    unsigned shown;
    bool json, more;
};

static void print_dead(struct listing *l, struct span dead, uint64_t number)
{
    if (l->shown++ == 0 && !l->json)
        printf("%-12s %-*s %10s  %s\n", "NUMBER", CLI_TIME_WIDTH, "SET ASIDE", "BYTES", "REASON");
    if (l->json)
        printf("%.*s\n", (int)dead.size, (const char *)dead.data);
    else
        print_row(dead, number);
}

/* One page. PE_MALFORMED: it is none, or does not go on where the last one ended. */
static int show_page(struct listing *l, struct span page)
{
    struct span dead, name, more, one;
    uint64_t number;
    if (!cli_json_member(page, "dead", &dead) || !cli_json_member(page, "more", &more))
        return PE_MALFORMED;
    l->more = span_is(more, "true");
    struct cli_json_items items = cli_json_items(dead);
    unsigned count = 0;
    for (; cli_json_next(&items, &name, &one); count++) {
        if (cli_json_number(one, "number", &number) < 0 || number < l->next || number == UINT64_MAX)
            return PE_MALFORMED;
        if (number > l->range.last) {
            l->more = false;
            return 0;
        }
        print_dead(l, one, number);
        l->next = number + 1;
    }
    l->more = l->more && l->next <= l->range.last;
    return l->more && count == 0 ? PE_MALFORMED : 0;
}

static int list(struct cli_running *running, const char *output, const struct dead_range *range, bool json)
{
    struct listing l = {.range = *range, .next = range->first, .json = json, .more = true};
    int status = 0;
    while (status == 0 && l.more) {
        char path[CLI_PATH_MAX];
        struct cli_reply reply;
        struct span page;
        snprintf(path, sizeof(path), "/outputs/%s/dead?from=%llu", output, (unsigned long long)l.next);
        status = cli_ask(running, "GET", path, "", &reply, &page);
        if (status != 0)
            break;
        if (show_page(&l, page) < 0)
            status = cli_fail(CLI_FAILED, "the host's answer is not a list of dead letters");
        free(reply.body);
    }
    if (status == 0 && l.shown == 0 && !json)
        printf("%s has no dead letters%s%s\n", output, range->all ? "" : " in ",
               range->all ? "" : range->text);
    return status;
}

/* --- replay, drop --- */

/* What was done so far. A host does a part of a large range at a time, and says where the next begins. */
struct change {
    const char *path, *done; /* `done`: what the host calls the number of those it changed */
    uint64_t count, failed;
    uint64_t next; /* 0: all is done */
};

static int change_part(struct cli_running *running, struct change *c, const char *range)
{
    struct cli_reply reply;
    struct span answer, failed, name, one;
    uint64_t count, from = c->next;
    int status = cli_ask(running, "POST", c->path, range, &reply, &answer);
    if (status != 0)
        return status;
    c->next = 0;
    if (cli_json_number(answer, c->done, &count) < 0)
        status = cli_fail(CLI_FAILED, "the host's answer does not say how many were %s", c->done);
    else if (cli_json_member(answer, "next", &name) &&
             (cli_json_number(answer, "next", &c->next) < 0 || c->next <= from))
        status = cli_fail(CLI_FAILED, "the host's answer does not go on");
    else
        c->count += count;
    if (status == 0 && cli_json_member(answer, "failed", &failed)) {
        struct cli_json_items items = cli_json_items(failed);
        for (; cli_json_next(&items, &name, &one); c->failed++)
            cli_fail(CLI_FAILED, "%.*s could not be %s: see the host's log", (int)one.size,
                     (const char *)one.data, c->done);
    }
    free(reply.body);
    return status;
}

static int change(struct cli_running *running, const char *output, const struct dead_range *range,
                  const char *verb, const char *done)
{
    char path[CLI_PATH_MAX], rest[48];
    struct change c = {.path = path, .done = done};
    snprintf(path, sizeof(path), "/outputs/%s/dead/%s", output, verb);
    int status = change_part(running, &c, range->text);
    while (status == 0 && c.next > 0 && c.next <= range->last) {
        snprintf(rest, sizeof(rest), "%llu-%llu", (unsigned long long)c.next,
                 (unsigned long long)range->last);
        status = change_part(running, &c, rest);
    }
    if (status == 0 && c.count + c.failed == 0 && !range->all)
        return cli_fail(CLI_FAILED, "%s has no dead letters in %s: see pure-host dead list%s %s", output,
                        range->text, running->options, output);
    if (status == 0 || c.count > 0)
        printf("%llu %s\n", (unsigned long long)c.count, done);
    return c.failed > 0 ? CLI_FAILED : status;
}

enum dead_verb { DEAD_LIST, DEAD_REPLAY, DEAD_DROP, DEAD_VERBS };

/* The verb, or DEAD_VERBS, the reason having been said. */
static enum dead_verb read_verb(const char *text)
{
    static const char *const verbs[] = {[DEAD_LIST] = "list", [DEAD_REPLAY] = "replay", [DEAD_DROP] = "drop"};
    for (unsigned i = 0; i < DEAD_VERBS; i++)
        if (strcmp(text, verbs[i]) == 0)
            return (enum dead_verb)i;
    const char *near = nearest_name(text, verbs, DEAD_VERBS);
    if (near)
        cli_fail(CLI_USAGE, "unknown 'dead %s': did you mean 'dead %s'?", text, near);
    else
        cli_fail(CLI_USAGE, "unknown 'dead %s': known are list, replay and drop", text);
    return DEAD_VERBS;
}

int cli_dead(const struct cli_arguments *arguments, const struct host_options *options)
{
    (void)options;
    const char *output = arguments->operands[1];
    const char *given = arguments->operand_count > 2 ? arguments->operands[2] : NULL;
    struct dead_range range;
    struct cli_running running;
    enum dead_verb verb = read_verb(arguments->operands[0]);
    if (verb == DEAD_VERBS || !cli_is_output(output))
        return CLI_USAGE;
    if (verb == DEAD_DROP && !given)
        return cli_fail(CLI_USAGE,
                        "dead drop needs a range: what is dropped is gone: write a number, two as in "
                        "5-9, or all");
    int status = read_range(given ? given : "all", &range);
    if (status != 0)
        return status;
    status = cli_find_running(&running, arguments);
    if (status == 0 && verb == DEAD_LIST)
        status = list(&running, output, &range, arguments->json);
    else if (status == 0)
        status = change(&running, output, &range, arguments->operands[0],
                        verb == DEAD_REPLAY ? "replayed" : "dropped");
    cli_forget_running(&running);
    return status;
}
