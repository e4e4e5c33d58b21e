"""Security contexts of pods and containers."""

import re
from typing import Final

from hyperjob.api.meta import Object
from webhook.validation.place import Path
from webhook.validation.podtemplate.paths import validate_descending
from webhook.validation.podtemplate.pod import Pod
from webhook.validation.report import Report
from webhook.validation.rules import (
    DUPLICATE,
    FORBIDDEN,
    INVALID,
    NOT_SUPPORTED,
    REQUIRED,
    TOO_LONG,
    rule,
)

PROFILES: Final = ("Localhost", "RuntimeDefault", "Unconfined")
PROC_MOUNTS: Final = ("Default", "Unmasked")
CHOICES: Final = {
    "fsGroupChangePolicy": ("Always", "OnRootMismatch"),
    "supplementalGroupsPolicy": ("Merge", "Strict"),
    "seLinuxChangePolicy": ("MountOption", "Recursive"),
}
MAX_ID: Final = 2**31 - 1
MAX_SYSCTL: Final = 253
MAX_PROFILE: Final = 4095
SYSCTL: Final = r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?"

ID = rule(
    "V8",
    INVALID,
    f"must be between 0 and {MAX_ID}, inclusive",
    "a user or group number is out of range",
    "use a number in that range",
)
ENUM = rule(
    "V8",
    NOT_SUPPORTED,
    "supported values: {values}",
    "a security context has a value that Kubernetes does not know",
    "use one of the values listed; upper and lower case matter",
)
TYPE_MISSING = rule(
    "V8",
    REQUIRED,
    "type is required when {field} is set",
    "a profile has no type",
    "add type, such as RuntimeDefault",
)
LOCALHOST_MISSING = rule(
    "V8",
    REQUIRED,
    "must be set when {kind} type is Localhost",
    "a profile is on the node and not named",
    "add localhostProfile",
)
NOT_LOCALHOST = rule(
    "V8",
    INVALID,
    "can only be set when {kind} type is Localhost",
    "a profile is named and of another type",
    "set type: Localhost, or remove localhostProfile",
)
PADDED = rule(
    "V8",
    INVALID,
    "must not be padded with whitespace",
    "the name of an AppArmor profile starts or ends with a blank",
    "remove the blank",
)
PROFILE_LENGTH = rule(
    "V8",
    TOO_LONG,
    f"may not be more than {MAX_PROFILE} bytes",
    "the name of an AppArmor profile is longer than a path may be",
    "shorten it",
)
SYSCTL_MISSING = rule("V8", REQUIRED, "", "a sysctl has no name", "name it")
SYSCTL_NAME = rule(
    "V8",
    INVALID,
    f"must have at most {MAX_SYSCTL} characters and match regex ^{{regex}}$",
    "the name of a sysctl is malformed",
    "write it as kernel.shm_rmid_forced or net.ipv4.tcp_syncookies",
)
SYSCTL_TWICE = rule("V8", DUPLICATE, "", "a sysctl is set twice", "remove one of them")
SYSCTL_OF_HOST = rule(
    "V8",
    INVALID,
    "may not be specified when '{field}' is true",
    "a sysctl would change the host, whose namespace the pod shares",
    "remove it, or the host namespace",
)
SHARED_PROCESSES = rule(
    "V8",
    INVALID,
    "ShareProcessNamespace and HostPID cannot both be enabled",
    "a pod shares processes among its containers and with the host",
    "keep one of the two",
)
UNMASKED = rule(
    "V8",
    INVALID,
    "`hostUsers` must be false to use `Unmasked`",
    "a container wants all of /proc in the host's user namespace",
    "set hostUsers: false on the pod, or remove procMount",
)
ESCALATION = rule(
    "V8",
    INVALID,
    "cannot set `allowPrivilegeEscalation` to false and `privileged` to true",
    "a privileged container shall not gain privileges",
    "remove one of the two",
)
ESCALATION_ADMIN = rule(
    "V8",
    INVALID,
    "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN",
    "a container with all capabilities of an administrator shall not gain privileges",
    "remove one of the two",
)
WINDOWS_ON_LINUX = rule(
    "V8",
    FORBIDDEN,
    "windows options cannot be set for a linux pod",
    "a pod for Linux has options for Windows",
    "remove windowsOptions, or set os.name: windows",
)

_SYSCTL: Final = re.compile(SYSCTL)
_IPC_SYSCTLS: Final = ("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")


