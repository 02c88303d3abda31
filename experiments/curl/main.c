/* What libcurl's multi interface takes for the same work as a webhook wire: N records of 128 bytes, each a
 * POST with the headers of one, over C connections that are kept alive, or each on a fresh one; the
 * certificate verified against a CA file.
 *
 *     curl-multi -u URL -s CA_FILE -n REQUESTS -c CONNECTIONS [-f]
 *
 *     -f      a fresh connection for each request (sessions are resumed if the server lets them)
 *
 * Bodies carry their values as the benchmarks' items do (experiments/apps/items.h), so that the sink can
 * prove what came. One JSON line: requests, elapsed_ns, cpu_ns (of this process, from the first request to
 * the last reply). */
#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RECORD          128
#define ITEMS           1000
#define CONNECTIONS_MAX 64
#define WAIT_MS         1000

struct transfer {
    CURL *easy;
    char body[RECORD];
};

struct load {
    const char *url, *ca_file;
    unsigned long requests, begun, done, failed;
    unsigned connections;
    bool fresh;
    CURLM *multi;
    struct curl_slist *headers;
    struct transfer transfers[CONNECTIONS_MAX];
};

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static size_t forget(char *bytes, size_t size, size_t count, void *arg)
{
    (void)bytes, (void)arg;
    return size * count;
}

static void begin(struct load *load, struct transfer *t)
{
    uint64_t value = load->begun++ % ITEMS + 1;
    for (unsigned i = 0; i < 8; i++)
        t->body[i] = (char)(value >> 8 * i);
    curl_multi_add_handle(load->multi, t->easy);
}

static int prepare(struct load *load, struct transfer *t)
{
    memset(t->body, '.', sizeof t->body);
    t->easy = curl_easy_init();
    if (!t->easy)
        return -1;
    curl_easy_setopt(t->easy, CURLOPT_URL, load->url);
    curl_easy_setopt(t->easy, CURLOPT_CAINFO, load->ca_file);
    curl_easy_setopt(t->easy, CURLOPT_HTTPHEADER, load->headers);
    curl_easy_setopt(t->easy, CURLOPT_POSTFIELDS, t->body);
    curl_easy_setopt(t->easy, CURLOPT_POSTFIELDSIZE, (long)sizeof t->body);
    curl_easy_setopt(t->easy, CURLOPT_WRITEFUNCTION, forget);
    curl_easy_setopt(t->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(t->easy, CURLOPT_TIMEOUT, 60L);
    curl_easy_setopt(t->easy, CURLOPT_PRIVATE, t);
    if (load->fresh) {
        curl_easy_setopt(t->easy, CURLOPT_FRESH_CONNECT, 1L);
        curl_easy_setopt(t->easy, CURLOPT_FORBID_REUSE, 1L);
    }
    return 0;
}

static void take_done(struct load *load)
{
    int left;
    for (CURLMsg *message; (message = curl_multi_info_read(load->multi, &left));) {
        struct transfer *t;
        long status = 0;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&t);
        curl_easy_getinfo(message->easy_handle, CURLINFO_RESPONSE_CODE, &status);
        if (message->data.result != CURLE_OK || status / 100 != 2) {
            if (load->failed++ == 0)
                fprintf(stderr, "curl-multi: %s, status %ld\n", curl_easy_strerror(message->data.result),
                        status);
        }
        load->done++;
        curl_multi_remove_handle(load->multi, t->easy);
        if (load->begun < load->requests)
            begin(load, t);
    }
}

static int run(struct load *load)
{
    for (unsigned i = 0; i < load->connections && load->begun < load->requests; i++)
        begin(load, &load->transfers[i]);
    while (load->done < load->requests) {
        int running;
        if (curl_multi_perform(load->multi, &running) != CURLM_OK)
            return -1;
        unsigned long before = load->done;
        take_done(load);
        if (load->done == before && curl_multi_poll(load->multi, NULL, 0, WAIT_MS, NULL) != CURLM_OK)
            return -1;
    }
    return load->failed ? -1 : 0;
}

static int open_all(struct load *load)
{
    load->headers = curl_slist_append(NULL, "Content-Type: application/json");
    load->headers = curl_slist_append(load->headers, "webhook-id: msg_0123456789abcdef_123456");
    load->headers = curl_slist_append(load->headers, "webhook-timestamp: 1700000000");
    load->headers = curl_slist_append(load->headers, "Accept:");
    load->headers = curl_slist_append(load->headers, "Expect:");
    load->multi = curl_multi_init();
    if (!load->headers || !load->multi)
        return -1;
    curl_multi_setopt(load->multi, CURLMOPT_MAX_HOST_CONNECTIONS, (long)load->connections);
    curl_multi_setopt(load->multi, CURLMOPT_MAXCONNECTS, (long)load->connections);
    for (unsigned i = 0; i < load->connections; i++)
        if (prepare(load, &load->transfers[i]) != 0)
            return -1;
    return 0;
}

static void close_all(struct load *load)
{
    for (unsigned i = 0; i < load->connections; i++)
        curl_easy_cleanup(load->transfers[i].easy);
    curl_multi_cleanup(load->multi);
    curl_slist_free_all(load->headers);
}

static int read_options(int argc, char **argv, struct load *load)
{
    for (int option; (option = getopt(argc, argv, "u:s:n:c:f")) != -1;) {
        if (option == 'u')
            load->url = optarg;
        else if (option == 's')
            load->ca_file = optarg;
        else if (option == 'n')
            load->requests = strtoul(optarg, NULL, 10);
        else if (option == 'c')
            load->connections = (unsigned)strtoul(optarg, NULL, 10);
        else if (option == 'f')
            load->fresh = true;
        else
            return -1;
    }
    return load->url && load->ca_file && load->requests && load->connections >= 1 &&
                   load->connections <= CONNECTIONS_MAX
               ? 0
               : -1;
}

int main(int argc, char **argv)
{
    static struct load load;
    if (read_options(argc, argv, &load) != 0) {
        fprintf(stderr, "usage: curl-multi -u URL -s CA_FILE -n REQUESTS -c CONNECTIONS [-f]\n");
        return 2;
    }
    curl_global_init(CURL_GLOBAL_ALL);
    int error = open_all(&load);
    uint64_t start_ns = clock_ns(CLOCK_MONOTONIC), cpu_ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
    if (error == 0)
        error = run(&load);
    printf("{\"requests\":%lu,\"elapsed_ns\":%llu,\"cpu_ns\":%llu}\n", load.done - load.failed,
           (unsigned long long)(clock_ns(CLOCK_MONOTONIC) - start_ns),
           (unsigned long long)(clock_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns));
    close_all(&load);
    curl_global_cleanup();
    return error == 0 ? 0 : 1;
}
