"""The life of a vcjob, step by step, held against recordings of Volcano's job controller."""

from copy import deepcopy
from datetime import UTC, datetime

import pytest

from hyperjob_sandbox.member import jobstate
from hyperjob_sandbox.member.jobstate import SYNC, Happening, action_for
from tests.support.karmadarecording import RECORDED

NOW = datetime(2026, 11, 21, 3, 43, 19, tzinfo=UTC)


class Member:
    """A vcjob with its pods, moved by steps as the controller would."""

    def __init__(self, job):
        self.job = deepcopy(job)
        self.job["status"] = jobstate.initial_status(self.job, now=NOW)
        self.pods = {}
        self.admitted = True

    def step(self, action=SYNC):
        step = jobstate.step(
            self.job, list(self.pods.values()), action, admitted=self.admitted, now=NOW
        )
        for pod in step.create:
            self.pods[pod["metadata"]["name"]] = {**pod, "status": {"phase": "Pending"}}
        for name in step.delete:
            del self.pods[name]
        if step.status is not None:
            self.job = {**self.job, "status": step.status}
        return step

    def settle(self):
        for _ in range(10):
            step = self.step()
            if step.status is None and not step.create and not step.delete:
                return
        raise AssertionError("the job never comes to rest")

    def set(self, phase, *, task=None, count=None):
        names = [
            name
            for name, pod in self.pods.items()
            if task in (None, pod["metadata"]["annotations"]["volcano.sh/task-spec"])
        ]
        for name in names[:count]:
            self.pods[name]["status"] = {"phase": phase}

    @property
    def phase(self):
        return jobstate.job_phase(self.job)

    @property
    def status(self):
        return without_times(self.job["status"])


def running(job):
    """Return a vcjob whose pods run."""
    member = Member(job)
    member.step()
    member.set("Running")
    member.step()
    return member


def without_times(status):
    status = deepcopy(status)
    for condition in status.get("conditions") or ():
        condition.pop("lastTransitionTime")
    status.get("state", {}).pop("lastTransitionTime", None)
    status.pop("runningDuration", None)
    return status


def recorded_statuses(scene, *phases):
    found = {}
    for entry in RECORDED[scene]["manifestStatuses"]:
        status = without_times(entry["status"])
        if status:
            found[status["state"]["phase"], status.get("pending"), status.get("version")] = status
    return found


def test_a_job_that_completes_passes_through_the_recorded_statuses():
    recorded = list(recorded_statuses("completes").values())
    member = Member(RECORDED["completes"]["job"])
    seen = []
    for phase, count in (
        (None, 0),
        ("Running", 1),
        ("Running", 2),
        ("Succeeded", 1),
        ("Succeeded", 2),
    ):
        member.set(phase, count=count)
        member.step()
        seen.append(member.status)
    member.settle()
    seen.append(member.status)
    assert [status for status in recorded if status not in seen] == []
    assert member.phase == "Completed"


def test_a_job_whose_pods_fail_ends_as_recorded():
    member = running(RECORDED["fails"]["job"])
    member.set("Failed")
    member.settle()
    assert member.phase == "Failed"
    assert member.status == without_times(RECORDED["fails"]["manifestStatuses"][-1]["status"])


def test_the_end_of_the_master_completes_a_pytorch_job_as_recorded():
    recorded = recorded_statuses("pytorch")
    member = Member(RECORDED["pytorch"]["job"])
    assert member.status == recorded["Pending", None, None]
    member.step()
    assert member.status == recorded["Pending", 3, None]
    member.set("Running")
    member.step()
    assert member.status == recorded["Running", None, None]
    member.set("Succeeded", task="master")
    happening = Happening("TaskCompleted", task="master")
    member.step(action_for(member.job, happening))
    assert member.status == recorded["Completing", None, 1]
    member.settle()
    final = without_times(RECORDED["pytorch"]["manifestStatuses"][-1]["status"])
    assert {**member.status, "version": final["version"]} == final
    assert list(member.pods) == ["hetero-trainer-a-0-master-0"]


def test_no_pod_is_made_before_the_scheduler_lets_the_job_in():
    member = Member(RECORDED["completes"]["job"])
    member.admitted = False
    assert member.step() == jobstate.Step()
    member.admitted = True
    assert len(member.step().create) == 2


def test_a_finished_job_is_ended_once_and_then_left_alone():
    member = Member(RECORDED["completes"]["job"])
    member.step()
    member.set("Succeeded")
    member.settle()
    version = member.job["status"]["version"]
    assert member.step() == jobstate.Step(ends_group=True)
    assert member.job["status"]["version"] == version


