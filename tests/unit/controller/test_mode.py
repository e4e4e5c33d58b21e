"""Who confirms gangs: as the controller was told, or as Volcano Global's webhook shows."""

from typing import Any

import pytest

from hyperjob_controller.admission.releases import Mode
from hyperjob_core.kube.client import EventType
from hyperjob_core.kube.informer import Handler
from hyperjob_engine.model.observed import QueueAdmission
from tests.unit.install.observations import volcano_global

Object = dict[str, Any]
OTHER = {"metadata": {"name": "cert-manager"}, "webhooks": [{"clientConfig": {"url": "https://x"}}]}


class Webhooks:
    """An informer of MutatingWebhookConfigurations that a test drives."""

    def __init__(self) -> None:
        self.tell: Handler | None = None

    def add_handler(self, handler: Handler) -> None:
        self.tell = handler

    def added(self, obj: Object) -> None:
        assert self.tell is not None
        self.tell(EventType.ADDED, None, obj)

    def changed(self, old: Object, new: Object) -> None:
        assert self.tell is not None
        self.tell(EventType.MODIFIED, old, new)

    def deleted(self, obj: Object) -> None:
        assert self.tell is not None
        self.tell(EventType.DELETED, obj, None)


def _mode(wanted: QueueAdmission | None = None) -> tuple[Mode, Webhooks, list[QueueAdmission]]:
    webhooks, told = Webhooks(), list[QueueAdmission]()
    mode = Mode(
        wanted,
        webhooks,  # type: ignore[arg-type]  # has what is used
        changed=lambda: told.append(mode.current),
    )
    return mode, webhooks, told


def test_without_volcano_global_our_own_queues_admit() -> None:
    mode, webhooks, told = _mode()
    webhooks.added(OTHER)
    assert mode.current is QueueAdmission.BUILTIN
    assert mode.decides_alone
    assert not told


def test_it_follows_volcano_global_as_it_comes_and_goes_and_tells_each_change_once() -> None:
    mode, webhooks, told = _mode()
    there = volcano_global()
    webhooks.added(there)
    webhooks.changed(there, {**there, "metadata": {**there["metadata"], "generation": 2}})
    webhooks.added(OTHER)
    webhooks.deleted(OTHER)
    assert mode.current is QueueAdmission.VOLCANO_GLOBAL
    assert not mode.decides_alone
    webhooks.deleted(there)
    assert mode.current is QueueAdmission.BUILTIN
    assert told == [QueueAdmission.VOLCANO_GLOBAL, QueueAdmission.BUILTIN]


def test_a_configuration_that_loses_its_webhook_counts_no_more() -> None:
    mode, webhooks, _ = _mode()
    there = volcano_global()
    webhooks.added(there)
    webhooks.changed(there, {**there, "webhooks": []})
    assert mode.current is QueueAdmission.BUILTIN


@pytest.mark.parametrize("wanted", QueueAdmission)
def test_as_it_was_told_it_stays(wanted: QueueAdmission) -> None:
    mode, webhooks, _ = _mode(wanted)
    assert webhooks.tell is None
    assert mode.current is wanted
    assert not mode.decides_alone, "Volcano Global may be there"
    assert mode.why == f"--queue-admission {wanted}"
