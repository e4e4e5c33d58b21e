"""Karmada's control plane: its API servers, webhook, controller manager and scheduler."""

import re
import shutil

from e2e.karmada.process import Given, Stack
from tests.support.envtest import kube_apiserver, running_etcd
from tests.support.processes import free_port
from tests.support.stack import LOOPBACK, kubectl

_AGGREGATED = "karmada-aggregated-apiserver"
_CONTROLLERS = (
    "namespace,garbagecollector,serviceaccount-token,ttl-after-finished,clusterrole-aggregation"
)
_REGISTRATION = """
apiVersion: v1
kind: Service
metadata: {name: SERVICE, namespace: karmada-system}
spec: {type: ExternalName, externalName: localhost}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1alpha1.cluster.karmada.io}
spec:
  group: cluster.karmada.io
  version: v1alpha1
  groupPriorityMinimum: 2000
  versionPriority: 10
  insecureSkipTLSVerify: true
  service: {name: SERVICE, namespace: karmada-system, port: PORT}
"""
_PROBE = """
apiVersion: policy.karmada.io/v1alpha1
kind: PropagationPolicy
metadata: {name: probe, namespace: default}
spec:
  resourceSelectors: [{apiVersion: v1, kind: ConfigMap, name: probe}]
  placement: {clusterAffinity: {clusterNames: [probe]}}
"""
_TRY = ("create", "--dry-run=server", "-f")


def start_control_plane(stack: Stack) -> None:
    """Start Karmada's processes in the order in which they need each other."""
    etcd = api_server(stack, "karmada", controllers=_CONTROLLERS)
    kubectl(stack.karmada, "create", "namespace", "karmada-system")
    kubectl(stack.karmada, "create", "namespace", "karmada-cluster")
    stack.apply(stack.karmada, stack.given.karmada / "charts/karmada/_crds/bases")
    stack.established(stack.karmada)
    _aggregated_api_server(stack, etcd)
    _webhook(stack)
    rights = stack.given.karmada / "artifacts/deploy/cluster-proxy-admin-rbac.yaml"
    stack.apply(stack.karmada, rights)
    common = (f"--kubeconfig={stack.karmada}", "--leader-elect=false", *gates(stack.given))
    stack.start(
        "controller-manager",
        "karmada-controller-manager",
        *common,
        *addresses(),
        "--cluster-status-update-frequency=5s",
    )
    stack.start("scheduler", "karmada-scheduler", *common, *addresses())


def gates(given: Given) -> tuple[str, ...]:
    """Return the flag of Karmada's feature gates."""
    return (f"--feature-gates={given.gates}",) if given.gates else ()


def addresses() -> tuple[str, str]:
    """Return the flags for the metrics and health addresses of a process of Karmada."""
    return (
        f"--metrics-bind-address={LOOPBACK}:{free_port()}",
        f"--health-probe-bind-address={LOOPBACK}:{free_port()}",
    )


def api_server(stack: Stack, name: str, *, controllers: str) -> str:
    """Start an etcd, an API server that may aggregate others, and its controller manager.

    Return the URL of the etcd.
    """
    directory = stack.directory / name
    flags = (
        f"--requestheader-client-ca-file={directory / 'ca.crt'}",
        "--requestheader-allowed-names=admin",
        "--requestheader-username-headers=X-Remote-User",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        f"--proxy-client-cert-file={directory / 'admin.crt'}",
        f"--proxy-client-key-file={directory / 'admin.key'}",
        "--disable-admission-plugins=TaintNodesByCondition,StorageObjectInUseProtection",
        "--max-requests-inflight=2000",
    )
    binaries = stack.given.binaries
    etcd = stack.exits.enter_context(running_etcd(binaries, directory))
    made = stack.exits.enter_context(kube_apiserver(binaries, directory, *flags, etcd=etcd))
    stack.start(
        f"kube-controller-manager-{name}",
        "kube-controller-manager",
        f"--kubeconfig={made}",
        f"--authentication-kubeconfig={made}",
        f"--authorization-kubeconfig={made}",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={free_port()}",
        f"--controllers={controllers}",
        "--leader-elect=false",
        f"--service-account-private-key-file={directory / 'sa.key'}",
        f"--root-ca-file={directory / 'ca.crt'}",
    )
    return etcd


def _aggregated_api_server(stack: Stack, etcd: str) -> None:
    """Start the API server of `clusters`, and register it under a name of this machine."""
    port = free_port()
    stack.start(
        "aggregated-apiserver",
        _AGGREGATED,
        f"--kubeconfig={stack.karmada}",
        f"--authentication-kubeconfig={stack.karmada}",
        f"--authorization-kubeconfig={stack.karmada}",
        f"--etcd-servers={etcd}",
        f"--tls-cert-file={stack.certificates.certificate}",
        f"--tls-private-key-file={stack.certificates.key}",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={port}",
        "--audit-log-path=/dev/null",
    )
    registration = _REGISTRATION.replace("SERVICE", _AGGREGATED).replace("PORT", str(port))
    kubectl(stack.karmada, "apply", "-f", "-", stdin=registration)
    stack.until(stack.karmada, "get", "clusters", process="aggregated-apiserver")


def _webhook(stack: Stack) -> None:
    """Start Karmada's webhook, and register it at its address of this machine."""
    port, files = free_port(), stack.directory / "webhook"
    files.mkdir()
    shutil.copy(stack.certificates.certificate, files / "tls.crt")
    shutil.copy(stack.certificates.key, files / "tls.key")
    stack.start(
        "webhook",
        "karmada-webhook",
        f"--kubeconfig={stack.karmada}",
        f"--bind-address={LOOPBACK}",
        f"--secure-port={port}",
        f"--cert-dir={files}",
        *addresses(),
        *gates(stack.given),
    )
    given = stack.given.karmada / "artifacts/deploy/webhook-configuration.yaml"
    registered = registration(given.read_text(), port=port, authority=stack.authority)
    kubectl(stack.karmada, "apply", "-f", "-", stdin=registered)
    probe = files / "probe.yaml"
    probe.write_text(_PROBE)
    stack.until(stack.karmada, *_TRY, str(probe), process="webhook")


def registration(text: str, *, port: int, authority: str) -> str:
    """Return a webhook configuration for a webhook that listens on a port of this machine.

    Some releases leave the caBundle to the webhook or to a template.
    """
    text = re.sub(r"^ *caBundle:.*\n", "", text, flags=re.MULTILINE)
    url = rf"\1url: https://{LOOPBACK}:{port}\2\n\1caBundle: {authority}"
    return re.sub(r"^( *)url: https://[^/\s]+(/\S*)", url, text, flags=re.MULTILINE)
