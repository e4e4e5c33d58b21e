#!/bin/sh
# Write the sums of the files of a folder, and sign each file without a key: release/sign.sh DIST
set -eu
cd "$1"
sha256sum -- * >SHA256SUMS
for file in *; do
    cosign sign-blob --yes --bundle "$file.sigstore.json" "$file"
done
