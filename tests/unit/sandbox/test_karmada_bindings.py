"""What the detector makes of templates and policies, held against a recording of the real one."""

from copy import deepcopy

import pytest

from hyperjob_sandbox.controller import RetryError
from hyperjob_sandbox.karmada import policies
from hyperjob_sandbox.karmada.bindings import (
    build_binding,
    merge_suspension,
    new_binding,
    sync_binding,
)
from hyperjob_sandbox.karmada.interpreter import requirements_of
from tests.support.karmadarecording import RECORDED, without_server_fields


def recorded_id(binding):
    return binding["metadata"]["labels"]["resourcebinding.karmada.io/permanent-id"]


def test_claiming_adds_exactly_the_recorded_marks_to_a_template():
    plain = RECORDED["plain"]
    claimed = policies.claim(plain["template"], plain["policy"])
    wanted = deepcopy(plain["claimed"])
    wanted["metadata"]["resourceVersion"] = claimed["metadata"]["resourceVersion"]
    assert claimed == wanted


def test_a_new_binding_equals_the_recorded_one_but_for_volcano_globals_suspension():
    plain = RECORDED["plain"]
    binding = new_binding(
        build_binding(plain["claimed"], plain["policy"], interpretation={}),
        permanent_id=recorded_id(plain["binding"]["created"]),
    )
    wanted = without_server_fields(plain["binding"]["created"])
    assert wanted["spec"].pop("suspension") == {"scheduling": True}
    assert binding == wanted


def test_a_gated_binding_with_components_equals_the_recorded_one():
    gated = RECORDED["gated"]
    interpretation = {"components": gated["binding"]["waiting"]["spec"]["components"]}
    binding = new_binding(
        build_binding(gated["template"], gated["policy"], interpretation=interpretation),
        permanent_id=recorded_id(gated["binding"]["created"]),
    )
    wanted = without_server_fields(gated["binding"]["created"])
    # the policy brought dispatching, the webhooks added scheduling
    assert wanted["spec"]["suspension"].pop("scheduling") is True
    assert binding == wanted


def test_removing_the_policys_suspension_opens_the_recorded_gate():
    gated = RECORDED["gated"]
    desired = build_binding(gated["template"], gated["opened_policy"], interpretation={})
    opened = sync_binding(gated["binding"]["waiting"], desired)
    assert opened["spec"]["suspension"] == gated["binding"]["opened"]["spec"]["suspension"]


def test_a_sync_keeps_what_others_wrote_and_overwrites_what_is_the_policys():
    gated = RECORDED["gated"]
    live = deepcopy(gated["binding"]["waiting"])
    live["metadata"]["labels"]["training.volcano.sh/binding"] = "hyperjob"
    live["metadata"]["annotations"]["training.volcano.sh/gate"] = "held"
    live["metadata"]["finalizers"].append("karmada.io/binding-dependencies-distributor")
    live["spec"]["placement"] = {"clusterAffinity": {"clusterNames": ["elsewhere"]}}
    live["spec"]["replicas"] = 7
    desired = build_binding(gated["template"], gated["policy"], interpretation={})
    synced = sync_binding(live, desired)
    assert synced["metadata"]["labels"]["training.volcano.sh/binding"] == "hyperjob"
    assert synced["metadata"]["annotations"]["training.volcano.sh/gate"] == "held"
    assert synced["metadata"]["finalizers"] == live["metadata"]["finalizers"]
    assert synced["spec"]["clusters"] == live["spec"]["clusters"]
    assert synced["spec"]["placement"] == gated["policy"]["spec"]["placement"]
    assert "replicas" not in synced["spec"]


def test_a_sync_of_an_untouched_binding_changes_nothing():
    gated = RECORDED["gated"]
    live = gated["binding"]["waiting"]
    interpretation = {"components": gated["binding"]["waiting"]["spec"]["components"]}
    desired = build_binding(gated["template"], gated["policy"], interpretation=interpretation)
    assert sync_binding(live, desired) == live


def test_a_binding_of_another_object_is_refused():
    plain = RECORDED["plain"]
    live = deepcopy(plain["binding"]["created"])
    live["metadata"]["ownerReferences"][0]["uid"] = "somebody-else"
    desired = build_binding(plain["claimed"], plain["policy"], interpretation={})
    with pytest.raises(RetryError, match="different owner reference UID"):
        sync_binding(live, desired)


@pytest.mark.parametrize(
    ("live", "policy", "merged"),
    [
        (None, None, None),
        (None, {"dispatching": True}, {"dispatching": True}),
        ({"scheduling": True}, None, {"scheduling": True}),
        ({"dispatching": True}, None, None),
        (
            {"dispatching": True, "scheduling": False},
            {"dispatching": True},
            {"scheduling": False, "dispatching": True},
        ),
        ({"dispatching": True, "scheduling": False}, {}, {"scheduling": False}),
        (
            {"scheduling": True, "dispatching": True},
            {"dispatching": False},
            {"scheduling": True, "dispatching": False},
        ),
    ],
)
def test_suspension_keeps_scheduling_and_takes_dispatching_from_the_policy(live, policy, merged):
    assert merge_suspension(live, policy) == merged


def test_without_the_hook_a_vcjob_has_no_replicas():
    template = RECORDED["gated"]["template"]
    assert requirements_of(template, hooks=frozenset()) == {}
