"""The rotation of certificates: the next step, from the certificates and the time. Pure.

An authority is replaced in several steps. Clients first trust the new authority beside the old one.
The serving certificate moves to the new authority after every API server has had time to read it.
The old authority is removed after no served certificate of it is left. The certificates themselves
show the present step: a rotation that was interrupted continues.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final, assert_never

from hyperjob_certs.x509 import (
    CLOCK_SKEW,
    InvalidPair,
    Pair,
    check_pair,
    facts,
    is_signed_by,
    issue_ca,
    issue_serving,
)


class Action(StrEnum):
    """The next step of a rotation."""

    KEEP = "keep"
    NEW_CA = "new-ca"
    REISSUE_LEAF = "reissue-leaf"
    RETIRE_CA = "retire-ca"


@dataclass(frozen=True, slots=True)
class RotationPolicy:
    """The lifetimes of certificates, and when their renewal starts."""

    names: tuple[str, ...]
    """The names to serve, each as `x509.served_name` returns it: another form never matches."""
    ca_lifetime: timedelta = timedelta(days=3650)
    leaf_lifetime: timedelta = timedelta(days=90)
    renew_at: float = 1 / 3
    """Renew when this part of the lifetime is left, which allows two failed attempts."""
    overlap: timedelta = timedelta(hours=1)
    """Time until every API server has a new authority, and no server has an old certificate."""

    def __post_init__(self) -> None:
        if not self.names:
            raise ValueError("a policy needs at least one name to issue a certificate for")
        if not 0 < self.renew_at < 1:
            raise ValueError("renew_at is a part of the life, between 0 and 1")
        if self.leaf_lifetime <= timedelta():
            raise ValueError("a serving certificate must live longer than 0 days")
        if self.leaf_lifetime >= self.ca_lifetime:
            raise ValueError("a serving certificate must live shorter than its authority")


@dataclass(frozen=True, slots=True)
class Bundle:
    """The stored certificates: the signing authority, all trusted ones, and the serving pair."""

    ca: Pair | None = None
    trusted: tuple[bytes, ...] = ()
    """PEM of every trusted authority, the signing one first."""
    serving: Pair | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """An action with its reason."""

    action: Action
    reason: str


MAX_STEPS: Final = 3
"""The most steps that a run can need: new authority, serving certificate, retirement."""


def decide(bundle: Bundle, *, policy: RotationPolicy, now: datetime) -> Step:
    """Return the next step; KEEP if none is due."""
    if (reason := _authority_is_due(bundle, policy=policy, now=now)) is not None:
        return Step(Action.NEW_CA, reason)
    if bundle.ca is None:  # for the type checker: without an authority a step is due
        return Step(Action.NEW_CA, "there is no authority")
    if (reason := _leaf_is_due(bundle, bundle.ca, policy=policy, now=now)) is not None:
        return Step(Action.REISSUE_LEAF, reason)
    if (reason := _retirement_is_due(bundle, bundle.ca, policy=policy, now=now)) is not None:
        return Step(Action.RETIRE_CA, reason)
    return Step(Action.KEEP, "nothing is due")


def perform(bundle: Bundle, action: Action, *, policy: RotationPolicy, now: datetime) -> Bundle:
    """Return the bundle after one step; the step may generate random keys."""
    match action:
        case Action.KEEP:
            return bundle
        case Action.NEW_CA:
            ca = issue_ca(common_name="hyperjob-webhook-ca", lifetime=policy.ca_lifetime, now=now)
            alive = [one for one in bundle.trusted if facts(one).not_after > now]
            return replace(bundle, ca=ca, trusted=(ca.certificate, *alive))
        case Action.REISSUE_LEAF:
            if bundle.ca is None:
                raise ValueError("a serving certificate needs an authority first")
            serving = issue_serving(
                bundle.ca, names=policy.names, lifetime=policy.leaf_lifetime, now=now
            )
            return replace(bundle, serving=serving)
        case Action.RETIRE_CA:
            if bundle.ca is None:
                raise ValueError("the last authority cannot be retired")
            return replace(bundle, trusted=(bundle.ca.certificate,))
        case _:
            assert_never(action)


def advance(bundle: Bundle, *, policy: RotationPolicy, now: datetime) -> tuple[Bundle, list[Step]]:
    """Return the bundle after every step that is due now, and these steps."""
    steps: list[Step] = []
    while (step := decide(bundle, policy=policy, now=now)).action is not Action.KEEP:
        if len(steps) == MAX_STEPS:
            raise RuntimeError(f"the rotation does not come to rest: {steps}")
        bundle = perform(bundle, step.action, policy=policy, now=now)
        steps.append(step)
    return bundle, steps


def _authority_is_due(bundle: Bundle, *, policy: RotationPolicy, now: datetime) -> str | None:
    """Return why a new authority must be issued; None if the present one can sign on."""
    if bundle.ca is None:
        return "there is no authority"
    try:
        check_pair(bundle.ca, now=now)
    except InvalidPair as problem:
        return f"the authority cannot sign: {problem}"
    if now >= _renewal(bundle.ca.certificate, policy):
        return "the authority is near its end"
    return None


def _leaf_is_due(bundle: Bundle, ca: Pair, *, policy: RotationPolicy, now: datetime) -> str | None:
    """Return why the serving certificate must be issued again; None if it need not.

    A new authority signs it only after `overlap`, when every API server trusts that authority. A
    certificate without a trusted signature is issued again at once.
    """
    if bundle.serving is None:
        return "there is no serving certificate"
    try:
        found = check_pair(bundle.serving, now=now)
    except InvalidPair as problem:
        return f"the serving certificate cannot be used: {problem}"
    if found.names != frozenset(policy.names):
        return "the names to serve have changed"
    if not is_signed_by(bundle.serving.certificate, ca.certificate):
        if not any(is_signed_by(bundle.serving.certificate, one) for one in bundle.trusted):
            return "no trusted authority has signed the serving certificate"
        if _age(ca.certificate, now) >= policy.overlap:
            return "the new authority is known everywhere by now"
        return None
    if now >= _renewal(bundle.serving.certificate, policy):
        return "the serving certificate is near its end"
    return None


def _retirement_is_due(
    bundle: Bundle, ca: Pair, *, policy: RotationPolicy, now: datetime
) -> str | None:
    """Return why older authorities are needed no more; None while a certificate may need one."""
    old = _others(bundle.trusted, ca.certificate)
    if not old or bundle.serving is None:
        return None
    if not is_signed_by(bundle.serving.certificate, ca.certificate):
        return None
    if all(facts(one).not_after <= now for one in old):
        return "the old authority has expired"
    if _age(bundle.serving.certificate, now) >= policy.overlap:
        return "no served certificate is signed by the old authority"
    return None


def _renewal(certificate: bytes, policy: RotationPolicy) -> datetime:
    found = facts(certificate)
    life = found.not_after - (found.not_before + CLOCK_SKEW)
    return found.not_after - life * policy.renew_at


def _age(certificate: bytes, now: datetime) -> timedelta:
    return now - (facts(certificate).not_before + CLOCK_SKEW)


def _others(trusted: Sequence[bytes], certificate: bytes) -> list[bytes]:
    return [one for one in trusted if one.strip() != certificate.strip()]
