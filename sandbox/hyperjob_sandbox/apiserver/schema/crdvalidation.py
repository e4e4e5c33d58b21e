"""Whether a CustomResourceDefinition is sound: names, versions, schemas, columns, subresources.

Pure. Metadata and the name of the definition are the caller's; schemas are judged in
`schemavalidation`.
"""

from collections.abc import Iterator
from typing import Final

from hyperjob.api import field
from hyperjob.api.field import FieldError, Path
from hyperjob.api.formats import dns1035_label, dns1123_subdomain
from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver import jsonvalue
from hyperjob_sandbox.apiserver.printing.jsonpath import JSONPath, JSONPathError
from hyperjob_sandbox.apiserver.schema.schemavalidation import validate_schema

_SPEC: Final = Path("spec")
_COLUMN_TYPES: Final = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS: Final = (
    "byte",
    "date",
    "date-time",
    "double",
    "float",
    "int32",
    "int64",
    "password",
)
_MAX_SELECTABLE_FIELDS: Final = 8


def validate_definition(definition: Object, old: Object | None = None) -> list[FieldError]:
    """Return what is wrong with a definition; against `old`, names and scope must not change."""
    spec: Object = definition.get("spec") or {}
    errors = list(_name(definition))
    errors += _spec(spec)
    if old is not None:
        errors += _immutable(spec, old.get("spec") or {}, established=_established(old))
    return errors


def _name(definition: Object) -> Iterator[FieldError]:
    spec = definition.get("spec") or {}
    name = (definition.get("metadata") or {}).get("name") or ""
    wanted = f"{(spec.get('names') or {}).get('plural', '')}.{spec.get('group', '')}"
    if name != wanted:
        yield field.invalid(Path("metadata.name"), name, 'must be spec.names.plural+"."+spec.group')


def _spec(spec: Object) -> Iterator[FieldError]:
    yield from _group(spec.get("group") or "")
    scope = spec.get("scope") or ""
    if not scope:
        yield field.required(_SPEC.child("scope"))
    elif scope not in ("Cluster", "Namespaced"):
        yield field.not_supported(_SPEC.child("scope"), scope, ("Cluster", "Namespaced"))
    versions = [v for v in spec.get("versions") or () if isinstance(v, dict)]
    at = _SPEC.child("versions")
    for i, version in enumerate(versions):
        if not _schema_of(version):
            yield field.required(at.index(i).child("schema", "openAPIV3Schema"))
    for i, version in enumerate(versions):
        yield from _version(version, at.index(i))
    names = [version.get("name") for version in versions]
    if len(set(names)) != len(names):
        yield field.invalid(at, versions, "must contain unique version names")
    if sum(1 for version in versions if version.get("storage")) != 1:
        detail = "must have exactly one version marked as storage version"
        yield field.invalid(at, versions, detail)
    yield from _names(spec.get("names") or {}, _SPEC.child("names"))
    yield from _hoisted(versions)
    if spec.get("preserveUnknownFields"):
        detail = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
            "spec.versions[*].schema instead"
        )
        yield field.invalid(_SPEC.child("preserveUnknownFields"), True, detail)


def _group(group: str) -> Iterator[FieldError]:
    path = _SPEC.child("group")
    if not group:
        yield field.required(path)
    elif problems := dns1123_subdomain(group):
        yield field.invalid(path, group, ",".join(problems))
    elif "." not in group:
        yield field.invalid(path, group, "should be a domain with at least one dot")


def _schema_of(version: Object) -> Object:
    found = (version.get("schema") or {}).get("openAPIV3Schema")
    return found if isinstance(found, dict) else {}


def _same(versions: list[Object], name: str) -> bool:
    """Tell whether all versions say the same of something: then it is told once, at the top."""
    first = versions[0].get(name) if versions else None
    return bool(first) and all(jsonvalue.equal(v.get(name), first) for v in versions)


def _version(version: Object, path: Path) -> Iterator[FieldError]:
    if problems := dns1035_label(version.get("name") or ""):
        yield field.invalid(path.child("name"), version.get("name") or "", ",".join(problems))
    if version.get("deprecationWarning") is not None and not version.get("deprecated"):
        detail = "can only be set for deprecated versions"
        warning = version["deprecationWarning"]
        yield field.invalid(path.child("deprecationWarning"), warning, detail)


def _hoisted(versions: list[Object]) -> Iterator[FieldError]:
    """Judge schemas, subresources and columns, where the API server names their place."""
    if _same(versions, "schema"):
        yield from _schema(versions[0], _SPEC.child("validation"))
    else:
        for i, version in enumerate(versions):
            yield from _schema(version, _SPEC.child("versions").index(i).child("schema"))
    for name, check in (
        ("subresources", _subresources),
        ("additionalPrinterColumns", _columns),
        ("selectableFields", _selectable_fields),
    ):
        if _same(versions, name):
            yield from check(versions[0], _SPEC.child(name))
            continue
        for i, version in enumerate(versions):
            yield from check(version, _SPEC.child("versions").index(i).child(name))


def _schema(version: Object, path: Path) -> Iterator[FieldError]:
    schema = _schema_of(version)
    if not schema:
        return
    has_status = (version.get("subresources") or {}).get("status") is not None
    yield from validate_schema(schema, path.child("openAPIV3Schema"), has_status=has_status)


