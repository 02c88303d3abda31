/* The readers of keys about connections: proxies, the networks they may go to, the files of TLS, and the
 * front's https. */
#include "host/config_readers.h"

#include "host/config_values.h"

#include <ctype.h>
#include <errno.h>
#include <netinet/in.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

/* --- proxy = http://USER:PASSWORD@HOST:PORT: no message quotes it --- */

#define PROXY_MAX 1024 /* bytes of the whole */

static int hex(char c)
{
    if (isdigit((unsigned char)c))
        return c - '0';
    return isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10 : -1;
}

/* What is percent-encoded there (RFC 3986 section 2.1), decoded in place. Its size, or PE_CONFIG. */
static int decode(char *text)
{
    char *to = text;
    for (const char *at = text; *at; at++) {
        if (*at != '%') {
            *to++ = *at;
            continue;
        }
        int high = hex(at[1]), low = high < 0 ? -1 : hex(at[2]);
        if (low < 0 || high * 16 + low < ' ')
            return PE_CONFIG;
        *to++ = (char)(high * 16 + low);
        at += 2;
    }
    return (int)(to - text);
}

/* RFC 7617: `credentials` is USER:PASSWORD, decoded in place. NULL: it is not, or there is no memory. */
static char *basic_authorization(char *credentials)
{
    static const char scheme[] = "Basic ";
    int size = strchr(credentials, ':') ? decode(credentials) : PE_CONFIG;
    if (size < 0)
        return NULL;
    size_t encoded = sodium_base64_encoded_len((size_t)size, sodium_base64_VARIANT_ORIGINAL);
    char *text = malloc(strlen(scheme) + encoded);
    if (!text)
        return NULL;
    memcpy(text, scheme, strlen(scheme));
    sodium_bin2base64(text + strlen(scheme), encoded, (const uint8_t *)credentials, (size_t)size,
                      sodium_base64_VARIANT_ORIGINAL);
    return text;
}

static int read_proxy_place(struct wire_proxy *proxy, const char *place, const char **why)
{
    char url[RESOLVER_NAME_MAX + 32];
    size_t size = strcspn(place, "/?#");
    if (place[size] && strcmp(place + size, "/") != 0)
        return PE_CONFIG;
    if ((size_t)snprintf(url, sizeof(url), "http://%.*s/", (int)size, place) >= sizeof(url))
        return PE_CONFIG;
    return url_parse(&proxy->url, url, why);
}

/* `text` is cut up. 0 or PE_CONFIG with a reason (static). */
static int read_proxy_url(struct wire_proxy *proxy, char *text, const char **why)
{
    static const char scheme[] = "http://";
    *why = "needs none, or http://HOST:PORT, with USER:PASSWORD@ before the host if the proxy wants it";
    if (strncasecmp(text, scheme, strlen(scheme)) != 0 || strlen(text) > PROXY_MAX)
        return PE_CONFIG;
    char *credentials = text + strlen(scheme), *at = strrchr(credentials, '@');
    if (read_proxy_place(proxy, at ? at + 1 : credentials, why) < 0)
        return PE_CONFIG;
    if (!at)
        return 0;
    *at = '\0';
    proxy->authorization = basic_authorization(credentials);
    *why = "needs USER:PASSWORD before the '@', with what is neither letter nor digit percent-encoded";
    return proxy->authorization ? 0 : PE_CONFIG;
}

static void dispose_proxy(struct wire_proxy *proxy)
{
    if (proxy)
        value_dispose((char *)proxy->authorization);
    free(proxy);
}

int config_read_proxy(struct config_loader *l, const struct config_key *key, void *field,
                      const struct config_value *value)
{
    struct config_egress *egress = field;
    const char *why;
    egress->proxy_said = true;
    if (strcmp(value->text, "none") == 0)
        return 0;
    struct wire_proxy *proxy = calloc(1, sizeof(*proxy));
    if (!proxy)
        return config_fail_memory(l);
    if (read_proxy_url(proxy, value->text, &why) < 0) {
        dispose_proxy(proxy);
        return config_fail(l, l->line, "%s: %s", key->name, why);
    }
    egress->proxy = proxy;
    return 0;
}

