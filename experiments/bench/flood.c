#include "experiments/bench/flood.h"

#include "experiments/common/listener.h"

#include <signal.h>
#include <unistd.h>

#define PACKETS_S       "100000"
#define PACKETS_S_LEAST 95000u
#define ANSWER_SHARE    3 /* of what was sent, at most one part in so many may be answered */

int flood_start(struct flood *flood, const struct settings *settings, uint16_t port)
{
    char program[300], to[8], line[64];
    flood->process = (struct process){.out = -1};
    flood->elsewhere = port ? -1 : listener_datagrams();
    if (!port && flood->elsewhere >= 0)
        port = listener_port(flood->elsewhere);
    snprintf(program, sizeof program, "%s/bench/flooder", settings->build);
    snprintf(to, sizeof to, "%u", port);
    const char *argv[] = {program, to, PACKETS_S, NULL};
    if (process_start(&flood->process, argv, &(struct process_options){.pipe = true}) == 0 &&
        process_line(&flood->process, line, sizeof line) == 0)
        return 0;
    fprintf(stderr, "bench: %s does not start\n", program);
    return -1;
}

static void judge(const char *line, struct row *row)
{
    unsigned long long sent, bytes, answered, ns;
    if (sscanf(line, "sent %llu bytes %llu answered %llu ns %llu", &sent, &bytes, &answered, &ns) != 4 ||
        ns == 0) {
        fprintf(stderr, "bench: the flooder does not say what it has sent\n");
        row->verified = false;
        return;
    }
    row->garbage_s = (uint64_t)((double)sent * 1e9 / (double)ns);
    if (row->garbage_s >= PACKETS_S_LEAST && answered <= bytes / ANSWER_SHARE)
        return;
    fprintf(stderr, "bench: the flooder sent %llu datagrams a second and %llu bytes, %llu were answered\n",
            (unsigned long long)row->garbage_s, bytes, answered);
    row->verified = false;
}

void flood_stop(struct flood *flood, struct row *row)
{
    char line[160] = "";
    if (flood->process.pid > 0) {
        if (!process_alive(&flood->process)) {
            fprintf(stderr, "bench: the flooder ended before the run did\n");
            row->verified = false;
        }
        kill(flood->process.pid, SIGTERM);
        process_line(&flood->process, line, sizeof line);
        judge(line, row);
        process_stop(&flood->process);
    }
    if (flood->elsewhere >= 0)
        close(flood->elsewhere);
    flood->elsewhere = -1;
}
