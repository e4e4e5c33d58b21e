"""The world of the scenarios: the control plane, its members, their sizes, and our processes.

The tests read the sizes from the Clusters, and find Volcano Global by its webhook.
"""

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from e2e.support.settings import Settings
from hyperjob_core.api.meta import Object
from hyperjob_core.api.quantity import NANO, Quantity
from hyperjob_core.api.wire import is_true
from hyperjob_rules.configuration import MUTATING_NAME
from tests.support.embedded import volcano_file
from tests.support.processes import wait_for
from tests.support.stack import ROOT, Stack, installed, kubectl, our_stack, sandbox
from tests.support.trainjobs import definitions

CLUSTERS_FILE = ROOT / "e2e/clusters.yaml"
LOST_TIMEOUT = 10.0  # the --cluster-lost-timeout of a controller that the tests run
GANG_TIMEOUT = 15.0  # longer than a queue needs to admit a gang, short enough to wait for
_VOLCANO_CRDS = ("jobs.batch.volcano.sh", "queues.scheduling.volcano.sh")
_SANDBOX_ANNOTATION = "sandbox.hyperjob.volcano.sh/seconds"


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The world; `sizes` is the number of pods of `per_pod` accelerators by member."""

    settings: Settings
    kubeconfig: Path
    members: Mapping[str, Path]
    volcano_global: bool
    stack: Stack | None
    lost_timeout: float
    accelerator: str
    per_pod: int
    sizes: Mapping[str, int]

    @property
    def largest(self) -> str:
        """Return the largest member."""
        return next(iter(self.sizes))

    @property
    def pair(self) -> tuple[str, str]:
        """Return the two largest members."""
        names = list(self.sizes)
        assert len(names) >= 2, f"two members with {self.accelerator} are needed, not {names}"
        return names[0], names[1]

    def is_free(self) -> bool:
        """Return whether the Clusters report the resources of `sizes` as free."""
        free = _free(self.kubeconfig, list(self.sizes), self.accelerator)
        return all(free.get(name, 0) >= size * self.per_pod for name, size in self.sizes.items())

    def pod_metadata(self, *, seconds: float, exit_code: int) -> Object:
        """Return the metadata of a pod, with the annotations of simulated kubelets."""
        names = (self.settings.seconds_annotation, self.settings.exit_annotation)
        if self.settings.embedded:
            names = (_SANDBOX_ANNOTATION, "")
        pairs = zip(names, (f"{seconds:g}", str(exit_code)), strict=True)
        annotations = {name: value for name, value in pairs if name}
        return {"annotations": annotations} if annotations else {}


@contextlib.contextmanager
def open_world(
    settings: Settings,
    directory: Path,
    *,
    clusters: Path = CLUSTERS_FILE,
    queue_admission: str | None = None,
    gang_timeout: float = GANG_TIMEOUT,
    controller: Sequence[str] = (),
    trainjobs: bool = False,
) -> Iterator[World]:
    """Start the processes that the settings ask for; end them at the end of the block.

    By default the controller uses Volcano Global if it is installed, else no queue admission.
    `controller` are more arguments of the controller. With `trainjobs` Trainer's CRDs are there.
    """
    with contextlib.ExitStack() as stack:
        if settings.kubeconfig is None:
            kubeconfig, members = stack.enter_context(sandbox(directory / "sandbox", clusters))
        else:
            kubeconfig, members = settings.kubeconfig, dict(settings.members)
        volcano_global = _has_volcano_global(kubeconfig)
        ours: Stack | None = None
        if settings.embedded or settings.local:
            _refuse_release(kubeconfig)
            files = [volcano_file(name) for name in _VOLCANO_CRDS]
            if trainjobs:
                files += definitions(directory / "trainer")
            stack.enter_context(installed(kubeconfig, files))
            ours = stack.enter_context(
                our_stack(
                    directory / "ours",
                    kubeconfig,
                    queue_admission=queue_admission
                    or ("volcano-global" if volcano_global else "none"),
                    gang_timeout=gang_timeout,
                    cluster_lost_timeout=LOST_TIMEOUT,
                    address=settings.address,
                    controller=["--growth-interval=2", *controller],
                    trainjobs=trainjobs,
                )
            )
        per_pod, sizes = _sizes(kubeconfig, members, settings.accelerator)
        yield World(
            settings=settings,
            kubeconfig=kubeconfig,
            members=members,
            volcano_global=volcano_global,
            stack=ours,
            lost_timeout=settings.lost_timeout if ours is None else LOST_TIMEOUT,
            accelerator=settings.accelerator,
            per_pod=per_pod,
            sizes=sizes,
        )


def _has_volcano_global(kubeconfig: Path) -> bool:
    """Return whether a webhook of Volcano Global suspends new ResourceBindings."""
    return any(
        webhook["name"].endswith(".volcano.sh")
        and any(
            "work.karmada.io" in rule["apiGroups"] and "resourcebindings" in rule["resources"]
            for rule in webhook.get("rules") or ()
        )
        for configuration in _items(kubeconfig, "mutatingwebhookconfigurations")
        if configuration["metadata"]["name"] != MUTATING_NAME
        for webhook in configuration.get("webhooks") or ()
    )


def _refuse_release(kubeconfig: Path) -> None:
    names = [
        each["metadata"]["name"] for each in _items(kubeconfig, "mutatingwebhookconfigurations")
    ]
    if MUTATING_NAME in names:
        raise RuntimeError(
            f"{MUTATING_NAME} is there already: a release is installed, or an earlier run was"
            " killed. Unset HYPERJOB_E2E_LOCAL to test the release, or delete the configuration."
        )


def _sizes(
    kubeconfig: Path, members: Mapping[str, Path], accelerator: str
) -> tuple[int, dict[str, int]]:
    """Return the accelerators of the smallest node, and how many such pods fit in each member."""
    nodes = {
        name: [
            amount
            for node in _items(path, "nodes")
            if is_true(node, "Ready")
            and (amount := _amount(node["status"]["allocatable"], accelerator))
        ]
        for name, path in members.items()
    }
    per_pod = min((amount for amounts in nodes.values() for amount in amounts), default=0)
    assert per_pod, f"no node of {', '.join(members)} has {accelerator}"
    holders = [name for name, amounts in nodes.items() if amounts]

    def reported() -> bool:
        found = _summaries(kubeconfig)
        return all(
            _amount(found.get(name, {}).get("allocatable"), accelerator) >= sum(nodes[name])
            for name in holders
        )

    # A Cluster that has just joined reports the nodes that were there then.
    wait_for(reported, what="resourceSummary of Clusters with all their nodes")
    free = _free(kubeconfig, holders, accelerator)
    sizes = {
        name: min(sum(amount // per_pod for amount in nodes[name]), free[name] // per_pod)
        for name in holders
    }
    return per_pod, dict(sorted(sizes.items(), key=lambda item: (-item[1], item[0])))


def _summaries(kubeconfig: Path) -> dict[str, Object]:
    """Return what Clusters report of their resources, by name."""
    return {
        cluster["metadata"]["name"]: (cluster.get("status") or {}).get("resourceSummary") or {}
        for cluster in _items(kubeconfig, "clusters.cluster.karmada.io")
    }


def _free(kubeconfig: Path, names: list[str], accelerator: str) -> dict[str, int]:
    """Return the free accelerators by member; empty while a member does not report."""
    found: dict[str, int] = {}
    for name, summary in _summaries(kubeconfig).items():
        total = _amount(summary.get("allocatable"), accelerator)
        if total:
            taken = sum(
                _amount(summary.get(part), accelerator) for part in ("allocated", "allocating")
            )
            found[name] = total - taken
    return found if set(names) <= set(found) else {}


def _amount(resources: Object | None, name: str) -> int:
    return Quantity.parse((resources or {}).get(name) or 0).nano // NANO


def _items(kubeconfig: Path, kind: str) -> list[Object]:
    items: list[Object] = json.loads(kubectl(kubeconfig, "get", kind, "-o", "json").stdout)["items"]
    return items


def document(name: str) -> Object:
    """Return the HyperJob of an example."""
    return next(each for each in documents(name) if each["kind"] == "HyperJob")


def documents(name: str) -> list[Object]:
    """Return all objects of an example."""
    return list(yaml.safe_load_all((ROOT / f"examples/{name}.yaml").read_text()))
