"""The rules of ObjectMeta for every kind: names, labels, finalizers, what may not change."""

from collections.abc import Sequence
from functools import lru_cache

from hyperjob_core.api import field
from hyperjob_core.api.field import METADATA, FieldError
from hyperjob_core.api.formats import (
    dns1035_label,
    dns1123_label,
    dns1123_subdomain,
    label_value,
    qualified_name,
)
from hyperjob_core.api.meta import Object
from hyperjob_sandbox.apiserver.state.resources import ResourceInfo

_ANNOTATIONS_LIMIT = 256 * 1024
_IMMUTABLE = (
    *("name", "namespace", "uid", "creationTimestamp"),
    *("deletionTimestamp", "deletionGracePeriodSeconds"),
)
_NAMED = {("", "namespaces"): dns1123_label, ("", "services"): dns1035_label}


def validate_meta(meta: Object, info: ResourceInfo) -> list[FieldError]:
    """Check the metadata of an object that is about to be stored."""
    name, generate = meta.get("name") or "", meta.get("generateName") or ""
    errors: list[FieldError] = []
    # Of a prefix a trailing dash is completed by the random part.
    prefix = generate.rstrip("-") if info.dns_names else generate
    errors += _each("generateName", generate, _name_problems(prefix, info) if generate else ())
    errors += _each("name", name, _name_problems(name, info) if name else ())
    if not name and not generate:
        errors.append(field.required(METADATA.child("name"), "name or generateName is required"))
    errors += _validate_namespace(meta, info)
    for key, value in (meta.get("labels") or {}).items():
        if not _sound_label(key, value):
            errors += _each("labels", key, qualified_name(key))
            errors += _each("labels", value, label_value(value))
    errors += _validate_annotations(meta.get("annotations") or {})
    for i, owner in enumerate(meta.get("ownerReferences") or ()):
        for key in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(key):
                detail = "version must not be empty" if key == "apiVersion" else "must not be empty"
                at = METADATA.child("ownerReferences").index(i).child(key)
                errors.append(field.invalid(at, owner.get(key) or "", detail))
    for i, finalizer in enumerate(meta.get("finalizers") or ()):
        errors += _each(f"finalizers[{i}]", finalizer, qualified_name(finalizer))
    return errors


def validate_meta_update(new: Object, old: Object, info: ResourceInfo) -> list[FieldError]:
    """Check what an update does to the metadata."""
    errors: list[FieldError] = []
    added = [f for f in new.get("finalizers") or [] if f not in (old.get("finalizers") or [])]
    if old.get("deletionTimestamp") and added:
        listed = ", ".join(map(field.go_quote, added))
        detail = (
            "no new finalizers can be added if the object is being deleted, found new"
            f" finalizers []string{{{listed}}}"
        )
        errors.append(field.forbidden(METADATA.child("finalizers"), detail))
    errors += [
        field.invalid(METADATA.child(key), new.get(key), "field is immutable")
        for key in _IMMUTABLE
        if new.get(key) != old.get(key)
    ]
    return errors + validate_meta(new, info)


def _each(name: str, value: str, problems: Sequence[str]) -> list[FieldError]:
    return [field.invalid(METADATA.child(name), value, problem) for problem in problems]


@lru_cache(maxsize=4096)
def _sound_label(key: str, value: str) -> bool:
    """Remember which labels are sound: the same few come again and again."""
    return not qualified_name(key) and not label_value(value)


def _name_problems(name: str, info: ResourceInfo) -> Sequence[str]:
    if not info.dns_names:
        if name in (".", ".."):
            return [f"may not be '{name}'"]
        return [f"may not contain '{char}'" for char in "/%" if char in name]
    return _NAMED.get(info.storage, dns1123_subdomain)(name)


def _validate_namespace(meta: Object, info: ResourceInfo) -> list[FieldError]:
    namespace = meta.get("namespace") or ""
    if not info.namespaced:
        path = METADATA.child("namespace")
        return [field.forbidden(path, "not allowed on this type")] if namespace else []
    if not namespace:
        return [field.required(METADATA.child("namespace"))]
    return _each("namespace", namespace, dns1123_label(namespace))


def _validate_annotations(annotations: Object) -> list[FieldError]:
    errors: list[FieldError] = []
    for key in annotations:
        errors += _each("annotations", key, qualified_name(key.lower()))
    total = sum(len(key.encode()) + len(value.encode()) for key, value in annotations.items())
    if total > _ANNOTATIONS_LIMIT:
        errors.append(field.too_long(METADATA.child("annotations"), "", _ANNOTATIONS_LIMIT))
    return errors
