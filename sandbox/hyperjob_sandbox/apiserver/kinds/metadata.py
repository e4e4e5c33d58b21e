"""The rules of ObjectMeta that hold for every kind: names, labels, finalizers, what may not change.

Pure: errors are returned, never raised, and nothing is filled in.
"""

import re
from collections.abc import Sequence
from functools import lru_cache

from hyperjob.api import field
from hyperjob.api.field import FieldError, Path
from hyperjob.api.formats import (
    dns1035_label,
    dns1123_label,
    dns1123_subdomain,
    label_value,
    qualified_name,
)
from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver.state.resources import ResourceInfo

_ROOT = Path("metadata")
_ANNOTATIONS_LIMIT = 256 * 1024
_NAME_WITH_SUFFIX = 5
_IMMUTABLE = ("name", "namespace", "uid", "creationTimestamp")
_PLAIN_NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_LABEL_NAMED = frozenset({("", "namespaces")})
_SERVICE_NAMED = frozenset({("", "services")})


def validate_meta(meta: Object, info: ResourceInfo) -> list[FieldError]:
    """Check the metadata of an object that is about to be stored."""
    errors: list[FieldError] = []
    name = meta.get("name") or ""
    generate = meta.get("generateName") or ""
    if generate:
        # Only the prefix is checked: a trailing dash is completed by the random part.
        problems = _name_problems(generate.rstrip("-") if info.dns_names else generate, info)
        errors += [field.invalid(_ROOT.child("generateName"), generate, p) for p in problems]
    if not name:
        if not generate:
            errors.append(field.required(_ROOT.child("name"), "name or generateName is required"))
    else:
        errors += [field.invalid(_ROOT.child("name"), name, p) for p in _name_problems(name, info)]
    errors += _validate_namespace(meta, info)
    errors += validate_labels(meta.get("labels") or {}, _ROOT.child("labels"))
    errors += _validate_annotations(meta.get("annotations") or {})
    errors += _validate_owners(meta.get("ownerReferences") or [])
    errors += _validate_finalizers(meta.get("finalizers") or [])
    return errors


def validate_meta_update(new: Object, old: Object, info: ResourceInfo) -> list[FieldError]:
    """Check what an update does to the metadata."""
    errors: list[FieldError] = []
    if old.get("deletionTimestamp"):
        added = [f for f in new.get("finalizers") or [] if f not in (old.get("finalizers") or [])]
        if added:
            listed = ", ".join(field.go_quote(finalizer) for finalizer in added)
            detail = (
                "no new finalizers can be added if the object is being deleted, found new"
                f" finalizers []string{{{listed}}}"
            )
            errors.append(field.forbidden(_ROOT.child("finalizers"), detail))
    errors += [
        field.invalid(_ROOT.child(key), new.get(key), "field is immutable")
        for key in _IMMUTABLE
        if new.get(key) != old.get(key)
    ]
    for key in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        if new.get(key) != old.get(key):
            errors.append(field.invalid(_ROOT.child(key), new.get(key), "field is immutable"))
    return errors + validate_meta(new, info)


def validate_labels(labels: Object, path: Path) -> list[FieldError]:
    """Check label keys and values."""
    errors: list[FieldError] = []
    for key, value in labels.items():
        if not _sound_label(key, value):
            errors += [field.invalid(path, key, p) for p in qualified_name(key)]
            errors += [field.invalid(path, value, p) for p in label_value(value)]
    return errors


@lru_cache(maxsize=4096)
def _sound_label(key: str, value: str) -> bool:
    """Remember which labels are sound: the same few come again and again."""
    return not qualified_name(key) and not label_value(value)


@lru_cache(maxsize=1024)
def _sound_key(key: str) -> bool:
    return not qualified_name(key)


def _name_problems(name: str, info: ResourceInfo) -> Sequence[str]:
    if not info.dns_names:
        if name in (".", ".."):
            return [f"may not be '{name}'"]
        return [f"may not contain '{char}'" for char in "/%" if char in name]
    if _PLAIN_NAME.fullmatch(name):
        return ()  # right under every rule
    where = (info.group, info.plural)
    if where in _LABEL_NAMED:
        return dns1123_label(name)
    if where in _SERVICE_NAMED:
        return dns1035_label(name)
    return dns1123_subdomain(name)


def _validate_namespace(meta: Object, info: ResourceInfo) -> list[FieldError]:
    path = _ROOT.child("namespace")
    namespace = meta.get("namespace") or ""
    if not info.namespaced:
        return [field.forbidden(path, "not allowed on this type")] if namespace else []
    if not namespace:
        return [field.required(path)]
    return [field.invalid(path, namespace, p) for p in dns1123_label(namespace)]


def _validate_annotations(annotations: Object) -> list[FieldError]:
    path = _ROOT.child("annotations")
    errors: list[FieldError] = []
    total = 0
    for key, value in annotations.items():
        if not _sound_key(key.lower()):
            errors += [field.invalid(path, key, p) for p in qualified_name(key.lower())]
        total += len(key.encode()) + len(value.encode())
    if total > _ANNOTATIONS_LIMIT:
        errors.append(field.too_long(path, "", _ANNOTATIONS_LIMIT))
    return errors


def _validate_owners(owners: Sequence[Object]) -> list[FieldError]:
    path = _ROOT.child("ownerReferences")
    errors: list[FieldError] = []
    controllers: list[str] = []
    for position, owner in enumerate(owners):
        at = path.index(position)
        for key in ("apiVersion", "kind", "name", "uid"):
            if not owner.get(key):
                detail = "version must not be empty" if key == "apiVersion" else "must not be empty"
                errors.append(field.invalid(at.child(key), owner.get(key) or "", detail))
        if owner.get("controller"):
            controllers.append(f"{owner.get('kind')}/{owner.get('name')}")
    if len(controllers) > 1:
        errors.append(
            field.invalid(
                path,
                owners,
                'Only one reference can have Controller set to true. Found "true" in references'
                f" for {controllers[0]} and {controllers[1]}",
            )
        )
    return errors


def _validate_finalizers(finalizers: Sequence[str]) -> list[FieldError]:
    path = _ROOT.child("finalizers")
    errors: list[FieldError] = []
    for position, finalizer in enumerate(finalizers):
        at = path.index(position)
        errors += [field.invalid(at, finalizer, p) for p in qualified_name(finalizer)]
    if "orphan" in finalizers and "foregroundDeletion" in finalizers:
        detail = "finalizer orphan and foregroundDeletion cannot be both set"
        errors.append(field.invalid(path, finalizers, detail))
    return errors
