#include "host/host_tls.h"

#include "tls/accelerate.h"
#include "tls/trust.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define WHY_MAX 400

/* What there is to say, until it is said. */
struct news {
    enum log_level level;
    char text[WHY_MAX + 80]; /* "": nothing */
};

/* CA certificates of one path. */
struct host_tls_trust {
    struct host_tls_trust *next;
    char *path;              /* NULL: the system's */
    struct tls_trust *trust; /* NULL: none could be read yet */
    uint64_t stamp;          /* of the files as of the last try */
    bool tried;
    bool well;         /* the last try read them */
    unsigned version;  /* counts `trust`s */
    char why[WHY_MAX]; /* not well: why */
    struct news news;
};

struct host_tls_entry {
    struct tls_current current;
    struct host_tls_entry *next;
    struct host_tls_trust *trust; /* NULL: none */
    struct config_pair pair;
    uint8_t pins[TLS_PINS_MAX][TLS_PIN_BYTES];
    unsigned pin_count;
    bool server;
    uint64_t stamp; /* as of the last try, as is: */
    unsigned trust_version;
    bool tried;
    bool made;         /* there is a context */
    bool well;         /* the last try made one */
    char why[WHY_MAX]; /* not well: why */
    struct news news;
};

/* --- what files are there, without reading them --- */

/* FNV-1a: enough to tell a change. */
static uint64_t mix(uint64_t stamp, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        stamp = (stamp ^ ((const uint8_t *)bytes)[i]) * UINT64_C(0x100000001b3);
    return stamp;
}

static uint64_t stamp_of_file(int directory, const char *name)
{
    struct stat is;
    if (fstatat(directory, name, &is, 0) < 0)
        return 1;
    const uint64_t facts[] = {is.st_dev,
                              is.st_ino,
                              (uint64_t)is.st_size,
                              (uint64_t)is.st_mtim.tv_sec,
                              (uint64_t)is.st_mtim.tv_nsec,
                              (uint64_t)is.st_ctim.tv_sec,
                              (uint64_t)is.st_ctim.tv_nsec};
    return mix(UINT64_C(0xcbf29ce484222325), facts, sizeof facts);
}

/* Of a directory also its files, in whatever order it lists them. */
static uint64_t stamp_of(const char *path)
{
    if (!path)
        return 0;
    uint64_t stamp = stamp_of_file(AT_FDCWD, path);
    DIR *directory = opendir(path);
    const struct dirent *entry;
    while (directory && (entry = readdir(directory)))
        stamp += mix(stamp_of_file(dirfd(directory), entry->d_name), entry->d_name, strlen(entry->d_name));
    if (directory)
        closedir(directory);
    return stamp;
}

/* --- the lists --- */

void host_tls_init(struct host_tls *t)
{
    *t = (struct host_tls){0};
    pthread_mutex_init(&t->lock, NULL);
    pthread_mutex_init(&t->report.lock, NULL);
    t->report.expires_s = INT64_MAX;
}

void host_tls_dispose(struct host_tls *t)
{
    for (struct host_tls_entry *e = t->entries, *next; e; e = next) {
        next = e->next;
        tls_current_replace(&e->current, NULL);
        free(e->pair.certificate);
        free(e->pair.key);
        free(e);
    }
    for (struct host_tls_trust *trust = t->trusts, *next; trust; trust = next) {
        next = trust->next;
        if (trust->trust)
            tls_trust_drop(trust->trust);
        free(trust->path);
        free(trust);
    }
    pthread_mutex_destroy(&t->lock);
    pthread_mutex_destroy(&t->report.lock);
}

static bool same_text(const char *a, const char *b)
{
    return a == b || (a && b && strcmp(a, b) == 0);
}

static int copy_text(char **to, const char *from)
{
    *to = from ? strdup(from) : NULL;
    return from && !*to ? -ENOMEM : 0;
}

/* NULL: no memory. */
static struct host_tls_trust *find_trust(struct host_tls *t, const char *path)
{
    for (struct host_tls_trust *trust = t->trusts; trust; trust = trust->next) {
        if (same_text(trust->path, path))
            return trust;
    }
    struct host_tls_trust *trust = calloc(1, sizeof *trust);
    if (!trust || copy_text(&trust->path, path) < 0) {
        free(trust);
        return NULL;
    }
    trust->next = t->trusts;
    return t->trusts = trust;
}

static bool same_pins(const struct host_tls_entry *e, const struct host_tls_files *f)
{
    return e->pin_count == f->pin_count &&
           (f->pin_count == 0 || memcmp(e->pins, f->pins, f->pin_count * sizeof e->pins[0]) == 0);
}

static struct host_tls_entry *find_entry(struct host_tls *t, const struct host_tls_files *f,
                                         const struct host_tls_trust *trust)
{
    for (struct host_tls_entry *e = t->entries; e; e = e->next) {
        if (e->trust == trust && e->server == f->server && same_pins(e, f) &&
            same_text(e->pair.certificate, f->pair->certificate) && same_text(e->pair.key, f->pair->key))
            return e;
    }
    return NULL;
}

