/* capture DEVICE FILE: writes every frame that passes DEVICE, in both directions and whole, to FILE in pcap's
 * form. It prints "ready", then takes commands from standard input, a line each:
 *
 *     frames     how many there are by now; they are in FILE
 *
 * Frames come with headers of the wire's lower layers; larger than the MTU where the device leaves segmenting
 * to others. Needs CAP_NET_RAW of the namespace. */
#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define BUFFER_BYTES (16 << 20)
#define FRAME_BYTES  (128 << 10)

/* draft-ietf-opsawg-pcap: magic, version 2.4, zone, accuracy, largest frame, link type Ethernet (1) */
static const uint32_t file_head[6] = {0xa1b2c3d4, 4u << 16 | 2, 0, 0, FRAME_BYTES, 1};

static int open_device(const char *name)
{
    struct sockaddr_ll at = {.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL)};
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(ETH_P_ALL)),
        bytes = BUFFER_BYTES;
    at.sll_ifindex = (int)if_nametoindex(name);
    if (fd < 0 || at.sll_ifindex == 0 || bind(fd, (struct sockaddr *)&at, sizeof at) != 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes);
    return fd;
}

/* Writes what is there; how many frames that was. */
static unsigned long long drain(int fd, FILE *file)
{
    static char frame[FRAME_BYTES];
    unsigned long long frames = 0;
    for (;; frames++) {
        ssize_t size = recv(fd, frame, sizeof frame, MSG_TRUNC);
        if (size < 0)
            break;
        struct timeval now;
        gettimeofday(&now, NULL);
        uint32_t kept = size < (ssize_t)sizeof frame ? (uint32_t)size : (uint32_t)sizeof frame;
        uint32_t head[4] = {(uint32_t)now.tv_sec, (uint32_t)now.tv_usec, kept, (uint32_t)size};
        fwrite(head, sizeof head, 1, file);
        fwrite(frame, kept, 1, file);
    }
    fflush(file);
    return frames;
}

/* How many frames the kernel has dropped since it was asked last. */
static unsigned dropped(int fd)
{
    struct tpacket_stats stats = {0};
    socklen_t size = sizeof stats;
    getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &stats, &size);
    return stats.tp_drops;
}

int main(int argc, char **argv)
{
    char line[80];
    FILE *file = argc == 3 ? fopen(argv[2], "w") : NULL;
    struct pollfd fds[2] = {{.fd = STDIN_FILENO, .events = POLLIN}, {.events = POLLIN}};
    if (!file || (fds[1].fd = open_device(argv[1])) < 0) {
        perror("capture DEVICE FILE");
        return 1;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    setvbuf(stdin, NULL, _IONBF, 0); /* so that poll sees whatever is not read yet */
    fwrite(file_head, sizeof file_head, 1, file);
    puts("ready");
    for (unsigned long long frames = 0;;) {
        poll(fds, 2, -1);
        frames += drain(fds[1].fd, file);
        if (dropped(fds[1].fd) > 0) {
            fprintf(stderr, "capture: frames were lost\n");
            return 1;
        }
        if (fds[0].revents && !fgets(line, sizeof line, stdin))
            return 0;
        if (fds[0].revents)
            printf("%llu\n", frames);
    }
}