/* --- allow, deny = NETWORK, … --- */

static int read_networks(struct config_loader *l, const struct config_key *key, struct network *networks,
                         unsigned *count, const struct config_value *value)
{
    char *rest = value->text, *part;
    unsigned used = 0;
    while ((part = strsep(&rest, ","))) {
        int got = networks_parse(span_text(value_trim(part)), networks + used, NETWORKS_MAX - used);
        if (got == PE_FULL)
            return config_fail(l, l->line, "%s: more than %d networks", key->name, NETWORKS_MAX);
        if (got <= 0)
            return config_fail(l, l->line,
                               "%s = %s: needs networks, separated by commas: private, any, ADDRESS or "
                               "ADDRESS/BITS, such as 10.0.0.0/8",
                               key->name, value->written);
        used += (unsigned)got;
    }
    *count = used;
    return 0;
}

int config_read_allow(struct config_loader *l, const struct config_key *key, void *field,
                      const struct config_value *value)
{
    struct networks *networks = &((struct config_egress *)field)->networks;
    return read_networks(l, key, networks->allow, &networks->allow_count, value);
}

int config_read_deny(struct config_loader *l, const struct config_key *key, void *field,
                     const struct config_value *value)
{
    struct networks *networks = &((struct config_egress *)field)->networks;
    return read_networks(l, key, networks->deny, &networks->deny_count, value);
}

/* --- files of TLS: read when they are needed (host/host_tls.h), as they may change --- */

static int keep_path(struct config_loader *l, const struct config_key *key, char **field,
                     const struct config_value *value, const char *what)
{
    if (value->text[0] == '\0' || strchr(value->text, '\n'))
        return config_fail(l, l->line, "%s: needs the path of %s", key->name, what);
    return value_path(l->directory, value->text, field) < 0 ? config_fail_memory(l) : 0;
}

int config_read_ca(struct config_loader *l, const struct config_key *key, void *field,
                   const struct config_value *value)
{
    struct config_egress *egress = field;
    egress->ca_line = l->line;
    return keep_path(l, key, &egress->ca, value,
                     "a PEM file of CA certificates, or of a directory of such files");
}

int config_read_https_ca(struct config_loader *l, const struct config_key *key, void *field,
                         const struct config_value *value)
{
    struct config_https *https = field;
    https->ca_line = l->line;
    return keep_path(l, key, &https->ca, value,
                     "a PEM file of CA certificates, or of a directory of such files");
}

int config_read_certificate(struct config_loader *l, const struct config_key *key, void *field,
                            const struct config_value *value)
{
    struct config_pair *pair = field;
    pair->certificate_line = l->line;
    return keep_path(l, key, &pair->certificate, value,
                     "a PEM file of the certificate and those between it and its CA");
}

int config_read_certificate_key(struct config_loader *l, const struct config_key *key, void *field,
                                const struct config_value *value)
{
    struct config_pair *pair = field;
    pair->key_line = l->line;
    return keep_path(l, key, &pair->key, value, "a PEM file of the certificate's private key");
}

static bool read_pin(const char *text, uint8_t pin[TLS_PIN_BYTES])
{
    static const char prefix[] = "sha256//"; /* as curl writes it */
    size_t size;
    if (strncmp(text, prefix, sizeof(prefix) - 1) == 0)
        text += sizeof(prefix) - 1;
    return sodium_base642bin(pin, TLS_PIN_BYTES, text, strlen(text), NULL, &size, NULL,
                             sodium_base64_VARIANT_ORIGINAL) == 0 &&
           size == TLS_PIN_BYTES;
}

int config_read_pins(struct config_loader *l, const struct config_key *key, void *field,
                     const struct config_value *value)
{
    struct config_wire *wire = field;
    char *rest = value->text, *part;
    unsigned count = 0;
    while ((part = strsep(&rest, ","))) {
        if (count == TLS_PINS_MAX)
            return config_fail(l, l->line, "%s: more than %d pins", key->name, TLS_PINS_MAX);
        if (!read_pin(value_trim(part), wire->pins[count++]))
            return config_fail(
                l, l->line,
                "%s = %s: needs SHA-256 sums of public keys (SubjectPublicKeyInfo) in base64, 44 "
                "characters each, separated by commas",
                key->name, value->written);
    }
    wire->pin_count = count;
    return 0;
}

