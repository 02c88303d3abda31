/* The fault server over loopback: a port for each row that is played live, all at a time.
 *
 *     peer DIR MODULE     writes DIR/ca.pem and DIR/rows.conf, an app (r0, r1, …, each MODULE) and an output
 * for each row, says how many there are, and serves until its input ends. Its commands: bodies prints for
 * each app the size of its records, 0: any done STATUS         prints how many rows are not yet where they
 * should be, by that answer of /status check STATUS LOG    prints "ok" or "FAILED" for each row, by that and
 * by what the host logged
 *
 * What takes its time in a row depends on the machine here, so that the number of failures of a row that
 * never gets better is at least two, and not exact. */
#include "tests/faults/player.h"
#include "tests/faults/table.h"

#include <arpa/inet.h>
#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define ROWS_MAX        256
#define CONNECTIONS_MAX 2048

struct live_row {
    const struct fault_row *row;
    int listener;
    unsigned port;
    SSL_CTX *identity;
    struct fault_account account;
};

struct live_connection {
    int fd;
    bool ended; /* our half */
    struct fault_player player;
};

static struct live_row rows[ROWS_MAX];
static unsigned row_count;
static struct live_connection *connections[CONNECTIONS_MAX];
static unsigned connection_count;

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* --- what there is --- */

static bool refuses(const struct fault_row *row)
{
    return row->events[0].kind == EVENT_REFUSE;
}

static void open_row(const struct fault_row *row, const struct fault_identities *identities)
{
    assert(row_count < ROWS_MAX);
    struct live_row *r = &rows[row_count++];
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    r->row = row;
    r->identity = row->tls.on ? fault_identity(identities, &row->tls) : NULL;
    r->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (r->listener < 0 || bind(r->listener, (struct sockaddr *)&at, sizeof at) < 0 ||
        getsockname(r->listener, (struct sockaddr *)&at, &size) < 0 ||
        (!refuses(row) && listen(r->listener, 16) < 0))
        die("a port");
    r->port = ntohs(at.sin_port);
}

static FILE *create(const char *directory, const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", directory, name);
    FILE *file = fopen(path, "w");
    if (!file)
        die(path);
    return file;
}

static unsigned long ms(uint64_t ns)
{
    return (unsigned long)(ns / NS_PER_MS);
}

static void configure(FILE *out, unsigned i, const char *directory, const char *module)
{
    const struct live_row *r = &rows[i];
    struct wire_options o;
    fault_options(r->row, &o);
    fprintf(out, "# %s\n[app r%u]\nmodule = %s\n[output r%u.out]\n", r->row->name, i, module, i);
    fprintf(out, "wire = %s://127.0.0.1:%u/hook\nmode = webhook\n", r->row->tls.on ? "https" : "http",
            r->port);
    fprintf(out, "progress_timeout = %lums\nreply_timeout = %lums\ntotal_timeout = %lums\n",
            ms(o.progress_ns), ms(o.reply_ns), ms(o.total_ns));
    fprintf(out, "backoff_min = %lums\nbackoff_max = %lums\n", ms(o.backoff_min_ns), ms(o.backoff_max_ns));
    if (r->row->tls.on)
        fprintf(out, "ca = %s/ca.pem\n", directory);
}

static void prepare(const char *directory, const char *module)
{
    struct fault_identities identities;
    fault_identities_init(&identities);
    FILE *ca = create(directory, "ca.pem"), *conf = create(directory, "rows.conf");
    if (PEM_write_X509(ca, identities.ca->x509) != 1)
        die("ca.pem");
    for (unsigned i = 0; fault_tables[i]; i++) {
        for (const struct fault_row *row = fault_tables[i]; row->name; row++) {
            if (row->live)
                open_row(row, &identities);
        }
    }
    for (unsigned i = 0; i < row_count; i++)
        configure(conf, i, directory, module);
    if (fclose(ca) != 0 || fclose(conf) != 0)
        die("rows.conf");
    fault_identities_dispose(&identities);
}

/* --- connections --- */

static void accept_one(struct live_row *r)
{
    int fd = accept4(r->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0)
        return;
    struct live_connection *c = calloc(1, sizeof *c);
    assert(c && connection_count < CONNECTIONS_MAX);
    connections[connection_count++] = c;
    c->fd = fd;
    bool first = r->account.connections < r->row->first_times;
    const struct fault_step *then = r->row->tls.on ? fault_behaves_tls : fault_behaves;
    fault_player_init(&c->player, first ? r->row->first : then, r->identity, &r->account, now_ns());
}

