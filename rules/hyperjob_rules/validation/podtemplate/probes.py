"""The tables of probes, lifecycle hooks, volume mounts and security contexts."""

import re
from typing import Final

from hyperjob_core.api import formats
from hyperjob_core.api.field import Path
from hyperjob_core.api.meta import Object
from hyperjob_rules.validation.forms import check
from hyperjob_rules.validation.podtemplate.objects import Unique, each, items, one_of, struct
from hyperjob_rules.validation.podtemplate.table import (
    Pod,
    Type,
    always,
    at_least,
    between,
    code,
    descend,
    descending,
    enum,
    has_backsteps,
    held,
    is_padded,
    one_known,
    optional,
    pointer,
    required,
)
from hyperjob_rules.validation.rules import Report

PROFILES: Final = ("Localhost", "RuntimeDefault", "Unconfined")
MAX_ID: Final = 2**31 - 1
MAX_SYSCTL: Final = 253
MAX_PROFILE: Final = 4095
SYSCTL: Final = r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?"


_SYSCTL: Final = re.compile(SYSCTL)
_IPC_SYSCTLS: Final = ("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")


def _profile(profile: Object, field: str, kind: str, path: Path, report: Report) -> None:
    """Check the type of a security profile, and that Localhost alone has a file."""
    given, local = profile.get("type") or "", profile.get("localhostProfile")
    if not given:
        report.add("V8.Profile.type.required", path.child("type"), field=field)
    elif given not in PROFILES:
        report.unsupported("V8.Profile.type.enum", path.child("type"), given, PROFILES)
    if given == "Localhost":
        if not local:
            report.add(
                "V8.Profile.localhostProfile.required", path.child("localhostProfile"), kind=kind
            )
    elif local is not None:
        report.add(
            "V8.Profile.localhostProfile.forbidden",
            path.child("localhostProfile"),
            local,
            kind=kind,
        )


def _seccomp(profile: Object, _o: object, path: Path, _p: Pod, report: Report) -> None:
    at = path.child("seccompProfile")
    _profile(profile, "seccompProfile", "seccomp", at, report)
    local = profile.get("localhostProfile")
    if local and profile.get("type") == "Localhost":
        descend(local, at.child("localhostProfile"), report)


def _app_armor(profile: Object, _o: object, path: Path, _p: Pod, report: Report) -> None:
    at = path.child("appArmorProfile")
    _profile(profile, "appArmorProfile", "AppArmor", at, report)
    local, at = profile.get("localhostProfile") or "", at.child("localhostProfile")
    if is_padded(local):
        report.add("V8.AppArmorProfile.localhostProfile.form", at, local)
    if len(local.encode()) > MAX_PROFILE:
        report.add("V8.AppArmorProfile.localhostProfile.max", at)


def _is_no_sysctl(name: str) -> bool:
    return len(name) > MAX_SYSCTL or not _SYSCTL.fullmatch(name)


def _sysctl_of_host(sysctl: Object, _h: object, path: Path, pod: Pod, report: Report) -> None:
    name = sysctl.get("name") or ""
    dotted, at = name.replace("/", "."), path.child("name")
    if pod.host_network and dotted.startswith("net."):
        report.add("V8.Sysctl.name.host", at, name, field="hostNetwork")
    if pod.host_ipc and dotted.startswith(_IPC_SYSCTLS):
        report.add("V8.Sysctl.name.host", at, name, field="hostIPC")


def _windows(context: Object, spec: Object, path: Path, _p: Pod, report: Report) -> None:
    if (spec.get("os") or {}).get("name") == "linux" and context.get("windowsOptions"):
        report.add("V8.PodSecurityContext.windowsOptions.linux", path.child("windowsOptions"))


def _proc_mount(mount: str, _o: object, path: Path, pod: Pod, report: Report) -> None:
    if mount == "Unmasked" and pod.host_users:
        report.add("V8.SecurityContext.procMount.host-users", path.child("procMount"), mount)


def _escalation(context: Object, _h: object, path: Path, _p: Pod, report: Report) -> None:
    if context.get("allowPrivilegeEscalation") is not False:
        return
    if context.get("privileged"):
        report.add("V8.SecurityContext.allowPrivilegeEscalation.privileged", path, context)
    if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
        report.add("V8.SecurityContext.allowPrivilegeEscalation.admin", path, context)


def shared_processes(shared: bool, spec: Object, path: Path, _p: Pod, report: Report) -> None:
    """Check that a pod has not both shareProcessNamespace and hostPID."""
    if spec.get("hostPID"):
        report.add(
            "V8.PodSpec.shareProcessNamespace.host", path.child("shareProcessNamespace"), shared
        )


