"""Pods about which there is nothing to say, recognised in one step.

Most pods are made of few fields with unremarkable values, and one compiled schema tells so in a
fraction of the time that the rules take. It may know less than the rules, never more: whatever is
not plain is judged by them, and they alone have words for what is wrong.
"""

from collections.abc import Set as AbstractSet
from functools import cache
from typing import Final

from pydantic_core import SchemaValidator, core_schema
from pydantic_core.core_schema import CoreSchema

from hyperjob.api.meta import Object
from webhook.validation.podtemplate.resources import MAX_AMOUNT, MAX_DEVICE, are_unremarkable
from webhook.validation.podtemplate.security import MAX_ID


def is_plain(spec: object) -> bool:
    """Tell whether neither the shape of a pod's spec nor any rule gives cause to say something."""
    if not _pod().isinstance_python(spec) or not isinstance(spec, dict):
        return False
    volumes: set[str] = set()
    for volume in spec.get("volumes", ()):
        if len(volume) != 2 or volume["name"] in volumes:
            return False  # no source or two, or two volumes of a name
        volumes.add(volume["name"])
    containers: list[Object] = spec["containers"]
    if len(containers) > 1 and _repeats([one["name"] for one in containers]):
        return False
    for container in containers:
        mounts = container.get("volumeMounts")
        if mounts and not _can_mount(mounts, volumes):
            return False
        ports = container.get("ports")
        if (
            ports
            and len(ports) > 1
            and _repeats([port["name"] for port in ports if "name" in port])
        ):
            return False
        resources = container.get("resources")
        if resources and not are_unremarkable(resources):
            return False
    return True


def _can_mount(mounts: list[Object], volumes: AbstractSet[str]) -> bool:
    places: set[str] = set()
    for mount in mounts:
        if mount["name"] not in volumes or mount["mountPath"] in places:
            return False
        places.add(mount["mountPath"])
    return True


def _repeats(names: list[str]) -> bool:
    return len(set(names)) < len(names)


@cache
def _pod() -> SchemaValidator:
    """Return the schema of a pod's fields, each by itself."""
    return SchemaValidator(
        _fields(
            "containers",
            automountServiceAccountToken=_FLAG,
            containers=_list(_container(), at_least=1),
            dnsPolicy=_one_of("ClusterFirstWithHostNet", "ClusterFirst", "Default"),
            enableServiceLinks=_FLAG,
            hostIPC=_FLAG,
            hostNetwork=_FLAG,
            hostPID=_FLAG,
            imagePullSecrets=_list(_fields("name", name=_SOME)),
            nodeSelector=core_schema.dict_schema(_KEY, _VALUE),
            priorityClassName=_LABEL,
            restartPolicy=_one_of("Always", "OnFailure", "Never"),
            runtimeClassName=_LABEL,
            schedulerName=_SOME,
            serviceAccountName=_LABEL,
            terminationGracePeriodSeconds=_number(0, MAX_ID),
            tolerations=_list(_toleration()),
            volumes=_list(_volume()),
        )
    )


def _container() -> CoreSchema:
    amount = _either(core_schema.str_schema(strict=True, max_length=MAX_AMOUNT), _number(0, 2**63))
    device = core_schema.str_schema(strict=True, max_length=MAX_DEVICE - 1)
    amounts = core_schema.dict_schema(device, amount)
    port = _fields(
        "containerPort",
        containerPort=_number(1, 65535),
        name=_text("[a-z][a-z0-9]*", at_most=15),
        protocol=_one_of("TCP", "UDP", "SCTP"),
    )
    mount = _fields("name", "mountPath", mountPath=_SOME, name=_SOME, readOnly=_FLAG)
    return _fields(
        "name",
        "image",
        args=_list(_TEXT),
        command=_list(_TEXT),
        env=_list(_variable()),
        image=_text("[!-~]+", at_most=1000),
        imagePullPolicy=_one_of("Always", "IfNotPresent", "Never"),
        name=_LABEL,
        ports=_list(port),
        resources=_fields(limits=amounts, requests=amounts),
        securityContext=_security(),
        stdin=_FLAG,
        terminationMessagePath=_TEXT,
        tty=_FLAG,
        volumeMounts=_list(mount),
        workingDir=_TEXT,
    )