def validate_shared_processes(spec: Object, path: Path, report: Report) -> None:
    """Check that a pod shares its processes with one side only."""
    shared = spec["shareProcessNamespace"]
    if shared and spec.get("hostPID"):
        report.add(SHARED_PROCESSES, path.child("shareProcessNamespace"), shared)


def validate_pod_security(spec: Object, path: Path, report: Report) -> None:
    """Check the security context of a pod."""
    context, at = spec["securityContext"], path.child("securityContext")
    for name in ("fsGroup", "runAsUser", "runAsGroup"):
        _validate_id(context.get(name), at.child(name), report)
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        _validate_id(group, at.child("supplementalGroups").index(index), report)
    if context.get("sysctls"):
        _validate_sysctls(context["sysctls"], spec, at.child("sysctls"), report)
    for name, known in CHOICES.items():
        value = context.get(name)
        if value is not None and value not in known:
            report.unsupported(ENUM, at.child(name), value, known)
    _validate_profiles(context, at, report)
    if (spec.get("os") or {}).get("name") == "linux" and context.get("windowsOptions"):
        report.add(WINDOWS_ON_LINUX, at.child("windowsOptions"))


def validate_container_security(container: Object, pod: Pod, path: Path, report: Report) -> None:
    """Check the security context of a container."""
    context, path = container["securityContext"], path.child("securityContext")
    for name in ("runAsUser", "runAsGroup"):
        _validate_id(context.get(name), path.child(name), report)
    mount = context.get("procMount")
    if mount is not None:
        at = path.child("procMount")
        if mount not in PROC_MOUNTS:
            report.unsupported(ENUM, at, mount, PROC_MOUNTS)
        elif mount == "Unmasked" and pod.host_users:
            report.add(UNMASKED, at, mount)
    if context.get("allowPrivilegeEscalation") is False:
        if context.get("privileged"):
            report.add(ESCALATION, path, context)
        if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
            report.add(ESCALATION_ADMIN, path, context)
    _validate_profiles(context, path, report)


def _validate_id(value: int | None, path: Path, report: Report) -> None:
    if value is not None and not 0 <= value <= MAX_ID:
        report.add(ID, path, value)


def _validate_profiles(context: Object, path: Path, report: Report) -> None:
    seccomp, app_armor = context.get("seccompProfile"), context.get("appArmorProfile")
    if seccomp is not None:
        _validate_profile(seccomp, "seccompProfile", "seccomp", path, report)
        local = seccomp.get("localhostProfile")
        if local and seccomp.get("type") == "Localhost":
            at = path.child("seccompProfile", "localhostProfile")
            validate_descending(local, at, report)
    if app_armor is not None:
        _validate_profile(app_armor, "appArmorProfile", "AppArmor", path, report)
        local = app_armor.get("localhostProfile") or ""
        at = path.child("appArmorProfile", "localhostProfile")
        if local.strip() != local:
            report.add(PADDED, at, local)
        if len(local.encode()) > MAX_PROFILE:
            report.add(PROFILE_LENGTH, at)


def _validate_profile(profile: Object, field: str, kind: str, path: Path, report: Report) -> None:
    at = path.child(field)
    given, local = profile.get("type") or "", profile.get("localhostProfile")
    if not given:
        report.add(TYPE_MISSING, at.child("type"), field=field)
    elif given not in PROFILES:
        report.unsupported(ENUM, at.child("type"), given, PROFILES)
    if given == "Localhost":
        if not local:
            report.add(LOCALHOST_MISSING, at.child("localhostProfile"), kind=kind)
    elif local is not None:
        report.add(NOT_LOCALHOST, at.child("localhostProfile"), local, kind=kind)


def _validate_sysctls(sysctls: list[Object], spec: Object, path: Path, report: Report) -> None:
    seen: set[str] = set()
    for index, sysctl in enumerate(sysctls):
        at = path.index(index).child("name")
        name = sysctl.get("name") or ""
        if not name:
            report.add(SYSCTL_MISSING, at)
        elif len(name) > MAX_SYSCTL or not _SYSCTL.fullmatch(name):
            report.add(SYSCTL_NAME, at, name, regex=SYSCTL)
        elif name in seen:
            report.add(SYSCTL_TWICE, at, name)
        seen.add(name)
        dotted = name.replace("/", ".")
        if spec.get("hostNetwork") and dotted.startswith("net."):
            report.add(SYSCTL_OF_HOST, at, name, field="hostNetwork")
        if spec.get("hostIPC") and dotted.startswith(_IPC_SYSCTLS):
            report.add(SYSCTL_OF_HOST, at, name, field="hostIPC")
