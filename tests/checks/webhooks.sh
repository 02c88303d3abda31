#!/bin/bash
# webhooks.sh VARIANT: signed webhooks, verified by the npm package `standardwebhooks` in node, as somebody who receives
# them would do it. Prints "ok", "FAILED" or "skipped" a line for each promise, which check.sh counts; exit status 1 if one failed.
#
#     curl ──→ A: relay ── wire ──→ tests/live/webhooks.js: with the old secret, the new one, a public key, and tampered with
#
# The package is installed into a directory that is removed again. Without node, npm or a registry that answers, all is
# skipped: nothing else of the project needs them.
set -u
variant=${1:?the variant}
receiver=$PWD/tests/live/webhooks.js
suite=webhooks
# shellcheck source=tests/live/lib.sh
. tests/live/lib.sh

needs_package() {
    command -v node >/dev/null && command -v npm >/dev/null || skipped "node and npm are not installed"
    timeout 60 npm install --prefix "$work/npm" --no-audit --no-fund --ignore-scripts standardwebhooks@1 >npm.log 2>&1 ||
        skipped "npm cannot install standardwebhooks here"
    export NODE_PATH=$work/npm/node_modules
}

# webhook APP SIGN [LINE…]: an app whose output goes to /APP of the receiver, signed.
webhook() {
    printf '[app %s]\nmodule = %s/apps/relay.so\n' "$1" "$build"
    printf '[output %s.out]\nwire = http://127.0.0.1:%s/%s\nmode = webhook\nsign = %s\n' "$1" "$receiver_port" "$1" "$2"
    shift 2
    [ $# -eq 0 ] || printf '%s\n' "$@"
}

# Whether a request to /$1 was seen that has all of these members.
seen() {
    local line member
    line=$(grep -m 1 -F "\"to\":\"/$1\"" receiver.out) || return 1
    shift
    for member in "$@"; do
        [[ $line == *"$member"* ]] || return 1
    done
}

received() {
    within 10 grep -qF "\"to\":\"/$1\"" receiver.out || failed "nothing comes to /$1"
}

verified() {
    local old new private verifier receiver_port long member secret app
    needs_package
    node "$receiver" new >secrets
    { read -r old && read -r new && read -r private && read -r verifier; } <secrets
    helper receiver node "$receiver" "$old" "$new" "$verifier" || failed "the receiver does not start"
    receiver_port=$first_line
    printf '%s\n%s\n' "$new" "$old" >rotation
    echo "$private" >private
    key A
    {
        host_section A
        webhook one "$old"
        # shellcheck disable=SC1083
        webhook rotated file:rotation 'header.X-Thing = {app}-{number}' 'header.X-Kind = {data.kind}'
        webhook asymmetric file:private
        webhook compressed file:rotation 'gzip = 6'
        webhook stranger "whsec_$(printf '%032d' 7 | base64)"
    } >A.conf
    start A
    printf -v long '%0500d' 7
    for app in one rotated asymmetric compressed stranger; do
        http A "/apps/$app/events/e" "{\"kind\":\"caf\\u00e9\\r\\n\",\"text\":\"$long\"}"
        [ "$code" = 200 ] || failed "the app $app does not take an event"
        received "$app"
    done
    expect "a webhook is taken by a receiver that has its secret, and by no other" seen one '"old":true,"new":false'
    expect "signed with two secrets it is taken by receivers of either" seen rotated '"old":true,"new":true'
    expect "signed with ed25519 it is taken by a receiver that has the public key" \
        seen asymmetric '"old":false,"new":false,"ed25519":true'
    expect "compressed it is verified by its content" seen compressed '"old":true,"new":true' '"encoding":"gzip"'
    expect "under another secret it is refused" seen stranger '"old":false,"new":false,"ed25519":false'
    expect "tampered with, none is taken" none_tampered
    expect "headers have what their templates say" seen rotated '"thing":"rotated-1"' '"kind":"caf%C3%A9%0D%0A"'
    expect "no secret is in the log or the status" no_secret_shows
    expect "the host ends in order" stop A
}

none_tampered() {
    grep -q '"tampered":false' receiver.out && ! grep -q '"tampered":true' receiver.out
}

no_secret_shows() {
    web A /status >A.status.log
    for secret in "$old" "$new" "$private"; do
        ! grep -qF "${secret:6:20}" A.log A.status.log || return 1
    done
}

run_scenario verified 0
wait
cat "$work"/*/result
! grep -q '^FAILED ' "$work"/*/result && tail -n 1 "$work"/*/result | grep -q '^ok \|^skipped '
