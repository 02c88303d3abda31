#include "experiments/bench/wrk.h"

#include "experiments/bench/process.h"
#include "experiments/bench/text.h"

#include <string.h>

#define SCRIPT   "experiments/bench/post.lua"
#define LINE_MAX 512

int wrk_run(const struct settings *settings, uint16_t port, unsigned connections, const char *target,
            struct row *row, struct wrk_load *load)
{
    char url[80], duration[16], count[16], line[LINE_MAX] = "";
    snprintf(url, sizeof url, "http://127.0.0.1:%u%s", port, target);
    snprintf(duration, sizeof duration, "-d%us", settings->seconds);
    snprintf(count, sizeof count, "-c%u", connections);
    const char *argv[] = {"wrk", "-t1", count, duration, "-s", SCRIPT, url, NULL};
    struct process wrk;
    if (process_start(&wrk, argv, &(struct process_options){.pipe = true}) != 0)
        return -1;
    pause_ms(settings->seconds * 1000); /* a line is waited for only a few seconds */
    while (line[0] != '{' && process_line(&wrk, line, sizeof line) == 0)
        ;
    int status = process_wait(&wrk, &row->driver_cpu_ns);
    if (status != 0 || line[0] != '{') {
        fprintf(stderr,
                "bench: wrk failed (%d); it is run from the project's root, and needs to be installed\n",
                status);
        return -1;
    }
    size_t size = strlen(line);
    uint64_t bad = text_json_number(line, size, "bad_status");
    load->requests = text_json_number(line, size, "requests") - bad;
    load->failed = bad + text_json_number(line, size, "failed");
    row->records = load->requests;
    row->elapsed_ns = text_json_number(line, size, "duration_us") * 1000;
    row->p50_us = text_json_number(line, size, "p50_us");
    row->p99_us = text_json_number(line, size, "p99_us");
    row->max_us = text_json_number(line, size, "max_us");
    return 0;
}
