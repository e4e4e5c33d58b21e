"""Warnings about pods and vcjobs that Kubernetes and Volcano accept.

Some are those that Kubernetes gives for a Pod, in its words (kube-apiserver 1.36): the API server
of a member gives them to Volcano alone, and a user never sees them. The others are about what is
legal for a vcjob and does not do what its author expects: pods that never complete, policies that
no pod can trigger, pods that Volcano's scheduler does not bind, and demands on nodes that placement
does not look at.
"""

from collections.abc import Iterator, Sequence
from typing import Final

from hyperjob_core.api.field import Path
from hyperjob_core.api.meta import Object
from hyperjob_rules.validation.forms import least_of, try_parse_amount
from hyperjob_rules.validation.policies import ANY
from hyperjob_rules.validation.rules import Report

_LABELS: Final = {
    "beta.kubernetes.io/arch": ("v1.14", "kubernetes.io/arch"),
    "beta.kubernetes.io/os": ("v1.14", "kubernetes.io/os"),
    "beta.kubernetes.io/instance-type": ("v1.17", "node.kubernetes.io/instance-type"),
    "failure-domain.beta.kubernetes.io/region": ("v1.17", "topology.kubernetes.io/region"),
    "failure-domain.beta.kubernetes.io/zone": ("v1.17", "topology.kubernetes.io/zone"),
}
"""The labels of nodes that Kubernetes replaced: since when, and by which."""
_BYTES: Final = ("memory", "ephemeral-storage", "storage")
_SECCOMP: Final = "non-functional in v1.27+", "seccompProfile"
_SYSCTLS: Final = "non-functional in v1.11+", "sysctls"
_ANNOTATIONS: Final = {
    "scheduler.alpha.kubernetes.io/critical-pod": (
        "non-functional in v1.16+",
        "priorityClassName",
    ),
    "security.alpha.kubernetes.io/sysctls": _SYSCTLS,
    "security.alpha.kubernetes.io/unsafe-sysctls": _SYSCTLS,
}
"""The annotations of pods that a field replaced: what became of them, and the field."""
_POD_PROFILE: Final = "seccomp.security.alpha.kubernetes.io/pod"
_PROFILES: Final = {
    "container.seccomp.security.alpha.kubernetes.io/": _SECCOMP,
    "container.apparmor.security.beta.kubernetes.io/": (
        "deprecated since v1.30",
        "appArmorProfile",
    ),
}
"""The annotations for one container, by the text before its name."""
_VOLUMES: Final = {
    "cephfs": ("v1.28", "non-functional in v1.31+"),
    "flocker": ("v1.22", "non-functional in v1.25+"),
    "gitRepo": ("v1.11", "and disabled by default in v1.33+"),
    "glusterfs": ("v1.25", "non-functional in v1.26+"),
    "photonPersistentDisk": ("v1.11", "non-functional in v1.16+"),
    "quobyte": ("v1.22", "non-functional in v1.25+"),
    "rbd": ("v1.28", "non-functional in v1.31+"),
    "scaleIO": ("v1.16", "non-functional in v1.22+"),
    "storageos": ("v1.22", "non-functional in v1.25+"),
}
"""The volumes that Kubernetes gave up: since when, and what became of them."""
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def warn_as_of_pod(template: Object, path: Path, report: Report) -> None:
    """Warn of a pod template as Kubernetes warns of a Pod."""
    spec, at = template.get("spec") or {}, path.child("spec")
    if annotations := (template.get("metadata") or {}).get("annotations"):
        _warn_of_annotations(annotations, spec, path.child("metadata", "annotations"), report)
    for key in spec.get("nodeSelector") or ():
        if key in _LABELS:
            since, label = _LABELS[key]
            report.warn(
                "X21.node-selector", at.child("nodeSelector").key(key), since=since, label=label
            )
    if not spec.keys().isdisjoint(("affinity", "topologySpreadConstraints")):
        _warn_of_places(spec, at, report)
    for index, volume in enumerate(spec.get("volumes") or ()):
        _warn_of_volume(volume, at.child("volumes").index(index), report)
    _warn_of_names(spec, at, report)
    if overhead := spec.get("overhead"):
        _warn_of_fractions({"overhead": overhead}, at, report)
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        report.warn("X21.grace-period", at.child("terminationGracePeriodSeconds"))
    names: dict[str, Path] = {}
    for container, where in _containers(spec, at):
        _warn_of_container(container, where, report)
        own: dict[str, Path] = {}
        for index, port in enumerate(container.get("ports") or ()):
            here, name = where.child("ports").index(index), port.get("name")
            if name in names:
                report.warn("X21.port-name", here, name=name, other=names[name])
            elif name:
                own.setdefault(name, here)
        names |= own  # one name twice in one container is an error


