# Everything a person needs from a fresh clone. `make` alone lists the targets.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TESTS ?= tests
WORKERS ?= 2
FETCH_JARS = @$(BIN)/python -m viewkeeper.jars > /dev/null

.DEFAULT_GOAL := help
.PHONY: help demo test check test-long test-web bench bench-report docs clean java

help: ## List the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: java $(VENV)/.installed ## Make a retail warehouse, change it, refresh it incrementally
	$(FETCH_JARS)
	$(BIN)/viewkeeper demo

test: java $(VENV)/.installed-dev ## Run the tests (TESTS=path for some of them)
	$(FETCH_JARS)
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m "not long" --ignore tests/web $(TESTS)

test-long: java $(VENV)/.installed-dev ## Run all the tests, also the long ones
	$(FETCH_JARS)
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --ignore tests/web $(TESTS)

test-web: java $(VENV)/.installed-dev ## Run the tests of the console in a real browser (needs chromium)
	@$(BIN)/python tests/web/chromium.py
	$(FETCH_JARS)
	$(BIN)/python -m pytest tests/web

check: $(VENV)/.installed-dev ## Format, lint, types, layers, doctests
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q --doctest-modules src

bench: java $(VENV)/.installed-bench ## Measure refresh against recompute (TPC-H)
	$(FETCH_JARS)
	$(BIN)/python benchmarks/refresh_vs_recompute.py

bench-report: $(VENV)/.installed ## Write the benchmarks beside the papers' findings: build/bench-report.html
	$(BIN)/python benchmarks/bench_report.py

docs: $(VENV)/.installed-docs ## Write the reference pages anew, and build the site: build/site
	$(BIN)/python -m viewkeeper.reference docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

clean: ## Remove what the other targets made (not the jar cache)
	rm -rf $(VENV) demo-warehouse dist build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

# Asked before anything is installed, so the file is run alone: it needs nothing but the standard library.
java:
	@$(PYTHON) src/viewkeeper/java.py

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "viewkeeper needs Python 3.10 or newer; $(PYTHON) is older. Try: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || \
	  { echo "Python's venv module is missing. On Debian or Ubuntu: sudo apt-get install python3-venv" >&2; exit 1; }

$(VENV)/.installed: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet -e .
	@touch $@

$(VENV)/.installed-dev: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet -e '.[dev]'
	@touch $@ $(VENV)/.installed $(VENV)/.installed-docs

$(VENV)/.installed-docs: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet -e '.[docs]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-bench: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet -e '.[bench]'
	@touch $@
