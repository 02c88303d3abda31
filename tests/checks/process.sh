#!/bin/bash
# process.sh VARIANT: the real process, its threads and the kernel: events through every kind of outlet, from several clients at
# once, with a dead destination beside; SIGHUP; SIGTERM with a backlog. All counts have to be exact, the exit status 0, and the
# sanitizer of the variant silent (its report ends the process).
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
for _ in $(seq 200); do
    curl -sf "$url/health" >/dev/null && break
    kill -0 $pid 2>/dev/null || die "the host did not start"
    sleep 0.1
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

kill -TERM $pid
wait $pid
status=$?
pid=
[ $status -eq 0 ] || die "exit status $status"
grep -q '50 records were not delivered' "$work/log" || die "the backlog of the dead output is not reported"
