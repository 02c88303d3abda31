/* The configuration file, read into plain structures; nothing is opened or started here. Fixed arrays of
 * pointers grow in doubling steps at load time only. All strings are owned by the config. Shapes and defaults
 * stand beside the fields. Loading parses keys: sodium_init() was called. */
#ifndef PURE_HOST_CONFIG_H
#define PURE_HOST_CONFIG_H

#include "core/bytes.h"
#include "core/error.h"
#include "core/resolver.h"
#include "host/overload.h"
#include "link/messages.h"
#include "wire/options.h"

#include <sys/socket.h>

enum output_kind { OUTPUT_WIRE, OUTPUT_INNER, OUTPUT_LINK };

/* When what an app takes and sends counts as stored. */
enum app_durability {
    DURABILITY_SYNC,     /* once it is on the disk */
    DURABILITY_INTERVAL, /* at once; it is on the disk within the interval */
    DURABILITY_MEMORY,   /* at once; it is never on the disk */
};

#define CONFIG_HTTP        "127.0.0.1:7070"
#define CONFIG_HTTP_PORT   7070
#define CONFIG_LINK_PORT   7071 /* as documented; none is listened at by default */
#define CONFIG_NAME_MAX    63   /* bytes of an app's, an output's or a peer's name */
#define CONFIG_TOKEN_MAX   1024
#define CONFIG_APPS_MAX    1024
#define CONFIG_OUTPUTS_MAX 4096
#define CONFIG_PEERS_MAX   1024
#define CONFIG_FILE_MAX    (4 << 20) /* bytes */
#define CONFIG_PROBLEM_MAX 2048      /* bytes of a problem's line */

/* How connections are made: of an [output], or of [host] for all outputs that say nothing of it themselves.
 * Once a file is loaded, an output's has what the host's gave it. */
struct config_egress {
    struct wire_proxy *proxy; /* proxy = http://USER:PASSWORD@HOST:PORT; NULL: none. Holds a secret */
    bool proxy_said;          /* also by proxy = none */
    struct networks networks; /* allow = …, deny = …: networks, private, any; no entry: not given */
    char *ca;                 /* ca = FILE or DIRECTORY; NULL: the system's */
    unsigned ca_line;
};

/* The files of our own certificate, both or neither; paths. */
struct config_pair {
    char *certificate;
    char *key;
    unsigned certificate_line, key_line;
};

/* What only wires have, beside what stands in struct config_output. */
struct config_wire {
    struct wire_secret secrets[WIRE_SECRETS_MAX]; /* sign = whsec_…, whsk_… */
    unsigned secret_count;
    char *secrets_path;          /* sign = file:PATH; NULL: they are elsewhere */
    unsigned secrets_line;       /* of that key */
    struct wire_header *headers; /* header.NAME = TEMPLATE; both texts are owned, and may be secrets */
    unsigned header_count;
    unsigned header_lines[WIRE_HEADERS_MAX];
    uint32_t gzip; /* gzip = 1 to 9; 0: none */
    /* success = 200-299, refuse = 400, 404, disable = 410: as struct wire_options has them, no status in two
     */
    struct wire_statuses stored, refused, disables;
    uint32_t disable_failures;  /* disable_after = 100, 5d: either or both; 0: none do */
    uint64_t disable_ns;        /* 0: none does */
    char *on_disable;           /* on_disable = OUTPUT: another of its app; NULL: none */
    unsigned on_disable_line;   /* of that key */
    uint32_t concurrency;       /* concurrency = 1: of webhooks, requests in flight */
    char *order_by;             /* order_by = MEMBER; NULL: none */
    uint64_t rate_mhz;          /* rate = 100/s or 6000/m: requests in 1000 s; 0: any */
    uint64_t batch_wait_ns;     /* batch_wait = 0ms */
    uint64_t connection_age_ns; /* connection_age = 1h; 0, the default: for ever */
    struct config_egress egress;
    struct config_pair pair;                   /* certificate = FILE, certificate_key = FILE */
    uint8_t pins[TLS_PINS_MAX][TLS_PIN_BYTES]; /* pin = BASE64, … */
    unsigned pin_count;
};

