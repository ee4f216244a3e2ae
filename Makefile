# Everything that a maintainer runs. `make demo` and `make test` work on a fresh clone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CLUSTER ?= 4.3
EXTRAS ?= fast,spark,sql,sasl

.PHONY: demo demo-spark test test-quick test-all test-matrix check fuzz mutants nemesis suites man docs pictures dist standalone release release-check sbom vulnerabilities test-pythons cluster bench bench-admin bench-wire bench-spark bench-hostile format clean

# Tests start kctl thousands of times; where Python writes no bytecode by itself, each start would compile everything
# again, and pytest every test file.
export PYTHONDONTWRITEBYTECODE :=
COMPILE = @$(BIN)/python -m compileall -q formats kctl commands

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

# Three levels. While editing: no Java, nothing outside of this machine, a minute on two cores. What takes longer than half
# a second is marked `slow`; of what repeats a subject tests/levels.py names a part, of the cases of a test a third.
test-quick: $(VENV)/.dev
	$(COMPILE)
	$(BIN)/python -m pytest -n 2 -m 'not (slow or java or brokers or spark or matrix or later or repeated)' --hypothesis-profile=few-examples $(PYTEST_ARGS)

# Before a merge: every subject against the real thing once, in ten minutes; `make check` is among the tests. Three
# processes on two cores, since clusters are mostly waited for.
test: $(VENV)/.dev
	$(COMPILE)
	$(BIN)/python -m pytest -n 3 --dist loadgroup -m 'not matrix and not repeated' $(PYTEST_ARGS)

# In continuous integration: what repeats these subjects too, as tests/levels.py says.
test-all: test
	$(BIN)/python -m pytest -n 3 --dist loadgroup -m 'repeated and not matrix' $(PYTEST_ARGS)

test-matrix: $(VENV)/.dev
	$(COMPILE)
	$(BIN)/python -m pytest $(PYTEST_ARGS)

# Files of every format, mutated for FUZZ_MINUTES; what is found is kept in tests/data/fuzz, which `make test` replays.
fuzz: $(VENV)/.dev
	$(BIN)/python -m tests.fuzz.run $(FUZZ_ARGS)

# Wrong lines in the modules that decide, one at a time: tests must catch each.
mutants: $(VENV)/.dev
	$(BIN)/python -m tests.mutants.run $(MUTANTS_ARGS)

# The wheel, with the same bytes whoever builds it from a commit, and the sdist.
dist: $(VENV)/.dev
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/pip wheel -q --no-deps --no-build-isolation -w dist .
	@$(BIN)/python -c 'from setuptools.build_meta import build_sdist; build_sdist("dist")' > /dev/null

# A folder with its own Python and all extras but Spark in dist/, as tar.gz and tar.zst; STANDALONE_PYTHON is another Python.
standalone: dist
	$(BIN)/pip install -q --group standalone
	releasing/standalone $(BIN)/uv "$$(ls -t dist/kctl-*.whl | head -1)" dist

# A version in dist/, from a commit and a tag that this makes: `make release VERSION=1.2.3`. It ends with what is to be uploaded.
release: $(VENV)/.dev
	@releasing/release "$(VERSION)" "$(MAKE)"

# Each artefact in dist/ in an empty environment, with the demo; as root with debootstrap also in systems of Debian 11 to 13.
release-check: $(VENV)/.dev
	$(BIN)/python releasing/check.py dist

# What an installation consists of: licences that are accepted, and a CycloneDX list in build/sbom.json. Spark is left out for its size: SBOM_EXTRAS=sql,sasl,keystores,fast,spark.
SBOM_EXTRAS ?= sql,sasl,keystores,fast
LICENCES := MIT;BSD;Apache;PSF;Python Software;ISC;0BSD
SBOM_PYTHON := build/supply/bin/python
sbom: $(VENV)/.dev
	$(BIN)/pip install -q --group supply
	$(PYTHON) -m venv --clear build/supply
	$(SBOM_PYTHON) -m pip install -q '.[$(SBOM_EXTRAS)]'
	$(BIN)/pip-licenses --python $(SBOM_PYTHON) --partial-match --allow-only='$(LICENCES)' --output-file build/licences.txt
	$(BIN)/cyclonedx-py environment $(SBOM_PYTHON) --pyproject pyproject.toml --output-reproducible -o build/sbom.json

