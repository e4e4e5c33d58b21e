"""Who confirms gangs: as the controller was told, or as Volcano Global's webhook shows."""

import pytest

from hyperjob_controller.admission.releases import Mode
from hyperjob_core.kube.client import EventType
from hyperjob_engine.model.observed import QueueAdmission
from tests.support.feeds import Feed
from tests.unit.install.observations import volcano_global

ADDED, MODIFIED, DELETED = EventType.ADDED, EventType.MODIFIED, EventType.DELETED
OTHER = {"metadata": {"name": "cert-manager"}, "webhooks": [{"clientConfig": {"url": "https://x"}}]}


def _mode(wanted: QueueAdmission | None = None) -> tuple[Mode, Feed, list[QueueAdmission]]:
    webhooks, told = Feed(), list[QueueAdmission]()
    mode = Mode(
        wanted,
        webhooks,  # type: ignore[arg-type]  # has what is used
        changed=lambda: told.append(mode.current),
    )
    return mode, webhooks, told


def test_without_volcano_global_our_own_queues_admit() -> None:
    mode, webhooks, told = _mode()
    webhooks.tell(ADDED, None, OTHER)
    assert mode.current is QueueAdmission.BUILTIN
    assert mode.decides_alone
    assert not told


def test_it_follows_volcano_global_as_it_comes_and_goes_and_tells_each_change_once() -> None:
    mode, webhooks, told = _mode()
    there = volcano_global()
    webhooks.tell(ADDED, None, there)
    webhooks.tell(MODIFIED, there, {**there, "metadata": {**there["metadata"], "generation": 2}})
    webhooks.tell(ADDED, None, OTHER)
    webhooks.tell(DELETED, OTHER, None)
    assert mode.current is QueueAdmission.VOLCANO_GLOBAL
    assert not mode.decides_alone
    webhooks.tell(DELETED, there, None)
    assert mode.current is QueueAdmission.BUILTIN
    assert told == [QueueAdmission.VOLCANO_GLOBAL, QueueAdmission.BUILTIN]


def test_a_configuration_that_loses_its_webhook_counts_no_more() -> None:
    mode, webhooks, _ = _mode()
    there = volcano_global()
    webhooks.tell(ADDED, None, there)
    webhooks.tell(MODIFIED, there, {**there, "webhooks": []})
    assert mode.current is QueueAdmission.BUILTIN


@pytest.mark.parametrize("wanted", QueueAdmission)
def test_as_it_was_told_it_stays(wanted: QueueAdmission) -> None:
    mode, webhooks, _ = _mode(wanted)
    assert webhooks.handlers == []
    assert mode.current is wanted
    assert not mode.decides_alone, "Volcano Global may be there"
    assert mode.why == f"--queue-admission {wanted}"
