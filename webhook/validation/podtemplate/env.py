"""Environment variables: their names, and where their values come from."""

import re
from typing import Final

from hyperjob.api import formats
from hyperjob.api.meta import Object
from webhook.validation.amounts import parse
from webhook.validation.forms import check
from webhook.validation.place import Path
from webhook.validation.podtemplate.pod import Pod
from webhook.validation.report import Report
from webhook.validation.rules import INVALID, NOT_SUPPORTED, REQUIRED, rule

SOURCES: Final = ("fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef")
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
RESOURCE_FIELDS: Final = (
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
)
HUGE_PAGE_FIELDS: Final = ("requests.hugepages-", "limits.hugepages-")
SIZES: Final = (
    "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei",
)  # fmt: skip

NAME_MISSING = rule("V8", REQUIRED, "", "a variable has no name", "give it a name")
NO_SOURCE = rule(
    "V8",
    INVALID,
    "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or"
    " `fileKeyRef`",
    "a variable's valueFrom says nothing",
    "add a source, or set `value`",
)
VALUE_AND_SOURCE = rule(
    "V8",
    INVALID,
    "may not be specified when `value` is not empty",
    "a variable has both a value and a source for it",
    "keep one of the two",
)
SOURCES_TWICE = rule(
    "V8",
    INVALID,
    "may not have more than one field specified at a time",
    "a variable, or an entry of envFrom, has two sources",
    "keep one of them",
)
KEY_MISSING = rule(
    "V8",
    REQUIRED,
    "",
    "a reference to a ConfigMap, Secret, field or resource is incomplete",
    "add the field named",
)
FIELD_PATH = rule(
    "V8",
    NOT_SUPPORTED,
    "supported values: {values}",
    "a reference names a field of the pod, or a resource, that cannot be read this way",
    "use one of the values listed",
)
FIELD_UNKNOWN = rule(
    "V8",
    INVALID,
    "error converting fieldPath: field label not supported: {field}",
    "a reference names something that is no field of a pod",
    "use a field such as metadata.name, spec.nodeName or status.podIP",
)
SUBSCRIPT = rule(
    "V8",
    INVALID,
    "does not support subscript",
    "a reference has a key in brackets after a field that is no map",
    "use brackets only after metadata.labels and metadata.annotations",
)
DIVISOR = rule(
    "V8",
    INVALID,
    "only divisor's values {values} are supported with the {resource} resource",
    "the divisor of a resource is not one of those that Kubernetes knows",
    "use one of the divisors listed, or leave it out",
)
NO_SOURCE_OF_ALL = rule(
    "V8",
    INVALID,
    "must specify one of: `configMapRef` or `secretRef`",
    "an entry of envFrom says nothing",
    "add a source, or remove the entry",
)

_SUBSCRIPTED: Final = re.compile(r"(?P<path>[^\[]*)\['(?P<key>[^']*)'\]")


def validate_env(container: Object, _: Pod, path: Path, report: Report) -> None:
    """Check the variables of one container."""
    for index, variable in enumerate(container["env"]):
        name = variable.get("name")
        if not name:
            report.add(NAME_MISSING, path.child("env").index(index).child("name"))
        else:
            check(formats.relaxed_env_var_name, name, path, report, "env", index, "name")
        source = variable.get("valueFrom")
        if source is not None:
            at = path.child("env").index(index).child("valueFrom")
            _validate_source(source, variable.get("value"), at, report)


def _validate_source(source: Object, value: str | None, path: Path, report: Report) -> None:
    given = [name for name in source if name in SOURCES and source[name] is not None]
    for name in given:
        reference, at = source[name], path.child(name)
        if name == "fieldRef":
            validate_field_ref(reference, POD_FIELDS, at, report)
        elif name == "resourceFieldRef":
            validate_resource_ref(reference, at, report, in_volume=False)
        elif name == "fileKeyRef":
            for field in ("volumeName", "path", "key"):
                if not reference.get(field):
                    report.add(KEY_MISSING, at.child(field))
        else:
            _validate_key_ref(reference, at, report)
    if not given:
        report.add(NO_SOURCE, path)
    elif value:
        report.add(VALUE_AND_SOURCE, path)
    elif len(given) > 1:
        report.add(SOURCES_TWICE, path)


