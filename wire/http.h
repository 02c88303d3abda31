/* HTTP/1.1 messages by the letter of RFC 9110 and RFC 9112: heads, bodies and replies. Pure functions and
 * state machines over bytes; no socket, no clock, no allocation. Every input, split anywhere, gives the
 * outcome of the whole. */
#ifndef PURE_WIRE_HTTP_H
#define PURE_WIRE_HTTP_H

#include "core/bytes.h"
#include "core/error.h"

#define HTTP_HEAD_MAX    16384 /* bytes of a head, its final empty line included */
#define HTTP_FIELDS_MAX  100
#define HTTP_INTERIM_MAX 8 /* 1xx replies skipped before a final one */

struct http_field {
    struct span name;  /* token, as it came: compare without case */
    struct span value; /* without the white space around it */
};

/* A parsed head. Its spans point into the bytes that were parsed. */
struct http_head {
    uint8_t minor;      /* HTTP/1.minor; above 1 is read as 1 */
    uint16_t status;    /* replies: 100 to 999 */
    struct span reason; /* replies */
    struct span method; /* requests */
    struct span target; /* requests */
    unsigned count;
    struct http_field fields[HTTP_FIELDS_MAX];
};

/* Parses the head at the front of `bytes`. Returns its size (> 0, through the empty line), PE_INCOMPLETE,
 * PE_MALFORMED, or PE_TOO_LARGE (over HTTP_HEAD_MAX or HTTP_FIELDS_MAX). Malformed is said as soon as it is
 * certain. `*scanned` is where an earlier call on a prefix of the same bytes stopped looking for the end (0
 * at first): a head that drips in byte by byte costs linear time. Requests: empty lines before the request
 * line are skipped (RFC 9112 section 2.2). Bare CR, NUL, obs-fold, white space before a colon and control
 * bytes are malformed; a bare LF ends a line in replies (section 2.2) and is malformed in requests. */
int http_request_head(struct span bytes, size_t *scanned, struct http_head *head);
int http_reply_head(struct span bytes, size_t *scanned, struct http_head *head);

/* The first field of that name (lower case given), or NULL. */
const struct http_field *http_field(const struct http_head *head, const char *name);

/* Whether a list field (all its lines) has this element, compared without case: `Connection: keep-alive,
 * close`. */
bool http_field_has(const struct http_head *head, const char *name, const char *element);

/* Decimal digits only; PE_MALFORMED otherwise or when over `max`. */
int http_number(struct span text, uint64_t max, uint64_t *value);

/* --- bodies --- */

enum http_framing { HTTP_NO_BODY, HTTP_SIZED, HTTP_CHUNKED, HTTP_UNTIL_CLOSE };

struct http_body {
    enum http_framing framing;
    uint64_t left; /* HTTP_SIZED: bytes of the body to come. HTTP_CHUNKED: of the chunk */
    uint8_t state; /* HTTP_CHUNKED: where in the chunked coding */
    uint32_t line; /* HTTP_CHUNKED: bytes of the chunk-size line, or of the trailers, so far: bounded */
};

/* How the message's body is framed (RFC 9112 section 6). PE_MALFORMED: conflicting, repeated with different
 * values, overflowing or unreadable Content-Length; Content-Length with Transfer-Encoding; in requests a
 * Transfer-Encoding that is not exactly chunked last. `head_request`: the reply answers a HEAD. */
int http_request_body(const struct http_head *head, struct http_body *body);
int http_reply_body(const struct http_head *head, bool head_request, struct http_body *body);

/* Takes bytes of the body from `bytes`: sets `*used` (how many were consumed) and `*content` (the decoded
 * bytes among them, at most one contiguous piece a call, may be empty). Returns 1 when the body is complete,
 * 0 when it is not (call again while bytes are left), or PE_MALFORMED. HTTP_NO_BODY and a spent HTTP_SIZED
 * are complete at once with nothing used. */
int http_body_take(struct http_body *body, struct span bytes, size_t *used, struct span *content);

/* The peer ended the stream: 0 if that ends this body (HTTP_UNTIL_CLOSE, or it was complete), else
 * PE_CLOSED_EARLY. */
int http_body_end(const struct http_body *body);

/* --- a whole reply, interim ones skipped --- */

enum http_reply_state { HTTP_REPLY_HEAD, HTTP_REPLY_BODY, HTTP_REPLY_DONE };

struct http_reply {
    enum http_reply_state state;
    bool head_request;
    bool reusable;   /* valid from HTTP_REPLY_BODY on: the connection may carry another exchange once DONE */
    uint16_t status; /* of the final reply, once its head is read; else 0 */
    uint8_t interims;
    uint32_t kept; /* bytes of an unfinished head in `buffer` */
    size_t scanned;
    struct http_body body;
    struct http_head head; /* final head: spans into `buffer`; valid until the next init */
    uint8_t buffer[HTTP_HEAD_MAX];
};

void http_reply_init(struct http_reply *reply, bool head_request);

/* Takes bytes; sets `*used` and `*content` as http_body_take does. Returns 0 (state says how far; call again
 * while bytes are left and it is not DONE) or PE_HTTP_REPLY. Bytes after DONE are not used: surplus. 101 is
 * PE_HTTP_REPLY (nothing was upgraded). */
int http_reply_take(struct http_reply *reply, struct span bytes, size_t *used, struct span *content);

/* The peer ended the stream: 0 if the reply is complete by that (state becomes DONE, not reusable), PE_CLOSED
 * if not one byte came, else PE_CLOSED_EARLY. */
int http_reply_end(struct http_reply *reply);

#endif
