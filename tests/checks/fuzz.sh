#!/bin/bash
# Runs every fuzzer of the fuzz variant, with tests/fuzz/corpus/NAME if there is one. What they find new goes
# to build/fuzz-corpus, what crashes them to build/fuzz-crash-*: commit such an input to the corpus with its
# fix. Its arguments go to each fuzzer.
#
#     fuzz.sh -max_total_time=30
set -u
status=0
for source in tests/fuzz/fuzz_*.c; do
    [ -e "$source" ] || continue
    name=$(basename "$source" .c)
    found=build/fuzz-corpus/$name
    corpus=tests/fuzz/corpus/${name#fuzz_}
    mkdir -p "$found"
    directories=("$found")
    [ -d "$corpus" ] && directories+=("$corpus")
    echo "== $name"
    log=build/fuzz-corpus/$name.log
    if "build/fuzz/fuzz/$name" -artifact_prefix=build/fuzz-crash- -timeout=10 "$@" "${directories[@]}" >"$log" 2>&1; then
        tail -n 1 "$log"
    else
        tail -n 60 "$log"
        status=1
    fi
done
exit $status
