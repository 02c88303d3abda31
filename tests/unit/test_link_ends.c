/* Both ends of links over a network that fails them in every way: every record once and in order, memory and
 * traffic within bounds. See link_ends.h. */
#include "link_ends.h"

static void records_arrive_over_a_fair_path(void **state)
{
    (void)state;
    struct world *w = world_new(1, 1, 1, 20000);
    world_start(w);
    uint64_t start_ns = w->now_ns;
    assert_true(world_run(w, w->now_ns + 60 * NS_PER_S));
    printf("20000 records, %.0f ms, %lu datagrams there, %lu back\n", (double)(w->now_ns - start_ns) / 1e6,
           w->sent_there, w->sent_back);
    world_free(w);
}

/* --- the storm: everything at once, by the seed --- */

static struct weather bad_weather(struct random *r)
{
    static const unsigned losses[] = {0, 10, 50, 150, 300};
    static const uint64_t rates[] = {100000, 1000000, 12500000, 125000000};
    struct weather weather = {.loss = losses[random_below(r, ARRAY_SIZE(losses))],
                              .duplicate = (unsigned)random_below(r, 3) * 50,
                              .corrupt = (unsigned)random_below(r, 3) * 20,
                              .delay_ns = (1 + random_below(r, 10) * random_below(r, 30)) * NS_PER_MS,
                              .bytes_s = rates[random_below(r, ARRAY_SIZE(rates))],
                              .mtu = 1200 + (uint32_t)random_below(r, 3) * 700,
                              .icmp = random_below(r, 2)};
    weather.jitter_ns = random_below(r, 2) * random_below(r, 20 * NS_PER_MS);
    weather.queue_bytes = 20000 + random_below(r, 200000);
    return weather;
}

/* One fault now, that may last for some time. */
static void fault(struct world *w, struct random *r)
{
    struct world_sender *s = &w->senders[random_below(r, w->sender_count)];
    switch (random_below(r, 9)) {
    case 0:
        s->nat_port = ++s->port;
        break;
    case 1:
        s->nat_dead = true;
        break;
    case 2:
        w->there.weather.blocked = !w->there.weather.blocked;
        break;
    case 3:
        w->back.weather.blocked = !w->back.weather.blocked;
        break;
    case 4:
        world_restart_receiver(w);
        break;
    case 5:
        world_restart_sender(w, (unsigned)(s - w->senders));
        break;
    case 6:
        w->there.weather.mtu = 1200 + (uint32_t)random_below(r, 600);
        break;
    case 7:
        w->consumer_full = !w->consumer_full;
        break;
    default:
        w->there.weather = bad_weather(r);
        w->back.weather = bad_weather(r);
    }
}

static void weather_clears(struct world *w)
{
    w->there.weather.blocked = w->back.weather.blocked = w->consumer_full = false;
}

#define STORM_RECORDS 1500

static uint64_t storm(uint64_t seed, bool tell)
{
    struct random r = {seed * 77 + 5};
    struct world *w = world_new(seed, 1 + (unsigned)random_below(&r, WORLD_SENDERS),
                                1 + (unsigned)random_below(&r, WORLD_OUTPUTS), STORM_RECORDS);
    w->max_record = 1000 + (uint32_t)random_below(&r, 4) * 5000;
    w->there.weather = bad_weather(&r);
    w->back.weather = bad_weather(&r);
    world_start(w);
    uint64_t start_ns = w->now_ns, faults = random_below(&r, 12), fault_ns = w->now_ns;
    while (faults-- > 0) {
        fault_ns += random_below(&r, 8 * NS_PER_S);
        if (world_run(w, fault_ns))
            break;
        fault(w, &r);
    }
    weather_clears(w);
    uint64_t cleared_ns = w->now_ns;
    bool done = world_run(w, w->now_ns + 1200 * NS_PER_S);
    uint64_t took_ns = w->now_ns - start_ns, needed = w->bytes_there / 1200;
    if (tell || !done)
        printf("seed %lu: %s after %.1f s, %.1f s after the last fault; %lu datagrams there, %lu back\n",
               seed, done ? "done" : "NOT DONE", (double)took_ns / 1e9,
               (double)(w->now_ns - cleared_ns) / 1e9, w->sent_there, w->sent_back);
    if (!done)
        world_print(w);
    assert_true(done);
    (void)needed;
    world_free(w);
    return took_ns;
}

static uint64_t first_seed = 0, seeds = 200;

static void in_a_storm_every_record_arrives_once_in_order(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed; seed < first_seed + seeds; seed++)
        storm(seed, seeds <= 50);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        first_seed = strtoull(argv[1], NULL, 10);
    if (argc > 1)
        seeds = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records_arrive_over_a_fair_path),
        cmocka_unit_test(in_a_storm_every_record_arrives_once_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
