"""The table of environment variables and their sources."""

import re
from collections.abc import Sequence
from functools import partial
from typing import Final

from hyperjob_core.api import formats
from hyperjob_core.api.field import Path
from hyperjob_core.api.meta import Object
from hyperjob_rules.validation.forms import check, parse_amount
from hyperjob_rules.validation.podtemplate.objects import struct, struct_of
from hyperjob_rules.validation.podtemplate.table import (
    Check,
    Pod,
    Type,
    always,
    form,
    one_known,
    optional,
    pointer,
    required,
)
from hyperjob_rules.validation.rules import Report

POD_FIELDS: Final = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
FILE_FIELDS: Final = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
)
CONVERTIBLE: Final = frozenset(
    (*POD_FIELDS, *FILE_FIELDS, "spec.restartPolicy", "spec.schedulerName", "status.phase")
)
"""The field paths that the API server converts for a pod."""
RESOURCES: Final = (
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
)
HUGE_PAGES: Final = ("requests.hugepages-", "limits.hugepages-")
SOURCES: Final = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
SIZES: Final = (
    "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei",
)  # fmt: skip


_SUBSCRIPTED: Final = re.compile(r"(?P<path>[^\[]*)\['(?P<key>[^']*)'\]")


def field_ref(known: Sequence[str]) -> Check:
    """Return the check of a fieldRef, whose path must be one of `known`."""
    values = tuple(known)

    def validate(reference: Object, _h: object, path: Path, _p: Pod, report: Report) -> None:
        field = reference.get("fieldPath")
        if not field or field in values:
            return
        match = _SUBSCRIPTED.fullmatch(field)
        if match is None:
            if field in CONVERTIBLE:
                report.unsupported(
                    "V8.ObjectFieldSelector.fieldPath.enum", path.child("fieldPath"), field, values
                )
            else:
                hint = report.hints.did_you_mean(field, values)
                at = path.child("fieldPath")
                report.add(
                    "V8.ObjectFieldSelector.fieldPath.unknown", at, field, field=field, hint=hint
                )
        elif match["path"] == "metadata.annotations":
            check(formats.qualified_name, match["key"].lower(), path, report)
        elif match["path"] == "metadata.labels":
            check(formats.qualified_name, match["key"], path, report)
        else:
            report.add(
                "V8.ObjectFieldSelector.fieldPath.subscript",
                path.child("fieldPath"),
                field,
                field=field,
            )

    return validate


def _resource(
    reference: Object, _h: object, path: Path, _p: Pod, report: Report, *, in_volume: bool = False
) -> None:
    resource = reference.get("resource") or ""
    if in_volume and not reference.get("containerName"):
        report.add("V8.ResourceFieldSelector.containerName.required", path.child("containerName"))
    elif not resource:
        report.add("V8.ResourceFieldSelector.resource.required", path.child("resource"))
    elif resource not in RESOURCES and not resource.startswith(HUGE_PAGES):
        report.unsupported(
            "V8.ResourceFieldSelector.resource.enum", path.child("resource"), resource, RESOURCES
        )
    _divisor(resource, reference.get("divisor"), path.child("divisor"), report)


def _divisor(resource: str, divisor: object, path: Path, report: Report) -> None:
    """Check that a divisor is a unit that Kubernetes has for the resource; 0 is none."""
    if not isinstance(divisor, (str, int)):
        return
    try:
        text = str(parse_amount(divisor))
    except ValueError as error:
        report.add("V8.ResourceFieldSelector.divisor.quantity", path, divisor, message=error)
        return
    name = resource.partition(".")[2]
    if text == "0":
        return
    if name == "cpu":
        if text not in {"1m", "1"}:
            report.add(
                "V8.ResourceFieldSelector.divisor.enum",
                path,
                resource,
                values="1m and 1",
                resource="cpu",
            )
    elif text not in SIZES:
        kinds = {"memory": "memory", "ephemeral-storage": "local ephemeral storage"}
        kind = kinds.get(name, "hugepages")
        report.add(
            "V8.ResourceFieldSelector.divisor.enum",
            path,
            resource,
            values=", ".join(SIZES),
            resource=kind,
        )


def _one_source(variable: Object, _h: object, path: Path, _p: Pod, report: Report) -> None:
    source = variable.get("valueFrom")
    if source is None:
        return
    given = len([name for name, each in source.items() if each is not None and name in SOURCES])
    if not given:
        report.add("V8.EnvVarSource.one-of.required", path.child("valueFrom"))
    elif variable.get("value"):
        report.add("V8.EnvVarSource.value", path.child("valueFrom"))
    elif given > 1:
        report.add("V8.EnvVarSource.one-of.max", path.child("valueFrom"))


def _one_source_of_all(source: Object, _h: object, path: Path, _p: Pod, report: Report) -> None:
    given = sum(source.get(name) is not None for name in ("configMapRef", "secretRef"))
    at = path.parent or path  # Kubernetes reports these without the index of the entry.
    if not given:
        report.add("V8.EnvFromSource.one-of.required", at)
    elif given > 1:
        report.add("V8.EnvVarSource.one-of.max", at)


FIELD: Final = Type(
    "ObjectFieldSelector", "a reference to a field of the pod", required("fieldPath")
)
RESOURCE_OF_FILE: Final = Type(
    "ResourceFieldSelector",
    "a reference to a resource",
    across=(partial(_resource, in_volume=True),),
)
KEY: Final = Type(
    "KeySelector",
    "a reference to a key of a ConfigMap or Secret",
    always("name", form(formats.dns1123_subdomain)),
    required("key", form(formats.config_map_key)),
)
SOURCE: Final = Type(
    "EnvVarSource",
    "a source of a variable",
    pointer("fieldRef", struct(FIELD, field_ref(POD_FIELDS))),
    pointer(
        "resourceFieldRef",
        struct_of("ResourceFieldSelector", "a resource", across=(_resource,)),
    ),
    pointer("configMapKeyRef", struct(KEY)),
    pointer("secretKeyRef", struct(KEY)),
    pointer(
        "fileKeyRef",
        struct_of(
            "FileKeySelector",
            "a reference to a key of a file",
            required(
                "volumeName",
                one_known("V8.FileKeySelector.volumeName.unknown", lambda pod: pod.volumes),
            ),
            required("path"),
            required("key"),
        ),
    ),
)
ENV_VAR: Final = Type(
    "EnvVar",
    "a variable",
    required("name", form(formats.relaxed_env_var_name)),
    optional("valueFrom", struct(SOURCE)),
    across=(_one_source,),
)
REFERENCE: Final = Type(
    "EnvFromReference",
    "a source of all variables",
    required("name", form(formats.dns1123_subdomain)),
)
ENV_FROM_SOURCE: Final = Type(
    "EnvFromSource",
    "an entry of envFrom",
    optional("prefix", form(formats.relaxed_env_var_name)),
    pointer("configMapRef", struct(REFERENCE)),
    pointer("secretRef", struct(REFERENCE)),
    across=(_one_source_of_all,),
)
