# gpuwarden: the commands of the project. `make help` lists them. Nothing has to be installed before.
SHELL := /bin/bash
VENV ?= .venv
BIN := $(VENV)/bin
SETUP := deploy/setup/system-packages
VERSION = $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' monitor/__init__.py)
PYTEST := $(BIN)/python -m pytest
E2E := tests/soak tests/e2e tests/scorecard tests/deploy/test_install.py tests/docs/test_shell.py

.DEFAULT_GOAL := help
.PHONY: help run demo test check unit e2e e2e-read-only bench soak chaos mutation coverage audit fuzz lab-up lab-down lock proto docs image manifests clean

help: ## list the commands
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

# The stamps hold what was installed, so that a changed lock or a changed list of packages is installed again.
$(VENV)/.runtime: requirements/runtime.txt pyproject.toml
	@$(SETUP) run
	@deploy/setup/virtualenv $(VENV) requirements/runtime.txt
	@touch $@

$(VENV)/.dev: requirements/dev.txt pyproject.toml $(SETUP)
	@$(SETUP) test
	@deploy/setup/virtualenv $(VENV) requirements/dev.txt
	@touch $@ $(VENV)/.runtime

run: $(VENV)/.runtime ## start the agent and the daemon on this machine; the page is on http://127.0.0.1:9836
	@exec $(BIN)/gpuwarden up $(ARGS)

demo: $(VENV)/.runtime ## all of it on a simulated cluster, in which everything goes wrong within minutes
	@exec $(BIN)/gpuwarden demo $(ARGS)

test: check unit ## every check: format, lint, types, layering, unit and integration tests

check: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

unit: $(VENV)/.dev
	$(PYTEST) -m "not e2e" -n 2 --dist loadfile --durations=10 $(ARGS)

e2e: $(VENV)/.dev ## end-to-end tests in a real Kubernetes (built once, about 9 minutes, then cached)
	$(BIN)/python -m tests.lab build
	$(PYTEST) -m "e2e and not long" --durations=10 $(E2E) $(ARGS)

e2e-read-only: $(VENV)/.dev ## the end-to-end tests that only read, in the cluster of $KUBECONFIG
	$(PYTEST) tests/e2e --read-only $(ARGS)

lab-up: $(VENV)/.dev ## start the real Kubernetes of the tests, for people
	$(BIN)/python -m tests.lab build
	$(BIN)/python -m tests.lab up

lab-down: $(VENV)/.dev ## stop it
	$(BIN)/python -m tests.lab down

bench: $(VENV)/.dev ## measure against the peers; writes bench/RESULTS.md and bench/results.json
	@$(SETUP) bench
	$(BIN)/python -m tests.lab build
	$(BIN)/python -m bench $(ARGS)

soak: $(VENV)/.dev ## half an hour of the daemon in a large cluster that never rests; writes bench/SOAK.md
	$(BIN)/python -m tests.soak $(ARGS)

chaos: $(VENV)/.dev ## twenty minutes of random faults against the whole product in the lab; writes bench/CHAOS.md
	$(BIN)/python -m tests.lab build
	$(BIN)/python -m tests.chaos $(ARGS)

fuzz: $(VENV)/.dev ## feed every parser what it should not get; MINUTES=5 says for how long, ARGS names targets
	deploy/setup/fuzz $(BIN)/python $(or $(MINUTES),5) $(ARGS)

mutation: $(VENV)/.dev ## change the life of alerts and the plans of cleanup in small ways: the tests have to notice
	$(BIN)/python -m tests.mutation $(ARGS)

coverage: $(VENV)/.dev ## branches of what decides that its tests take; fails under 90 % in a package
	$(BIN)/python -m tests.mutation.branches $(ARGS)

audit: $(VENV)/.dev ## look the locked dependencies up among known vulnerabilities; fails where nobody can be asked
	deploy/setup/audit $(BIN)/python requirements/runtime.txt

lock: $(VENV)/.dev ## choose new versions of the dependencies
	deploy/setup/lock $(VENV)

docs: $(VENV)/.dev ## make the reference pages anew: settings, rules, metrics, commands
	$(BIN)/python -m docs.generate

proto: $(VENV)/.dev ## generate the protocol buffer modules
	deploy/setup/proto $(BIN)/python

image: ## build the image of agent and daemon; BASE names another base
	docker build -f deploy/Dockerfile -t gpuwarden:$(VERSION) $(if $(BASE),--build-arg BASE=$(BASE)) \
	  --build-arg VERSION=$(VERSION) --build-arg REVISION=$$(git rev-parse --short HEAD 2>/dev/null || echo unknown) .

manifests: ## renew the plain manifests, and the alerts and dashboards in the chart
	deploy/setup/manifests

clean: ## remove the virtual environment and build results
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .hypothesis