ID: Final = between(0, MAX_ID)
POD_SECURITY: Final = Type(
    "PodSecurityContext",
    "a security context of a pod",
    optional("fsGroup", ID),
    optional("runAsUser", ID),
    optional("runAsGroup", ID),
    optional("supplementalGroups", each(ID)),
    optional(
        "sysctls",
        items(
            Type(
                "Sysctl",
                "a sysctl",
                required("name", held(("V8.Sysctl.name.form", _is_no_sysctl), regex=SYSCTL)),
            ),
            Unique("name"),
            across=(_sysctl_of_host,),
        ),
    ),
    pointer("fsGroupChangePolicy", enum("Always", "OnRootMismatch")),
    pointer("supplementalGroupsPolicy", enum("Merge", "Strict")),
    pointer("seLinuxChangePolicy", enum("MountOption", "Recursive")),
    pointer("seccompProfile", code(_seccomp)),
    pointer("appArmorProfile", code(_app_armor)),
    across=(_windows,),
)
CONTAINER_SECURITY: Final = Type(
    "SecurityContext",
    "a security context of a container",
    optional("runAsUser", ID),
    optional("runAsGroup", ID),
    pointer("procMount", enum("Default", "Unmasked"), code(_proc_mount)),
    pointer("seccompProfile", code(_seccomp)),
    pointer("appArmorProfile", code(_app_armor)),
    across=(_escalation,),
)


_HEADER_NAME: Final = re.compile("[-A-Za-z0-9]+")


def _port(
    value: int | str, _o: object, path: Path, _p: Pod, report: Report, step: str = "port"
) -> None:
    if isinstance(value, str):
        check(formats.port_name, value, path, report, step)
    elif not 1 <= value <= 65535:
        report.add("V8.Handler.port.range", path.child(step), value)


def _headers(headers: list[Object], _o: object, path: Path, _p: Pod, report: Report) -> None:
    for header in headers:
        name = header.get("name") or ""
        if not _HEADER_NAME.fullmatch(name):
            report.add("V8.HTTPHeader.name.form", path.child("httpHeaders"), name)


def _sleep(action: Object, _h: object, path: Path, pod: Pod, report: Report) -> None:
    seconds = action.get("seconds") or 0
    if not 0 <= seconds <= pod.grace:
        report.add("V8.SleepAction.seconds.range", path, seconds, grace=pod.grace)


EXEC: Final = Type("ExecAction", "an exec probe or hook", required("command"))
HTTP: Final = Type(
    "HTTPGetAction",
    "an HTTP probe or hook",
    always("port", code(_port), default=0),
    optional("scheme", enum("HTTP", "HTTPS")),
    optional("httpHeaders", code(_headers)),
)
TCP: Final = Type("TCPSocketAction", "a TCP probe or hook", always("port", code(_port), default=0))
GRPC: Final = Type("GRPCAction", "a gRPC probe", always("port", code(_port), default=0))
SLEEP_ACTION: Final = Type("SleepAction", "a hook that sleeps", across=(_sleep,))

HANDLER: Final = one_of(
    "Handler",
    "a probe or hook",
    {
        "exec": struct(EXEC),
        "httpGet": struct(HTTP),
        "tcpSocket": struct(TCP),
        "grpc": struct(GRPC),
        "sleep": struct(SLEEP_ACTION),
    },
    none=("must specify a handler type", "add exec, httpGet, tcpSocket or grpc"),
    twice=("may not specify more than 1 handler type", "keep one of them"),
)
HOOK: Final = Type("LifecycleHandler", "a hook", across=(HANDLER,))
LIFECYCLE: Final = Type(
    "Lifecycle",
    "a lifecycle",
    pointer("postStart", struct(HOOK)),
    pointer("preStop", struct(HOOK)),
)
NOT_NEGATIVE: Final = at_least(0, text="must be greater than or equal to 0")
PROBE: Final = Type(
    "Probe",
    "a probe",
    optional("initialDelaySeconds", NOT_NEGATIVE),
    optional("timeoutSeconds", NOT_NEGATIVE),
    optional("periodSeconds", NOT_NEGATIVE),
    optional("successThreshold", NOT_NEGATIVE),
    optional("failureThreshold", NOT_NEGATIVE),
    pointer("terminationGracePeriodSeconds", at_least(1, text="must be greater than 0")),
    across=(HANDLER,),
)


