"""Volumes of a pod: each has a name and one source; the API server takes none for an emptyDir."""

from collections.abc import Iterator, Mapping
from typing import Final

from hyperjob_core.api import formats
from hyperjob_core.api.field import Path
from hyperjob_core.api.meta import Object
from hyperjob_rules.validation.forms import parse_amount
from hyperjob_rules.validation.podtemplate.env import (
    FIELD,
    FILE_FIELDS,
    RESOURCE_OF_FILE,
    field_ref,
)
from hyperjob_rules.validation.podtemplate.objects import (
    exactly_one,
    items,
    one_of,
    struct,
    struct_of,
)
from hyperjob_rules.validation.podtemplate.table import (
    Cell,
    Check,
    Maker,
    Pod,
    Type,
    absolute,
    between,
    code,
    descending,
    enum,
    file,
    form,
    held,
    optional,
    pointer,
    required,
    without_backsteps,
)
from hyperjob_rules.validation.rules import Report
from hyperjob_rules.validation.volumes import validate_claim_spec

PROJECTIONS: Final = (
    "secret",
    "configMap",
    "downwardAPI",
    "serviceAccountToken",
    "clusterTrustBundle",
    "podCertificate",
)

MODE: Final = between(
    0,
    0o777,
    text="must be a number between 0 and 0777 (octal), both inclusive",
    remedy="write it in octal with a leading 0, such as 0644, or in decimal",
)


def _references(item: Object, _h: object, path: Path, pod: Pod, report: Report) -> None:
    field, resource = item.get("fieldRef"), item.get("resourceFieldRef")
    if field is None and resource is None:
        report.add("V8.DownwardAPIVolumeFile.one-of.required", path)
    elif field is None:
        RESOURCE_OF_FILE.walk(resource, item, path.child("resourceFieldRef"), pod, report)
    elif resource is not None:
        report.add("V8.DownwardAPIVolumeFile.one-of.max", path, "resource")


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
                report.add("V8.ProjectedVolumeSource.path.unique", path, shown)
            written.add(name)
        if len(given) > 1:
            report.add("V8.VolumeProjection.one-of.max", path.child("sources").index(index))


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
    across=(_references,),
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
        held(
            (
                "V8.ServiceAccountTokenProjection.expirationSeconds.min",
                lambda seconds: seconds < 600,
            ),
            ("V8.ServiceAccountTokenProjection.expirationSeconds.max", lambda value: value > 2**32),
        ),
    ),
    required("path", file),
)
BUNDLE_SOURCE: Final = Type(
    "ClusterTrustBundleProjection",
    "a trust bundle",
    required("path", file),
    across=(
        exactly_one(
            "name",
            "signerName",
            none="V8.ClusterTrustBundleProjection.one-of.required",
            twice="V8.ClusterTrustBundleProjection.one-of.max",
        ),
    ),
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
                pointer("downwardAPI", struct_of("", "", optional("items", code(_downward)))),
                pointer("serviceAccountToken", struct(TOKEN)),
                pointer("clusterTrustBundle", struct(BUNDLE_SOURCE)),
            )
        ),
    ),
    across=(_projected,),
)


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
PARTITION: Final = between(0, 255, text="must be between 1 and 255, inclusive")


def _is_no_size(size: str | int) -> bool:
    try:
        return parse_amount(size).nano < 0
    except ValueError:
        return True


TARGET: Final = held(
    ("V8.ISCSIVolumeSource.iqn.form", lambda name: not name.startswith(("iqn", "eui", "naa")))
)


def _iscsi(source: Object, _h: object, path: Path, _p: Pod, report: Report) -> None:
    chap = source.get("chapAuthDiscovery") or source.get("chapAuthSession")
    if chap and not source.get("secretRef"):
        report.add("V8.ISCSIVolumeSource.secretRef.required", path.child("secretRef"))


def _unit(source: Object, _h: object, path: Path, _p: Pod, report: Report) -> None:
    if source.get("targetWWNs") and source.get("lun") is None:
        report.add("V8.FCVolumeSource.lun.required", path.child("lun"))


def _claim(source: Object, _h: object, path: Path, _p: Pod, report: Report) -> None:
    template, at = source.get("volumeClaimTemplate"), path.child("volumeClaimTemplate")
    if template is None:
        report.add("V8.EphemeralVolumeSource.volumeClaimTemplate.required", at)
    else:
        for name, value in (template.get("metadata") or {}).items():
            if value and name not in {"labels", "annotations"}:
                report.add("V8.PersistentVolumeClaimTemplate.metadata", at.child("metadata", name))
        validate_claim_spec(template.get("spec") or {}, at.child("spec"), report)


def _host_path_type(cell: Cell) -> Check:
    inner = enum(*HOST_PATH_TYPES)(cell)

    def validate(kind: str, source: Object, path: Path, pod: Pod, report: Report) -> None:
        if source.get("path"):  # without a path Kubernetes reports nothing else
            inner(kind, source, path, pod, report)

    return validate


def _only(name: str, noun: str, *fields: str) -> Maker:
    """Return the rows of a source with only required fields to check."""
    return struct_of(name, noun, *map(required, fields))