def _names(names: Object, path: Path) -> Iterator[FieldError]:
    for name in ("plural", "singular", "kind", "listKind"):
        value = names.get(name) or ""
        if not value:
            yield field.required(path.child(name))
            continue
        mixed = name in ("kind", "listKind")
        if problems := dns1035_label(value.lower() if mixed else value):
            rule = "may have mixed case, but should otherwise match: " if mixed else ""
            yield field.invalid(path.child(name), value, rule + ",".join(problems))
    for name in ("shortNames", "categories"):
        for i, value in enumerate(names.get(name) or ()):
            if problems := dns1035_label(value):
                yield field.invalid(path.child(name).index(i), value, ",".join(problems))
    kind, list_kind = names.get("kind"), names.get("listKind")
    if kind and kind == list_kind:
        detail = "kind and listKind may not be the same"
        yield field.invalid(path.child("listKind"), list_kind, detail)


def _subresources(version: Object, path: Path) -> Iterator[FieldError]:
    scale = (version.get("subresources") or {}).get("scale")
    if scale is None:
        return
    for name, roots in (
        ("specReplicasPath", (".spec.",)),
        ("statusReplicasPath", (".status.",)),
        ("labelSelectorPath", (".spec.", ".status.")),
    ):
        value = scale.get(name) or ""
        at = path.child("scale", name)
        if not value:
            if name != "labelSelectorPath":
                yield field.required(at)
        elif not value.startswith("."):
            yield field.invalid(at, value, "must be a simple json path starting with .")
        elif not value.startswith(roots):
            under = [root.strip(".") for root in roots]
            where = f".{under[0]}" if len(under) == 1 else "either .spec or .status"
            yield field.invalid(at, value, f"should be a json path under {where}")


def _columns(version: Object, path: Path) -> Iterator[FieldError]:
    for i, column in enumerate(version.get("additionalPrinterColumns") or ()):
        at = path.index(i)
        if not column.get("name"):
            yield field.required(at.child("name"))
        kind = column.get("type") or ""
        detail = f"must be one of {','.join(_COLUMN_TYPES)}"
        if not kind:
            yield field.required(at.child("type"), detail)
        elif kind not in _COLUMN_TYPES:
            yield field.invalid(at.child("type"), kind, detail)
        form = column.get("format") or ""
        if form and form not in _COLUMN_FORMATS:
            detail = f"must be one of {','.join(_COLUMN_FORMATS)}"
            yield field.invalid(at.child("format"), form, detail)
        yield from _column_path(column.get("jsonPath") or "", at.child("JSONPath"))


def _column_path(text: str, path: Path) -> Iterator[FieldError]:
    if not text:
        yield field.required(path)
        return
    if not text.startswith("."):
        yield field.invalid(path, text, "must be a simple json path starting with .")
        return
    # kube-apiserver accepts what cannot be parsed and then shows no columns at all.
    try:
        JSONPath.compile(text)
    except JSONPathError as error:
        yield field.invalid(path, text, str(error))


def _selectable_fields(version: Object, path: Path) -> Iterator[FieldError]:
    seen: set[str] = set()
    schema = _schema_of(version)
    for i, selectable in enumerate(version.get("selectableFields") or ()):
        text = selectable.get("jsonPath") or ""
        at = path.index(i).child("jsonPath")
        if not text:
            yield field.required(at)
            continue
        if text.startswith(".metadata."):
            yield field.invalid(at, text, "must not point to fields in metadata")
        kind = _type_at(schema, text)
        if kind is None:
            yield field.invalid(at, text, "is an invalid path: does not refer to a valid field")
        elif kind not in ("string", "boolean", "integer"):
            detail = (
                "must point to a field of type string, boolean or integer. "
                "Enum string fields and strings with formats are allowed."
            )
            yield field.invalid(at, text, detail)
        if text in seen:
            yield field.duplicate(at, text)
        seen.add(text)
    if len(seen) > _MAX_SELECTABLE_FIELDS:
        yield field.too_many(path, len(seen), _MAX_SELECTABLE_FIELDS)


def _type_at(schema: Object, text: str) -> str | None:
    node: Object | None = schema
    for name in text.removeprefix(".").split("."):
        node = ((node or {}).get("properties") or {}).get(name)
    return node.get("type", "") if node is not None else None


def _established(definition: Object) -> bool:
    return any(
        condition.get("type") == "Established" and condition.get("status") == "True"
        for condition in (definition.get("status") or {}).get("conditions") or ()
    )


def _immutable(spec: Object, old: Object, *, established: bool) -> Iterator[FieldError]:
    names, before = spec.get("names") or {}, old.get("names") or {}
    pairs = [
        (_SPEC.child("group"), spec.get("group"), old.get("group")),
        (_SPEC.child("names", "plural"), names.get("plural"), before.get("plural")),
    ]
    if established:
        pairs[:0] = [
            (_SPEC.child("scope"), spec.get("scope"), old.get("scope")),
            (_SPEC.child("names", "kind"), names.get("kind"), before.get("kind")),
        ]
    for path, now, was in pairs:
        if now != was:
            yield field.invalid(path, now, "field is immutable")
