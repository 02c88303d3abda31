#include "host/cli_http.h"

#include "core/clock.h"
#include "tls/accelerate.h"
#include "tls/engine.h"
#include "tls/trust.h"
#include "wire/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define HEAD_MAX (4096 + URL_TARGET_MAX)

/* One exchange under way. */
struct exchange {
    int fd;
    uint64_t deadline_ns;
    struct http_reply reply;
    char *body;
    size_t size, room;
    struct tls_engine *engine; /* NULL: plain */
    uint8_t ciphertext[16384]; /* that it was fed last */
};

int cli_endpoint_of_config(struct cli_endpoint *endpoint, const struct config *config, char *why,
                           size_t why_size)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)&endpoint->address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&endpoint->address;
    memset(endpoint, 0, sizeof(*endpoint));
    if (!config->http) {
        snprintf(why, why_size,
                 "%s: http = none, so --url https://NAME:PORT is needed, and --ca FILE if the CA of its "
                 "certificate is none of the system's",
                 config->path);
        return PE_CONFIG;
    }
    endpoint->address = config->http_address;
    endpoint->address_len = config->http_address_len;
    endpoint->token = config->token;
    if (v4->sin_family == AF_INET && v4->sin_addr.s_addr == htonl(INADDR_ANY))
        v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (v6->sin6_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&v6->sin6_addr))
        v6->sin6_addr = in6addr_loopback;
    snprintf(endpoint->authority, sizeof(endpoint->authority), "%s", config->http);
    return 0;
}

static int look_up(struct cli_endpoint *endpoint, const struct url *url, char *why, size_t why_size)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG}, *found;
    char port[8];
    snprintf(port, sizeof(port), "%u", url->port);
    if (url->literal)
        hints.ai_flags = AI_NUMERICHOST;
    int error = getaddrinfo(url->host, port, &hints, &found);
    if (error != 0) {
        snprintf(why, why_size, "the name %s cannot be looked up: %s", url->host, gai_strerror(error));
        return PE_NAME_FAILED;
    }
    memcpy(&endpoint->address, found->ai_addr, found->ai_addrlen);
    endpoint->address_len = found->ai_addrlen;
    freeaddrinfo(found);
    return 0;
}

static int make_context(struct cli_endpoint *endpoint, const char *ca, char *why, size_t why_size)
{
    struct tls_options options = {.aes_first = tls_aes_accelerated()};
    unsigned passed_over;
    int error = tls_trust_read(&options.trust, ca, &passed_over, why, why_size);
    if (error < 0)
        return error;
    error = tls_context_make(&endpoint->tls, &options, why, why_size);
    tls_trust_drop(options.trust);
    return error;
}

static int read_url(struct url *url, const char *text, char *why, size_t why_size)
{
    const char *reason = "";
    bool http = strncasecmp(text, "http://", 7) == 0 || strncasecmp(text, "https://", 8) == 0;
    int error = http ? url_parse(url, text, &reason) : 0;
    if (error < 0) {
        snprintf(why, why_size, "the URL: %s", reason);
        return error;
    }
    if (!http || strchr(url->target, '?')) {
        snprintf(why, why_size, "the URL needs to be an http or https one without a query, such as http://%s",
                 CONFIG_HTTP);
        return PE_CONFIG;
    }
    return 0;
}

int cli_endpoint_of_url(struct cli_endpoint *endpoint, const char *text, const char *ca, char *why,
                        size_t why_size)
{
    struct url url;
    memset(endpoint, 0, sizeof(*endpoint));
    int error = read_url(&url, text, why, why_size);
    if (error == 0 && ca && !url.tls) {
        snprintf(why, why_size, "--ca is for https URLs");
        error = PE_CONFIG;
    }
    if (error == 0 && url.tls)
        error = make_context(endpoint, ca, why, why_size);
    if (error < 0)
        return error;
    snprintf(endpoint->host, sizeof(endpoint->host), "%s", url.host);
    snprintf(endpoint->authority, sizeof(endpoint->authority), "%s", url.authority);
    snprintf(endpoint->prefix, sizeof(endpoint->prefix), "%s", url.target);
    size_t size = strlen(endpoint->prefix);
    if (size > 0 && endpoint->prefix[size - 1] == '/')
        endpoint->prefix[size - 1] = '\0';
    return look_up(endpoint, &url, why, why_size);
}

void cli_endpoint_dispose(struct cli_endpoint *endpoint)
{
    tls_context_drop(endpoint->tls);
    endpoint->tls = NULL;
}

/* --- the socket --- */

