"""Paths and keys, and that each of our resources has the path of the real API."""

import pytest

from hyperjob_core.kube import resources
from hyperjob_core.kube.resources import Resource, key_of, split_key

PATHS = {
    "HYPERJOBS": "/apis/training.volcano.sh/v1alpha1/namespaces/n/hyperjobs/x",
    "VCJOBS": "/apis/batch.volcano.sh/v1alpha1/namespaces/n/jobs/x",
    "QUEUES": "/apis/scheduling.volcano.sh/v1beta1/queues/x",
    "PODGROUPS": "/apis/scheduling.volcano.sh/v1beta1/namespaces/n/podgroups/x",
    "COMMANDS": "/apis/bus.volcano.sh/v1alpha1/namespaces/n/commands/x",
    "PROPAGATION_POLICIES": "/apis/policy.karmada.io/v1alpha1/namespaces/n/propagationpolicies/x",
    "CLUSTER_PROPAGATION_POLICIES": "/apis/policy.karmada.io/v1alpha1/clusterpropagationpolicies/x",
    "RESOURCE_BINDINGS": "/apis/work.karmada.io/v1alpha2/namespaces/n/resourcebindings/x",
    "CLUSTER_RESOURCE_BINDINGS": "/apis/work.karmada.io/v1alpha2/clusterresourcebindings/x",
    "WORKS": "/apis/work.karmada.io/v1alpha1/namespaces/n/works/x",
    "SERVICE_EXPORTS": "/apis/multicluster.x-k8s.io/v1alpha1/namespaces/n/serviceexports/x",
    "CLUSTERS": "/apis/cluster.karmada.io/v1alpha1/clusters/x",
    "RESOURCE_INTERPRETERS": (
        "/apis/config.karmada.io/v1alpha1/resourceinterpretercustomizations/x"
    ),
    "NAMESPACES": "/api/v1/namespaces/x",
    "NODES": "/api/v1/nodes/x",
    "PODS": "/api/v1/namespaces/n/pods/x",
    "SECRETS": "/api/v1/namespaces/n/secrets/x",
    "CONFIG_MAPS": "/api/v1/namespaces/n/configmaps/x",
    "PERSISTENT_VOLUME_CLAIMS": "/api/v1/namespaces/n/persistentvolumeclaims/x",
    "DEVICE_CLASSES": "/apis/resource.k8s.io/v1/deviceclasses/x",
    "RESOURCE_SLICES": "/apis/resource.k8s.io/v1/resourceslices/x",
    "RESOURCE_CLAIMS": "/apis/resource.k8s.io/v1/namespaces/n/resourceclaims/x",
    "RESOURCE_CLAIM_TEMPLATES": ("/apis/resource.k8s.io/v1/namespaces/n/resourceclaimtemplates/x"),
    "HYPERNODES": "/apis/topology.volcano.sh/v1alpha1/hypernodes/x",
    "SERVICE_ACCOUNTS": "/api/v1/namespaces/n/serviceaccounts/x",
    "LEASES": "/apis/coordination.k8s.io/v1/namespaces/n/leases/x",
    "EVENTS": "/apis/events.k8s.io/v1/namespaces/n/events/x",
    "CORE_EVENTS": "/api/v1/namespaces/n/events/x",
    "DEPLOYMENTS": "/apis/apps/v1/namespaces/n/deployments/x",
    "ADMISSION_POLICIES": ("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/x"),
    "ADMISSION_POLICY_BINDINGS": (
        "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/x"
    ),
    "PRIORITY_CLASSES": "/apis/scheduling.k8s.io/v1/priorityclasses/x",
    "CRDS": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/x",
    "MUTATING_WEBHOOKS": ("/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/x"),
    "VALIDATING_WEBHOOKS": (
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/x"
    ),
    "SELF_SUBJECT_REVIEWS": "/apis/authentication.k8s.io/v1/selfsubjectreviews/x",
    "TRAINJOBS": "/apis/trainer.kubeflow.org/v1alpha1/namespaces/n/trainjobs/x",
    "TRAINING_RUNTIMES": "/apis/trainer.kubeflow.org/v1alpha1/namespaces/n/trainingruntimes/x",
    "CLUSTER_TRAINING_RUNTIMES": "/apis/trainer.kubeflow.org/v1alpha1/clustertrainingruntimes/x",
    "TOKEN_REVIEWS": "/apis/authentication.k8s.io/v1/tokenreviews/x",
    "SUBJECT_ACCESS_REVIEWS": "/apis/authorization.k8s.io/v1/subjectaccessreviews/x",
    "SELF_SUBJECT_ACCESS_REVIEWS": "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews/x",
    "CLUSTER_ROLES": "/apis/rbac.authorization.k8s.io/v1/clusterroles/x",
    "CLUSTER_ROLE_BINDINGS": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings/x",
    "ROLES": "/apis/rbac.authorization.k8s.io/v1/namespaces/n/roles/x",
    "ROLE_BINDINGS": "/apis/rbac.authorization.k8s.io/v1/namespaces/n/rolebindings/x",
}


def test_every_resource_has_its_real_path():
    known = {name: value for name, value in vars(resources).items() if isinstance(value, Resource)}
    assert {name: value.path("n", "x") for name, value in known.items()} == PATHS


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (resources.PODS.path(), "/api/v1/pods"),
        (resources.PODS.path("n"), "/api/v1/namespaces/n/pods"),
        (resources.PODS.path("n", "x", "status"), "/api/v1/namespaces/n/pods/x/status"),
        (resources.PODS.path("../n", "a/b?c"), "/api/v1/namespaces/..%2Fn/pods/a%2Fb%3Fc"),
        (
            resources.CLUSTER_ROLES.path(None, "system:node"),
            "/apis/rbac.authorization.k8s.io/v1/clusterroles/system:node",
        ),
    ],
)
def test_paths_escape_what_is_no_name(path, expected):
    assert path == expected


@pytest.mark.parametrize(
    ("obj", "key"),
    [
        ({"metadata": {"name": "a", "namespace": "n"}}, "n/a"),
        ({"metadata": {"name": "a"}}, "a"),
        ({"metadata": {"name": "a", "namespace": ""}}, "a"),
    ],
)
def test_a_key_names_an_object_both_ways(obj, key):
    assert key_of(obj) == key
    assert split_key(key) == (obj["metadata"].get("namespace") or None, "a")
