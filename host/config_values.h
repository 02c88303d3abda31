/* Single values of the configuration: numbers with units, indirect values, and the nearest of some names. */
#ifndef PURE_HOST_CONFIG_VALUES_H
#define PURE_HOST_CONFIG_VALUES_H

#include "core/bytes.h"
#include "core/error.h"
#include "core/resolver.h"

#include <sys/socket.h>
#include <sys/types.h>

/* The longest value that a file, a credential or a variable of the environment may give. */
#define CONFIG_VALUE_MAX (64 * 1024)

/* Decimal digits, for sizes followed by nothing, K, M, G or T (powers of 1024), for times by ms, s, m, h or
 * d. 0 or PE_CONFIG, also when it does not fit. */
int value_count(const char *text, uint64_t *count);
int value_size(const char *text, uint64_t *bytes);
int value_time(const char *text, uint64_t *ns);

/* "ADDRESS:PORT" or "[ADDRESS]:PORT": 0 or PE_CONFIG. The port may be 0; that of an IPv6 address lies where
 * sin_port does, too. */
int value_address(const char *text, struct sockaddr_storage *address, socklen_t *len);

/* A destination: a name, an IPv4 address or an IPv6 one in brackets, and a port. */
struct value_place {
    char host[RESOLVER_NAME_MAX + 1];     /* lower case, without brackets */
    char text[RESOLVER_NAME_MAX + 1 + 8]; /* the whole, in one form */
    uint16_t port;                        /* not 0 */
    bool literal;                         /* the host is an address */
};

/* 0, or PE_CONFIG with a reason (static). */
int value_place(struct value_place *place, const char *text, const char **why);

/* Writes a value back as people would, in the largest unit that divides it. `size` at least 24. */
void value_show_size(char *text, size_t size, uint64_t bytes);
void value_show_time(char *text, size_t size, uint64_t ns);

/* What a value as written stands for: file:PATH (relative to `directory`), env:NAME, credential:NAME
 * (systemd's), or itself. One newline at the end of a file is cut. 0 and `*text`, which the caller disposes
 * of; else PE_CONFIG with a reason that does not hold the value. */
int value_resolve(const char *written, const char *directory, char **text, char *why, size_t why_size);

/* The same of a value that is a path: file:PATH is PATH, credential:NAME the credential's path. */
int value_resolve_path(const char *written, char **text, char *why, size_t why_size);

/* `path` as seen from `directory`; *joined is allocated. 0; PE_CONFIG: no memory. */
int value_path(const char *directory, const char *path, char **joined);

/* Reads a file from its start, at most `size` bytes. Their number or a negative errno. */
ssize_t config_read_file(const char *path, void *bytes, size_t size);

/* Wipes and frees; NULL is allowed. */
void value_dispose(char *text);

/* The text without the white space around it, which is cut off. */
char *value_trim(char *text);

/* Whether `text` is 1 to `max` letters, digits, '-', '_', or characters of `also`. */
bool value_is_name(const char *text, size_t max, const char *also);

/* The name that `text` was probably meant to be: the fewest insertions, deletions, substitutions and
 * exchanges of neighbours away, at most a third of its length and one. NULL if none is so near. */
const char *nearest_name(const char *text, const char *const *names, unsigned count);

#endif
