/* What the files of the configuration's loader share: config.c (the file and its lines), config_sections.c
 * (how sections begin and end), config_keys.c, config_link_keys.c, config_store_keys.c, config_wire_keys.c
 * and config_egress_keys.c (the keys and their values), config_whole.c (what must fit together across
 * sections). Nothing else includes it. */
#ifndef PURE_HOST_CONFIG_LOADER_H
#define PURE_HOST_CONFIG_LOADER_H

#include "host/config.h"

enum config_section {
    SECTION_NONE,
    SECTION_HOST,
    SECTION_APP,
    SECTION_OUTPUT,
    SECTION_PEER,
    CONFIG_SECTIONS
};

/* The most keys a section knows. */
#define CONFIG_KEYS_MAX 64

struct config_loader {
    struct config *config;
    const char *path;
    struct config_listener listener;
    unsigned problems;    /* told to the listener, at most its `max` */
    bool stopped;         /* nothing more is read: `max` problems, or no memory */
    char directory[4096]; /* of the file: relative paths start here */
    struct span left;     /* of the text, not read yet */
    unsigned line;        /* the one read last, from 1 */
    enum config_section section;
    bool skipping; /* the section could not be begun: its keys are passed over */
    bool skipped;  /* some section was: what is missing may stand there */
    unsigned section_line;
    unsigned section_problems;       /* `problems` when it began */
    unsigned host_line;              /* of [host]; 0: none */
    bool host_failed;                /* [host] had a problem: what is missing there may be misspelt */
    unsigned lines[CONFIG_KEYS_MAX]; /* of the section's keys, by their place in its table; 0: not given */
};

/* Tells the listener of a problem, "FILE:LINE: …", control bytes replaced. Returns PE_CONFIG. */
int config_fail(struct config_loader *l, unsigned line, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Out of memory: structures may be half made, so reading stops. Returns PE_CONFIG. */
int config_fail_memory(struct config_loader *l);

/* The section as messages call it. */
const char *config_section_text(enum config_section section);

/* A line with a section: ends the one before it, then begins this one. `text`: what stands between the
 * brackets, "WORD" or "WORD NAME"; it is cut up. */
int config_end_section(struct config_loader *l);
void config_start_section(struct config_loader *l, char *text);

/* Passes over the keys up to the next section. */
void config_skip_section(struct config_loader *l);

/* Once all sections have ended. */
void config_check_whole(struct config_loader *l);

/* NULL if there is none. */
const struct config_app *config_find_app(const struct config *config, const char *name);

/* Reads `key = written` into the current section's structure. 0 or PE_CONFIG. */
int config_read_key(struct config_loader *l, const char *key, const char *written);

/* The line of a key of the current section, 0 if it was not given. */
unsigned config_key_line(const struct config_loader *l, const char *key);

/* What the keys of a wire must be together. 0 or PE_CONFIG. */
int config_end_wire(struct config_loader *l, struct config_output *output);

/* The same of [host]'s https. */
int config_end_https(struct config_loader *l, const struct config *config);

/* Whether only this machine reaches the address. */
bool config_is_loopback(const struct sockaddr_storage *address);

/* Gives an output what it has not said of its connections itself. 0 or -ENOMEM. */
int config_settle_egress(struct config_egress *of_output, const struct config_egress *of_host);

void config_dispose_wire(struct config_wire *wire);
void config_dispose_egress(struct config_egress *egress);
void config_dispose_pair(struct config_pair *pair);

/* The next key of the current [output] that was given and does not apply to it: its name, or NULL. `*place`
 * begins with 0 and says where to go on; `*belongs` says what it is for. */
const char *config_misplaced_key(const struct config_loader *l, const struct config_output *output,
                                 unsigned *place, const char **belongs);

#endif
