/* A row of replies, what a wire made of it, and what is to be compared. */
#ifndef PURE_TESTS_RUNNERS_REPLIES_H
#define PURE_TESTS_RUNNERS_REPLIES_H

#include "tests/runners/rows.h"
#include "wire/wire.h"

struct reply_row {
    const char *id, *name;
    bool accept;
    unsigned status;
    uint64_t body_bytes;
    uint8_t body_digest[crypto_hash_sha256_BYTES];
    bool server_closes; /* after the reply */
    bool says_reuse;    /* the row says whether the second request comes on the first's connection: */
    bool reuse;
    struct span reply;
};

/* A whole reply as the wire's connection saw it. */
struct seen_reply {
    unsigned status;
    uint64_t bytes;
    uint8_t digest[crypto_hash_sha256_BYTES];
};

/* Replies of an exchange: that of the row, and at most the same record again and the second one. */
#define SEEN_MAX 4

struct seen {
    struct connection_reader reader; /* first: seen_content has nothing but it */
    unsigned count;                  /* whole replies */
    struct seen_reply replies[SEEN_MAX];
    crypto_hash_sha256_state hash; /* of the body that comes */
    uint64_t bytes;
};

/* How an exchange went. */
struct played {
    unsigned first_whole;    /* whole replies in answer to the first request: 0 or 1 */
    uint64_t first_stored;   /* records that it was believed to store: 0 or 1 */
    unsigned requests;       /* the server got, in all */
    bool reused;             /* the second of them came on the first's connection */
    bool all_stored;         /* both records, in the end */
    const struct seen *seen; /* all whole replies */
};

static inline void seen_clear_body(struct seen *s)
{
    crypto_hash_sha256_init(&s->hash);
    s->bytes = 0;
}

static inline void seen_content(struct connection_reader *reader, struct span content)
{
    struct seen *s = (struct seen *)reader;
    crypto_hash_sha256_update(&s->hash, content.data, content.size);
    s->bytes += content.size;
}

static inline void seen_done(struct connection_reader *reader, uint16_t status)
{
    struct seen *s = (struct seen *)reader;
    if (s->count < SEEN_MAX) {
        struct seen_reply *reply = &s->replies[s->count];
        reply->status = status;
        reply->bytes = s->bytes;
        crypto_hash_sha256_final(&s->hash, reply->digest);
    }
    s->count++;
    seen_clear_body(s);
}

static inline void seen_init(struct seen *s)
{
    *s = (struct seen){.reader = {seen_content, seen_done}};
    seen_clear_body(s);
}

/* What the server answers to every request but the first: each in its own words. */
static inline size_t later_reply(char *text, size_t size, unsigned request)
{
    char body[32];
    int length = snprintf(body, sizeof body, "answer %u", request);
    return (size_t)snprintf(text, size, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", length, body);
}

static inline bool is_later_reply(const struct seen_reply *reply, unsigned request)
{
    char body[32];
    uint8_t digest[crypto_hash_sha256_BYTES];
    int length = snprintf(body, sizeof body, "answer %u", request);
    crypto_hash_sha256(digest, (const uint8_t *)body, (size_t)length);
    return reply->status == 200 && reply->bytes == (uint64_t)length &&
           memcmp(reply->digest, digest, sizeof digest) == 0;
}

static inline void put_reply(char *text, size_t size, const struct seen_reply *reply)
{
    char hex[9];
    sodium_bin2hex(hex, sizeof hex, reply->digest, 4);
    snprintf(text, size, "accept %u, %llu bytes (%s…)", reply->status, (unsigned long long)reply->bytes, hex);
}

/* Compares; writes what is wrong to `why`. False: something is. */
static inline bool played_right(const struct reply_row *row, const struct played *p, char *why, size_t size)
{
    const struct seen *seen = p->seen;
    const struct seen_reply expected = {.status = row->status, .bytes = row->body_bytes};
    const struct seen_reply *first = &seen->replies[0];
    char one[80], other[80];
    if (p->first_whole != (unsigned)row->accept) {
        snprintf(why, size, "expected %s, got %s", row->accept ? "accept" : "reject",
                 p->first_whole ? "accept" : "reject");
        return false;
    }
    if (row->accept && (first->status != row->status || first->bytes != row->body_bytes ||
                        memcmp(first->digest, row->body_digest, sizeof row->body_digest) != 0)) {
        struct seen_reply wanted = expected;
        memcpy(wanted.digest, row->body_digest, sizeof wanted.digest);
        put_reply(one, sizeof one, &wanted);
        put_reply(other, sizeof other, first);
        snprintf(why, size, "expected %s, got %s", one, other);
        return false;
    }
    if (row->accept && p->first_stored != (row->status / 100 == 2)) {
        snprintf(why, size, "status %u: %s", row->status, p->first_stored ? "delivered" : "not delivered");
        return false;
    }
    if (!p->all_stored) {
        snprintf(why, size, "the second exchange failed (%u requests)", p->requests);
        return false;
    }
    if (p->requests != 3 - (unsigned)p->first_stored || seen->count != p->requests - 1 + p->first_whole) {
        snprintf(why, size, "%u requests and %u whole replies in all", p->requests, seen->count);
        return false;
    }
    if (row->says_reuse && p->reused != row->reuse) {
        snprintf(why, size, "the second request came on %s connection", p->reused ? "the same" : "a fresh");
        return false;
    }
    for (unsigned i = p->first_whole, request = 2; i < seen->count; i++, request++) {
        if (!is_later_reply(&seen->replies[i], request)) {
            put_reply(one, sizeof one, &seen->replies[i]);
            snprintf(why, size, "garbled: request %u got %s", request, one);
            return false;
        }
    }
    return true;
}

#endif
