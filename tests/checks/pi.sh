#!/bin/bash
# pi.sh [KERNEL…]: `make check-pi`. The tests on the kernels that the product is for and this machine does not run, each in a
# machine that qemu emulates: no hardware, no KVM, and slow for it. Each cmocka test and each promise of tests/pi/host.sh counts
# as one; the last line is "N passed, N failed". ONLY, a regular expression, picks programs.
#
# Debian's kernels and the arm64 libraries come from where this machine's own packages come from, by an apt configuration that
# lies in build/pi as all else here does: the machine gets no foreign architecture. They are fetched once; `rm -r build/pi/apt`
# has them fetched anew. Every program is built as it is released, for arm64 by Debian's cross compiler.
set -u
make=${MAKE:-make}
# What the Makefile's lists say is needed to build and test, without what is only for this machine.
libraries=${PI_LIBRARIES:?the packages of the arm64 libraries}
# NAME VERSION FLAVOUR ARCHITECTURE of Debian's kernels.
kernels="
6.1-arm64-4k 6.1 arm64 arm64
6.12-arm64-16k 6.12 arm64-16k arm64
6.1-amd64 6.1 amd64 amd64"
# Worlds of many seeds or many hours: they have the same answer on each kernel, and take hours when emulated.
left_out='_(storm|credit|paths|restarts|outage)$'
guest_s=1500 # for a whole guest; on an idle machine it takes a fourth of it
root=$PWD/build/pi
PATH=$PATH:/usr/sbin:/sbin # depmod and mkfs are there
passed=0
failed=0

die() {
    echo "FAILED  check-pi: $*"
    exit 1
}

# --- fetching ---

with_apt() {
    APT_CONFIG=$root/apt/apt.conf "$@"
}

# The suites of this machine's release, as its own configuration has them, and the backports beside the first.
write_sources() {
    local release uri suite key=
    release=$(. /etc/os-release && echo "$VERSION_CODENAME")
    [ -e /usr/share/keyrings/debian-archive-keyring.gpg ] && key='[signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] '
    apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' | while read -r uri suite; do
        case $suite in
        "$release") printf "deb $key%s %s main\n" "$uri" "$suite" "$uri" "$suite-backports" ;;
        "$release"-*) printf "deb $key%s %s main\n" "$uri" "$suite" ;;
        esac
    done | sort -u >"$root/apt/sources.list"
    [ -s "$root/apt/sources.list" ] || die "no apt source of this machine has the suite '$release'"
}

# An empty status file: apt takes nothing as installed, and so fetches all that a package needs.
set_up_apt() {
    mkdir -p "$root"/apt/state/lists/partial "$root"/apt/cache/archives/partial
    : >"$root/apt/status"
    write_sources
    cat >"$root/apt/apt.conf" <<END
Dir::State "$root/apt/state";
Dir::State::status "$root/apt/status";
Dir::Cache "$root/apt/cache";
Dir::Etc::sourcelist "$root/apt/sources.list";
Dir::Etc::sourceparts "-";
APT::Architecture "arm64";
APT::Architectures { "arm64"; "amd64"; };
APT::Sandbox::User "root";
END
    with_apt apt-get update -q -o APT::Update::Error-Mode=any >"$root/apt/update.log" 2>&1 ||
        die "the package lists cannot be fetched: $(grep -m 1 '^[EW]:' "$root/apt/update.log")"
}