static uint64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* The next call on the socket ends at the exchange's deadline. */
static int limit_next_call(const struct exchange *e, int option)
{
    uint64_t now_ns = clock_ns();
    if (now_ns >= e->deadline_ns)
        return -EAGAIN;
    uint64_t left_us = (e->deadline_ns - now_ns) / NS_PER_US + 1;
    struct timeval left = {(time_t)(left_us / 1000000), (suseconds_t)(left_us % 1000000)};
    return setsockopt(e->fd, SOL_SOCKET, option, &left, sizeof(left)) < 0 ? -errno : 0;
}

static int open_connection(struct exchange *e, const struct cli_endpoint *endpoint)
{
    e->fd = socket(endpoint->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (e->fd < 0)
        return -errno;
    int error = limit_next_call(e, SO_SNDTIMEO); /* connect keeps to it, too */
    if (error < 0)
        return error;
    const struct sockaddr *address = (const struct sockaddr *)&endpoint->address;
    if (connect(e->fd, address, endpoint->address_len) == 0)
        return 0;
    return errno == EINPROGRESS ? -EAGAIN : -errno;
}

static int send_bytes(struct exchange *e, struct span bytes)
{
    size_t sent = 0;
    while (sent < bytes.size) {
        int error = limit_next_call(e, SO_SNDTIMEO);
        if (error < 0)
            return error;
        ssize_t size = send(e->fd, bytes.data + sent, bytes.size - sent, MSG_NOSIGNAL);
        if (size < 0)
            return -errno;
        sent += (size_t)size;
    }
    return 0;
}

/* How many there are, 0 at the end, or a negative errno. */
static int receive_bytes(struct exchange *e, uint8_t *bytes, size_t room)
{
    int error = limit_next_call(e, SO_RCVTIMEO);
    if (error < 0)
        return error;
    ssize_t size = recv(e->fd, bytes, room, 0);
    return size < 0 ? -errno : (int)size;
}

/* --- through TLS --- */

static int send_output(struct exchange *e)
{
    struct span output = tls_engine_output(e->engine);
    int error = send_bytes(e, output);
    if (error == 0)
        tls_engine_took(e->engine, output.size);
    return error;
}

/* The engine waits: for its output to be taken, else for more. */
static int serve(struct exchange *e)
{
    bool had_output = tls_engine_pending(e->engine) > 0;
    int error = send_output(e);
    if (error < 0 || (had_output && !tls_engine_ready(e->engine)))
        return error;
    int size = receive_bytes(e, e->ciphertext, sizeof(e->ciphertext));
    if (size <= 0)
        return size < 0 ? size : PE_TLS_CUT;
    tls_engine_feed(e->engine, span_of(e->ciphertext, (size_t)size), (int64_t)time(NULL));
    return 0;
}

/* An event other than TLS_WAITS, or an error. */
static int next_event(struct exchange *e, uint8_t *plain, size_t room, size_t *size)
{
    for (;;) {
        enum tls_event event = tls_engine_step(e->engine, plain, room, size);
        if (event == TLS_FAILED) {
            send_output(e); /* an alert, if it can go */
            return tls_engine_error(e->engine);
        }
        if (event != TLS_WAITS)
            return (int)event;
        int error = serve(e);
        if (error < 0)
            return error;
    }
}

static int shake_hands(struct exchange *e, const struct cli_endpoint *endpoint)
{
    uint8_t none;
    size_t size;
    int error = tls_engine_make(&e->engine, endpoint->tls, endpoint->host, NULL, (int64_t)time(NULL));
    if (error < 0)
        return error;
    int event = next_event(e, &none, sizeof(none), &size);
    return event < 0 ? event : event == TLS_READY ? 0 : PE_TLS_CUT;
}

/* --- the exchange --- */

static int send_all(struct exchange *e, struct span bytes)
{
    int error = 0;
    if (!e->engine)
        return send_bytes(e, bytes);
    while (bytes.size > 0 && error == 0) {
        size_t size = min_size(bytes.size, TLS_PLAIN_MAX);
        error = tls_engine_write(e->engine, bytes.data, size);
        if (error == 0)
            error = send_output(e);
        bytes = span_of(bytes.data + size, bytes.size - size);
    }
    return error;
}

/* Plain bytes; as receive_bytes. */
static int receive_some(struct exchange *e, uint8_t *bytes, size_t room)
{
    size_t size = 0;
    if (!e->engine)
        return receive_bytes(e, bytes, room);
    int event = next_event(e, bytes, room, &size);
    return event < 0 ? event : event == TLS_PLAIN ? (int)size : 0;
}

static int keep_content(struct exchange *e, struct span content)
{
    if (e->size + content.size > CLI_HTTP_BODY_MAX)
        return PE_TOO_LARGE;
    if (e->size + content.size + 1 > e->room) {
        size_t room = 2 * (e->size + content.size) + 4096;
        char *body = realloc(e->body, room);
        if (!body)
            return -ENOMEM;
        e->body = body;
        e->room = room;
    }
    if (content.size > 0)
        memcpy(e->body + e->size, content.data, content.size);
    e->size += content.size;
    e->body[e->size] = '\0';
    return 0;
}

static int take_bytes(struct exchange *e, struct span bytes)
{
    while (bytes.size > 0 && e->reply.state != HTTP_REPLY_DONE) {
        size_t used;
        struct span content;
        int error = http_reply_take(&e->reply, bytes, &used, &content);
        if (error == 0)
            error = keep_content(e, content);
        if (error < 0)
            return error;
        bytes = span_of(bytes.data + used, bytes.size - used);
    }
    return 0;
}

static int receive_reply(struct exchange *e)
{
    uint8_t bytes[16384];
    int error = keep_content(e, span_of(NULL, 0));
    http_reply_init(&e->reply, false);
    while (error == 0 && e->reply.state != HTTP_REPLY_DONE) {
        int size = receive_some(e, bytes, sizeof(bytes));
        if (size < 0)
            error = size;
        else if (size == 0)
            error = http_reply_end(&e->reply);
        else
            error = take_bytes(e, span_of(bytes, (size_t)size));
    }
    return error;
}

/* The request's head. Its size, or PE_TOO_LARGE. */
static int write_head(char *head, size_t size, const struct cli_endpoint *endpoint, const char *method,
                      const char *path, size_t body_size)
{
    int used = snprintf(head, size,
                        "%s %s%s HTTP/1.1\r\nHost: %s\r\nUser-Agent: pure-host\r\nConnection: close\r\n"
                        "Content-Type: application/octet-stream\r\nContent-Length: %zu\r\n%s%s%s\r\n",
                        method, endpoint->prefix, path, endpoint->authority, body_size,
                        endpoint->token ? "Authorization: Bearer " : "",
                        endpoint->token ? endpoint->token : "", endpoint->token ? "\r\n" : "");
    return used < 0 || (size_t)used >= size ? PE_TOO_LARGE : used;
}

static int exchange_messages(struct exchange *e, const struct cli_endpoint *endpoint, struct span head,
                             struct span body)
{
    int error = open_connection(e, endpoint);
    if (error == 0 && endpoint->tls)
        error = shake_hands(e, endpoint);
    if (error < 0)
        return error;
    /* A server that refuses early may answer and reset before it has read all: what it said counts. */
    int sent = send_all(e, head);
    if (sent == 0)
        sent = send_all(e, body);
    error = receive_reply(e);
    return error < 0 && sent < 0 ? sent : error;
}

static void explain(const struct cli_endpoint *endpoint, const struct exchange *e, int error, char *why,
                    size_t why_size)
{
    const char *scheme = endpoint->tls ? "https" : "http";
    const char *detail = e->engine ? tls_engine_detail(e->engine) : "";
    if (error == -ECONNREFUSED)
        snprintf(why, why_size, "no host answers at %s://%s: is pure-host running there?", scheme,
                 endpoint->authority);
    else if (error == -EAGAIN)
        snprintf(why, why_size, "no answer from %s://%s within %u s", scheme, endpoint->authority,
                 (unsigned)(CLI_HTTP_TIMEOUT_NS / NS_PER_S));
    else
        snprintf(why, why_size, "%s://%s: %s%s%s", scheme, endpoint->authority, pure_error_text(error),
                 detail[0] ? ": " : "", detail);
}

int cli_http(const struct cli_endpoint *endpoint, const char *method, const char *path, struct span body,
             struct cli_reply *reply, char *why, size_t why_size)
{
    struct exchange e = {.fd = -1, .deadline_ns = clock_ns() + CLI_HTTP_TIMEOUT_NS};
    char head[HEAD_MAX + CONFIG_TOKEN_MAX];
    int error = write_head(head, sizeof(head), endpoint, method, path, body.size);
    if (error > 0)
        error = exchange_messages(&e, endpoint, span_of(head, (size_t)error), body);
    explicit_bzero(head, sizeof(head));
    if (e.fd >= 0)
        close(e.fd);
    if (error < 0)
        explain(endpoint, &e, error, why, why_size);
    tls_engine_free(e.engine);
    if (error < 0) {
        free(e.body);
        return error;
    }
    *reply = (struct cli_reply){.status = e.reply.status, .body = e.body, .size = e.size};
    return 0;
}