static void drop(unsigned i)
{
    struct live_connection *c = connections[i];
    struct linger at_once = {.l_onoff = 1};
    if (c->player.leaving == FAULT_RESETS)
        setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
    close(c->fd);
    fault_player_dispose(&c->player);
    free(c);
    connections[i] = connections[--connection_count];
}

/* False: the connection is over. */
static bool send_some(struct live_connection *c)
{
    struct fault_buffer *out = &c->player.out;
    if (out->size == 0)
        return true;
    ssize_t size = send(c->fd, out->data, out->size, MSG_NOSIGNAL);
    if (size > 0)
        fault_player_sent(&c->player, (size_t)size);
    return size >= 0 || errno == EAGAIN;
}

static bool receive_some(struct live_connection *c)
{
    uint8_t bytes[16384];
    ssize_t size = recv(c->fd, bytes, sizeof bytes, 0);
    if (size > 0)
        fault_player_take(&c->player, span_of(bytes, (size_t)size), now_ns());
    return size > 0 || (size < 0 && errno == EAGAIN);
}

static bool carry(struct live_connection *c, short events)
{
    struct fault_player *p = &c->player;
    if ((events & (POLLIN | POLLHUP | POLLERR)) && p->hearing && !receive_some(c))
        return false;
    if (p->due_ns <= now_ns())
        fault_player_tick(p, now_ns());
    if (p->leaving == FAULT_RESETS || !send_some(c))
        return false;
    if (p->leaving == FAULT_SHUTS_DOWN && p->out.size == 0 && !c->ended) {
        c->ended = true;
        shutdown(c->fd, SHUT_WR);
    }
    return p->leaving != FAULT_CLOSES || p->out.size > 0;
}

/* --- by what the host says --- */

static char *read_whole(const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file)
        die(path);
    char *text = NULL;
    size_t room = 0;
    if (getdelim(&text, &room, '\0', file) < 0 && !text)
        die(path);
    fclose(file);
    return text;
}

static const cJSON *outlet_of(const cJSON *status, unsigned i)
{
    char name[16];
    snprintf(name, sizeof name, "r%u", i);
    const cJSON *outlet;
    cJSON_ArrayForEach(outlet, cJSON_GetObjectItem(status, "outlets"))
    {
        if (strcmp(cJSON_GetObjectItem(outlet, "app")->valuestring, name) == 0)
            return outlet;
    }
    fprintf(stderr, "no outlet %s\n", name);
    exit(1);
}

static unsigned member(const cJSON *outlet, const char *name)
{
    return (unsigned)cJSON_GetObjectItem(outlet, name)->valuedouble;
}

/* A row that gets better or is over is exact; of one that never does there are two failures at least. */
static bool settles(const struct fault_row *row)
{
    return row->expect.delivered == FAULT_RECORDS || row->expect.state == OUTLET_DISABLED;
}

static bool is_done(const struct fault_row *row, const cJSON *outlet)
{
    const struct fault_expectation *e = &row->expect;
    if (member(outlet, "stored") < e->delivered)
        return false;
    return settles(row) ? e->failures == FAULT_ANY || member(outlet, "failures") >= e->failures
                        : member(outlet, "failures") >= 2;
}

static bool same(unsigned is, unsigned expected)
{
    return is == expected || expected == FAULT_ANY;
}

/* What was logged of row i has that text; NULL: nothing was. */
static bool logged(const char *log, unsigned i, const char *text)
{
    char of[16], line[1024];
    snprintf(of, sizeof of, ": r%u.out: ", i);
    for (const char *at = log; (at = strstr(at, of)); at++) {
        snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
        if (!text || strstr(line, text))
            return true;
    }
    return false;
}

static bool error_is_logged(const char *log, unsigned i, const struct fault_expectation *e)
{
    if (e->error == 0)
        return !logged(log, i, NULL);
    if (e->error == FAULT_UNSAID)
        return true;
    bool by_status = e->error == PE_HTTP_STATUS && !e->says;
    return logged(log, i, by_status ? NULL : e->says ? e->says : pure_error_text(e->error));
}

