#!/bin/sh
# Name the image of all architectures, push the chart with its digest, and sign both: release/push.sh REPOSITORY TAG IMAGES DIST
# IMAGES has image-ARCHITECTURE.txt with the digests; DIST gets the chart and the digests of image and chart.
set -eu
repository=$1
tag=$2
images=$3
dist=$4
version=${tag#v}
cd "$(dirname "$0")/.."
set --
for file in "$images"/image-*.txt; do
    set -- "$@" "$repository@$(cat "$file")"
done
docker buildx imagetools create --tag "$repository:$version" "$@"
digest=$(docker buildx imagetools inspect --format '{{.Manifest.Digest}}' "$repository:$version")
cosign sign --yes "$repository@$digest"
make chart IMAGE="$repository@$digest" DIST="$dist"
pushed=$(helm push "$dist/hyperjob-$version.tgz" "oci://$repository/charts" 2>&1)
echo "$pushed"
chart=$(echo "$pushed" | sed -n 's/^Digest: //p')
if ! printf '%s\n%s\n' "$digest" "$chart" | grep -Ecx 'sha256:[0-9a-f]{64}' | grep -qx 2; then
    echo "error: image or chart has no digest: $digest, $chart" >&2
    exit 1
fi
cosign sign --yes "$repository/charts/hyperjob@$chart"
printf '%s\n' "$repository@$digest" "$repository/charts/hyperjob@$chart" >"$dist/digests.txt"
printf '%s\n' "image=$repository" "digest=$digest" >>"${GITHUB_OUTPUT:-/dev/stdout}"