fetch_sysroot() {
    with_apt apt-get install -q -y -d --no-install-recommends $libraries busybox-static >"$root/apt/sysroot.log" 2>&1 ||
        die "the arm64 libraries cannot be fetched: $(grep -m 1 '^E:' "$root/apt/sysroot.log")"
    rm -rf "$root/sysroot"
    mkdir "$root/sysroot"
    for package in "$root"/apt/cache/archives/*.deb; do
        dpkg-deb -x "$package" "$root/sysroot" || die "$(basename "$package") cannot be unpacked"
    done
}

# fetch_kernel NAME VERSION FLAVOUR ARCHITECTURE: the newest there is of this version.
fetch_kernel() {
    local package
    package=$(with_apt apt-cache pkgnames linux-image- | grep -E "^linux-image-${2/./\\.}\.[^-]*(-[0-9]+)?-$3$" | sort -V | tail -n 1)
    [ -n "$package" ] || die "no linux-image-$2.*-$3 in: $(cut -d ' ' -f 3- "$root/apt/sources.list" | paste -sd ';')"
    rm -rf "$root/kernels/$1"
    mkdir -p "$root/kernels/$1"
    (cd "$root/kernels/$1" && with_apt apt-get download -q "$package:$4" && dpkg-deb -x ./*.deb . && rm ./*.deb) \
        >"$root/apt/$1.log" 2>&1 || die "$package cannot be fetched: $(grep -m 1 '^E:' "$root/apt/$1.log")"
}

# What is there stays, unless other libraries or kernels are wanted.
fetch() {
    local wanted="$libraries $kernels"
    [ "$(cat "$root/apt/fetched" 2>/dev/null)" != "$wanted" ] || return
    echo "fetching arm64 libraries and kernels (250 MB)"
    set_up_apt
    fetch_sysroot
    while read -r -u 9 line; do
        fetch_kernel $line
    done 9<<<"${kernels#?}"
    echo "$wanted" >"$root/apt/fetched"
}

# --- building ---

tests() {
    local source
    for source in tests/unit/test_*.c; do
        basename "$source" .c
    done | grep -vE "$left_out" | grep -E "${ONLY:-}"
}

# build ARCHITECTURE: with the warnings and as the errors of every build.
build() {
    local b=build/release log=$root/build-$1.log options=()
    if [ "$1" = arm64 ]; then
        b=build/pi/arm64
        options=("B=$b" "CC=aarch64-linux-gnu-gcc --sysroot=$root/sysroot" AR=aarch64-linux-gnu-ar)
    fi
    if ! $make VARIANT=release "${options[@]}" all $(tests | sed "s|^|$b/tests/|") >"$log" 2>&1; then
        echo "FAILED  build $1"
        tail -n 100 "$log"
        failed=$((failed + 1))
        return 1
    fi
    echo "ok      build $1"
    passed=$((passed + 1))
}

# --- what a guest starts with ---

# The directories that ARCHITECTURE's libraries lie in, and where its programs look for them.
library_directories() {
    if [ "$1" = arm64 ]; then
        echo "$root/sysroot/lib/aarch64-linux-gnu $root/sysroot/usr/lib/aarch64-linux-gnu"
    else
        echo "/lib/x86_64-linux-gnu /usr/lib/x86_64-linux-gnu"
    fi
}

# add_libraries ARCHITECTURE FROM TO: what the programs below FROM are linked with, and what that is. libgcc_s is what a
# thread's end is looked up in.
add_libraries() {
    local known=' ' queue name path directories
    directories=$(library_directories "$1")
    mkdir -p "$3"
    queue=(libgcc_s.so.1 $(needed_by $(find "$2" -type f)))
    while [ ${#queue[@]} -gt 0 ]; do
        name=${queue[0]}
        queue=("${queue[@]:1}")
        case $known in *" $name "*) continue ;; esac
        known+="$name "
        for path in $directories; do
            [ -e "$path/$name" ] || continue
            cp -L "$path/$name" "$3/"
            queue+=($(needed_by "$path/$name"))
            continue 2
        done
        die "no $name for $1 in $directories"
    done
}

needed_by() {
    readelf -d "$@" 2>/dev/null | sed -n 's/.*(NEEDED).*\[\(.*\)\].*/\1/p' | sort -u | paste -sd ' '
}

# add_modules NAME TO: what it takes to have an ext4 file system on a virtual disk, in its order.
add_modules() {
    local base=$root/kernels/$1 version module
    version=$(basename "$base"/lib/modules/*)
    mkdir -p "$2"
    depmod -b "$base" "$version"
    for module in virtio_pci virtio_blk ext4; do
        modprobe -d "$base" -S "$version" --show-depends $module
    done | sed -n 's/^insmod \([^ ]*\).*/\1/p' | awk '!seen[$0]++' | while read -r module; do
        cp "$module" "$2/"
        module=$(basename "$module")
        case $module in *.xz) unxz "$2/$module" ;; esac
        echo "${module%.xz}"
    done >"$2/order"
    grep -q '^ext4.ko$' "$2/order" || die "the kernel $1 has no module ext4"
}

