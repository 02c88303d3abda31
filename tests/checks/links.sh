#!/bin/bash
# links.sh VARIANT [SCENARIO…]: links between real processes, over the real kernel (make VARIANT=… all live). Prints "ok", "FAILED" or "skipped"
# a line for each promise, which check.sh counts; exit status 1 if one failed. What is sent are numbers; B's app
# (tests/live/ledger.c) shows whether it has stored each once and in order, so each check of records is exact.
#
#     curl ──→ A: relay ── link ──────────────────────────────────────────→ B: ledger        plain, killed, …
#              A: relay ── link ──→ 127.0.0.1 nat (tests/live/nat.c) ─────→ B: ledger        its mappings change, die
#              A: relay ── link ──→ b.test, by a hosts file of A's own ───→ B: ledger        127.0.0.1, then 127.0.0.2
#              A: relay ── link ──→ TUN, path (experiments/path), TUN ────→ B: ledger        two network namespaces
#
# It runs in network and mount namespaces of its own; where those may not be made, or a device is lacking, the
# scenarios that need it say that they are skipped.
#
# Whether the kernel refuses segmentation offload (GSO) is its own affair: Linux before 6.11 does so on the
# TUN devices of `path`, which have no checksum offload; later ones do only under IPsec. So a refusal in
# mid-life is also made, for the host on the epoll back end, whose sends pass through the C library
# (tests/live/preload.c). For io_uring's own, tests/unit has the simulated back end.
set -u
variant=${1:?the variant}
suite=links
namespaces=mn
# shellcheck source=tests/live/lib.sh
. tests/live/lib.sh
shift

needs_namespaces() {
    [ "$inside_namespaces" = 1 ] || skipped "no network and mount namespaces may be made here"
}

# --- a process ends, and begins again ---

plain() {
    two_hosts
    start B
    start A
    feed A 1 20000
    expect "20000 records, each once and in order" within 20 holds B 1 20000
    feed A 20001 20200 5000
    expect "200 records larger than a packet" within 20 holds B 1 20200
    expect "an address is not looked up" metric_is A link_lookups_total -eq 0
    expect "the stored number reaches the sender" within 5 [ "$(settled stored A)" = 20200 ]
    "$build/pure-host" status --url "${url[A]}" >status.txt
    expect "the status names the link" grep -q "^127.0.0.1:$link_port  *[0-9.]*[mu]s" status.txt
    expect "the status shows the output" grep -q '^relay.out  *link  *ok .* 20200 ' status.txt
    expect "the sender ends" stop A
    expect "the receiver ends" stop B
    expect "nothing was a warning" [ "$(cat A.log B.log | grep -vc ' notice: ')" = 0 ]
}

receiver_killed() {
    two_hosts
    start B
    start A
    pour A 1 500 50
    within 20 reaches B 100 || failed "nothing gets to B"
    slay B
    local kept sessions
    kept=$(settled stored A)
    sessions=$(metric A link_handshakes_total)
    start B
    expect "records go on to a receiver that was killed and began anew" within 20 reaches B $((kept + 200))
    enough
    expect "what it had not stored comes, from $((kept + 1)) on, each once and in order" \
        within 20 holds B $((kept + 1)) "$poured"
    expect "by a new session" metric_is A link_handshakes_total -gt "$sessions"
    expect "the receiver says where it begins" within 5 said B "is new here and begins behind record $kept\$" 1
}

sender_killed() {
    two_hosts
    start B
    start A
    pour A 1 500 50
    within 20 reaches B 100 || failed "nothing gets to B"
    slay A
    enough
    local last
    last=$(settled ledger B last)
    start A
    feed A $((last + 1)) $((last + 1000))
    expect "a sender that was killed and began anew goes on" within 20 holds B 1 $((last + 1000))
    expect "the receiver says so, in one line" within 5 said B 'A/relay/out began anew' 1
}

