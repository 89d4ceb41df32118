# `make` alone lists the targets. Each target sets up what it needs in .venv; nothing has to be installed first.

PYTHON ?= python3
ENV ?= maze
PYTEST_FLAGS ?=
VENV := .venv
BIN := $(VENV)/bin
# -qq: errors only. Runs through `python -m`, so that a long path to this folder cannot break a script's first line.
PIP_INSTALL := $(BIN)/python -m pip install -qq --disable-pip-version-check --no-input -c constraints.txt

.PHONY: help demo test slow soak lint types format page docs engines results release bench clean

help:
	@echo "make demo     train a small student, evaluate it and show what came out"
	@echo "make test     the tests (make test PYTEST_FLAGS='-k maze' for some of them)"
	@echo "make slow     the tests that take minutes"
	@echo "make soak     hours of harmed runs, random command lines and kills (RUNS=5000 MINUTES=60)"
	@echo "make lint     ruff: rules and formatting"
	@echo "make types    basedpyright"
	@echo "make format   let ruff mend what it can"
	@echo "make page     a page to play in, of the repository's own students"
	@echo "make docs     the documentation, built strictly into site/"
	@echo "make engines  envs and students as WebAssembly, which are kept in the repository, anew"
	@echo "make results  the tables and curves in results/, anew from the files of the runs there"
	@echo "make release  wheel and source archive, built and checked; publishes nothing (REPOSITORY=https://…)"
	@echo "make bench    how fast it is on this machine (ENV=maze)"
	@echo "make clean    remove .venv, caches and build products"
	@echo
	@echo "PYTHON=python3.12 chooses another interpreter than python3 for .venv."

demo: $(VENV)/.installed
	@$(BIN)/tutelage demo

# Two processes: most of the time is spent in the compiler, which uses one core. Files in the order of tests/conftest.py.
test: $(VENV)/.installed-test
	@$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder $(PYTEST_FLAGS)

# These run for long, so that XLA's optimisation, which tests/conftest.py turns off, pays.
slow: $(VENV)/.installed-test
	@XLA_FLAGS= $(BIN)/python -m pytest -m slow $(PYTEST_FLAGS)

# Compiled as the tests are, and kept with their programs: what is tried is files and commands, not speed.
RUNS ?= 5000
MINUTES ?= 60
soak: $(VENV)/.installed-test
	@cd tests && PYTHONPATH=. ../$(BIN)/python -m soak --runs $(RUNS) --minutes $(MINUTES)

lint: $(VENV)/.installed-test
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check

types: $(VENV)/.installed-test
	@$(BIN)/basedpyright --pythonpath $(BIN)/python

format: $(VENV)/.installed-test
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

page: $(VENV)/.installed
	@$(BIN)/tutelage page results/bipedal-accel results/students/* --out build/page.html

docs: $(VENV)/.installed-docs
	@$(BIN)/python docs/build.py

# When what they are made of has changed, tests/page/test_current.py says so.
engines: $(VENV)/.installed-page
	@$(BIN)/python -m tutelage.page.build

# DIR/results of the reference implementation's repository, if it is there: RELEASED=DIR/results
results: $(VENV)/.installed
	@$(BIN)/python bench/results.py $(if $(RELEASED),--released $(RELEASED))

# Builds, then looks at what was built: the description as a package index shows it, the package as the wheel installs
# it, and the tests as the source archive has them (TESTS= runs all of them), with the programs that are compiled here.
TESTS ?= tests/runs/test_checkpoint.py tests/test_statistics.py
release: $(VENV)/.installed-release
	@test -n "$(REPOSITORY)" || { echo "Where will it be? make release REPOSITORY=https://…" >&2; exit 2; }
	@rm -rf dist build/wheel build/sdist && mkdir -p build/wheel build/sdist
	@REPOSITORY=$(REPOSITORY) $(BIN)/python -m build --no-isolation --outdir dist . >build/release.log || { cat build/release.log; exit 1; }
	@$(BIN)/python -m twine check --strict dist/*
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --target build/wheel dist/*.whl
	@cd build/wheel && PYTHONPATH=. ../../$(BIN)/python -m tutelage --version
	@tar xzf dist/*.tar.gz -C build/sdist --strip-components=1
	@cd build/sdist && JAX_COMPILATION_CACHE_DIR="$(CURDIR)/.pytest_cache/jax" PYTHONPATH=src ../../$(BIN)/python -m pytest -q $(TESTS)
	@ls -l dist

bench: $(VENV)/.installed
	@$(BIN)/tutelage bench $(ENV)

clean:
	@rm -rf $(VENV) build dist site .pytest_cache .ruff_cache .hypothesis
	@find src tests bench examples -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing tutelage into $(VENV) …"
	@$(PIP_INSTALL) -e .
	@touch $@

$(VENV)/.installed-test: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing tutelage and its checks into $(VENV) …"
	@$(PIP_INSTALL) -e '.[test]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-docs $(VENV)/.installed-page $(VENV)/.installed-release: $(VENV)/.installed-%: pyproject.toml constraints.txt $(VENV)/.installed-test
	@echo "Installing what '$*' needs …"
	@$(PIP_INSTALL) -e '.[$*]'
	@touch $@

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null || { echo "No $(PYTHON) found: install Python 3.11 or newer, or name one with PYTHON=…" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "$(PYTHON) is $$($(PYTHON) -V 2>&1), but tutelage needs 3.11 or newer: name one with PYTHON=…" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) lacks venv or pip: install them (Debian, Ubuntu: the package python3-venv)." >&2; exit 1; }
	@$(PYTHON) -m venv --clear $(VENV)
