/* What tests of the command line stand on: a platform whose modules and kernel are the test's, running a
 * command with its output caught, and a child that answers one. */
#ifndef PURE_TESTS_CLI_DRIVE_H
#define PURE_TESTS_CLI_DRIVE_H

#include "host/cli.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

/* --- a platform whose modules and kernel are the test's --- */

struct fake {
    bool kernel_refuses;
    unsigned loaded; /* and not unloaded */
    unsigned opened; /* apps, and not closed */
};

static struct fake *the_fake; /* for the app's functions, which have no context before open */

static inline int fake_open(void **state, const char *arg, char *error, size_t error_size)
{
    *state = NULL;
    if (strcmp(arg, "bad") == 0) {
        snprintf(error, error_size, "arg is bad");
        return -1;
    }
    the_fake->opened++;
    return 0;
}

static inline int fake_event(void *state, struct pure_turn *turn, const struct pure_event *event)
{
    (void)state, (void)turn, (void)event;
    return 0;
}

static inline void fake_close(void *state)
{
    (void)state;
    the_fake->opened--;
}

static const char *const fake_outputs[] = {"log", "cloud", NULL};
static const struct pure_app fake_app = {.abi = PURE_APP_ABI,
                                         .outputs = fake_outputs,
                                         .open = fake_open,
                                         .event = fake_event,
                                         .close = fake_close};

static inline int load_module(void *context, const char *path, const struct pure_app **app, void **handle,
                              char *why, size_t why_size)
{
    struct fake *fake = context;
    if (strstr(path, "missing")) {
        snprintf(why, why_size, "it is not there");
        return PE_MODULE;
    }
    fake->loaded++;
    *app = &fake_app;
    *handle = fake;
    return 0;
}

static inline void unload_module(void *context, void *handle)
{
    (void)handle;
    ((struct fake *)context)->loaded--;
}

static inline void dispose_io(struct io *io)
{
    free(io);
}

static const struct io_backend fake_backend = {.dispose = dispose_io};

static inline int open_io(void *context, struct io **io, char *why, size_t why_size)
{
    struct fake *fake = context;
    if (fake->kernel_refuses) {
        snprintf(why, why_size, "io_uring is switched off");
        return PE_KERNEL;
    }
    *io = malloc(sizeof(**io));
    assert_non_null(*io);
    io_init(*io, &fake_backend);
    return 0;
}

static inline void fill_random(void *context, void *bytes, size_t size)
{
    (void)context;
    memset(bytes, 7, size);
}

static inline struct host_options fake_options(struct fake *fake)
{
    the_fake = fake;
    return (struct host_options){.context = fake,
                                 .open_io = open_io,
                                 .load_module = load_module,
                                 .unload_module = unload_module,
                                 .fill_random = fill_random};
}

/* Runs a command with standard output and error going to `said`. */
static inline int run(struct fake *fake, char *said, size_t size, const char *const *words)
{
    struct host_options options = fake_options(fake);
    char *argv[12] = {(char *)"pure-host"};
    int argc = 1;
    for (; words[argc - 1]; argc++)
        argv[argc] = (char *)words[argc - 1];
    int scratch = memfd_create("said", 0), out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO);
    fflush(NULL);
    dup2(scratch, STDOUT_FILENO);
    dup2(scratch, STDERR_FILENO);
    int status = cli_main(argc, argv, &options);
    fflush(NULL);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    ssize_t used = pread(scratch, said, size - 1, 0);
    said[used > 0 ? used : 0] = '\0';
    close(scratch), close(out), close(err);
    return status;
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Runs a command on a file that holds `text`; what it says begins with the file's name where that is said. */
static inline int run_on_file(struct fake *fake, const char *command, const char *text, char *path,
                              char *said, size_t size)
{
    int fd = mkstemp(path);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
    int status = run(fake, said, size, WORDS(command, "-c", path));
    unlink(path);
    return status;
}

/* --- the client: against a child that reads a request to its end and answers as told --- */

static const char *then_answer;      /* to a second request; NULL: none is taken */
static const char *then_wanted = ""; /* what that request holds */

/* Of the child: reads until that has come; ends it if the request ends before. */
static inline void read_until(int peer, const char *wanted)
{
    char request[4096] = "";
    size_t used = 0;
    while (used + 1 < sizeof(request) && !strstr(request, wanted)) {
        ssize_t size = recv(peer, request + used, sizeof(request) - 1 - used, 0);
        if (size <= 0)
            _exit(1);
        used += (size_t)size;
    }
}

static inline pid_t serve(const char *answer, uint16_t *port, const char *wanted)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(listener, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &len), 0);
    *port = ntohs(address.sin_port);
    pid_t child = fork();
    if (child != 0) {
        close(listener);
        return child;
    }
    alarm(20); /* a client that never comes ends the child all the same */
    int peer = accept(listener, NULL, NULL);
    read_until(peer, wanted);
    send(peer, answer, strlen(answer), MSG_NOSIGNAL);
    shutdown(peer, SHUT_WR);
    if (then_answer) {
        peer = accept(listener, NULL, NULL);
        read_until(peer, then_wanted);
        send(peer, then_answer, strlen(then_answer), MSG_NOSIGNAL);
        shutdown(peer, SHUT_WR);
    }
    _exit(0);
}

/* Runs the command `a` with the operands b, c, d (NULL: none) against a host that answers so. */
static inline int run_against(const char *answer, const char *wanted, char *said, size_t size, const char *a,
                              const char *b, const char *c, const char *d)
{
    uint16_t port;
    char url[64];
    int child_status;
    struct fake fake = {0};
    pid_t child = serve(answer, &port, wanted);
    snprintf(url, sizeof(url), "--url=http://127.0.0.1:%u", port);
    const char *words[] = {a, url, b, c, d, NULL};
    int status = run(&fake, said, size, words);
    assert_int_equal(waitpid(child, &child_status, 0), child);
    assert_true(WIFEXITED(child_status) && WEXITSTATUS(child_status) == 0);
    return status;
}

#endif
