# Needs make and Python >= 3.11, nothing else. Everything lands in .venv; `make clean` takes it away again.

VENV := .venv
BIN  := $(VENV)/bin
PIP  := $(BIN)/python -m pip --disable-pip-version-check
# --no-cache-dir is not given on purpose: a second fresh clone on the same machine installs from pip's cache.
HASHED := $(PIP) install --quiet --require-hashes
PYTEST := $(BIN)/python -m pytest
# As pip does with what it installs, the peers of the benchmark too. A third of a start is compiling otherwise, of each one where PYTHONDONTWRITEBYTECODE is set.
COMPILE := $(BIN)/python -m compileall -q src

# The first interpreter that is new enough and can make environments. Asked only when .venv is made.
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11 python; do \
	"$$python" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& { echo "$$python"; break; }; done)

.DEFAULT_GOAL := help
.PHONY: help run demo cluster test soak check fmt lock bench load openapi screenshots clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(VENV)/run.stamp ## start Noonday on http://127.0.0.1:8060 (ARGS="--port 9000" to change something)
	@exec $(BIN)/noonday serve $(ARGS)

demo: $(VENV)/run.stamp ## the same with forty jobs, a week of history and services to call (ARGS=--remove takes them away)
	@exec $(BIN)/noonday demo $(ARGS)

cluster: $(VENV)/dev.stamp ## three instances on PostgreSQL and Valkey, to see fail-over live (ARGS="--restart")
	@exec $(BIN)/python -m demo.cluster $(ARGS)

test: $(VENV)/dev.stamp ## run every test, with PostgreSQL and Redis from wheels and Chromium (TESTS=tests/domain for a part)
ifdef TESTS
	$(if $(findstring tests/web,$(TESTS)),@$(BIN)/python -m tests.web.chromium)
	$(PYTEST) $(TESTS)
else
	@$(BIN)/python -m tests.web.chromium
	@# Tests that kill processes and look at the real clock come first: beside each other, not beside those that want every core.
	@# More at a time than there are cores: many of them wait for something for much of their time.
	$(PYTEST) -m "crash or cluster" -n 3 --dist loadgroup
	$(PYTEST) -m "not crash and not cluster and not soak" -n 4 --maxschedchunk 8
endif

soak: $(VENV)/dev.stamp ## the long test of a cluster, with random faults (ARGS="--minutes 60 --seed 7")
	$(BIN)/python -m tests.cluster.soak $(ARGS)

check: $(VENV)/dev.stamp ## lint, format, types and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

fmt: $(VENV)/dev.stamp ## put the code into house style
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/dev.stamp ## measure it beside its peers and the machine's limits (ARGS="--quick --peers none", or --help)
	@$(COMPILE)
	$(BIN)/python -m bench $(ARGS)

load: $(VENV)/dev.stamp ## press a real process with many clients while jobs keep the cores busy (ARGS="--database postgres")
	$(BIN)/python -m tests.hostile.load $(ARGS)

openapi: $(VENV)/dev.stamp ## write docs/openapi.json and the client anew (ARGS=--accept-breaking before the first release)
	$(BIN)/python -m tools.openapi $(ARGS)
	$(BIN)/python -m tools.client

screenshots: $(VENV)/dev.stamp ## the pictures of docs/images anew (ARGS="--folder /tmp/pages" for every page, light, dark, phone)
	$(BIN)/python -m tools.screenshots $(ARGS)

LOCK = $(BIN)/uv pip compile --quiet --system-certs --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-header --no-annotate $(if $(UPGRADE),--upgrade)

lock: $(VENV)/dev.stamp ## write requirements/*.lock anew from pyproject.toml (UPGRADE=1 for the newest versions)
	$(PIP) install --quiet uv
	$(LOCK) pyproject.toml -o requirements/run.lock
	$(LOCK) pyproject.toml --group dev -c requirements/run.lock -o requirements/dev.lock
	printf 'hatchling\neditables\n' | $(LOCK) - -c requirements/dev.lock -o requirements/build.lock
	@! grep -n '://' requirements/*.lock || { echo "a lock file names a host" >&2; exit 1; }

clean: ## remove .venv, caches and build results; jobs and history in .noonday/ stay
	rm -rf $(VENV) .bench .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist
	find . -name __pycache__ -type d -not -path './.noonday/*' -prune -exec rm -rf {} +

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "make: no Python 3.11 or newer with venv and ensurepip found." >&2; \
		echo "Install one (Debian, Ubuntu: apt install python3 python3-venv) or say where it is: make PYTHON=/path/to/python3" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# Locked first, with hashes; then Noonday itself from this folder, so that editing the source needs no new install.
$(VENV)/run.stamp: requirements/run.lock requirements/build.lock pyproject.toml | $(BIN)/python
	$(HASHED) -r requirements/run.lock -r requirements/build.lock
	$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@$(COMPILE)
	@touch $@

$(VENV)/dev.stamp: requirements/dev.lock pyproject.toml | $(BIN)/python
	$(HASHED) -r requirements/dev.lock
	$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@$(COMPILE)
	@touch $@
