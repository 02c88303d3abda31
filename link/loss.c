#include "link/loss.h"

#define PERSISTENT_PTOS 3 /* RFC 9002 section 7.6.1: kPersistentCongestionThreshold */

void loss_init(struct loss *l)
{
    *l = (struct loss){
        .packet_threshold = LOSS_PACKET_THRESHOLD, .time_eighths = LOSS_TIME_EIGHTHS, .loss_ns = NEVER};
    rtt_init(&l->rtt);
}

/* --- acknowledged --- */

/* The packets of one range that are outstanding. */
static void take_acked(struct sent *s, struct range range, struct sent_run *run,
                       const struct sent_handler *handler, const struct loss_watch *watch,
                       struct loss_report *report)
{
    for (uint64_t number = max_u64(range.start, s->first); number < range.end; number++) {
        struct sent_packet *packet = sent_at(s, number);
        if (!packet->outstanding)
            continue;
        packet->acked = true;
        report->acked_packets++;
        report->acked_bytes += packet->bytes;
        report->acked_newest_sent_ns = packet->sent_ns;
        report->largest_newly_acked = number;
        if (watch)
            watch->acked(watch->context, number, packet);
        sent_take(s, packet, run, handler->acked, handler->context);
    }
}

static void remember_lost(struct loss *l, uint64_t number, bool by_time)
{
    struct loss_memory *memory = &l->lost[l->lost_next];
    l->lost_next = (l->lost_next + 1) % LOSS_REMEMBERED;
    l->lost_live += !memory->live;
    *memory = (struct loss_memory){number, true, by_time};
}

/* A packet declared lost had only been overtaken: whichever threshold was wrong grows beyond what it saw. */
static void tolerate(struct loss *l, const struct loss_memory *memory)
{
    if (memory->by_time) {
        l->time_eighths += l->time_eighths < LOSS_TIME_EIGHTHS_MAX;
        return;
    }
    uint64_t overtaken = l->largest_acked - memory->number; /* largest_acked is one more than the number */
    l->packet_threshold =
        (uint32_t)min_u64(max_u64(l->packet_threshold, overtaken), LOSS_PACKET_THRESHOLD_MAX);
}

/* Looks for packets declared lost among `range` (newest first). Both ascend as they are walked here. */
static uint32_t find_spurious(struct loss *l, const struct range *range, uint32_t ranges)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < LOSS_REMEMBERED && ranges > 0 && l->lost_live > 0; i++) {
        struct loss_memory *memory = &l->lost[(l->lost_next + i) % LOSS_REMEMBERED];
        if (!memory->live)
            continue;
        while (ranges > 0 && range[ranges - 1].end <= memory->number)
            ranges--;
        if (ranges == 0 || range[ranges - 1].start > memory->number)
            continue;
        tolerate(l, memory);
        memory->live = false;
        l->lost_live--;
        found++;
    }
    return found;
}

/* --- lost --- */

/* An unbroken row of lost packets: RFC 9002 section 7.6.2. */
struct lost_row {
    uint64_t since_ns; /* when its first left; NEVER while there is none */
    uint64_t longest_ns;
};

static void lengthen_row(struct lost_row *row, const struct loss *l, const struct sent_packet *packet)
{
    if (packet->sent_ns < l->rtt.first_at_ns)
        return;
    row->since_ns = min_u64(row->since_ns, packet->sent_ns);
    row->longest_ns = max_u64(row->longest_ns, packet->sent_ns - row->since_ns);
}

static void take_lost(struct loss *l, struct sent *s, uint64_t number, bool by_time, struct sent_run *run,
                      const struct sent_handler *handler, const struct loss_watch *watch,
                      struct loss_report *report)
{
    struct sent_packet *packet = sent_at(s, number);
    if (!packet->mtu_probe) {
        remember_lost(l, number, by_time);
        report->lost_packets++;
        report->lost_bytes += packet->bytes;
        report->lost_newest_sent_ns = packet->sent_ns;
    }
    if (watch)
        watch->lost(watch->context, number, packet);
    sent_take(s, packet, run, handler->lost, handler->context);
}

static uint64_t late_after_ns(const struct loss *l)
{
    uint64_t rtt_ns = max_u64(l->rtt.latest_ns, l->rtt.smoothed_ns);
    return max_u64(rtt_ns / 8 * l->time_eighths, RTT_GRANULARITY_NS);
}

/* Declares lost what the thresholds say, oldest first. Each packet before one that is lost has left earlier
 * and is further behind, so that the first that is not lost ends it, and is the next to be late. */
