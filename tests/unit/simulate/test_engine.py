"""Whole simulations with the real controller: what it decides, and the same each time."""

from dataclasses import replace

import pytest

from hyperjob_core.kube.patches import merged
from hyperjob_sandbox.simulate.engine import simulate
from hyperjob_sandbox.simulate.history import History
from hyperjob_sandbox.simulate.measure import measure
from hyperjob_sandbox.simulate.sites import queue, shares_of, site
from hyperjob_sandbox.simulate.workload import Failures, NodeGroup, Outage, Submission
from tests.unit.simulate.scenarios import HOUR, MINUTE, NODE, clusters, jobs, scenario

LATENCY = 10.0
"""Seconds that the control plane may take in all between two states."""


def ends(history: History) -> dict[str, float]:
    return {
        key.partition("/")[2]: life.ended
        for key, life in history.lives.items()
        if life.ended is not None
    }


def test_the_slowest_cluster_of_a_job_sets_its_pace() -> None:
    sites = [*clusters(1), site("c1", [NodeGroup("gpu", NODE, 1, speed=0.25)])]
    assert ends(simulate(scenario(sites, jobs((0.0, HOUR, 16)))))["j0"] == pytest.approx(
        4 * HOUR, abs=2 * LATENCY
    )


def test_nodes_of_two_kinds_in_one_cluster_train_at_the_speed_of_each() -> None:
    kinds = {"h100": 1.0, "a100": 0.5}
    nodes = [NodeGroup(name, NODE, 1, (("gpu", name),), speed) for name, speed in kinds.items()]
    submitted = jobs((0.0, HOUR, 8), (60.0, HOUR, 8), (120.0, HOUR, 8))
    for job in submitted:
        (group,) = job.hyperjob["spec"]["replicatedJobs"]
        selected = [
            {"name": "worker", "template": {"spec": {"nodeSelector": {"gpu": name}}}}
            for name in kinds
        ]
        group["alternatives"] = [
            {
                "name": task["template"]["spec"]["nodeSelector"]["gpu"],
                "templateSpec": {"tasks": [task]},
            }
            for task in selected
        ]
    found = ends(simulate(scenario([site("c0", nodes)], submitted)))
    assert found == pytest.approx(
        {"j0": HOUR, "j1": 2 * HOUR, "j2": 2 * HOUR}, abs=120 + 2 * MINUTE
    )


def test_earlier_runs_of_a_template_say_which_alternative_ends_first() -> None:
    def either(job: Submission) -> Submission:
        (group,) = job.hyperjob["spec"]["replicatedJobs"]
        group |= {
            "clusterNames": ["c0"],
            "clusterPolicy": "Required",
            "alternatives": [{"name": "fast"}, {"name": "slow", "clusterNames": ["c1"]}],
        }
        return job

    sites = [*clusters(1), site("c1", [NodeGroup("gpu", NODE, 1, speed=0.25)])]
    arrivals = (0.0, 60.0, 4.2 * HOUR, 5 * HOUR)
    submitted = jobs(*((each, HOUR, 8) for each in arrivals), template="same")
    history = simulate(scenario(sites, [either(job) for job in submitted]))
    lives = history.lives.values()
    places = [[set(segment.devices) for segment in life.segments] for life in lives]
    assert places == [[{"c0"}], [{"c1"}], [{"c0"}], [{"c0"}]], "the last one waits for c0"
    assert [life.waited for life in lives][-1] == pytest.approx(0.2 * HOUR, abs=90)


def test_an_elastic_job_takes_what_no_other_can_start_with_and_gives_it_back() -> None:
    elastic = jobs((0.0, 0.0, 0), (60.0, HOUR, 8), elastic=True)[1:]
    (first, _, second) = jobs((0.0, HOUR / 2, 8), (0.0, 0.0, 0), (0.6 * HOUR, HOUR, 8))
    history = simulate(scenario(clusters(2), [first, *elastic, second]))
    life = history.lives["default/j1"]
    sizes = [sum(segment.devices.values()) for segment in life.segments]
    assert (max(sizes), sizes[-1]) == (16, 8)
    assert life.stops == {}, "the others train on"
    waited = history.lives["default/j2"].waited
    assert waited is not None
    assert waited < 2 * MINUTE
    assert life.ended is not None
    assert life.ended == pytest.approx(60 + 0.9 * HOUR, abs=3 * MINUTE)


def test_a_job_larger_than_a_cluster_is_split_and_starts_together() -> None:
    history = simulate(scenario(clusters(2, 1), jobs((0.0, HOUR, 24))))
    (segment,) = history.lives["default/j0"].segments
    assert dict(segment.devices) == {"c0": 16, "c1": 8}
    history = simulate(scenario(clusters(2, 1), jobs((0.0, HOUR, 24))), policy="one-cluster")
    assert history.lives["default/j0"].started is None, "no cluster alone is large enough"


