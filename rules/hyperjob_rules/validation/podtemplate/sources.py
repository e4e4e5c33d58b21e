"""Volumes of a pod: each has a name and one source; the API server takes none for an emptyDir."""

from collections.abc import Mapping
from typing import Final

from hyperjob_core.api import formats
from hyperjob_core.api.field import Path
from hyperjob_core.api.meta import Object
from hyperjob_rules.validation.forms import parse_amount
from hyperjob_rules.validation.podtemplate.objects import items, one_of, struct
from hyperjob_rules.validation.podtemplate.table import (
    Cell,
    Check,
    Maker,
    Pod,
    Type,
    absolute,
    between,
    enum,
    file,
    form,
    held,
    optional,
    pointer,
    required,
    row,
    without_backsteps,
)
from hyperjob_rules.validation.rules import Report
from hyperjob_rules.validation.volumes import validate_claim_spec

MODE: Final = between(
    0,
    0o777,
    text="must be a number between 0 and 0777 (octal), both inclusive",
    remedy="write it in octal with a leading 0, such as 0644, or in decimal",
)


KEY_TO_PATH: Final = Type(
    "KeyToPath",
    "a file of a volume",
    required("key"),
    required("path", file),
    pointer("mode", MODE),
)

SIZE_LIMIT: Final = row("V8.EmptyDirVolumeSource.sizeLimit.quantity")
TEMPLATE: Final = row("V8.EphemeralVolumeSource.volumeClaimTemplate.required")
TEMPLATE_METADATA: Final = row("V8.PersistentVolumeClaimTemplate.metadata")
HOST_PATH_TYPES: Final = (
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
)


def _is_no_size(size: str | int) -> bool:
    try:
        return parse_amount(size).nano < 0
    except ValueError:
        return True


def _claim(source: Object, _h: object, path: Path, _p: Pod, report: Report) -> None:
    template, at = source.get("volumeClaimTemplate"), path.child("volumeClaimTemplate")
    if template is None:
        report.add(TEMPLATE, at)
    else:
        for name, value in (template.get("metadata") or {}).items():
            if value and name not in {"labels", "annotations"}:
                report.add(TEMPLATE_METADATA, at.child("metadata", name))
        validate_claim_spec(template.get("spec") or {}, at.child("spec"), report)


def _host_path_type(cell: Cell) -> Check:
    inner = enum(*HOST_PATH_TYPES)(cell)

    def validate(kind: str, source: Object, path: Path, pod: Pod, report: Report) -> None:
        if source.get("path"):  # without a path Kubernetes reports nothing else
            inner(kind, source, path, pod, report)

    return validate


def _only(name: str, noun: str, *fields: str) -> Maker:
    """Return the rows of a source with only required fields to check."""
    return struct(Type(name, noun, *map(required, fields)))


SOURCES: Final[Mapping[str, Maker]] = {
    "emptyDir": struct(
        Type(
            "EmptyDirVolumeSource",
            "an emptyDir",
            pointer("sizeLimit", held((SIZE_LIMIT, _is_no_size))),
        )
    ),
    "hostPath": struct(
        Type(
            "HostPathVolumeSource",
            "a hostPath",
            required("path", without_backsteps),
            pointer("type", _host_path_type),
        )
    ),
    "secret": struct(
        Type(
            "SecretVolumeSource",
            "a volume of a Secret",
            required("secretName"),
            pointer("defaultMode", MODE),
            optional("items", items(KEY_TO_PATH)),
        )
    ),
    "nfs": struct(
        Type(
            "NFSVolumeSource",
            "an NFS volume",
            required("server"),
            required("path", absolute),
        )
    ),
    "persistentVolumeClaim": _only(
        "PersistentVolumeClaimVolumeSource", "a persistentVolumeClaim volume", "claimName"
    ),
    "configMap": struct(
        Type(
            "ConfigMapVolumeSource",
            "a volume of a ConfigMap",
            required("name"),
            pointer("defaultMode", MODE),
            optional("items", items(KEY_TO_PATH)),
        )
    ),
    "csi": _only("CSIVolumeSource", "a csi volume", "driver"),
    "ephemeral": struct(Type("EphemeralVolumeSource", "an ephemeral volume", across=(_claim,))),
    "image": struct(
        Type(
            "ImageVolumeSource",
            "an image volume",
            required("reference"),
            optional("pullPolicy", enum("Always", "IfNotPresent", "Never")),
        )
    ),
}

VOLUME: Final = Type(
    "Volume",
    "a volume",
    required("name", form(formats.dns1123_label)),
    across=(
        one_of(
            "Volume",
            "a volume",
            SOURCES,
            twice=("may not specify more than 1 volume type", "keep one of them"),
        ),
    ),
)