static void check_row(unsigned i, const cJSON *outlet, const char *log)
{
    static const char *const states[] = {"ok", "resting", "disabled"};
    const struct live_row *r = &rows[i];
    const struct fault_expectation *e = &r->row->expect;
    const struct fault_account *a = &r->account;
    const char *state = cJSON_GetObjectItem(outlet, "state")->valuestring;
    bool exact = !settles(r->row) || (same(member(outlet, "failures"), e->failures) &&
                                      same(a->requests, e->requests) && same(a->connections, e->connections));
    bool good = is_done(r->row, outlet) && exact && member(outlet, "stored") == e->delivered &&
                error_is_logged(log, i, e) && strcmp(state, states[e->state]) == 0 && a->changed == 0 &&
                a->ids <= FAULT_RECORDS && a->resumed >= e->resumed;
    printf("%s %s", good ? "ok     " : "FAILED ", r->row->name);
    if (!good)
        printf(": r%u: %s, %u delivered, %u failures, %u requests with %u ids, %u connections", i, state,
               member(outlet, "stored"), member(outlet, "failures"), a->requests, a->ids, a->connections);
    printf("\n");
}

static unsigned count_undone(const cJSON *status)
{
    unsigned undone = 0;
    for (unsigned i = 0; i < row_count; i++)
        undone += !is_done(rows[i].row, outlet_of(status, i));
    return undone;
}

static void obey(const char *command)
{
    char status_path[256] = "", log_path[256] = "";
    if (strcmp(command, "bodies") == 0) {
        for (unsigned i = 0; i < row_count; i++)
            printf("%zu%c", rows[i].row->record_bytes, i + 1 < row_count ? ' ' : '\n');
        return;
    }
    bool check = sscanf(command, "check %255s %255s", status_path, log_path) == 2;
    if (!check && sscanf(command, "done %255s", status_path) != 1)
        return;
    char *text = read_whole(status_path), *log = check ? read_whole(log_path) : NULL;
    cJSON *status = cJSON_Parse(text);
    if (!check)
        printf("%u\n", count_undone(status));
    for (unsigned i = 0; check && i < row_count; i++)
        check_row(i, outlet_of(status, i), log);
    if (check)
        printf("checked\n");
    cJSON_Delete(status);
    free(text);
    free(log);
}

/* False: the input has ended. */
static bool take_commands(void)
{
    static char line[1024];
    static size_t size;
    ssize_t more = read(STDIN_FILENO, line + size, sizeof line - 1 - size);
    if (more <= 0)
        return false;
    size += (size_t)more;
    line[size] = '\0';
    for (char *end; (end = strchr(line, '\n'));) {
        *end = '\0';
        obey(line);
        size -= (size_t)(end + 1 - line);
        memmove(line, end + 1, size + 1);
    }
    return true;
}

/* --- the loop --- */

static struct pollfd polled[1 + ROWS_MAX + CONNECTIONS_MAX];

/* Returns how long to wait, in ms. */
static int fill(void)
{
    uint64_t due_ns = NEVER, now = now_ns();
    polled[0] = (struct pollfd){.fd = STDIN_FILENO, .events = POLLIN};
    for (unsigned i = 0; i < row_count; i++)
        polled[1 + i] = (struct pollfd){.fd = refuses(rows[i].row) ? -1 : rows[i].listener, .events = POLLIN};
    for (unsigned i = 0; i < connection_count; i++) {
        const struct live_connection *c = connections[i];
        short events = (short)((c->player.hearing ? POLLIN : 0) | (c->player.out.size > 0 ? POLLOUT : 0));
        polled[1 + row_count + i] = (struct pollfd){.fd = events ? c->fd : -1, .events = events};
        due_ns = min_u64(due_ns, c->player.due_ns);
    }
    if (due_ns == NEVER)
        return -1;
    return due_ns <= now ? 0 : (int)((due_ns - now) / NS_PER_MS + 1);
}

static void turn(void)
{
    unsigned count = connection_count;
    if (poll(polled, 1 + row_count + count, fill()) < 0 && errno != EINTR)
        die("poll");
    for (unsigned i = count; i-- > 0;) {
        if (!carry(connections[i], polled[1 + row_count + i].revents))
            drop(i);
    }
    for (unsigned i = 0; i < row_count; i++) {
        if (polled[1 + i].revents)
            accept_one(&rows[i]);
    }
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        fprintf(stderr, "usage: %s DIR MODULE\n", argv[0]);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    prepare(argv[1], argv[2]);
    printf("%u\n", row_count);
    do
        turn();
    while (!polled[0].revents || take_commands());
    while (connection_count > 0)
        drop(0);
    for (unsigned i = 0; i < row_count; i++) {
        close(rows[i].listener);
        SSL_CTX_free(rows[i].identity);
    }
    return 0;
}
