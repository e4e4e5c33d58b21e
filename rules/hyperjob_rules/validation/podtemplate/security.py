"""The table of security contexts of pods and containers."""

import re
from typing import Final

from hyperjob_core.api.field import Path
from hyperjob_core.api.meta import Object
from hyperjob_rules.validation.podtemplate.objects import Unique, each, items
from hyperjob_rules.validation.podtemplate.rows import row
from hyperjob_rules.validation.podtemplate.table import (
    Pod,
    Type,
    between,
    code,
    descend,
    enum,
    held,
    is_padded,
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

TYPE_MISSING: Final = row("V8.Profile.type.required")
TYPE: Final = row("V8.Profile.type.enum")
LOCALHOST_MISSING: Final = row("V8.Profile.localhostProfile.required")
NOT_LOCALHOST: Final = row("V8.Profile.localhostProfile.forbidden")
PADDED: Final = row("V8.AppArmorProfile.localhostProfile.form")
PROFILE_LENGTH: Final = row("V8.AppArmorProfile.localhostProfile.max")
SYSCTL_NAME: Final = row("V8.Sysctl.name.form")
SYSCTL_OF_HOST: Final = row("V8.Sysctl.name.host")
SHARED_PROCESSES: Final = row("V8.PodSpec.shareProcessNamespace.host")
UNMASKED: Final = row("V8.SecurityContext.procMount.host-users")
ESCALATION: Final = row("V8.SecurityContext.allowPrivilegeEscalation.privileged")
ESCALATION_ADMIN: Final = row("V8.SecurityContext.allowPrivilegeEscalation.admin")
WINDOWS_ON_LINUX: Final = row("V8.PodSecurityContext.windowsOptions.linux")

_SYSCTL: Final = re.compile(SYSCTL)
_IPC_SYSCTLS: Final = ("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")


def _profile(profile: Object, field: str, kind: str, path: Path, report: Report) -> None:
    """Check the type of a security profile, and that Localhost alone has a file."""
    given, local = profile.get("type") or "", profile.get("localhostProfile")
    if not given:
        report.add(TYPE_MISSING, path.child("type"), field=field)
    elif given not in PROFILES:
        report.unsupported(TYPE, path.child("type"), given, PROFILES)
    if given == "Localhost":
        if not local:
            report.add(LOCALHOST_MISSING, path.child("localhostProfile"), kind=kind)
    elif local is not None:
        report.add(NOT_LOCALHOST, path.child("localhostProfile"), local, kind=kind)


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
        report.add(PADDED, at, local)
    if len(local.encode()) > MAX_PROFILE:
        report.add(PROFILE_LENGTH, at)


def _is_no_sysctl(name: str) -> bool:
    return len(name) > MAX_SYSCTL or not _SYSCTL.fullmatch(name)


def _sysctl_of_host(sysctl: Object, _h: object, path: Path, pod: Pod, report: Report) -> None:
    name = sysctl.get("name") or ""
    dotted, at = name.replace("/", "."), path.child("name")
    if pod.host_network and dotted.startswith("net."):
        report.add(SYSCTL_OF_HOST, at, name, field="hostNetwork")
    if pod.host_ipc and dotted.startswith(_IPC_SYSCTLS):
        report.add(SYSCTL_OF_HOST, at, name, field="hostIPC")


def _windows(context: Object, spec: Object, path: Path, _p: Pod, report: Report) -> None:
    if (spec.get("os") or {}).get("name") == "linux" and context.get("windowsOptions"):
        report.add(WINDOWS_ON_LINUX, path.child("windowsOptions"))


def _proc_mount(mount: str, _o: object, path: Path, pod: Pod, report: Report) -> None:
    if mount == "Unmasked" and pod.host_users:
        report.add(UNMASKED, path.child("procMount"), mount)


def _escalation(context: Object, _h: object, path: Path, _p: Pod, report: Report) -> None:
    if context.get("allowPrivilegeEscalation") is not False:
        return
    if context.get("privileged"):
        report.add(ESCALATION, path, context)
    if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
        report.add(ESCALATION_ADMIN, path, context)


def shared_processes(shared: bool, spec: Object, path: Path, _p: Pod, report: Report) -> None:
    """Check that a pod has not both shareProcessNamespace and hostPID."""
    if spec.get("hostPID"):
        report.add(SHARED_PROCESSES, path.child("shareProcessNamespace"), shared)


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
                required("name", held((SYSCTL_NAME, _is_no_sysctl), regex=SYSCTL)),
            ),
            Unique("name"),
            together=(_sysctl_of_host,),
        ),
    ),
    pointer("fsGroupChangePolicy", enum("Always", "OnRootMismatch")),
    pointer("supplementalGroupsPolicy", enum("Merge", "Strict")),
    pointer("seLinuxChangePolicy", enum("MountOption", "Recursive")),
    pointer("seccompProfile", code(_seccomp)),
    pointer("appArmorProfile", code(_app_armor)),
    together=(_windows,),
)
CONTAINER_SECURITY: Final = Type(
    "SecurityContext",
    "a security context of a container",
    optional("runAsUser", ID),
    optional("runAsGroup", ID),
    pointer("procMount", enum("Default", "Unmasked"), code(_proc_mount)),
    pointer("seccompProfile", code(_seccomp)),
    pointer("appArmorProfile", code(_app_armor)),
    together=(_escalation,),
)
