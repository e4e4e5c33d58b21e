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
    "replicas": int | Sequence[int],
    "accelerators": int | Sequence[int] | None,
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
    made = [_alternative(each, usual) for each in alternatives]
    return [each for each, _ in made], max((each for _, each in made), default=0)


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
    size, pods, most = size_of(now)
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
    task = {"name": "worker", "replicas": pods, "template": {"spec": pod}}
    template: Object = {"tasks": [task]}
    if "estimate" in given:
        template["runningEstimate"] = given["estimate"]
    made: Object = {"name": given["name"], "templateSpec": template}
    before, _, _ = size_of(usual)
    fixed = {name: size.get("replicas", 1) for name in before if name.endswith("Replicas")}
    made |= {name: each for name, each in {**fixed, **size}.items() if before.get(name) != each}
    if not isinstance(now["clusters"], int):
        made["clusterNames"] = list(now["clusters"])
    return made, most


def size_of(options: Mapping[str, Any]) -> tuple[Object, int, int]:
    """Return the fields of a replicatedJob with its number of sub-jobs, or of its accelerators.

    Beside them are the pods of a sub-job, and the most clusters that it may use. Raise ValueError.
    """
    clusters, replicas, accelerators = (
        options[e] for e in ("clusters", "replicas", "accelerators")
    )
    if accelerators is None:
        return _sub_jobs(clusters, replicas)
    if replicas != 1:
        raise ValueError(f"replicas={replicas!r}: with `accelerators` the controller decides it")
    gpus = options["gpus"]
    least, wanted, most = _bounds("accelerators", accelerators, "accelerators")
    _require_multiples("accelerators", accelerators, gpus, "gpus of a pod")
    policy: Object = {"mode": "auto", "accelerators": wanted}
    policy |= {"acceleratorType": options["accelerator"]}
    policy |= {} if least is None else {"minAccelerators": least}
    policy |= {} if most is None else {"maxAccelerators": most}
    return {"splitPolicy": policy}, 1, clusters if isinstance(clusters, int) else len(clusters)


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


def _sub_jobs(
    clusters: int | Sequence[str], replicas: int | Sequence[int]
) -> tuple[Object, int, int]:
    least, wanted, most = _bounds("replicas", replicas, "pods")
    number = clusters_of(clusters, wanted)
    each = wanted // number
    _require_multiples("replicas", replicas, each, "pods of a cluster")
    fields: Object = {"replicas": number}
    fields |= {} if least is None else {"minReplicas": least // each}
    fields |= {} if most is None else {"maxReplicas": most // each}
    return fields, each, number if most is None else most // each


def _bounds(name: str, given: int | Sequence[int], what: str) -> tuple[int | None, int, int | None]:
    """Return the least, the wanted and the largest number, where given; raise ValueError."""
    if isinstance(given, int):
        return None, given, None
    if len(given) not in (2, 3):
        raise ValueError(
            f"{name}={given!r}: expected a number of {what}, (least, wanted) or"
            " (least, wanted, most)"
        )
    return given[0], given[1], given[2] if len(given) > 2 else None


def _require_multiples(name: str, given: int | Sequence[int], each: int, what: str) -> None:
    """Raise ValueError unless numbers grow, and are multiples of a number of pods or devices."""
    numbers = [given] if isinstance(given, int) else [*given]
    if each < 1 or min(numbers) < 1 or numbers != sorted(numbers) or any(n % each for n in numbers):
        shown = given if isinstance(given, int) else tuple(given)
        raise ValueError(
            f"{name}={shown}: the numbers must grow, and be multiples of the {what} ({each})"
        )
