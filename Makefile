# pure-host. `make help` lists the targets.
#
# One object tree a variant: build/VARIANT/. release is what is installed; asan (with UBSan) and tsan are for
# tests; fuzz is clang's. Everything is found by wildcard: a new file or test needs no entry here.

VARIANT ?= release
B := build/$(VARIANT)
DEPS ?= install
PREFIX ?= /usr/local
DESTDIR ?=
FUZZ_S ?= 30
FIRST ?= 1
SEEDS ?= 10000
KILLS ?= 1000
SEED ?=
PART ?=
KERNEL ?=
ONLY ?=
V ?= 0

# As many jobs as processors, unless this make is part of another.
ifeq ($(MAKELEVEL),0)
MAKEFLAGS += -j$(shell nproc)
endif

CC := gcc
# Socket addresses are read through pointers of other types, as their interface wants it.
CSTD := -std=gnu11 -D_GNU_SOURCE -fno-strict-aliasing
WARN := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla -Wundef
CFLAGS_release := -O2 -g
CFLAGS_asan := -O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
CFLAGS_tsan := -O1 -g1 -fsanitize=thread
CFLAGS_fuzz := -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
# gold links in a third of the time, and there are many tests.
LDFLAGS_asan := -fsanitize=address,undefined -fuse-ld=gold
LDFLAGS_tsan := -fsanitize=thread -fuse-ld=gold
LDFLAGS_fuzz := -fsanitize=fuzzer,address,undefined
ifeq ($(VARIANT),fuzz)
CC := clang-14
endif
CFLAGS ?=
override CFLAGS += $(CSTD) $(WARN) $(CFLAGS_$(VARIANT)) -I. -MMD -MP -fPIC -pthread
LDFLAGS += $(LDFLAGS_$(VARIANT)) -pthread
LIBS := -luring -lwolfssl -lsodium -linih -lcares -lz -ldl
# Modules call these two of the program that loads them.
EXPORTS := -Wl,--export-dynamic-symbol=pure_send,--export-dynamic-symbol=pure_write

ifeq ($(V),0)
say = @echo "  $(1) $(2)";
endif

objects = $(patsubst %.c,$(B)/%.o,$(1))

