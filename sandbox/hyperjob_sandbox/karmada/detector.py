"""The detector: finds the policy of every template, claims the template, keeps its binding in step.

It must never write `spec.clusters` or take away what others stamped on a binding.
"""

from uuid import uuid4

from hyperjob.api.meta import Object
from hyperjob.kube.resources import key_of
from hyperjob_sandbox.controller import Controller, RetryError, changed_besides_status, vanished
from hyperjob_sandbox.karmada import interpreter, names, policies
from hyperjob_sandbox.karmada.bindings import (
    OwnerMismatchError,
    build_binding,
    new_binding,
    sync_binding,
)
from hyperjob_sandbox.karmada.caches import BY_POLICY, BY_TEMPLATE, Caches
from hyperjob_sandbox.objects import is_going


class Detector:
    """Two controllers over one cache: templates (`kind|key`) and policies (`key`)."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        self._informers = {each.resource.kind: each for each in caches.templates}
        self.templates = Controller("resource-detector", self._sync_template, workers=8)
        self.policies = Controller("policy-detector", self._sync_policy, workers=2)
        self.templates.watch(
            *caches.templates, when=changed_besides_status, keys=lambda each: (_item(each),)
        )
        self.templates.watch(  # a deleted binding is made again, unless its template is gone
            *caches.bindings,
            when=vanished,
            keys=lambda binding: (names.item_of(binding["spec"]["resource"]),),
        )
        self.policies.watch(*caches.policies, when=changed_besides_status)

    async def _sync_template(self, item: str) -> None:
        kind, _, key = item.partition("|")
        template = self._informers[kind].get(key)
        if template is None:
            for binding in self._caches.bindings_by(BY_TEMPLATE, item):
                await self._caches.delete(binding)  # not every API server collects garbage
        elif not is_going(template):
            await self._propagate(template)

    async def _propagate(self, template: Object) -> None:
        claimed = policies.claimed_by(template)
        if claimed is None:
            policy = self._match(template)
            if policy is not None and not policies.policy_id(policy):
                raise RetryError(f"policy {key_of(policy)} has no permanent id yet")
        else:
            policy = self._caches.policy(claimed[0])
            if policy is None:
                await self._release(template)
            elif is_going(policy):
                raise RetryError(f"policy {key_of(policy)} is being deleted")
        if policy is not None and policies.selects(policy, template):
            await self._apply(template, policy)

    def _match(self, template: Object) -> Object | None:
        return policies.best_policy(
            self._caches.policies_naming(template), template
        ) or policies.best_policy(self._caches.policies[1].items(), template)

    async def _apply(self, template: Object, policy: Object) -> None:
        """Let a policy claim a template, whose binding follows when the claim is seen."""
        claimed = policies.claim(template, policy)
        if claimed["metadata"] != template["metadata"]:
            await self._caches.replace(claimed)
            return
        interpretation = interpreter.replicas_of(template, hooks=self._caches.hooks())
        desired = build_binding(template, policy, interpretation=interpretation)
        if self._caches.live(desired) is None:
            desired = new_binding(desired, permanent_id=str(uuid4()))
        try:
            await self._caches.ensure(desired, sync_binding)
        except OwnerMismatchError as error:
            raise RetryError(str(error)) from error

    async def _release(self, template: Object) -> None:
        """Take the marks of a vanished policy off the binding, then off the template."""
        for binding in self._caches.bindings_by(BY_TEMPLATE, _item(template)):
            if policies.claimed_by(binding) is not None:
                await self._caches.replace(policies.unclaim(binding))
        await self._caches.replace(policies.unclaim(template))

    async def _sync_policy(self, key: str) -> None:
        policy = self._caches.policy(key)
        if policy is None:
            return
        bindings = self._caches.bindings_by(BY_POLICY, policies.policy_id(policy))
        if is_going(policy):
            await self._end_policy(policy, bindings)
            return
        defaulted = policies.default_policy(policy, permanent_id=str(uuid4()))
        if defaulted != policy:
            # no webhook has done it: the informer brings the policy back here
            await self._caches.replace(defaulted)
            return
        for binding in bindings:
            template = self._caches.template(binding["spec"]["resource"])
            if template is not None and policies.selects(policy, template):
                self.templates.add(_item(template))
            elif template is not None:
                await self._release(template)
        for template in self._selected(policy):
            await self._offer(template, policy)

    def _selected(self, policy: Object) -> list[Object]:
        """Return the templates a policy selects, looking up those that it names."""
        found: dict[str, Object] = {}
        for selector in policy["spec"].get("resourceSelectors") or ():
            informer = self._caches.of_kind(selector)
            if informer is None:
                continue
            candidates = informer.items()
            if selector.get("name") and (
                selector.get("namespace") or not informer.resource.namespaced
            ):
                named = self._caches.template(selector)
                candidates = [] if named is None else [named]
            for template in candidates:
                if policies.selects(policy, template):
                    found[_item(template)] = template
        return list(found.values())

    async def _offer(self, template: Object, policy: Object) -> None:
        """Let a policy take a template that waits for one, or that it may preempt."""
        claimed = policies.claimed_by(template)
        if claimed is None:
            self.templates.add(_item(template))
        elif claimed[1] != policies.policy_id(policy) and policies.preempts(
            policy, self._caches.policy(claimed[0])
        ):
            await self._caches.replace(policies.claim(template, policy))

    async def _end_policy(self, policy: Object, bindings: list[Object]) -> None:
        for binding in bindings:
            template = self._caches.template(binding["spec"]["resource"])
            if template is not None and not is_going(template):
                await self._release(template)
            elif not is_going(binding):
                await self._caches.replace(policies.unclaim(binding))
        await self._caches.let_go(policy, names.POLICY_FINALIZER, names.CLUSTER_POLICY_FINALIZER)


def _item(template: Object) -> str:
    return names.item_of({"kind": template["kind"], **template["metadata"]})
