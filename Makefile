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
BUILD      := go build -ldflags '-X main.released=$(VERSION)'
LINT       := go tool -modfile=tools/go.mod golangci-lint
STEP       := .ci/step
GOTEST     := .ci/gotest
FUZZTIME   ?= 10s
DEMO_FLAGS ?=
BENCH      ?= all
BENCH_FLAGS ?=

# Pairs of a condition and an event that the oracle of internal/condition compares in `make ci`.
# They differ from run to run.
PAIRS      ?= 1000000

# The pairs of the oracle are drawn anew for each commit.
CI_SEED    ?= $(shell printf '%d' 0x$$(git rev-parse --short=7 HEAD 2>/dev/null || echo 1))

# Pairs of a condition and an event for which the index and the independent evaluator must agree.
COMPARE_PAIRS ?= 200000
COMPARE_SEED  ?= 300
export FANFARE_TEST_PAIRS ?= 200000
export FANFARE_COMPARE_PAIRS = $(COMPARE_PAIRS)
export FANFARE_COMPARE_SEED = $(COMPARE_SEED)

# Random sequences for each property of stores and registries; `make ci` runs 40.
CHECKS ?= 25
export FANFARE_TEST_CHECKS = $(CHECKS)

# Subscriptions of each data set in realdata.
SUBSCRIPTIONS ?= 20000

# Packages whose goroutines share data. Their tests also run under the race detector.
RACE := httpapi bus pipeline/deliver pipeline/ingest pipeline/record people sink
RACE_PACKAGES = ./internal/condition $(addsuffix /...,$(wildcard $(addprefix ./internal/,$(RACE))))

# Tests of these packages that compute in one goroutine for a long time have no race to find.
RACE_NONE := TestRowsFindTheirCrossingsAsCELDoes|TestEveryGuardFindsTrueConditions|TestABucketIsASortedList|TestATopicLimitsItsShapes|TestConjunctionsAreFoundByEachGuard|TestAScanReadsWhatDecodeReads|TestAnEndpointOpensForItsScopesOnly|TestCompositeConditionsAgreeWithCEL

# Packages whose tests start whole servers or databases. `make test` runs the tests that
# internal/test/e2e/quick.md lists, and `make ci` all of them.
SLOW          := server pipeline/digest store/move store/postgres store/storetest test/docexamples test/e2e
SLOW_PACKAGES  = $(addprefix ./internal/,$(SLOW))
QUICK          = $(shell sed -n 's/^- `\(Test[A-Za-z0-9]*\)`.*/\1/p' internal/test/e2e/quick.md | paste -sd'|')

# Tests of fast packages that only `make ci` runs.
LONG_WAITS     = $(shell sed -n 's/^- `\(Test[A-Za-z0-9]*\)`.*/\1/p' internal/test/e2e/ci-only.md | paste -sd'|')
CI_ONLY        = $(LONG_WAITS)

# The crash tests are built with a tag of their own, and the receivers need more than Go.
FAST_PACKAGES  = $(shell go list -find ./... | grep -vE '/internal/(test/arch|test/crash|test/receivers|$(subst $() ,|,$(strip $(SLOW))))$$')

# Go keeps the results of packages that have not changed; FRESH=-count=1 runs all tests of the fast packages.
FRESH :=

# Tests wait for servers and disks more than they compute: one package more than cores at once.
WIDE := -p 3

# One PostgreSQL serves all packages of a step. FANFARE_TEST_DB chooses it where tests run on both stores.
# The examples of the documentation start several servers, each on its files: they run on SQLite alone.
WITH_POSTGRES := go run ./internal/test/pgtest/with
STORE_TESTS    = $(addprefix ./,$(sort $(dir $(shell grep -rlE --include='*_test.go' 'storetest\.(Open|Place)|pgtest\.Chosen' internal | grep -vE '^internal/(test/crash|test/docexamples|store/storetest)/'))))
ONCE_ONLY      = $(shell sed -n 's/^- `\(Test[A-Za-z0-9]*\)`.*/\1/p' internal/store/storetest/once-only.md | paste -sd'|')

