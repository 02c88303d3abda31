#!/bin/bash
# shellcheck disable=SC2317,SC2154,SC2034,SC1091 # scenarios are called by their names, lib.sh has its part of the
# variables
# apps.sh VARIANT: hosts with an app that misbehaves (tests/live/rogue.c) and others beside it, with real processes (`make
# live` builds what it needs). Prints "ok" or "FAILED" a line for each promise, which check.sh counts; exit status 1 if one
# failed. All waits are bounded; nothing is measured.
#
#     clients ──→ relay ──→ rogue ──→ ledger        the rogue gets what crashes it from another app: it comes again
#     clients ──→ feeder ──→ beside                 goes on whatever the rogue does
set -u
variant=${1:?the variant}
suite=apps
# shellcheck source=tests/live/lib.sh
. tests/live/lib.sh

# Deaths here are meant: no cores.
ulimit -c 0

# host LIMIT KEYS: H, with a store, and the rogue's turn_limit and other keys besides its module. Apps are dealt out to owners in turn: the
# rogue and the ledger have one, the others the other.
host() {
    new_port
    url[H]=http://127.0.0.1:$port
    cp "$build/live/rogue.so" rogue.so
    cat >H.conf <<EOF2
[host]
http = 127.0.0.1:$port
store = store
segment = 256K
owners = 2
[app relay]
module = $build/apps/relay.so
[output relay.out]
inner = rogue
[app rogue]
module = ./rogue.so
turn_limit = $1
$2
[app feeder]
module = $build/apps/relay.so
[output feeder.out]
inner = beside
[output rogue.out]
inner = ledger
queue = 64K
[app ledger]
module = $build/live/ledger.so
[app beside]
module = $build/live/ledger.so
EOF2
}

# ask APP DATA: an event of a client; its answer is in $code and $reply.
ask() {
    http H "/apps/$1/events/e" "$2"
}

shows() { # APP TEXT
    local code reply
    http H "/apps/$1/state" ''
    [[ $reply == *"$2"* ]]
}

# Whether the host's health says of the rogue …
health_of_rogue() {
    local code reply
    http H /health ''
    [[ $reply == *'"name":"rogue"'*"$1"* ]]
}

# The next 100 records through the apps beside: $1 is the first.
others_go_on() {
    feed H "$1" $(($1 + 99)) 8 feeder
    within 10 shows beside "{\"records\":$(($1 + 99)),\"first\":1,\"last\":$(($1 + 99)),\"breaks\":0,"
}

# Waits until the host has ended; its exit status is in $status.
await_end() {
    within 20 ended H || return 1
    wait "${pid[H]}" 2>/dev/null
    status=$?
    pid[H]=
}

# --- scenarios ---

crashing() {
    host 1s ''
    start H
    expect "the apps beside are fed" others_go_on 1
    ask relay crash
    for death in 1 2 3; do
        await_end || failed "the crash does not end the host"
        expect "death $death is a crash, as the system sees it" [ $status -eq 139 ]
        expect "death $death has the app's name" said H 'app rogue ends the process, in its event: signal 11 (SIGSEGV)' $death
        [ $death = 3 ] || start_dying
    done
    expect "check does not load the app either" eval '"$build/pure-host" check -c H.conf 2>&1 | grep -q "app rogue.: not loaded"'
    start_unhealthy
    expect "then the app is suspended from the start, with the reason" health_of_rogue '"suspended","why":"it has ended the process 3 times in a row, the last by signal 11 (SIGSEGV)'
    expect "the reason has the command, with the file" health_of_rogue "after 'pure-host app resume -c H.conf rogue'"
    expect "metrics say so" metric_of_rogue app_deaths 3
    expect "the apps beside go on" others_go_on 101
    ask rogue hello
    expect "its clients are told" [ "$code" = 503 ]
    slay H
    start_unhealthy
    expect "it stays suspended" health_of_rogue '"condition":"suspended"'
    "$build/pure-host" app resume -c H.conf rogue >resumed 2>&1
    expect "it is resumed by command" grep -q 'rogue is resumed: restart the host to load it' resumed
    expect "the health says that it is resumed" health_of_rogue '"why":"it is resumed; the next start loads it"'
    expect "so does the log" said H 'app rogue is resumed: its deaths, 3 in a row, are forgotten' 1
    slay H
    start_dying
    await_end
    expect "and then gets the event again" said H 'app rogue ends the process' 4
    "$build/pure-host" app resume -c H.conf rogue >resumed 2>&1
    expect "also while the host does not run" grep -q '^rogue is resumed$' resumed
    for death in 5 6 7; do
        start_dying
        await_end
    done
    start_unhealthy
    expect "three more, and it is suspended again" health_of_rogue '"condition":"suspended"'
    slay H
    sed -i 's|^module = ./rogue.so|&\narg = tame|' H.conf
    cp "$build/live/rogue.so" rogue.new && mv rogue.new rogue.so
    start H
    expect "another module file, and it is loaded" within 10 health_of_rogue '"condition":"running"'
    expect "the log says so" said H "app rogue: its deaths, 3 in a row, are forgotten, as its module's file is another" 1
    expect "the event has arrived, once" within 10 shows rogue '{"events":1,'
    expect "it ends in time" stop H
}

