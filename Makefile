# Everything a contributor runs, one target each. `make` prints this list.

GO          ?= go
STATICCHECK ?= honnef.co/go/tools/cmd/staticcheck@v0.8.2
# One throw-away PostgreSQL for all test processes; see test/pgtest.
WITH_PG     ?= $(GO) run ./test/pgtest/cmd/withpostgres
# What make test runs, and which of that first.
TESTS       ?= ./...
ORDER       ?= $(if $(filter ./...,$(TESTS)),$$($(GO) run ./test/order))
# Test binaries need no debugger's tables: linking those takes half of the time, and making
# them for our own packages, which lint compiles too, a fifth.
LINK        ?= '-ldflags=-s -w' '-gcflags=github.com/holdfast-dev/holdfast/...=-dwarf=false'
# The worlds of make sim and make mutants.
SEEDS       ?= 10000
FIRST       ?= 1
# Where the tests of make soak say what they tried.
TRIED       ?= $(CURDIR)/.tried
# The runs, the store and the seed of make chaos.
RUNS        ?= 5000
STORE       ?=
SEED        ?= 0
# Packages in which goroutines share state; -race over the rest finds nothing new.
RACE        ?= ./durable/... ./store/memory/... ./conformance/...

.DEFAULT_GOAL := help
.PHONY: help demo trace-demo test lint race shape bench bench-scale sim chaos mutants soak

help: ## print the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: ## run an order through kill -9 in the middle of a payment (examples/quickstart)
	$(GO) run ./examples/quickstart

trace-demo: ## send the trace of a run in three processes to a real Jaeger, read it back, compare it with the history
	$(GO) run ./test/tracedemo

# The programs that tests build are linked like the tests. A collector that runs less often
# saves a fifth of the compiler's time, for a third more memory. go vet is a part of lint.
test: export GOFLAGS := $(GOFLAGS) $(LINK)
test: export GOGC ?= 400
test: ## run all tests, on memory, SQLite and a real PostgreSQL
	@$(if $(ORDER),echo "The packages that take longest run first: minutes pass before go test prints a line.")
	$(WITH_PG) $(GO) test $(LINK) -vet=off -timeout 15m $(ORDER) $(TESTS)
	@$(GO) run ./test/leftout

lint: export GOFLAGS := $(GOFLAGS) $(LINK)
lint: ## check formatting, go vet, staticcheck, and the examples with durablevet
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); \
	if [ -n "$$unformatted" ]; then echo "gofmt -w these files:"; echo "$$unformatted"; exit 1; fi
	$(GO) vet ./...
	$(GO) run $(STATICCHECK) ./...
	$(GO) run ./cmd/durablevet ./examples/... ./shell/...

race: ## run the tests of concurrent packages under the race detector
	$(WITH_PG) $(GO) test $(LINK) -race -timeout 20m $(RACE)

shape: ## print how the code is laid out: packages, types, functions, references upward
	$(GO) run ./test/arch/shape/cmd/shape

bench: ## measure against raw database writes (takes minutes; see docs/performance.md)
	$(GO) run ./bench

bench-scale: ## measure what must not depend on how many runs a store has, up to a million (under 20 minutes)
	$(GO) run ./bench -scale

sim: ## simulate SEEDS worlds from FIRST on (test/sim): programs, faults of the store, operators
	$(GO) test ./test/sim -run TestWorlds -count=1 -v -timeout 0 -seeds $(SEEDS) -first $(FIRST)

chaos: ## kill, stop and cut off processes (test/chaos), RUNS runs for each STORE, or for STORE=sqlite or postgres
	$(GO) test ./test/chaos -count=1 -v -timeout 0 -runs $(RUNS) -store "$(STORE)" -seed $(SEED)

mutants: ## put known faults back, one at a time, and print what finds them; goes on where it was broken off (an hour)
	$(GO) run ./test/mutants -seeds $(SEEDS) -first $(FIRST)

# The worlds of the simulator, in two processes of one processor each, beside three packages at a time,
# which mostly wait. The worlds are not niced: where they were, on Linux 6.18, everything else stood still
# for up to a minute while they computed (the kernel's log told of starved tasks).
soak: ## run the long crash and fault tests, and write what they tried into docs/proof.md (under 30 minutes)
	@rm -f $(TRIED)
	@export DURABLE_SOAK=1 HOLDFAST_PROOF=$(TRIED); \
	$(GO) test -count=1 -timeout 60m ./test/sim -run TestWorlds -first 1 & worlds=$$!; \
	$(GO) test -count=1 -timeout 60m ./test/sim -run TestWorlds -first 1000001 & others=$$!; \
	$(WITH_PG) $(GO) test -count=1 -timeout 60m -p 3 $$($(GO) run ./test/tried/cmd/report -soak); rest=$$?; \
	wait $$worlds || rest=1; wait $$others || rest=1; exit $$rest
	@$(GO) run ./test/tried/cmd/report <$(TRIED)
	@$(GO) run ./test/leftout -soak
