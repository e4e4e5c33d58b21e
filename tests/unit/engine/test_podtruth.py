"""A sub-job that Volcano calls Running or Pending, and what its pods say of it."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from hyperjob_core.api.meta import Object
from hyperjob_engine.model.observed import Observed
from hyperjob_engine.plan import plan
from hyperjob_engine.reasons.pods import PodsTrouble, PodTrouble, TroubleKind
from tests.unit.engine.builders import (
    NOW,
    child,
    cluster,
    group,
    hyperjob,
    observed,
    task,
    template,
)

FIRST, SECOND = "hj-trainer-0", "hj-trainer-1"
ENDED = PodTrouble(TroubleKind.ENDED, "head", " ended with exit code 3", failed=True, exit_code=3)
IN_POD = replace(
    ENDED, failed=False, exit_code=None, words=": container main ended with exit code 3"
)
LOOP = PodTrouble(TroubleKind.CRASH_LOOP, "worker", ": container main is started again and again")
MISSING = PodTrouble(TroubleKind.BLOCKED, words="ConfigMap x not found")
NO_NODE = PodTrouble(TroubleKind.WAITING, words="no node for the pod")
RUNS, STARTS = {"running": 8}, {"pending": 6, "running": 2}
DEAD = "task head: pod p-0 ended with exit code 3; the other pods run on"


def of(trouble: PodTrouble | None, **fields: Any) -> PodsTrouble:
    return PodsTrouble(trouble=trouble, pod="p-0", pods=1, **fields)


def spec(*policies: Object, own: tuple[Object, ...] = (), **fields: Any) -> Object:
    tasks = task("head", policies=list(own)), task("worker", replicas=7)
    return template(*tasks, policies=list(policies), **fields)


def seen(
    *troubles: PodsTrouble | None,
    phase: str = "Running",
    pods: Object = RUNS,
    jobs: Object | None = None,
    status: Object | None = None,
    **fields: Any,
) -> Observed:
    """Return a HyperJob of two sub-jobs in `phase`, with the troubles of their pods."""
    raw = hyperjob(group(templateSpec=jobs or spec()), status=status, **fields)
    objects = [*child(0, phase, pods=pods), *child(1, phase, pods=pods)]
    known = zip((FIRST, SECOND), troubles, strict=False)
    given = {name: trouble for name, trouble in known if trouble is not None}
    return replace(observed(raw, *objects, clusters=(cluster("a"),)), pod_troubles=given)


def derived(found: Observed) -> Object:
    return plan(found).status


def told(found: Observed) -> tuple[str, str, str, str]:
    """Return phase and reason of the HyperJob, reason and message of its first sub-job."""
    status = derived(found)
    state, first = status["state"], status["jobs"][0]
    return state["phase"], state["reason"], first.get("reason", ""), first.get("message", "")


def running(message: str) -> tuple[str, str, str, str]:
    return ("Running", "JobsRunning", "", message)


def failing(reason: str, message: str) -> tuple[str, str, str, str]:
    return ("Degraded", reason, reason, message)


AS_VOLCANO, DEGRADED = running(""), failing("TasksFailed", DEAD)
RESTART = {"action": "RestartJob"}
ON_FAILURE = {**RESTART, "event": "PodFailed"}

WORKER = replace(ENDED, task="worker")
FEW, WAITING = spec(minAvailable=2), {"running": 5, "pending": 3}


RUNNING: dict[str, tuple[PodTrouble, dict[str, Any], tuple[str, str, str, str]]] = {
    "a head has failed": (ENDED, {}, DEGRADED),
    "Volcano restarts its vcjob after a failure": (ENDED, {"jobs": spec(ON_FAILURE)}, AS_VOLCANO),
    "it does after any event": (ENDED, {"jobs": spec({**RESTART, "events": ["*"]})}, AS_VOLCANO),
    "it does after that exit code": (
        ENDED,
        {"jobs": spec(own=({**RESTART, "exitCode": 3},))},
        AS_VOLCANO,
    ),
    "it does after another exit code": (
        ENDED,
        {"jobs": spec({**RESTART, "exitCode": 4})},
        DEGRADED,
    ),
    "it does after an eviction": (
        ENDED,
        {"jobs": spec({**RESTART, "event": "PodEvicted"})},
        DEGRADED,
    ),
    "it does after an hour": (ENDED, {"jobs": spec({**ON_FAILURE, "timeout": "1h"})}, DEGRADED),
    "the last other pods have ended too": (ENDED, {"pods": {"failed": 8}}, AS_VOLCANO),
    "Volcano sees a container that ended when its pod ends": (
        IN_POD,
        {"jobs": spec(ON_FAILURE)},
        failing(
            "TasksFailed",
            "task head: pod p-0: container main ended with exit code 3;"
            " its other containers run on",
        ),
    ),
    "the only pod of a task failed, and fewer pods are needed": (ENDED, {"jobs": FEW}, DEGRADED),
    "one pod of many failed, and fewer are needed": (
        WORKER,
        {"jobs": FEW},
        running(DEAD.replace("head", "worker")),
    ),
    "one pod of many failed, and all are needed": (
        WORKER,
        {"jobs": spec(minAvailable=8)},
        failing("TasksFailed", DEAD.replace("head", "worker")),
    ),
    "a quorum decides": (ENDED, {"quorum": 1}, running(DEAD)),
    "containers crash again and again": (
        LOOP,
        {"jobs": spec(ON_FAILURE)},
        failing("CrashLoop", "task worker: pod p-0: container main is started again and again"),
    ),
    "a pod above those that are needed cannot start": (
        MISSING,
        {},
        running("ConfigMap x not found: pod p-0 waits"),
    ),
    "a pod above those that are needed has no node": (
        NO_NODE,
        {"jobs": FEW, "pods": WAITING},
        running("runs with 5 of 8 pods"),
    ),
    "a pod above those that are needed waits for a ConfigMap": (
        MISSING,
        {"jobs": FEW, "pods": WAITING},
        running("runs with 5 of 8 pods; ConfigMap x not found: pod p-0 waits"),
    ),
    "none above those that are needed runs": (
        MISSING,
        {"jobs": FEW, "pods": {"running": 2, "pending": 6}},
        running("runs with 2 of 8 pods; ConfigMap x not found: pod p-0 waits"),
    ),
    "a pod that is needed has no node": (NO_NODE, {"pods": WAITING}, AS_VOLCANO),
    "other pods of a sub-job with a minimum have succeeded": (
        NO_NODE,
        {"jobs": FEW, "pods": {"running": 5, "succeeded": 3}},
        AS_VOLCANO,
    ),
}


@pytest.mark.parametrize(("trouble", "given", "expected"), RUNNING.values(), ids=RUNNING.keys())
def test_a_running_sub_job(trouble: PodTrouble, given: dict[str, Any], expected: object) -> None:
    assert told(seen(of(trouble), of(trouble), **given)) == expected


def test_with_how_many_pods_a_sub_job_runs_is_said_of_the_hyperjob_too() -> None:
    found = derived(seen(jobs=spec(minAvailable=2), pods={"running": 5, "pending": 3}))
    assert found["state"]["message"] == (
        "2 of 2 sub-jobs run or completed, on a; each of hj-trainer-0, hj-trainer-1 is Running on"
        " a: runs with 5 of 8 pods"
    )


def test_a_sub_job_without_which_the_others_train_is_only_named() -> None:
    one, few = seen(of(LOOP)), seen(of(LOOP), minAvailable=1)
    assert told(one)[:2] == ("Degraded", "CrashLoop")
    message = derived(one)["state"]["message"]
    assert message.startswith("1 of 2 needed sub-jobs train; hj-trainer-0 is Running on a: task")
    assert told(few)[:2] == ("Running", "JobsRunning")
    assert "started again and again" in derived(few)["state"]["message"]


PENDING = {
    MISSING: ("PodsBlocked", "ConfigMap x not found: pod p-0 waits; 2 of 8 pods run"),
    NO_NODE: ("PodsPending", "no node for the pod: pod p-0 waits; 2 of 8 pods run"),
    LOOP: (
        "CrashLoop",
        "task worker: pod p-0: container main is started again and again; 2 of 8 pods run",
    ),
    None: ("PodsPending", "2 of 8 pods run"),
}


@pytest.mark.parametrize(("trouble", "expected"), PENDING.items())
def test_a_sub_job_that_starts(trouble: PodTrouble | None, expected: tuple[str, str]) -> None:
    found = told(seen(of(trouble), phase="Pending", pods=STARTS))
    assert (found[0], found[2:]) == ("Starting", expected)
    if trouble is not None:
        assert found[1] == expected[0]


def test_failed_pods_of_a_sub_job_that_completes_are_counted_and_not_forgotten() -> None:
    status = derived(seen(of(ENDED, failed=1), None, phase="Completed", pods={}))
    assert status["state"]["phase"] == "Completed"
    assert status["state"]["message"] == (
        "2 sub-jobs completed on a; hj-trainer-0 is Completed on a: 1 of 8 pods failed"
    )
    running = derived(seen(of(ENDED, failed=1), None, phase="Completed", pods={}))
    later = seen(phase="Completed", pods={}, status={"jobs": running["jobs"]})
    assert derived(later)["jobs"][0]["message"] == "1 of 8 pods failed"


def events(before: Observed, after: Observed) -> list[tuple[str, str]]:
    status = derived(before)
    known = replace(after.hyperjob, status=status)
    return [(each.type, each.reason) for each in plan(replace(after, hyperjob=known)).events]


def test_a_trouble_has_an_event_and_its_time_is_not_productive() -> None:
    well, dead = seen(), seen(of(ENDED), of(ENDED))
    assert events(well, dead) == [("Warning", "TasksFailed")]
    assert events(dead, dead) == []
    assert derived(well)["goodput"]["state"] == "productive"
    assert derived(dead)["goodput"]["state"] == "degraded"
    assert "share" not in derived(dead)["goodput"]
    starting = {"phase": "Pending", "pods": STARTS}
    found = events(seen(**starting), seen(of(MISSING), **starting))
    assert found == [("Warning", "PodsBlocked")]


def test_the_next_pass_is_when_a_trouble_may_begin_or_end_by_time_alone() -> None:
    soon = seen(of(None, changes=NOW + timedelta(seconds=7)))
    assert plan(soon).requeue_after == timedelta(seconds=7)
