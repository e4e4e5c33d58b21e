"""Reasons against clusters that no generated placement gives."""

from dataclasses import replace

import pytest

from hyperjob_engine.placement.explain import alternatives, explain
from hyperjob_engine.placement.room import Room
from hyperjob_engine.resources import parse_resources
from tests.unit.engine.builders import GPU, cluster, request
from tests.unit.engine.views import job, node, seen, task, view


def test_a_sub_job_on_a_cluster_that_is_gone_stays_settled() -> None:
    clusters = [cluster("a"), cluster("b", unusable="yes")]
    found = alternatives(request("j"), "gone", Room(clusters), max_domains=None)
    assert {name: each.text for name, each in found.items()} == {
        "a": "has room, but the sub-job is placed already",
        "b": "is not Ready",
    }


@pytest.mark.parametrize(
    ("wanted", "has", "elsewhere", "absent"),
    [
        ({GPU: "1"}, {"cpu": "8"}, {"cpu": "8"}, f"no cluster has {GPU}"),
        ({GPU: "1"}, {GPU: "0", "cpu": "8"}, {"cpu": "8"}, f"no cluster has {GPU}"),
        (
            {f"{GPU}s": "1"},
            {"cpu": "8"},
            {GPU: "8", f"{GPU}s": "0"},
            f"no cluster has {GPU}s; did you mean {GPU}?",
        ),
        ({GPU: "1"}, {"cpu": "8"}, {GPU: "8"}, ""),
        ({GPU: "9"}, {GPU: "8"}, {"cpu": "8"}, ""),
        ({"memory": "1Gi"}, {"cpu": "8"}, {"cpu": "8"}, ""),
        ({GPU: "1"}, {"cpu": "8"}, {}, ""),
    ],
)
def test_a_device_that_no_cluster_has_is_named(wanted, has, elsewhere, absent) -> None:
    clusters = [
        replace(cluster(name), free=parse_resources(each), allocatable=parse_resources(each))
        for name, each in (("a", has), ("b", elsewhere))
    ]
    asked = replace(request("j"), demand=parse_resources(wanted))
    found = explain(asked, Room(clusters), max_domains=None)
    assert (found.text if found.absent else "") == absent


def test_a_pod_of_as_many_devices_as_the_nodes_of_a_cluster_have_together_is_too_large() -> None:
    found = explain(
        job(task(1, 8)), Room([seen(view([node("n0", 4), node("n1", 4)]))]), max_domains=None
    )
    assert (
        found.text == f"no node has 8 {GPU} for one pod of replicatedJob g: make its pods smaller"
    )


def test_a_cluster_on_which_others_took_what_was_promised_has_nothing_free() -> None:
    taken = replace(cluster("a", 8, total=8), free=parse_resources({GPU: "-3", "pods": "9"}))
    found = explain(request("j", 2), Room([taken]), max_domains=None)
    assert found.text == f"needs 2 {GPU}: a lacks 2 {GPU} (0 free)"
