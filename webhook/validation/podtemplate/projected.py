"""Volumes that are put together from other objects, and from the pod itself."""

from collections.abc import Iterator
from typing import Final

from hyperjob.api.meta import Object
from webhook.validation.place import Path
from webhook.validation.podtemplate.env import validate_field_ref, validate_resource_ref
from webhook.validation.podtemplate.paths import validate_file
from webhook.validation.podtemplate.sources import (
    MISSING,
    requires,
    validate_items,
    validate_mode,
)
from webhook.validation.report import Report
from webhook.validation.rules import FORBIDDEN, INVALID, REQUIRED, rule

POD_FIELDS: Final = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
)
KINDS: Final = (
    "secret",
    "configMap",
    "downwardAPI",
    "serviceAccountToken",
    "clusterTrustBundle",
    "podCertificate",
)
MIN_SECONDS: Final = 600
MAX_SECONDS: Final = 2**32

NO_REFERENCE = rule(
    "V8",
    REQUIRED,
    "one of fieldRef and resourceFieldRef is required",
    "a file of a downward API volume has no content",
    "add fieldRef or resourceFieldRef",
)
REFERENCES_TWICE = rule(
    "V8",
    INVALID,
    "fieldRef and resourceFieldRef can not be specified simultaneously",
    "a file of a downward API volume has two contents",
    "keep one of them",
)
SOURCES_TWICE = rule(
    "V8",
    FORBIDDEN,
    "may not specify more than 1 volume type per source",
    "one source of a projected volume is two things",
    "make two sources of it",
)
SAME_FILE = rule(
    "V8",
    INVALID,
    "conflicting duplicate paths",
    "two sources of a projected volume write the same file",
    "give one of the files another path",
)
TOO_SHORT = rule(
    "V8",
    INVALID,
    "may not specify a duration less than 10 minutes",
    "a service account token would expire too soon",
    "use 600 seconds or more",
)
TOO_FAR = rule(
    "V8",
    INVALID,
    "may not specify a duration larger than 2^32 seconds",
    "a service account token would hardly expire",
    "use fewer seconds",
)
BUNDLE = rule(
    "V8",
    REQUIRED,
    "either name or signerName must be specified",
    "a trust bundle is not named",
    "set one of the two",
)
BUNDLE_TWICE = rule(
    "V8",
    INVALID,
    "only one of name and signerName may be used",
    "a trust bundle is named twice",
    "keep one of the two",
)


def validate_downward(source: Object, path: Path, report: Report) -> None:
    """Check a volume of files about the pod itself."""
    validate_mode(source, "defaultMode", path, report)
    for item in source.get("items") or ():
        _validate_downward_file(item, path, report)


def _validate_downward_file(item: Object, path: Path, report: Report) -> None:
    # Kubernetes reports these at the volume, without the index of the file.
    if not item.get("path"):
        report.add(MISSING, path.child("path"))
    else:
        validate_file(item["path"], path.child("path"), report)
    field, resource = item.get("fieldRef"), item.get("resourceFieldRef")
    if field is not None:
        validate_field_ref(field, POD_FIELDS, path.child("fieldRef"), report)
        if resource is not None:
            report.add(REFERENCES_TWICE, path, "resource")
    elif resource is not None:
        validate_resource_ref(resource, path.child("resourceFieldRef"), report, in_volume=True)
    else:
        report.add(NO_REFERENCE, path)
    validate_mode(item, "mode", path, report)


def validate_projected(source: Object, path: Path, report: Report) -> None:
    """Check a volume that is put together from several sources."""
    validate_mode(source, "defaultMode", path, report)
    written: set[str] = set()
    for index, part in enumerate(source.get("sources") or ()):
        at = path.child("sources").index(index)
        given = [kind for kind in KINDS if part.get(kind) is not None]
        for kind in given:
            _validate_part(kind, part[kind], at.child(kind), report)
            for file in _files(kind, part[kind]):
                if file in written:
                    report.add(SAME_FILE, path, file)
                written.add(file)
        if len(given) > 1:
            report.add(SOURCES_TWICE, at)


def _validate_part(kind: str, part: Object, path: Path, report: Report) -> None:
    match kind:
        case "secret" | "configMap":
            requires("name")(part, path, report)
            validate_items(part.get("items") or [], path.child("items"), report)
        case "downwardAPI":
            for item in part.get("items") or ():
                _validate_downward_file(item, path, report)
        case "serviceAccountToken":
            _validate_token(part, path, report)
        case "clusterTrustBundle":
            _validate_bundle(part, path, report)


def _validate_token(part: Object, path: Path, report: Report) -> None:
    seconds = part.get("expirationSeconds")
    if seconds is not None and seconds < MIN_SECONDS:
        report.add(TOO_SHORT, path.child("expirationSeconds"), seconds)
    if seconds is not None and seconds > MAX_SECONDS:
        report.add(TOO_FAR, path.child("expirationSeconds"), seconds)
    if not part.get("path"):
        report.add(MISSING, path.child("path"))
    else:
        validate_file(part["path"], path.child("path"), report)


def _validate_bundle(part: Object, path: Path, report: Report) -> None:
    name, signer = part.get("name"), part.get("signerName")
    if name and signer:
        report.add(BUNDLE_TWICE, path, part)
    elif not name and not signer:
        report.add(BUNDLE, path)
    if not part.get("path"):
        report.add(MISSING, path.child("path"))
    else:
        validate_file(part["path"], path.child("path"), report)


def _files(kind: str, part: Object) -> Iterator[str]:
    """Yield the paths that one source writes, as far as they are known."""
    if kind in {"secret", "configMap", "downwardAPI"}:
        yield from (item["path"] for item in part.get("items") or () if item.get("path"))
    elif part.get("path"):
        yield part["path"]
