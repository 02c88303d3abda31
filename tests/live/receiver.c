/* receiver ADDRESS:PORT [WORD VALUE]…: takes webhooks over HTTP/1.1, by OpenSSL if it has a certificate, and
 * answers each with 204. As somebody else's server would: nothing of the project's is in it.
 *
 *     cert FILE  key FILE     TLS by this certificate chain and key (PEM)
 *     min V  max V            the TLS versions it takes, 1.2 or 1.3
 *     ciphers LIST            of TLS 1.2, in OpenSSL's names
 *     suites LIST             of TLS 1.3
 *     ca FILE                 a client certificate of one of these CAs is required
 *     close 1                 each connection is for one request
 *     mute 1                  takes connections, reads nothing, says nothing
 *
 * It prints "ready", and for each request one line: the request line and headers separated by "|", the body,
 * and behind " -- " the TLS version, cipher, new or resumed, SNI and the client's subject, "-" what there is
 * not. A handshake that fails is a line "handshake: why". */
#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define REQUEST_BYTES (2 << 20)
#define BACKLOG       128
#define TLS_HANDSHAKE 22 /* the first byte of a ClientHello (RFC 8446 section 5.1) */

static SSL_CTX *tls; /* NULL: plain */
static bool closes, mute;

struct client {
    int fd;
    SSL *ssl;      /* NULL: plain */
    char *request; /* REQUEST_BYTES */
    size_t used;
};

static void die(const char *what)
{
    fprintf(stderr, "receiver: %s\n", what);
    ERR_print_errors_fp(stderr);
    exit(1);
}

static ssize_t receive(struct client *c, void *to, size_t room)
{
    return c->ssl ? SSL_read(c->ssl, to, (int)room) : read(c->fd, to, room);
}

static bool reply(struct client *c)
{
    const char *text =
        closes ? "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n" : "HTTP/1.1 204 No Content\r\n\r\n";
    int size = (int)strlen(text);
    return (c->ssl ? SSL_write(c->ssl, text, size) : (int)write(c->fd, text, (size_t)size)) == size;
}

/* The bytes of the request at the front; 0: it is not all there. */
static size_t request_size(const char *text)
{
    const char *end = strstr(text, "\r\n\r\n"), *length = strcasestr(text, "\r\ncontent-length:");
    if (!end)
        return 0;
    return (size_t)(end + 4 - text) + (length && length < end ? strtoul(length + 17, NULL, 10) : 0);
}

/* The name in the ClientHello of this thread's connection. SSL_get_servername has that of the session, where
 * one is resumed in TLS 1.2. */
static _Thread_local char sni[256];

/* RFC 6066 section 3: the list's size (2 bytes), type (1), the name's size (2), and the name. */
static int see_hello(SSL *ssl, int *alert, void *unused)
{
    (void)alert, (void)unused;
    const unsigned char *list;
    size_t size;
    strcpy(sni, "-");
    if (SSL_client_hello_get0_ext(ssl, TLSEXT_TYPE_server_name, &list, &size) == 1 && size > 5 &&
        size - 5 < sizeof sni) {
        memcpy(sni, list + 5, size - 5);
        sni[size - 5] = 0;
    }
    return SSL_CLIENT_HELLO_SUCCESS;
}

static void print_security(SSL *ssl, char *line, size_t room)
{
    char subject[200] = "-";
    X509 *peer = ssl ? SSL_get1_peer_certificate(ssl) : NULL;
    if (peer)
        X509_NAME_oneline(X509_get_subject_name(peer), subject, sizeof subject);
    X509_free(peer);
    snprintf(line, room, " -- %s %s %s %s %s\n", ssl ? SSL_get_version(ssl) : "-",
             ssl ? SSL_get_cipher_name(ssl) : "-", ssl ? SSL_session_reused(ssl) ? "resumed" : "new" : "-",
             ssl ? sni : "-", subject);
}

/* One line, and in one piece: others write theirs. */
static void print_request(struct client *c, size_t size)
{
    char security[800];
    print_security(c->ssl, security, sizeof security);
    flockfile(stdout);
    for (size_t i = 0; i < size; i++) {
        if (c->request[i] != '\r')
            putchar_unlocked(c->request[i] == '\n' ? '|' : c->request[i]);
    }
    fputs(security, stdout);
    fflush(stdout);
    funlockfile(stdout);
}

/* As servers do that are spoken to by TLS and have none. */
static bool refuse(struct client *c)
{
    static const char text[] = "HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n";
    (void)!write(c->fd, text, sizeof text - 1);
    return false;
}

