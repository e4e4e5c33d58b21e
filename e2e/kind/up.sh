#!/usr/bin/env bash
# Make a Karmada of kind clusters for the scenarios, and print the line that runs them there.
# Run it again after a failure, or to change between a release and HYPERJOB_E2E_LOCAL=1.
set -euo pipefail
# shellcheck source=settings.sh source-path=SCRIPTDIR
. "$(dirname "${BASH_SOURCE[0]}")/settings.sh"
read_arguments "$@"
need docker kind kubectl curl tar sha256sum make
[ "$HYPERJOB_E2E_LOCAL" = 1 ] || need helm
umask 077 # kubeconfigs of administrators

host=(kubectl --kubeconfig "$HOST_KUBECONFIG")
karmada=(kubectl --kubeconfig "$KARMADA_KUBECONFIG")

make_cluster() { # NAME KUBECONFIG WORKERS
    local name=$1 kubeconfig=$2 workers=$3
    if ! is_cluster "$name"; then
        write "$OUT/$name.yaml" kind_config "$workers"
        run kind create cluster --name "$name" --image "$NODE_IMAGE" --config "$OUT/$name.yaml" \
            --kubeconfig "$kubeconfig" --wait "${WAIT}s"
    fi
    run kind export kubeconfig --name "$name" --kubeconfig "$kubeconfig"
}

kind_config() { # WORKERS
    printf '%s\n' 'apiVersion: kind.x-k8s.io/v1alpha4' 'kind: Cluster' 'nodes:' '- role: control-plane'
    local left
    for ((left = $1; left > 0; left--)); do echo '- role: worker'; done
}

# kind writes 127.0.0.1 into kubeconfigs, which Karmada's pods cannot reach; the address of the
# container can be reached by them and, on Linux, from here.
make_member() { # NAME
    local cluster=$PREFIX-$1 kubeconfig address
    kubeconfig=$(member_kubeconfig "$1")
    make_cluster "$cluster" "$kubeconfig" "$MEMBER_NODES"
    ask address docker inspect \
        --format '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}' "$cluster-control-plane"
    run kubectl config set-cluster "kind-$cluster" --server "https://$address:6443" \
        --kubeconfig "$kubeconfig"
}

give_accelerators() { # NAME
    local kubeconfig nodes node amount
    kubeconfig=$(member_kubeconfig "$1")
    amount="{\"$ACCELERATOR\":\"$ACCELERATORS\"}"
    ask nodes kubectl --kubeconfig "$kubeconfig" get nodes \
        --selector '!node-role.kubernetes.io/control-plane' --output name
    for node in $nodes; do
        run kubectl --kubeconfig "$kubeconfig" patch "$node" --subresource=status --type=merge \
            --patch "{\"status\":{\"capacity\":$amount,\"allocatable\":$amount}}"
    done
}

get_karmadactl() {
    local file=karmadactl-linux-amd64.tgz
    case $(uname -m) in aarch64 | arm64) file=karmadactl-linux-arm64.tgz ;; esac
    local url=https://github.com/karmada-io/karmada/releases/download/$KARMADA_VERSION/$file
    KARMADACTL=$OUT/bin/karmadactl-$KARMADA_VERSION
    is test -x "$KARMADACTL" && return
    run mkdir -p "$OUT/bin"
    run curl -fsSL --output "$OUT/bin/$file" "$url"
    run curl -fsSL --output "$OUT/bin/$file.sha256" "$url.sha256"
    run check_sum "$OUT/bin/$file"
    run tar -xzf "$OUT/bin/$file" -C "$OUT/bin" karmadactl
    run mv "$OUT/bin/karmadactl" "$KARMADACTL"
}

check_sum() { # FILE
    local wanted actual
    wanted=$(cut -d ' ' -f 1 "$1.sha256")
    actual=$(sha256sum "$1" | cut -d ' ' -f 1)
    [ "$wanted" = "$actual" ] || fail "$1 has the checksum $actual, not $wanted"
}

