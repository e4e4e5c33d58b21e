"""The loop of the simulated controllers: retries, unreadable objects, and tasks with an owner."""

import asyncio

import pytest

from hyperjob_sandbox.background import Part
from hyperjob_sandbox.controller import (
    Controller,
    RetryError,
    changed_besides_status,
    generation_changed,
)


class Worked:
    """A controller whose reconcile is scripted, and what it was called with."""

    def __init__(self, **outcomes):
        self.outcomes = {key: list(errors) for key, errors in outcomes.items()}
        self.calls = []
        self.called = asyncio.Event()
        self.controller = Controller("test", self.reconcile, workers=1)

    async def reconcile(self, key):
        self.calls.append(key)
        self.called.set()
        if self.outcomes.get(key):
            raise self.outcomes[key].pop(0)

    async def until(self, calls):
        async with asyncio.timeout(10):
            while len(self.calls) < calls:
                self.called.clear()
                await self.called.wait()


async def test_what_has_to_wait_is_tried_again_and_the_unreadable_is_left_alone(caplog):
    worked = Worked(later=[RetryError("not yet")], broken=[KeyError("spec")])
    running = asyncio.create_task(worked.controller.run())
    for key in ("broken", "later", "fine"):
        worked.controller.add(key)
    await worked.until(4)
    assert sorted(worked.calls) == ["broken", "fine", "later", "later"]
    assert "test: broken cannot be handled" in caplog.text
    worked.controller.add("broken")
    await worked.until(5)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_bug_in_a_reconcile_shows_where_its_owner_waits():
    worked = Worked(bug=[ZeroDivisionError()])
    background = Tasks()
    background.start(worked.controller.run(), name="worked")
    worked.controller.add("bug")
    with pytest.raises(ExceptionGroup) as group:
        await background.until(asyncio.Event().wait())
    assert isinstance(group.value.exceptions[0], ZeroDivisionError)
    await background.stop()


async def test_a_failure_that_was_not_waited_for_shows_at_the_end():
    async def failing():
        raise ZeroDivisionError

    background = Tasks()
    background.start(failing(), name="failing")
    await asyncio.sleep(0)
    with pytest.raises(ZeroDivisionError):
        await background.stop()


async def several_turns():
    for _ in range(5):
        await asyncio.sleep(0)


async def test_waiting_ends_with_the_work_and_not_with_a_task_that_is_done():
    background = Tasks()
    background.start(asyncio.Event().wait(), name="for ever")
    background.start(asyncio.sleep(0), name="a moment")
    await background.until(several_turns())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await background.until(asyncio.Event().wait())
    await background.stop()


class Tasks(Part):
    """A part of background tasks alone."""

    async def _set_up(self, stack):
        """Start nothing."""


def obj(version, generation=1, **more):
    return {"metadata": {"resourceVersion": version, "generation": generation}, **more}


@pytest.mark.parametrize(
    ("new", "changed", "generation"),
    [
        (obj("2"), False, False),
        (obj("2", status={"a": 1}), False, False),
        (obj("2", spec={"a": 1}), True, False),
        (obj("2", 2, spec={"a": 1}), True, True),
    ],
)
def test_only_changes_besides_status_matter(new, changed, generation):
    old = obj("1")
    assert changed_besides_status(old, new) is changed
    assert generation_changed(old, new) is generation
    assert changed_besides_status(None, new)
    assert generation_changed(old, None)
