# Everything here needs git, make and Go, and downloads nothing but Go modules;
# only `race`, `gitea` and `e2e` need a C compiler besides, and `pages` a browser and npm. Slow things are built once below bin/.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

N             ?= 1000
SIZES         ?= 1000,2000,5000,10000
# The slowest packages begin first.
TEST_PACKAGES ?= ./test/e2e ./test/ocm ./controllers/addonsource ./rollout ./...
TEST_PARALLEL ?= 3
# A test that hangs is named before the limit of the whole step in .ci/run.
TEST_TIMEOUT  ?= 25m
FUZZ_TIME     ?= 2m
RACE_PACKAGES ?= ./render/... ./registration/... ./commitstatus/... ./githubapp/... ./dial/... ./gates/measure/... ./oci/... ./controllers/gatechecks ./controllers/hook
FAULTS_FLAGS  ?= $(if $(SHORT),-for 5m) $(if $(ONLY),-only '$(ONLY)') $(if $(SHORT)$(ONLY),,-report docs/reliability.md)
PREVIOUS      := bin/faults/addonflow-$(shell cat test/faults/previous)
DEMO_CLUSTERS ?=
DEMO_SPEED    ?=
DEMO_FLAGS    ?= $(if $(DEMO_CLUSTERS),--clusters=$(DEMO_CLUSTERS)) $(if $(DEMO_SPEED),--speed=$(DEMO_SPEED))

TOOLS := bin/tools
SAY   := @printf '==> %s\n'
TALLY := go run ./test/tally
# hubbin prints the directory of kube-apiserver and etcd, building them if it must.
HUB_ASSETS = assets="$$(go run ./test/hubbin/cmd/hubbin)"; export KUBEBUILDER_ASSETS="$$assets"
# One line per generated file, to see which of them generating again changes.
GENERATED  = git grep -lz --untracked -E '^// Code generated .* DO NOT EDIT|controller-gen\.kubebuilder\.io/version:'; git ls-files -z manifests/chart/files docs/reference
SNAPSHOT   = { $(GENERATED) || true; } | xargs -0 cksum

export CGO_ENABLED := 0
# A workspace of the user's must not change what is built.
export GOWORK := off
# A package with other flags is compiled again: everything has the flags of what ships. Tests run
# without vet, because lint runs it.
export GOFLAGS := $(strip $(GOFLAGS) -trimpath)
# Two cores and a cold page cache need longer than envtest's 20 seconds.
export KUBEBUILDER_CONTROLPLANE_START_TIMEOUT ?= 120s

.PHONY: help
help: ## List the targets
	@awk 'BEGIN {FS = ":.*## "; print "usage: make TARGET\n"} /^[a-z0-9-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/addonflow
	$(SAY) 'build: bin/addonflow (a minute or two with an empty Go build cache)'
	@go build -ldflags='-s -w' -o bin/addonflow ./cmd/addonflow

.PHONY: hub
hub: ## Find or build kube-apiserver and etcd for tests, demo and bench
	$(SAY) 'hub: kube-apiserver and etcd (about five minutes on two cores if they must be built, once)'
	@$(HUB_ASSETS); echo "$$KUBEBUILDER_ASSETS"

.PHONY: ocm
ocm: ## Build OCM's own programs, which test/ocm runs beside AddonFlow
	$(SAY) "ocm: OCM's addon-manager, placement controller and work agent (about three minutes on two cores, once)"
	@go run ./test/hubbin/cmd/hubbin ocm

.PHONY: gitea
gitea: ## Build Gitea, which only e2e runs (needs gcc)
	$(SAY) 'gitea: a forge with SQLite (about six minutes on two cores, once)'
	@go run ./test/hubbin/cmd/hubbin gitea

.PHONY: registry
registry: ## Build the OCI registry that tests run
	$(SAY) 'registry: distribution and the client of Flux (about two minutes on two cores, once)'
	@go run ./test/hubbin/cmd/hubbin registry

.PHONY: tools
tools: ## Build controller-gen and golangci-lint into bin/tools
	$(SAY) 'tools: controller-gen and golangci-lint (about three minutes on two cores, once)'
	@test/tools/build.sh

