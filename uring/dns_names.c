/* The table of names (uring/dns_private.h): answers, and which lookups run. */
#include "uring/dns_private.h"

#include "core/error.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <strings.h>

/* getaddrinfo, the modules it loads, and c-ares keep their large things on the heap. */
#define HELPER_STACK_BYTES (256 * 1024)

static const unsigned limits[2] = {DNS_FRESH, DNS_SLOW};

/* --- the helpers' side --- */

void names_hold(struct table *table)
{
    atomic_fetch_add(&table->users, 1);
}

void names_drop(struct table *table)
{
    if (atomic_fetch_sub(&table->users, 1) > 1)
        return;
    pthread_mutex_destroy(&table->lock);
    free(table);
}

/* Under the lock: a board is there as long as its loop is named. */
static void post_all(struct table *table)
{
    for (struct dns *dns = table->loops; dns; dns = dns->next)
        board_post(&dns->loop->board, dns->task.slot);
}

static void *help(void *argument)
{
    struct job *job = argument;
    struct table *table = job->table;
    pthread_setname_np(pthread_self(), "pure-dns");
    job->error = job->lookup(job->name, &job->answer);
    pthread_mutex_lock(&table->lock);
    job->next = table->finished;
    table->finished = job;
    post_all(table);
    pthread_mutex_unlock(&table->lock);
    names_drop(table);
    return NULL;
}

/* A detached thread that takes no signals: those are the host's business. */
static int start_thread(struct job *job)
{
    pthread_attr_t attributes;
    sigset_t all;
    sigfillset(&all);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, HELPER_STACK_BYTES);
    pthread_attr_setsigmask_np(&attributes, &all);
    pthread_t thread;
    int error = pthread_create(&thread, &attributes, help, job);
    pthread_attr_destroy(&attributes);
    return -error;
}

/* --- a loop's side, under the lock: answers --- */

static struct dns *asker(const struct resolver_request *request)
{
    return container_of(request->resolver, struct dns, resolver);
}

/* The request may be another loop's. */
void names_ready(struct dns *dns, struct resolver_request *request, int result)
{
    struct dns *to = asker(request);
    request->result = result;
    request->next = NULL;
    *to->ready_last = request;
    to->ready_last = &request->next;
    if (to == dns)
        loop_want(dns->loop, &dns->task);
    else
        board_post(&to->loop->board, to->task.slot);
}

void dns_add_address(struct resolver_request *request, const void *address, socklen_t len)
{
    struct resolver_address *to = &request->addresses[request->count++];
    to->len = len;
    memcpy(&to->address, address, len);
    if (to->address.ss_family == AF_INET6)
        ((struct sockaddr_in6 *)&to->address)->sin6_port = htons(request->port);
    else
        ((struct sockaddr_in *)&to->address)->sin_port = htons(request->port);
}

static socklen_t length(const union address *a)
{
    return a->any.sa_family == AF_INET ? sizeof a->v4 : sizeof a->v6;
}

/* Loops look at the clock at moments of their own: another's may be ahead. */
static uint64_t age_ns(const struct dns *dns, uint64_t then_ns)
{
    return max_u64(dns->loop->now_ns, then_ns) - then_ns;
}

/* `answer` is NULL with an error. */
static void remember(struct dns *dns, struct name *name, int error, const struct dns_answer *answer)
{
    uint64_t now_ns = dns->loop->now_ns;
    name->error = error;
    name->count = 0;
    name->answered_ns = now_ns;
    name->until_ns = now_ns + (answer ? answer->valid_ns : DNS_FAILED_NS);
    for (unsigned i = 0; answer && i < answer->count; i++)
        memcpy(&name->known[name->count++], &answer->addresses[i].address, sizeof *name->known);
}

/* The request gets its copy now: its `done` may have the same name looked up again. */
static void give(struct dns *dns, const struct name *name, struct resolver_request *request)
{
    for (unsigned i = 0; i < name->count; i++)
        dns_add_address(request, &name->known[i], length(&name->known[i]));
    request->valid_ns = max_u64(name->until_ns, dns->loop->now_ns) - dns->loop->now_ns;
    names_ready(dns, request, name->error);
}

