# Every command of the project. `make help` prints this list.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STATIC := src/planetwire/web/static/index.html
FRONTEND_FILES := $(shell find frontend/src frontend/public -type f 2>/dev/null) $(wildcard frontend/*.json frontend/*.ts frontend/*.html)
# More processes than cores, since most tests wait for others most of the time; who shares what is made once, in one.
SPREAD := --dist loadgroup
SIDE_BY_SIDE = $(MAKE) --no-print-directory --jobs 3 --output-sync=target
.DEFAULT_GOAL := help
.PHONY: help setup demo dev test test-long quick business faults check fmt lint types arch house frontend-check unit pytest e2e bench bench-peers wheel release picture lock schema new-dataset clean

help: ## Print this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-15s %s\n", $$1, $$2}'

setup: $(VENV)/.installed $(STATIC) ## Install everything into .venv, build the front end

$(VENV)/.installed: requirements/dev.lock pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed"; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	@touch $@

frontend/node_modules/.installed: frontend/package-lock.json
	cd frontend && npm ci --no-audit --no-fund
	@touch $@

$(STATIC): frontend/node_modules/.installed $(FRONTEND_FILES)
	cd frontend && npm run --silent build
	@touch $@

demo: setup ## Run everything on simulated feeds and print the address
	$(BIN)/planetwire demo

dev: setup ## Everything on simulated feeds, back end and page reloading as files change
	$(BIN)/python scripts/dev.py

test: setup ## Every gate and every test
	@+$(SIDE_BY_SIDE) check frontend-check business
	@$(MAKE) --no-print-directory pytest

test-long: setup ## The long forms of the random tests; before a release, an hour or two
	PLANETWIRE_LONG=1 $(BIN)/python -m pytest -q --timeout 7200 -n $${PLANETWIRE_TEST_WORKERS:-2} \
		tests/property tests/crash/test_outbox_oracle.py tests/integration/test_outbox_writers.py

quick: $(VENV)/.installed frontend/node_modules/.installed ## Gates, unit tests, vitest
	@+$(SIDE_BY_SIDE) check frontend-check unit

business: frontend/node_modules/.installed ## The front end's tests that acceptance names
	cd frontend && npm run --silent test:business

check: fmt-check lint types arch house ## The gates that need no server

fmt: $(VENV)/.installed ## Format Python and TypeScript
	$(BIN)/ruff format src tests bench scripts
	$(BIN)/ruff check --fix-only src tests bench scripts
	cd frontend && npm run --silent format

fmt-check: $(VENV)/.installed
	$(BIN)/ruff format --check src tests bench scripts

lint: $(VENV)/.installed ## ruff
	$(BIN)/ruff check src tests bench scripts

types: $(VENV)/.installed ## mypy, strict
	$(BIN)/mypy

arch: $(VENV)/.installed ## Who may import whom
	$(BIN)/lint-imports

house: $(VENV)/.installed ## File sizes, port widths, depth, words that do not belong here
	$(BIN)/python scripts/check_house.py

frontend-check: frontend/node_modules/.installed ## Biome, tsc, vitest
	cd frontend && npm run --silent lint && npm run --silent typecheck && npm run --silent test

unit: $(VENV)/.installed ## Only the tests that need no server
	$(BIN)/python -m pytest -q -n 2 tests/unit

pytest: setup ## Every Python test; those with a browser after the others, since each of the two fills the cores
	@failed=0; $(BIN)/python -m pytest -q -m "not browser" $(SPREAD) -n $${PLANETWIRE_TEST_WORKERS:-3} || failed=1; \
	$(BIN)/python -m pytest -q -m browser $(SPREAD) -n $${PLANETWIRE_TEST_BROWSERS:-1} || failed=1; exit $$failed

e2e: setup ## Only the browser tests
	$(BIN)/python -m pytest -q -m browser $(SPREAD) -n $${PLANETWIRE_TEST_BROWSERS:-2}

faults: setup ## Plant every fault of scripts/faults in a copy; about an hour, writes docs/planted-faults.md
	$(BIN)/python scripts/plant_faults.py

bench: setup bench-peers ## Every benchmark; fails at the end if a goal was missed
	@failed=0; for script in bench/[a-z]*.py; do echo "== $$script"; $(BIN)/python $$script || failed=1; done; exit $$failed

bench-peers: .venv-bench/.installed ## The neighbours that the ledger is measured against, into .venv-bench and bench/peers

.venv-bench/.installed: requirements/bench.lock bench/peers/package-lock.json
	@test -x .venv-bench/bin/python || $(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/bench.lock
	npm ci --silent --no-audit --no-fund --prefix bench/peers
	@touch $@

wheel: setup ## Build dist/*.whl with the front end inside
	$(BIN)/python -m build --wheel

release: setup ## Build dist/ of a tagged version: wheel, sdist, notes, bill of materials, checksums
	$(BIN)/python scripts/release.py

picture: setup ## Record the README's moving picture anew; needs Chromium
	$(BIN)/python scripts/record_delete.py

lock: ## Write the Python lock files anew
	$(BIN)/python -m uv pip compile -q --universal --generate-hashes --no-header --group dev pyproject.toml -o requirements/dev.lock
	$(BIN)/python -m uv pip compile -q --universal --generate-hashes --no-header pyproject.toml -o requirements/run.lock
	$(BIN)/python -m uv pip compile -q --universal --generate-hashes --no-header --group pyproject.toml:bench -o requirements/bench.lock

schema: $(VENV)/.installed ## Write what the migrations add up to, and list new ones
	$(BIN)/python scripts/write_schema.py

new-dataset: ## Write the folder of a dataset and its simulation: NAME=volcanoes [KIND=point|line|area] [SOURCE=usgs_volcanoes]
	@$(PYTHON) scripts/new_dataset.py "$(NAME)" $(if $(KIND),--kind "$(KIND)") $(if $(SOURCE),--source "$(SOURCE)")

clean: ## Remove what was built
	rm -rf $(VENV) .venv-bench bench/peers/node_modules frontend/node_modules src/planetwire/web/static dist
