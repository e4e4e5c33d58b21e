"""Build the pod template of a training, its alternatives and its sizes. Pure."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from hyperjob.sdk.parameters import require_amount, require_bytes, require_types
from hyperjob_core.api import merge
from hyperjob_core.api.duration import nanoseconds
from hyperjob_core.api.meta import Object

CONTAINER: Final = "trainer"
KEYS: Final = {**merge.KEYS, "tolerations": "key", "topologySpreadConstraints": "topologyKey"}
"""The lists of a pod template whose items are the same by a key."""
_TEMPLATE: Final = ("metadata", "spec")


def resources_of(
    *, cpu: str | float | None, memory: str | None, gpus: int, accelerator: str
) -> dict[str, str]:
    """Return the requests of a pod, which are its limits too; raise ValueError."""
    require_amount("cpu", cpu, example="2 or '500m'")
    require_bytes("memory", memory)
    require_whole("gpus", gpus, least=0)
    return {
        **({"cpu": str(cpu)} if cpu is not None else {}),
        **({"memory": memory} if memory is not None else {}),
        **({accelerator: str(gpus)} if gpus else {}),
    }


def seconds_of(time_limit: int | str) -> int:
    """Return the seconds of a time limit such as 3600 or "2h30m"; raise ValueError."""
    expected = f"time_limit={time_limit!r}: expected seconds, or a duration as in '2h30m'"
    if isinstance(time_limit, str):
        try:
            found = nanoseconds(time_limit) // 10**9
        except ValueError:
            raise ValueError(expected) from None
    else:
        found = time_limit
    if not isinstance(found, int) or isinstance(found, bool) or found < 1:
        raise ValueError(expected)
    return found


def require_whole(name: str, value: object, *, least: int) -> None:
    """Raise ValueError unless a parameter is a whole number."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} must be a whole number, at least {least}; got {value!r}")


def volumes_of(
    volumes: Mapping[str, str | Mapping[str, Any]] | None, shared_memory: str | None
) -> tuple[list[Object], list[Object]]:
    """Return the volumes of a pod and the mounts of its container; raise ValueError.

    `volumes` has the name of a claim, or a volume source of Kubernetes, for each mount path.
    """
    sources: list[tuple[str, Mapping[str, Any]]] = []
    for path, source in (volumes or {}).items():
        if not path.startswith("/"):
            raise ValueError(f"volumes: the mount path {path!r} must be absolute")
        claim = {"persistentVolumeClaim": {"claimName": source}}
        sources.append((path, claim if isinstance(source, str) else source))
    require_bytes("shared_memory", shared_memory)
    if shared_memory is not None:
        memory = {"emptyDir": {"medium": "Memory", "sizeLimit": shared_memory}}
        sources.append(("/dev/shm", memory))  # noqa: S108, a mount path
    named = [(f"volume-{number}", path, source) for number, (path, source) in enumerate(sources)]
    return (
        [{"name": name, **source} for name, _, source in named],
        [{"name": name, "mountPath": path} for name, path, _ in named],
    )


def toleration_of(text: str | Mapping[str, Any]) -> Object:
    """Return a toleration, also of `key`, `key=value`, `key:effect` or `key=value:effect`."""
    if not isinstance(text, str):
        return dict(text)
    found = re.fullmatch(
        r"([^=:]+)(?:=([^:]*))?(?::(NoSchedule|PreferNoSchedule|NoExecute))?", text
    )
    if found is None:
        raise ValueError(f"tolerations: {text!r} is not key, key=value or key=value:effect")
    key, value, effect = found.groups()
    return {
        "key": key,
        "operator": "Exists" if value is None else "Equal",
        **({} if value is None else {"value": value}),
        **({} if effect is None else {"effect": effect}),
    }


def checkpoint_of(checkpoint: str | Mapping[str, Any]) -> Object:
    """Return spec.checkpoint of a directory, a URL, or its fields in Kubernetes' names.

    Raise ValueError for an empty one.
    """
    if not checkpoint:
        raise ValueError(
            f"checkpoint={checkpoint!r}: expected a directory such as '/checkpoints', a URL such as"
            " 's3://bucket/run', or the fields of spec.checkpoint"
        )
    return {"directory": checkpoint} if isinstance(checkpoint, str) else dict(checkpoint)


def require_template(pod_template: Mapping[str, Any] | None) -> None:
    """Raise ValueError for a pod template with a field that a template does not have."""
    wrong = [key for key in pod_template or {} if key not in _TEMPLATE]
    if wrong:
        raise ValueError(
            f"pod_template has {', '.join(map(str, wrong))}: a pod template has only metadata and"
            " spec, as in pod_template={'spec': {'nodeName': 'node-1'}}"
        )


def env_from(secrets: str | Sequence[str] | None) -> list[Object]:
    """Return envFrom for the names of Secrets."""
    names = [secrets] if isinstance(secrets, str) else secrets or ()
    return [{"secretRef": {"name": name}} for name in names]


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
    made: Object = {"name": given["name"], "templateSpec": template}
    if number != clusters_of(usual["clusters"], usual["replicas"]):
        made["replicas"] = number
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
) -> tuple[Object, int, int]:
    """Return the bounds of the number of clusters, if it may change, it, and that of all pods.

    Raise ValueError.
    """
    if isinstance(replicas, int):
        return {}, clusters_of(clusters, replicas), replicas
    if len(replicas) not in (2, 3):
        raise ValueError(
            f"replicas={replicas!r}: expected a number of pods, (least, wanted) or"
            " (least, wanted, most)"
        )
    least, wanted, most = (*replicas, replicas[1])[:3]
    number = clusters_of(clusters, wanted)
    each = wanted // number
    if not 0 < least <= wanted <= most or least % each or most % each:
        raise ValueError(
            f"replicas={tuple(replicas)}: the numbers must grow, and be multiples of the pods of a"
            f" cluster ({each})"
        )
    bounds: Object = {"minReplicas": least // each}
    if len(replicas) > 2:
        bounds["maxReplicas"] = most // each
    return bounds, number, wanted