# On PostgreSQL, make ci runs the tests of internal/test/e2e that quick.md lists: whole servers on PostgreSQL are what internal/server tests.
PG_TESTS       = $(filter-out ./internal/test/e2e/,$(STORE_TESTS))

# Tests that ran already and that a step leaves out: `make ci` runs those of quick.md in make test.
RAN :=

# Crash tests that start a PostgreSQL of their own run once, with the others that need PostgreSQL.
OWN_POSTGRES := PostgreSQL|TheDatabase|InAMove

# Packages with tests behind the build tag peers.
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

.PHONY: console
console: ## Build the web console (Node 20.19 or newer); make build then embeds it.
	@web/console/build

.PHONY: sdk
sdk: build ## Build the clients for Python and TypeScript and the in-app inbox into build/sdk.
	@sdk/build

.PHONY: docs
docs: build ## Build the site of docs/ into build/docs (python3 with venv).
	@docs/site/build

# Without Node, the page of the console says how to build it.
.PHONY: demo
demo: ## Run the main job on real data and keep serving (DEMO_FLAGS=--once to end).
	@if command -v npm >/dev/null; then web/console/build || echo 'the demo runs without the web console' >&2; fi
	@$(MAKE) build
	@./bin/fanfare demo $(DEMO_FLAGS)

.PHONY: bench
bench: build ## Run experiments in full size (BENCH=N1, BENCH_FLAGS='--runs 5').
	@./bin/fanfare bench $(BENCH_FLAGS) $(BENCH)

RUNS ?= 3
PAIR_IDS ?= N1 B1 L9 U1
MEASURED = docs/explanation/measurements

.PHONY: measure
measure: build ## Measure a suite in full size and rewrite the page of measurements (SUITE=ssns RUNS=3).
	@test -n '$(SUITE)' || { echo "name a suite or ids: make measure SUITE=ssns (fanfare bench list shows them)" >&2; exit 2; }
	./bin/fanfare bench --runs $(RUNS) --out $(MEASURED).jsonl $(SUITE)
	./bin/fanfare bench report --into $(MEASURED).md $(MEASURED).jsonl

.PHONY: bench-pairs
bench-pairs: build ## Compare this tree with an older binary (OLD=PATH, PAIR_IDS='N1 B1 L9 U1').
	@test -n '$(OLD)' || { echo "name the binary of the older tree: make bench-pairs OLD=/path/to/fanfare" >&2; exit 2; }
	./bin/fanfare bench pairs --old $(OLD) $(PAIR_IDS)

##@ Check

.PHONY: test
test: ## Check the main job and all fast tests (3 to 8 minutes).
	@rm -rf .test; status=0; $(MAKE) -k test-steps || status=1; .ci/summary || status=1; exit $$status

# Go compiles most of the server while npm downloads what the console needs.
.PHONY: ci
ci: ## Check everything: make test, linters, races, PostgreSQL, crashes, peers, experiments.
	@rm -rf .test; mkdir -p .test; status=0; { go build ./... >/dev/null 2>&1 || true; } & compiled=$$!; \
	$(STEP) 'build the web console' web/console/build || status=1; wait $$compiled; $(MAKE) build || status=1; \
	set -m; $(MAKE) -k RAN='$(QUICK)' CONSOLE=built ci-waits >.test/waits.log 2>&1 & lane=$$!; set +m; \
	trap 'kill -- "-$$lane" 2>/dev/null || true' EXIT; \
	$(MAKE) -k RAN='$(QUICK)' CI_ONLY=none CHECKS=40 FRESH=-count=1 test-steps ci-computes || status=1; \
	wait $$lane || status=1; cat .test/waits.log; .ci/summary || status=1; exit $$status

# The steps of make test.
.PHONY: test-steps
test-steps: build layout vet arch unit main-job sample-postgres crash-steps

# The steps that make ci adds to make test, in two lanes side by side: tests that compute, and
# tests that wait for registries, mail servers and servers that restart.
.PHONY: ci-computes ci-waits
ci-computes: lint assertions oracle slow unit-postgres race mutation-sample crash crash-postgres power-loss chaos
ci-waits: test-peers receivers bench-smoke

