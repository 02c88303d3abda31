#include "uring/dns.h"

#include "core/error.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <strings.h>

/* getaddrinfo, the modules it loads, and c-ares keep their large things on the heap. */
#define HELPER_STACK_BYTES (256 * 1024)

/* Requests answered in one round of the task. */
#define ROUND_REQUESTS 64

/* What a thread works on: the thread's from its start until it stands in hall.finished, then the loop's. */
struct job {
    struct hall *hall;
    struct job *next;
    dns_lookup *lookup;
    uint32_t place; /* of its name in the table */
    char name[RESOLVER_NAME_MAX + 1];
    int error;
    struct dns_answer answer;
};

/* Where the loop and the helpers meet. It outlives the dns while a lookup hangs: the last user frees it. */
struct hall {
    _Atomic unsigned users; /* the dns, and each thread */
    pthread_mutex_t lock;   /* guards `board` and `finished` */
    struct board *board;    /* NULL: the dns is gone, answers are of no use */
    uint32_t slot;
    struct job *finished;
    struct job jobs[DNS_FRESH + DNS_SLOW];
};

enum name_state {
    NAME_IDLE,    /* only remembered: the place may go to another name */
    NAME_WAITING, /* in a line */
    NAME_RUNNING  /* a thread looks it up */
};

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

struct name {
    char name[RESOLVER_NAME_MAX + 1]; /* "": never used */
    enum name_state state;
    bool slow;         /* WAITING, RUNNING: counts among the slow. IDLE: its last lookup was */
    uint64_t since_ns; /* RUNNING: its start. IDLE: when it became so; the oldest goes first */
    struct name *next; /* WAITING: in its line */
    struct resolver_request *requests; /* none while IDLE */

    /* The last answer. */
    uint64_t answered_ns;
    uint64_t until_ns; /* it may be given until then; 0: there is none */
    int error;
    unsigned count; /* known[0, count); 0 if there is an error */
    union address known[RESOLVER_ADDRESSES];
};

struct line {
    struct name *first, **last;
};

struct dns {
    struct resolver resolver;
    struct loop *loop;
    struct task task;
    struct timer timer; /* set while fresh names wait: due when the oldest fresh lookup becomes slow */
    dns_lookup *lookup;
    struct hall *hall;
    struct job *idle;       /* jobs without a thread: as many as `running` is below its limits */
    unsigned running[2];    /* [slow]: lookups with a thread, at most limits[slow] */
    struct line waiting[2]; /* [slow]: not empty only while running[slow] is at its limit */
    struct resolver_request *ready, **ready_last; /* answered, `done` not called yet */
    struct name names[DNS_NAMES];
};

static const unsigned limits[2] = {DNS_FRESH, DNS_SLOW};

/* --- the helpers' side --- */

static void hall_leave(struct hall *hall)
{
    if (atomic_fetch_sub(&hall->users, 1) > 1)
        return;
    pthread_mutex_destroy(&hall->lock);
    free(hall);
}

static void hall_finish(struct job *job)
{
    struct hall *hall = job->hall;
    pthread_mutex_lock(&hall->lock);
    job->next = hall->finished;
    hall->finished = job;
    if (hall->board)
        board_post(hall->board, hall->slot); /* under the lock: the board is there as long as it is named */
    pthread_mutex_unlock(&hall->lock);
}

static void *help(void *argument)
{
    struct job *job = argument;
    struct hall *hall = job->hall;
    pthread_setname_np(pthread_self(), "pure-dns");
    job->error = job->lookup(job->name, &job->answer);
    hall_finish(job);
    hall_leave(hall);
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

/* --- the loop's side: answers --- */

static void make_ready(struct dns *dns, struct resolver_request *request, int result)
{
    request->result = result;
    request->next = NULL;
    *dns->ready_last = request;
    dns->ready_last = &request->next;
    loop_want(dns->loop, &dns->task);
}

static struct resolver_request *take_ready(struct dns *dns)
{
    struct resolver_request *request = dns->ready;
    if (!request)
        return NULL;
    dns->ready = request->next;
    if (!dns->ready)
        dns->ready_last = &dns->ready;
    return request;
}

static void add_address(struct resolver_request *request, const void *address, socklen_t len)
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
        add_address(request, &name->known[i], length(&name->known[i]));
    request->valid_ns = max_u64(name->until_ns, dns->loop->now_ns) - dns->loop->now_ns;
    make_ready(dns, request, name->error);
}

