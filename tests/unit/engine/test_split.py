import pytest

from hyperjob_engine.expansion.expand import SpecError, expand
from hyperjob_engine.model.observed import SplitPolicy
from hyperjob_engine.model.parse import parse_hyperjob
from hyperjob_engine.model.split import SplitError, resized, scale_of, static_sizes
from tests.unit.engine.builders import GPU, Object, group, hyperjob, task, template

MASTER = task("master", 1, 1)


def split(total: int | None, kind: str | None = GPU) -> SplitPolicy:
    return SplitPolicy(mode="static", accelerators=total, accelerator_type=kind)


@pytest.mark.parametrize(
    ("made_of", "total", "replicas", "sizes"),
    [
        pytest.param(template(task(replicas=4)), 256, 2, [128, 128], id="equal shares"),
        pytest.param(template(task(replicas=4)), 10, 4, [3, 3, 2, 2], id="as equal as possible"),
        pytest.param(template(task(gpus=8)), 64, 2, [4, 4], id="whole pods of 8"),
        pytest.param(template(MASTER, task(replicas=4)), 34, 2, [16, 16], id="a master stays"),
        pytest.param(template(task(replicas=16)), 64, 1, [16] * 4, id="the template's size"),
        pytest.param(template(task(replicas=16)), 40, 1, [16, 16, 8], id="the rest is smaller"),
        pytest.param(template(task(replicas=16)), 8, 1, [8], id="less than the template"),
    ],
)
def test_static_sizes_add_up(made_of: Object, total: int, replicas: int, sizes: list[int]) -> None:
    found = list(static_sizes(split(total), made_of, replicas))
    assert found == sizes
    scale = scale_of(made_of, GPU)
    assert sum(scale.fixed + pods * scale.per_pod for pods in found) == total


@pytest.mark.parametrize(
    ("made_of", "policy", "replicas", "error"),
    [
        (template(task(gpus=8)), split(20), 2, "whole number of pods"),
        (template(task(replicas=4)), split(1), 2, "at least one"),
        (template(MASTER, task(replicas=4)), split(2), 2, "at least one"),
        (template(task(gpus=0)), split(8), 2, f"no task requests {GPU}"),
        (template(task(replicas=0)), split(8), 1, "gives the sub-jobs no size"),
        (template(), split(None), 1, "needs accelerators and acceleratorType"),
        (template(), split(8, None), 1, "needs accelerators and acceleratorType"),
    ],
)
def test_what_cannot_be_split_is_refused(
    made_of: Object, policy: SplitPolicy, replicas: int, error: str
) -> None:
    with pytest.raises(SplitError, match=error):
        static_sizes(policy, made_of, replicas)


def test_the_largest_task_with_the_accelerator_scales() -> None:
    scale = scale_of(template(MASTER, task("cpu", 99, 0), task("worker", 4, 2)), GPU)
    assert (scale.task, scale.pods, scale.per_pod, scale.fixed) == (2, 4, 2, 1)


@pytest.mark.parametrize(
    ("least", "pods", "expected"),
    [(4, 8, 8), (4, 2, 2), (2, 8, 4), (3, 6, 5), (1, 2, 1)],
)
def test_min_available_follows_the_size(least: int, pods: int, expected: int) -> None:
    made_of = template(task(replicas=4, minAvailable=least), minAvailable=least)
    changed = resized(made_of, task=0, pods=pods)
    assert changed["tasks"][0]["replicas"] == pods
    assert changed["tasks"][0]["minAvailable"] == expected
    assert changed["minAvailable"] == expected
    assert made_of["tasks"][0]["replicas"] == 4


def test_a_split_makes_the_sub_jobs_and_their_sizes() -> None:
    policy = {"mode": "static", "accelerators": 40, "acceleratorType": GPU}
    raw = hyperjob(group(replicas=1, gpus=16, splitPolicy=policy))
    sizes = expand(parse_hyperjob(raw))[0].sizes
    assert [size.accelerators for size in sizes] == [16, 16, 8]
    assert [size.pods for size in sizes] == [16, 16, 8]


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (
            hyperjob(
                group(splitPolicy={"mode": "auto", "accelerators": 8, "acceleratorType": "x/y"})
            ),
            "replicatedJob 'trainer': no task requests x/y",
        ),
        (
            hyperjob(group(splitPolicy={"accelerators": 1, "acceleratorType": GPU})),
            "replicatedJob 'trainer': 1 accelerators cannot be shared",
        ),
        ({"metadata": {}, "spec": {}}, "spec.replicatedJobs is empty"),
    ],
)
def test_a_spec_that_cannot_be_carried_out_says_why(raw: Object, error: str) -> None:
    with pytest.raises(SpecError, match=error):
        expand(parse_hyperjob(raw))
