/* The lookup by c-ares, against a name server of our own on loopback: a thread that answers by a table. Real
 * time passes only where a server is silent, a fraction of a second. */
#include "core/error.h"
#include "uring/dns.h"

#include "tests/unit/temp_directory.h"

#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <cmocka.h>

enum { TYPE_A = 1, TYPE_CNAME = 5, TYPE_AAAA = 28 };
enum { RCODE_FAILED = 2, RCODE_NO_NAME = 3, SILENT = 99 };

static const struct entry {
    const char *name;
    int type;
    uint32_t ttl_s;
    const char *data; /* an address; the other name of a CNAME */
    int rcode;
} entries[] = {
    {"both.test", TYPE_A, 300, "192.0.2.1", 0},     {"both.test", TYPE_AAAA, 200, "2001:db8::1", 0},
    {"four.test", TYPE_A, 100, "192.0.2.2", 0},     {"four.test", TYPE_A, 90, "192.0.2.3", 0},
    {"six.test", TYPE_AAAA, 100, "2001:db8::2", 0}, {"short.test", TYPE_A, 0, "192.0.2.4", 0},
    {"long.test", TYPE_A, 1000000, "192.0.2.5", 0}, {"alias.test", TYPE_CNAME, 30, "both.test", 0},
    {"broken.test", TYPE_A, 0, NULL, RCODE_FAILED}, {"broken.test", TYPE_AAAA, 0, NULL, RCODE_FAILED},
    {"silent.test", TYPE_A, 0, NULL, SILENT},       {"silent.test", TYPE_AAAA, 0, NULL, SILENT},
    {"moved.test", TYPE_A, 60, "192.0.2.6", 0},
};

/* --- the name server --- */

static struct {
    int fd;
    uint16_t port;
    pthread_t thread;
    _Atomic bool ending;
    _Atomic unsigned questions;
} server;

struct message {
    uint8_t bytes[512];
    size_t size;
};

static void put(struct message *m, const void *bytes, size_t size)
{
    assert_true(m->size + size <= sizeof m->bytes);
    memcpy(m->bytes + m->size, bytes, size);
    m->size += size;
}

static void put16(struct message *m, unsigned value)
{
    put(m, (uint8_t[]){(uint8_t)(value >> 8), (uint8_t)value}, 2);
}

static void put_name(struct message *m, const char *name)
{
    while (*name) {
        uint8_t size = (uint8_t)strcspn(name, ".");
        put(m, &size, 1);
        put(m, name, size);
        name += size + (name[size] == '.');
    }
    put(m, "", 1);
}

static void put_record(struct message *m, const struct entry *e)
{
    struct message data = {.size = 0};
    uint8_t ip[16];
    if (e->type == TYPE_CNAME)
        put_name(&data, e->data);
    else if (inet_pton(e->type == TYPE_A ? AF_INET : AF_INET6, e->data, ip) == 1)
        put(&data, ip, e->type == TYPE_A ? 4 : 16);
    put_name(m, e->name);
    put16(m, (unsigned)e->type);
    put16(m, 1); /* IN */
    put16(m, e->ttl_s >> 16);
    put16(m, e->ttl_s & 0xffff);
    put16(m, (unsigned)data.size);
    put(m, data.bytes, data.size);
}

/* Appends what there is of the name; returns how many records, or -1: nothing is known of it. */
static int put_answers(struct message *m, const char *name, int type, int *rcode)
{
    int count = -1;
    for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
        const struct entry *e = &entries[i];
        if (strcmp(e->name, name) != 0)
            continue;
        count = count < 0 ? 0 : count;
        if (e->type == type && e->rcode)
            *rcode = e->rcode;
        if (e->rcode || (e->type != type && e->type != TYPE_CNAME))
            continue;
        put_record(m, e);
        count++;
        if (e->type == TYPE_CNAME)
            count += put_answers(m, e->data, type, rcode);
    }
    return count;
}

/* RFC 1035 section 4.1. Returns false if there is no answer. */
static bool make_answer(const uint8_t *question, size_t size, struct message *m)
{
    char name[256] = "";
    size_t at = 12, length = 0;
    while (at < size && question[at] > 0) {
        length += (size_t)snprintf(name + length, sizeof name - length, "%s%.*s", length ? "." : "",
                                   question[at], (const char *)question + at + 1);
        at += question[at] + 1u;
    }
    int type = question[at + 1] << 8 | question[at + 2], rcode = 0;
    *m = (struct message){.size = 0};
    put(m, question, at + 5);
    int count = put_answers(m, name, type, &rcode);
    if (rcode == SILENT)
        return false;
    if (count < 0)
        rcode = RCODE_NO_NAME;
    m->bytes[2] = 0x85; /* an answer, authoritative, recursion desired */
    m->bytes[3] = (uint8_t)(0x80 | rcode);
    memset(m->bytes + 6, 0, 6);
    m->bytes[7] = (uint8_t)(count > 0 ? count : 0);
    return true;
}

static void *serve(void *context)
{
    (void)context;
    while (!server.ending) {
        struct pollfd polled = {.fd = server.fd, .events = POLLIN};
        struct sockaddr_in from;
        socklen_t from_len = sizeof from;
        uint8_t question[512];
        struct message answer;
        if (poll(&polled, 1, 20) <= 0)
            continue;
        ssize_t size = recvfrom(server.fd, question, sizeof question, 0, (struct sockaddr *)&from, &from_len);
        if (size < 17)
            continue;
        server.questions++;
        if (make_answer(question, (size_t)size, &answer))
            sendto(server.fd, answer.bytes, answer.size, 0, (struct sockaddr *)&from, from_len);
    }
    return NULL;
}

