"""The resources that HyperJob reads or writes, and the URL path of each.

All kinds are known in advance: HyperJob needs no discovery requests.
"""

from dataclasses import dataclass
from sys import intern
from urllib.parse import quote

from hyperjob_core.api.meta import Object
from hyperjob_core.api.trainer import TRAINER_GROUP


@dataclass(frozen=True, slots=True)
class Resource:
    """One served resource: `Resource("apps", "v1", "deployments", "Deployment")`."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool = True

    def __hash__(self) -> int:
        """Return the hash of the plural name, which Python keeps: look-ups in caches need it."""
        return hash(self.plural)

    @property
    def api_version(self) -> str:
        """Return `group/version`, or the bare version in the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def head(self) -> dict[str, str]:
        """Return the two fields by which an object names its kind."""
        return {"apiVersion": self.api_version, "kind": self.kind}

    @property
    def group_resource(self) -> str:
        """Return `plural.group`, as the API server names it in messages."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    def path(
        self,
        namespace: str | None = None,
        name: str | None = None,
        subresource: str | None = None,
    ) -> str:
        """Build the URL path: of one object, of a namespace, or (without both) of the cluster.

        Raises ValueError for a namespaced object without a namespace.
        """
        prefix = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        if self.namespaced and namespace:
            prefix += f"/namespaces/{quote(namespace, safe='')}"
        elif self.namespaced and name is not None:
            raise ValueError(f"{self.kind} {name!r} needs a namespace")
        path = f"{prefix}/{self.plural}"
        if name is not None:
            if not name:
                raise ValueError(f"{self.kind} needs a name")
            path += f"/{quote(name, safe=':')}"
            if subresource:
                path += f"/{subresource}"
        return path


def key_of(obj: Object) -> str:
    """Return an object's key: `namespace/name`, or `name` without a namespace."""
    metadata = obj["metadata"]
    namespace = metadata.get("namespace")
    return intern(f"{namespace}/{metadata['name']}" if namespace else str(metadata["name"]))


def split_key(key: str) -> tuple[str | None, str]:
    """Split a key into namespace (None for cluster-wide objects) and name."""
    namespace, slash, name = key.partition("/")
    return (namespace, name) if slash else (None, key)


def _wide(group: str, version: str, plural: str, kind: str) -> Resource:
    """Return a resource without namespaces."""
    return Resource(group, version, plural, kind, namespaced=False)


HYPERJOBS = Resource("training.volcano.sh", "v1alpha1", "hyperjobs", "HyperJob")

TRAINJOBS = Resource(TRAINER_GROUP, "v1alpha1", "trainjobs", "TrainJob")
TRAINING_RUNTIMES = Resource(TRAINER_GROUP, "v1alpha1", "trainingruntimes", "TrainingRuntime")
CLUSTER_TRAINING_RUNTIMES = _wide(
    TRAINER_GROUP, "v1alpha1", "clustertrainingruntimes", "ClusterTrainingRuntime"
)

VCJOBS = Resource("batch.volcano.sh", "v1alpha1", "jobs", "Job")
QUEUES = _wide("scheduling.volcano.sh", "v1beta1", "queues", "Queue")
PODGROUPS = Resource("scheduling.volcano.sh", "v1beta1", "podgroups", "PodGroup")
COMMANDS = Resource("bus.volcano.sh", "v1alpha1", "commands", "Command")

PROPAGATION_POLICIES = Resource(
    "policy.karmada.io", "v1alpha1", "propagationpolicies", "PropagationPolicy"
)
CLUSTER_PROPAGATION_POLICIES = _wide(
    "policy.karmada.io", "v1alpha1", "clusterpropagationpolicies", "ClusterPropagationPolicy"
)
RESOURCE_BINDINGS = Resource("work.karmada.io", "v1alpha2", "resourcebindings", "ResourceBinding")
CLUSTER_RESOURCE_BINDINGS = _wide(
    "work.karmada.io", "v1alpha2", "clusterresourcebindings", "ClusterResourceBinding"
)
WORKS = Resource("work.karmada.io", "v1alpha1", "works", "Work")
SERVICE_EXPORTS = Resource("multicluster.x-k8s.io", "v1alpha1", "serviceexports", "ServiceExport")
CLUSTERS = _wide("cluster.karmada.io", "v1alpha1", "clusters", "Cluster")
RESOURCE_INTERPRETERS = _wide(
    "config.karmada.io",
    "v1alpha1",
    "resourceinterpretercustomizations",
    "ResourceInterpreterCustomization",
)

