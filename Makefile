SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

# The version comes from git by VERSION; a clone that belongs to another account must build too.
# All but the race detector compiles as the release does, so that each package is compiled once.
export GOFLAGS := $(GOFLAGS) -buildvcs=false -trimpath
export CGO_ENABLED := 0

VERSION    ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
BUILD      := go build -ldflags '-X main.version=$(VERSION)'
LINT       := go tool -modfile=tools/go.mod golangci-lint
TALLY      := bin/tally
OUTCOMES   ?= .test/outcomes
FUZZTIME   ?= 10s
DEMO_FLAGS ?=
BENCH      ?= all
BENCH_FLAGS ?=

# How many pairs of a condition and an event the oracle of internal/match compares.
PAIRS      ?= 10000000

# How many pairs of a condition and an event the index and the evaluator answer alike.
COMPARE_PAIRS ?= $(if $(CI),2000000,200000)
COMPARE_SEED  ?= 300

# How many subscriptions each data set has in realdata.
SUBSCRIPTIONS ?= 20000

# Where several goroutines share data: these run again under the race detector.
RACE := collect deliver record registry match bus sink api
RACE_PACKAGES = $(addsuffix /...,$(wildcard $(addprefix ./internal/,$(RACE))))

# What they compute in one goroutine, for long: there is no race to find, and unit has run it.
RACE_NONE := TestRowsFindTheirCrossingsAsCELDoes|TestEveryGuardOfAConditionThatIsTrueFires|TestABucketIsASortedList|TestATopicHasSoManyKindsOfFilters|TestCompoundsAreFoundByWhateverGuardsThem|TestAScanReadsWhatDecodeReads

# The crash test has a step and a build of its own; the receivers need more than Go.
PACKAGES = $(shell go list -find ./... | grep -vE '/internal/(crash|receivers)')

# Tests wait for servers and disks more than they compute: one package more than cores, side by side.
WIDE := -p 3

# One PostgreSQL for all packages of a step, and the choice of it where tests can run on both stores.
WITH_POSTGRES := go run ./internal/pgtest/with
ON_POSTGRES   := FANFARE_TEST_DB=postgres $(WITH_POSTGRES)
STORE_TESTS    = $(addprefix ./,$(sort $(dir $(shell grep -rlE --include='*_test.go' 'storetest\.(Open|Place)|pgtest\.Chosen' internal | grep -vE '^internal/(crash|store/storetest)/'))))
ONCE_ONLY      = $(shell sed -n 's/^- `\(Test[A-Za-z0-9]*\)`.*/\1/p' internal/store/storetest/once-only.md | paste -sd'|')

# Crash tests that run a PostgreSQL whichever store is chosen: once, beside the others that need it.
OWN_POSTGRES := PostgreSQL|TheDatabase|InAMove

# Where tests behind the build tag peers are.
PEERS_PACKAGES = $(addprefix ./,$(sort $(dir $(shell grep -rl --include='*_test.go' '^//go:build.*peers' internal))))

##@ Use

.PHONY: help
help: ## List the targets.
	@awk 'BEGIN {FS = ":.*## "} \
	  /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z-]+:.*## / {printf "  make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build ./bin/fanfare, one static binary.
	@$(BUILD) -o bin/fanfare ./cmd/fanfare

.PHONY: sdk
sdk: build ## Build the clients for Python and TypeScript into build/sdk.
	@sdk/build

.PHONY: docs
docs: build ## Build the site of docs/ into build/docs (python3 with venv).
	@docs/site/build

.PHONY: demo
demo: build ## Run the main job on real data and keep serving (DEMO_FLAGS=--once to end).
	@./bin/fanfare demo $(DEMO_FLAGS)

.PHONY: bench
bench: build ## Run experiments in full size (BENCH=N1, BENCH_FLAGS='--runs 5').
	@./bin/fanfare bench $(BENCH_FLAGS) $(BENCH)

##@ Check

.PHONY: test
test: test-code bench-smoke ## Check everything that CI checks, but the peers.
	@echo; $(TALLY) total $(OUTCOMES)

.PHONY: test-code
test-code: begin fmt-check vet lint arch unit assertions unit-postgres receivers race static crash crash-postgres

.PHONY: check
check: test ## The same as test.

.PHONY: test-peers
test-peers: peers-begin peers-mail peers-sdk peers-docs ## Test against mail servers (root, Debian or Ubuntu) and from Python, TypeScript and Rust.
	@[ ! -e $(OUTCOMES).peers ] || { echo; $(TALLY) total $(OUTCOMES).peers; }

.PHONY: peers-begin
peers-begin: $(TALLY)
	@rm -f $(OUTCOMES).peers