stopped_under_load() {
    two_hosts
    start B
    start A
    pour A 1 500 200
    within 20 reaches B 200 || failed "nothing gets to B"
    expect "a receiver under load ends within 5 s, with status 0" stop B
    enough
    feed A $((poured + 1)) $((poured + 1000))
    local left=$((poured + 1000 - $(settled stored A)))
    expect "a sender whose peer is gone ends within 5 s, with status 0" stop A
    expect "and says how much was not delivered: $left" \
        within 5 said A "output relay.out: $left records were not delivered" 1
}

# --- the way changes ---

name_moved() {
    needs_namespaces
    two_hosts b.test 127.0.0.2
    echo '127.0.0.1 b.test' >hosts
    helper before "$build/live/nat" "$link_port" 127.0.0.2 "$link_port" || failed "no nat"
    start B
    with[A]="unshare -m ./with_hosts"
    printf '#!/bin/sh\nmount --bind hosts /etc/hosts && exec "$@"\n' >with_hosts
    chmod +x with_hosts
    start A
    pour A 1 500 50
    within 20 reaches B 100 || failed "nothing gets to B"
    echo '127.0.0.2 b.test' >hosts
    slay before
    expect "records follow the name to its new address" within 15 reaches B $(($(settled ledger B last) + 200))
    enough
    expect "each once and in order" within 20 holds B 1 "$poured"
    expect "after a lookup" metric_is A link_lookups_total -ge 2
    expect "the sender has four threads once names are known" within 15 threads_are A 4
}

behind_nat() {
    two_hosts
    new_port
    sed -i "s/^link = .*/link = 127.0.0.1:$port/" A.conf
    helper nat "$build/live/nat" "$port" 127.0.0.1 "$link_port" || failed "no nat"
    start B
    start A
    pour A 1 500 50
    within 20 reaches B 100 || failed "nothing gets to B"
}

nat_rebinds() {
    behind_nat
    for _ in 1 2 3; do
        tell nat rebind >/dev/null
        expect "records go on from another port of the NAT" within 5 reaches B $(($(ledger B last) + 200))
    done
    enough
    expect "each once and in order" within 20 holds B 1 "$poured"
}

nat_entry_dies() {
    behind_nat
    tell nat dead >/dev/null
    expect "records go on by another source port" within 20 reaches B $(($(settled ledger B last) + 200))
    enough
    expect "each once and in order" within 20 holds B 1 "$poured"
    expect "the sender took a new port" metric_is A link_ports_total -ge 2
    expect "the NAT saw it" [ "$(tell nat mappings)" -ge 2 ]
}

# $1: on or off, ICMP; $2: the MTU at first. The MTU is cut to 1280 in mid-transfer.
path_mtu_cut() {
    local from_ns to_ns
    needs_namespaces
    [ -c /dev/net/tun ] || skipped "no /dev/net/tun"
    helper path "$build/bench/path" mtu "$2" icmp "$1" rate 20 delay 5 || skipped "no TUN device: $(tail -n 1 path.log)"
    read -r _ from_ns _ to_ns <<<"$first_line"
    inside[A]="nsenter --net=$from_ns"
    inside[B]="nsenter --net=$to_ns"
    two_hosts 10.77.0.2
    start B
    start A
    pour A 1 1000 400
    within 20 metric_is A link_datagram_bytes -gt $(($2 * 9 / 10)) || failed "a path of $2 bytes is not found"
    tell path mtu 1280 >/dev/null
    expect "from $2 to 1280: records go on" within 20 reaches B $(($(ledger B last) + 1000))
    expect "datagrams fit" metric_is A link_datagram_bytes -le 1252
    enough
    expect "each once and in order" within 20 holds B 1 "$poured"
    tell path report >report.json
    if [ "$(metric A link_segmentation)" = 1 ]; then
        expect "segmentation: this kernel does it for a device without offload" within 5 said A 'does not segment' 0
    else
        expect "segmentation: this kernel refuses it, said once" within 5 said A 'does not segment' 1
    fi
}

mtu_cut_silently() {
    path_mtu_cut off 9000
}

