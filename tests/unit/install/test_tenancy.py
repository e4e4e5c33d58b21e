"""The admission policies for tenants: which names they look at, and when they are there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_install.manifest import manifest
from hyperjob_install.objects import Component
from hyperjob_install.settings import TENANCY, Settings
from hyperjob_install.tenancy import NAMES, POLICIES, tenancy
from hyperjob_sandbox.apiserver.cel import Expression


def spec_of(plural):
    return next(
        item.object["spec"]
        for item in tenancy(enabled=True)
        if item.name == f"hyperjob-tenancy-{plural}" and "variables" in item.object["spec"]
    )


def variables(plural, jobs):
    """Evaluate the variables of a policy but the check of a right, as the API server does."""
    found = {}
    for each in spec_of(plural)["variables"]:
        if each["name"] != "all":
            expression = Expression(each["expression"], variables=["object", "variables"])
            given = {"object": {"spec": {"replicatedJobs": jobs}}, "variables": dict(found)}
            found[each["name"]] = expression.evaluate(given)
    return found


def looked_at(found):
    return [found[f"one{n}"] for n in range(NAMES) if found[f"one{n}"]]


TASKS = [
    {"template": {"spec": {"priorityClassName": "task"}}},
    {"template": {"spec": {}}},
    {"template": {}},
    {},
]
CASES = {
    "no queue is the queue default": ("queues", [{"templateSpec": {}}], ["default"]),
    "an empty queue too": ("queues", [{"templateSpec": {"queue": ""}}], ["default"]),
    "each queue once": (
        "queues",
        [{"templateSpec": {"queue": name}} for name in "abab"],
        ["a", "b"],
    ),
    "classes of jobs and of tasks": (
        "priorityclasses",
        [{"templateSpec": {"priorityClassName": "job", "tasks": TASKS}}, {"templateSpec": {}}],
        ["job", "task"],
    ),
    "no class": ("priorityclasses", [{"templateSpec": {"tasks": TASKS[1:]}}], []),
    "clusters": (
        "clusters",
        [{"clusterNames": ["x", "y"]}, {}, {"clusterNames": ["y"]}],
        ["x", "y"],
    ),
    "clusters of alternatives": (
        "clusters",
        [{"clusterNames": ["x"], "alternatives": [{"clusterNames": ["y", "x"]}, {}]}],
        ["x", "y"],
    ),
}


@pytest.mark.parametrize(("plural", "jobs", "names"), CASES.values(), ids=CASES.keys())
def test_the_names_that_a_right_is_checked_for(plural, jobs, names):
    assert looked_at(variables(plural, jobs)) == names


@given(st.lists(st.sampled_from([f"q{n}" for n in range(NAMES + 4)]), min_size=1, max_size=60))
def test_every_queue_is_checked_or_known_to_be_one_too_many(names):
    found = variables("queues", [{"templateSpec": {"queue": name}} for name in names])
    checked = looked_at(found)
    assert checked == list(dict.fromkeys(names))[:NAMES]
    assert bool(found[f"left{NAMES}"]) == (len(set(names)) > NAMES)


def test_each_name_has_a_check_and_a_validation_makes_at_most_one():
    for plural in ("queues", "priorityclasses", "clusters"):
        checks = [each["expression"] for each in spec_of(plural)["validations"]]
        for n in range(NAMES):
            assert sum(f".name(variables.one{n})" in one for one in checks) == 1
        assert max(one.count(".check(") for one in checks) == 1


@pytest.mark.parametrize("enabled", [True, False])
def test_the_policies_are_there_or_taken_away(enabled):
    items = manifest(Settings(url="https://x", parts=frozenset({TENANCY} if enabled else ())))
    found = [item for item in items if item.part is Component.TENANCY]
    assert {item.name for item in found} == {*POLICIES, "hyperjob-use-all"}
    assert {item.absent for item in found} == {not enabled}
