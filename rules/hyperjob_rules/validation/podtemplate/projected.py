"""The table of projected and downward API volumes."""

from collections.abc import Iterator
from typing import Final

from hyperjob_core.api.field import Path
from hyperjob_core.api.meta import Object
from hyperjob_rules.validation.podtemplate.env import (
    FIELD,
    FILE_FIELDS,
    RESOURCE_OF_FILE,
    field_ref,
)
from hyperjob_rules.validation.podtemplate.objects import exactly_one, items, struct
from hyperjob_rules.validation.podtemplate.rows import row
from hyperjob_rules.validation.podtemplate.table import (
    Pod,
    Type,
    between,
    code,
    file,
    held,
    optional,
    pointer,
    required,
)
from hyperjob_rules.validation.rules import Report

PROJECTIONS: Final = (
    "secret",
    "configMap",
    "downwardAPI",
    "serviceAccountToken",
    "clusterTrustBundle",
    "podCertificate",
)

NO_REFERENCE: Final = row("V8.DownwardAPIVolumeFile.one-of.required")
REFERENCES_TWICE: Final = row("V8.DownwardAPIVolumeFile.one-of.max")
SOURCES_TWICE: Final = row("V8.VolumeProjection.one-of.max")
SAME_FILE: Final = row("V8.ProjectedVolumeSource.path.unique")
TOO_SHORT: Final = row("V8.ServiceAccountTokenProjection.expirationSeconds.min")
TOO_FAR: Final = row("V8.ServiceAccountTokenProjection.expirationSeconds.max")
BUNDLE: Final = row("V8.ClusterTrustBundleProjection.one-of.required")
BUNDLE_TWICE: Final = row("V8.ClusterTrustBundleProjection.one-of.max")
MODE: Final = between(
    0,
    0o777,
    text="must be a number between 0 and 0777 (octal), both inclusive",
    remedy="write it in octal with a leading 0, such as 0644, or in decimal",
)


def _references(item: Object, _h: object, path: Path, pod: Pod, report: Report) -> None:
    field, resource = item.get("fieldRef"), item.get("resourceFieldRef")
    if field is None and resource is None:
        report.add(NO_REFERENCE, path)
    elif field is None:
        RESOURCE_OF_FILE.walk(resource, item, path.child("resourceFieldRef"), pod, report)
    elif resource is not None:
        report.add(REFERENCES_TWICE, path, "resource")


def _downward(files: list[Object], source: Object, path: Path, pod: Pod, report: Report) -> None:
    # Kubernetes reports the files at the volume, without the index of the file.
    for item in files:
        DOWNWARD_FILE.walk(item, source, path, pod, report)


def _projected(source: Object, _h: object, path: Path, _p: Pod, report: Report) -> None:
    """Check that no two sources of a projected volume write one file, and each has one kind."""
    written: set[str] = set()
    for index, part in enumerate(source.get("sources") or ()):
        given = [kind for kind in PROJECTIONS if part.get(kind) is not None]
        for name, shown in (found for kind in given for found in _files(kind, part[kind])):
            if name in written:
                report.add(SAME_FILE, path, shown)
            written.add(name)
        if len(given) > 1:
            report.add(SOURCES_TWICE, path.child("sources").index(index))


def _files(kind: str, part: Object) -> Iterator[tuple[str, str]]:
    """Yield the paths that one source writes, each with the text of Kubernetes' conflict error."""
    if kind in {"secret", "configMap", "downwardAPI"}:
        for item in part.get("items") or ():
            if name := item.get("path"):
                yield name, name if kind == "downwardAPI" else part.get("name") or ""
    elif part.get("path"):
        yield part["path"], part["path"]


KEY_TO_PATH: Final = Type(
    "KeyToPath",
    "a file of a volume",
    required("key"),
    required("path", file),
    pointer("mode", MODE),
)
DOWNWARD_FILE: Final = Type(
    "DownwardAPIVolumeFile",
    "a file of a downward API volume",
    required("path", file),
    pointer("fieldRef", struct(FIELD, field_ref(FILE_FIELDS))),
    pointer("mode", MODE),
    together=(_references,),
)
DOWNWARD: Final = Type(
    "DownwardAPIVolumeSource",
    "a downward API volume",
    pointer("defaultMode", MODE),
    optional("items", code(_downward)),
)
NAMED: Final = Type(
    "ProjectedKeys",
    "a projected Secret or ConfigMap",
    required("name"),
    optional("items", items(KEY_TO_PATH)),
)
TOKEN: Final = Type(
    "ServiceAccountTokenProjection",
    "a service account token",
    pointer(
        "expirationSeconds",
        held((TOO_SHORT, lambda seconds: seconds < 600), (TOO_FAR, lambda value: value > 2**32)),
    ),
    required("path", file),
)
BUNDLE_SOURCE: Final = Type(
    "ClusterTrustBundleProjection",
    "a trust bundle",
    required("path", file),
    together=(exactly_one("name", "signerName", none=BUNDLE, twice=BUNDLE_TWICE),),
)
PROJECTED: Final = Type(
    "ProjectedVolumeSource",
    "a projected volume",
    pointer("defaultMode", MODE),
    optional(
        "sources",
        items(
            Type(
                "VolumeProjection",
                "a source of a projected volume",
                pointer("secret", struct(NAMED)),
                pointer("configMap", struct(NAMED)),
                pointer("downwardAPI", struct(Type("", "", optional("items", code(_downward))))),
                pointer("serviceAccountToken", struct(TOKEN)),
                pointer("clusterTrustBundle", struct(BUNDLE_SOURCE)),
            )
        ),
    ),
    together=(_projected,),
)