struct config_output {
    unsigned line; /* of its section, for messages */
    char *app;     /* [output APP.OUTPUT] */
    char *output;
    enum output_kind kind;
    uint64_t queue_bytes;   /* queue = 4M; most bytes held */
    uint32_t max_record;    /* max_record = 1M, or a quarter of a smaller queue */
    uint64_t backlog_bytes; /* backlog = 1G: most bytes that wait on disk, beyond the queue; 0: none do */
    uint32_t attempts;      /* attempts = 0: of wires, how often a record may be refused; 0: for ever */
    uint32_t dead;          /* dead = 10000: of wires, most dead letters; at least 1 */
    const char *disk_key;   /* the first of its keys that needs its app on disk; static; NULL: none does */
    unsigned disk_line;     /* of that key */
    char *event; /* event = NAME: the name of the events at a receiving app; default: the output's name */
    char *target_app; /* app = APP: of links and of wires in mode pure; the receiving app in the other host */
    char *inner_app;  /* inner = APP */
    unsigned inner_line; /* of that key */
    /* wire = URL; in mode pure /apps/APP/records is appended to the target already */
    struct url url;
    char *url_text;
    struct config_wire wire;
    enum wire_mode mode;     /* mode = webhook | batch | pure; default webhook */
    char *token;             /* token = VALUE: Authorization: Bearer */
    char *content_type;      /* content_type = …; webhook only; default application/json */
    uint64_t batch_bytes;    /* batch_bytes = 256K: most body bytes of one request (pure, batch) */
    uint32_t batch_records;  /* batch_records = 0: no limit */
    uint64_t progress_ns;    /* progress_timeout = 10s: connect or send without any progress */
    uint64_t reply_ns;       /* reply_timeout = 30s: from the request's last byte to the reply's head */
    uint64_t total_ns;       /* total_timeout = 5m: one whole exchange */
    uint64_t backoff_min_ns; /* backoff_min = 100ms */
    uint64_t backoff_max_ns; /* backoff_max = 60s */
    /* link = HOST:PORT, with all of the following. One key is one host: outputs with the same key have the
     * same host and port, and those with the same host and port the same key. */
    char *link_text; /* "host:port" in one form: lower case, an IPv6 address in brackets */
    char link_host[RESOLVER_NAME_MAX + 1]; /* as addresses_init takes it */
    uint16_t link_port;
    bool link_literal; /* the host is an address */
    unsigned link_line;
    uint8_t link_key[LINK_KEY_BYTES]; /* key = BASE64: public, of the receiving host; never weak. Also of a
                                         wire in mode pure, whose bodies are sealed then */
    unsigned link_key_line;           /* 0: none */
    uint32_t link_mtu;                /* mtu = 65507: the most bytes of UDP payload; from 1200 on */
};

/* A host that may send here, over links. */
struct config_peer {
    unsigned line;               /* of its section, for messages */
    char *name;                  /* [peer NAME]: what apps here know it by */
    uint8_t key[LINK_KEY_BYTES]; /* key = BASE64: public, never weak; no two peers have the same */
    unsigned key_line;           /* 0: none */
    char **apps; /* apps = A, B: what it may send to; apps of this host, each once, at least one */
    unsigned app_count;
    unsigned apps_line;
};

struct config_app {
    unsigned line; /* of its section, for messages */
    char *name;
    char *module;         /* path, with a slash (host/module_path.h) */
    unsigned module_line; /* of that key */
    char *arg;            /* "" if none */
    unsigned arg_line;    /* of that key; the section's if it has none */
    uint64_t inbox_bytes; /* inbox = 4M */
    /* durability = sync | interval | memory; always memory without a store directory, otherwise default sync,
     * or interval if `interval` is given */
    enum app_durability durability;
    uint64_t interval_ns;         /* interval = 5ms; means something with DURABILITY_INTERVAL only */
    uint64_t keep_ms, keep_bytes; /* keep = 7d, 1G: the history; 0: not given, neither: none is kept */
    uint64_t turn_limit_ns; /* turn_limit = 10s: the most processor time of a batch of events; NEVER: none */
    uint64_t memory_bytes;  /* memory = 256M: what its module may hold of the heap; UINT64_MAX: any */
    const char *disk_key;   /* the first of its keys that needs a store directory; static; NULL: none does */
    unsigned disk_line;     /* of that key */
};

