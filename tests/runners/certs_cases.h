/* Cases of a JSON file for the certs runner: docs/certificates.md has the format. Two spellings are
 * understood, ours and that of x509-limbo. Included by programs of one file. */
#ifndef PURE_TESTS_RUNNERS_CERTS_CASES_H
#define PURE_TESTS_RUNNERS_CERTS_CASES_H

#include "core/bytes.h"
#include "core/error.h"
#include "tls/pem.h"

#include <cjson/cJSON.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define CASE_CHAIN_MAX 64
#define CASE_NAME_MAX  512

struct cert_case {
    const char *id;
    struct span chain[CASE_CHAIN_MAX]; /* DER, the leaf first, in `der` */
    unsigned count;
    uint8_t *der;
    const char *key;          /* PEM; NULL: none */
    char *roots;              /* PEM, one after the other */
    char name[CASE_NAME_MAX]; /* as a wire has it: lower case, no trailing dot; "": the leaf's own */
    int64_t now_s;
    bool client, accept;
    int error;         /* that it has to be refused with; 0: any */
    int error_tls;     /* the same over TLS, where the handshake is refused before the check is asked */
    const char *lacks; /* what it asks for that there is none of; NULL: nothing */
};

__attribute__((format(printf, 2, 3), noreturn)) static void case_wrong(const char *id, const char *format,
                                                                       ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s: ", id);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    exit(2);
}

/* The member under whichever name it has; NULL if it is not there, or null. */
static const cJSON *case_member(const cJSON *json, const char *name, const char *other)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, name);
    if (!item && other)
        item = cJSON_GetObjectItemCaseSensitive(json, other);
    return cJSON_IsNull(item) ? NULL : item;
}

static const char *case_text(const cJSON *json, const char *name, const char *other)
{
    const cJSON *item = case_member(json, name, other);
    return cJSON_IsString(item) ? item->valuestring : NULL;
}

/* --- PEM --- */

/* All texts of a member, which is a text or an array of them, one after the other, behind `text`. */
static char *case_append(char *text, const cJSON *item)
{
    size_t size = text ? strlen(text) : 0;
    if (cJSON_IsArray(item)) {
        const cJSON *part;
        cJSON_ArrayForEach(part, item) text = case_append(text, part);
        return text;
    }
    if (!cJSON_IsString(item))
        return text;
    size_t more = strlen(item->valuestring);
    text = realloc(text, size + more + 2);
    if (!text)
        abort();
    memcpy(text + size, item->valuestring, more);
    memcpy(text + size + more, "\n", 2);
    return text;
}

static void case_read_chain(struct cert_case *c, const cJSON *json)
{
    char *pem = case_append(NULL, case_member(json, "chain", "peer_certificate"));
    pem = case_append(pem, case_member(json, "untrusted_intermediates", NULL));
    if (!pem)
        case_wrong(c->id, "no chain");
    struct span text = span_text(pem);
    c->der = malloc(pem_bytes_max(text.size));
    if (!c->der)
        abort();
    uint8_t *out = c->der;
    for (long size; (size = pem_next_certificate(&text, out)) >= 0; out += size) {
        if (c->count == CASE_CHAIN_MAX)
            case_wrong(c->id, "more than %d certificates", CASE_CHAIN_MAX);
        c->chain[c->count++] = span_of(out, (size_t)size);
    }
    free(pem);
}

/* --- time --- */

/* RFC 3339, or seconds since 1970; neither: now. */
static int64_t case_time(const char *id, const cJSON *item)
{
    struct tm t = {0};
    char sign = 'Z';
    int hours = 0, minutes = 0, used = 0;
    if (cJSON_IsNumber(item))
        return (int64_t)item->valuedouble;
    if (!cJSON_IsString(item))
        return (int64_t)time(NULL);
    const char *text = item->valuestring;
    if (sscanf(text, "%d-%d-%d%*1[Tt ]%d:%d:%d%n", &t.tm_year, &t.tm_mon, &t.tm_mday, &t.tm_hour, &t.tm_min,
               &t.tm_sec, &used) != 6)
        case_wrong(id, "\"%s\" is not a time", text);
    text += used;
    if (*text == '.')
        text += 1 + strspn(text + 1, "0123456789");
    if (*text && *text != 'Z' && *text != 'z' && sscanf(text, "%c%d:%d", &sign, &hours, &minutes) != 3)
        case_wrong(id, "\"%s\" is not an offset", text);
    t.tm_year -= 1900;
    t.tm_mon--;
    int64_t offset_s = 60 * (60 * hours + minutes);
    return (int64_t)timegm(&t) - (sign == '-' ? -offset_s : offset_s);
}