# The host begins and dies of what waits in its store, before or after it is ready.
start_dying() {
    "$build/pure-host" run -c H.conf >>H.log 2>&1 &
    pid[H]=$!
}

answers() {
    local code reply
    http H /health ''
    [ "$code" != 000 ]
}

start_unhealthy() {
    start_dying
    within 20 answers || failed "the host does not start"
}

metric_of_rogue() { # METRIC NUMBER
    web H /metrics | grep -qx "pure_$1{app=\"rogue\"} $2"
}

exiting() {
    host 1s ''
    start H
    ask rogue exit
    await_end || failed "exit does not end the host"
    expect "an app that calls exit(0): the host fails, so that it is started again" [ $status -eq 1 ]
    expect "the app is named" said H 'app rogue ends the process, in its event: a call of exit' 1
    start H
    expect "its death is counted" metric_of_rogue app_deaths 1
    slay H
    start H
    expect "SIGKILL is nobody's death" metric_of_rogue app_deaths 1
    kill -SEGV "${pid[H]}"
    await_end
    start H
    expect "nor is a signal from another process" metric_of_rogue app_deaths 1
    expect "it ends in time" stop H
}

looping() {
    host 1s ''
    start H
    ask rogue before
    ask rogue loop
    expect "an endless event is refused, by name" [ "$code $reply" = '500 {"error":"the app did not return from a call within its turn_limit"}' ]
    expect "its app is suspended, with the event" health_of_rogue "\"suspended\",\"why\":\"its event 'e' number 2 of http took more than 1 s\""
    expect "the apps beside go on" others_go_on 1
    expect "what it had sent has arrived" within 5 shows ledger '"records":1,'
    expect "the host ends in time" stop H
    start H
    expect "the next start tries the app again" within 5 shows rogue '{"events":1,'
    expect "it ends in time" stop H
}

pouring() {
    host 1s ''
    start H
    ask rogue before
    ask rogue pour
    expect "an event that sends without end is refused, by name" [ "$code $reply" = '500 {"error":"the app did not return from a call within its turn_limit"}' ]
    expect "its app is suspended, with the event" health_of_rogue "\"suspended\",\"why\":\"its event 'e' number 2 of http took more than 1 s\""
    expect "the apps beside go on" others_go_on 1
    expect "what it had sent before has arrived, and nothing else" within 5 shows ledger '"records":1,'
    expect "the host ends in time" stop H
}

hanging() {
    host 3s ''
    start H
    ask_in_background hang
    expect "a call that sleeps: the apps beside go on" others_go_on 1
    expect "the health names the app" within 10 health_of_rogue '"condition":"running","stuck_since_ms":'
    expect "so does the log" within 2 said H 'app rogue is stuck: its event has not returned' 1
    await_end || failed "it hangs for ever"
    expect "the host ends, as by abort" [ $status -eq 134 ]
    expect "it was the app's death" said H 'app rogue ends the process, in its event: a call that did not return for twice its turn_limit' 1
    start H
    expect "and counts" metric_of_rogue app_deaths 1
    expect "the apps beside go on from where they were" others_go_on 101
    expect "it ends in time" stop H
}

ask_in_background() {
    ask rogue "$1" &
}

