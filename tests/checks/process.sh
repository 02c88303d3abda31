#!/bin/bash
# process.sh VARIANT: the real process, its threads and the kernel: events through every kind of outlet, from several clients at
# once, with a dead destination beside; SIGHUP; SIGTERM with a backlog. All counts have to be exact, the exit status 0, and the
# sanitizer of the variant silent (its report ends the process). Then what a process may be started with and ended in: closed
# descriptors, few descriptors, a stderr that takes nothing, signals before it is ready, an app that does not return.
set -u
variant=${1:?the variant}
host=$PWD/build/$variant/pure-host
apps=$PWD/build/$variant/apps
work=$(mktemp -d)
pid=
trap '[ -n "$pid" ] && kill -KILL "$pid" 2>/dev/null; rm -rf "$work"' EXIT
prefix=
if [ "$variant" = tsan ] && setarch -R true 2>/dev/null; then
    prefix="setarch -R"
fi

die() {
    echo "$1"
    cat "$work/log"
    exit 1
}

# Waits for the host that was started last.
await() {
    for _ in $(seq 200); do
        curl -sf "$url/health" >/dev/null && return
        kill -0 $pid 2>/dev/null || die "the host did not start"
        sleep 0.1
    done
    die "the host is not ready"
}

# $1: the exit status that SIGTERM is to bring within 5 s (and one for a slow machine).
stop() {
    local begun=$SECONDS status
    kill -TERM $pid
    wait $pid
    status=$?
    pid=
    [ $status -eq "$1" ] || die "exit status $status after SIGTERM, not $1"
    [ $((SECONDS - begun)) -le 6 ] || die "$((SECONDS - begun)) s to stop"
}

port=$((20000 + RANDOM % 10000))
cat >"$work/host.conf" <<EOF
[host]
http = 127.0.0.1:$port
store = memory
[app relay]
module = $apps/relay.so
[app dead]
module = $apps/relay.so
[app counter]
module = $apps/counter.so
[app inner]
module = $apps/counter.so
[app hook]
module = $apps/counter.so
[app records]
module = $apps/counter.so
[output relay.out]
inner = counter
[output dead.out]
wire = http://127.0.0.1:1/
[output counter.log]
inner = inner
[output counter.cloud]
wire = http://127.0.0.1:$port/apps/hook/events/e
mode = webhook
[output counter.next]
wire = http://127.0.0.1:$port
mode = pure
app = records
EOF

$prefix "$host" run -c "$work/host.conf" >"$work/log" 2>&1 &
pid=$!
url=http://127.0.0.1:$port
await

# The front's thread weighs less than the apps' and the sending loop's, which weigh what the process was given.
light=$(($(nice) + 5))
[ "$light" -le 19 ] || light=19
for task in /proc/$pid/task/*; do
    case $(cat "$task/comm") in
    pure-own-* | pure-send*) weight=$(nice) ;;
    *) [ "${task##*/}" = $pid ] || continue; weight=$light ;;
    esac
    [ "$(awk '{ print $19 }' "$task/stat")" = "$weight" ] || die "nice values: $(cat /proc/$pid/task/*/stat)"
done

# 4 clients: 10 requests of 100 lines each to relay and to counter; 50 single events to the app whose output is dead
lines=$(seq 100)
for client in 1 2 3 4; do
    for app in relay counter; do
        for _ in $(seq 10); do
            curl -sf --retry 5 -H 'Content-Type: application/x-ndjson' --data-binary "$lines" "$url/apps/$app/events/e" >/dev/null ||
                echo "a request of client $client failed" >>"$work/bad"
        done
    done &
done
for _ in $(seq 50); do
    curl -sf -d x "$url/apps/dead/events/e" >/dev/null
    curl -sf "$url/metrics" >/dev/null || echo "no metrics" >>"$work/bad"
done
kill -HUP $pid
wait $(jobs -p | grep -vx $pid)
[ -s "$work/bad" ] && die "$(cat "$work/bad")"

# relay's and counter's 4000 lines each: 8000 at counter, and at each of the three it passes them on to
for app in counter inner hook records; do
    for _ in $(seq 300); do
        state=$(curl -sf "$url/apps/$app/state")
        [[ $state == '{"count":8000,"sum":404000,'* ]] && continue 2
        sleep 0.1
    done
    die "$app: $state"
done
grep -q 'reload: done' "$work/log" || die "SIGHUP did not reload"

stop 0
grep -q '50 records were not delivered' "$work/log" || die "the backlog of the dead output is not reported"

# descriptors 0 to 2 closed: they are /dev/null, not a connection's, so that a client gets its reply and no log
cat >"$work/small.conf" <<EOF2
[host]
http = 127.0.0.1:$port
store = memory
connections = 1000
[app relay]
module = $apps/relay.so
EOF2
$prefix "$host" run -c "$work/small.conf" 0<&- 1>&- 2>&- &
pid=$!
await
for fd in 0 1 2; do
    [ "$(readlink /proc/$pid/fd/$fd)" = /dev/null ] || die "descriptor $fd is not /dev/null"
done
stop 0

