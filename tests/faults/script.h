/* What a scripted peer does on one connection, step by step: plain values, the same for the simulated network
 * (sim_peer.h) and for a real one (peer.c). player.h plays them. */
#ifndef PURE_TESTS_FAULTS_SCRIPT_H
#define PURE_TESTS_FAULTS_SCRIPT_H

#include <stddef.h>

enum fault_step_kind {
    FAULT_STAY,     /* the end: the connection stays open, what comes is forgotten. Ends every script */
    FAULT_SECURE,   /* a TLS handshake with the row's identity; nothing once that is done */
    FAULT_REQUEST,  /* waits for one whole HTTP request, and notes it */
    FAULT_SOME,     /* waits for one byte or more; they are taken */
    FAULT_SEND,     /* `text`, `times` times, `ms` before each but the first; through TLS once secured */
    FAULT_RAW,      /* the same, past TLS */
    FAULT_WAIT,     /* `ms` */
    FAULT_SHUTDOWN, /* ends our half of TCP, without a word of TLS */
    FAULT_CLOSE,    /* the same of both halves: a reset, if something unread is there */
    FAULT_RESET,
    FAULT_DEAF, /* reads no more: the window fills */
    FAULT_HEAR, /* reads again */
    /* of TLS */
    FAULT_NOTIFY,      /* close_notify */
    FAULT_ALERT,       /* a fatal alert, bad_record_mac */
    FAULT_UPDATE_KEYS, /* 1.3: KeyUpdate, one wanted back */
    FAULT_TICKETS,     /* 1.3: `times` more */
    FAULT_RENEGOTIATE, /* 1.2: HelloRequest */
    FAULT_AGAIN        /* from the first step */
};

struct fault_step {
    enum fault_step_kind kind;
    const char *text;
    size_t size;    /* bytes of `text` */
    unsigned times; /* 0 is 1 */
    unsigned ms;
};

/* A script, from steps below. */
#define STEPS(...)              \
    (const struct fault_step[]) \
    {                           \
        __VA_ARGS__,            \
        {                       \
            .kind = FAULT_STAY  \
        }                       \
    }

#define SECURE               \
    {                        \
        .kind = FAULT_SECURE \
    }
#define REQUEST               \
    {                         \
        .kind = FAULT_REQUEST \
    }
#define SOME               \
    {                      \
        .kind = FAULT_SOME \
    }
#define SEND(literal)                                                      \
    {                                                                      \
        .kind = FAULT_SEND, .text = (literal), .size = sizeof(literal) - 1 \
    }
#define FLOOD(literal, n)                                                                \
    {                                                                                    \
        .kind = FAULT_SEND, .text = (literal), .size = sizeof(literal) - 1, .times = (n) \
    }
#define DRIP(literal, n, each_ms)                                                                         \
    {                                                                                                     \
        .kind = FAULT_SEND, .text = (literal), .size = sizeof(literal) - 1, .times = (n), .ms = (each_ms) \
    }
#define RAW(literal)                                                      \
    {                                                                     \
        .kind = FAULT_RAW, .text = (literal), .size = sizeof(literal) - 1 \
    }
#define WAIT(n)                       \
    {                                 \
        .kind = FAULT_WAIT, .ms = (n) \
    }
#define SHUTDOWN               \
    {                          \
        .kind = FAULT_SHUTDOWN \
    }
#define CLOSE               \
    {                       \
        .kind = FAULT_CLOSE \
    }
#define RESET               \
    {                       \
        .kind = FAULT_RESET \
    }
#define DEAF               \
    {                      \
        .kind = FAULT_DEAF \
    }
#define HEAR               \
    {                      \
        .kind = FAULT_HEAR \
    }
#define NOTIFY               \
    {                        \
        .kind = FAULT_NOTIFY \
    }
#define ALERT               \
    {                       \
        .kind = FAULT_ALERT \
    }
#define UPDATE_KEYS               \
    {                             \
        .kind = FAULT_UPDATE_KEYS \
    }
#define TICKETS(n)                          \
    {                                       \
        .kind = FAULT_TICKETS, .times = (n) \
    }
#define RENEGOTIATE               \
    {                             \
        .kind = FAULT_RENEGOTIATE \
    }
#define AGAIN               \
    {                       \
        .kind = FAULT_AGAIN \
    }

#endif
