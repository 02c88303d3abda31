# shellcheck shell=bash disable=SC2154,SC2034
# What the scenarios of tests/checks/links.sh are written with; bash, to be sourced. A scenario is a function
# that runs in a shell and a directory of its own, beside the others, so that their waits are one. In it:
#
#     key NAME; sender NAME …; receiver NAME …    make keys and NAME.conf
#     start NAME; stop NAME; slay NAME            a host: begins and is ready; SIGTERM; SIGKILL
#     feed NAME …; pour NAME …; enough            numbered records into the app `relay` of a host
#     within S COMMAND…                           waits for a condition; every wait is bounded
#     expect TEXT COMMAND…                        prints "ok" or "FAILED"; a scenario ends with what failed
#
# Whoever sources it has set: suite (its name in results), variant; if it wants to be in namespaces of its own: namespaces, as
# unshare's letters (m, or mn; `inside_namespaces` then says whether it is: 1 or 0); if its files are to stay: work, a directory. It sets:
# build (the variant's directory), work, base_port, patience (how many times longer than on a quiet machine things may
# take), prefix (before each host's command line).

build=$PWD/build/$variant
inside_namespaces=${INSIDE_NAMESPACES:-}
unset INSIDE_NAMESPACES
if [ -n "${namespaces:-}" ] && [ -z "$inside_namespaces" ]; then
    for how in "-$namespaces" "-Ur$namespaces"; do
        # shellcheck disable=SC2016
        if unshare "$how" sh -c 'mount --bind /etc/hosts /etc/hosts && { [ "$0" = m ] || "$1/live/device" lo up; }' \
            "$namespaces" "$build" 2>/dev/null; then
            INSIDE_NAMESPACES=1 exec unshare "$how" "$0" "$@"
        fi
    done
    inside_namespaces=0
fi
[ "$inside_namespaces${namespaces:-}" = 1mn ] && "$build/live/device" lo up

if [ -z "${work:-}" ]; then
    work=$(mktemp -d)
    trap 'kill $(jobs -pr) 2>/dev/null; wait; rm -rf "$work"' EXIT
    trap 'exit 1' INT TERM
fi
base_port=$((20000 + RANDOM % 10000))
patience=3
[ "$variant" = release ] || patience=6
prefix=
if [ "$variant" = tsan ] && setarch -R true 2>/dev/null; then
    prefix="setarch -R"
fi

# --- time ---

# Sets `now`, milliseconds that go on whatever is done to clocks.
see_now() {
    read -r now _ </proc/uptime
    now=${now/./}0
}

# A sleep, in seconds, that starts no program: nothing ever comes from there.
exec {nothing}<> <(:)
rest() {
    read -r -t "$1" -u "$nothing" || :
}

# $1: seconds.
within() {
    local now end
    see_now
    end=$((now + $1 * 1000 * patience))
    shift
    until "$@"; do
        see_now
        [ "$now" -lt $end ] || return 1
        rest 0.1
    done
}

# The log of a host has so many lines with that in them. It is written behind what happens: wait for it.
said() { # HOST TEXT COUNT
    [ "$(lines_of "$1" "$2")" = "$3" ]
}

# --- results ---

ok() {
    echo "ok      $variant $suite, $scenario: $1"
}

