"""Accelerators of a HyperJob in shares: by the built-in splitter, and by a static split."""

from dataclasses import replace
from itertools import combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperjob_engine.expansion.expand import SpecError, expand
from hyperjob_engine.model.observed import Cluster, SplitPolicy
from hyperjob_engine.model.parse import parse_hyperjob
from hyperjob_engine.model.request import PlacementRequest, kind_of
from hyperjob_engine.model.split import SplitError, resized, scale_of, static_sizes
from hyperjob_engine.placement.explain import explain_shortfall
from hyperjob_engine.placement.room import Room
from hyperjob_engine.placement.share import Wish, share
from hyperjob_engine.resources import fits, parse_resources, whole
from tests.unit.engine.builders import GPU, Object, cluster, group, hyperjob, task, template


def wish(
    accelerators: int = 128,
    *,
    fixed: int = 0,
    per_pod: int = 1,
    preferred: tuple[str, ...] = (),
    required: bool = False,
) -> Wish:
    master = parse_resources({GPU: str(fixed), "pods": "1"} if fixed else {})
    return Wish(
        like=PlacementRequest(
            name="",
            group="trainer",
            demand=master,
            pods=((kind_of(master), 1),) if fixed else (),
            preferred=preferred,
            required=required,
        ),
        accelerators=accelerators,
        kind=GPU,
        fixed=fixed,
        per_pod=per_pod,
        pod=kind_of(parse_resources({GPU: str(per_pod), "pods": "1"})),
    )


def shared(what: Wish, *clusters: Cluster) -> dict[str, int]:
    """Accelerators by cluster, in the order of the shares."""
    found = share(what, Room(clusters), max_domains=None)
    return {item.cluster: what.fixed + item.pods * what.per_pod for item in found}


A, B, C = cluster("a", 100), cluster("b", 60), cluster("c", 130)


SMALL = (cluster("x", 11), cluster("y", 11), cluster("z", 9))
SHARES: dict[str, tuple[Wish, tuple[Cluster, ...], dict[str, int]]] = {
    "the two with the least left over": (wish(19), SMALL, {"x": 10, "z": 9}),
    "as equal as room allows": (wish(), (A, B), {"a": 68, "b": 60}),
    "whole pods": (wish(per_pod=8), (A, B), {"a": 72, "b": 56}),
    "one cluster if one can hold it": (wish(), (A, B, C), {"c": 128}),
    "the one with the least left over": (wish(40), (A, B, C), {"b": 40}),
    "equal shares": (wish(200), (A, B, C), {"c": 100, "a": 100}),
    "preferred first": (wish(preferred=("b",)), (A, B), {"b": 60, "a": 68}),
    "preferred filled": (wish(preferred=("a",)), (A, B), {"a": 100, "b": 28}),
    "preferred alone": (wish(preferred=("b", "a")), (A, B, C), {"b": 60, "a": 68}),
    "fewest when the preferred are full": (wish(preferred=("b",)), (A, B, C), {"c": 128}),
    "fewest before preferred": (wish(200, preferred=("b",)), (A, B, C), {"c": 100, "a": 100}),
    "with a preferred one": (wish(160, preferred=("b",)), (A, B, C), {"b": 60, "a": 100}),
    "required is too small": (wish(preferred=("b",), required=True), (A, B), {}),
    "a master in each": (wish(130, fixed=1, per_pod=8), (A, B, C), {"c": 65, "a": 65}),
    "more than there is": (wish(400), (A, B, C), {}),
    "no whole pod": (wish(8, per_pod=8), (cluster("a", 7),), {}),
    "no cluster": (wish(8), (), {}),
}


@pytest.mark.parametrize(("what", "clusters", "expected"), SHARES.values(), ids=list(SHARES))
def test_shares(what: Wish, clusters: tuple[Cluster, ...], expected: dict[str, int]) -> None:
    found = shared(what, *clusters)
    assert list(found.items()) == list(expected.items())


def test_clusters_in_use_count_as_domains() -> None:
    room = Room((A, B, C), [("other", "b")])
    assert [item.cluster for item in share(wish(60), room, max_domains=1)] == ["b"]
    assert share(wish(61), room, max_domains=1) == ()
    assert {item.cluster for item in share(wish(190), room, max_domains=2)} == {"b", "c"}


