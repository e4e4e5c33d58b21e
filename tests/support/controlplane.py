"""A control plane for integration tests: embedded, or real if KUBEBUILDER_ASSETS is set."""

import contextlib
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from hyperjob_sandbox.karmada.definitions import control_plane_definitions
from tests.support.embedded import ROOT, crd_files
from tests.support.envtest import kube_apiserver
from tests.support.processes import running, wait_for
from tests.support.stack import KUBECTL, kubectl


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """The embedded or real API server."""

    kubeconfig: Path
    real: bool

    def kubectl(
        self, *arguments: str, stdin: str | None = None, check: bool = True, timeout: float = 60
    ) -> subprocess.CompletedProcess[str]:
        """Run kubectl; with `check`, fail with its own error text."""
        return kubectl(self.kubeconfig, *arguments, stdin=stdin, check=check, timeout=timeout)

    def writes(self) -> Counter[tuple[str, str, str]]:
        """Return the number of write requests so far, by (verb, resource, subresource)."""
        text = self.kubectl("get", "--raw", "/metrics").stdout
        counts: Counter[tuple[str, str, str]] = Counter()
        for family in text_string_to_metric_families(text):
            if family.name != "apiserver_request":
                continue
            for sample in family.samples:
                labels = sample.labels
                if sample.name == "apiserver_request_total" and labels["verb"] in {
                    *("POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"),
                }:
                    key = (labels["verb"], labels["resource"], labels["subresource"])
                    counts[key] += int(sample.value)
        return counts


@contextlib.contextmanager
def control_plane(directory: Path, *, rbac: bool = False) -> Iterator[ControlPlane]:
    """Run an API server with the CRDs of HyperJob, Karmada and Volcano established.

    With `rbac` the embedded API server enforces RBAC, as the real API server always does.
    """
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    with contextlib.ExitStack() as stack:
        if assets:
            plane = ControlPlane(
                stack.enter_context(kube_apiserver(Path(assets), directory)), real=True
            )
        else:
            kubeconfig, log = directory / "kubeconfig", directory / "apiserver.log"
            command = [sys.executable, "-m", "tests.support.embedded", directory]
            command += ["--rbac"] if rbac else []
            process = stack.enter_context(running(command, log=log))
            wait_for(kubeconfig.exists, what="embedded API server", process=process, log=log)
            plane = ControlPlane(kubeconfig, real=False)
        paths = [*crd_files(), cluster_bindings(directory)]
        files = [word for path in paths for word in ("-f", str(path))]
        plane.kubectl("apply", "--server-side", *files)
        plane.kubectl("wait", "--for=condition=Established", *files, "--timeout=30s")
        yield plane


def cluster_bindings(directory: Path) -> Path:
    """Write the definition of ClusterResourceBindings, which is like that of ResourceBindings."""
    name = "clusterresourcebindings.work.karmada.io"
    found = (each for each in control_plane_definitions() if each["metadata"]["name"] == name)
    path = directory / f"{name}.json"
    path.write_text(json.dumps(next(found)))
    return path


__all__ = ["KUBECTL", "ROOT", "ControlPlane", "control_plane"]
