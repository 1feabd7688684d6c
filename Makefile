# Steno. `make` alone prints the targets.

SHELL   := /bin/bash
GO      ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LDFLAGS := -s -w -X main.version=$(VERSION)
BUILD   := CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)'
# The race detector needs a C compiler.
RACE    := $(shell command -v gcc >/dev/null 2>&1 || command -v cc >/dev/null 2>&1 || command -v clang >/dev/null 2>&1 && echo -race)
FUZZTIME ?= 10s

BINDIR  ?= $(HOME)/.local/bin
UNITDIR ?= $(or $(XDG_CONFIG_HOME),$(HOME)/.config)/systemd/user

.DEFAULT_GOAL := help
.PHONY: help run demo build test check e2e e2e-latest e2e-lint bench fuzz install uninstall clean fmt-check lint units cross faults vuln

help: ## print the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: build ## run the daemon in this terminal and print each event
	@exec bin/steno serve --follow

demo: build ## replay a recorded session of each agent to see it work, without any agent
	@$(BUILD) -o bin/standin ./cmd/standin
	@exec bin/standin demo --steno bin/steno --records testdata/demo

build: ## build bin/steno, static
	@$(BUILD) -o bin/steno ./cmd/steno

# One package at a time: a daemon sees all agents of its user, also those that
# other tests start.
test: ## run all tests (with the race detector where a C compiler exists)
	$(if $(RACE),CGO_ENABLED=1,CGO_ENABLED=0) $(GO) test $(RACE) -p 1 -timeout 40m ./...

check: fmt-check lint cross units test ## everything that CI runs

fmt-check:
	@out=$$(gofmt -l cmd ipc observer owned providers store 2>&1); \
	if [ -n "$$out" ]; then echo "check: not formatted by gofmt:"; echo "$$out"; exit 1; fi

lint:
	$(GO) vet ./...
	$(GO) tool staticcheck ./...

vuln: ## look for known vulnerabilities (VULNDB=file:///dir is a copy of the database)
	GOTOOLCHAIN=auto $(GO) run golang.org/x/vuln/cmd/govulncheck@v1.9.0 $(if $(VULNDB),-db $(VULNDB)) ./...

cross: build # both released platforms build without C
	GOOS=linux GOARCH=amd64 $(BUILD) -o /dev/null ./cmd/steno
	GOOS=linux GOARCH=arm64 $(BUILD) -o /dev/null ./cmd/steno

units: build
	packaging/systemd/verify bin/steno

e2e: e2e-lint ## run the published programs against Steno (RUN=claude/plain runs one; REWRITE=1 writes the table)
	$(E2E) $(if $(REWRITE),-update)

e2e-latest: e2e-lint ## the same with the newest published versions, and a report of what is new
	$(E2E) -latest

# A slower machine gets more time by STENO_E2E_PATIENCE, which multiplies every
# bound. The go command counts the installation, too: 10 minutes more.
E2E := $(GO) test -tags e2e -count=1 -timeout $$((15 * $${STENO_E2E_PATIENCE:-1} + 10))m -parallel 3 -v -run 'TestReal$(if $(RUN),$$/$(RUN))' ./cmd/e2e

e2e-lint:
	$(GO) vet -tags e2e ./cmd/e2e/...
	$(GO) tool staticcheck -tags e2e ./cmd/e2e/...

faults: ## break the daemon on purpose, some hours long, and write RELIABILITY.md (RUN=TestKill runs one)
	@mkdir -p bin && rm -f bin/faults.jsonl
	STENO_FAULTS=long STENO_FAULTS_REPORT=$(CURDIR)/bin/faults.jsonl $(if $(RACE),CGO_ENABLED=1,CGO_ENABLED=0) \
	  $(GO) test $(RACE) -count=1 -timeout 8h -v -run '$(RUN)' -skip TestTable ./cmd/faults
	STENO_FAULTS_REPORT=$(CURDIR)/bin/faults.jsonl $(GO) test -count=1 -run TestTable ./cmd/faults -update

bench: ## run the benchmarks
	$(GO) test -run '^$$' -bench . -benchmem ./...

fuzz: ## run every fuzz target for FUZZTIME (10s)
	@grep -rl --include='*_test.go' '^func Fuzz' cmd ipc observer owned providers store | while read -r file; do \
	  grep -o '^func Fuzz[A-Za-z0-9_]*' "$$file" | while read -r _ name; do \
	    $(GO) test -run '^$$' -fuzz "^$$name\$$" -fuzztime $(FUZZTIME) "./$$(dirname "$$file")" || exit 1; \
	  done || exit 1; \
	done

install: build ## install for this user: binary and systemd user units
	BINDIR='$(BINDIR)' UNITDIR='$(UNITDIR)' packaging/systemd/install bin/steno

uninstall: ## remove what install put there; the event log stays
	BINDIR='$(BINDIR)' UNITDIR='$(UNITDIR)' packaging/systemd/uninstall

clean: ## remove built files
	rm -rf bin dist
