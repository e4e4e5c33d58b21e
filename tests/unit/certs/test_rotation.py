"""When certificates are renewed, and that no moment of it leaves a client without trust."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperjob_certs.rotation import Action, Bundle, RotationPolicy, advance, decide
from hyperjob_certs.x509 import Pair, facts, is_signed_by, issue_ca, issue_serving

NOW = datetime(2027, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
POLICY = RotationPolicy(names=("hooks", "127.0.0.1"), ca_lifetime=300 * DAY, leaf_lifetime=30 * DAY)


def fresh(now=NOW, policy=POLICY):
    bundle, steps = advance(Bundle(), policy=policy, now=now)
    assert [step.action for step in steps] == [Action.NEW_CA, Action.REISSUE_LEAF]
    return bundle


def actions(bundle, now, policy=POLICY):
    return [step.action for step in advance(bundle, policy=policy, now=now)[1]]


def test_nothing_is_due_on_a_fresh_bundle():
    bundle = fresh()
    assert actions(bundle, NOW) == []
    assert actions(bundle, NOW + 19 * DAY) == []


def test_a_leaf_is_renewed_when_a_third_of_its_life_is_left():
    bundle = fresh()
    renewed, steps = advance(bundle, policy=POLICY, now=NOW + 21 * DAY)
    assert [step.action for step in steps] == [Action.REISSUE_LEAF]
    assert renewed.ca == bundle.ca
    assert facts(renewed.serving.certificate).not_after == NOW + 51 * DAY


def test_the_shortest_life_comes_to_rest_too():
    policy = replace(POLICY, ca_lifetime=timedelta(seconds=60), leaf_lifetime=timedelta(seconds=6))
    bundle = fresh(policy=policy)
    assert actions(bundle, NOW + timedelta(seconds=3), policy) == []
    assert actions(bundle, NOW + timedelta(seconds=5), policy) == [Action.REISSUE_LEAF]


REISSUED_AT_ONCE = {
    "the names have changed": lambda b: (b, replace(POLICY, names=("other",))),
    "the key does not fit": lambda b: (
        replace(b, serving=Pair(b.serving.certificate, b.ca.key)),
        POLICY,
    ),
    "it cannot be read": lambda b: (replace(b, serving=Pair(b"x", b"y")), POLICY),
    "it is missing": lambda b: (replace(b, serving=None), POLICY),
    "a stranger has signed it": lambda b: (
        replace(
            b,
            serving=issue_serving(
                issue_ca(common_name="s", lifetime=DAY, now=NOW),
                names=POLICY.names,
                lifetime=HOUR,
                now=NOW,
            ),
        ),
        POLICY,
    ),
}


@pytest.mark.parametrize("spoil", REISSUED_AT_ONCE.values(), ids=REISSUED_AT_ONCE.keys())
def test_a_leaf_is_made_anew_at_once_when(spoil):
    bundle, policy = spoil(fresh())
    assert actions(bundle, NOW, policy) == [Action.REISSUE_LEAF]


def test_an_authority_is_replaced_in_three_steps_an_overlap_apart():
    old = fresh()
    old, _ = advance(old, policy=POLICY, now=NOW + 190 * DAY)
    day = NOW + 201 * DAY
    staged, steps = advance(old, policy=POLICY, now=day)
    assert [step.action for step in steps] == [Action.NEW_CA]
    assert staged.trusted == (staged.ca.certificate, old.ca.certificate)
    assert staged.serving == old.serving, "nobody knows the new authority yet"

    assert actions(staged, day + HOUR / 2) == []
    moved, steps = advance(staged, policy=POLICY, now=day + HOUR)
    assert [step.action for step in steps] == [Action.REISSUE_LEAF]
    assert is_signed_by(moved.serving.certificate, staged.ca.certificate)
    assert moved.trusted == staged.trusted, "the old leaf may still be served somewhere"

    assert actions(moved, day + HOUR * 1.5) == []
    done, steps = advance(moved, policy=POLICY, now=day + 2 * HOUR)
    assert [step.action for step in steps] == [Action.RETIRE_CA]
    assert done.trusted == (staged.ca.certificate,)


def test_after_everything_has_expired_all_is_new_at_once():
    bundle, steps = advance(fresh(), policy=POLICY, now=NOW + 400 * DAY)
    assert [step.action for step in steps] == [Action.NEW_CA, Action.REISSUE_LEAF]
    assert bundle.trusted == (bundle.ca.certificate,)


def test_every_step_says_why():
    step = decide(Bundle(), policy=POLICY, now=NOW)
    assert step.reason == "there is no authority"


@pytest.mark.parametrize(
    "wrong",
    [
        {"names": ()},
        {"renew_at": 0.0},
        {"renew_at": 1.0},
        {"leaf_lifetime": POLICY.ca_lifetime},
    ],
)
def test_a_policy_that_cannot_work_is_refused(wrong):
    with pytest.raises(ValueError):
        replace(POLICY, **wrong)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0.1, 15), min_size=1, max_size=40))
def test_at_any_pace_the_served_leaf_is_valid_and_trusted_before_and_after_each_run(days):
    """Clients hold the bundle of the last run while servers already serve the new leaf."""
    now = NOW
    bundle = fresh(now)
    for step in days:
        now += step * DAY
        before = bundle
        bundle, _ = advance(bundle, policy=POLICY, now=now)
        assert facts(bundle.serving.certificate).not_after > now
        assert any(is_signed_by(bundle.serving.certificate, one) for one in bundle.trusted)
        assert any(is_signed_by(bundle.serving.certificate, one) for one in before.trusted)
        assert any(is_signed_by(before.serving.certificate, one) for one in bundle.trusted)
        assert decide(bundle, policy=POLICY, now=now).action is Action.KEEP
