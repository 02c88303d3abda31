/* The file of the host's private key: one line of the private form (link/key.h), mode 0600. No message holds
 * any of a file's content. sodium_init() was called. */
#ifndef PURE_HOST_KEY_FILE_H
#define PURE_HOST_KEY_FILE_H

#include "host/config.h"
#include "noise/key.h"

#define KEY_FILE_MAX 4096 /* bytes, white space included */

/* Reads a key file. Refused: what is no regular file, what others than its owner may read or write (unless it
 * lies in systemd's $CREDENTIALS_DIRECTORY, which sees to that itself), and what does not hold exactly one
 * private key. 0; else PE_CONFIG with a reason that begins with the path, and `*key` zeroed. */
int key_file_read(const char *path, struct host_key *key, char *why, size_t why_size);

/* Whether the path lies in systemd's directory of credentials: it gives them to the service only, by a file
 * system or an access list that modes do not show. */
bool key_file_is_credential(const char *path);

/* The key that the configuration names, wherever it is. As above; PE_CONFIG also if it names none. */
int key_file_of_config(const struct config *config, struct host_key *key, char *why, size_t why_size);

/* Makes a key and its file, which is on disk before this returns; never replaces one. `public` is its other
 * half. 0, or a negative errno with a reason; a file that could not be written whole is removed. */
int key_file_new(const char *path, const struct noise_random *random, uint8_t public[LINK_KEY_BYTES],
                 char *why, size_t why_size);

#endif
