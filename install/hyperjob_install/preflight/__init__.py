"""Check the requirements of HyperJobs in Karmada, with a remedy for each failure.

`observe` reads the objects, and each check returns one finding. The package writes nothing: its
trial objects are server dry runs.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError
from hyperjob_install.preflight import karmada, members, volcano, webhooks
from hyperjob_install.preflight.finding import CheckResult, Finding, Status, failed
from hyperjob_install.preflight.observed import ObservedPlane, UnreadError, observe

__all__ = ["CHECKS", "CheckResult", "Finding", "PreflightReport", "Status", "examine", "preflight"]

CHECKS: Final[Mapping[str, Callable[[ObservedPlane], CheckResult]]] = {
    "karmada": karmada.karmada,
    "hyperjob-definition": volcano.hyperjob_definition,
    "volcano-definitions": volcano.volcano_definitions,
    "queue-policy": volcano.queue_policies,
    "default-queue": volcano.default_queue,
    "vcjobs": volcano.vcjobs,
    "interpreters": karmada.customizations,
    "other-interpreters": karmada.others,
    "members-ready": members.ready,
    "members-vcjob-api": members.vcjob_api,
    "members-reader": members.reader,
    "webhook-answers": webhooks.answers,
    "tenancy": karmada.tenancy,
    "trainjobs": karmada.trainjobs,
    "controller-rights": karmada.rights,
    "controller-leads": karmada.leads,
    "queue-admission": karmada.queue_admission,
}
"""What no other command, message or status says, each with a remedy that a user can run."""


@dataclass(frozen=True, slots=True)
class PreflightReport:
    """All findings in order; `reached` is False if the API server did not answer."""

    findings: tuple[Finding, ...]
    reached: bool = True

    @property
    def passed(self) -> bool:
        """Return whether HyperJobs can run: no check failed, and all objects could be read."""
        bad = {Status.FAILED, Status.UNKNOWN}
        return not any(finding.verdict.status in bad for finding in self.findings)


async def preflight(kube: Kube, *, now: datetime) -> PreflightReport:
    """Read the objects and run all checks; the report has one finding for each check."""
    try:
        observed = await observe(kube, now=now)
    except KubeError as error:
        verdict = failed(
            f"the API server does not answer: {error.message}",
            remedy="give a kubeconfig with --kubeconfig for which `kubectl version` answers",
        )
        return PreflightReport((Finding("karmada", verdict),), reached=False)
    return examine(observed)


def examine(observed: ObservedPlane) -> PreflightReport:
    """Run every check on the observed objects."""
    return PreflightReport(
        tuple(Finding(name, _run(check, observed)) for name, check in CHECKS.items())
    )


def _run(check: Callable[[ObservedPlane], CheckResult], observed: ObservedPlane) -> CheckResult:
    try:
        return check(observed)
    except UnreadError as error:
        return CheckResult(
            Status.UNKNOWN,
            f"cannot be checked: {error}",
            "use a kubeconfig with the right to read it, such as an administrator's",
        )