def _containers(spec: Object, path: Path) -> Iterator[tuple[Object, Path]]:
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(kind) or ()):
            yield container, path.child(kind).index(index)


def _warn_of_annotations(annotations: Object, spec: Object, path: Path, report: Report) -> None:
    """Warn of the annotations that fields replaced, unless the field is set beside them."""
    of_pod = spec.get("securityContext") or {}
    known = dict(_ANNOTATIONS)
    if not of_pod.get("seccompProfile"):
        known[_POD_PROFILE] = _SECCOMP
    for container, _ in _containers(spec, path):
        own = container.get("securityContext") or {}
        for before, (state, field) in _PROFILES.items():
            if not own.get(field) and not (field == "appArmorProfile" and of_pod.get(field)):
                known[f"{before}{container.get('name')}"] = state, field
    for key in annotations:
        if key in known:
            state, field = known[key]
            report.warn("X21.annotation", path.key(key), state=state, field=field)


def _warn_of_places(spec: Object, path: Path, report: Report) -> None:
    """Warn of labels of nodes that Kubernetes replaced, and of what selects pods by no label."""
    for place, key in (*_affinity(spec, path), *_spread(spec, path)):
        if key in _LABELS:
            since, label = _LABELS[key]
            report.warn("X21.node-label", place, key=key, since=since, label=label)
    for place, selecting in _selecting(spec, path):
        if selecting.get("labelSelector") is None:
            report.warn("X21.no-selector", place.child("labelSelector"))


def _warn_of_volume(volume: Object, path: Path, report: Report) -> None:
    for kind in _VOLUMES.keys() & volume.keys():
        if volume[kind] is not None:
            since, until = _VOLUMES[kind]
            report.warn("X21.volume", path.child(kind), since=since, until=until)
    if claim := (volume.get("ephemeral") or {}).get("volumeClaimTemplate"):
        at = path.child("ephemeral", "volumeClaimTemplate", "spec")
        _warn_of_fractions((claim.get("spec") or {}).get("resources") or {}, at, report)


def _warn_of_names(spec: Object, path: Path, report: Report) -> None:
    """Warn of the Secrets for images without a name, and of those and of addresses named twice."""
    for kind, what in (("hostAliases", "ip"), ("imagePullSecrets", "name")):
        seen = set()
        for index, each in enumerate(spec.get(kind) or ()):
            value, at = each.get(what) or "", path.child(kind).index(index).child(what)
            if value in seen:
                report.warn("X21.twice", at, what=what, value=value)
            elif not value and what == "name":
                report.warn("X21.no-secret", at)
            seen.add(value)


def _warn_of_fractions(resources: Object, path: Path, report: Report) -> None:
    """Warn of the amounts of bytes that are no whole numbers, in the lists of these resources."""
    for kind in ("limits", "requests", "overhead"):
        amounts = resources.get(kind) or {}
        for name in _BYTES if amounts else ():
            if name in amounts and not try_parse_amount(amounts[name]).is_integer:
                at = path.child(kind) if kind == "overhead" else path.child("resources", kind)
                report.warn("X21.fraction-of-byte", at.key(name), value=amounts[name])


