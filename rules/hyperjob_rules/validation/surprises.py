"""Warnings about what is legal for a vcjob and does not do what its author expects.

Kubernetes and Volcano accept all of it without a word: pods that never complete, policies that no
pod can trigger, pods that Volcano's scheduler does not bind, and demands on nodes that placement
does not look at.
"""

from typing import Final

from hyperjob_core.api.field import Path
from hyperjob_core.api.meta import Object
from hyperjob_rules.validation.rules import WARNING, Report, rule

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
    "is counted by no queue and no placement of HyperJob: which cluster has the devices, and how"
    " many are free, is not known before Volcano looks for nodes there",
    "the pods get devices by resource claims",
    "name the clusters that have the devices in clusterNames, and let Volcano's queues there count"
    " them (capability deviceclass/NAME, Volcano 1.14)",
)
NEAR = rule(
    "X20.pod-affinity",
    WARNING,
    "is not looked at by the placement of HyperJob, and overlooked by Volcano between the pods of"
    " one gang",
    "the pods have required affinity to other pods",
    "use networkTopology of the vcjob for pods near each other, or a nodeSelector",
)
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


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
