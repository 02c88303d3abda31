/* device NAME up | FEATURE on|off: what `ip link` and `ethtool -K` do to a network device, where neither need
 * be installed. FEATURE as the kernel names it: "tx-udp-segmentation", "rx-gro". Needs CAP_NET_ADMIN of the
 * namespace. Exit status 0, or 1 after a line. */
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define FEATURES   256 /* the most that the kernel may have */
#define WORD_BITS  32
#define WORD_COUNT (FEATURES / WORD_BITS)

static int up(int any, struct ifreq *request)
{
    if (ioctl(any, SIOCGIFFLAGS, request) < 0)
        return -1;
    request->ifr_flags |= IFF_UP;
    return ioctl(any, SIOCSIFFLAGS, request);
}

static int ethtool(int any, struct ifreq *request, void *command)
{
    request->ifr_data = command;
    return ioctl(any, SIOCETHTOOL, request);
}

/* How many features this kernel has; -1 if it does not say. */
static int count_features(int any, struct ifreq *request)
{
    static union {
        struct ethtool_sset_info info;
        uint8_t room[sizeof(struct ethtool_sset_info) + sizeof(uint32_t)];
    } set;
    set.info = (struct ethtool_sset_info){.cmd = ETHTOOL_GSSET_INFO, .sset_mask = 1u << ETH_SS_FEATURES};
    if (ethtool(any, request, &set) < 0 || set.info.sset_mask == 0)
        return -1;
    return set.info.data[0] <= FEATURES ? (int)set.info.data[0] : -1;
}

/* The number of the feature's bit; -1 if there is none. */
static int find_feature(int any, struct ifreq *request, int count, const char *name)
{
    static union {
        struct ethtool_gstrings strings;
        uint8_t room[sizeof(struct ethtool_gstrings) + FEATURES * ETH_GSTRING_LEN];
    } names;
    names.strings = (struct ethtool_gstrings){ETHTOOL_GSTRINGS, ETH_SS_FEATURES, (uint32_t)count};
    if (ethtool(any, request, &names) < 0)
        return -1;
    for (int i = 0; i < count; i++) {
        if (strncmp((char *)names.strings.data + i * ETH_GSTRING_LEN, name, ETH_GSTRING_LEN) == 0)
            return i;
    }
    errno = EOPNOTSUPP;
    return -1;
}

static int set_feature(int any, struct ifreq *request, const char *name, bool on)
{
    static union {
        struct ethtool_sfeatures set;
        uint8_t
            room[sizeof(struct ethtool_sfeatures) + WORD_COUNT * sizeof(struct ethtool_set_features_block)];
    } features;
    int count = count_features(any, request);
    int bit = count < 0 ? -1 : find_feature(any, request, count, name);
    if (bit < 0)
        return -1;
    uint32_t mask = 1u << bit % WORD_BITS;
    features.set.cmd = ETHTOOL_SFEATURES;
    features.set.size = (uint32_t)(count + WORD_BITS - 1) / WORD_BITS;
    features.set.features[bit / WORD_BITS] = (struct ethtool_set_features_block){mask, on ? mask : 0};
    return ethtool(any, request, &features); /* more than 0: it was not changed as wished */
}

int main(int argc, char **argv)
{
    struct ifreq request = {.ifr_flags = 0};
    int any = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), error;
    if (argc < 3 || strlen(argv[1]) >= sizeof request.ifr_name) {
        fprintf(stderr, "usage: device NAME up | FEATURE on|off\n");
        return 1;
    }
    strcpy(request.ifr_name, argv[1]);
    if (argc == 3)
        error = strcmp(argv[2], "up") == 0 ? up(any, &request) : -1;
    else
        error = set_feature(any, &request, argv[2], strcmp(argv[3], "on") == 0);
    if (error != 0)
        perror("device");
    return error != 0;
}
