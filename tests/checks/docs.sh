#!/bin/bash
# What the documents promise: the example in docs/app.md compiles, loads and opens; docs/configuration.md
# names every key and no other, docs/metrics.md every metric and no other; the demo's configuration is right;
# links between the documents lead somewhere, here and where they are installed.
set -u
host=build/release/pure-host
cflags="-std=gnu11 -O2 -Wall -Wextra -Werror -fPIC"
scratch=$(mktemp -d) || exit 1
trap 'rm -rf "$scratch"' EXIT
status=0

wrong() {
    echo "$*"
    status=1
}

example_app() {
    sed -n '/^```c$/,/^```$/p' docs/app.md | sed '/^```/d' >"$scratch/threshold.c"
    gcc $cflags -Ibuild/include -shared -o "$scratch/threshold.so" "$scratch/threshold.c" || return 1
    printf '[app heat]\nmodule = ./threshold.so\narg = 30\n[output heat.alarm]\nwire = http://127.0.0.1:8080/\n' \
        >"$scratch/heat.conf"
    "$host" check -c "$scratch/heat.conf"
}

known_keys() { # as fail_unknown of host/config_keys.c lists them
    sed -n 's/^ *{"\([a-z_]*\)", [a-z_]*read_.*/\1/p' host/config_keys.c | sort -u
}

documented_keys() {
    sed -n 's/^| `\([a-z_]*\)` |.*/\1/p' docs/configuration.md | sort -u
}

known_metrics() { # as their families are named in the source
    grep -ohE '"pure_[a-z_]+' host/metrics*.c | tr -d '"' | sort -u
}

documented_metrics() {
    grep -oE '^\| `pure_[^|]*\|' docs/metrics.md | grep -oE 'pure_[a-z_]+' | sort -u
}

links() {
    local file target
    for file in *.md docs/*.md docs/*/*.md; do
        [ -e "$file" ] || continue
        grep -oE '\]\([^)#:]+\)' "$file" | sed 's/^](//; s/)$//' | while read -r target; do
            [ -e "$(dirname "$file")/$target" ] || echo "$file: the link to $target leads nowhere"
        done
    done
}

# What an installation has: its documents lead to each other, and the man page to them.
installed() {
    local root=$scratch/root name
    ${MAKE:-make} -s install DESTDIR="$root" PREFIX=/usr DEPS=skip >"$scratch/install" 2>&1 || cat "$scratch/install"
    (cd "$root/usr/share/doc/pure-host" && links)
    for name in $(grep -o '/usr/share/doc/[a-z./-]*[a-z]' "$root/usr/share/man/man1/pure-host.1"); do
        [ -e "$root$name" ] || echo "the man page names $name, which is not installed"
    done
    grep -rl '@[A-Z]*@' "$root/usr/share" "$root/usr/lib/systemd"
}

example_app || wrong "docs/app.md: the example is not right"
[ -n "$(known_keys)" ] || wrong "no keys found in host/config_keys.c"
diff <(known_keys) <(documented_keys) || wrong "docs/configuration.md: not the keys that the host knows"
[ -n "$(known_metrics)" ] || wrong "no metrics found in host/metrics*.c"
diff <(known_metrics) <(documented_metrics) || wrong "docs/metrics.md: not the metrics that the host has"
${MAKE:-make} -s docs/examples/demo.pub DEPS=skip || wrong "the demo has no key"
"$host" check -c docs/examples/demo.conf || wrong "docs/examples/demo.conf is not right"
broken=$(links)
[ -z "$broken" ] || wrong "$broken"
lacking=$(installed)
[ -z "$lacking" ] || wrong "installed: $lacking"
exit $status
