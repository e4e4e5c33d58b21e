# shellcheck shell=bash disable=SC2034
# Settings of up.sh and down.sh, each a variable of the environment with a default, and how they
# run commands. Must change nothing by itself.

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)

OUT=${OUT:-$ROOT/.kind}                  # where kubeconfigs and downloads go
PREFIX=${PREFIX:-hyperjob}               # of the names of kind clusters
MEMBERS=${MEMBERS:-member1 member2}      # names of members in Karmada
MEMBER_NODES=${MEMBER_NODES:-4}          # workers in each member
ACCELERATOR=${ACCELERATOR:-nvidia.com/gpu}
ACCELERATORS=${ACCELERATORS:-8}          # of each worker; nothing is behind them
LOST_TIMEOUT=${LOST_TIMEOUT:-10}         # seconds until the release counts a cluster as lost
WAIT=${WAIT:-600}                        # seconds that one wait may take
VOLCANO_GLOBAL=${VOLCANO_GLOBAL:-0}      # 1: with Volcano Global
HYPERJOB_E2E_LOCAL=${HYPERJOB_E2E_LOCAL:-0} # 1: no release, the scenarios start our processes
HYPERJOB_IMAGE=${HYPERJOB_IMAGE:-hyperjob:e2e} # what is built and loaded for the release

# The node image of kind 0.31.0, by digest: the newest Kubernetes that both Karmada and Volcano,
# in these releases, are tested with.
NODE_IMAGE=${NODE_IMAGE:-kindest/node:v1.35.0@sha256:452d707d4862f52530247495d180205e029056831160e22870e37e3f6c1ac31f}
KARMADA_VERSION=${KARMADA_VERSION:-v1.18.2}
VOLCANO_VERSION=${VOLCANO_VERSION:-v1.15.1}
VOLCANO_GLOBAL_VERSION=${VOLCANO_GLOBAL_VERSION:-v0.3.0}

HOST=$PREFIX-host
HOST_KUBECONFIG=$OUT/host.kubeconfig
KARMADA_KUBECONFIG=$OUT/karmada.kubeconfig

member_kubeconfig() { echo "$OUT/$1.kubeconfig"; }

fail() {
    echo "$0: $*" >&2
    exit 1
}

read_arguments() {
    case ${1:-} in
    "") ;;
    *) fail "unknown argument $1: the settings are variables in settings.sh" ;;
    esac
}

need() {
    local tool
    for tool; do
        command -v "$tool" >/dev/null || fail "$tool is needed and not in PATH"
    done
}

show() {
    printf +
    words "$@"
}

# words WORD…: print them as a shell reads them
words() {
    local word
    for word; do
        case $word in
        "" | *[!A-Za-z0-9_./:=,@%+-]*) printf " '%s'" "${word//\'/\'\\\'\'}" ;;
        *) printf ' %s' "$word" ;;
        esac
    done
}

# run COMMAND…
run() {
    show "$@" && echo
    "$@"
}

# write FILE COMMAND…: keep what it prints
write() {
    local file=$1
    shift
    show "$@" && echo " >$(words "$file")"
    "$@" >"$file"
}

# ask VARIABLE COMMAND…: take what it prints
ask() {
    local variable=$1 value
    shift
    show "$@" && echo
    value=$("$@")
    [ -n "$value" ] || fail "nothing came from: $*"
    printf -v "$variable" %s "$value"
}

# is COMMAND…: tell whether it succeeds
is() { "$@" >/dev/null 2>&1; }

is_cluster() { kind get clusters 2>/dev/null | grep -qxF "$1"; }
