"""The account that reads the progress of trainings: its rights in Karmada and in the members.

Karmada's proxy takes a request to a member in the name of the requesting user, so the account needs
a right in both: `get` of clusters/proxy here, and there no more than to list pods and to read logs.
Karmada itself brings the role and its binding into every member.
"""

from typing import Final

from hyperjob.api.meta import Object
from hyperjob.install.objects import Item, Part, labelled
from hyperjob.kube.resources import (
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
    """Build the roles, their bindings and the policy that brings them to members; or take away."""
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
    """List what the account may do in the Karmada API server."""
    return [
        {"apiGroups": [CLUSTERS.group], "resources": ["clusters/proxy"], "verbs": ["get"]},
    ]


def member_rules() -> list[Object]:
    """List what the account may do in a member."""
    return [
        {"apiGroups": [PODS.group], "resources": ["pods/log"], "verbs": ["get"]},
        # Why a sub-job failed is read from the pods that failed.
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
    return Item(part=Part.PROGRESS, resource=resource, object=labels, absent=absent)
