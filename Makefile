# Everything runs in .venv, which is made from a bare Python 3.11 or newer on first use.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.DEFAULT_GOAL := help
.PHONY: help demo test check bench format clean

help: ## show this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 10

demo: $(READY) ## the main job in a few seconds: keep, kill -9, reopen, list, show, preview a prune
	@$(BIN)/python -m statestore.demo

test: $(READY) ## run the tests
	$(BIN)/python -m pytest

check: $(READY) ## lint, formatting, types, layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/pyright --project pyproject.toml --pythonpath $(BIN)/python
	$(BIN)/lint-imports

bench: $(READY) ## measure against bare floors
	$(BIN)/python -m benchmarks

format: $(READY) ## sort imports and format
	$(BIN)/ruff check --select I --fix
	$(BIN)/ruff format

clean: ## remove .venv and all caches
	rm -rf .venv .pytest_cache .hypothesis .ruff_cache .import_linter_cache build dist
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("statestore needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@$(BIN)/python -m compileall -q src
	@touch $@
