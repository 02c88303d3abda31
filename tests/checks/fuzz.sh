#!/bin/bash
# Runs every fuzzer of the fuzz variant, as many at a time as there are processors, with tests/fuzz/corpus/NAME
# if there is one. What they find new goes to build/fuzz-corpus, what crashes them to build/fuzz-crash-*: commit
# such an input to the corpus with its fix. Its arguments go to each fuzzer.
#
#     fuzz.sh -max_total_time=30
set -u
status=0

run_one() { # NAME ARGUMENT…
    local name=$1 found=build/fuzz-corpus/$1 corpus=tests/fuzz/corpus/${1#fuzz_}
    local log=$found.log directories
    shift
    mkdir -p "$found"
    directories=("$found")
    [ -d "$corpus" ] && directories+=("$corpus")
    "build/fuzz/fuzz/$name" -artifact_prefix=build/fuzz-crash- -timeout=10 "$@" "${directories[@]}" >"$log" 2>&1
    echo $? >"$found.status"
}

if [ "${1:-}" = --one ]; then
    shift
    run_one "$@"
    exit
fi
names=$(for source in tests/fuzz/fuzz_*.c; do basename "$source" .c; done)
rm -f build/fuzz-corpus/*.status
echo "$names" | xargs -P "$(nproc)" -I NAME "$0" --one NAME "$@"
for name in $names; do
    log=build/fuzz-corpus/$name.log
    echo "== $name"
    if [ "$(cat "build/fuzz-corpus/$name.status" 2>/dev/null)" = 0 ]; then
        tail -n 1 "$log"
    else
        tail -n 60 "$log"
        status=1
    fi
done
exit $status