NAMESPACES = _wide("", "v1", "namespaces", "Namespace")
NODES = _wide("", "v1", "nodes", "Node")
HYPERNODES = _wide("topology.volcano.sh", "v1alpha1", "hypernodes", "HyperNode")
PODS = Resource("", "v1", "pods", "Pod")
SECRETS = Resource("", "v1", "secrets", "Secret")
CONFIG_MAPS = Resource("", "v1", "configmaps", "ConfigMap")
PERSISTENT_VOLUME_CLAIMS = Resource("", "v1", "persistentvolumeclaims", "PersistentVolumeClaim")
SERVICE_ACCOUNTS = Resource("", "v1", "serviceaccounts", "ServiceAccount")
RESOURCE_CLAIMS = Resource("resource.k8s.io", "v1", "resourceclaims", "ResourceClaim")
RESOURCE_CLAIM_TEMPLATES = Resource(
    "resource.k8s.io", "v1", "resourceclaimtemplates", "ResourceClaimTemplate"
)
RESOURCE_SLICES = _wide("resource.k8s.io", "v1", "resourceslices", "ResourceSlice")
DEVICE_CLASSES = _wide("resource.k8s.io", "v1", "deviceclasses", "DeviceClass")
DEVICES = RESOURCE_SLICES, DEVICE_CLASSES, RESOURCE_CLAIMS
"""What shows the devices of a member, and who holds them."""
LEASES = Resource("coordination.k8s.io", "v1", "leases", "Lease")
EVENTS = Resource("events.k8s.io", "v1", "events", "Event")
CORE_EVENTS = Resource("", "v1", "events", "Event")
"""The same Events in the core group, which has field selectors in every release."""
PRIORITY_CLASSES = _wide("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass")
TOKEN_REVIEWS = _wide("authentication.k8s.io", "v1", "tokenreviews", "TokenReview")
SELF_SUBJECT_REVIEWS = _wide(
    "authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview"
)
SUBJECT_ACCESS_REVIEWS = _wide(
    "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview"
)
SELF_SUBJECT_ACCESS_REVIEWS = _wide(
    "authorization.k8s.io", "v1", "selfsubjectaccessreviews", "SelfSubjectAccessReview"
)
CRDS = _wide("apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition")
DEPLOYMENTS = Resource("apps", "v1", "deployments", "Deployment")
MUTATING_WEBHOOKS = _wide(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
)
VALIDATING_WEBHOOKS = _wide(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
)
ADMISSION_POLICIES = _wide(
    "admissionregistration.k8s.io", "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy"
)
ADMISSION_POLICY_BINDINGS = _wide(
    "admissionregistration.k8s.io",
    "v1",
    "validatingadmissionpolicybindings",
    "ValidatingAdmissionPolicyBinding",
)
CLUSTER_ROLES = _wide("rbac.authorization.k8s.io", "v1", "clusterroles", "ClusterRole")
CLUSTER_ROLE_BINDINGS = _wide(
    "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding"
)
ROLES = Resource("rbac.authorization.k8s.io", "v1", "roles", "Role")
ROLE_BINDINGS = Resource("rbac.authorization.k8s.io", "v1", "rolebindings", "RoleBinding")


def proxied(cluster: str, path: str) -> str:
    """Return the path of Karmada's cluster proxy for a path in a member's API server."""
    return f"{CLUSTERS.path(None, cluster, 'proxy')}{path}"
