/* Single values of the configuration: numbers with units, indirect values, and the nearest of some names. */
#ifndef PURE_HOST_CONFIG_VALUES_H
#define PURE_HOST_CONFIG_VALUES_H

#include "core/bytes.h"
#include "core/error.h"

#include <sys/types.h>

/* The longest value that a file, a credential or a variable of the environment may give. */
#define CONFIG_VALUE_MAX (64 * 1024)

/* Decimal digits, for sizes followed by nothing, K, M or G (powers of 1024), for times by ms, s, m or h. 0 or
 * PE_CONFIG, also when it does not fit. */
int value_count(const char *text, uint64_t *count);
int value_size(const char *text, uint64_t *bytes);
int value_time(const char *text, uint64_t *ns);

/* Writes a value back as people would, in the largest unit that divides it. `size` at least 24. */
void value_show_size(char *text, size_t size, uint64_t bytes);
void value_show_time(char *text, size_t size, uint64_t ns);

/* What a value as written stands for: file:PATH (relative to `directory`), env:NAME, credential:NAME
 * (systemd's), or itself. One newline at the end of a file is cut. 0 and `*text`, which the caller disposes
 * of; else PE_CONFIG with a reason that does not hold the value. */
int value_resolve(const char *written, const char *directory, char **text, char *why, size_t why_size);

/* Reads a file from its start, at most `size` bytes. Their number or a negative errno. */
ssize_t config_read_file(const char *path, void *bytes, size_t size);

/* Wipes and frees; NULL is allowed. */
void value_dispose(char *text);

/* Whether `text` is 1 to `max` letters, digits, '-', '_', or characters of `also`. */
bool value_is_name(const char *text, size_t max, const char *also);

/* The name that `text` was probably meant to be: the fewest insertions, deletions, substitutions and
 * exchanges of neighbours away, at most a third of its length and one. NULL if none is so near. */
const char *nearest_name(const char *text, const char *const *names, unsigned count);

#endif
