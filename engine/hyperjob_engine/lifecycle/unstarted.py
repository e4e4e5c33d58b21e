"""Sub-jobs in their cluster without a running pod for longer than the start timeout.

Such a cluster has room as the controller counts it, but Volcano there finds no node, or another
workload was first. The sub-job uses its share of the queue for nothing. The controller deletes it,
returns the share, excludes the cluster, and tries again after a growing time.

Volcano says within seconds that a gang is Unschedulable. Where pods of others keep the gang from
nodes that would hold it, they may end, and the gang waits for the start timeout. Otherwise the
controller has counted wrong, or the nodes have changed: the gang leaves after the much shorter
unschedulable timeout.

Pods that have a node and pull a large image are not such a case. Karmada reports in each Cluster
the sum of the requests of pods without a node (`status.resourceSummary.allocating`): if it is less
than the request of the sub-job, some of its pods have a node.

A cluster whose API server refuses the pods is left after seconds: a quota of another cluster may
have room, and Volcano ends such a vcjob soon. That end is no failure, as no program has run.
Without the Events of the member the end is the first sign of it.

The exclusion of a cluster where no pod started ends after a time that doubles with each attempt:
its quota may be raised, and the other clusters may have no room.

A cluster that is lost before Karmada has applied the vcjob there is left once it counts as lost.

A cluster that has closed the queue is left after seconds too: Volcano creates no pod of the vcjob
there, and gives no node to those that exist. The sub-job may use the cluster again once the queue
is open there.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

from hyperjob_core.api.duration import doubled
from hyperjob_core.api.phases import JobPhase
from hyperjob_core.api.status import GangStatus
from hyperjob_core.api.wire import count, integer, objects, rfc3339
from hyperjob_engine.lifecycle.decisions import Member, Recreation, Restart
from hyperjob_engine.model.observed import Cluster, Observed, QueueAdmission
from hyperjob_engine.model.subjobs import Child, SubJob, closed_queue_of
from hyperjob_engine.placement.ground import ground_of
from hyperjob_engine.placement.packing import unfit
from hyperjob_engine.reasons.pods import (
    PATIENCE,
    PodsRefused,
    TroubleKind,
    Unschedulable,
    refused_text,
    unschedulable_text,
)
from hyperjob_engine.reasons.reason import Reason, queue_closed_text
from hyperjob_engine.resources import DEVICE_CLASS, PODS, Resources, measure_of

_EXCLUDED_FIRST: Final = timedelta(minutes=1)
_EXCLUDED_LONGEST: Final = timedelta(hours=1)


def not_started(observed: Observed, members: Sequence[Member]) -> list[Member]:
    """Return the sub-jobs that did not start in time."""
    dues = ((each, _due(observed, *each)) for each in members)
    return [each for each, due in dues if due is not None and due <= observed.now]


def not_allowed(observed: Observed, members: Sequence[Member]) -> list[Member]:
    """Return the sub-jobs that Volcano ended since their cluster refused all pods.

    Their restart comes before the failure policy and the end of the HyperJob.
    """
    return [
        (sub_job, child)
        for sub_job, child in members
        if child.phase.is_failed and refusal_of(observed, child) is not None
    ]


def refusal_of(observed: Observed, child: Child) -> PodsRefused | None:
    """Return why the cluster of a sub-job refuses its pods; None once it has all of them.

    Volcano terminates a vcjob whose pods it cannot create, and such a vcjob has no pod in any
    phase. Without the Events of the member that end alone says it. A later attempt may end so
    within a second, before it has Events: Volcano counts its tries by the name of the vcjob.
    """
    refused, binding, report = observed.pods_refused.get(child.name), child.binding, child.report
    if binding is None or report is None or observed.hyperjob.suspend or _began(child):
        return None
    ended = report.phase is JobPhase.TERMINATED and not report.pods.total
    if refused is None:
        return PodsRefused("", observed.now, observed.now) if ended else None
    if ended:
        return refused
    if binding.applied_since is None or refused.last < binding.applied_since:
        return None
    tasks = objects(child.job.spec.get("tasks")) if child.job is not None else ()
    complete = report.pods.total >= sum(integer(task.get("replicas")) or 0 for task in tasks)
    return None if complete and not child.is_terminal else refused


def closed_in(observed: Observed, sub_job: SubJob, child: Child) -> str:
    """Return the queue of a sub-job that waits for pods where that queue is closed; else empty."""
    closed, report = closed_queue_of(observed, sub_job.size.template), child.report
    if closed is None or child.cluster not in closed.clusters or report is None:
        return ""
    if report.phase is not JobPhase.PENDING or _began(child) or observed.hyperjob.suspend:
        return ""
    nodeless = not report.pods.total or _without_node(observed, sub_job, child)
    return closed.name if nodeless else ""


def given_back(
    observed: Observed,
    members: Sequence[Member],
    late: Sequence[Member],
    *,
    minimum: int,
    next_try: Callable[[int, bool], GangStatus | None],
) -> Restart | None:
    """Return the restart of the `late` sub-jobs, which have not started; None without any.

    `next_try` returns the gang's record with the time of the next try, by the number of the try and
    whether that is soon: a cluster that refuses pods, or has closed the queue, says nothing about
    the others. If fewer than `minimum` others remain, the gang starts again as a whole, without the
    clusters that refuse pods of it: the next sub-job there would be refused too. Otherwise the
    others run on. It costs none of `maxRestarts`, because no program has failed.
    """
    if not late:
        return None
    names = {child.name for _, child in late}
    there = [child for _, child in members if child.exists or child.is_terminal]
    others = [child for child in there if child.name not in names]
    if len(others) >= minimum:
        others = []
    _, first = late[0]
    refusing = _refusing(observed, members, [child for _, child in late])
    again = [
        *(_again(observed, *member, refusing) for member in late),
        *(
            Recreation(
                name=child.name,
                reason=Reason.RESTARTED_WITH_ALL,
                why=f"deleted together with {first.name}, of which no pod ran on {first.cluster}",
                leave=refusing,
                leave_for=_excluded_for(child, _EXCLUDED_FIRST),
            )
            for child in others
            if not child.is_terminal
        ),
    ]
    elsewhere = all(
        refusal_of(observed, child) is not None
        or closed_in(observed, sub_job, child)
        or unschedulable_in(observed, child) is not None
        or _lost_before(observed, child) is not None
        for sub_job, child in late
    )
    return Restart(
        again=tuple(again),
        gives_back=True,
        gang=next_try(1 + max(child.attempt for _, child in late), elsewhere),
    )


def _refusing(
    observed: Observed, members: Sequence[Member], late: Sequence[Child]
) -> tuple[str, ...]:
    """Return the clusters that refuse pods of a gang and have taken none of it.

    A cluster that took pods of another sub-job has a quota that is too small for both of them.
    """
    refused = dict.fromkeys(
        child.cluster for child in late if refusal_of(observed, child) is not None
    )
    taken = {
        child.cluster
        for _, child in members
        if _began(child) or (child.report is not None and child.report.pods.total)
    }
    return tuple(name for name in refused if name and name not in taken)


def next_due(observed: Observed, members: Sequence[Member]) -> timedelta | None:
    """Return the time until the next start timeout; None if no sub-job waits for a pod."""
    known = [due for each in members if (due := _due(observed, *each)) is not None]
    known += [due for _, child in members if (due := _pods_due(child)) is not None]
    return min((due - observed.now for due in known if due > observed.now), default=None)


def _due(observed: Observed, sub_job: SubJob, child: Child) -> datetime | None:
    """Return until when a sub-job may wait for its first running pod; None if it does not wait.

    Only a sub-job whose pods lack nodes waits. A sub-job does not wait if it has had a running pod
    in this attempt, if its pods have nodes (and pull images), or if its cluster is not Ready.
    """
    report, binding = child.report, child.binding
    if not observed.hyperjob.suspend and (lost := _lost_before(observed, child)) is not None:
        return lost + observed.limits.cluster_lost
    refused = refusal_of(observed, child)
    if refused is not None and report is not None and report.phase is JobPhase.PENDING:
        return refused.first + PATIENCE
    if closed_in(observed, sub_job, child) and binding is not None and binding.applied_since:
        return binding.applied_since + PATIENCE
    if observed.hyperjob.suspend or report is None or binding is None or not binding.applied:
        return None
    if binding.applied_since is None or report.phase is not JobPhase.PENDING or _began(child):
        return None
    cluster = _cluster_of(observed, child)
    if cluster is None or cluster.not_ready_since is not None:
        return None
    due = _unschedulable_due(observed, sub_job, child, cluster)
    complete = report.pods.pending >= sub_job.size.fewest
    if not observed.limits.start or (complete and _on_nodes(sub_job.size.demand, cluster)):
        return due
    late = binding.applied_since + observed.limits.start
    return late if due is None else min(due, late)


def _lost_before(observed: Observed, child: Child) -> datetime | None:
    """Return since when the cluster is not Ready to which Karmada has to deliver a sub-job."""
    binding = child.binding
    if not child.exists or binding is None or binding.applied:
        return None
    if binding.suspended or child.phase is not JobPhase.UNKNOWN:
        return None
    cluster = _cluster_of(observed, child)
    return None if cluster is None else cluster.not_ready_since


def waits_for_itself(sub_job: SubJob) -> str:
    """Return that a gang waits for pods that only follow its start; empty if it does not."""
    tasks = objects(sub_job.size.template.get("tasks"))
    made = sum(count(task.get("replicas")) for task in tasks if not task.get("dependsOn"))
    if not 0 < made < sub_job.size.fewest:
        return ""
    needs = f"its gang needs {sub_job.size.fewest} pods, and Volcano makes {made} of them first"
    return f"{needs}: those of tasks with dependsOn follow; lower minAvailable of the vcjob"


def unschedulable_in(observed: Observed, child: Child) -> Unschedulable | None:
    """Return why Volcano finds no nodes for a sub-job that has not run; None if there is no word.

    Volcano lets each gang in some seconds after its creation. Pods that only a person can unblock,
    such as gated ones, find no nodes elsewhere either.
    """
    said, report = observed.unschedulable.get(child.name), child.report
    if said is None or report is None or report.phase is not JobPhase.PENDING or _began(child):
        return None
    if not said.message and not lacks_pods(observed, child):
        return None
    found = observed.pod_troubles.get(child.name)
    trouble = None if found is None else found.trouble
    return None if trouble is not None and trouble.kind is TroubleKind.BLOCKED else said


def _unschedulable_due(
    observed: Observed, sub_job: SubJob, child: Child, cluster: Cluster
) -> datetime | None:
    """Return until when a sub-job may wait after Volcano called it Unschedulable, if it did.

    While pods of others keep it from the nodes, that is asked again after the timeout.
    """
    said, timeout = unschedulable_in(observed, child), observed.limits.unschedulable
    if said is None or not timeout or child.binding is None or not child.binding.applied_since:
        return None
    due = max(said.since, child.binding.applied_since) + timeout
    if due <= observed.now and _is_kept_by_others(observed, sub_job, child, cluster):
        return observed.now + timeout
    return due


def _is_kept_by_others(observed: Observed, sub_job: SubJob, child: Child, cluster: Cluster) -> bool:
    """Return whether pods of others, and nothing else, keep a sub-job from the nodes."""
    if cluster.view is None:
        return False
    namespace, ground = observed.hyperjob.namespace, ground_of(cluster.name, cluster.view)
    own, pods = f"{namespace}/{child.name}", dict(sub_job.size.items)
    if unfit(ground.without({own}), pods, {}) is None:
        return False
    mates = {f"{namespace}/{name}" for name in observed.jobs} - {own}
    return unfit(ground.only(mates), pods, {}) is None


def lacks_pods(observed: Observed, child: Child) -> bool:
    """Return whether a cluster has created no pod of a vcjob for some seconds."""
    due = _pods_due(child)
    return due is not None and due <= observed.now


def _pods_due(child: Child) -> datetime | None:
    """Return when the lack of all pods of a vcjob is worth a message; None if it has some."""
    report, binding = child.report, child.binding
    if report is None or binding is None or binding.applied_since is None or _began(child):
        return None
    waits = report.phase is JobPhase.PENDING and not report.pods.total
    return binding.applied_since + PATIENCE if waits else None


def _began(child: Child) -> bool:
    """Return whether a pod of the present attempt has run."""
    if child.report is not None and child.report.has_run:
        return True
    return child.record is not None and bool(child.record.start_time)


def _on_nodes(demand: Resources, cluster: Cluster) -> bool:
    """Return whether some pods of a sub-job, all of which exist, have a node."""
    measure = measure_of(demand)
    waiting = cluster.unscheduled
    return waiting is not None and waiting.get(measure, 0) < demand.get(measure, 0)


def _without_node(observed: Observed, sub_job: SubJob, child: Child) -> bool:
    """Return whether no pod of a sub-job has a node, as far as its cluster reports that."""
    cluster = _cluster_of(observed, child)
    if cluster is None or cluster.unscheduled is None:
        return False
    return not _on_nodes(sub_job.size.demand, cluster)


def _cluster_of(observed: Observed, child: Child) -> Cluster | None:
    return next((each for each in observed.clusters if each.name == child.cluster), None)


def _again(
    observed: Observed, sub_job: SubJob, child: Child, refusing: tuple[str, ...]
) -> Recreation:
    """Return the recreation of a sub-job without its cluster, which comes last, and `refusing`."""
    own = (child.cluster,) if child.cluster else ()
    leave = *(name for name in refusing if name not in own), *own
    refused, said = refusal_of(observed, child), unschedulable_in(observed, child)
    reason, first = Reason.PODS_PENDING, _EXCLUDED_FIRST
    if refused is not None:
        reason, why = Reason.PODS_REFUSED, refused_text(child.cluster, refused.message)
    elif queue := closed_in(observed, sub_job, child):
        reason, why, leave = Reason.QUEUE_NOT_OPEN, queue_closed_text(child.cluster, queue), ()
    elif said is not None:
        why = unschedulable_text(child.cluster, said.message)
    elif (lost := _lost_before(observed, child)) is not None:
        why = f"cluster {child.cluster} is not Ready since {rfc3339(lost)} and has not received it"
    else:
        within = f"{observed.limits.start / timedelta(minutes=1):g} minutes"
        why = f"none of its pods ran on {child.cluster} within {within}"
        first = max(_EXCLUDED_FIRST, observed.limits.start)
    return Recreation(
        name=child.name,
        reason=reason,
        why=why,
        leave=leave,
        leave_for=_excluded_for(child, first),
        delayed=observed.admission is QueueAdmission.NONE,
    )


def _excluded_for(child: Child, first: timedelta) -> timedelta:
    """Return for how long a sub-job does not use a cluster again where no pod of it started."""
    return doubled(first, child.attempt, max(first, _EXCLUDED_LONGEST))


def unreported(observed: Observed, sub_job: SubJob) -> list[str]:
    """Return the resources of a sub-job that no cluster reports, of those that a vcjob has.

    Volcano Global's capacity plugin lets a queue use none of them.
    """
    known = [each.allocatable for each in observed.clusters if each.allocatable.keys() - {PODS}]
    asked = sorted(sub_job.size.demand.keys() - {PODS}) if known else []
    return [
        name
        for name in asked
        if not name.startswith(DEVICE_CLASS) and not any(name in each for each in known)
    ]
