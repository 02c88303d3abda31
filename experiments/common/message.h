/* The least of HTTP/1.1 that the measuring programs need: messages whose bodies are sized by Content-Length.
 * It shares no code with the product, which it measures. */
#ifndef PURE_EXPERIMENTS_COMMON_MESSAGE_H
#define PURE_EXPERIMENTS_COMMON_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>

struct message {
    size_t head_size; /* through the empty line */
    size_t body_size; /* 0 if there is no Content-Length */
    int status;       /* of a reply; 0 in requests */
    bool close;       /* Connection: close */
};

/* Parses the message at the front of bytes [0, size). Returns its whole size once all of it is there, 0 while
 * it is not, -1 if it cannot be read (a chunked body counts as such). */
long message_parse(const char *bytes, size_t size, struct message *message);

#endif
