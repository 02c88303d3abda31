/* The server of the certs runner: OpenSSL, since it presents any chain with any key. One connection, on a
 * thread of its own. Included by programs of one file. */
#ifndef PURE_TESTS_RUNNERS_CERTS_SERVER_H
#define PURE_TESTS_RUNNERS_CERTS_SERVER_H

#include "tests/runners/certs_cases.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

struct cert_server {
    SSL_CTX *context;
    int listener;
    struct sockaddr_in address;
    pthread_t thread;
};

static bool server_use_key(SSL_CTX *context, const char *pem)
{
    BIO *in = BIO_new_mem_buf(pem, -1);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(in, NULL, NULL, NULL);
    bool good = key && SSL_CTX_use_PrivateKey(context, key) == 1;
    EVP_PKEY_free(key);
    BIO_free(in);
    return good;
}

static bool server_use_chain(SSL_CTX *context, const struct cert_case *c)
{
    for (unsigned i = 0; i < c->count; i++) {
        const uint8_t *at = c->chain[i].data;
        X509 *x = d2i_X509(NULL, &at, (long)c->chain[i].size);
        bool whole =
            x && at == c->chain[i].data + c->chain[i].size; /* or it would be sent without the rest */
        bool good = whole &&
                    (i == 0 ? SSL_CTX_use_certificate(context, x) : SSL_CTX_add1_chain_cert(context, x)) == 1;
        X509_free(x);
        if (!good)
            return false;
    }
    return true;
}

/* A context that asks nothing of what it presents; NULL: OpenSSL cannot present it. */
static SSL_CTX *server_context(const struct cert_case *c)
{
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    if (!context)
        abort();
    SSL_CTX_set_security_level(context, 0);
    SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
    SSL_CTX_set_mode(context, SSL_MODE_NO_AUTO_CHAIN);
    if (server_use_chain(context, c) && server_use_key(context, c->key))
        return context;
    ERR_clear_error();
    SSL_CTX_free(context);
    return NULL;
}

static void *server_run(void *argument)
{
    struct cert_server *server = argument;
    struct timeval patience = {.tv_sec = 10};
    char byte;
    int fd = accept(server->listener, NULL, NULL);
    if (fd < 0)
        return NULL;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    SSL *ssl = SSL_new(server->context);
    SSL_set_fd(ssl, fd);
    if (SSL_accept(ssl) == 1 && SSL_read(ssl, &byte, 1) <= 0)
        SSL_shutdown(ssl);
    ERR_clear_error();
    SSL_free(ssl);
    close(fd);
    return NULL;
}

/* False: OpenSSL cannot present this chain with this key. */
static bool server_start(struct cert_server *server, const struct cert_case *c)
{
    socklen_t len = sizeof server->address;
    server->context = server_context(c);
    if (!server->context)
        return false;
    server->address = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    server->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (server->listener < 0 || bind(server->listener, (struct sockaddr *)&server->address, len) < 0 ||
        listen(server->listener, 1) < 0 ||
        getsockname(server->listener, (struct sockaddr *)&server->address, &len) < 0 ||
        pthread_create(&server->thread, NULL, server_run, server) != 0)
        case_wrong(c->id, "no server on the loopback interface");
    return true;
}

static void server_stop(struct cert_server *server)
{
    shutdown(server->listener, SHUT_RDWR); /* ends an accept that nobody came to */
    pthread_join(server->thread, NULL);
    close(server->listener);
    SSL_CTX_free(server->context);
}

#endif
