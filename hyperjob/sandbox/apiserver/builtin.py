"""The built-in kinds: names, scope and subresources as kube-apiserver 1.36 lists them.

They are stored as they come, apart from the defaults in `defaults.py`; no controller stands behind
them here. Kinds that only answer a POST (access reviews) are listed with their one verb.
"""

from collections.abc import Iterator

from hyperjob.sandbox.apiserver.defaults import DEFAULTS
from hyperjob.sandbox.apiserver.printers import BUILTIN_COLUMNS, DEFAULT_COLUMNS
from hyperjob.sandbox.apiserver.resources import (
    ALL_VERBS,
    ResourceInfo,
    ScalePaths,
    Subresource,
)

# group, version, plural, singular, kind, flags, short names
# flags: n namespaced, s status, c scale, a category all, x category api-extensions,
#        g generation, o only POST, p names may be any path segment
_KINDS = """
-                            v1 bindings                        binding                       Binding                        no  -
-                            v1 configmaps                      configmap                     ConfigMap                      n   cm
-                            v1 endpoints                       endpoints                     Endpoints                      n   ep
-                            v1 events                          event                         Event                          n   ev
-                            v1 limitranges                     limitrange                    LimitRange                     n   limits
-                            v1 namespaces                      namespace                     Namespace                      s   ns
-                            v1 nodes                           node                          Node                           s   no
-                            v1 persistentvolumeclaims          persistentvolumeclaim         PersistentVolumeClaim          ns  pvc
-                            v1 persistentvolumes               persistentvolume              PersistentVolume               s   pv
-                            v1 pods                            pod                           Pod                            nsag po
-                            v1 podtemplates                    podtemplate                   PodTemplate                    ng  -
-                            v1 replicationcontrollers          replicationcontroller         ReplicationController          nscag rc
-                            v1 resourcequotas                  resourcequota                 ResourceQuota                  ns  quota
-                            v1 secrets                         secret                        Secret                         n   -
-                            v1 serviceaccounts                 serviceaccount                ServiceAccount                 n   sa
-                            v1 services                        service                       Service                        nsa svc
admissionregistration.k8s.io v1 mutatingwebhookconfigurations   mutatingwebhookconfiguration  MutatingWebhookConfiguration   xg  -
admissionregistration.k8s.io v1 validatingadmissionpolicies     validatingadmissionpolicy     ValidatingAdmissionPolicy      xsg -
admissionregistration.k8s.io v1 validatingadmissionpolicybindings validatingadmissionpolicybinding ValidatingAdmissionPolicyBinding xg -
admissionregistration.k8s.io v1 validatingwebhookconfigurations validatingwebhookconfiguration ValidatingWebhookConfiguration xg -
apiextensions.k8s.io         v1 customresourcedefinitions       customresourcedefinition      CustomResourceDefinition       xsg crd,crds
apiregistration.k8s.io       v1 apiservices                     apiservice                    APIService                     xs  -
apps                         v1 controllerrevisions             controllerrevision            ControllerRevision             n   -
apps                         v1 daemonsets                      daemonset                     DaemonSet                      nsag ds
apps                         v1 deployments                     deployment                    Deployment                     nscag deploy
apps                         v1 replicasets                     replicaset                    ReplicaSet                     nscag rs
apps                         v1 statefulsets                    statefulset                   StatefulSet                    nscag sts
authentication.k8s.io        v1 selfsubjectreviews              selfsubjectreview             SelfSubjectReview              o   -
authentication.k8s.io        v1 tokenreviews                    tokenreview                   TokenReview                    o   -
authorization.k8s.io         v1 localsubjectaccessreviews       localsubjectaccessreview      LocalSubjectAccessReview       no  -
authorization.k8s.io         v1 selfsubjectaccessreviews        selfsubjectaccessreview       SelfSubjectAccessReview        o   -
authorization.k8s.io         v1 selfsubjectrulesreviews         selfsubjectrulesreview        SelfSubjectRulesReview         o   -
authorization.k8s.io         v1 subjectaccessreviews            subjectaccessreview           SubjectAccessReview            o   -
autoscaling                  v2 horizontalpodautoscalers        horizontalpodautoscaler       HorizontalPodAutoscaler        nsa hpa
batch                        v1 cronjobs                        cronjob                       CronJob                        nsag cj
batch                        v1 jobs                            job                           Job                            nsag -
certificates.k8s.io          v1 certificatesigningrequests      certificatesigningrequest     CertificateSigningRequest      s   csr
coordination.k8s.io          v1 leases                          lease                         Lease                          n   -
discovery.k8s.io             v1 endpointslices                  endpointslice                 EndpointSlice                  ng  -
events.k8s.io                v1 events                          event                         Event                          n   ev
networking.k8s.io            v1 ingressclasses                  ingressclass                  IngressClass                   g   -
networking.k8s.io            v1 ingresses                       ingress                       Ingress                        nsg ing
networking.k8s.io            v1 networkpolicies                 networkpolicy                 NetworkPolicy                  ng  netpol
node.k8s.io                  v1 runtimeclasses                  runtimeclass                  RuntimeClass                   -   -
policy                       v1 poddisruptionbudgets            poddisruptionbudget           PodDisruptionBudget            nsg pdb
rbac.authorization.k8s.io    v1 clusterrolebindings             clusterrolebinding            ClusterRoleBinding             p   -
rbac.authorization.k8s.io    v1 clusterroles                    clusterrole                   ClusterRole                    p   -
rbac.authorization.k8s.io    v1 rolebindings                    rolebinding                   RoleBinding                    np  -
rbac.authorization.k8s.io    v1 roles                           role                          Role                           np  -
scheduling.k8s.io            v1 priorityclasses                 priorityclass                 PriorityClass                  g   pc
storage.k8s.io               v1 csidrivers                      csidriver                     CSIDriver                      -   -
storage.k8s.io               v1 csinodes                        csinode                       CSINode                        -   -
storage.k8s.io               v1 storageclasses                  storageclass                  StorageClass                   -   sc
storage.k8s.io               v1 volumeattachments               volumeattachment              VolumeAttachment               s   -
"""

