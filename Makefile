# pure-host. `make help` lists the targets.
#
# One object tree a variant: build/VARIANT/. release is what is installed; asan (with UBSan) and tsan are for tests;
# fuzz is clang's. Everything is found by wildcard: a new file or test needs no entry here.

VARIANT ?= release
B := build/$(VARIANT)

CC := gcc
CSTD := -std=gnu11 -D_GNU_SOURCE
WARN := -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla -Wundef
CFLAGS_release := -O2 -g
CFLAGS_asan := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
CFLAGS_tsan := -O1 -g -fsanitize=thread
CFLAGS_fuzz := -O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
LDFLAGS_asan := -fsanitize=address,undefined
LDFLAGS_tsan := -fsanitize=thread
LDFLAGS_fuzz := -fsanitize=fuzzer,address,undefined
ifeq ($(VARIANT),fuzz)
CC := clang-14
endif
CFLAGS ?=
override CFLAGS += $(CSTD) $(WARN) $(CFLAGS_$(VARIANT)) -I. -MMD -MP -fPIC -pthread
LDFLAGS += $(LDFLAGS_$(VARIANT)) -pthread
LIBS := -luring -lsodium -linih -ldl

objects = $(patsubst %.c,$(B)/%.o,$(1))

LIB_SRC := $(wildcard core/*.c uring/*.c wire/*.c) $(filter-out host/main.c,$(wildcard host/*.c))
SIM_SRC := $(wildcard tests/sim/*.c)
EPOLL_SRC := $(filter-out %/main.c,$(wildcard experiments/epoll/*.c))
TESTS := $(patsubst tests/unit/%.c,$(B)/tests/%,$(wildcard tests/unit/test_*.c))
FUZZERS := $(patsubst tests/fuzz/%.c,$(B)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
APPS := $(patsubst host/apps/%.c,$(B)/apps/%.so,$(wildcard host/apps/*.c))
EXPERIMENT_APPS := $(patsubst experiments/apps/%.c,$(B)/apps/%.so,$(wildcard experiments/apps/*.c))

LIB := $(B)/libpure.a
SIM := $(B)/libsim.a
HOST := $(B)/pure-host

all: $(HOST) $(APPS)

$(B)/%.o: %.c
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -c -o $@ $<

$(LIB): $(call objects,$(LIB_SRC))
	@rm -f $@
	ar rcs $@ $^

$(SIM): $(call objects,$(SIM_SRC))
	@rm -f $@
	ar rcs $@ $^

# Modules call pure_send of the executable that loads them.
$(HOST): $(B)/host/main.o $(LIB)
	$(CC) $(LDFLAGS) -o $@ $< $(LIB) $(LIBS) -Wl,--export-dynamic-symbol=pure_send

$(B)/apps/%.so: $(B)/host/apps/%.o
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -shared -o $@ $<

$(B)/apps/%.so: $(B)/experiments/apps/%.o
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -shared -o $@ $<

$(B)/tests/%: $(B)/tests/unit/%.o $(SIM) $(LIB)
	@mkdir -p $(@D)
	$(CC) $(LDFLAGS) -o $@ $< $(SIM) $(LIB) $(LIBS) -lcmocka -Wl,--export-dynamic-symbol=pure_send

tests: $(TESTS)

-include $(shell find build/$(VARIANT) -name '*.d' 2>/dev/null)

.PHONY: all tests
.SECONDARY:
