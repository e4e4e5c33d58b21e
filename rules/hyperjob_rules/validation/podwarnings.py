"""Warnings about pods and vcjobs that Kubernetes and Volcano accept.

They are about what is legal for a vcjob and does not do what its author expects: amounts and
variables that mean something else (in the words of Kubernetes, whose API server gives them to
Volcano alone), pods that never complete, policies that no pod can trigger, pods that Volcano's
scheduler does not bind, and demands on nodes that placement does not look at.
"""

from typing import Final

from hyperjob_core.api.field import Path
from hyperjob_core.api.meta import Object
from hyperjob_rules.validation.forms import least_of, parse_amount
from hyperjob_rules.validation.rules import WARNING, Report, rule

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

_BYTES: Final = ("memory", "ephemeral-storage", "storage")
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def warn_as_of_pod(template: Object, path: Path, report: Report) -> None:
    """Warn of amounts and variables of a pod template as Kubernetes warns of those of a Pod."""
    spec, at = template.get("spec") or {}, path.child("spec")
    for kind in ("initContainers", "containers"):
        for index, container in enumerate(spec.get(kind) or ()):
            _warn_of_container(container, at.child(kind).index(index), report)


def _warn_of_container(container: Object, path: Path, report: Report) -> None:
    resources = container.get("resources") or {}
    for kind in ("limits", "requests"):
        amounts = resources.get(kind) or {}
        for name in _BYTES:
            if name in amounts and _is_fraction(amounts[name]):
                report.warn(FRACTION, path.child("resources", kind).key(name), value=amounts[name])
    seen = set()
    for index, variable in enumerate(container.get("env") or ()):
        name = variable.get("name")
        if name and name in seen:
            report.warn(HIDDEN, path.child("env").index(index), name=name)
        seen.add(name)


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
