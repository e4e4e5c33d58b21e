"""The table of security contexts of pods and containers."""

import re
from typing import Final

from hyperjob.api.meta import Object
from webhook.validation.fieldpath import Path
from webhook.validation.podtemplate.paths import descend
from webhook.validation.podtemplate.pod import Pod
from webhook.validation.podtemplate.table import (
    Type,
    Unique,
    between,
    code,
    each,
    enum,
    items,
    optional,
    pointer,
    required,
)
from webhook.validation.report import Report
from webhook.validation.rules import (
    FORBIDDEN,
    INVALID,
    NOT_SUPPORTED,
    REQUIRED,
    TOO_LONG,
    rule,
)

PROFILES: Final = ("Localhost", "RuntimeDefault", "Unconfined")
MAX_ID: Final = 2**31 - 1
MAX_SYSCTL: Final = 253
MAX_PROFILE: Final = 4095
SYSCTL: Final = r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?"

TYPE_MISSING: Final = rule(
    "V8.Profile.type.required",
    REQUIRED,
    "type is required when {field} is set",
    "a seccomp or AppArmor profile has no type",
    "set type, such as RuntimeDefault",
)
TYPE: Final = rule(
    "V8.Profile.type.enum",
    NOT_SUPPORTED,
    "supported values: {values}",
    "a seccomp or AppArmor profile has a type that Kubernetes does not know",
    "use one of the values listed; upper and lower case matter",
)
LOCALHOST_MISSING: Final = rule(
    "V8.Profile.localhostProfile.required",
    REQUIRED,
    "must be set when {kind} type is Localhost",
    "a profile of type Localhost has no name",
    "set localhostProfile",
)
NOT_LOCALHOST: Final = rule(
    "V8.Profile.localhostProfile.forbidden",
    INVALID,
    "can only be set when {kind} type is Localhost",
    "a profile of another type than Localhost has a name",
    "set type: Localhost, or remove localhostProfile",
)
PADDED: Final = rule(
    "V8.AppArmorProfile.localhostProfile.form",
    INVALID,
    "must not be padded with whitespace",
    "the name of an AppArmor profile starts or ends with a blank",
    "remove the blank",
)
PROFILE_LENGTH: Final = rule(
    "V8.AppArmorProfile.localhostProfile.max",
    TOO_LONG,
    f"may not be more than {MAX_PROFILE} bytes",
    "the name of an AppArmor profile is longer than a path may be",
    "shorten it",
)
SYSCTL_NAME: Final = rule(
    "V8.Sysctl.name.form",
    INVALID,
    f"must have at most {MAX_SYSCTL} characters and match regex ^{{regex}}$",
    "the name of a sysctl is malformed",
    "write it as kernel.shm_rmid_forced or net.ipv4.tcp_syncookies",
)
SYSCTL_OF_HOST: Final = rule(
    "V8.Sysctl.name.host",
    INVALID,
    "may not be specified when '{field}' is true",
    "a sysctl changes the node, whose namespace the pod shares",
    "remove it, or the host namespace",
)
SHARED_PROCESSES: Final = rule(
    "V8.PodSpec.shareProcessNamespace.host",
    INVALID,
    "ShareProcessNamespace and HostPID cannot both be enabled",
    "a pod shares processes among its containers and with the node",
    "keep one of the two",
)
UNMASKED: Final = rule(
    "V8.SecurityContext.procMount.host-users",
    INVALID,
    "`hostUsers` must be false to use `Unmasked`",
    "a container sees all of /proc in the user namespace of the node",
    "set hostUsers: false on the pod, or remove procMount",
)
ESCALATION: Final = rule(
    "V8.SecurityContext.allowPrivilegeEscalation.privileged",
    INVALID,
    "cannot set `allowPrivilegeEscalation` to false and `privileged` to true",
    "a privileged container forbids privilege escalation",
    "remove one of the two",
)
ESCALATION_ADMIN: Final = rule(
    "V8.SecurityContext.allowPrivilegeEscalation.admin",
    INVALID,
    "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN",
    "a container with CAP_SYS_ADMIN forbids privilege escalation",
    "remove one of the two",
)
WINDOWS_ON_LINUX: Final = rule(
    "V8.PodSecurityContext.windowsOptions.linux",
    FORBIDDEN,
    "windows options cannot be set for a linux pod",
    "a pod for Linux has options for Windows",
    "remove windowsOptions, or set os.name: windows",
)

_SYSCTL: Final = re.compile(SYSCTL)
_IPC_SYSCTLS: Final = ("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")


def _profile(profile: Object, field: str, kind: str, path: Path, report: Report) -> None:
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
    if local.strip() != local:
        report.add(PADDED, at, local)
    if len(local.encode()) > MAX_PROFILE:
        report.add(PROFILE_LENGTH, at)


def _sysctl(name: str, _o: object, path: Path, _p: Pod, report: Report) -> None:
    if len(name) > MAX_SYSCTL or not _SYSCTL.fullmatch(name):
        report.add(SYSCTL_NAME, path.child("name"), name, regex=SYSCTL)


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
    """Check that a pod shares its processes with one side only."""
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
            Type("Sysctl", "a sysctl", required("name", code(_sysctl))),
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