.PHONY: layout
layout: ## Check the layout of the sources (gofmt).
	@$(STEP) layout bash -c 'bad=$$(gofmt -l *.go */); [ -z "$$bad" ] || { echo "run make fmt:"; echo "$$bad"; exit 1; }'

.PHONY: vet
vet: ## Run go vet, with the code behind build tags.
	@$(STEP) vet go vet -tags 'peers thunderbird crashsteps powerloss assertions mutation' ./...

.PHONY: lint
lint: ## Run the linters (.golangci.yml; the first run builds them from source).
	@$(STEP) lint $(LINT) run ./...

.PHONY: arch
arch: ## Check imports, sizes and wording.
	@$(GOTEST) architecture -count=1 ./internal/test/arch/...

.PHONY: unit
unit: ## Run all tests of the fast packages.
	@GO_TEST_WRAPPER='$(WITH_POSTGRES)' $(GOTEST) 'fast packages' $(FRESH) $(WIDE) -timeout 10m -skip '^($(CI_ONLY))$$' $(FAST_PACKAGES)

.PHONY: main-job
main-job: ## Drive the main job through the real binary, on SQLite.
	@$(GOTEST) 'main job' -count=1 -timeout 10m -run '^($(QUICK))$$' ./internal/test/e2e

.PHONY: sample-postgres
sample-postgres: ## Drive the main job on PostgreSQL, which is fetched for it, and check both stores.
	@FANFARE_TEST_DB=postgres GO_TEST_WRAPPER='$(WITH_POSTGRES)' $(GOTEST) 'main job on PostgreSQL' -count=1 $(WIDE) -timeout 10m -run '^($(QUICK))$$' ./internal/test/e2e ./internal/store/storetest

.PHONY: crash-steps
crash-steps: ## Kill the server once at each durable step.
	@$(GOTEST) 'kill at each durable step' -count=1 -tags crashsteps -parallel 4 -timeout 10m -run '^($(QUICK))$$' ./internal/test/crash

.PHONY: slow
slow: ## Run all tests of the packages that start servers or databases, on SQLite.
	@GO_TEST_WRAPPER='$(WITH_POSTGRES)' $(GOTEST) 'slow packages' -count=1 $(WIDE) -parallel 3 -timeout 20m -skip '^($(RAN))$$' $(SLOW_PACKAGES)

.PHONY: oracle
oracle: ## Compare the index with cel-go (PAIRS) and with the independent evaluator (200,000 pairs).
	@echo 'FANFARE_COMPARE_SEED=$(CI_SEED)'
	@FANFARE_TEST_PAIRS=$(PAIRS) FANFARE_COMPARE_PAIRS=200000 FANFARE_COMPARE_SEED=$(CI_SEED) $(GOTEST) oracle -count=1 -timeout 20m -run '^(TestHitsAreThoseOfNaiveEvaluation|TestTheIndexAgreesWithTheEvaluator)$$' ./internal/condition ./internal/condition/conditiontest

.PHONY: assertions
assertions: ## Run the tests of the matching index with assertions.
	@FANFARE_TEST_PAIRS=5000 $(GOTEST) 'tests with assertions' -count=1 -tags assertions -timeout 10m ./internal/condition ./internal/condition/lang ./internal/condition/expr ./internal/condition/ngram

.PHONY: unit-postgres
unit-postgres: ## Run all tests that need a store on PostgreSQL.
	@FANFARE_TEST_DB=postgres GO_TEST_WRAPPER='$(WITH_POSTGRES)' $(GOTEST) 'tests on PostgreSQL' -count=1 $(WIDE) -parallel 3 -timeout 20m -skip '^($(ONCE_ONLY)|$(RAN))$$' $(PG_TESTS)

.PHONY: imap-oracle
imap-oracle: ## Compare the IMAP server with Dovecot (SCRIPTS=10000 SEED=1; root, Debian or Ubuntu).
	@FANFARE_IMAP_SCRIPTS=$(or $(SCRIPTS),10000) FANFARE_IMAP_SEED=$(or $(SEED),1) go test -count=1 -v -tags peers -timeout 12h ./internal/test/imaporacle

