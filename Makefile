# Everything starts here: `make demo` and `make test` need Python 3.11+ and make, nothing else.
#   PYTHON=python3.12  which Python the environment is made from
#   VENV=.venv         where it lies
#   JOBS=4             tests in so many processes (default: 4); those marked "alone" run first, by themselves
#   ARGS="-k frame"    more arguments for pytest

PYTHON ?= python3
VENV ?= .venv
JOBS ?= 4
ARGS ?=

RUN := $(VENV)/bin/python
# Tests that measure time run alone, and only their files are read for that; the rest share the cores. A worker that is
# done takes over half of what another still has: files with a server of their own are cut in two at most now and then.
# Two processes for each of two cores: many tests wait for servers, browsers and the times at which answers leave.
# Those that measure mostly wait: others that only compute take what is left of the cores meanwhile (tests/beside.py).
# pytest's 5 is "no such test", as with ARGS="-k ...".
ALONE = $(if $(wildcard $(ARGS)),,$(shell grep -rl "pytest.mark.alone" tests --include="test_*.py"))
BESIDE = $(if $(ARGS)$(DALENIUS_EXPLORE)$(filter 1,$(JOBS)),,-p tests.beside --beside-$(1)="$$beside")
# The files of tests lie in memory where there is room: a ledger waits for the disk several times for each charge, and
# nothing here depends on what a power cut would leave.
MEMORY = $(shell df -Pk /dev/shm 2>/dev/null | awk '$$1 == "tmpfs" && $$4 > 2000000 {print "/dev/shm"}')
# Several processes keep the cores busy: a second thread for a scalar product would only wait for its turn, at full speed.
# Compiled modules are kept, whatever the environment says: tests start many processes, and each would compile anew.
define pytest
status=0; \
export PYTHONDONTWRITEBYTECODE= OPENBLAS_NUM_THREADS=1; \
export TMPDIR="$${TMPDIR:-$(MEMORY)}"; \
beside=$$(mktemp -d); \
$(RUN) -m pytest -m alone $(call BESIDE,start) $(ALONE) $(ARGS) || [ $$? -eq 5 ] || status=1; \
$(RUN) -m pytest -m "not alone" -n $(JOBS) --dist worksteal $(call BESIDE,read) $(ARGS) || [ $$? -eq 5 ] || status=1; \
rm -rf "$$beside"; \
exit $$status
endef

# A stamp says "these extras are installed as this pyproject.toml asks"; newer stamps make later runs fast.
DEMO_READY := $(VENV)/.ready-demo
DEV_READY := $(VENV)/.ready-dev

.DEFAULT_GOAL := help
.PHONY: help demo test test-long test-lowest lint format docs bench clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(firstword $(MAKEFILE_LIST))

demo: $(DEMO_READY) ## install, run the tour, then serve its tables (in a terminal)
	@$(RUN) -m dalenius demo

test: $(DEV_READY) ## run the whole test suite, long tests in their short form
	@scripts/system-packages
	@$(pytest)

test-long: $(DEV_READY) ## run the whole test suite with full counts
	@scripts/system-packages
	@export DALENIUS_LONG=1 PYTEST_ADDOPTS="-o faulthandler_timeout=10800"; $(pytest)

test-lowest: ## run the whole test suite with the lowest versions that pyproject.toml allows, in .venv-lowest
	@scripts/lowest > .venv-lowest.txt
	@CONSTRAINTS=.venv-lowest.txt $(MAKE) --no-print-directory test VENV=.venv-lowest

lint: $(DEV_READY) ## style, types and import rules
	@$(RUN) -m ruff check .
	@$(RUN) -m ruff format --check .
	@$(RUN) -m mypy
	@$(VENV)/bin/lint-imports

format: $(DEV_READY) ## put the code into the one format
	@$(RUN) -m ruff check --fix .
	@$(RUN) -m ruff format .

docs: $(DEV_READY) ## build the documentation into site/
	@NO_MKDOCS_2_WARNING=1 $(RUN) -m mkdocs build --strict --quiet && echo "The documentation is in site/index.html."

bench: $(DEV_READY) ## run every benchmark in bench/
	@set -e; found=; \
	for script in bench/*.py; do \
	    [ -e "$$script" ] || continue; \
	    found=yes; echo "== $$script"; $(RUN) "$$script"; \
	done; \
	[ -n "$$found" ] || echo "There is no benchmark in bench/ yet."

clean: ## remove the environment and everything that was built
	rm -rf $(VENV) .venv-lowest .venv-lowest.txt site dist build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .dalenius-demo
	find src tests bench -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

$(DEMO_READY): pyproject.toml scripts/environment
	@PYTHON="$(PYTHON)" scripts/environment $(VENV) serve,plot
	@touch $@

$(DEV_READY): pyproject.toml scripts/environment
	@PYTHON="$(PYTHON)" scripts/environment $(VENV) serve,plot,dev
	@touch $@