def test_near_clusters_are_taken_together() -> None:
    clusters = [
        cluster("a", 64, provider="p", region="r", zone="1"),
        cluster("b", 64, provider="p", region="s", zone="2"),
        cluster("c", 90, provider="p", region="r", zone="3"),
        cluster("d", 64, provider="q", region="t", zone="4"),
    ]
    assert shared(wish(), *clusters) == {"a": 64, "c": 64}


def test_excluded_and_unusable_clusters_get_nothing() -> None:
    what = wish(60)
    what = replace(what, like=replace(what.like, excluded=frozenset({"b"})))
    assert shared(what, cluster("a", 100, unusable="is not Ready"), B, C) == {"c": 60}


def test_other_resources_bound_a_share_too() -> None:
    what = replace(wish(64), pod=kind_of(parse_resources({GPU: "1", "cpu": "25", "pods": "1"})))
    small = [replace(item, free={**item.free, "cpu": whole(1000)}) for item in (A, B, C)]
    assert shared(what, *small) == {"a": 32, "b": 32}


@st.composite
def cases(draw: st.DrawFn) -> tuple[Wish, tuple[Cluster, ...], int | None]:
    names = "abcde"[: draw(st.integers(0, 5))]
    places = st.sampled_from(["", "1", "2"])
    clusters = tuple(
        cluster(name, draw(st.integers(0, 12)), provider=draw(places), region=draw(places))
        for name in names
    )
    preferred = tuple(draw(st.permutations(names))[: draw(st.integers(0, 3))]) if names else ()
    what = wish(
        draw(st.integers(1, 40)),
        fixed=draw(st.integers(0, 3)),
        per_pod=draw(st.integers(1, 4)),
        preferred=preferred,
        required=draw(st.booleans()) and bool(preferred),
    )
    return what, clusters, draw(st.sampled_from([None, 1, 2, 3]))


def fewest(
    what: Wish, clusters: tuple[Cluster, ...], max_domains: int | None, among: tuple[str, ...]
) -> int:
    """The fewest clusters that can hold it, by trying all sets; 0 if none can."""
    able = [item for item in clusters if item.name in among]
    for parts in range(1, min(len(able), max_domains or len(able)) + 1):
        pods, rest = divmod(what.accelerators - parts * what.fixed, what.per_pod)
        if rest or pods < parts:
            continue
        for chosen in combinations(able, parts):
            most = []
            for item in chosen:
                holds = 0
                while fits(what.request(holds + 1).demand, item.free):
                    holds += 1
                most.append(holds)
            if min(most) >= 1 and sum(most) >= pods:
                return parts
    return 0


@settings(max_examples=400)
@given(cases())
def test_shares_are_exact_fit_and_are_as_few_as_possible(
    case: tuple[Wish, tuple[Cluster, ...], int | None],
) -> None:
    what, clusters, max_domains = case
    room = Room(clusters)
    found = share(what, room, max_domains=max_domains)
    everywhere = tuple(item.name for item in clusters)
    alone = fewest(what, clusters, max_domains, what.like.preferred)
    allowed = what.like.preferred if what.like.required else everywhere
    assert len(found) == (alone or fewest(what, clusters, max_domains, allowed))
    assert share(what, Room(clusters[::-1]), max_domains=max_domains) == found
    if not found:
        text = explain_shortfall(what, room, max_domains=max_domains)
        assert text.startswith(f"needs {what.accelerators} {GPU}")
        return
    free = {item.name: item.free for item in clusters}
    assert all(fits(what.request(item.pods).demand, free[item.cluster]) for item in found)
    assert sum(what.fixed + item.pods * what.per_pod for item in found) == what.accelerators
    assert len({item.cluster for item in found}) == len(found)
    assert min(item.pods for item in found) >= 1
    if alone:
        assert {item.cluster for item in found} <= set(what.like.preferred)


