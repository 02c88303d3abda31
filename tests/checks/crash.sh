#!/bin/bash
# shellcheck disable=SC2317,SC2016,SC2015,SC2034,SC2154,SC1091,SC2086 # parts are called by their names, eval gets
# its text as it is, lib.sh has its part of the variables
# crash.sh VARIANT [PART…]: hosts with stores, which are killed, lose their power, run out of disk (make check-crash
# builds what it needs). Prints "ok", "FAILED" or "skipped" a line for each promise, which check.sh counts; exit status 1 if
# one failed. What is left of a part that failed stays in build/VARIANT/crash/PART.
#
#     kills    two hosts are killed KILLS times; tests/live/crash.c posts, kills and judges
#     lossy    the same, and each time the disks lose their power with what was not synced (tests/live/lossyfs.c)
#     full     a disk runs full, and is freed
#     broken   a disk fails to sync; is read-only for a time
#     backlog  a backlog of BACKLOG_MIB in little memory, with few descriptors
#
# KILLS, SEED, BACKLOG_MIB come from the environment. It runs in a mount namespace of its own.
set -u
variant=${1:?the variant}
KILLS=${KILLS:-1000}
SEED=${SEED:-$((RANDOM * 32768 + RANDOM))}
BACKLOG_MIB=${BACKLOG_MIB:-2048}
work=$PWD/build/$variant/crash
mkdir -p "$work"
suite=crash
namespaces=m
# shellcheck source=tests/live/lib.sh
. tests/live/lib.sh
shift

# --- what parts need ---

# A disk that loses what was not synced, mounted at directory `disk`; it is told what to do as helper `lossy`.
lossy_disk() {
    mkdir disk
    helper lossy "$build/live/lossyfs" disk && [ "$first_line" = ready ]
}

needs_lossyfs() {
    [ -x "$build/live/lossyfs" ] || skipped "tests/live/lossyfs.c is not built: libfuse3-dev is not installed"
    [ -c /dev/fuse ] || skipped "there is no /dev/fuse here"
    mkdir probe
    local said
    said=$("$build/live/lossyfs" probe 2>&1 </dev/null)
    [ "$said" = ready ] || skipped "no FUSE file system may be mounted here: $said"
}

# section_of NAME STORE: its [host] section, with a key and a store.
stored_section() {
    host_section "$1" | sed "s|^store = .*|store = $2|"
    printf 'segment = 256K\n'
}

ledger_app() {
    printf '[app %s]\nmodule = %s/live/ledger.so\n' "$1" "$build"
}

# What crash.c draws: one sends over all three kinds of outlets. $1, $2: their stores. Queues and backlogs are
# small, so that records are on the disk only and come back from there, and `a` waits for room now and then.
ledgers() {
    local one_port two_port
    key one
    key two
    stored_section one "$1" >one.conf
    stored_section two "$2" >two.conf
    one_port=$next_port
    two_port=$((next_port + 1))
    next_port=$((next_port + 2))
    link_port=$next_port
    sed -i "s|^http = .*|http = 127.0.0.1:$one_port|" one.conf
    sed -i "s|^http = .*|http = 127.0.0.1:$two_port\nlink = 127.0.0.1:$link_port|" two.conf
    {
        ledger_app a
        ledger_app d
        printf '[output a.link]\nlink = 127.0.0.1:%d\nkey = %s\napp = b\nqueue = 128K\nbacklog = 1M\n' "$link_port" "${public[two]}"
        printf '[output a.wire]\nwire = http://127.0.0.1:%d\nmode = pure\napp = c\nqueue = 128K\nbacklog = 4M\n' "$two_port"
        printf '[output a.inner]\ninner = d\nqueue = 128K\n'
    } >>one.conf
    {
        ledger_app b
        ledger_app c
        printf '[peer one]\nkey = %s\napps = b\n' "${public[one]}"
    } >>two.conf
    hosts="one.conf $one_port two.conf $two_port"
}

# crash [LOSSYFS …]: the run; its output is shown as it comes.
crash() {
    echo "        replay: make check-crash PART=$scenario KILLS=$KILLS SEED=$SEED"
    # shellcheck disable=SC2086
    "$build/live/crash" kills "$build/pure-host" "$SEED" "$KILLS" $((60 + 2 * KILLS)) $hosts "$@" |
        tee crash.log | sed -u 's/^/        /'
    return "${PIPESTATUS[0]}"
}