mtu_cut_with_icmp() {
    path_mtu_cut on 1500
}

# --- offload ---

# The loopback device takes larger ones than there are batches of.
small_datagrams() {
    sed -i 's/^link = .*/&\nmtu = 1400/' A.conf
}

# Software then cuts batches up, and nothing that was cut is put together again: what the kernel hands over is as many
# as B opens. In a network of its own, where nobody else's datagrams are counted.
offload_switched_off() {
    local taken opened
    needs_namespaces
    helper net unshare -n sh -c "'$build/live/device' lo up && echo ready && exec sleep 600" || failed "no network"
    inside[A]="nsenter --net=/proc/${pid[net]}/ns/net"
    inside[B]=${inside[A]}
    two_hosts
    small_datagrams
    start B
    start A
    pour A 1 500 400
    within 20 reaches B 100 || failed "nothing gets to B"
    set_offload off || skipped "the features of lo cannot be set"
    expect "records go on when GSO and GRO of the device are switched off" \
        within 10 reaches B $(($(ledger B last) + 2000))
    enough
    within 20 holds B 1 "$poured" || failed "with GSO and GRO of the device off records are lost"
    count_datagrams
    feed A $((poured + 1)) $((poured + 2000)) 500
    expect "each once and in order" within 20 holds B 1 $((poured + 2000))
    expect "each datagram arrives alone then" see_batches -ge
    set_offload on
    feed A $((poured + 2001)) $((poured + 4000)) 500
    expect "and with them on again" within 20 holds B 1 $((poured + 4000))
    expect "in batches" see_batches -lt
}

set_offload() {
    ${inside[A]} "$build/live/device" lo tx-udp-segmentation "$1" && ${inside[A]} "$build/live/device" lo rx-gro "$1"
}

# What this network's sockets were handed, in `taken`, and what B found in that, in `opened`.
count_datagrams() {
    taken=$(awk '/^Udp: [0-9]/ {print $2}' "/proc/${pid[B]}/net/snmp")
    opened=$(metric B listen_datagrams_total)
}

# see_batches -lt|-ge: how what was handed over since count_datagrams compares with what was in it.
see_batches() {
    local taken_before=$taken opened_before=$opened
    count_datagrams
    [ $((taken - taken_before)) "$1" $((opened - opened_before)) ]
}

segments_refused() {
    two_hosts
    small_datagrams
    program[A]=$build/bench/pure-host-epoll
    with[A]="env LD_PRELOAD=$build/live/preload.so LIVE_SEGMENTS=$work/segments_refused/refused"
    start B
    start A
    pour A 1 500 200
    within 20 reaches B 200 || failed "nothing gets to B"
    expect "batches leave in one send" metric_is A link_segmentation -eq 1
    touch refused
    expect "refused in mid-life (epoll back end): records go on" within 5 reaches B $(($(ledger B last) + 400))
    enough
    expect "each once and in order" within 20 holds B 1 "$poured"
    expect "no more batches, and one line" \
        [ "$(metric A link_segmentation) $(lines_of A 'does not segment')" = "0 1" ]
}

# --- clocks, keys, what is dead ---

clock_off() {
    two_hosts
    start B
    with[A]="env LD_PRELOAD=$build/live/preload.so LIVE_CLOCK_S=315360000"
    start A
    feed A 1 1000
    expect "a sender whose clock is ten years ahead delivers" within 20 holds B 1 1000
    expect "its log is of then" grep -q "^$(($(date +%Y) + 10))-\|^$(($(date +%Y) + 9))-" A.log
    slay A
    with[A]="env LD_PRELOAD=$build/live/preload.so LIVE_CLOCK_S=-$(date +%s)"
    start A
    feed A 1001 2000
    expect "then one that wakes in 1970, to the same receiver" within 20 holds B 1 2000
    expect "its log is of then" grep -q '^1970-' A.log
    slay B
    with[B]="env LD_PRELOAD=$build/live/preload.so LIVE_CLOCK_S=-315360000"
    start B
    feed A 2001 3000
    expect "a receiver that wakes ten years ago, with sessions lost" within 20 holds B 2001 3000
}