static int add_entry(struct host_tls *t, const struct host_tls_files *f, struct host_tls_trust *trust)
{
    struct host_tls_entry *e = calloc(1, sizeof *e);
    if (!e)
        return -ENOMEM;
    *e = (struct host_tls_entry){
        .trust = trust, .pin_count = f->pin_count, .server = f->server, .next = t->entries};
    if (f->pin_count > 0)
        memcpy(e->pins, f->pins, f->pin_count * sizeof e->pins[0]);
    if (copy_text(&e->pair.certificate, f->pair->certificate) < 0 ||
        copy_text(&e->pair.key, f->pair->key) < 0) {
        free(e->pair.certificate);
        free(e);
        return -ENOMEM;
    }
    t->entries = e;
    return 0;
}

int host_tls_want(struct host_tls *t, const struct host_tls_files *files, struct tls_current **current)
{
    pthread_mutex_lock(&t->lock);
    bool trusts = files->ca || !files->server;
    struct host_tls_trust *trust = trusts ? find_trust(t, files->ca) : NULL;
    int error = trusts && !trust ? -ENOMEM : 0;
    if (error == 0 && !find_entry(t, files, trust))
        error = add_entry(t, files, trust);
    if (error == 0)
        *current = &find_entry(t, files, trust)->current;
    pthread_mutex_unlock(&t->lock);
    return error;
}

/* --- a look --- */

