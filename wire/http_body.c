/* Bodies: how they are framed, and their bytes. */
#include "wire/http.h"
#include "wire/http_class.h"

/* --- framing --- */

int http_request_body(const struct http_head *head, struct http_body *body)
{
    const struct http_field *length = NULL, *coding = NULL;
    *body = (struct http_body){.framing = HTTP_NO_BODY, .strict = true};
    for (unsigned i = 0; i < head->count; i++) {
        const struct http_field *field = &head->fields[i];
        const struct http_field **slot = http_is(field->name, "content-length")      ? &length
                                         : http_is(field->name, "transfer-encoding") ? &coding
                                                                                     : NULL;
        if (!slot)
            continue;
        if (*slot)
            return PE_MALFORMED;
        *slot = field;
    }
    if (coding) {
        body->framing = HTTP_CHUNKED;
        return !length && head->minor > 0 && http_is(coding->value, "chunked") ? 0 : PE_MALFORMED;
    }
    if (!length)
        return 0;
    body->framing = HTTP_SIZED;
    return http_number(length->value, INT64_MAX, &body->left);
}

/* What the Content-Length fields of a reply say together. */
struct lengths {
    bool given;
    bool valid;     /* digits all, and all the same */
    uint64_t value; /* UINT64_MAX: over INT64_MAX */
};

static bool is_digits(struct span text)
{
    return text.size > 0 && http_class_all(text, CLASS_DIGIT);
}

static struct lengths reply_lengths(const struct http_head *head)
{
    struct lengths lengths = {false, true, 0};
    for (unsigned i = 0; i < head->count; i++) {
        if (!http_is(head->fields[i].name, "content-length"))
            continue;
        struct span rest = head->fields[i].value, one;
        while (http_list_next(&rest, &one)) {
            uint64_t value = UINT64_MAX;
            if (http_number(one, INT64_MAX, &value) < 0 && !is_digits(one))
                lengths.valid = false;
            if (lengths.given && value != lengths.value)
                lengths.valid = false;
            lengths.given = true;
            lengths.value = value;
        }
    }
    return lengths;
}

/* What the Transfer-Encoding fields of a reply say together; `identity`, which RFC 2616 knew, is nothing. */
struct codings {
    unsigned named; /* with `identity` */
    unsigned count;
    bool chunked_last;
    enum http_coding coding;
};

static enum http_coding coding_of(struct span name)
{
    if (http_is(name, "gzip") || http_is(name, "x-gzip")) /* RFC 9112 section 7.2 */
        return HTTP_GZIP;
    return http_is(name, "deflate") ? HTTP_DEFLATE : HTTP_UNKNOWN;
}

/* `chunked` comes last and, in replies of some servers, twice, which is once. One other may come before it.
 */
static void add_coding(struct codings *codings, struct span name)
{
    bool first = codings->count++ == 0;
    codings->chunked_last = http_is(name, "chunked");
    if (!codings->chunked_last)
        codings->coding = first ? coding_of(name) : HTTP_UNKNOWN;
}

static struct codings reply_codings(const struct http_head *head)
{
    struct codings codings = {0, 0, false, HTTP_PLAIN};
    for (unsigned i = 0; i < head->count; i++) {
        if (!http_is(head->fields[i].name, "transfer-encoding"))
            continue;
        struct span rest = head->fields[i].value, one;
        while (http_list_next(&rest, &one)) {
            codings.named += one.size > 0;
            if (one.size > 0 && !http_is(one, "identity"))
                add_coding(&codings, one);
        }
    }
    return codings;
}

