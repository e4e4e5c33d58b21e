"""Whether a CustomResourceDefinition can be served: its names, its versions, their schemas.

Pure. Whether a schema is structural in every respect is not judged: a definition that a real API
server refuses for that may be served here.
"""

from collections.abc import Iterator
from typing import Final

from pydantic_core import SchemaError

from hyperjob.api import field
from hyperjob.api.field import FieldError, Path
from hyperjob.api.formats import dns1035_label
from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.cel import CelError
from hyperjob_sandbox.apiserver.printing.jsonpath import JSONPath, JSONPathError
from hyperjob_sandbox.apiserver.schema.structural import StructuralSchema

_SPEC: Final = Path("spec")
_SCOPES: Final = ("Cluster", "Namespaced")


def validate_definition(definition: Object, old: Object | None = None) -> list[FieldError]:
    """Return what is wrong with a definition; against `old`, names and scope must not change."""
    spec: Object = definition.get("spec") or {}
    errors = [*_names(definition, spec), *_versions(spec)]
    if old is not None:
        errors += _immutable(spec, old.get("spec") or {})
    return errors


def _names(definition: Object, spec: Object) -> Iterator[FieldError]:
    names: Object = spec.get("names") or {}
    name = (definition.get("metadata") or {}).get("name") or ""
    if name != f"{names.get('plural', '')}.{spec.get('group', '')}":
        yield field.invalid(Path("metadata.name"), name, 'must be spec.names.plural+"."+spec.group')
    for part in ("plural", "singular", "kind", "listKind"):
        at, value = _SPEC.child("names", part), names.get(part) or ""
        if not value:
            yield field.required(at)
        elif problems := dns1035_label(value.lower()):
            yield field.invalid(at, value, ",".join(problems))
    scope = spec.get("scope") or ""
    if not scope:
        yield field.required(_SPEC.child("scope"))
    elif scope not in _SCOPES:
        yield field.not_supported(_SPEC.child("scope"), scope, _SCOPES)


def _versions(spec: Object) -> Iterator[FieldError]:
    versions = [version for version in spec.get("versions") or () if isinstance(version, dict)]
    at = _SPEC.child("versions")
    for i, version in enumerate(versions):
        yield from _schema(version, at.index(i).child("schema", "openAPIV3Schema"))
        for j, column in enumerate(version.get("additionalPrinterColumns") or ()):
            below = at.index(i).child("additionalPrinterColumns").index(j).child("JSONPath")
            try:
                JSONPath.compile(column.get("jsonPath") or "")
            except JSONPathError as error:
                yield field.invalid(below, column.get("jsonPath") or "", str(error))
    names = [version.get("name") for version in versions]
    if len(set(names)) != len(names):
        yield field.invalid(at, versions, "must contain unique version names")
    if sum(1 for version in versions if version.get("storage")) != 1:
        detail = "must have exactly one version marked as storage version"
        yield field.invalid(at, versions, detail)


def _schema(version: Object, at: Path) -> Iterator[FieldError]:
    schema = (version.get("schema") or {}).get("openAPIV3Schema")
    if not schema:
        yield field.required(at)
        return
    if schema.get("type") != "object":
        yield field.invalid(at.child("type"), schema.get("type", ""), "must be object at the root")
        return
    try:
        StructuralSchema.build(schema)
    except (CelError, SchemaError) as error:
        yield field.invalid(at, field.OMIT, str(error))


def _immutable(spec: Object, old: Object) -> Iterator[FieldError]:
    names, before = spec.get("names") or {}, old.get("names") or {}
    for path, now, was in (
        (_SPEC.child("scope"), spec.get("scope"), old.get("scope")),
        (_SPEC.child("names", "kind"), names.get("kind"), before.get("kind")),
        (_SPEC.child("group"), spec.get("group"), old.get("group")),
        (_SPEC.child("names", "plural"), names.get("plural"), before.get("plural")),
    ):
        if now != was:
            yield field.invalid(path, now, "field is immutable")
