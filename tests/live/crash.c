/* crash: kills hosts while they work, and judges what they still know.
 *
 *     crash kills HOST SEED KILLS SECONDS one.conf PORT two.conf PORT [LOSSYFS DIRECTORY DIRECTORY]
 *     crash post PORT APP FROM TO SIZE COUNT
 *
 *     crash ── events 1, 2, 3, … ──→ one: a ── link ──→ two: b          all four are ledgers (ledger.c)
 *                                           ── wire ──→ two: c
 *                                           ── inner ─→ one: d
 *
 * `kills` posts numbered events to `a`, in requests with an Idempotency-Key each; one that was not answered
 * 200 goes again, as it was. Meanwhile it ends one host or both by SIGKILL, KILLS times: at any moment, while
 * they start, while they stop. With LOSSYFS (lossyfs.c) each host's store lies on a disk of its own, which
 * then loses its power. After each restart:
 *
 *     a knows all that was acknowledged, and no less than b, c and d; b, c and d no less than they showed
 * before each holds the numbers from 1 to its last, each once and in order, as its hash says
 *
 * At the end everything is everywhere, also after an orderly stop and start. The schedule follows from SEED;
 * the moments are the machine's. After SECONDS it ends with what it has, which then is a failure.
 *
 * `post` posts the numbers from FROM to TO, dots up to SIZE bytes, COUNT a request, and prints the last
 * number of each request that was acknowledged. */
#include "tests/live/ledger.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MS               UINT64_C(1000000)
#define RECORD_BYTES     16384
#define REQUEST_BYTES    (4u << 20)
#define REPLY_BYTES      4096
#define EVENTS_A_SECOND  5000
#define EVENTS_A_REQUEST 200
#define PAUSE_NS         (10 * MS) /* before what was not answered goes again */
#define REPLY_NS         (40000 * MS)
#define START_NS         (15000 * MS)
#define STOP_NS          (6000 * MS) /* 5 s are promised */
#define DRAIN_NS         (60000 * MS)

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 * MS + (uint64_t)t.tv_nsec;
}

static void rest(uint64_t ns)
{
    struct timespec t = {.tv_sec = (time_t)(ns / (1000 * MS)), .tv_nsec = (long)(ns % (1000 * MS))};
    nanosleep(&t, NULL);
}

/* --- a request at a time to a port of this machine --- */

struct client {
    uint16_t port;
    int fd; /* -1: not connected */
    uint64_t begun_ns, not_before_ns;
    char *request; /* what goes again until it is answered 200 */
    size_t size, sent;
    char reply[REPLY_BYTES + 1];
    size_t filled;
};

static int connect_to(uint16_t port)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&to, sizeof to) == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

static void client_close(struct client *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
}

static void client_again(struct client *c)
{
    c->sent = c->filled = 0;
    c->not_before_ns = now_ns() + PAUSE_NS;
}

/* The status of a whole reply, or 0: it is not there yet. `body` is then its body. */
static int reply_status(struct client *c, const char **body)
{
    c->reply[c->filled] = '\0';
    const char *end = strstr(c->reply, "\r\n\r\n"), *field = strcasestr(c->reply, "\r\nContent-Length:");
    if (!end || !field)
        return 0;
    *body = end + 4;
    return strlen(*body) < strtoul(field + 17, NULL, 10) ? 0 : atoi(c->reply + 9);
}

/* Goes on with the request, at most until `until_ns`. The status, or 0: nothing yet. A connection that ends
 * is made anew, and the request goes again. */