/* --- https --- */

int config_read_https(struct config_loader *l, const struct config_key *key, void *field,
                      const struct config_value *value)
{
    struct config_https *https = field;
    https->line = l->line;
    if (config_read_address(l, key, value, "clients", "0.0.0.0:7443 or [::]:7443", 7443, &https->address,
                            &https->address_len) < 0)
        return PE_CONFIG;
    return config_keep_text(l, &https->text, value->text);
}

/* Port 0 is any that is free. */
static bool same_place(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    const struct sockaddr_in *a4 = (const struct sockaddr_in *)a, *b4 = (const struct sockaddr_in *)b;
    const struct sockaddr_in6 *a6 = (const struct sockaddr_in6 *)a, *b6 = (const struct sockaddr_in6 *)b;
    if (a->ss_family != b->ss_family || a4->sin_port != b4->sin_port || a4->sin_port == 0)
        return false;
    return a->ss_family == AF_INET ? a4->sin_addr.s_addr == b4->sin_addr.s_addr
                                   : memcmp(&a6->sin6_addr, &b6->sin6_addr, sizeof(a6->sin6_addr)) == 0;
}

int config_end_https(struct config_loader *l, const struct config *config)
{
    static const char *const keys[] = {"https_certificate", "https_key", "https_ca"};
    const struct config_https *https = &config->https;
    for (unsigned i = 0; i < ARRAY_SIZE(keys); i++) {
        unsigned line = config_key_line(l, keys[i]);
        if (!https->text && line > 0)
            return config_fail(l, line, "%s is for https: add https = ADDRESS:PORT, or remove it", keys[i]);
        if (https->text && line == 0 && i < 2)
            return config_fail(l, https->line,
                               "https needs a certificate: add https_certificate = FILE and "
                               "https_key = FILE");
    }
    char where[32] = "as it is not given, by default";
    if (config_key_line(l, "http") > 0)
        snprintf(where, sizeof(where), "line %u", config_key_line(l, "http"));
    if (https->text && config->http && same_place(&https->address, &config->http_address))
        return config_fail(l, https->line, "https: http is at the same address and port (%s)", where);
    if (!https->text || https->ca || config->token || config_is_loopback(&https->address))
        return 0;
    return config_fail(l, https->line,
                       "https is reached from other machines: add token = file:PATH or https_ca = FILE to "
                       "[host], or listen on 127.0.0.1");
}

/* --- defaults, ends --- */

static int copy_proxy(struct config_egress *to, const struct wire_proxy *from)
{
    to->proxy = malloc(sizeof(*to->proxy));
    if (!to->proxy)
        return -ENOMEM;
    *to->proxy = *from;
    if (from->authorization && !(to->proxy->authorization = strdup(from->authorization)))
        return -ENOMEM;
    return 0;
}

int config_settle_egress(struct config_egress *o, const struct config_egress *h)
{
    struct networks *networks = &o->networks;
    if (networks->allow_count == 0) {
        networks->allow_count = h->networks.allow_count;
        memcpy(networks->allow, h->networks.allow, sizeof(networks->allow));
    }
    if (networks->deny_count == 0) {
        networks->deny_count = h->networks.deny_count;
        memcpy(networks->deny, h->networks.deny, sizeof(networks->deny));
    }
    if (!o->ca && h->ca) {
        o->ca_line = h->ca_line;
        if (!(o->ca = strdup(h->ca)))
            return -ENOMEM;
    }
    return !o->proxy_said && h->proxy ? copy_proxy(o, h->proxy) : 0;
}

void config_dispose_egress(struct config_egress *egress)
{
    dispose_proxy(egress->proxy);
    free(egress->ca);
}

void config_dispose_pair(struct config_pair *pair)
{
    free(pair->certificate);
    free(pair->key);
}