ONCE: Final = Type(
    "Probe",
    "a liveness or startup probe",
    optional(
        "successThreshold", held(("V8.Probe.successThreshold.one", lambda number: number != 1))
    ),
)
READINESS: Final = Type(
    "Probe",
    "a readiness probe",
    pointer(
        "terminationGracePeriodSeconds",
        held(("V8.Probe.terminationGracePeriodSeconds.readiness", lambda _: True)),
    ),
)
RUNNING: Final = Type(
    "Container",
    "a container",
    optional("lifecycle", struct(LIFECYCLE)),
    pointer("livenessProbe", struct(PROBE), struct(ONCE)),
    pointer("readinessProbe", struct(PROBE), struct(READINESS)),
    pointer("startupProbe", struct(PROBE), struct(ONCE)),
)
"""The fields of containers and sidecars, which init containers must not have."""


_READ_ONLY: Final = ("Enabled", "IfPossible")


def _device(name: str, _o: object, path: Path, pod: Pod, report: Report) -> None:
    volume = pod.volumes.get(name)
    if volume is not None and not {"persistentVolumeClaim", "ephemeral"} & volume.keys():
        report.add("V8.VolumeDevice.name.claim", path.child("name"), name)


def mount_rules(mount: Object, container: Object, path: Path, pod: Pod, report: Report) -> None:
    """Compare a mount with its volume, its container, and its other fields."""
    part, expression = mount.get("subPath"), mount.get("subPathExpr")
    if (part or expression) and pod.volumes.get(mount.get("name") or "", {}).get("image"):
        for field in ("subPath", "subPathExpr"):
            if mount.get(field):
                report.add("V8.VolumeMount.subPath.image", path.child(field), mount[field])
    if part and expression:
        report.add("V8.VolumeMount.subPathExpr.exclusive", path.child("subPathExpr"), expression)
    propagation, recursive = mount.get("mountPropagation"), mount.get("recursiveReadOnly")
    privileged = (container.get("securityContext") or {}).get("privileged")
    if propagation == "Bidirectional" and not privileged:
        report.add("V8.VolumeMount.mountPropagation.privileged", path.child("mountPropagation"))
    if recursive in _READ_ONLY:
        at = path.child("recursiveReadOnly")
        if not mount.get("readOnly"):
            report.add("V8.VolumeMount.recursiveReadOnly.read-only", at)
        if propagation not in {None, "None"}:
            report.add("V8.VolumeMount.recursiveReadOnly.propagation", at)


def clashes(mounts: list[Object], container: Object, path: Path, _p: Pod, report: Report) -> None:
    """Check that no volume mount of a container has the name or the path of a volume device."""
    devices = container.get("volumeDevices")
    if devices:
        at = path.child("volumeMounts")
        _clash(
            mounts,
            "mountPath",
            devices,
            "devicePath",
            ("V8.VolumeMount.name.device", "V8.VolumeMount.mountPath.device"),
            at,
            report,
        )
        at = path.child("volumeDevices")
        _clash(
            devices,
            "devicePath",
            mounts,
            "mountPath",
            ("V8.VolumeDevice.name.mount", "V8.VolumeDevice.devicePath.mount"),
            at,
            report,
        )


def _clash(
    listed: list[Object],
    where: str,
    others: list[Object],
    elsewhere: str,
    rules: tuple[str, str],
    path: Path,
    report: Report,
) -> None:
    """Report items of `listed` with a name, or a path at `where`, that one of `others` has."""
    names = {other.get("name") for other in others} - {None, ""}
    paths = {other.get(elsewhere) for other in others} - {None, ""}
    for index, one in enumerate(listed):
        for field, taken, rule_ in (("name", names, rules[0]), (where, paths, rules[1])):
            if one.get(field) in taken:
                report.add(rule_, path.index(index).child(field), one[field])


KNOWN: Final = one_known("V8.VolumeMount.name.unknown", lambda pod: pod.volumes)
VOLUME_MOUNT: Final = Type(
    "VolumeMount",
    "a mount",
    required("name", KNOWN),
    required("mountPath"),
    optional("subPath", descending),
    optional("subPathExpr", descending),
    pointer("mountPropagation", enum("Bidirectional", "HostToContainer", "None")),
    pointer("recursiveReadOnly", enum("Disabled", "Enabled", "IfPossible")),
)
VOLUME_DEVICE: Final = Type(
    "VolumeDevice",
    "a device",
    required("name", KNOWN, code(_device)),
    required("devicePath", held(("V8.VolumeDevice.devicePath.backsteps", has_backsteps))),
)
