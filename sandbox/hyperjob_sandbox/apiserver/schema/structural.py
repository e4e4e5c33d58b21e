"""The structural schema of a custom resource: prune, default and validate its objects.

Compiled once for each version of a CRD. Pruning and defaulting change the object they are given;
validation never does. Rules for metadata and the resource's own type belong to the caller.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pydantic_core import ErrorDetails, SchemaValidator, ValidationError

from hyperjob_core.api import field
from hyperjob_core.api.field import ROOT, ErrorType, FieldError
from hyperjob_core.api.meta import Object
from hyperjob_core.api.shapeerrors import compile_schema, explain, is_harmless
from hyperjob_sandbox.apiserver import jsonvalue
from hyperjob_sandbox.apiserver.schema import objectmeta
from hyperjob_sandbox.apiserver.schema.celrules import Rules
from hyperjob_sandbox.apiserver.schema.checks import with_checks
from hyperjob_sandbox.apiserver.schema.schemanode import Node

_BLOCKING: Final = frozenset(
    {
        ErrorType.NOT_SUPPORTED,
        ErrorType.REQUIRED,
        ErrorType.TOO_LONG,
        ErrorType.TOO_MANY,
        ErrorType.TYPE_INVALID,
    }
)
_RULES_SKIPPED: Final = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)


@dataclass(frozen=True, slots=True, eq=False)
class StructuralSchema:
    """A compiled `openAPIV3Schema`."""

    node: Node
    _shape: SchemaValidator
    _rules: Rules | None

    @classmethod
    def build(cls, schema: Object) -> "StructuralSchema":
        """Compile the schema of a resource, whose root it is.

        Raises CelError for a rule and pydantic_core.SchemaError for a pattern that does not
        compile.
        """
        texts = {"apiVersion": {"type": "string"}, "kind": {"type": "string"}}
        properties = {**texts, **(schema.get("properties") or {}), "metadata": objectmeta.SCHEMA}
        node = Node.build({**schema, "type": "object", "properties": properties})
        rules = Rules(node)
        return cls(
            node=node,
            _shape=SchemaValidator(compile_schema(node.raw, special=with_checks)),
            _rules=rules if rules.needed() else None,
        )

    def prepare(self, obj: Object) -> list[str]:
        """Prune and default an object in place; return what is wrong with its fields.

        Raises ApiError 400 for metadata that cannot be read.
        """
        unknown = self.prune(obj)
        self.node.fill(obj)
        return [f'unknown field "{path}"' for path in unknown]

    def prune(self, obj: Object) -> list[str]:
        """Drop unknown fields and meaningless nulls in place; return the unknown fields' paths.

        Raises ApiError 400 for metadata that cannot be read.
        """
        findings = self._findings(obj)
        for finding in findings:
            if objectmeta.is_unreadable(finding):
                raise objectmeta.unreadable(obj, finding)
        return sorted(self.node.prune(obj)) if findings else []

    def validate(
        self,
        obj: Object,
        old: Object | None = None,
        *,
        before: Sequence[FieldError] = (),
        values: bool = True,
        status_only: bool = False,
    ) -> list[FieldError]:
        """Return `before` (errors of type and metadata) and what is wrong with the object.

        Against `old`, what was invalid and did not change is let through. `values=False` skips the
        value validations, as the API server does for an object of another kind; `status_only`
        judges the values of the status alone, as it does where the rest is as it was.
        """
        errors = list(before)
        if values:
            errors += self._values(obj, old, status_only=status_only)
        if self._rules is not None:
            if any(error.type in _BLOCKING for error in errors):
                errors.append(field.invalid(ROOT, None, _RULES_SKIPPED))
            else:
                errors += self._rules.validate(obj, old, ROOT)
        return errors

    def _values(self, obj: Object, old: Object | None, *, status_only: bool) -> list[FieldError]:
        found = [each for each in self._findings(obj) if not _foreign(each)]
        if found and old is not None:
            known = self._findings(old)
            found = [each for each in found if not any(_same(each, other) for other in known)]
        errors: list[FieldError] = []
        for each in found:
            location = each["loc"]
            if not status_only:
                errors += explain(each, self.node.raw)
            elif location[:1] == ("status",):
                errors += explain(each, self.node.raw, location=location[1:])
        return errors

    def _findings(self, obj: Object) -> list[ErrorDetails]:
        try:
            self._shape.validate_python(obj)
        except ValidationError as error:
            return error.errors(include_url=False)
        return []


def _foreign(finding: ErrorDetails) -> bool:
    """Tell whether a finding is about what was pruned, or is judged elsewhere."""
    location = finding["loc"]
    return (
        finding["type"] == "extra_forbidden"
        or location[:1] in (("apiVersion",), ("kind",), ("metadata",))
        or is_harmless(finding)
    )


def _same(finding: ErrorDetails, other: ErrorDetails) -> bool:
    return (finding["type"], finding["loc"]) == (other["type"], other["loc"]) and jsonvalue.equal(
        finding["input"], other["input"]
    )
