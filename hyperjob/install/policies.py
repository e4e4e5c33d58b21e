"""Volcano's Queues: the policy that sends each to every member, and the queue `default`."""

from typing import Final

from hyperjob.install.objects import Item, Part, labelled
from hyperjob.kube.resources import CLUSTER_PROPAGATION_POLICIES, QUEUES

QUEUE_POLICY: Final = "hyperjob-queues"
DEFAULT_QUEUE: Final = "default"


def queue_policy() -> Item:
    """Build the policy.

    Overwrite, because Volcano itself makes the queue `default` in each member: without it Karmada
    leaves that queue alone, its status never arrives, and Volcano's webhook takes no job for it.
    """
    return Item(
        part=Part.QUEUE_POLICY,
        resource=CLUSTER_PROPAGATION_POLICIES,
        object=labelled(
            {
                "apiVersion": CLUSTER_PROPAGATION_POLICIES.api_version,
                "kind": CLUSTER_PROPAGATION_POLICIES.kind,
                "metadata": {"name": QUEUE_POLICY},
                "spec": {
                    "resourceSelectors": [{"apiVersion": QUEUES.api_version, "kind": QUEUES.kind}],
                    "placement": {"replicaScheduling": {"replicaSchedulingType": "Duplicated"}},
                    "conflictResolution": "Overwrite",
                },
            },
            component="queues",
        ),
    )


def default_queue() -> Item:
    """Build the queue of jobs that name none; an existing queue is left as it is.

    It bears none of our labels, since jobs of others may be in it: nothing of it is ever changed or
    removed here.
    """
    return Item(
        part=Part.DEFAULT_QUEUE,
        resource=QUEUES,
        object={
            "apiVersion": QUEUES.api_version,
            "kind": QUEUES.kind,
            "metadata": {"name": DEFAULT_QUEUE},
            "spec": {"weight": 1},
        },
        only_where_missing=True,
    )