.PHONY: peers-mail
peers-mail: $(TALLY) ## Test against Postfix, Exim and OpenSMTPD, and the API with Schemathesis (root, Debian or Ubuntu).
	@if [ -z "$${CI:-}" ] && { [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; }; then \
	  echo 'LEFT OUT: test-peers installs mail servers, for which it needs root and apt. Nothing was tested.'; exit 0; fi; \
	$(TALLY) step $(OUTCOMES).peers 'install the peers' .ci/peers; \
	PATH="$$PWD/.peers/usr/sbin:$$PATH" $(TALLY) test $(OUTCOMES).peers 'tests against peers' -again -tags peers -timeout 20m $(or $(PEERS_PACKAGES),$(error no test has the build tag peers))

.PHONY: realdata
realdata: ## Real events to 20,000 drawn subscriptions each, held against an evaluator (root; smtp-sink, in Debian's postfix).
	@command -v smtp-sink >/dev/null || { echo 'realdata needs smtp-sink, which is in the package postfix of Debian and Ubuntu.' >&2; exit 3; }
	@FANFARE_TEST_SUBSCRIPTIONS=$(SUBSCRIPTIONS) go test -count=1 -v -tags peers -timeout 30m -run '^TestRealEventsReachWhoWantsThemOnce$$' ./internal/peers

.PHONY: peers-sdk
peers-sdk: $(TALLY) build ## Test both clients, and the CloudEvents SDK of Rust (python3 with venv, node 20 with npm, cargo).
	@if [ -z "$${CI:-}" ] && ! { command -v python3 && command -v npm; } >/dev/null; then \
	  echo 'LEFT OUT: the clients need python3 and npm. They were NOT tested.'; exit 0; fi; \
	for language in python typescript; do \
	  $(TALLY) step $(OUTCOMES).peers "client for $$language" sdk/build $$language; \
	  $(TALLY) junit $(OUTCOMES).peers "tests of the client for $$language" .test/$$language.xml sdk/test $$language .test/$$language.xml; \
	done
	@if [ -z "$${CI:-}" ] && ! command -v cargo >/dev/null; then \
	  echo 'LEFT OUT: the CloudEvents SDK of Rust needs cargo. It was NOT tested.'; exit 0; fi; \
	$(TALLY) junit $(OUTCOMES).peers 'tests of the CloudEvents SDK of Rust' .test/rust.xml sdk/test rust .test/rust.xml

.PHONY: peers-docs
peers-docs: $(TALLY) build ## Build the site of the documents and check every link (python3 with venv).
	@if [ -z "$${CI:-}" ] && ! command -v python3 >/dev/null; then \
	  echo 'LEFT OUT: the site needs python3. It was NOT built.'; exit 0; fi; \
	$(TALLY) step $(OUTCOMES).peers 'site of the documents' docs/site/build

.PHONY: fmt
fmt: ## Lay out the sources.
	@gofmt -w .

.PHONY: vet
vet: $(TALLY) ## Look for what compiles and is wrong.
	@$(TALLY) step $(OUTCOMES) vet go vet -tags 'peers crashsteps assertions mutation' ./...

.PHONY: lint
lint: $(TALLY) ## Run the linters (.golangci.yml; built from source at the first time, about a minute).
	@$(TALLY) step $(OUTCOMES) lint $(LINT) run ./...

.PHONY: arch
arch: $(TALLY) ## Check imports, sizes, words: the rules of the house.
	@$(TALLY) test $(OUTCOMES) architecture ./internal/arch/...

.PHONY: unit
unit: $(TALLY) ## Run all tests, on SQLite where they need a store.
	@FANFARE_TEST_PAIRS=$(PAIRS) FANFARE_COMPARE_PAIRS=$(COMPARE_PAIRS) FANFARE_COMPARE_SEED=$(COMPARE_SEED) $(WITH_POSTGRES) $(TALLY) test $(OUTCOMES) tests -again $(WIDE) -timeout 20m $(PACKAGES)

.PHONY: assertions
assertions: $(TALLY) ## Run the tests of the matching index while it checks what it assumes.
	@FANFARE_TEST_PAIRS=20000 $(TALLY) test $(OUTCOMES) 'tests with assertions' -again -tags assertions -timeout 10m ./internal/match

.PHONY: unit-postgres
unit-postgres: $(TALLY) ## Run all tests that need a store on PostgreSQL, which is fetched for it.
	@$(ON_POSTGRES) $(TALLY) test-on PostgreSQL $(OUTCOMES) 'tests on PostgreSQL' -again $(WIDE) -parallel 3 -timeout 20m -skip '^($(ONCE_ONLY))$$' $(STORE_TESTS)

.PHONY: receivers
receivers: $(TALLY) ## Have the official libraries of Standard Webhooks verify what is sent (python3 with venv, node 20 with npm).
	@if [ -z "$${CI:-}" ] && ! { command -v python3 && command -v npm; } >/dev/null; then \
	  printf '\n!! LEFT OUT: the receivers need python3 and npm. Webhooks were NOT verified by other languages.\n'; exit 0; fi; \
	$(TALLY) test $(OUTCOMES) 'receivers of webhooks' -timeout 10m ./internal/receivers

.PHONY: race
race: $(TALLY) ## Run the tests of what is concurrent under the race detector (needs a C compiler).
	@cc=$$(go env CC); if command -v $${cc%% *} >/dev/null; then \
	  FANFARE_TEST_PAIRS=200000 CGO_ENABLED=1 $(TALLY) test $(OUTCOMES) 'tests under the race detector' -again -race -timeout 20m -skip '^($(RACE_NONE))$$' $(RACE_PACKAGES); \
	else \
	  printf '\n!! LEFT OUT: the race detector needs a C compiler and "%s" is not there. Data races were NOT looked for.\n' "$$cc"; fi

.PHONY: static
static: $(TALLY) ## Build everything without cgo, as all that was tested, which is found compiled.
	@$(TALLY) step $(OUTCOMES) 'build without cgo' go build ./...

.PHONY: crash
crash: $(TALLY) ## Kill the server at its durable steps and under load, and check the promises at the sink.
	@$(TALLY) test $(OUTCOMES) 'crash test' -tags crashsteps -parallel 4 -timeout 30m -skip '$(OWN_POSTGRES)' ./internal/crash/...

.PHONY: crash-postgres
crash-postgres: $(TALLY) ## The same on PostgreSQL, which is killed and cut off too.
	@$(ON_POSTGRES) $(TALLY) test-on PostgreSQL $(OUTCOMES) 'crash test on PostgreSQL' -tags crashsteps -parallel 4 -timeout 30m ./internal/crash/...

.PHONY: bench-smoke
bench-smoke: $(TALLY) build ## Run every experiment at a hundredth of its size.
	@$(TALLY) step $(OUTCOMES) 'experiments at 1 %' ./bin/fanfare bench --scale 0.01 all

.PHONY: release-fixture
release-fixture: ## Keep a data directory of this version for the upgrade test (VERSION=v1.2.3).
	@mkdir -p bin && $(BUILD) -tags crashsteps -o bin/fanfare-fixture ./cmd/fanfare
	@go test -count=1 -timeout 5m ./internal/upgrade -args -make '$(VERSION)' -program "$$PWD/bin/fanfare-fixture"

.PHONY: compare
compare: ## Compare the index with the independent evaluator (COMPARE_PAIRS=1000000000 COMPARE_SEED=1).
	@FANFARE_COMPARE_PAIRS=$(COMPARE_PAIRS) FANFARE_COMPARE_SEED=$(COMPARE_SEED) go test -count=1 -timeout 12h -v -run '^TestTheIndexAgreesWithTheEvaluator$$' ./internal/conditiontest

.PHONY: mutation
mutation: ## Change the index in every place, one at a time, and demand that a test fails (some hours).
	@FANFARE_MUTANTS=all FANFARE_MUTANT_SURVIVORS=$$PWD/build/survivors.txt go test -count=1 -tags mutation -timeout 24h -v -run '^TestMutantsAreFound$$' ./internal/mutation

.PHONY: mutation-sample
mutation-sample: $(TALLY) ## The same with the planted mutants and a sample of 50.
	@$(TALLY) test $(OUTCOMES) 'mutants of the index' -tags mutation -timeout 20m -run '^TestMutantsAreFound$$' ./internal/mutation

.PHONY: fuzz
fuzz: ## Fuzz each parser of outside bytes for FUZZTIME (10s).
	@FUZZTIME=$(FUZZTIME) .ci/fuzz

##@ Tidy

.PHONY: clean
clean: ## Remove what was built and what tests left.
	@rm -rf bin build .test .peers

.PHONY: begin
begin: $(TALLY)
	@rm -f $(OUTCOMES)

# Not in hidden folders: the peers may be unpacked beside it.
.PHONY: fmt-check
fmt-check: $(TALLY)
	@$(TALLY) step $(OUTCOMES) layout bash -c 'bad=$$(gofmt -l *.go */); [ -z "$$bad" ] || { echo "run make fmt:"; echo "$$bad"; exit 1; }'

.PHONY: $(TALLY)
$(TALLY):
	@go build -o $(TALLY) ./internal/arch/tally