eating() {
    host 1s 'memory = 16M'
    start H
    ask rogue eat
    expect "an app that allocates without end: it gets what it may, and then NULL" within 5 shows rogue '"eaten":15}'
    expect "what it may is refused beyond" metric_of_rogue app_memory_refused_total 1
    expect "its memory is back" eval '[ "$(web H /metrics | sed -n "s/^pure_app_memory_bytes{app=.rogue.} //p")" -lt 4096 ]'
    expect "the apps beside go on" others_go_on 1
    ask rogue after
    expect "it runs on" [ "$code" = 200 ]
    ask rogue starve
    expect "an event that fails for it is refused" [ "$code $reply" = "500 {\"error\":\"the app failed the event\"}" ]
    expect "the log says why" within 2 said H "app rogue failed event 'e' number 3 of http 3 times and it is refused; 1 allocation was refused (memory = 16M)" 1
    ask rogue choke
    await_end || failed "the crash does not end the host"
    expect "so does the line of a death, of one that does not look for NULL" said H 'app rogue ends the process, in its event: signal 11 (SIGSEGV); 1 allocation was refused (memory = 16M)' 1
}

flooding() {
    local i
    host 1s ''
    start H
    for i in 1 2 3 4 5 6 7 8 9 10; do
        ask rogue flood
    done
    expect "an app that floods its output: the apps beside go on" others_go_on 1
    expect "all of the flood arrives" within 20 shows ledger '"records":10010,'
    expect "it ends in time" stop H
}

hanging_at_the_start() {
    host 1s 'arg = open hang'
    start_dying
    await_end || failed "it hangs for ever"
    expect "a module that sleeps in open: the start ends, as by abort" [ $status -eq 134 ]
    expect "it was the app's death" said H 'app rogue ends the process, in its open: a call that did not return for twice its turn_limit' 1
    sed -i 's/^turn_limit = .*/turn_limit = 1h/' H.conf
    for signal in TERM INT; do
        start_dying
        within 10 loading || failed "it does not load the module"
        kill -$signal "${pid[H]}"
        within 5 ended H || failed "SIG$signal does not end it"
        wait "${pid[H]}" 2>/dev/null
        expect "SIG$signal ends a start that hangs, as any other" [ $? -eq 0 ]
    done
    sed -i 's/^turn_limit = .*/turn_limit = 1s/; s/^arg = .*/arg = close hang/' H.conf
    start H
    expect "the death is counted, the signals are nobody's" metric_of_rogue app_deaths 1
    kill -TERM "${pid[H]}"
    await_end || failed "it hangs for ever"
    expect "a module that sleeps in close: the end comes, as by abort" [ $status -eq 134 ]
    expect "it was the app's death, too" said H 'app rogue ends the process, in its close: a call that did not return for twice its turn_limit' 1
}

# The module is loaded: it hangs in its open, or will at once.
loading() {
    grep -qs rogue.so "/proc/${pid[H]}/maps"
}

# How check ends is in $status, what it says in check.log; never for long.
check() {
    timeout $((20 * patience)) "$build/pure-host" check -c H.conf >check.log 2>&1
    status=$?
}

checking() {
    host 1s 'arg = open crash'
    check
    expect "check of a module that crashes in open ends with a failure" [ $status -eq 139 ]
    expect "it names the app and the call" grep -q 'app rogue ends the process, in its open: signal 11 (SIGSEGV)' check.log
    sed -i 's/^arg = .*/arg = open hang/' H.conf
    check
    expect "of one that sleeps there likewise, in bounded time" [ $status -eq 134 ]
    expect "it names them, too" grep -q 'app rogue ends the process, in its open: a call that did not return' check.log
    sed -i 's/^arg = .*/arg = close loop/' H.conf
    check
    expect "of one that does not return from close likewise" [ $status -eq 134 ]
    expect "it names them, too" grep -q 'app rogue ends the process, in its close: a call over twice its turn_limit' check.log
    sed -i 's/^arg = .*/arg = open exit/' H.conf
    check
    expect "one that calls exit(0) does not pass" [ $status -eq 1 ]
    sed -i 's/^arg = .*/arg = tame/' H.conf
    start H
    expect "none of these deaths is the host's" metric_of_rogue app_deaths 0
    expect "it ends in time" stop H
}

scenarios=(crashing exiting looping pouring hanging hanging_at_the_start checking eating flooding)
for i in "${!scenarios[@]}"; do
    run_scenario "${scenarios[$i]}" $((10 * i))
done
wait
status=0
for scenario in "${scenarios[@]}"; do
    cat "$work/$scenario/result"
    grep -q '^FAILED' "$work/$scenario/result" && status=1
done
exit $status