@settings(max_examples=200)
@given(cases())
def test_shares_outside_the_preferred_clusters_are_as_equal_as_possible(
    case: tuple[Wish, tuple[Cluster, ...], int | None],
) -> None:
    what, clusters, max_domains = case
    room = Room(clusters)
    others = [
        item
        for item in share(what, room, max_domains=max_domains)
        if item.cluster not in what.like.preferred
    ]
    free = {item.name: item.free for item in clusters}
    for less in others:
        for more in others:
            grown = fits(what.request(less.pods + 1).demand, free[less.cluster])
            assert not (grown and more.pods > less.pods + 1)


def test_a_large_choice_is_made_in_steps_and_still_fewest_and_equal() -> None:
    clusters = [cluster(f"c{i:02}", 10 + i * 7 % 50, region=f"r{i % 5}") for i in range(80)]
    found = shared(wish(250), *clusters)
    top = sorted((10 + i * 7 % 50 for i in range(80)), reverse=True)
    assert sum(top[: len(found) - 1]) < 250 <= sum(found.values())
    assert max(found.values()) - min(found.values()) <= 1
    assert len(found) == 5


def test_a_large_choice_is_made_among_the_largest_of_one_place_too() -> None:
    """No place has three equal parts of 20, and the sets to choose from are too many to try."""
    near = [cluster(f"x{i}", most, provider="p") for i, most in enumerate((30, 19, 11, 2))]
    far = [cluster(f"c{i:03}", 20, provider=f"p{i}") for i in range(107)]
    assert set(shared(wish(60), *near, *far)) == {"x0", "x1", "x2"}


@pytest.mark.parametrize(
    ("what", "clusters", "max_domains", "text"),
    [
        (
            wish(per_pod=8),
            (A, B),
            1,
            (
                f"needs 128 {GPU} in multiples of 8, 96 fit on 1 cluster (maxDomains 1):"
                " a has room for 96; b has room for 56 but maxDomains 1 is used up"
            ),
        ),
        (
            wish(200),
            (A, cluster("b", 9, unusable="is not Ready")),
            None,
            f"needs 200 {GPU}, 100 fit on 1 cluster: a has room for 100; b is not Ready",
        ),
        (
            wish(200, preferred=("b", "x"), required=True),
            (A, B),
            None,
            (
                f"needs 200 {GPU} (clusterPolicy Required), 60 fit on 1 cluster:"
                " b has room for 60; x does not exist"
            ),
        ),
        (
            wish(130, fixed=1, per_pod=8),
            (cluster("a", 504),),
            None,
            (
                f"needs 130 {GPU} in sub-jobs of 1 and a multiple of 8,"
                " that takes 2 clusters, 1 cluster can be used: a has room for 497"
            ),
        ),
        (
            wish(11, fixed=1, per_pod=2),
            (cluster("a", 8),),
            None,
            (
                f"needs 11 {GPU} in sub-jobs of 1 and a multiple of 2, 7 fit on 1 cluster:"
                " a has room for 7"
            ),
        ),
        (
            wish(8, per_pod=8),
            (cluster("a", 7),),
            None,
            f"needs 8 {GPU} in multiples of 8, none fit now: a lacks 1 {GPU} (has 7)",
        ),
        (wish(8), (), None, f"needs 8 {GPU}, none fit now: no cluster is registered"),
    ],
)
def test_a_shortfall_is_told_exactly(
    what: Wish, clusters: tuple[Cluster, ...], max_domains: int | None, text: str
) -> None:
    room = Room(clusters)
    assert share(what, room, max_domains=max_domains) == ()
    assert explain_shortfall(what, room, max_domains=max_domains) == text


def test_a_shortfall_over_many_clusters_stays_readable() -> None:
    clusters = [cluster(f"c{i:03}", 1) for i in range(300)]
    text = explain_shortfall(wish(301), Room(clusters), max_domains=None)
    assert "300 fit on 300 clusters" in text
    assert text.endswith("and 295 more clusters")


def test_a_resource_that_pods_request_none_of_limits_no_share() -> None:
    what = wish(8)
    idle = kind_of({**dict(what.pod.request), "example.com/nic": 0})
    assert shared(replace(what, pod=idle), A) == {"a": 8}


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