static bool take_request(struct client *c)
{
    size_t size;
    while ((size = request_size(c->request)) == 0 || c->used < size) {
        ssize_t got = receive(c, c->request + c->used, REQUEST_BYTES - 1 - c->used);
        if (got <= 0)
            return false;
        c->used += (size_t)got;
        c->request[c->used] = 0;
        if (c->request[0] == TLS_HANDSHAKE)
            return refuse(c);
    }
    print_request(c, size);
    memmove(c->request, c->request + size, c->used - size + 1);
    c->used -= size;
    return reply(c);
}

static bool accept_tls(struct client *c)
{
    if (!tls)
        return true;
    c->ssl = SSL_new(tls);
    SSL_set_fd(c->ssl, c->fd);
    if (SSL_accept(c->ssl) == 1)
        return true;
    const char *why = ERR_reason_error_string(ERR_peek_last_error());
    printf("handshake: %s\n", why ? why : "the end of the connection");
    return false;
}

static void *serve(void *arg)
{
    struct client *c = arg;
    if (mute)
        pause();
    if (accept_tls(c)) {
        while (take_request(c) && !closes)
            ;
        if (c->ssl)
            SSL_shutdown(c->ssl);
    }
    SSL_free(c->ssl);
    close(c->fd);
    free(c->request);
    free(c);
    return NULL;
}

static int version_of(const char *text)
{
    return strcmp(text, "1.2") == 0 ? TLS1_2_VERSION : TLS1_3_VERSION;
}

static void require_clients(const char *file)
{
    if (SSL_CTX_load_verify_locations(tls, file, NULL) != 1)
        die(file);
    SSL_CTX_set_verify(tls, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
}

static void set(const char *word, const char *value)
{
    bool done = true;
    if (strcmp(word, "close") == 0)
        closes = true;
    else if (strcmp(word, "mute") == 0)
        mute = true;
    else if (strcmp(word, "cert") == 0)
        done = SSL_CTX_use_certificate_chain_file(tls, value) == 1;
    else if (strcmp(word, "key") == 0)
        done = SSL_CTX_use_PrivateKey_file(tls, value, SSL_FILETYPE_PEM) == 1;
    else if (strcmp(word, "min") == 0)
        done = SSL_CTX_set_min_proto_version(tls, version_of(value)) == 1;
    else if (strcmp(word, "max") == 0)
        done = SSL_CTX_set_max_proto_version(tls, version_of(value)) == 1;
    else if (strcmp(word, "ciphers") == 0)
        done = SSL_CTX_set_cipher_list(tls, value) == 1;
    else if (strcmp(word, "suites") == 0)
        done = SSL_CTX_set_ciphersuites(tls, value) == 1;
    else if (strcmp(word, "ca") == 0)
        require_clients(value);
    else
        done = false;
    if (!done)
        die(word);
}

static int open_listener(char *at)
{
    char *port = strrchr(at, ':');
    struct sockaddr_in address = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
    if (!port)
        die("ADDRESS:PORT");
    *port++ = 0;
    address.sin_port = htons((uint16_t)atoi(port));
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
    if (inet_pton(AF_INET, at, &address.sin_addr) != 1 ||
        bind(fd, (struct sockaddr *)&address, sizeof address) != 0 || listen(fd, BACKLOG) != 0)
        die("cannot listen");
    return fd;
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc % 2 != 0)
        die("receiver ADDRESS:PORT [WORD VALUE]…");
    signal(SIGPIPE, SIG_IGN);
    setvbuf(stdout, NULL, _IOLBF, 0);
    int listener = open_listener(argv[1]);
    for (int i = 2; i < argc; i += 2) {
        if (strcmp(argv[i], "cert") == 0)
            tls = SSL_CTX_new(TLS_server_method());
        set(argv[i], argv[i + 1]);
    }
    if (tls) {
        SSL_CTX_set_session_id_context(tls, (const unsigned char *)"receiver", 8);
        SSL_CTX_set_client_hello_cb(tls, see_hello, NULL);
    }
    puts("ready");
    for (;;) {
        struct client *c = calloc(1, sizeof *c);
        pthread_t thread;
        if (!c || !(c->request = calloc(1, REQUEST_BYTES)))
            die("no memory");
        c->fd = accept(listener, NULL, NULL);
        if (c->fd < 0 || pthread_create(&thread, NULL, serve, c) != 0)
            die("a connection");
        pthread_detach(thread);
    }
}
