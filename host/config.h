/* The configuration file, read into plain structures; nothing is opened or started here. Fixed arrays of
 * pointers grow in doubling steps at load time only. All strings are owned by the config. Shapes and defaults
 * stand beside the fields. */
#ifndef PURE_HOST_CONFIG_H
#define PURE_HOST_CONFIG_H

#include "core/bytes.h"
#include "core/error.h"
#include "wire/options.h"

#include <sys/socket.h>

enum output_kind { OUTPUT_WIRE, OUTPUT_INNER };

#define CONFIG_HTTP        "127.0.0.1:7070"
#define CONFIG_HTTP_PORT   7070
#define CONFIG_NAME_MAX    63 /* bytes of an app's or an output's name */
#define CONFIG_TOKEN_MAX   1024
#define CONFIG_APPS_MAX    1024
#define CONFIG_OUTPUTS_MAX 4096
#define CONFIG_FILE_MAX    (4 << 20) /* bytes */
#define CONFIG_PROBLEM_MAX 2048      /* bytes of a problem's line */

struct config_output {
    unsigned line; /* of its section, for messages */
    char *app;     /* [output APP.OUTPUT] */
    char *output;
    enum output_kind kind;
    uint64_t queue_bytes; /* queue = 4M; most bytes held */
    uint32_t max_record;  /* max_record = 1M, or a quarter of a smaller queue */
    char *event;     /* event = NAME: the name of the events at a receiving app; default: the output's name */
    char *inner_app; /* inner = APP */
    unsigned inner_line; /* of that key */
    /* wire = URL; in mode pure /apps/APP/records is appended to the target already */
    struct url url;
    char *url_text;
    enum wire_mode mode; /* mode = webhook | batch | pure; default webhook */
    char *wire_app;      /* app = APP: mode pure; the receiving app, path /apps/APP/records below the URL's */
    char *token;         /* token = VALUE: Authorization: Bearer */
    char *content_type;  /* content_type = …; webhook only; default application/json */
    uint64_t batch_bytes;    /* batch_bytes = 256K: most body bytes of one request (pure, batch) */
    uint32_t batch_records;  /* batch_records = 0: no limit */
    uint64_t progress_ns;    /* progress_timeout = 10s: connect or send without any progress */
    uint64_t reply_ns;       /* reply_timeout = 30s: from the request's last byte to the reply's head */
    uint64_t total_ns;       /* total_timeout = 5m: one whole exchange */
    uint64_t backoff_min_ns; /* backoff_min = 100ms */
    uint64_t backoff_max_ns; /* backoff_max = 60s */
};

struct config_app {
    unsigned line; /* of its section, for messages */
    char *name;
    char *module;         /* path, with a slash (host/module_path.h) */
    unsigned module_line; /* of that key */
    char *arg;            /* "" if none */
    unsigned arg_line;    /* of that key; the section's if it has none */
    uint64_t inbox_bytes; /* inbox = 4M */
};

struct config {
    char *path;
    char *name; /* [host] name = : who this host is to others; default: the system's host name */
    char *http; /* text of http = ; default 127.0.0.1:7070 */
    struct sockaddr_storage http_address;
    socklen_t http_address_len;
    char *token;          /* required when http is not loopback */
    char *store;          /* "memory" */
    uint32_t owners;      /* 2; 1 to 64 */
    uint32_t loops;       /* 1 */
    uint32_t connections; /* connections = 1024: most at the front */
    uint64_t max_body;    /* max_body = 1088K: one request to the front */
    uint64_t body_memory; /* body_memory = 64M: all bodies being received together */
    uint64_t request_ns;  /* request_timeout = 30s: a request's head and body have to be in */
    uint64_t idle_ns;     /* idle_timeout = 60s: a kept-alive connection without a request */
    unsigned app_count;
    struct config_app *apps;
    unsigned output_count;
    struct config_output *outputs;
};

/* Reads FILE. On failure returns PE_CONFIG (or the negative errno of the file) with one line in `error`:
 * "FILE:LINE: what, and what to do" (without a line if the file cannot be read), the nearest known name for
 * an unknown section, key, app or mode included. Every problem a file can have by itself is found here:
 * unknown names, bad numbers, sizes, times and URLs, duplicates, an output of an unknown app, an inner outlet
 * to an unknown app, a missing module key, http beyond loopback without a token. No message holds a value
 * that came from a file, the environment or a credential, a token, or a URL. On failure nothing is left to
 * dispose of. */
int config_load(struct config *config, const char *path, char *error, size_t error_size);

/* The same from memory. `path` is what messages call it and where relative paths start. */
int config_load_text(struct config *config, const char *path, struct span text, char *error,
                     size_t error_size);

/* Who hears of a file's problems, one line each, as above but without the promise that it is the only one. */
struct config_listener {
    void (*tell)(void *context, const char *problem);
    void *context;
    unsigned max; /* at least 1: reading stops after so many */
};

/* config_load and config_load_text that go on after a problem. A section that cannot be begun is passed over
 * whole, and what may be wrong only because of another problem is not told: a section with a problem counts
 * as complete, and with one passed over no app counts as missing. */
int config_load_all(struct config *config, const char *path, const struct config_listener *listener);
int config_load_text_all(struct config *config, const char *path, struct span text,
                         const struct config_listener *listener);

void config_dispose(struct config *config);

#endif
