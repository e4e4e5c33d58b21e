"""When certificates are renewed, and that no moment of it leaves a client without trust."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperjob_certs.store import Bundle, RotationPolicy, advance, with_authority, with_leaf
from hyperjob_certs.x509 import Pair, facts, is_signed_by, issue_ca, issue_serving

NOW = datetime(2027, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
POLICY = RotationPolicy(names=("hooks", "127.0.0.1"), ca_lifetime=300 * DAY, leaf_lifetime=30 * DAY)


NEW_CA, REISSUE_LEAF, RETIRE_CA = "new-ca", "reissue-leaf", "retire-ca"


def names_of(steps):
    return [step.partition(":")[0] for step in steps]


def fresh(now=NOW, policy=POLICY):
    bundle, steps = advance(Bundle(), policy=policy, now=now)
    assert names_of(steps) == [NEW_CA, REISSUE_LEAF]
    return bundle


def actions(bundle, now, policy=POLICY):
    return names_of(advance(bundle, policy=policy, now=now)[1])


def test_the_shortest_life_comes_to_rest_too():
    policy = replace(POLICY, ca_lifetime=timedelta(seconds=60), leaf_lifetime=timedelta(seconds=6))
    bundle = fresh(policy=policy)
    assert actions(bundle, NOW + timedelta(seconds=3), policy) == []
    assert actions(bundle, NOW + timedelta(seconds=5), policy) == [REISSUE_LEAF]


REISSUED_AT_ONCE = {
    "the names have changed": lambda b: (b, replace(POLICY, names=("other",))),
    "the key does not fit": lambda b: (
        replace(b, serving=Pair(b.serving.certificate, b.ca.key)),
        POLICY,
    ),
    "it cannot be read": lambda b: (replace(b, serving=Pair(b"x", b"y")), POLICY),
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
    assert actions(bundle, NOW, policy) == [REISSUE_LEAF]


def test_an_authority_is_replaced_in_three_steps_an_overlap_apart():
    old = fresh()
    old, _ = advance(old, policy=POLICY, now=NOW + 190 * DAY)
    day = NOW + 201 * DAY
    staged, steps = advance(old, policy=POLICY, now=day)
    assert names_of(steps) == [NEW_CA]
    assert staged.trusted == (staged.ca.certificate, old.ca.certificate)
    assert staged.serving == old.serving, "nobody knows the new authority yet"

    assert actions(staged, day + HOUR / 2) == []
    moved, steps = advance(staged, policy=POLICY, now=day + HOUR)
    assert names_of(steps) == [REISSUE_LEAF]
    assert is_signed_by(moved.serving.certificate, staged.ca.certificate)
    assert moved.trusted == staged.trusted, "the old leaf may still be served somewhere"

    assert actions(moved, day + HOUR * 1.5) == []
    done, steps = advance(moved, policy=POLICY, now=day + 2 * HOUR)
    assert names_of(steps) == [RETIRE_CA]
    assert done.trusted == (staged.ca.certificate,)


def test_after_everything_has_expired_all_is_new_at_once():
    bundle, steps = advance(fresh(), policy=POLICY, now=NOW + 400 * DAY)
    assert names_of(steps) == [NEW_CA, REISSUE_LEAF]
    assert bundle.trusted == (bundle.ca.certificate,)


SECOND = timedelta(seconds=1)


def staged(now=NOW):
    """Return a bundle whose new authority, of `now`, has signed nothing yet."""
    return with_authority(fresh(), policy=POLICY, now=now)


def moved(now=NOW):
    """Return a bundle whose new authority, of `now`, has signed the serving certificate."""
    return with_leaf(staged(now), policy=POLICY, now=now)


STEPS = {
    "no authority": (Bundle(), NOW, "new-ca: there is no authority"),
    "an authority without its key": (
        replace(fresh(), ca=Pair(fresh().ca.certificate, fresh().ca.key)),
        NOW,
        "new-ca: the authority cannot sign: the private key does not belong to the certificate",
    ),
    "an authority before its renewal": (
        with_leaf(fresh(), policy=POLICY, now=NOW + 190 * DAY),
        NOW + 200 * DAY - SECOND,
        "",
    ),
    "an authority with a third of its life": (
        with_leaf(fresh(), policy=POLICY, now=NOW + 190 * DAY),
        NOW + 200 * DAY,
        "new-ca: the authority is near its end",
    ),
    "no serving certificate": (
        replace(fresh(), serving=None),
        NOW,
        "reissue-leaf: there is no serving certificate",
    ),
    "a serving certificate after its end": (
        fresh(),
        NOW + 30 * DAY,
        (
            "reissue-leaf: the serving certificate cannot be used: "
            "the certificate expired at 2027-01-31T00:00:00+00:00"
        ),
    ),
    "a serving certificate before its renewal": (fresh(), NOW + 20 * DAY - SECOND, ""),
    "a serving certificate with a third of its life": (
        fresh(),
        NOW + 20 * DAY,
        "reissue-leaf: the serving certificate is near its end",
    ),
    "the signature of an authority that is not trusted": (
        replace(fresh(), serving=moved().serving),
        NOW,
        "reissue-leaf: no trusted authority has signed the serving certificate",
    ),
    "a new authority before the overlap": (staged(), NOW + HOUR - SECOND, ""),
    "a new authority after the overlap": (
        staged(),
        NOW + HOUR,
        "reissue-leaf: the new authority is known everywhere by now",
    ),
    "an old authority before the overlap": (moved(), NOW + HOUR - SECOND, ""),
    "an old authority after the overlap": (
        moved(),
        NOW + HOUR,
        "retire-ca: no served certificate is signed by the old authority",
    ),
    "an old authority after its end": (
        moved(NOW + 300 * DAY - SECOND),
        NOW + 300 * DAY,
        "retire-ca: the old authority has expired",
    ),
    "one of two old authorities after its end": (
        replace(
            (late := moved(NOW + 300 * DAY - SECOND)),
            trusted=(*late.trusted, fresh(NOW + DAY).ca.certificate),
        ),
        NOW + 300 * DAY,
        "",
    ),
    "the same authority in other white space": (
        replace((own := fresh()), trusted=(own.ca.certificate.strip(),)),
        NOW + 10 * DAY,
        "",
    ),
}


@pytest.mark.parametrize(("bundle", "now", "step"), STEPS.values(), ids=STEPS.keys())
def test_the_next_step_and_its_reason(bundle, now, step):
    steps = advance(bundle, policy=POLICY, now=now)[1]
    assert next(iter(steps), "") == step


def test_a_new_authority_replaces_expired_ones_and_is_trusted_before_the_others():
    old, young = fresh(), fresh(NOW + DAY)
    both = replace(young, trusted=(*young.trusted, old.ca.certificate))
    found = with_authority(both, policy=POLICY, now=NOW + 300 * DAY)
    assert found.trusted == (found.ca.certificate, young.ca.certificate)
    assert facts(found.ca.certificate).subject == "CN=hyperjob-webhook-ca"
    assert found.serving == young.serving


def test_a_leaf_without_an_authority_is_refused():
    with pytest.raises(ValueError, match="there is no authority"):
        with_leaf(Bundle(), policy=POLICY, now=NOW)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        ({"names": ()}, "at least one name"),
        ({"leaf_lifetime": timedelta()}, "longer than 0 days"),
        ({"leaf_lifetime": POLICY.ca_lifetime}, "shorter than its authority"),
    ],
)
def test_a_policy_that_cannot_work_is_refused(wrong, text):
    with pytest.raises(ValueError, match=text):
        replace(POLICY, **wrong)


@settings(max_examples=60)
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
        assert actions(bundle, now) == []