# few descriptors: the soft limit is raised; if the hard one is too low, the front takes fewer connections and says so
bash -c 'ulimit -Sn 100; ulimit -Hn 200; exec "$@"' - $prefix "$host" run -c "$work/small.conf" >"$work/log" 2>&1 &
pid=$!
await
grep -qE '^Max open files +200 +200 ' /proc/$pid/limits || die "the limit of open files was not raised"
stop 0
grep -q '200 files open (RLIMIT_NOFILE): at most 1[0-9][0-9] connections are taken, not 1000' "$work/log" ||
    die "too few descriptors, and no word of it"

# a terminal that takes nothing, as after Ctrl-S: script, which is to read it, is stopped. Each reload then logs a line for each
# of 100 apps, in all more than the terminal and the queues hold
cp "$work/small.conf" "$work/terminal.conf"
script -qefc "exec $prefix $host run -c $work/terminal.conf" /dev/null >"$work/log" </dev/null &
terminal=$!
await_children() {
    for _ in $(seq 200); do
        pid=$(cat /proc/$terminal/task/$terminal/children)
        [ -n "$pid" ] && return
        sleep 0.1
    done
    die "nothing runs in the terminal"
}
await_children
pid=${pid// /}
await
kill -STOP $terminal
for i in $(seq 100); do
    printf '[app a%d]\nmodule = %s/relay.so\n' "$i" "$apps" >>"$work/terminal.conf"
done
for _ in $(seq 40); do
    kill -HUP $pid
    curl -sf -m 5 "$url/health" >/dev/null || { kill -KILL $terminal; die "a terminal that takes nothing stops the front"; }
done
kill -TERM $pid
begun=$SECONDS
while grep -qs '^State:.[^Z]' /proc/$pid/status && [ $((SECONDS - begun)) -le 8 ]; do
    sleep 0.1
done
kill -CONT $terminal
[ $((SECONDS - begun)) -le 6 ] || { kill -KILL $terminal; die "a terminal that takes nothing delays the end"; }
wait $terminal
status=$?
pid=
[ $status -eq 0 ] || die "exit status $status in a terminal that takes nothing"

# signals from the first moment on: each is taken, none kills
for signal in HUP TERM; do
    $prefix "$host" run -c "$work/small.conf" >"$work/log" 2>&1 &
    pid=$!
    while [ "$(readlink /proc/$pid/exe)" != "$(readlink -f "$host")" ]; do :; done
    until grep -q '^SigBlk:.*4003$' /proc/$pid/status || ! kill -0 $pid; do :; done
    kill -$signal $pid
    [ $signal = HUP ] && await && stop 0 && continue
    wait $pid
    status=$?
    pid=
    [ $status -eq 0 ] || die "exit status $status of a host that was told to stop at once"
done

# an address that is still in use, as that of a process just killed may be: whoever starts waits for it a while, and says so if
# that was for nothing
$prefix "$host" run -c "$work/small.conf" >"$work/log" 2>&1 &
pid=$!
await
$prefix "$host" run -c "$work/small.conf" >"$work/second" 2>&1 && die "two hosts listen at one address"
grep -q 'Address already in use: another program' "$work/second" || die "what is in use is not named: $(cat "$work/second")"
$prefix "$host" run -c "$work/small.conf" >"$work/second" 2>&1 &
second=$!
sleep 0.3
begun=$(date +%s%N)
kill -TERM "$second"
wait "$second" || die "exit status $? of a start that was told to end while it waited for its address"
[ $((($(date +%s%N) - begun) / 1000000)) -lt 2000 ] || die "a start that waits for its address does not hear SIGTERM"
$prefix "$host" run -c "$work/small.conf" >"$work/log" 2>&1 &
next=$!
sleep 0.3
stop 0
pid=$next
await
grep -q 'is ready on' "$work/log" || die "the host did not wait for its address"
stop 0

# an app that does not return from a call: the process ends in time all the same, and says where it stood
cat >"$work/stuck.c" <<'EOF2'
#include "host/app.h"
#include <unistd.h>
static const char *const outputs[] = {0};
static int open_(void **state, const char *arg, char *error, size_t size)
{
    (void)arg, (void)error, (void)size;
    *state = 0;
    return 0;
}
static int event(void *state, struct pure_turn *turn, const struct pure_event *e)
{
    (void)state, (void)turn, (void)e;
    for (;;)
        pause();
}
static void close_(void *state) { (void)state; }
const struct pure_app pure_app = {.abi = PURE_APP_ABI, .outputs = outputs, .open = open_, .event = event, .close = close_};
EOF2
gcc -std=gnu11 -shared -fPIC -I. -o "$work/stuck.so" "$work/stuck.c" || die "the app that gets stuck does not build"
sed "s|^module = .*|module = $work/stuck.so|" "$work/small.conf" >"$work/stuck.conf"
$prefix "$host" run -c "$work/stuck.conf" >"$work/log" 2>&1 &
pid=$!
await
curl -s -m 1 -d x "$url/apps/relay/events/e" >/dev/null
stop 1
grep -q 'thread pure-own-0 does not end' "$work/log" || die "no word of the app that does not return"
