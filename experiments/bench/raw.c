/* link-raw: a transport alone between two processes (experiments/raw/). Each program measures itself and says
 * what it saw in one line. A bench's kind is one of
 *
 *     "packets"   datagrams of 1400 bytes, as they pass everywhere
 *     "large"     the largest datagrams that UDP has
 *     "trips"     as "packets", one record in flight */
#include "experiments/bench/bench.h"
#include "experiments/bench/process.h"
#include "experiments/bench/text.h"

#include <string.h>
#include <unistd.h>

#define LIMIT_MS   130000 /* the programs give up before */
#define ENET_PART  8      /* ENet is given so many times fewer records, and still takes the longest */
#define TEXT_BYTES 2048

static bool is_ours(const char *variant)
{
    return strcmp(variant, "uring") == 0 || strcmp(variant, "epoll") == 0;
}

static int run_program(const char *const *argv, char *line, size_t size)
{
    struct process process;
    if (process_start(&process, argv, &(struct process_options){.pipe = true}) != 0)
        return -1;
    for (unsigned waited_ms = 0; waited_ms < LIMIT_MS && process_alive(&process); waited_ms += 5)
        pause_ms(5);
    int told = process_alive(&process) ? -1 : process_line(&process, line, size);
    int status = process_stop(&process);
    return told == 0 && status >= 0 && *line == '{' ? 0 : -1; /* what was wrong shows as not verified */
}

static void fill(struct row *row, const char *line)
{
    size_t size = strlen(line);
    row->records = text_json_number(line, size, "records");
    row->elapsed_ns = text_json_number(line, size, "elapsed_ns");
    row->cpu_ns = text_json_number(line, size, "cpu_ns");
    row->packets = text_json_number(line, size, "packets");
    row->p50_us = text_json_number(line, size, "p50_us");
    row->p99_us = text_json_number(line, size, "p99_us");
    row->verified = strstr(line, "\"verified\":true") != NULL;
}

int raw_run(const struct bench *bench, struct settings *settings, struct row *row)
{
    char program[300], bytes[16], records[24], line[TEXT_BYTES];
    bool ours = is_ours(row->variant), trips = strcmp(bench->kind, "trips") == 0;
    uint64_t count = settings->records ? settings->records : bench->records;
    if (strcmp(row->variant, "enet") == 0 && !trips)
        count = count / ENET_PART + 1;
    snprintf(program, sizeof program, "%s/bench/raw-%s", settings->build, ours ? "link" : row->variant);
    snprintf(bytes, sizeof bytes, "%u", bench->record_size);
    snprintf(records, sizeof records, "%llu", (unsigned long long)count);
    const char *datagram = strcmp(bench->kind, "large") == 0 ? "65507" : "1400";
    const char *argv[16] = {program, "-s", bytes, "-d", datagram, "-n", records};
    unsigned filled = 7;
    if (ours) {
        argv[filled++] = "-e";
        argv[filled++] = row->variant;
    }
    if (trips)
        argv[filled++] = "-l";
    if (access(program, X_OK) != 0)
        return BENCH_LEFT_OUT;
    if (run_program(argv, line, sizeof line) != 0) {
        fprintf(stderr, "bench: %s failed\n", program);
        return -1;
    }
    fill(row, line);
    return 0;
}
