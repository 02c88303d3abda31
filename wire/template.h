/* Header values with placeholders. Parsed once, rendered for each request without allocation.
 *
 *     {id} {number} {timestamp} {attempt}    of the request: webhook-id, the (first) record's number, Unix
 *                                            seconds of the attempt, how often it goes (from 1)
 *     {host} {app} {output} {event}          of the output; known when the template is parsed
 *     {data.MEMBER}                          of the record, if it is a JSON object: its top-level member
 *     {{                                     a brace; one that closes stands for itself
 *
 * What placeholders stand for cannot break out of a header: they give visible ASCII and spaces only. Every
 * other byte, and '%', becomes '%' and two hexadecimal digits (as in a URL: decodable, UTF-8 included). Of a
 * string member the text is given, of any other value its JSON; a member that is not there, or null, gives
 * nothing. What a member gives is cut at TEMPLATE_MEMBER_MAX bytes, between two characters. */
#ifndef PURE_WIRE_TEMPLATE_H
#define PURE_WIRE_TEMPLATE_H

#include "core/bytes.h"
#include "core/error.h"

#define TEMPLATE_TEXT_MAX   4096 /* bytes of a template */
#define TEMPLATE_PIECES_MAX 32   /* placeholders, and texts between them */
#define TEMPLATE_NAME_MAX   128  /* bytes of MEMBER */
#define TEMPLATE_MEMBER_MAX 256  /* bytes that {data.MEMBER} gives at most */

/* What is known when a template is parsed. */
struct template_names {
    const char *source; /* HOST/APP/OUTPUT; NULL: not known, and the three are refused */
    const char *event;  /* NULL: refused */
    bool members;       /* a request has one record: else {data.MEMBER} is refused */
};

/* What is known of a request. */
struct template_values {
    struct span id;
    uint64_t number;
    uint64_t timestamp_s;
    uint64_t attempt;
    struct span record;
};

#define TEMPLATE_ID_MAX 64 /* bytes of values.id at most */

enum template_kind {
    TEMPLATE_TEXT,
    TEMPLATE_ID,
    TEMPLATE_NUMBER,
    TEMPLATE_TIMESTAMP,
    TEMPLATE_ATTEMPT,
    TEMPLATE_DATA,
};

struct header_template {
    char *text; /* the pieces' texts and members' names */
    unsigned count;
    size_t room; /* bytes that it gives at most */
    struct template_piece {
        enum template_kind kind;
        uint32_t at, size; /* of TEXT and DATA: in `text` */
    } pieces[TEMPLATE_PIECES_MAX];
};

/* NULL, or what is wrong with a template (static). Besides its form: it is 1 to TEMPLATE_TEXT_MAX bytes, has
 * no control bytes and no space at its ends (RFC 9110 section 5.5). */
const char *template_check(const char *text, const struct template_names *names);

/* Of a template that was checked with the same names. 0 or -ENOMEM. */
int template_init(struct header_template *t, const char *text, const struct template_names *names);
void template_dispose(struct header_template *t);

/* Writes what the template gives, at most t->room bytes, without a NUL. Returns its size, which may be 0. */
size_t template_write(const struct header_template *t, const struct template_values *values, char *to);

/* Whether a text can be a header's value as it is: 1 to `max` bytes, no control bytes, no space at its
 * ends. */
bool template_field_value(const char *text, size_t max);

#endif
