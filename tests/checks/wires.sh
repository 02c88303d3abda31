#!/bin/bash
# wires.sh VARIANT [SCENARIO…]: wires between real processes, over the real kernel (make VARIANT=… all live). Prints "ok", "FAILED" or "skipped"
# a line for each promise, which check.sh counts; exit status 1 if one failed. Servers are OpenSSL's (tests/live/receiver.c), as are certificates, and
# what a network sees is what is captured on it (tests/live/capture.c), so nothing here is believed of the host that others do not see.
#
#     curl ──→ A: relay ── TLS ─────────────────────────→ receiver        of many kinds, on 127.0.0.1
#              A: relay ── TLS ──→ proxy (tests/live/proxy.c) ──→ receiver
#              A: relay ── veth, captured ──────────────→ receiver, B     two network namespaces
#
# It runs in network and mount namespaces of its own; where those may not be made the scenarios that need them say that
# they are skipped.
set -u
variant=${1:?the variant}
suite=wires
namespaces=mn
# shellcheck source=tests/live/lib.sh
. tests/live/lib.sh
shift
# shellcheck source=tests/live/certificates.sh
. tests/live/certificates.sh

# --- what wires lead to ---

declare -A to=()

# server NAME [WORD VALUE]…: a receiver on 127.0.0.1, whose port is to[NAME], and whose lines are NAME.out.
server() {
    local name=$1
    shift
    new_port
    to[$name]=$port
    helper "$name" "$build/live/receiver" "127.0.0.1:$port" "$@" || failed "the receiver $name does not start"
}

# tls NAME CERTIFICATE [WORD VALUE]…
tls() {
    local name=$1 certificate=$2
    shift 2
    server "$name" cert "$pki/$certificate.pem" key "$pki/$certificate.key" "$@"
}

