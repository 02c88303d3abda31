/* How rows are written: see the tables. */
#ifndef PURE_TESTS_FAULTS_ROWS_H
#define PURE_TESTS_FAULTS_ROWS_H

#include "tests/faults/table.h"

/* The peer's script: for its first connection, for its first n, for all. */
#define FIRST(...)      .first = STEPS(__VA_ARGS__), .first_times = 1
#define FIRST_N(n, ...) .first = STEPS(__VA_ARGS__), .first_times = (n)
#define ALL(...)        .first = STEPS(__VA_ARGS__), .first_times = FAULT_ALWAYS

/* What is expected. FINE: both records at the first go, on so many connections, with so many requests. */
#define FINE(n_requests, n_connections) \
    .expect = {.delivered = 2, .requests = (n_requests), .connections = (n_connections)}
/* One failure with this error, then both are delivered. */
#define ONCE(code, n_requests, n_connections)  \
    .expect = {.delivered = 2,                 \
               .requests = (n_requests),       \
               .connections = (n_connections), \
               .failures = 1,                  \
               .error = (code)}
/* Each try ends so, at 0, 1, 2 and 3 s; none is delivered. */
#define NEVER_BETTER(code, n_requests) \
    .expect = {                        \
        .requests = (n_requests), .connections = 4, .failures = 4, .error = (code), .state = OUTLET_RESTING}

#define NONE "Content-Length: 0\r\n\r\n"

#endif
