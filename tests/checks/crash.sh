#!/bin/bash
# crash.sh VARIANT [PART…]: hosts with stores, which are killed, lose their power, run out of disk (make VARIANT=…
# all live lossy). Prints "ok", "FAILED" or "skipped" a line for each promise, which check.sh counts; exit status 1 if
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
build=$PWD/build/$variant
KILLS=${KILLS:-1000}
SEED=${SEED:-$((RANDOM * 32768 + RANDOM))}
BACKLOG_MIB=${BACKLOG_MIB:-2048}

if [ -z "${CRASH_INSIDE:-}" ]; then
    for how in -m -Urm; do
        unshare $how true 2>/dev/null && CRASH_INSIDE=1 exec unshare $how "$0" "$@"
    done
    CRASH_INSIDE=0
fi
shift

work=$build/crash
mkdir -p "$work"
suite=crash
prefix=
patience=3
base_port=$((20000 + RANDOM % 10000))
# shellcheck source=tests/live/lib.sh
. tests/live/lib.sh

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

# What crash.c draws: one sends over all three kinds of outlets. $1, $2: their stores.
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
        printf '[output a.link]\nlink = 127.0.0.1:%d\nkey = %s\napp = b\n' "$link_port" "${public[two]}"
        printf '[output a.wire]\nwire = http://127.0.0.1:%d\nmode = pure\napp = c\n' "$two_port"
        printf '[output a.inner]\ninner = d\n'
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
        tee crash.log | sed 's/^/        /'
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

parts=("$@")
[ $# -gt 0 ] || parts=(kills lossy)
status=0
for i in "${!parts[@]}"; do
    part=${parts[$i]}
    rm -rf "${work:?}/$part"
    mkdir "$work/$part"
    (
        scenario=$part
        next_port=$((base_port + 20 * i))
        cd "$work/$part" || exit
        trap slay_all EXIT
        "$part"
    ) || status=1
done
exit $status
