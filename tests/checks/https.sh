#!/bin/bash
# https.sh VARIANT: the front by TLS, in real processes: curl and pure-host's own commands over https, a pure wire between two
# hosts over it, clients that need a certificate, one that is renewed while the host runs, and the end.
#
#     curl ──https──→ A: relay ──wire, https, certificate of its own──→ B: counter (http = none)
set -u
variant=${1:?the variant}
host=$PWD/build/$variant/pure-host
apps=$PWD/build/$variant/apps
work=$(mktemp -d)
declare -A pid=()
trap 'kill -KILL ${pid[*]} 2>/dev/null; rm -rf "$work"' EXIT
prefix=
if [ "$variant" = tsan ] && setarch -R true 2>/dev/null; then
    prefix="setarch -R"
fi
port=$((20000 + RANDOM % 10000))
cd "$work" || exit 1
export SSL_CERT_FILE=$work/nobody.pem # no CA of this machine counts
: >nobody.pem

die() {
    echo "$1"
    tail -n 20 ./*.log
    exit 1
}

# --- certificates ---

new_key() {
    openssl ecparam -name prime256v1 -genkey -noout -out "$1.key"
    chmod 600 "$1.key"
}

new_ca() {
    new_key "$1"
    openssl req -x509 -new -key "$1.key" -subj "/CN=$1" -days 3 -out "$1.pem" -addext keyUsage=critical,keyCertSign \
        2>>openssl.txt
}

# NAME CA: for localhost, and for clients.
new_certificate() {
    new_key "$1"
    openssl req -new -key "$1.key" -subj "/CN=$1" -out "$1.csr" 2>>openssl.txt
    printf 'subjectAltName=DNS:localhost,IP:127.0.0.1\nbasicConstraints=CA:FALSE\nextendedKeyUsage=serverAuth,clientAuth\n' >ext
    openssl x509 -req -in "$1.csr" -CA "$2.pem" -CAkey "$2.key" -CAcreateserial -days 3 -extfile ext -out "$1.pem" 2>>openssl.txt
}

new_ca ca && new_ca other_ca && new_certificate a ca && new_certificate b ca && new_certificate stranger other_ca &&
    new_certificate renewed ca || die "openssl makes no certificates: $(cat openssl.txt)"

# --- hosts ---

cat >A.conf <<EOF2
[host]
name = a
http = 127.0.0.1:$port
https = 127.0.0.1:$((port + 1))
https_certificate = a.pem
https_key = a.key
store = memory
[app relay]
module = $apps/relay.so
[output relay.out]
wire = https://localhost:$((port + 2))
mode = pure
app = counter
ca = ca.pem
certificate = a.pem
certificate_key = a.key
EOF2
cat >B.conf <<EOF2
[host]
name = b
http = none
https = 127.0.0.1:$((port + 2))
https_certificate = b.pem
https_key = b.key
https_ca = ca.pem
store = memory
[app counter]
module = $apps/counter.so
EOF2
a=https://localhost:$((port + 1))
b=https://127.0.0.1:$((port + 2))
of_a=(curl -sf -m 10 --cacert ca.pem)
of_b=("${of_a[@]}" --cert a.pem --key a.key)

start() { # NAME COMMAND…: asks it whether it is there
    local name=$1
    shift
    $prefix "$host" run -c "$name.conf" >"$name.log" 2>&1 &
    pid[$name]=$!
    for _ in $(seq 200); do
        "$@" >/dev/null && return
        kill -0 "${pid[$name]}" 2>/dev/null || die "host $name does not start"
        sleep 0.1
    done
    die "host $name is not ready"
}

stop() {
    local status
    kill -TERM "${pid[$1]}"
    wait "${pid[$1]}"
    status=$?
    unset "pid[$1]"
    [ $status -eq 0 ] || die "exit status $status of host $1"
}

# $1: what is to be there in the end, the rest: who prints it.
comes_to() {
    local wanted=$1 seen
    shift
    for _ in $(seq 200); do
        seen=$("$@")
        [[ $seen == *"$wanted"* ]] && return
        sleep 0.1
    done
    die "$*: $seen, not $wanted"
}

start B "${of_b[@]}" $b/health
start A "${of_a[@]}" $a/health
grep -q "ready on http://127.0.0.1:$port and https://127.0.0.1:$((port + 1));" A.log || die "A does not say where it listens"
grep -q "ready on https://127.0.0.1:$((port + 2));" B.log || die "B does not say where it listens"

# events over https, one at a time and many, by TLS 1.3 and 1.2; they go on to B by the wire
lines=$(seq 100)
"${of_a[@]}" -d 1 $a/apps/relay/events/e >one.txt || die "curl posts no event over https"
grep -q '{"stored":1}' one.txt || die "an event over https: $(cat one.txt)"
for _ in $(seq 10); do
    "${of_a[@]}" --tls-max 1.2 -H 'Content-Type: application/x-ndjson' --data-binary "$lines" $a/apps/relay/events/e >/dev/null ||
        die "curl posts no lines over https"
done
comes_to '{"count":1001,"sum":50501,' "${of_b[@]}" $b/apps/counter/state
head -c 1000000 /dev/zero | "${of_a[@]}" --data-binary @- $a/apps/relay/events/e >/dev/null || die "a large body does not come in"

# commands over https
"$host" send --url $a --ca ca.pem relay e 1 >/dev/null || die "send over https fails"
"$host" status --url $a --ca ca.pem >status.txt || die "status over https fails"
grep -q "^https on 127.0.0.1:$((port + 1)): certificate ok, " status.txt || die "status: $(cat status.txt)"
"$host" status --url $a 2>error.txt && die "status believes whoever answers"
grep -q "issuer is not known" error.txt || die "status: $(cat error.txt)"
"$host" status --url http://localhost:$((port + 1)) 2>/dev/null && die "the https front answers in plain"

# who may come to B: clients with a certificate of its CA
"${of_a[@]}" $b/health >/dev/null && die "B takes a client without a certificate"
"${of_a[@]}" --cert stranger.pem --key stranger.key $b/health >/dev/null && die "B takes a certificate of another CA"
"${of_b[@]}" $b/metrics >metrics.txt || die "B shows no metrics"
[ "$(sed -n 's/^pure_front_handshakes_failed_total //p' metrics.txt)" -ge 2 ] || die "failed handshakes are not counted"
[ "$(grep -c 'a TLS handshake has failed' B.log)" -eq 1 ] || die "failed handshakes are said more than once, or not at all"

# a renewed certificate: new connections see it
shown() {
    curl -sv -m 10 --cacert ca.pem $a/health 2>&1 | sed -n 's/^.*subject: CN=//p'
}
[ "$(shown)" = a ] || die "A shows the certificate of $(shown)"
cp renewed.pem a.new && mv a.new a.pem && cp renewed.key a.new && mv a.new a.key
kill -HUP "${pid[A]}"
comes_to renewed shown

# the end: who keeps a connection is told
{ sleep 20 & echo $! >sleeper; wait $!; } | openssl s_client -connect 127.0.0.1:$((port + 1)) -CAfile ca.pem -msg >client.txt 2>&1 &
client=$!
comes_to 'Verify return code: 0' cat client.txt
stop A
kill "$(cat sleeper)" 2>/dev/null
wait $client
grep -q '^<<< .*warning close_notify' client.txt || die "A ends without close_notify"
stop B
echo "the front speaks TLS"
