/* device NAME up | segments on|off | gro on|off: what `ip link` and `ethtool -K` would do to a network
 * device, where neither need be installed. Needs CAP_NET_ADMIN of the namespace. Exit status 0, or 1 after a
 * line. */
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

static int up(int any, struct ifreq *request)
{
    if (ioctl(any, SIOCGIFFLAGS, request) < 0)
        return -1;
    request->ifr_flags |= IFF_UP;
    return ioctl(any, SIOCSIFFLAGS, request);
}

static int offload(int any, struct ifreq *request, uint32_t command, bool on)
{
    struct ethtool_value value = {command, on};
    request->ifr_data = (char *)&value;
    return ioctl(any, SIOCETHTOOL, request);
}

int main(int argc, char **argv)
{
    struct ifreq request = {.ifr_flags = 0};
    int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), error = -1;
    if (argc < 3 || strlen(argv[1]) >= sizeof request.ifr_name) {
        fprintf(stderr, "usage: device NAME up | segments on|off | gro on|off\n");
        return 1;
    }
    strcpy(request.ifr_name, argv[1]);
    bool on = argc > 3 && strcmp(argv[3], "on") == 0;
    if (strcmp(argv[2], "up") == 0)
        error = up(any, &request);
    else if (strcmp(argv[2], "segments") == 0)
        error = offload(any, &request, ETHTOOL_SGSO, on);
    else if (strcmp(argv[2], "gro") == 0)
        error = offload(any, &request, ETHTOOL_SGRO, on);
    if (error < 0)
        perror("device");
    return error < 0;
}
