"""Have the API server call the webhook before it calls it for every HyperJob.

A trial configuration selects HyperJobs by a label that no other object has. A dry run of such a
HyperJob shows whether the API server reaches the webhook and trusts its certificate; the address
may be unknown to the machine of the installer.
"""

import asyncio
import contextlib
import time
import uuid
from typing import Final

from hyperjob_core.api.meta import Object
from hyperjob_core.api.names import GROUP, WEBHOOK_VERSION
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.errors import Conflict, KubeError, NotFound
from hyperjob_core.kube.resources import HYPERJOBS, MUTATING_WEBHOOKS
from hyperjob_install.manifest import DEFAULT_QUEUE
from hyperjob_install.objects import FIELD_MANAGER, Item, is_ours, labelled, title
from hyperjob_install.problems import NOT_OURS, InstallError

TRIAL_NAME: Final = "hyperjob-preflight"
TRIAL_NAMESPACE: Final = "default"


def trial_hyperjob() -> Object:
    """Return a small HyperJob in whose annotation the webhook writes its release."""
    return {
        "metadata": {
            "name": TRIAL_NAME,
            "namespace": TRIAL_NAMESPACE,
            "annotations": {WEBHOOK_VERSION: ""},
        },
        "spec": {
            "replicatedJobs": [
                {"name": "main", "replicas": 1, "templateSpec": {"tasks": [_task()]}}
            ]
        },
    }


def trial_vcjob() -> Object:
    """Return a small vcjob of the default Queue, as the controller creates its sub-jobs."""
    return {
        "metadata": {"name": TRIAL_NAME, "namespace": TRIAL_NAMESPACE},
        "spec": {
            "minAvailable": 1,
            "schedulerName": "volcano",
            "queue": DEFAULT_QUEUE,
            "tasks": [_task()],
        },
    }


def _task() -> Object:
    container = {"name": "main", "image": "busybox"}
    pod = {"restartPolicy": "Never", "containers": [container]}
    return {"name": "main", "replicas": 1, "template": {"spec": pod}}


# Before `hyperjob-mutating` in the order of names: the API server calls the trial first.
TRIAL: Final = "hyperjob-install-check"
_WEBHOOK: Final = f"check.{GROUP}"
_LABEL: Final = f"{GROUP}/install-check"
_NOTICED: Final = 5.0
"""Seconds in which an API server notices a new webhook configuration."""
_AGAIN: Final = 0.2


async def require_webhook(
    kube: Kube, configuration: Item, *, unreachable: bool = False, seconds: float
) -> None:
    """Raise InstallError unless the API server reaches the webhook of a configuration.

    The function retries for `seconds` while the webhook does not answer; with `unreachable` it
    accepts a webhook that does not answer. A certificate that the caBundle does not verify is an
    error at once.
    """
    mark = uuid.uuid4().hex
    hook = configuration.object["webhooks"][0]
    trial = {
        "metadata": {"name": TRIAL},
        "webhooks": [{**hook, "name": _WEBHOOK, "objectSelector": {"matchLabels": {_LABEL: mark}}}],
    }
    await _require_own_trial(kube)
    made = await kube.apply(
        MUTATING_WEBHOOKS,
        labelled(trial, component="webhook"),
        field_manager=FIELD_MANAGER,
        force=True,
    )
    try:
        await _until_called(kube, hook, mark, unreachable=unreachable, seconds=seconds)
    finally:
        with contextlib.suppress(NotFound, Conflict):
            await kube.delete(MUTATING_WEBHOOKS, TRIAL, uid=made["metadata"]["uid"])


async def _require_own_trial(kube: Kube) -> None:
    """Raise InstallError if another owner has a configuration of the trial's name."""
    try:
        live = await kube.get(MUTATING_WEBHOOKS, TRIAL)
    except NotFound:
        return
    if not is_ours(live):
        raise InstallError(
            f"{title(MUTATING_WEBHOOKS, TRIAL)} {NOT_OURS}: delete it and run the command again;"
            " the trial of the webhook needs this name, and the configurations are unchanged"
        )


def is_untrusted(said: str) -> bool:
    """Return whether the API server's error is about the webhook's certificate."""
    return "x509" in said or "certificate" in said


async def _until_called(
    kube: Kube, hook: Object, mark: str, *, unreachable: bool, seconds: float
) -> None:
    """Return when the webhook has answered a dry run; raises InstallError.

    An error that does not name the trial webhook is that of another webhook or policy, or the API
    server has not noticed the trial yet: after _NOTICED seconds the webhook counts as reached.
    """
    started = time.monotonic()
    while True:
        said = await _call(kube, mark)
        waited = time.monotonic() - started
        if said is None:
            return
        ours = _WEBHOOK in said
        if ours and is_untrusted(said):
            raise InstallError(_untrusted(hook, said))
        if ours and unreachable:
            return
        if ours and waited >= seconds:
            raise InstallError(_unreached(hook, said))
        if not ours and waited >= _NOTICED:
            return  # preflight prints the answer of another webhook or policy
        await asyncio.sleep(_AGAIN)


async def _call(kube: Kube, mark: str) -> str | None:
    """Return None when the webhook has answered, otherwise the text of the API server."""
    trial = trial_hyperjob()
    trial["metadata"]["labels"] = {_LABEL: mark}
    try:
        made = await kube.create(HYPERJOBS, trial, dry_run=True)
    except KubeError as error:
        return error.message or "no answer"
    return None if made["metadata"]["annotations"].get(WEBHOOK_VERSION) else ""


def _untrusted(hook: Object, said: str) -> str:
    given = "caBundle" in hook["clientConfig"]
    which = "--ca-file is not the authority" if given else "without --ca-file nothing verifies"
    return (
        f"the API server does not trust the webhook's certificate, since {which} of the chain that"
        f" the webhook serves: {said}; the webhook configurations are unchanged: run the command"
        " again with --ca-file and the authority of the webhook's certificate"
    )


def _unreached(hook: Object, said: str) -> str:
    return (
        f"the API server does not reach the webhook at {address_of(hook)}: {said}; the webhook"
        " configurations are unchanged: start hyperjob-webhook, or run the command again with the"
        " right --webhook-url (--allow unreachable-webhook writes them all the same)"
    )


def address_of(hook: Object) -> str:
    """Return where the API server calls a webhook: a Service with its port, or the base URL."""
    client = hook.get("clientConfig") or {}
    if service := client.get("service"):
        port = service.get("port", 443)
        return f"service {service.get('namespace')}/{service.get('name')}:{port}"
    scheme, _, rest = str(client.get("url") or "").partition("://")
    return f"{scheme}://{rest.partition('/')[0]}"
