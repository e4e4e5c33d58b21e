"""The whole system for integration tests: simulated Karmada and members, webhook, controller.

Each is a separate process. With KUBEBUILDER_ASSETS the Karmada is simulated on a real API server,
else on the embedded API server; the tests are the same.
"""

import contextlib
import os
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from uuid import uuid4

import yaml
from prometheus_client.parser import text_string_to_metric_families

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import API_VERSION, KIND
from tests.support.controlplane import ControlPlane
from tests.support.envtest import kube_apiserver
from tests.support.processes import free_port, wait_for
from tests.support.proxy import Relay
from tests.support.stack import (
    HYPERJOB_CRD,
    Service,
    controller_service,
    installed,
    issue_certificates,
    registered,
    sandbox,
    webhook_service,
)

OURS = ("hyperjobs", "jobs", "propagationpolicies", "resourcebindings")
PATIENCE = 60.0

CLUSTERS = """
clusters:
- name: east
  nodes: [{count: 4, allocatable: {cpu: 64, memory: 1Ti, nvidia.com/gpu: 8}}]
- name: west
  nodes: [{count: 4, allocatable: {cpu: 64, memory: 1Ti, nvidia.com/gpu: 8}}]
runTimes: {defaultSeconds: 1}
failures: [{job: "*-failing-*", exitCode: 3}]
volcanoGlobal: {enabled: true, dispatchPeriod: 0.3}
karmada: {clusterStatusSeconds: 0.5}
"""


@dataclass(frozen=True, slots=True)
class System:
    """`without_crd` is the controller's answer on /readyz before the creation of the HyperJob CRD.

    `apart` are writes that the tests do not count.
    """

    plane: ControlPlane
    members: Mapping[str, Path]
    webhook: Service
    controller: Service
    relay: Relay
    without_crd: str
    apart: Counter[tuple[str, str, str]] = field(default_factory=Counter)

    def writes(self) -> Counter[tuple[str, str, str]]:
        """Return the number of writes so far to objects of HyperJobs, by (verb, resource, sub).

        The writes of `writes_beside_a_later_one` for its own HyperJob do not count.
        """
        written = {key: count for key, count in self.plane.writes().items() if key[1] in OURS}
        return _difference(Counter(written), self.apart)

    def apply(self, namespace: str, *objects: Object) -> None:
        """Apply objects with kubectl."""
        text = yaml.safe_dump_all(objects)
        self.plane.kubectl("apply", f"--namespace={namespace}", "-f", "-", stdin=text)

    def refused(self, namespace: str, text: str) -> str:
        """Apply an object that must be refused; return kubectl's error."""
        done = self.plane.kubectl(
            "apply", f"--namespace={namespace}", "-f", "-", stdin=text, check=False
        )
        assert done.returncode, f"accepted: {done.stdout}"
        return done.stderr

    def hyperjob(self, namespace: str, name: str) -> Object:
        """Read a HyperJob."""
        done = self.plane.kubectl("get", "hj", name, f"--namespace={namespace}", "-o", "yaml")
        found: Object = yaml.safe_load(done.stdout)
        return found

    def until(
        self, namespace: str, name: str, holds: Callable[[Object], object], *, what: str
    ) -> Object:
        """Wait until a condition holds of a HyperJob; return the HyperJob."""
        deadline = time.monotonic() + PATIENCE
        while not holds(found := self.hyperjob(namespace, name)):
            if time.monotonic() > deadline:
                status = yaml.safe_dump(found.get("status"))
                raise AssertionError(
                    f"{name} is not {what}:\n{status}{self.controller.text()[-3000:]}"
                )
            time.sleep(0.1)
        return found

    def until_phase(self, namespace: str, name: str, *phases: str) -> Object:
        """Wait until a HyperJob is in one of the phases."""
        return self.until(
            namespace, name, lambda found: phase_of(found) in phases, what=" or ".join(phases)
        )

    def until_quiet(self, namespace: str) -> Counter[tuple[str, str, str]]:
        """Wait until a new HyperJob is handled without a write to others; return all counts."""
        deadline = time.monotonic() + PATIENCE
        while written := self.writes_beside_a_later_one(namespace):
            assert time.monotonic() < deadline, f"no end of writes: {written}"
        return self.writes()

    def writes_beside_a_later_one(self, namespace: str) -> Counter[tuple[str, str, str]]:
        """Create a HyperJob and wait for the controller; return the writes to other HyperJobs.

        The new HyperJob is suspended and takes no share of a queue; the controller writes its
        status once. The workqueue of the controller is empty afterwards.
        """
        before, name = self.writes(), f"later-{uuid4().hex[:8]}"
        self.apply(namespace, _suspended(name))
        self.until_phase(namespace, name, "Suspended")
        self.plane.kubectl("delete", "hj", name, f"--namespace={namespace}", "--timeout=30s")
        self.controller.wait(self._has_no_key, what="an empty queue")
        self.apart.update(_OF_A_LATER_ONE)
        return _difference(self.writes(), before)

    def _has_no_key(self) -> bool:
        """Return whether the controller's workqueue is empty and no reconciliation runs."""
        waiting = ("workqueue_depth", "workqueue_unfinished_work_seconds")
        return not any(
            sample.value
            for family in text_string_to_metric_families(self.controller.metrics())
            for sample in family.samples
            if sample.name in waiting
        )


