"""Volumes of a pod: each has a name and exactly one source."""

from collections.abc import Callable
from typing import Final

from hyperjob.api import formats
from hyperjob.api.meta import Object
from webhook.validation.forms import check
from webhook.validation.place import Path
from webhook.validation.podtemplate import sources
from webhook.validation.podtemplate.projected import validate_downward, validate_projected
from webhook.validation.report import Report
from webhook.validation.rules import DUPLICATE, FORBIDDEN, REQUIRED, rule

NAME_MISSING = rule("V8", REQUIRED, "", "a volume has no name", "give it a name")
NAME_TWICE = rule(
    "V8", DUPLICATE, "", "two volumes of a pod have the same name", "rename one of them"
)
NO_SOURCE = rule(
    "V8",
    REQUIRED,
    "must specify a volume type",
    "a volume does not say what it is",
    "add a source, such as emptyDir: {} or persistentVolumeClaim",
)
SOURCES_TWICE = rule(
    "V8",
    FORBIDDEN,
    "may not specify more than 1 volume type",
    "a volume has two sources",
    "keep one of them",
)

Check = Callable[[Object, Path, Report], None]

SOURCES: Final[dict[str, Check]] = {
    "emptyDir": sources.validate_empty_dir,
    "hostPath": sources.validate_host_path,
    "gitRepo": sources.validate_git_repo,
    "gcePersistentDisk": sources.validate_gce_disk,
    "awsElasticBlockStore": sources.validate_aws_store,
    "secret": sources.validate_secret,
    "nfs": sources.validate_nfs,
    "iscsi": sources.validate_iscsi,
    "glusterfs": sources.requires("endpoints", "path"),
    "flocker": sources.validate_flocker,
    "persistentVolumeClaim": sources.requires("claimName"),
    "rbd": sources.requires("monitors", "image"),
    "cinder": sources.requires("volumeID"),
    "cephfs": sources.requires("monitors"),
    "quobyte": sources.requires("registry", "volume"),
    "downwardAPI": validate_downward,
    "fc": sources.validate_fc,
    "flexVolume": sources.requires("driver"),
    "configMap": sources.validate_config_map,
    "azureFile": sources.requires("secretName", "shareName"),
    "vsphereVolume": sources.requires("volumePath"),
    "photonPersistentDisk": sources.requires("pdID"),
    "portworxVolume": sources.requires("volumeID"),
    "azureDisk": sources.requires("diskName", "diskURI"),
    "storageos": sources.requires("volumeName"),
    "projected": validate_projected,
    "scaleIO": sources.requires("gateway", "system", "volumeName"),
    "csi": sources.requires("driver"),
    "ephemeral": sources.validate_ephemeral,
    "image": sources.validate_image,
}


def validate_volumes(spec: Object, path: Path, report: Report) -> None:
    """Check the volumes of a pod."""
    seen: set[str] = set()
    path = path.child("volumes")
    for index, volume in enumerate(spec["volumes"]):
        at = path.index(index)
        name = volume.get("name") or ""
        _validate_source(volume, at, report)
        if not name:
            report.add(NAME_MISSING, at.child("name"))
        elif name in seen:
            report.add(NAME_TWICE, at.child("name"), name)
        else:
            check(formats.dns1123_label, name, at, report, "name")
        seen.add(name)


def _validate_source(volume: Object, path: Path, report: Report) -> None:
    given = [kind for kind in volume if kind in SOURCES and volume[kind] is not None]
    if not given:
        report.add(NO_SOURCE, path)
        return
    if len(given) > 1:
        given = [kind for kind in SOURCES if kind in given]
    SOURCES[given[0]](volume[given[0]], path.child(given[0]), report)
    for kind in given[1:]:
        report.add(SOURCES_TWICE, path.child(kind))