static int client_step(struct client *c, uint64_t until_ns, const char **body)
{
    uint64_t now = now_ns();
    if (now < c->not_before_ns || (c->fd < 0 && (c->fd = connect_to(c->port)) < 0)) {
        uint64_t to = now < c->not_before_ns ? c->not_before_ns : now + PAUSE_NS;
        rest((to < until_ns ? to : until_ns) - now);
        return 0;
    }
    if (c->sent == 0)
        c->begun_ns = now;
    bool sending = c->sent < c->size;
    struct pollfd fd = {.fd = c->fd, .events = (short)(POLLIN | (sending ? POLLOUT : 0))};
    poll(&fd, 1, (int)((until_ns - now + MS - 1) / MS));
    ssize_t done = 0;
    if (fd.revents & POLLIN)
        done = recv(c->fd, c->reply + c->filled, REPLY_BYTES - c->filled, MSG_DONTWAIT);
    else if (fd.revents)
        done = send(c->fd, c->request + c->sent, c->size - c->sent, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (done > 0 && (fd.revents & POLLIN))
        c->filled += (size_t)done;
    else if (done > 0)
        c->sent += (size_t)done;
    int status = c->filled ? reply_status(c, body) : 0;
    bool ended = fd.revents && done <= 0 && !(done < 0 && errno == EAGAIN);
    bool early = status && c->sent < c->size;
    if (ended || early || c->filled == REPLY_BYTES || now - c->begun_ns > REPLY_NS)
        client_close(c);
    if (status != 200 && (status || c->fd < 0))
        client_again(c);
    return status;
}

/* --- events --- */

/* Numbers from..to as a request. */
static void compose(struct client *c, const char *app, uint64_t from, uint64_t to, size_t bytes)
{
    static char body[REQUEST_BYTES];
    size_t size = 0;
    for (uint64_t number = from; number <= to; number++) {
        size_t begin = size;
        size += (size_t)sprintf(body + size, "%" PRIu64, number);
        while (size - begin < bytes)
            body[size++] = '.';
        body[size++] = '\n';
    }
    c->size = (size_t)sprintf(c->request,
                              "POST /apps/%s/events/e HTTP/1.1\r\nHost: localhost\r\n"
                              "Content-Type: application/x-ndjson\r\nIdempotency-Key: %" PRIu64 "-%" PRIu64
                              "\r\nContent-Length: %zu\r\n\r\n",
                              app, from, to, size);
    memcpy(c->request + c->size, body, size);
    c->size += size;
    c->sent = c->filled = 0;
}

static void client_init(struct client *c, uint16_t port)
{
    *c = (struct client){.port = port, .fd = -1, .request = malloc(REQUEST_BYTES + 1024)};
    if (!c->request)
        exit(2);
}

static int post(char **argument)
{
    uint64_t from = strtoull(argument[2], NULL, 10), to = strtoull(argument[3], NULL, 10);
    uint64_t bytes = strtoull(argument[4], NULL, 10), count = strtoull(argument[5], NULL, 10);
    struct client client;
    const char *body;
    if (count == 0 || bytes > RECORD_BYTES || count > (REQUEST_BYTES - 1024) / (bytes + 32))
        return 2;
    client_init(&client, (uint16_t)atoi(argument[0]));
    for (uint64_t last; from <= to; from = last + 1) {
        last = to - from < count ? to : from + count - 1;
        compose(&client, argument[1], from, last, bytes);
        while (client_step(&client, now_ns() + 1000 * MS, &body) != 200) {
        }
        printf("%" PRIu64 "\n", last);
        fflush(stdout);
    }
    return 0;
}

/* --- the scenario --- */

enum { ONE, TWO, HOSTS };

struct machine {
    const char *name, *conf;
    uint16_t port;
    pid_t pid;        /* 0: it does not run */
    FILE *to, *from;  /* of its disk; NULL: the real one */
    const char *disk; /* where that is mounted */
};

struct book {
    const char *app;
    unsigned host;
    uint64_t least; /* what it has shown or acknowledged: never less again */
};

static struct crash {
    const char *host, *lossyfs;
    uint64_t seed, random, kills, end_ns;
    struct machine machines[HOSTS];
    struct book books[4]; /* a last: it is asked after those that it sends to */
    struct client client;
    uint64_t first, last, acked; /* of the request under way, if last > acked */
    uint64_t requests, again, power_cuts, killed;
    uint64_t next_ns; /* when the next request may go */
    bool resting;     /* no new ones */
    uint64_t *hashes; /* by number */
    uint64_t hashed, room;
} crash = {.books = {{"b", TWO, 0}, {"c", TWO, 0}, {"d", ONE, 0}, {"a", ONE, 0}}};

#define BOOK_A 3

static uint64_t draw(uint64_t below)
{
    crash.random += UINT64_C(0x9e3779b97f4a7c15);
    uint64_t z = crash.random;
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return (z ^ (z >> 31)) % below;
}

/* Hosts end first, so that what they have on their disks stays as it is; that of lossyfs is copied. */
static void __attribute__((format(printf, 1, 2), noreturn)) fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    printf("FAILED after %" PRIu64 " kills, seed %" PRIu64 ": ", crash.killed, crash.seed);
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
    for (struct machine *m = crash.machines; m < crash.machines + HOSTS; m++) {
        char command[600];
        if (m->pid > 0 && kill(m->pid, SIGKILL) == 0)
            waitpid(m->pid, NULL, 0);
        if (m->to && snprintf(command, sizeof command, "cp -a %s kept.%s", m->disk, m->name) > 0 &&
            system(command) != 0)
            printf("what is on the disk of %s could not be kept\n", m->name);
    }
    exit(1);
}

