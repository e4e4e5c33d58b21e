"""The detector: finds the policy of every template, claims it, and keeps its binding in step."""

from collections.abc import Iterable
from uuid import uuid4

from hyperjob_core.api.meta import Object
from hyperjob_core.kube.resources import key_of
from hyperjob_sandbox.controller import Controller, RetryError, changed_besides_status
from hyperjob_sandbox.karmada import interpreter, names, policies
from hyperjob_sandbox.karmada.bindings import build_binding, new_binding, sync_binding
from hyperjob_sandbox.karmada.caches import BY_POLICY, BY_TEMPLATE, Caches
from hyperjob_sandbox.objects import is_going


class Detector:
    """Two controllers over one cache: templates (`kind|key`) and policies (`key`)."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches
        self.templates = Controller("resource-detector", self._sync_template, workers=8)
        self.policies = Controller("policy-detector", self._sync_policy, workers=2)
        self.templates.watch(
            *caches.templates, when=changed_besides_status, keys=lambda each: (names.item_of(each),)
        )
        self.policies.watch(*caches.policies, when=changed_besides_status)

    async def _sync_template(self, item: str) -> None:
        template = self._caches.template_of(item)
        if template is None:
            for binding in self._caches.bindings_by(BY_TEMPLATE, item):
                await self._caches.delete(binding)  # not every API server collects garbage
        elif not is_going(template):
            policy = self._policy_of(template)
            if policy is None:
                await self._release(template)
            else:
                await self._propagate(template, policy)

    def _policy_of(self, template: Object) -> Object | None:
        """Return the policy that claims a template, or the policy that wins or preempts it now."""
        best = policies.best_policy(
            self._caches.policies_naming(template), template
        ) or policies.best_policy(self._caches.policies[1].items(), template)
        claimed = policies.claimed_by(template)
        bound = self._caches.policy(claimed) if claimed else None
        if bound is None or is_going(bound) or not policies.selects(bound, template):
            return best
        return best if best is not None and policies.preempts(best, bound) else bound

    async def _propagate(self, template: Object, policy: Object) -> None:
        """Let a policy claim a template; its binding follows when the claim is seen."""
        if not policies.policy_id(policy):
            raise RetryError(f"policy {key_of(policy)} has no permanent id yet")
        claimed = policies.claim(template, policy)
        if claimed["metadata"] != template["metadata"]:
            await self._caches.replace(claimed)
            return
        interpretation = interpreter.requirements_of(template, hooks=self._caches.hooks())
        desired = build_binding(template, policy, interpretation=interpretation)
        if self._caches.live(desired) is None:
            desired = new_binding(desired, permanent_id=str(uuid4()))
        await self._caches.ensure(desired, sync_binding)

    async def _release(self, template: Object) -> None:
        """Take the marks of a vanished policy off the binding, then off the template."""
        bindings = self._caches.bindings_by(BY_TEMPLATE, names.item_of(template))
        for obj in (*bindings, template):
            if policies.claimed_by(obj) is not None:
                await self._caches.replace(policies.unclaim(obj))

    async def _sync_policy(self, key: str) -> None:
        policy = self._caches.policy(key)
        if policy is None:
            return
        if is_going(policy):
            await self._caches.let_go(
                policy, names.POLICY_FINALIZER, names.CLUSTER_POLICY_FINALIZER
            )
        for binding in self._caches.bindings_by(BY_POLICY, policies.policy_id(policy)):
            self.templates.add(names.item_of(binding["spec"]["resource"]))
        for selector in policy["spec"].get("resourceSelectors") or ():
            for template in self._candidates(selector):
                self.templates.add(names.item_of(template))

    def _candidates(self, selector: Object) -> Iterable[Object]:
        """Return the templates that a selector may select; a named template is looked up."""
        informer = self._caches.of_kind(selector)
        if informer is None:
            return ()
        is_key = selector.get("namespace") or not informer.resource.namespaced
        if selector.get("name") and is_key:
            return filter(None, [self._caches.template(selector)])
        return informer.items()
