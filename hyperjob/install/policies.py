"""The policy that sends every Volcano Queue to every member and brings its status back."""

from typing import Final

from hyperjob.install.objects import Item, Part, labelled
from hyperjob.kube.resources import CLUSTER_PROPAGATION_POLICIES, QUEUES

QUEUE_POLICY: Final = "hyperjob-queues"


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
