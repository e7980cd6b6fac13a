# Everything a person does with this project. `make` alone explains it.

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev setup-test run test soak bench check lint style types format lock reference wheel clean

BIN := .venv/bin

help: ## Explain the targets
	@echo "Tidemill: make run starts a pool on this machine, make test shows that it works."
	@echo
	@sed -n 's/^\([a-z-]*\):.*## /\1|/p' Makefile | while IFS='|' read -r name text; do printf '  make %-10s %s\n' "$$name" "$$text"; done
	@echo
	@echo "The pool listens on 127.0.0.1:8420 (TIDEMILL_PORT) and keeps everything under TIDEMILL_HOME."

setup: ## Set up what the pool needs, into .venv
	@scripts/setup server

setup-dev: ## Set up what development and tests need as well
	@scripts/setup dev

setup-test: ## Set up what tests need of the system, too
	@scripts/system-packages & packages=$$!; scripts/setup dev; failed=$$?; wait $$packages && exit $$failed

run: setup ## Start a pool to try on this machine, with five nodes; Ctrl-C stops it
	@exec $(BIN)/tidemill up --demo

test: setup-test ## Run every test, in about ten minutes
	@exec $(BIN)/python -m pytest $(ARGS)

soak: setup-test ## Run the long tests
	@exec $(BIN)/python -m pytest --soak $(ARGS)

bench: setup-dev ## Run every benchmark; each prints one line of JSON
	@for file in bench/[a-z]*.py; do echo "$$file" >&2; $(BIN)/python "$$file" --json || exit 1; done

check: lint ## Lint, types and the quick tests, in under two minutes
	@exec $(BIN)/python -m pytest tests/core tests/wire tests/tidy $(ARGS)

lint: style types ## Check style and types

style: setup-dev ## Check style
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .

types: setup-dev ## Check types
	@$(BIN)/mypy

format: setup-dev ## Put the code into the house's form
	@$(BIN)/ruff check --fix --quiet . ; $(BIN)/ruff format .

lock: setup-dev ## Pin the dependencies anew; ARGS=--upgrade takes newer ones
	@scripts/lock $(ARGS)

reference: setup-dev ## Generate the reference pages in docs/
	@$(BIN)/python scripts/reference.py

wheel: setup-dev ## Build the wheel and the source archive into dist/
	@$(BIN)/python -m build --no-isolation

clean: ## Remove what was set up and built; the pool's home is not touched
	@rm -rf .venv .venv.lock dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
