"""The built-in kinds: names, scope and subresources as kube-apiserver 1.36 lists them.

They are stored as they come, apart from the defaults in `defaults.py`; no controller is behind
them here. Kinds that only answer a POST (access reviews) are listed with their one verb.
"""

from collections.abc import Iterator

from hyperjob_sandbox.apiserver.kinds.defaults import DEFAULTS
from hyperjob_sandbox.apiserver.kinds.printers import columns_of
from hyperjob_sandbox.apiserver.schema.scale import Scale
from hyperjob_sandbox.apiserver.state.resources import (
    ALL_VERBS,
    ResourceInfo,
    Subresource,
)

# A line "group version", then "plural Kind flags short-names" for each resource.
# flags: n namespaced, s status, c scale, a category all, x category api-extensions,
#        g generation, o only POST, p names may be any path segment
_KINDS = """
- v1
  configmaps ConfigMap n cm
  endpoints Endpoints n ep
  events Event n ev
  limitranges LimitRange n limits
  namespaces Namespace s ns
  nodes Node s no
  persistentvolumeclaims PersistentVolumeClaim ns pvc
  persistentvolumes PersistentVolume s pv
  pods Pod nsag po
  podtemplates PodTemplate ng -
  replicationcontrollers ReplicationController nscag rc
  resourcequotas ResourceQuota ns quota
  secrets Secret n -
  serviceaccounts ServiceAccount n sa
  services Service nsa svc
admissionregistration.k8s.io v1
  mutatingwebhookconfigurations MutatingWebhookConfiguration xg -
  validatingadmissionpolicies ValidatingAdmissionPolicy xsg -
  validatingadmissionpolicybindings ValidatingAdmissionPolicyBinding xg -
  validatingwebhookconfigurations ValidatingWebhookConfiguration xg -
apiextensions.k8s.io v1
  customresourcedefinitions CustomResourceDefinition xsg crd,crds
apiregistration.k8s.io v1
  apiservices APIService xs -
apps v1
  controllerrevisions ControllerRevision n -
  daemonsets DaemonSet nsag ds
  deployments Deployment nscag deploy
  replicasets ReplicaSet nscag rs
  statefulsets StatefulSet nscag sts
authentication.k8s.io v1
  selfsubjectreviews SelfSubjectReview o -
  tokenreviews TokenReview o -
authorization.k8s.io v1
  localsubjectaccessreviews LocalSubjectAccessReview no -
  selfsubjectaccessreviews SelfSubjectAccessReview o -
  selfsubjectrulesreviews SelfSubjectRulesReview o -
  subjectaccessreviews SubjectAccessReview o -
autoscaling v2
  horizontalpodautoscalers HorizontalPodAutoscaler nsa hpa
batch v1
  cronjobs CronJob nsag cj
  jobs Job nsag -
certificates.k8s.io v1
  certificatesigningrequests CertificateSigningRequest s csr
coordination.k8s.io v1
  leases Lease n -
discovery.k8s.io v1
  endpointslices EndpointSlice ng -
events.k8s.io v1
  events Event n ev
networking.k8s.io v1
  ingressclasses IngressClass g -
  ingresses Ingress nsg ing
  networkpolicies NetworkPolicy ng netpol
node.k8s.io v1
  runtimeclasses RuntimeClass - -
policy v1
  poddisruptionbudgets PodDisruptionBudget nsg pdb
rbac.authorization.k8s.io v1
  clusterrolebindings ClusterRoleBinding p -
  clusterroles ClusterRole p -
  rolebindings RoleBinding np -
  roles Role np -
scheduling.k8s.io v1
  priorityclasses PriorityClass g pc
storage.k8s.io v1
  csidrivers CSIDriver - -
  csinodes CSINode - -
  storageclasses StorageClass - sc
  volumeattachments VolumeAttachment s -
"""

_EXTRA: dict[tuple[str, str], dict[str, Subresource]] = {
    ("", "namespaces"): {"finalize": Subresource("Namespace", verbs=("update",))},
    ("", "pods"): {"log": Subresource("Pod", verbs=("get",))},
    ("", "serviceaccounts"): {
        "token": Subresource("TokenRequest", "authentication.k8s.io", "v1", ("create",)),
    },
    ("certificates.k8s.io", "certificatesigningrequests"): {
        "approval": Subresource("CertificateSigningRequest"),
    },
}

# Kinds that a PUT without resourceVersion may not replace.
_VERSION_NEEDED = frozenset(
    {"customresourcedefinitions", "leases", "apiservices", "priorityclasses"},
)
# Kinds that a PUT may create.
_PUT_CREATES = frozenset({"leases", "events", "endpoints", "limitranges"})

_INVOLVED = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
# Fields beyond metadata.name and metadata.namespace that field selectors may name.
_SELECTABLE: dict[str, tuple[str, ...]] = {
    "events": (
        *(f"involvedObject.{name}" for name in _INVOLVED),
        *("reason", "reportingComponent", "source", "type"),
    ),
    "pods": (
        *("spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName"),
        *("status.phase", "status.podIP", "status.nominatedNodeName"),
    ),
    "nodes": ("spec.unschedulable",),
    "namespaces": ("status.phase",),
    "secrets": ("type",),
    "services": ("spec.clusterIP", "spec.type"),
}


def builtin_resources() -> Iterator[ResourceInfo]:
    """Yield every built-in resource."""
    group = version = ""
    for line in _KINDS.strip().splitlines():
        if not line.startswith(" "):
            group, version = line.split()
            group = group.removeprefix("-")
            continue
        yield _resource(group, version, *line.split())


def _resource(
    group: str, version: str, plural: str, kind: str, flags: str, short: str
) -> ResourceInfo:
    subresources = dict(_EXTRA.get((group, plural), {}))
    if "s" in flags:
        subresources["status"] = Subresource(kind)
    if "c" in flags:
        subresources["scale"] = Subresource("Scale", "autoscaling", "v1")
    categories = ("all",) * ("a" in flags) + ("api-extensions",) * ("x" in flags)
    verbs: tuple[str, ...] = ("create",) if "o" in flags else ALL_VERBS
    if plural == "namespaces":
        verbs = tuple(verb for verb in ALL_VERBS if verb != "deletecollection")
    scale = Scale("spec.replicas", "status.replicas") if "c" in flags else None
    return ResourceInfo(
        group=group,
        version=version,
        plural=plural,
        singular=kind.lower(),
        kind=kind,
        namespaced="n" in flags,
        short_names=() if short == "-" else tuple(short.split(",")),
        categories=categories,
        verbs=verbs,
        subresources=dict(sorted(subresources.items())),
        storage=("", "events") if plural == "events" else (group, plural),
        storage_version=version,
        columns=columns_of(plural),
        generation="g" in flags,
        unconditional_update=plural not in _VERSION_NEEDED,
        create_on_update=plural in _PUT_CREATES,
        dns_names="p" not in flags,
        default=DEFAULTS.get((group, kind)),
        scale=scale,
        selectable=_SELECTABLE.get(plural, ()),
    )