unknown_key() {
    key other
    two_hosts
    sed -i "s|^key = ${public[A]}|key = ${public[other]}|" B.conf
    start B
    start A
    feed A 1 10
    within 20 metric_is B listen_datagrams_total -ge 3 || failed "nothing gets to B"
    expect "an unknown key gets no answer" metric_is B listen_sent_total -eq 0
    expect "its records stay" [ "$(stored A) $(ledger B records)" = "0 0" ]
    expect "one line names it" within 5 said B 'a host that is not let in' 1
    expect "with its key" grep -qF "${public[A]}" B.log
}

# A host with one good link and three dead ones, all along: for as long as the other scenarios take.
dead_beside() {
    local seconds=10
    key A
    key B
    key gone
    key hole
    key nameless
    new_port
    local link_port=$port gone_port
    receiver B "127.0.0.1:$link_port" A
    sender A "127.0.0.1:$link_port" "${public[B]}"
    new_port
    gone_port=$port
    receiver gone "127.0.0.1:$gone_port" A
    sending_app gone "127.0.0.1:$gone_port" "${public[gone]}" >>A.conf
    new_port
    helper nat "$build/live/nat" "$port" 127.0.0.1 1 || failed "no nat"
    tell nat hole >/dev/null
    sending_app hole "127.0.0.1:$port" "${public[hole]}" >>A.conf
    sending_app nameless "nowhere.invalid:$port" "${public[nameless]}" >>A.conf
    start B
    start A
    for app in gone hole nameless; do
        feed A 1 1000 100 $app
    done
    # so much that each page of the rings of relay and of its output has been touched before memory is looked at
    local i
    for ((i = 0; i < 10; i++)); do
        feed A $((500 * i + 1)) $((500 * i + 500)) 2000
    done
    within 20 reaches B 5000 || failed "a link beside dead ones does not deliver"
    pour A 5001 100 50
    local before_kb after_kb files now end last
    before_kb=$(resident_kb A)
    files=$(files_of A)
    see_now
    end=$((now + seconds * 1000))
    while see_now && [ "$now" -lt $end ]; do
        last=$(ledger B last)
        within 5 reaches B $((last + 50)) || failed "dead links hold the good one up"
    done
    ok "the good link delivers all along, beside three dead ones"
    enough
    expect "each once and in order" within 5 holds B 1 "$poured"
    expect "descriptors do not grow" within 5 files_at_most A "$files"
    after_kb=$(resident_kb A)
    [ "$variant" = release ] &&
        expect "memory does not grow: $before_kb to $after_kb KiB" [ "$after_kb" -le $((before_kb + 256)) ]
    expect "each dead link is one line in the log" within 40 said A 'it is tried again for ever' 3
    start gone # it is tried 1, 3, 7, 15, 31 and 63 s after the first time
    expect "a peer that was not there at all gets everything, once it is" within 40 holds gone 1 1000
    expect "with a backlog to dead peers it ends within 5 s, with status 0" stop A
    expect "and says how much was not delivered" \
        [ "$(lines_of A 'output hole.out: 1000 records were not delivered')$(lines_of A \
            'output nameless.out: 1000 records were not delivered')" = 11 ]
}

resident_kb() {
    sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/${pid[$1]}/status"
}

files_of() {
    ls "/proc/${pid[$1]}/fd" | wc -l
}

# A link that takes a new port has two sockets for a moment.
files_at_most() {
    [ "$(files_of "$1")" -le "$2" ]
}

# --- what a process is made of ---