/* Whether what is remembered will do. */
static bool known(const struct dns *dns, const struct name *name, const struct resolver_request *request)
{
    uint64_t now_ns = dns->loop->now_ns;
    bool new_enough = !request->doubted || name->error < 0 || now_ns - name->answered_ns < DNS_DOUBTED_NS;
    return now_ns < name->until_ns && new_enough;
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

/* --- the loop's side: which lookups run --- */

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
    struct job *job = dns->idle;
    job->lookup = dns->lookup;
    job->place = (uint32_t)(name - dns->names);
    job->answer.count = 0;
    memcpy(job->name, name->name, sizeof job->name);
    atomic_fetch_add(&dns->hall->users, 1);
    struct job *rest = job->next;
    if (start_thread(job) < 0) {
        atomic_fetch_sub(&dns->hall->users, 1);
        make_idle(dns, name);
        remember(dns, name, PE_NAME_BUSY, NULL);
        answer_all(dns, name);
        return;
    }
    dns->idle = rest;
    name->state = NAME_RUNNING;
    name->since_ns = dns->loop->now_ns;
    dns->running[name->slow]++;
}

static bool slow_now(const struct dns *dns, const struct name *name)
{
    return dns->loop->now_ns - name->since_ns >= DNS_SLOW_NS;
}

static bool running_fresh(const struct name *name)
{
    return name->state == NAME_RUNNING && !name->slow;
}

/* Fresh lookups that have become slow make room for others, as long as there is room among the slow ones. */
static void count_as_slow(struct dns *dns)
{
    for (size_t i = 0; i < DNS_NAMES && dns->running[true] < DNS_SLOW; i++) {
        struct name *name = &dns->names[i];
        if (!running_fresh(name) || !slow_now(dns, name))
            continue;
        name->slow = true;
        dns->running[false]--;
        dns->running[true]++;
    }
}

/* When the next fresh lookup becomes slow; NEVER if that would help nobody. */
static uint64_t next_slow_ns(const struct dns *dns)
{
    uint64_t next_ns = NEVER;
    if (!dns->waiting[false].first || dns->running[true] == DNS_SLOW)
        return NEVER;
    for (size_t i = 0; i < DNS_NAMES; i++) {
        if (running_fresh(&dns->names[i]))
            next_ns = min_u64(next_ns, dns->names[i].since_ns + DNS_SLOW_NS);
    }
    return next_ns;
}

static void start_waiting(struct dns *dns)
{
    if (dns->waiting[false].first)
        count_as_slow(dns);
    for (int slow = 0; slow < 2; slow++) {
        struct line *line = &dns->waiting[slow];
        while (line->first && dns->running[slow] < limits[slow]) {
            struct name *name = line->first;
            line_remove(line, name);
            start(dns, name);
        }
    }
    timer_set(&dns->loop->timers, &dns->timer, next_slow_ns(dns));
}

static void one_became_slow(struct timer *timer, uint64_t now_ns)
{
    (void)now_ns;
    start_waiting(container_of(timer, struct dns, timer));
}

static struct job *take_finished(struct hall *hall)
{
    pthread_mutex_lock(&hall->lock);
    struct job *finished = hall->finished;
    hall->finished = NULL;
    pthread_mutex_unlock(&hall->lock);
    return finished;
}

static void finish(struct dns *dns, struct job *job)
{
    struct name *name = &dns->names[job->place];
    dns->running[name->slow]--;
    name->slow = slow_now(dns, name);
    make_idle(dns, name);
    remember(dns, name, job->error, job->error < 0 ? NULL : &job->answer);
    answer_all(dns, name);
    job->next = dns->idle;
    dns->idle = job;
}

static bool run(struct task *task, uint64_t now_ns)
{
    (void)now_ns;
    struct dns *dns = container_of(task, struct dns, task);
    struct job *job = take_finished(dns->hall);
    while (job) {
        struct job *next = job->next;
        finish(dns, job);
        job = next;
    }
    start_waiting(dns);
    for (unsigned i = 0; i < ROUND_REQUESTS; i++) {
        struct resolver_request *request = take_ready(dns);
        if (!request)
            return false;
        request->in_flight = false;
        request->done(request, request->result);
    }
    return dns->ready != NULL;
}

/* --- requests --- */

static struct name *find_name(struct dns *dns, const char *text)
{
    for (size_t i = 0; i < DNS_NAMES; i++) {
        if (strcasecmp(dns->names[i].name, text) == 0)
            return &dns->names[i];
    }
    return NULL;
}

/* Whether to forget `a` rather than `b`: those that were slow are worth remembering, then the newer ones. */
static bool rather_forget(const struct name *a, const struct name *b)
{
    return a->slow != b->slow ? b->slow : a->since_ns < b->since_ns;
}

