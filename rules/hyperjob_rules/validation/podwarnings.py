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
from hyperjob_rules.validation.forms import parse_amount
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
    "a spread constraint has no labelSelector",
    "add a labelSelector that matches the pods of the task",
)
CRITICAL = rule(
    "X21.critical-pod",
    WARNING,
    'non-functional in v1.16+; use the "priorityClassName" field instead',
    "the pods have the former annotation of critical pods",
    "set priorityClassName",
)
GIT_REPO = rule(
    "X21.git-repo",
    WARNING,
    "deprecated in v1.11, and disabled by default in v1.33+",
    "the pods have a gitRepo volume",
    "clone the repository in an init container, into an emptyDir volume",
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
_BYTES: Final = ("memory", "ephemeral-storage")
_CRITICAL: Final = "scheduler.alpha.kubernetes.io/critical-pod"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def warn_as_of_pod(template: Object, path: Path, report: Report) -> None:
    """Warn of a pod template as Kubernetes warns of a Pod."""
    spec, at = template.get("spec") or {}, path.child("spec")
    if _CRITICAL in ((template.get("metadata") or {}).get("annotations") or {}):
        report.warn(CRITICAL, path.child("metadata", "annotations").key(_CRITICAL))
    for key in spec.get("nodeSelector") or {}:
        if key in _LABELS:
            since, label = _LABELS[key]
            report.warn(NODE_SELECTOR, at.child("nodeSelector").key(key), since=since, label=label)
    for place, key in (*_affinity(spec, at), *_spread(spec, at)):
        if key in _LABELS:
            since, label = _LABELS[key]
            report.warn(NODE_LABEL, place, key=key, since=since, label=label)
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        if constraint.get("labelSelector") is None:
            where = at.child("topologySpreadConstraints").index(index).child("labelSelector")
            report.warn(NO_SELECTOR, where)
    for index, volume in enumerate(spec.get("volumes") or ()):
        if volume.get("gitRepo"):
            report.warn(GIT_REPO, at.child("volumes").index(index).child("gitRepo"))
    for index, secret in enumerate(spec.get("imagePullSecrets") or ()):
        if not secret.get("name"):
            report.warn(NO_SECRET, at.child("imagePullSecrets").index(index).child("name"))
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(kind) or ()):
            _warn_of_container(container, at.child(kind).index(index), report)


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
    resources = container.get("resources") or {}
    for kind in ("limits", "requests"):
        amounts = resources.get(kind) or {}
        for name in _BYTES:
            if name in amounts and _is_fraction(amounts[name]):
                at = path.child("resources", kind).key(name)
                report.warn(FRACTION, at, value=amounts[name])
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
    """Warn of the policies for failed pods, if the restartPolicy of all these tasks prevents them.

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


def _restart_policy(task: Object) -> str:
    spec = (task.get("template") or {}).get("spec") or {}
    return str(spec.get("restartPolicy") or "")
