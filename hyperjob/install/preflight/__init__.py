"""Is everything there that HyperJobs need, and if not, the remedy.

`observe` reads, the checks decide, one finding each; nothing is changed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from hyperjob.install.preflight import (
    controller,
    interpreters,
    karmada,
    members,
    progress,
    tenancy,
    volcano,
    webhooks,
)
from hyperjob.install.preflight.finding import CheckResult, Finding, Status, failed
from hyperjob.install.preflight.observed import Observed, UnreadError, observe
from hyperjob.kube.client import Kube
from hyperjob.kube.errors import KubeError

__all__ = ["CHECKS", "CheckResult", "Finding", "Report", "Status", "examine", "preflight"]

CHECKS: Final[Mapping[str, Callable[[Observed], CheckResult]]] = {
    "api-server": karmada.api_server,
    "karmada": karmada.karmada,
    "hyperjob-definition": volcano.hyperjob_definition,
    "stored-hyperjobs": volcano.stored_hyperjobs,
    "volcano-definitions": volcano.volcano_definitions,
    "lease-namespace": karmada.lease_namespace,
    "volcano-global": volcano.volcano_global,
    "queue-policy": volcano.queue_policies,
    "default-queue": volcano.default_queue,
    "interpreters": interpreters.customizations,
    "other-interpreters": interpreters.others,
    "multiple-pod-templates": karmada.multiple_pod_templates,
    "members-ready": members.ready,
    "members-vcjob-api": members.vcjob_api,
    "members-resources": members.resource_summary,
    "members-resource-models": members.resource_models,
    "service-exports": members.service_exports,
    "webhook-configurations": webhooks.configured,
    "webhook-ca": webhooks.trusted,
    "webhook-answers": webhooks.answers,
    "tenancy": tenancy.tenancy,
    "progress": progress.progress,
    "controller-leads": controller.leads,
    "queue-admission": controller.queue_admission,
}


@dataclass(frozen=True, slots=True)
class Report:
    """All findings in order; `reached`: the API server answered."""

    findings: tuple[Finding, ...]
    reached: bool = True

    @property
    def passed(self) -> bool:
        """Return whether HyperJobs can run: nothing failed, and everything could be looked at."""
        bad = {Status.FAILED, Status.UNKNOWN}
        return not any(finding.verdict.status in bad for finding in self.findings)


async def preflight(kube: Kube, *, now: datetime, lease_namespace: str) -> Report:
    """Look everything over."""
    try:
        observed = await observe(kube, now=now, lease_namespace=lease_namespace)
    except KubeError as error:
        verdict = failed(
            f"the API server cannot be asked: {error.message}",
            remedy="give a kubeconfig with --kubeconfig for which `kubectl version` answers",
        )
        return Report((Finding("api-server", verdict),), reached=False)
    return examine(observed)


def examine(observed: Observed) -> Report:
    """Run every check on what was read."""
    return Report(tuple(Finding(name, _run(check, observed)) for name, check in CHECKS.items()))


def _run(check: Callable[[Observed], CheckResult], observed: Observed) -> CheckResult:
    try:
        return check(observed)
    except UnreadError as error:
        return CheckResult(
            Status.UNKNOWN,
            f"could not be looked at: {error}",
            "use a kubeconfig that may read it, such as an administrator's",
        )
