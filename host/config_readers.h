/* What config_keys.c, config_link_keys.c, config_store_keys.c, config_wire_keys.c and config_egress_keys.c
 * share: how a key's value reaches its field. Nothing else includes it. */
#ifndef PURE_HOST_CONFIG_READERS_H
#define PURE_HOST_CONFIG_READERS_H

#include "host/config_loader.h"

/* A value: as it stands in the file (which messages may quote, unless it is a secret) and what it stands for.
 */
struct config_value {
    const char *key; /* as it stands in the file */
    const char *written;
    char *text;
};

/* A reader leaves its field alone when it fails, and then has told why: 0 or PE_CONFIG. */
struct config_key {
    const char *name; /* up to a dot, if it has one: what follows there is up to the file, each once */
    int (*read)(struct config_loader *l, const struct config_key *key, void *field,
                const struct config_value *value);
    size_t offset;     /* of the field in the section's structure */
    uint64_t min, max; /* of numbers */
    unsigned applies;  /* outputs: to which kinds and modes */
};

int config_keep_text(struct config_loader *l, char **field, const char *text);

/* An address to listen at. `clients`: who would have to be given it; `port`: one to suggest. */
int config_read_address(struct config_loader *l, const struct config_key *key,
                        const struct config_value *value, const char *clients, const char *examples,
                        unsigned port, struct sockaddr_storage *address, socklen_t *len);

/* An output has one destination: that this key is the first that gives it one. */
int config_check_only(struct config_loader *l, const struct config_key *key);

/* A private key has one place, the host's key file, and no message may quote it. */
bool config_holds_private_key(const char *text);
int config_fail_private_key(struct config_loader *l, const struct config_key *key);

int config_read_host_link(struct config_loader *l, const struct config_key *key, void *field,
                          const struct config_value *value);
int config_read_host_key(struct config_loader *l, const struct config_key *key, void *field,
                         const struct config_value *value);
int config_read_link(struct config_loader *l, const struct config_key *key, void *field,
                     const struct config_value *value);
int config_read_link_key(struct config_loader *l, const struct config_key *key, void *field,
                         const struct config_value *value);
int config_read_peer_key(struct config_loader *l, const struct config_key *key, void *field,
                         const struct config_value *value);
int config_read_apps(struct config_loader *l, const struct config_key *key, void *field,
                     const struct config_value *value);
int config_read_store(struct config_loader *l, const struct config_key *key, void *field,
                      const struct config_value *value);
int config_read_durability(struct config_loader *l, const struct config_key *key, void *field,
                           const struct config_value *value);
int config_read_keep(struct config_loader *l, const struct config_key *key, void *field,
                     const struct config_value *value);
int config_read_sign(struct config_loader *l, const struct config_key *key, void *field,
                     const struct config_value *value);
int config_read_header(struct config_loader *l, const struct config_key *key, void *field,
                       const struct config_value *value);
int config_read_statuses(struct config_loader *l, const struct config_key *key, void *field,
                         const struct config_value *value);
int config_read_disable_after(struct config_loader *l, const struct config_key *key, void *field,
                              const struct config_value *value);
int config_read_on_disable(struct config_loader *l, const struct config_key *key, void *field,
                           const struct config_value *value);
int config_read_order_by(struct config_loader *l, const struct config_key *key, void *field,
                         const struct config_value *value);
int config_read_rate(struct config_loader *l, const struct config_key *key, void *field,
                     const struct config_value *value);
int config_read_proxy(struct config_loader *l, const struct config_key *key, void *field,
                      const struct config_value *value);
int config_read_allow(struct config_loader *l, const struct config_key *key, void *field,
                      const struct config_value *value);
int config_read_deny(struct config_loader *l, const struct config_key *key, void *field,
                     const struct config_value *value);
int config_read_ca(struct config_loader *l, const struct config_key *key, void *field,
                   const struct config_value *value);
int config_read_certificate(struct config_loader *l, const struct config_key *key, void *field,
                            const struct config_value *value);
int config_read_certificate_key(struct config_loader *l, const struct config_key *key, void *field,
                                const struct config_value *value);
int config_read_pins(struct config_loader *l, const struct config_key *key, void *field,
                     const struct config_value *value);
int config_read_https(struct config_loader *l, const struct config_key *key, void *field,
                      const struct config_value *value);
int config_read_https_ca(struct config_loader *l, const struct config_key *key, void *field,
                         const struct config_value *value);

#endif
