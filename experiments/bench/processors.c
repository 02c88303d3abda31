#include "experiments/bench/processors.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

void processors_split(struct processors *p)
{
    cpu_set_t all;
    CPU_ZERO(&all);
    CPU_ZERO(&p->host);
    if (sched_getaffinity(0, sizeof all, &all) != 0)
        CPU_SET(0, &all);
    int first = 0;
    while (first < CPU_SETSIZE - 1 && !CPU_ISSET(first, &all))
        first++;
    CPU_SET(first, &p->host);
    p->others = all;
    p->count = (unsigned)CPU_COUNT(&all);
    if (p->count > 1)
        CPU_CLR(first, &p->others);
}

/* The first line of a file of a thread. False: it has ended. */
static bool thread_line(pid_t pid, const char *thread, const char *name, char *text, int size)
{
    char path[300];
    snprintf(path, sizeof path, "/proc/%d/task/%.20s/%s", pid, thread, name);
    FILE *file = fopen(path, "re");
    bool read = file && fgets(text, size, file);
    if (file)
        fclose(file);
    return read;
}

static void add(struct shares *shares, const char *name, uint64_t ns)
{
    if (strncmp(name, "pure-host", 9) == 0) /* the first thread has the program's name */
        shares->front += ns;
    else if (strncmp(name, "pure-listen", 11) == 0)
        shares->listen += ns;
    else if (strncmp(name, "pure-own", 8) == 0)
        shares->owners += ns;
    else if (strncmp(name, "pure-send", 9) == 0)
        shares->send += ns;
    else
        shares->others += ns;
}

struct shares processors_shares(const struct process *host)
{
    struct shares shares = {0};
    char path[64], name[64], times[128];
    snprintf(path, sizeof path, "/proc/%d/task", host->pid);
    DIR *directory = opendir(path);
    if (!directory)
        return shares;
    for (struct dirent *entry; (entry = readdir(directory));) {
        unsigned long long ns;
        if (entry->d_name[0] != '.' && thread_line(host->pid, entry->d_name, "comm", name, sizeof name) &&
            thread_line(host->pid, entry->d_name, "schedstat", times, sizeof times) &&
            sscanf(times, "%llu", &ns) == 1)
            add(&shares, name, ns);
    }
    closedir(directory);
    return shares;
}
