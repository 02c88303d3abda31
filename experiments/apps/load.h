/* What an event of a measuring app costs, and who sees it count:
 *
 *     spin=20us        so much processor time of its thread an event: what interrupts it costs it nothing,
 * and how fast the processor is just then (its other half may be busy) changes nothing stall=5ms/1000   one
 * of so many events sleeps for so long meter=FILE       the counts stand in a file as well, mapped: whoever
 * maps it reads them as they are now, without asking the host, which may have no time to answer
 *
 * A time is a number and `us` or `ms`. */
#ifndef PURE_EXPERIMENTS_APPS_LOAD_H
#define PURE_EXPERIMENTS_APPS_LOAD_H

#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define LOAD_METER_BYTES 4096 /* of the file, which is there before */

/* The file's content. One writer. */
struct load_meter {
    _Atomic uint64_t records, sum;
};

struct load {
    uint64_t spin_ns;         /* an event; 0: none */
    uint64_t stall_ns;        /* of one event in `stall_each`; 0: of none */
    uint64_t stall_each;      /* > 0 */
    struct load_meter *meter; /* NULL: nobody looks */
};

/* The text behind "name=" in an app's argument, NULL if it is not there. */
static inline const char *load_option(const char *arg, const char *name)
{
    size_t length = strlen(name);
    for (const char *at = arg; (at = strstr(at, name)); at += length)
        if ((at == arg || at[-1] == ' ') && at[length] == '=')
            return at + length + 1;
    return NULL;
}

static inline uint64_t load_time_ns(const char *text, char **end)
{
    uint64_t value = strtoull(text, end, 10);
    return value * (strncmp(*end, "ms", 2) == 0 ? 1000000u : 1000u);
}

static inline uint64_t load_used_ns(void)
{
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000000000u + (uint64_t)used.tv_nsec;
}

static inline void load_work(uint64_t ns)
{
    uint64_t until_ns = load_used_ns() + ns;
    while (load_used_ns() < until_ns)
        ;
}

static inline int load_map(struct load *load, const char *from)
{
    char path[512];
    size_t length = strcspn(from, " ");
    if (length >= sizeof path)
        return -1;
    memcpy(path, from, length);
    path[length] = '\0';
    int fd = open(path, O_RDWR | O_CLOEXEC);
    void *page =
        fd < 0 ? MAP_FAILED : mmap(NULL, LOAD_METER_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    load->meter = page == MAP_FAILED ? NULL : page;
    return load->meter ? 0 : -1;
}

/* 0, or -1 with a reason in `error`. */
static inline int load_init(struct load *load, const char *arg, char *error, size_t error_size)
{
    char *end;
    const char *spin = load_option(arg, "spin"), *stall = load_option(arg, "stall");
    const char *meter = load_option(arg, "meter");
    *load = (struct load){.stall_each = 1};
    if (spin)
        load->spin_ns = load_time_ns(spin, &end);
    if (stall) {
        load->stall_ns = load_time_ns(stall, &end);
        const char *each = strchr(end, '/');
        load->stall_each = each ? strtoull(each + 1, NULL, 10) : 1;
    }
    if (load->stall_each == 0 || (meter && load_map(load, meter) != 0)) {
        snprintf(error, error_size, "stall= is as 5ms/1000, meter= is a file that is there");
        return -1;
    }
    return 0;
}

static inline void load_dispose(struct load *load)
{
    if (load->meter)
        munmap(load->meter, LOAD_METER_BYTES);
}

/* The event after which `records` events of sum `sum` have come. */
static inline void load_event(const struct load *load, uint64_t records, uint64_t sum)
{
    if (load->spin_ns > 0)
        load_work(load->spin_ns);
    if (load->stall_ns > 0 && records % load->stall_each == 0) {
        struct timespec pause = {(time_t)(load->stall_ns / 1000000000u),
                                 (long)(load->stall_ns % 1000000000u)};
        nanosleep(&pause, NULL);
    }
    if (!load->meter)
        return;
    atomic_store_explicit(&load->meter->records, records, memory_order_relaxed);
    atomic_store_explicit(&load->meter->sum, sum, memory_order_relaxed);
}

#endif