def _selecting(spec: Object, path: Path) -> Iterator[tuple[Path, Object]]:
    """Yield what selects pods by a labelSelector: spread constraints, and terms of affinity."""
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        yield path.child("topologySpreadConstraints").index(index), constraint
    for kind in ("podAffinity", "podAntiAffinity"):
        affinity = (spec.get("affinity") or {}).get(kind) or {}
        at = path.child("affinity", kind)
        for index, term in enumerate(affinity.get(_REQUIRED) or ()):
            yield at.child(_REQUIRED).index(index), term
        for index, term in enumerate(affinity.get(_PREFERRED) or ()):
            where = at.child(_PREFERRED).index(index).child("podAffinityTerm")
            yield where, term.get("podAffinityTerm") or {}


def _affinity(spec: Object, path: Path) -> Iterator[tuple[Path, str]]:
    """Yield the labels of nodes in the node affinity of a pod, with their places."""
    affinity = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    at = path.child("affinity", "nodeAffinity")
    terms = (affinity.get(_REQUIRED) or {}).get("nodeSelectorTerms") or ()
    for index, term in enumerate(terms):
        where = at.child(_REQUIRED, "nodeSelectorTerms").index(index)
        yield from _expressions(term, where)
    for index, each in enumerate(affinity.get(_PREFERRED) or ()):
        where = at.child(_PREFERRED).index(index).child("preference")
        yield from _expressions(each.get("preference") or {}, where)


def _expressions(term: Object, path: Path) -> Iterator[tuple[Path, str]]:
    for index, each in enumerate(term.get("matchExpressions") or ()):
        where = path.child("matchExpressions").index(index).child("key")
        yield where, str(each.get("key") or "")


def _spread(spec: Object, path: Path) -> Iterator[tuple[Path, str]]:
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        where = path.child("topologySpreadConstraints").index(index).child("topologyKey")
        yield where, str(constraint.get("topologyKey") or "")


def _warn_of_container(container: Object, path: Path, report: Report) -> None:
    if resources := container.get("resources"):
        _warn_of_fractions(resources, path, report)
    seen = set()
    for index, variable in enumerate(container.get("env") or ()):
        name = variable.get("name")
        if name and name in seen:
            report.warn("X21.hidden-variable", path.child("env").index(index), name=name)
        seen.add(name)
    if ports := container.get("ports"):
        _warn_of_ports(ports, path.child("ports"), report)


def _warn_of_ports(ports: Sequence[Object], path: Path, report: Report) -> None:
    """Warn of each port that an earlier one declares too, with or without a port of the node."""
    first: dict[tuple[object, ...], int] = {}
    for index, port in enumerate(ports):
        own = port.get("containerPort"), port.get("protocol") or "TCP"
        host = port.get("hostPort") or 0, port.get("hostIP") or ""
        if host[1] and not host[0]:
            name, address = port.get("name") or "", host[1]
            report.warn(
                "X21.host-ip",
                path.index(index),
                name=name,
                own=own[0],
                protocol=own[1],
                address=address,
            )
        if (*own, *host) in first:
            other = path.index(first[*own, *host])
            report.warn("X21.port", path.index(index), how="duplicate", other=other)
        across = first.get((*own, not host[0]))
        if across is not None:
            report.warn("X21.port", path.index(index), how="overlapping", other=path.index(across))
        first.setdefault((*own, *host), index)
        first.setdefault((*own, bool(host[0])), index)


