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
from hyperjob_rules.validation.forms import least_of, parse_amount
from hyperjob_rules.validation.rules import WARNING, Report, rule

NODE_SELECTOR = rule(
    "X21.node-selector",
    WARNING,
    'deprecated since {since}; use "{label}" instead',
    "a node selector has a label that Kubernetes replaced, and that new nodes may lack",
    "use the label that the message names",
)
NODE_LABEL = rule(
    "X21.node-label",
    WARNING,
    '{key} is deprecated since {since}; use "{label}" instead',
    "an affinity or a spread constraint has a label of nodes that Kubernetes replaced",
    "use the label that the message names",
)
NO_SELECTOR = rule(
    "X21.no-selector",
    WARNING,
    "a null labelSelector results in matching no pod",
    "a spread constraint or a term of pod affinity has no labelSelector",
    "add a labelSelector that matches the pods of the task",
)
ANNOTATION = rule(
    "X21.annotation",
    WARNING,
    '{state}; use the "{field}" field instead',
    "the pods have an annotation that a field of the pod replaced",
    "set the field that the message names: priorityClassName, securityContext.sysctls,"
    " securityContext.seccompProfile or securityContext.appArmorProfile",
)
VOLUME = rule(
    "X21.volume",
    WARNING,
    "deprecated in {since}, {until}",
    "the pods have a volume of a kind that Kubernetes gave up",
    "use a PersistentVolumeClaim of a CSI driver; clone a repository in an init container",
)
TWICE = rule(
    "X21.twice",
    WARNING,
    'duplicate {what} "{value}"',
    "the pods name one Secret of imagePullSecrets, or one address of hostAliases, twice",
    "remove one of the two",
)
GRACE = rule(
    "X21.grace-period",
    WARNING,
    "must be >= 0; negative values are invalid and will be treated as 1",
    "terminationGracePeriodSeconds is negative",
    "give the seconds that the program needs to save its state, or leave it out for 30",
)
PORT_NAME = rule(
    "X21.port-name",
    WARNING,
    'duplicate port name "{name}" with {other}, services and probes that select ports by name will'
    " use {other}",
    "two containers give a port the same name",
    "give one of the two ports another name",
)
HOST_IP = rule(
    "X21.host-ip",
    WARNING,
    "hostIP set without hostPort: {{Name:{name} HostPort:0 ContainerPort:{own} Protocol:{protocol}"
    " HostIP:{address}}}",
    "a port names an address of the node and no port of it",
    "set hostPort, or remove hostIP",
)
NO_SECRET = rule(
    "X21.no-secret",
    WARNING,
    'invalid empty name ""',
    "an item of imagePullSecrets has no name",
    "name the Secret, or remove the item",
)
FRACTION = rule(
    "X21.fraction-of-byte",
    WARNING,
    'fractional byte value "{value}" is invalid, must be an integer',
    "an amount of memory is no whole number of bytes: `m` means a thousandth",
    "write Mi for mebibytes, as in 512Mi",
)
HIDDEN = rule(
    "X21.hidden-variable",
    WARNING,
    'hides previous definition of "{name}", which may be dropped when using apply',
    "a container has two environment variables of one name",
    "remove the first one",
)
PORT = rule(
    "X21.port",
    WARNING,
    "{how} port definition with {other}",
    "a container declares one port twice",
    "remove one of the two",
)

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
    _warn_of_annotations(template, path, report)
    for key in spec.get("nodeSelector") or {}:
        if key in _LABELS:
            since, label = _LABELS[key]
            report.warn(NODE_SELECTOR, at.child("nodeSelector").key(key), since=since, label=label)
    for place, key in (*_affinity(spec, at), *_spread(spec, at)):
        if key in _LABELS:
            since, label = _LABELS[key]
            report.warn(NODE_LABEL, place, key=key, since=since, label=label)
    for place, selecting in _selecting(spec, at):
        if selecting.get("labelSelector") is None:
            report.warn(NO_SELECTOR, place.child("labelSelector"))
    for index, volume in enumerate(spec.get("volumes") or ()):
        for kind in _VOLUMES.keys() & {each for each, value in volume.items() if value is not None}:
            since, until = _VOLUMES[kind]
            where = at.child("volumes").index(index).child(kind)
            report.warn(VOLUME, where, since=since, until=until)
        claim = (volume.get("ephemeral") or {}).get("volumeClaimTemplate") or {}
        where = at.child("volumes").index(index).child("ephemeral", "volumeClaimTemplate", "spec")
        _warn_of_fractions((claim.get("spec") or {}).get("resources") or {}, where, report)
    _warn_of_names(spec, at, report)
    _warn_of_fractions({"overhead": spec.get("overhead")}, at, report)
    if (spec.get("terminationGracePeriodSeconds") or 0) < 0:
        report.warn(GRACE, at.child("terminationGracePeriodSeconds"))
    names: dict[str, Path] = {}
    for container, where in _containers(spec, at):
        _warn_of_container(container, where, report)
        own: dict[str, Path] = {}
        for index, port in enumerate(container.get("ports") or ()):
            here, name = where.child("ports").index(index), port.get("name")
            if name in names:
                report.warn(PORT_NAME, here, name=name, other=names[name])
            elif name:
                own.setdefault(name, here)
        names |= own  # one name twice in one container is an error


