"""Checks of what is installed beside Karmada: definitions, Volcano Global, queues. Pure."""

from collections.abc import Iterator
from typing import Final

from hyperjob.api import conditions
from hyperjob.api.meta import Object
from hyperjob.api.volcano_global import queues_bindings
from hyperjob.install.definitions import VOLCANO, lost_fields, missing_fields, name_of
from hyperjob.install.diff import shorten
from hyperjob.install.policies import DEFAULT_QUEUE, QUEUE_POLICY
from hyperjob.install.preflight import stored
from hyperjob.install.preflight.finding import INSTALL, CheckResult, failed, ok, warning
from hyperjob.install.preflight.observed import Observed, UnreadError, named, need
from hyperjob.kube.errors import KubeError
from hyperjob.kube.resources import HYPERJOBS, QUEUES, VCJOBS, Resource

_CLAIM: Final = "clusterpropagationpolicy.karmada.io/name"
_OVERWRITE: Final = '{"spec":{"conflictResolution":"Overwrite"}}'


def hyperjob_definition(observed: Observed) -> CheckResult:
    """Check that the HyperJob's definition is there, served, and this release's."""
    name = name_of(HYPERJOBS)
    definition = named(observed.definitions, name)
    if definition is None:
        return failed(f"definition {name} is missing", remedy=INSTALL)
    if not conditions.is_true(conditions.parse(definition.get("status")), "Established"):
        return failed(f"definition {name} is not served", remedy=f"kubectl describe crd {name}")
    if lacking := missing_fields(definition, HYPERJOBS):
        return failed(
            f"definition {name} is older than this release and lacks {_list(lacking)}",
            remedy=INSTALL,
        )
    if extra := lost_fields(definition):
        return warning(
            f"definition {name} is newer than this release and knows {_list(extra)} too",
            remedy="use the hyperjob release that installed it",
        )
    return ok(f"definition {name} is this release's")


def stored_hyperjobs(observed: Observed) -> CheckResult:
    """Check the HyperJobs that are stored against the schema of this release."""
    if isinstance(observed.stored, KubeError):
        raise UnreadError(observed.stored.message)
    return stored.stored_hyperjobs(observed.stored)


def volcano_definitions(observed: Observed) -> CheckResult:
    """Check that Volcano's definitions are there, and keep the fields that vcjobs may have."""
    live = {resource: named(observed.definitions, name_of(resource)) for resource in VOLCANO}
    missing = [name_of(resource) for resource, found in live.items() if found is None]
    if missing:
        return failed(f"Volcano's definitions are missing: {', '.join(missing)}", remedy=INSTALL)
    vcjob = live[VCJOBS]
    if vcjob is not None and (lacking := missing_fields(vcjob, VCJOBS)):
        return warning(
            f"definition {name_of(VCJOBS)} drops fields that newer members take: {_list(lacking)}",
            remedy="apply the definitions of the newest Volcano that a member runs",
        )
    return ok("Volcano's definitions are there: " + ", ".join(name_of(each) for each in VOLCANO))


def volcano_global(observed: Observed) -> CheckResult:
    """Say who confirms with `--queue-admission auto`."""
    if has_volcano_global(observed):
        return ok("Volcano Global is here: with --queue-admission auto it confirms each gang")
    return ok(
        "Volcano Global is not here: with --queue-admission auto the controller admits by"
        " Volcano's Queues itself"
    )


def has_volcano_global(observed: Observed) -> bool:
    """Return whether Volcano Global is here."""
    return queues_bindings(need(observed.mutating))


def default_queue(observed: Observed) -> CheckResult:
    """Check that the queue of jobs that name none takes jobs."""
    queue = named(observed.queues, DEFAULT_QUEUE)
    if queue is None:
        checked = _checks_queues(observed)
        verdict = failed if checked else warning
        why = (
            "Volcano's webhook refuses jobs without it"
            if checked
            else "jobs that name no queue wait for it"
        )
        return verdict(f"queue {DEFAULT_QUEUE} does not exist: {why}", remedy=INSTALL)
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
        f"queue {DEFAULT_QUEUE} has no state: no member's status has arrived",
        remedy=f"kubectl describe clusterresourcebinding {DEFAULT_QUEUE}-queue",
    )


def queue_policies(observed: Observed) -> CheckResult:
    """Check that queues reach the members, over those that Volcano made there itself."""
    policies = {
        policy["metadata"]["name"]: policy
        for policy in need(observed.policies)
        if any(_selects_queues(each) for each in _selectors(policy))
    }
    if not policies:
        return failed("no policy sends queues to the members", remedy=INSTALL)
    queue = named(observed.queues, DEFAULT_QUEUE)
    claimed = ((queue or {}).get("metadata", {}).get("annotations") or {}).get(_CLAIM)
    name = claimed if claimed in policies else next(iter(policies))
    if QUEUE_POLICY in policies and claimed not in policies:
        name = QUEUE_POLICY
    if (policies[name].get("spec") or {}).get("conflictResolution") != "Overwrite":
        return failed(
            f"policy {name} leaves queues alone that a member has already, such as"
            f" {DEFAULT_QUEUE}, whose state then never arrives",
            remedy=f"kubectl patch clusterpropagationpolicy {name} --type=merge -p '{_OVERWRITE}'",
        )
    return ok(f"policy {name} sends queues to the members")


def _checks_queues(observed: Observed) -> bool:
    """Return whether a webhook looks at vcjobs here, and so at their queue's state."""
    return any(
        _sees(webhook, VCJOBS)
        for configuration in need(observed.validating)
        for webhook in configuration.get("webhooks") or []
    )


def _sees(webhook: Object, resource: Resource) -> bool:
    return any(
        resource.group in (rule.get("apiGroups") or [])
        and resource.plural in (rule.get("resources") or [])
        for rule in webhook.get("rules") or []
    )


def _selectors(policy: Object) -> Iterator[Object]:
    yield from (policy.get("spec") or {}).get("resourceSelectors") or []


def _selects_queues(selector: Object) -> bool:
    return (selector.get("apiVersion"), selector.get("kind")) == (QUEUES.api_version, QUEUES.kind)


def _list(fields: list[str]) -> str:
    return ", ".join(shorten(tuple(fields)))
