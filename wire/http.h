/* HTTP/1.1 messages by the letter of RFC 9110 and RFC 9112: heads, bodies and replies. Pure functions and
 * state machines over bytes; no socket, no clock, no allocation but for a reply's head above 16 KiB. Every
 * input, split anywhere, gives the outcome of the whole. */
#ifndef PURE_WIRE_HTTP_H
#define PURE_WIRE_HTTP_H

#include "core/bytes.h"
#include "core/error.h"

#define HTTP_HEAD_MAX        16384 /* bytes of a request's head, its final empty line included; of trailers */
#define HTTP_REPLY_HEAD_MAX  307200 /* of a reply's: 300 KiB, which curl takes, too */
#define HTTP_FIELDS_MAX      256
#define HTTP_FIELDS_READ     16 /* of these, in a reply: for fields that a wire reads, wherever they stand */
#define HTTP_EMPTY_LINES_MAX 4  /* before a request line (RFC 9112 section 2.2) */
#define HTTP_INTERIM_MAX     8  /* 1xx replies skipped before a final one */
#define HTTP_CHUNK_LINE_MAX  4096 /* bytes of a chunk-size line with its extensions */

struct http_field {
    struct span name;  /* token, as it came: compare without case */
    struct span value; /* without the white space around it */
};

/* A parsed head. Its spans point into the bytes that were parsed. */
struct http_head {
    uint8_t minor;      /* HTTP/1.minor; above 1 is read as 1 */
    uint16_t status;    /* replies: 100 to 999 */
    struct span reason; /* replies; may be empty */
    struct span method; /* requests: a token */
    struct span target; /* requests: path and query, which start with '/', or "*" (of OPTIONS only), or
                           HOST:PORT (of CONNECT only) */
    bool
        odd; /* replies: a line was forgiven that is no field. What else its sender gets wrong is not known */
    unsigned count;
    struct http_field fields[HTTP_FIELDS_MAX]; /* [0, count) */
};

/* Both parse the head at the front of the bytes. They return its size (> 0, through the empty line),
 * PE_INCOMPLETE, PE_MALFORMED, or PE_TOO_LARGE (over the head's size or HTTP_FIELDS_MAX). A malformed line is
 * reported once it is whole; bytes that no start line begins with, at once. `*scanned` is where an earlier
 * call on a prefix of the same bytes stopped looking (0 at first): a head that drips in byte by byte costs
 * linear time. `head` is valid only if a size was returned.
 *
 * Malformed in both: a bare CR or NUL anywhere, a line without a colon, a version other than HTTP/1.x.
 *
 * Requests are read strictly: every line ends with CR LF, a field is never folded, its name is a token with
 * the colon right behind it, no control bytes. An
 * HTTP/1.1 request has exactly one Host of valid bytes, an HTTP/1.0 request one at most (RFC 9112 section
 * 3.2). Of a target in absolute form, `target` is the path and query (section 3.2.2; "/" in static storage if
 * there are none): the Host field says nothing then and is not to be looked at. Authority form is for
 * CONNECT, which has no other. */
int http_request_head(struct span bytes, size_t *scanned, struct http_head *head);

/* Replies are read with the tolerance the RFCs give to clients: a bare LF ends a line (RFC 9112 section 2.2),
 * the reason and the space before it may be missing, a tab may stand for a space (section 4), control bytes
 * in values are kept (RFC 9110 section 5.5: escape what is shown to people), and a folded field is one value:
 * once the head is complete, its folds in `bytes` are overwritten with spaces (RFC 9112 section 5.2).
 *
 * Forgiven, and `odd`: white space between a name and its colon, which is dropped (section 5.1), lines before
 * the first field that begin with white space, which are passed over (section 2.2), and names that are no
 * token, which nobody asks for.
 *
 * Of a reply with too many fields for `fields`, the last HTTP_FIELDS_READ places are only for those that a
 * wire reads (http_head.c has the list); other fields that find no room are left out. */
int http_reply_head(uint8_t *bytes, size_t size, size_t *scanned, struct http_head *head);

/* The first field of that name (lower case given), or NULL. */
const struct http_field *http_field(const struct http_head *head, const char *name);

/* Whether a list field (all its lines) has this element (lower case given), compared without case:
 * `Connection: keep-alive, close`. */
bool http_field_has(const struct http_head *head, const char *name, const char *element);

/* Takes the next element, which may be empty, off a comma-separated list without quoted strings (RFC 9110
 * section 5.6.1), without the white space around it. false: there is none; `rest->data` is NULL then. */
