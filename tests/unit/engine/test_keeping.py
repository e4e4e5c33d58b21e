"""No stop of a sub-job deletes the copy of a PersistentVolumeClaim that its pods have used."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hyperjob_engine.lifecycle.stops import keeping
from hyperjob_engine.model.claimcopies import Claim, claim_policy, claim_policy_name, parse_claim
from hyperjob_engine.model.observed import Observed, Refusal
from hyperjob_engine.model.planned import (
    Action,
    DeleteChild,
    DeleteHyperJob,
    KeepClaim,
    OpenGate,
    Plan,
    Repin,
)
from tests.unit.engine.builders import NOW, child, hyperjob, observed

Object = dict[str, Any]
FIRST, SECOND = "hj-trainer-0", "hj-trainer-1"
STOP = DeleteChild(name=FIRST, job_uid="j", policy_uid="p")
OTHER = DeleteChild(name=SECOND, job_uid="j", policy_uid="p")
END = DeleteHyperJob(name="hj", uid="hj-uid")
MOVE = Repin(name=FIRST, uid="p", cluster="b", demand={}, placement={})
OPEN = OpenGate(
    name=FIRST, binding="b", binding_uid=None, policy_uid=None, release_scheduling=False
)


def carrying(*kept: str, users: Object | None = None, **annotations: str) -> Object:
    """Return the ResourceBinding of the claim `saves`; `users` are clusters by sub-job."""
    found: Object = {FIRST: ["a"]} if users is None else users
    return {
        "metadata": {"name": "saves-persistentvolumeclaim", "annotations": annotations},
        "spec": {
            "resource": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "name": "saves",
                "uid": "u",
            },
            "clusters": [{"name": each} for each in kept],
            "requiredBy": [
                {"namespace": "default", "name": name, "clusters": [{"name": c} for c in clusters]}
                for name, clusters in ((_binding_of(user), found[user]) for user in found)
            ],
        },
    }


def _binding_of(user: str) -> str:
    return user if user == "hyperjob" else f"{user}-job"


def seen(*claims: Claim, suspended: bool = False, status: Object | None = None) -> Observed:
    suspension = {"dispatching": True} if suspended else {}
    objects = [each for n in range(2) for each in child(n, "Running", suspension=suspension)]
    return replace(observed(hyperjob(status=status), *objects), claims=claims)


def after(observation: Observed, *actions: Action, status: Object | None = None) -> Plan:
    return keeping(observation, Plan(actions=actions, status=status))


KEEP = KeepClaim(name="saves", uid="u", clusters=("a",))


@pytest.mark.parametrize(
    ("kept", "actions", "planned"),
    [
        ((), (), (KEEP,)),
        ((), (STOP,), (KEEP,)),
        ((), (MOVE,), (KEEP,)),
        ((), (END,), (KEEP,)),
        ((), (OTHER, OPEN), (KEEP, OTHER, OPEN)),
        (("b",), (STOP,), (KEEP,)),
        (("a",), (STOP, MOVE, END), (STOP, MOVE, END)),
        (("a", "b"), (), ()),
    ],
)
def test_a_copy_is_kept_first_and_its_sub_job_is_stopped_when_karmada_keeps_it(
    kept: tuple[str, ...], actions: tuple[Action, ...], planned: tuple[Action, ...]
) -> None:
    claim = parse_claim(carrying(*kept))
    assert after(seen(claim), *actions).actions == planned


def test_a_held_stop_is_planned_again_soon_and_a_plan_without_one_keeps_its_time() -> None:
    unkept = seen(parse_claim(carrying()))
    assert after(unkept, STOP).requeue_after == timedelta(seconds=5)
    assert after(unkept).requeue_after is None
    for before, wait in ((3, 3), (60, 5)):
        planned = Plan(actions=(STOP,), requeue_after=timedelta(seconds=before))
        assert keeping(unkept, planned).requeue_after == timedelta(seconds=wait)


def test_a_suspended_sub_job_has_no_pods_that_could_have_written_anything() -> None:
    held = seen(parse_claim(carrying()), suspended=True)
    assert after(held, STOP).actions == (STOP,)


def test_the_claims_of_other_hyperjobs_are_theirs_to_keep() -> None:
    claim = parse_claim(carrying(users={"other-trainer-0": ["a"]}))
    assert after(seen(claim), STOP, END).actions == (STOP, END)


@pytest.mark.parametrize(
    ("annotations", "by_user"),
    [
        ({}, False),
        ({"propagationpolicy.karmada.io/name": "saves-persistentvolumeclaim"}, False),
        ({"propagationpolicy.karmada.io/name": "mine"}, True),
        ({"clusterpropagationpolicy.karmada.io/name": "all"}, True),
    ],
)
def test_the_policy_of_a_user_stays_and_its_claim_is_kept_by_the_resource_binding(
    annotations: dict[str, str], by_user: bool
) -> None:
    (action,) = after(seen(parse_claim(carrying("b", **annotations)))).actions
    assert action == replace(KEEP, by_user=by_user)


def test_a_cluster_that_the_resource_binding_itself_requires_keeps_its_copy() -> None:
    claim = parse_claim(carrying("b", users={FIRST: ["a"], "hyperjob": ["a"]}))
    assert after(seen(claim), STOP).actions == (STOP,)


def test_the_status_names_the_clusters_that_keep_a_copy() -> None:
    claim = parse_claim(carrying("b", "a"))
    expected = [{"name": "saves", "clusters": ["a", "b"]}]
    assert after(seen(claim), status={}).status == {"persistentVolumeClaims": expected}
    assert after(seen(claim)).status is None
    assert after(seen(), status={}).status == {}
    gone = seen(status={"persistentVolumeClaims": expected})
    assert after(gone, status={}).status == {"persistentVolumeClaims": None}


def test_a_refusal_stands_in_the_status_and_delays_the_next_try() -> None:
    def refused(wait: timedelta) -> Plan:
        refusal = Refusal(reason="Forbidden", message="no policies here", retry_at=NOW + wait)
        observation = replace(seen(parse_claim(carrying())), refusals={"saves": refusal})
        return after(observation, STOP, status={})

    waiting, due = refused(timedelta(seconds=5)), refused(timedelta())
    assert waiting.actions == ()
    assert due.actions == (KEEP,)
    (entry,) = waiting.status["persistentVolumeClaims"]
    assert "delete the copy in a" in entry["message"]
    assert "no policies here" in entry["message"]


def test_the_policy_is_the_claims_and_tolerates_what_would_end_a_copy() -> None:
    made = claim_policy("ns", "saves", uid="u", clusters=["a"])
    assert made["metadata"]["name"] == claim_policy_name("saves")
    (reference,) = made["metadata"]["ownerReferences"]
    assert (reference["kind"], reference["uid"]) == ("PersistentVolumeClaim", "u")
    placement = made["spec"]["placement"]
    assert placement["clusterAffinity"] == {"clusterNames": ["a"]}
    assert placement["clusterTolerations"] == [{"operator": "Exists"}]
    assert "preserveResourcesOnDeletion" not in made["spec"], "a deleted claim leaves no copies"


CLUSTERS = st.lists(st.sampled_from("abc"), unique=True, max_size=3)


@given(
    kept=CLUSTERS,
    users=st.dictionaries(st.sampled_from((FIRST, SECOND, "else-0", "hyperjob")), CLUSTERS),
    actions=st.lists(st.sampled_from((STOP, OTHER, END, MOVE, OPEN)), unique_by=id),
)
def test_no_plan_stops_the_user_of_an_unkept_copy(
    kept: list[str], users: dict[str, list[str]], actions: list[Action]
) -> None:
    claim = parse_claim(carrying(*kept, users=users))
    planned = after(seen(claim), *actions).actions
    for action in planned:
        if isinstance(action, DeleteChild | Repin):
            assert set(users.get(action.name, ())) <= claim.kept
    lost = {c for name in (FIRST, SECOND) for c in users.get(name, ()) if c not in claim.kept}
    asked = {c for each in planned if isinstance(each, KeepClaim) for c in each.clusters}
    assert asked == lost
