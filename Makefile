# Commands of the project; `make help` lists them. They install what they need.
SHELL := /bin/bash
VENV ?= .venv
BIN := $(VENV)/bin
SETUP := deploy/setup/system-packages
VERSION = $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' monitor/__init__.py)
PYTEST := $(BIN)/python -m pytest
# Versions of the lab, the Kubernetes of the end-to-end tests: 1.35 with containerd, or 1.20 with Docker.
export LAB ?= 1.35
E2E := tests/e2e tests/scorecard tests/deploy/test_install.py tests/deploy/test_wheel.py \
	tests/docs/test_shell.py tests/docs/test_screenshots.py tests/docs/test_tutorial.py \
	tests/sim/test_ending.py tests/web/browser/test_thousand_nodes.py

# With compiled modules, collecting the tests takes a third of the time and starting the daemon two thirds.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help run demo test check lint types unit e2e e2e-platforms e2e-read-only bench soak chaos siege mutation coverage threats audit fuzz corpus lab-up lab-down lock generate screenshots proto image clean

help: ## list the commands
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

# Stamp files: a changed lock file or package list triggers another installation.
$(VENV)/.runtime: requirements/runtime.txt pyproject.toml
	@$(SETUP) run
	@deploy/setup/virtualenv $(VENV) requirements/runtime.txt
	@touch $@

$(VENV)/.dev: requirements/dev.txt pyproject.toml $(SETUP)
	@$(SETUP) test
	@deploy/setup/virtualenv $(VENV) requirements/dev.txt
	@touch $@ $(VENV)/.runtime

run: $(VENV)/.runtime ## run agent and daemon on this machine; web page on http://127.0.0.1:9836
	@exec $(BIN)/gpuwarden up $(ARGS)

demo: $(VENV)/.runtime ## run everything on a simulated cluster with outages of all kinds within minutes
	@exec $(BIN)/gpuwarden demo $(ARGS)

# Types are checked beside the tests, and reported after them: mypy occupies one core only.
test: lint ## all checks: format, lint, types, layers, unit and integration tests
	@mkdir -p build
	@$(MAKE) --no-print-directory types > build/types.log 2>&1 & types=$$!; \
	$(MAKE) --no-print-directory unit; tests=$$?; \
	wait $$types; types=$$?; cat build/types.log; exit $$((tests | types))

check: lint types

lint: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/.dev
	$(BIN)/lint-imports --no-cache & layers=$$!; $(BIN)/mypy && wait $$layers

unit: $(VENV)/.dev
	$(PYTEST) -m "not e2e" -n 4 --dist loadfile --no-loadscope-reorder --durations=10 $(ARGS)

e2e: $(VENV)/.dev ## end-to-end tests in a real Kubernetes 1.35 with containerd (LAB=1.20: with Docker), built once within 25 minutes
	$(BIN)/python -m tests.lab build
	$(PYTEST) -m "e2e and not long" --durations=10 --ignore=tests/e2e/platforms $(E2E) $(ARGS)

e2e-platforms: $(VENV)/.dev ## the same scenario on Volcano, Kubeflow, Kueue and other job platforms in the lab; writes bench/PLATFORMS.md
	$(BIN)/python -m tests.lab build
	$(BIN)/python -m tests.lab build-platforms
	$(BIN)/python -m tests.e2e.platforms $(ARGS)

e2e-read-only: $(VENV)/.dev ## run doctor, status and why in the cluster of $KUBECONFIG, and verify that nothing is written
	$(PYTEST) tests/e2e --read-only $(ARGS)

lab-up: $(VENV)/.dev ## start the Kubernetes of the end-to-end tests for interactive use
	$(BIN)/python -m tests.lab build
	$(BIN)/python -m tests.lab up

lab-down: $(VENV)/.dev ## stop it
	$(BIN)/python -m tests.lab down

bench: $(VENV)/.dev ## benchmarks, also of comparable tools; writes bench/RESULTS.md and bench/results.json
	@$(SETUP) bench
	$(BIN)/python -m tests.lab build
	$(BIN)/python -m bench.go_peers
	$(BIN)/python -m bench $(ARGS)

soak: $(VENV)/.dev ## run the daemon for half an hour in a large, busy cluster; writes bench/SOAK.md
	$(BIN)/python -m tests.soak $(ARGS)

chaos: $(VENV)/.dev ## 20 minutes of random faults in the lab; writes bench/CHAOS.md
	$(BIN)/python -m tests.lab build
	$(BIN)/python -m tests.chaos $(ARGS)

siege: $(VENV)/.dev ## 5 minutes of all known attacks on agent and daemon under the chart's limits; writes bench/SIEGE.md
	$(BIN)/python -m tests.siege $(ARGS)

fuzz: $(VENV)/.dev ## fuzz every parser; MINUTES=5 sets the duration, ARGS the targets
	deploy/setup/fuzz $(BIN)/python $(or $(MINUTES),5) $(ARGS)

corpus: $(VENV)/.dev ## score the explanations on the corpus of failure messages; ARGS=--misses shows what is not right
	$(BIN)/python -m tests.explain.score $(ARGS)

mutation: $(VENV)/.dev ## mutation tests of the alert lifecycle and cleanup plans
	$(BIN)/python -m tests.mutation $(ARGS)

coverage: $(VENV)/.dev ## branch coverage of decision code; fails below 90 % in a package
	$(BIN)/python -m tests.mutation.branches $(ARGS)

threats: $(VENV)/.dev ## remove each protection of the threat model in turn: its test must fail; ARGS selects some
	$(BIN)/python -m tests.security.removals $(ARGS)

audit: $(VENV)/.dev ## check locked dependencies for known vulnerabilities; fails without network
	deploy/setup/audit $(BIN)/python requirements/runtime.txt

lock: $(VENV)/.dev ## update the locked dependencies
	deploy/setup/lock $(VENV)

generate: $(VENV)/.dev ## regenerate what is derived: reference pages, Prometheus alerts, dashboards, manifests
	$(BIN)/python -m docs.generate
	$(BIN)/python -m dashboards.generate
	deploy/setup/manifests

screenshots: $(VENV)/.dev ## take the pictures of README and tutorial from the demo, in both languages; ARGS selects some
	@$(SETUP) screenshots
	$(BIN)/python -m docs.screenshots $(ARGS)

proto: $(VENV)/.dev ## regenerate the protocol buffer modules
	deploy/setup/proto $(BIN)/python

image: ## build the container image; BASE=NAME@sha256:DIGEST names the base image
	@UNPINNED=$(UNPINNED) deploy/setup/image gpuwarden:$(VERSION) $(VERSION) $(BASE)

clean: ## remove the virtual environment and build artefacts
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .hypothesis
