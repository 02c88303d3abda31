# The real host in a guest of `make check-pi`: the configuration of docs/examples/demo.conf, an app with an inner outlet, a
# webhook, a link and a wire to another host's app, all of which lead back here, over loopback, with its store on a real file
# system. A line a promise, "ok" or "FAILED"; run by busybox's shell.
work=/tmp/host
host=/pure/pure-host
exact="counter recorder dashboard archive" # where each event is stored exactly once, whatever befalls the host
sent=0 # events, each of the value 5
pid=

fail() {
    echo "FAILED $1"
    cat $work/log
    [ -z "$pid" ] || kill -KILL $pid
    exit 1
}

start() {
    $host run -c demo.conf >>log 2>&1 &
    pid=$!
    for _ in $(seq 300); do
        $host status -c demo.conf >/dev/null 2>&1 && return
        kill -0 $pid || fail "the host did not start"
        sleep 0.1
    done
    fail "the host is not ready"
}

# $1: how many events; to relay, which passes them on to counter.
publish() {
    wget -q -O /dev/null --header 'Content-Type: application/x-ndjson' --post-data "$(seq $1 | sed 's/.*/5/')" \
        http://127.0.0.1:7070/apps/relay/events/count || fail "events were not taken"
    sent=$((sent + $1))
}

# await_all PROMISE APP…: all that was ever published is at each of them, once.
await_all() {
    promise=$1
    shift
    for app in $*; do
        state=
        for _ in $(seq 300); do
            state=$($host state -c demo.conf $app)
            case $state in "{\"count\":$sent,\"sum\":$((5 * sent)),"*) continue 2 ;; esac
            sleep 0.1
        done
        fail "$promise: $app has $state, and $sent were published"
    done
    echo "ok $promise"
}

mkdir $work && cd $work && cp /pure/demo.conf . && $host key new demo.key >demo.pub || fail "no key"
start
$host send -c demo.conf relay count 5 && sent=1 || fail "an event was not taken"
publish 200
await_all "events arrive by inner outlet, link, wire and webhook" $exact cloud
kill -TERM $pid
wait $pid && echo "ok SIGTERM ends it, with status 0" || fail "exit status $? after SIGTERM"
start
await_all "started again with its store it has what it had" $exact cloud
publish 200
await_all "and goes on" $exact cloud
publish 100
kill -KILL $pid
wait $pid
start
await_all "killed and started again, nothing is lost, and nothing there twice" $exact
kill -TERM $pid
wait $pid || fail "exit status $? after SIGTERM"
pid=
$host fsck demo.store && echo "ok its store is clean" || fail "fsck"
