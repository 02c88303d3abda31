# The measuring programs and `make bench`; included by the Makefile. docs/benchmarks.md says what they do.
#
#     make bench BENCH=wires-1,wires-4 ROUNDS=5        RECORDS= and DURATION= change the length of a run
#     make bench BENCH=links-lossy DURATION=15         needs root
#     make budget BUDGET=links-1 BUDGET_S=5            needs root

BENCH ?=
VARIANTS ?=
ROUNDS ?= 5
RECORDS ?= 0
DURATION ?= 3

BENCH_COMMON := $(call objects,$(wildcard experiments/common/*.c))
BENCH_REACTOR := $(call objects,experiments/reactor/reactor.c experiments/reactor/server.c)
BENCH_RAW := $(call objects,experiments/raw/main.c experiments/raw/raw.c)
BENCH_PROGRAMS := $(addprefix $(B)/bench/,bench reactor sink faults path tcp flooder probe offer pure-host-epoll pure-host-record raw-link raw-tcp)

$(B)/bench/bench: $(call objects,$(wildcard experiments/bench/*.c)) $(BENCH_COMMON)
$(B)/bench/reactor: $(B)/experiments/reactor/main.o $(BENCH_REACTOR) $(BENCH_COMMON)
$(B)/bench/sink: $(call objects,$(wildcard experiments/sink/*.c)) $(BENCH_REACTOR) $(BENCH_COMMON)
$(B)/bench/faults: $(B)/experiments/faults/main.o $(BENCH_REACTOR) $(BENCH_COMMON)
$(B)/bench/path: $(call objects,$(wildcard experiments/path/*.c))
$(B)/bench/tcp: $(B)/experiments/tcp/main.o
$(B)/bench/flooder: $(B)/experiments/flooder/main.o
$(B)/bench/probe: $(B)/experiments/offer/probe.o $(BENCH_COMMON)

$(B)/bench/curl-multi: $(B)/experiments/curl/main.o
$(B)/bench/curl-multi: BENCH_LIBS := -lcurl
$(addprefix $(B)/bench/,reactor sink faults): BENCH_LIBS := -lssl -lcrypto

$(addprefix $(B)/bench/,bench reactor sink faults path tcp flooder probe curl-multi):
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS) -o $@ $^ $(BENCH_LIBS)

# Offers work at a steady rate, by HTTP and over links.
$(B)/bench/offer: $(addprefix $(B)/experiments/offer/,main.o connection.o events.o records.o link.o) \
		$(B)/experiments/common/message.o $(LIB)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS)

# The host on the epoll back end of the seam: the same program otherwise.
$(B)/bench/pure-host-epoll: $(B)/experiments/epoll/main.o $(call objects,$(EPOLL_SRC)) $(LIB)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS) $(EXPORTS)

# The same, but that each record wakes the sending loop. Its pure_send comes in before the library's.
$(B)/bench/turn-record.o: host/turn.c | deps-build
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CFLAGS) -Dpure_send=turn_send -c -o $@ $<

$(B)/bench/pure-host-record: $(B)/experiments/epoll/main.o $(B)/experiments/record/send.o $(B)/bench/turn-record.o \
		$(call objects,$(EPOLL_SRC)) $(LIB)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS) $(EXPORTS)

# A transport alone between two processes: ours, and two others.
$(B)/bench/raw-link: $(BENCH_RAW) $(call objects,$(wildcard experiments/raw/link_*.c)) \
		$(call objects,experiments/raw/producer.c $(EPOLL_SRC)) $(LIB)
$(B)/bench/raw-tcp: $(BENCH_RAW) $(B)/experiments/raw/tcp.o $(LIB)
$(B)/bench/raw-enet: $(BENCH_RAW) $(B)/experiments/raw/enet.o $(LIB)
$(B)/bench/raw-enet: LIBS += -lenet

$(addprefix $(B)/bench/,raw-link raw-tcp raw-enet):
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS)

# Only `make bench` has their packages, and with DEPS=skip not even that. After the other programs, as both
# makes would build what they share.
peers: bench-programs | deps-bench
	@if echo '#include <enet/enet.h>' | $(CC) -E - >/dev/null 2>&1; then $(MAKE) $(B)/bench/raw-enet; \
	else echo "no libenet-dev: link-raw runs without ENet"; fi
	@if echo '#include <curl/curl.h>' | $(CC) -E - >/dev/null 2>&1; then $(MAKE) $(B)/bench/curl-multi; \
	else echo "no libcurl4-openssl-dev: https and tls-handshakes run without libcurl"; fi

bench-programs: $(BENCH_PROGRAMS) $(EXPERIMENT_APPS)

# Where each nanosecond of a record goes: experiments/014-budget. Call chains want frame pointers, so it has an
# object tree of its own. Root (perf).
BUDGET ?= links-1,wires-1,links-1-durable
BUDGET_S ?= 5

$(B)/bench/floor: $(B)/experiments/014-budget/floor.o $(LIB)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS)

budget-programs: $(HOST) bench-programs $(B)/bench/floor

budget: deps-budget
	@$(MAKE) B=build/budget CFLAGS="-fno-omit-frame-pointer" budget-programs
	@experiments/014-budget/budget.py -b build/budget -p "$(BUDGET)" -s $(BUDGET_S)

bench: $(HOST) bench-programs peers
	$(B)/bench/bench -b $(B) -o build/bench.jsonl -p "$(BENCH)" -v "$(VARIANTS)" -r $(ROUNDS) -n $(RECORDS) -d $(DURATION)

.PHONY: bench bench-programs peers budget budget-programs
