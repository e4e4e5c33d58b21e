"""Checks of the CRDs, of Volcano Global and of Queues in the Karmada API server. Pure."""

import re
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.volcano_global import queues_bindings
from hyperjob_core.api.wire import at, is_true, objects
from hyperjob_core.kube.resources import (
    HYPERJOBS,
    MUTATING_WEBHOOKS,
    QUEUES,
    VALIDATING_WEBHOOKS,
    VCJOBS,
)
from hyperjob_install.definitions import VOLCANO, lost_fields, missing_fields
from hyperjob_install.manifest import DEFAULT_QUEUE, QUEUE_POLICY
from hyperjob_install.plan import shorten
from hyperjob_install.preflight.finding import CheckResult, failed, ok, warning
from hyperjob_install.preflight.observed import ObservedPlane, named, need, sees
from hyperjob_install.reach import TRIAL_NAMESPACE

_CLAIM: Final = "clusterpropagationpolicy.karmada.io/name"
_CALLED: Final = re.compile(r'failed calling webhook "([^"]{1,300})"')
_OVERWRITE: Final = '{"spec":{"conflictResolution":"Overwrite"}}'


def hyperjob_definition(observed: ObservedPlane) -> CheckResult:
    """Check that the HyperJob CRD exists, is served, and is this release's."""
    name = HYPERJOBS.group_resource
    definition = named(observed.definitions, name)
    if definition is None:
        return failed(f"definition {name} is missing", remedy=observed.install())
    if not is_true(definition, "Established"):
        return failed(f"definition {name} is not served", remedy=f"kubectl describe crd {name}")
    if lacking := missing_fields(definition, HYPERJOBS):
        return failed(
            f"definition {name} is older than this release and lacks {_list(lacking)}",
            remedy=observed.install(),
        )
    if extra := lost_fields(definition):
        return warning(
            f"definition {name} is newer than this release: it also has {_list(extra)}",
            remedy="use the hyperjob release that installed it",
        )
    return ok(f"definition {name} is this release's")


def volcano_definitions(observed: ObservedPlane) -> CheckResult:
    """Check that Volcano's CRDs exist, and that they keep all fields of vcjobs."""
    live = {resource: named(observed.definitions, resource.group_resource) for resource in VOLCANO}
    missing = [resource.group_resource for resource, found in live.items() if found is None]
    if missing:
        return failed(
            f"Volcano's definitions are missing: {', '.join(missing)}", remedy=observed.install()
        )
    vcjob = live[VCJOBS]
    if vcjob is not None and (lacking := missing_fields(vcjob, VCJOBS)):
        return warning(
            f"definition {VCJOBS.group_resource} drops fields that newer members accept:"
            f" {_list(lacking)}",
            remedy="apply the CRDs of the newest Volcano release in the members",
        )
    return ok("Volcano's definitions exist: " + ", ".join(each.group_resource for each in VOLCANO))


def has_volcano_global(observed: ObservedPlane) -> bool:
    """Return whether Volcano Global is installed."""
    return queues_bindings(need(observed.mutating))


def default_queue(observed: ObservedPlane) -> CheckResult:
    """Check that the Queue of jobs that name no queue is Open."""
    queue = named(observed.queues, DEFAULT_QUEUE)
    if queue is None:
        checked = _checks_queues(observed)
        verdict = failed if checked else warning
        why = (
            "Volcano's webhook refuses jobs without it"
            if checked
            else "jobs that name no queue wait until it exists"
        )
        return verdict(f"queue {DEFAULT_QUEUE} does not exist: {why}", remedy=observed.install())
    state = (queue.get("status") or {}).get("state")
    if state == "Open":
        return ok(f"queue {DEFAULT_QUEUE} is Open")
    if state:
        return failed(
            f"queue {DEFAULT_QUEUE} is {state} in all members",
            remedy=f"open it in a member: vcctl queue operate -n {DEFAULT_QUEUE} -a open",
        )
    verdict = failed if _checks_queues(observed) else warning
    return verdict(
        f"queue {DEFAULT_QUEUE} has no state: Karmada has collected no status from a member",
        remedy=f"kubectl describe clusterresourcebinding {DEFAULT_QUEUE}-queue",
    )


def vcjobs(observed: ObservedPlane) -> CheckResult:
    """Check by a dry run that the API server, with the webhooks of others, admits a vcjob."""
    trial = observed.vcjob
    if trial is None:
        return failed("no vcjob can be stored yet", remedy=observed.install())
    if trial.error is None:
        return ok("the API server admits a vcjob in a dry run")
    said = trial.error.message
    called = _CALLED.search(said)
    if called is None:
        return warning(
            f"the API server refuses a vcjob in namespace {TRIAL_NAMESPACE}: {said}",
            remedy="correct the cause, if HyperJobs shall run in this namespace",
        )
    owner = _configuration(observed, called[1])
    return failed(
        f"the API server refuses every vcjob, since no process answers a webhook: {said}",
        remedy=f"start the process of {owner}, or, if it was uninstalled: kubectl delete {owner}",
    )


def _configuration(observed: ObservedPlane, webhook: str) -> str:
    """Return the resource and the name of the configuration that has a webhook."""
    for resource, configurations in (
        (MUTATING_WEBHOOKS, observed.mutating),
        (VALIDATING_WEBHOOKS, observed.validating),
    ):
        for configuration in need(configurations):
            if any(each.get("name") == webhook for each in objects(configuration.get("webhooks"))):
                return f"{resource.plural} {configuration['metadata']['name']}"
    return f"the configuration of {webhook}"


def queue_policies(observed: ObservedPlane) -> CheckResult:
    """Check that Karmada copies Queues to the members, over Queues that Volcano created there."""
    policies = {
        policy["metadata"]["name"]: policy
        for policy in need(observed.policies)
        if _selects_queues(policy)
    }
    if not policies:
        return failed(
            "no ClusterPropagationPolicy copies queues to the members", remedy=observed.install()
        )
    queue = named(observed.queues, DEFAULT_QUEUE)
    claimed = ((queue or {}).get("metadata", {}).get("annotations") or {}).get(_CLAIM)
    # The policy that Karmada has chosen for the Queue precedes any other.
    name = next(each for each in (claimed, QUEUE_POLICY, *policies) if each in policies)
    if (policies[name].get("spec") or {}).get("conflictResolution") != "Overwrite":
        return failed(
            f"policy {name} does not adopt queues that exist in a member, such as"
            f" {DEFAULT_QUEUE}: Karmada never collects their state",
            remedy=f"kubectl patch clusterpropagationpolicy {name} --type=merge -p '{_OVERWRITE}'",
        )
    return ok(f"policy {name} copies queues to the members")


def _checks_queues(observed: ObservedPlane) -> bool:
    """Return whether a webhook of Volcano validates vcjobs here, and the state of their queue."""
    return any(
        sees(webhook, VCJOBS)
        for configuration in need(observed.validating)
        for webhook in configuration.get("webhooks") or []
    )


def _selects_queues(policy: Object) -> bool:
    kinds = [
        (each.get("apiVersion"), each.get("kind"))
        for each in objects(at(policy, "spec", "resourceSelectors"))
    ]
    return (QUEUES.api_version, QUEUES.kind) in kinds


def _list(fields: list[str]) -> str:
    return ", ".join(shorten(tuple(fields)))
