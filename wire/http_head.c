/* Heads of requests and replies. A head is looked for first (its empty line), then parsed in one pass over
 * its lines; the lines of a head that is not whole yet are checked as they come, each once. */
#include "wire/http.h"
#include "wire/http_class.h"

enum side { REQUEST, REPLY };

/* --- fields and lists --- */

bool http_is(struct span span, const char *text)
{
    for (size_t i = 0; i < span.size; i++)
        if (text[i] == '\0' || http_lower(span.data[i]) != (uint8_t)text[i])
            return false;
    return text[span.size] == '\0';
}

const struct http_field *http_field(const struct http_head *head, const char *name)
{
    for (unsigned i = 0; i < head->count; i++)
        if (http_is(head->fields[i].name, name))
            return &head->fields[i];
    return NULL;
}

static bool is_blank(uint8_t byte)
{
    return byte == ' ' || byte == '\t';
}

static struct span trimmed(const uint8_t *at, const uint8_t *end)
{
    while (at < end && is_blank(*at))
        at++;
    while (at < end && is_blank(end[-1]))
        end--;
    return span_of(at, (size_t)(end - at));
}

bool http_list_next(struct span *rest, struct span *element)
{
    if (!rest->data)
        return false;
    const uint8_t *end = rest->data + rest->size;
    const uint8_t *comma = rest->size > 0 ? memchr(rest->data, ',', rest->size) : NULL;
    *element = trimmed(rest->data, comma ? comma : end);
    *rest = comma ? span_of(comma + 1, (size_t)(end - comma - 1)) : span_of(NULL, 0);
    return true;
}

bool http_field_has(const struct http_head *head, const char *name, const char *element)
{
    for (unsigned i = 0; i < head->count; i++) {
        if (!http_is(head->fields[i].name, name))
            continue;
        struct span rest = head->fields[i].value, one;
        while (http_list_next(&rest, &one))
            if (http_is(one, element))
                return true;
    }
    return false;
}

int http_number(struct span text, uint64_t max, uint64_t *value)
{
    if (text.size == 0 || !http_class_all(text, CLASS_DIGIT))
        return PE_MALFORMED;
    uint64_t number = 0;
    for (size_t i = 0; i < text.size; i++) {
        unsigned digit = text.data[i] - (unsigned)'0';
        if (number > max / 10 || digit > max - number * 10)
            return PE_MALFORMED;
        number = number * 10 + digit;
    }
    *value = number;
    return 0;
}

/* --- lines --- */

/* The line that `lf` ends, without its end. A request's ends with CR LF. */
static bool line_of(const uint8_t *at, const uint8_t *lf, enum side side, struct span *line)
{
    bool cr = lf > at && lf[-1] == '\r';
    *line = span_of(at, (size_t)(lf - at) - cr);
    return cr || side == REPLY;
}

/* A version at the front: "HTTP/1." and one digit (RFC 9112 section 2.3). */
#define VERSION      "HTTP/1."
#define VERSION_SIZE 8

static bool take_version(const uint8_t *at, size_t size, uint8_t *minor)
{
    if (size < VERSION_SIZE || memcmp(at, VERSION, VERSION_SIZE - 1) != 0 ||
        !http_class_is(at[7], CLASS_DIGIT))
        return false;
    *minor = at[7] > '0';
    return true;
}

/* status-line = HTTP-version SP status-code SP [ reason-phrase ]; the end may come after the status, too. */
static int parse_status_line(struct span line, struct http_head *head)
{
    uint64_t status;
    if (line.size < VERSION_SIZE + 4 || !take_version(line.data, line.size, &head->minor) ||
        !is_blank(line.data[VERSION_SIZE]) ||
        http_number(span_of(line.data + VERSION_SIZE + 1, 3), 999, &status) < 0 || status < 100)
        return PE_MALFORMED;
    head->status = (uint16_t)status;
    head->reason = span_of(line.data + VERSION_SIZE + 4, line.size - (VERSION_SIZE + 4));
    if (head->reason.size == 0)
        return 0;
    if (!is_blank(head->reason.data[0]) || !http_class_all(head->reason, CLASS_KEPT))
        return PE_MALFORMED;
    head->reason.data++;
    head->reason.size--;
    return 0;
}

