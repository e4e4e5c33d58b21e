"""The policies to compare: HyperJob's own and its rivals. Pure.

A policy changes the objects of a scenario, on which the controller runs.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_queueing.queues import DISABLED, PATIENCE, PREEMPTION
from hyperjob_sandbox.simulate.workload import Scenario, Submission

OURS: Final = "hyperjob"
_LINE: Final = "everybody"


def _unchanged(scenario: Scenario) -> Scenario:
    return scenario


def _best_effort(scenario: Scenario) -> Scenario:
    """Return the scenario in which nothing is stopped or kept free for another, as Kueue admits."""
    return replace(scenario, queues=[_yielding(queue) for queue in scenario.queues])


def _one_cluster(scenario: Scenario) -> Scenario:
    """Return the scenario with each job on one cluster, as in MultiKueue."""
    one = _with_jobs(scenario, lambda spec: {**spec, "maxDomains": 1})
    return replace(one, queues=[_marked(queue, {PATIENCE: DISABLED}) for queue in one.queues])


def _fifo(scenario: Scenario) -> Scenario:
    """Return the scenario with one first-in-first-out queue without priorities."""
    queue: Object = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "Queue",
        "metadata": {"name": _LINE, "annotations": {PREEMPTION: DISABLED, PATIENCE: DISABLED}},
        "spec": {"weight": 1, "reclaimable": False, "dequeueStrategy": "fifo"},
        "status": {"state": "Open"},
    }
    return replace(_with_jobs(scenario, _in_line), queues=[queue])


POLICIES: Final[Mapping[str, tuple[str, Callable[[Scenario], Scenario]]]] = {
    OURS: ("HyperJob's controller", _unchanged),
    "best-effort": ("each job that fits starts, and none is stopped for another", _best_effort),
    "one-cluster": ("each job on one cluster only, as MultiKueue places", _one_cluster),
    "fifo": ("one queue in order of arrival, without priorities and shares", _fifo),
}


def _with_jobs(scenario: Scenario, change: Callable[[Object], Object]) -> Scenario:
    def changed(job: Submission) -> Submission:
        spec = change(job.hyperjob["spec"])
        return replace(job, hyperjob={**job.hyperjob, "spec": spec})

    return replace(scenario, jobs=[changed(job) for job in scenario.jobs])


def _in_line(spec: Object) -> Object:
    def moved(template: Object) -> Object:
        kept = {key: value for key, value in template.items() if key != "priorityClassName"}
        return {**kept, "queue": _LINE}

    groups = [
        {**group, "templateSpec": moved(group["templateSpec"])} for group in spec["replicatedJobs"]
    ]
    return {**spec, "replicatedJobs": groups}


def _yielding(queue: Object) -> Object:
    """Return a queue that takes back nothing, stops no job for another and keeps no room."""
    made = _marked(queue, {PREEMPTION: DISABLED, PATIENCE: DISABLED})
    return {**made, "spec": {**queue["spec"], "reclaimable": False}}


def _marked(queue: Object, marks: Mapping[str, str]) -> Object:
    """Return a queue with more annotations."""
    metadata = queue["metadata"]
    annotations = {**(metadata.get("annotations") or {}), **marks}
    return {**queue, "metadata": {**metadata, "annotations": annotations}}
