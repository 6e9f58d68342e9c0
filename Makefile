# Every target sets up what it needs: only Python 3.11 or newer, make and a package registry are assumed.
# `make help` lists them.  Narration goes to stderr, so that `make demo | less` shows the report alone.

MAKEFLAGS += --no-print-directory
SHELL := /bin/sh
.DEFAULT_GOAL := help
.SUFFIXES:

VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
LOCKED := $(PIP) install -qq --require-hashes
UVPIP := $(BIN)/uv pip install --quiet
EDITABLE := $(PIP) install -qq --no-deps --no-build-isolation --editable .

# The first of these that runs and is new enough makes the environment; PYTHON=... names another.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

# Stamps: a run-time environment for the demo, the same with the developers' tools for the rest.
RUN := $(VENV)/.ready-run
DEV := $(VENV)/.ready-dev

# Empty is "not set": the tests start hundreds of processes, and each would compile all modules anew.
export PYTHONDONTWRITEBYTECODE =

DEMO ?= traces/coding-agent.jsonl
CORPUS ?= ../shared
# One more than the cores that there mostly are: tests of the screens wait more than they work.
WORKERS ?= 3
# Rooms are the folders of ctxctl/ (docs/design.md, section 7); a room's tests are in the folder of its name.
ROOM ?=
ROOMS := $(sort $(filter-out __pycache__,$(notdir $(patsubst %/,%,$(wildcard tests/unit/*/)))) tui)
TESTS_OF_ROOM = $(and $(filter $(ROOM),$(ROOMS)),$(wildcard tests/unit/$(ROOM)) $(if $(filter tui,$(ROOM)),tests/tui))
# Sets of packages that hooks and policies are tested with; httpx2 and httpx cannot be had together.
FRAMEWORKS ?= httpx2 httpx sibyl sibyl-1.2 engines
# Some need a newer Python than the one that runs all else: uv looks in PATH, then here, else it gets one.
PYENV := $(shell printf ':%s' $(or $(PYENV_ROOT),$(HOME)/.pyenv)/versions/3.*/bin)
# Where the real clients are installed that recording is tried with.
CLIENTS ?= .clients
# Where the other tools are that ctxctl is measured beside; whether they are installed there first, from npm and PyPI.
PEERS ?= .peers
INSTALL ?=
ARGS ?=
# Of `make mutate`: how many changes, which draw, and of which room (all five without).
COUNT ?= 20
SEED ?= 1
# Of `make fuzz`: for how long, and from which seed (0: another one each day); of `make fuzz-parsers`: for how long each.
MINUTES ?= 5
FUZZ_SEED ?= 0
PARSERS ?= codec salvage sse heads query
# Of `make secrets`.
SECRETS ?= 10000
# Of the catalogue, the oldest first: NAME[@STAMP]=FILE or address.
SOURCE ?= models.dev=https://models.dev/api.json

.PHONY: help demo test slow quick calibration catalogue prices corpus scaling frameworks clients check lint format docs site bench bench-peers bench-fleet soak mutate fuzz fuzz-parsers secrets goldens lock dist audit sbom wheels hooks clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-11s %s\n", $$1, $$2}' Makefile

demo: $(RUN) ## open `ctxctl replay` on a sample trace (piped: print the report); DEMO=FILE for another
	@$(BIN)/ctxctl replay $(DEMO) $(ARGS)

test: $(DEV) ## run the test suite but what is slow, and say first how long it takes; ARGS='-k name' to choose
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m 'not slow' $(ARGS)

slow: $(DEV) ## run the slow tests alone: large inputs, real terminals, many examples
	@HYPOTHESIS_PROFILE=$${HYPOTHESIS_PROFILE:-thorough} $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m 'slow and not corpus' $(ARGS)

quick: WORKERS := 4
quick: $(DEV) ## run what your change needs, within a minute; ROOM=engine: the tests of that room
	@test -z "$(ROOM)" || test -n "$(TESTS_OF_ROOM)" || { echo 'make quick ROOM=NAME: $(ROOMS)' >&2; exit 2; }
	@tests='$(TESTS_OF_ROOM)'; test -n "$$tests" || tests=$$($(BIN)/python -m tests.touched) || exit; \
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal -m 'not slow' $$tests $(ARGS)

scaling: $(DEV) ## count the work of every command and importer in every dimension of their input (make test has a part of it)
	@CTXCTL_SCALING=1 CTXCTL_GROWTH=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --timeout=1800 \
		tests/scaling tests/formats/test_growth.py $(ARGS)

corpus: $(DEV) ## run the tests that read captures kept outside the repository; CORPUS=DIR
	@CTXCTL_CORPUS='$(CORPUS)' $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m corpus --timeout=1800 $(ARGS)

calibration: $(DEV) ## fit the shipped calibration to captures kept outside the repository; CORPUS=DIR
	@$(BIN)/python -m tests.corpus.shipping '$(CORPUS)'

prices: $(DEV) ## pack what the installed genai-prices knows, after `make lock` took another version
	@$(BIN)/python scripts/build_prices.py

catalogue: $(DEV) ## rebuild the packed table of models; SOURCE='models.dev=api.json ...' (docs/models.md)
	@$(BIN)/python scripts/build_models.py $(SOURCE)

frameworks: $(FRAMEWORKS:%=.venv-frameworks/%/.ready) ## test hooks and policies with the real packages, each set in an environment of its own
	@for name in $(FRAMEWORKS); do \
		test -f .venv-frameworks/$$name/.ready || { echo "$$name is not tested: its Python is not here (see above)" >&2; continue; }; \
		CTXCTL_FRAMEWORKS=$$name .venv-frameworks/$$name/bin/python -m pytest tests/frameworks tests/original tests/fleet -n $(WORKERS) --tb=short $(ARGS) || exit 1; done

clients: $(DEV) ## install real clients, run them behind `ctxctl record` and write the table of docs/recording.md; CLIENTS=DIR
	@$(BIN)/python -m tools.clients --folder '$(CLIENTS)' $(ARGS)

check: lint test slow ## everything a change must pass: lint, the tests, and the slow ones

lint: $(DEV) ## formatting, ruff, mypy --strict, import contracts, file hygiene
	@$(BIN)/ruff format --check --quiet . || { echo 'make format would change these' >&2; exit 1; }
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo
	@$(BIN)/python scripts/hygiene.py

format: $(DEV) ## rewrite the sources as ruff would have them
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

docs: $(DEV) ## write docs/formats/ from what the importers declare, man/ from the help, and the sizes of docs/design.md
	@$(BIN)/python scripts/docs_formats.py
	@$(BIN)/python scripts/docs_fleet.py
	@$(BIN)/python scripts/man_pages.py
	@$(BIN)/python scripts/measure_house.py

site: .venv-site/.ready ## build the documentation as a site in build/site, links and anchors checked
	@.venv-site/bin/python scripts/docs_site.py $(ARGS)

bench: $(DEV) ## measure against the floors and write docs/benchmarks.md; ARGS='--only again,fleet' prints these
	@$(BIN)/python -m tools.bench --peers '$(PEERS)' $(ARGS)

bench-peers: $(DEV) ## measure beside other tools and write docs/benchmarks-peers.md; INSTALL=1 gets them first
	@$(BIN)/python -m tools.bench.peers --folder '$(PEERS)' $(if $(filter 1,$(INSTALL)),--install) $(ARGS)

bench-fleet: $(DEV) ## make a fleet of captures, add it to a dataset and write docs/benchmarks-fleet.md; CORPUS=DIR for real shapes, ARGS='--sessions 20000'
	@CTXCTL_CORPUS=$(CORPUS) $(BIN)/python -m tools.bench_fleet $(ARGS)

soak: $(DEV) ## load the recorders and `watch` for ten minutes each and write docs/benchmarks-soak.md; ARGS='proxy --minutes 1'
	@$(BIN)/python -m tools.soak $(ARGS)

mutate: $(DEV) ## make small changes to the code and list those that no test notices; COUNT=20 SEED=1 ROOM=trace
	@$(BIN)/python scripts/mutate.py --count $(COUNT) --seed $(SEED) $(if $(ROOM),--room $(ROOM)) $(ARGS)

fuzz: $(DEV) ## damage captures and put them through whole commands; MINUTES=5, CORPUS=DIR, FUZZ_SEED=7 (.fuzz/found keeps findings, .fuzz/tally.json the sums of all runs)
	@$(BIN)/python -m tools.fuzz --minutes $(MINUTES) --seed $(FUZZ_SEED) --corpus '$(CORPUS)' $(ARGS)

fuzz-parsers: .venv-fuzz/.ready ## fuzz each of the five parsers, guided by coverage (atheris, in .venv-fuzz); MINUTES=5 for each
	@mkdir -p .fuzz/found
	@for name in $(PARSERS); do mkdir -p .fuzz/corpus/$$name; \
		CTXCTL_FUZZ_DIR=.fuzz/starts .venv-fuzz/bin/python -m tools.fuzz.guided $$name .fuzz/corpus/$$name \
			-max_total_time=$$(( $(MINUTES) * 60 )) -timeout=5 -rss_limit_mb=1024 -max_len=4096 -artifact_prefix=.fuzz/found/$$name- \
			-print_final_stats=1 $(ARGS) || exit 1; done
	@$(BIN)/python -m tools.fuzz.tally

secrets: $(DEV) ## plant ten thousand secrets of all kinds in recordings and datasets, and search for any; SECRETS=10000
	@CTXCTL_SECRETS=$(SECRETS) $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal tests/unit/record/test_*secrets*.py $(ARGS)

goldens: $(DEV) ## accept the present outputs as the expected ones, and show what changed
	@CTXCTL_UPDATE_GOLDENS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal tests/golden tests/tui $(ARGS)
	@git --no-pager diff --stat -- tests

lock: $(BIN)/python ## resolve the dependencies anew into the hashed requirements files
	@$(BIN)/uv --version >/dev/null 2>&1 || $(PIP) install --quiet 'uv>=0.9'
	@$(BIN)/python scripts/lock.py

dist: $(DEV) ## build dist/: the sdist, the wheel out of it, and that for musl without what has none there
	@rm -rf dist build && mkdir -p build/sdist
	@$(BIN)/python -m hatchling build --target sdist --directory dist >&2
	@tar -xzf dist/*.tar.gz -C build/sdist --strip-components=1
	@cd build/sdist && '$(abspath $(BIN))/python' -m hatchling build --target wheel --directory '$(abspath dist)' >&2
	@$(BIN)/python scripts/musl_wheels.py dist/*-none-any.whl >&2
	@ls -l dist

audit: $(DEV) .venv-audit/.ready ## hold the locked packages against known weaknesses, and list their licences
	@$(BIN)/python scripts/audit.py .venv-audit/bin $(ARGS)

sbom: .venv-audit/.ready ## write dist/sbom.cdx.json: what runs with a release, as CycloneDX
	@mkdir -p dist
	@.venv-audit/bin/cyclonedx-py requirements requirements.txt --pyproject pyproject.toml --short-PURLs \
		--output-reproducible --output-format JSON --output-file dist/sbom.cdx.json 2>/dev/null
	@ls -l dist/sbom.cdx.json

wheels: $(DEV) ## ask for which platforms what ctxctl needs installs without a compiler
	@$(BIN)/python scripts/wheels.py $(ARGS)

hooks: $(DEV) ## install the git pre-commit hooks
	@$(BIN)/pre-commit install

clean: ## remove the environment, caches and outputs
	rm -rf $(VENV) .venv-frameworks .venv-site .venv-fuzz .venv-audit .fuzz .clients .peers dist build .bench tests/actual .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo 'ctxctl needs Python 3.11 or newer: install one, or name it: make PYTHON=/path/to/python3' >&2; exit 1; }
	@echo 'Setting up $(VENV) (once, a minute or two)…' >&2
	@$(PYTHON) -m venv $(VENV) >&2 || { rm -rf $(VENV); \
		echo 'Python could not make a virtual environment (on Debian and Ubuntu: install python3-venv).' >&2; exit 1; }

$(RUN): requirements.txt pyproject.toml | $(BIN)/python
	@$(LOCKED) -r requirements.txt >&2
	@$(EDITABLE) >&2
	@touch $@

.venv-frameworks/%/.ready: tests/frameworks/requirements-%.txt pyproject.toml | $(DEV)
	@echo 'Setting up .venv-frameworks/$* (once)…' >&2
	@needs=$$(sed -n 's/^# python: />=/p' tests/frameworks/$*.in); export PATH="$(abspath $(BIN)):$$PATH$(PYENV)"; \
	if ! $(BIN)/uv venv --quiet --clear --python-preference system --python "$${needs:->=3.11}" .venv-frameworks/$* >&2; then \
		test -n "$$needs" && echo "$* needs Python $$needs: none is here, and none could be fetched" >&2 && exit 0; exit 1; fi; \
	$(UVPIP) --python .venv-frameworks/$* --require-hashes -r tests/frameworks/requirements-$*.txt >&2 && \
	$(UVPIP) --python .venv-frameworks/$* --no-deps --no-build-isolation --editable . >&2 && touch $@

.venv-site/.ready: requirements-site.txt
	@echo 'Setting up .venv-site (once)…' >&2
	@$(PYTHON) -m venv --clear .venv-site >&2
	@.venv-site/bin/python -m pip --disable-pip-version-check install -qq --require-hashes -r requirements-site.txt >&2
	@touch $@

.venv-fuzz/.ready: tools/fuzz/requirements-atheris.txt pyproject.toml | $(DEV)
	@echo 'Setting up .venv-fuzz (once)…' >&2
	@$(BIN)/uv venv --quiet --clear --python '$(abspath $(BIN))/python' .venv-fuzz >&2 && \
	$(UVPIP) --python .venv-fuzz --require-hashes -r tools/fuzz/requirements-atheris.txt >&2 && \
	$(UVPIP) --python .venv-fuzz --no-deps --no-build-isolation --editable . >&2 && touch $@

.venv-audit/.ready: scripts/requirements-audit.txt | $(BIN)/python
	@echo 'Setting up .venv-audit (once)…' >&2
	@$(PYTHON) -m venv --clear .venv-audit >&2
	@.venv-audit/bin/python -m pip --disable-pip-version-check install -qq --require-hashes -r $< >&2
	@touch $@

$(DEV): requirements-dev.txt pyproject.toml | $(BIN)/python
	@$(LOCKED) -r requirements-dev.txt >&2
	@$(EDITABLE) >&2
	@touch $(RUN) $@
