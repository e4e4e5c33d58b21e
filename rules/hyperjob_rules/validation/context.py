"""The context of a validation: other objects in the control plane, for warnings about references.

`needs` names those without which the pods of a HyperJob do not start.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final

from hyperjob_core.api.field import SPEC, Path
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import LABEL_CLAIMED_WIDELY
from hyperjob_core.api.wire import at, condition, mapping, string, string_map

MAX_GRACE_SECONDS: Final = 3600
SKIPPED: Final = "namespace.karmada.io/skip-auto-propagation"


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """The fields of a Volcano Queue that warnings depend on."""

    state: str = "Open"
    children: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The fields of a Karmada Cluster that warnings depend on."""

    ready: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The names of other objects; namespaced ones are of the HyperJob's namespace."""

    clusters: Mapping[str, Cluster] | None = None
    queues: Mapping[str, Queue] | None = None
    priority_classes: AbstractSet[str] | None = None
    kept_classes: AbstractSet[str] = frozenset()
    """PriorityClasses that no policy of Karmada copies to the members."""
    config_maps: AbstractSet[str] | None = None
    secrets: AbstractSet[str] | None = None
    persistent_volume_claims: AbstractSet[str] | None = None
    volumes: Mapping[str, str] = field(default_factory=dict)
    """The PersistentVolumes to which claims of the namespace bind by name, by claim."""
    is_skipped: bool = False
    """Whether Karmada copies neither the namespace nor what is in it to the members."""
    service_accounts: AbstractSet[str] | None = None
    controllers: AbstractSet[str] = frozenset()
    """Users who may open the gate of a binding; empty: all users who may write bindings."""
    max_grace_seconds: int = MAX_GRACE_SECONDS
    """The longest grace period of pods: for so long they may hold accelerators after their end."""


NOTHING_KNOWN: Final = Context()


def known_clusters(clusters: Iterable[Object]) -> dict[str, Cluster]:
    """Return the context's Clusters, from the objects."""
    return {
        item["metadata"]["name"]: Cluster(
            ready=condition(mapping(item.get("status")), "Ready").get("status") == "True"
        )
        for item in clusters
    }


def known_queues(queues: Iterable[Object]) -> dict[str, Queue]:
    """Return the context's Queues, from the objects."""
    known = list(queues)
    parents = Counter(at(queue, "spec", "parent") for queue in known)
    return {
        queue["metadata"]["name"]: Queue(
            state=string(at(queue, "status", "state")), children=parents[queue["metadata"]["name"]]
        )
        for queue in known
    }


def kept_classes(classes: Iterable[Object]) -> frozenset[str]:
    """Return the PriorityClasses that no policy of Karmada has claimed, from the objects."""
    return frozenset(
        item["metadata"]["name"]
        for item in classes
        if LABEL_CLAIMED_WIDELY not in string_map(item["metadata"].get("labels"))
        and not item["metadata"]["name"].startswith("system-")
    )


def known_objects(
    there: Mapping[tuple[str, str], Mapping[str, str]], namespace: str, *, skipped: bool = False
) -> Context:
    """Return a context with the objects that pods need, from names by namespace and kind."""

    def names(kind: str) -> AbstractSet[str] | None:
        found = there.get((namespace, kind))
        return None if found is None else found.keys()

    claims = there.get((namespace, "PersistentVolumeClaim")) or {}
    return Context(
        config_maps=names("ConfigMap"),
        secrets=names("Secret"),
        persistent_volume_claims=names("PersistentVolumeClaim"),
        service_accounts=names("ServiceAccount"),
        volumes={claim: volume for claim, volume in claims.items() if volume},
        is_skipped=skipped,
    )


def is_skipped(namespace: Object) -> bool:
    """Return whether a Namespace has the label by which Karmada does not copy it."""
    labels = string_map(at(namespace, "metadata", "labels"))
    return labels.get(SKIPPED) == "true"


Reference = tuple[str, str, Path]


