/* A member of a JSON object (RFC 8259), found by scanning: no tree, no allocation, one pass over the bytes
 * at most, no recursion. For records that somebody else wrote: nothing of them is believed.
 *
 * Looked at are the top level's own structure and all strings on the way. Of other values only the ends are
 * found: numbers and literals are runs of letters, digits and "+-."; in arrays and objects brackets are
 * counted. The scan ends with the first member of the name, so that what comes later may be anything. */
#ifndef PURE_WIRE_JSON_MEMBER_H
#define PURE_WIRE_JSON_MEMBER_H

#include "core/bytes.h"
#include "core/error.h"

/* 0, with the text of the value in `*value`, a part of `json`, without white space around it and with a
 * string's quotes; -ENOENT: the object has no such member; PE_MALFORMED: up to the place where that would be
 * known it is not an object in JSON. `name` is UTF-8 and compared with what the names' escapes mean. */
int json_member(struct span json, struct span name, struct span *value);

/* What a value found by json_member says, character by character: of a string what stands between its
 * quotes, the escapes decoded to UTF-8 (a lone surrogate to U+FFFD); of any other value its text. */
struct json_text {
    const uint8_t *at, *end;
    bool string;
};

struct json_text json_text(struct span value);

/* Puts the next character, 1 to 4 bytes, and returns its size; 0: there is none. Bytes that are not UTF-8
 * come one by one, as they are. */
size_t json_text_next(struct json_text *text, uint8_t character[4]);

/* Copies as many whole characters as there is room for. Returns the bytes written. */
size_t json_text_copy(struct span value, uint8_t *to, size_t room);

/* Of what the value says and of whether it is a string: equal for "a" and "\u0061", not for 1 and "1" or 1.0.
 * Not keyed: who chooses values can make them collide. */
uint64_t json_text_hash(struct span value);

#endif
