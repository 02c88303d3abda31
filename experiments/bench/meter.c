#include "experiments/bench/meter.h"

#include "experiments/apps/load.h"
#include "experiments/bench/process.h"

#include <errno.h>

#define STILL_MS 50
#define MOST_MS  3000

int meter_open(struct meter *meter, const struct settings *settings, const char *name)
{
    snprintf(meter->path, sizeof meter->path, "%s/%s.meter", settings->run, name);
    meter->page = NULL;
    int fd = open(meter->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    void *page = MAP_FAILED;
    if (fd >= 0 && ftruncate(fd, LOAD_METER_BYTES) == 0)
        page = mmap(NULL, LOAD_METER_BYTES, PROT_READ, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    if (page == MAP_FAILED) {
        fprintf(stderr, "bench: %s: %s\n", meter->path, strerror(errno));
        return -1;
    }
    meter->page = page;
    return 0;
}

void meter_close(struct meter *meter)
{
    if (meter->page)
        munmap((void *)(uintptr_t)meter->page, LOAD_METER_BYTES);
    meter->page = NULL;
}

struct count meter_read(const struct meter *meter)
{
    return (struct count){atomic_load_explicit(&meter->page->records, memory_order_relaxed),
                          atomic_load_explicit(&meter->page->sum, memory_order_relaxed)};
}

struct count meter_settled(const struct meter *meter)
{
    struct count last = meter_read(meter);
    for (unsigned still = 0, waited = 0; still < STILL_MS && waited < MOST_MS; waited += 5) {
        pause_ms(5);
        struct count now = meter_read(meter);
        still = now.records == last.records && now.sum == last.sum ? still + 5 : 0;
        last = now;
    }
    return last;
}
