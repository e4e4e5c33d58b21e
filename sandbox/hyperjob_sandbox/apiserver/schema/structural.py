"""The structural schema of a custom resource: prune, default and validate its objects.

Compiled once for each version of a CRD. Pruning and defaulting change the object they are given;
validation never does. Rules for metadata and the resource's own type belong to the caller.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hyperjob.api import field
from hyperjob.api.field import ErrorType, FieldError, Path
from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.schema import objectmeta, pruning, validation
from hyperjob_sandbox.apiserver.schema.celrules import Past, Rules
from hyperjob_sandbox.apiserver.schema.correlation import Correlation
from hyperjob_sandbox.apiserver.schema.defaulting import Default, compile_default
from hyperjob_sandbox.apiserver.schema.embedded import Embedded, compile_embedded
from hyperjob_sandbox.apiserver.schema.fastcheck import Check, compile_check
from hyperjob_sandbox.apiserver.schema.listtypes import Uniqueness, compile_uniqueness
from hyperjob_sandbox.apiserver.schema.schemanode import Node
from hyperjob_sandbox.apiserver.verbs.scale import ScaleSpec

_ROOT: Final = Path()
_STATUS: Final = Path("status")
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
    _known: pruning.Known
    _default: Default | None
    _check: Check | None
    _check_status: Check | None
    _embedded: Embedded | None
    _uniqueness: Uniqueness | None
    _rules: Rules | None

    @classmethod
    def build(cls, schema: Object) -> "StructuralSchema":
        """Compile the schema of a resource, whose root it is."""
        node = Node.build(schema, root=True)
        status = (schema.get("properties") or {}).get("status")
        rules = Rules(node, schema)
        return cls(
            node=node,
            _known=pruning.compile_known(node),
            _default=compile_default(node),
            _check=compile_check(schema),
            _check_status=compile_check(status) if isinstance(status, dict) else None,
            _embedded=compile_embedded(node),
            _uniqueness=compile_uniqueness(node),
            _rules=rules if rules.needed() else None,
        )

    def prune(self, obj: Object) -> list[str]:
        """Drop unknown fields and meaningless nulls in place; return the unknown fields' paths.

        Raises ApiError 400 for metadata that cannot be read.
        """
        unknown = objectmeta.coerce(obj)
        return unknown if self._known(obj) else unknown + pruning.prune(obj, self.node)

    def default(self, obj: Object) -> None:
        """Fill in defaults in place."""
        if self._default is not None:
            self._default(obj)

    def validate(
        self,
        obj: Object,
        old: Object | None = None,
        *,
        before: Sequence[FieldError] = (),
        scale: ScaleSpec | None = None,
        values: bool = True,
    ) -> list[FieldError]:
        """Return `before` (errors of type and metadata) and what is wrong with the object.

        Against `old`, what was invalid and did not change is let through. `values=False` skips the
        value validations, as the API server does for an object of another kind.
        """
        errors = list(before)
        past = Correlation(obj, old, self.node.raw) if old is not None else None
        sound = self._check is None or self._check(obj)
        if values:
            if not sound:
                errors += validation.explain(obj, self.node.raw, prefix=_ROOT, correlation=past)
            if scale is not None:
                errors += scale.validate_spec(obj) + scale.validate_status(obj)
        if self._embedded is not None:
            errors += self._embedded(obj, _ROOT)
        return self._finish(errors, obj, old, past, unique=sound)

    def validate_status(
        self,
        obj: Object,
        old: Object,
        *,
        before: Sequence[FieldError] = (),
        scale: ScaleSpec | None = None,
    ) -> list[FieldError]:
        """Return `before` and what is wrong with the status of an object: the rest is as it was."""
        errors = list(before)
        past = Correlation(obj, old, self.node.raw)
        node, check = self.node.properties.get("status"), self._check_status
        if "status" in obj and node is not None and check is not None:
            status = obj["status"]
            if not check(status):
                errors += validation.explain(
                    status, node.raw, prefix=_STATUS, correlation=past.key("status")
                )
        if scale is not None:
            errors += scale.validate_status(obj)
        return self._finish(errors, obj, old, past, unique=False)

    def _finish(
        self,
        errors: list[FieldError],
        obj: Object,
        old: Object | None,
        past: Correlation | None,
        *,
        unique: bool,
    ) -> list[FieldError]:
        if self._uniqueness is not None and not unique:
            repeated = list(self._uniqueness(obj, _ROOT))
            if repeated and (old is None or not any(self._uniqueness(old, _ROOT))):
                errors += repeated
        if self._rules is not None:
            if any(error.type in _BLOCKING for error in errors):
                errors.append(field.invalid(_ROOT, None, _RULES_SKIPPED))
            else:
                errors += self._rules.validate(obj, old, Past(past), _ROOT)
        return errors
