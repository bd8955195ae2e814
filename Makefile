# Each verb sets up what it needs. `make demo`, `make check` and `make test` are all that a new machine has to know.

VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate

# What the environment of `make demo` and the full image contain. Without scrapy: the add-on is used from a Scrapy project,
# which has its own.
EXTRAS := $(addprefix --extra=,fleet rabbitmq sqs s3 parquet pydantic browser web xpath markdown images merge metrics otel)

# The usual image, which has to stay below 200 MB. Pygments colours source code, which no command shows.
IMAGE_EXTRAS := $(addprefix --extra=,fleet rabbitmq s3 web xpath metrics)

# Where it is set, every process would compile Trotline anew, for twice the processor time of a start.
unexport PYTHONDONTWRITEBYTECODE

# These use one core each, and print what they found at their end.
AT_ONCE := $(MAKE) --no-print-directory --jobs 4

.PHONY: demo rabbitmq4 fleet check quick test lint types imports sbom audit containers bench soak lock packages clean

# A stamp per set of requirements: nothing is installed twice, and a changed lock is noticed.
$(VENV)/.run: requirements/run.txt requirements/build.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) --require-hashes -r requirements/build.txt -r requirements/run.txt
	$(INSTALL) --no-deps --no-build-isolation -e .
	touch $@

$(VENV)/.dev: $(VENV)/.run requirements/dev.txt
	$(INSTALL) --require-hashes -r requirements/dev.txt
	touch $@

# The oldest Scrapy of the bridge, beside the newest one in the environment.
$(VENV)/.scrapy-oldest: $(VENV)/.dev requirements/scrapy-oldest.txt
	rm -rf $(VENV)/scrapy-oldest
	$(INSTALL) --require-hashes --no-deps --target $(VENV)/scrapy-oldest -r requirements/scrapy-oldest.txt
	touch $@

# What the tests of deploy/ use (helm, hadolint, schemas of Kubernetes): 56 MB, so not for every edit.
$(VENV)/.deploy: $(VENV)/.dev requirements/deploy.txt
	$(INSTALL) --require-hashes -r requirements/deploy.txt
	touch $@

# Debian packages that the end-to-end tests use (a real nginx, a real documentation site).
# Without root on a laptop those tests are skipped; when CI is set, they fail.
packages:
	@bash scripts/debian-packages requirements/debian.txt

# RabbitMQ 4 of Debian 13, in a folder of its own (370 MB, about a minute), as root. Tests use it where it is.
rabbitmq4:
	@bash scripts/debian-packages requirements/debian-rabbitmq4.txt
	@bash scripts/rabbitmq4 dist/rabbitmq-4

demo: $(VENV)/.run
	@$(BIN)/python -m trotline.testing.demo

# A fleet on this machine: Valkey and PostgreSQL out of pip wheels, three workers, one job. FRONTIER=postgresql: tasks and
# rows in one PostgreSQL, no Valkey.
FRONTIER ?= redis
fleet: $(VENV)/.dev
	@$(BIN)/python -m trotline.testing.fleet_demo --frontier $(FRONTIER)

# Where it has room, files of tests are in memory: every transaction of SQLite waits for a disk otherwise, and no test
# cuts the power. They are removed with their test, unless it fails.
MEMORY := $(shell test "$$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 {print $$4}')" -gt 2000000 2>/dev/null && echo /dev/shm)

# For every edit: about a minute on two cores. What the markers leave out is in `make test`, and the other three quarters
# of the examples of property tests.
check: $(VENV)/.dev
	+$(AT_ONCE) lint types imports quick

# Four at once, also on two cores: some tests wait for a time limit, and two at once left a third of the processors idle.
quick: $(VENV)/.dev
	$(if $(MEMORY),TMPDIR=$(MEMORY)) $(BIN)/pytest -q -rfE -n 4 --hypothesis-profile=brief \
		-o tmp_path_retention_policy=failed \
		-m "not slow and not server" tests/unit tests/contract

# Everything. What fails is run once more alone, and named as flaky if it passes then. Six at once, also on two cores:
# many tests mostly wait, for a server to come back or a lease to run out. All tests together need the processors for
# half of the time that four at once take.
test: $(VENV)/.dev $(VENV)/.deploy $(VENV)/.scrapy-oldest packages
	+$(AT_ONCE) lint types imports sbom audit $(VENV)/.compiled
	$(BIN)/python -m scripts.rerun_failed -q -n 6

# Pytest rewrites every file of tests before its first use. In a new clone each of the six would do it for itself; later
# that is true of changed files only, and not worth another collection.
$(VENV)/.compiled: $(VENV)/.dev
	$(BIN)/pytest --collect-only -qq >/dev/null
	touch $@

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.dev
	$(BIN)/mypy

imports: $(VENV)/.dev
	$(BIN)/lint-imports --no-cache

