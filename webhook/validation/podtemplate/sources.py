"""The sources of volumes: what each kind must say."""

from collections.abc import Callable
from typing import Final

from hyperjob.api.meta import Object
from webhook.validation.amounts import parse
from webhook.validation.claims import validate_claim_spec
from webhook.validation.place import Path
from webhook.validation.podtemplate.paths import (
    ABSOLUTE,
    validate_descending,
    validate_file,
    validate_no_backsteps,
)
from webhook.validation.report import Report
from webhook.validation.rules import FORBIDDEN, INVALID, NOT_SUPPORTED, REQUIRED, rule

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
PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")

MISSING = rule(
    "V8",
    REQUIRED,
    "",
    "the source of a volume is incomplete",
    "add the field named",
)
SIZE_LIMIT = rule(
    "V8",
    FORBIDDEN,
    "SizeLimit field must be a valid resource quantity",
    "the size of an emptyDir is no amount",
    "write it as 500Mi or 10Gi",
)
TYPE = rule(
    "V8",
    NOT_SUPPORTED,
    "supported values: {values}",
    "the source of a volume has a type or policy that Kubernetes does not know",
    "use one of the values listed",
)
MODE = rule(
    "V8",
    INVALID,
    "must be a number between 0 and 0777 (octal), both inclusive",
    "the mode of files is out of range",
    "write it in octal with a leading 0, such as 0644, or in decimal",
)
RANGE = rule(
    "V8",
    INVALID,
    "must be between {low} and 255, inclusive",
    "a partition or unit number is out of range",
    "use a number in that range",
)
ISCSI_NAME = rule(
    "V8",
    INVALID,
    "must be valid format starting with iqn, eui, or naa",
    "the name of an iSCSI target is malformed",
    "use the target's iqn, eui or naa name",
)
FLOCKER = rule(
    "V8",
    REQUIRED,
    "one of datasetName and datasetUUID is required",
    "a flocker volume names no dataset",
    "name it",
)
WWNS = rule(
    "V8",
    REQUIRED,
    "must specify either targetWWNs or wwids, but not both",
    "a fibre channel volume names no target",
    "set one of the two",
)
LUN = rule(
    "V8",
    REQUIRED,
    "lun is required if targetWWNs is specified",
    "a fibre channel volume has targets and no unit number",
    "add lun",
)
TEMPLATE = rule("V8", REQUIRED, "", "an ephemeral volume has no volumeClaimTemplate", "add one")

Check = Callable[[Object, Path, Report], None]


def requires(*names: str) -> Check:
    """Return the check of a source that needs only certain fields to be there."""

    def check_fields(source: Object, path: Path, report: Report) -> None:
        for name in names:
            if not source.get(name):
                report.add(MISSING, path.child(name))

    return check_fields


def validate_mode(source: Object, name: str, path: Path, report: Report) -> None:
    """Check the permissions of files."""
    mode = source.get(name)
    if mode is not None and not 0 <= mode <= 0o777:
        report.add(MODE, path.child(name), mode)


def validate_items(items: list[Object], path: Path, report: Report) -> None:
    """Check which keys of a ConfigMap or Secret become which files."""
    for index, item in enumerate(items):
        at = path.index(index)
        requires("key", "path")(item, at, report)
        if item.get("path"):
            validate_file(item["path"], at.child("path"), report)
        validate_mode(item, "mode", at, report)


def validate_empty_dir(source: Object, path: Path, report: Report) -> None:
    """Check the size of an emptyDir."""
    limit = source.get("sizeLimit")
    if limit is None:
        return
    try:
        valid = parse(limit).nano >= 0
    except ValueError:
        valid = False
    if not valid:
        report.add(SIZE_LIMIT, path.child("sizeLimit"))


