#!/bin/bash
# The runners say no where they should: rows that expect something else than what is, and files that are none.
set -u
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# expect STATUS TEXT PROGRAM FILE: the exit status, and a text that the output has.
expect() {
    local output status
    output=$("build/tests/$3" "$4" 2>&1)
    status=$?
    if [ "$status" != "$1" ] || ! grep -qF -- "$2" <<<"$output"; then
        printf '%s %s: exit status %s, wanted %s and "%s":\n%s\n' "$3" "$4" "$status" "$1" "$2" "$output"
        exit 1
    fi
}

# reply EXPECT STATUS LENGTH DIGEST REPLY
reply() {
    printf '{"id":"x1","name":"n","expect":"%s","status":%s,"body_len":%s,"body_sha256":"%s","server_closes":false,"reply_b64":"%s"}\n' \
        "$1" "$2" "$3" "$4" "$(printf "$5" | base64 -w0)"
}
request() {
    printf '{"id":"x2","raw_b64":"%s","expect":"%s","messages":%s}\n' "$(printf "$3" | base64 -w0)" "$1" "$2"
}

hi=8f434346648f6b96df89dda901c5176b10a6d83961dd3c1ac88b59b2dc327aa4 # SHA-256 of "hi"
good='HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi'
reply accept 200 2 $hi "$good" >"$work/good"
expect 0 '1 passed, 0 failed' replies "$work/good"
reply reject 200 2 $hi "$good" >"$work/rows"
expect 1 'FAILED  x1: expected reject, got accept' replies "$work/rows"
reply accept 201 2 $hi "$good" >"$work/rows"
expect 1 'x1: expected accept 201, 2 bytes' replies "$work/rows"
reply accept 200 3 $hi "$good" >"$work/rows"
expect 1 'x1: expected accept 200, 3 bytes' replies "$work/rows"
reply accept 200 2 "${hi/8f/80}" "$good" >"$work/rows"
expect 1 'got accept 200, 2 bytes (8f434346' replies "$work/rows"
sed 's/"id"/"reuse":false,&/' "$work/good" >"$work/rows"
expect 1 'x1: the second request came on the same connection' replies "$work/rows"
reply accept 200 2 $hi 'rubbish\r\n' >"$work/rows"
expect 1 'x1: expected accept, got reject' replies "$work/rows"
cat "$work/good" >>"$work/rows"
expect 1 '1 passed, 1 failed' replies "$work/rows"

request accept 1 'GET / HTTP/1.0\r\n\r\n' >"$work/rows"
expect 0 '1 passed, 0 failed' requests "$work/rows"
request accept 2 'GET / HTTP/1.0\r\n\r\n' >"$work/rows"
expect 1 'x2: expected accept with 2 messages, got accept with 1' requests "$work/rows"
request reject 0 'GET / HTT' >"$work/rows"
expect 1 'x2: expected reject with 0 messages, got incomplete with 0' requests "$work/rows"
request incomplete 0 'rubbish\r\n' >"$work/rows"
expect 1 'x2: expected incomplete with 0 messages, got reject with 0' requests "$work/rows"

for program in replies requests; do
    expect 2 "$work/none:0: No such file" $program "$work/none"
    printf '\n{"id":"x"\n' >"$work/rows"
    expect 2 "$work/rows:2: this line is not a JSON object" $program "$work/rows"
    printf '{"id":7}\n' >"$work/rows"
    expect 2 "$work/rows:1: \"id\" has to be a string" $program "$work/rows"
done
sed 's/"reply_b64":"/&*/' "$work/good" >"$work/rows"
expect 2 "$work/rows:1: \"reply_b64\" is not base64" replies "$work/rows"
sed 's/"body_len":2/"body_len":-2/' "$work/good" >"$work/rows"
expect 2 '"body_len" has to be a whole number' replies "$work/rows"
sed 's/8f43/8x43/' "$work/good" >"$work/rows"
expect 2 '"body_sha256" is not a SHA-256' replies "$work/rows"
sed 's/accept/perhaps/' "$work/good" >"$work/rows"
expect 2 '"expect": "perhaps" is not one' replies "$work/rows"
