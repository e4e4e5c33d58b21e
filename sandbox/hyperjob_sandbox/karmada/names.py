"""The labels, annotations, finalizers and composed names that Karmada puts on objects."""

from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.kube.resources import key_of

MANAGED: Final = "karmada.io/managed"
POLICY_ID: Final = "propagationpolicy.karmada.io/permanent-id"
POLICY_NAMESPACE: Final = "propagationpolicy.karmada.io/namespace"
POLICY_NAME: Final = "propagationpolicy.karmada.io/name"
CLUSTER_POLICY_ID: Final = "clusterpropagationpolicy.karmada.io/permanent-id"
CLUSTER_POLICY_NAME: Final = "clusterpropagationpolicy.karmada.io/name"
BINDING_ID: Final = "resourcebinding.karmada.io/permanent-id"
CLUSTER_BINDING_ID: Final = "clusterresourcebinding.karmada.io/permanent-id"
CLUSTER_BINDING_NAME: Final = "clusterresourcebinding.karmada.io/name"
WORK_ID: Final = "work.karmada.io/permanent-id"
WORK_NAMESPACE: Final = "work.karmada.io/namespace"
WORK_NAME: Final = "work.karmada.io/name"
CONFLICT_RESOLUTION: Final = "work.karmada.io/conflict-resolution"
DEPENDED_BY: Final = "resourcebinding.karmada.io/depended-by-"
TEMPLATE_UID: Final = "resourcetemplate.karmada.io/uid"
TEMPLATE_GENERATION: Final = "resourcetemplate.karmada.io/generation"
MANAGED_ANNOTATIONS: Final = "resourcetemplate.karmada.io/managed-annotations"
MANAGED_LABELS: Final = "resourcetemplate.karmada.io/managed-labels"
APPLIED_PLACEMENT: Final = "policy.karmada.io/applied-placement"
SKIP_AUTO_PROPAGATION: Final = "namespace.karmada.io/skip-auto-propagation"

POLICY_FINALIZER: Final = "karmada.io/propagation-policy-controller"
CLUSTER_POLICY_FINALIZER: Final = "karmada.io/cluster-propagation-policy-controller"
BINDING_FINALIZER: Final = "karmada.io/binding-controller"
CLUSTER_BINDING_FINALIZER: Final = "karmada.io/cluster-resource-binding-controller"
WORK_FINALIZER: Final = "karmada.io/execution-controller"

TAINT_NOT_READY: Final = "cluster.karmada.io/not-ready"
DEFAULT_SCHEDULER: Final = "default-scheduler"

_EXECUTION_SPACE_PREFIX: Final = "karmada-es-"


def cluster_of(work: Object) -> str:
    """Return the cluster that a Work is for."""
    namespace: str = work["metadata"]["namespace"]
    return namespace.removeprefix(_EXECUTION_SPACE_PREFIX)


def item_of(obj: Object) -> str:
    """Return `KIND|key` of an object or a reference, by which templates of all kinds differ."""
    return f"{obj['kind']}|{key_of({'metadata': obj.get('metadata', obj)})}"


def is_reserved_namespace(name: str) -> bool:
    """Tell whether a namespace belongs to Karmada or Kubernetes and never goes to members."""
    return name == "default" or is_skipped_namespace(name)


def is_skipped_namespace(name: str) -> bool:
    """Tell whether Karmada's detector makes no binding for what is in a namespace."""
    reserved = ("karmada-system", "karmada-cluster")
    return name in reserved or name.startswith((_EXECUTION_SPACE_PREFIX, "kube-"))