static void detect_lost(struct loss *l, struct sent *s, uint64_t now_ns, const struct sent_handler *handler,
                        const struct loss_watch *watch, struct loss_report *report)
{
    uint64_t late_ns = late_after_ns(l);
    struct lost_row row = {NEVER, 0};
    struct sent_run run = {.any = false};
    l->loss_ns = NEVER;
    for (uint64_t number = s->first; number < l->largest_acked; number++) {
        const struct sent_packet *packet = sent_at(s, number);
        if (packet->acked)
            row.since_ns = NEVER;
        if (!packet->outstanding)
            continue;
        bool behind = number + l->packet_threshold < l->largest_acked;
        if (!behind && packet->sent_ns + late_ns > now_ns) {
            l->loss_ns = packet->sent_ns + late_ns;
            break;
        }
        if (!packet->mtu_probe)
            lengthen_row(&row, l, packet);
        take_lost(l, s, number, !behind, &run, handler, watch, report);
    }
    sent_run_end(&run, handler->lost, handler->context);
    report->persistent = row.longest_ns > PERSISTENT_PTOS * rtt_pto_ns(&l->rtt, LOSS_MAX_ACK_DELAY_NS);
    sent_advance(s);
}

/* --- what the owner calls --- */

static void sample_rtt(struct loss *l, const struct frame_ack *ack, uint64_t now_ns,
                       struct loss_report *report)
{
    if (report->acked_packets == 0 || report->largest_newly_acked != ack->largest)
        return;
    uint64_t delay_ns = min_u64(ack->delay_us, LOSS_MAX_ACK_DELAY_NS / NS_PER_US) * NS_PER_US;
    rtt_sample(&l->rtt, now_ns - report->acked_newest_sent_ns, delay_ns, LOSS_MAX_ACK_DELAY_NS, now_ns);
    report->rtt_sampled = true;
}

int loss_acked(struct loss *l, struct sent *s, const struct frame_ack *ack, uint64_t now_ns,
               const struct sent_handler *handler, const struct loss_watch *watch, struct loss_report *report)
{
    *report = (struct loss_report){.in_flight_before = s->bytes_in_flight};
    if (ack->largest >= s->next)
        return PE_MALFORMED;
    struct range range[FRAME_ACK_RANGES];
    struct sent_run run = {.any = false};
    uint32_t ranges = frame_ack_ranges(ack, range);
    for (uint32_t i = ranges; i-- > 0;)
        take_acked(s, range[i], &run, handler, watch, report);
    sent_run_end(&run, handler->acked, handler->context);
    report->spurious = find_spurious(l, range, ranges);
    if (report->acked_packets == 0)
        return 0;
    sample_rtt(l, ack, now_ns, report);
    l->pto_count = 0;
    l->largest_acked = max_u64(l->largest_acked, ack->largest + 1);
    detect_lost(l, s, now_ns, handler, watch, report);
    return 0;
}

uint64_t loss_deadline_ns(const struct loss *l, const struct sent *s)
{
    if (s->outstanding == 0)
        return NEVER;
    if (l->loss_ns != NEVER)
        return l->loss_ns;
    uint64_t pto_ns = min_u64(rtt_pto_ns(&l->rtt, LOSS_MAX_ACK_DELAY_NS), LOSS_PTO_MAX_NS);
    for (uint32_t i = 0; i < l->pto_count && pto_ns < LOSS_PTO_MAX_NS; i++)
        pto_ns *= 2;
    return max_u64(s->last_eliciting_ns, l->pto_base_ns) + min_u64(pto_ns, LOSS_PTO_MAX_NS);
}

/* A map that is full of what is not answered would let no probe out, and so stay full for ever: its oldest
 * packets make room. */
static void make_room(struct loss *l, struct sent *s, const struct sent_handler *handler,
                      const struct loss_watch *watch, struct loss_report *report)
{
    struct sent_run run = {.any = false};
    uint32_t taken = 0;
    for (uint64_t number = s->first; number < s->next && taken < LOSS_MAKES_ROOM; number++) {
        if (!sent_at(s, number)->outstanding)
            continue;
        take_lost(l, s, number, true, &run, handler, watch, report);
        taken++;
    }
    sent_run_end(&run, handler->lost, handler->context);
    sent_advance(s);
}

bool loss_expired(struct loss *l, struct sent *s, uint64_t now_ns, const struct sent_handler *handler,
                  const struct loss_watch *watch, struct loss_report *report)
{
    *report = (struct loss_report){.in_flight_before = s->bytes_in_flight};
    if (loss_deadline_ns(l, s) > now_ns)
        return false;
    if (l->loss_ns != NEVER) {
        detect_lost(l, s, now_ns, handler, watch, report);
        return false;
    }
    l->pto_count += l->pto_count < UINT32_MAX;
    l->pto_base_ns = now_ns;
    if (!sent_room(s))
        make_room(l, s, handler, watch, report);
    return true;
}
