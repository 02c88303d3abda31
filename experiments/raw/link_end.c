#include "experiments/raw/link_end.h"

#include "experiments/epoll/epoll.h"
#include "uring/uring.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

#define TASKS  8
#define TIMERS 8

static void fill_random(void *context, void *bytes, size_t size)
{
    (void)context;
    randombytes_buf(bytes, size);
}

const struct noise_random link_end_random = {.fill = fill_random};
struct link_keys link_keys;

static void prepare(void)
{
    if (sodium_init() < 0)
        abort();
    host_key_generate(&link_keys.sender, &link_end_random);
    host_key_generate(&link_keys.receiver, &link_end_random);
}

static int open_io(struct io **io, const char *back_end)
{
    if (strcmp(back_end, "uring") == 0)
        return uring_open(io, NULL);
    return strcmp(back_end, "epoll") == 0 ? epoll_open(io, NULL) : PE_CONFIG;
}

int link_end_open(struct link_end *end, const char *back_end)
{
    int error = open_io(&end->io, back_end);
    if (error < 0)
        return raw_failed(back_end, error);
    error = loop_init(&end->loop, end->io, TASKS, TIMERS);
    if (error == 0 && (error = log_init(&end->log, NULL, 0)) < 0)
        loop_dispose(&end->loop);
    if (error == 0)
        return 0;
    io_dispose(end->io);
    return raw_failed("loop", error);
}

static void tell_log(struct log *log)
{
    struct record_queue *lines = &log->lines;
    record_queue_see_published(lines);
    struct span line, all = record_queue_span(lines, lines->freed.bytes);
    const uint8_t *at = all.data, *end = at + all.size;
    for (size_t framed; (framed = record_get(at, end, &line)) > 0; at += framed)
        fwrite(line.data, 1, line.size, stderr);
    uint64_t dropped = counter_read(&log->dropped);
    if (dropped > 0)
        fprintf(stderr, "%llu lines more\n", (unsigned long long)dropped);
}

void link_end_close(struct link_end *end)
{
    tell_log(&end->log);
    log_dispose(&end->log);
    loop_dispose(&end->loop);
    io_dispose(end->io);
}

const struct raw_transport raw_transport = {
    .name = "link", .back_end = "uring", .prepare = prepare, .receive = link_receive, .send = link_send};
