#include "host/config_values.h"

#include "core/clock.h"
#include "wire/url.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct unit {
    const char *name;
    uint64_t factor;
};

static const struct unit no_units[] = {{"", 1}};
/* Largest first: a value is shown in the first that divides it. */
static const struct unit size_units[] = {
    {"T", UINT64_C(1) << 40}, {"G", 1u << 30}, {"M", 1u << 20}, {"K", 1u << 10}, {"", 1}};
static const struct unit time_units[] = {{"d", 24 * 3600 * NS_PER_S},
                                         {"h", 3600 * NS_PER_S},
                                         {"m", 60 * NS_PER_S},
                                         {"s", NS_PER_S},
                                         {"ms", NS_PER_MS}};

static int read_number(const char *text, const struct unit *units, size_t unit_count, uint64_t *value)
{
    uint64_t number = 0;
    const char *at = text;
    for (; *at >= '0' && *at <= '9'; at++)
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(*at - '0'), &number))
            return PE_CONFIG;
    if (at == text)
        return PE_CONFIG;
    for (size_t i = 0; i < unit_count; i++)
        if (strcmp(at, units[i].name) == 0)
            return __builtin_mul_overflow(number, units[i].factor, value) ? PE_CONFIG : 0;
    return PE_CONFIG;
}

int value_count(const char *text, uint64_t *count)
{
    return read_number(text, no_units, ARRAY_SIZE(no_units), count);
}

int value_size(const char *text, uint64_t *bytes)
{
    return read_number(text, size_units, ARRAY_SIZE(size_units), bytes);
}

int value_time(const char *text, uint64_t *ns)
{
    return read_number(text, time_units, ARRAY_SIZE(time_units), ns);
}

static void show_number(char *text, size_t size, uint64_t value, const struct unit *units, size_t unit_count)
{
    size_t i = 0;
    while (i + 1 < unit_count && (value == 0 || value % units[i].factor != 0))
        i++;
    snprintf(text, size, "%llu%s", (unsigned long long)(value / units[i].factor), units[i].name);
}

void value_show_size(char *text, size_t size, uint64_t bytes)
{
    show_number(text, size, bytes, size_units, ARRAY_SIZE(size_units));
}

void value_show_time(char *text, size_t size, uint64_t ns)
{
    show_number(text, size, ns, time_units, ARRAY_SIZE(time_units));
}

/* --- addresses --- */

static int read_port(const char *text, in_port_t *port)
{
    uint64_t number;
    if (value_count(text, &number) < 0 || number > UINT16_MAX)
        return PE_CONFIG;
    *port = htons((uint16_t)number);
    return 0;
}

/* `host`: without the port. */
static int read_host(char *host, in_port_t port, struct sockaddr_storage *address, socklen_t *len)
{
    struct sockaddr_in *v4 = (struct sockaddr_in *)address;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)address;
    size_t size = strlen(host);
    memset(address, 0, sizeof(*address));
    if (size > 1 && host[0] == '[' && host[size - 1] == ']') {
        host[size - 1] = '\0';
        v6->sin6_family = AF_INET6;
        v6->sin6_port = port;
        *len = sizeof(*v6);
        return inet_pton(AF_INET6, host + 1, &v6->sin6_addr) == 1 ? 0 : PE_CONFIG;
    }
    v4->sin_family = AF_INET;
    v4->sin_port = port;
    *len = sizeof(*v4);
    return inet_pton(AF_INET, host, &v4->sin_addr) == 1 ? 0 : PE_CONFIG;
}

int value_address(const char *text, struct sockaddr_storage *address, socklen_t *len)
{
    const char *colon = strrchr(text, ':');
    char host[64];
    in_port_t port;
    if (!colon || (size_t)(colon - text) >= sizeof(host) || read_port(colon + 1, &port) < 0)
        return PE_CONFIG;
    memcpy(host, text, (size_t)(colon - text));
    host[colon - text] = '\0';
    return read_host(host, port, address, len);
}

