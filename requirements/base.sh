#!/bin/sh
# Pin the base image of a Dockerfile by the digest that its tag has in its registry now:
# requirements/base.sh [DOCKERFILE]
set -eu
file="${1:-Dockerfile}"
base="$(sed -n 's/^FROM \([^@ ]*\).* AS base$/\1/p' "$file")"
digest="$(docker buildx imagetools inspect --format '{{.Manifest.Digest}}' "$base")"
if ! printf '%s\n' "$digest" | grep -Eqx 'sha256:[0-9a-f]{64}'; then
	echo "error: $base has no digest: $digest" >&2
	exit 1
fi
pinned="$(sed "s|^FROM .* AS base$|FROM $base@$digest AS base|" "$file")"
printf '%s\n' "$pinned" >"$file"
echo "$file: $base@$digest"