# wire APP URL [LINE…]: an app whose output goes to URL/APP.
wire() {
    printf '[app %s]\nmodule = %s/apps/relay.so\n[output %s.out]\nwire = %s/%s\nbackoff_max = 1s\n' "$1" "$build" "$1" "$2" "$1"
    shift 2
    [ $# -eq 0 ] || printf '%s\n' "$@"
}

# secure APP [LINE…]: by TLS to the server of the app's name.
secure() {
    local app=$1
    shift
    wire "$app" "https://localhost:${to[$app]}" "$@"
}

# A host A with what COMMAND prints behind its section, and these lines in it.
host_with() {
    [ -e A.key ] || key A
    { host_section A; "$@"; } >A.conf
}

# send APP RECORD, or several, a line each
send() {
    http A "/apps/$1/events/e" "$2"
    [ "$code" = 200 ] || failed "the app $1 does not take an event: $code $reply"
}

# seen SERVER PATTERN
seen() {
    grep -aqE -e "$2" "$1.out"
}

# tells APP TEXT: whether `pure-host status` has that about its output, in however many lines
tells() {
    ${inside[A]:-} "$build/pure-host" status --url "${url[A]}" >status.txt 2>&1
    awk -v name="$1.out" '/^[^ ]/ {its = $1 == name} its' status.txt | tr -s ' \n' ' ' | grep -qF -- "$2"
}

# --- what TLS is spoken with ---

interop_apps() {
    local app
    printf 'ca = %s\n' "$pki/trusted.pem"
    for app in rsa pss p256 p384 ed25519 only12 only13 aes12 chacha12 aes13 chacha13 resumed12 resumed13; do
        secure $app
    done
    secure known "certificate = $pki/client.pem" "certificate_key = $pki/client.key"
    secure pinned "pin = $(pin_of p256)"
}

declare -A kinds=([rsa]='RSA of 2048 bits' [pss]='RSA, signed with PSS' [p256]='P-256' [p384]='P-384' [ed25519]='Ed25519')

interop() {
    local app
    for app in rsa pss p256 p384 ed25519; do
        tls $app $app
    done
    tls only12 p256 max 1.2
    tls only13 p256 min 1.3
    tls aes12 p256 max 1.2 ciphers ECDHE-ECDSA-AES128-GCM-SHA256
    tls chacha12 rsa max 1.2 ciphers ECDHE-RSA-CHACHA20-POLY1305
    tls aes13 p256 min 1.3 suites TLS_AES_256_GCM_SHA384
    tls chacha13 p256 min 1.3 suites TLS_CHACHA20_POLY1305_SHA256
    tls resumed12 p256 max 1.2 close 1
    tls resumed13 p256 min 1.3 close 1
    tls known p256 ca "$pki/ca.pem"
    tls pinned p256
    host_with interop_apps
    start A
    for app in "${!to[@]}"; do
        send "$app" '{"n":1}'
        [[ $app != resumed* ]] || send "$app" '{"n":2}'
    done
    for app in rsa pss p256 p384 ed25519; do
        expect "a certificate by ${kinds[$app]}" within 10 seen $app "^POST /$app .*\{\"n\":1\} -- TLSv1.3"
    done
    expect "a server of TLS 1.2 only" within 10 seen only12 '-- TLSv1.2'
    expect "a server of TLS 1.3 only" within 10 seen only13 '-- TLSv1.3'
    expect "one that has AES only, in TLS 1.2" within 10 seen aes12 '-- TLSv1.2 ECDHE-ECDSA-AES128-GCM-SHA256'
    expect "and in 1.3" within 10 seen aes13 '-- TLSv1.3 TLS_AES_256_GCM_SHA384'
    expect "one that has ChaCha20 only, in TLS 1.2" within 10 seen chacha12 '-- TLSv1.2 ECDHE-RSA-CHACHA20-POLY1305'
    expect "and in 1.3" within 10 seen chacha13 '-- TLSv1.3 TLS_CHACHA20_POLY1305_SHA256'
    expect "a session is resumed in TLS 1.2" within 10 seen resumed12 '"n":2} -- TLSv1.2 [^ ]* resumed localhost'
    expect "and in 1.3" within 10 seen resumed13 '"n":2} -- TLSv1.3 [^ ]* resumed localhost'
    expect "a server that wants a certificate of ours gets it" within 10 seen known '-- TLSv1.3 .* /CN=client$'
    expect "the right pin" within 10 seen pinned '-- TLSv1'
    expect "each certificate's name is asked for" seen rsa ' new localhost -$'
    expect "the host ends" stop A
}

# --- what is told of those that cannot be spoken with ---

declare -A told=(
    [past]='the certificate has expired'
    [future]='the certificate is not yet valid'
    [elsewhere]='the certificate is for other names'
    [self]='the certificate is self-signed and not trusted'
    [stranger]="the certificate's issuer is not known"
    [pss_only]='is of an algorithm that is not safe'
    [unpinned]='no key in the certificate chain is one that is pinned'
    [unknown]='the peer wants a certificate of ours'
    [old]='no TLS version or cipher in common'
    [plain]='what came is not valid TLS'
)

refused_apps() {
    local app
    printf 'ca = %s\n' "$pki/trusted.pem"
    for app in past future elsewhere self stranger pss_only unknown old plain; do
        secure $app
    done
    secure unpinned "pin = $(pin_of rsa)"
}

refused() {
    local app
    for app in past future elsewhere self stranger pss_only; do
        tls $app $app
    done
    tls unpinned p256
    tls unknown p256 ca "$pki/ca.pem"
    tls old rsa max 1.2 ciphers AES128-SHA256
    server plain
    host_with refused_apps
    start A
    for app in "${!to[@]}"; do
        send "$app" '{"secret":1}'
    done
    for app in "${!to[@]}"; do
        expect "the status says: ${told[$app]}" within 10 tells "$app" "${told[$app]}"
    done
    expect "none of them gets a record" eval '! grep -aq "^POST" ./*.out'
    expect "a host with a backlog of them ends within 5 s, with status 0" stop A
}

# --- files that change ---

renewed_apps() {
    secure watched "ca = watched.pem"
    secure asked "ca = asked.pem" "certificate = own.pem" "certificate_key = own.key"
}

# replace FILE WITH: as is told in docs/configuration.md
replace() {
    cp "$2" "$1.new" && mv "$1.new" "$1"
}

renewed() {
    tls watched p256
    tls asked p256 ca "$pki/ca.pem" close 1
    cp "$pki/other.pem" watched.pem
    cp "$pki/other.pem" asked.pem
    cp "$pki/client.pem" own.pem
    cp "$pki/client.key" own.key
    host_with renewed_apps
    start A
    send watched 1
    send asked 1
    within 10 tells asked 'issuer is not known' || failed "a CA that is not the server's is believed"
    replace asked.pem "$pki/ca.pem"
    kill -HUP "${pid[A]}"
    expect "CA certificates are read again by SIGHUP" within 3 seen asked '/CN=client$'
    replace own.pem "$pki/renewed.pem"
    kill -HUP "${pid[A]}"
    send asked 2
    within 3 seen asked '\|2 -- ' || failed "a renewed certificate is not used"
    send asked 3
    expect "and so is our own certificate" within 3 seen asked '\|3 -- .* /CN=renewed$'
    replace watched.pem "$pki/ca.pem"
    expect "without a signal within ten seconds" within 10 seen watched '^POST'
    expect "the host ends" stop A
}

# --- a proxy, and networks that are not for us ---

proxied_apps() {
    printf 'ca = %s\n' "$pki/trusted.pem"
    wire through "https://hook.test:${to[secure]}" "proxy = http://ann:s%2Fcret@127.0.0.1:$proxy_port"
    wire stranger "https://hook.test:${to[secure]}" "proxy = http://127.0.0.1:$proxy_port"
    wire denied "http://127.0.0.1:${to[plain]}" 'deny = private'
    wire denied_name "http://localhost:${to[plain]}" 'deny = private'
}

proxied() {
    local proxy_port app login
    login=$(printf ann:s/cret | base64)
    tls secure network
    server plain
    new_port
    proxy_port=$port
    helper proxy "$build/live/proxy" "$port" "$login" || failed "no proxy"
    host_with proxied_apps
    start A
    for app in through stranger denied denied_name; do
        send $app 1
    done
    expect "records go through a proxy's tunnel" within 10 seen secure '^POST /through .* new hook.test '
    expect "which is asked for by name, with our login" \
        seen proxy "^CONNECT hook.test:${to[secure]} .*\|Proxy-Authorization: Basic $login\|"
    expect "the server sees nothing of it" eval '! grep -aqi "proxy\|$login" secure.out'
    expect "a proxy that wants a login says so" within 10 tells stranger 407
    expect "deny = private: no connection to 127.0.0.1, and the status says so" \
        within 10 tells denied 'no address of the name may be connected to'
    expect "nor by a name" within 10 tells denied_name 'no address of the name may be connected to'
    expect "nothing came" eval '! seen plain POST && ! seen secure stranger'
    expect "no login is in the log or the status" eval '! grep -q "s%2Fcret\|s/cret\|$login" A.log status.txt'
    expect "the host ends" stop A
}

# --- ends, threads, memory ---

dead_ends_apps() {
    printf 'ca = %s\n' "$pki/trusted.pem"
    secure refuses
    secure mute
    secure stalls
}

dead_ends() {
    new_port
    to[refuses]=$port
    server mute mute 1
    server stalls mute 1
    host_with dead_ends_apps
    start A
    for app in refuses mute stalls; do
        feed A 1 1000 100 $app
    done
    within 10 tells refuses 'refused' || failed "the status tells nothing of who refuses"
    expect "with a backlog to https servers that are dead or silent it ends within 5 s, with status 0" stop A
    expect "and says how much was not delivered" \
        [ "$(lines_of A 'output [a-z]*.out: 1000 records were not delivered')" = 3 ]
}

many_apps() { # SCHEME SERVER
    local i
    printf 'ca = %s\n' "$pki/trusted.pem"
    for ((i = 0; i < wires; i++)); do
        wire "app$i" "$1://localhost:${to[$2]}"
    done
}

all_seen() { # SERVER
    [ "$(grep -ac '^POST' "$1.out")" -ge "$wires" ]
}

resident_kb() {
    sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/${pid[$1]}/status"
}

# What the host grows by for each of these wires but the first when it delivers its first record, in `grown`, KiB. The
# host is left running.
grow() { # SCHEME SERVER
    local before i
    host_with many_apps "$1" "$2"
    start A
    send app0 1
    within 20 seen "$2" /app0 || failed "a wire does not deliver"
    before=$(settled resident_kb A)
    for ((i = 1; i < wires; i++)); do
        send "app$i" 1
    done
    within 20 all_seen "$2" || failed "$wires wires do not deliver"
    grown=$((($(settled resident_kb A) - before) / (wires - 1)))
}

many() {
    local wires=${WIRES:-20} grown plain
    tls secure p256
    server plain
    grow http plain
    plain=$grown
    stop A || failed "the host does not end"
    grow https secure
    expect "with $wires wires by TLS a host has four threads" within 15 threads_are A 4
    [ "$variant" != release ] ||
        expect "one has grown by $plain KiB, of 60, by TLS by $grown, of 200" \
            [ "$plain" -le 60 -a "$grown" -le 200 ]
    expect "the host ends" stop A
}

# --- a network between two namespaces ---

needs_namespaces() {
    [ "$inside_namespaces" = 1 ] || skipped "no network and mount namespaces may be made here"
}

# Two networks, A's with 10.99.0.1 on `near`, and B's with 10.99.0.2 on `far`. On B's side nobody has 10.99.0.9, and
# nothing says so to who sends there.
two_networks() {
    local name
    needs_namespaces
    for name in A B; do
        helper net$name unshare -n sh -c "'$build/live/device' lo up && echo ready && exec sleep 600" || failed "no network"
        inside[$name]="nsenter --net=/proc/${pid[net$name]}/ns/net"
    done
    ${inside[A]} ip link add near type veth peer name far netns "${pid[netB]}" 2>>ip.log || skipped "no veth device"
    ${inside[A]} ip address add 10.99.0.1/24 dev near && ${inside[A]} "$build/live/device" near up || failed "near"
    ${inside[B]} ip address add 10.99.0.2/24 dev far && ${inside[B]} "$build/live/device" far up || failed "far"
    ${inside[A]} ip neigh add 10.99.0.9 lladdr 02:00:00:00:00:09 dev near nud permanent || failed "a hole"
}

# What A has for /etc/hosts and /etc/resolv.conf.
own_names() {
    printf '%s\n' "$@" >hosts
    echo 'nameserver 127.0.0.53' >resolv.conf
    printf '#!/bin/sh\nmount --bind hosts /etc/hosts && mount --bind resolv.conf /etc/resolv.conf && exec "$@"\n' >with_files
    chmod +x with_files
    with[A]="unshare -m ./with_files"
}

# far_server NAME PORT [WORD VALUE]…: on B's side
far_server() {
    local name=$1
    to[$name]=$2
    shift 2
    # shellcheck disable=SC2086
    helper "$name" ${inside[B]} "$build/live/receiver" "10.99.0.2:${to[$name]}" "$@" || failed "the receiver $name does not start"
}

capture() { # NAME
    # shellcheck disable=SC2086
    helper "$1" ${inside[A]} "$build/live/capture" near "$1.pcap" || failed "nothing can be captured"
}

# Ends a capture when all frames are in its file.
captured() {
    rest 0.2
    tell "$1" frames >frames.txt && [ "$(cat frames.txt)" -gt 0 ] || failed "nothing is captured"
    slay "$1"
}

# in_clear CAPTURE MARKER…: prints those of the markers that are to be seen there, in any case
in_clear() {
    local file=$1.pcap marker
    shift
    for marker in "$@"; do
        grep -aqiF -- "$marker" "$file" && echo "$marker"
    done
}

captured_apps() {
    local app
    printf 'ca = %s\n' "$pki/trusted.pem"
    for app in clear only12 only13; do
        if [ $app = clear ]; then
            wire $app "http://hook.test:${to[$app]}/quokka"
        else
            wire $app "https://hook.test:${to[$app]}/quokka"
        fi
        # shellcheck disable=SC1083
        printf '%s\n' 'token = wombat-token' "sign = whsec_$(printf '%032d' 7 | base64)" 'header.X-Lemur = okapi-{data.tapir}-{app}'
    done
}

# One capture for each app, so that the search is shown to find what there is.
no_plaintext_in_tls() {
    local app i records='' markers=(quokka-record wombat-token okapi- x-lemur potoroo- /quokka 'webhook-id: msg_'
        'webhook-signature: v1,' ' HTTP/1.1' 'HTTP/1.1 204' pure-host application/json)
    for ((i = 0; i < 50; i++)); do
        records+="{\"tapir\":\"potoroo-$i\",\"text\":\"quokka-record-$i\"}"$'\n'
    done
    two_networks
    own_names '10.99.0.2 hook.test'
    far_server clear 8080
    far_server only12 8412 cert "$pki/network.pem" key "$pki/network.key" max 1.2
    far_server only13 8413 cert "$pki/network.pem" key "$pki/network.key" min 1.3
    host_with captured_apps
    start A
    for app in clear only12 only13; do
        capture seen_$app
        send $app "$records"
        within 10 seen $app 'quokka-record-49' || failed "$app: not all records come"
        captured seen_$app
    done
    expect "by http all is seen in the capture: the search finds it" \
        [ "$(in_clear seen_clear "${markers[@]}")" = "$(printf '%s\n' "${markers[@]}")" ]
    expect "by TLS 1.3 nothing is, either way" [ -z "$(in_clear seen_only13 "${markers[@]}" only13)" ]
    expect "nor by TLS 1.2" [ -z "$(in_clear seen_only12 "${markers[@]}" only12)" ]
    expect "but the server's name" [ "$(in_clear seen_only13 hook.test)$(in_clear seen_only12 hook.test)" = hook.testhook.test ]
    expect "the host ends" stop A
}

# B, whose ledger takes numbers.
far_host() {
    key B
    key A
    token[B]=wombat-token
    url[B]=http://10.99.0.2:7070
    printf '[host]\nname = far-potoroo\nhttp = 10.99.0.2:7070\ntoken = wombat-token\nstore = memory\nkey = B.key\n' >B.conf
    printf '[app ledger]\nmodule = %s/live/ledger.so\n' "$build" >>B.conf
    printf '[peer near-quokka]\nkey = %s\napps = ledger\n' "${public[A]}" >>B.conf
}

# near_host [LINE…]: A sends to B's ledger, in mode pure.
near_host() {
    host_section A >A.conf # here: it sets url[A]
    sed -i 's/^name = A/name = near-quokka/' A.conf
    {
        printf '[app okapi]\nmodule = %s/apps/relay.so\n[output okapi.out]\n' "$build"
        printf 'wire = http://10.99.0.2:7070\nmode = pure\napp = ledger\nevent = tapir-event\ntoken = wombat-token\n'
        [ $# -eq 0 ] || printf '%s\n' "$@"
    } >>A.conf
}

no_plaintext_in_sealed() {
    local first=314159265358970001
    local markers=(31415926535897 near-quokka okapi tapir-event wombat-token ledger pure-stream pure-epoch pure-first pure-count
        pure-stored vnd.pure.records)
    two_networks
    far_host
    near_host
    start B
    start A
    capture seen_clear
    feed A $first $((first + 99)) 100 okapi
    within 20 holds B $first $((first + 99)) || failed "nothing gets to B"
    captured seen_clear
    stop A || failed "the host does not end"
    slay B
    near_host "key = ${public[B]}"
    start B
    start A
    capture seen_sealed
    feed A $first $((first + 99)) 100 okapi
    within 20 holds B $first $((first + 99)) || failed "sealed, nothing gets to B"
    captured seen_sealed
    expect "a wire in mode pure without a key: all is seen in the capture" \
        [ "$(in_clear seen_clear "${markers[@]}")" = "$(printf '%s\n' "${markers[@]}")" ]
    expect "sealed, no record, name, number or token is, either way" [ -z "$(in_clear seen_sealed "${markers[@]}")" ]
    expect "but that it is sealed" [ "$(in_clear seen_sealed pure-sealed)" = pure-sealed ]
    expect "the host ends" stop A
}

# --- names ---

dead_address() {
    local now before
    two_networks
    own_names '10.99.0.9 race.test' '10.99.0.2 race.test'
    far_server plain 8080
    host_with wire race http://race.test:8080
    start A
    see_now
    before=$now
    send race 1
    within 3 seen plain '^POST' || failed "a name whose first address is dead gets nothing"
    see_now
    expect "a name whose first address is dead delivers in $((now - before)) ms, of $((500 * patience))" \
        [ $((now - before)) -le $((500 * patience)) ]
    expect "the host ends" stop A
}

names_apps() {
    wire moved http://moved.test:8080
    wire local http://printer.local:8080
}

names_change() {
    two_networks
    own_names '127.0.0.1 localhost' '127.0.0.3 printer.local'
    # shellcheck disable=SC2086
    for i in 1 2 3; do
        helper at$i ${inside[A]} "$build/live/receiver" 127.0.0.$i:8080 || failed "no receiver"
    done
    # shellcheck disable=SC2086
    helper before ${inside[A]} "$build/live/names" 127.0.0.53 127.0.0.1 || failed "no DNS server"
    # shellcheck disable=SC2086
    helper after ${inside[A]} "$build/live/names" 127.0.0.54 127.0.0.2 || failed "no DNS server"
    host_with names_apps
    start A
    send moved 1
    expect "a name by DNS" within 5 seen at1 '\|1 -- '
    send local 1
    expect "a .local name, by what the system's nss knows, and not by DNS" within 5 seen at3 '\|1 -- '
    echo 'nameserver 127.0.0.54' >resolv.conf
    slay before
    slay at1
    send moved 2
    expect "resolv.conf is read again: records go where the new server says" within 10 seen at2 '\|2 -- '
    expect "it was asked" seen after asked
    expect "four threads once names are known" within 15 threads_are A 4
    expect "the host ends" stop A
}

make_pki
# The long ones first. Under the sanitizers only those in which much of the product runs. ThreadSanitizer does not see
# io_uring close a descriptor: for it a file that then gets the same number, on another thread, is used in a race.
scenarios=("$@")
[ $# -gt 0 ] || scenarios=(names_change many refused interop)
[ $# -gt 0 ] || [ "$variant" = tsan ] || scenarios=(renewed "${scenarios[@]}")
[ $# -gt 0 ] || [ "$variant" != release ] || scenarios+=(proxied dead_ends no_plaintext_in_tls no_plaintext_in_sealed dead_address)
for i in "${!scenarios[@]}"; do
    [ "$(jobs -pr | wc -l)" -lt 8 ] || wait -n
    run_scenario "${scenarios[$i]}" $((40 * i))
done
wait
for scenario in "${scenarios[@]}"; do
    cat "$work/$scenario/result"
    grep -q '^ok  \|^skipped \|^FAILED ' "$work/$scenario/result" ||
        echo "FAILED  $variant wires, ${scenario//_/ }: it promised nothing"
done | tee "$work/all"
! grep -q '^FAILED' "$work/all"