def test_a_job_that_does_not_fit_waits_for_another_to_end() -> None:
    history = simulate(scenario(clusters(1), jobs((0.0, HOUR, 8), (60.0, HOUR, 8))))
    found = ends(history)
    assert found["j0"] == pytest.approx(HOUR, abs=2 * LATENCY)
    assert found["j1"] == pytest.approx(2 * HOUR, abs=90), "a Cluster's status lags behind"
    assert measure(history, policy="hyperjob", shares={"default": 1.0}).wait.max > HOUR - 90


def test_an_urgent_job_preempts_and_the_other_goes_on_from_its_checkpoint() -> None:
    first = jobs((0.0, 2 * HOUR, 8))
    urgent = jobs((0.0, 0.0, 0), (70 * MINUTE, HOUR, 8), priority="urgent")[1:]
    history = simulate(scenario(clusters(1), [*first, *urgent], checkpoint=30 * MINUTE))
    low, high = history.lives["default/j0"], history.lives["default/j1"]
    assert high.waited is not None
    assert high.waited < 5 * MINUTE
    assert low.stops == {"preempted": 1}
    assert 5 * MINUTE * 8 < low.lost < 15 * MINUTE * 8
    assert low.outcome == high.outcome == "Completed"
    without = simulate(
        scenario(clusters(1), [*first, *urgent], checkpoint=30 * MINUTE), policy="best-effort"
    )
    assert without.lives["default/j0"].stops == {}


def test_a_job_that_loses_its_cluster_before_the_report_of_its_end_works_on() -> None:
    taken_back = 0
    for second in range(12):
        lost = HOUR - 6 + second
        outage = Outage(cluster="c0", at=lost, until=lost + HOUR)
        job = jobs((0.0, HOUR, 8))
        history = simulate(scenario(clusters(1, 1), job, checkpoint=40 * MINUTE, outages=[outage]))
        life = history.lives["default/j0"]
        assert life.outcome == "Completed", f"the cluster was lost in second {second}"
        taken_back += life.lost == pytest.approx(20 * MINUTE * 8)
    assert taken_back, "none of the losses came between its end and the report of its end"


def test_what_fails_starts_again_elsewhere_or_when_the_cluster_is_back() -> None:
    given = scenario(
        clusters(1, 1),
        jobs((0.0, 4 * HOUR, 8)),
        outages=[Outage(cluster="c0", at=HOUR + 60, until=None)],
        checkpoint=30 * MINUTE,
    )
    life = simulate(given).lives["default/j0"]
    assert life.outcome == "Completed"
    assert life.stops in ({"cluster": 1}, {}), "it may be on the other cluster"
    if life.stops:
        assert [list(each.devices) for each in life.segments] == [["c0"], ["c1"]]


def test_the_end_of_sub_jobs_that_make_way_for_a_restart_counts_as_the_failure() -> None:
    given = scenario(
        clusters(2, 2, 2),
        [
            replace(job, hyperjob=merged(job.hyperjob, {"spec": {"minAvailable": 1}}))
            for job in jobs((0.0, 6 * HOUR, 24), (600.0, 6 * HOUR, 24))
        ],
        failures=Failures(pod=20),
        seed=3,
    )
    stops = [life.stops for life in simulate(given, policy="best-effort").lives.values()]
    assert any(stops), "some pod fails while the other sub-jobs go on"
    assert {cause for each in stops for cause in each} == {"pod"}


def test_nodes_and_pods_fail_at_random_and_every_job_ends_all_the_same() -> None:
    given = scenario(
        clusters(4, 4),
        jobs(*((minute * 10 * MINUTE, HOUR, 8) for minute in range(20))),
        failures=Failures(pod=20, node=30, node_repair=1, cluster=40, cluster_repair=1),
        seed=3,
    )
    history = simulate(given)
    report = measure(history, policy="hyperjob", shares=shares_of(given))
    assert report.completed == 20
    assert sum(report.stops.values()) > 0
    assert report.goodput < report.use


def test_queues_get_their_shares_while_both_ask() -> None:
    many = [
        job
        for name in ("a", "b")
        for job in jobs(*((0.0, HOUR, 8) for _ in range(24)), queue=name, namespace=name)
    ]
    given = scenario(
        clusters(4),
        many,
        queues=[queue("a"), queue("b", {"weight": 3, "reclaimable": True})],
    )
    history = simulate(given)
    used = {name: steps.integral(4 * HOUR) for name, steps in history.queues.items()}
    assert used["b"] / used["a"] == pytest.approx(3, rel=0.35)
    report = measure(history, policy="hyperjob", shares=shares_of(given))
    assert report.queues["b"].share == pytest.approx(0.75)
