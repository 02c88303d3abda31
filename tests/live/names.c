/* names ADDRESS ANSWER…: a DNS server at ADDRESS, port 53, by UDP, for which every name has the addresses
 * ANSWER, in that order, for a second (RFC 1035); of other types than A it knows none. It prints "ready", and
 * a line "asked" for each question about an A. Needs a network of its own, or the port. */
#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MESSAGE_BYTES 512
#define HEADER_BYTES  12
#define ANSWER_BYTES  16
#define TYPE_A        1

/* Where the question ends, 0 if it is not one; *type is what it asks for. */
static size_t question_end(const uint8_t *message, size_t size, unsigned *type)
{
    size_t at = HEADER_BYTES;
    while (at < size && message[at] != 0 && message[at] < 64)
        at += 1u + message[at];
    if (at + 5 > size || message[at] != 0)
        return 0;
    *type = (unsigned)message[at + 1] << 8 | message[at + 2];
    return at + 5;
}

/* Makes the question in `message` an answer with these addresses; its size. */
static size_t answer(uint8_t message[MESSAGE_BYTES], size_t end, char **addresses, unsigned count)
{
    /* the name is that of the question; type A, class IN, 1 s, 4 bytes */
    static const uint8_t head[] = {0xc0, HEADER_BYTES, 0, TYPE_A, 0, 1, 0, 0, 0, 1, 0, 4};
    message[2] = 0x84 | (message[2] & 1); /* an answer, authoritative */
    message[3] = 0x80;
    memset(message + 4, 0, 8);
    message[5] = 1;
    message[7] = (uint8_t)count;
    for (unsigned i = 0; i < count && end + ANSWER_BYTES <= MESSAGE_BYTES; i++, end += ANSWER_BYTES) {
        memcpy(message + end, head, sizeof head);
        inet_pton(AF_INET, addresses[i], message + end + sizeof head);
    }
    return end;
}

int main(int argc, char **argv)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(53)};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (argc < 3 || inet_pton(AF_INET, argv[1], &at.sin_addr) != 1 ||
        bind(fd, (struct sockaddr *)&at, sizeof at) != 0) {
        perror("names ADDRESS ANSWER…");
        return 1;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    puts("ready");
    for (;;) {
        uint8_t message[MESSAGE_BYTES];
        struct sockaddr_in from;
        socklen_t len = sizeof from;
        ssize_t size = recvfrom(fd, message, sizeof message, 0, (struct sockaddr *)&from, &len);
        unsigned type = 0;
        size_t end = size > HEADER_BYTES ? question_end(message, (size_t)size, &type) : 0;
        if (end == 0)
            continue;
        size_t bytes = answer(message, end, argv + 2, type == TYPE_A ? (unsigned)argc - 2 : 0);
        if (type == TYPE_A)
            puts("asked");
        sendto(fd, message, bytes, 0, (struct sockaddr *)&from, len);
    }
}
