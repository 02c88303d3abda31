/* Names: how they are not found, and where they lead. Only in the simulated world. */
#include "tests/faults/rows.h"

#include <errno.h>

#define PATIENT "starting without a resolver works, and connects within one back-off once there is one"
#define ALONE   "a name that never answers delays nobody else"
#define STORM   "one lookup per back-off step and name, never a storm"
#define MOVED   "a connection age moves traffic when the name moved and the old server still answers"
#define NEXT    "of several addresses the next is tried within about 250 ms"
#define KEEPS   "a lookup that fails does not wipe a working address"

#define NAME(at, ...)                               \
    {                                               \
        (at), EVENT_NAME, .answer = { __VA_ARGS__ } \
    }
#define SHORT_LIVED .valid_ns = 100 * NS_PER_MS
#define FAILS(code, n) \
    .expect = {.failures = (n), .error = (code), .state = OUTLET_RESTING, .lookups = (n) + 1}

const struct fault_row fault_name_rows[] = {
    {.name = "no such name",
     .proves = STORM,
     .events = {NAME(50, .error = PE_NAME_NOT_FOUND)},
     FAILS(PE_NAME_NOT_FOUND, 4)},
    {.name = "the resolver fails",
     .proves = STORM,
     .events = {NAME(50, .error = PE_NAME_FAILED)},
     FAILS(PE_NAME_FAILED, 4)},
    {.name = "too many lookups",
     .proves = STORM,
     .events = {NAME(50, .error = PE_NAME_BUSY)},
     FAILS(PE_NAME_BUSY, 4)},
    {.name = "the resolver never answers",
     .proves = ALONE,
     .events = {NAME(50, .delay_ns = SIM_HANGS)},
     FAILS(PE_NAME_FAILED, 2)},
    {.name = "the resolver never answers, for hours",
     .proves = STORM,
     .events = {NAME(50, .delay_ns = SIM_HANGS)},
     .backoff_ms = 60000,
     .for_ms = 3600000,
     .expect = {.failures = 59, .error = PE_NAME_FAILED, .state = OUTLET_RESTING, .lookups = 60}},
    {.name = "the name is back later",
     .proves = PATIENT,
     .events = {NAME(50, .error = PE_NAME_FAILED), NAME(1500, .addresses = {"10.0.0.2"})},
     .expect = {.delivered = 2,
                .requests = 2,
                .connections = 1,
                .failures = 2,
                .error = PE_NAME_FAILED,
                .lookups = 3}},
    {.name = "the resolver is back later",
     .proves = PATIENT,
     .events = {NAME(50, .delay_ns = SIM_HANGS), NAME(1500, .addresses = {"10.0.0.2"})},
     .expect = {.delivered = 2, .requests = 2, .connections = 1, .failures = 1, .error = PE_NAME_FAILED}},
    {.name = "the answer is slow",
     .proves = ALONE,
     .events = {NAME(50, .addresses = {"10.0.0.2"}, .delay_ns = 900 * NS_PER_MS)},
     FINE(2, 1)},
    {.name = "the name moves, and the connection is old",
     .proves = MOVED,
     .connection_age_ms = 300,
     .events = {NAME(50, .addresses = {"10.0.0.2"}, SHORT_LIVED),
                NAME(200, .addresses = {"10.0.0.3"}, SHORT_LIVED)},
     .expect = {.delivered = 2, .requests = 1, .connections = 1, .elsewhere = 1}},
    {.name = "the name moves, and the old server is down",
     .proves = MOVED,
     FIRST(REQUEST, SEND(FAULT_OK), WAIT(50), RESET),
     .events = {NAME(50, .addresses = {"10.0.0.2"}, SHORT_LIVED),
                NAME(200, .addresses = {"10.0.0.3"}, SHORT_LIVED),
                {250, EVENT_REFUSE}},
     .expect = {.delivered = 2, .requests = 1, .connections = 1, .elsewhere = 1}},
    {.name = "the name stays while its connection is good",
     .proves = STORM,
     .events = {NAME(50, .addresses = {"10.0.0.2"}, SHORT_LIVED)},
     .expect = {.delivered = 2, .requests = 2, .connections = 1, .lookups = 1}},
    {.name = "the first address is dead",
     .proves = NEXT,
     .events = {NAME(50, .addresses = {"10.0.0.9", "10.0.0.2"})},
     .for_ms = 1000,
     FINE(2, 1)},
    {.name = "the first address refuses",
     .proves = NEXT,
     .events = {NAME(50, .addresses = {"10.0.0.8", "10.0.0.2"})},
     .for_ms = 1000,
     FINE(2, 1)},
    {.name = "the first family is dead",
     .proves = NEXT,
     .events = {NAME(50, .addresses = {"fd00::9", "10.0.0.2"})},
     .for_ms = 1000,
     FINE(2, 1)},
    {.name = "two dead addresses and one that refuses",
     .proves = NEXT,
     .events = {NAME(50, .addresses = {"10.0.0.9", "fd00::9", "10.0.0.8", "10.0.0.2"})},
     .for_ms = 1500,
     FINE(2, 1)},
    {.name = "all addresses are dead",
     .proves = NEXT,
     .events = {NAME(50, .addresses = {"10.0.0.9", "10.0.0.8"})},
     .expect = {.failures = 2, .error = FAULT_UNSAID, .state = OUTLET_RESTING}},
    {.name = "a lookup fails when the address is still good",
     .proves = KEEPS,
     FIRST(REQUEST, SEND(FAULT_OK), WAIT(100), CLOSE),
     .events = {NAME(50, .addresses = {"10.0.0.2"}, SHORT_LIVED), NAME(300, .error = PE_NAME_FAILED)},
     FINE(2, 2)},
    {.name = "a lookup hangs when the address is still good",
     .proves = KEEPS,
     FIRST(REQUEST, SEND(FAULT_OK), WAIT(100), CLOSE),
     .events = {NAME(50, .addresses = {"10.0.0.2"}, SHORT_LIVED), NAME(300, .delay_ns = SIM_HANGS)},
     FINE(2, 2)},
    {0},
};