/* Makes origin form of absolute form: drops the scheme and the authority (RFC 9112 section 3.2.2). */
static int drop_authority(struct span *target)
{
    size_t scheme = 0;
    if (target->size > 7 && http_is(span_of(target->data, 7), "http://"))
        scheme = 7;
    else if (target->size > 8 && http_is(span_of(target->data, 8), "https://"))
        scheme = 8;
    else
        return PE_MALFORMED;
    const uint8_t *at = target->data + scheme, *end = target->data + target->size;
    size_t authority = http_class_run(at, end, CLASS_HOST);
    at += authority;
    if (authority == 0 || (at < end && *at != '/'))
        return PE_MALFORMED;
    *target = at < end ? span_of(at, (size_t)(end - at)) : span_of("/", 1);
    return 0;
}

/* authority-form = uri-host ":" port (RFC 9112 section 3.2.3) */
static bool authority_valid(struct span target)
{
    const uint8_t *colon = memrchr(target.data, ':', target.size), *end = target.data + target.size;
    if (!colon || colon == target.data || colon + 1 == end)
        return false;
    return http_class_all(target, CLASS_HOST) &&
           http_class_all(span_of(colon + 1, (size_t)(end - colon - 1)), CLASS_DIGIT);
}

static int parse_target(struct http_head *head)
{
    struct span *target = &head->target;
    if (target->size == 0)
        return PE_MALFORMED;
    if (span_is(head->method, "CONNECT"))
        return authority_valid(*target) ? 0 : PE_MALFORMED;
    if (target->data[0] == '*')
        return target->size == 1 && span_is(head->method, "OPTIONS") ? 0 : PE_MALFORMED;
    if (target->data[0] != '/') {
        int error = drop_authority(target);
        if (error < 0)
            return error;
    }
    return http_target_valid(*target) ? 0 : PE_MALFORMED;
}

/* request-line = method SP request-target SP HTTP-version (RFC 9112 section 3) */
static int parse_request_line(struct span line, struct http_head *head)
{
    const uint8_t *end = line.data + line.size;
    size_t method = http_class_run(line.data, end, CLASS_TOKEN);
    if (method == 0 || line.size < method + 1 + 1 + 1 + VERSION_SIZE)
        return PE_MALFORMED;
    const uint8_t *target = line.data + method + 1, *version = end - VERSION_SIZE;
    if (target[-1] != ' ' || version[-1] != ' ' || !take_version(version, VERSION_SIZE, &head->minor))
        return PE_MALFORMED;
    head->method = span_of(line.data, method);
    head->target = span_of(target, (size_t)(version - 1 - target));
    return parse_target(head);
}

/* field-line = field-name ":" OWS field-value OWS (RFC 9112 section 5) */
static int parse_request_field(struct span line, struct http_field *field)
{
    const uint8_t *end = line.data + line.size;
    size_t name = http_class_run(line.data, end, CLASS_TOKEN);
    if (name == 0 || name == line.size || line.data[name] != ':')
        return PE_MALFORMED;
    field->name = span_of(line.data, name);
    field->value = trimmed(line.data + name + 1, end);
    return http_class_all(field->value, CLASS_TEXT) ? 0 : PE_MALFORMED;
}

/* The same with what replies are forgiven, which makes the head odd. */
static int parse_reply_field(struct span line, struct http_head *head, struct http_field *field)
{
    const uint8_t *end = line.data + line.size, *colon = memchr(line.data, ':', line.size);
    if (!colon || !http_class_all(line, CLASS_KEPT))
        return PE_MALFORMED;
    size_t before = (size_t)(colon - line.data);
    field->name = trimmed(line.data, colon);
    field->value = trimmed(colon + 1, end);
    head->odd |= before == 0 || field->name.size < before || !http_class_all(field->name, CLASS_TOKEN);
    return 0;
}

static int parse_field(struct span line, enum side side, struct http_head *head, struct http_field *field)
{
    return side == REQUEST ? parse_request_field(line, field) : parse_reply_field(line, head, field);
}

