#include "experiments/bench/offering.h"

#include "experiments/bench/text.h"

#include <string.h>

#define END_MS     15000 /* beyond which a program that should have ended has not */
#define TEXT_BYTES 2048
#define PER_SECOND "50"

static int start(struct process *process, const char *const *argv, const cpu_set_t *processors)
{
    int error =
        process_start(process, argv, &(struct process_options){.pipe = true, .processors = processors});
    if (error != 0)
        fprintf(stderr, "bench: %s: %s\n", argv[0], strerror(-error));
    return error == 0 ? 0 : -1;
}

/* Its one line, when it has ended. */
static int end(struct process *process, char line[TEXT_BYTES])
{
    for (unsigned waited_ms = 0; waited_ms < END_MS && process_alive(process); waited_ms += 2)
        pause_ms(2);
    int told = process_alive(process) ? -1 : process_line(process, line, TEXT_BYTES);
    int status = process_stop(process);
    if (told == 0 && status == 0)
        return 0;
    fprintf(stderr, "bench: offer or probe failed (%d)\n", status);
    return -1;
}

int offering_start(struct process *process, const struct settings *settings, const struct offering *offering,
                   const cpu_set_t *processors)
{
    char program[300], port[16], rate[32], ms[16], places[16], depth[16], below[16];
    snprintf(program, sizeof program, "%s/bench/offer", settings->build);
    snprintf(port, sizeof port, "%u", offering->port);
    snprintf(rate, sizeof rate, "%.1f", offering->rate);
    snprintf(ms, sizeof ms, "%u", offering->ms);
    snprintf(places, sizeof places, "%u", offering->places);
    snprintf(depth, sizeof depth, "%u", offering->depth);
    snprintf(below, sizeof below, "%u", offering->nice);
    const char *argv[22] = {program,        offering->mode, "-p",   port, "-r",  rate, "-t",  ms,  "-a",
                            offering->apps, "-c",           places, "-d", depth, "-n", below, NULL};
    if (offering->keys)
        memcpy(&argv[16], (const char *[]){"-k", offering->keys, "-R", offering->receiver}, 4 * sizeof *argv);
    return start(process, argv, processors);
}

int offering_end(struct process *process, struct offered *offered)
{
    char line[TEXT_BYTES], name[32];
    if (end(process, line) != 0)
        return -1;
    size_t size = strlen(line);
#define NUMBER(field) offered->field = text_json_number(line, size, #field)
    NUMBER(offered);
    NUMBER(dropped);
    NUMBER(sent);
    NUMBER(accepted);
    NUMBER(sum);
    NUMBER(lost);
    NUMBER(unanswered);
    NUMBER(refused);
    NUMBER(failed);
    NUMBER(p50_us);
    NUMBER(p99_us);
    NUMBER(max_us);
#undef NUMBER
    offered->seconds = (double)text_json_number(line, size, "ns") / 1e9;
    for (unsigned i = 0; i < OFFERING_APPS; i++) {
        snprintf(name, sizeof name, "offered_%u", i);
        offered->app_offered[i] = text_json_number(line, size, name);
        snprintf(name, sizeof name, "accepted_%u", i);
        offered->app_accepted[i] = text_json_number(line, size, name);
    }
    return 0;
}

int health_start(struct process *process, const struct settings *settings, uint16_t port, unsigned ms,
                 const cpu_set_t *processors)
{
    char program[300], to[16], time[16];
    snprintf(program, sizeof program, "%s/bench/probe", settings->build);
    snprintf(to, sizeof to, "%u", port);
    snprintf(time, sizeof time, "%u", ms);
    const char *argv[] = {program, to, PER_SECOND, time, NULL};
    return start(process, argv, processors);
}

int health_end(struct process *process, struct health *health)
{
    char line[TEXT_BYTES];
    if (end(process, line) != 0)
        return -1;
    size_t size = strlen(line);
    health->new_p50_us = text_json_number(line, size, "new_p50_us");
    health->new_p99_us = text_json_number(line, size, "new_p99_us");
    health->kept_p50_us = text_json_number(line, size, "kept_p50_us");
    health->kept_p99_us = text_json_number(line, size, "kept_p99_us");
    health->failed = text_json_number(line, size, "new_failed") + text_json_number(line, size, "kept_failed");
    return 0;
}
