"""The schema of one version of a custom resource, as the handlers use it."""

from collections.abc import Sequence
from dataclasses import dataclass

from hyperjob.api.field import FieldError
from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.schema.scale import Scale
from hyperjob_sandbox.apiserver.schema.structural import StructuralSchema
from hyperjob_sandbox.apiserver.schema.typeinfo import TypeInfo


@dataclass(frozen=True, slots=True, eq=False)
class CustomSchema:
    """A version's published document and the rules compiled from it."""

    document: Object
    structural: StructuralSchema
    scale: Scale | None
    types: TypeInfo

    @classmethod
    def build(cls, version: Object) -> "CustomSchema":
        """Compile the schema of one version of a definition."""
        document = (version.get("schema") or {}).get("openAPIV3Schema") or {"type": "object"}
        scale = (version.get("subresources") or {}).get("scale")
        return cls(
            document,
            StructuralSchema.build(document),
            Scale.from_object(scale) if scale else None,
            TypeInfo.from_schema(document),
        )

    def prepare(self, obj: Object) -> list[str]:
        """Prune and default an object in place; return what is wrong with its fields."""
        unknown = self.structural.prune(obj)
        self.structural.default(obj)
        return [f'unknown field "{path}"' for path in unknown]

    def validate(
        self,
        obj: Object,
        old: Object | None,
        *,
        before: Sequence[FieldError],
        status_only: bool,
        foreign: bool,
    ) -> list[FieldError]:
        """Return `before` and what is wrong with an object.

        `foreign` says that it is of another kind: only the schema's rules are checked then.
        """
        status_only = status_only and old is not None
        errors = list(before)
        if self.scale is not None and not foreign:
            errors += self.scale.problems(obj, status_only=status_only)
        return self.structural.validate(
            obj, old, before=errors, values=not foreign, status_only=status_only
        )
