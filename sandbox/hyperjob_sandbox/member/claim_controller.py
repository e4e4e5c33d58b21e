"""Kubernetes' protection of PersistentVolumeClaims in a member: none goes while a pod uses it."""

from collections.abc import Iterable
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.wire import at, objects, string
from hyperjob_core.kube.resources import PERSISTENT_VOLUME_CLAIMS
from hyperjob_sandbox.controller import Controller
from hyperjob_sandbox.member.caches import ENDED, MemberCaches
from hyperjob_sandbox.objects import is_going, phase_of

FINALIZER: Final = "kubernetes.io/pvc-protection"


class ClaimController:
    """Gives each claim the finalizer, and takes it off a deleted claim that no pod uses."""

    def __init__(self, caches: MemberCaches) -> None:
        self._caches = caches
        self.controller = Controller("pvc-protection", self._sync, workers=1)
        self.controller.watch(caches[PERSISTENT_VOLUME_CLAIMS])
        self.controller.watch(caches.pods, keys=_claims_of)

    async def _sync(self, key: str) -> None:
        claim = self._caches[PERSISTENT_VOLUME_CLAIMS].get(key)
        if claim is None:
            return
        finalizers = claim["metadata"].get("finalizers") or []
        if is_going(claim):
            if not any(key in _claims_of(pod) for pod in self._caches.pods.items()):
                await self._caches.let_go(claim, FINALIZER)
        elif FINALIZER not in finalizers:
            metadata = {**claim["metadata"], "finalizers": [*finalizers, FINALIZER]}
            await self._caches.replace({**claim, "metadata": metadata})


def _claims_of(pod: Object) -> Iterable[str]:
    """Return the keys of the claims that a pod uses; an ended pod uses none."""
    if phase_of(pod) in ENDED:
        return ()
    namespace = pod["metadata"]["namespace"]
    names = (
        string(at(each, "persistentVolumeClaim", "claimName"))
        for each in objects(at(pod, "spec", "volumes"))
    )
    return [f"{namespace}/{name}" for name in names if name]
