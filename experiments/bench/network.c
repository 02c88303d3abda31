#include "experiments/bench/network.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

int network_enter(const char *network)
{
    int before = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (before < 0)
        return -errno;
    int there = open(network, O_RDONLY | O_CLOEXEC);
    int error = there < 0 || setns(there, CLONE_NEWNET) != 0 ? -errno : 0;
    if (there >= 0)
        close(there);
    if (error == 0)
        return before;
    close(before);
    return error;
}

/* A socket stays in the namespace it was made in. */
int network_client(struct client *client, const char *network, uint16_t port)
{
    if (!network)
        return client_open(client, port);
    int before = network_enter(network);
    if (before < 0)
        return before;
    int error = client_open(client, port);
    if (setns(before, CLONE_NEWNET) != 0 && error == 0)
        error = -errno;
    close(before);
    return error;
}