.PHONY: generate
generate: tools ## Write deep copies, CRDs, the reference and everything under go:generate
	$(SAY) 'generate: deep copies and CRDs from api/, then go generate (seconds)'
	@$(TOOLS)/controller-gen object crd:allowDangerousTypes=true paths=./api/... output:crd:artifacts:config=manifests/crds
	@cp manifests/crds/addon*.yaml manifests/chart/files/crds/
	@cp manifests/rbac/{serviceaccount,clusterrole,role,secrets}.yaml manifests/chart/files/rbac/
	@cp manifests/admission/{policy,binding}.yaml manifests/chart/files/admission/
	@cp manifests/tenants/revisions.yaml manifests/chart/files/tenants/
	@cp manifests/replace/clusterrole.yaml manifests/chart/files/replace/
	@cp manifests/users/clusterroles.yaml manifests/chart/files/users/
	@cp manifests/operator/{availability,networkpolicy}.yaml manifests/chart/files/operator/
	@cp manifests/monitoring/{servicemonitor,rules,dashboard}.yaml manifests/chart/files/monitoring/
	@go generate ./...

.PHONY: verify
verify: tools ## Fail when generated files or module files are not current
	$(SAY) 'verify: generates again and compares, checks the module files (under a minute)'
	@before="$$($(SNAPSHOT))"; \
	$(MAKE) --no-print-directory generate; \
	after="$$($(SNAPSHOT))"; \
	if ! diff <(echo "$$before") <(echo "$$after"); then \
	  echo 'verify: the files above are not current; run "make generate" and commit the result' >&2; exit 1; \
	fi
	@go mod tidy -diff
	@cd test/tools && go mod tidy -diff
	@cd release && go mod tidy -diff
	@git ls-files --cached --others --exclude-standard -- go.mod '*/go.mod' | while read -r mod; do \
	  (cd "$$(dirname "$$mod")" && echo "$$mod: $$(go mod verify)"); \
	done

.PHONY: fmt
fmt: tools ## Format the Go code (gofumpt, gci)
	$(SAY) 'fmt: gofumpt and gci over the tree (seconds)'
	@$(TOOLS)/golangci-lint fmt

.PHONY: lint
lint: tools ## Run golangci-lint and the checks of the tree's shape
	$(SAY) 'lint: golangci-lint (two minutes with an empty cache), then test/shape'
	@$(TOOLS)/golangci-lint config verify
	@$(TOOLS)/golangci-lint run ./...
	@cd release && ../$(TOOLS)/golangci-lint run ./...
	@go test -count=1 -v ./test/shape

.PHONY: test
test: hub ocm registry ## Run every test, the envtest suites included
	$(SAY) 'test: every package of the module (some minutes; the first run compiles the most)'
	@$(HUB_ASSETS); go test -vet=off -p $(TEST_PARALLEL) -timeout $(TEST_TIMEOUT) -json $(TEST_PACKAGES) | $(TALLY)

.PHONY: e2e
e2e: hub gitea ## Tell the whole story on a real Gitea (needs gcc and OpenSSH's client)
	$(SAY) 'e2e: the operator beside the embedded hub and Gitea (about three minutes)'
	@$(HUB_ASSETS); go test -vet=off -tags gitea -timeout $(TEST_TIMEOUT) -count=1 -json ./test/gitea | $(TALLY)

AXE := bin/axe/node_modules/axe-core/axe.min.js
$(AXE): test/chromium/package.json test/chromium/package-lock.json
	$(SAY) 'axe: axe-core, with which pages are judged (seconds, once)'
	@mkdir -p bin/axe; cp $^ bin/axe/; cd bin/axe; npm ci --ignore-scripts --no-audit --no-fund
	@touch $@

.PHONY: pages
pages: $(AXE) ## Judge the pages in a real Chromium (needs chromium and npm), screenshots below bin/screenshots
	$(SAY) 'pages: accessibility trees, axe-core and the keyboard (under a minute)'
	@go test -vet=off -tags chromium -timeout 5m -count=1 -json ./dashboard | $(TALLY)

.PHONY: mutants
mutants: ## Plant known mistakes in planner and ledger; a test must fail for each
	$(SAY) 'mutants: compiles and tests package rollout once for each (about five minutes)'
	@go run ./test/mutants

.PHONY: race
race: export CGO_ENABLED := 1
race: ## Run the packages with concurrency that need no hub under the race detector (needs gcc)
	$(SAY) 'race: render, registration, commitstatus, githubapp, dial, gates/measure, oci, controllers/gatechecks, controllers/hook (compiles them instrumented: a few minutes)'
	@go test -race -vet=off -short -timeout $(TEST_TIMEOUT) -json $(RACE_PACKAGES) | CGO_ENABLED=0 $(TALLY)

.PHONY: fuzz
fuzz: ## Fuzz everything that parses, all targets together for FUZZ_TIME (default 2m)
	$(SAY) 'fuzz: every Fuzz target of the tree (compiles the packages of this module anew first: a minute or two, once)'
	@go run ./test/fuzz -for $(FUZZ_TIME)

