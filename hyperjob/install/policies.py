"""The ClusterPropagationPolicy that copies Queues to all members, and the Queue `default`."""

from typing import Final

from hyperjob.install.objects import Component, Item, labelled
from hyperjob_core.kube.resources import CLUSTER_PROPAGATION_POLICIES, QUEUES

QUEUE_POLICY: Final = "hyperjob-queues"
DEFAULT_QUEUE: Final = "default"


def queue_policy() -> Item:
    """Return the ClusterPropagationPolicy of Queues.

    Its conflictResolution is Overwrite, because Volcano creates the Queue `default` in each
    member: otherwise Karmada does not adopt that Queue and collects no status, and Volcano's
    webhook refuses jobs for it.
    """
    return Item(
        part=Component.QUEUE_POLICY,
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
    """Return the Queue of jobs that name no queue; `install` does not change an existing Queue.

    The Queue has none of HyperJob's labels, since other jobs may use it: `install` and `uninstall`
    never change or delete it.
    """
    return Item(
        part=Component.DEFAULT_QUEUE,
        resource=QUEUES,
        object={
            "apiVersion": QUEUES.api_version,
            "kind": QUEUES.kind,
            "metadata": {"name": DEFAULT_QUEUE},
            "spec": {"weight": 1},
        },
        only_where_missing=True,
    )