/* The front by TLS, beside the plain one. */
struct config_https {
    char *text; /* of https = ADDRESS:PORT; NULL: none */
    unsigned line;
    struct sockaddr_storage address;
    socklen_t address_len;
    struct config_pair pair; /* https_certificate, https_key */
    char *ca;                /* https_ca = FILE or DIRECTORY: whose clients may come; NULL: they need no
                                certificate */
    unsigned ca_line;
};

struct config {
    char *path;
    char *name; /* [host] name = : who this host is to others; default: the system's host name */
    char *http; /* text of http = ; default 127.0.0.1:7070; NULL: http = none, and there is https */
    struct sockaddr_storage http_address;
    socklen_t http_address_len;
    struct config_https https;
    char *token; /* required when http is not loopback, or https is not and needs no certificates */
    struct config_egress egress;
    char *store_path; /* store = DIRECTORY; NULL: store = memory, the default */
    unsigned store_line;
    uint64_t segment_bytes; /* segment = 64M: set aside at a time in the store's directory */
    uint32_t owners;        /* 2; 1 to 64 */
    uint32_t loops;         /* sending loops; 1 to 32. None is made without an outlet */
    uint32_t connections;   /* connections = 1024: most at the front */
    uint64_t max_body;      /* max_body = 1088K: one request to the front */
    uint64_t body_memory;   /* body_memory = 64M: all bodies being received together */
    uint64_t request_ns;    /* request_timeout = 30s: a request's head and body have to be in */
    uint64_t idle_ns;       /* idle_timeout = 60s: a kept-alive connection without a request */
    char *link;             /* text of link = ADDRESS:PORT: where links from peers come in; NULL: none do */
    unsigned link_line;
    struct sockaddr_storage link_address;
    socklen_t link_address_len;
    /* key = PATH of the host's key file, or the key's text from a credential or the environment; at most one
     * of both is set, and one of them if anything here is a link or sealed. host/key_file.h reads it. */
    char *key_path;
    char *key_text; /* a valid one */
    unsigned key_line;
    /* without = quotas, early, feedback, share: what is left out; none of them */
    struct overload_without without;
    uint64_t link_window; /* link_window = 16M: the most memory of one peer's records; 2M to 1G */
    unsigned app_count;
    struct config_app *apps;
    unsigned output_count;
    struct config_output *outputs;
    unsigned peer_count;
    struct config_peer *peers;
};

/* Reads FILE. On failure returns PE_CONFIG (or the negative errno of the file) with one line in `error`:
 * "FILE:LINE: what, and what to do" (without a line if the file cannot be read), the nearest known name for
 * an unknown section, key, app or mode included. Every problem a file can have by itself is found here:
 * unknown names, bad numbers, sizes, times and URLs, duplicates, an output of an unknown app, an inner outlet
 * to an unknown app, a missing module key, http beyond loopback without a token, two peers with one key, a
 * link without a host key, what cannot be kept without a store directory. Files of TLS are not opened. No
 * message holds a value that came from a file, the environment or a credential, a token, a signing secret, a
 * private key, or a URL. On failure nothing is left to dispose of. */
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

/* Whether another output of its app has it as on_disable: the app's module need not know it. */
bool config_hears(const struct config *config, const struct config_output *output);

/* What is right in itself and most likely forgotten: a line each, as of a problem. */
void config_doubts(const struct config *config, const struct config_listener *listener);

void config_dispose(struct config *config);

#endif
