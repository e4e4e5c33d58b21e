"""The rights of the controller's user in Karmada and in the members: one review for each.

The check asks the API server by SubjectAccessReviews, so that groups, other roles and other
authorizers count.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from hyperjob_core.api.leader import leader_of
from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import LEASE_NAMESPACE
from hyperjob_core.api.wire import is_true
from hyperjob_core.kube.accessreviews import AccessQuestion, User, allows
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import KubeError
from hyperjob_core.kube.resources import Resource
from hyperjob_install.members import member_rules
from hyperjob_install.rbac import controller_rules, lease_rules
from hyperjob_install.settings import Settings

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
    leader = leader_of(leases[0], now=now) if leases else None
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
    slots = asyncio.Semaphore(_AT_ONCE)

    async def asked(cluster: str) -> ControllerRights | KubeError:
        async with slots:
            try:
                member = kube.member(cluster, time_limit=_MEMBER_SECONDS)
                return await _reviewed(member, user, questions)
            except KubeError as error:
                return error

    names = [each["metadata"]["name"] for each in clusters if is_true(each, "Ready")]
    return dict(zip(names, await asyncio.gather(*map(asked, names)), strict=True))


async def _reviewed(
    kube: Kube, user: User, questions: Sequence[AccessQuestion]
) -> ControllerRights:
    slots = asyncio.Semaphore(_AT_ONCE)

    async def is_allowed(question: AccessQuestion) -> bool:
        async with slots:
            return await allows(kube, question)

    answers = await asyncio.gather(*(is_allowed(question) for question in questions))
    refused = dict.fromkeys(
        _text(question) for question, allowed in zip(questions, answers, strict=True) if not allowed
    )
    return ControllerRights(user.name, tuple(refused))


def _questions(user: User, settings: Settings) -> Iterator[AccessQuestion]:
    """Yield one access review for each verb, resource and name of the controller's roles."""
    for rules, namespace in (
        (controller_rules(trainjobs=settings.trainjobs), ""),
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
