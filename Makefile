# Everything a developer, an operator and CI call. `make help` lists the targets.
# Each target makes what it needs; only Python >= 3.11 with pip has to be there already.

SHELL := /bin/bash
.DEFAULT_GOAL := help

# The first Python that is new enough; PYTHON=… overrides.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3.14 python3 python; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)

VENV := .venv
BIN := $(VENV)/bin
SDK := libs/amp-evaluation
STAMP := $(VENV)/.installed

IMAGE ?= amp-monitor-evaluation
TAG ?= latest
PYTHON_IMAGE ?= python:3.11-slim
# Empty: a wheel built from libs/. A version: amp-evaluation from the package index.
AMP_EVALUATION_VERSION ?=
# full: every provider, numpy and pandas. small: an OpenAI-compatible gateway only.
FLAVOR ?= full
# Where libs/ lies: this repository, or .. in a checkout where libs/ is beside the job.
PROJECT_ROOT ?= .
K3D_CLUSTER ?= k3s-default
DOCKER ?= docker
DOCKER_BUILD_FLAGS ?=
# What is built and by whom; read from the job's own folder within PROJECT_ROOT.
JOB_DIR = $(shell $(PYTHON) -c 'import os,sys; print(os.path.relpath(".", sys.argv[1]))' "$(PROJECT_ROOT)")

OUT := out

.PHONY: help lint format-check format type-check test coverage run bench docker-build docker-build-dev docker-push \
	docker-load-k3d docker-clean clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /|/' | awk -F'|' '{printf "  %-18s %s\n", $$1, $$2}'

# Some distributions ship Python without ensurepip: pip then installs itself into the environment.
$(STAMP): $(SDK)/pyproject.toml Makefile
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed; set PYTHON=/path/to/python"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { $(PYTHON) -m venv --clear --without-pip $(VENV) && \
		$(PYTHON) -m pip --python $(BIN)/python install --quiet pip; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '$(SDK)[dev]'
	@touch $@

lint: $(STAMP) ## ruff check
	$(BIN)/ruff check .

format-check: $(STAMP) ## ruff format --check
	$(BIN)/ruff format --check .

format: $(STAMP) ## write the format
	$(BIN)/ruff format .

type-check: $(STAMP) ## mypy, strict, for the job and the SDK
	$(BIN)/mypy main.py --install-types --non-interactive
	cd $(SDK) && ../../$(BIN)/mypy

test: $(STAMP) ## the job's tests, the template's and the examples', then the SDK's
	$(BIN)/pytest test_main.py deploy examples -v
	cd $(SDK) && ../../$(BIN)/pytest

coverage: $(STAMP) ## the tests with line and branch coverage
	$(BIN)/pytest test_main.py deploy examples -q --cov=main --cov-branch --cov-report=term-missing
	cd $(SDK) && ../../$(BIN)/pytest -q --cov --cov-report=term-missing:skip-covered

run: $(STAMP) ## evaluate the example traces and print the scores
	@mkdir -p $(OUT)
	$(BIN)/python main.py \
		--monitor-name=example --organization=acme --project=shop --agent=assistant --environment=local \
		--evaluators=@examples/evaluators.json \
		--trace-start=2026-01-15T00:00:00Z --trace-end=2026-01-16T00:00:00Z \
		--traces-api-endpoint=file:examples/traces.json --publisher-endpoint=file:$(OUT)/scores.json \
		--monitor-id=00000000-0000-4000-8000-000000000001 --run-id=00000000-0000-4000-8000-000000000002 \
		--report=$(OUT)/report.html

bench: $(STAMP) ## speed and memory, as ratios taken in one run
	$(BIN)/python $(SDK)/benchmarks/run.py

docker-build: ## the image; AMP_EVALUATION_VERSION= takes the SDK from the package index, else from libs/
	$(DOCKER) build $(DOCKER_BUILD_FLAGS) -f Dockerfile -t $(IMAGE):$(TAG) \
		--build-arg PYTHON_IMAGE=$(PYTHON_IMAGE) --build-arg FLAVOR=$(FLAVOR) \
		--build-arg AMP_EVALUATION_VERSION=$(AMP_EVALUATION_VERSION) .

docker-build-dev: ## the image with the SDK of PROJECT_ROOT/libs
	$(DOCKER) build $(DOCKER_BUILD_FLAGS) -f Dockerfile.dev -t $(IMAGE):dev \
		--build-arg PYTHON_IMAGE=$(PYTHON_IMAGE) --build-arg FLAVOR=$(FLAVOR) \
		--build-arg JOB_DIR=$(JOB_DIR) $(PROJECT_ROOT)

docker-push: ## push IMAGE:TAG
	$(DOCKER) push $(IMAGE):$(TAG)

docker-load-k3d: ## put IMAGE:TAG into a k3d cluster
	k3d image import $(IMAGE):$(TAG) --cluster $(K3D_CLUSTER)

docker-clean: ## remove the images
	-$(DOCKER) image rm $(IMAGE):$(TAG) $(IMAGE):dev

clean: ## remove everything made here
	rm -rf $(VENV) $(OUT) .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage htmlcov
	find . -name __pycache__ -prune -exec rm -rf {} +
	cd $(SDK) && rm -rf dist build .mypy_cache .pytest_cache .ruff_cache .hypothesis .coverage