_EXTRA: dict[tuple[str, str], dict[str, Subresource]] = {
    ("", "namespaces"): {"finalize": Subresource("Namespace", verbs=("update",))},
    ("", "pods"): {
        "binding": Subresource("Binding", verbs=("create",)),
        "eviction": Subresource("Eviction", "policy", "v1", ("create",)),
        "log": Subresource("Pod", verbs=("get",)),
    },
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

_EVENT_FIELDS = (
    "involvedObject.kind",
    "involvedObject.namespace",
    "involvedObject.name",
    "involvedObject.uid",
    "involvedObject.apiVersion",
    "involvedObject.resourceVersion",
    "involvedObject.fieldPath",
    "reason",
    "reportingComponent",
    "source",
    "type",
)
# Fields beyond metadata.name and metadata.namespace that field selectors may name.
_SELECTABLE: dict[tuple[str, str], tuple[str, ...]] = {
    ("", "events"): _EVENT_FIELDS,
    ("", "pods"): (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    ("", "nodes"): ("spec.unschedulable",),
    ("", "namespaces"): ("status.phase",),
    ("", "secrets"): ("type",),
    ("", "services"): ("spec.clusterIP", "spec.type"),
    ("", "replicationcontrollers"): ("status.replicas",),
    ("apps", "replicasets"): ("status.replicas",),
    ("batch", "jobs"): ("status.successful",),
    ("certificates.k8s.io", "certificatesigningrequests"): ("spec.signerName",),
}


def builtin_resources() -> Iterator[ResourceInfo]:
    """Yield every built-in resource."""
    for line in _KINDS.strip().splitlines():
        group, version, plural, singular, kind, flags, short = line.split()
        yield _resource(
            "" if group == "-" else group, version, plural, singular, kind, flags, short
        )


def _resource(
    group: str,
    version: str,
    plural: str,
    singular: str,
    kind: str,
    flags: str,
    short: str,
) -> ResourceInfo:
    subresources = dict(_EXTRA.get((group, plural), {}))
    if "s" in flags:
        subresources["status"] = Subresource(kind)
    if "c" in flags:
        subresources["scale"] = Subresource("Scale", "autoscaling", "v1")
    categories = ("all",) * ("a" in flags) + ("api-extensions",) * ("x" in flags)
    verbs = ("create",) if "o" in flags else ALL_VERBS
    if plural == "namespaces":
        verbs = tuple(verb for verb in ALL_VERBS if verb != "deletecollection")
    events = plural == "events"
    scale = ScalePaths("spec.replicas", "status.replicas") if "c" in flags else None
    return ResourceInfo(
        group=group,
        version=version,
        plural=plural,
        singular=singular,
        kind=kind,
        namespaced="n" in flags,
        short_names=() if short == "-" else tuple(short.split(",")),
        categories=categories,
        verbs=verbs,
        subresources=dict(sorted(subresources.items())),
        storage=("", "events") if events else (group, plural),
        storage_version=version,
        columns=BUILTIN_COLUMNS.get(plural, DEFAULT_COLUMNS),
        generation="g" in flags,
        unconditional_update=plural not in _VERSION_NEEDED,
        create_on_update=plural in _PUT_CREATES,
        dns_names="p" not in flags,
        default=DEFAULTS.get((group, kind)),
        scale=scale,
        selectable=_SELECTABLE.get(("" if events else group, plural), ()),
    )
