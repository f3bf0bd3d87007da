# Everything runs in .venv, which is made from a bare Python 3.11 or newer on first use.
PYTHON ?= python3
BIN := .venv/bin
ALONE := .venv/.alone
READY := .venv/.ready
PEERS := .venv-peers

.DEFAULT_GOAL := help
.PHONY: help demo test test-matrix soak mutants check bench bench-peers reproduce sbom format clean

help: ## show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 13

demo: $(ALONE) ## the main job in a few seconds: keep, kill -9, reopen, list, show, search, preview a prune
	@$(BIN)/python -m statestore.demo

# The frameworks come second: with all of them loaded, a process is ten times as large, and slow to fork.
test: $(READY) ## run the tests, on two cores
	$(BIN)/python -m pytest --numprocesses 2 --dist loadscope --ignore tests/adapters
	$(BIN)/python -m pytest --numprocesses 2 --dist loadscope tests/adapters

test-matrix: $(READY) ## the adapters with the oldest and the newest version of each framework
	$(BIN)/python tools/matrix.py

soak: $(READY) ## try every promise for ten minutes, or as long as SOAK='--seconds 36000' says
	PYTHONPATH=tests $(BIN)/python -m soak --report docs/reliability.md $(SOAK)

mutants: $(READY) ## break the package on purpose, and see that the right test fails
	PYTHONPATH=tests $(BIN)/python -m mutants --report docs/reliability.md

check: $(READY) ## lint, formatting, types, layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright --project pyproject.toml --pythonpath $(BIN)/python
	$(BIN)/lint-imports

bench: $(READY) ## measure against bare floors
	$(BIN)/python -m benchmarks

bench-peers: $(PEERS)/.ready ## measure beside the stores of agent frameworks, and write docs/benchmarks-peers.md
	$(PEERS)/bin/python -m benchmarks.peers --json .bench-peers.json --plot docs/append-cost.svg \
		--markdown docs/benchmarks-peers.md

reproduce: $(READY) ## build the package twice, and see that both are the same to the byte
	$(BIN)/python tools/reproduce.py

sbom: $(READY) ## what the package is made of, as CycloneDX
	$(BIN)/python tools/sbom.py postgres valkey > sbom.json

format: $(READY) ## sort imports and format
	$(BIN)/ruff check --select I --fix
	$(BIN)/ruff format

clean: ## remove the environments and all caches
	rm -rf .venv .venv-matrix $(PEERS) .bench-peers.json sbom.json .pytest_cache .hypothesis .ruff_cache .import_linter_cache build dist
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# The package alone is there in seconds; what development needs, in a minute or two.
$(ALONE): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("statestore needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(READY): $(ALONE)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@$(BIN)/python -m compileall -q src
	@touch $@

# A peer that cannot be installed does not keep the others from running: its row tells why.
$(PEERS)/.ready: pyproject.toml benchmarks/peers/requirements.txt
	$(PYTHON) -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check --editable .
	$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check -r benchmarks/peers/requirements.txt || \
		grep -v '^#' benchmarks/peers/requirements.txt | while read -r peer; do \
			$(PEERS)/bin/python -m pip install --quiet --disable-pip-version-check "$$peer" || true; done
	@touch $@
