/* What comes to a scripted endpoint of an output whose records are numbered events: that each has its own
 * content under its own id, in order, and how often each came. What is wrong is an assertion.
 *
 *     {"n":7,"k":"k3"}    record 7: numbers count up from 1; "k" is their rest by KEYS
 *
 * Include after cmocka.h. */
#ifndef PURE_TESTS_HOOK_WITNESS_H
#define PURE_TESTS_HOOK_WITNESS_H

#include "tests/sim/ledgers.h"

#define KEYS            4 /* of the records: fewer than may be under way at a time */
#define WITNESS_NUMBERS 8000
#define WITNESS_IDS     (2 * WITNESS_NUMBERS)

enum order {
    ORDER_ALL,  /* by their numbers */
    ORDER_KEYS, /* of each key */
    ORDER_NONE,
};

/* A webhook-id that came, and what with. */
struct identity {
    uint64_t id, content; /* hashes; id 0: none */
};

/* The request that came last: numbers of its records. */
struct place {
    unsigned first, last;
};

struct witness {
    enum order order;
    bool batched;
    bool may_go_back;          /* the sender has begun anew, and goes on where it knows that all was taken */
    uint64_t epoch;            /* of the ids; 0: there was none yet */
    struct place places[KEYS]; /* ORDER_KEYS: of each key; else the first one */
    struct identity ids[WITNESS_IDS];
    uint8_t times[WITNESS_NUMBERS]; /* how often a record was taken */
};

static inline size_t record_text(unsigned number, char text[64])
{
    return (size_t)snprintf(text, 64, "{\"n\":%u,\"k\":\"k%u\"}", number, number % KEYS);
}

/* What is behind that text, which is there. */
static inline const char *behind(const char *head, const char *text)
{
    const char *at = strstr(head, text);
    if (!at)
        fail_msg("\"%s\" is missing in: %s", text, head);
    return at + strlen(text);
}

static inline uint64_t hash_of(struct span bytes)
{
    uint64_t hash = 1;
    for (size_t i = 0; i < bytes.size; i++)
        hash = ledger_hash(hash, bytes.data[i]);
    return hash;
}

/* The same id has the same content each time. */
static inline void see_id(struct witness *w, struct span id, struct span content)
{
    uint64_t hash = hash_of(id), at = hash % WITNESS_IDS, steps = 0;
    while (w->ids[at].id != 0 && w->ids[at].id != hash && ++steps < WITNESS_IDS)
        at = (at + 1) % WITNESS_IDS;
    assert_true(steps < WITNESS_IDS);
    if (w->ids[at].id == hash && w->ids[at].content != hash_of(content))
        fail_msg("%.*s came with another content", (int)id.size, (const char *)id.data);
    w->ids[at] = (struct identity){hash, hash_of(content)};
}

/* In order: the request behind the last, or that one again. */
static inline void see_order(struct witness *w, unsigned first, unsigned count)
{
    struct place *place = &w->places[w->order == ORDER_KEYS ? first % KEYS : 0];
    unsigned step = w->order == ORDER_KEYS ? KEYS : 1;
    bool begins = place->last == 0 && first <= step;
    bool again = first == place->first || (first < place->first && w->may_go_back);
    if (w->order != ORDER_NONE)
        assert_true(begins || again || first == place->last + step);
    *place = (struct place){first, first + count - 1};
}

static inline void see_record(struct witness *w, unsigned number, struct span record, bool taken)
{
    char text[64];
    assert_in_range(number, 1, WITNESS_NUMBERS - 1);
    assert_int_equal(record.size, record_text(number, text));
    assert_memory_equal(record.data, text, record.size);
    w->times[number] += taken;
}

static inline void see_lines(struct witness *w, unsigned first, unsigned count, struct span body, bool taken)
{
    for (unsigned i = 0; i < count; i++) {
        const uint8_t *end = memchr(body.data, '\n', body.size);
        assert_non_null(end);
        size_t size = (size_t)(end - body.data);
        see_record(w, first + i, span_of(body.data, size), taken);
        body = span_of(end + 1, body.size - size - 1);
    }
    assert_int_equal(body.size, 0);
}

/* `taken`: it will be answered so. The number of the last record. */
static inline unsigned witness_request(struct witness *w, struct span request, bool taken)
{
    char head[1024], *end;
    const uint8_t *body = memmem(request.data, request.size, "\r\n\r\n", 4);
    assert_non_null(body);
    body += 4;
    snprintf(head, sizeof head, "%.*s", (int)(body - request.data), (const char *)request.data);
    struct span content = span_of(body, request.size - (size_t)(body - request.data));
    const char *id = behind(head, "webhook-id: ");
    uint64_t epoch = strtoull(behind(id, "msg_"), &end, 16);
    unsigned number = (unsigned)strtoul(behind(end, "_"), NULL, 10), count = 1;
    assert_true(w->epoch == 0 || w->epoch == epoch);
    w->epoch = epoch;
    see_id(w, span_of(id, strcspn(id, "\r")), content);
    if (w->batched) {
        assert_int_equal(strtoul(behind(head, "Pure-First: "), NULL, 10), number);
        count = (unsigned)strtoul(behind(head, "Pure-Count: "), NULL, 10);
        see_lines(w, number, count, content, taken);
    } else {
        see_record(w, number, content, taken);
    }
    see_order(w, number, count);
    return number + count - 1;
}

#endif
