"""The detector: finds the policy of every template, claims the template, keeps its binding in step.

It must never write `spec.clusters` or take away what others stamped on a binding.
"""

from copy import deepcopy
from typing import Final
from uuid import uuid4

from hyperjob.api.meta import Object
from hyperjob.kube.client import EventType, Kube
from hyperjob.kube.errors import AlreadyExists, KubeError, NotFound
from hyperjob.kube.events import EventRecorder
from hyperjob.kube.informer import Handler
from hyperjob.kube.resources import (
    CLUSTER_PROPAGATION_POLICIES,
    PROPAGATION_POLICIES,
    Resource,
    key_of,
)
from hyperjob_sandbox.controller import (
    Awaited,
    Controller,
    RetryError,
    changed_besides_status,
)
from hyperjob_sandbox.karmada import interpreter, names, policies
from hyperjob_sandbox.karmada.bindings import (
    OwnerMismatchError,
    build_binding,
    new_binding,
    sync_binding,
)
from hyperjob_sandbox.karmada.caches import (
    BY_TEMPLATE,
    TEMPLATES,
    Caches,
    reference_key,
    template_resource,
)

_SETTLE_SECONDS: Final = 0.03
_BY_KIND: Final = {resource.kind: resource for resource in TEMPLATES}


class Detector:
    """Two controllers over one cache: templates (`kind|key`) and policies (`key`)."""

    def __init__(
        self, kube: Kube, caches: Caches, recorder: EventRecorder, *, components: bool = False
    ) -> None:
        self._kube = kube
        self._caches = caches
        self._recorder = recorder
        self._components = components
        self._awaited = Awaited()
        self.templates = Controller("resource-detector", self._sync_template, workers=8)
        self.policies = Controller("policy-detector", self._sync_policy, workers=2)
        for resource in TEMPLATES:
            caches[resource].add_handler(self._on_template(resource))
        caches.policies.add_handler(self._on_policy)
        caches.cluster_policies.add_handler(self._on_policy)
        caches.bindings.add_handler(self._on_binding)
        caches.cluster_bindings.add_handler(self._on_binding)

    def _on_template(self, resource: Resource) -> Handler:
        def handle(event: EventType, old: Object | None, new: Object | None) -> None:
            if changed_besides_status(event, old, new):
                obj = new or old
                assert obj is not None
                # our own claim comes back here: the binding is in the cache a moment later
                delay = _SETTLE_SECONDS if event is EventType.MODIFIED else 0.0
                self.templates.add(f"{resource.kind}|{key_of(obj)}", after=delay)

        return handle

    def _on_policy(self, event: EventType, old: Object | None, new: Object | None) -> None:
        if new is not None and changed_besides_status(event, old, new):
            self.policies.add(key_of(new))

    def _on_binding(self, event: EventType, old: Object | None, new: Object | None) -> None:
        """Make a deleted binding again, unless its template is gone as well."""
        binding = new or old
        assert binding is not None
        self._awaited.seen(key_of(binding))
        if new is None and old is not None:
            resource = old["spec"]["resource"]
            self.templates.add(f"{resource['kind']}|{reference_key(resource)}")

    async def _sync_template(self, item: str) -> None:
        kind, _, key = item.partition("|")
        template = self._caches[_BY_KIND[kind]].get(key)
        if template is None:
            await self._collect(item)
        elif not template["metadata"].get("deletionTimestamp"):
            await self._propagate(template)

    async def _collect(self, item: str) -> None:
        """Delete the binding of a template that is gone: not every API server collects garbage."""
        for informer in (self._caches.bindings, self._caches.cluster_bindings):
            for binding in informer.by_index(BY_TEMPLATE, item):
                if binding["metadata"].get("deletionTimestamp"):
                    continue
                meta: Object = binding["metadata"]
                try:
                    await self._kube.delete(
                        informer.resource,
                        meta["name"],
                        namespace=meta.get("namespace"),
                        uid=meta["uid"],
                    )
                except NotFound:
                    continue

    async def _propagate(self, template: Object) -> None:
        claimed = policies.claimed_by(template)
        if claimed is not None:
            namespace, name, _ = claimed
            policy = self._caches.policy(namespace, name)
            if policy is None:
                await self._release(template)
                return
            if policy["metadata"].get("deletionTimestamp"):
                raise RetryError(f"policy {name} is being deleted")
            if policies.precision(policy, template) is not policies.Precision.NONE:
                await self._apply(template, policy)
            return
        policy = self._match(template)
        if policy is not None:
            if not policies.policy_id(policy):
                raise RetryError(f"policy {policy['metadata']['name']} has no permanent id yet")
            await self._apply(template, policy)

    def _match(self, template: Object) -> Object | None:
        own = self._caches.policies_naming(template)
        return policies.best_policy(own, template) or policies.best_policy(
            self._caches.cluster_policies.items(), template
        )

    async def _apply(self, template: Object, policy: Object) -> None:
        try:
            claimed = await self._claim(template, policy)
            await self._write_binding(claimed, policy)
        except AlreadyExists as error:
            raise RetryError("the cache does not hold the new binding yet") from error
        except (KubeError, OwnerMismatchError) as error:
            scope = "cluster policy" if policies.is_cluster_policy(policy) else "policy"
            self._recorder.event(
                template,
                "Warning",
                "ApplyPolicyFailed",
                "ApplyPolicy",
                f"Apply {scope}({key_of(policy)}) failed: {_text(error)}",
            )
            if isinstance(error, OwnerMismatchError):
                raise RetryError(str(error)) from error
            raise

    async def _claim(self, template: Object, policy: Object) -> Object:
        wanted = policies.claim(template, policy)
        if wanted["metadata"] == template["metadata"]:
            return template
        resource = template_resource(template)
        assert resource is not None
        return await self._kube.replace(resource, wanted)

    async def _write_binding(self, template: Object, policy: Object) -> None:
        interpretation = interpreter.replicas_of(
            template, hooks=self._caches.hooks(), components=self._components
        )
        desired = build_binding(template, policy, interpretation=interpretation)
        key = key_of(desired)
        resource = self._caches.binding_resource(key)
        live = self._caches.binding(key)
        if live is None:
            if key in self._awaited:
                raise RetryError(f"the cache does not hold the new binding {key} yet")
            await self._kube.create(resource, new_binding(desired, permanent_id=str(uuid4())))
            self._awaited.add(key)
            return
        if live["metadata"].get("deletionTimestamp"):
            raise RetryError(f"binding {key} is being deleted")
        synced = sync_binding(live, desired)
        if synced != live:
            await self._kube.replace(resource, synced)

    async def _release(self, template: Object) -> None:
        """Take the marks of a vanished policy off the binding, then off the template."""
        item = f"{template['kind']}|{key_of(template)}"
        for informer in (self._caches.bindings, self._caches.cluster_bindings):
            for binding in informer.by_index(BY_TEMPLATE, item):
                if policies.claimed_by(binding) is not None:
                    await self._kube.replace(informer.resource, policies.unclaim(binding))
        resource = template_resource(template)
        assert resource is not None
        await self._kube.replace(resource, policies.unclaim(template))

    async def _sync_policy(self, key: str) -> None:
        namespace, _, name = key.rpartition("/")
        policy = self._caches.policy(namespace, name)
        if policy is None:
            return
        resource = PROPAGATION_POLICIES if namespace else CLUSTER_PROPAGATION_POLICIES
        if policy["metadata"].get("deletionTimestamp"):
            await self._end_policy(policy, resource)
            return
        defaulted = policies.default_policy(policy, permanent_id=str(uuid4()))
        if defaulted != policy:
            # no webhook has done it: the informer brings the policy back here
            await self._kube.replace(resource, defaulted)
            return
        for binding in self._caches.bindings_of_policy(policies.policy_id(policy)):
            template = self._template_of(binding)
            if template is None:
                continue
            if policies.precision(policy, template) is policies.Precision.NONE:
                await self._release(template)
            else:
                self.templates.add(f"{template['kind']}|{key_of(template)}")
        for template in self._caches.templates_named(policy):
            if policies.precision(policy, template) is not policies.Precision.NONE:
                await self._offer(template, policy)

    async def _offer(self, template: Object, policy: Object) -> None:
        """Let a policy take a template that waits for one, or that it may preempt."""
        claimed = policies.claimed_by(template)
        if claimed is None:
            self.templates.add(f"{template['kind']}|{key_of(template)}")
            return
        if claimed[2] == policies.policy_id(policy):
            return
        bound = self._caches.policy(claimed[0], claimed[1])
        if policies.preempts(policy, bound):
            await self._claim(template, policy)

    async def _end_policy(self, policy: Object, resource: Resource) -> None:
        for binding in self._caches.bindings_of_policy(policies.policy_id(policy)):
            template = self._template_of(binding)
            if template is not None and not template["metadata"].get("deletionTimestamp"):
                await self._release(template)
            elif not binding["metadata"].get("deletionTimestamp"):
                await self._kube.replace(
                    self._caches.binding_resource(key_of(binding)), policies.unclaim(binding)
                )
        ended = deepcopy(policy)
        own = {names.POLICY_FINALIZER, names.CLUSTER_POLICY_FINALIZER}
        left = [each for each in policy["metadata"].get("finalizers") or () if each not in own]
        if left != policy["metadata"].get("finalizers"):
            ended["metadata"]["finalizers"] = left
            await self._kube.replace(resource, ended)

    def _template_of(self, binding: Object) -> Object | None:
        reference: Object = binding["spec"]["resource"]
        resource = template_resource(reference)
        return None if resource is None else self._caches[resource].get(reference_key(reference))


def _text(error: Exception) -> str:
    return error.message if isinstance(error, KubeError) else str(error)