# karmadactl init empties its data directory and refuses to run twice. Its images and definitions
# are those of its own version.
make_karmada() {
    if ! is "${host[@]}" get deployment karmada-webhook --namespace karmada-system; then
        run "$KARMADACTL" init --kubeconfig "$HOST_KUBECONFIG" --karmada-data "$OUT/karmada" \
            --karmada-pki "$OUT/karmada/pki" --wait-component-ready-timeout "$WAIT" ||
            fail "Karmada was not made; e2e/kind/down.sh first, since it cannot be mended"
    fi
    run "${host[@]}" wait deployment --all --namespace karmada-system --for condition=Available \
        --timeout "${WAIT}s"
    run cp "$OUT/karmada/karmada-apiserver.config" "$KARMADA_KUBECONFIG"
}

join() { # NAME
    is "${karmada[@]}" get cluster "$1" && return
    run "$KARMADACTL" join "$1" --kubeconfig "$KARMADA_KUBECONFIG" \
        --cluster-kubeconfig "$(member_kubeconfig "$1")" --cluster-context "kind-$PREFIX-$1"
}

VOLCANO=https://raw.githubusercontent.com/volcano-sh/volcano/$VOLCANO_VERSION/installer

install_volcano() { # NAME
    local kubeconfig
    kubeconfig=$(member_kubeconfig "$1")
    run kubectl --kubeconfig "$kubeconfig" apply --server-side \
        --filename "$VOLCANO/volcano-development.yaml"
    run kubectl --kubeconfig "$kubeconfig" wait deployment --all --namespace volcano-system \
        --for condition=Available --timeout "${WAIT}s"
}

define_volcano() {
    local name
    for name in batch.volcano.sh_jobs scheduling.volcano.sh_queues bus.volcano.sh_commands; do
        run "${karmada[@]}" apply --server-side --filename "$VOLCANO/helm/chart/volcano/crd/bases/$name.yaml"
    done
}

# Three things differ from Volcano Global's own guide, as docs/install.md explains: its interpreters
# are left out, its policy overwrites, and Karmada's gate MultiplePodTemplatesScheduling, which
# karmadactl leaves off, stays off.
install_volcano_global() {
    local base=https://raw.githubusercontent.com/volcano-sh/volcano-global/$VOLCANO_GLOBAL_VERSION/docs/deploy
    local files=$OUT/volcano-global name
    run mkdir -p "$files"
    for name in namespace controller-manager webhook-manager webhooks all-queue-propagation; do
        run curl -fsSL --output "$files/$name.yaml" "$base/volcano-global-$name.yaml"
    done
    for name in controller-manager webhook-manager; do
        run sed -i "s|\(image: volcanosh/volcano-global-$name\):latest|\1:$VOLCANO_GLOBAL_VERSION|" \
            "$files/$name.yaml"
    done
    run "${karmada[@]}" apply --filename "$files/namespace.yaml"
    run "${host[@]}" apply --filename "$files/namespace.yaml"
    write "$files/karmada.config" "${host[@]}" get secret karmada-webhook-config --namespace karmada-system \
        --output 'go-template={{index .data "karmada.config" | base64decode}}'
    write "$files/secret.yaml" "${host[@]}" create secret generic karmada-webhook-config \
        --namespace volcano-global --from-file "karmada.config=$files/karmada.config" \
        --dry-run=client --output yaml
    run "${host[@]}" apply --filename "$files/secret.yaml"
    run "${host[@]}" apply --filename "$files/controller-manager.yaml" --filename "$files/webhook-manager.yaml"
    # Its webhook process waits for the configurations, and writes its authority into them.
    run "${karmada[@]}" apply --filename "$files/webhooks.yaml"
    run "${host[@]}" wait deployment --all --namespace volcano-global --for condition=Available \
        --timeout "${WAIT}s"
    run "${karmada[@]}" apply --filename "$files/all-queue-propagation.yaml"
    run "${karmada[@]}" patch clusterpropagationpolicy volcano-global-all-queue-propagation --type=merge \
        --patch '{"spec":{"conflictResolution":"Overwrite"}}'
}

