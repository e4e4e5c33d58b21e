"""The environment of a container, from `env` and `envFrom`, as a kubelet computes it.

Pure. The functions raise MissingSourceError where Kubernetes reports CreateContainerConfigError.
"""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field

from hyperjob_core.api.meta import Object
from hyperjob_core.api.quantity import NANO, Quantity
from hyperjob_sandbox.processes.expansion import expand


class MissingSourceError(Exception):
    """A ConfigMap, a Secret, a key or a field that the container refers to does not exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """ConfigMaps and Secrets of one namespace by name."""

    config_maps: Mapping[str, Object] = field(default_factory=dict)
    secrets: Mapping[str, Object] = field(default_factory=dict)

    def config_map(self, name: str, *, optional: bool = False) -> dict[str, bytes] | None:
        """Return the data of a ConfigMap, None where it is optional and missing."""
        found = self.config_maps.get(name)
        if found is None:
            return _absent("configmap", name, optional=optional)
        data = {key: str(value).encode() for key, value in (found.get("data") or {}).items()}
        return data | _decoded(found.get("binaryData"))

    def secret(self, name: str, *, optional: bool = False) -> dict[str, bytes] | None:
        """Return the data of a Secret, None where it is optional and missing."""
        found = self.secrets.get(name)
        if found is None:
            return _absent("secret", name, optional=optional)
        return _decoded(found.get("data"))


def environment(pod: Object, container: Object, sources: Sources) -> dict[str, str]:
    """Return the variables of a container; raise MissingSourceError."""
    variables: dict[str, str] = {}
    for source in container.get("envFrom") or ():
        variables |= _all_of(source, sources)
    for item in container.get("env") or ():
        value = _value(pod, container, item, sources)
        if value is not None:
            variables[item["name"]] = expand(value, variables)
    return variables


def field_value(pod: Object, path: str) -> str:
    """Return a field of a pod by its `fieldRef` path; raise MissingSourceError."""
    meta, spec, status = pod["metadata"], pod["spec"], pod.get("status") or {}
    simple: dict[str, object] = {
        "metadata.name": meta["name"],
        "metadata.namespace": meta["namespace"],
        "metadata.uid": meta["uid"],
        "spec.nodeName": spec.get("nodeName", ""),
        "spec.serviceAccountName": spec.get("serviceAccountName", "default"),
        "status.hostIP": status.get("hostIP", ""),
        "status.hostIPs": status.get("hostIP", ""),
        "status.podIP": status.get("podIP", ""),
        "status.podIPs": status.get("podIP", ""),
    }
    if path in simple:
        return str(simple[path])
    for kind in ("labels", "annotations"):
        entries: dict[str, str] = meta.get(kind) or {}
        if path == f"metadata.{kind}":
            return "\n".join(f'{key}="{value}"' for key, value in sorted(entries.items()))
        if path.startswith(f"metadata.{kind}['") and path.endswith("']"):
            return str(entries.get(path[len(f"metadata.{kind}['") : -2], ""))
    raise MissingSourceError(f"unsupported fieldRef: {path}")


def resource_value(pod: Object, container: Object, reference: Object) -> str:
    """Return a `resourceFieldRef` in units of its divisor, rounded up."""
    name = reference.get("containerName")
    if name:
        containers = [*pod["spec"].get("initContainers", ()), *pod["spec"]["containers"]]
        container = next((each for each in containers if each["name"] == name), container)
    kind, _, resource = str(reference["resource"]).partition(".")
    amounts = container.get("resources") or {}
    amount = (amounts.get(kind) or {}).get(resource, "0")
    divisor = Quantity.parse(reference.get("divisor") or "1").nano or NANO
    return str(-(-Quantity.parse(amount).nano // divisor))


def _all_of(source: Object, sources: Sources) -> dict[str, str]:
    prefix = source.get("prefix", "")
    data: dict[str, bytes] | None = None
    if reference := source.get("configMapRef"):
        data = sources.config_map(reference["name"], optional=bool(reference.get("optional")))
    elif reference := source.get("secretRef"):
        data = sources.secret(reference["name"], optional=bool(reference.get("optional")))
    return {f"{prefix}{key}": value.decode(errors="replace") for key, value in (data or {}).items()}


def _value(pod: Object, container: Object, item: Object, sources: Sources) -> str | None:
    source = item.get("valueFrom")
    if not source:
        return str(item.get("value", ""))
    if reference := source.get("fieldRef"):
        return field_value(pod, reference["fieldPath"])
    if reference := source.get("resourceFieldRef"):
        return resource_value(pod, container, reference)
    for kind, read in (
        ("configMapKeyRef", sources.config_map),
        ("secretKeyRef", sources.secret),
    ):
        if reference := source.get(kind):
            optional = bool(reference.get("optional"))
            data = read(reference["name"], optional=optional)
            if data is not None and reference["key"] in data:
                return data[reference["key"]].decode(errors="replace")
            if optional:
                return None
            what = "ConfigMap" if kind == "configMapKeyRef" else "Secret"
            raise MissingSourceError(
                f"couldn't find key {reference['key']} in {what} {reference['name']}"
            )
    return None


def _absent(kind: str, name: str, *, optional: bool) -> dict[str, bytes] | None:
    if optional:
        return None
    raise MissingSourceError(f'{kind} "{name}" not found')


def _decoded(data: Mapping[str, str] | None) -> dict[str, bytes]:
    return {key: base64.b64decode(value) for key, value in (data or {}).items()}