/* --- the rest --- */

static void case_read_name(struct cert_case *c, const cJSON *json)
{
    const cJSON *item = case_member(json, "name", "expected_peer_name");
    const char *name = cJSON_IsObject(item)   ? case_text(item, "value", NULL)
                       : cJSON_IsString(item) ? item->valuestring
                                              : "";
    size_t size = name ? strlen(name) : 0;
    if (size >= sizeof c->name)
        case_wrong(c->id, "the name is too long");
    if (size > 1 && name[size - 1] == '.')
        size--;
    for (size_t i = 0; i < size; i++)
        c->name[i] = (char)tolower((unsigned char)name[i]);
}

static int case_error(const char *id, const char *name)
{
    static const struct {
        const char *name;
        int code;
    } errors[] = {
#define X(code, text) {#code, code},
        PURE_ERRORS(X)
#undef X
    };
    for (size_t i = 0; name && i < ARRAY_SIZE(errors); i++) {
        if (strcmp(errors[i].name, name) == 0)
            return errors[i].code;
    }
    if (name)
        case_wrong(id, "no error is called %s", name);
    return 0;
}

static void case_read_verdict(struct cert_case *c, const cJSON *json)
{
    const char *verdict = case_text(json, "verdict", "expected_result");
    c->accept = verdict && (strcmp(verdict, "accept") == 0 || strcmp(verdict, "SUCCESS") == 0);
    if (!c->accept && (!verdict || (strcmp(verdict, "reject") != 0 && strcmp(verdict, "FAILURE") != 0)))
        case_wrong(c->id, "no verdict");
    c->error = case_error(c->id, case_text(json, "error", NULL));
    c->error_tls = case_error(c->id, case_text(json, "error_tls", "error"));
}

static void case_read(struct cert_case *c, const cJSON *json)
{
    const char *kind = case_text(json, "validation_kind", NULL);
    *c = (struct cert_case){.id = case_text(json, "id", "name")};
    if (!c->id)
        case_wrong("a case", "no id");
    case_read_chain(c, json);
    c->key = case_text(json, "key", "peer_certificate_key");
    c->roots = case_append(NULL, case_member(json, "roots", "trusted_certs"));
    c->client = kind && strcmp(kind, "CLIENT") == 0;
    case_read_name(c, json);
    c->now_s = case_time(c->id, case_member(json, "time", "validation_time"));
    case_read_verdict(c, json);
    if (cJSON_GetArraySize(case_member(json, "crls", NULL)) > 0)
        c->lacks = "revocation lists";
    if (case_member(json, "max_chain_depth", NULL))
        c->lacks = "a limit of its own to the path";
}

static void case_dispose(struct cert_case *c)
{
    free(c->der);
    free(c->roots);
}

/* The whole file; its array of cases. `*root` is to be deleted. */
static const cJSON *cases_read(const char *file, cJSON **root)
{
    FILE *in = fopen(file, "rb");
    char *text = NULL;
    size_t size = 0;
    if (!in || getdelim(&text, &size, EOF, in) < 0)
        case_wrong(file, "cannot be read");
    fclose(in);
    *root = cJSON_Parse(text);
    free(text);
    const cJSON *cases = cJSON_IsArray(*root) ? *root : case_member(*root, "cases", "testcases");
    if (!cJSON_IsArray(cases))
        case_wrong(file, "no JSON with an array \"cases\"");
    return cases;
}

#endif
