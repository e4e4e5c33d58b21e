"""The account that reads the progress of trainings: its rights in Karmada and in the members.

Karmada's proxy impersonates the requesting user in the member. The account needs rights in both:
`get` on clusters/proxy in Karmada, and `list` on pods and `get` on pods/log in each member.
Karmada copies the role and its binding to every member.
"""

from typing import Final

from hyperjob.install.objects import Component, Item, labelled
from hyperjob_core.api.meta import Object
from hyperjob_core.kube.resources import (
    CLUSTER_PROPAGATION_POLICIES,
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    CLUSTERS,
    PODS,
    Resource,
)

ACCOUNT: Final = "hyperjob-progress"
MEMBER_ROLE: Final = "hyperjob-progress-logs"


def progress(subject: Object, *, enabled: bool) -> list[Item]:
    """Return the roles, their bindings and the policy that copies them to members.

    Without `enabled` the items are marked for deletion.
    """
    return [
        _item(CLUSTER_ROLES, ACCOUNT, {"rules": proxy_rules()}, absent=not enabled),
        _binding(ACCOUNT, subject, absent=not enabled),
        _item(CLUSTER_ROLES, MEMBER_ROLE, {"rules": member_rules()}, absent=not enabled),
        _binding(MEMBER_ROLE, subject, absent=not enabled),
        _item(
            CLUSTER_PROPAGATION_POLICIES,
            ACCOUNT,
            {
                "spec": {
                    "resourceSelectors": [
                        {
                            "apiVersion": resource.api_version,
                            "kind": resource.kind,
                            "name": MEMBER_ROLE,
                        }
                        for resource in (CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS)
                    ],
                    "placement": {"replicaScheduling": {"replicaSchedulingType": "Duplicated"}},
                }
            },
            absent=not enabled,
        ),
    ]


def proxy_rules() -> list[Object]:
    """Return the rules of the account in the Karmada API server."""
    return [
        {"apiGroups": [CLUSTERS.group], "resources": ["clusters/proxy"], "verbs": ["get"]},
    ]


def member_rules() -> list[Object]:
    """Return the rules of the account in a member."""
    return [
        {"apiGroups": [PODS.group], "resources": ["pods/log"], "verbs": ["get"]},
        # The controller reads from failed pods why a sub-job failed.
        {"apiGroups": [PODS.group], "resources": ["pods"], "verbs": ["list"]},
    ]


def _binding(name: str, subject: Object, *, absent: bool) -> Item:
    role = {"apiGroup": CLUSTER_ROLES.group, "kind": CLUSTER_ROLES.kind, "name": name}
    content = {"roleRef": role, "subjects": [subject]}
    return _item(CLUSTER_ROLE_BINDINGS, name, content, absent=absent)


def _item(resource: Resource, name: str, content: Object, *, absent: bool) -> Item:
    obj = {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "metadata": {"name": name},
        **content,
    }
    labels = labelled(obj, component="progress")
    return Item(part=Component.PROGRESS, resource=resource, object=labels, absent=absent)
