"""The admission chain: mutating webhooks one after the other, validating ones side by side.

As kube-apiserver does it: by name of configuration, each mutating webhook seeing what the ones
before it made of the object, and once more where a later one changed it after them
(`reinvocationPolicy: IfNeeded`). No webhook is asked about webhook configurations.
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import replace

from hyperjob_core.api.field import go_quote
from hyperjob_core.api.meta import Object
from hyperjob_sandbox.apiserver import errors
from hyperjob_sandbox.apiserver.admission.client import ServiceResolver, WebhookClient
from hyperjob_sandbox.apiserver.admission.hooks import Hook, compile_hooks, exempt
from hyperjob_sandbox.apiserver.admission.review import (
    AdmissionRequest,
    AdmissionResponse,
    WebhookError,
    read_answer,
    review,
)
from hyperjob_sandbox.apiserver.patches.patch import json_patch


class AdmissionChain:
    """Asks the webhooks that the stored configurations name.

    `namespaces` looks a namespace up for namespaceSelector; `resolve_service` gives host and port
    of a webhook's Service, raising LookupError where there is none.
    """

    def __init__(
        self,
        *,
        namespaces: Callable[[str], Object | None],
        resolve_service: ServiceResolver,
    ) -> None:
        self._namespaces = namespaces
        self._client = WebhookClient(resolve_service=resolve_service)
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
            self._mutating = compile_hooks(mutating)
        if validating is not None:
            self._validating = compile_hooks(validating)

    async def close(self) -> None:
        """Close the connections to webhooks."""
        await self._client.close()

    async def mutate(self, request: AdmissionRequest) -> Object:
        """Return the object as the mutating webhooks leave it; raise ApiError for a refusal.

        The given object is not changed. A request without an object (DELETE) gives an empty one.
        """
        request, asked = await self._round(self._mutating, request)
        again = [hook for hook, left in asked if hook.is_reinvoked and left != request.object]
        request, _ = await self._round(again, request)
        return request.object if request.object is not None else {}

    async def _round(
        self, hooks: Iterable[Hook], request: AdmissionRequest
    ) -> tuple[AdmissionRequest, list[tuple[Hook, Object | None]]]:
        """Return the request after these webhooks, and how each that was asked left the object."""
        asked: list[tuple[Hook, Object | None]] = []
        for hook in hooks:
            if not self._concerns(hook, request):
                continue
            answer = await self._ask(hook, request, mutating=True)
            if answer is not None and answer.patch:
                request = replace(request, object=_patched(hook, request, answer))
            asked.append((hook, request.object))
        return request, asked

    async def validate(self, request: AdmissionRequest) -> None:
        """Ask all validating webhooks at once; raise ApiError with the first refusal."""
        hooks = [hook for hook in self._validating if self._concerns(hook, request)]
        # Every webhook is heard: a refusal must not cut off the others.
        answers = await asyncio.gather(
            *(self._ask(hook, request, mutating=False) for hook in hooks),
            return_exceptions=True,
        )
        for answer in answers:
            if isinstance(answer, BaseException):
                raise answer

    def _concerns(self, hook: Hook, request: AdmissionRequest) -> bool:
        namespace = self._namespaces(request.namespace) if request.namespace else None
        return not exempt(request) and hook.matches(request, namespace) and hook.admits(request)

    async def _ask(
        self, hook: Hook, request: AdmissionRequest, *, mutating: bool
    ) -> AdmissionResponse | None:
        """Call one webhook; None where it failed and that is ignored; raise ApiError else."""
        if request.dry_run and not hook.side_effect_free:
            text = f"admission webhook {go_quote(hook.name)} does not support dry run"
            raise errors.bad_request(text)
        uid, body = review(request)
        try:
            answer = read_answer(await self._client.post(hook, body), uid=uid, mutating=mutating)
        except WebhookError as error:
            if hook.ignore_failures:
                return None
            text = f"failed calling webhook {go_quote(hook.name)}: {error}"
            raise errors.internal(text) from error
        request.warnings.extend(answer.warnings)
        if not answer.allowed:
            raise errors.ApiError(_denial(hook, answer.status))
        return answer


def _patched(hook: Hook, request: AdmissionRequest, answer: AdmissionResponse) -> Object:
    if request.object is None:
        raise errors.internal(
            f"admission webhook {go_quote(hook.name)} attempted to modify the object, "
            "which is not supported for this operation"
        )
    try:
        patched: Object = json_patch(request.object, answer.patch)
    except errors.ApiError as error:
        raise errors.internal(f"{error.__cause__ or error}") from error
    if request.default is not None:
        request.default(patched)
    return patched


def _denial(hook: Hook, found: Object) -> Object:
    """Return the Status of a refusal: the webhook's own, made a failure and told whose it is."""
    denied = f"admission webhook {go_quote(hook.name)} denied the request"
    why = found.get("message") or found.get("reason")
    message = f"{denied}: {why}" if why else f"{denied} without explanation"
    status = errors.failure(max(found.get("code") or 0, 400), found.get("reason") or "", message)
    if isinstance(found.get("details"), dict):
        status = {**status, "details": found["details"], "code": status.pop("code")}
    return status