# The locked dependencies: a bill of materials (CycloneDX), and an audit against OSV's advisories where ADVISORIES names
# their export for PyPI.
sbom: $(VENV)/.dev
	$(BIN)/python -m scripts.supply_chain sbom dist/trotline.cdx.json

audit: $(VENV)/.dev
	$(BIN)/python -m scripts.supply_chain audit

# The image and deploy/compose.yaml in real containers (podman, as root): a job that is scaled 2 -> 6 -> 1. It installs
# the Debian packages that it needs, and takes some minutes.
containers: $(VENV)/.deploy
	@bash scripts/debian-packages requirements/debian-containers.txt
	$(BIN)/python -m tests.deploy.compose_run

bench: $(VENV)/.dev packages
	$(BIN)/python -m bench
	$(BIN)/python -m bench.redis_frontier --tasks 100000
	$(BIN)/python -m bench.rabbitmq_frontier
	$(BIN)/python -m bench.sqs_frontier
	$(BIN)/python -m bench.sqlite_frontier --tasks 100000
	$(BIN)/python -m bench.redis_seen --urls 100000
	$(BIN)/python -m bench.postgres_sink --rows 20000
	$(BIN)/python -m bench.archive
	$(BIN)/python -m bench.redis_pool --pool 1000 --lanes 200
	$(BIN)/python -m bench.proxy_table --quick
	$(BIN)/python -m bench.scrapy_bridge

# Long versions of what `make test` runs briefly.
soak: $(VENV)/.dev
	$(BIN)/python -m tests.simulation --seeds 20000
	$(BIN)/python -m tests.simulation --shards --seeds 5000
	$(BIN)/python -m tests.simulation --coordinators --seeds 5000
	$(BIN)/python -m tests.simulation --proxies --seeds 5000
	$(BIN)/python -m tests.e2e.kills --rounds 50
	$(BIN)/python -m tests.e2e.fleet_endings --runs 200
	$(BIN)/python -m tests.e2e.fleet_soak
	$(BIN)/python -m tests.e2e.frontier_soak --frontier postgresql
	$(BIN)/python -m tests.e2e.frontier_soak --frontier rabbitmq
	$(BIN)/python -m tests.e2e.frontier_soak --frontier sqs
	$(BIN)/python -m tests.e2e.chain_soak
	$(BIN)/python -m tests.e2e.archive_kills --kills 100
	$(BIN)/python -m tests.e2e.archive_kills --kills 100 --s3
	$(BIN)/python -m tests.e2e.account_soak
	$(BIN)/python -m tests.e2e.scrapy_kills --kills 200 --pages 5000
	$(BIN)/python -m tests.e2e.scrapy_versions
	$(BIN)/python -m tests.e2e.doc_closures
	TROTLINE_MACHINE_EXAMPLES=500 $(BIN)/python -m pytest tests/contract -k Machine
	SOAK=1 $(BIN)/python -m pytest tests/e2e/test_poison.py -k f5
	SOAK=1 $(BIN)/python -m pytest tests/simulation/test_postgres.py
	SOAK=1 $(BIN)/python -m pytest -n 4 tests/contract -k "Postgres or Bloom or JournalFrontier or Cluster or RabbitMQ"
	SOAK=1 $(BIN)/python -m pytest -n 4 tests/e2e -k "files or servers or postgresql"
	SOAK=1 $(BIN)/python -m pytest tests/contract/test_frontier_sqs.py
	SOAK=1 $(BIN)/python -m pytest tests/e2e/test_advice.py tests/e2e/test_alerts_cli.py tests/e2e/test_bench.py
	SOAK=1 $(BIN)/python -m pytest tests/e2e/test_kills.py tests/e2e/test_fleet_sentinel.py tests/e2e/test_fleet_postgres.py
	$(BIN)/python -m tests.e2e.advice_rigs --again
	$(BIN)/python -m tests.fuzz --minutes 30

lock: $(VENV)/.dev
	$(INSTALL) uv
	$(COMPILE) --no-deps requirements/scrapy-oldest.in -o requirements/scrapy-oldest.txt
	$(COMPILE) requirements/build.in -o requirements/build.txt
	$(COMPILE) pyproject.toml $(EXTRAS) -c requirements/build.txt -o requirements/run.txt
	$(COMPILE) requirements/dev.in -c requirements/run.txt -c requirements/build.txt -o requirements/dev.txt
	$(COMPILE) requirements/deploy.in -c requirements/run.txt -c requirements/dev.txt -o requirements/deploy.txt
	$(COMPILE) pyproject.toml $(IMAGE_EXTRAS) --no-emit-package pygments -c requirements/run.txt -o requirements/image.txt
	$(COMPILE) pyproject.toml $(EXTRAS) --no-emit-package pygments -c requirements/run.txt -o requirements/image-full.txt

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis
