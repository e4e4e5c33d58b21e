"""The table of environment variables and their sources."""

import re
from typing import Final

from hyperjob_core.api import formats
from hyperjob_core.api.field import Path
from hyperjob_core.api.meta import Object
from hyperjob_rules.validation.podtemplate.objects import struct
from hyperjob_rules.validation.podtemplate.table import (
    Pod,
    Type,
    always,
    form,
    optional,
    pointer,
    required,
    row,
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
CONVERTIBLE: Final = frozenset(
    (
        *POD_FIELDS,
        "metadata.annotations",
        "metadata.labels",
        "spec.restartPolicy",
        "spec.schedulerName",
        "status.phase",
    )
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

NO_SOURCE: Final = row("V8.EnvVarSource.one-of.required")
VALUE_AND_SOURCE: Final = row("V8.EnvVarSource.value")
SOURCES_TWICE: Final = row("V8.EnvVarSource.one-of.max")
NO_SOURCE_OF_ALL: Final = row("V8.EnvFromSource.one-of.required")
FIELD_PATH: Final = row("V8.ObjectFieldSelector.fieldPath.enum")
FIELD_UNKNOWN: Final = row("V8.ObjectFieldSelector.fieldPath.unknown")
RESOURCE_MISSING: Final = row("V8.ResourceFieldSelector.resource.required")
RESOURCE: Final = row("V8.ResourceFieldSelector.resource.enum")

_ONE_OF_MANY: Final = re.compile(r"metadata\.(annotations|labels)\['[^']+'\]")


def _field(reference: Object, _h: object, path: Path, _p: Pod, report: Report) -> None:
    field, at = reference.get("fieldPath"), path.child("fieldPath")
    if not field or field in POD_FIELDS or _ONE_OF_MANY.fullmatch(field):
        return
    if field in CONVERTIBLE:
        report.unsupported(FIELD_PATH, at, field, POD_FIELDS)
    else:
        hint = report.hints.did_you_mean(field, POD_FIELDS)
        report.add(FIELD_UNKNOWN, at, field, field=field, hint=hint)


def _resource(reference: Object, _h: object, path: Path, _p: Pod, report: Report) -> None:
    resource = reference.get("resource") or ""
    if not resource:
        report.add(RESOURCE_MISSING, path.child("resource"))
    elif resource not in RESOURCES and not resource.startswith(HUGE_PAGES):
        report.unsupported(RESOURCE, path.child("resource"), resource, RESOURCES)


def _one_source(variable: Object, _h: object, path: Path, _p: Pod, report: Report) -> None:
    source = variable.get("valueFrom")
    if source is None:
        return
    given = sum(source.get(name) is not None for name in SOURCES)
    if not given:
        report.add(NO_SOURCE, path.child("valueFrom"))
    elif variable.get("value"):
        report.add(VALUE_AND_SOURCE, path.child("valueFrom"))
    elif given > 1:
        report.add(SOURCES_TWICE, path.child("valueFrom"))


def _one_source_of_all(source: Object, _h: object, path: Path, _p: Pod, report: Report) -> None:
    given = sum(source.get(name) is not None for name in ("configMapRef", "secretRef"))
    at = path.parent or path  # Kubernetes reports these without the index of the entry.
    if not given:
        report.add(NO_SOURCE_OF_ALL, at)
    elif given > 1:
        report.add(SOURCES_TWICE, at)


KEY: Final = Type(
    "KeySelector",
    "a reference to a key of a ConfigMap or Secret",
    always("name", form(formats.dns1123_subdomain)),
    required("key", form(formats.config_map_key)),
)
SOURCE: Final = Type(
    "EnvVarSource",
    "a source of a variable",
    pointer(
        "fieldRef",
        struct(
            Type(
                "ObjectFieldSelector",
                "a reference to a field of the pod",
                required("fieldPath"),
                across=(_field,),
            )
        ),
    ),
    pointer(
        "resourceFieldRef",
        struct(Type("ResourceFieldSelector", "a reference to a resource", across=(_resource,))),
    ),
    pointer("configMapKeyRef", struct(KEY)),
    pointer("secretKeyRef", struct(KEY)),
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