int http_reply_body(const struct http_head *head, bool head_request, struct http_body *body, bool *exact)
{
    struct lengths lengths = reply_lengths(head);
    struct codings codings = reply_codings(head);
    bool coded = http_field(head, "transfer-encoding") != NULL;
    *body = (struct http_body){.framing = HTTP_NO_BODY};
    *exact = lengths.valid && !coded && !head->odd;
    if (head->status < 200 || head->status == 204) {
        *exact = *exact && lengths.value == 0;
        return 0;
    }
    if (head->status == 304 || head_request)
        return 0;
    if (codings.count > 0) {
        body->framing = codings.chunked_last ? HTTP_CHUNKED : HTTP_UNTIL_CLOSE;
        body->coding = codings.coding;
        *exact =
            codings.chunked_last && codings.named == 1 && !lengths.given && head->minor > 0 && !head->odd;
        return 0;
    }
    if (!lengths.valid)
        return PE_MALFORMED;
    if (lengths.given && lengths.value <= INT64_MAX) {
        body->framing = HTTP_SIZED;
        body->left = lengths.value;
        return 0;
    }
    body->framing = HTTP_UNTIL_CLOSE;
    *exact = false;
    return 0;
}

/* --- the chunked coding (RFC 9112 section 7.1) --- */

enum chunked {
    CHUNK_SIZE,    /* its digits */
    CHUNK_BLANK,   /* white space after the size */
    CHUNK_EXT,     /* extensions, ignored */
    CHUNK_SIZE_LF, /* the CR of the size line came */
    CHUNK_DATA,    /* `left` bytes of the chunk to come; 0: its CR */
    CHUNK_DATA_LF,
    TRAILER_START, /* of a line: a name, or the empty line that ends it all */
    TRAILER_NAME,
    TRAILER_VALUE,
    TRAILER_LF,
    TRAILER_END_LF, /* of the empty line */
    CHUNKED_DONE
};

#define CHUNK_DIGITS_MAX 16

/* A line ends: at its CR (then comes LF, state `lf`), or at a bare LF where that is allowed (state `next`).
 * -1 if `byte` ends no line. */
static int line_end(const struct http_body *body, uint8_t byte, enum chunked lf, enum chunked next)
{
    if (byte == '\r')
        return (int)lf;
    return byte == '\n' && !body->strict ? (int)next : -1;
}

/* After the size line: the last chunk has size 0 and no data. */
static enum chunked after_size(const struct http_body *body)
{
    return body->left > 0 ? CHUNK_DATA : TRAILER_START;
}

/* Each of these takes one byte, which `line` counts already, and returns the next state, or -1 if the byte
 * may not stand there. */

static int size_byte(struct http_body *body, uint8_t byte)
{
    if (!http_class_is(byte, CLASS_HEX)) {
        if (body->line == 1) /* no digit came */
            return -1;
        if (byte == ' ' || byte == '\t')
            return CHUNK_BLANK;
        return byte == ';' ? CHUNK_EXT : line_end(body, byte, CHUNK_SIZE_LF, after_size(body));
    }
    if (body->line > CHUNK_DIGITS_MAX)
        return -1;
    body->left = body->left << 4 | http_hex(byte);
    return CHUNK_SIZE;
}

static int blank_byte(const struct http_body *body, uint8_t byte)
{
    if (byte == ' ' || byte == '\t')
        return CHUNK_BLANK;
    if (byte == ';')
        return CHUNK_EXT;
    return body->strict ? -1 : line_end(body, byte, CHUNK_SIZE_LF, after_size(body));
}

static int extension_byte(const struct http_body *body, uint8_t byte)
{
    if (http_class_is(byte, body->strict ? CLASS_TEXT : CLASS_KEPT))
        return CHUNK_EXT;
    return line_end(body, byte, CHUNK_SIZE_LF, after_size(body));
}

static int trailer_start_byte(const struct http_body *body, uint8_t byte)
{
    if (http_class_is(byte, CLASS_TOKEN))
        return TRAILER_NAME;
    if (!body->strict && body->line > 1 && (byte == ' ' || byte == '\t')) /* a fold of the line before */
        return TRAILER_VALUE;
    return line_end(body, byte, TRAILER_END_LF, CHUNKED_DONE);
}

static int trailer_name_byte(uint8_t byte)
{
    if (http_class_is(byte, CLASS_TOKEN))
        return TRAILER_NAME;
    return byte == ':' ? TRAILER_VALUE : -1;
}

