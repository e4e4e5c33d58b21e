#!/bin/sh
# Pin the dependencies of `make demo` and `make test` for every supported Python, with hashes and without an index address.
set -eu
bin=$1
cd "$(dirname "$0")/.."
compile() {
    group=$1
    shift
    "$bin"/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
        pyproject.toml --group "$group" "$@" \
        --output-file "requirements/$group.txt"
}
compile demo
compile dev --constraints requirements/demo.txt