SOURCES: Final[Mapping[str, Maker]] = {
    "emptyDir": struct_of(
        "EmptyDirVolumeSource",
        "an emptyDir",
        pointer("sizeLimit", held(("V8.EmptyDirVolumeSource.sizeLimit.quantity", _is_no_size))),
    ),
    "hostPath": struct_of(
        "HostPathVolumeSource",
        "a hostPath",
        required("path", without_backsteps),
        pointer("type", _host_path_type),
    ),
    "gitRepo": struct_of(
        "GitRepoVolumeSource",
        "a gitRepo volume",
        required("repository"),
        optional("directory", descending),
    ),
    "gcePersistentDisk": struct_of(
        "GCEPersistentDiskVolumeSource",
        "a gcePersistentDisk volume",
        required("pdName"),
        optional("partition", PARTITION),
    ),
    "awsElasticBlockStore": struct_of(
        "AWSElasticBlockStoreVolumeSource",
        "an awsElasticBlockStore volume",
        required("volumeID"),
        optional("partition", PARTITION),
    ),
    "secret": struct_of(
        "SecretVolumeSource",
        "a volume of a Secret",
        required("secretName"),
        pointer("defaultMode", MODE),
        optional("items", items(KEY_TO_PATH)),
    ),
    "nfs": struct_of(
        "NFSVolumeSource",
        "an NFS volume",
        required("server"),
        required("path", absolute),
    ),
    "iscsi": struct_of(
        "ISCSIVolumeSource",
        "an iSCSI volume",
        required("targetPortal"),
        required("iqn", TARGET),
        optional("initiatorName", TARGET),
        optional("lun", between(0, 255)),
        across=(_iscsi,),
    ),
    "glusterfs": _only("GlusterfsVolumeSource", "a glusterfs volume", "endpoints", "path"),
    "flocker": struct_of(
        "FlockerVolumeSource",
        "a flocker volume",
        across=(
            exactly_one(
                "datasetName",
                "datasetUUID",
                none="V8.FlockerVolumeSource.one-of.required",
                twice="V8.FlockerVolumeSource.one-of.max",
                shown="resource",
            ),
        ),
    ),
    "persistentVolumeClaim": _only(
        "PersistentVolumeClaimVolumeSource", "a persistentVolumeClaim volume", "claimName"
    ),
    "rbd": _only("RBDVolumeSource", "an rbd volume", "monitors", "image"),
    "cinder": _only("CinderVolumeSource", "a cinder volume", "volumeID"),
    "cephfs": _only("CephFSVolumeSource", "a cephfs volume", "monitors"),
    "quobyte": struct_of(
        "QuobyteVolumeSource",
        "a quobyte volume",
        required(
            "registry",
            detail="must be a host:port pair or multiple pairs separated by commas",
        ),
        required("volume"),
    ),
    "downwardAPI": struct(DOWNWARD),
    "fc": struct_of(
        "FCVolumeSource",
        "a fibre channel volume",
        pointer("lun", between(0, 255)),
        across=(
            exactly_one(
                "targetWWNs",
                "wwids",
                none="V8.FCVolumeSource.one-of.required",
                twice="V8.FCVolumeSource.one-of.max",
                at="targetWWNs",
            ),
            _unit,
        ),
    ),
    "flexVolume": _only("FlexVolumeSource", "a flexVolume", "driver"),
    "configMap": struct_of(
        "ConfigMapVolumeSource",
        "a volume of a ConfigMap",
        required("name"),
        pointer("defaultMode", MODE),
        optional("items", items(KEY_TO_PATH)),
    ),
    "azureFile": _only("AzureFileVolumeSource", "an azureFile volume", "secretName", "shareName"),
    "vsphereVolume": _only("VsphereVirtualDiskVolumeSource", "a vsphereVolume", "volumePath"),
    "photonPersistentDisk": _only(
        "PhotonPersistentDiskVolumeSource", "a photonPersistentDisk volume", "pdID"
    ),
    "portworxVolume": _only("PortworxVolumeSource", "a portworxVolume", "volumeID"),
    "azureDisk": struct_of(
        "AzureDiskVolumeSource",
        "an azureDisk volume",
        required("diskName"),
        required("diskURI"),
        pointer("cachingMode", enum("None", "ReadOnly", "ReadWrite")),
        pointer("kind", enum("Dedicated", "Managed", "Shared")),
    ),
    "storageos": _only("StorageOSVolumeSource", "a storageos volume", "volumeName"),
    "projected": struct(PROJECTED),
    "scaleIO": _only("ScaleIOVolumeSource", "a scaleIO volume", "gateway", "system", "volumeName"),
    "csi": _only("CSIVolumeSource", "a csi volume", "driver"),
    "ephemeral": struct_of("EphemeralVolumeSource", "an ephemeral volume", across=(_claim,)),
    "image": struct_of(
        "ImageVolumeSource",
        "an image volume",
        required("reference"),
        optional("pullPolicy", enum("Always", "IfNotPresent", "Never")),
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
