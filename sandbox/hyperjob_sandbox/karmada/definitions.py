"""The CustomResourceDefinitions that the sandbox serves for Karmada and Volcano."""

from collections.abc import Sequence
from copy import deepcopy
from functools import cache
from importlib.resources import files
from typing import Final

import yaml

from hyperjob_core.api.meta import Object
from hyperjob_core.api.schema import volcano_crds

_TOPOLOGY_GROUP: Final = "topology.volcano.sh"
_MEMBER_GROUPS: Final = (
    _TOPOLOGY_GROUP,
    "batch.volcano.sh",
    "bus.volcano.sh",
    "multicluster.x-k8s.io",
    "scheduling.volcano.sh",
)


def member_definitions() -> list[Object]:
    """Return the definitions of a member: Volcano's, and that of exported Services."""
    return [each for each in _definitions() if each["spec"]["group"] in _MEMBER_GROUPS]


@cache
def control_plane_definitions() -> Sequence[Object]:
    """Return the definitions of the Karmada API server, which must not be changed."""
    return [each for each in _definitions() if each["spec"]["group"] != _TOPOLOGY_GROUP]


@cache
def _definitions() -> Sequence[Object]:
    folder = files("hyperjob_sandbox") / "crds"
    # libyaml reads them ten times faster, where PyYAML has it
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    ours = [
        yaml.load(each.read_bytes(), Loader=loader)  # noqa: S506 - both are safe
        for each in folder.iterdir()
        if each.name.endswith(".yaml")
    ]
    found = {each["metadata"]["name"]: each for each in (*volcano_crds().values(), *ours)}
    bindings = _cluster_scoped(found["resourcebindings.work.karmada.io"])
    return [*found.values(), bindings]


def _cluster_scoped(source: Object) -> Object:
    """Make the ClusterResourceBinding of the ResourceBinding: they differ in scope only."""
    definition = deepcopy(source)
    definition["metadata"]["name"] = "clusterresourcebindings.work.karmada.io"
    definition["spec"]["scope"] = "Cluster"
    definition["spec"]["names"] |= {
        "kind": "ClusterResourceBinding",
        "listKind": "ClusterResourceBindingList",
        "plural": "clusterresourcebindings",
        "shortNames": ["crb"],
        "singular": "clusterresourcebinding",
    }
    return definition
