/* Rows of a JSONL file, for the runners: one JSON object a line. A file that is not what it should be ends
 * the program with status 2 and says the file, the line and what is wrong. Included by programs of one file.
 */
#ifndef PURE_TESTS_RUNNERS_ROWS_H
#define PURE_TESTS_RUNNERS_ROWS_H

#include "core/bytes.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct row {
    const char *file;
    unsigned line; /* from 1 */
    cJSON *json;   /* valid until the next row */
};

__attribute__((format(printf, 2, 3), noreturn)) static inline void row_wrong(const struct row *row,
                                                                             const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s:%u: ", row->file, row->line);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    exit(2);
}

/* --- members --- */

static inline const char *row_text(const struct row *row, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(row->json, name);
    if (!cJSON_IsString(item))
        row_wrong(row, "\"%s\" has to be a string", name);
    return item->valuestring;
}

static inline uint64_t row_number(const struct row *row, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(row->json, name);
    if (!cJSON_IsNumber(item) || item->valuedouble < 0 || item->valuedouble > 9007199254740991.0 ||
        item->valuedouble != (double)(uint64_t)item->valuedouble)
        row_wrong(row, "\"%s\" has to be a whole number", name);
    return (uint64_t)item->valuedouble;
}

static inline bool row_flag(const struct row *row, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(row->json, name);
    if (!cJSON_IsBool(item))
        row_wrong(row, "\"%s\" has to be true or false", name);
    return cJSON_IsTrue(item);
}

static inline bool row_has(const struct row *row, const char *name)
{
    return cJSON_GetObjectItemCaseSensitive(row->json, name) != NULL;
}

/* The index of the member's text in `choices`. */
static inline unsigned row_choice(const struct row *row, const char *name, const char *const *choices,
                                  unsigned count)
{
    const char *text = row_text(row, name);
    for (unsigned i = 0; i < count; i++)
        if (strcmp(text, choices[i]) == 0)
            return i;
    row_wrong(row, "\"%s\": \"%s\" is not one of those there are", name, text);
}

/* Base64 (RFC 4648 section 4), padded. The caller frees it. */
static inline struct span row_bytes(const struct row *row, const char *name)
{
    const char *text = row_text(row, name), *end;
    size_t size = strlen(text), decoded;
    uint8_t *bytes = malloc(size + 1);
    if (!bytes)
        row_wrong(row, "no memory");
    if (sodium_base642bin(bytes, size + 1, text, size, NULL, &decoded, &end, sodium_base64_VARIANT_ORIGINAL) <
            0 ||
        *end != '\0')
        row_wrong(row, "\"%s\" is not base64", name);
    return span_of(bytes, decoded);
}

/* 64 lower-case hexadecimal digits. */
static inline void row_digest(const struct row *row, const char *name, uint8_t digest[32])
{
    const char *text = row_text(row, name), *end;
    size_t size;
    if (strlen(text) != 64 || sodium_hex2bin(digest, 32, text, 64, NULL, &size, &end) < 0 || size != 32)
        row_wrong(row, "\"%s\" is not a SHA-256 in hexadecimal", name);
}

/* --- the file --- */

/* Calls `each` for every line that is not blank. */
static inline void rows_run(const char *file, void (*each)(const struct row *row, void *context),
                            void *context)
{
    struct row row = {.file = file};
    FILE *in = fopen(file, "re");
    if (!in)
        row_wrong(&row, "%s", strerror(errno));
    char *line = NULL;
    size_t room = 0;
    ssize_t size;
    while ((size = getline(&line, &room, in)) >= 0) {
        row.line++;
        if (strspn(line, " \t\r\n") == (size_t)size)
            continue;
        row.json = cJSON_ParseWithOpts(line, NULL, true);
        if (!cJSON_IsObject(row.json))
            row_wrong(&row, "this line is not a JSON object");
        each(&row, context);
        cJSON_Delete(row.json);
        row.json = NULL;
    }
    if (ferror(in))
        row_wrong(&row, "%s", strerror(errno));
    free(line);
    fclose(in);
}

/* --- cuts: the ways an input is sent in pieces --- */

/* Inputs up to the first size are cut at every place. Longer ones, to stay fast, are cut behind each of their
 * first and last bytes, so many of them each, and at as many places spread in between. */
#define ROW_CUTS_MAX  4096
#define ROW_CUTS_SOME 128

/* The place of cut number `i` (from 0) of an input; 0: there are no more. */
static inline size_t row_cut(size_t size, size_t i)
{
    if (size <= ROW_CUTS_MAX)
        return i + 1 < size ? i + 1 : 0;
    if (i < ROW_CUTS_SOME)
        return i + 1;
    size_t step = (size - 2 * ROW_CUTS_SOME) / ROW_CUTS_SOME, last = 3 * ROW_CUTS_SOME - i;
    if (i < 2 * ROW_CUTS_SOME)
        return ROW_CUTS_SOME + step * (i + 1 - ROW_CUTS_SOME);
    return i < 3 * ROW_CUTS_SOME ? size - last : 0;
}

#endif
