#!/bin/bash
# `make check` (full), `make check-fast` (fast) and `make check-sanitizers` (sanitizers). Each check and each
# cmocka test counts as one; a program that dies counts as failed. The last line is "N passed, N failed". Logs
# are in build/check/.
set -u
mode=${1:?full, fast or sanitizers}
# Worlds of many seeds or many hours: as released in the full mode, with sanitizers in a mode of their own.
long='_(storm|credit|paths|restarts|outage)\.c$'
make=${MAKE:-make}
logs=build/check
passed=0
failed=0
skipped=0 # for lack of something on this machine
rm -rf "$logs"
mkdir -p "$logs"

# check NAME COMMAND…: one check; its output is shown only if it fails.
check() {
    local name=$1 log
    shift
    log=$logs/${name//[^a-z0-9]/-}.log
    if "$@" >"$log" 2>&1; then
        echo "ok      $name"
        passed=$((passed + 1))
        return 0
    fi
    echo "FAILED  $name"
    tail -n 200 "$log"
    failed=$((failed + 1))
    return 1
}

formatted() {
    find core noise tls journal uring link wire host tests experiments -name '*.[ch]' -print0 |
        xargs -0 clang-format-14 --dry-run -Werror
}

# Without randomised addresses: ThreadSanitizer wants its fixed places, and fuzzers learn from addresses, so that
# the same seed finds the same.
at_fixed_addresses() {
    if setarch -R true 2>/dev/null; then
        echo "setarch -R"
    fi
}

sum_of() { # how many tests the log says PASSED or FAILED
    sed -n "s/^\[  $2  \] \([0-9]*\) test(s).*/\1/p" "$1" | awk '{n += $1} END {print n + 0}'
}

count_program() {
    local name=$1 log=$2 status good bad
    status=$(cat "$log.status" 2>/dev/null || echo none)
    good=$(sum_of "$log" PASSED)
    bad=$(sum_of "$log" FAILED)
    if [ "$bad" -eq 0 ] && { [ "$status" != 0 ] || [ "$good" -eq 0 ]; }; then
        bad=1 # died, timed out, or ran no test
    fi
    passed=$((passed + good))
    failed=$((failed + bad))
    if [ "$bad" -gt 0 ]; then
        echo "FAILED  $name: $good passed, $bad failed, exit status $status"
        grep -v '^\[ RUN\|^\[       OK' "$log" | tail -n 100
    else
        echo "ok      $name: $good passed"
    fi
}

# ThreadSanitizer has nothing to see in a program of one thread. The fast mode is for what most changes break.
tests_of() {
    if [ "$1" = tsan ]; then
        grep -lE 'pthread_' tests/unit/test_*.c
    elif [ "$mode" = sanitizers ] || [ "$mode $1" = "full release" ]; then
        ls tests/unit/test_*.c
    else
        ls tests/unit/test_*.c | grep -vE "$long"
    fi
}

run_tests() {
    local variant=$1 prefix source name
    prefix=
    [ "$variant" = tsan ] && prefix=$(at_fixed_addresses)
    mkdir -p "$logs/$variant"
    export prefix variant logs
    for source in $(tests_of "$variant"); do
        basename "$source" .c
    done | xargs -P "$(nproc)" -I NAME bash -c \
        'TIMEFORMAT="%R NAME"; { time timeout -k 5 240 $prefix build/$variant/tests/NAME >$logs/$variant/NAME 2>&1; } 2>>$logs/$variant.seconds; echo $? >$logs/$variant/NAME.status'
    for source in $(tests_of "$variant"); do
        name=$(basename "$source" .c)
        count_program "$variant $name" "$logs/$variant/$name"
    done
}

# check_promises VARIANT NAME COMMAND…: each promise is a line that says ok, FAILED or skipped.
check_promises() {
    local variant=$1 name=$2 log bad
    log=$logs/${name//[^a-z0-9]/-}-$variant.log
    shift 2
    timeout -k 5 600 "$@" >"$log" 2>&1 || echo "exit status $?" >>"$log"
    bad=$(grep -c '^FAILED ' "$log")
    tail -n 1 "$log" | grep -q '^exit status' && [ "$bad" -eq 0 ] && bad=1
    passed=$((passed + $(grep -c '^ok ' "$log")))
    failed=$((failed + bad))
    skipped=$((skipped + $(grep -c '^skipped ' "$log")))
    if [ "$bad" -gt 0 ]; then
        echo "FAILED  $variant: $name: $(grep -c '^ok ' "$log") passed, $bad failed"
        grep -v '^ok ' "$log" | tail -n 200
    else
        echo "ok      $variant: $name: $(grep -c '^ok ' "$log") passed"
        grep '^skipped ' "$log"
    fi
}

# check_rows NAME COMMAND…: a runner (docs/runners.md), whose last line says how many rows passed and failed.
check_rows() {
    local name=$1 log last good bad
    log=$logs/${name//[^a-z0-9]/-}.log
    shift
    timeout -k 5 600 "$@" >"$log" 2>&1
    last=$(tail -n 1 "$log" | sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p')
    read -r good bad <<<"${last:-0 1}"
    passed=$((passed + good))
    failed=$((failed + bad))
    if [ "$bad" -gt 0 ]; then
        echo "FAILED  $name: $good passed, $bad failed"
        tail -n 100 "$log"
    else
        echo "ok      $name: $good passed"
    fi
}

# The rows of tests/vectors: in every split and over loopback in the full mode, and whole with sanitizers.
run_rows() {
    local splits=--splits
    [ "$mode" = full ] || splits=
    check "build runners" $make VARIANT=release runners || return
    check "runners say no" tests/checks/runners.sh
    check_rows "certificates over TLS" build/tests/certs tests/vectors/certs.json
    check_rows "replies" build/tests/replies $splits tests/vectors/replies.jsonl
    check_rows "requests" build/tests/requests $splits tests/vectors/requests.jsonl
    [ "$mode" = full ] || return
    check "build runners asan" $make VARIANT=asan build/asan/runners/replies build/asan/runners/requests || return
    check_rows "replies asan" build/asan/runners/replies tests/vectors/replies.jsonl
    check_rows "requests asan" build/asan/runners/requests tests/vectors/requests.jsonl
}

# All that runs under this variant, and no more.
programs_of() {
    local source
    for source in $(tests_of "$1"); do
        echo "build/$1/tests/$(basename "$source" .c)"
    done
}

# Several processes and the real kernel.
between_processes() {
    check_promises "$1" "links between processes" tests/checks/links.sh "$1"
    check_promises "$1" "wires between processes" tests/checks/wires.sh "$1"
    [ "$1" = tsan ] || check_promises "$1" "faults over loopback" tests/checks/faults.sh "$1"
}

# What waits more than it computes.
live_checks() {
    check "$1: the process" tests/checks/process.sh "$1"
    check "$1: the front by TLS" tests/checks/https.sh "$1"
    case $mode-$1 in
    fast-* | full-asan | full-tsan) return ;;
    esac
    between_processes "$1"
    [ "$1" = release ] || return
    check_promises release "webhooks are verified" tests/checks/webhooks.sh release
    check_promises release "apps that misbehave" tests/checks/apps.sh release
    KILLS=20 check_promises release "hosts are killed" tests/checks/crash.sh release kills
    check_rows "replies over loopback" build/tests/replies --live tests/vectors/replies.jsonl
}

# beside COMMAND…: checks that run while others do, until `join`, which shows them and adds their counts.
beside() {
    (
        passed=0 failed=0 skipped=0
        "$@"
        echo "$passed $failed $skipped" >"$logs/beside.counts"
    ) >"$logs/beside.out" 2>&1 &
    beside_pid=$!
}

join() {
    local p=0 f=1 s=0
    wait "$beside_pid"
    cat "$logs/beside.out"
    read -r p f s <"$logs/beside.counts"
    rm -f "$logs/beside.counts"
    passed=$((passed + p))
    failed=$((failed + f))
    skipped=$((skipped + s))
}

build_and_run() {
    check "build $1" $make VARIANT="$1" all live $(programs_of "$1") || return
    beside live_checks "$1"
    run_tests "$1"
    join
}

export ASAN_OPTIONS=${ASAN_OPTIONS:-strict_string_checks=1}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-halt_on_error=1:second_deadlock_stack=1}

finish() {
    [ "$skipped" -eq 0 ] || echo "$skipped skipped"
    echo "$passed passed, $failed failed"
    [ "$failed" -eq 0 ]
    exit
}

if [ "$mode" = sanitizers ]; then
    for variant in asan tsan; do
        build_and_run "$variant"
    done
    finish
fi
check "includes: self-test" tests/checks/includes.sh --self-test
check "includes" tests/checks/includes.sh
check "format" formatted
runners=
[ "$mode" = full ] && runners=runners
if check "build release" $make VARIANT=release all live $runners $(programs_of release); then
    beside live_checks release
    run_tests release
    run_rows
    check "documentation" tests/checks/docs.sh
    [ "$mode" = full ] && check "build experiments" $make VARIANT=release bench-programs
    join
fi
if [ "$mode" = full ]; then
    build_and_run asan
    build_and_run tsan
    check "build fuzzers (clang)" $make VARIANT=fuzz fuzzers &&
        check "fuzzers, briefly" $(at_fixed_addresses) tests/checks/fuzz.sh -seed=1 -runs=20000 -max_total_time=5
fi
finish
