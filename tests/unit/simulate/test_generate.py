"""The generator gives the asked amount of work, and the same jobs for the same seed."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperjob.simulate.generate import SHAPES, Demand, Estimates, generate

DAY = 86400.0


@settings(max_examples=30, deadline=None)
@given(
    shape=st.sampled_from(sorted(SHAPES)),
    load=st.floats(0.2, 1.2),
    days=st.sampled_from([1.0, 7.0, 30.0]),
    seed=st.integers(0, 1000),
)
def test_the_work_is_what_was_asked_for(shape: str, load: float, days: float, seed: int) -> None:
    demand = Demand(jobs=400, days=days, load=load, shape=shape)
    jobs = generate(demand, accelerators=512, largest=256, seed=seed)
    longest = max(job.duration for job in jobs)
    work = sum(job.duration * job.gpus for job in jobs)
    assert longest <= min(7.0, days / 4) * DAY
    if longest < min(7.0, days / 4) * DAY * 0.999:
        assert work == pytest.approx(load * 512 * days * DAY, rel=0.02)
    else:
        assert work <= load * 512 * days * DAY * 1.02
    assert all(0 <= job.arrival <= days * DAY for job in jobs)
    assert max(job.gpus for job in jobs) <= 256
    assert len({job.name for job in jobs}) == 400
    assert jobs == generate(demand, accelerators=512, largest=256, seed=seed)
    assert jobs != generate(demand, accelerators=512, largest=256, seed=seed + 1)


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