def warn_of_order(spec: Object, path: Path, report: Report) -> None:
    """Warn of tasks that wait for others, where Volcano's gang and its minimum decide the wait."""
    tasks: list[Object] = spec.get("tasks") or []
    sizes = {str(task.get("name")): (least_of(task), task.get("replicas") or 0) for task in tasks}
    made = sum(task.get("replicas") or 0 for task in tasks if not task.get("dependsOn"))
    needed = spec.get("minAvailable") or sum(map(least_of, tasks))
    for index, task in enumerate(tasks):
        names = (task.get("dependsOn") or {}).get("name") or ()
        at = path.child("tasks").index(index).child("dependsOn")
        if any(name not in sizes or name == task.get("name") for name in names):
            continue  # V17 and X10 report it
        if names and 0 < made < needed:
            report.warn("X20.gang-waits-for-itself", at, needed=needed, made=made)
        for each, name in enumerate(names):
            least, every = sizes[name]
            if least < every:
                report.warn(
                    "X20.starts-early",
                    at.child("name").index(each),
                    least=least,
                    all=every,
                    name=name,
                )


def warn_of_task(task: Object, path: Path, report: Report) -> None:
    """Warn of the pods of one task, and of its policies."""
    spec = (task.get("template") or {}).get("spec") or {}
    at = path.child("template", "spec")
    if not spec.get("restartPolicy"):
        report.warn("X20.always", at.child("restartPolicy"))
    elif task.get("policies"):
        warn_of_policies(task["policies"], [task], path.child("policies"), report)
    if spec.get("schedulingGates"):
        report.warn("X20.scheduling-gates", at.child("schedulingGates"))
    if spec.get("resourceClaims"):
        report.warn("X20.resource-claims", at.child("resourceClaims"))
    if spec.get("schedulerName") not in (None, "", "volcano"):
        report.warn("X20.pod-scheduler", at.child("schedulerName"), name=spec["schedulerName"])
    if spec.get("nodeName"):
        report.warn("X20.node-name", at.child("nodeName"), name=spec["nodeName"])
    spread = spec.get("topologySpreadConstraints") or ()
    if any(each.get("whenUnsatisfiable") == "DoNotSchedule" for each in spread):
        report.warn("X20.spread", at.child("topologySpreadConstraints"))
    if ((spec.get("affinity") or {}).get("podAffinity") or {}).get(_REQUIRED):
        report.warn("X20.pod-affinity", at.child("affinity", "podAffinity", _REQUIRED))


def warn_of_policies(
    policies: list[Object], tasks: list[Object], path: Path, report: Report
) -> None:
    """Warn of policies that never apply to these tasks, or at other times than they seem to.

    A task without a restartPolicy has a warning of its own.
    """
    pods: list[Object] = [(task.get("template") or {}).get("spec") or {} for task in tasks]
    found = {str(pod.get("restartPolicy") or "") for pod in pods}
    names = [sorted(str(each.get("name")) for each in pod.get("containers") or ()) for pod in pods]
    several = next((each for each in names if len(each) > 1), None)
    for index, policy in enumerate(policies):
        at, code = path.index(index), policy.get("exitCode")
        events = {policy.get("event"), *(policy.get("events") or ())} - {None}
        field = at.child("exitCode" if code else "event" if policy.get("event") else "events")
        if (code or events == {"PodFailed"}) and found and found <= {"Always", "OnFailure"}:
            report.warn("X20.never-fails", field, policy="/".join(sorted(found)))
        elif code and several:
            report.warn("X20.other-codes", field, name=several[0])
        elif events == {"TaskFailed"} and found == {"Never"} and not any(map(_has_sidecar, pods)):
            report.warn("X20.never-restarts", field)
        elif events == {"TaskCompleted"} and found == {"Always"}:
            report.warn("X20.never-completes", field)
        elif events == {ANY} and found != {"Always"} and policy.get("action") != "CompleteJob":
            report.warn("X20.also-at-the-end", field, action=policy.get("action"))
        if "PodPending" in events and not policy.get("timeout"):
            report.warn("X20.no-timeout", at.child("timeout"))


def _has_sidecar(pod: Object) -> bool:
    containers = pod.get("initContainers") or ()
    return any(each.get("restartPolicy") == "Always" for each in containers)
