#include "experiments/path/ends.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define DEVICE "path0"
/* Packets that wait in the device until we read them: a burst while we are not scheduled. The path has its
 * own queue; this one must not lose any. */
#define DEVICE_QUEUE 10000

static int failed(const char *what)
{
    int error = -errno;
    fprintf(stderr, "path: %s: %s\n", what, strerror(-error));
    return error;
}

static void set_address(struct ifreq *request, const char *address)
{
    struct sockaddr_in ip = {.sin_family = AF_INET};
    inet_pton(AF_INET, address, &ip.sin_addr);
    memcpy(&request->ifr_addr, &ip, sizeof ip);
}

/* `any` is a socket in the namespace. */
static int device_up(int any, const char *name)
{
    struct ifreq request = {.ifr_flags = 0};
    strcpy(request.ifr_name, name);
    if (ioctl(any, SIOCGIFFLAGS, &request) < 0)
        return -1;
    request.ifr_flags |= IFF_UP;
    return ioctl(any, SIOCSIFFLAGS, &request);
}

static int configure(int any, const char *address, uint32_t mtu)
{
    struct ifreq request = {.ifr_name = DEVICE};
    request.ifr_mtu = (int)mtu;
    if (ioctl(any, SIOCSIFMTU, &request) < 0)
        return -1;
    request.ifr_qlen = DEVICE_QUEUE;
    if (ioctl(any, SIOCSIFTXQLEN, &request) < 0)
        return -1;
    set_address(&request, address);
    if (ioctl(any, SIOCSIFADDR, &request) < 0)
        return -1;
    set_address(&request, "255.255.255.0");
    if (ioctl(any, SIOCSIFNETMASK, &request) < 0)
        return -1;
    return device_up(any, DEVICE) == 0 && device_up(any, "lo") == 0 ? 0 : -1;
}

int end_open(struct end *end, const char *address, uint32_t mtu)
{
    if (unshare(CLONE_NEWNET) != 0)
        return failed("a network namespace");
    end->network = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    end->tun = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (end->network < 0 || end->tun < 0)
        return failed(end->tun < 0 ? "/dev/net/tun" : "/proc/self/ns/net");
    struct ifreq request = {.ifr_name = DEVICE, .ifr_flags = IFF_TUN | IFF_NO_PI};
    if (ioctl(end->tun, TUNSETIFF, &request) < 0 || ioctl(end->tun, TUNSETOFFLOAD, 0) < 0)
        return failed("a TUN device");
    int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (any < 0)
        return failed("a socket");
    int error = configure(any, address, mtu) == 0 ? 0 : failed(DEVICE);
    close(any);
    return error;
}
