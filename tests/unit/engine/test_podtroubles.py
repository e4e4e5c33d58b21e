"""What the pods of a member say: who ended, who is started again, and what the others wait for."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hyperjob.client.members import pod_trouble
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.resources import CORE_EVENTS, PODS
from hyperjob_engine.members.facts import event_fact, pod_fact
from hyperjob_engine.members.fold import MemberFold
from hyperjob_engine.reasons.pods import PodsTrouble, TroubleKind, pods_trouble_text
from hyperjob_engine.reasons.reason import Reason

CREATED = "2026-01-02T00:00:00Z"
START = datetime(2026, 1, 2, tzinfo=UTC)
LATE = START + timedelta(hours=1)
JOB = "ns/hj-a-0"


def pod(phase: str = "Pending", *, name: str = "p-0", policy: str = "Never", **more: Any) -> Object:
    """Return a pod of task `w`; `more` are fields of its status, `spec` and `metadata` of these."""
    spec = {
        "nodeName": "n1",
        "restartPolicy": policy,
        "containers": [{"name": "main", "image": "registry/train:1"}, {"name": "side"}],
        **more.pop("spec", {}),
    }
    metadata = {
        "namespace": "ns",
        "name": name,
        "creationTimestamp": CREATED,
        "labels": {"volcano.sh/job-name": "hj-a-0", "volcano.sh/task-spec": "w"},
        **more.pop("metadata", {}),
    }
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase, **more}}


def states(*entries: Object) -> Object:
    return {"containerStatuses": list(entries)}


def init(*entries: Object) -> Object:
    return {"initContainerStatuses": list(entries)}


def waiting(reason: str, message: str = "", **entry: Any) -> Object:
    return {"name": "main", "state": {"waiting": {"reason": reason, "message": message}}, **entry}


def running(name: str = "main", *, since: str = CREATED, **entry: Any) -> Object:
    return {"name": name, "state": {"running": {"startedAt": since}}, **entry}


def ended(code: int, *, name: str = "main", reason: str = "Error", **entry: Any) -> Object:
    end = {"exitCode": code, "reason": reason, "finishedAt": CREATED}
    return {"name": name, "state": {"terminated": end}, **entry}


def last(code: int, *, restarts: int = 2, seconds: int = 5, reason: str = "Error") -> Object:
    begin = START - timedelta(seconds=seconds)
    end = {
        "exitCode": code,
        "reason": reason,
        "startedAt": begin.isoformat(),
        "finishedAt": CREATED,
    }
    return {"restartCount": restarts, "lastState": {"terminated": end}}


def unscheduled(message: str, **spec: Any) -> Object:
    said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    return pod(conditions=[{**said, "message": message}], spec={"nodeName": "", **spec})


LOOP = "CrashLoopBackOff"
AGAIN = "task w: pod p-0: container main ended with exit code"
CLAIMS = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]}
SIDECAR = {"initContainers": [{"name": "proxy", "restartPolicy": "Always"}]}
FETCH = {"initContainers": [{"name": "fetch"}]}
NONE: Any = (None, "")
BLOCKED, FAILED, CRASH = Reason.PODS_BLOCKED, Reason.TASKS_FAILED, Reason.CRASH_LOOP

TROUBLES: dict[str, tuple[Object, Any, str]] = {
    "it runs": (pod("Running", **states(running(), running("side"))), *NONE),
    "it succeeded": (pod("Succeeded", **states(ended(0))), *NONE),
    "its images are being pulled": (pod(**states(waiting("ContainerCreating"))), None, ""),
    "it is being deleted": (
        pod("Failed", **states(ended(1)), metadata={"deletionTimestamp": CREATED}),
        *NONE,
    ),
    "it failed": (
        pod("Failed", **states(ended(1))),
        FAILED,
        "task w: pod p-0 ended with exit code 1; the other pods run on",
    ),
    "the kernel killed it": (
        pod("Failed", **states(ended(137, reason="OOMKilled"))),
        FAILED,
        "task w: pod p-0 ended with exit code 137: OOMKilled; the other pods run on",
    ),
    "it was evicted": (
        pod("Failed", reason="Evicted", message="low on memory"),
        FAILED,
        "task w: pod p-0 failed: Evicted: low on memory; the other pods run on",
    ),
    "a container ended and another one runs": (
        pod("Running", **states(ended(5), running("side"))),
        FAILED,
        "task w: pod p-0: container main ended with exit code 5; its other containers run on",
    ),
    "a container ended, and its sidecar is started again and again": (
        pod(
            "Running",
            spec=SIDECAR,
            **init(waiting(LOOP, **last(1)) | {"name": "proxy"}),
            **states(ended(5), running("side")),
        ),
        FAILED,
        "task w: pod p-0: container main ended with exit code 5; its other containers run on",
    ),
    "a container ended well and another one runs": (
        pod("Running", **states(ended(0, reason="Completed"), running("side"))),
        *NONE,
    ),
    "a crash loop": (
        pod("Running", policy="OnFailure", **states(waiting(LOOP, "back-off 20s", **last(7)))),
        CRASH,
        f"{AGAIN} 7 and is started again and again",
    ),
    "a crash loop for lack of memory": (
        pod("Running", policy="Always", **states(waiting(LOOP, **last(137, reason="OOMKilled")))),
        CRASH,
        f"{AGAIN} 137 and is started again and again: OOMKilled",
    ),
    "a crash loop between two back-offs": (
        pod("Running", policy="OnFailure", **states(ended(7, **last(7)))),
        CRASH,
        f"{AGAIN} 7 and is started again and again",
    ),
    "the first failure, which is tried again": (
        pod("Running", policy="OnFailure", **states(ended(7))),
        *NONE,
    ),
    "the first restart runs": (
        pod("Running", policy="OnFailure", **states(running(**last(7, restarts=1)))),
        *NONE,
    ),
    "it ran for long before each failure": (
        pod("Running", policy="OnFailure", **states(running(**last(7, seconds=3600)))),
        *NONE,
    ),
    "a program that ends well is started again": (
        pod("Running", policy="Always", **states(waiting(LOOP, **last(0, reason="Completed")))),
        CRASH,
        f"{AGAIN} 0 and is started again, since restartPolicy is Always",
    ),
    "a program that takes an hour is started again": (
        pod("Running", policy="Always", **states(running(**last(0, restarts=1, seconds=3600)))),
        CRASH,
        f"{AGAIN} 0 and is started again, since restartPolicy is Always",
    ),
    "without a restartPolicy it is Always": (
        pod("Running", policy="", **states(waiting(LOOP, **last(0)))),
        CRASH,
        f"{AGAIN} 0 and is started again, since restartPolicy is Always",
    ),
    "an init container runs": (
        pod(spec=FETCH, **init(running("fetch")), **states(waiting("PodInitializing"))),
        Reason.PODS_PENDING,
        "init container fetch runs: pod p-0 waits",
    ),
    "a sidecar runs before the others": (
        pod(spec=SIDECAR, **init(running("proxy")), **states(waiting("PodInitializing"))),
        *NONE,
    ),
    "an init container is started again and again": (
        pod(
            policy="OnFailure",
            spec=FETCH,
            **init({**waiting(LOOP, **last(4)), "name": "fetch"}),
            **states(waiting("PodInitializing")),
        ),
        CRASH,
        (
            "task w: pod p-0: init container fetch ended with exit code 4 and is started again"
            " and again"
        ),
    ),
    "an init container failed": (
        pod("Failed", spec=FETCH, **init(ended(4, name="fetch"))),
        FAILED,
        "task w: pod p-0 ended with exit code 4; the other pods run on",
    ),
    "a Secret of a variable is missing": (
        pod(**states(waiting("CreateContainerConfigError", 'secret "no-such" not found'))),
        BLOCKED,
        "Secret no-such not found: pod p-0 waits",
    ),
    "a key is missing": (
        pod(**states(waiting("CreateContainerConfigError", "couldn't find key t in Secret ns/s"))),
        BLOCKED,
        (
            "CreateContainerConfigError of container main: couldn't find key t in Secret ns/s:"
            " pod p-0 waits"
        ),
    ),
    "an image is not there": (
        pod(**states(waiting("ErrImagePull", "not found"))),
        BLOCKED,
        "image registry/train:1 of container main cannot be pulled: not found: pod p-0 waits",
    ),
    "an image is not there, by a kubelet that pauses": (
        pod(
            **states(
                waiting(
                    "ImagePullBackOff",
                    'Back-off pulling image "registry/train:1": ErrImagePull: not found',
                )
            )
        ),
        BLOCKED,
        "image registry/train:1 of container main cannot be pulled: not found: pod p-0 waits",
    ),
    "a name of an image is wrong": (
        pod(**states(waiting("InvalidImageName"))),
        BLOCKED,
        "InvalidImageName of container main: pod p-0 waits",
    ),
    "a claim is missing": (
        unscheduled('0/3 nodes are available: persistentvolumeclaim "no-claim" not found.'),
        BLOCKED,
        "PersistentVolumeClaim no-claim not found: pod p-0 waits",
    ),
    "a claim is not bound": (
        unscheduled("pod has unbound immediate PersistentVolumeClaims.", **CLAIMS),
        BLOCKED,
        "PersistentVolumeClaim data is not bound: pod p-0 waits",
    ),
    "a gate": (
        pod(spec={"nodeName": "", "schedulingGates": [{"name": "example.com/wait"}]}),
        BLOCKED,
        "scheduling gate example.com/wait is not removed: pod p-0 waits",
    ),
    "a scheduler that is not there": (
        pod(spec={"nodeName": "", "schedulerName": "koord-scheduler"}),
        Reason.PODS_PENDING,
        "scheduler koord-scheduler says nothing of the pod: pod p-0 waits",
    ),
    "no node": (
        unscheduled("0/3 nodes are available"),
        Reason.PODS_PENDING,
        "no node for the pod: 0/3 nodes are available: pod p-0 waits",
    ),
    "nothing is known of it": ({}, *NONE),
    "nonsense": (pod("Running", containerStatuses=[{"state": "x", "restartCount": "y"}, 3]), *NONE),
}


@pytest.mark.parametrize(("raw", "reason", "text"), TROUBLES.values(), ids=TROUBLES.keys())
def test_a_pod_has_a_trouble_in_words(raw: Object, reason: Reason | None, text: str) -> None:
    fold = fold_of(raw)
    found = fold.trouble(JOB, LATE)
    if reason is None:
        assert found is None
    else:
        assert (found.trouble.reason, pods_trouble_text(found)) == (reason, text)
        words = pod_trouble(raw)
        assert words
        assert words.partition(" ")[0] in text


def fold_of(*raws: Object) -> MemberFold:
    fold = MemberFold()
    fold.replace(PODS, map(pod_fact, raws))
    return fold


def worst(fold: MemberFold, *, after: float = 3600) -> PodsTrouble:
    return fold.trouble(JOB, START + timedelta(seconds=after))


def kind(fold: MemberFold, *, after: float) -> TroubleKind | None:
    found = worst(fold, after=after).trouble
    return None if found is None else found.kind


GATED = {"nodeName": "", "schedulingGates": [{"name": "g"}]}
CRASHED = pod("Running", policy="OnFailure", name="p-1", **states(waiting(LOOP, **last(7))))
FAILING = pod("Failed", name="p-2", **states(ended(1)))


def test_the_worst_trouble_of_the_pods_is_told_with_their_number() -> None:
    gated = [pod(name=f"p-{n}", spec=GATED) for n in (7, 8, 9)]
    fold = fold_of(*gated)
    assert (
        pods_trouble_text(worst(fold))
        == "scheduling gate g is not removed: pod p-7 and 2 more wait"
    )
    fold.put(PODS, pod_fact(CRASHED))
    assert worst(fold).pod == "p-1"
    fold.put(PODS, pod_fact(FAILING))
    assert (worst(fold).pod, worst(fold).pods, worst(fold).failed) == ("p-2", 1, 1)
    for name in ("p-1", "p-2", "p-7", "p-8", "p-9"):
        fold.drop(PODS, f"ns/{name}")
    assert fold.trouble(JOB, LATE) is None


@pytest.mark.parametrize("raw", [FAILING, pod(spec=GATED)], ids=["a failure", "a gate"])
def test_a_trouble_counts_after_ten_seconds_in_which_it_may_end_by_itself(raw: Object) -> None:
    fold = fold_of(raw)
    early = worst(fold, after=9)
    assert (early.trouble, early.changes) == (None, START + timedelta(seconds=10))
    assert worst(fold, after=10).trouble is not None
    assert worst(fold, after=10).changes is None


def test_a_container_has_left_its_crash_loop_after_a_minute() -> None:
    fold = fold_of(pod("Running", policy="OnFailure", **states(running(**last(7)))))
    assert kind(fold, after=0) is kind(fold, after=59) is TroubleKind.CRASH_LOOP
    assert worst(fold, after=59).changes == START + timedelta(seconds=60)
    assert fold.trouble(JOB, START + timedelta(seconds=60)) is None


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (unscheduled("3 Insufficient cpu"), unscheduled("12 Insufficient cpu")),
        (
            pod(**states(waiting("ErrImagePull", "unauthorized"))),
            pod(**states(waiting("ImagePullBackOff", 'Back-off pulling image "registry/train:1"'))),
        ),
    ],
    ids=["numbers", "a pause"],
)
def test_words_stay_while_only_numbers_or_a_pause_of_the_kubelet_differ(
    first: Object, second: Object
) -> None:
    fold = fold_of(first)
    text = pods_trouble_text(worst(fold))
    fold.news()
    fold.put(PODS, pod_fact(second))
    assert pods_trouble_text(worst(fold)) == text
    assert fold.news().jobs == frozenset()


def mount(message: str, *, pod: str = "p-0", at: str = "2026-01-02T00:00:05Z") -> Object:
    return {
        "metadata": {"namespace": "ns", "name": "e1"},
        "involvedObject": {"kind": "Pod", "namespace": "ns", "name": pod},
        "reason": "FailedMount",
        "message": f'MountVolume.SetUp failed for volume "c" : {message}',
        "lastTimestamp": at,
    }


STARTS = pod(**states(waiting("ContainerCreating")))


def told(event: Object) -> str:
    fold = fold_of(STARTS)
    fold.news()
    fold.put(CORE_EVENTS, event_fact(event))
    found = fold.trouble(JOB, LATE)
    assert (JOB in fold.news().jobs) or found is None
    return "" if found is None else pods_trouble_text(found)


def test_a_volume_that_cannot_be_mounted_is_told_by_its_event() -> None:
    missing = mount('configmap "not-there" not found')
    assert told(missing) == "ConfigMap not-there not found: pod p-0 waits"
    assert told(mount("no route to host")) == (
        "a volume cannot be mounted: no route to host: pod p-0 waits"
    )
    assert told(mount("x", pod="other")) == ""
    assert told(mount("x", at="2026-01-01T23:59:59Z")) == "", "an earlier pod of the name"
    vague = {**missing, "message": "Unable to attach or mount volumes: unmounted volumes=[c]"}
    assert event_fact(vague) is None


def test_a_volume_that_was_mounted_at_last_is_told_no_more() -> None:
    for runs in (pod("Running", **states(running())), pod("Running")):
        fold = fold_of(STARTS)
        fold.put(CORE_EVENTS, event_fact(mount('secret "s" not found')))
        assert worst(fold).trouble is not None
        fold.put(PODS, pod_fact(runs))
        assert fold.trouble(JOB, LATE) is None


def test_what_is_kept_of_troubles_is_bounded() -> None:
    endless = "x" * 100_000
    image = {"containers": [{"name": endless, "image": endless}]}
    status = [
        {"name": endless, "state": {"waiting": {"reason": "ErrImagePull", "message": endless}}}
    ]
    fact = pod_fact(pod(spec=image, containerStatuses=status))
    assert len(fact.seen.trouble.words) + len(fact.seen.trouble.detail) < 1200
    fold = fold_of(
        *(pod(name=f"p-{n}", **states(waiting("ContainerCreating"))) for n in range(1001))
    )
    for number in range(1001):
        fold.put(CORE_EVENTS, event_fact(mount('secret "s" not found', pod=f"p-{number}")))
    assert worst(fold).pods == 1000