# make_guest NAME ARCHITECTURE: build/pi/NAME/initramfs, and a disk.
make_guest() {
    local guest=$root/$1 tree=$root/$1/tree b=build/release strip=strip busybox=/bin/busybox name
    if [ "$2" = arm64 ]; then
        b=build/pi/arm64
        strip=aarch64-linux-gnu-strip
        busybox=$root/sysroot/bin/busybox
    fi
    rm -rf "$guest"
    mkdir -p "$tree"/{bin,dev,etc,proc,sys,tmp,tests,pure/apps}
    cp "$busybox" "$tree/bin/busybox"
    for name in $(tests); do
        $strip -o "$tree/tests/$name" "$b/tests/$name"
    done
    $strip -o "$tree/pure/pure-host" $b/pure-host
    cp $b/apps/*.so "$tree/pure/apps/"
    cp docs/examples/demo.conf "$tree/pure/"
    cp tests/pi/{init,run,host.sh} "$tree/"
    chmod 755 "$tree/init"
    echo '127.0.0.1 localhost' >"$tree/etc/hosts"
    echo 'root:x:0:0::/:/bin/sh' >"$tree/etc/passwd"
    add_libraries "$2" "$tree" "$tree/lib"
    if [ "$2" = amd64 ]; then
        mkdir "$tree/lib64"
        ln -s ../lib/ld-linux-x86-64.so.2 "$tree/lib64/"
    fi
    add_modules "$1" "$tree/modules"
    (cd "$tree" && find . | cpio -o -H newc --quiet) >"$guest/initramfs"
    rm -rf "$tree"
    truncate -s 2G "$guest/disk"
    mkfs.ext4 -q -F "$guest/disk"
}

# --- running ---

# boot NAME ARCHITECTURE: its console, until it switches itself off. It uses both processors, and lets others go first.
boot() {
    local machine=(qemu-system-x86_64 -M q35 -cpu max) console=ttyS0
    if [ "$2" = arm64 ]; then
        machine=(qemu-system-aarch64 -M virt -cpu cortex-a76)
        console=ttyAMA0
    fi
    timeout -k 10 $guest_s nice "${machine[@]}" -accel tcg,thread=multi -smp 2 -m 3072 -nodefaults -no-reboot \
        -display none -serial stdio -kernel "$root/kernels/$1"/boot/vmlinuz-* -initrd "$root/$1/initramfs" \
        -append "console=$console rdinit=/init quiet loglevel=4 panic=-1" \
        -drive "file=$root/$1/disk,if=none,id=disk,format=raw,cache=unsafe" -device virtio-blk-pci,drive=disk </dev/null 2>&1
}

# Prints what the guest says (tests/pi/init has the words) and counts.
run_guest() {
    local line word name good bad status ended= begun=$SECONDS
    while IFS= read -r line; do
        line=${line%$'\r'}
        echo "$line" >>"$root/$1/console"
        [ "${line:0:2}" = "@ " ] || continue
        read -r word name good bad status <<<"${line:2}"
        case $word in
        took) echo "$good $name" >>"$root/$1/seconds" ;;
        is) echo "        $1: ${line:5}" ;;
        ok)
            echo "ok      $1 $name: $good passed$([ "$bad" -eq 0 ] || echo ", $bad skipped")"
            passed=$((passed + good))
            ;;
        FAILED)
            echo "FAILED  $1 $name: $good passed, $bad failed, exit status $status"
            passed=$((passed + good))
            failed=$((failed + bad))
            ;;
        '|') echo "    ${line:4}" ;;
        end) ended=1 ;;
        esac
    done < <(boot "$1" "$2")
    if [ -z "$ended" ]; then
        echo "FAILED  $1: the guest did not come to its end; build/pi/$1/console ends with:"
        tail -n 40 "$root/$1/console"
        failed=$((failed + 1))
    fi
    echo "        $1: $((SECONDS - begun)) s"
}

[ -n "$(tests)" ] || die "no program is meant by ONLY=$ONLY"
mkdir -p "$root/apt"
fetch
# Descriptor 9: make has its jobs' tokens in 3 and 4.
while read -r -u 9 name version flavour architecture; do
    [ $# -eq 0 ] || [[ " $* " == *" $name "* ]] || continue
    build "$architecture" || continue
    make_guest "$name" "$architecture"
    run_guest "$name" "$architecture"
done 9<<<"${kernels#?}"
[ $((passed + failed)) -gt 0 ] || die "no such kernel; there are:$(cut -d ' ' -f 1 <<<"$kernels" | paste -sd ' ')"
echo "$passed passed, $failed failed"
[ $failed -eq 0 ]