/* What stands between an http URL's slashes is such a place, except that its port may be left out. */
int value_place(struct value_place *place, const char *text, const char **why)
{
    char url_text[sizeof(place->text) + 16];
    struct url url;
    const char *colon = strrchr(text, ':');
    *why = "needs a host and a port, such as pi2.local:7071 or [fd00::2]:7071";
    if (strpbrk(text, "/?#@") || !colon || strchr(colon, ']'))
        return PE_CONFIG;
    if ((size_t)snprintf(url_text, sizeof(url_text), "http://%s", text) >= sizeof(url_text)) {
        *why = "the host is longer than 253 bytes";
        return PE_CONFIG;
    }
    if (url_parse(&url, url_text, why) < 0)
        return PE_CONFIG;
    *place = (struct value_place){.port = url.port, .literal = url.literal};
    memcpy(place->host, url.host, sizeof(place->host));
    snprintf(place->text, sizeof(place->text), strchr(url.host, ':') ? "[%s]:%u" : "%s:%u", url.host,
             url.port);
    return 0;
}

/* --- indirect values --- */

int value_path(const char *directory, const char *path, char **joined)
{
    int size = path[0] == '/' ? asprintf(joined, "%s", path) : asprintf(joined, "%s/%s", directory, path);
    return size < 0 ? PE_CONFIG : 0;
}

ssize_t config_read_file(const char *path, void *bytes, size_t size)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    size_t used = 0;
    ssize_t got = 0;
    while (used < size && (got = read(fd, (char *)bytes + used, size - used)) > 0)
        used += (size_t)got;
    int error = got < 0 ? -errno : 0;
    close(fd);
    return error < 0 ? error : (ssize_t)used;
}

static int take_bytes(char *bytes, size_t size, char **text, const char *written, char *why, size_t why_size)
{
    if (size > CONFIG_VALUE_MAX) {
        snprintf(why, why_size, "%s holds more than %d bytes", written, CONFIG_VALUE_MAX);
        return PE_CONFIG;
    }
    if (memchr(bytes, '\0', size)) {
        snprintf(why, why_size, "%s holds a NUL byte", written);
        return PE_CONFIG;
    }
    if (size > 0 && bytes[size - 1] == '\n')
        size--;
    if (size > 0 && bytes[size - 1] == '\r')
        size--;
    *text = strndup(bytes, size);
    if (*text)
        return 0;
    snprintf(why, why_size, "out of memory");
    return PE_CONFIG;
}

static int from_file(const char *path, const char *written, char **text, char *why, size_t why_size)
{
    size_t size = CONFIG_VALUE_MAX + 1;
    char *bytes = malloc(size);
    if (!bytes) {
        snprintf(why, why_size, "out of memory");
        return PE_CONFIG;
    }
    ssize_t used = config_read_file(path, bytes, size);
    int error = PE_CONFIG;
    if (used < 0)
        snprintf(why, why_size, "%s cannot be read: %s", written, strerror((int)-used));
    else
        error = take_bytes(bytes, (size_t)used, text, written, why, why_size);
    explicit_bzero(bytes, size);
    free(bytes);
    return error;
}

static int from_directory(const char *directory, const char *name, const char *written, char **text,
                          char *why, size_t why_size)
{
    char path[4096];
    int size = name[0] == '/' ? snprintf(path, sizeof(path), "%s", name)
                              : snprintf(path, sizeof(path), "%s/%s", directory, name);
    if (size >= (int)sizeof(path)) {
        snprintf(why, why_size, "%s is too long a path", written);
        return PE_CONFIG;
    }
    return from_file(path, written, text, why, why_size);
}

/* Systemd's directory of credentials; NULL with a reason. */
static const char *credentials_directory(const char *name, const char *written, char *why, size_t why_size)
{
    const char *directory = getenv("CREDENTIALS_DIRECTORY");
    if (!directory)
        snprintf(why, why_size,
                 "%s: $CREDENTIALS_DIRECTORY is not set: start the host as a systemd service "
                 "with LoadCredential=",
                 written);
    else if (strchr(name, '/') || name[0] == '\0')
        snprintf(why, why_size, "%s: a credential has a name, not a path", written);
    else
        return directory;
    return NULL;
}

static int from_credential(const char *name, const char *written, char **text, char *why, size_t why_size)
{
    const char *directory = credentials_directory(name, written, why, why_size);
    return directory ? from_directory(directory, name, written, text, why, why_size) : PE_CONFIG;
}

static int from_environment(const char *name, const char *written, char **text, char *why, size_t why_size)
{
    char *value = getenv(name);
    if (!value) {
        snprintf(why, why_size, "%s: the variable is not set", written);
        return PE_CONFIG;
    }
    return take_bytes(value, strlen(value), text, written, why, why_size);
}

