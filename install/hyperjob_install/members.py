"""The account that reads the members: its rights in Karmada and in each member, by step.

Karmada's proxy impersonates the requesting user in the member. The account needs `get` on
clusters/proxy in Karmada, and in each member the rights of its step. Karmada copies the role and
its binding to every member.
"""

from typing import Final

from hyperjob_core.api.choices import MemberAccess
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.resources import (
    CLUSTER_PROPAGATION_POLICIES,
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CLUSTERS,
    CORE_EVENTS,
    DEVICES,
    HYPERNODES,
    NODES,
    PODGROUPS,
    PODS,
    Resource,
)
from hyperjob_install.objects import Component, Item, new_item
from hyperjob_install.rbac import MEMBERS

MEMBER_ROLE: Final = "hyperjob-members-reader"
_READ: Final = ("get", "list", "watch")


def members(subject: Object, step: MemberAccess) -> list[Item]:
    """Return the roles, their bindings and the policy that copies them to members.

    With the step `off` the items are marked for deletion.
    """
    absent = step is MemberAccess.OFF
    return [
        _member_item(CLUSTER_ROLES, MEMBERS, {"rules": proxy_rules()}, absent=absent),
        _binding(MEMBERS, subject, absent=absent),
        _member_item(CLUSTER_ROLES, MEMBER_ROLE, {"rules": member_rules(step)}, absent=absent),
        _binding(MEMBER_ROLE, subject, absent=absent),
        _policy(MEMBERS, MEMBER_ROLE, absent=absent),
    ]


def proxy_rules() -> list[Object]:
    """Return the rules of the account in the Karmada API server."""
    return [
        {"apiGroups": [CLUSTERS.group], "resources": ["clusters/proxy"], "verbs": ["get"]},
    ]


def member_rules(step: MemberAccess) -> list[Object]:
    """Return the rules of the account in a member, the least that a step needs."""
    rules: list[Object] = []
    if step.includes(MemberAccess.PODS):
        rules += [_rule(PODS, *_READ), _rule(PODGROUPS, *_READ)]
        rules.append(_rule(CORE_EVENTS, "list", "watch"))
    if step.includes(MemberAccess.NODES):
        rules += [_rule(each, *_READ) for each in (NODES, HYPERNODES)]
        rules += [_rule(each, "list", "watch") for each in DEVICES]
    if step.includes(MemberAccess.LOGS):
        rules.append(_rule(PODS, "get", part="/log"))
    return rules


def _rule(resource: Resource, *verbs: str, part: str = "") -> Object:
    return {
        "apiGroups": [resource.group],
        "resources": [f"{resource.plural}{part}"],
        "verbs": list(verbs),
    }


def _policy(name: str, role: str, *, absent: bool) -> Item:
    spec = {
        "resourceSelectors": [
            {"apiVersion": resource.api_version, "kind": resource.kind, "name": role}
            for resource in (CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS)
        ],
        "placement": {"replicaScheduling": {"replicaSchedulingType": "Duplicated"}},
    }
    return _member_item(CLUSTER_PROPAGATION_POLICIES, name, {"spec": spec}, absent=absent)


def _binding(name: str, subject: Object, *, absent: bool) -> Item:
    role = {"apiGroup": CLUSTER_ROLES.group, "kind": CLUSTER_ROLES.kind, "name": name}
    content = {"roleRef": role, "subjects": [subject]}
    return _member_item(CLUSTER_ROLE_BINDINGS, name, content, absent=absent)


def _member_item(
    resource: Resource, name: str, content: Object, *, absent: bool, namespace: str | None = None
) -> Item:
    return new_item(
        resource,
        name,
        content,
        part=Component.MEMBERS,
        component="members",
        absent=absent,
        namespace=namespace,
    )
