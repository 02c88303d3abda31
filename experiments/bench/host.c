#include "experiments/bench/host.h"

#include "experiments/bench/disk.h"
#include "experiments/bench/network.h"
#include "experiments/bench/text.h"
#include "experiments/common/listener.h"

#include <string.h>
#include <unistd.h>

#define READY_MS 10000

int host_configure(struct host *host, const struct settings *settings, const char *name)
{
    memset(host, 0, offsetof(struct host, client));
    host->process.out = -1;
    host->client.fd = -1;
    host->threads = (struct process_threads){0, 0};
    host->port = listener_free_port();
    snprintf(host->config, sizeof host->config, "%s/%s.conf", settings->run, name);
    snprintf(host->log, sizeof host->log, "%s/%s.log", settings->run, name);
    host->text = fopen(host->config, "w");
    if (!host->text || !host->port) {
        fprintf(stderr, "bench: cannot write %s, or no port is free\n", host->config);
        return -1;
    }
    fprintf(host->text,
            "[host]\n"
            "name   = bench\n"
            "http   = 127.0.0.1:%u\n"
            "owners = 2\n",
            host->port);
    return 0;
}

int host_store(struct host *host, const struct settings *settings, const char *name)
{
    snprintf(host->store, sizeof host->store, "%s/%s.store", settings->run, name);
    if (disk_remove(host->store) != 0)
        return -1;
    fprintf(host->text, "store  = %s\n", host->store);
    return 0;
}

int host_key_file(const struct settings *settings, const char *file, char public_key[64])
{
    char program[300];
    struct process process;
    uint64_t cpu_ns;
    snprintf(program, sizeof program, "%s/pure-host", settings->build);
    remove(file);
    const char *argv[] = {program, "key", "new", file, NULL};
    if (process_start(&process, argv, &(struct process_options){.pipe = true}) != 0)
        return -1;
    int line = process_line(&process, public_key, 64);
    int status = process_wait(&process, &cpu_ns);
    if (line == 0 && status == 0)
        return 0;
    fprintf(stderr, "bench: pure-host key new %s failed\n", file);
    return -1;
}

int host_link(struct host *host, const struct settings *settings, const char *address)
{
    int fd = listener_datagrams();
    host->link_port = fd < 0 ? 0 : listener_port(fd);
    if (fd >= 0)
        close(fd);
    char file[520];
    snprintf(file, sizeof file, "%s.key", host->config);
    fprintf(host->text, "link   = %s:%u\nkey    = %s\n", address, host->link_port, file);
    if (host->link_port)
        return host_key_file(settings, file, host->public_key);
    fprintf(stderr, "bench: no UDP port is free\n");
    return -1;
}

void host_app(struct host *host, const struct settings *settings, const char *name, const char *module,
              const char *arg)
{
    fprintf(host->text, "\n[app %s]\nmodule = %s/apps/%s.so\n", name, settings->build, module);
    if (*arg)
        fprintf(host->text, "arg    = %s\n", arg);
}

static int wait_until_ready(struct host *host)
{
    struct client_reply reply;
    for (unsigned waited = 0; waited < READY_MS && process_alive(&host->process); waited += 2) {
        if (network_client(&host->client, host->network, host->port) == 0) {
            if (client_get(&host->client, "/status", &reply) == 0 && reply.status == 200)
                return 0;
            client_close(&host->client);
        }
        pause_ms(2);
    }
    fprintf(stderr, "bench: the host does not answer; its log is %s\n", host->log);
    return -1;
}

static const char *program_of(const char *variant)
{
    if (strcmp(variant, "epoll") == 0 || strcmp(variant, "threads") == 0)
        return "bench/pure-host-epoll";
    return strcmp(variant, "wake-record") == 0 ? "bench/pure-host-record" : "pure-host";
}

static int launch(struct host *host, const char *resolver)
{
    const char *argv[] = {host->program, "run", "-c", host->config, NULL};
    int error = process_start(&host->process, argv,
                              &(struct process_options){.log = host->log,
                                                        .resolver = resolver,
                                                        .network = host->network,
                                                        .processors = host->processors});
    if (error != 0)
        fprintf(stderr, "bench: %s: %s\n", host->program, strerror(-error));
    return error == 0 ? 0 : -1;
}

int host_start(struct host *host, const struct settings *settings, const char *variant, const char *resolver)
{
    snprintf(host->program, sizeof host->program, "%s/%s", settings->build, program_of(variant));
    fclose(host->text);
    host->text = NULL;
    remove(host->log);
    return launch(host, resolver) == 0 ? wait_until_ready(host) : -1;
}

int host_again(struct host *host)
{
    uint64_t cpu_ns;
    client_close(&host->client);
    process_wait(&host->process, &cpu_ns);
    return launch(host, NULL);
}

static int stop(struct host *host)
{
    client_close(&host->client);
    if (host->process.pid <= 0)
        return 0;
    int status = process_stop(&host->process);
    if (status != 0)
        fprintf(stderr, "bench: the host %s; its log is %s\n",
                status < 0 ? "did not end on SIGTERM within 5 s, or died" : "ended with a failure",
                host->log);
    return status == 0 ? 0 : -1;
}

int host_stop(struct host *host)
{
    int error = stop(host);
    return *host->store && disk_remove(host->store) != 0 ? -1 : error;
}

static int read_economy(struct host *host, struct economy *economy)
{
    struct client_reply reply;
    if (client_get(&host->client, "/metrics", &reply) != 0 || reply.status != 200) {
        fprintf(stderr, "bench: the host gives no metrics; its log is %s\n", host->log);
        return -1;
    }
#define X(field, metric) economy->field = text_metric_sum(reply.body, reply.body_size, metric);
    ECONOMY(X)
#undef X
    return 0;
}

int host_measure(struct host *host)
{
    int error = read_economy(host, &host->before);
    host->cpu_before_ns = process_cpu_ns(&host->process);
    return error;
}

int host_measured(struct host *host, struct row *row)
{
    struct economy now;
    row->cpu_ns += process_cpu_ns(&host->process) - host->cpu_before_ns;
    host_see_threads(host);
    row->threads += host->threads.all;
    row->name_threads += host->threads.named;
    if (read_economy(host, &now) != 0)
        return -1;
    row->has_economy = true;
#define X(field, metric) row->economy.field += now.field - host->before.field;
    ECONOMY(X)
#undef X
    row->packets = row->economy.link_packets;
    return 0;
}

void host_see_threads(struct host *host)
{
    struct process_threads now = process_threads(&host->process, "dns");
    if (now.all > host->threads.all)
        host->threads = now;
}