def needed_by(template: Object, path: Path) -> Iterator[Reference]:
    """Yield the objects without which the pods of a template do not start."""
    for index, volume in enumerate(template.get("volumes") or ()):
        if volume.get("volumeClaimName") and not volume.get("volumeClaim"):
            at = path.child("volumes").index(index).child("volumeClaimName")
            yield "PersistentVolumeClaim", volume["volumeClaimName"], at
    for spec, at in pods_of(template, path):
        yield from _of_account(spec, at)
        yield from _of_volumes(spec, at)
        for kind in ("initContainers", "containers"):
            for position, container in enumerate(spec.get(kind) or ()):
                yield from _of_container(container, at.child(kind).index(position))


def pods_of(template: Object, path: Path) -> Iterator[tuple[Object, Path]]:
    """Yield the specs of the pods of a template, each with its path."""
    for index, task in enumerate(template.get("tasks") or ()):
        spec = (task.get("template") or {}).get("spec") or {}
        yield spec, path.child("tasks").index(index).child("template", "spec")


def _of_account(spec: Object, path: Path) -> Iterator[Reference]:
    account = spec.get("serviceAccountName")
    if account and account != "default":
        yield "ServiceAccount", account, path.child("serviceAccountName")
    for index, secret in enumerate(spec.get("imagePullSecrets") or ()):
        if secret.get("name"):
            yield (
                "Secret",
                secret["name"],
                path.child("imagePullSecrets").index(index).child("name"),
            )


def _of_volumes(spec: Object, path: Path) -> Iterator[Reference]:
    for index, volume in enumerate(spec.get("volumes") or ()):
        at = path.child("volumes").index(index)
        for source, kind, key in (
            ("configMap", "ConfigMap", "name"),
            ("secret", "Secret", "secretName"),
            ("persistentVolumeClaim", "PersistentVolumeClaim", "claimName"),
        ):
            given = volume.get(source) or {}
            if given.get(key) and not given.get("optional"):
                yield kind, given[key], at.child(source, key)
        projected = (volume.get("projected") or {}).get("sources") or ()
        for position, source in enumerate(projected):
            yield from _named(source, at.child("projected", "sources").index(position), _PROJECTED)


def _of_container(container: Object, path: Path) -> Iterator[Reference]:
    for index, variable in enumerate(container.get("env") or ()):
        at = path.child("env").index(index).child("valueFrom")
        yield from _named(variable.get("valueFrom") or {}, at, _KEYS)
    for index, source in enumerate(container.get("envFrom") or ()):
        yield from _named(source, path.child("envFrom").index(index), _WHOLE)


_KEYS: Final = (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret"))
_PROJECTED: Final = (("configMap", "ConfigMap"), ("secret", "Secret"))
_WHOLE: Final = (("configMapRef", "ConfigMap"), ("secretRef", "Secret"))


def _named(holder: Object, path: Path, fields: Iterable[tuple[str, str]]) -> Iterator[Reference]:
    for key, kind in fields:
        given = holder.get(key) or {}
        if given.get("name") and not given.get("optional"):
            yield kind, given["name"], path.child(key, "name")


def needed_for_checkpoints(hyperjob: Object) -> Iterator[Reference]:
    """Yield the claim of spec.checkpoint, if it names one: each pod mounts it."""
    checkpoint = (hyperjob.get("spec") or {}).get("checkpoint") or {}
    if claim := checkpoint.get("persistentVolumeClaim"):
        yield "PersistentVolumeClaim", claim, SPEC.child("checkpoint", "persistentVolumeClaim")


def needs(hyperjob: Object) -> set[tuple[str, str]]:
    """Return kind and name of each object that the pods need."""
    found = {(kind, name) for kind, name, _ in needed_for_checkpoints(hyperjob)}
    for index, job in enumerate((hyperjob.get("spec") or {}).get("replicatedJobs") or ()):
        template = job.get("templateSpec") or {}
        path = SPEC.child("replicatedJobs").index(index).child("templateSpec")
        found |= {(kind, name) for kind, name, _ in needed_by(template, path)}
    return found
