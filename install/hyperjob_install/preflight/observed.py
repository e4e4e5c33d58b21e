"""Read the objects for the checks, once and concurrently; trial objects are dry runs.

That includes the rights of the controller's user in Karmada and in the members, by one review for
each.
"""

import asyncio
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final, TypeVar

from hyperjob_core.api.leader import leader_of
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import LEASE_NAME, LEASE_NAMESPACE, WEBHOOK_VERSION
from hyperjob_core.api.wire import at, is_true, objects, strings
from hyperjob_core.kube.accessreviews import AccessQuestion, User, allows
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError, NotFound
from hyperjob_core.kube.resources import (
    ADMISSION_POLICY_BINDINGS,
    CLUSTER_PROPAGATION_POLICIES,
    CLUSTERS,
    CRDS,
    HYPERJOBS,
    LEASES,
    MUTATING_WEBHOOKS,
    QUEUES,
    RESOURCE_INTERPRETERS,
    VALIDATING_WEBHOOKS,
    VCJOBS,
    Resource,
)
from hyperjob_core.tasks import at_once
from hyperjob_install.definitions import missing_fields
from hyperjob_install.interpreters import VOLCANO_GLOBAL, clashes
from hyperjob_install.objects import is_ours
from hyperjob_install.rbac import controller_rules, lease_rules, member_rules
from hyperjob_install.reach import trial_hyperjob, trial_vcjob
from hyperjob_install.settings import TRAINJOBS, UNKNOWN, Settings, command, recorded
from hyperjob_rules.configuration import MUTATING_NAME

_T = TypeVar("_T")
_AT_ONCE: Final = 8
_MEMBER_SECONDS: Final = 5.0
_AUTHENTICATED: Final = "system:authenticated"
_ACCOUNTS: Final = "system:serviceaccounts"


@dataclass(frozen=True, slots=True)
class ControllerRights:
    """The user of the controller, and the requests of its work that it may not make."""

    user: str
    refused: tuple[str, ...]


def user_of(leases: Sequence[Object], settings: Settings | None, *, now: datetime) -> User | None:
    """Return the user that the controller wrote to its Lease, or that of the installation."""
    leader = leader_of(leases, now=now)
    if leader is not None and leader.user:
        return User(leader.user, groups=leader.groups)
    return None if settings is None else _installed(settings, "controller")


def _installed(settings: Settings, process: str) -> User:
    groups: tuple[str, ...] = (_AUTHENTICATED,)
    if settings.service_accounts:
        groups = (_ACCOUNTS, f"{_ACCOUNTS}:{LEASE_NAMESPACE}", _AUTHENTICATED)
    return User(settings.user(process), groups=groups)


async def read_rights(kube: Kube, user: User, settings: Settings | None) -> ControllerRights:
    """Review every right of the controller's roles for a user; raises KubeError.

    The roles are those of the installation's optional parts, without any if there is none.
    """
    return await _reviewed(kube, user, list(_questions(user, settings or Settings())))


async def read_members(
    kube: Kube, settings: Settings, clusters: Sequence[Object]
) -> dict[str, ControllerRights | KubeError]:
    """Ask the API server of each Ready member whether the account may read what it reads there.

    The questions go through Karmada's proxy, as the controller's reads do.
    """
    user = _installed(settings, "members")
    questions = [
        AccessQuestion(user, rule["verbs"][0], Resource(rule["apiGroups"][0], "", plural, ""))
        for rule in member_rules(settings.members)
        for plural in rule["resources"]
    ]

    async def asked(cluster: str) -> ControllerRights | KubeError:
        member = kube.member(cluster, time_limit=_MEMBER_SECONDS)
        return await _or_error(_reviewed(member, user, questions))

    names = [each["metadata"]["name"] for each in clusters if is_true(each, "Ready")]
    return dict(zip(names, await at_once(asked, names, most=_AT_ONCE), strict=True))


async def _reviewed(
    kube: Kube, user: User, questions: Sequence[AccessQuestion]
) -> ControllerRights:
    answers = await at_once(partial(allows, kube), questions, most=_AT_ONCE)
    refused = dict.fromkeys(
        _text(question) for question, allowed in zip(questions, answers, strict=True) if not allowed
    )
    return ControllerRights(user.name, tuple(refused))


def _questions(user: User, settings: Settings) -> Iterator[AccessQuestion]:
    """Yield one access review for each verb, resource and name of the controller's roles."""
    for rules, namespace in (
        (controller_rules(trainjobs=TRAINJOBS in settings.parts), ""),
        (lease_rules(LEASE_NAMESPACE), LEASE_NAMESPACE),
    ):
        for rule in rules:
            for plural in rule["resources"]:
                resource = Resource(rule["apiGroups"][0], "", plural, "")
                for verb in rule["verbs"]:
                    for name in rule.get("resourceNames", ("",)):
                        yield AccessQuestion(user, verb, resource, namespace=namespace, name=name)


def _text(question: AccessQuestion) -> str:
    assert question.resource is not None
    return f"{question.verb} {question.resource.group_resource}"


_LISTED: Final[Mapping[str, Resource]] = {
    "definitions": CRDS,
    "clusters": CLUSTERS,
    "queues": QUEUES,
    "interpreters": RESOURCE_INTERPRETERS,
    "policies": CLUSTER_PROPAGATION_POLICIES,
    "mutating": MUTATING_WEBHOOKS,
    "validating": VALIDATING_WEBHOOKS,
    "tenancy": ADMISSION_POLICY_BINDINGS,
}
"""The kinds of which all objects are read, by their field of `ObservedPlane`."""

Read = list[Object] | KubeError
"""The objects, or the error of the request."""


