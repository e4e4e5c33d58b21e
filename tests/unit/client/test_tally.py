"""Accelerators of HyperJobs by cluster and by queue, while HyperJobs come, change and go."""

from typing import Any

import pytest

from hyperjob.client.summary import Summary, read
from hyperjob.client.usage import demands
from tests.unit.cli.objects import GPU, hyperjob, sub_job

KEY = ("default", GPU)


def summary(phase: str, *jobs: Any, **more: Any) -> Summary:
    return read(hyperjob(phase, *jobs, **more))


def group(**fields: Any) -> Summary:
    raw = hyperjob()
    raw["spec"]["replicatedJobs"][0].update(fields)
    return read(raw)


DEMANDS = {
    "a HyperJob before its sub-jobs": (group(replicas=3), [(KEY, 24, True)]),
    "one replica by default": (group(replicas=None), [(KEY, 8, True)]),
    "a shared number of accelerators": (
        group(replicas=None, splitPolicy={"mode": "auto", "accelerators": 40}),
        [(KEY, 40, True)],
    ),
    "a suspended HyperJob before its sub-jobs": (
        summary("Pending", spec={"suspend": True}),
        [],
    ),
    "sub-jobs that wait": (
        summary("Queued", sub_job(phase="Queued"), sub_job(1, phase="Unplaced", cluster="a")),
        [(KEY, 8, True), (KEY, 8, True)],
    ),
    "sub-jobs that run or end": (
        summary(
            "Running",
            sub_job(phase="Running", cluster="a"),
            sub_job(1, phase="Completed", cluster="a"),
            sub_job(2, phase="Running", cluster="a", accelerators=0),
        ),
        [(KEY, 8, False)],
    ),
    "sub-jobs of a suspended HyperJob": (
        summary(
            "Suspended",
            sub_job(phase="Queued"),
            sub_job(1, phase="Terminating", cluster="a"),
            spec={"suspend": True},
        ),
        [(KEY, 8, False)],
    ),
    "sub-jobs of another replicated job than that of the spec": (
        summary("Running", {**sub_job(phase="Running", cluster="a"), "replicatedJob": "gone"}),
        [(KEY, 16, True)],
    ),
    "a HyperJob that has ended": (
        summary("Failed", sub_job(phase="Running", cluster="a")),
        [],
    ),
    "a HyperJob that is being deleted": (
        summary(
            "Running",
            sub_job(phase="Running", cluster="a"),
            metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"},
        ),
        [],
    ),
}


@pytest.mark.parametrize(("found", "expected"), DEMANDS.values(), ids=DEMANDS.keys())
def test_what_a_hyperjob_uses_or_waits_for(found: Summary, expected: Any) -> None:
    assert list(demands(found)) == expected
