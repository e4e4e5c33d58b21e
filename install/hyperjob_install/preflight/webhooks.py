"""Checks of the webhook by the API server: configured, reached, trusted. Pure."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final
from urllib.parse import urlsplit

from hyperjob_core import __version__
from hyperjob_core.api.leader import leader_of
from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import at, objects
from hyperjob_core.kube.errors import KubeError
from hyperjob_install.preflight.finding import (
    ONE_RELEASE,
    CheckResult,
    are_compatible,
    failed,
    ok,
    warning,
)
from hyperjob_install.preflight.observed import ObservedPlane, named
from hyperjob_install.reach import TRIAL_NAMESPACE, address_of, is_untrusted
from hyperjob_rules.configuration import MUTATING_NAME, VALIDATING_NAME

_INJECT: Final = "hyperjob-certs inject --ca-file ca.crt"
_AUTHORITY: Final = "; hyperjob-certs keeps ca.crt beside the certificate of the webhook"
_OTHER_NAMES: Final = re.compile(
    r"is valid for |not valid for |any names|IP SANs|legacy Common Name|mismatch"
)
"""What an API server says of a certificate that is signed but has other names."""


def answers(observed: ObservedPlane) -> CheckResult:
    """Check that both webhook configurations exist, and by a dry run that the webhook answers."""
    trial = observed.trial
    missing = [name for name, found in _configurations(observed) if found is None]
    if missing:
        said, remedy = (
            f"webhook configurations are missing: {', '.join(missing)}",
            observed.install(),
        )
        return failed(said + (_AUTHORITY if "--ca-file" in remedy else ""), remedy=remedy)
    if trial is None:
        return failed("no HyperJob can be stored yet", remedy=observed.install())
    error = trial.error
    if error is None:
        return _admitted(observed, trial.version)
    said = error.message
    if "failed calling webhook" not in said:
        return warning(
            f"the API server refuses a HyperJob in namespace {TRIAL_NAMESPACE}: {said}",
            remedy="correct the cause, if HyperJobs shall run in this namespace",
        )
    if is_untrusted(said):
        if _OTHER_NAMES.search(said):
            return failed(
                "the certificate lacks the name under which the API server calls the webhook:"
                f" {said}",
                remedy=_rotation(observed),
            )
        return failed(
            f"caBundle does not verify the certificate chain that the webhook serves: {said}",
            remedy=_INJECT,
        )
    moved = replace(observed.settings, url="https://HOST:PORT", service=None)
    return failed(
        f"the API server does not reach the webhook: {said}",
        remedy="start hyperjob-webhook, and check that the API server reaches its address by"
        f" network and DNS; if the address is wrong: {observed.install(settings=moved)}",
    )


def _rotation(observed: ObservedPlane) -> str:
    """Return the command that renews the certificate for the name that the API server calls."""
    service = observed.settings.service
    name = f"{service.name}.{service.namespace}.svc" if service else None
    name = name or urlsplit(observed.settings.url or "").hostname or "HOST"
    return (
        "hyperjob-certs rotate --secret karmada-system/hyperjob-webhook-tls"
        " --kubeconfig host.config"
        f" --karmada-kubeconfig karmada.config --name {name} --inject"
    )


def _admitted(observed: ObservedPlane, release: str) -> CheckResult:
    """Compare the webhook's release with those of this command and of the controller."""
    leases = [] if isinstance(observed.leases, KubeError) else observed.leases
    leader = leader_of(leases, now=observed.now)
    others = {"this command line": __version__}
    if leader is not None and leader.leads and leader.version:
        others["the controller"] = leader.version
    apart = [
        f"{who} is {version}"
        for who, version in others.items()
        if not are_compatible(version, release)
    ]
    if apart:
        return warning(
            f"the webhook's release is {release or 'unknown'}, and {' and '.join(apart)}",
            remedy=ONE_RELEASE,
        )
    webhooks = [
        each for _, found in _configurations(observed) for each in objects(at(found, "webhooks"))
    ]
    where = ", ".join(sorted(set(map(address_of, webhooks))))
    return ok(f"the webhook at {where}, release {release}, admitted a HyperJob in a dry run")


def _configurations(observed: ObservedPlane) -> Iterator[tuple[str, Object | None]]:
    yield MUTATING_NAME, named(observed.mutating, MUTATING_NAME)
    yield VALIDATING_NAME, named(observed.validating, VALIDATING_NAME)
