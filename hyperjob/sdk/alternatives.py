"""Build the alternatives and the sizes of a training: the same program elsewhere. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hyperjob.sdk.parameters import require_types
from hyperjob.sdk.template import CONTAINER, require_whole, resources_of
from hyperjob_core.api.meta import Object

_TYPES: Final[Mapping[str, Any]] = {
    "name": str,
    "clusters": int | Sequence[str],
    "replicas": int,
    "gpus": int,
    "accelerator": str,
    "cpu": str | float | None,
    "memory": str | None,
    "image": str,
    "env": Mapping[str, str],
    "node_selector": Mapping[str, str],
    "estimate": str,
}
"""What an alternative may change: parameters of `trainer`, and the running time to expect."""


def alternatives_of(
    alternatives: Sequence[Mapping[str, Any]], usual: Mapping[str, Any]
) -> tuple[list[Object], int]:
    """Return the alternatives with the most clusters that a HyperJob may use; raise ValueError.

    `usual` are the parameters that count where an alternative has none.
    """
    number = clusters_of(usual["clusters"], usual["replicas"])
    made = [_alternative(each, usual) for each in alternatives]
    return [each for each, _ in made], max((each for _, each in made), default=number)


def _alternative(given: Mapping[str, Any], usual: Mapping[str, Any]) -> tuple[Object, int]:
    unknown = sorted(given.keys() - _TYPES.keys())
    if unknown or not given.get("name"):
        what = f"it has {', '.join(unknown)}" if unknown else "it has no name"
        raise ValueError(
            f"alternatives: {given!r}: {what}; an alternative has a name, and may have"
            f" {', '.join(key for key in _TYPES if key != 'name')}"
        )
    require_types({key: _TYPES[key] for key in given}, dict(given))
    now = {**usual, **given}
    number = clusters_of(now["clusters"], now["replicas"])
    amounts = resources_of(
        cpu=now["cpu"], memory=now["memory"], gpus=now["gpus"], accelerator=now["accelerator"]
    )
    container: Object = {"name": CONTAINER}
    if amounts:
        container["resources"] = {"requests": amounts, "limits": amounts}
    if "image" in given:
        container["image"] = given["image"]
    if "env" in given:
        container["env"] = [{"name": key, "value": each} for key, each in given["env"].items()]
    pod: Object = {"containers": [container]}
    if "node_selector" in given:
        pod["nodeSelector"] = dict(given["node_selector"])
    task = {"name": "worker", "replicas": now["replicas"] // number, "template": {"spec": pod}}
    template: Object = {"tasks": [task]}
    if "estimate" in given:
        template["runningEstimate"] = given["estimate"]
    made: Object = {"name": given["name"], "replicas": number, "templateSpec": template}
    if not isinstance(now["clusters"], int):
        made["clusterNames"] = list(now["clusters"])
    return made, number


def clusters_of(clusters: int | Sequence[str], replicas: int) -> int:
    """Return the number of clusters; raise ValueError."""
    if isinstance(clusters, int):
        require_whole("clusters", clusters, least=1)
    require_whole("replicas", replicas, least=1)
    number = clusters if isinstance(clusters, int) else len(clusters)
    if number < 1 or replicas % number:
        raise ValueError(
            f"replicas ({replicas}) must be a positive multiple of the clusters ({number}): all"
            " clusters get the same number of pods"
        )
    return number


def bounds_of(
    clusters: int | Sequence[str], replicas: int | Sequence[int]
) -> tuple[int | None, int, int]:
    """Return the fewest clusters, if their number may change, their number, and that of all pods.

    Raise ValueError.
    """
    if isinstance(replicas, int):
        return None, clusters_of(clusters, replicas), replicas
    if len(replicas) != 2:
        raise ValueError(f"replicas={replicas!r}: expected a number of pods, or (least, most)")
    least, most = replicas
    number = clusters_of(clusters, most)
    each = most // number
    if not 0 < least <= most or least % each:
        raise ValueError(
            f"replicas: the least number ({least}) must be a multiple of the pods of a cluster"
            f" ({each}), and at most {most}"
        )
    return least // each, number, most
