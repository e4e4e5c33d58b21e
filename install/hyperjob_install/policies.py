"""The ClusterPropagationPolicies that copy Queues and PriorityClasses to all members.

Beside them the Queue `default`, to which jobs belong that name no Queue.
"""

from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.kube.resources import CLUSTER_PROPAGATION_POLICIES, PRIORITY_CLASSES, QUEUES
from hyperjob_install.objects import Component, Item, new_item

QUEUE_POLICY: Final = "hyperjob-queues"
PRIORITY_CLASS_POLICY: Final = "hyperjob-priority-classes"
SYSTEM_CLASS_POLICY: Final = "hyperjob-system-priority-classes"
SYSTEM_CLASSES: Final = ("system-cluster-critical", "system-node-critical")
DEFAULT_QUEUE: Final = "default"
_EVERYWHERE: Final = {"replicaScheduling": {"replicaSchedulingType": "Duplicated"}}


def queue_policy() -> Item:
    """Return the ClusterPropagationPolicy of Queues.

    Its conflictResolution is Overwrite, because Volcano creates the Queue `default` in each
    member: otherwise Karmada does not adopt that Queue and collects no status, and Volcano's
    webhook refuses jobs for it.
    """
    spec = {
        "resourceSelectors": [{"apiVersion": QUEUES.api_version, "kind": QUEUES.kind}],
        "placement": _EVERYWHERE,
        "conflictResolution": "Overwrite",
    }
    return _policy(Component.QUEUE_POLICY, QUEUE_POLICY, spec, component="queues")


def priority_class_policies() -> list[Item]:
    """Return the ClusterPropagationPolicies of PriorityClasses.

    A PriorityClass that a member has already stays as it is. Each member has the classes `system-*`
    of its own. The second policy selects these by name, which has precedence, and sends nothing.
    Both without preserveResourcesOnDeletion: with it Karmada cannot remove a Cluster that has a
    PriorityClass of its own under the same name.
    """
    kind = {"apiVersion": PRIORITY_CLASSES.api_version, "kind": PRIORITY_CLASSES.kind}
    copied: Object = {
        "resourceSelectors": [kind],
        "placement": _EVERYWHERE,
    }
    system = [{**kind, "name": name} for name in SYSTEM_CLASSES]
    kept = copied | {"resourceSelectors": system, "suspension": {"dispatching": True}}
    return [
        _policy(Component.PRIORITY_CLASSES, name, spec, component="priority-classes")
        for name, spec in ((PRIORITY_CLASS_POLICY, copied), (SYSTEM_CLASS_POLICY, kept))
    ]


def _policy(part: Component, name: str, spec: Object, *, component: str) -> Item:
    return new_item(
        CLUSTER_PROPAGATION_POLICIES, name, {"spec": spec}, part=part, component=component
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
