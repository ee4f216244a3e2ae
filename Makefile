# Everything that a maintainer runs. `make demo` and `make test` work on a fresh clone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
EXTRAS ?= fast,spark,wire,sql,sasl

.PHONY: demo demo-spark test test-matrix check man bench bench-admin bench-wire bench-spark format clean

$(BIN)/kctl:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade pip
	$(BIN)/pip install -q -e .

$(VENV)/.dev: pyproject.toml | $(BIN)/kctl
	$(BIN)/pip install -q -e '.[$(EXTRAS)]' --group dev
	touch $@

demo: $(BIN)/kctl
	@examples/demo $(BIN)/kctl

demo-spark: $(VENV)/.dev
	@examples/demo $(BIN)/kctl --engine spark --master 'local[*]'

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Two processes: one starts clusters and waits for them, the other has the rest.
test: check
	$(BIN)/python -m pytest -n 2 --dist loadgroup -m 'not matrix' $(PYTEST_ARGS)

test-matrix: check
	$(BIN)/python -m pytest $(PYTEST_ARGS)

man: $(VENV)/.dev
	$(BIN)/python -m commands.man man

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks.run

bench-admin: $(VENV)/.dev
	$(BIN)/python -m benchmarks.admin

bench-wire: $(VENV)/.dev
	$(BIN)/python -m benchmarks.wire

bench-spark: $(VENV)/.dev
	$(BIN)/python -m benchmarks.spark

format: $(VENV)/.dev
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .cache build
