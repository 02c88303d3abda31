/* A whole reply: interim heads skipped, the final head, the body. */
#include "wire/http.h"

#include <errno.h>
#include <stdlib.h>

void http_reply_init(struct http_reply *reply, bool head_request)
{
    reply->state = HTTP_REPLY_HEAD;
    reply->head_request = head_request;
    reply->reusable = false;
    reply->status = 0;
    reply->interims = 0;
    reply->kept = 0;
    reply->scanned = 0;
    reply->large = NULL;
}

void http_reply_dispose(struct http_reply *reply)
{
    free(reply->large);
    reply->large = NULL;
}

/* Whether the connection stays open after this reply (RFC 9112 section 9.3). */
static bool keeps_alive(const struct http_head *head)
{
    if (http_field_has(head, "connection", "close"))
        return false;
    return head->minor > 0 || http_field_has(head, "connection", "keep-alive");
}

/* A head is whole: skips it, or begins the body. */
static int begin(struct http_reply *reply)
{
    const struct http_head *head = &reply->head;
    reply->kept = 0;
    reply->scanned = 0;
    if (head->status < 200) {
        if (head->status == 101 || reply->interims == HTTP_INTERIM_MAX)
            return PE_HTTP_REPLY;
        reply->interims++;
        return 0;
    }
    bool exact;
    if (http_reply_body(head, reply->head_request, &reply->body, &exact) < 0)
        return PE_HTTP_REPLY;
    reply->status = head->status;
    reply->reusable = exact && keeps_alive(head);
    reply->state = HTTP_REPLY_BODY;
    return 0;
}

/* Moves a head that fills `buffer` to where it has all the room that a head may take. */
static int enlarge(struct http_reply *reply)
{
    if (reply->large || reply->kept < sizeof reply->buffer)
        return 0;
    reply->large = malloc(HTTP_REPLY_HEAD_MAX);
    if (!reply->large)
        return -ENOMEM;
    memcpy(reply->large, reply->buffer, reply->kept);
    return 0;
}

/* Takes bytes of one head, no byte after it. */
static int take_head(struct http_reply *reply, struct span bytes, size_t *used)
{
    int error = enlarge(reply);
    if (error < 0)
        return error;
    uint8_t *head = reply->large ? reply->large : reply->buffer;
    size_t room = reply->large ? HTTP_REPLY_HEAD_MAX : sizeof reply->buffer;
    size_t before = reply->kept, taken = min_size(bytes.size, room - before);
    memcpy(head + before, bytes.data, taken);
    int size = http_reply_head(head, before + taken, &reply->scanned, &reply->head);
    if (size == PE_INCOMPLETE) {
        reply->kept = (uint32_t)(before + taken);
        *used += taken;
        return 0;
    }
    if (size < 0)
        return PE_HTTP_REPLY;
    *used += (size_t)size - before;
    return begin(reply);
}

int http_reply_take(struct http_reply *reply, struct span bytes, size_t *used, struct span *content)
{
    *used = 0;
    *content = span_of(NULL, 0);
    while (reply->state == HTTP_REPLY_HEAD && *used < bytes.size) {
        int error = take_head(reply, span_of(bytes.data + *used, bytes.size - *used), used);
        if (error < 0)
            return error;
    }
    if (reply->state != HTTP_REPLY_BODY)
        return 0;
    if (reply->body.coding == HTTP_UNKNOWN)
        return PE_HTTP_REPLY;
    size_t taken;
    int done = http_body_take(&reply->body, span_of(bytes.data + *used, bytes.size - *used), &taken, content);
    *used += taken;
    if (done < 0) {
        reply->reusable = false;
        return PE_HTTP_REPLY;
    }
    if (done > 0)
        reply->state = HTTP_REPLY_DONE;
    return 0;
}

/* The stream ended inside a head: whether that is the end of an HTTP/1.0 reply (RFC 9112 section 8). It is if
 * an empty line makes it whole, which it does only after a whole line. */
static bool ends_head(struct http_reply *reply)
{
    static const char empty_line[] = "\r\n";
    size_t used;
    struct span content;
    int error = http_reply_take(reply, span_of(empty_line, 2), &used, &content);
    return error == 0 && reply->state == HTTP_REPLY_BODY && reply->head.minor == 0 && reply->head.count > 0 &&
           reply->body.framing == HTTP_UNTIL_CLOSE;
}

static int end_in_head(struct http_reply *reply)
{
    if (reply->kept == 0 && reply->interims == 0)
        return PE_CLOSED;
    if (ends_head(reply))
        return 0;
    reply->status = 0;
    return PE_CLOSED_EARLY;
}

int http_reply_end(struct http_reply *reply)
{
    int error = reply->state == HTTP_REPLY_HEAD   ? end_in_head(reply)
                : reply->state == HTTP_REPLY_BODY ? http_body_end(&reply->body)
                                                  : 0;
    reply->reusable = false;
    if (error == 0)
        reply->state = HTTP_REPLY_DONE;
    return error;
}