def _containers(spec: Object, path: Path) -> Iterator[tuple[Object, Path]]:
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(kind) or ()):
            yield container, path.child(kind).index(index)


def _warn_of_annotations(template: Object, path: Path, report: Report) -> None:
    """Warn of the annotations that fields replaced, unless the field is set beside them."""
    spec = template.get("spec") or {}
    of_pod = spec.get("securityContext") or {}
    known = dict(_ANNOTATIONS)
    if not of_pod.get("seccompProfile"):
        known[_POD_PROFILE] = _SECCOMP
    for container, _ in _containers(spec, path):
        own = container.get("securityContext") or {}
        for before, (state, field) in _PROFILES.items():
            if not own.get(field) and not (field == "appArmorProfile" and of_pod.get(field)):
                known[f"{before}{container.get('name')}"] = state, field
    for key in (template.get("metadata") or {}).get("annotations") or {}:
        if key in known:
            state, field = known[key]
            at = path.child("metadata", "annotations").key(key)
            report.warn(ANNOTATION, at, state=state, field=field)


def _warn_of_names(spec: Object, path: Path, report: Report) -> None:
    """Warn of the Secrets for images without a name, and of those and of addresses named twice."""
    for kind, what in (("hostAliases", "ip"), ("imagePullSecrets", "name")):
        seen = set()
        for index, each in enumerate(spec.get(kind) or ()):
            value, at = each.get(what) or "", path.child(kind).index(index).child(what)
            if value in seen:
                report.warn(TWICE, at, what=what, value=value)
            elif not value and what == "name":
                report.warn(NO_SECRET, at)
            seen.add(value)


def _warn_of_fractions(resources: Object, path: Path, report: Report) -> None:
    """Warn of the amounts of bytes that are no whole numbers, in the lists of these resources."""
    for kind in ("limits", "requests", "overhead"):
        amounts = resources.get(kind) or {}
        for name in _BYTES:
            if name in amounts and _is_fraction(amounts[name]):
                at = path.child(kind) if kind == "overhead" else path.child("resources", kind)
                report.warn(FRACTION, at.key(name), value=amounts[name])


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
    _warn_of_fractions(container.get("resources") or {}, path, report)
    seen = set()
    for index, variable in enumerate(container.get("env") or ()):
        name = variable.get("name")
        if name and name in seen:
            report.warn(HIDDEN, path.child("env").index(index), name=name)
        seen.add(name)
    _warn_of_ports(container.get("ports") or (), path.child("ports"), report)


def _warn_of_ports(ports: Sequence[Object], path: Path, report: Report) -> None:
    """Warn of each port that an earlier one declares too, with or without a port of the node."""
    first: dict[tuple[object, ...], int] = {}
    for index, port in enumerate(ports):
        own = port.get("containerPort"), port.get("protocol") or "TCP"
        host = port.get("hostPort") or 0, port.get("hostIP") or ""
        if host[1] and not host[0]:
            name, address = port.get("name") or "", host[1]
            report.warn(
                HOST_IP, path.index(index), name=name, own=own[0], protocol=own[1], address=address
            )
        if (*own, *host) in first:
            other = path.index(first[*own, *host])
            report.warn(PORT, path.index(index), how="duplicate", other=other)
        across = first.get((*own, not host[0]))
        if across is not None:
            report.warn(PORT, path.index(index), how="overlapping", other=path.index(across))
        first.setdefault((*own, *host), index)
        first.setdefault((*own, bool(host[0])), index)


def _is_fraction(amount: str | int) -> bool:
    try:
        return not parse_amount(amount).is_integer
    except ValueError:
        return False  # the check of the quantity reports it