def validate_env_from(container: Object, _: Pod, path: Path, report: Report) -> None:
    """Check the ConfigMaps and Secrets that a container takes all variables from."""
    path = path.child("envFrom")
    for index, source in enumerate(container["envFrom"]):
        at = path.index(index)
        if source.get("prefix"):
            check(formats.relaxed_env_var_name, source["prefix"], at, report, "prefix")
        given = [name for name in ("configMapRef", "secretRef") if source.get(name) is not None]
        for name in given:
            reference = source[name].get("name")
            if not reference:
                report.add(KEY_MISSING, at.child(name, "name"))
            else:
                check(formats.dns1123_subdomain, reference, at, report, name, "name")
        if not given:
            report.add(NO_SOURCE_OF_ALL, path)
        elif len(given) > 1:
            report.add(SOURCES_TWICE, path)


def _validate_key_ref(reference: Object, path: Path, report: Report) -> None:
    check(formats.dns1123_subdomain, reference.get("name") or "", path, report, "name")
    if not reference.get("key"):
        report.add(KEY_MISSING, path.child("key"))
    else:
        check(formats.config_map_key, reference["key"], path, report, "key")


def validate_field_ref(
    reference: Object, known: tuple[str, ...], path: Path, report: Report
) -> None:
    """Check a reference to a field of the pod itself."""
    field = reference.get("fieldPath")
    if not field:
        report.add(KEY_MISSING, path.child("fieldPath"))
        return
    match = _SUBSCRIPTED.fullmatch(field)
    if match is None:
        if field.split(".")[0] not in {"metadata", "spec", "status"}:
            report.add(FIELD_UNKNOWN, path.child("fieldPath"), field, field=field)
        elif field not in known:
            report.unsupported(FIELD_PATH, path.child("fieldPath"), field, known)
    elif match["path"] == "metadata.annotations":
        check(formats.qualified_name, match["key"].lower(), path, report)
    elif match["path"] == "metadata.labels":
        check(formats.qualified_name, match["key"], path, report)
    else:
        report.add(SUBSCRIPT, path, match["path"])


def validate_resource_ref(
    reference: Object, path: Path, report: Report, *, in_volume: bool
) -> None:
    """Check a reference to an amount of a resource of a container."""
    resource = reference.get("resource") or ""
    if in_volume and not reference.get("containerName"):
        report.add(KEY_MISSING, path.child("containerName"))
    elif not resource:
        report.add(KEY_MISSING, path.child("resource"))
    elif resource not in RESOURCE_FIELDS and not resource.startswith(HUGE_PAGE_FIELDS):
        at = path.child("resource")
        report.unsupported(FIELD_PATH, at, resource, RESOURCE_FIELDS)
    _validate_divisor(resource, reference.get("divisor"), path.child("divisor"), report)


def _validate_divisor(resource: str, divisor: object, path: Path, report: Report) -> None:
    if not isinstance(divisor, (str, int)):
        return
    try:
        text = str(parse(divisor))
    except ValueError as error:
        report.add(AMOUNT, path, divisor, message=error)
        return
    name = resource.partition(".")[2]
    if text == "0":
        return
    if name == "cpu":
        if text not in {"1m", "1"}:
            report.add(DIVISOR, path, resource, values="1m and 1", resource="cpu")
    elif text not in SIZES:
        kind = {"memory": "memory", "ephemeral-storage": "local ephemeral storage"}
        what = kind.get(name, "hugepages")
        report.add(DIVISOR, path, resource, values=", ".join(SIZES), resource=what)


AMOUNT = rule(
    "V8",
    INVALID,
    "{message}",
    "the divisor of a resource is no quantity",
    "use a divisor such as 1, 1m or 1Mi, or leave it out",
)
