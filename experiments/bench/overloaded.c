#include "experiments/bench/overload.h"

#include <string.h>

/* The peers that offer over links, each with a key of its own. */
static int configure_peers(struct overloaded *o)
{
    size_t used = 0;
    for (unsigned i = 0; i < PEERS; i++) {
        char file[600], public_key[64];
        snprintf(file, sizeof file, "%s.peer%u.key", o->host.config, i);
        if (host_key_file(o->settings, file, public_key) != 0)
            return -1;
        fprintf(o->host.text, "\n[peer p%u]\nkey = %s\napps = d1\n", i, public_key);
        used += (size_t)snprintf(o->keys + used, sizeof o->keys - used, "%s%s", i ? "," : "", file);
        if (used >= sizeof o->keys)
            return -1;
    }
    return 0;
}

static int configure(struct overloaded *o, const char *name, const char *without, bool fast)
{
    bool link = strcmp(o->way->mode, "link") == 0;
    char arg[600];
    if (host_configure(&o->host, o->settings, name) != 0 || meter_open(&o->meter, o->settings, name) != 0)
        return -1;
    o->host.processors = &o->processors.host;
    if (without)
        fprintf(o->host.text, "without = %s\n", without);
    if (link && host_link(&o->host, o->settings, "127.0.0.1") != 0)
        return -1;
    snprintf(arg, sizeof arg, "spin=%uus meter=%s", fast ? 0 : o->way->spin_us, o->meter.path);
    host_app(&o->host, o->settings, "d1", "dst", arg);
    fprintf(o->host.text, "inbox  = 256K\n");
    return link ? configure_peers(o) : 0;
}

int overloaded_start(struct overloaded *o, const struct settings *settings, const struct way_in *way,
                     const char *name, const char *without, bool fast)
{
    o->settings = settings;
    o->way = way;
    o->meter.page = NULL;
    o->host.process.pid = 0;
    processors_split(&o->processors);
    return configure(o, name, without, fast) == 0 ? host_start(&o->host, settings, "uring", NULL) : -1;
}

int overloaded_stop(struct overloaded *o)
{
    meter_close(&o->meter);
    return host_stop(&o->host);
}

static struct offering offering_of(const struct overloaded *o, const struct point *point)
{
    bool link = strcmp(o->way->mode, "link") == 0;
    return (struct offering){.mode = o->way->mode,
                             .port = link ? o->host.link_port : o->host.port,
                             .rate = point->rate,
                             .ms = point->settle_ms + point->count_ms,
                             .apps = "d1",
                             .places = o->way->places,
                             .depth = o->way->depth,
                             .nice = 5, /* the probe runs beside it */
                             .keys = link ? o->keys : NULL,
                             .receiver = o->host.public_key};
}

/* Nothing twice, and nothing that is not there: the app has what was told to be stored, and at most what was
 * unanswered besides. */
static bool right(struct count before, struct count after, const struct offered *offered)
{
    uint64_t came = after.records - before.records, sum = after.sum - before.sum;
    if (came >= offered->accepted && came <= offered->accepted + offered->unanswered &&
        (offered->unanswered > 0 || sum == offered->sum))
        return true;
    fprintf(stderr,
            "bench: the app has %llu, sum %llu; told to be stored were %llu, sum %llu, and %llu unanswered\n",
            (unsigned long long)came, (unsigned long long)sum, (unsigned long long)offered->accepted,
            (unsigned long long)offered->sum, (unsigned long long)offered->unanswered);
    return false;
}

/* The time that is counted. */
static int count(struct overloaded *o, const struct point *point, struct process *probe, struct seen *seen)
{
    struct shares before = processors_shares(&o->host.process), after;
    uint64_t start_ns = monotonic_ns(), from = meter_read(&o->meter).records;
    if (point->probed &&
        health_start(probe, o->settings, o->host.port, point->count_ms, &o->processors.others) != 0)
        return -1;
    pause_ms(point->count_ms);
    seen->delivered = meter_read(&o->meter).records - from;
    seen->elapsed_ns = monotonic_ns() - start_ns;
    seen->delivered_s = (double)seen->delivered * 1e9 / (double)seen->elapsed_ns;
    after = processors_shares(&o->host.process);
    seen->shares =
        (struct shares){after.front - before.front, after.listen - before.listen,
                        after.owners - before.owners, after.send - before.send, after.others - before.others};
    return 0;
}

int overloaded_point(struct overloaded *o, const struct point *point, struct seen *seen)
{
    struct offering offering = offering_of(o, point);
    struct process offer, probe = {.out = -1};
    struct count before = meter_settled(&o->meter);
    *seen = (struct seen){.verified = false};
    if (offering_start(&offer, o->settings, &offering, &o->processors.others) != 0)
        return -1;
    pause_ms(point->settle_ms);
    int error = count(o, point, &probe, seen);
    if (probe.pid > 0 && health_end(&probe, &seen->health) != 0)
        error = -1;
    if (offering_end(&offer, &seen->offered) != 0)
        error = -1;
    seen->verified = error == 0 && right(before, meter_settled(&o->meter), &seen->offered);
    return error;
}
