#!/bin/bash
# Which folder may include which: core no sibling; uring, noise, tls and journal only core; link also noise; wire
# also noise and tls; host all of them; tests
# and experiments anything, but nothing includes them. Prints each wrong include; --self-test breaks each rule
# in a scratch tree and looks whether it is found.
#
#     includes.sh [--self-test | DIRECTORY]
set -u

# FOLDER ALLOWED…
rules="core:core
uring:uring core
noise:noise core
tls:tls core
journal:journal core
link:link noise core
wire:wire noise tls core
host:host uring noise tls link wire journal core"

wrong_includes() {
    local root=$1 folder allowed pattern found=1
    while IFS=: read -r folder allowed; do
        pattern="^[[:space:]]*#[[:space:]]*include[[:space:]]*\"(${allowed// /|})/"
        # A quoted include that does not start with an allowed folder, with "../" or without a folder included.
        if grep -rnE --include='*.[ch]' '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' "$root/$folder" 2>/dev/null |
            grep -vE "${pattern/^/^[^:]*:[0-9]+:}"; then
            found=0
        fi
    done <<<"$rules"
    return $found
}

self_test() {
    local scratch folder include
    scratch=$(mktemp -d) || return 1
    trap 'rm -rf "$scratch"' RETURN
    mkdir "$scratch"/{core,uring,noise,tls,link,wire,journal,host}
    printf '#include "core/io.h"\n#include <stdio.h>\n' | tee "$scratch"/{core,uring,noise,tls,link,wire,journal,host}/good.c >/dev/null
    printf '#include "uring/uring.h"\n#include "link/link.h"\n#include "tls/context.h"\n#include "noise/noise.h"\n#include "wire/http.h"\n#include "host/app.h"\n' >>"$scratch/host/good.c"
    if wrong_includes "$scratch"; then
        echo "self-test: a right include is refused"
        return 1
    fi
    while read -r folder include; do
        printf '#include "%s"\n' "$include" >"$scratch/$folder/bad.h"
        if ! wrong_includes "$scratch" >/dev/null; then
            echo "self-test: $include in $folder is not found"
            return 1
        fi
        rm "$scratch/$folder/bad.h"
    done <<'END'
core uring/uring.h
core wire/http.h
core host/app.h
core ../host/app.h
core tests/sim/sim.h
uring wire/http.h
uring host/app.h
link uring/uring.h
link wire/http.h
link host/app.h
wire link/link.h
tls wire/http.h
noise link/link.h
noise tls/context.h
wire uring/uring.h
wire host/app.h
wire experiments/epoll/epoll.h
journal uring/uring.h
journal host/app.h
wire journal/frame.h
host tests/sim/sim.h
host experiments/epoll/epoll.h
host app.h
END
}

if [ "${1:-}" = --self-test ]; then
    self_test
else
    ! wrong_includes "${1:-.}"
fi