_OF_A_LATER_ONE: Final = Counter(
    [("POST", "hyperjobs", ""), ("PATCH", "hyperjobs", "status"), ("DELETE", "hyperjobs", "")]
)


def _difference(
    after: Counter[tuple[str, str, str]], before: Counter[tuple[str, str, str]]
) -> Counter[tuple[str, str, str]]:
    """Return `after` minus `before`; differences may be negative."""
    after.subtract(before)
    return Counter({key: count for key, count in after.items() if count})


def _suspended(name: str) -> Object:
    """Return a HyperJob without sub-jobs, since it is suspended."""
    container = {"name": "main", "image": "i"}
    tasks = [{"name": "worker", "replicas": 1, "template": {"spec": {"containers": [container]}}}]
    group = {"name": "one", "replicas": 1, "templateSpec": {"tasks": tasks}}
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": name},
        "spec": {"suspend": True, "replicatedJobs": [group]},
    }


def phase_of(hyperjob: Object) -> str:
    """Return the phase of a HyperJob."""
    return str(((hyperjob.get("status") or {}).get("state") or {}).get("phase") or "")


@contextlib.contextmanager
def running_system(directory: Path, *, clusters: str = CLUSTERS) -> Iterator[System]:
    """Start all processes; the controller starts before the CRD exists."""
    file = directory / "clusters.yaml"
    file.write_text(clusters)
    assets = os.environ.get("KUBEBUILDER_ASSETS")
    with contextlib.ExitStack() as stack:
        api = (
            stack.enter_context(kube_apiserver(Path(assets), directory / "api")) if assets else None
        )
        kubeconfig, members = stack.enter_context(
            sandbox(directory / "sandbox", file, kubeconfig=api)
        )
        relayed, relay = _relayed(kubeconfig, directory)
        stack.enter_context(relay)
        controller = controller_service(directory, relayed, queue_admission="volcano-global")
        stack.callback(controller.stop)
        controller.start(until_ready=False)
        controller.wait(lambda: "hyperjobs" in readiness(controller), what="waiting for the CRD")
        without_crd = readiness(controller)
        stack.enter_context(installed(kubeconfig, [HYPERJOB_CRD]))
        certificates = issue_certificates(directory / "tls")
        port = free_port()
        webhook = webhook_service(directory, certificates, port=port)
        stack.callback(webhook.stop)
        webhook.start()
        stack.enter_context(registered(kubeconfig, certificates, port=port))
        wait_for(controller.is_ready, what="controller", process=controller.process)
        plane = ControlPlane(kubeconfig, real=bool(assets))
        yield System(plane, members, webhook, controller, relay, without_crd)


def readiness(service: Service) -> str:
    """Return the content of /readyz, also of an error."""
    try:
        with urllib.request.urlopen(f"{service.url}/readyz", timeout=2) as answer:
            return str(answer.read().decode())
    except urllib.error.HTTPError as error:
        with error:
            return error.read().decode()
    except OSError:
        return ""


def _relayed(kubeconfig: Path, directory: Path) -> tuple[Path, Relay]:
    """Return a kubeconfig with the address of a relay, and the relay."""
    config = yaml.safe_load(kubeconfig.read_text())
    cluster = config["clusters"][0]["cluster"]
    relay = Relay(urlsplit(cluster["server"]).port or 443)
    cluster["server"] = f"https://127.0.0.1:{relay.port}"
    path = directory / "relayed.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path, relay
