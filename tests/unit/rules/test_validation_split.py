"""Whether accelerators can be shared out, held against trying all ways of doing it."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperjob_core.api.field import ROOT, SPEC
from hyperjob_rules.validation.rules import Report
from hyperjob_rules.validation.split import demands, largest_task, sub_jobs, validate_split
from hyperjob_rules.validation.update import validate_update

GPU = "nvidia.com/gpu"


def task(pods: int, each: int) -> dict[str, Any]:
    resources = {"limits": {GPU: each}} if each else {}
    return {"replicas": pods, "template": {"spec": {"containers": [{"resources": resources}]}}}


def job(accelerators: int, *tasks: dict[str, Any], mode: str, replicas: int = 1) -> dict[str, Any]:
    policy = {"mode": mode, "accelerators": accelerators, "acceleratorType": GPU}
    return {"replicas": replicas, "splitPolicy": policy, "templateSpec": {"tasks": list(tasks)}}


def refused(raw: dict[str, Any], *, max_domains: int | None = None) -> list[str]:
    report = Report()
    validate_split(raw, ROOT, report, max_domains=max_domains)
    return [str(found.error) for found in report.refusals]


def test_a_replicated_job_without_replicas_has_one_sub_job() -> None:
    raw = job(1, task(1, 1), mode="static")
    assert refused({**raw, "replicas": None}) == refused(raw) == []
    assert refused({**raw, "replicas": 2}) != []


counts = st.integers(1, 6)


@pytest.mark.parametrize("mode", ["static", "auto"])
@pytest.mark.parametrize("change", [{"templateSpec": None}, {"templateSpec": {}}, {}])
def test_a_split_of_no_tasks_names_the_accelerator_that_none_requests(
    mode: str, change: dict[str, Any]
) -> None:
    raw = {key: value for key, value in job(8, mode=mode).items() if key != "templateSpec"}
    (said,) = refused(raw | change)
    assert "acceleratorType: Invalid value" in said
    assert "is in no container's resources.limits" in said
    assert largest_task(raw | change) is None
    assert sub_jobs(raw | change) == (None if mode == "auto" else 1)


@settings(deadline=None)
@given(st.integers(1, 60), st.integers(0, 4), counts, counts, st.integers(2, 5))
def test_equal_shares_are_whole_pods(total: int, master: int, pods: int, each: int, replicas: int):
    tasks = (task(1, master), task(pods + 1, each))
    fits = any(
        replicas * master + workers * each == total for workers in range(replicas, total + 1)
    )
    assert (refused(job(total, *tasks, mode="static", replicas=replicas)) == []) is fits


@settings(deadline=None)
@given(st.integers(1, 60), st.integers(0, 4), counts, counts)
def test_one_replica_keeps_the_templates_size_but_for_the_last(
    total: int, master: int, pods: int, each: int
):
    size = master + (pods + 1) * each
    rest = total % size
    fits = rest == 0 or any(master + workers * each == rest for workers in range(1, rest + 1))
    raw = job(total, task(1, master), task(pods + 1, each), mode="static")
    assert (refused(raw) == []) is fits
    assert sub_jobs(raw) == -(-total // size)


@settings(deadline=None)
@given(st.integers(1, 60), st.integers(0, 4), counts, counts, st.none() | st.integers(1, 5))
def test_auto_finds_any_number_of_sub_jobs(
    total: int, master: int, pods: int, each: int, max_domains: int | None
):
    fits = any(
        number * master + workers * each == total
        for number in range(1, min(max_domains or total, total) + 1)
        for workers in range(number, total + 1)
    )
    raw = job(total, task(1, master), task(pods + 1, each), mode="auto")
    assert (refused(raw, max_domains=max_domains) == []) is fits
    assert sub_jobs(raw) is None


@settings(deadline=None)
@given(st.integers(1, 60), st.integers(0, 4), counts, counts, st.integers(1, 4), st.booleans())
def test_the_numbers_that_would_fit_do_fit(
    total: int, master: int, pods: int, each: int, replicas: int, auto: bool
):
    mode = "auto" if auto else "static"
    tasks = (task(1, master), task(pods + 1, each))
    count = 1 if auto else replicas
    for text in refused(job(total, *tasks, mode=mode, replicas=count)):
        near = text.rpartition("; ")[2].removesuffix(" would fit").split(" or ")
        for number in map(int, near):
            assert refused(job(number, *tasks, mode=mode, replicas=count)) == []


def test_huge_numbers_take_no_time():
    tasks = (task(1, 2**20 + 7), task(2**30, 2**29 + 3))
    assert refused(job(2**31 - 1, *tasks, mode="auto"))
    assert sub_jobs(job(2**31 - 1, task(1, 1), mode="static")) == 2**31 - 1


@pytest.mark.parametrize(
    ("policy", "fields"),
    [
        ({"mode": "static"}, []),
        ({}, []),
        ({"mode": "auto"}, ["accelerators", "acceleratorType"]),
        ({"mode": "static", "accelerators": 4}, ["acceleratorType"]),
        ({"acceleratorType": GPU}, ["accelerators"]),
    ],
)
def test_number_and_type_come_together(policy: dict[str, Any], fields: list[str]):
    report = Report()
    raw = {"splitPolicy": policy, "templateSpec": {"tasks": [task(1, 1)]}}
    validate_split(raw, SPEC, report, max_domains=None)
    assert [found.error.field for found in report.refusals] == [
        f"spec.splitPolicy.{field}" for field in fields
    ]


def test_an_init_container_may_need_more_than_the_containers_together():
    spec = {
        "containers": [{"resources": {"limits": {GPU: 1}}}, {"resources": {"limits": {GPU: "2"}}}],
        "initContainers": [{"resources": {"requests": {GPU: 4}}}],
    }
    template = {"tasks": [{"replicas": 2, "template": {"spec": spec}}]}
    assert [demand.total for demand in demands({"templateSpec": template}, GPU)] == [8]


@pytest.mark.parametrize(
    ("raw", "largest"),
    [
        (job(9, task(1, 1), task(2, 1), mode="static", replicas=2), (1, 4)),
        (job(8, task(4, 2), mode="auto"), (0, 4)),
        (job(8, task(4, 2), mode="static"), None),
        (job(8, task(4, 0), mode="auto"), None),
        ({"templateSpec": {"tasks": [task(1, 1)]}}, None),
    ],
)
def test_the_largest_task_that_a_split_can_make(raw: dict[str, Any], largest: tuple[int, int]):
    assert largest_task(raw) == largest


@pytest.mark.parametrize(
    ("policy", "sized"),
    [
        ({"mode": "auto"}, True),
        ({"mode": "static", "accelerators": 8}, True),
        ({"mode": "static"}, False),
        (None, False),
    ],
)
def test_replicas_cannot_change_where_a_split_decides_them(
    policy: dict[str, Any] | None, sized: bool
) -> None:
    stored = {**job(8, task(2, 1), mode="auto"), "name": "a", "splitPolicy": policy}
    old = {
        "metadata": {"name": "x"},
        "spec": {"replicatedJobs": [stored]},
        "status": {"state": {"phase": "Running"}, "jobs": [{"name": "x-a-0"}]},
    }
    new = {**old, "spec": {"replicatedJobs": [{**stored, "replicas": 2}]}}
    found = [str(error) for error in validate_update(new, old).errors]
    assert any("splitPolicy" in each and ".replicas: " in each for each in found) is sized
