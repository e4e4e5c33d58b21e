"""The record of what a queue has consumed, beside users who apply the Queue."""

from datetime import timedelta
from typing import Any

import pytest

from hyperjob_controller.admission.recorder import ConsumptionRecorder
from hyperjob_core.api.quantity import NANO
from hyperjob_core.kube.client import Kube
from hyperjob_core.kube.resources import QUEUES
from hyperjob_queueing.consumed import FAIR_SHARING, Consumption, parse_consumed
from hyperjob_queueing.queues import Tree, parse_queue
from hyperjob_queueing.usage import QueueUsage
from tests.support.controlplane import ControlPlane
from tests.unit.engine.builders import NOW

Object = dict[str, Any]
GPU = "nvidia.com/gpu"


def usage_of(queue: Object, *, days: int, others: tuple[str, ...] = ("other",)) -> QueueUsage:
    """Return a usage in which a queue has used 8 of 16 GPUs for some days."""
    named = [parse_queue({"metadata": {"name": name}}) for name in others]
    tree = Tree([parse_queue(queue), *named], {GPU: 16 * NANO})
    found = QueueUsage(tree, Consumption(timedelta(days=1)))
    found.follow(queue="", kept={}, now=NOW)
    found.add("record", {GPU: 8 * NANO})
    found.follow(queue="", kept={}, now=NOW + timedelta(days=days))
    return found


async def test_a_record_and_a_user_who_applies_the_queue_leave_each_other_alone(
    control_plane: ControlPlane, caplog: pytest.LogCaptureFixture
) -> None:
    async with Kube.connect(kubeconfig=control_plane.kubeconfig, user_agent="test") as kube:
        wanted: Object = {"metadata": {"name": "record"}, "spec": {"weight": 1}}
        made = await kube.apply(QUEUES, wanted, field_manager="user", force=False)
        kept, now = [made], [usage_of(made, days=1, others=())]
        recorder = ConsumptionRecorder(kube, lambda: kept, lambda: now[0])
        await recorder.record()
        alone = await kube.get(QUEUES, "record")
        assert parse_consumed(alone) is None, "a queue alone is compared with none"
        now[0] = usage_of(made, days=1)
        await recorder.record()
        first = await kube.get(QUEUES, "record")
        found = parse_consumed(first)
        assert found.resources == {GPU: 4 * NANO}
        owners = {each["manager"] for each in first["metadata"]["managedFields"]}
        assert owners >= {"user", "hyperjob-controller"}

        kept[0] = first
        await recorder.record()
        again = await kube.get(QUEUES, "record")
        assert again["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]

        changed = {**wanted, "spec": {"weight": 3}}
        await kube.apply(QUEUES, changed, field_manager="user", force=False)
        now[0] = usage_of(made, days=2)
        await recorder.record()
        last = await kube.get(QUEUES, "record")
        assert last["spec"]["weight"] == 3
        found = parse_consumed(last)
        assert found.resources == {GPU: 6 * NANO}

        await kube.delete(QUEUES, "record")
        other = await kube.apply(QUEUES, wanted, field_manager="user", force=False)
        await recorder.record()
        assert FAIR_SHARING not in (other["metadata"].get("annotations") or {})
        left = await kube.get(QUEUES, "record")
        assert parse_consumed(left) is None, "it is another Queue of that name"
        assert "the next leader would not know it" in caplog.text
        await kube.delete(QUEUES, "record")
