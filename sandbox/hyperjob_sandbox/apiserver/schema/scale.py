"""The scale of a kind: where it keeps its replica counts, and they as a small object of its own."""

from dataclasses import dataclass

from hyperjob_core.api import field
from hyperjob_core.api.field import ROOT, FieldError
from hyperjob_core.api.meta import Object
from hyperjob_sandbox.apiserver.jsonvalue import at, go_format, go_type

_META = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


@dataclass(frozen=True, slots=True)
class Scale:
    """The places of replica counts and selector, as dotted paths."""

    spec: str
    status: str
    selector: str = ""

    @classmethod
    def from_object(cls, raw: Object) -> "Scale":
        """Read `subresources.scale` of a definition's version."""
        return cls(
            raw["specReplicasPath"].lstrip("."),
            raw["statusReplicasPath"].lstrip("."),
            (raw.get("labelSelectorPath") or "").lstrip("."),
        )

    def problems(self, obj: Object, *, status_only: bool) -> list[FieldError]:
        """Return what is wrong with the replica counts: they must be integers."""
        paths = (self.status,) if status_only else (self.spec, self.status)
        return [
            field.invalid(
                ROOT.child(f".{path}"),
                0,
                f".{path} accessor error: {go_format(found)} is of the type {go_type(found)},"
                " expected int64",
            )
            for path in paths
            if (found := at(obj, path)) is not None and type(found) is not int
        ]

    def object(self, obj: Object) -> Object:
        """Build the Scale of an object."""
        meta = obj["metadata"]
        status: Object = {"replicas": at(obj, self.status) or 0}
        selector = at(obj, self.selector) if self.selector else None
        if selector:
            status["selector"] = selector
        return {
            "kind": "Scale",
            "apiVersion": "autoscaling/v1",
            "metadata": {key: meta[key] for key in _META if key in meta},
            "spec": {"replicas": at(obj, self.spec) or 0},
            "status": status,
        }