def job_with(tasks=None, **spec):
    job = deepcopy(RECORDED["completes"]["job"])
    job["spec"].update(spec)
    if tasks:
        job["spec"]["tasks"] = tasks
    return job


def test_restart_makes_the_pods_again_until_the_retries_are_used_up():
    member = running(job_with(maxRetry=2))
    member.step("RestartJob")
    assert (member.phase, member.job["status"]["retryCount"]) == ("Restarting", 1)
    assert member.pods == {}
    member.step()
    member.step()
    retries = {
        pod["metadata"]["annotations"]["volcano.sh/job-retry-count"] for pod in member.pods.values()
    }
    assert (member.phase, retries) == ("Pending", {"1"})
    member.set("Running")
    member.step()
    member.step("RestartJob")
    member.settle()
    assert member.phase == "Failed"


@pytest.mark.parametrize(
    ("action", "moving", "end"),
    [
        ("AbortJob", "Aborting", "Aborted"),
        ("TerminateJob", "Terminating", "Terminated"),
        ("CompleteJob", "Completing", "Completed"),
    ],
)
def test_ending_actions_wait_for_the_pods(action, moving, end):
    member = running(RECORDED["completes"]["job"])
    member.step(action)
    assert member.phase == moving
    member.settle()
    assert member.phase == end
    assert member.pods == {}


def test_a_job_that_loses_too_many_pods_is_pending_again():
    member = running(RECORDED["completes"]["job"])
    member.set("Pending")
    member.step()
    assert member.phase == "Pending"


def test_enough_successes_complete_a_job_before_all_pods_end():
    member = running(job_with(minSuccess=1))
    member.set("Succeeded", count=1)
    member.step()
    assert member.phase == "Completed"
    member.settle()
    assert [pod["status"]["phase"] for pod in member.pods.values()] == ["Succeeded"]


def test_a_task_waits_for_the_tasks_it_depends_on():
    tasks = deepcopy(RECORDED["pytorch"]["job"]["spec"]["tasks"])
    tasks[1]["dependsOn"] = {"name": ["master"]}
    member = Member(job_with(tasks, minAvailable=1))
    assert [pod["metadata"]["labels"]["volcano.sh/task-spec"] for pod in member.step().create] == [
        "master"
    ]
    member.set("Running", task="master")
    assert len(member.step().create) == 2


@pytest.mark.parametrize(
    ("happening", "action"),
    [
        (Happening("TaskCompleted", task="master"), "CompleteJob"),
        (Happening("TaskCompleted", task="worker"), "SyncJob"),
        (Happening("PodEvicted", task="worker"), "RestartJob"),
    ],
)
def test_task_policies_come_before_job_policies(happening, action):
    assert action_for(RECORDED["pytorch"]["job"], happening) == action


def test_exit_codes_and_old_versions():
    job = job_with(
        policies=[
            {"exitCode": 137, "action": "RestartJob"},
            {"events": ["PodFailed", "PodEvicted"], "action": "TerminateJob"},
            {"event": "TaskCompleted", "action": "RestartTask"},
        ]
    )
    job["status"] = {"version": 1}
    ask = lambda *args, **more: action_for(job, Happening(*args, version=1, **more))  # noqa: E731
    assert ask("PodFailed", exit_code=137) == "RestartJob"
    assert ask("PodFailed", exit_code=1) == "TerminateJob"
    assert ask("TaskCompleted") == "RestartJob", "a task restarts with the whole vcjob"
    assert action_for(job, Happening("PodFailed", version=0)) == "SyncJob"


@pytest.mark.parametrize(
    ("most", "phase", "starts", "failed"),
    [
        (None, "Running", 2, False),
        (None, "Running", 3, True),
        (5, "Pending", 4, False),
        (5, "Pending", 5, True),
        (-1, "Running", 99, False),
        (None, "Failed", 99, False),
    ],
)
def test_a_task_fails_by_as_many_starts_of_its_living_containers_as_it_allows(
    most, phase, starts, failed
):
    member = Member(RECORDED["pytorch"]["job"])
    member.settle()
    for task in member.job["spec"]["tasks"]:
        task["maxRetry"] = most
    member.set(phase)
    for pod in member.pods.values():
        pod["status"]["containerStatuses"] = [{"name": "main", "restartCount": 0}]
    worker = next(name for name in member.pods if "worker" in name)
    member.pods[worker]["status"]["containerStatuses"][0]["restartCount"] = starts
    pods = list(member.pods.values())
    assert jobstate.task_failed(member.job, pods, "worker") is failed
    assert not jobstate.task_failed(member.job, pods, "master")