.PHONY: receivers
receivers: ## Verify webhooks with the official libraries of Standard Webhooks (python3 with venv, node 20 with npm).
	@$(GOTEST) 'receivers of webhooks' -count=1 -timeout 10m ./internal/test/receivers

.PHONY: race
race: ## Run the tests of concurrent packages under the race detector (needs a C compiler).
	@CGO_ENABLED=1 FANFARE_TEST_PAIRS=20000 FANFARE_COMPARE_PAIRS=30000 $(GOTEST) 'tests under the race detector' -count=1 -race -timeout 20m -skip '^($(RACE_NONE)|$(LONG_WAITS))$$' $(RACE_PACKAGES)

.PHONY: crash
crash: ## Kill the server at its durable steps and under load, and check the promises at the sink.
	@$(GOTEST) 'crash tests' -count=1 -tags crashsteps -parallel 4 -timeout 30m -skip '$(OWN_POSTGRES)|^($(RAN))$$' ./internal/test/crash/...

.PHONY: crash-postgres
crash-postgres: ## Run the crash tests on PostgreSQL, which is killed and cut off too.
	@FANFARE_TEST_DB=postgres GO_TEST_WRAPPER='$(WITH_POSTGRES)' $(GOTEST) 'crash tests on PostgreSQL' -count=1 -tags crashsteps -parallel 4 -timeout 30m ./internal/test/crash/...

# A disk that forgets needs FUSE and the right to mount. Without them, the summary of make ci says that nothing was tested.
FUSE := /dev/fuse

# The short form runs one test for each kind of data that is acknowledged. Tests that start a PostgreSQL of their own are left out.
POWER_TAGS  := -tags 'crashsteps powerloss'
POWER_SHORT := Power|DurableSession|TestMailboxesKeep|ABounceCounts|EachRowOfASend|EachEventIsInOneDigest|AnErasureIsFinished
POWER_SKIP  := $(OWN_POSTGRES)|TestAShareOfTheTime|TestACheckOfEvery|WhenTheDiskFails|OnlyTheLastMoment|DatabaseMoves|/relaxed
POWER_LONG   = CRASH_POWER_LOSSES=$(or $(LOSSES),40) CRASH_SESSION_KILLS=30 go test -count=1 -v -parallel 2 $(POWER_TAGS) -timeout 1h -skip '$(POWER_SKIP)' ./internal/test/crash
POWER_OTHER  = CRASH_DISK_FAULTS=100 CRASH_RELAXED_LOSSES=100 go test -count=1 -v $(POWER_TAGS) -timeout 2h -run 'WhenTheDiskFails|OnlyTheLastMoment' ./internal/test/crash
POWER_SUM   := awk '{print} / losses of power; the disk/ {all += $$2} END {print all " losses of power"}'

.PHONY: power-loss
power-loss: ## Cut the power under load on a disk that forgets what was not synced (needs FUSE and root).
	@probe=$$(mktemp -d); possible=no; \
	if [ -e $(FUSE) ] && mount -t tmpfs none "$$probe" 2>/dev/null && umount "$$probe"; then possible=yes; fi; rmdir "$$probe"; \
	if [ $$possible = no ]; then $(STEP) 'losses of power: NOT TESTED, because nothing can be mounted' true; exit; fi; \
	$(GOTEST) 'the disk that forgets' -count=1 -tags powerloss -timeout 10m ./internal/test/powerloss/... ./internal/durablefile; \
	CRASH_POWER_LOSSES=8 CRASH_DISK_FAULTS=6 CRASH_RELAXED_LOSSES=4 CRASH_SESSION_KILLS=4 CRASH_MAILBOX_KILLS=2 CRASH_KILLS=2 \
	$(GOTEST) 'losses of power' -count=1 $(POWER_TAGS) -timeout 20m -parallel 4 -run '$(POWER_SHORT)' -skip '/relaxed$$' ./internal/test/crash