/* Whether what is remembered will do. */
static bool known(const struct dns *dns, const struct name *name, const struct resolver_request *request)
{
    bool new_enough = !request->doubted || name->error < 0 || age_ns(dns, name->answered_ns) < DNS_DOUBTED_NS;
    return dns->loop->now_ns < name->until_ns && new_enough;
}

static void answer_all(struct dns *dns, struct name *name)
{
    struct resolver_request *request = name->requests;
    name->requests = NULL;
    while (request) {
        struct resolver_request *next = request->next;
        give(dns, name, request);
        request = next;
    }
}

static void make_idle(struct dns *dns, struct name *name)
{
    name->state = NAME_IDLE;
    name->since_ns = dns->loop->now_ns;
}

/* --- a loop's side, under the lock: which lookups run --- */

static void line_append(struct line *line, struct name *name)
{
    name->next = NULL;
    *line->last = name;
    line->last = &name->next;
}

static void line_remove(struct line *line, struct name *name)
{
    struct name **at = &line->first;
    while (*at != name)
        at = &(*at)->next;
    *at = name->next;
    if (line->last == &name->next)
        line->last = at;
}

static void start(struct dns *dns, struct name *name)
{
    struct table *table = dns->table;
    struct job *job = table->idle;
    job->table = table;
    job->lookup = table->lookup;
    job->place = (uint32_t)(name - table->names);
    job->answer.count = 0;
    memcpy(job->name, name->name, sizeof job->name);
    names_hold(table);
    struct job *rest = job->next;
    if (start_thread(job) < 0) {
        names_drop(table);
        make_idle(dns, name);
        remember(dns, name, PE_NAME_BUSY, NULL);
        answer_all(dns, name);
        return;
    }
    table->idle = rest;
    name->state = NAME_RUNNING;
    name->since_ns = dns->loop->now_ns;
    table->running[name->slow]++;
}

static bool slow_now(const struct dns *dns, const struct name *name)
{
    return age_ns(dns, name->since_ns) >= DNS_SLOW_NS;
}

static bool running_fresh(const struct name *name)
{
    return name->state == NAME_RUNNING && !name->slow;
}

/* Fresh lookups that have become slow make room for others, as long as there is room among the slow ones. */
static void count_as_slow(struct dns *dns)
{
    struct table *table = dns->table;
    for (size_t i = 0; i < DNS_NAMES && table->running[true] < DNS_SLOW; i++) {
        struct name *name = &table->names[i];
        if (!running_fresh(name) || !slow_now(dns, name))
            continue;
        name->slow = true;
        table->running[false]--;
        table->running[true]++;
    }
}

/* When the next fresh lookup becomes slow; NEVER if that would help nobody. */
static uint64_t next_slow_ns(const struct table *table)
{
    uint64_t next_ns = NEVER;
    if (!table->waiting[false].first || table->running[true] == DNS_SLOW)
        return NEVER;
    for (size_t i = 0; i < DNS_NAMES; i++) {
        if (running_fresh(&table->names[i]))
            next_ns = min_u64(next_ns, table->names[i].since_ns + DNS_SLOW_NS);
    }
    return next_ns;
}

static void start_waiting(struct dns *dns)
{
    struct table *table = dns->table;
    if (table->waiting[false].first)
        count_as_slow(dns);
    for (int slow = 0; slow < 2; slow++) {
        struct line *line = &table->waiting[slow];
        while (line->first && table->running[slow] < limits[slow]) {
            struct name *name = line->first;
            line_remove(line, name);
            start(dns, name);
        }
    }
    timer_set(&dns->loop->timers, &dns->timer, next_slow_ns(table));
}

static void finish(struct dns *dns, struct job *job)
{
    struct table *table = dns->table;
    struct name *name = &table->names[job->place];
    table->running[name->slow]--;
    name->slow = slow_now(dns, name);
    make_idle(dns, name);
    remember(dns, name, job->error, job->error < 0 ? NULL : &job->answer);
    answer_all(dns, name);
    job->next = table->idle;
    table->idle = job;
}

