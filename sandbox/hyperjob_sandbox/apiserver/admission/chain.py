"""The admission chain: mutating webhooks one after the other, validating ones side by side.

As kube-apiserver does it: by name of configuration, each mutating webhook seeing what the ones
before it made of the object, and once more where a later one changed it after them. Never asks a
webhook about webhook configurations.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace

from hyperjob.api.field import go_quote
from hyperjob.api.meta import Object
from hyperjob_sandbox.apiserver import errors, jsonvalue
from hyperjob_sandbox.apiserver.admission.review import (
    AdmissionRequest,
    AdmissionResponse,
    GroupVersionKind,
    GroupVersionResource,
    InvalidResponse,
    Operation,
    Target,
    UnusablePatch,
    in_version,
    read_answer,
    review,
)
from hyperjob_sandbox.apiserver.admission.webhookclient import (
    CallError,
    ServiceResolver,
    WebhookClient,
)
from hyperjob_sandbox.apiserver.admission.webhookhooks import Hook, compile_hooks, exempt
from hyperjob_sandbox.apiserver.patches.patch import json_patch

__all__ = [
    "AdmissionChain",
    "AdmissionDenied",
    "AdmissionRequest",
    "GroupVersionKind",
    "GroupVersionResource",
    "Operation",
]

NamespaceLookup = Callable[[str], Object | None]


class AdmissionDenied(errors.ApiError):
    """A request that admission refuses, with the Status to answer."""


class _WebhookCallError(Exception):
    """A webhook that could not be asked; its failure policy decides what that means."""


class AdmissionChain:
    """Asks the webhooks that the stored configurations name.

    `namespaces` looks a namespace up for namespaceSelector; `resolve_service` gives host and port
    of a webhook's Service, raising LookupError where there is none.
    """

    def __init__(
        self,
        *,
        namespaces: NamespaceLookup,
        resolve_service: ServiceResolver | None = None,
    ) -> None:
        self._namespaces = namespaces
        self._client = (
            WebhookClient(resolve_service=resolve_service) if resolve_service else WebhookClient()
        )
        self._mutating: tuple[Hook, ...] = ()
        self._validating: tuple[Hook, ...] = ()

    def reload(
        self,
        *,
        mutating: Iterable[Object] | None = None,
        validating: Iterable[Object] | None = None,
    ) -> None:
        """Take over changed configurations; None leaves a kind as it is. Connections stay open."""
        if mutating is not None:
            self._mutating = compile_hooks(list(mutating))
        if validating is not None:
            self._validating = compile_hooks(list(validating))

    async def close(self) -> None:
        """Close the connections to webhooks."""
        await self._client.close()

    async def mutate(self, request: AdmissionRequest) -> Object:
        """Return the object as the mutating webhooks leave it; raise AdmissionDenied.

        The given object is not changed. A request without an object (DELETE) gives an empty one.
        """
        if not self._mutating or exempt(request):
            return request.object if request.object is not None else {}
        run = _MutatingRun(self, request)
        await run.round(self._mutating)
        if run.again:
            repeat, run.again = run.again, set()
            run.reinvoking = True
            await run.round([hook for hook in self._mutating if hook.uid in repeat])
        return run.object if run.object is not None else {}

    async def validate(self, request: AdmissionRequest) -> None:
        """Ask all validating webhooks at once; raise AdmissionDenied with the first refusal."""
        if not self._validating or exempt(request):
            return
        calls = [
            (hook, target)
            for hook in self._validating
            if (target := self.target(hook, request, request.object)) is not None
        ]
        async with asyncio.TaskGroup() as group:
            tasks = [
                group.create_task(self._ask_quietly(hook, target, request))
                for hook, target in calls
            ]
        for task in tasks:
            if (refusal := task.result()) is not None:
                raise refusal

    async def _ask_quietly(
        self, hook: Hook, target: Target, request: AdmissionRequest
    ) -> errors.ApiError | None:
        # Every webhook is heard: a refusal must not cut off the others.
        try:
            await self.ask(hook, target, request, request.object, mutating=False)
        except _WebhookCallError as failed:
            return None if hook.ignore_failures else _internal(str(failed))
        except errors.ApiError as refused:
            return refused
        return None

    def target(
        self, hook: Hook, request: AdmissionRequest, current: Object | None
    ) -> Target | None:
        """Return under which version a hook is to be asked, None where it is not."""
        try:
            if hook.problem:
                raise errors.internal(hook.problem)
            now = request if current is request.object else replace(request, object=current)
            namespace = self._namespaces(request.namespace) if request.namespace else None
            target = hook.target(now, namespace)
            return target if target and hook.admits(now, target, current) else None
        except errors.ApiError as error:
            raise AdmissionDenied(error.status) from error

    async def ask(
        self,
        hook: Hook,
        target: Target,
        request: AdmissionRequest,
        current: Object | None,
        *,
        mutating: bool,
    ) -> AdmissionResponse:
        """Call one webhook; raise AdmissionDenied for a refusal, else _WebhookCallError."""
        if request.dry_run and not hook.side_effect_free:
            text = f"admission webhook {go_quote(hook.name)} does not support dry run"
            raise AdmissionDenied(errors.bad_request(text).status)
        if not hook.speaks_v1:
            raise self._failed(
                hook,
                "could not create admission objects: "
                "webhook does not accept known AdmissionReview versions (v1, v1beta1)",
            )
        uid, body = review(request, target, current)
        try:
            answer = read_answer(await self._client.post(hook, body), uid=uid, mutating=mutating)
        except CallError as error:
            raise self._failed(hook, f"failed to call webhook: {error}") from error
        except UnusablePatch as error:
            raise self._failed(hook, str(error)) from error
        except InvalidResponse as error:
            raise self._failed(hook, f"received invalid webhook response: {error}") from error
        request.warnings.extend(answer.warnings)
        if not answer.allowed:
            raise AdmissionDenied(_denial(hook, answer.status))
        return answer

    @staticmethod
    def _failed(hook: Hook, reason: str) -> _WebhookCallError:
        return _WebhookCallError(f"failed calling webhook {go_quote(hook.name)}: {reason}")


class _MutatingRun:
    """One request on its way through the mutating webhooks."""

    def __init__(self, chain: AdmissionChain, request: AdmissionRequest) -> None:
        self._chain = chain
        self._request = request
        self.object = request.object
        self.reinvoking = False
        self.again: set[tuple[str, int]] = set()
        self._asked: set[tuple[str, int]] = set()

    async def round(self, hooks: Iterable[Hook]) -> None:
        for hook in hooks:
            target = self._chain.target(hook, self._request, self.object)
            if target is None:
                continue
            try:
                changed = await self._call(hook, target)
            except _WebhookCallError as failed:
                changed = False
                if not hook.ignore_failures:
                    raise _internal(str(failed)) from failed
            if changed and not self.reinvoking:
                # Those asked before have not seen this object.
                self.again |= self._asked
                self._asked = set()
            if hook.reinvocable:
                self._asked.add(hook.uid)

    async def _call(self, hook: Hook, target: Target) -> bool:
        answer = await self._chain.ask(hook, target, self._request, self.object, mutating=True)
        if not answer.patch:
            return False
        if self.object is None:
            raise _internal(
                f"admission webhook {go_quote(hook.name)} attempted to modify the object, "
                "which is not supported for this operation"
            )
        before = in_version(self.object, target.gvk)
        try:
            patched = json_patch(before, answer.patch)
        except errors.ApiError as error:
            cause = error.__cause__ or error
            raise _internal(f"{cause}") from error
        if not isinstance(patched, dict):
            raise _internal("couldn't get version/kind; json parse error: not an object")
        changed = not jsonvalue.equal(before, patched)
        found = (
            in_version(patched, self._request.gvk) if target.gvk != self._request.gvk else patched
        )
        self.object = found
        if self._request.default is not None and found is not None:
            self._request.default(found)
        return changed


def _internal(message: str) -> AdmissionDenied:
    return AdmissionDenied(errors.internal(message).status)


def _denial(hook: Hook, found: Object) -> Object:
    """Return the Status of a refusal: the webhook's own, made a failure and told whose it is."""
    denied = f"admission webhook {go_quote(hook.name)} denied the request"
    code = found.get("code") or 0
    code = code if isinstance(code, int) and code >= 400 else 400
    why = found.get("message") or found.get("reason")
    status: Object = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": found.get("metadata") or {},
        "status": "Failure",
        "message": f"{denied}: {why}" if why else f"{denied} without explanation",
    }
    if found.get("reason"):
        status["reason"] = found["reason"]
    if isinstance(found.get("details"), dict):
        status["details"] = found["details"]
    status["code"] = code
    return status