bool http_list_next(struct span *rest, struct span *element);

/* Compared without case; `text` is in lower case. */
bool http_is(struct span span, const char *text);

/* Decimal digits only; PE_MALFORMED otherwise or when over `max`. */
int http_number(struct span text, uint64_t max, uint64_t *value);

/* --- bodies --- */

enum http_framing { HTTP_NO_BODY, HTTP_SIZED, HTTP_CHUNKED, HTTP_UNTIL_CLOSE };

/* What a body's content is coded in beside `chunked` (RFC 9112 section 7). */
enum http_coding { HTTP_PLAIN, HTTP_GZIP, HTTP_DEFLATE, HTTP_UNKNOWN };

struct http_body {
    enum http_framing framing;
    enum http_coding coding; /* replies; wire/inflate.h undoes it */
    bool strict;             /* a request's: lines end with CR LF. A reply's may end with LF alone */
    uint8_t state;           /* HTTP_CHUNKED: where in the chunked coding */
    uint32_t line; /* HTTP_CHUNKED: bytes of the chunk-size line, or of the trailers, so far: bounded */
    uint64_t left; /* HTTP_SIZED: bytes of the body to come. HTTP_CHUNKED: of the chunk */
};

/* How the message's body is framed (RFC 9112 section 6.3). 0 or PE_MALFORMED.
 *
 * Requests, read so that no two readers can differ: one Content-Length of digits up to INT64_MAX, or one
 * Transfer-Encoding that is exactly `chunked` in an HTTP/1.1 request, or neither (no body). Anything else is
 * malformed. */
int http_request_body(const struct http_head *head, struct http_body *body);

/* Replies. `head_request`: it answers a HEAD. 1xx, 204, 304 and answers to HEAD have no body. A
 * Transfer-Encoding overrides Content-Length: chunked if its last coding is, until close otherwise. Its other
 * coding is `coding`: gzip or deflate once and before chunked, or HTTP_UNKNOWN. Content-Lengths that all say
 * the same are one (RFC 9110 section 8.6); one over INT64_MAX is until close, the only end such a body can
 * have here. Malformed: lengths that differ or are not digits.
 *
 * `*exact`: the framing is beyond doubt, so that the end of this body is the start of the next reply. false:
 * until close, both fields at once, a length in a 204, Transfer-Encoding in HTTP/1.0 or other than `chunked`
 * once, an odd head: the connection must not be used again. */
int http_reply_body(const struct http_head *head, bool head_request, struct http_body *body, bool *exact);

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
    bool reusable;    /* from HTTP_REPLY_BODY on: the connection may carry another exchange once DONE */
    uint16_t status;  /* of the final reply, once its head is read and its framing known; else 0 */
    uint8_t interims; /* 1xx replies skipped: at most HTTP_INTERIM_MAX */
    uint32_t kept;    /* bytes of an unfinished head in `buffer` */
    size_t scanned;   /* of these, as http_reply_head says */
    struct http_body body;
    struct http_head head; /* final head: spans into `buffer` or `large`; valid until the next init */
    uint8_t *large;        /* HTTP_REPLY_HEAD_MAX bytes, for a head that `buffer` does not hold; or NULL */
    uint8_t buffer[HTTP_HEAD_MAX];
};

/* `reply` is new or disposed of. */
void http_reply_init(struct http_reply *reply, bool head_request);
void http_reply_dispose(struct http_reply *reply);

/* Takes bytes; sets `*used` and `*content` as http_body_take does. Returns 0 (state says how far; call again
 * while bytes are left and it is not DONE), PE_HTTP_REPLY or -ENOMEM (then it takes no more). Bytes after
 * DONE are not used: surplus. 101 is PE_HTTP_REPLY (nothing was upgraded), and so is a body in HTTP_UNKNOWN
 * coding: its status is known by then. `content` is as the other codings have it. */
int http_reply_take(struct http_reply *reply, struct span bytes, size_t *used, struct span *content);

/* The peer ended the stream: 0 if the reply is complete by that (state becomes DONE, not reusable), PE_CLOSED
 * if not one byte came, else PE_CLOSED_EARLY. An HTTP/1.0 head of at least one field that ends with the
 * stream instead of its empty line, after a whole line, is a complete reply without a body: RFC 9112 section
 * 8 leaves that to the client, and such servers exist. */
int http_reply_end(struct http_reply *reply);

#endif