/* Whether a wire reads this field of a reply. */
static bool is_read(struct span name)
{
    static const char *const read[] = {"content-length", "transfer-encoding", "connection",
                                       "location",       "retry-after",       "date",
                                       "pure-stored",    "pure-error"};
    for (unsigned i = 0; i < ARRAY_SIZE(read); i++)
        if (http_is(name, read[i]))
            return true;
    return false;
}

/* False: there are too many. */
static bool add_field(struct http_head *head, enum side side, const struct http_field *field)
{
    bool asked = side == REQUEST || is_read(field->name);
    if (head->count < (asked ? HTTP_FIELDS_MAX : HTTP_FIELDS_MAX - HTTP_FIELDS_READ)) {
        head->fields[head->count++] = *field;
        return true;
    }
    return !asked;
}

static int parse_start_line(struct span line, enum side side, struct http_head *head)
{
    return side == REQUEST ? parse_request_line(line, head) : parse_status_line(line, head);
}

/* A line behind the start line of a whole head. `*room` becomes false if there is none for it. */
static int take_field(struct span line, enum side side, struct http_head *head, bool *room)
{
    struct http_field field;
    if (side == REPLY && is_blank(line.data[0])) { /* folds are no lines any more: nothing came before it */
        head->odd = true;
        return http_class_all(line, CLASS_KEPT) ? 0 : PE_MALFORMED;
    }
    int error = parse_field(line, side, head, &field);
    if (error == 0 && field.name.size > 0)
        *room &= add_field(head, side, &field);
    return error;
}

/* Parses a whole head, which ends with its empty line. All lines are looked at even when there are too many:
 * whether one is malformed must not depend on how the bytes came. */
static int parse_lines(struct span bytes, enum side side, struct http_head *head)
{
    const uint8_t *at = bytes.data, *end = at + bytes.size;
    bool started = false, room = true;
    head->count = 0;
    head->odd = false;
    for (;; started = true) {
        const uint8_t *lf = memchr(at, '\n', (size_t)(end - at));
        struct span line;
        if (!line_of(at, lf, side, &line))
            return PE_MALFORMED;
        at = lf + 1;
        if (at == end)
            break;
        int error = started ? take_field(line, side, head, &room) : parse_start_line(line, side, head);
        if (error < 0)
            return error;
    }
    if (!started)
        return PE_MALFORMED;
    return room ? 0 : PE_TOO_LARGE;
}

/* --- heads that are not whole yet --- */

/* The size of the head that `bytes` begin with, 0 if its empty line is not there. No end lies before `from`,
 * where an earlier search stopped. */
static size_t find_end(struct span bytes, size_t from)
{
    const uint8_t *at = bytes.data + from, *end = bytes.data + bytes.size, *lf;
    while (at < end && (lf = memchr(at, '\n', (size_t)(end - at)))) {
        size_t before = (size_t)(lf - bytes.data);
        at = lf + 1;
        if (before >= 1 && lf[-1] == '\n')
            return before + 1;
        if (before >= 2 && lf[-1] == '\r' && lf[-2] == '\n')
            return before + 1;
    }
    return 0;
}

/* Whether the first bytes can begin a start line. Not all of a dripping line: that its end will show. */
static bool start_possible(struct span bytes, enum side side)
{
    if (bytes.size == 0)
        return true;
    if (side == REQUEST)
        return http_class_is(bytes.data[0], CLASS_TOKEN);
    return memcmp(bytes.data, VERSION, min_size(bytes.size, VERSION_SIZE - 1)) == 0;
}

/* Checks the lines that end in [from, size). Continuations of folded fields are left to the whole head. */
static int check_lines(struct span bytes, size_t from, enum side side, struct http_head *scratch)
{
    const uint8_t *end = bytes.data + bytes.size, *search = bytes.data + from, *lf;
    if (!start_possible(bytes, side))
        return PE_MALFORMED;
    const uint8_t *before = from > 0 ? memrchr(bytes.data, '\n', from) : NULL;
    const uint8_t *at = before ? before + 1 : bytes.data;
    for (; search < end && (lf = memchr(search, '\n', (size_t)(end - search))); at = search = lf + 1) {
        struct span line;
        if (!line_of(at, lf, side, &line))
            return PE_MALFORMED;
        if (side == REPLY && at > bytes.data && is_blank(*at))
            continue;
        int error = at == bytes.data ? parse_start_line(line, side, scratch)
                                     : parse_field(line, side, scratch, &scratch->fields[0]);
        if (error < 0)
            return error;
    }
    return 0;
}