static int trailer_value_byte(const struct http_body *body, uint8_t byte)
{
    if (http_class_is(byte, body->strict ? CLASS_TEXT : CLASS_KEPT))
        return TRAILER_VALUE;
    return line_end(body, byte, TRAILER_LF, TRAILER_START);
}

static int chunked_byte(struct http_body *body, uint8_t byte)
{
    switch ((enum chunked)body->state) {
    case CHUNK_SIZE:
        return size_byte(body, byte);
    case CHUNK_BLANK:
        return blank_byte(body, byte);
    case CHUNK_EXT:
        return extension_byte(body, byte);
    case CHUNK_SIZE_LF:
        return byte == '\n' ? (int)after_size(body) : -1;
    case CHUNK_DATA:
        return line_end(body, byte, CHUNK_DATA_LF, CHUNK_SIZE);
    case CHUNK_DATA_LF:
        return byte == '\n' ? CHUNK_SIZE : -1;
    case TRAILER_START:
        return trailer_start_byte(body, byte);
    case TRAILER_NAME:
        return trailer_name_byte(byte);
    case TRAILER_VALUE:
        return trailer_value_byte(body, byte);
    case TRAILER_LF:
        return byte == '\n' ? TRAILER_START : -1;
    case TRAILER_END_LF:
        return byte == '\n' ? CHUNKED_DONE : -1;
    case CHUNKED_DONE:
        break;
    }
    return -1;
}

/* How many bytes the line that `state` is in may have, and all trailers together; 0: it is in no line. */
static uint32_t line_limit(uint8_t state)
{
    return state < CHUNK_DATA ? HTTP_CHUNK_LINE_MAX : state < TRAILER_START ? 0 : HTTP_HEAD_MAX;
}

/* One byte that is not content. */
static int step_chunked(struct http_body *body, uint8_t byte)
{
    uint32_t limit = line_limit(body->state);
    body->line++;
    if (limit > 0 && body->line > limit)
        return PE_MALFORMED;
    int next = chunked_byte(body, byte);
    if (next < 0)
        return PE_MALFORMED;
    if (line_limit((uint8_t)next) != limit)
        body->line = 0;
    body->state = (uint8_t)next;
    return 0;
}

static int take_chunked(struct http_body *body, struct span bytes, size_t *used, struct span *content)
{
    size_t at = 0;
    int error = 0;
    while (at < bytes.size && body->state != CHUNKED_DONE && error == 0) {
        if (body->state != CHUNK_DATA || body->left == 0) {
            error = step_chunked(body, bytes.data[at++]);
            continue;
        }
        if (content->size > 0)
            break;
        *content = span_of(bytes.data + at, (size_t)min_u64(bytes.size - at, body->left));
        body->left -= content->size;
        at += content->size;
    }
    *used = at;
    return error < 0 ? error : body->state == CHUNKED_DONE;
}

/* --- bytes of any body --- */

int http_body_take(struct http_body *body, struct span bytes, size_t *used, struct span *content)
{
    *used = 0;
    *content = span_of(NULL, 0);
    switch (body->framing) {
    case HTTP_NO_BODY:
        return 1;
    case HTTP_CHUNKED:
        return take_chunked(body, bytes, used, content);
    case HTTP_UNTIL_CLOSE:
        *used = bytes.size;
        *content = bytes;
        return 0;
    case HTTP_SIZED:
        break;
    }
    *used = (size_t)min_u64(bytes.size, body->left);
    *content = span_of(bytes.data, *used);
    body->left -= *used;
    return body->left == 0;
}

int http_body_end(const struct http_body *body)
{
    bool complete = body->framing == HTTP_NO_BODY || body->framing == HTTP_UNTIL_CLOSE ||
                    (body->framing == HTTP_SIZED && body->left == 0) ||
                    (body->framing == HTTP_CHUNKED && body->state == CHUNKED_DONE);
    return complete ? 0 : PE_CLOSED_EARLY;
}