static uint64_t hash_of(uint64_t number)
{
    if (number >= crash.room) {
        crash.room = 2 * number + 1024;
        crash.hashes = realloc(crash.hashes, crash.room * sizeof *crash.hashes);
        if (!crash.hashes)
            fail("no memory");
        crash.hashes[0] = 0;
    }
    for (; crash.hashed < number; crash.hashed++)
        crash.hashes[crash.hashed + 1] = ledger_hash(crash.hashes[crash.hashed], crash.hashed + 1);
    return crash.hashes[number];
}

/* The next request: mostly many small events, now and then few large ones. */
static void compose_next(void)
{
    uint64_t count = 1 + draw(EVENTS_A_REQUEST), bytes = draw(16) == 0 ? draw(4000) : 8;
    if (draw(50) == 0) {
        bytes = draw(RECORD_BYTES);
        count = 1 + draw(20);
    }
    crash.first = crash.acked + 1;
    crash.last = crash.acked + count;
    compose(&crash.client, "a", crash.first, crash.last, bytes);
    crash.next_ns = now_ns() + count * (1000 * MS / EVENTS_A_SECOND);
    crash.requests++;
}

static void answered(int status, const char *body)
{
    unsigned long long stored;
    if (status >= 400 && status < 500)
        fail("a request is refused: %d %s", status, body);
    crash.again += status != 200;
    if (status != 200)
        return;
    if (sscanf(body, "{\"stored\":%llu}", &stored) != 1 || stored != crash.last)
        fail("events %" PRIu64 " to %" PRIu64 " are acknowledged as %s", crash.first, crash.last, body);
    crash.acked = crash.last;
    crash.books[BOOK_A].least = crash.acked;
    crash.client.sent = crash.client.filled = 0;
}

/* Posts until then; until nothing is under way, if it is resting. */
static void pump(uint64_t ns)
{
    uint64_t end = now_ns() + ns;
    for (uint64_t now; (now = now_ns()) < end;) {
        const char *body = "";
        if (crash.last == crash.acked) {
            if (crash.resting)
                return;
            if (now < crash.next_ns) {
                rest((crash.next_ns < end ? crash.next_ns : end) - now);
                continue;
            }
            compose_next();
        }
        int status = client_step(&crash.client, end, &body);
        if (status)
            answered(status, body);
    }
}

/* --- machines --- */

