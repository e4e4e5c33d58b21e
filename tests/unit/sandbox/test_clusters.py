"""The clusters file: what it means, and how it is refused."""

import pytest

from hyperjob_sandbox.clusters import SandboxConfigError, load, parse

SMALL = "clusters: [{name: a, nodes: [{count: 1, allocatable: {cpu: 4}}]}]\n"


def test_a_small_file_gets_every_default():
    config = parse(SMALL)
    assert config.speed == 1
    assert not config.volcano_global.enabled
    assert config.clusters[0].nodes[0].allocatable == {
        "ephemeral-storage": "100Gi",
        "pods": 110,
        "cpu": 4,
    }
    assert config.run_times.seconds(job="j", task="t", cluster="a") == 20


REFUSED = {
    "nothing": ("", "a mapping with the key `clusters` is expected"),
    "no clusters": ("clusters: []", "clusters: List should have at least 1 item"),
    "a typo": (SMALL + "sped: 2\n", "sped: Extra inputs are not permitted"),
    "a wrong type": (SMALL + "speed: fast\n", "speed: Input should be a valid number"),
    "a hypernode of nothing": (
        SMALL.replace("name: a,", "name: a, hyperNodes: [{name: h, tier: 1}],"),
        "clusters[0].hyperNodes[0]: nodes or hyperNodes must name a member",
    ),
    "a hypernode twice": (
        SMALL.replace(
            "name: a,", "name: a, hyperNodes: [" + 2 * '{name: h, tier: 1, nodes: ["*"]},' + "],"
        ),
        "clusters[0]: HyperNode 'h' is there twice",
    ),
    "no time": (SMALL + "speed: 0\n", "speed: Input should be greater than 0"),
    "an amount nobody can read": (
        SMALL.replace("cpu: 4", "cpu: lots"),
        "clusters[0].nodes[0].allocatable.cpu: quantities must match",
    ),
    "a name that is none": (
        SMALL.replace("name: a", "name: A_b"),
        "clusters[0].name: a lowercase RFC 1123 subdomain must consist of",
    ),
    "a label that is none": (
        SMALL.replace("name: a,", "name: a, labels: {k: 'a b'},"),
        "clusters[0].labels.k: a valid label must",
    ),
    "a name twice": (
        SMALL.replace("]}]", "]}, {name: a, nodes: [{count: 1, allocatable: {}}]}]"),
        "cluster 'a' is there twice",
    ),
    "an unknown lost cluster": (
        SMALL + "lostClusters: [{cluster: b, at: 1}]\n",
        "lostClusters: there is no cluster 'b'",
    ),
    "a cluster back before it is lost": (
        SMALL + "lostClusters: [{cluster: a, at: 5, backAt: 3}]\n",
        "lostClusters[0]: backAt must come after at",
    ),
    "an unknown parent": (
        SMALL + "queues: [{name: q, parent: p}]\n",
        "queues: there is no queue 'p'",
    ),
    "an exit code of success": (
        SMALL + "failures: [{exitCode: 0}]\n",
        "failures[0].exitCode: Input should be greater than or equal to 1",
    ),
    "no YAML": ("clusters: [", "clusters.yaml:1: not YAML"),
}


@pytest.mark.parametrize("case", sorted(REFUSED))
def test_a_refusal_names_the_field(case):
    text, why = REFUSED[case]
    with pytest.raises(SandboxConfigError) as refusal:
        parse(text, source="clusters.yaml")
    assert str(refusal.value).startswith("clusters.yaml")
    assert why in str(refusal.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(SandboxConfigError, match=r"nowhere\.yaml: No such file"):
        load(tmp_path / "nowhere.yaml")


def test_the_first_rule_that_matches_decides_how_long_a_pod_runs():
    config = parse(
        SMALL + "runTimes: {defaultSeconds: 1, jobs: ["
        "{job: 'llm-*', task: master, seconds: 5}, {job: 'llm-*', seconds: 9}]}\n"
    )
    ask = config.run_times.seconds
    assert ask(job="llm-0", task="master", cluster="a") == 5
    assert ask(job="llm-0", task="worker", cluster="a") == 9
    assert ask(job="other", task="master", cluster="a") == 1


def test_failures_strike_the_pod_and_attempt_they_name():
    config = parse(
        SMALL + "failures: [{job: 'llm-*', pod: 3, attempt: 0, exitCode: 137, after: 2}]\n"
    )
    ask = lambda **more: config.exit_code(  # noqa: E731
        **{"job": "llm-0", "task": "w", "cluster": "a", "pod": 3, "attempt": 0, **more}
    )
    assert ask() == (137, 2)
    assert ask(pod=2) == (0, None)
    assert ask(attempt=1) == (0, None)
    assert ask(job="other") == (0, None)
