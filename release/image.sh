#!/bin/sh
# Build the image for one architecture and push it by digest: release/image.sh REPOSITORY ARCHITECTURE DIST
# DIST gets image-ARCHITECTURE.txt with the digest. Provenance and the list of packages are pushed with the image.
set -eu
repository=$1
architecture=$2
dist=$3
cd "$(dirname "$0")/.."
mkdir -p "$dist" build
docker buildx build --platform "linux/$architecture" --provenance=mode=max --sbom=true \
    --build-arg REVISION="$(git rev-parse HEAD)" --build-arg SOURCE_DATE_EPOCH="$(git log -1 --format=%ct)" \
    --output "type=image,name=$repository,push=true,push-by-digest=true,name-canonical=true,rewrite-timestamp=true" \
    --metadata-file "build/image-$architecture.json" .
jq --exit-status --raw-output '."containerimage.digest"' "build/image-$architecture.json" >"$dist/image-$architecture.txt"
cat "$dist/image-$architecture.txt"