void names_look_after(struct dns *dns)
{
    struct job *job = dns->table->finished;
    dns->table->finished = NULL;
    while (job) {
        struct job *next = job->next;
        finish(dns, job);
        job = next;
    }
    start_waiting(dns);
}

/* --- requests, under the lock --- */

static struct name *find_name(struct table *table, const char *text)
{
    for (size_t i = 0; i < DNS_NAMES; i++) {
        if (strcasecmp(table->names[i].name, text) == 0)
            return &table->names[i];
    }
    return NULL;
}

/* Whether to forget `a` rather than `b`: those that were slow are worth remembering, then the newer ones. */
static bool rather_forget(const struct name *a, const struct name *b)
{
    return a->slow != b->slow ? b->slow : a->since_ns < b->since_ns;
}

static struct name *replace_name(struct table *table, const char *text)
{
    struct name *found = NULL;
    for (size_t i = 0; i < DNS_NAMES; i++) {
        struct name *name = &table->names[i];
        if (name->state == NAME_IDLE && (!found || rather_forget(name, found)))
            found = name;
    }
    if (found) {
        *found = (struct name){.state = NAME_IDLE};
        memcpy(found->name, text, strlen(text) + 1);
    }
    return found;
}

static void append_request(struct name *name, struct resolver_request *request)
{
    struct resolver_request **at = &name->requests;
    while (*at)
        at = &(*at)->next;
    request->next = NULL;
    *at = request;
}

void names_ask(struct dns *dns, struct resolver_request *request)
{
    struct name *name = find_name(dns->table, request->name);
    if (!name)
        name = replace_name(dns->table, request->name);
    if (!name) {
        names_ready(dns, request, PE_NAME_BUSY);
        return;
    }
    if (known(dns, name, request)) {
        give(dns, name, request);
        return;
    }
    append_request(name, request);
    if (name->state == NAME_IDLE) {
        name->state = NAME_WAITING;
        line_append(&dns->table->waiting[name->slow], name);
    }
    start_waiting(dns);
}

static bool remove_request(struct resolver_request **at, struct resolver_request *request)
{
    while (*at && *at != request)
        at = &(*at)->next;
    if (!*at)
        return false;
    *at = request->next;
    return true;
}

static void remove_ready(struct dns *dns, struct resolver_request *request)
{
    bool found = remove_request(&dns->ready, request);
    assert(found);
    dns->ready_last = &dns->ready;
    while (*dns->ready_last)
        dns->ready_last = &(*dns->ready_last)->next;
}

/* Nobody asks for the name any more. */
static void forget_waiting(struct dns *dns, struct name *name)
{
    if (name->state != NAME_WAITING || name->requests)
        return;
    line_remove(&dns->table->waiting[name->slow], name);
    make_idle(dns, name);
}

void names_forget(struct dns *dns)
{
    for (size_t i = 0; i < DNS_NAMES; i++) {
        struct name *name = &dns->table->names[i];
        struct resolver_request **at = &name->requests;
        while (*at) {
            if (asker(*at) == dns)
                *at = (*at)->next;
            else
                at = &(*at)->next;
        }
        forget_waiting(dns, name);
    }
}

void names_cancel(struct dns *dns, struct resolver_request *request)
{
    struct name *name = find_name(dns->table, request->name);
    if (name && remove_request(&name->requests, request))
        forget_waiting(dns, name);
    else
        remove_ready(dns, request);
}

/* --- life --- */

struct table *names_new(dns_lookup *lookup)
{
    struct table *table = calloc(1, sizeof *table);
    if (!table)
        return NULL;
    pthread_mutex_init(&table->lock, NULL);
    atomic_init(&table->users, 1);
    table->lookup = lookup;
    for (int slow = 0; slow < 2; slow++)
        table->waiting[slow].last = &table->waiting[slow].first;
    for (size_t i = 0; i < ARRAY_SIZE(table->jobs); i++) {
        table->jobs[i].next = table->idle;
        table->idle = &table->jobs[i];
    }
    return table;
}