static void tell(struct news *news, enum log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void tell(struct news *news, enum log_level level, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    news->level = level;
    vsnprintf(news->text, sizeof news->text, format, arguments);
    va_end(arguments);
}

/* Keeps why a try failed. Whether that is news: the files are others, or the reason is. */
static bool is_news(char kept[WHY_MAX], const char *why, bool changed)
{
    bool news = changed || strcmp(kept, why) != 0;
    snprintf(kept, WHY_MAX, "%s", why);
    return news;
}

/* The stamp is taken before the files are read: what changes meanwhile is seen by the next look. What could
 * not be read is tried at each look: descriptors or memory may have been short. */
static void look_at_trust(struct host_tls_trust *t)
{
    uint64_t stamp = stamp_of(t->path ? t->path : tls_trust_system());
    bool changed = !t->tried || t->stamp != stamp;
    if (!changed && t->well)
        return;
    struct tls_trust *trust;
    char why[WHY_MAX];
    unsigned passed_over = 0;
    int error = tls_trust_read(&trust, t->path, &passed_over, why, sizeof why);
    t->tried = true;
    t->stamp = stamp;
    t->well = error == 0;
    if (error < 0) {
        if (is_news(t->why, why, changed) && t->trust)
            tell(&t->news, LOG_WARNING, "TLS: %s: the CA certificates of before stay in force", why);
        return;
    }
    if (passed_over > 0)
        tell(&t->news, LOG_WARNING, "TLS: ca %s: %u certificates cannot be read, and are passed over",
             t->path ? t->path : "of the system", passed_over);
    if (t->trust)
        tls_trust_drop(t->trust);
    t->trust = trust;
    t->version++;
}

static int make_context(const struct host_tls_entry *e, struct tls_context **made, char *why, size_t why_size)
{
    if (e->trust && !e->trust->trust) {
        snprintf(why, why_size, "%s", e->trust->why);
        return PE_TLS_FILES;
    }
    struct tls_options options = {.trust = e->trust ? e->trust->trust : NULL,
                                  .certificate = e->pair.certificate,
                                  .key = e->pair.key,
                                  .pin_count = e->pin_count,
                                  .server = e->server,
                                  .aes_first = tls_aes_accelerated()};
    memcpy(options.pins, e->pins, sizeof options.pins);
    return tls_context_make(made, &options, why, why_size);
}

static void tell_failure(struct host_tls_entry *e, const char *why)
{
    if (e->made)
        tell(&e->news, LOG_WARNING, "TLS: %s: what was read before stays in force", why);
    else
        tell(&e->news, LOG_ERROR, "TLS: %s: who needs it rests until it can be used", why);
}

static void look_at_entry(struct host_tls_entry *e)
{
    uint64_t stamp = stamp_of(e->pair.certificate) + 3 * stamp_of(e->pair.key);
    unsigned trust_version = e->trust ? e->trust->version : 0;
    bool changed = !e->tried || e->stamp != stamp || e->trust_version != trust_version;
    if (!changed && e->well)
        return;
    struct tls_context *context;
    bool first = !e->tried;
    char why[WHY_MAX];
    int error = make_context(e, &context, why, sizeof why);
    e->tried = true;
    e->stamp = stamp;
    e->trust_version = trust_version;
    if (error == 0) {
        tls_current_replace(&e->current, context);
        if (!first)
            tell(&e->news, LOG_NOTICE, "TLS: files have changed and are in force: %s",
                 e->pair.certificate          ? e->pair.certificate
                 : e->trust && e->trust->path ? e->trust->path
                                              : "the system's CA certificates");
    } else if (is_news(e->why, why, changed)) {
        tell_failure(e, why);
    }
    e->well = error == 0;
    e->made |= e->well;
}

/* --- the report --- */

static void report_one(struct tls_report *r, const char *why, bool made, uint64_t *unreadable)
{
    if ((*unreadable)++ > 0)
        return;
    pthread_mutex_lock(&r->lock);
    snprintf(r->why, sizeof r->why, "%s: %s", why,
             made ? "what was read before is in use" : "who needs it rests until it can be used");
    pthread_mutex_unlock(&r->lock);
}

/* CA certificates that were never there are told of as themselves, not with each who needs them. */
static void report_entry(struct tls_report *r, struct host_tls_entry *e, uint64_t *unreadable,
                         int64_t *expires_s)
{
    const struct host_tls_trust *trust = e->trust;
    struct tls_context *context = tls_current_take(&e->current);
    if (!e->well && (!trust || trust->trust))
        report_one(r, e->why, e->made, unreadable);
    atomic_store(&e->current.outdated, context && (!e->well || (trust && !trust->well)));
    if (context && tls_context_expires_s(context) < *expires_s)
        *expires_s = tls_context_expires_s(context);
    tls_context_drop(context);
}

static void report(struct tls_report *r, struct host_tls_trust *trusts, struct host_tls_entry *entries)
{
    uint64_t unreadable = 0;
    int64_t expires_s = INT64_MAX;
    for (struct host_tls_entry *e = entries; e; e = e->next)
        report_entry(r, e, &unreadable, &expires_s);
    for (struct host_tls_trust *trust = trusts; trust; trust = trust->next) {
        if (!trust->well)
            report_one(r, trust->why, trust->trust, &unreadable);
    }
    atomic_store(&r->expires_s, expires_s);
    atomic_store(&r->unreadable, unreadable);
}

/* What is added meanwhile comes before these, and is looked at next time. */
static void look_at_all(struct host_tls_trust *trusts, struct host_tls_entry *entries)
{
    for (struct host_tls_trust *trust = trusts; trust; trust = trust->next)
        look_at_trust(trust);
    for (struct host_tls_entry *e = entries; e; e = e->next)
        look_at_entry(e);
}

void host_tls_look(struct host_tls *t)
{
    pthread_mutex_lock(&t->lock);
    struct host_tls_trust *trusts = t->trusts;
    struct host_tls_entry *entries = t->entries;
    pthread_mutex_unlock(&t->lock);
    look_at_all(trusts, entries);
    report(&t->report, trusts, entries);
}

static void say(struct news *news, struct log *log)
{
    if (news->text[0])
        log_line(log, news->level, "%s", news->text);
    news->text[0] = '\0';
}

static void say_all(struct host_tls *t, struct log *log)
{
    for (struct host_tls_trust *trust = t->trusts; trust; trust = trust->next)
        say(&trust->news, log);
    for (struct host_tls_entry *e = t->entries; e; e = e->next)
        say(&e->news, log);
}

void host_tls_look_and_tell(struct host_tls *t, struct log *log)
{
    if (!host_tls_idle(t)) {
        t->again = true;
        return;
    }
    host_tls_look(t);
    say_all(t, log);
}

/* --- every now and then --- */

static void *look(void *argument)
{
    struct host_tls *t = argument;
    host_tls_look(t);
    tls_thread_end();
    atomic_store_explicit(&t->looked, true, memory_order_release);
    return NULL;
}

/* A thread that cannot be had now can be had at the next time. */
static void begin_look(struct host_tls *t)
{
    t->again = false;
    atomic_store_explicit(&t->looked, false, memory_order_relaxed);
    t->looking = t->entries && pthread_create(&t->thread, NULL, look, t) == 0;
    if (t->looking)
        pthread_setname_np(t->thread, "pure-files");
}

bool host_tls_idle(struct host_tls *t)
{
    if (!t->looking || !atomic_load_explicit(&t->looked, memory_order_acquire))
        return !t->looking;
    pthread_join(t->thread, NULL);
    t->looking = false;
    return true;
}

static void timer_fired(struct timer *timer, uint64_t now_ns)
{
    struct host_tls *t = container_of(timer, struct host_tls, timer);
    bool looked = t->looking;
    if (!host_tls_idle(t)) {
        timer_set(&t->loop->timers, &t->timer, now_ns + HOST_TLS_POLL_NS);
        return;
    }
    if (looked)
        say_all(t, t->log);
    if (!looked || t->again)
        begin_look(t);
    timer_set(&t->loop->timers, &t->timer, now_ns + (t->looking ? HOST_TLS_POLL_NS : HOST_TLS_LOOK_NS));
}

void host_tls_start(struct host_tls *t, struct loop *loop, struct log *log)
{
    t->loop = loop;
    t->log = log;
    timer_init(&t->timer, timer_fired);
    timer_set(&loop->timers, &t->timer, loop->now_ns + HOST_TLS_LOOK_NS);
}

void host_tls_stop(struct host_tls *t)
{
    if (t->loop)
        timer_unset(&t->loop->timers, &t->timer);
}