.PHONY: power-mutants
power-mutants: ## Leave out one sync after the other, and see that losses of power show it.
	go test -count=1 -v -tags 'crashsteps powerloss mutation' -timeout 1h -run '^TestEachMissingSyncIsFound$$' ./internal/test/crash

.PHONY: power-losses
power-losses: ## Cut the power more than 300 times on each store, for all data that is acknowledged (LOSSES=40 of two tests).
	$(POWER_LONG) | $(POWER_SUM)
	FANFARE_TEST_DB=postgres $(POWER_LONG) | $(POWER_SUM)
	$(POWER_OTHER)
	FANFARE_TEST_DB=postgres $(POWER_OTHER)

.PHONY: bit-flips
bit-flips: ## Flip 200 bits in stored data, and in pages of PostgreSQL (FLIPS=200, SEED=1).
	FANFARE_BIT_FLIPS=$(or $(FLIPS),200) FANFARE_BIT_FLIPS_SEED=$(or $(SEED),1) go test -count=1 -v -timeout 2h -run '^(TestNoFlippedBitBecomesAWrongMessage|TestDoctorReportsFlippedPagesOfPostgreSQL)$$' ./internal/test/e2e

.PHONY: chaos
chaos: ## Run a cluster under random faults for two minutes, and check the promises at the relay.
	@CHAOS_MINUTES=2 $(GOTEST) 'cluster under random faults' -count=1 -tags crashsteps -timeout 20m ./internal/test/chaos

.PHONY: session-kills
session-kills: ## Kill the server, workers and clients of sessions 200 times under load (KILLS=200).
	@FANFARE_KILLS=$(or $(KILLS),200) go test -count=1 -v -timeout 2h -run '^TestKillsLoseNoRequestOfADurableSession$$' ./internal/test/e2e

# Each run of the first test kills the server four times, each run of the second one at every durable step of mailboxes and at random.
.PHONY: soak
soak: build ## Run the long checks of mailboxes: J1 to J6 in full size, and hundreds of kills under load (SOAK_RUNS=1; some hours).
	@mkdir -p build; status=0; \
	./bin/fanfare bench --runs $(or $(SOAK_RUNS),1) --out build/soak.jsonl james || status=1; \
	go test -count=50 -v -timeout 2h -run '^TestAcknowledgedMailSurvivesKills$$' ./internal/test/e2e || status=1; \
	go test -count=10 -v -tags crashsteps -timeout 3h -run '^TestMailboxesKeepWhatWasAcknowledgedWhenTheServerDies$$' ./internal/test/crash || status=1; \
	exit $$status

.PHONY: chaos-long
chaos-long: ## Do the same for an hour (CHAOS_MINUTES=60, CHAOS_SEED=1 repeats a schedule).
	@CHAOS_MINUTES=$(or $(CHAOS_MINUTES),60) go test -count=1 -v -tags crashsteps -timeout 6h -run '^TestAClusterKeepsItsPromisesUnderRandomFaults$$' ./internal/test/chaos

.PHONY: test-peers
test-peers: peers-mail peers-console peers-sdk peers-docs ## Test against mail servers (root, Debian or Ubuntu), in Chromium, and from Python, TypeScript and Rust.

.PHONY: peers-mail
peers-mail: ## Test against Postfix, Exim and OpenSMTPD, and the API with Schemathesis (root, Debian or Ubuntu).
	@$(STEP) 'install the peers' .ci/peers
	@PATH="$$PWD/.peers/usr/sbin:$$PATH" $(GOTEST) 'tests against peers' -count=1 -tags peers -parallel 3 -timeout 20m $(or $(PEERS_PACKAGES),$(error no test has the build tag peers))

.PHONY: peers-thunderbird
peers-thunderbird: ## Read a mailbox with Thunderbird without a window, by hand (root, Debian; downloads 80 MB).
	@command -v thunderbird >/dev/null || DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends thunderbird
	@go test -count=1 -v -tags 'peers thunderbird' -timeout 10m -run '^TestThunderbirdReadsAMailbox$$' ./internal/test/peers

