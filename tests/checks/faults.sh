#!/bin/bash
# faults.sh VARIANT: a host with an output for each row of the fault table (tests/faults/table.h) that can be played over
# loopback, all at a time, against the fault server. Prints "ok" or "FAILED" a line for each row, which check.sh counts;
# exit status 1 if one failed.
#
#     curl ──→ A: relay r0, r1, … ── a wire each ──→ build/VARIANT/live/faults: a port each
set -u
variant=${1:?the variant}
suite=faults
# shellcheck source=tests/live/lib.sh
. tests/live/lib.sh

# One record to each app; records of rows that want large ones have blanks behind.
publish_all() {
    local i size body
    for ((i = 0; i < rows; i++)); do
        size=${bodies[i]}
        printf -v body '%-*s' "$size" "{\"record\":$1}"
        http A "/apps/r$i/events/e" "$body"
        [ "$code" = 200 ] || failed "the app r$i does not take an event: $code $reply"
    done
}

all_done() {
    web A /status >status.json && [ "$(tell peer done status.json)" = 0 ]
}

no_descriptor_is_left() {
    [ "$(find "/proc/${pid[A]}/fd" -lname 'socket:*' | wc -l)" -lt $((rows + 20)) ]
}

table() {
    local rows bodies
    helper peer "$build/live/faults" . "$build/apps/relay.so" || failed "the fault server does not start"
    rows=$first_line
    read -r -a bodies <<<"$(tell peer bodies)"
    key A
    { host_section A; cat rows.conf; } >A.conf
    start A
    publish_all 1
    rest 0.5
    publish_all 2
    within 15 all_done
    web A /status >status.json
    tell peer check status.json A.log >/dev/null
    grep '^ok \|^FAILED ' peer.out | sed "s/^\(ok     \|FAILED \) /\1 $variant $suite, $scenario: /"
    [ "$(grep -c '^ok \|^FAILED ' peer.out)" = "$rows" ] || failed "some rows were not looked at"
    expect "sockets are as many as outputs, and no more" no_descriptor_is_left
    expect "the host ends in order" stop A
}

run_scenario table 0
wait
cat "$work"/*/result
! grep -q '^FAILED ' "$work"/*/result && tail -n 1 "$work"/*/result | grep -q '^ok '
