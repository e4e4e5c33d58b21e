"""Volcano Global beside Karmada: its webhook, and its controller with the dispatcher alone."""

from pathlib import Path

from e2e.karmada.controlplane import registration
from e2e.karmada.process import Stack
from tests.support.processes import free_port
from tests.support.stack import LOOPBACK, kubectl

_ADMISSIONS = "/resourcebindings/mutate,/jobs/mutate,/jobs/validate"
_POLICY = "volcano-global-all-queue-propagation"


def start_volcano_global(stack: Stack, source: Path) -> None:
    """Start Volcano Global as docs/install.md says: its interpreters are left out."""
    files, port = source / "docs/deploy", free_port()
    stack.apply(stack.karmada, files / "crds")
    stack.established(stack.karmada)
    kubectl(stack.karmada, "create", "namespace", "volcano-global")
    common = (f"--kubeconfig={stack.karmada}", "--logtostderr", "--enable-healthz=false")
    stack.start(
        "volcano-global-webhook",
        "vg-webhook-manager",
        *common,
        f"--enabled-admission={_ADMISSIONS}",
        f"--tls-cert-file={stack.certificates.certificate}",
        f"--tls-private-key-file={stack.certificates.key}",
        f"--ca-cert-file={stack.certificates.authority}",
        f"--listen-address={LOOPBACK}",
        f"--port={port}",
        f"--webhook-url=https://{LOOPBACK}:{port}",
    )
    given = (files / "volcano-global-webhooks.yaml").read_text()
    registered = registration(given, port=port, authority=stack.authority)
    kubectl(stack.karmada, "apply", "-f", "-", stdin=registered)
    stack.start(
        "volcano-global-controller",
        "vg-controller-manager",
        *common,
        "--leader-elect=false",
        "--dispatch-period=1s",
        "--controllers=dispatcher",
        f"--listen-address={LOOPBACK}:{free_port()}",
    )
    stack.apply(stack.karmada, files / f"{_POLICY}.yaml")
    overwrite = '{"spec":{"conflictResolution":"Overwrite"}}'
    words = ("clusterpropagationpolicy", _POLICY, "--type=merge", "-p", overwrite)
    kubectl(stack.karmada, "patch", *words)