static void start(void)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    server.ending = false;
    server.questions = 0;
    server.fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(server.fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(getsockname(server.fd, (struct sockaddr *)&at, &len), 0);
    server.port = ntohs(at.sin_port);
    assert_int_equal(pthread_create(&server.thread, NULL, serve, NULL), 0);
}

static void stop(void)
{
    server.ending = true;
    pthread_join(server.thread, NULL);
    close(server.fd);
}

/* --- asking it --- */

static char resolv_conf[sizeof temp_path + 32];

static void name_server_is(const char *address)
{
    FILE *file = fopen(resolv_conf, "we");
    assert_non_null(file);
    fprintf(file, "nameserver %s\nsearch example.invalid\n", address);
    fclose(file);
}

static int find(const char *name, struct dns_answer *answer)
{
    const struct dns_servers servers = {
        .resolv_conf = resolv_conf, .port = server.port, .timeout_ms = 200, .tries = 2};
    return dns_ares(name, &servers, answer);
}

static bool has(const struct dns_answer *answer, const char *text)
{
    for (unsigned i = 0; i < answer->count; i++) {
        const struct sockaddr_storage *at = &answer->addresses[i].address;
        char found[INET6_ADDRSTRLEN] = "";
        bool six = at->ss_family == AF_INET6;
        inet_ntop(at->ss_family,
                  six ? (const void *)&((const struct sockaddr_in6 *)at)->sin6_addr
                      : (const void *)&((const struct sockaddr_in *)at)->sin_addr,
                  found, sizeof found);
        size_t len = six ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in);
        if (strcmp(found, text) == 0 && answer->addresses[i].len == len)
            return true;
    }
    return false;
}

static void answers_have_all_addresses_and_the_shortest_time_to_live(void **state)
{
    (void)state;
    static const struct {
        const char *name, *first, *second;
        unsigned count;
        uint64_t valid_ns;
    } cases[] = {
        {"both.test", "192.0.2.1", "2001:db8::1", 2, 200 * NS_PER_S},
        {"four.test", "192.0.2.2", "192.0.2.3", 2, 90 * NS_PER_S},
        {"six.test", "2001:db8::2", "2001:db8::2", 1, 100 * NS_PER_S},
        {"short.test", "192.0.2.4", "192.0.2.4", 1, DNS_VALID_MIN_NS},
        {"long.test", "192.0.2.5", "192.0.2.5", 1, DNS_VALID_MAX_NS},
        {"alias.test", "192.0.2.1", "2001:db8::1", 2, 30 * NS_PER_S},
    };
    start();
    name_server_is("127.0.0.1");
    for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
        struct dns_answer answer;
        assert_int_equal(find(cases[i].name, &answer), 0);
        assert_int_equal(answer.count, cases[i].count);
        assert_true(has(&answer, cases[i].first));
        assert_true(has(&answer, cases[i].second));
        assert_int_equal(answer.valid_ns, cases[i].valid_ns);
    }
    stop();
}

static void what_is_not_there_is_not_found_and_what_fails_fails(void **state)
{
    (void)state;
    struct dns_answer answer;
    start();
    name_server_is("127.0.0.1");
    assert_int_equal(find("missing.test", &answer), PE_NAME_NOT_FOUND);
    assert_int_equal(find("broken.test", &answer), PE_NAME_FAILED);
    assert_int_equal(find("silent.test", &answer), PE_NAME_FAILED);
    assert_int_equal(answer.count, 0);
    stop();
}

static void a_changed_resolv_conf_is_seen_by_the_next_lookup(void **state)
{
    (void)state;
    struct dns_answer answer;
    start();
    name_server_is("127.0.0.2"); /* where nobody is */
    assert_int_equal(find("moved.test", &answer), PE_NAME_FAILED);
    assert_int_equal(server.questions, 0);
    name_server_is("127.0.0.1");
    assert_int_equal(find("moved.test", &answer), 0);
    assert_true(has(&answer, "192.0.2.6"));
    stop();
}

struct asking {
    pthread_t thread;
    int error;
    struct dns_answer answer;
};

static void *ask(void *context)
{
    struct asking *a = context;
    a->error = find("both.test", &a->answer);
    return NULL;
}

static void lookups_on_several_threads_share_nothing(void **state)
{
    (void)state;
    static struct asking asking[8];
    start();
    name_server_is("127.0.0.1");
    for (size_t i = 0; i < ARRAY_SIZE(asking); i++)
        assert_int_equal(pthread_create(&asking[i].thread, NULL, ask, &asking[i]), 0);
    for (size_t i = 0; i < ARRAY_SIZE(asking); i++) {
        pthread_join(asking[i].thread, NULL);
        assert_int_equal(asking[i].error, 0);
        assert_int_equal(asking[i].answer.count, 2);
    }
    stop();
}

/* /etc/hosts is first, as nsswitch.conf has it. */
static void what_etc_hosts_says_is_not_asked_for(void **state)
{
    (void)state;
    struct dns_answer answer;
    start();
    name_server_is("127.0.0.1");
    assert_int_equal(find("localhost", &answer), 0);
    assert_true(has(&answer, "127.0.0.1") || has(&answer, "::1"));
    assert_int_equal(server.questions, 0);
    stop();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_have_all_addresses_and_the_shortest_time_to_live),
        cmocka_unit_test(what_is_not_there_is_not_found_and_what_fails_fails),
        cmocka_unit_test(a_changed_resolv_conf_is_seen_by_the_next_lookup),
        cmocka_unit_test(lookups_on_several_threads_share_nothing),
        cmocka_unit_test(what_etc_hosts_says_is_not_asked_for),
    };
    temp_make();
    snprintf(resolv_conf, sizeof resolv_conf, "%s/resolv.conf", temp_path);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
