#include "wire/url.h"
#include "wire/http_class.h"

#include <arpa/inet.h>
#include <stdio.h>

static int refuse(const char **why, const char *text)
{
    *why = text;
    return PE_MALFORMED;
}

/* Whether `text` begins with `prefix` (lower case), in any case. */
static bool begins(const char *text, const char *prefix)
{
    for (; *prefix; text++, prefix++)
        if (http_lower((uint8_t)*text) != (uint8_t)*prefix)
            return false;
    return true;
}

static struct span up_to(const char *text, const char *stops)
{
    return span_of(text, strcspn(text, stops));
}

/* --- the host --- */

static int copy_host(struct url *url, struct span host, const char **why)
{
    if (host.size >= sizeof url->host) {
        *why = "the host is longer than 253 bytes";
        return PE_TOO_LARGE;
    }
    for (size_t i = 0; i < host.size; i++)
        url->host[i] = (char)http_lower(host.data[i]);
    url->host[host.size] = '\0';
    return 0;
}

/* What stands between the brackets (RFC 3986 section 3.2.2); zone identifiers mean nothing to a peer. */
static int parse_ipv6(struct url *url, struct span host, const char **why)
{
    struct in6_addr address;
    int error = copy_host(url, host, why);
    if (error < 0)
        return error;
    if (inet_pton(AF_INET6, url->host, &address) != 1)
        return refuse(why, "what stands in brackets is not an IPv6 address");
    url->literal = true;
    return 0;
}

/* Labels of 1 to 63 letters, digits, '-' and '_' (RFC 1034 section 3.5; names with '_' are in use). */
static bool is_name(const char *host)
{
    for (;;) {
        struct span label = up_to(host, ".");
        if (label.size == 0 || label.size > 63 || !http_class_all(label, CLASS_LABEL) || host[0] == '-' ||
            host[label.size - 1] == '-')
            return false;
        if (host[label.size] == '\0')
            return true;
        host += label.size + 1;
    }
}

/* A name whose last label is a number is an IPv4 address in a form that readers disagree on: 127.1, 0x7f.1.
 */
static bool is_odd_ipv4(const char *host)
{
    const char *dot = strrchr(host, '.'), *last = dot ? dot + 1 : host;
    if (begins(last, "0x"))
        return http_class_all(span_text(last + 2), CLASS_HEX);
    return http_class_all(span_text(last), CLASS_DIGIT);
}

static int parse_name(struct url *url, struct span host, const char **why)
{
    struct in_addr address;
    for (size_t i = 0; i < host.size; i++)
        if (host.data[i] > 0x7f)
            return refuse(why, "the host is not ASCII: give its xn-- form");
    if (host.size > 0 && host.data[host.size - 1] == '.')
        host.size--;
    if (host.size == 0)
        return refuse(why, "the host is missing");
    int error = copy_host(url, host, why);
    if (error < 0)
        return error;
    if (inet_pton(AF_INET, url->host, &address) == 1) {
        url->literal = true;
        return 0;
    }
    if (!is_name(url->host))
        return refuse(why, "the host is neither a name nor an address");
    if (is_odd_ipv4(url->host))
        return refuse(why, "the host is not an IPv4 address of four decimal numbers");
    return 0;
}

/* --- the authority --- */

/* `text`: what follows the host. */
static int parse_port(struct url *url, struct span text, const char **why)
{
    url->port = url->tls ? 443 : 80;
    if (text.size == 0)
        return 0;
    if (text.data[0] != ':')
        return refuse(why, "the port must follow the host as :PORT");
    struct span digits = span_of(text.data + 1, text.size - 1);
    unsigned port = 0;
    if (digits.size == 0 || digits.size > 5 || !http_class_all(digits, CLASS_DIGIT))
        return refuse(why, "the port is not a number from 1 to 65535");
    for (size_t i = 0; i < digits.size; i++)
        port = port * 10 + digits.data[i] - '0';
    if (port == 0 || port > UINT16_MAX)
        return refuse(why, "the port is not a number from 1 to 65535");
    url->port = (uint16_t)port;
    return 0;
}

static void write_authority(struct url *url, bool brackets)
{
    int size = snprintf(url->authority, sizeof url->authority, brackets ? "[%s]" : "%s", url->host);
    if (url->port != (url->tls ? 443 : 80))
        size += snprintf(url->authority + size, sizeof url->authority - (size_t)size, ":%u", url->port);
    assert((size_t)size < sizeof url->authority);
}

static int parse_authority(struct url *url, struct span authority, const char **why)
{
    if (authority.size == 0)
        return refuse(why, "the host is missing");
    if (memchr(authority.data, '@', authority.size))
        return refuse(why, "user information is not allowed in the URL");
    bool brackets = authority.data[0] == '[';
    const uint8_t *end = authority.data + authority.size;
    const uint8_t *host_end = memchr(authority.data, brackets ? ']' : ':', authority.size);
    if (brackets && !host_end)
        return refuse(why, "the closing bracket of the IPv6 address is missing");
    if (!host_end)
        host_end = end;
    struct span host = span_of(authority.data + brackets, (size_t)(host_end - authority.data) - brackets);
    int error = brackets ? parse_ipv6(url, host, why) : parse_name(url, host, why);
    if (error < 0)
        return error;
    const uint8_t *after = host_end + brackets;
    error = parse_port(url, span_of(after, (size_t)(end - after)), why);
    if (error == 0)
        write_authority(url, brackets);
    return error;
}

/* --- the target --- */

static int parse_target(struct url *url, const char *text, const char **why)
{
    struct span target = up_to(text, "#");
    const char *fragment = text + target.size;
    size_t slash = target.size == 0 || target.data[0] != '/'; /* an empty path is "/" */
    if (!http_target_valid(target) || (*fragment && !http_target_valid(span_text(fragment + 1))))
        return refuse(why, "the path or query has a byte that must be percent-encoded");
    if (target.size + slash > URL_TARGET_MAX) {
        *why = "the path and query are longer than 2048 bytes";
        return PE_TOO_LARGE;
    }
    url->target[0] = '/';
    memcpy(url->target + slash, target.data, target.size);
    url->target[slash + target.size] = '\0';
    return 0;
}

int url_parse(struct url *url, const char *text, const char **why)
{
    struct url parsed = {.tls = begins(text, "https://")};
    if (!parsed.tls && !begins(text, "http://"))
        return refuse(why, "the URL must begin with http:// or https://");
    text += parsed.tls ? 8 : 7;
    struct span authority = up_to(text, "/?#");
    int error = parse_authority(&parsed, authority, why);
    if (error == 0)
        error = parse_target(&parsed, text + authority.size, why);
    if (error == 0)
        *url = parsed;
    return error;
}