# The operator of the commit in test/faults/previous, for upgrades.
$(PREVIOUS):
	$(SAY) 'previous: the operator of the commit in test/faults/previous (a minute or two, once)'
	@rm -rf bin/faults/previous; mkdir -p bin/faults/previous
	@git archive "$$(<test/faults/previous)" | tar -x -C bin/faults/previous
	@rm -rf $@.manifests; cp -r bin/faults/previous/manifests $@.manifests
	@cd bin/faults/previous && go build -ldflags='-s -w' -o ../$(@F) ./cmd/addonflow
	@rm -rf bin/faults/previous

.PHONY: faults
faults: build hub $(if $(SHORT),,$(PREVIOUS)) ## Make everything go wrong, and judge all that was stored (SHORT=1: five minutes; ONLY=WORDS)
	$(SAY) 'faults: one hub for each point (up to three hours; a run that was interrupted continues)'
	@go build -ldflags='-s -w' -tags faultclock -o bin/addonflow-faultclock ./cmd/addonflow
	@$(HUB_ASSETS); go build -o bin/faults.bin ./test/faults; bin/faults.bin -previous $(PREVIOUS) -commit "$$(git describe --always --dirty --exclude='*' || echo unknown)" $(FAULTS_FLAGS)

.PHONY: demo
demo: build hub ## Show the whole story on the embedded hub (DEMO_CLUSTERS, DEMO_SPEED)
	$(SAY) 'demo: a hub, a fleet and a Git repository on this machine (a few minutes)'
	@$(HUB_ASSETS); bin/addonflow demo $(DEMO_FLAGS)

.PHONY: readme
readme: build hub ## Run the demo and write its last lines into the README
	$(SAY) 'readme: the demo, with its own clusters and pace (a few minutes)'
	@$(HUB_ASSETS); NO_COLOR=1 bin/addonflow demo | tee /dev/stderr | awk ' \
	  NR == FNR { if (/^✔ [1-7]\/7 /) lines = lines $$0 "\n"; next } \
	  /^<!-- demo output -->$$/ { print; printf "```\n%s```\n", lines; skip = 1 } \
	  /^<!-- end of demo output -->$$/ { skip = 0 } \
	  !skip { print }' - README.md > README.md.new
	@[ "$$(grep -cE '^✔ [1-7]/7 ' README.md.new)" = 7 ] || { rm README.md.new; echo 'readme: the demo did not end well' >&2; exit 1; }
	@mv README.md.new README.md

.PHONY: bench
bench: hub build ## Measure against the floor with N clusters (default 1000)
	$(SAY) 'bench: planner and renderer alone, then a hub with $(N) clusters (ten minutes or so)'
	@go test -run '^$$' -bench . -benchmem ./rollout/... ./render/...
	@$(HUB_ASSETS); go run ./test/bench -clusters $(N) -profile bin/bench.pprof -timeout 1h

.PHONY: scale
scale: hub build ## Measure how cost grows with SIZES of fleets (default 1000,2000,5000,10000) into docs/scale.md
	$(SAY) 'scale: one hub for each of $(SIZES) clusters (hours on two cores; a run that was interrupted continues)'
	@$(HUB_ASSETS); go build -o bin/bench.bin ./test/bench; bin/bench.bin -scale $(SIZES) -timeout 24h

.PHONY: release
release: ## Write binaries, image, chart, manifests, SBOM and checksums into dist/ (VERSION=v0.2.0, KEY=file)
	$(SAY) 'release: $(VERSION) of HEAD for six platforms (ten minutes or so with an empty build cache)'
	@go -C release build -o ../bin/release.bin . && bin/release.bin -version '$(VERSION)' $(if $(KEY),-key '$(KEY)')

.PHONY: release-test
release-test: ## Make a release for one platform twice, and a small one for all; check the workflows
	$(SAY) 'release-test: links the program twice, and a small one for six platforms (three minutes)'
	@go -C release test -count=1 -timeout $(TEST_TIMEOUT) -json ./... | $(TALLY)

.PHONY: clean
clean: ## Remove what the build made, but not the slow hub binaries and tools
	$(SAY) 'clean: bin/addonflow, logs, dist and the state of the demo'
	@rm -rf bin/addonflow bin/release.bin bin/bench.bin bin/ci-logs dist .demo

.PHONY: clean-cache
clean-cache: clean ## Remove the hub binaries and the tools as well
	$(SAY) 'clean-cache: everything below bin/ (minutes to build again)'
	@rm -rf bin