failed() {
    local log
    echo "FAILED  $variant $suite, $scenario: $1"
    for log in ./*.log; do
        [ -e "$log" ] && tail -n 20 "$log" | sed "s|^|        ${log#./} |"
    done
    for log in "${!url[@]}"; do
        [ -n "${pid[$log]:-}" ] && web "$log" /status | sed "s|^|        $log |"
        [ -n "${pid[$log]:-}" ] && web "$log" /apps/ledger/state | sed "s|^|        $log |"
    done
    exit 1
}

skipped() {
    echo "skipped $variant $suite, $scenario: $1"
    exit 0
}

# $1: what is promised; then a command that shows whether it holds.
expect() {
    local text=$1
    shift
    if "$@"; then ok "$text"; else failed "$text"; fi
}

# --- processes ---

declare -A pid=() url=() public=() inside=() with=() program=() control=() token=()

# $1: NAME of a host or a helper: ended at once.
slay() {
    kill -KILL "${pid[$1]}" 2>/dev/null
    wait "${pid[$1]}" 2>/dev/null
    pid[$1]=
}

slay_all() {
    local name
    for name in "${!pid[@]}"; do
        [ -n "${pid[$name]}" ] && slay "$name"
    done
}

# Runs a scenario, in the background; its output is in $work/NAME/result.
run_scenario() {
    mkdir "$work/$1"
    (
        scenario=${1//_/ }
        next_port=$((base_port + $2))
        cd "$work/$1" || exit
        trap 'touch enough; slay_all' EXIT
        "$1"
    ) >"$work/$1/result" 2>&1 &
}

# Sets `port`. UDP and TCP alike.
new_port() {
    port=$next_port
    next_port=$((next_port + 1))
}

ended() {
    ! grep -qs '^State:.[^ZX]' "/proc/${pid[$1]}/status"
}

# SIGTERM; it has to end with status 0, within the 5 s that are promised.
stop() {
    local status
    kill -TERM "${pid[$1]}"
    within 5 ended "$1" || return 1
    wait "${pid[$1]}"
    status=$?
    pid[$1]=
    [ $status -eq 0 ]
}

healthy() {
    local code reply
    http "$1" /health ''
    [ "$code" = 200 ]
}

# NAME runs with NAME.conf: in the network inside[NAME] (a command that enters it), with with[NAME] before it, as
# program[NAME].
start() {
    # shellcheck disable=SC2086
    ${inside[$1]:-} ${with[$1]:-} $prefix "${program[$1]:-$build/pure-host}" run -c "$1.conf" >>"$1.log" 2>&1 &
    pid[$1]=$!
    within 20 healthy "$1" || failed "host $1 does not start"
}

# A helper that takes commands: helper NAME COMMAND…; it has to print a line, in $first_line, when it is ready.
helper() {
    local name=$1 fd
    shift
    mkfifo "$name.in"
    exec {fd}<>"$name.in"
    control[$name]=$fd
    "$@" <"$name.in" >"$name.out" 2>>"$name.log" &
    pid[$name]=$!
    within 5 test -s "$name.out" || return 1
    read -r first_line <"$name.out"
}

answered() {
    [ "$(wc -l <"$1.out")" -gt "$2" ]
}

# tell NAME WORDS…: prints what the helper answers.
tell() {
    local name=$1 lines
    shift
    lines=$(wc -l <"$name.out")
    echo "$*" >&"${control[$name]}"
    within 5 answered "$name" "$lines" || return 1
    tail -n 1 "$name.out"
}

# The host's own threads: the kernel adds workers for files (iou-wrk-…) and takes them away as it likes.
# ThreadSanitizer has one thread of its own.
threads_are() {
    local own=0 threads
    [ "$variant" = tsan ] && own=1
    threads=$(cat "/proc/${pid[$1]}/task"/*/comm 2>/dev/null | grep -cv '^iou-wrk')
    [ "$threads" -eq $(($2 + own)) ]
}

# --- what a host is ---

key() {
    public[$1]=$("$build/pure-host" key new "$1.key")
}

host_section() {
    new_port
    url[$1]=http://127.0.0.1:$port
    printf '[host]\nname = %s\nhttp = 127.0.0.1:%d\nstore = memory\nkey = %s.key\n' "$1" "$port" "$1"
}

# $1: APP, which relays to $2, an address or name with its port, whose key is $3.
sending_app() {
    printf '[app %s]\nmodule = %s/apps/relay.so\n' "$1" "$build"
    printf '[output %s.out]\nlink = %s\nkey = %s\napp = ledger\n' "$1" "$2" "$3"
}

# sender NAME TO KEY
sender() {
    { host_section "$1"; sending_app relay "$2" "$3"; } >"$1.conf"
}

# receiver NAME ADDRESS:PORT PEER…: peers are names of keys.
receiver() {
    local name=$1 link=$2 peer
    shift 2
    {
        host_section "$name"
        printf 'link = %s\n[app ledger]\nmodule = %s/live/ledger.so\n' "$link" "$build"
        for peer in "$@"; do
            printf '[peer %s]\nkey = %s\napps = ledger\n' "$peer" "${public[$peer]}"
        done
    } >"$name.conf"
}

# The usual two: A sends to B, which is at address or name $1; it listens on address $2. Sets `link_port`.
two_hosts() {
    local at=${1:-127.0.0.1}
    key A
    key B
    new_port
    link_port=$port
    receiver B "${2:-$at}:$link_port" A
    sender A "$at:$link_port" "${public[B]}"
}

# --- what a host says ---

