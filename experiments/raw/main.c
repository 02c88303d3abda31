/* What is alike in raw-link, raw-tcp and raw-enet: options, the two processes, the line of JSON.
 *
 *     raw-link [-e uring|epoll] [-s RECORD_BYTES] [-d DATAGRAM_BYTES] [-n RECORDS] [-b BATCH] [-q
 * QUEUE_BYTES]
 *              [-l] [-1]
 *
 *     -l  one record in flight: round trips    -1  the producer on the sending loop, no thread of its own
 *
 * Exit status: 0 measured and right, 1 not, 2 usage. */
#include "experiments/raw/raw.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIMIT_S     120 /* a run that takes longer is ended, with its processes */
#define WARM_TRIPS  1000
#define WARM_PART   8 /* of the records */
#define RECORDS_MAX 4000000000u

struct shared {
    struct raw_sent sent;
    struct raw_received received;
};

/* Two pipes: `ready` from the receiver to here; `ended`, whose write end only the sender is to have. */
struct pipes {
    int ready[2], ended[2];
};

static pid_t start_receiver(const struct raw_run *run, const struct pipes *pipes, struct shared *shared)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(pipes->ready[0]);
    close(pipes->ended[1]);
    struct raw_pipes its = {.ready = pipes->ready[1], .ended = pipes->ended[0]};
    exit(raw_transport.receive(run, &its, &shared->received) == 0 ? 0 : 1);
}

static pid_t start_sender(const struct raw_run *run, uint16_t port, struct shared *shared)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    exit(raw_transport.send(run, port, &shared->sent) == 0 ? 0 : 1);
}

/* Waits for both; when one fails, the other would wait for ever. */
static int wait_for(pid_t receiver, pid_t sender)
{
    int failed = 0;
    for (unsigned left = 2; left > 0;) {
        int status = 1;
        pid_t ended = waitpid(-1, &status, 0);
        if (ended < 0 && errno == EINTR)
            continue;
        if (ended < 0)
            return -1;
        left--;
        if (status == 0)
            continue;
        failed = -1;
        if (left > 0)
            kill(ended == sender ? receiver : sender, SIGKILL);
    }
    return failed;
}

static int run_both(const struct raw_run *run, struct shared *shared)
{
    struct pipes pipes;
    uint16_t port;
    if (pipe2(pipes.ready, O_CLOEXEC) < 0 || pipe2(pipes.ended, O_CLOEXEC) < 0)
        return -1;
    if (raw_transport.prepare)
        raw_transport.prepare();
    pid_t receiver = start_receiver(run, &pipes, shared);
    close(pipes.ready[1]);
    bool listens = receiver > 0 && read(pipes.ready[0], &port, sizeof port) == sizeof port;
    pid_t sender = listens ? start_sender(run, port, shared) : -1;
    close(pipes.ended[1]);
    if (sender > 0)
        return wait_for(receiver, sender);
    if (receiver > 0 && kill(receiver, SIGKILL) == 0)
        waitpid(receiver, NULL, 0);
    return -1;
}

static double each(uint64_t of, uint64_t by)
{
    return by ? (double)of / (double)by : 0;
}

static void print_result(const struct raw_run *run, const struct shared *shared, bool verified)
{
    const struct raw_sent *s = &shared->sent;
    const struct raw_received *r = &shared->received;
    uint64_t elapsed_ns = r->end_ns > s->start_ns ? r->end_ns - s->start_ns : 0;
    printf("{\"transport\":\"%s\",\"back_end\":\"%s\",\"record_bytes\":%u,\"datagram_bytes\":%llu,"
           "\"records\":%llu,\"records_s\":%.0f,\"cpu_us_record\":%.5f,\"sender_cpu_us_record\":%.5f,"
           "\"receiver_cpu_us_record\":%.5f,\"elapsed_ns\":%llu,\"cpu_ns\":%llu,",
           raw_transport.name, run->back_end, run->record_bytes, (unsigned long long)s->datagram_bytes,
           (unsigned long long)run->records, each(run->records, elapsed_ns) * 1e9,
           each(s->cpu_ns + r->cpu_ns, run->records) / 1e3, each(s->cpu_ns, run->records) / 1e3,
           each(r->cpu_ns, run->records) / 1e3, (unsigned long long)elapsed_ns,
           (unsigned long long)(s->cpu_ns + r->cpu_ns));
    printf("\"packets\":%llu,\"records_packet\":%.1f,\"sends\":%llu,\"lost\":%llu,\"window_bytes\":%llu,"
           "\"sender_enters\":%llu,\"sender_wakes\":%llu,\"receiver_enters\":%llu,\"answers\":%llu,",
           (unsigned long long)s->packets, each(run->records, s->packets), (unsigned long long)s->sends,
           (unsigned long long)s->lost, (unsigned long long)s->window_bytes, (unsigned long long)s->enters,
           (unsigned long long)s->wakes, (unsigned long long)r->enters, (unsigned long long)r->datagrams);
    if (run->one_in_flight)
        printf("\"p50_us\":%.1f,\"p99_us\":%.1f,", (double)s->p50_ns / 1e3, (double)s->p99_ns / 1e3);
    printf("\"verified\":%s}\n", verified ? "true" : "false");
}

static bool read_options(struct raw_run *run, int argc, char **argv)
{
    for (int option; (option = getopt(argc, argv, "e:s:d:n:b:q:l1")) != -1;) {
        unsigned long number = optarg ? strtoul(optarg, NULL, 10) : 0;
        if (option == 'e')
            run->back_end = optarg;
        else if (option == 's')
            run->record_bytes = (uint32_t)number;
        else if (option == 'd')
            run->datagram_bytes = (uint32_t)number;
        else if (option == 'n')
            run->records = number;
        else if (option == 'b')
            run->batch = (uint32_t)number;
        else if (option == 'q')
            run->queue_bytes = (uint32_t)number;
        else if (option == 'l')
            run->one_in_flight = true;
        else if (option == '1')
            run->one_thread = true;
        else
            return false;
    }
    run->warm = run->one_in_flight ? WARM_TRIPS : run->records / WARM_PART + 1;
    return run->record_bytes >= RAW_RECORD_MIN && run->record_bytes <= RAW_RECORD_MAX && run->records > 0 &&
           run->records <= RECORDS_MAX && run->batch > 0 && run->queue_bytes >= 64 * 1024 &&
           run->datagram_bytes >= 1200 && run->datagram_bytes <= 65507;
}

int main(int argc, char **argv)
{
    struct raw_run run = {.back_end = raw_transport.back_end,
                          .records = 10000000,
                          .record_bytes = 32,
                          .datagram_bytes = 1400,
                          .batch = 1000,
                          .queue_bytes = 8 << 20};
    if (!read_options(&run, argc, argv)) {
        fprintf(stderr, "usage: see experiments/raw/main.c; records of %u to %u bytes\n", RAW_RECORD_MIN,
                RAW_RECORD_MAX);
        return 2;
    }
    struct shared *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 1;
    alarm(LIMIT_S);
    bool verified = run_both(&run, shared) == 0 && shared->received.right;
    print_result(&run, shared, verified);
    return verified ? 0 : 1;
}
