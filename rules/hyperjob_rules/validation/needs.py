"""The objects of its namespace without which the pods of a HyperJob do not start."""

from collections.abc import Iterable, Iterator
from typing import Final

from hyperjob_core.api.field import SPEC, Path
from hyperjob_core.api.meta import Object

Reference = tuple[str, str, Path]


def needed_by(template: Object, path: Path) -> Iterator[Reference]:
    """Yield the objects without which the pods of a template do not start."""
    for index, volume in enumerate(template.get("volumes") or ()):
        if volume.get("volumeClaimName") and not volume.get("volumeClaim"):
            at = path.child("volumes").index(index).child("volumeClaimName")
            yield "PersistentVolumeClaim", volume["volumeClaimName"], at
    for index, task in enumerate(template.get("tasks") or ()):
        spec = (task.get("template") or {}).get("spec") or {}
        at = path.child("tasks").index(index).child("template", "spec")
        yield from _of_account(spec, at)
        yield from _of_volumes(spec, at)
        for kind in ("initContainers", "containers"):
            for position, container in enumerate(spec.get(kind) or ()):
                yield from _of_container(container, at.child(kind).index(position))


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
        for source, kind, field in (
            ("configMap", "ConfigMap", "name"),
            ("secret", "Secret", "secretName"),
            ("persistentVolumeClaim", "PersistentVolumeClaim", "claimName"),
        ):
            given = volume.get(source) or {}
            if given.get(field) and not given.get("optional"):
                yield kind, given[field], at.child(source, field)
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
    for field, kind in fields:
        given = holder.get(field) or {}
        if given.get("name") and not given.get("optional"):
            yield kind, given["name"], path.child(field, "name")


def needs(hyperjob: Object) -> set[tuple[str, str]]:
    """Return kind and name of each object that the pods need."""
    found = set()
    for index, job in enumerate((hyperjob.get("spec") or {}).get("replicatedJobs") or ()):
        template = job.get("templateSpec") or {}
        path = SPEC.child("replicatedJobs").index(index).child("templateSpec")
        found |= {(kind, name) for kind, name, _ in needed_by(template, path)}
    return found
