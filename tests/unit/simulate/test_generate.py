"""The generator gives the asked amount of work, and the same jobs for the same seed."""

from collections import Counter
from dataclasses import replace
from math import log
from statistics import stdev

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperjob_sandbox.simulate.generate import SHAPES, Demand, Estimates, generate
from hyperjob_sandbox.simulate.jobs import JobNumbers, divide
from hyperjob_sandbox.simulate.workload import WorkloadError

DAY = 86400.0


@settings(max_examples=20)
@given(
    shape=st.sampled_from(sorted(SHAPES)),
    load=st.floats(0.2, 1.2),
    days=st.sampled_from([1.0, 7.0, 30.0]),
    seed=st.integers(0, 1000),
)
def test_the_work_is_what_was_asked_for(shape: str, load: float, days: float, seed: int) -> None:
    demand = Demand(jobs=1000, days=days, load=load, shape=shape)
    jobs = generate(demand, accelerators=256, largest=128, seed=seed)
    longest = max(job.duration for job in jobs)
    work = sum(job.duration * job.gpus for job in jobs)
    assert longest <= min(7.0, days / 4) * DAY
    assert work == pytest.approx(load * 256 * days * DAY, rel=0.02)
    assert all(0 <= job.arrival <= days * DAY for job in jobs)
    assert max(job.gpus for job in jobs) <= 128
    assert len({job.name for job in jobs}) == 1000
    assert jobs == generate(demand, accelerators=256, largest=128, seed=seed)
    assert jobs != generate(demand, accelerators=256, largest=128, seed=seed + 1)


def test_queues_priorities_and_estimates_have_their_shares() -> None:
    demand = Demand(
        jobs=4000,
        days=7,
        load=0.8,
        queues={"a": 3.0, "b": 1.0},
        urgent=0.1,
        estimates=Estimates(share=0.5, error=3.0),
    )
    jobs = generate(demand, accelerators=1024, largest=512, seed=1)
    assert Counter(job.queue for job in jobs)["a"] == pytest.approx(3000, rel=0.1)
    assert sum(job.priority == "urgent" for job in jobs) == pytest.approx(400, rel=0.2)
    ratios = [job.estimate / job.duration for job in jobs if job.estimate is not None]
    assert len(ratios) == pytest.approx(2000, rel=0.1)
    assert min(ratios) >= 1 / 3.01
    assert min(ratios) < 0.5
    assert 2 < max(ratios) <= 3.01 or max(ratios) <= 1 / min(job.duration for job in jobs)


def test_runs_of_one_template_take_similar_times_and_all_are_as_spread_as_without() -> None:
    def drawn(recurring: float) -> list[JobNumbers]:
        demand = Demand(jobs=4000, days=7, load=0.8, recurring=recurring)
        return generate(demand, accelerators=1024, largest=512, seed=1)

    def spread(jobs: list[JobNumbers]) -> float:
        return stdev(log(job.duration) for job in jobs)

    first: dict[str, JobNumbers] = {}
    often, never = drawn(0.7), drawn(0.0)
    again = [
        (first[job.template], job)
        for job in often
        if first.setdefault(job.template, job) is not job
    ]
    assert len(again) == pytest.approx(0.7 * 4000, rel=0.1)
    assert all(one.gpus == other.gpus for one, other in again)
    apart = stdev(log(one.duration / other.duration) for one, other in again)
    assert apart < 0.5 * spread(never)
    assert spread(often) == pytest.approx(spread(never), rel=0.15)
    assert len({job.template for job in never}) == 4000


def test_a_load_that_the_jobs_cannot_be_is_refused_with_the_load_and_the_number_that_can() -> None:
    demand = Demand(jobs=30, days=4, load=0.9, shape="philly")
    with pytest.raises(WorkloadError) as caught:
        generate(demand, accelerators=512, largest=256, seed=1)
    text = str(caught.value)
    assert "none runs longer than 24 hours" in text
    most = float(text.split("at most ")[1].split(",", maxsplit=1)[0])
    enough = int(text.split("about ")[1].split(" jobs", maxsplit=1)[0])
    assert 0 < most < 0.9
    assert generate(replace(demand, load=most), accelerators=512, largest=256, seed=1)
    assert generate(replace(demand, jobs=enough), accelerators=512, largest=256, seed=1)


def test_more_jobs_than_the_load_has_seconds_for_are_refused() -> None:
    demand = Demand(jobs=10_000, days=0.01, load=0.01, shape="philly")
    with pytest.raises(WorkloadError, match="none runs shorter than a second: ask for fewer jobs"):
        generate(demand, accelerators=8, largest=8, seed=1)


@pytest.mark.parametrize(
    ("gpus", "pods"),
    [(1, (1, 1)), (3, (1, 3)), (8, (1, 8)), (12, (3, 4)), (300, (75, 4)), (9, (9, 1))],
)
def test_pods_of_a_job_of_any_size_fill_whole_nodes(gpus: int, pods: tuple[int, int]) -> None:
    assert divide(gpus, 8) == pods