class UnreadError(Exception):
    """A check needs objects that could not be read; the text is the reason."""


@dataclass(frozen=True, slots=True)
class DryRun:
    """The API server's answer to the dry run of an object; no `error`: it is admitted.

    `version` is the release of the webhook that admitted a HyperJob, empty before 0.2.
    """

    error: KubeError | None
    version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedPlane:
    """All observed objects. A kind that the API server does not serve has no objects."""

    now: datetime
    host: str
    version: str
    groups: frozenset[str]
    leases: Read
    definitions: Read
    clusters: Read
    queues: Read
    interpreters: Read
    policies: Read
    mutating: Read
    validating: Read
    tenancy: Read
    trial: DryRun | None
    vcjob: DryRun | None
    installation: Settings | KubeError | None
    rights: ControllerRights | KubeError | None
    members: Mapping[str, ControllerRights | KubeError]

    @property
    def settings(self) -> Settings:
        """Return the settings of the installation, with placeholders where there is none."""
        found = self.installation
        return UNKNOWN if found is None or isinstance(found, KubeError) else found

    def install(self, *, settings: Settings | None = None) -> str:
        """Return the whole command that repeats the installation, or installs other settings.

        The installation is all or nothing: any remedy allows what each of them needs.
        """
        configurations = [] if isinstance(self.mutating, KubeError) else self.mutating
        trusts = any(
            at(hook, "clientConfig", "caBundle")
            for configuration in configurations
            if configuration["metadata"]["name"] == MUTATING_NAME
            for hook in configuration.get("webhooks") or []
        )
        authorities = () if trusts or self.settings.authority else ("--ca-file", "ca.crt")
        return command(settings or self.settings, *authorities, *self._allowances())

    def _allowances(self) -> Iterator[str]:
        """Yield options for objects of others that refuse each installation."""
        definitions = [] if isinstance(self.definitions, KubeError) else self.definitions
        live = named(definitions, HYPERJOBS.group_resource)
        if live is not None and not is_ours(live) and missing_fields(live, HYPERJOBS):
            yield from ("--allow", "conflicts")
        others = [] if isinstance(self.interpreters, KubeError) else self.interpreters
        if any(clash.name in VOLCANO_GLOBAL for clash in clashes(others)):
            yield from ("--allow", "interpreters")


def need(read: Read) -> list[Object]:
    """Return the objects, or raise UnreadError."""
    if isinstance(read, KubeError):
        raise UnreadError(read.message)
    return read


def named(read: Read, name: str) -> Object | None:
    """Return an object by name; None if there is none."""
    return next((each for each in need(read) if each["metadata"]["name"] == name), None)


def sees(webhook: Object, resource: Resource) -> bool:
    """Return whether the rules of a webhook name a resource; a wildcard does not."""
    return any(
        resource.group in strings(rule.get("apiGroups"))
        and resource.plural in strings(rule.get("resources"))
        for rule in objects(webhook.get("rules"))
    )


async def observe(kube: Kube, *, now: datetime) -> ObservedPlane:
    """Read all objects; KubeError when the API server does not answer."""
    version = (await kube.raw("GET", "/version")).json()
    groups = (await kube.raw("GET", "/apis")).json()

    wanted = {
        **{name: _items(kube, resource) for name, resource in _LISTED.items()},
        "leases": _one(kube, LEASES, LEASE_NAME, namespace=LEASE_NAMESPACE),
    }
    async with asyncio.TaskGroup() as group:
        reads = {name: group.create_task(_read(asked)) for name, asked in wanted.items()}
        trial = group.create_task(_trial(kube, HYPERJOBS, trial_hyperjob()))
        vcjob = group.create_task(_trial(kube, VCJOBS, trial_vcjob()))
        installation = group.create_task(_or_error(recorded(kube)))
    known = installation.result()
    settings = None if isinstance(known, KubeError) else known
    leases, clusters = reads["leases"].result(), reads["clusters"].result()
    user = user_of([] if isinstance(leases, KubeError) else leases, settings, now=now)
    members = {}
    if settings is not None and not isinstance(clusters, KubeError):
        members = await read_members(kube, settings, clusters)
    return ObservedPlane(
        now=now,
        host=kube.host,
        version=str(version.get("gitVersion") or ""),
        groups=frozenset(each["name"] for each in groups.get("groups") or []),
        trial=trial.result(),
        vcjob=vcjob.result(),
        installation=known,
        rights=None if user is None else await _or_error(read_rights(kube, user, settings)),
        members=members,
        **{name: task.result() for name, task in reads.items()},
    )


async def _read(asked: Awaitable[list[Object]]) -> Read:
    """Return the objects, none where their kind or the object is missing, or the error."""
    try:
        return await asked
    except NotFound:
        return []
    except KubeError as error:
        return error


async def _items(kube: Kube, resource: Resource) -> list[Object]:
    return (await kube.list(resource)).items


async def _one(
    kube: Kube, resource: Resource, name: str, *, namespace: str | None = None
) -> list[Object]:
    return [await kube.get(resource, name, namespace=namespace)]


async def _or_error(asked: Awaitable[_T]) -> _T | KubeError:
    try:
        return await asked
    except KubeError as error:
        return error


async def _trial(kube: Kube, resource: Resource, trial: Object) -> DryRun | None:
    """Create an object as a dry run, for which the API server calls its webhooks."""
    try:
        made = await kube.create(resource, trial, dry_run=True)
    except NotFound:
        return None
    except KubeError as error:
        return DryRun(error)
    annotations = made["metadata"].get("annotations") or {}
    return DryRun(None, version=str(annotations.get(WEBHOOK_VERSION) or ""))