/* The size of the head at the front of `bytes`, of which `allowed` at most may be a head; or an error. */
static int delimit(struct span bytes, size_t allowed, size_t *scanned, enum side side,
                   struct http_head *scratch)
{
    struct span window = span_of(bytes.data, min_size(bytes.size, allowed));
    size_t from = min_size(*scanned, window.size);
    size_t size = find_end(window, from);
    if (size > 0)
        return (int)size;
    int error = check_lines(window, from, side, scratch);
    *scanned = window.size;
    if (error < 0)
        return error;
    return window.size == allowed ? PE_TOO_LARGE : PE_INCOMPLETE;
}

/* --- requests --- */

/* The size of the empty lines before a request line that are forgiven. */
static size_t empty_lines(struct span bytes)
{
    size_t skip = 0;
    while (skip < HTTP_EMPTY_LINES_MAX * 2 && bytes.size - skip >= 2 && bytes.data[skip] == '\r' &&
           bytes.data[skip + 1] == '\n')
        skip += 2;
    return skip;
}

static int check_host(const struct http_head *head)
{
    unsigned hosts = 0;
    for (unsigned i = 0; i < head->count; i++) {
        const struct http_field *field = &head->fields[i];
        if (field->name.size != 4 || !http_is(field->name, "host"))
            continue;
        hosts++;
        if (!http_class_all(field->value, CLASS_HOST))
            return PE_MALFORMED;
    }
    return hosts == 1 || (hosts == 0 && head->minor == 0) ? 0 : PE_MALFORMED;
}

int http_request_head(struct span bytes, size_t *scanned, struct http_head *head)
{
    if (bytes.size == 0)
        return PE_INCOMPLETE;
    size_t skip = empty_lines(bytes);
    struct span rest = span_of(bytes.data + skip, bytes.size - skip);
    if (skip < HTTP_EMPTY_LINES_MAX * 2 && rest.size == 1 && rest.data[0] == '\r')
        return PE_INCOMPLETE;
    size_t rest_scanned = *scanned > skip ? *scanned - skip : 0;
    int size = delimit(rest, HTTP_HEAD_MAX - skip, &rest_scanned, REQUEST, head);
    *scanned = skip + rest_scanned;
    if (size < 0)
        return size;
    int error = parse_lines(span_of(rest.data, (size_t)size), REQUEST, head);
    if (error == 0)
        error = check_host(head);
    return error < 0 ? error : (int)skip + size;
}

/* --- replies --- */

/* Overwrites the folds of a whole head with spaces. A fold of the status line is left: it is a line of its
 * own that is passed over. PE_MALFORMED: a folded line has its colon only behind the fold, or nowhere. */
static int unfold(uint8_t *bytes, size_t size)
{
    uint8_t *end = bytes + size, *lf = memchr(bytes, '\n', size), *line = lf + 1;
    while (lf + 1 < end && (lf = memchr(lf + 1, '\n', (size_t)(end - lf - 1))) && lf + 1 < end) {
        if (!is_blank(lf[1])) {
            line = lf + 1;
            continue;
        }
        if (!is_blank(*line) && !memchr(line, ':', (size_t)(lf - line)))
            return PE_MALFORMED;
        lf[0] = ' ';
        if (lf[-1] == '\r')
            lf[-1] = ' ';
    }
    return 0;
}

int http_reply_head(uint8_t *bytes, size_t size, size_t *scanned, struct http_head *head)
{
    if (size == 0)
        return PE_INCOMPLETE;
    head->odd = false; /* what is in it else is not looked at before it is set */
    int whole = delimit(span_of(bytes, size), HTTP_REPLY_HEAD_MAX, scanned, REPLY, head);
    if (whole < 0)
        return whole;
    int error = unfold(bytes, (size_t)whole);
    if (error == 0)
        error = parse_lines(span_of(bytes, (size_t)whole), REPLY, head);
    return error < 0 ? error : whole;
}