# --- the parts ---

kills() {
    ledgers store.one store.two
    expect "$KILLS SIGKILLs: everything everywhere, once and in order" crash
    for name in one two; do
        expect "fsck finds nothing wrong with the store of host $name" "$build/pure-host" fsck store.$name
    done
}

lossy() {
    needs_lossyfs
    mkdir disk.one disk.two
    ledgers disk.one/store disk.two/store
    expect "$KILLS power cuts: everything everywhere, once and in order" \
        crash "$build/live/lossyfs" disk.one disk.two
}

# --- a disk without room, or broken ---

#     crash post ──→ A: relay ── link ──→ B: ledger       A's store is on the disk of lossyfs
disk_under_load() {
    needs_lossyfs
    lossy_disk || failed "no disk"
    two_hosts
    sed -i 's|^store = .*|store = disk/store\nsegment = 256K|' A.conf
    echo 'queue = 64K' >>A.conf # what is beyond is on the disk only
    sed -i 's|^store = .*|store = store.B|' B.conf
}

# post FROM TO BYTES COUNT: in the background, to A; each request goes again until it is acknowledged.
post() {
    "$build/live/crash" post "${url[A]##*:}" relay "$@" >posted 2>>posted.log &
    pid[poster]=$!
}

acknowledged() {
    tail -n 1 posted 2>/dev/null
}

acknowledges() { # NUMBER
    [ "$(($(acknowledged)))" -ge "$1" ]
}

suspended() {
    [[ $(web "$1" /status) == *'"condition":"suspended"'* ]]
}

refuses() {
    local code reply
    http "$1" /apps/relay/events/e 0
    [ "$code" = 503 ]
}

whole() { # NUMBER: B has all up to there, and nothing twice or in disorder
    local last
    last=$(ledger B last)
    [ "$((last))" -ge "$1" ] && holds B 1 "$last"
}

full() {
    local taken
    disk_under_load
    tell lossy limit $((16 << 20)) >/dev/null
    start A
    post 1 20000 500 20
    within 10 acknowledges 2000 || failed "nothing is taken"
    cat /dev/zero >disk/filler 2>/dev/null
    expect "a full disk: the host says so, in one line" within 20 said A 'no place on the disk: No space left' 1
    taken=$(settled acknowledged)
    expect "and takes no more: $taken of 20000" [ "$taken" -lt 20000 ]
    start B
    expect "what was stored before goes out meanwhile" within 20 reaches B "$taken"
    slay B
    slay A
    cat /dev/zero >>disk/filler 2>/dev/null
    start A
    start B
    expect "it starts with a full disk, and nothing is lost" within 20 whole "$taken"
    rm disk/filler
    expect "once there is room, it goes on by itself" within 30 acknowledges 20000
    expect "everything is there, once and in order" within 20 holds B 1 20000
    expect "it ends in time" stop A
}

broken() {
    local taken
    disk_under_load
    start B
    start A
    post 1 1000000 100 20
    within 10 reaches B 500 || failed "nothing gets to B"
    tell lossy fail 1 >/dev/null
    expect "a sync fails: the host says so, in one line" within 10 said A 'writing failed: Input/output error' 1
    expect "its app takes no more events, and the status says so" within 5 suspended A
    expect "events are refused" refuses A
    expect "the health says so" eval '! healthy A'
    taken=$(settled acknowledged)
    expect "what was acknowledged goes out all the same" within 10 whole "$taken"
    slay A
    tell lossy cut "$SEED" >/dev/null
    tell lossy on >/dev/null
    start A
    expect "a start after a power cut recovers" within 20 acknowledges $((taken + 2000))
    tell lossy readonly 1 >/dev/null
    expect "a disk that is read-only: nothing more is acknowledged" eval '[ "$(settled acknowledged)" -gt 0 ]'
    taken=$(acknowledged)
    expect "what was acknowledged goes out all the same" within 10 whole "$taken"
    tell lossy readonly 0 >/dev/null
    if suspended A; then
        slay A
        start A
    fi
    expect "it goes on when the disk is writable again" within 20 acknowledges $((taken + 2000))
    slay poster
    expect "everything is there, once and in order" within 20 whole "$(acknowledged)"
    expect "it ends in time" stop A
    "$build/pure-host" fsck disk/store >fsck.log 2>&1 # its exit status tells of what the broken disk has lost
    expect "fsck reads the store: $(tail -n 1 fsck.log)" [ -s fsck.log ]
}

