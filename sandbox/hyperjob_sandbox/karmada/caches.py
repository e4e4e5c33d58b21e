"""What the simulated Karmada watches in its own API server, and where each thing is found."""

from collections.abc import Iterable
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import BINDING_NAME, BINDING_NAMESPACE
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.resources import (
    CLUSTER_PROPAGATION_POLICIES,
    CLUSTER_RESOURCE_BINDINGS,
    CLUSTERS,
    NAMESPACES,
    PRIORITY_CLASSES,
    PROPAGATION_POLICIES,
    QUEUES,
    RESOURCE_BINDINGS,
    RESOURCE_INTERPRETERS,
    SERVICE_EXPORTS,
    VCJOBS,
    WORKS,
)
from hyperjob_sandbox.controller import UNREADABLE, Informers
from hyperjob_sandbox.karmada import interpreter, names
from hyperjob_sandbox.member.caches import DEPENDENCIES
from hyperjob_sandbox.objects import annotations_of, labels_of

TEMPLATES: Final = (VCJOBS, QUEUES, SERVICE_EXPORTS, PRIORITY_CLASSES, *DEPENDENCIES)
"""The kinds that policies propagate."""

BY_POLICY: Final = "policy"
BY_BINDING: Final = "binding"
BY_TEMPLATE: Final = "template"
BY_SELECTED: Final = "selected"
BY_DEPENDENCY: Final = "dependency"


class Caches(Informers):
    """The informers of the control plane; a key with a namespace is of the namespaced scope."""

    def __init__(self, kube: Kube) -> None:
        super().__init__(kube)
        self.policies = (
            self.add(PROPAGATION_POLICIES, indexers={BY_SELECTED: _selected}),
            self.add(CLUSTER_PROPAGATION_POLICIES),
        )
        indexers = {
            BY_POLICY: _policy_ids,
            BY_TEMPLATE: lambda binding: [names.item_of(binding["spec"]["resource"])],
        }
        self.bindings = (
            self.add(RESOURCE_BINDINGS, indexers=indexers),
            self.add(CLUSTER_RESOURCE_BINDINGS, indexers=indexers),
        )
        self.works = self.add(WORKS, indexers={BY_BINDING: work_binding_keys})
        self.clusters = self.add(CLUSTERS)
        self.namespaces = self.add(NAMESPACES)
        self.interpreters = self.add(RESOURCE_INTERPRETERS)
        self.templates = (
            self.add(VCJOBS, indexers={BY_DEPENDENCY: dependency_items}),
            *map(self.add, TEMPLATES[1:]),
        )
        self.priority_classes = self[PRIORITY_CLASSES]

    def policy(self, key: str) -> Object | None:
        """Return a PropagationPolicy, or the ClusterPropagationPolicy under a bare name."""
        return self.policies["/" not in key].get(key)

    def binding(self, key: str) -> Object | None:
        """Return a ResourceBinding, or the ClusterResourceBinding under a bare name."""
        return self.bindings["/" not in key].get(key)

    def bindings_by(self, index: str, value: str) -> list[Object]:
        """Return the bindings of both scopes that an index has under a value."""
        return [each for informer in self.bindings for each in informer.by_index(index, value)]

    def policies_naming(self, template: Object) -> list[Object]:
        """Return the policies of a template's namespace that name it, or that name nothing."""
        namespace, name = template["metadata"].get("namespace", ""), template["metadata"]["name"]
        by_key = self.policies[0].by_index
        return [*by_key(BY_SELECTED, f"{namespace}/{name}"), *by_key(BY_SELECTED, f"{namespace}/")]

    def template_of(self, item: str) -> Object | None:
        """Return the template of a `KIND|key`."""
        kind, _, key = item.partition("|")
        return next(each for each in self.templates if each.resource.kind == kind).get(key)

    def template(self, reference: Object) -> Object | None:
        """Return the template that a binding's reference names."""
        return self.live({**reference, "metadata": reference})

    def hooks(self) -> frozenset[str]:
        """Return the interpreter hooks that customizations define for the vcjob."""
        return interpreter.hooks(self.interpreters.items())


def work_binding_keys(work: Object) -> list[str]:
    """Return the key of the binding that a Work was made for, nothing where there is none."""
    marks = annotations_of(work)
    name = marks.get(BINDING_NAME) or marks.get(names.CLUSTER_BINDING_NAME)
    namespace = marks.get(BINDING_NAMESPACE)
    return [f"{namespace}/{name}" if namespace else name] if name else []


def dependency_items(job: Object) -> Iterable[str]:
    """Return `KIND|key` of what the pods of a vcjob name, nothing of a malformed one."""
    try:
        return [*map(names.item_of, interpreter.dependencies_of(job))]
    except UNREADABLE:
        return []


def _selected(policy: Object) -> Iterable[str]:
    namespace = policy["metadata"].get("namespace", "")
    selectors = policy["spec"].get("resourceSelectors") or ()
    return {f"{namespace}/{selector.get('name', '')}" for selector in selectors}


def _policy_ids(obj: Object) -> Iterable[str]:
    labels = labels_of(obj)
    return [labels[key] for key in (names.POLICY_ID, names.CLUSTER_POLICY_ID) if labels.get(key)]