static struct name *replace_name(struct dns *dns, const char *text)
{
    struct name *found = NULL;
    for (size_t i = 0; i < DNS_NAMES; i++) {
        struct name *name = &dns->names[i];
        if (name->state == NAME_IDLE && (!found || rather_forget(name, found)))
            found = name;
    }
    if (found) {
        *found = (struct name){.state = NAME_IDLE};
        memcpy(found->name, text, strlen(text) + 1);
    }
    return found;
}

/* An address in digits is answered without a thread: AI_NUMERICHOST asks nobody. */
static bool literal(struct resolver_request *request)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
    struct addrinfo *list;
    if (getaddrinfo(request->name, NULL, &hints, &list) != 0)
        return false;
    add_address(request, list->ai_addr, list->ai_addrlen);
    request->valid_ns = DNS_VALID_MAX_NS;
    freeaddrinfo(list);
    return true;
}

static void append_request(struct name *name, struct resolver_request *request)
{
    struct resolver_request **at = &name->requests;
    while (*at)
        at = &(*at)->next;
    request->next = NULL;
    *at = request;
}

static void look_up(struct resolver *resolver, struct resolver_request *request)
{
    struct dns *dns = container_of(resolver, struct dns, resolver);
    assert(!request->in_flight);
    request->in_flight = true;
    request->count = 0;
    if (request->name[0] == '\0' || literal(request)) {
        make_ready(dns, request, request->count > 0 ? 0 : PE_NAME_NOT_FOUND);
        return;
    }
    struct name *name = find_name(dns, request->name);
    if (!name)
        name = replace_name(dns, request->name);
    if (!name) {
        make_ready(dns, request, PE_NAME_BUSY);
        return;
    }
    if (known(dns, name, request)) {
        give(dns, name, request);
        return;
    }
    append_request(name, request);
    if (name->state != NAME_IDLE)
        return;
    name->state = NAME_WAITING;
    line_append(&dns->waiting[name->slow], name);
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

static void cancel(struct resolver *resolver, struct resolver_request *request)
{
    struct dns *dns = container_of(resolver, struct dns, resolver);
    if (!request->in_flight)
        return;
    request->in_flight = false;
    struct name *name = find_name(dns, request->name);
    if (!name || !remove_request(&name->requests, request)) {
        remove_ready(dns, request);
        return;
    }
    if (name->state == NAME_WAITING && !name->requests) {
        line_remove(&dns->waiting[name->slow], name);
        make_idle(dns, name);
    }
}

/* --- life --- */

static struct hall *hall_new(struct dns *dns)
{
    struct hall *hall = calloc(1, sizeof *hall);
    if (!hall)
        return NULL;
    pthread_mutex_init(&hall->lock, NULL);
    hall->board = &dns->loop->board;
    hall->slot = dns->task.slot;
    atomic_init(&hall->users, 1);
    for (size_t i = 0; i < ARRAY_SIZE(hall->jobs); i++) {
        hall->jobs[i].hall = hall;
        hall->jobs[i].next = dns->idle;
        dns->idle = &hall->jobs[i];
    }
    return hall;
}

static int join_loop(struct dns *dns)
{
    int error = loop_add(dns->loop, &dns->task);
    if (error < 0)
        return error;
    dns->hall = hall_new(dns);
    if (dns->hall)
        return 0;
    loop_remove(dns->loop, &dns->task);
    return -ENOMEM;
}

int dns_open(struct dns **opened, struct loop *loop, dns_lookup *lookup)
{
    struct dns *dns = calloc(1, sizeof *dns);
    if (!dns)
        return -ENOMEM;
    dns->resolver = (struct resolver){.lookup = look_up, .cancel = cancel};
    dns->loop = loop;
    dns->task.run = run;
    dns->lookup = lookup ? lookup : dns_find;
    dns->ready_last = &dns->ready;
    for (int slow = 0; slow < 2; slow++)
        dns->waiting[slow].last = &dns->waiting[slow].first;
    timer_init(&dns->timer, one_became_slow);
    int error = join_loop(dns);
    if (error < 0)
        free(dns);
    else
        *opened = dns;
    return error;
}

void dns_dispose(struct dns *dns)
{
    pthread_mutex_lock(&dns->hall->lock);
    dns->hall->board = NULL;
    pthread_mutex_unlock(&dns->hall->lock);
    hall_leave(dns->hall);
    timer_unset(&dns->loop->timers, &dns->timer);
    loop_remove(dns->loop, &dns->task);
    free(dns);
}

struct resolver *dns_resolver(struct dns *dns)
{
    return &dns->resolver;
}

unsigned dns_threads(const struct dns *dns)
{
    return dns->running[false] + dns->running[true];
}