.PHONY: peers-console
peers-console: ## Test the web console in a browser (node 20 with npm, chromium); the screenshots are in build/console-screenshots.
	@[ '$(CONSOLE)' = built ] || $(STEP) 'build the web console' web/console/build
	@$(MAKE) build
	@$(STEP) 'tests of the web console' web/console/test/run .test/console.xml

.PHONY: peers-sdk
peers-sdk: build ## Test the clients, the in-app inbox and the CloudEvents SDK of Rust (python3 with venv, node 20 with npm, chromium, cargo).
	@for language in python typescript; do \
	  $(STEP) "build the $$language client" sdk/build $$language; \
	  $(STEP) "tests of the $$language client" sdk/test $$language .test/$$language.xml; \
	done; \
	$(STEP) 'build the in-app inbox' sdk/build inbox; \
	$(STEP) 'tests of the in-app inbox' sdk/test inbox .test/inbox.xml; \
	$(STEP) 'tests of the CloudEvents SDK of Rust' sdk/test rust .test/rust.xml

.PHONY: peers-docs
peers-docs: build ## Build the site of the documentation and check every link (python3 with venv).
	@$(STEP) 'site of the documentation' docs/site/build

.PHONY: realdata
realdata: ## Publish real events to 20,000 generated subscriptions each and check every mail (root; smtp-sink from Debian's postfix).
	@command -v smtp-sink >/dev/null || { echo 'realdata needs smtp-sink from the Debian package postfix: apt-get install postfix' >&2; exit 3; }
	@FANFARE_TEST_SUBSCRIPTIONS=$(SUBSCRIPTIONS) go test -count=1 -v -tags peers -timeout 30m -run '^TestRealEventsReachWhoWantsThemOnce$$' ./internal/test/peers

.PHONY: bench-smoke
bench-smoke: build ## Run every experiment at a hundredth of its size.
	@$(STEP) 'experiments at 1 %' ./bin/fanfare bench --scale 0.01 all
	@$(STEP) 'experiments of a cluster at 1 %' $(WITH_POSTGRES) sh -c 'FANFARE_DB=$$FANFARE_TEST_POSTGRES exec ./bin/fanfare bench --scale 0.01 --db env cluster'

.PHONY: fmt
fmt: ## Format the sources.
	@gofmt -w .

.PHONY: release-fixture
release-fixture: ## Keep a data directory of this version for the upgrade test (VERSION=v1.2.3).
	@mkdir -p bin && $(BUILD) -tags crashsteps -o bin/fanfare-fixture ./cmd/fanfare
	@go test -count=1 -timeout 5m ./internal/test/upgrade -args -make '$(VERSION)' -program "$$PWD/bin/fanfare-fixture"

.PHONY: compare
compare: ## Compare the index with the independent evaluator (COMPARE_PAIRS=1000000000 COMPARE_SEED=1).
	@go test -count=1 -timeout 12h -v -run '^TestTheIndexAgreesWithTheEvaluator$$' ./internal/condition/conditiontest

.PHONY: mutation
mutation: ## Change the index in every place, one at a time, and demand that a test fails (some hours).
	@FANFARE_MUTANTS=all FANFARE_MUTANT_SURVIVORS=$$PWD/build/survivors.txt go test -count=1 -tags mutation -timeout 24h -v -run '^TestMutantsAreFound$$' ./internal/test/mutation

.PHONY: mutation-sample
mutation-sample: ## Do the same with the planted mutants and a sample of 10.
	@FANFARE_MUTANTS=10 FANFARE_MUTANT_LANES=2 $(GOTEST) 'mutants of the index' -count=1 -tags mutation -timeout 20m -run '^TestMutantsAreFound$$' ./internal/test/mutation

.PHONY: fuzz
fuzz: ## Fuzz each parser of outside bytes for FUZZTIME (10s).
	@FUZZTIME=$(FUZZTIME) .ci/fuzz

##@ Tidy

.PHONY: clean
clean: ## Remove what was built and what tests left.
	@rm -rf bin build .test .peers