ALWAYS = rule(
    "X20.always",
    WARNING,
    "is left out, which means Always: Kubernetes starts a container that has ended again, also"
    " after exit code 0, and the pods never complete",
    "the pods of a task have no restartPolicy, and Kubernetes' default is Always",
    "set OnFailure, or Never to let Volcano react to failures",
)
NEVER_FAILS = rule(
    "X20.never-fails",
    WARNING,
    "never applies: with restartPolicy {policy} Kubernetes starts a failed container again in its"
    " pod, and the pod does not fail",
    "a policy reacts to failed pods, and the restartPolicy keeps the pods from failing",
    "set restartPolicy: Never, or remove the policy",
)
NEVER_COMPLETES = rule(
    "X20.never-completes",
    WARNING,
    "never applies: with restartPolicy Always Kubernetes starts a container that has ended again,"
    " and the pod does not complete",
    "a policy reacts to completed pods, and the restartPolicy keeps the pods from completing",
    "set restartPolicy OnFailure or Never for pods that end",
)
GATED = rule(
    "X20.scheduling-gates",
    WARNING,
    "keeps the pods pending until a controller in the member cluster removes the gates",
    "the pods have scheduling gates",
    "remove schedulingGates, unless the member clusters have a controller for them",
)
NODE_NAME = rule(
    "X20.node-name",
    WARNING,
    'bypasses the scheduler of Volcano: the pods run on node "{name}" alone, and only in the'
    " cluster that has it",
    "the pods name a node",
    "remove nodeName; use nodeSelector for nodes and clusterNames for clusters",
)
SCHEDULER = rule(
    "X20.pod-scheduler",
    WARNING,
    'overrides the vcjob\'s scheduler: "{name}" binds these pods one by one, outside of gang and'
    " queue, and in a cluster without it they stay Pending",
    "the pods name a scheduler of their own, as a copied pod template does",
    "remove schedulerName from the pods",
)
SPREAD = rule(
    "X20.spread",
    WARNING,
    "is not looked at by the placement of HyperJob: where Volcano finds no nodes for such pods, the"
    " gang leaves the cluster and tries others",
    "the pods have a topology spread constraint with whenUnsatisfiable: DoNotSchedule",
    "set ScheduleAnyway; for one pod a node, require podAntiAffinity by kubernetes.io/hostname",
)
CLAIMS = rule(
    "X20.resource-claims",
    WARNING,
    "counts by device class alone, where the controller reads the ResourceSlices of a cluster: what"
    " selectors ask for, and devices elsewhere or shared by pods, Volcano alone knows",
    "the pods get devices by resource claims",
    "name the clusters with such devices in clusterNames; a Queue bounds them by deviceclass/NAME",
)
NEAR = rule(
    "X20.pod-affinity",
    WARNING,
    "is not looked at by the placement of HyperJob, and overlooked by Volcano between the pods of"
    " one gang",
    "the pods have required affinity to other pods",
    "use networkTopology of the vcjob for pods near each other, or a nodeSelector",
)


ORDER = rule(
    "X20.gang-waits-for-itself",
    WARNING,
    "keeps all pods from starting: the gang needs {needed} pods, and Volcano makes {made} until"
    " these run",
    "minAvailable of the vcjob counts pods of tasks with dependsOn, which exist only after the gang"
    " has started; left out it is that of all tasks",
    "set minAvailable of the vcjob to at most the pods of the tasks that wait for none",
)
EARLY = rule(
    "X20.starts-early",
    WARNING,
    'is met when {least} of the {all} pods of task "{name}" run: that is the task\'s minAvailable',
    "a task depends on a task whose minAvailable is below its replicas",
    "raise minAvailable of that task if the pods need all of its pods",
)


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
            report.warn(ORDER, at, needed=needed, made=made)
        for each, name in enumerate(names):
            least, every = sizes[name]
            if least < every:
                report.warn(EARLY, at.child("name").index(each), least=least, all=every, name=name)


def warn_of_task(task: Object, path: Path, report: Report) -> None:
    """Warn of the pods of one task, and of its policies."""
    spec = (task.get("template") or {}).get("spec") or {}
    at = path.child("template", "spec")
    if not spec.get("restartPolicy"):
        report.warn(ALWAYS, at.child("restartPolicy"))
    elif task.get("policies"):
        warn_of_policies(task["policies"], [task], path.child("policies"), report)
    if spec.get("schedulingGates"):
        report.warn(GATED, at.child("schedulingGates"))
    if spec.get("resourceClaims"):
        report.warn(CLAIMS, at.child("resourceClaims"))
    if spec.get("schedulerName") not in (None, "", "volcano"):
        report.warn(SCHEDULER, at.child("schedulerName"), name=spec["schedulerName"])
    if spec.get("nodeName"):
        report.warn(NODE_NAME, at.child("nodeName"), name=spec["nodeName"])
    spread = spec.get("topologySpreadConstraints") or ()
    if any(each.get("whenUnsatisfiable") == "DoNotSchedule" for each in spread):
        report.warn(SPREAD, at.child("topologySpreadConstraints"))
    if ((spec.get("affinity") or {}).get("podAffinity") or {}).get(_REQUIRED):
        report.warn(NEAR, at.child("affinity", "podAffinity", _REQUIRED))


def warn_of_policies(
    policies: list[Object], tasks: list[Object], path: Path, report: Report
) -> None:
    """Warn of the policies for ended pods, if the restartPolicy of all these tasks prevents them.

    A task without a restartPolicy has a warning of its own.
    """
    found = {_restart_policy(task) for task in tasks}
    if not found or not found <= {"Always", "OnFailure"}:
        return
    for index, policy in enumerate(policies):
        field = "exitCode" if policy.get("exitCode") else "event"
        events = {policy.get("event"), *(policy.get("events") or ())} - {None}
        if policy.get("exitCode") or (events and events <= {"PodFailed", "TaskFailed"}):
            at = path.index(index).child(field if policy.get(field) else "events")
            report.warn(NEVER_FAILS, at, policy="/".join(sorted(found)))
        elif found == {"Always"} and events == {"TaskCompleted"}:
            report.warn(NEVER_COMPLETES, path.index(index).child(field))


def _restart_policy(task: Object) -> str:
    spec = (task.get("template") or {}).get("spec") or {}
    return str(spec.get("restartPolicy") or "")