threads() {
    two_hosts
    start B
    expect "a host without outlets that listens for links has four threads" threads_are B 4
    { host_section C; printf '[app relay]\nmodule = %s/apps/relay.so\n' "$build"; } >C.conf
    sed -i '/^key/d' C.conf
    start C
    expect "one without links and wires has three" threads_are C 3
    new_port
    sed -i "s/^store/link = 127.0.0.1:$port\nstore/" A.conf
    for output in log cloud; do
        key $output
        new_port
        printf '[output relay.%s]\nlink = 127.0.0.1:%d\nkey = %s\napp = ledger\n' $output "$port" "${public[$output]}"
    done >>A.conf
    printf '[output relay.next]\nwire = http://127.0.0.1:1\n' >>A.conf
    start A
    feed A 1 100
    within 20 holds B 1 100 || failed "nothing gets to B"
    expect "one with links both ways and a wire has five" threads_are A 5
}

# Two of the links on pure-send, one on pure-send-2; the name of one is never found, that of the others is looked up by both.
two_loops() {
    two_hosts
    key C
    key nameless
    new_port
    local other_port=$port
    receiver C "127.0.0.1:$other_port" A
    sed -i "s/127.0.0.1:$link_port/localhost:$link_port/; s/^store/loops = 2\nstore/" A.conf
    sending_app other "localhost:$other_port" "${public[C]}" >>A.conf
    sending_app lost "nowhere.invalid:$other_port" "${public[nameless]}" >>A.conf
    start B
    start C
    start A
    feed A 1 1000 100 lost
    pour A 1 200 50
    feed A 1 10000 20 other
    expect "the second loop's records, each once and in order" within 20 holds C 1 10000
    enough
    expect "the first's, beside a link without an address" within 20 holds B 1 "$poured"
    expect "both loops have worked" loops_of A 2
    expect "one more thread" within 10 threads_are A 5
    expect "with a backlog on one loop it ends within 5 s, with status 0" stop A
    expect "and says how much was not delivered" [ "$(lines_of A 'output lost.out: 1000 records were not delivered')" = 1 ]
    expect "the receivers end" eval 'stop B && stop C'
}

loops_of() {
    [ "$(web "$1" /metrics | grep -c '^pure_io_sqes_total{loop="pure-send\(-[0-9]*\)\?"} [1-9]')" = "$2" ]
}

checks() { # NAME EXIT_STATUS TEXT
    "$build/pure-host" check -c "$1.conf" >check.txt 2>&1
    [ $? -eq "$2" ] && { [ -z "$3" ] || grep -qF -- "$3" check.txt; }
}

bad_key_files() {
    two_hosts
    expect "a right configuration and key" checks A 0 ''
    chmod 644 A.key
    expect "a key that others may read" checks A 2 'A.key: others than its owner have access to it (mode 644)'
    chmod 600 A.key
    echo damaged >A.key
    expect "a damaged key file" checks A 2 'A.key: holds no host key, or a damaged one'
    rm A.key
    expect "no key file" checks A 2 'A.key: cannot be read: No such file or directory'
    mkdir A.key
    expect "a directory" checks A 2 'A.key: '
    expect "key new replaces nothing" eval '! "$build/pure-host" key new B.key >/dev/null 2>&1'
}

# The long ones first. Under the sanitizers only those in which much happens that has to be undone or freed.
scenarios=("$@")
[ $# -gt 0 ] || scenarios=(dead_beside receiver_killed name_moved nat_entry_dies mtu_cut_silently sender_killed
    two_loops stopped_under_load nat_rebinds unknown_key)
[ $# -gt 0 ] || [ "$variant" != release ] || scenarios+=(mtu_cut_with_icmp clock_off plain offload_switched_off
    segments_refused threads bad_key_files)
for i in "${!scenarios[@]}"; do
    [ "$(jobs -pr | wc -l)" -lt 8 ] || wait -n
    run_scenario "${scenarios[$i]}" $((20 * i))
done
wait
for scenario in "${scenarios[@]}"; do
    cat "$work/$scenario/result"
    grep -q '^ok  \|^skipped \|^FAILED ' "$work/$scenario/result" ||
        echo "FAILED  $variant links, ${scenario//_/ }: it promised nothing"
done | tee "$work/all"
! grep -q '^FAILED' "$work/all"