# http NAME PATH BODY: a request to that host; POST if there is a body. Sets `code` and `reply`. Without a program
# where it can: there are many, and beside them two hosts are to have the processors.
http() {
    local fd line type='application/x-ndjson'
    code=000 reply=''
    if [ -n "${inside[$1]:-}" ]; then
        # shellcheck disable=SC2086
        reply=$(${inside[$1]} curl -s -m 30 -w '\n%{http_code}' ${token[$1]:+-H "Authorization: Bearer ${token[$1]}"} \
            ${3:+-H "Content-Type: $type" --data-binary @-} \
            "${url[$1]}$2" <<<"$3")
        code=${reply##*$'\n'}
        reply=${reply%$'\n'*}
        reply=${reply%$'\n'}
        return
    fi
    {
        exec {fd}<>"/dev/tcp/127.0.0.1/${url[$1]##*:}" || return
        if [ -n "$3" ]; then
            printf 'POST %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: %s\r\n' "$2" "$type" >&$fd
            printf 'Content-Length: %d\r\n\r\n%s' ${#3} "$3" >&$fd
        else
            printf 'GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' "$2" >&$fd
        fi
        read -r -t 30 _ code _ <&$fd
        while read -r -t 5 line <&$fd && [ "$line" != $'\r' ]; do :; done
        read -r -t 5 -d '' reply <&$fd # without the newline at its end
        exec {fd}>&-
    } 2>/dev/null
}

# Prints what GET gives.
web() {
    local code reply
    http "$1" "$2" ''
    echo "$reply"
    [ "$code" = 200 ]
}

# ledger NAME FIELD
ledger() {
    local code reply
    http "$1" /apps/ledger/state ''
    [[ $reply =~ \"$2\":([0-9]+) ]] && echo "${BASH_REMATCH[1]}"
}

# Whether the ledger of $1 holds exactly the records from $2 to $3, each once, in order.
holds() {
    local code reply
    http "$1" /apps/ledger/state ''
    [[ $reply == "{\"records\":$(($3 - $2 + 1)),\"first\":$2,\"last\":$3,\"breaks\":0,"* ]]
}

reaches() {
    local code reply
    http "$1" /apps/ledger/state ''
    [[ $reply =~ \"last\":([0-9]+) ]] && [ "${BASH_REMATCH[1]}" -ge "$2" ]
}

# metric NAME METRIC: of all links of that host together, or its listener.
metric() {
    web "$1" /metrics | sed -n "s/^pure_$2\({.*}\)\? //p" | awk '{n += $1} END {print n + 0}'
}

# metric_is NAME METRIC OPERATOR NUMBER, the operator as test's.
metric_is() {
    test "$(metric "$1" "$2")" "$3" "$4"
}

# The stored number of the last outlet of $1.
stored() {
    [[ $(web "$1" /status) =~ .*\"stored\":([0-9]+),\"requests\" ]] && echo "${BASH_REMATCH[1]}"
}

# Waits until what COMMAND prints stays as it is for half a second; prints it.
settled() {
    local before after i
    before=$("$@")
    for ((i = 0; i < 20 * patience; i++)); do
        rest 0.5
        after=$("$@")
        [ "$after" = "$before" ] && break
        before=$after
    done
    echo "$after"
}

lines_of() {
    grep -c -- "$2" "$1.log"
}

# --- records ---

# publish NAME APP FROM TO SIZE: one request; numbers, with dots up to SIZE bytes. Refused for the time being, it
# goes again. Fails if there is no host.
publish() {
    local code reply body='' dots i
    printf -v dots '%*s' "$5" ''
    dots=${dots// /.}
    for ((i = $3; i <= $4; i++)); do
        body+=$i${dots:${#i}}$'\n'
    done
    while :; do
        http "$1" "/apps/$2/events/e" "$body"
        [ "$code" = 200 ] && return
        [ "$code" = 503 ] && [ ! -e enough ] || return 1
        rest 0.05
    done
}

# feed NAME FROM TO [SIZE] [APP]
feed() {
    publish "$1" "${5:-relay}" "$2" "$3" "${4:-8}" || failed "host $1 does not take records"
}

# pour NAME FROM SIZE A_REQUEST: in the background, until `enough` is called: it sets `poured`, the last number
# that the host took.
pour() {
    local from=$2
    rm -f enough
    echo $((from - 1)) >poured
    {
        while [ ! -e enough ] && publish "$1" relay "$from" $((from + $4 - 1)) "$3"; do
            from=$((from + $4))
            echo $((from - 1)) >poured
            rest 0.03 # leave the processors to what is tested
        done
    } &
    pouring=$!
}

enough() {
    touch enough
    wait $pouring
    poured=$(cat poured)
}