# --- far more than memory ---

MEMORY_KB=65536

# Where there is a hierarchy of cgroups v2 with memory that is ours to divide, the kernel sets the limit. Sets `limit`.
limit_memory() {
    local group=/sys/fs/cgroup/pure-crash-$$
    limit="as measured: no cgroup v2 with a memory controller can be made here"
    printf '#!/bin/sh\nexec prlimit --nofile=64:64 "$@"\n' >limited
    if grep -qsw memory /sys/fs/cgroup/cgroup.subtree_control && mkdir $group 2>/dev/null; then
        echo $((MEMORY_KB * 1024)) >$group/memory.max
        echo 0 >$group/memory.swap.max 2>/dev/null
        sed -i "2i echo \$\$ >$group/cgroup.procs" limited
        limit="by memory.max"
        trap 'slay_all; rmdir '$group EXIT
    fi
    chmod +x limited
    with[A]=./limited
}

# Prints every 0.1 s what memory A has of its own: what maps files is the kernel's to take.
sample_memory() {
    while sed -n 's/^Rss\(Anon\|Shmem\):[^0-9]*\([0-9]*\).*/\2/p' "/proc/$1/status" 2>/dev/null | awk '{n += $1} END {print n; exit NR == 0}'; do
        rest 0.1
    done
}

# The most of lines $2 to $3 of file $1.
most() {
    sed -n "$2,$3p" "$1" | sort -n | tail -n 1
}

backlog() {
    local records=$((BACKLOG_MIB * 64)) begun now samples
    [ "$(df --output=avail -m . | tail -n 1)" -gt $((BACKLOG_MIB * 2)) ] || skipped "no $((BACKLOG_MIB * 2)) MiB on the disk"
    two_hosts
    sed -i 's|^store = .*|store = store.A|' A.conf
    echo 'backlog = 4G' >>A.conf
    start A
    post 1 "$records" 16384 60
    expect "$BACKLOG_MIB MiB are taken while the receiver is away" within 100 acknowledges "$records"
    slay A
    limit_memory
    see_now
    begun=$now
    start A
    see_now
    expect "ready after $((now - begun)) ms, with 64 descriptors" [ $((now - begun)) -lt 10000 ]
    sample_memory "${pid[A]}" >memory &
    pid[sampler]=$!
    start B
    expect "all of it gets to the receiver, once and in order" within 100 holds B 1 "$records"
    see_now
    samples=$(wc -l <memory)
    expect "at most $(most memory 1 '$') KiB of memory, $limit" [ "$(most memory 1 '$')" -lt $MEMORY_KB ]
    expect "the second half of the way takes no more than the first" \
        [ "$(most memory $((samples / 2)) '$')" -le $(($(most memory 1 $((samples / 2))) + 4096)) ]
    expect "the segments go" within 20 eval '[ "$(ls store.A | grep -c journal$)" -le 6 ]'
    expect "it ends in time" stop A
}

# What lossyfs leaves behind if it is killed; in a namespace of its own it would go by itself, later.
unmount() {
    local at
    for at in "$@"; do
        grep -qs " $PWD/$at fuse" /proc/mounts || continue
        umount -l "$at" 2>/dev/null || fusermount3 -uqz "$at"
    done
}

parts=("$@")
[ $# -gt 0 ] || parts=(kills lossy full broken backlog)
status=0
for i in "${!parts[@]}"; do
    part=${parts[$i]}
    rm -rf "${work:?}/$part"
    mkdir "$work/$part" || exit
    (
        scenario=$part
        next_port=$((base_port + 20 * i))
        cd "$work/$part" || exit
        trap 'slay_all; unmount disk disk.one disk.two probe' EXIT
        "$part"
    ) && rm -rf "${work:?}/$part" || status=1
done
exit $status