def validate_host_path(source: Object, path: Path, report: Report) -> None:
    """Check a directory or file of the host."""
    if not source.get("path"):
        report.add(MISSING, path.child("path"))
        return
    validate_no_backsteps(source["path"], path.child("path"), report)
    kind = source.get("type")
    if kind is not None and kind not in HOST_PATH_TYPES:
        report.unsupported(TYPE, path.child("type"), kind, HOST_PATH_TYPES)


def validate_git_repo(source: Object, path: Path, report: Report) -> None:
    """Check a volume that is cloned from git."""
    requires("repository")(source, path, report)
    if source.get("directory"):
        validate_descending(source["directory"], path.child("directory"), report)


def validate_gce_disk(source: Object, path: Path, report: Report) -> None:
    """Check a disk of Google's cloud."""
    requires("pdName")(source, path, report)
    _validate_partition(source, path, report)


def validate_aws_store(source: Object, path: Path, report: Report) -> None:
    """Check a disk of Amazon's cloud."""
    requires("volumeID")(source, path, report)
    _validate_partition(source, path, report)


def _validate_partition(source: Object, path: Path, report: Report) -> None:
    partition = source.get("partition")
    if partition is not None and not 0 <= partition <= 255:
        report.add(RANGE, path.child("partition"), partition, low=1)


def validate_secret(source: Object, path: Path, report: Report) -> None:
    """Check a volume of files from a Secret."""
    requires("secretName")(source, path, report)
    validate_mode(source, "defaultMode", path, report)
    validate_items(source.get("items") or [], path.child("items"), report)


def validate_config_map(source: Object, path: Path, report: Report) -> None:
    """Check a volume of files from a ConfigMap."""
    requires("name")(source, path, report)
    validate_mode(source, "defaultMode", path, report)
    validate_items(source.get("items") or [], path.child("items"), report)


def validate_nfs(source: Object, path: Path, report: Report) -> None:
    """Check a directory of an NFS server."""
    requires("server", "path")(source, path, report)
    if source.get("path") and not source["path"].startswith("/"):
        report.add(ABSOLUTE, path.child("path"), source["path"])


def validate_iscsi(source: Object, path: Path, report: Report) -> None:
    """Check a unit of an iSCSI target."""
    requires("targetPortal", "iqn")(source, path, report)
    for name in ("iqn", "initiatorName"):
        value = source.get(name)
        if value and not value.startswith(("iqn", "eui", "naa")):
            report.add(ISCSI_NAME, path.child(name), value)
    lun = source.get("lun")
    if lun is not None and not 0 <= lun <= 255:
        report.add(RANGE, path.child("lun"), lun, low=0)
    if source.get("chapAuthDiscovery") or source.get("chapAuthSession"):
        requires("secretRef")(source, path, report)


def validate_flocker(source: Object, path: Path, report: Report) -> None:
    """Check a dataset of Flocker."""
    if not source.get("datasetName") and not source.get("datasetUUID"):
        report.add(FLOCKER, path)


def validate_fc(source: Object, path: Path, report: Report) -> None:
    """Check a unit on a fibre channel."""
    targets, wide_names = source.get("targetWWNs"), source.get("wwids")
    if not targets and not wide_names:
        report.add(WWNS, path.child("targetWWNs"))
    if targets and source.get("lun") is None:
        report.add(LUN, path.child("lun"))


def validate_ephemeral(source: Object, path: Path, report: Report) -> None:
    """Check a volume whose claim is made with the pod."""
    template = source.get("volumeClaimTemplate")
    if template is None:
        report.add(TEMPLATE, path.child("volumeClaimTemplate"))
    else:
        at = path.child("volumeClaimTemplate", "spec")
        validate_claim_spec(template.get("spec") or {}, at, report)


def validate_image(source: Object, path: Path, report: Report) -> None:
    """Check a volume that is the content of an image."""
    requires("reference")(source, path, report)
    policy = source.get("pullPolicy")
    if policy and policy not in PULL_POLICIES:
        report.unsupported(TYPE, path.child("pullPolicy"), policy, PULL_POLICIES)