# With the settings that the scenarios give our processes when they start them themselves. The tag
# stays when the code changes: the annotation is what makes pods of it anew.
install_release() {
    local admission=none id
    [ "$VOLCANO_GLOBAL" != 1 ] || admission=volcano-global
    run docker build --tag "$HYPERJOB_IMAGE" "$ROOT"
    ask id docker image inspect --format '{{.Id}}' "$HYPERJOB_IMAGE"
    run kind load docker-image "$HYPERJOB_IMAGE" --name "$HOST"
    run helm upgrade --install hyperjob "$ROOT/charts/hyperjob" --kubeconfig "$HOST_KUBECONFIG" \
        --namespace karmada-system --wait --timeout "${WAIT}s" \
        --set "image.repository=${HYPERJOB_IMAGE%:*}" --set "image.tag=${HYPERJOB_IMAGE##*:}" \
        --set "podAnnotations.image=$id" \
        --set "controller.queueAdmission=$admission" \
        --set controller.settings.gang-timeout=15 \
        --set "controller.settings.cluster-lost-timeout=$LOST_TIMEOUT"
}

# All that a release puts into the Karmada API server, but for the webhooks.
prepare_local() {
    if is helm status hyperjob --kubeconfig "$HOST_KUBECONFIG" --namespace karmada-system; then
        run helm uninstall hyperjob --kubeconfig "$HOST_KUBECONFIG" --namespace karmada-system --wait
    fi
    run make -C "$ROOT" .venv/.demo
    run "$ROOT/.venv/bin/hyperjob" install --kubeconfig "$KARMADA_KUBECONFIG" --skip webhooks
}

make_default_queue() {
    run "${karmada[@]}" apply --filename "$ROOT/e2e/kind/default-queue.yaml"
    run "${karmada[@]}" wait queues.scheduling.volcano.sh/default \
        --for 'jsonpath={.status.state}=Open' --timeout "${WAIT}s"
}

print_line() {
    local line=("HYPERJOB_E2E_KUBECONFIG=$KARMADA_KUBECONFIG") members="" member gateway
    for member in $MEMBERS; do members+=",$member=$(member_kubeconfig "$member")"; done
    line+=("HYPERJOB_E2E_MEMBERS=${members#,}" "HYPERJOB_E2E_ACCELERATOR=$ACCELERATOR")
    if [ "$HYPERJOB_E2E_LOCAL" = 1 ]; then
        # This machine, as the pods of the host cluster see it.
        ask gateway docker inspect \
            --format '{{range .NetworkSettings.Networks}}{{.Gateway}}{{end}}' "$HOST-control-plane"
        line+=(HYPERJOB_E2E_LOCAL=1 "HYPERJOB_E2E_ADDRESS=$gateway")
    else
        line+=("HYPERJOB_E2E_LOST_TIMEOUT=$LOST_TIMEOUT")
    fi
    printf '\nRun the scenarios, in %s, with:\n\n' "$ROOT"
    words "${line[@]}" make e2e && echo
}

run mkdir -p "$OUT"
make_cluster "$HOST" "$HOST_KUBECONFIG" 0
for member in $MEMBERS; do
    make_member "$member"
    give_accelerators "$member"
done
get_karmadactl
make_karmada
for member in $MEMBERS; do
    install_volcano "$member"
    join "$member"
done
run "${karmada[@]}" wait clusters.cluster.karmada.io --all --for condition=Ready --timeout "${WAIT}s"
define_volcano
[ "$VOLCANO_GLOBAL" != 1 ] || install_volcano_global
if [ "$HYPERJOB_E2E_LOCAL" = 1 ]; then prepare_local; else install_release; fi
make_default_queue
[ "$HYPERJOB_E2E_LOCAL" = 1 ] ||
    run helm test hyperjob --kubeconfig "$HOST_KUBECONFIG" --namespace karmada-system --logs
print_line
