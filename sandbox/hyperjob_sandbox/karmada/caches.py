"""What the simulated Karmada watches in its own API server, and where each thing is found.

One set of informers for all controllers, with the indexes they look things up by. It must never
write.
"""

from collections.abc import Iterable
from typing import Final

from hyperjob.api.meta import Object
from hyperjob.kube.client import Kube
from hyperjob.kube.informer import Informer
from hyperjob.kube.resources import (
    CLUSTER_PROPAGATION_POLICIES,
    CLUSTERS,
    CONFIG_MAPS,
    NAMESPACES,
    PERSISTENT_VOLUME_CLAIMS,
    PROPAGATION_POLICIES,
    QUEUES,
    RESOURCE_BINDINGS,
    RESOURCE_INTERPRETERS,
    SECRETS,
    SERVICE_ACCOUNTS,
    SERVICE_EXPORTS,
    VCJOBS,
    WORKS,
    Resource,
    key_of,
)
from hyperjob_sandbox.controller import Informers
from hyperjob_sandbox.karmada import dependencies, interpreter, names

CLUSTER_RESOURCE_BINDINGS: Final = Resource(
    "work.karmada.io",
    "v1alpha2",
    "clusterresourcebindings",
    "ClusterResourceBinding",
    namespaced=False,
)
DEPENDENCIES: Final = (CONFIG_MAPS, SECRETS, PERSISTENT_VOLUME_CLAIMS, SERVICE_ACCOUNTS)
"""The kinds that follow a vcjob whose pods name them."""
TEMPLATES: Final = (VCJOBS, QUEUES, SERVICE_EXPORTS, *DEPENDENCIES)
"""The kinds that policies propagate."""

BY_POLICY: Final = "policy"
BY_BINDING: Final = "binding"
BY_TEMPLATE: Final = "template"
BY_SELECTED: Final = "selected"
BY_DEPENDENCY: Final = "dependency"
BY_NEEDED: Final = "needed"


class Caches(Informers):
    """The informers of the control plane."""

    def __init__(self, kube: Kube) -> None:
        super().__init__(kube)
        self.policies = self.add(PROPAGATION_POLICIES, indexers={BY_SELECTED: _selected})
        self.cluster_policies = self.add(CLUSTER_PROPAGATION_POLICIES)
        indexers = {BY_POLICY: _policy_ids, BY_TEMPLATE: _template_key}
        self.bindings = self.add(
            RESOURCE_BINDINGS,
            indexers={**indexers, BY_DEPENDENCY: _dependencies, BY_NEEDED: _needed_by},
        )
        self.cluster_bindings = self.add(CLUSTER_RESOURCE_BINDINGS, indexers=indexers)
        self.works = self.add(WORKS, indexers={BY_BINDING: _binding_ids})
        self.clusters = self.add(CLUSTERS)
        self.namespaces = self.add(NAMESPACES)
        self.interpreters = self.add(RESOURCE_INTERPRETERS)
        for resource in TEMPLATES:
            self.add(resource)

    def policy(self, namespace: str, name: str) -> Object | None:
        """Return a policy; namespace "" looks among the cluster policies."""
        if namespace:
            return self.policies.get(f"{namespace}/{name}")
        return self.cluster_policies.get(name)

    def policies_naming(self, template: Object) -> list[Object]:
        """Return the policies of a template's namespace that name it, or that name nothing."""
        meta: Object = template["metadata"]
        namespace = meta.get("namespace", "")
        found = [
            *self.policies.by_index(BY_SELECTED, f"{namespace}/{meta['name']}"),
            *self.policies.by_index(BY_SELECTED, f"{namespace}/"),
        ]
        return list({key_of(policy): policy for policy in found}.values())

    def templates_named(self, policy: Object) -> list[Object]:
        """Return the templates a policy may select: those it names, or all of its namespace."""
        namespace = policy["metadata"].get("namespace")
        found: dict[str, Object] = {}
        for selector in policy["spec"].get("resourceSelectors") or ():
            resource = template_resource(selector)
            if resource is None:
                continue
            where = selector.get("namespace") or namespace
            if selector.get("name") and (where or not resource.namespaced):
                key = f"{where}/{selector['name']}" if resource.namespaced else selector["name"]
                named = self[resource].get(key)
                candidates = [named] if named is not None else []
            else:
                candidates = self[resource].items()
            for template in candidates:
                if namespace in (None, template["metadata"].get("namespace")):
                    found[f"{resource.kind}|{key_of(template)}"] = template
        return list(found.values())

    def binding(self, key: str) -> Object | None:
        """Return the binding under `namespace/name`, or the cluster binding under `name`."""
        return self.bindings_for(key).get(key)

    def bindings_for(self, key: str) -> Informer:
        """Return the informer that holds the binding of a key."""
        return self.bindings if "/" in key else self.cluster_bindings

    def binding_resource(self, key: str) -> Resource:
        """Return the resource of the binding of a key."""
        return RESOURCE_BINDINGS if "/" in key else CLUSTER_RESOURCE_BINDINGS

    def bindings_of_policy(self, policy_id: str) -> list[Object]:
        """Return all bindings that carry the permanent id of a policy."""
        return [
            *self.bindings.by_index(BY_POLICY, policy_id),
            *self.cluster_bindings.by_index(BY_POLICY, policy_id),
        ]

    def works_of(self, binding: Object) -> list[Object]:
        """Return the Works made for a binding, on all clusters."""
        found: list[Object] = []
        for binding_id in binding_ids(binding):
            found += self.works.by_index(BY_BINDING, binding_id)
        return found

    def hooks(self) -> frozenset[str]:
        """Return the interpreter hooks that customizations define for the vcjob."""
        return interpreter.hooks(self.interpreters.items())


def template_resource(obj: Object) -> Resource | None:
    """Return the resource of a template or of a reference to one, None for kinds not watched."""
    for resource in TEMPLATES:
        if (resource.api_version, resource.kind) == (obj.get("apiVersion"), obj.get("kind")):
            return resource
    return None


def reference_key(reference: Object) -> str:
    """Return the key of the object that a reference names."""
    namespace = reference.get("namespace")
    return f"{namespace}/{reference['name']}" if namespace else str(reference["name"])


def binding_ids(obj: Object) -> list[str]:
    """Return the permanent id that a binding has, or that a Work carries of its binding."""
    labels = obj["metadata"].get("labels") or {}
    return [labels[key] for key in (names.BINDING_ID, names.CLUSTER_BINDING_ID) if labels.get(key)]


def _selected(policy: Object) -> Iterable[str]:
    namespace = policy["metadata"].get("namespace", "")
    selectors = policy["spec"].get("resourceSelectors") or ()
    return {f"{namespace}/{selector.get('name', '')}" for selector in selectors}


def _policy_ids(obj: Object) -> Iterable[str]:
    labels = obj["metadata"].get("labels") or {}
    return [labels[key] for key in (names.POLICY_ID, names.CLUSTER_POLICY_ID) if labels.get(key)]


def _binding_ids(work: Object) -> Iterable[str]:
    return binding_ids(work)


def _dependencies(binding: Object) -> Iterable[str]:
    return [dependencies.reference_id(each) for each in dependencies.recorded(binding)]


def _needed_by(binding: Object) -> Iterable[str]:
    return [
        f"{each['namespace']}/{each['name']}" for each in binding["spec"].get("requiredBy") or ()
    ]


def _template_key(binding: Object) -> Iterable[str]:
    resource = binding["spec"]["resource"]
    return [f"{resource['kind']}|{reference_key(resource)}"]