static const char *after(const char *text, const char *prefix)
{
    size_t size = strlen(prefix);
    return strncmp(text, prefix, size) == 0 ? text + size : NULL;
}

static int itself(const char *written, char **text, char *why, size_t why_size)
{
    *text = strdup(written);
    if (*text)
        return 0;
    snprintf(why, why_size, "out of memory");
    return PE_CONFIG;
}

int value_resolve(const char *written, const char *directory, char **text, char *why, size_t why_size)
{
    const char *rest;
    if ((rest = after(written, "file:")))
        return from_directory(directory, rest, written, text, why, why_size);
    if ((rest = after(written, "env:")))
        return from_environment(rest, written, text, why, why_size);
    if ((rest = after(written, "credential:")))
        return from_credential(rest, written, text, why, why_size);
    return itself(written, text, why, why_size);
}

int value_resolve_path(const char *written, char **text, char *why, size_t why_size)
{
    const char *rest, *directory;
    char path[4096];
    if ((rest = after(written, "file:")))
        return itself(rest, text, why, why_size);
    if (!(rest = after(written, "credential:")))
        return value_resolve(written, "", text, why, why_size);
    if (!(directory = credentials_directory(rest, written, why, why_size)))
        return PE_CONFIG;
    snprintf(path, sizeof(path), "%s/%s", directory, rest);
    return itself(path, text, why, why_size);
}

void value_dispose(char *text)
{
    if (text)
        explicit_bzero(text, strlen(text));
    free(text);
}

/* --- names --- */

char *value_trim(char *text)
{
    text += strspn(text, " \t\r\n");
    for (char *end = text + strlen(text); end > text && isspace((unsigned char)end[-1]);)
        *--end = '\0';
    return text;
}

bool value_is_name(const char *text, size_t max, const char *also)
{
    size_t size = strlen(text);
    for (size_t i = 0; i < size; i++)
        if (!isalnum((unsigned char)text[i]) && text[i] != '-' && text[i] != '_' && !strchr(also, text[i]))
            return false;
    return size > 0 && size <= max;
}

#define COMPARED_MAX 64
#define PREFIX_MIN   4

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
    unsigned least = a < b ? a : b;
    return least < c ? least : c;
}

/* Optimal string alignment distance; both at most COMPARED_MAX long. row[i][j] compares the first i bytes of
 * a with the first j of b. */
static unsigned edit_distance(const char *a, size_t a_size, const char *b, size_t b_size)
{
    unsigned row[COMPARED_MAX + 1][COMPARED_MAX + 1];
    for (size_t i = 0; i <= a_size; i++)
        row[i][0] = (unsigned)i;
    for (size_t j = 0; j <= b_size; j++)
        row[0][j] = (unsigned)j;
    for (size_t i = 1; i <= a_size; i++)
        for (size_t j = 1; j <= b_size; j++) {
            unsigned substituted = row[i - 1][j - 1] + (a[i - 1] != b[j - 1]);
            row[i][j] = min3(substituted, row[i - 1][j] + 1, row[i][j - 1] + 1);
            bool exchanged = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (exchanged && row[i - 2][j - 2] + 1 < row[i][j])
                row[i][j] = row[i - 2][j - 2] + 1;
        }
    return row[a_size][b_size];
}

/* The shortest of the names that `text` begins, if it has enough of it to mean one. */
static const char *shortest_longer(const char *text, size_t size, const char *const *names, unsigned count)
{
    const char *shortest = NULL;
    for (unsigned i = 0; size >= PREFIX_MIN && i < count; i++)
        if (strncmp(names[i], text, size) == 0 && (!shortest || strlen(names[i]) < strlen(shortest)))
            shortest = names[i];
    return shortest;
}

const char *nearest_name(const char *text, const char *const *names, unsigned count)
{
    size_t size = strlen(text);
    if (size > COMPARED_MAX)
        return NULL;
    const char *nearest = shortest_longer(text, size, names, count);
    if (nearest)
        return nearest;
    unsigned least = (unsigned)size / 3 + 2; /* too far */
    for (unsigned i = 0; i < count; i++) {
        size_t name_size = strlen(names[i]);
        if (name_size > COMPARED_MAX)
            continue;
        unsigned distance = edit_distance(text, size, names[i], name_size);
        if (distance < least) {
            least = distance;
            nearest = names[i];
        }
    }
    return nearest;
}