# Known vulnerabilities of what `make sbom` found; fails where the package index has no data on them, and says so.
# AUDIT_ARGS='--vulnerability-service osv' asks osv.dev instead.
vulnerabilities: sbom
	$(SBOM_PYTHON) -m pip freeze --exclude kctl > build/installed.txt
	@$(BIN)/pip-audit --strict --no-deps --disable-pip $(AUDIT_ARGS) -r build/installed.txt 2> build/audit.txt; status=$$?; \
		grep -v WARNING build/audit.txt; \
		if grep -q 'could not be audited' build/audit.txt; then \
			echo "NOT CHECKED: this package index has no data on vulnerabilities. Ask osv.dev (see Makefile), or give build/sbom.json to a scanner."; \
		fi; exit $$status

# The quick tests, with all cases, with each of these that is there; without Spark, for its size.
PYTHONS ?= python3.11 python3.12 python3.13 python3.14
test-pythons:
	@for python in $(PYTHONS); do \
		command -v $$python > /dev/null || { echo "no $$python here"; continue; }; \
		$(MAKE) test-quick PYTHON=$$python VENV=build/venv-$$(basename $$python) EXTRAS=fast,sql,sasl PYTEST_ARGS='--ignore=tests/spark --ignore=tests/stores/test_hadoop.py -m "not (slow or java or brokers or spark or matrix or repeated)" $(PYTEST_ARGS)' || exit 1; \
	done

# Three brokers to try things on, until Ctrl-C; needs Java 17 and Maven.
cluster: $(VENV)/.dev
	$(BIN)/python -m tests.brokers.run --kafka $(CLUSTER)

# What is generated from the catalogue and from the schemas of an audit's tables.
man: $(VENV)/.dev
	$(BIN)/python -m docs.making.man man completions
	$(BIN)/python -m docs.making.tables
	$(BIN)/python -m docs.making.questions

# The documentation site in build/site: no page of it loads anything from another host.
docs: $(VENV)/.dev
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Pictures of terminals, and of the report where there is a Chromium; `git diff` shows what changed.
pictures: $(VENV)/.dev
	$(BIN)/python -m docs.making.pictures

# Random faults on real brokers, and kctl held against what producers, disks and ZooKeeper or the metadata log saw.
SEED ?= 1
KAFKA ?= 3.9
MINUTES ?= 1
nemesis: $(VENV)/.dev
	$(BIN)/python -m tests.nemesis.run --seed $(SEED) --kafka $(KAFKA) --minutes $(MINUTES) $(NEMESIS_ARGS)

# Kafka's own storage tests, the folders that they write kept and held against Kafka's dump; nightly.
suites: $(VENV)/.dev
	$(BIN)/python -m tests.suites.run $(SUITES_ARGS)

bench: $(VENV)/.dev
	$(COMPILE)
	$(BIN)/python -m benchmarks.run

bench-admin: $(VENV)/.dev
	$(COMPILE)
	$(BIN)/python -m benchmarks.admin

bench-wire: $(VENV)/.dev
	$(COMPILE)
	$(BIN)/python -m benchmarks.wire

bench-spark: $(VENV)/.dev
	$(COMPILE)
	$(BIN)/python -m benchmarks.spark
	$(BIN)/python -m benchmarks.spark_kafka

bench-hostile: $(VENV)/.dev
	$(COMPILE)
	$(BIN)/python -m benchmarks.hostile

format: $(VENV)/.dev
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .cache build
