"""What follows a vcjob into its clusters, and which bindings carry it there."""

from hyperjob_sandbox.karmada import dependencies, interpreter, names
from hyperjob_sandbox.karmada.bindings import target_clusters


def job(*pods, **spec):
    return {
        "metadata": {"name": "j", "namespace": "ns"},
        "spec": {"tasks": [{"template": {"spec": pod}} for pod in pods], **spec},
    }


def ids(found):
    return [names.item_of(each) for each in found]


def binding(name, *clusters):
    return {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "labels": {"resourcebinding.karmada.io/permanent-id": f"id-{name}"},
        },
        "spec": {
            "resource": {"kind": "Job", "namespace": "ns", "name": name},
            "clusters": [{"name": each, "replicas": 2} for each in clusters],
        },
    }


CONFIG_MAP = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "cm", "namespace": "ns", "uid": "u", "resourceVersion": "7"},
}


def test_everything_that_a_pod_can_name_follows_it_once():
    everything = {
        "serviceAccountName": "runner",
        "imagePullSecrets": [{"name": "registry"}],
        "initContainers": [{"envFrom": [{"configMapRef": {"name": "a"}}]}],
        "containers": [
            {
                "envFrom": [{"secretRef": {"name": "b"}}],
                "env": [
                    {"name": "X", "value": "plain"},
                    {"name": "Y", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "k"}}},
                    {"name": "Z", "valueFrom": {"secretKeyRef": {"name": "d", "key": "k"}}},
                ],
            }
        ],
        "volumes": [
            {"name": "1", "configMap": {"name": "e"}},
            {"name": "2", "secret": {"secretName": "f"}},
            {"name": "3", "persistentVolumeClaim": {"claimName": "g"}},
            {
                "name": "4",
                "projected": {
                    "sources": [{"configMap": {"name": "h"}}, {"secret": {"name": "f"}}, {}]
                },
            },
            {"name": "5", "emptyDir": {}},
        ],
        "resourceClaims": [
            {"name": "x", "resourceClaimTemplateName": "i"},
            {"name": "y", "resourceClaimName": "j"},
        ],
    }
    found = interpreter.dependencies_of(job(everything, everything))
    assert ids(found) == [
        "ServiceAccount|ns/runner",
        "Secret|ns/registry",
        "ConfigMap|ns/a",
        "Secret|ns/b",
        "ConfigMap|ns/c",
        "Secret|ns/d",
        "ConfigMap|ns/e",
        "Secret|ns/f",
        "PersistentVolumeClaim|ns/g",
        "ConfigMap|ns/h",
        "ResourceClaimTemplate|ns/i",
        "ResourceClaim|ns/j",
    ]
    assert [each["apiVersion"] for each in found[-3:]] == ["v1", *["resource.k8s.io/v1"] * 2]


def test_the_default_account_and_claims_that_volcano_makes_stay():
    volumes = [{"volumeClaimName": "mine"}, {"volumeClaimName": "made", "volumeClaim": {}}]
    found = interpreter.dependencies_of(job({"serviceAccountName": "default"}, volumes=volumes))
    assert ids(found) == ["PersistentVolumeClaim|ns/mine"]


def test_a_dependency_goes_where_any_of_those_that_need_it_go():
    one, two = binding("one", "a"), binding("two", "b")
    first = dependencies.attached(CONFIG_MAP, [one])
    assert first["metadata"]["name"] == "cm-configmap"
    assert target_clusters(first) == ("a",)

    def synced(live, *needed_by):
        return dependencies.sync_attached(live, dependencies.attached(CONFIG_MAP, needed_by))

    both = synced(first, two, one)
    assert set(target_clusters(both)) == {"a", "b"}
    assert set(both["metadata"]["labels"].values()) == {"id-one", "id-two"}
    moved = synced(both, binding("one", "c"), two)
    assert set(target_clusters(moved)) == {"b", "c"}
    left = synced(moved, two)
    assert target_clusters(left) == ("b",)
    assert target_clusters(synced(left)) == ()
