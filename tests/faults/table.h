/* The fault table: what peers, networks, names and clocks do to a wire, and what must be seen. One row, one
 * fault; the same rows run on the simulated seam (tests/unit/test_faults.c) and, those that need no simulated
 * network and little time, over loopback (tests/checks/faults.sh).
 *
 *     [ wire on 10.0.0.1 ] ───────▶ a.example, 10.0.0.2: the fault server; from then on it behaves
 *         │                        10.0.0.3: one that behaves
 *         │                        10.0.0.8 refuses, 10.0.0.9 is a black hole
 *     [ its neighbour ] ──────────▶ 10.0.0.7: must notice nothing
 *
 * The neighbour sends a record each FAULT_NEIGHBOUR_MS from 0 on. The row's events happen from then on; its
 * first record is pushed at FAULT_FIRST_MS, the second `gap_ms` later, and it is looked at `for_ms` after the
 * first. Failures rest for exactly `backoff_ms`, so that they can be counted. */
#ifndef PURE_TESTS_FAULTS_TABLE_H
#define PURE_TESTS_FAULTS_TABLE_H

#include "core/outlet.h"
#include "tests/faults/identity.h"
#include "tests/faults/script.h"
#include "tests/sim/sim.h"
#include "wire/options.h"

#include <limits.h>

#define FAULT_NEIGHBOUR_MS 50
#define FAULT_FIRST_MS     100
#define FAULT_RECORDS      2
#define FAULT_EVENTS       4

#define FAULT_ALWAYS UINT_MAX /* first_times */
#define FAULT_ANY    UINT_MAX /* of a number that is expected */
#define FAULT_UNSAID INT_MAX  /* of an error: any or none */

enum fault_event_kind {
    EVENT_NONE,
    EVENT_REFUSE,     /* 10.0.0.2 has no listener any more; */
    EVENT_LISTEN,     /* it has */
    EVENT_HOLE,       /* what is sent to it is lost, in silence; */
    EVENT_CLEAR,      /* it arrives */
    EVENT_SILENT,     /* its cable is pulled; */
    EVENT_SPEAKS,     /* it is back */
    EVENT_REBOOT,     /* its kernel forgets all connections */
    EVENT_NARROW,     /* `number` bytes a second reach it, 512 of them unread at most */
    EVENT_NAME,       /* a.example has this answer */
    EVENT_CLOCK,      /* the wall clock is set to `number`, in seconds since 1970 */
    EVENT_DESCRIPTORS /* at most `number` more than there are */
};

struct fault_event {
    unsigned at_ms;
    enum fault_event_kind kind;
    int64_t number;
    struct sim_answer answer;
};

struct fault_expectation {
    unsigned delivered;   /* records, of the FAULT_RECORDS */
    unsigned requests;    /* whole ones that came to 10.0.0.2; FAULT_ANY */
    unsigned connections; /* that it accepted; FAULT_ANY */
    unsigned failures;    /* counted, in all; FAULT_ANY */
    unsigned elsewhere;   /* requests that came to 10.0.0.3 */
    int error;            /* the first that was reported; 0: none may be */
    const char *says;     /* a part of the error's text; NULL: any */
    enum outlet_state state;
    unsigned lookups; /* of a.example at most; 0: any number */
    unsigned resumed; /* TLS handshakes by a session, at least */
};

struct fault_row {
    const char *name;   /* a sentence */
    const char *proves; /* the gist of the line in the project's list of behaviours that it stands for */

    /* the wire; 0 and NULL: as fault_options says */
    const char *url;
    enum wire_mode mode;
    unsigned progress_ms, reply_ms, total_ms, backoff_ms, connection_age_ms;
    unsigned disable_failures;
    size_t record_bytes;
    bool proxied; /* by 10.0.0.2 */

    /* the peer: the first connections, FAULT_ALWAYS or so many, then those after */
    struct fault_tls tls;
    const struct fault_step *first;
    unsigned first_times;
    struct fault_event events[FAULT_EVENTS];

    unsigned gap_ms, for_ms; /* 0: 500, 3500 */
    struct fault_expectation expect;
    bool live; /* also over loopback */
};

/* The tables, each ended by a row without a name. */
extern const struct fault_row *const fault_tables[];

/* Connections after the first ones: each request is answered with 200. */
extern const struct fault_step fault_behaves[], fault_behaves_tls[];

#define FAULT_OK "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

/* The wire's options for a row. Its texts are the row's, or static; tls and the rest are the caller's. */
void fault_options(const struct fault_row *row, struct wire_options *options);

#endif
