#!/usr/bin/env bash
# Take away the kind clusters that up.sh made, and its files.
set -euo pipefail
# shellcheck source=settings.sh source-path=SCRIPTDIR
. "$(dirname "${BASH_SOURCE[0]}")/settings.sh"
read_arguments "$@"
need kind

for member in $MEMBERS; do
    run kind delete cluster --name "$PREFIX-$member" --kubeconfig "$(member_kubeconfig "$member")"
    run rm -f "$(member_kubeconfig "$member")" "$OUT/$PREFIX-$member.yaml"
done
run kind delete cluster --name "$HOST" --kubeconfig "$HOST_KUBECONFIG"
run rm -f "$HOST_KUBECONFIG" "$KARMADA_KUBECONFIG" "$OUT/$HOST.yaml"
run rm -rf "$OUT/bin" "$OUT/karmada" "$OUT/volcano-global"