static void start(struct machine *m)
{
    char log[64];
    snprintf(log, sizeof log, "%s.log", m->name);
    fflush(stdout);
    m->pid = fork();
    if (m->pid < 0)
        fail("no process can be made");
    if (m->pid > 0)
        return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int fd = open(log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    dup2(fd, STDERR_FILENO);
    dup2(fd, STDOUT_FILENO);
    execl(crash.host, crash.host, "run", "-c", m->conf, (char *)NULL);
    _exit(127);
}

/* A host that has ended by itself, without being told to, is a failure. */
static void must_run(struct machine *m)
{
    int status;
    if (waitpid(m->pid, &status, WNOHANG) == 0)
        return;
    m->pid = 0;
    fail("host %s has ended by itself: %s %d", m->name, WIFSIGNALED(status) ? "signal" : "exit status",
         WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

static void tell_disk(struct machine *m, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void tell_disk(struct machine *m, const char *format, ...)
{
    char reply[128];
    va_list arguments;
    va_start(arguments, format);
    vfprintf(m->to, format, arguments);
    va_end(arguments);
    fflush(m->to);
    if (!fgets(reply, sizeof reply, m->from))
        fail("the disk of %s does not answer", m->name);
}

/* The disk first: what the host does in its last moment must not count. */
static void slay(struct machine *m)
{
    int status;
    if (m->to) {
        tell_disk(m, "cut %" PRIu64 "\n", draw(UINT32_MAX));
        crash.power_cuts++;
    }
    kill(m->pid, SIGKILL);
    waitpid(m->pid, &status, 0);
    m->pid = 0;
    crash.killed++;
    if (m->to)
        tell_disk(m, "on\n");
    if (WIFSIGNALED(status) && WTERMSIG(status) != SIGKILL)
        fail("host %s was ended by signal %d", m->name, WTERMSIG(status));
    if (WIFEXITED(status) && WEXITSTATUS(status) != 0 && !m->to)
        fail("host %s has ended with exit status %d", m->name, WEXITSTATUS(status));
}

static void stop(struct machine *m)
{
    int status = -1;
    kill(m->pid, SIGTERM);
    for (uint64_t end = now_ns() + STOP_NS; waitpid(m->pid, &status, WNOHANG) == 0; rest(PAUSE_NS))
        if (now_ns() > end)
            fail("host %s does not end within 5 s", m->name);
    m->pid = 0;
    if (status != 0)
        fail("host %s has ended with status %#x when it was to stop", m->name, (unsigned)status);
}

/* Starts lossyfs, with the disk of that machine. */
static void plug_in(struct machine *m, const char *directory)
{
    int to[2], from[2];
    char ready[16];
    m->disk = directory;
    if (pipe2(to, O_CLOEXEC) != 0 || pipe2(from, O_CLOEXEC) != 0)
        fail("no pipes");
    if (fork() == 0) {
        dup2(to[0], STDIN_FILENO);
        dup2(from[1], STDOUT_FILENO);
        execl(crash.lossyfs, crash.lossyfs, directory, (char *)NULL);
        _exit(127);
    }
    close(to[0]);
    close(from[1]);
    m->to = fdopen(to[1], "w");
    m->from = fdopen(from[0], "r");
    if (!m->to || !m->from || !fgets(ready, sizeof ready, m->from))
        fail("no disk for %s", m->name);
}

/* --- judging --- */

/* The state of a ledger, whole; or false: it is not to be had now. */
static bool read_ledger(const struct book *book, uint64_t *last)
{
    struct client asking;
    struct machine *m = &crash.machines[book->host];
    unsigned long long records, first, end, breaks, hash;
    const char *body = "";
    int status = 0;
    client_init(&asking, m->port);
    asking.size =
        (size_t)sprintf(asking.request, "GET /apps/%s/state HTTP/1.1\r\nHost: localhost\r\n\r\n", book->app);
    for (uint64_t limit = now_ns() + 100 * MS; status == 0 && now_ns() < limit;)
        status = client_step(&asking, limit, &body);
    bool whole = status == 200 && sscanf(body,
                                         "{\"records\":%llu,\"first\":%llu,\"last\":%llu,\"breaks\":%llu,"
                                         "\"hash\":%llu}",
                                         &records, &first, &end, &breaks, &hash) == 5;
    if (whole && (breaks != 0 || records != end || first != (records > 0) || hash != hash_of(end)))
        fail("app %s: not the numbers from 1 on: %s", book->app, body);
    *last = whole ? end : 0;
    client_close(&asking);
    free(asking.request);
    return whole;
}

static void await(const struct book *book, uint64_t *last)
{
    for (uint64_t end = now_ns() + START_NS; !read_ledger(book, last); pump(5 * MS)) {
        must_run(&crash.machines[book->host]);
        if (now_ns() > end)
            fail("app %s of host %s does not answer", book->app, crash.machines[book->host].name);
    }
}

/* All ledgers, when both hosts run. What was sent was stored at its sender before: so a has no less. */
static void judge(void)
{
    uint64_t most = 0;
    for (struct book *book = crash.books; book < crash.books + 4; book++) {
        uint64_t last;
        await(book, &last);
        if (last < book->least)
            fail("app %s has %" PRIu64 " events; it had %" PRIu64, book->app, last, book->least);
        if (last > crash.last)
            fail("app %s has %" PRIu64 " events; %" PRIu64 " were posted", book->app, last, crash.last);
        book->least = last;
        most = last > most ? last : most;
    }
    if (crash.books[BOOK_A].least < most)
        fail("%" PRIu64 " events were sent by a, which has stored %" PRIu64, most, crash.books[BOOK_A].least);
}

static bool complete(void)
{
    judge();
    for (const struct book *book = crash.books; book < crash.books + 4; book++)
        if (book->least != crash.acked)
            return false;
    return true;
}

static void await_all(const char *when)
{
    crash.resting = true;
    for (uint64_t end = now_ns() + DRAIN_NS; crash.last > crash.acked || !complete(); rest(5 * PAUSE_NS)) {
        pump(100 * MS);
        if (now_ns() > end)
            fail("%s: of %" PRIu64 " events b has %" PRIu64 ", c %" PRIu64 ", d %" PRIu64, when, crash.acked,
                 crash.books[0].least, crash.books[1].least, crash.books[2].least);
    }
}

/* --- kills --- */

static void start_those(unsigned victims)
{
    for (unsigned i = 0; i < HOSTS; i++)
        if (victims & 1u << i)
            start(&crash.machines[i]);
}

static void slay_those(unsigned victims)
{
    for (unsigned i = 0; i < HOSTS; i++)
        if (victims & 1u << i)
            slay(&crash.machines[i]);
}

/* One round: some moment of work, then kills, the last of them perhaps while the hosts start or stop. */
static void kill_round(void)
{
    static const unsigned choices[] = {1u << ONE, 1u << ONE, 1u << TWO, 1u << TWO, 1u << ONE | 1u << TWO};
    pump((5 + draw(296)) * MS);
    for (unsigned i = 0; i < HOSTS; i++)
        must_run(&crash.machines[i]);
    unsigned victims = choices[draw(5)];
    if (draw(8) == 0) {
        for (unsigned i = 0; i < HOSTS; i++)
            if (victims & 1u << i)
                kill(crash.machines[i].pid, SIGTERM);
        pump(draw(20000) * MS / 1000);
    }
    slay_those(victims);
    while (draw(4) == 0 && crash.killed < crash.kills) {
        start_those(victims);
        pump(draw(40000) * MS / 1000);
        slay_those(victims);
    }
    if (draw(4) == 0) /* the other one goes on meanwhile */
        pump(draw(600) * MS);
    start_those(victims);
    judge();
}

static void say_progress(uint64_t begun_ns)
{
    printf("%" PRIu64 " of %" PRIu64 " kills, %" PRIu64 " events, %" PRIu64 " s\n", crash.killed, crash.kills,
           crash.acked, (now_ns() - begun_ns) / (1000 * MS));
    fflush(stdout);
}

static int kills(int count, char **argument)
{
    uint64_t begun = now_ns(), said = begun;
    crash.host = argument[0];
    crash.seed = crash.random = strtoull(argument[1], NULL, 10);
    crash.kills = strtoull(argument[2], NULL, 10);
    crash.end_ns = begun + strtoull(argument[3], NULL, 10) * 1000 * MS;
    for (unsigned i = 0; i < HOSTS; i++)
        crash.machines[i] = (struct machine){.name = i == ONE ? "one" : "two",
                                             .conf = argument[4 + 2 * i],
                                             .port = (uint16_t)atoi(argument[5 + 2 * i])};
    crash.lossyfs = count > 8 ? argument[8] : NULL;
    for (unsigned i = 0; i < HOSTS && crash.lossyfs; i++)
        plug_in(&crash.machines[i], argument[9 + i]);
    client_init(&crash.client, crash.machines[ONE].port);
    start_those(1u << ONE | 1u << TWO);
    judge();
    while (crash.killed < crash.kills) {
        kill_round();
        if (now_ns() > crash.end_ns)
            fail("it takes too long");
        if (now_ns() - said > 10000 * MS) {
            say_progress(begun);
            said = now_ns();
        }
    }
    await_all("at the end");
    for (unsigned i = 0; i < HOSTS; i++)
        stop(&crash.machines[i]);
    start_those(1u << ONE | 1u << TWO);
    await_all("after a stop and a start");
    for (unsigned i = 0; i < HOSTS; i++)
        stop(&crash.machines[i]);
    printf("seed %" PRIu64 ": %" PRIu64 " kills (%" PRIu64 " power cuts), %" PRIu64 " events, %" PRIu64
           " requests, %" PRIu64 " refused for a time, %" PRIu64 " s\n",
           crash.seed, crash.killed, crash.power_cuts, crash.acked, crash.requests, crash.again,
           (now_ns() - begun) / (1000 * MS));
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 8 && strcmp(argv[1], "post") == 0)
        return post(argv + 2);
    if ((argc == 10 || argc == 13) && strcmp(argv[1], "kills") == 0)
        return kills(argc - 2, argv + 2);
    fprintf(stderr, "usage: see tests/live/crash.c\n");
    return 2;
}