def _variable() -> CoreSchema:
    name = _text("[A-Za-z0-9_.-]+", at_most=1000)
    known = ("metadata.name", "metadata.namespace", "spec.nodeName", "status.hostIP")
    field = _fields(
        "fieldPath", apiVersion=_one_of("v1"), fieldPath=_one_of(*known, "status.podIP")
    )
    key = _fields("name", "key", key=_text("[A-Za-z0-9_-][A-Za-z0-9._-]*"), name=_LABEL)
    sources = (_fields("fieldRef", fieldRef=field), _fields("secretKeyRef", secretKeyRef=key))
    source = _either(*sources, _fields("configMapKeyRef", configMapKeyRef=key))
    given = _fields("name", name=name, value=_TEXT)
    return _either(given, _fields("name", "valueFrom", name=name, valueFrom=source))


def _security() -> CoreSchema:
    return _fields(
        capabilities=_fields(add=_list(_SOME), drop=_list(_SOME)),
        privileged=_FLAG,
        readOnlyRootFilesystem=_FLAG,
        runAsGroup=_number(0, MAX_ID),
        runAsNonRoot=_FLAG,
        runAsUser=_number(0, MAX_ID),
    )


def _toleration() -> CoreSchema:
    effect, exists = _one_of("NoSchedule", "PreferNoSchedule", "NoExecute"), _one_of("Exists")
    return _either(
        _fields("operator", effect=effect, key=_KEY, operator=exists),
        _fields("key", effect=effect, key=_KEY, operator=_one_of("Equal"), value=_VALUE),
    )


def _volume() -> CoreSchema:
    """Return the schema of a volume, which may yet have no source, or several."""
    folder = _text("(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+", at_most=1000)
    return _fields(
        "name",
        configMap=_fields("name", name=_SOME),
        emptyDir=_fields(medium=_TEXT),
        hostPath=_fields("path", path=folder, type=_one_of("Directory", "DirectoryOrCreate")),
        name=_LABEL,
        nfs=_fields("server", "path", path=folder, readOnly=_FLAG, server=_SOME),
        persistentVolumeClaim=_fields("claimName", claimName=_SOME, readOnly=_FLAG),
        secret=_fields("secretName", secretName=_SOME),
    )


def _text(pattern: str, *, at_most: int = 63) -> CoreSchema:
    return core_schema.str_schema(strict=True, max_length=at_most, pattern=f"^(?:{pattern})$")


def _number(low: int, high: int) -> CoreSchema:
    return core_schema.int_schema(strict=True, ge=low, le=high)


def _one_of(*known: str) -> CoreSchema:
    return core_schema.literal_schema(list(known))


def _either(*schemas: CoreSchema) -> CoreSchema:
    return core_schema.union_schema(list(schemas), mode="left_to_right")


def _list(item: CoreSchema, *, at_least: int = 0) -> CoreSchema:
    return core_schema.list_schema(item, min_length=at_least, strict=True)


def _fields(*required: str, **schemas: CoreSchema) -> CoreSchema:
    fields = {
        name: core_schema.typed_dict_field(schema, required=name in required)
        for name, schema in schemas.items()
    }
    return core_schema.typed_dict_schema(fields, extra_behavior="forbid", strict=True)


_ENDS: Final = "[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
_FLAG: Final = core_schema.bool_schema(strict=True)
_TEXT: Final = core_schema.str_schema(strict=True)
_SOME: Final = core_schema.str_schema(strict=True, min_length=1)
_LABEL: Final = _text("[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_VALUE: Final = _text(f"({_ENDS})?")
_KEY: Final = _text(rf"([a-z0-9]+([-.][a-z0-9]+)*/)?{_ENDS}")
"""A whole key with a prefix is as short here as a name without one may be."""
