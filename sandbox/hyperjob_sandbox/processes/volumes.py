"""The volumes of a pod as folders of this machine.

Each pod has its own folder and temporary folder, which are removed with the pod. The folder of a
PersistentVolumeClaim exists until the claim is deleted; all pods of the cluster share it. The pods
of a namespace share the folder of an NFS export in all clusters.
"""

import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote

from hyperjob_core.api.meta import Object
from hyperjob_sandbox.processes.environment import (
    MissingSourceError,
    Sources,
    field_value,
    resource_value,
)
from hyperjob_sandbox.processes.expansion import expand

SHARED_FOLDER: Final = "shared"
CLAIMS: Final = "claims"


class UnsupportedVolumeError(Exception):
    """A volume of a type that a process cannot have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """A folder or file of this machine, mounted at `target` in a container."""

    source: Path
    target: str
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Folders:
    """The folders of a pod and of volumes: of this pod, of its cluster, and of all clusters."""

    pod: Path
    temporary: Path
    """The pod's TMPDIR; its path is short, since the path of a socket has 107 bytes at most."""
    cluster: Path
    shared: Path


def prepare(
    pod: Object, sources: Sources, claims: Mapping[str, Object], folders: Folders
) -> dict[str, Path]:
    """Create the folders of all volumes; return them by name.

    Raise MissingSourceError while an object that they refer to does not exist, and
    UnsupportedVolumeError for an unsupported type.
    """
    found = {}
    for volume in pod["spec"].get("volumes") or ():
        try:
            found[volume["name"]] = _folder(pod, volume, sources, claims, folders)
        except MissingSourceError as error:
            raise MissingSourceError(f'volume "{volume["name"]}" : {error}') from None
    return found


def mounts(
    container: Object, volumes: Mapping[str, Path], variables: Mapping[str, str]
) -> list[Mount]:
    """Return the mounts of a container, parents before their subfolders."""
    found = []
    for item in container.get("volumeMounts") or ():
        folder = volumes.get(item["name"])
        if folder is None:
            continue  # the token of the ServiceAccount: a process gets no credential
        below = item.get("subPath") or _expanded(item.get("subPathExpr"), variables)
        source = folder / below if below else folder
        if below and not source.resolve().is_relative_to(folder.resolve()):
            raise UnsupportedVolumeError(f"subPath {below!r} leaves its volume")
        if below and not source.exists():
            source.mkdir(parents=True)
        target = "/" + item["mountPath"].strip("/")
        found.append(Mount(source=source, target=target, read_only=bool(item.get("readOnly"))))
    return sorted(found, key=lambda mount: mount.target)


def remove(folders: Folders) -> None:
    """Remove the folders of a pod."""
    for folder in (folders.pod, folders.temporary):
        shutil.rmtree(folder, ignore_errors=True)


def _expanded(text: str | None, variables: Mapping[str, str]) -> str:
    return expand(text, variables) if text else ""


def contents(
    pod: Object, volume: Object, sources: Sources, claims: Mapping[str, Object]
) -> Mapping[str, bytes] | None:
    """Return the files of a volume that is made of objects, None for another volume.

    Raises MissingSourceError for a missing object, a missing claim too.
    """
    match volume:
        case {"configMap": source}:
            data = sources.config_map(source["name"], optional=bool(source.get("optional")))
            return _chosen(data or {}, source)
        case {"secret": source}:
            data = sources.secret(source["secretName"], optional=bool(source.get("optional")))
            return _chosen(data or {}, source)
        case {"downwardAPI": source}:
            return _downward(pod, source)
        case {"projected": source}:
            files: dict[str, bytes] = {}
            for part in source.get("sources") or ():
                files |= _projected(pod, part, sources)
            return files
        case {"persistentVolumeClaim": {"claimName": claim}} if claim not in claims:
            raise MissingSourceError(f'persistentvolumeclaim "{claim}" not found')
    return None


def _folder(
    pod: Object, volume: Object, sources: Sources, claims: Mapping[str, Object], folders: Folders
) -> Path:
    own = folders.pod / "volumes" / str(volume["name"])
    files = contents(pod, volume, sources, claims)
    if files is not None:
        _write(own, files)
        return own
    namespace = str(pod["metadata"]["namespace"])
    match volume:
        case {"persistentVolumeClaim": {"claimName": claim}}:
            own = folders.cluster / CLAIMS / namespace / claim
        case {"nfs": {"server": server, "path": path}}:
            own = folders.shared / namespace / quote(f"{server}{path}", safe="")
        case {"ephemeral": _} | {"emptyDir": _}:
            pass
        case {"hostPath": {"path": path}}:
            own = folders.cluster / "host" / str(path).strip("/")
        case _:
            kinds = ", ".join(key for key in volume if key != "name") or "none"
            raise UnsupportedVolumeError(
                f'volume "{volume["name"]}" : type {kinds} is not available to a pod that is a'
                " process; use emptyDir, hostPath, nfs, configMap, secret, projected"
                " or persistentVolumeClaim"
            )
    own.mkdir(parents=True, exist_ok=True)
    return own


def _projected(pod: Object, part: Object, sources: Sources) -> dict[str, bytes]:
    match part:
        case {"configMap": source}:
            data = sources.config_map(source["name"], optional=bool(source.get("optional")))
            return _chosen(data or {}, source)
        case {"secret": source}:
            data = sources.secret(source["name"], optional=bool(source.get("optional")))
            return _chosen(data or {}, source)
        case {"downwardAPI": source}:
            return _downward(pod, source)
    return {}  # tokens of ServiceAccounts and trust bundles: a process gets no credential


def _chosen(data: Mapping[str, bytes], source: Object) -> dict[str, bytes]:
    items = source.get("items")
    if not items:
        return dict(data)
    missing = [item["key"] for item in items if item["key"] not in data]
    if missing and not source.get("optional"):
        raise MissingSourceError(f"references non-existent config key: {missing[0]}")
    return {item["path"]: data[item["key"]] for item in items if item["key"] in data}


def _downward(pod: Object, source: Object) -> dict[str, bytes]:
    found = {}
    for item in source.get("items") or ():
        if reference := item.get("fieldRef"):
            found[item["path"]] = field_value(pod, reference["fieldPath"]).encode()
        elif reference := item.get("resourceFieldRef"):
            found[item["path"]] = resource_value(
                pod, pod["spec"]["containers"][0], reference
            ).encode()
    return found


def _write(folder: Path, files: Mapping[str, bytes]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        target = folder / name
        if not target.resolve().is_relative_to(folder.resolve()):
            raise UnsupportedVolumeError(f"path {name!r} leaves its volume")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


def without_mounts(text: str, seen: Sequence[Mount]) -> str:
    """Return a text with folders in place of mount paths, for machines without mount namespaces."""
    for mount in sorted(seen, key=lambda each: -len(each.target)):
        pattern = rf"(?<![\w./-]){re.escape(mount.target)}(?![\w.-])"
        text = re.sub(pattern, str(mount.source).replace("\\", "\\\\"), text)
    return text
