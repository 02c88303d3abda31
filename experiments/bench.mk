# The measuring programs and `make bench`; included by the Makefile. docs/benchmarks.md says what they do.
#
#     make bench BENCH=wires-1,wires-4 ROUNDS=5        RECORDS= and DURATION= change the length of a run
#     make bench BENCH=links-lossy DURATION=15         needs root

BENCH ?=
ROUNDS ?= 5
RECORDS ?= 0
DURATION ?= 3

BENCH_COMMON := $(call objects,$(wildcard experiments/common/*.c))
BENCH_REACTOR := $(call objects,experiments/reactor/reactor.c experiments/reactor/server.c)
BENCH_PROGRAMS := $(addprefix $(B)/bench/,bench reactor sink faults path tcp flooder pure-host-epoll)

$(B)/bench/bench: $(call objects,$(wildcard experiments/bench/*.c)) $(BENCH_COMMON)
$(B)/bench/reactor: $(B)/experiments/reactor/main.o $(BENCH_REACTOR) $(BENCH_COMMON)
$(B)/bench/sink: $(B)/experiments/sink/main.o $(BENCH_REACTOR) $(BENCH_COMMON)
$(B)/bench/faults: $(B)/experiments/faults/main.o $(BENCH_REACTOR) $(BENCH_COMMON)
$(B)/bench/path: $(call objects,$(wildcard experiments/path/*.c))
$(B)/bench/tcp: $(B)/experiments/tcp/main.o
$(B)/bench/flooder: $(B)/experiments/flooder/main.o

$(addprefix $(B)/bench/,bench reactor sink faults path tcp flooder):
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS) -o $@ $^

# The host on the epoll back end of the seam: the same program otherwise.
$(B)/bench/pure-host-epoll: $(B)/experiments/epoll/main.o $(call objects,$(EPOLL_SRC)) $(LIB)
	@mkdir -p $(@D)
	$(call say,LD,$@)$(CC) $(LDFLAGS) -o $@ $^ $(LIBS) $(EXPORTS)

bench-programs: $(BENCH_PROGRAMS) $(EXPERIMENT_APPS)

bench: $(HOST) bench-programs
	$(B)/bench/bench -b $(B) -o build/bench.jsonl -p "$(BENCH)" -r $(ROUNDS) -n $(RECORDS) -d $(DURATION)

.PHONY: bench bench-programs