LIB_SRC := $(wildcard core/*.c noise/*.c tls/*.c journal/*.c uring/*.c link/*.c wire/*.c) $(filter-out host/main.c host/heap.c,$(wildcard host/*.c))
SIM_SRC := $(wildcard tests/sim/*.c) $(filter-out %/peer.c,$(wildcard tests/faults/*.c))
EPOLL_SRC := $(filter-out %/main.c,$(wildcard experiments/epoll/*.c))
PATH_SRC := $(addprefix experiments/path/,path.c control.c icmp.c)
TESTS := $(patsubst tests/unit/%.c,$(B)/tests/%,$(wildcard tests/unit/test_*.c))
RUNNERS := $(patsubst tests/runners/%.c,build/tests/%,$(wildcard tests/runners/*.c))
FUZZERS := $(patsubst tests/fuzz/%.c,$(B)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
APPS := $(patsubst host/apps/%.c,$(B)/apps/%.so,$(wildcard host/apps/*.c))
EXPERIMENT_APPS := $(patsubst experiments/apps/%.c,$(B)/apps/%.so,$(wildcard experiments/apps/*.c))

LIB := $(B)/libpure.a
SIM := $(B)/libsim.a
HOST := $(B)/pure-host

# Where an app finds <pure/app.h> without an installation: -Ibuild/include.
APP_HEADER := build/include/pure/app.h

all: $(HOST) $(APPS) $(APP_HEADER)

# --- what a fresh machine lacks ---

PACKAGES_build := gcc libc6-dev liburing-dev libwolfssl-dev libsodium-dev libinih-dev libc-ares-dev zlib1g-dev
PACKAGES_check := $(PACKAGES_build) libcmocka-dev libcjson-dev libssl-dev clang-14 libclang-rt-14-dev clang-format-14 curl openssl iproute2
PACKAGES_crash := $(PACKAGES_check) libfuse3-dev fuse3
PACKAGES_pi := $(PACKAGES_check) crossbuild-essential-arm64 qemu-system-arm qemu-system-x86 busybox-static cpio kmod e2fsprogs xz-utils
PACKAGES_bench := $(PACKAGES_build) wrk libenet-dev libcurl4-openssl-dev libssl-dev
PACKAGES_budget := $(PACKAGES_bench) linux-perf valgrind python3
PACKAGES_deb := $(PACKAGES_build) dpkg-dev

# $(call install_missing,PACKAGES): asks dpkg (20 ms), and apt-get only for what is not there.
ifeq ($(DEPS),skip)
install_missing = @:
else
define install_missing
@command -v dpkg-query >/dev/null || exit 0; \
there=" $$(dpkg-query -W -f '$${Package}:$${db:Status-Status} ' $(1) 2>/dev/null)"; missing=; \
for package in $(1); do \
	case "$$there" in *" $$package:installed "*) ;; *) missing="$$missing $$package" ;; esac; \
done; \
[ -n "$$missing" ] || exit 0; \
echo "installing:$$missing (DEPS=skip turns this off)"; \
[ "$$(id -u)" = 0 ] && sudo= || sudo=sudo; \
$$sudo apt-get update -q; \
$$sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends \
	-o DPkg::Lock::Timeout=300 $$missing
endef
endif

deps-build:
	$(call install_missing,$(PACKAGES_build))
# One after the other: two at a time would wait for each other's lock.
deps-check: | deps-build
	$(call install_missing,$(PACKAGES_check))
deps-crash: | deps-check
	$(call install_missing,$(PACKAGES_crash))
deps-pi: | deps-check
	$(call install_missing,$(PACKAGES_pi))
deps-bench: | deps-build
	$(call install_missing,$(PACKAGES_bench))
deps-budget: | deps-build
	$(call install_missing,$(PACKAGES_budget))
deps-deb: | deps-build
	$(call install_missing,$(PACKAGES_deb))

# --- building ---

$(B)/tests/%.o: tests/%.c | deps-check
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CFLAGS) -c -o $@ $<

$(B)/%.o: %.c | deps-build
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CFLAGS) -c -o $@ $<

$(LIB): $(call objects,$(LIB_SRC))
	@rm -f $@
	$(call say,AR,$@)$(AR) rcs $@ $^

# What tests are linked with besides the product: the simulated back end, the epoll one, the emulated path.
$(SIM): $(call objects,$(SIM_SRC) $(EPOLL_SRC) $(PATH_SRC))
	@rm -f $@
	$(call say,AR,$@)$(AR) rcs $@ $^

# The program's malloc, which counts (host/heap.h). Sanitizers bring their own.
HEAP := $(if $(filter release,$(VARIANT)),$(B)/host/heap.o)
HEAP_EXPORTS := $(foreach f,malloc calloc realloc reallocarray free memalign aligned_alloc posix_memalign valloc pvalloc,-Wl,--export-dynamic-symbol=$(f))

$(HOST): $(B)/host/main.o $(HEAP) $(LIB)
	$(call say,LD,$@)$(CC) $(LDFLAGS) -o $@ $< $(HEAP) $(LIB) $(LIBS) $(EXPORTS) $(if $(HEAP),$(HEAP_EXPORTS))

$(APP_HEADER): host/app.h
	@install -D -m 644 $< $@

$(B)/apps/%.so: $(B)/host/apps/%.o
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS) -shared -o $@ $<

$(B)/apps/%.so: $(B)/experiments/apps/%.o
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS) -shared -o $@ $<

$(B)/tests/%: $(B)/tests/unit/%.o $(SIM) $(LIB)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS) -o $@ $< $(SIM) $(LIB) $(LIBS) -lcmocka -lssl -lcrypto $(EXPORTS)

$(B)/fuzz/%: $(B)/tests/fuzz/%.o $(SIM) $(LIB)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS) -o $@ $< $(SIM) $(LIB) $(LIBS) $(if $(filter fuzz_tls,$(*F)),-lcrypto) $(EXPORTS)

# Programs that take cases from a file of yours; at this path whatever the variant.
$(RUNNERS): build/tests/%: $(B)/tests/runners/%.o $(SIM) $(LIB)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS) -o $@ $< $(SIM) $(LIB) -lcjson -lssl -lcrypto $(LIBS) $(EXPORTS)

# The same where a variant's own are wanted.
$(B)/runners/%: $(B)/tests/runners/%.o $(SIM) $(LIB)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS) -o $@ $< $(SIM) $(LIB) -lcjson $(LIBS) $(EXPORTS)

# What tests/checks/links.sh, wires.sh, apps.sh, crash.sh and faults.sh need besides the host, and `path` and the host on the epoll back end.
LIVE := $(addprefix $(B)/live/,nat device preload.so ledger.so rogue.so crash faults capture receiver proxy names)

$(B)/live/faults: $(B)/tests/faults/peer.o $(SIM) $(LIB)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS) -o $@ $< $(SIM) $(LIB) -lcjson -lssl -lcrypto $(LIBS)

$(B)/live/%.so: $(B)/tests/live/%.o
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS) -shared -o $@ $<

$(B)/live/%: $(B)/tests/live/%.o
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS) -o $@ $< $(if $(filter receiver,$(*F)),-lssl -lcrypto)

# For make check-crash only: it needs libfuse3-dev.
$(B)/tests/live/lossyfs.o: tests/live/lossyfs.c | deps-crash
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CFLAGS) -I/usr/include/fuse3 -c -o $@ $<

$(B)/live/lossyfs: $(B)/tests/live/lossyfs.o
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS) -o $@ $< -lfuse3

live: $(LIVE) $(B)/bench/path $(B)/bench/pure-host-epoll
tests: $(TESTS)
runners: $(RUNNERS)
fuzzers: $(FUZZERS)

# --- what people call ---

# The prompt tells what to type meanwhile. exec: a signal to make's child is one to the host.
run: all docs/examples/demo.pub
	@sed 's|@HOST@|$(HOST)|' docs/examples/demo.txt
	@exec $(HOST) run -c docs/examples/demo.conf

# The demo's key, made once. The public half is written last, and whole.
docs/examples/demo.pub: | $(HOST)
	@rm -f docs/examples/demo.key
	@$(HOST) key new docs/examples/demo.key >$@.new && mv $@.new $@

check: deps-check
	@MAKE='$(MAKE)' tests/checks/check.sh full

check-fast: deps-check
	@MAKE='$(MAKE)' tests/checks/check.sh fast

check-sanitizers: deps-check
	@MAKE='$(MAKE)' tests/checks/check.sh sanitizers

fuzz: deps-check
	@$(MAKE) VARIANT=fuzz fuzzers
	@tests/checks/fuzz.sh -max_total_time=$(FUZZ_S)

faults-table: deps-check
	@$(MAKE) -s $(B)/tests/test_faults
	@$(B)/tests/test_faults --table

# The long run of the links' storms; check has a few hundred seeds of them.
storms: deps-check
	@$(MAKE) $(B)/tests/test_hosts_links_storm
	@$(B)/tests/test_hosts_links_storm $(FIRST) $(SEEDS)

# The long run of crashes of whole hosts; check has some dozens of seeds.
crashes: deps-check
	@$(MAKE) $(B)/tests/test_hosts_crash_storm
	@$(B)/tests/test_hosts_crash_storm $(FIRST) $(SEEDS)

# The long run of the kills; check has a few of them.
check-crash: deps-crash
	@$(MAKE) all live $(B)/live/lossyfs
	@KILLS=$(KILLS) SEED=$(SEED) tests/checks/crash.sh $(VARIANT) $(PART)

# The tests on emulated machines with other kernels; KERNEL= and ONLY=, a regular expression, pick. What is linked for arm64 is what is linked here.
PI_LIBRARIES := $(filter-out libclang%,$(filter %-dev,$(PACKAGES_check)))
check-pi: deps-pi
	@MAKE='$(MAKE)' PI_LIBRARIES='$(PI_LIBRARIES)' ONLY='$(ONLY)' tests/checks/pi.sh $(KERNEL)

include experiments/bench.mk
bench: | deps-bench

format: deps-check
	clang-format-14 -i $$(find core noise tls journal uring link wire host tests experiments -name '*.[ch]')

clean:
	rm -rf build docs/examples/demo.store

# --- installing ---

# The documents lie as they do here, so that their links lead to each other there, too.
DOC := $(PREFIX)/share/doc/pure-host

install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/pure/apps $(DESTDIR)$(PREFIX)/include/pure
	install -d $(DESTDIR)$(PREFIX)/lib/systemd/system $(DESTDIR)$(PREFIX)/share/man/man1
	install -d $(DESTDIR)$(DOC)/docs/decisions $(DESTDIR)$(DOC)/docs/examples
	install -m 755 $(HOST) $(DESTDIR)$(PREFIX)/bin/pure-host
	install -m 644 $(APPS) $(DESTDIR)$(PREFIX)/lib/pure/apps/
	install -m 644 host/app.h $(DESTDIR)$(PREFIX)/include/pure/app.h
	install -m 644 README.md HACKING.md CHANGELOG.md LICENSE $(DESTDIR)$(DOC)/
	install -m 644 docs/*.md $(DESTDIR)$(DOC)/docs/
	install -m 644 docs/decisions/*.md $(DESTDIR)$(DOC)/docs/decisions/
	install -m 644 docs/examples/demo.conf $(DESTDIR)$(DOC)/docs/examples/
	sed 's|@DOC@|$(DOC)|g' docs/pure-host.1 > $(DESTDIR)$(PREFIX)/share/man/man1/pure-host.1
	sed 's|@PREFIX@|$(PREFIX)|' docs/pure-host.service > $(DESTDIR)$(PREFIX)/lib/systemd/system/pure-host.service

VERSION = $(shell sed -n 's/^\#define PURE_VERSION "\(.*\)"/\1/p' host/host.h)
DEB_ROOT := build/deb/root

# dpkg-shlibdeps wants a debian/control beside it; what it prints becomes the package's Depends.
deb: all | deps-deb
	rm -rf build/deb
	$(MAKE) install DESTDIR=$(DEB_ROOT) PREFIX=/usr DEPS=skip
	strip --strip-unneeded $(DEB_ROOT)/usr/bin/pure-host $(DEB_ROOT)/usr/lib/pure/apps/*.so
	mkdir -p build/deb/debian $(DEB_ROOT)/DEBIAN
	printf 'Source: pure-host\n\nPackage: pure-host\nArchitecture: any\n' > build/deb/debian/control
	cd build/deb && dpkg-shlibdeps -O root/usr/bin/pure-host root/usr/lib/pure/apps/*.so 2>/dev/null \
		| sed -n 's/^shlibs:Depends=/Depends: /p' > depends
	{ printf 'Package: pure-host\nVersion: %s\nArchitecture: %s\n' $(VERSION) $$(dpkg --print-architecture); \
	  printf 'Maintainer: the pure-host authors <pure-host@localhost>\nSection: net\nPriority: optional\n'; \
	  cat build/deb/depends; \
	  printf 'Description: runs small apps and delivers what they send\n'; \
	  printf ' One process with one io_uring loop that sends for all of them.\n'; } > $(DEB_ROOT)/DEBIAN/control
	dpkg-deb --root-owner-group --build $(DEB_ROOT) build/pure-host_$(VERSION)_$$(dpkg --print-architecture).deb

help:
	@echo "make            builds $(HOST) and the apps"
	@echo "make run        builds, and runs docs/examples/demo.conf in the foreground"
	@echo "make check      all tests in all variants, formatting, include directions: N passed, N failed"
	@echo "make check-fast the subset under a minute"
	@echo "make check-sanitizers all tests and processes with sanitizers, the long ones too"
	@echo "make bench      BENCH=wires-1,wires-4 picks, ROUNDS=5; rows in build/bench.jsonl"
	@echo "make budget     BUDGET=links-1,wires-1,links-1-durable: what each hop of a record costs (root)"
	@echo "make fuzz       every fuzzer for FUZZ_S=$(FUZZ_S) seconds"
	@echo "make faults-table what each row of the fault table proves"
	@echo "make storms     FIRST=$(FIRST) SEEDS=$(SEEDS): hosts with links under all faults, seed by seed"
	@echo "make crashes    FIRST=$(FIRST) SEEDS=$(SEEDS): hosts that crash, with their disks, seed by seed"
	@echo "make check-crash KILLS=$(KILLS) SEED= PART=kills|lossy|full|broken|backlog: killed, without power, without room"
	@echo "make check-pi   KERNEL=6.1-arm64-4k|6.12-arm64-16k|6.1-amd64 ONLY=test_uring: on those kernels, emulated (25 minutes)"
	@echo "make install    DESTDIR= PREFIX=$(PREFIX)"
	@echo "make deb        a Debian package in build/"
	@echo "make format     formats all sources in place"
	@echo "make clean      removes build/"
	@echo "VARIANT=release|asan|tsan|fuzz, V=1 shows commands, DEPS=skip installs no packages"

-include $(shell find $(B) -name '*.d' 2>/dev/null)

.PHONY: all tests runners live fuzzers run check check-fast check-sanitizers faults-table check-crash check-pi fuzz storms crashes format clean install deb help
.PHONY: deps-build deps-check deps-crash deps-pi deps-bench deps-budget deps-deb
.DEFAULT_GOAL := all
.SECONDARY:
.DELETE_ON_ERROR:
